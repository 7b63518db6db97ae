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
from .interface import Transport, WireStream, exchange
from .retry import RetryPolicy, parse_retry_after
from .scripted import ScriptedReply, ScriptedTransport, assistant, tool_call
from .weights import (
    FetchStep,
    PipSource,
    fetch_weights,
    survey_weights,
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
    "join_url",
    "load_embedded",
    "parse_retry_after",
    "survey_weights",
    "tool_call",
]
