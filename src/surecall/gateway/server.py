"""The server under the gateway: one process or several, and its orderly end."""

import asyncio
import gc
import os
import signal
import socket
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from surecall.base.errors import explain, invalid_config
from surecall.base.redaction import open_log
from surecall.serving import HttpServer

from .state import GatewayConnection

if TYPE_CHECKING:
    from surecall.gateway.app import Gateway

_log = open_log("surecall.gateway")
_CUT_BEFORE_S: Final = 1.0
_GARBAGE_AFTER: Final = 10_000
"""After so many new objects those that hold each other are looked for: requests leave none."""


class GatewayServer:
    """Listens, and ends in the good order of a gateway."""

    def __init__(self, gateway: "Gateway") -> None:
        self.http = HttpServer(gateway, gateway.settings.limits, GatewayConnection)
        self._gateway = gateway
        self._stopping = asyncio.Event()
        self.on_ready: Callable[[], None] | None = None

    async def serve(self, sock: socket.socket) -> None:
        """Serve until a signal comes, and then end."""
        self._watch_signals()
        await self.startup(sock)
        try:
            await self._stopping.wait()
        finally:
            await self.shutdown()

    async def startup(self, sock: socket.socket) -> None:
        """Begin to listen, and say so."""
        await self.http.listen(sock)
        if self.on_ready is not None:
            self.on_ready()

    async def shutdown(self) -> None:
        """Take no new work, let what is under way end, and cut what does not."""
        gateway = self._gateway
        gateway.begin_drain()
        drain_s = gateway.settings.server.drain_s
        wait = max(0.1, drain_s - _CUT_BEFORE_S)
        handle = asyncio.get_running_loop().call_later(wait, gateway.cut_all)
        try:
            await self.http.drain(max(1.0, drain_s))
        finally:
            handle.cancel()

    def _watch_signals(self) -> None:
        """Drain on SIGTERM and SIGINT, reload on SIGHUP."""
        try:
            loop = asyncio.get_running_loop()
            for name in ("SIGTERM", "SIGINT"):
                loop.add_signal_handler(getattr(signal, name), self._stop, name)
            if hasattr(signal, "SIGHUP"):
                loop.add_signal_handler(signal.SIGHUP, self._gateway.reload_soon)
        except (RuntimeError, ValueError):
            # Not the main thread, as in tests, or a system without these signals.
            pass

    def _stop(self, name: str) -> None:
        if self._stopping.is_set() and name == "SIGINT":
            self.http.cut()
        self._stopping.set()


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises:
        ConfigError: The address cannot be used.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host.strip("[]"), port))
        sock.listen(2048)
    except OSError as error:
        sock.close()
        raise invalid_config(
            f"cannot listen on {host}:{port}: {error.strerror or error}.",
            "Choose another --port, or stop what uses it.",
        ) from error
    sock.settimeout(0)
    return sock


def new_loop() -> asyncio.AbstractEventLoop:
    """Return the fastest loop that is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def run_server(
    gateway: "Gateway", sock: socket.socket, on_ready: Callable[[], None] | None = None
) -> None:
    """Serve until a signal ends it; the process is meant to do nothing else."""
    gc.freeze()  # what is there by now stays, and need not be looked through again and again
    gc.set_threshold(_GARBAGE_AFTER, *gc.get_threshold()[1:])
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(serve(gateway, sock, on_ready))


async def serve(
    gateway: "Gateway", sock: socket.socket, on_ready: Callable[[], None] | None = None
) -> None:
    """Open a gateway, serve until a signal ends it, and close it.

    Raises:
        SurecallError: It cannot be opened, such as for want of a model's weights.
    """
    server = GatewayServer(gateway)
    server.on_ready = on_ready
    try:
        await gateway.open()
        await server.serve(sock)
    finally:
        await gateway.close()


def run_workers(
    count: int,
    make_gateway: Callable[[int], "Gateway"],
    sock: socket.socket,
    on_ready: Callable[[], None],
) -> int:
    """Serve with several processes that share one socket; return the exit code.

    A worker that dies is replaced; one that dies at once, again and again, ends everything.
    """
    # Before the fork, so that all workers know the sessions that one of them has begun.
    import_module("surecall.gateway.dashboard.visits")
    return _Supervisor(count, make_gateway, sock, on_ready).run()


class _Supervisor:
    def __init__(
        self,
        count: int,
        make_gateway: Callable[[int], "Gateway"],
        sock: socket.socket,
        on_ready: Callable[[], None],
    ) -> None:
        self._count = count
        self._make = make_gateway
        self._sock = sock
        self._on_ready = on_ready
        self._children: dict[int, int] = {}
        self._stopping = False
        self._deaths: list[float] = []

    def run(self) -> int:
        ready, is_ready = os.pipe()
        for number in range(self._count):
            self._fork(number, is_ready)
        os.close(is_ready)
        for name in ("SIGTERM", "SIGINT"):
            signal.signal(getattr(signal, name), self._stop)
        signal.signal(signal.SIGHUP, self._reload)
        started = 0
        while started < self._count and (said := os.read(ready, self._count)):
            started += len(said)
        os.close(ready)
        if started == self._count:
            self._on_ready()
        return self._wait()

    def _fork(self, number: int, is_ready: int = -1) -> None:
        pid = os.fork()
        if pid:
            self._children[pid] = number
            return
        code = 1
        try:
            for name in ("SIGTERM", "SIGINT", "SIGHUP"):
                signal.signal(getattr(signal, name), signal.SIG_DFL)

            def say_ready() -> None:
                if is_ready >= 0:
                    os.write(is_ready, b".")
                    os.close(is_ready)

            run_server(self._make(number), self._sock, say_ready)
            code = 0
        except BaseException as error:
            _log.error("Worker %d ended: %s", number, explain(error))
        finally:
            os._exit(code)

    def _wait(self) -> int:
        import time

        worst = 0
        while self._children:
            try:
                pid, status = os.wait()
            except ChildProcessError:
                break
            number = self._children.pop(pid, None)
            if number is None:
                continue
            code = os.waitstatus_to_exitcode(status)
            if self._stopping:
                if code != -signal.SIGTERM:  # it had not even begun
                    worst = max(worst, abs(code))
                continue
            now = time.monotonic()
            self._deaths = [at for at in self._deaths if now - at < 10.0] + [now]
            _log.error("Worker %d ended with code %d and is started again.", number, code)
            if len(self._deaths) > 3 * self._count:
                _log.error("Workers end again and again; the gateway gives up.")
                self._stop()
                worst = 1
            else:
                self._fork(number)
        return 1 if worst else 0

    def _stop(self, *_: Any) -> None:
        self._stopping = True
        self._signal_all(signal.SIGTERM)

    def _reload(self, *_: Any) -> None:
        self._signal_all(signal.SIGHUP)

    def _signal_all(self, number: int) -> None:
        for pid in list(self._children):
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
