"""Tools of an MCP server, as tools of a run."""

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from surecall.base.errors import (
    Code,
    ConfigError,
    JSONTextError,
    SurecallError,
    ToolDefinitionError,
    ToolServerError,
    did_you_mean,
)
from surecall.base.json_values import as_fields, as_list
from surecall.base.limits import MAX_SERVER_TOOLS, TOOL_SERVER_CONNECT_S, TOOL_SERVER_TIMEOUT_S
from surecall.base.records import Effect, Envelope, ToolSpec
from surecall.base.redaction import excerpt, mask_known, open_log
from surecall.text import canonical_hash, decode
from surecall.tools import ApprovalRule, Tool, ToolFailed

from .connection import Connection, ServerLost, ServerRefusal, parse_address
from .definitions import Definition, clean_name, name_server, name_tools, read_definition
from .pins import PinFile

DESCRIPTION_WITHHELD: Final = (
    "This tool is not available: its definition was not approved. Do not call it."
)
NOT_PINNED: Final = (
    "The definition of this tool is not the one that was approved, so it was not called."
)
NOT_LISTED: Final = (
    "The server has changed its tools and did not say how, so this one was not called."
)
NAMELESS: Final = "It has no name."
UNREADABLE: Final = "Its definition is not plain JSON."
DEFINED_TWICE: Final = "The server has two tools of this name, which are not the same."
NOT_FINITE: Final = "The server answered with NaN or Infinity; null is in its place."
GO_ON: Final = "Go on without this tool, or tell the user that it has to be approved."
_MAY_HAVE_ACTED: Final = "It may have taken effect: find out in another way before you repeat it."


def explain_lost(server: str) -> str:
    """Say that the server of a tool is gone."""
    return f"The server {server!r} that has this tool does not answer any more."


def explain_error(server: str) -> str:
    """Say that the server answered with an error."""
    return f"The server {server!r} answered with an error; what it said is in data."


def hint_after_loss(effect: Effect) -> str:
    """Say what to do when nobody knows whether a call was made."""
    return "Go on without the tools of this server." if effect == "read" else _MAY_HAVE_ACTED


def hint_after_error(effect: Effect) -> str:
    """Say what to do when a tool has failed."""
    if effect == "read":
        return "Change the arguments if they were the reason, or go on without it."
    return f"Change the arguments if they were the reason. {_MAY_HAVE_ACTED}"


_log = open_log("surecall.mcp")
_MAX_SAID: Final = 400


class McpTools:
    """The tools of one server; give it to a run, or open it with `async with`."""

    def __init__(
        self,
        name: str,
        connection: Connection,
        *,
        pins: PinFile | Mapping[str, str] | None,
        allow: tuple[str, ...] | None,
        approval: ApprovalRule | None,
        timeout_s: float | None,
        connect_timeout_s: float,
    ) -> None:
        self.name = name
        """The text before the name of each tool."""
        self._connection = connection
        self._pins = pins
        self._allow = allow
        self._approval: ApprovalRule | None = approval
        self._timeout_s = timeout_s
        self._connect_timeout_s = connect_timeout_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening = asyncio.Lock()
        self._listing = asyncio.Lock()
        self._uses = 0
        self._reset()

    def _reset(self) -> None:
        self._tools: tuple[Tool[..., Any], ...] | None = None
        self._definitions: dict[str, Definition] = {}
        self._approved: dict[str, str] = {}
        self._offered: dict[str, Definition] = {}
        self._left_out: dict[str, str] = {}

    @property
    def is_open(self) -> bool:
        """Whether the server is connected and its tools are known."""
        return self._tools is not None and not self._connection.is_lost

    @property
    def server_names(self) -> Mapping[str, str]:
        """For each tool's name in a run, the name that the server knows it by."""
        return MappingProxyType({name: item.name for name, item in self._offered.items()})

    @property
    def offered(self) -> Mapping[str, Definition]:
        """For each tool's name in a run, its definition when the connection was made."""
        return MappingProxyType(self._offered)

    @property
    def unpinned(self) -> tuple[str, ...]:
        """The server's names of tools whose calls are refused until they are approved."""
        return tuple(name for name in self._definitions if not self._is_approved(name))

    @property
    def left_out(self) -> Mapping[str, str]:
        """The server's names of tools that cannot be used, and why."""
        return MappingProxyType(self._left_out)

    @property
    def digests(self) -> dict[str, str]:
        """The digest of every definition as it is now, by the server's name of the tool."""
        return {name: item.digest for name, item in self._definitions.items()}

    @property
    def features(self) -> frozenset[str]:
        """Offers of the server besides tools, such as `resources`."""
        return self._connection.features

    async def list_approved(self) -> dict[str, dict[str, Any]]:
        """Ask the server for its tools again; return those approved as given, by their names there.

        Raises:
            ServerLost: The connection has ended.
            ServerRefusal: The server answered with an error.
        """
        async with self._listing:
            self._definitions = self._allowed(await self._list_definitions())
        found = self._definitions.items()
        return {name: item.fields for name, item in found if self._is_approved(name)}

    async def forward(self, method: str, **arguments: Any) -> Any:
        """Ask for something other than tools, as the client of the SDK does; nothing is checked.

        Raises:
            ServerLost: The connection has ended.
            ServerRefusal: The server answered with an error.
        """
        return await self._connection.ask(method, **arguments)

    async def open(self) -> tuple[Tool[..., Any], ...]:
        """Connect to the server and return its tools; connect again if it was lost.

        Whoever opens it closes it: the connection ends with the last `aclose`.

        Raises:
            ToolServerError: `TOOL_SERVER_UNREACHABLE`.
            ConfigError: `EXTRA_MISSING`, or `allow` names a tool that the server does not have.
        """
        self._enter_loop()
        async with self._opening:
            if self._tools is None or self._connection.is_lost:
                await self._connect()
            self._uses += 1
            return self._tools or ()

    def _enter_loop(self) -> None:
        """Begin anew in another event loop: locks belong to theirs, as does whoever uses this."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._uses = loop, 0
            self._opening, self._listing = asyncio.Lock(), asyncio.Lock()

    async def _connect(self) -> None:
        await self._connection.aclose()
        await self._connection.open(self._connect_timeout_s)
        try:
            await self._read_definitions()
            self._approved = self._find_pins()
            self._tools = self._make_tools()
        except BaseException:
            await self._disconnect()
            raise

    async def aclose(self) -> None:
        """Disconnect, and end the server if it was started for this and nobody else uses it."""
        self._enter_loop()
        async with self._opening:
            self._uses = max(self._uses - 1, 0)
            if not self._uses:
                await self._disconnect()

    async def _disconnect(self) -> None:
        self._reset()
        await self._connection.aclose()

    async def pin(self) -> dict[str, str]:
        """Approve every definition as it is now, and return the digests.

        They are written if the pins are in a file. Tools that were withheld from a model are
        offered from the next `open` on.
        """
        await self._read_definitions()
        self._approved = self.digests
        if isinstance(self._pins, PinFile):
            self._pins.write(self.name, self._approved)
        elif self._pins is not None:
            self._pins = self._approved
        return self._approved

    async def __aenter__(self) -> tuple[Tool[..., Any], ...]:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _read_definitions(self) -> None:
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                self._definitions = await self._list_definitions()
        except TimeoutError as error:
            reason = f"no answer within {self._connect_timeout_s:g} s"
            raise self._unlisted(reason) from error
        except (ServerLost, ServerRefusal) as error:
            raise self._unlisted(str(error) or "it is gone") from error
        for name in self._allow or ():
            if name not in self._definitions:
                raise ConfigError(
                    Code.INVALID_OPTION,
                    f"allow names {name!r}, which the server {self.name!r} does not have.",
                    hint=self._left_out.get(name) or did_you_mean(name, self._definitions),
                )
        self._definitions = self._allowed(self._definitions)
        if len(self._definitions) > MAX_SERVER_TOOLS:
            raise ToolServerError(
                Code.TOOL_SERVER_UNREACHABLE,
                f"The server {self.name!r} offers more than {MAX_SERVER_TOOLS} tools.",
                hint="Name those you need with allow=[...].",
            )

    def _unlisted(self, reason: str) -> ToolServerError:
        reason = excerpt(reason, _MAX_SAID).rstrip(".")
        return ToolServerError(
            Code.TOOL_SERVER_UNREACHABLE,
            f"The server {self.name!r} did not list its tools: {reason}.",
            hint="Check that it is an MCP server and offers tools.",
        )

    def _allowed(self, found: dict[str, Definition]) -> dict[str, Definition]:
        if self._allow is None:
            return found
        return {name: found[name] for name in self._allow if name in found}

    def _find_pins(self) -> dict[str, str]:
        """Return the approved digests; what was never looked at is approved by its first use."""
        if self._pins is None:
            return self.digests
        if not isinstance(self._pins, PinFile):
            return dict(self._pins)
        pins = self._pins.read(self.name)
        if pins is None:
            pins = self.digests
            self._pins.write(self.name, pins)
            # Whoever mistyped the name of the file must see it.
            _log.warning(
                "pinned %d tools of %s in %s (first use)", len(pins), self.name, self._pins.path
            )
        return pins

    def _is_approved(self, name: str) -> bool:
        found = self._definitions.get(name)
        return found is not None and self._approved.get(name) == found.digest

    def _make_tools(self) -> tuple[Tool[..., Any], ...]:
        tools: list[Tool[..., Any]] = []
        self._offered = {}
        for name, server_name in name_tools(self.name, self._definitions).items():
            definition = self._definitions[server_name]
            try:
                spec = self._describe(name, definition)
                tools.append(self._make_tool(spec, definition))
            except ToolDefinitionError as error:
                self._left_out[server_name] = error.message
                _log.warning("%s: %s is left out: %s", self.name, server_name, error)
                continue
            self._offered[name] = definition
        return tuple(tools)

    def _describe(self, name: str, definition: Definition) -> ToolSpec:
        if self._is_approved(definition.name):
            return definition.describe(name, self._timeout_s)
        _log.warning(
            "%s: the definition of %s is not the approved one, so its calls are refused; "
            "look at it, then approve it with `surecall mcp pin`",
            self.name,
            definition.name,
        )
        # Nothing that was not approved reaches a model, not even a description.
        return ToolSpec(name=name, description=DESCRIPTION_WITHHELD, parameters={"type": "object"})

    def _make_tool(self, spec: ToolSpec, definition: Definition) -> Tool[..., Any]:
        call = partial(self._call, spec, definition)

        def bind(arguments: dict[str, Any], context: Any) -> Callable[[], Any]:
            return partial(call, arguments)

        return Tool(
            spec,
            self._call,
            binder=bind,
            declares_effect="readOnlyHint" in definition.hints,
            approval=None if spec.effect == "read" else self._approval,
        )

    async def _call(
        self, spec: ToolSpec, definition: Definition, arguments: dict[str, Any]
    ) -> Envelope:
        answer = await self.ask(spec, definition, arguments)
        if answer.get("isError") is True:
            raise self._failure(spec, read_data(answer))
        # An envelope of our own: an answer that looks like one is not taken for one.
        warnings = (NOT_FINITE,) if "hasNan" in answer else ()
        data = mask_known(read_data(answer))
        return Envelope(ok=True, tool_name=spec.name, data=data, warnings=warnings)

    async def ask(
        self, spec: ToolSpec, definition: Definition, arguments: dict[str, Any], **options: Any
    ) -> dict[str, Any]:
        """Call a tool as it was offered, and return the answer as plain JSON, errors included.

        Raises:
            ToolFailed: The definition is not the approved one, or there is no answer.
        """
        await self._list_again_if_changed()
        try:
            if self._approved.get(definition.name) != definition.digest or (
                not self._is_approved(definition.name)
            ):
                raise ToolFailed(Code.TOOL_NOT_PINNED, NOT_PINNED, GO_ON)
            return await self._connection.call_tool(definition.name, arguments, **options)
        except ServerLost:
            message, hint = explain_lost(self.name), hint_after_loss(spec.effect)
            raise ToolFailed(Code.TOOL_SERVER_LOST, message, hint) from None
        except ServerRefusal as error:
            raise self._failure(spec, {"message": excerpt(error.message, _MAX_SAID)}) from None

    def _failure(self, spec: ToolSpec, said: dict[str, Any]) -> ToolFailed:
        return ToolFailed(
            Code.TOOL_SERVER_ERROR,
            explain_error(self.name),
            hint_after_error(spec.effect),
            {"server_said": mask_known(said)},
        )

    async def _list_again_if_changed(self) -> None:
        """Know the definitions of now before a call is made, or refuse it."""
        # Calls that run side by side wait for the list that the first of them asks for.
        async with self._listing:
            try:
                if self._tools is None:
                    raise ServerLost
                if self._connection.is_stale:
                    self._definitions = self._allowed(await self._list_definitions())
            except ServerLost:
                message, hint = explain_lost(self.name), hint_after_loss("read")
                raise ToolFailed(Code.TOOL_SERVER_LOST, message, hint) from None
            except ServerRefusal:
                raise ToolFailed(Code.TOOL_NOT_PINNED, NOT_LISTED, GO_ON) from None

    async def _list_definitions(self) -> dict[str, Definition]:
        found: dict[str, Definition] = {}
        left_out: dict[str, str] = {}
        for fields in await self._connection.list_tools():
            name = str(fields.get("name", ""))
            definition = read_definition(fields)
            if definition is None:
                left_out[name] = UNREADABLE if name else NAMELESS
            elif found.setdefault(name, definition).digest != definition.digest:
                left_out[name] = DEFINED_TWICE
        left_out |= self._connection.invalid
        for name, reason in left_out.items():
            _log.warning("%s: %s is left out: %s", self.name, name, reason)
        self._left_out = left_out
        return {name: item for name, item in found.items() if name not in left_out}


def mcp_tools(
    target: str | Sequence[str],
    *,
    name: str | None = None,
    pins: str | Path | Mapping[str, str] | None = None,
    allow: Iterable[str] | None = None,
    approval: ApprovalRule | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    headers: Mapping[str, str] | None = None,
    timeout_s: float | None = TOOL_SERVER_TIMEOUT_S,
    connect_timeout_s: float = TOOL_SERVER_CONNECT_S,
) -> McpTools:
    """Take the tools of an MCP server into a run; needs `surecall[mcp]`.

    Give what this returns to a run, alone or in a list with other tools: it is opened when the
    run begins and closed with the last session that uses it. `async with` it to keep it open for
    several runs.

        files = surecall.mcp_tools(["npx", "-y", "@modelcontextprotocol/server-filesystem", "."])

    Args:
        target: A command that starts a server (stdio), or the URL of one (streamable HTTP).
        name: Text before the name of each tool, as in `files__read`; by default the name
            of the program or of the host.
        pins: A file of approved digests, or the digests themselves by the server's names. A file
            that does not know the server yet is written; afterwards a definition that is new or
            was changed is withheld from the model and its calls are refused with
            `TOOL_NOT_PINNED`, until `surecall mcp pin` or `McpTools.pin` approves it. Without
            pins, definitions are fixed for as long as the connection lasts.
        allow: The server's names of the tools to take; all of them by default.
        approval: Which calls of tools with effects need an approval, as in `@tool`.
        env: Variables for a server that is started; it gets no others but the usual few.
        cwd: The folder in which it is started.
        headers: Headers for a URL, such as `Authorization`.
        timeout_s: Seconds that one call may take.
        connect_timeout_s: Seconds until the server must have answered first.
    """
    return McpTools(
        clean_name(name) if name else name_server(target),
        Connection(parse_address(target, env or {}, cwd, headers or {})),
        pins=PinFile(pins) if isinstance(pins, str | Path) else pins,
        allow=(allow,) if isinstance(allow, str) else None if allow is None else tuple(allow),
        approval=approval,
        timeout_s=timeout_s,
        connect_timeout_s=connect_timeout_s,
    )


def read_data(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a server answered as data: its structure if it sent one, else its texts.

    What the structure does not say again, such as a picture or a remark, is kept beside it.
    """
    structured = answer.get("structuredContent")
    parts = [_read_part(as_fields(part)) for part in as_list(answer.get("content"))]
    if structured is not None:
        more = _find_more(structured, parts)
        if more:
            return {"structured": structured, "content": more}
        return as_fields(structured) if isinstance(structured, dict) else {"value": structured}
    texts = [part["text"] for part in parts if part.keys() == {"text"}]
    if len(texts) == len(parts):
        return {"text": "\n".join(texts)}
    return {"content": parts}


def _find_more(structured: Any, parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the parts that are not the structure, or something directly in it, as text again."""
    if not parts:
        return []
    said = {_mark(structured)}
    for value in as_fields(structured).values() if isinstance(structured, dict) else [structured]:
        said |= {_mark(value), *map(_mark, as_list(value))}
    said.discard(None)
    return [part for part in parts if not (part.keys() == {"text"} and _is_in(said, part["text"]))]


def _is_in(said: set[str | None], text: str) -> bool:
    if not text.strip() or _mark(text) in said:
        return True
    try:
        return _mark(decode(text)) in said
    except JSONTextError:
        return False


def _mark(value: Any) -> str | None:
    try:
        return canonical_hash(value)
    except SurecallError:
        return None


def _read_part(part: dict[str, Any]) -> dict[str, Any]:
    """Return a part of the content; of what is not text only its kind and size."""
    kind = part.get("type")
    if kind == "text":
        return {"text": str(part.get("text", ""))}
    if kind == "resource":
        resource = as_fields(part.get("resource"))
        if isinstance(resource.get("text"), str):
            return {"uri": resource.get("uri"), "text": resource["text"]}
        return {"type": "resource", "uri": resource.get("uri"), **_measure(resource, "blob")}
    if kind == "resource_link":
        return {"type": "resource_link", "uri": part.get("uri"), "name": part.get("name")}
    return {"type": str(kind), **_measure(part, "data")}


def _measure(part: dict[str, Any], field: str) -> dict[str, Any]:
    encoded = part.get(field)
    size = len(encoded) * 3 // 4 if isinstance(encoded, str) else 0
    return {"mime_type": part.get("mimeType"), "bytes_left_out": size}
