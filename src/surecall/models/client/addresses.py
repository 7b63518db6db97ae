"""From a host name to one connected socket: every address is tried, none is looked up twice."""

import asyncio
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from .failures import map_failure, no_address

_NEXT_AFTER_S: Final = 0.25
"""How long an address may be tried alone; then the next one is tried beside it (RFC 8305)."""

Address = tuple[socket.AddressFamily, Any]


async def connect_socket(host: str, port: int) -> socket.socket:
    """Return a socket that is connected to one of the addresses of a host; the caller bounds it."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise no_address() from None
    addresses: list[Address] = [(entry[0], entry[4]) for entry in found]
    if not addresses:
        raise no_address()
    addresses = _alternate(addresses)
    return await (_connect(addresses[0]) if len(addresses) == 1 else _race(addresses))


def _alternate(addresses: Sequence[Address]) -> list[Address]:
    """Order addresses so that families take turns, beginning with the preferred one."""
    first = [entry for entry in addresses if entry[0] == addresses[0][0]]
    other = [entry for entry in addresses if entry[0] != addresses[0][0]]
    ordered: list[Address] = []
    for number in range(max(len(first), len(other))):
        ordered += first[number : number + 1] + other[number : number + 1]
    return ordered


async def _connect(address: Address) -> socket.socket:
    family, target = address
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
    except OSError as failure:
        raise map_failure(failure) from None
    try:
        sock.settimeout(0)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        await asyncio.get_running_loop().sock_connect(sock, target)
    except OSError as failure:
        sock.close()
        raise map_failure(failure) from None
    except BaseException:
        sock.close()
        raise
    return sock


async def _race(addresses: Sequence[Address]) -> socket.socket:
    """Try addresses one after another without waiting long for any; the first that works wins."""
    waiting = list(addresses)
    running: set[asyncio.Task[socket.socket]] = set()
    error: BaseException | None = None
    try:
        while waiting or running:
            if waiting:
                running.add(asyncio.ensure_future(_connect(waiting.pop(0))))
            done, running = await asyncio.wait(
                running,
                timeout=_NEXT_AFTER_S if waiting else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            winner: socket.socket | None = None
            for task in done:
                failure = task.exception()
                if failure is not None:
                    error = error or failure
                elif winner is None:
                    winner = task.result()
                else:
                    task.result().close()
            if winner is not None:
                return winner
    finally:
        _give_up(running)
    raise error if error is not None else no_address()


def _give_up(tasks: set[asyncio.Task[socket.socket]]) -> None:
    for task in tasks:
        task.cancel()
        task.add_done_callback(_close_late)


def _close_late(task: "asyncio.Task[socket.socket]") -> None:
    """Close the socket of an attempt that succeeded after another had won."""
    if not task.cancelled() and task.exception() is None:
        with suppress(OSError):
            task.result().close()
