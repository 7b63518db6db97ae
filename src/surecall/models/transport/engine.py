"""The engine of embedded models: llama.cpp inside this process, loaded once for all who ask.

The engine answers over HTTP on a loopback port, which only those can use who know a
random key. That costs next to nothing and gives what its in-process call does not: streaming and
a generation that ends when the one who asked has gone.
"""

import asyncio
import atexit
import importlib
import os
import secrets
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final

from msgspec import Struct

from surecall.base.errors import Code, SetupError
from surecall.base.redaction import Secret

DEFAULT_CONTEXT_TOKENS: Final = 4096
"""Tokens one request may have, its answer included."""

_SLOTS: Final = 2
_BATCH_THREADS: Final = 2
_WAIT_POLICY: Final = "OMP_WAIT_POLICY"
_MAX_CLOSING_S: Final = 3.0


class EngineSettings(Struct, frozen=True, kw_only=True):
    """What makes one load of a model differ from another."""

    path: str
    name: str
    """What the model is called in answers."""
    n_ctx: int = DEFAULT_CONTEXT_TOKENS
    threads: int | None = None
    """Threads; unset means two to read a prompt and one to write."""


class Engine:
    """A loaded model, with the address at which it answers."""

    def __init__(self, server: Any, api_key: Secret) -> None:
        self._server = server
        self.address: str = server.listening_address
        self.api_key = api_key
        self._users: set[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = set()

    @contextmanager
    def in_use(self) -> Generator[None]:
        """Note that a task waits for an answer, so that the engine is not taken from under it."""
        task = asyncio.current_task()
        user = (asyncio.get_running_loop(), task) if task is not None else None
        if user is not None:
            self._users.add(user)
        try:
            yield
        finally:
            if user is not None:
                self._users.discard(user)

    def close(self) -> None:
        """Unload the model; those who still wait for an answer are cancelled first."""
        waiting = [(loop, task) for loop, task in self._users if not loop.is_closed()]
        for loop, task in waiting:
            loop.call_soon_threadsafe(task.cancel)
        # Unloading while an answer is being written would wait for its end, or crash. Sockets are
        # closed a moment after the task that used them has ended.
        give_up = time.monotonic() + _MAX_CLOSING_S
        while self._users and time.monotonic() < give_up:
            time.sleep(0.01)
        if waiting:
            time.sleep(0.1)
        if not self._users:
            self._server = None


_engines: dict[tuple[int, EngineSettings], Engine] = {}
_locks: dict[tuple[int, EngineSettings], Lock] = {}
_registry: Final = Lock()


def open_engine(
    settings: EngineSettings, check: Callable[[], None], *, passive_wait: bool = True
) -> Engine:
    """Return the engine with these settings, loading it if nobody has; blocks while it loads.

    Args:
        settings: What to load, and how.
        check: Called before the file is loaded; raises when it must not be.
        passive_wait: Whether the engine's threads sleep while they wait for each other; the first
            load of a process decides.
    """
    key = (os.getpid(), settings)  # threads do not survive a fork, so neither does an engine
    with _registry:
        lock = _locks.setdefault(key, Lock())
    with lock:
        engine = _engines.get(key)
        if engine is None:
            check()
            engine = _load(settings, passive_wait=passive_wait)
            _engines[key] = engine
        return engine


def close_engines() -> None:
    """Unload all models of this process; the next request loads its model again."""
    with _registry:
        own = [key for key in _engines if key[0] == os.getpid()]
        engines = [_engines.pop(key) for key in own]
    for engine in engines:
        engine.close()


def _load(settings: EngineSettings, *, passive_wait: bool) -> Engine:
    module = _import_engine(passive_wait=passive_wait)
    api_key = Secret(secrets.token_urlsafe(32))
    try:
        server = module.Server(_parameters(module, settings, api_key))
    except RuntimeError as error:
        raise SetupError(
            Code.MODEL_NOT_LOADABLE,
            f"the engine cannot load {settings.path}.",
            hint="The file may be damaged or of a kind it does not know, or memory too small.",
        ) from error
    atexit.unregister(close_engines)
    atexit.register(close_engines)
    return Engine(server, api_key)


def _import_engine(*, passive_wait: bool) -> Any:
    # The engine's threads wait busily for each other unless asked not to, and on a machine with
    # other work that makes it slower by an order of magnitude. It is asked while it is loaded.
    if passive_wait:
        os.putenv(_WAIT_POLICY, "passive")
    try:
        return importlib.import_module("xllamacpp")
    except ImportError as error:
        raise SetupError(
            Code.ENGINE_MISSING,
            "the engine for embedded models is not installed.",
            hint="Run: pip install 'surecall[local]'",
        ) from error
    finally:
        if passive_wait:
            os.unsetenv(_WAIT_POLICY)


def _parameters(module: Any, settings: EngineSettings, api_key: Secret) -> Any:
    parameters = module.CommonParams()
    parameters.model.path = settings.path
    parameters.model_alias = {settings.name}
    parameters.n_parallel = _SLOTS
    parameters.n_ctx = settings.n_ctx * _SLOTS  # the engine divides it among the slots
    cores = _core_count()
    parameters.cpuparams.n_threads = settings.threads or 1
    parameters.cpuparams_batch.n_threads = settings.threads or min(_BATCH_THREADS, cores)
    parameters.use_jinja = True
    parameters.verbosity = -1
    parameters.ui = False
    parameters.endpoint_slots = False
    parameters.cors_origins = ""  # no web page may read an answer
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0  # any that is free
    parameters.api_keys = [api_key.reveal()]
    return parameters


def _core_count() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # pragma: no cover - systems that do not say
        return os.cpu_count() or 1
