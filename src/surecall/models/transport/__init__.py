"""How a request reaches a model and how its answer comes back."""

from surecall.models.client.network import Deadlines, WireLimits, join_url, split_base_url

from .embedded import (
    DEFAULT_CONTEXT_TOKENS,
    EMBEDDED_DEADLINES,
    EmbeddedTransport,
    Engine,
    close_engines,
    load_embedded,
)
from .http import ErrorParser, HttpStream, HttpTransport, check_headers
from .interface import Exchanged, Transport, WireStream, ask_transport, exchange, fold_stream
from .retry import RetryPolicy, parse_retry_after
from .scripted import ScriptedReply, ScriptedTransport, assistant, tool_call
from .weights import (
    FetchStep,
    LocalWeights,
    PartSource,
    PipSource,
    WeightsState,
    fetch_weights,
    locate_weights,
    survey_weights,
    weights_folder,
)

__all__ = [
    "DEFAULT_CONTEXT_TOKENS",
    "EMBEDDED_DEADLINES",
    "Deadlines",
    "EmbeddedTransport",
    "Engine",
    "ErrorParser",
    "Exchanged",
    "FetchStep",
    "HttpStream",
    "HttpTransport",
    "LocalWeights",
    "PartSource",
    "PipSource",
    "RetryPolicy",
    "ScriptedReply",
    "ScriptedTransport",
    "Transport",
    "WeightsState",
    "WireLimits",
    "WireStream",
    "ask_transport",
    "assistant",
    "check_headers",
    "close_engines",
    "exchange",
    "fetch_weights",
    "fold_stream",
    "join_url",
    "load_embedded",
    "locate_weights",
    "parse_retry_after",
    "split_base_url",
    "survey_weights",
    "tool_call",
    "weights_folder",
]
