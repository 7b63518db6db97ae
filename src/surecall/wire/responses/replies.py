"""Whole replies: from bytes to the output, and from the items of the output to a `Reply`."""

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from surecall.base.errors import Code, ProviderError
from surecall.base.json_values import as_fields, as_list, count_or_none, other_fields, text_or_none
from surecall.base.records import Defect, RawCall, Reply, ToolCall, Usage
from surecall.base.redaction import excerpt
from surecall.text import decode, decoder_of
from surecall.wire.errors import parse_error_object
from surecall.wire.records import RawReply
from surecall.wire.replies import (
    Found,
    check_role,
    check_says_something,
    count_detail,
    decode_object,
    make_raw,
    make_usage,
    note_arguments,
    note_foreign_calls,
    refuse_reply,
    repeated_keys,
    start_of,
)
from surecall.wire.rewriting import (
    Checks,
    Clean,
    Patched,
    Plan,
    Tokens,
    arguments_text,
    divide,
    found_clean,
    is_from_text,
    is_own,
    list_found,
    note_finish,
    rewrite_texts,
    texts_of,
)
from surecall.wire.server import PAUSED_FINISH, new_id, show

from .content import OWN_REASONING_ID, mark_places, reasoning_parts

REASONING_BREAK: Final = "\n\n"
"""What is put between two pieces of reasoning, which are paragraphs of their own."""

_CALL_FIELDS: Final = frozenset({"arguments", "call_id", "id", "name", "status", "type"})
_TEXT_PARTS: Final = ("output_text", "refusal", "text")
_REASONS: Final = {"max_output_tokens": "length"}
"""The reason of an incomplete response, as a finish reason; any other stays."""
INCOMPLETE_REASONS: Final = {finish: reason for reason, finish in _REASONS.items()}
COMPLETE_FINISHES: Final = frozenset({"function_call", PAUSED_FINISH, "stop", "tool_calls"})
"""Finish reasons of a response that is complete, as far as the format has a word for it."""


def read_finish(message: dict[str, Any]) -> str | None:
    """Return why the model stopped, in the words of the records.

    An output that is not complete without saying why counts as cut, and so does one with a call
    that is not complete. Any other status, such as `cancelled`, stands for itself.
    """
    status = message.get("status")
    if status == "incomplete":
        reason = as_fields(message.get("incomplete_details")).get("reason")
        if not isinstance(reason, str) or not reason:
            return "length"
        return _REASONS.get(reason, reason.lower())
    if status != "completed":
        return status.lower() if isinstance(status, str) and status else None
    items = [as_fields(item) for item in as_list(message.get("output"))]
    calls = [item for item in items if item.get("type") == "function_call"]
    if any(call.get("status") == "incomplete" for call in calls):
        return "length"
    return "tool_calls" if calls else "stop"


class Output(Found):
    """The items of one output, understood, whatever shape they have."""

    def __init__(self, message: dict[str, Any]) -> None:
        super().__init__()
        self._items: list[dict[str, Any]] = []
        self._refusals: list[str] = []
        self._phase: str | None = None
        self._ignored: dict[str, int] = {}
        items = message.get("output")
        if isinstance(items, list):
            for position, item in enumerate(as_list(items)):
                self._read(item, f"/output/{position}")
        elif items is not None:
            note = f"The output is of type {type(items).__name__}, not a list."
            self.note(Code.CONTENT_NOT_USABLE, note, "/output")
        for name, count in self._ignored.items():
            note = f"{count} items of type {name!r} were not used."
            self.note(Code.PART_NOT_KNOWN, note, "/output")
        text = "".join(self.texts) if self.texts else None
        refusal = "".join(self._refusals)
        self.is_refusal = bool(refusal) and not text
        self.text = text or refusal or text
        """The text, or the refusal that came in its place."""
        if reasoning := mark_places(self._items, has_text=bool(self.text)):
            self.extra["reasoning_items"] = reasoning
        if self._phase:
            self.extra["phase"] = self._phase

    @property
    def words(self) -> dict[str, Any]:
        """What the model said, by kind, to compare two tellings of it."""
        calls = [(call.id, call.name, call.arguments) for call in self.calls]
        thoughts = REASONING_BREAK.join(self.thoughts)
        return {"text": self.text or "", "reasoning": thoughts, "calls": calls}

    def _read(self, item: Any, place: str) -> None:
        if not isinstance(item, dict):
            note = f"A value of type {type(item).__name__} is in the place of an item."
            self.note(Code.CALL_ENTRY_DROPPED, note, place)
            return
        fields = as_fields(item)
        self._items.append(fields)
        kind = fields.get("type")
        if kind == "message":
            self._read_message(fields, place)
        elif kind == "reasoning":
            self.thoughts += reasoning_parts(fields)
        elif kind == "function_call":
            self._read_call(fields, place)
        elif isinstance(kind, str) and kind:
            name = excerpt(kind, 60)
            self._ignored[name] = self._ignored.get(name, 0) + 1
        else:
            self.note(Code.CONTENT_NOT_USABLE, "An item has no type.", place)

    def _read_message(self, item: dict[str, Any], place: str) -> None:
        phase = item.get("phase")
        if isinstance(phase, str):
            self._phase = phase
        self.defects += note_foreign_calls(item, place)
        content = item.get("content")
        if isinstance(content, str):
            self.texts.append(content)
            note = "The content is plain text, not a list of parts."
            self.note(Code.CONTENT_AS_TEXT, note, f"{place}/content")
            return
        if content is not None and not isinstance(content, list):
            note = f"The content is of type {type(content).__name__}, not a list of parts."
            self.note(Code.CONTENT_NOT_USABLE, note, f"{place}/content")
        for position, part in enumerate(as_list(content)):
            fields = as_fields(part)
            text, refusal = fields.get("text"), fields.get("refusal")
            if isinstance(text, str):
                self.texts.append(text)
            elif isinstance(refusal, str):
                self._refusals.append(refusal)
            else:
                kind = fields.get("type")
                is_known = not isinstance(kind, str) or kind in _TEXT_PARTS
                code = Code.CONTENT_NOT_USABLE if is_known else Code.PART_NOT_KNOWN
                note = "A part of the content has no text."
                self.note(code, note, f"{place}/content/{position}")

    def _read_call(self, item: dict[str, Any], place: str) -> None:
        arguments = item.get("arguments")
        extra = other_fields(item, _CALL_FIELDS)
        call = RawCall(item.get("call_id"), item.get("name"), arguments, "tool_calls", extra)
        self.calls.append(call)
        note_arguments(arguments, place, self.defects)


_INSIDE_ARGUMENTS: Final = re.compile("/arguments/")
_ENDED: Final = ("completed", "incomplete", None)


def parse_body(body: bytes, headers: Mapping[str, str] | None = None) -> RawReply:
    """Find the output in a whole body.

    Raises:
        ProviderError: The body is not a reply; the code says in which way.
    """
    headers = headers or {}
    response = decode_object(body, headers)
    if response.get("error") or response.get("status") == "failed":
        raise parse_error_object({"error": response.get("error")}, 200, headers)
    if response.get("object") == "error":
        raise parse_error_object(response, 200, headers)
    output, status = response.get("output"), response.get("status")
    if output is None and status == "incomplete":
        output = []
    if not isinstance(output, list):
        message = "The provider's answer has no list of output items."
        raise refuse_reply(Code.UPSTREAM_NOT_A_REPLY, message, start_of(body))
    if status not in _ENDED:
        message = f"The provider answered with a response that has the status {show(status)}."
        raise refuse_reply(Code.UPSTREAM_NOT_A_REPLY, message, start_of(body))
    items = as_list(output)
    check_roles(items)
    return parse_response(response, items, find_repeated_keys(items, body))


def check_roles(output: list[Any]) -> None:
    """Refuse an output that the model did not write."""
    for item in output:
        check_role(as_fields(item).get("role"))


def parse_response(
    response: dict[str, Any], output: list[Any], defects: tuple[Defect, ...] = ()
) -> RawReply:
    """Return the reply that a response object and its output make.

    Raises:
        ProviderReplyError: `UPSTREAM_NOT_A_REPLY`, for an output that says nothing and lacks the
            marks of a response that ended so.
    """
    message: dict[str, Any] = {"output": output}
    for key in ("status", "incomplete_details"):
        if response.get(key) is not None:
            message[key] = response[key]
    finish, usage = read_finish(message), parse_usage(response.get("usage"))
    defects = (*defects, *note_foreign_calls(response, ""))
    raw = make_raw(message, finish, usage, response, defects)
    is_marked = response.get("object") == "response" and raw.finish_reason is not None
    marks = "an object of type response or a status"
    check_says_something(parse_message(raw), is_marked=is_marked, marks=marks)
    return raw


def parse_message(raw: RawReply) -> Reply:
    """Understand the output; whatever shape it has, nothing is raised."""
    output = Output(raw.message)
    finish = raw.finish_reason or read_finish(raw.message)
    return output.make_reply(raw, output.text, finish, REASONING_BREAK)


def parse_usage(usage: Any) -> Usage | None:
    """Read token counts; what is not a count is left out."""
    counts = as_fields(usage)
    return make_usage(
        count_or_none(counts.get("input_tokens")),
        count_or_none(counts.get("output_tokens")),
        count_or_none(counts.get("total_tokens")),
        reasoning=count_detail(counts, "output_tokens_details", "reasoning_tokens"),
        cached=count_detail(counts, "input_tokens_details", "cached_tokens"),
        cache_writes=count_detail(counts, "input_tokens_details", "cache_write_tokens"),
    )


def find_repeated_keys(items: list[Any], text: bytes | str) -> tuple[Defect, ...]:
    """Return a finding when a key inside arguments that are an object had differing values."""
    if not any(isinstance(as_fields(item).get("arguments"), dict) for item in items):
        return ()
    return repeated_keys(text, _INSIDE_ARGUMENTS, "/output")


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
    input_tokens: Tokens = 0
    output_tokens: Tokens = 0
    total_tokens: Tokens = 0


class _Response(Struct):
    output: list[_Item]
    status: str
    model: str | None = None
    usage: _ResponsesUsage | None = None
    error: Any = None


_decode_response: Final = decoder_of(_Response)
_ITEM_ENDS: Final = ("completed", None)


def read_clean(body: bytes, checks: Checks) -> Clean | None:
    """Return what a whole reply has, or `None` if it is not surely clean."""
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
    return found_clean(body, reply.model, usage, checks)


def patch_reply(document: dict[str, Any], plan: Plan) -> Patched:
    """Put the calls that were read into the endpoint's own document."""
    reading = plan.reading
    calls = list(plan.calls)
    patched: list[Any] = []
    from_text = is_from_text(reading)
    has_text = False
    for item in as_list(document.get("output")):
        fields = as_fields(item)
        kind = fields.get("type")
        if is_own(fields, "function_call", plan):
            if calls and not from_text and (call := calls.pop(0)) is not None:
                patched.append(_responses_call(fields, call))
        elif kind == "message" and from_text:
            if reading.content.strip() and not has_text:
                has_text = True
                part: dict[str, Any] = {
                    "type": "output_text",
                    "text": reading.content,
                    "annotations": [],
                }
                patched.append({**fields, "content": [part]})
        elif isinstance(item, dict):
            patched.append(item)
    if plan.note:
        patched.append(_responses_text(plan.note))
    patched += [_responses_call({}, call) for call in calls if call is not None]
    before, has_calls = document.get("status"), bool(plan.own)
    receipts = note_finish(before, "completed", "/status", has_calls=has_calls)
    ended: dict[str, Any] = {"output": patched, "status": "completed"}
    if "incomplete_details" in document:
        ended["incomplete_details"] = None
    return Patched({**document, **ended}, receipts)


def _responses_text(text: str) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
    item = {"type": "message", "id": new_id("msg_"), "role": "assistant", "status": "completed"}
    return {**item, "content": [part]}


def _responses_call(item: dict[str, Any], call: ToolCall) -> dict[str, Any]:
    own = {
        "type": "function_call",
        "call_id": call.id,
        "name": call.name,
        "arguments": arguments_text(call),
        "status": "completed",
    }
    return {"id": item.get("id") or new_id("fc_"), **item, **own}


_FOUND: Final = frozenset(
    {
        "code_interpreter_call",
        "file_search_call",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools",
        "web_search_call",
    }
)
"""Items of the provider's own tools, with their results."""


def keep_found(document: dict[str, Any], earlier: dict[str, Any]) -> dict[str, Any]:
    """Return a reply that begins with what the provider's own tools found in an earlier one.

    Reasoning and texts before that come along: an item is refused later without its reasoning.
    """
    found = list_found(earlier.get("output"), _is_found, _is_client_call)
    return {**document, "output": [*found, *as_list(document.get("output"))]} if found else document


def _is_found(item: dict[str, Any]) -> bool:
    parts = map(as_fields, as_list(item.get("content")))
    return str(item.get("type")) in _FOUND or any(part.get("annotations") for part in parts)


def _is_client_call(item: dict[str, Any]) -> bool:
    return str(item.get("type")) not in _FOUND | {"message", "reasoning"}


def move_thought(document: dict[str, Any], thought: str, text: str) -> dict[str, Any]:
    """Return a reply with the reasoning that was split off its text in its own place."""
    items = [as_fields(item) for item in as_list(document.get("output"))]
    said = [part for item in items if _is_message(item) for part in as_list(item.get("content"))]
    left = divide(texts_of(said, _is_text_part), text)
    output: list[Any] = []
    if thought:
        content = [{"type": "reasoning_text", "text": thought}]
        item_id = new_id(OWN_REASONING_ID)
        output.append({"type": "reasoning", "id": item_id, "summary": [], "content": content})
    for item in items:
        if _is_message(item):
            parts = rewrite_texts(as_list(item.get("content")), _is_text_part, left)
            if not parts:
                continue
            item = {**item, "content": parts}
        output.append(item)
    return {**document, "output": output}


def _is_message(item: dict[str, Any]) -> bool:
    return item.get("type") == "message"


def _is_text_part(part: dict[str, Any]) -> bool:
    return part.get("type") in ("output_text", "text")


_WAITING: Final = frozenset({"queued", "in_progress", "cancelled"})


def says_why(document: dict[str, Any], error: ProviderError) -> bool:
    """Tell whether a reply is one of the format, and says itself why it holds no answer."""
    return text_or_none(document.get("id")) is not None and document.get("status") == "failed"


def is_waiting(document: dict[str, Any]) -> bool:
    """Tell whether a reply only names a response in the background, which has no output yet."""
    return text_or_none(document.get("id")) is not None and document.get("status") in _WAITING


def goes_on(body: bytes) -> bool:
    """Tell whether a request asks for a response that goes on without the client."""
    if b'"background"' not in body:
        return False
    return as_fields(decode(body, surrogates="replace")).get("background") is True


def read_usage(document: dict[str, Any]) -> Usage | None:
    """Return the tokens of a reply that holds no answer."""
    return parse_usage(document.get("usage"))
