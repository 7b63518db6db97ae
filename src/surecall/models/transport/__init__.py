"""How a request reaches a model and how its answer comes back."""

from surecall.models.client.network import Deadlines, WireLimits, join_url

from .embedded import (
    EMBEDDED_DEADLINES,
    EmbeddedTransport,
    Engine,
    close_engines,
    load_embedded,
)
from .http import HttpStream, HttpTransport, check_headers
from .interface import Transport, WireStream, exchange, fold_stream
from .retry import RetryPolicy, parse_retry_after
from .scripted import ScriptedReply, ScriptedTransport, assistant, tool_call
from .weights import (
    FetchStep,
    PipSource,
    fetch_weights,
    locate_weights,
    survey_weights,
    weights_folder,
)

__all__ = [
    "EMBEDDED_DEADLINES",
    "Deadlines",
    "EmbeddedTransport",
    "Engine",
    "FetchStep",
    "HttpStream",
    "HttpTransport",
    "PipSource",
    "RetryPolicy",
    "ScriptedReply",
    "ScriptedTransport",
    "Transport",
    "WireLimits",
    "WireStream",
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
    "survey_weights",
    "tool_call",
    "weights_folder",
]
