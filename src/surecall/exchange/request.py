"""What a client asks, read only as far as needed, with its own bytes kept."""

import re
from codecs import BOM_UTF8
from collections.abc import Collection, Mapping
from threading import Lock
from typing import Any, Final, Literal

from msgspec import Raw, Struct
from msgspec.structs import replace

from surecall.base.errors import Code, JSONTextError, RequestError
from surecall.base.json_values import as_fields, as_list, text_or_none
from surecall.base.limits import MAX_INLINE_CHARACTERS
from surecall.base.records import Message, ModelRequest, ToolSpec, WireRequest
from surecall.calls import FORMATS, ToolNames, openers_of
from surecall.text import decode, decoder_of, encode
from surecall.wire import WireProtocol, find_protocol
from surecall.wire.conversation import Conversation
from surecall.wire.records import Traits

_MAX_CACHED_TOOLS: Final = 256
_MAX_CACHED_BYTES: Final = 256 * 1024
_NO_TOOLS: Final = (b"", b"[]", b"null")
_MODEL: Final = re.compile(rb'"model"[ \t\r\n]*+:[ \t\r\n]*+("(?:[^"\\]|\\.)*+")')
_OBJECT: Final = "Send one JSON object."
_CONVERSATIONS: Final = frozenset({"contents", "input", "messages"})
_FORMS: Final = (
    ("generationConfig", b"application/json"),
    ("output_config", b'"json_schema"'),
    ("output_format", b'"json_schema"'),
    ("response_format", b'"json_'),
    ("text", b'"json_'),
)
"""Members of a request that demand a form of the answer, and what shows that they do."""
_STREAM_FIELDS: Final = ("stream", "stream_options")
_LOADED: Final = "tool_search"
"""The kind of a tool that finds functions which the request does not name."""


class CompiledTools(Struct, frozen=True, kw_only=True):
    """The tools of a request, ready to check calls with."""

    specs: tuple[ToolSpec, ...] = ()
    """The functions that a client offers."""
    names: ToolNames
    is_legacy: bool = False
    """Whether they came in the older field `functions`, so that calls belong into another field."""
    others: tuple[str, ...] = ()
    """Kinds of tools that the endpoint runs or defines, or whose calls are not JSON: their calls
    are left alone."""
    other_names: frozenset[str] = frozenset()
    """The names of such tools, as far as they have any of their own."""

    def is_other(self, name: Any, fields: Mapping[str, Any]) -> bool:
        """Tell whether what looks like the call of a function is one of another tool.

        Args:
            name: What is called.
            fields: What else the call has.
        """
        if not self.others:
            return False
        group = fields.get("namespace") or fields.get("toolset_name")
        if group:
            return group != name  # a function that is loaded late is its own namespace
        if name is None:
            return "custom" in fields
        return name not in self.names and (name in self.other_names or _LOADED in self.others)


NO_TOOLS: Final = CompiledTools(names=ToolNames())


_ABSENT: Final = Raw()


class Members(Struct, gc=False):
    """The members of a request that are looked at in all of them, in any of the formats."""

    model: Any = None
    stream: Any = None
    system: Raw = _ABSENT
    systemInstruction: Raw = _ABSENT  # noqa: N815 - the name on the wire
    system_instruction: Raw = _ABSENT
    instructions: Raw = _ABSENT
    tools: Raw = _ABSENT
    functions: Raw = _ABSENT
    messages: Raw = _ABSENT
    input: Raw = _ABSENT
    contents: Raw = _ABSENT
    tool_choice: Raw = _ABSENT
    function_call: Raw = _ABSENT
    n: Any = None
    parallel_tool_calls: Any = None
    toolConfig: Raw = _ABSENT  # noqa: N815 - the name on the wire
    tool_config: Raw = _ABSENT
    generationConfig: Raw = _ABSENT  # noqa: N815 - the name on the wire
    response_format: Raw = _ABSENT
    text: Raw = _ABSENT
    output_format: Raw = _ABSENT
    output_config: Raw = _ABSENT


decode_members: Final = decoder_of(Members)
"""Reads them from a body."""
_decode_raw: Final = decoder_of(dict[str, Raw])


class ClientRequest:
    """One request of a client.

    Only what decides about its way is read at once; the whole is read when it has to be changed.
    """

    __slots__ = (
        "_asked",
        "_document",
        "_has_calls",
        "_refusal",
        "_stated",
        "body",
        "choice",
        "choices",
        "demands_form",
        "left_out",
        "members",
        "model",
        "offers_tools",
        "one_call",
        "protocol",
        "stream",
        "tools",
    )

    def __init__(
        self,
        protocol: WireProtocol,
        body: bytes,
        members: Members,
        model: str,
        stream: bool,
        tools: CompiledTools,
    ) -> None:
        self.protocol = protocol
        self.body = body
        """The very bytes that the client sent."""
        self.members = members
        self.model = model
        self.stream = stream
        self.tools = tools
        self.choice = FREE
        """What the choice of a tool demands of the reply."""
        self.offers_tools = bool(tools.specs)
        """Whether the model may call a function."""
        self.choices = 1
        """How many replies are asked for at once."""
        self.one_call = False
        """Whether the client takes one call in a reply only."""
        self.demands_form = False
        """Whether the text of the reply has to be JSON, so that it is an answer and no call."""
        self.left_out: tuple[str, ...] = ()
        """What of it no endpoint of another format takes."""
        self._stated: Mapping[str, Any] | None = None
        self._has_calls: bool | None = None
        self._document: dict[str, Any] | None = None
        self._asked: ModelRequest | None = None
        self._refusal: RequestError | None = None

    @classmethod
    def parse(
        cls,
        protocol: WireProtocol | str,
        body: bytes,
        *,
        model: str | None = None,
        stream: bool | None = None,
    ) -> "ClientRequest":
        """Read what decides about a request.

        Args:
            protocol: The wire format of the client, or its name.
            body: What the client sent.
            model: The model, where the format names it in the path.
            stream: Whether a stream is asked for, where the path says so.

        Raises:
            RequestError: `INVALID_REQUEST`: the body is not a request at all.
        """
        wire = find_protocol(protocol) if isinstance(protocol, str) else protocol
        try:
            return cls._parse(wire, body, model, stream)
        except (ValueError, RecursionError) as error:
            if body.startswith(BOM_UTF8):
                plain = body.removeprefix(BOM_UTF8)
                return cls.parse(wire, plain, model=model, stream=stream)
            raise _invalid(_say_why_unreadable(body)) from error

    @classmethod
    def _parse(
        cls, wire: WireProtocol, body: bytes, model: str | None, stream: bool | None
    ) -> "ClientRequest":
        members = decode_members(body)
        traits = wire.traits
        named = model if traits.model_in_path else model or members.model
        if named.__class__ is not str or not named:
            hint = "Set model to the name of one."
            hint = "Name the model in the path." if traits.model_in_path else hint
            raise _invalid("The request names no model.", hint)
        key, tools = "tools", bytes(members.tools)
        if tools in _NO_TOOLS and (legacy := bytes(members.functions)) not in _NO_TOOLS:
            key, tools = "functions", legacy
        compiled = NO_TOOLS if tools in _NO_TOOLS else compile_tools(wire, tools, key)
        count: Any = members.n
        if members.generationConfig is not _ABSENT and traits.count_key != "n":
            config = _written(members.generationConfig)
            count = as_fields(decode(config)).get(traits.count_key) if config else None
        choices = count if count.__class__ is int and count > 1 else 1
        streams = members.stream is True if stream is None else stream
        one_call = members.parallel_tool_calls is False or key == "functions"
        choice = b""
        for name in traits.choice_keys:
            raw = getattr(members, name)
            if raw is not _ABSENT:
                choice = choice or _written(raw)
                one_call = one_call or _takes_one(raw)
        demands_form = False
        for name, mark in _FORMS:
            if (raw := getattr(members, name)) is not _ABSENT and mark in bytes(raw):
                demands_form = True
        request = cls(wire, body, members, named, streams, compiled)
        if choice and compiled.specs:
            has_others, others = bool(compiled.others), compiled.other_names
            request.choice = read_choice(choice, has_others=has_others, others=others)
            request.offers_tools = request.choice.wanted != "none"
        request.choices, request.one_call = choices, one_call
        request.demands_form = demands_form
        return request

    @property
    def path(self) -> str:
        """The path of the endpoint, which in one format names the model."""
        return self.protocol.path_of(self.model, stream=self.stream)

    @property
    def has_calls(self) -> bool:
        """Whether the conversation may hold calls or results of tools."""
        if self._has_calls is None:
            body, self._has_calls = self.body, False
            for mark in self.protocol.traits.call_marks:
                self._has_calls = self._has_calls or mark in body
        return self._has_calls

    @property
    def conversation(self) -> Conversation:
        """The conversation, read as far as needed."""
        return self.protocol.open_conversation(self.document)

    @property
    def has_results(self) -> bool:
        """Whether the conversation has results of tools: the client runs a loop."""
        return self.conversation.has_results()

    @property
    def is_long(self) -> bool:
        """Whether it takes so long to read that the event loop must not wait for it."""
        return len(self.body) > MAX_INLINE_CHARACTERS

    @property
    def is_legacy(self) -> bool:
        """Whether the client looks for a call in the older field."""
        return self.tools.is_legacy

    @property
    def document(self) -> dict[str, Any]:
        """The whole request, decoded; not to be changed.

        Raises:
            RequestError: `INVALID_REQUEST`.
        """
        if self._document is None:
            try:
                value = decode(self.body, surrogates="replace")
            except JSONTextError as error:
                raise _invalid(f"The body cannot be read: {error.message}") from error
            self._document = as_fields(value)
        return self._document

    @property
    def settings(self) -> Mapping[str, Any]:
        """The members of the request, decoded; the conversation only where that was done before."""
        if self._stated is not None:
            return self._stated
        if self._document is not None:
            return self._document
        members = _read_members(self.body)
        stated = {name: raw for name, raw in members.items() if name not in _CONVERSATIONS}
        try:
            return as_fields(decode(encode(stated), surrogates="replace"))
        except JSONTextError:  # in what nobody has had to read so far
            return {}

    @property
    def streams_several(self) -> bool:
        """Whether a stream of several replies is asked for, any of which may have calls.

        Which call belongs to which reply is only certain once all of them are there, so they are
        asked for whole, and `write_events` makes a stream of them.
        """
        return self.stream and self.choices > 1 and self.offers_tools

    def as_whole(self) -> "ClientRequest":
        """Return the same request for a whole reply."""
        body = self.body
        if self.protocol.stream_fields:  # or else the path says so
            fields = self.document.items()
            body = encode({name: item for name, item in fields if name not in _STREAM_FIELDS})
        return ClientRequest.parse(self.protocol, body, model=self.model, stream=False)

    def write_events(self, body: bytes) -> bytes:
        """Return the events of a whole reply, which came to its end, in the client's format."""
        document = as_fields(decode(body, surrogates="replace"))
        return self.protocol.write_events(document, self.document)

    def as_functions(self) -> "ClientRequest":
        """Return the request for an endpoint of another format, where tools are functions only.

        A reply still repeats what the client stated, and its calls are for the client's tools.
        """
        if not self.tools.others:
            return self
        document, left_out = self.protocol.as_functions(self.document)
        request = ClientRequest.parse(
            self.protocol, encode(document), model=self.model, stream=self.stream
        )
        request.left_out, request._stated = left_out, self.settings
        return request

    @property
    def restores_calls(self) -> bool:
        """Whether calls of functions become calls of the client's other tools in the reply."""
        return self._stated is not None

    def ask(self) -> ModelRequest:
        """Return the whole request, understood.

        Raises:
            RequestError: It has something that the records do not know, such as a built-in tool.
        """
        if self._refusal is not None:
            raise self._refusal
        if self._asked is None:
            wire = WireRequest(path=self.path, body=self.document, stream=self.stream)
            try:
                self._asked = self.protocol.parse_request(wire)
            except RequestError as error:
                self._refusal = error
                raise
        return self._asked

    def body_for(self, model: str, defaults: Mapping[str, Any] | None = None) -> bytes:
        """Return the body for a model, with fields it lacks; all other bytes stay as they are."""
        body = self.body
        if model != self.model and not self.protocol.traits.model_in_path:
            body = replace_model(body, model)
        return add_members(body, defaults) if defaults else body


def _say_why_unreadable(body: bytes) -> str:
    try:
        decode(body)
    except JSONTextError as error:
        return f"The body cannot be read: {error.message}"
    return "The body is not a JSON object."


def replace_model(body: bytes, model: str) -> bytes:
    """Return the body of a request with the name of another model; no other byte changes."""
    if decode_members(body).model == model:
        return body
    written = encode(model)
    for found in _MODEL.finditer(body):
        start, end = found.span(1)
        spliced = body[:start] + written + body[end:]
        try:
            if decode_members(spliced).model == model:
                return spliced
        except ValueError:  # pragma: no cover - one text was replaced by another
            break
    return encode({**as_fields(decode(body, surrogates="replace")), "model": model})


def _read_members(body: bytes) -> Mapping[str, Any]:
    """Return the members of a body, as little decoded as can be."""
    try:
        return _decode_raw(body)
    except ValueError:  # half a character, which is passed on as it came
        return as_fields(decode(body, surrogates="replace"))


def add_members(body: bytes, members: Mapping[str, Any]) -> bytes:
    """Return the body with members that it does not have yet, behind its own."""
    there = _read_members(body)
    added = {key: value for key, value in members.items() if key not in there}
    if not added:
        return body
    end = body.rstrip().removesuffix(b"}").rstrip()
    return end + (b"," if there else b"") + encode(added)[1:]


# Tools

_compiled: dict[tuple[str, str, bytes], CompiledTools] = {}
_compiling: Final = Lock()
"""Long requests are read in threads."""


def compile_tools(wire: WireProtocol, written: bytes, key: str = "tools") -> CompiledTools:
    """Return the tools of a request, compiled once for the same bytes.

    Raises:
        RequestError: A function has no name, or no schema that can be read.
    """
    place = (wire.name, key, written)
    found = _compiled.get(place)
    if found is None:
        found = _compile(wire, written, key)
        if len(written) <= _MAX_CACHED_BYTES:
            with _compiling:
                while len(_compiled) >= _MAX_CACHED_TOOLS:
                    _compiled.pop(next(iter(_compiled)), None)
                _compiled[place] = found
    return found


def _compile(wire: WireProtocol, written: bytes, key: str) -> CompiledTools:
    specs: list[ToolSpec] = []
    others: list[str] = []
    other_names: set[str] = set()
    traits = wire.traits
    for entry in as_list(decode(written, surrogates="replace")):
        fields = as_fields(entry)
        if (kind := _other_kind(traits, fields)) is not None:
            others.append(kind)
            if traits.has_similar_tools and (name := text_or_none(fields.get("name"))):
                other_names.add(name)
        if traits.declaring_keys:
            entry = {name: fields[name] for name in traits.declaring_keys if fields.get(name)}
        elif kind is not None:
            entry = None
        if entry:
            specs += _parse_tool(wire, entry, key)
    names = ToolNames(specs)
    for spec in specs:
        names.checker(spec)
    if len(written) > MAX_INLINE_CHARACTERS:  # then this is a thread, which may take its time
        openers_of(names, FORMATS)
    is_legacy = key == "functions"
    return CompiledTools(
        specs=tuple(specs),
        names=names,
        is_legacy=is_legacy,
        others=tuple(others),
        other_names=frozenset(other_names),
    )


def _other_kind(traits: Traits, entry: dict[str, Any]) -> str | None:
    """Return the kind of a tool that is not a function of the client."""
    if traits.declaring_keys:
        return min(entry.keys() - traits.declaring_keys, default=None)
    kind = text_or_none(entry.get("type"))
    return None if kind is None or kind in traits.function_types else kind


def _parse_tool(wire: WireProtocol, entry: Any, key: str) -> tuple[ToolSpec, ...]:
    """Understand one tool with the server half of its format."""
    bare = wire.render_request(ModelRequest(model="x", messages=(Message("user", "x"),)))
    return wire.parse_request(replace(bare, body={**bare.body, key: [entry]})).tools


# Choices


def _written(raw: Raw) -> bytes:
    written = bytes(raw)
    return b"" if written == b"null" else written


def _takes_one(choice: Raw) -> bool:
    written = bytes(choice)
    if b"disable_parallel_tool_use" not in written:
        return False
    return as_fields(decode(written)).get("disable_parallel_tool_use") is True


def _invalid(message: str, hint: str = _OBJECT) -> RequestError:
    return RequestError(Code.INVALID_REQUEST, message, hint=hint)


Wanted = Literal["any", "call", "none"]
"""Whether a reply may have calls, must have one, or must have none."""

_AUTO: Final = (b'"auto"', b'{"type":"auto"}', b'{"type": "auto"}')
_WANTED: Final[dict[str, Wanted]] = {
    "any": "call",
    "function": "call",
    "none": "none",
    "required": "call",
    "tool": "call",
}


class ToolChoice(Struct, frozen=True):
    """What a reply has to meet besides its schemas."""

    wanted: Wanted = "any"
    tools: frozenset[str] | None = None
    """The tools that may be called; `None` means all that are offered."""

    @property
    def is_free(self) -> bool:
        """Whether nothing is demanded."""
        return self.wanted == "any" and self.tools is None

    @property
    def only_tool(self) -> str | None:
        """The one tool that must be called, if it is one."""
        if self.wanted != "call" or self.tools is None or len(self.tools) != 1:
            return None
        return next(iter(self.tools))

    def takes(self, name: str) -> bool:
        """Tell whether a tool may be called."""
        return self.wanted != "none" and (self.tools is None or name in self.tools)


FREE: Final = ToolChoice()


def read_choice(
    written: bytes, *, has_others: bool = False, others: Collection[str] = ()
) -> ToolChoice:
    """Return what a choice demands.

    Args:
        written: The choice as the client wrote it; empty when there is none.
        has_others: Whether tools are offered that are not functions: a call of one of these
            also meets the demand of any call.
        others: The names of these tools, as far as a choice can name them.
    """
    if not written or written in _AUTO:
        return FREE
    value = decode(written, surrogates="replace")
    choice = _read_text(value) if isinstance(value, str) else _read_fields(as_fields(value))
    if has_others and choice.wanted == "call" and choice.tools is None:
        return FREE
    if choice.tools is not None and not choice.tools.isdisjoint(others):
        return FREE
    return choice


def _read_text(value: str) -> ToolChoice:
    return ToolChoice(_WANTED.get(value, "any"))


def _read_fields(fields: dict[str, Any]) -> ToolChoice:
    config = fields.get("functionCallingConfig") or fields.get("function_calling_config")
    if config is not None:
        return _read_gemini(as_fields(config))
    kind = text_or_none(fields.get("type"))
    if kind == "allowed_tools":
        return _read_allowed(as_fields(fields.get("allowed_tools")) or fields)
    if kind not in (None, *_WANTED):
        return FREE  # a tool that is not a function
    name = text_or_none(as_fields(fields.get("function")).get("name"))
    name = name or text_or_none(fields.get("name"))
    if name is not None:
        return ToolChoice("call", frozenset({name}))
    return _read_text(kind or "")


def _read_allowed(fields: dict[str, Any]) -> ToolChoice:
    """Read a choice of some tools; one that is not a function makes it a matter of the endpoint."""
    entries = [as_fields(entry) for entry in as_list(fields.get("tools"))]
    if any(entry.get("type") != "function" for entry in entries):
        return FREE
    names = [as_fields(entry.get("function")).get("name") or entry.get("name") for entry in entries]
    tools = frozenset(str(name) for name in names) if names else None
    return ToolChoice("call" if fields.get("mode") == "required" else "any", tools)


def _read_gemini(fields: dict[str, Any]) -> ToolChoice:
    mode = str(fields.get("mode")).upper()
    if mode == "NONE":
        return ToolChoice("none")
    allowed = fields.get("allowedFunctionNames") or fields.get("allowed_function_names")
    names = frozenset(str(name) for name in as_list(allowed)) or None
    if mode not in ("ANY", "VALIDATED"):
        return FREE
    return ToolChoice("call" if mode == "ANY" else "any", names)
