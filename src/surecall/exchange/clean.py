"""Replies with which nothing is wrong: found out quickly, so that their own bytes go on.

Only what decides is decoded. A verdict of `None` says nothing about a reply but that it has to be
looked at closely. What is called clean here, the full reading takes without a change as well.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final, NamedTuple

from msgspec import Meta, Raw, Struct

from surecall.base.limits import MAX_REPORTED_TOKENS
from surecall.base.records import Usage
from surecall.reading import ReadingLimits
from surecall.text import decoder_of

from .checks import Checks
from .history import has_own_id
from .request import ClientRequest

_Tokens = Annotated[int, Meta(ge=0, le=MAX_REPORTED_TOKENS)]
"""Other counts are looked at closely, as whatever else is odd."""


class Clean(NamedTuple):
    """What is worth knowing of a clean reply."""

    model: str | None
    usage: Usage | None
    calls: int
    echoes: bool
    """Whether it may hold something that a client has to send back, such as reasoning."""


def read_clean(
    request: ClientRequest,
    body: bytes,
    limits: ReadingLimits = ReadingLimits(),  # noqa: B008 - frozen
    *,
    text_formats: bool = True,
    takes_strays: bool = False,
) -> Clean | None:
    """Return what a whole reply in the client's format has, or `None` if it is not surely clean.

    Args:
        request: What the client asked.
        body: The reply.
        limits: How large arguments may be.
        text_formats: Whether text is looked through for calls.
        takes_strays: Whether arguments may have keys that their schema is silent about, and that
            may mean others.
    """
    checks = Checks(request, limits, text_formats and request.offers_tools, takes_strays)
    try:
        return _READERS[request.protocol.name](body, checks)
    except (ValueError, RecursionError):  # of msgspec and of text that is not UTF-8
        return None


# Chat completions


class _Function(Struct):
    name: str
    arguments: str


class _Call(Struct):
    id: str
    type: str
    function: _Function
    extra_content: Any = None
    thought_signature: Any = None


class _Message(Struct):
    role: str = "assistant"
    content: str | None = None
    tool_calls: list[_Call] | None = None
    function_call: _Function | None = None
    refusal: str | None = None
    reasoning: Any = None
    reasoning_content: Any = None
    reasoning_details: Any = None
    thinking_blocks: Any = None


class _Choice(Struct):
    message: _Message
    finish_reason: str | None = None


class _ChatUsage(Struct):
    prompt_tokens: _Tokens = 0
    completion_tokens: _Tokens = 0
    total_tokens: _Tokens = 0


class _Completion(Struct):
    choices: list[_Choice]
    model: str | None = None
    usage: _ChatUsage | None = None
    error: Any = None


_decode_completion: Final = decoder_of(_Completion)


def _read_chat(body: bytes, checks: Checks) -> Clean | None:
    reply = _decode_completion(body)
    if reply.error or not reply.choices:
        return None
    echoes = False
    for choice in reply.choices:
        message = choice.message
        if message.role != "assistant":
            return None
        if message.tool_calls or message.function_call:
            take = _takes_older if checks.is_legacy else _takes_calls
            if not take(message, choice.finish_reason, checks):
                return None
            echoes = echoes or _has_echoes(message)
        elif (
            not checks.takes_text(message.content or message.refusal or "")
            or choice.finish_reason in _CALL_ENDS
        ):
            return None
    used = reply.usage
    usage = used and Usage(used.prompt_tokens, used.completion_tokens, used.total_tokens)
    return _found(body, reply.model, usage, checks, echoes=echoes)


def _takes_calls(message: _Message, finish: str | None, checks: Checks) -> bool:
    """Tell whether all calls can be used; one that was demanded by its name ends like a text."""
    if finish != "tool_calls" and not (finish == "stop" and checks.is_named):
        return False
    if message.function_call or not checks.takes_words(message.content):
        return False
    for call in message.tool_calls or ():
        function = call.function
        if call.type != "function":
            return False
        if not checks.takes_call(call.id, function.name, function.arguments):
            return False
        if call.extra_content and not has_own_id(call.id, function.name):
            return False
    return True


def _takes_older(message: _Message, finish: str | None, checks: Checks) -> bool:
    """Tell the same of a call in the older field, for a client that looks for it there.

    One that was demanded by its name ends with a plain stop.
    """
    function = message.function_call
    if function is None or message.tool_calls or finish not in ("function_call", "stop"):
        return False
    return checks.takes_words(message.content) and checks.takes_unnamed(
        function.name, function.arguments
    )


def _has_echoes(message: _Message) -> bool:
    return bool(
        message.reasoning_content
        or message.reasoning
        or message.reasoning_details
        or message.thinking_blocks
        or any(call.extra_content or call.thought_signature for call in message.tool_calls or ())
    )


# Messages


class _Block(Struct):
    type: str
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = Raw()


class _MessagesUsage(Struct):
    input_tokens: _Tokens = 0
    output_tokens: _Tokens = 0
    cache_read_input_tokens: _Tokens | None = None
    cache_creation_input_tokens: _Tokens | None = None


class _AnthropicMessage(Struct):
    content: list[_Block]
    type: str
    role: str
    stop_reason: str
    model: str | None = None
    usage: _MessagesUsage | None = None
    error: Any = None


_decode_message: Final = decoder_of(_AnthropicMessage)
_THOUGHTS: Final = frozenset({"thinking", "redacted_thinking"})


def _read_messages(body: bytes, checks: Checks) -> Clean | None:
    reply = _decode_message(body)
    if reply.error or reply.type != "message" or reply.role != "assistant":
        return None
    texts: list[str] = []
    for block in reply.content:
        if block.type == "tool_use":
            if not checks.takes_call(block.id or "", block.name or "", bytes(block.input)):
                return None
        elif block.type == "text":
            if block.text is None:
                return None
            texts.append(block.text)
        elif block.type not in _THOUGHTS:
            return None
    if (reply.stop_reason == "tool_use") != bool(checks.calls):
        return None
    takes = checks.takes_words if checks.calls else checks.takes_text
    if not takes("".join(texts)):
        return None
    usage = None
    if used := reply.usage:
        cached = used.cache_read_input_tokens or 0
        written = used.cache_creation_input_tokens or 0
        given = used.input_tokens + cached + written
        total = given + used.output_tokens
        usage = Usage(given, used.output_tokens, total, 0, cached, written)
    return _found(body, reply.model, usage, checks)


# Responses


class _Part(Struct):
    type: str = ""
    text: str | None = None


class _Item(Struct):
    type: str
    content: list[_Part] | None = None
    role: str = "assistant"
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    status: str | None = None


class _ResponsesUsage(Struct):
    input_tokens: _Tokens = 0
    output_tokens: _Tokens = 0
    total_tokens: _Tokens = 0


class _Response(Struct):
    output: list[_Item]
    status: str
    model: str | None = None
    usage: _ResponsesUsage | None = None
    error: Any = None


_decode_response: Final = decoder_of(_Response)
_ITEM_ENDS: Final = ("completed", None)


def _read_responses(body: bytes, checks: Checks) -> Clean | None:
    reply = _decode_response(body)
    if reply.error or reply.status not in ("completed", "incomplete"):
        return None
    texts: list[str] = []
    for item in reply.output:
        if item.type == "function_call":
            if reply.status != "completed" or item.status not in _ITEM_ENDS:
                return None
            if not checks.takes_call(item.call_id or "", item.name or "", item.arguments or ""):
                return None
        elif item.type == "message":
            if item.role != "assistant":
                return None
            texts += [part.text for part in item.content or () if part.text is not None]
        elif item.type != "reasoning":
            return None
    takes = checks.takes_words if checks.calls else checks.takes_text
    if not takes("".join(texts)):
        return None
    used = reply.usage
    usage = used and Usage(used.input_tokens, used.output_tokens, used.total_tokens)
    return _found(body, reply.model, usage, checks)


# Gemini


class _GeminiCall(Struct):
    name: str
    args: Raw = Raw()
    id: str | None = None


class _GeminiPart(Struct):
    text: str | None = None
    thought: bool = False
    functionCall: _GeminiCall | None = None  # noqa: N815 - the name on the wire
    function_call: Any = None
    thoughtSignature: Any = None  # noqa: N815 - the name on the wire


class _GeminiContent(Struct):
    parts: list[_GeminiPart]
    role: str = "model"


class _Candidate(Struct):
    content: _GeminiContent
    finishReason: str  # noqa: N815 - the name on the wire


class _GeminiUsage(Struct):
    promptTokenCount: _Tokens = 0  # noqa: N815 - the name on the wire
    candidatesTokenCount: _Tokens = 0  # noqa: N815 - the name on the wire
    totalTokenCount: _Tokens = 0  # noqa: N815 - the name on the wire
    thoughtsTokenCount: _Tokens = 0  # noqa: N815 - the name on the wire


class _Generated(Struct):
    candidates: list[_Candidate]
    modelVersion: str | None = None  # noqa: N815 - the name on the wire
    usageMetadata: _GeminiUsage | None = None  # noqa: N815 - the name on the wire
    error: Any = None


_decode_generated: Final = decoder_of(_Generated)


def _read_gemini(body: bytes, checks: Checks) -> Clean | None:
    reply = _decode_generated(body)
    if reply.error or not reply.candidates:
        return None
    if not all(_takes_candidate(candidate, checks) for candidate in reply.candidates):
        return None
    parts = [part for candidate in reply.candidates for part in candidate.content.parts]
    echoes = any(part.functionCall and part.thoughtSignature for part in parts)
    usage = None
    if used := reply.usageMetadata:
        made = used.candidatesTokenCount + used.thoughtsTokenCount
        usage = Usage(used.promptTokenCount, made, used.totalTokenCount, used.thoughtsTokenCount)
    return _found(body, reply.modelVersion, usage, checks, echoes=echoes)


def _takes_candidate(candidate: _Candidate, checks: Checks) -> bool:
    texts: list[str] = []
    before = checks.calls
    for part in candidate.content.parts:
        if (call := part.functionCall) is not None:
            written = bytes(call.args) or b"{}"
            if call.id is not None and not checks.takes_call(call.id, call.name, written):
                return False
            if call.id is None and not checks.takes_unnamed(call.name, written):
                return False
        elif part.text is not None and not part.thought:
            texts.append(part.text)
        if part.function_call:
            return False
    if candidate.content.role != "model":
        return False
    if checks.calls > before:
        return candidate.finishReason == "STOP" and checks.takes_words("".join(texts))
    return checks.takes_text("".join(texts))


_CALL_ENDS: Final = ("tool_calls", "function_call")
_READERS: Final[dict[str, Callable[[bytes, Checks], Clean | None]]] = {
    "chat_completions": _read_chat,
    "gemini": _read_gemini,
    "messages": _read_messages,
    "responses": _read_responses,
}


def _found(
    body: bytes, model: str | None, usage: Usage | None, checks: Checks, *, echoes: bool = False
) -> Clean | None:
    if not body.isascii():
        body.decode()  # parts that were passed over may not be text
    return Clean(model, usage, checks.calls, echoes)
