"""A transport to a model that runs in this process: no provider, no key, no network."""

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

from surecall.base.errors import Code, JSONTextError, ProviderError, SetupError
from surecall.base.json_values import as_fields
from surecall.base.records import ToolSpec, Weights, WireReply, WireRequest
from surecall.models.client.limits import Deadlines
from surecall.models.client.network import Network
from surecall.text import decode
from surecall.wire.chat_completions import render_tool
from surecall.wire.errors import parse_error

from .base import Closing
from .engine import DEFAULT_CONTEXT_TOKENS, Engine, EngineSettings, open_engine
from .http import HttpStream, HttpTransport
from .retry import RetryPolicy
from .weights import locate_weights, require_model_file, require_verified

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
