"""From one wire format to another, through records only.

What a target cannot carry is found by reading the translated request back: whatever is not there
any more was dropped. Only parameters that are known to belong to the source alone are named here;
those that nobody knows go along, since the provider may know them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import ProviderError
from surecall.base.json_values import as_fields
from surecall.base.records import Message, ModelRequest, Reply, ToolSpec, WireRequest, clip
from surecall.schema import clean_parameters

from .call_ids import pair_calls
from .protocol import WireProtocol
from .records import StreamDelta, StreamFolder, StreamWriter
from .substitutes import rename_tools, restore_names

_SAME_PARAMS: Final[Mapping[str, str]] = {"max_completion_tokens": "max_tokens"}
_OWN_PARAMS: Final[Mapping[str, frozenset[str]]] = {
    "chat_completions": frozenset(
        {"audio", "logit_bias", "modalities", "prediction", "web_search_options"}
    ),
    "gemini": frozenset(
        {
            "cachedContent",
            "cached_content",
            "generationConfig",
            "labels",
            "safetySettings",
            "safety_settings",
        }
    ),
    "messages": frozenset(
        {
            "cache_control",
            "container",
            "context_management",
            "inference_geo",
            "mcp_servers",
            "service_tier",
            "speed",
            "thinking",
        }
    ),
    "responses": frozenset(
        {
            "background",
            "context_management",
            "include",
            "max_tool_calls",
            "reasoning",
            "text",
            "truncation",
        }
    ),
}
"""Parameters of one format that no other has, or that mean something else there."""
_OPENAI_PARAMS: Final = frozenset(
    {
        "prompt_cache_key",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "store",
        "verbosity",
    }
)
_OPENAI_FORMATS: Final = frozenset({"chat_completions", "responses"})


class Translated(Struct, frozen=True):
    """A request in another wire format, and what it could not take along."""

    request: WireRequest
    dropped: tuple[str, ...] = ()
    """Names of fields that the target cannot carry, such as `seed` or `messages.input_audio`;
    `tools.parameters` when a schema had to be changed."""
    renamed: dict[str, str] = {}
    """Names of tools that the target does not take, and those it knows them by; what translates
    the reply needs them to give the client its own names again."""


def translate_request(wire: WireRequest, source: WireProtocol, target: WireProtocol) -> Translated:
    """Translate a client's request.

    Names of tools that the target does not take are replaced everywhere alike, and calls that
    share an id get ids of their own, which their results follow.

    Raises:
        RequestError: The request cannot be understood.
    """
    return translate_asked(source.parse_request(wire), source, target)


def translate_asked(asked: ModelRequest, source: WireProtocol, target: WireProtocol) -> Translated:
    """Do the same with a request that is understood already.

    Raises:
        RequestError: The target cannot say it.
    """
    messages = tuple(map(_say_refusals, asked.messages))
    asked = replace(asked, messages=pair_calls(messages))
    asked, renamed = rename_tools(asked, target.name)
    fitting = _without_own(asked, source.name, target.name)
    rendered = target.render_request(_without_unfit_parts(fitting, source.name, target.name))
    return Translated(rendered, _missing(asked, target.parse_request(rendered)), renamed)


def translate_reply(
    body: bytes,
    source: WireProtocol,
    target: WireProtocol,
    headers: Mapping[str, str] | None = None,
    *,
    renamed: Mapping[str, str] | None = None,
    request: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Translate a provider's whole reply.

    Args:
        body: The reply.
        source: The format of the provider.
        target: The format of the client.
        headers: The headers that came with the reply.
        renamed: The names that the translated request was given.
        request: The body that the client sent, of which some formats repeat a part.

    Raises:
        ProviderError: The body is not a reply; `target.render_error` renders it for the client.
    """
    reply = source.parse_message(source.parse_body(body, headers))
    return target.render_reply(restore_names(reply, renamed or {}), request)


class StreamTranslator:
    """Translates one streamed reply: text passes at once, calls are written when whole.

    A stream that breaks is broken off in the target's own way, and the reason is in `error`.

    Args:
        source: The format of the provider.
        target: The format of the client.
        model: The model that the client asked for.
        headers: The headers that came with the reply.
        reply_id: The id of the reply.
        renamed: The names that the translated request was given.
        request: The body that the client sent: it may ask for usage, or have settings that some
            formats repeat.
    """

    def __init__(
        self,
        source: WireProtocol,
        target: WireProtocol,
        model: str,
        *,
        headers: Mapping[str, str] | None = None,
        reply_id: str | None = None,
        renamed: Mapping[str, str] | None = None,
        request: Mapping[str, Any] | None = None,
    ) -> None:
        self._source = source
        self._renamed = renamed or {}
        self._folder: StreamFolder = source.open_stream(headers)
        self._writer: StreamWriter = target.open_writer(
            model=model, reply_id=reply_id, request=request
        )
        self._has_begun = False
        self._shown: dict[str, list[str]] = {"text": [], "reasoning": []}
        self.error: ProviderError | None = None
        """Why the reply broke off, if it did."""
        self.reply: Reply | None = None
        """The reply, once it is whole."""

    @property
    def done(self) -> bool:
        """Whether nothing more will be written before `close`."""
        return self.error is not None or self._folder.done

    def feed(self, chunk: bytes) -> bytes:
        """Take the next bytes of the provider, cut anywhere, and return those for the client."""
        if self.error is not None:
            return b""
        written = self._begin()
        try:
            deltas = self._folder.feed(chunk)
        except ProviderError as error:
            return written + self._fail(error)
        return written + b"".join(self._write(delta) for delta in deltas)

    def close(self) -> bytes:
        """Return what is left to write: the calls and the end, or the error."""
        if self.error is not None or self.reply is not None:
            return b""
        written = self._begin()
        try:
            reply = self._source.parse_message(self._folder.close())
        except ProviderError as error:
            return written + self._fail(error)
        self.reply = reply = restore_names(reply, self._renamed)
        thoughts = self._unshown("reasoning", reply.reasoning)
        written += self._write(StreamDelta("reasoning", thoughts, reply.extra))
        rest = self._unshown("text", reply.content)
        written += self._write(StreamDelta("text", rest, is_refusal=reply.is_refusal))
        written += b"".join([self._writer.call(call) for call in reply.calls])
        return written + self._writer.end(reply)

    def _begin(self) -> bytes:
        if self._has_begun:
            return b""
        self._has_begun = True
        return self._writer.begin()

    def _write(self, delta: StreamDelta) -> bytes:
        self._shown[delta.kind].append(delta.text)
        if delta.kind == "text":
            write = self._writer.refusal if delta.is_refusal else self._writer.text
            return write(delta.text)
        return self._writer.reasoning(delta.text, delta.extra)

    def _unshown(self, kind: str, whole: str | None) -> str:
        """Return what was not written yet; a provider may answer a stream with a plain body."""
        shown = "".join(self._shown[kind])
        return whole[len(shown) :] if whole and whole.startswith(shown) else ""

    def _fail(self, error: ProviderError) -> bytes:
        self.error = error
        return self._writer.fail(error)


def _without_own(request: ModelRequest, source: str, target: str) -> ModelRequest:
    """Leave out what belongs to the source alone: the target's provider would refuse it."""
    if source == target:
        return request
    own = _OWN_PARAMS.get(source, frozenset())
    if source in _OPENAI_FORMATS and target not in _OPENAI_FORMATS:
        own |= _OPENAI_PARAMS
    params = {key: value for key, value in request.params.items() if key not in own}
    return replace(request, params=params)


_CHAT_PARTS: Final = frozenset({"file", "file_id", "image_url", "input_audio", "text"})


def _without_unfit_parts(request: ModelRequest, source: str, target: str) -> ModelRequest:
    """Leave out parts of which the target could not make anything, and say so in their place."""
    if source == target:
        return request

    def fit(part: dict[str, Any]) -> dict[str, Any]:
        kind = _kind_of(part)
        is_unfit = target == "chat_completions" and kind not in _CHAT_PARTS
        if kind == "file_id" and target != "gemini":  # a URI that only Google can open
            is_unfit = "://" in str(as_fields(part.get("file")).get("file_id"))
        text = f"[A part of type {clip(kind, 40)} was left out.]"
        return {"type": "text", "text": text} if is_unfit else part

    messages = tuple(
        replace(message, content=[fit(part) for part in message.content])
        if isinstance(message.content, list)
        else message
        for message in request.messages
    )
    return replace(request, messages=messages)


def _say_refusals(message: Message) -> Message:
    """Return a message in which refusals of the model are text, which every format has."""
    content, extra = message.content, message.extra
    if isinstance(content, list):
        content = [
            {"type": "text", "text": part.get("refusal")} if part.get("type") == "refusal" else part
            for part in content
        ]
    refusal = extra.get("refusal")
    if isinstance(refusal, str):
        content = content or refusal
        extra = {key: value for key, value in extra.items() if key != "refusal"}
    return replace(message, content=content, extra=extra)


def _missing(asked: ModelRequest, carried: ModelRequest) -> tuple[str, ...]:
    before, after = Counter(_features(asked)), Counter(_features(carried))
    lost = {name for name in before if before[name] > after[name]}
    schemas = {tool.name: _schema(tool) for tool in carried.tools}
    if any(schemas.get(tool.name, {}) != _schema(tool) for tool in asked.tools):
        lost.add("tools.parameters")
    return tuple(sorted(lost))


def _schema(tool: ToolSpec) -> dict[str, Any]:
    """Return a tool's schema with what some formats add and others leave out."""
    return {"type": "object", "properties": {}, **clean_parameters(tool.parameters)}


def _features(request: ModelRequest) -> Iterator[str]:
    """Name everything in a request that a wire format may have no place for."""
    for key in request.params:
        yield _SAME_PARAMS.get(key, key)
    if request.response_format is not None:
        yield "response_format"
    if request.tools and request.tool_choice not in (None, "auto"):
        yield "tool_choice"
    if request.tools and request.parallel_tool_calls is False:
        yield "parallel_tool_calls"
    for tool in request.tools:
        yield from ("tools", *(f"tools.{key}" for key in tool.extra))
    for message in request.messages:
        yield from _message_features(message)


def part_features(message: Message) -> Iterator[str]:
    """Name the parts of a message besides text, as `dropped` does."""
    for part in message.content if isinstance(message.content, list) else ():
        if part.get("type") != "text":
            yield f"messages.{_kind_of(part)}"


def _kind_of(part: Mapping[str, Any]) -> str:
    """Return the kind of a part; files differ in how they are referred to."""
    kind = part.get("type")
    if kind != "file":
        return str(kind)
    file = as_fields(part.get("file"))
    if file.get("file_data"):
        return "file"
    return next((key for key in ("file_url", "file_id") if file.get(key)), "file")


def _message_features(message: Message) -> Iterator[str]:
    if message.name:
        yield "messages.name"
    for key in message.extra:
        yield f"messages.{key}"
    for call in message.tool_calls:
        yield "messages.tool_calls"
        for key in call.extra:
            yield f"messages.tool_calls.{key}"
    yield from part_features(message)
    for part in message.content if isinstance(message.content, list) else ():
        if "cache_control" in part:
            yield "messages.cache_control"
