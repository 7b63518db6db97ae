"""Liveness that is answered also while the event loop is not able to.

The loop answers `/healthz` as long as it runs. A thread watches over it; while the loop is silent,
the thread takes new connections in its place, answers those that ask for liveness, and leaves all
others to the loop, as they came.
"""

import asyncio
import selectors
import socket
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from surecall.text import encode

from .heads import Head, Hosts

_BEAT_S: Final = 0.025
_SILENT_S: Final = 0.05
"""After this the thread takes connections in the place of the loop."""
_STALLED_S: Final = 10.0
"""After this the process no longer counts as alive."""
_MAX_HELD: Final = 128
_MAX_HEAD_BYTES: Final = 4096
_REQUEST: Final = b"GET /healthz HTTP/1."
_REASONS: Final = {200: b"OK", 503: b"Service Unavailable"}

Adopt = Callable[[socket.socket], None]
Observe = Callable[[float], None]


class Liveness:
    """Knows how long the event loop has been silent, and answers in its place while it is.

    Args:
        observe: Is given how late the loop was, again and again.
    """

    def __init__(self, observe: Observe) -> None:
        self._observe = observe
        self._beat_at = time.monotonic()
        self._timer: asyncio.TimerHandle | None = None
        self._thread: _StandIn | None = None

    @property
    def silent_s(self) -> float:
        """How long the loop has been silent beyond what is usual."""
        return max(0.0, time.monotonic() - self._beat_at - _BEAT_S)

    def start(self) -> None:
        """Begin to watch the loop that runs."""
        self._beat_at = time.monotonic()
        self._timer = asyncio.get_running_loop().call_later(_BEAT_S, self._beat)

    def stand_in(self, sock: socket.socket, hosts: Callable[[], Hosts], adopt: Adopt) -> None:
        """Answer on a socket that listens while the loop is silent.

        Args:
            sock: The socket.
            hosts: Returns the names by which the gateway is known.
            adopt: Serves a connection; it is called in the loop.
        """
        self._thread = _StandIn(self, sock.dup(), hosts, adopt, asyncio.get_running_loop())
        self._thread.start()

    def stop(self) -> None:
        """Watch no longer."""
        if self._timer is not None:
            self._timer.cancel()
        self.leave_socket()

    def leave_socket(self) -> None:
        """Take no more connections."""
        if self._thread is not None:
            self._thread.stop()
            self._thread = None

    def describe(self) -> tuple[int, bytes]:
        """Return the status and the body that tell whether the process is alive."""
        silent_s = self.silent_s
        is_stalled = silent_s >= _STALLED_S
        status = "stalled" if is_stalled else "ok"
        body = encode({"status": status, "loop_silent_ms": round(silent_s * 1000)})
        return 503 if is_stalled else 200, body

    def _beat(self) -> None:
        self._observe(self.silent_s)
        self._beat_at = time.monotonic()
        self._timer = asyncio.get_running_loop().call_later(_BEAT_S, self._beat)


class _StandIn(threading.Thread):
    """Takes connections while the loop is silent."""

    def __init__(
        self,
        liveness: Liveness,
        sock: socket.socket,
        hosts: Callable[[], Hosts],
        adopt: Adopt,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(name="surecall-liveness", daemon=True)
        self._liveness = liveness
        self._listener = sock
        self._hosts = hosts
        self._adopt = adopt
        self._loop = loop
        self._ended = threading.Event()

    def stop(self) -> None:
        """End, and stop listening."""
        self._ended.set()
        self.join()
        self._listener.close()

    def run(self) -> None:
        """Look after the loop until the end."""
        while not self._ended.wait(_BEAT_S):
            if self._is_needed:
                self._serve()

    @property
    def _is_needed(self) -> bool:
        return self._liveness.silent_s > _SILENT_S and not self._ended.is_set()

    def _serve(self) -> None:
        """Take connections until the loop is back, which is given all that are left."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            while self._is_needed:
                for key, _ in selector.select(_BEAT_S):
                    if key.fileobj is self._listener:
                        self._accept(selector)
                        continue
                    connection: Any = key.fileobj
                    selector.unregister(connection)
                    if not self._answer(connection):
                        self._hand_over(connection)
                if len(selector.get_map()) > _MAX_HELD:
                    break
            for key in list(selector.get_map().values()):
                if key.fileobj is not self._listener:
                    self._hand_over(key.fileobj)

    def _accept(self, selector: selectors.BaseSelector) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # somebody else was quicker, or there are too many files
            return
        connection.settimeout(0)
        selector.register(connection, selectors.EVENT_READ)

    def _answer(self, connection: socket.socket) -> bool:
        """Answer a request for liveness; tell whether it was one."""
        try:
            data = connection.recv(_MAX_HEAD_BYTES, socket.MSG_PEEK)
            if not self._is_request(data, connection.getsockname()):
                return False
            status, body = self._liveness.describe()
            head = (
                b"HTTP/1.1 %d %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
                b"cache-control: no-store\r\nconnection: close\r\n\r\n"
            )
            connection.recv(_MAX_HEAD_BYTES)  # what is left unread would reset the connection
            connection.send(head % (status, _REASONS[status], len(body)) + body)
        except OSError:
            pass
        connection.close()
        return True

    def _is_request(self, data: bytes, address: Any) -> bool:
        """Tell whether this is a whole request for liveness that the loop would answer."""
        if not data.startswith(_REQUEST) or not data.endswith(b"\r\n\r\n"):
            return False
        lines = data[:-4].split(b"\r\n")[1:]
        pairs = (line.partition(b":") for line in lines)
        headers = [(name.lower(), value.strip()) for name, _, value in pairs]
        return Head(headers, *self._hosts().at(tuple(address[:2]))).refusal is None

    def _hand_over(self, connection: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(self._adopt, connection)
        except RuntimeError:  # the loop has ended
            connection.close()
