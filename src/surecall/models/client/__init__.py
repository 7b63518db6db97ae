"""An HTTP/1.1 client for one server: little work for each request, and nothing taken on trust.

`framing` renders what is sent and says where a reply begins and ends, `answers` hands a
reply to its reader, `connections` watches one socket, and `pool` keeps the sockets of an origin.
Modules are loaded when they are first used: most of what starts never sends a request.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .answers import Answer
    from .framing import RequestHead
    from .network import ClientLimits, Network
    from .pool import Origin, open_once

__all__ = ["Answer", "ClientLimits", "Network", "Origin", "RequestHead", "open_once"]

_HOMES = {
    "Answer": "answers",
    "ClientLimits": "network",
    "Network": "network",
    "Origin": "pool",
    "RequestHead": "framing",
    "open_once": "pool",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
