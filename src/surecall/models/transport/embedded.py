"""A transport to a model that runs in this process: no provider, no key, no network.

The engine, llama.cpp, is loaded once for all who ask. It answers over HTTP on a loopback port,
which only those can use who know a random key. That costs next to nothing and gives what its
in-process call does not: streaming, and a generation that ends when whoever asked has gone.
"""

import asyncio
import atexit
import importlib
import os
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, Final

from msgspec import Struct

from surecall.base.errors import Code, JSONTextError, ProviderError, SetupError
from surecall.base.json_values import as_fields
from surecall.base.records import ToolSpec, Weights, WireReply, WireRequest
from surecall.base.redaction import Secret
from surecall.models.client.network import Deadlines, Network
from surecall.text import decode
from surecall.wire.chat_completions import render_tool
from surecall.wire.errors import parse_error

from .http import HttpStream, HttpTransport
from .interface import Closing
from .retry import RetryPolicy
from .weights import locate_weights, require_model_file, require_verified

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


EMBEDDED_DEADLINES: Final = Deadlines(first_byte_s=1800, idle_s=600, total_s=3600)
"""Patience for a slow machine: the whole answer may have to be written before its first byte."""

_NO_RETRY: Final = RetryPolicy(max_retries=0)
_NO_SUCH_PATH: Final = 404
_MARKER: Final = "surecall_template_marker"


class EmbeddedTransport(Closing):
    """Sends chat completions to a model in this process; the first request loads it.

    Transports with the same file and settings share one loaded model, which stays in memory
    until the process ends or `close_engines()` is called. Weights are never downloaded here.

    Args:
        model: Weights from `find_weights`, or the path of a GGUF file.
        n_ctx: Tokens that one request may have, its answer included.
        threads: Threads to compute with; by default two to read a prompt and one to write.
        cache_dir: Cache folder with fetched weights; without it only installed packages are used.
        passive_wait: Whether threads sleep while they wait for each other, which is what a machine
            with other work wants; `False` leaves it to the variable `OMP_WAIT_POLICY`.
        deadlines: How long each part of a request may take.
    """

    def __init__(
        self,
        model: "Weights | str | os.PathLike[str]",
        *,
        n_ctx: int = DEFAULT_CONTEXT_TOKENS,
        threads: int | None = None,
        cache_dir: "str | os.PathLike[str] | None" = None,
        passive_wait: bool = True,
        deadlines: Deadlines = EMBEDDED_DEADLINES,
    ) -> None:
        if n_ctx < 1 or (threads is not None and threads < 1):
            raise SetupError(
                Code.INVALID_CONFIG,
                "n_ctx and threads must be whole numbers above zero.",
                hint="Leave them out for the defaults.",
            )
        self._model = model
        self._load = partial(
            load_embedded,
            model,
            n_ctx=n_ctx,
            threads=threads,
            cache_dir=Path(cache_dir) if cache_dir is not None else None,
            passive_wait=passive_wait,
        )
        self._deadlines = deadlines
        self._engine: Engine | None = None
        self._http: HttpTransport | None = None

    def __repr__(self) -> str:
        name = self._model.name if isinstance(self._model, Weights) else os.fspath(self._model)
        return f"EmbeddedTransport({name!r})"

    async def open(self) -> None:
        """Load the model now instead of with the first request."""
        await self._open()

    async def send(self, request: WireRequest) -> WireReply:
        """Send the request and return the whole answer (status below 300)."""
        engine, http = await self._open()
        with engine.in_use():
            return await http.send(request)

    @asynccontextmanager
    async def stream(self, request: WireRequest) -> AsyncGenerator[HttpStream, None]:
        """Open a streamed answer; leaving the context ends the generation."""
        engine, http = await self._open()
        with engine.in_use():
            async with http.stream(request) as stream:
                yield stream

    async def aclose(self) -> None:
        """Give up all connections; the model stays loaded for others."""
        http, self._http, self._engine = self._http, None, None
        if http is not None:
            await http.aclose()

    async def template_shows_tools(self) -> bool | None:
        """Tell whether the model gets to see tools, or its template drops them silently.

        `None` means that the template could not be tried.
        """
        engine, _ = await self._open()
        tool = render_tool(ToolSpec(name=_MARKER, description="Returns nothing."))
        body = {"messages": [{"role": "user", "content": "Hello"}]}
        async with HttpTransport(
            engine.address,
            api_key=engine.api_key,
            api_prefix="",
            retry=_NO_RETRY,
            network=Network(),
        ) as http:
            try:
                with engine.in_use():
                    plain = await _render_prompt(http, body)
                    offered = await _render_prompt(http, {**body, "tools": [tool]})
            except ProviderError:
                return None
        if plain is None or offered is None:
            return None
        return _MARKER in offered and _MARKER not in plain

    async def _open(self) -> tuple[Engine, HttpTransport]:
        if self._engine is None or self._http is None:
            # In a thread for what it reads and hashes; the engine itself blocks all of Python
            # while it loads.
            engine = await asyncio.to_thread(self._load)
            if self._engine is None or self._http is None:
                self._engine = engine
                self._http = HttpTransport(
                    engine.address,
                    api_key=engine.api_key,
                    deadlines=self._deadlines,
                    retry=_NO_RETRY,
                    parse_error=_parse_engine_error,
                    network=Network(),
                )
        return self._engine, self._http


def load_embedded(
    model: "Weights | str | os.PathLike[str]",
    *,
    n_ctx: int = DEFAULT_CONTEXT_TOKENS,
    threads: int | None = None,
    cache_dir: Path | None = None,
    passive_wait: bool = True,
) -> Engine:
    """Return the loaded model, after its file was found and checked; blocks while it loads.

    Raises:
        SetupError: `MODEL_WEIGHTS_MISSING`, `WEIGHTS_HASH_MISMATCH`, `MODEL_NOT_LOADABLE` or
            `ENGINE_MISSING`.
    """
    if isinstance(model, Weights):
        weights, name = model, model.name
        found = locate_weights(weights, cache_dir)
        if found is None:
            raise SetupError(
                Code.MODEL_WEIGHTS_MISSING,
                f"the weights of {name} ({weights.size_bytes / 1e6:.0f} MB) are not here.",
                hint=f"Run: surecall models fetch {name}",
            )
        path = found
    else:
        weights, path = None, Path(model).expanduser().absolute()
        name = path.stem

    def check() -> None:
        if weights is not None:
            require_verified(path, weights, cache_dir)
        require_model_file(path)

    settings = EngineSettings(path=str(path), name=name, n_ctx=n_ctx, threads=threads)
    return open_engine(settings, check, passive_wait=passive_wait)


async def _render_prompt(http: HttpTransport, body: dict[str, Any]) -> str | None:
    reply = await http.send(WireRequest(path="/apply-template", body=body))
    try:
        value = decode(reply.body, surrogates="replace")
    except JSONTextError:
        return None
    prompt = as_fields(value).get("prompt")
    return prompt if isinstance(prompt, str) else None


def _parse_engine_error(status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    error = parse_error(status, headers, body)
    if b"exceed_context_size_error" in body:
        error.hint = "Send less, or raise n_ctx (the setting local.n_ctx)."
    elif status == _NO_SUCH_PATH:
        error.hint = "A model in this process supports only chat completions; use that protocol."
    return error
