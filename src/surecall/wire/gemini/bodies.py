"""Whole bodies in this format: told to be clean, and written with what was put right in them."""

from typing import Any, Final

from msgspec import Raw, Struct

from surecall.base.errors import Code, ProviderError
from surecall.base.json_values import as_fields, as_list, count_or_none
from surecall.base.records import ToolCall, Usage
from surecall.text import decoder_of
from surecall.wire.rewriting import (
    Checks,
    Clean,
    Patched,
    Plan,
    Tokens,
    divide,
    found_clean,
    is_from_text,
    list_found,
    note_finish,
    rewrite_texts,
    texts_of,
)

from .parts import wire_name
from .replies import parse_usage


class _GeminiCall(Struct):
    name: str
    args: Raw = Raw()
    id: str | None = None
    partialArgs: Any = None  # noqa: N815 - the name on the wire
    partial_args: Any = None


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
    promptTokenCount: Tokens = 0  # noqa: N815 - the name on the wire
    candidatesTokenCount: Tokens = 0  # noqa: N815 - the name on the wire
    totalTokenCount: Tokens = 0  # noqa: N815 - the name on the wire
    thoughtsTokenCount: Tokens = 0  # noqa: N815 - the name on the wire


class _Generated(Struct):
    candidates: list[_Candidate]
    modelVersion: str | None = None  # noqa: N815 - the name on the wire
    usageMetadata: _GeminiUsage | None = None  # noqa: N815 - the name on the wire
    error: Any = None


_decode_generated: Final = decoder_of(_Generated)


def read_clean(body: bytes, checks: Checks) -> Clean | None:
    """Return what a whole reply has, or `None` if it is not surely clean."""
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
    return found_clean(body, reply.modelVersion, usage, checks, echoes=echoes)


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
        if part.function_call or (call and (call.partialArgs or call.partial_args)):
            return False
    if candidate.content.role != "model":
        return False
    if checks.calls > before:
        return candidate.finishReason == "STOP" and checks.takes_words("".join(texts))
    return checks.takes_text("".join(texts))


def patch_reply(document: dict[str, Any], plan: Plan) -> Patched:
    """Put the calls that were read into the endpoint's own document."""
    reading = plan.reading
    candidate = as_fields(as_list(document.get("candidates"))[0])
    content = as_fields(candidate.get("content"))
    calls = list(plan.calls)
    patched: list[Any] = []
    from_text = is_from_text(reading)
    for part in as_list(content.get("parts")):
        fields = as_fields(part)
        given = fields.get("functionCall") or fields.get("function_call")
        if isinstance(given, dict):
            if calls and not from_text and (call := calls.pop(0)) is not None:
                patched.append(_gemini_call(fields, as_fields(given), call))
        elif not from_text or fields.get("thought") is True or "text" not in fields:
            patched.append(part)
    if from_text and reading.content.strip():
        patched.append({"text": reading.content})
    if plan.note:
        gap = "\n\n" if reading.content.strip() else ""
        patched.append({"text": f"{gap}{plan.note}"})
    patched += [_gemini_call({}, {}, call) for call in calls if call is not None]
    before, place = candidate.get("finishReason"), "/candidates/0/finishReason"
    receipts = note_finish(before, "STOP", place, has_calls=bool(plan.own))
    content = {"role": "model", **content, "parts": patched}
    candidate = {**candidate, "content": content, "finishReason": "STOP"}
    candidate.pop("finishMessage", None)
    return Patched({**document, "candidates": [candidate]}, receipts)


def _gemini_call(part: dict[str, Any], given: dict[str, Any], call: ToolCall) -> dict[str, Any]:
    rest = {key: value for key, value in part.items() if key != "function_call"}
    own: dict[str, Any] = {"name": wire_name(call.name), "args": call.arguments}
    if given.get("id"):
        own["id"] = call.id
    kept = {key: value for key, value in given.items() if key != "id"}
    return {**rest, "functionCall": {**kept, **own}}


_FOUND_PARTS: Final = ("codeExecutionResult", "toolResponse", "inlineData")
GROUNDS: Final = ("groundingMetadata", "urlContextMetadata")
"""What the texts of a reply rest on."""


def keep_found(document: dict[str, Any], earlier: dict[str, Any]) -> dict[str, Any]:
    """Return a reply that begins with what the provider's own tools found in an earlier one.

    What its texts rest on comes along with them; numbers of parts and sources are raised.
    """
    first, (candidate, *others) = _candidate_of(earlier), as_list(document.get("candidates"))
    parts = as_list(as_fields(first.get("content")).get("parts"))
    grounds = {key: as_fields(first.get(key)) for key in GROUNDS if first.get(key)}
    supports = as_list(as_fields(grounds.get(GROUNDS[0])).get("groundingSupports"))
    cited = [parts[place] for place in map(_place_of, supports) if place < len(parts)]

    def is_found(part: dict[str, Any]) -> bool:
        return part in cited or any(part.get(key) for key in _FOUND_PARTS)

    found = list_found(parts, is_found, _is_call)
    if not found and not grounds:
        return document
    content = as_fields(candidate.get("content"))
    content = {**content, "parts": [*found, *as_list(content.get("parts"))]}
    for key, own in grounds.items():
        grounds[key] = _join_grounds(own, as_fields(candidate.get(key)), len(found))
    return {**document, "candidates": [{**candidate, "content": content, **grounds}, *others]}


def _candidate_of(document: dict[str, Any]) -> dict[str, Any]:
    return as_fields(next(iter(as_list(document.get("candidates"))), None))


def _is_call(part: dict[str, Any]) -> bool:
    return bool(part.get("functionCall") or part.get("function_call"))


def _place_of(support: Any) -> int:
    return count_or_none(as_fields(as_fields(support).get("segment")).get("partIndex")) or 0


def _join_grounds(first: dict[str, Any], then: dict[str, Any], parts: int) -> dict[str, Any]:
    sources = len(as_list(first.get("groundingChunks")))
    joined = {**then, **first}
    for key in (key for key in joined if isinstance(joined[key], list)):
        added = as_list(then.get(key))
        if key == "groundingSupports":
            added = [_shift_support(as_fields(item), parts, sources) for item in added]
        joined[key] = [*as_list(first.get(key)), *added]
    return joined


def _shift_support(support: dict[str, Any], parts: int, sources: int) -> dict[str, Any]:
    segment = {**as_fields(support.get("segment")), "partIndex": _place_of(support) + parts}
    places = map(count_or_none, as_list(support.get("groundingChunkIndices")))
    chunks = [place + sources for place in places if place is not None]
    return {**support, "segment": segment, "groundingChunkIndices": chunks}


def move_thought(document: dict[str, Any], thought: str, text: str) -> dict[str, Any]:
    """Return a reply with the reasoning that was split off its text in its own place."""
    candidate = as_fields(as_list(document.get("candidates"))[0])
    content = as_fields(candidate.get("content"))
    parts = as_list(content.get("parts"))
    left = divide(texts_of(parts, _is_said), text)
    parts = rewrite_texts(parts, _is_said, left)
    if thought:
        parts = [{"text": thought, "thought": True}, *parts]
    return {**document, "candidates": [{**candidate, "content": {**content, "parts": parts}}]}


def _is_said(part: dict[str, Any]) -> bool:
    return bool(part.get("text")) and part.get("thought") is not True


def says_why(document: dict[str, Any], error: ProviderError) -> bool:
    """Tell whether a reply is one of the format, and says itself why it holds no answer."""
    return error.code == Code.PROMPT_BLOCKED


def read_usage(document: dict[str, Any]) -> Usage | None:
    """Return the tokens of a reply that holds no answer."""
    return parse_usage(document.get("usageMetadata"))
