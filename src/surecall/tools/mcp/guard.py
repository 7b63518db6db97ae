"""A server that stands between an MCP client and another server, and checks every call."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from surecall.base.errors import SurecallError
from surecall.base.limits import MAX_ARGUMENTS_BYTES, MAX_OUTPUT_BYTES
from surecall.base.records import Envelope, ErrorDetail, Receipt, ToolCall, ToolSpec
from surecall.base.redaction import excerpt, open_log
from surecall.base.version import VERSION
from surecall.models.config import all_variables
from surecall.reading import read_arguments
from surecall.schema import SchemaChecker
from surecall.text import encode, encode_text
from surecall.tools import ToolFailed, feedback

from .connection import ServerLost, ServerRefusal, load_sdk
from .definitions import Definition
from .server_tools import DESCRIPTION_WITHHELD, NOT_FINITE, McpTools, mcp_tools, read_data

_log = open_log("surecall.mcp")
_FORWARDED: Final = {
    "resources": ("list_resources", "list_resource_templates", "read_resource"),
    "prompts": ("list_prompts", "get_prompt"),
}
_CONNECT_S: Final = 300.0
"""The command may have to download the server; the client has a limit of its own."""
_INTERNAL_ERROR: Final = -32603


class GuardedCall(NamedTuple):
    """The outcome of a call."""

    server: str
    tool: str
    receipts: tuple[Receipt, ...]
    errors: tuple[ErrorDetail, ...]
    """Why it was refused, or why its answer did not arrive; none for errors of the tool itself."""
    was_asked: bool
    """Whether it went to the server."""
    server_s: float
    total_s: float


async def serve_guard(
    target: str | Sequence[str],
    *,
    pins: str | Path | None = None,
    name: str | None = None,
    max_bytes: int = MAX_OUTPUT_BYTES,
    on_call: Callable[[GuardedCall], object] | None = None,
) -> None:
    """Serve the tools of another server over standard input and output, until the input ends.

    Args:
        target: A command that starts the server, or its URL.
        pins: A file of approved digests; without one, the digests of the first connection count.
        name: Name of the server in messages and in the file of pins.
        max_bytes: A result with more text and data than this is replaced by a refusal.
        on_call: Is called with every call once its answer is there.

    Raises:
        ToolServerError: `TOOL_SERVER_UNREACHABLE`.
        ConfigError: `EXTRA_MISSING`, or the target or the file of pins cannot be used.
    """
    load_sdk()
    from mcp.server.stdio import stdio_server

    guard = _Guard(target, pins, name, max_bytes, on_call)
    try:
        server = guard.make_server(await guard.connect())
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    finally:
        await guard.aclose()


class _Offer(NamedTuple):
    """A tool by its own name, not the one it would have in a run."""

    spec: ToolSpec
    checker: SchemaChecker
    definition: Definition


class _Guard:
    """One connection to the server behind, made again when it was lost."""

    def __init__(
        self,
        target: str | Sequence[str],
        pins: str | Path | None,
        name: str | None,
        max_bytes: int,
        on_call: Callable[[GuardedCall], object] | None,
    ) -> None:
        self._on_call = on_call
        self._target = target
        self._pins: str | Path | Mapping[str, str] | None = pins
        self._name = name
        self._max_bytes = max_bytes
        self._connecting = asyncio.Lock()
        self._server: McpTools | None = None
        self._tools: dict[str, _Offer] = {}

    async def connect(self) -> McpTools:
        """Return the server, connected; what was approved first stays what is approved."""
        async with self._connecting:
            if self._server is not None and self._server.is_open:
                return self._server
            await self.aclose()
            is_url = str(self._target).lower().startswith(("http://", "https://"))
            # The client gave its variables to this process for the server.
            env = None if is_url else all_variables()
            server = mcp_tools(
                self._target,
                name=self._name,
                pins=self._pins,
                env=env,
                timeout_s=None,
                connect_timeout_s=_CONNECT_S,
            )
            tools = await server.open()
            if self._pins is None:
                self._pins = server.digests
            offered = ((tool, server.offered[tool.name]) for tool in tools)
            self._tools = {
                found.name: _Offer(replace(tool.spec, name=found.name), tool.checker, found)
                for tool, found in offered
            }
            self._server = server
            return server

    async def aclose(self) -> None:
        """End the connection."""
        server, self._server = self._server, None
        if server is not None:
            await server.aclose()

    def make_server(self, behind: McpTools) -> Any:
        """Return the server for the client: the tools, and what else the other one offers."""
        from mcp.server.lowlevel import Server

        others = {
            f"on_{method}": partial(self._forward, method)
            for feature in behind.features & _FORWARDED.keys()
            for method in _FORWARDED[feature]
        }
        handlers: Any = {"on_list_tools": self._list_tools, "on_call_tool": self._answer, **others}
        return Server(behind.name, version=VERSION, **handlers)

    async def _list_tools(self, _context: Any, _params: Any) -> Any:
        from mcp_types import ListToolsResult

        found = await self._ask(McpTools.list_approved)
        withheld = {"description": DESCRIPTION_WITHHELD, "inputSchema": {"type": "object"}}
        return ListToolsResult.model_validate(
            {"tools": [found.get(name) or {"name": name, **withheld} for name in self._tools]}
        )

    async def _forward(self, method: str, _context: Any, params: Any) -> Any:
        given: dict[str, Any] = (
            params.model_dump(exclude={"meta"}, exclude_unset=True) if params else {}
        )
        return await self._ask(lambda server: server.forward(method, **given))

    async def _ask(self, question: Callable[[McpTools], Awaitable[Any]]) -> Any:
        """Ask the server behind, with errors of the protocol for whatever goes wrong."""
        from mcp import MCPError

        try:
            return await question(await self.connect())
        except ServerRefusal as error:
            raise MCPError(error.code or _INTERNAL_ERROR, error.message) from error
        except ServerLost as error:
            raise MCPError(_INTERNAL_ERROR, "The server does not answer any more.") from error
        except SurecallError as error:
            raise MCPError(_INTERNAL_ERROR, f"{error.code}: {error.message}") from error

    async def _answer(self, context: Any, params: Any) -> Any:
        from mcp_types import CallToolResult

        began_s, asked_s, server_s = perf_counter(), 0.0, 0.0
        name, receipts = self._name or "", ()
        try:
            server = await self.connect()
            name = server.name
            found = self._read_call(params.name, params.arguments)
            if isinstance(found, ToolCall):
                receipts, asked_s = found.receipts, perf_counter()
                wants_progress = "progress_token" in (context.meta or ())
                relay = context.session.report_progress if wants_progress else None
                spec, _, definition = self._tools[found.name]
                given = found.arguments or {}
                answer = await server.ask(spec, definition, given, progress_callback=relay)
                server_s = perf_counter() - asked_s
                found = self._check_answer(spec, answer)
        except ToolFailed as error:
            found = Envelope.failure(
                params.name, error.code, error.message, hint=error.hint, data=error.data
            )
        except SurecallError as error:
            found = Envelope.failure(params.name, error.code, error.message, hint=error.hint)
        if self._on_call is not None:
            errors = found.errors if isinstance(found, Envelope) else ()
            total_s, tool = perf_counter() - began_s, excerpt(params.name, 200)
            outcome = (receipts, errors, bool(asked_s), server_s, total_s)
            self._on_call(GuardedCall(name, tool, *outcome))
        if isinstance(found, Envelope):
            _log.warning("%s: refused: %s", excerpt(params.name, 80), ", ".join(found.error_codes))
            found = {"content": [{"type": "text", "text": _word(found)}], "isError": True}
        return CallToolResult.model_validate(found)

    def _read_call(self, name: str, arguments: Any) -> ToolCall | Envelope:
        """Return a call with arguments that fit, or a refusal."""
        if name not in self._tools:
            return feedback.explain_not_allowed(name, tuple(self._tools))
        spec, checker, _ = self._tools[name]
        read = read_arguments(arguments, spec.parameters, checker=checker, tool_name=name)
        call = ToolCall(
            id="",
            name=name,
            arguments=read.value,
            raw=arguments,
            state=read.state,
            receipts=read.receipts,
            errors=read.errors,
            arguments_bytes=read.bytes,
            certainty=read.certainty,
            doubt=read.doubt,
        )
        refusal = feedback.explain_arguments_unread(call, name, MAX_ARGUMENTS_BYTES)
        if refusal is None and read.certainty != "certain" and spec.effect != "read":
            refusal = feedback.explain_not_certain(name, call)
        for receipt in () if refusal else read.receipts:
            was, now = excerpt(repr(receipt.before)), excerpt(repr(receipt.after))
            place = receipt.place or "the arguments"
            _log.info("%s: %s at %s: %s became %s", name, receipt.rule, place, was, now)
        return refusal or call

    def _check_answer(self, spec: ToolSpec, answer: dict[str, Any]) -> dict[str, Any] | Envelope:
        """Return the answer as it came, or words about one that is too large."""
        size = len(encode(read_data(answer)))
        if size > self._max_bytes:
            return feedback.explain_too_large(spec, size, self._max_bytes)
        if answer.pop("hasNan", False):
            answer["content"] = [*answer["content"], {"type": "text", "text": NOT_FINITE}]
        return answer


def _word(refusal: Envelope) -> str:
    """Return a refusal as text for a model, with what the server said about it."""
    lines = [f"{one.code}: {one.message} {one.hint or ''}".rstrip() for one in refusal.errors]
    said = refusal.data.get("server_said")
    return "\n".join([*lines, *([encode_text({"server_said": said})] if said else [])])
