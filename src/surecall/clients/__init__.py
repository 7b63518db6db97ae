"""Reliable calls for the clients people already have, in their own process.

`wrap` takes a client of the official SDKs, `http_client` and `async_http_client` make an HTTP
client for anything that is built on one. What comes back is read, repaired, checked and, within a
budget, asked for again, as the gateway does it.
"""

from .transports import async_http_client, http_client
from .wrapping import CallsRefusedError, wrap

__all__ = ["CallsRefusedError", "async_http_client", "http_client", "wrap"]
