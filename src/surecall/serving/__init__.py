"""HTTP/1.1 served on a socket: who is let in, how requests come in, and how answers go out.

    class App(HttpConnection): ...
    server = HttpServer(make_connection)
    await server.listen(sock)

`admission` decides which requests a server on this machine takes, `connection` reads requests
under deadlines and writes answers, `server` keeps the connections from start to end.
"""

from .admission import LOOPBACK_NAMES, Refusal, check_admission, list_hosts
from .http_connection import Exchange, HttpConnection, RawHeaders, ServingLimits, render_head
from .server import HttpServer, ServerLimits

__all__ = [
    "LOOPBACK_NAMES",
    "Exchange",
    "HttpConnection",
    "HttpServer",
    "RawHeaders",
    "Refusal",
    "ServerLimits",
    "ServingLimits",
    "check_admission",
    "list_hosts",
    "render_head",
]
