"""The one place where a request leaves and a reply comes back; usable alone for plain chat.

Requests that must not be sent are refused before they cost anything.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from time import perf_counter
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.background import is_long, read_in_thread
from surecall.base.errors import Code, ProviderError, RequestError
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Message, ModelRequest, Receipt, Reply, ToolSpec, WireRequest
from surecall.base.redaction import cut_secret_causes, mask_known, open_log
from surecall.calls.thinking import REASONING_CLOSERS
from surecall.models.profiles import RESERVED_REQUEST_KEYS, Capabilities
from surecall.models.transport import Transport, exchange
from surecall.models.transport.retry import find_refused_field
from surecall.reading import rescue_receipts
from surecall.reading.transforms import TransformChain
from surecall.wire import ChatCompletions, RawReply, StreamDelta, WireProtocol
from surecall.wire.chat_completions import parse_history_message
from surecall.wire.errors import REQUEST_ID_HEADERS
from surecall.wire.replies import mask_reply
from surecall.wire.substitutes import name_limit

_log = open_log("surecall.loop")
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_CHARS_PER_TOKEN: Final = 128
"""No more characters are in one token of any vocabulary known; such long ones are runs of blanks,
which are not counted at all, and of punctuation."""
_WORDS_PER_TOKEN: Final = 8
"""Most tokenizers split at every word; those that join words stop at half as many."""
_WORD_PARTS: Final = _CHARS_PER_TOKEN // _WORDS_PER_TOKEN
_MIN_WORD_CHARS: Final = 3
"""With what stands between it and the next one."""
_MAX_NAMED: Final = 5


def check_request(request: ModelRequest, capabilities: Capabilities) -> None:
    """Raise `RequestError` when the request cannot be right for what the model can do."""
    reserved = RESERVED_REQUEST_KEYS & request.params.keys()
    if reserved:
        raise RequestError(
            Code.RESERVED_KEY,
            f"params may not set {', '.join(sorted(reserved))}.",
            hint="Use the request's own fields for them.",
        )
    if request.tools and request.response_format is not None:
        raise RequestError(
            Code.TOOLS_WITH_RESPONSE_FORMAT,
            "a request cannot ask for tool calls and a response format at once.",
            hint="Ask for one of them; many providers ignore one silently.",
        )
    if request.tools and not capabilities.supports_tool_use:
        raise _unsupported("tools", "supports_tool_use", "tool_use_mode='disabled'")
    if request.stream and not capabilities.streaming:
        raise _unsupported("streaming", "streaming", "stream=False")
    if request.response_format is None:
        return
    kind = request.response_format.get("type")
    if kind == "json_object" and not capabilities.json_object:
        raise _unsupported("response_format json_object", "json_object", "no response_format")
    if kind == "json_schema" and not (capabilities.json_schema or capabilities.schema_field):
        raise _unsupported("response_format json_schema", "json_schema", "no response_format")


def _unsupported(what: str, field: str, instead: str) -> RequestError:
    return RequestError(
        Code.CAPABILITY_UNSUPPORTED,
        f"this model is declared not to support {what}.",
        hint=f"Use {instead}, or declare capabilities={{'{field}': True}} if it does.",
    )


def find_excess(request: ModelRequest, capabilities: Capabilities) -> RequestError | None:
    """Return the refusal of a prompt that no tokenizer could fit into the context window.

    Only text that surely reaches the model is counted, and each character and word for as little
    as the most frugal tokenizer takes: a prompt that fits is never refused, and one that does not
    fit may pass and be refused by the provider.
    """
    window = capabilities.context_window_tokens
    if window is None:
        return None
    room = window - capabilities.reserved_response_tokens
    texts = [(name, list(found)) for name, found in _texts_of(request)]
    chars = sum(len(text) for _, found in texts for text in found)
    if chars * _WORD_PARTS < room * _CHARS_PER_TOKEN * _MIN_WORD_CHARS:
        return None  # and most prompts need not be looked at
    # How much each part takes at least, in 128ths of a token.
    sizes = [(name, sum(map(_least_size, found))) for name, found in texts]
    least = sum(size for _, size in sizes) // _CHARS_PER_TOKEN
    if least <= room:
        return None
    sizes.sort(key=lambda part: -part[1])
    largest = [(name, size // _CHARS_PER_TOKEN) for name, size in sizes[:_MAX_NAMED]]
    named = ", ".join(f"{name} {tokens}" for name, tokens in largest)
    return RequestError(
        Code.PROMPT_TOO_LARGE,
        f"the prompt has at least {least} tokens, but there is room for {room}: {window} of the "
        f"context window less {capabilities.reserved_response_tokens} for the answer. "
        f"The largest parts have at least: {named}.",
        hint="Shorten these, or declare capabilities={'context_window_tokens': ...} if it is "
        "larger.",
        details={
            "context_window_tokens": window,
            "reserved_response_tokens": capabilities.reserved_response_tokens,
            "min_prompt_tokens": least,
            "largest": [{"part": name, "min_tokens": tokens} for name, tokens in largest],
        },
    )


def _least_size(text: str) -> int:
    words = sum(1 for _ in _WORD.finditer(text))
    return max(sum(map(len, text.split())), words * _WORD_PARTS)


def _texts_of(request: ModelRequest) -> Iterator[tuple[str, Iterator[str]]]:
    for index, message in enumerate(request.messages):
        yield f"messages[{index}] ({message.role})", _texts_of_message(message)
    for tool in request.tools:
        yield f"tool {tool.name}", _texts_of_tool(tool)


def _texts_of_message(message: Message) -> Iterator[str]:
    text = message.text
    # Many templates leave out earlier thoughts.
    if message.role != "assistant" or not any(mark in text for mark in REASONING_CLOSERS):
        yield text
    for call in message.tool_calls:
        yield call.name
        yield from _strings(call.arguments)


def _texts_of_tool(tool: ToolSpec) -> Iterator[str]:
    """Return what every provider shows of a tool, however it writes schemas."""
    yield tool.name
    yield tool.description or ""
    yield from as_fields((tool.parameters or {}).get("properties"))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for key, item in as_fields(value).items():
        yield key
        yield from _strings(item)
    for item in as_list(value):
        yield from _strings(item)


_CHAT: Final = ChatCompletions()
_TOOL_FIELDS = ("tools", "tool_choice", "parallel_tool_calls")


class PromptResult(Struct, frozen=True, kw_only=True):
    """One reply, and what it took to get it."""

    reply: Reply
    raw: RawReply
    """The reply before the transforms and before parsing the message, without known secrets."""
    receipts: tuple[Receipt, ...] = ()
    elapsed_ms: float = 0.0
    request_id: str | None = None
    attempts: int = 1
    left_out: tuple[str, ...] = ()
    """Fields that surecall would have added, and left out because the provider refuses them."""
    is_long: bool = False
    """Whether there is so much text in it that it is read in a thread, so that deadlines hold."""


class PromptRunner:
    """Checks, renders, transforms and sends one request; parses one reply.

    Transforms of messages, tools and replies edit the chat completions shape; a protocol with
    another shape goes without them. Those of calls and results work with every protocol.

    A request that is refused because of a field that surecall had added itself is sent again
    without that field; one that the caller set stays, and so does the refusal.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        protocol: WireProtocol | None = None,
        transforms: TransformChain | None = None,
        capabilities: Capabilities | None = None,
        skip_bad_events: bool = False,
        own_fields: AbstractSet[str] = frozenset(),
        on_refused: Callable[[Sequence[str], ProviderError], Awaitable[object]] | None = None,
    ) -> None:
        self.transport = transport
        self.protocol = protocol or _CHAT
        self.transforms = transforms or TransformChain()
        self.capabilities = capabilities or Capabilities()
        self.skip_bad_events = skip_bad_events
        self._own_fields = own_fields
        self._on_refused = on_refused
        self._refused = dict.fromkeys(self.capabilities.unsupported_fields)

    def build(self, request: ModelRequest) -> WireRequest:
        """Check the request, render it and apply the outbound transforms."""
        check_request(request, self.capabilities)
        refused = self._left_out(request)
        request = _without_fields(request, refused)
        excess = find_excess(request, self.capabilities)
        request = name_limit(request, self.capabilities.max_tokens_field)
        wire = self.protocol.render_request(request)
        if refused & wire.body.keys():
            body = {name: value for name, value in wire.body.items() if name not in refused}
            wire = replace(wire, body=body)
        if self.protocol.takes_transforms and (self.transforms.messages or self.transforms.tools):
            wire = self._transformed(wire)
            if excess is not None:  # a transform may have made it shorter
                excess = find_excess(self._as_sent(request, wire), self.capabilities)
        if excess is not None:
            raise excess
        return wire

    async def ask(
        self, request: ModelRequest, *, on_delta: Callable[[StreamDelta], None] | None = None
    ) -> PromptResult:
        """Send the request and return the reply."""
        found: dict[str, ProviderError] = {}
        while True:
            wire = self.build(request)
            started = perf_counter()
            try:
                came = await exchange(
                    self.transport,
                    self.protocol,
                    wire,
                    on_delta=on_delta,
                    skip_bad_events=self.skip_bad_events,
                )
                break
            except ProviderError as error:
                cut_secret_causes(error)
                field = self._find_refused(request, error)
                if field is None:
                    raise
                found[field] = error
                self._refused[field] = None
        elapsed_ms = (perf_counter() - started) * 1000
        if found and self._on_refused is not None:
            await self._on_refused(tuple(found), found[next(iter(found))])
        result = await self.read_raw_in_thread(came.raw)
        return replace(
            result,
            elapsed_ms=elapsed_ms,
            request_id=_request_id(came.headers) or result.raw.id,
            attempts=came.attempts + sum(error.attempts for error in found.values()),
            left_out=tuple(sorted(self._left_out(request))),
        )

    def _left_out(self, request: ModelRequest) -> set[str]:
        """Name the fields that would be added to a request and are refused."""
        if not self._refused:
            return set()
        return self._added_fields(request) & self._refused.keys()

    def _added_fields(self, request: ModelRequest) -> set[str]:
        """Name the fields of a request that the caller did not ask for."""
        found = set(self._own_fields & request.params.keys())
        if request.parallel_tool_calls is not None:
            found |= self._own_fields & {"parallel_tool_calls"}
        if request.tool_choice == "auto":
            found |= self._own_fields & {"tool_choice"}
        added = {*self.protocol.traits.added_fields}
        if request.stream:
            added |= self.protocol.stream_fields.keys() - {"stream"}
        return found | (added - request.params.keys())

    def _find_refused(self, request: ModelRequest, error: ProviderError) -> str | None:
        """Return the refused field that may be left out; tell the caller of one of their own."""
        added = self._added_fields(request)
        field = find_refused_field(error, sorted(added - self._refused.keys()))
        if field is not None:
            _log.warning("the provider refuses %s; the request is sent again without it", field)
            return field
        given = find_refused_field(error, sorted(_given_fields(request) - added))
        if given is not None and error.hint is None:
            error.hint = (
                f"The run sets {given} itself (as an argument, an option or in "
                "request_overrides); leave it out, since the provider refuses it."
            )
        return None

    async def read_raw_in_thread(self, raw: RawReply) -> PromptResult:
        """Do what `read_raw` does, in a thread if the reply is long, so that deadlines are kept."""
        if not is_long(raw.message):
            return self.read_raw(raw)
        return await read_in_thread(lambda: replace(self.read_raw(raw), is_long=True), is_long=True)

    def read_raw(self, raw: RawReply) -> PromptResult:
        """Take known secrets out of a reply, apply the inbound transforms, parse its message."""
        raw = mask_reply(raw)
        rescued = rescue_receipts(raw)
        # What was rescued from an error is text, which every format reads as chat completions.
        protocol = _CHAT if rescued else self.protocol
        receipts: tuple[Receipt, ...] = ()
        changed = raw
        if self.transforms.replies and protocol.takes_transforms:
            message, receipts = self.transforms.apply_reply(raw.message)
            changed = raw if message is raw.message else replace(raw, message=message)
        reply = protocol.parse_message(changed)
        calls, call_receipts = self.transforms.apply_calls(reply.calls)
        if calls is not reply.calls:
            reply = replace(reply, calls=calls)
        return PromptResult(reply=reply, raw=raw, receipts=rescued + receipts + call_receipts)

    def _as_sent(self, request: ModelRequest, wire: WireRequest) -> ModelRequest:
        """Return the request with what transforms made of it; tools they changed are left out."""
        if self.transforms.messages:
            messages = tuple(map(parse_history_message, wire.body["messages"]))
            request = replace(request, messages=messages)
        return replace(request, tools=()) if self.transforms.tools else request

    def _transformed(self, wire: WireRequest) -> WireRequest:
        body = dict(wire.body)
        body["messages"] = self.transforms.apply_messages(body["messages"])
        if "tools" in body:
            body["tools"] = self.transforms.apply_tools(body["tools"])
            if not body["tools"]:
                # Providers refuse an empty list, and settings for tools that are not there.
                for name in _TOOL_FIELDS:
                    body.pop(name, None)
        return replace(wire, body=body)


def _given_fields(request: ModelRequest) -> set[str]:
    fields = set(request.params)
    if request.parallel_tool_calls is not None:
        fields |= {"parallel_tool_calls"}
    if request.tool_choice is not None:
        fields |= {"tool_choice"}
    return fields


def _without_fields(request: ModelRequest, fields: AbstractSet[str]) -> ModelRequest:
    """Return a request without some of its optional fields."""
    if not fields:
        return request
    return replace(
        request,
        params={name: value for name, value in request.params.items() if name not in fields},
        parallel_tool_calls=None
        if "parallel_tool_calls" in fields
        else request.parallel_tool_calls,
        tool_choice=None if "tool_choice" in fields else request.tool_choice,
    )


def _request_id(headers: dict[str, str]) -> str | None:
    found = (mask_known(headers[name]) for name in REQUEST_ID_HEADERS if name in headers)
    return next(found, None)
