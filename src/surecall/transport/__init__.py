"""How a request reaches a model and how its answer comes back."""

from .base import Transport, WireStream
from .http import HttpStream, HttpTransport, ParseFault
from .limits import Deadlines, WireLimits
from .retry import RetryPolicy, parse_retry_after
from .scripted import ScriptedReply, ScriptedTransport, assistant, tool_call
from .urls import join_url

__all__ = [
    "Deadlines",
    "HttpStream",
    "HttpTransport",
    "ParseFault",
    "RetryPolicy",
    "ScriptedReply",
    "ScriptedTransport",
    "Transport",
    "WireLimits",
    "WireStream",
    "assistant",
    "join_url",
    "parse_retry_after",
    "tool_call",
]
