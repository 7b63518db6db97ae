"""Which addresses this process connects to, or looks up, for a while."""

import sys
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from ipaddress import ip_address
from typing import Any

__all__ = ["watch_sockets"]

_watches: list[set[str]] = []


@contextmanager
def watch_sockets() -> Generator[set[str]]:
    """Yield a set that gets `host:port` of every connection and every name looked up."""
    _install()
    seen: set[str] = set()
    _watches.append(seen)
    try:
        yield seen
    finally:
        _watches.remove(seen)


@cache
def _install() -> None:
    # An audit hook stays for as long as the process lives, so there is one for all watches.
    sys.addaudithook(_note)


def _is_number(host: Any) -> bool:
    """Tell whether a host is an address already: looking that up asks nobody."""
    try:
        return bool(ip_address(host))
    except ValueError:
        return False


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watches:
        return
    if event in {"socket.connect", "socket.sendto"}:
        address = arguments[1]
        found = f"{address[0]}:{address[1]}" if isinstance(address, tuple) else str(address)
    elif event in {"socket.getaddrinfo", "socket.gethostbyname"} and not _is_number(arguments[0]):
        found = f"look-up of {arguments[0]}"
    else:
        return
    for seen in _watches:
        seen.add(found)
