"""The document for the client: the endpoint's own with its calls put right, or a new one.

Unknown fields stay where they are. What was put together is checked once more as if it had just
arrived, so that nothing leaves that would not be called clean.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.json_values import as_fields, as_list
from surecall.base.records import RawCall, Reading, Receipt, Reply, ToolCall
from surecall.text import decode_plain, encode_text
from surecall.wire.chat_completions.replies import is_function
from surecall.wire.gemini.names import wire_name
from surecall.wire.messages.blocks import wire_id
from surecall.wire.server import new_id

from .refusals import Settled
from .request import NO_TOOLS, CompiledTools

FINISH_RULE: Final = "set_finish_reason"
TYPE_RULE: Final = "add_call_type"


class Patched(Struct, frozen=True):
    """A document for the client, and what else had to be changed in it."""

    document: dict[str, Any]
    receipts: tuple[Receipt, ...] = ()


class _Plan(NamedTuple):
    """What the calls and the text of a document become."""

    calls: Sequence[ToolCall | None]
    """In the place of each call: what a client gets, if anything."""
    reading: Reading
    note: str
    tools: CompiledTools

    @property
    def own(self) -> list[ToolCall]:
        """The calls that a client gets."""
        return [call for call in self.calls if call is not None]

    @property
    def text(self) -> str:
        """The text that was read, and the note behind it."""
        return join_note(self.reading.content, self.note)


def patch_reply(
    document: dict[str, Any],
    protocol: str,
    reading: Reading,
    tools: CompiledTools = NO_TOOLS,
    settled: Settled | None = None,
) -> Patched:
    """Put the calls that were read into the endpoint's own document.

    Args:
        document: The reply, in the client's format, with one choice.
        protocol: The name of the format.
        reading: The reply as it was read.
        tools: The tools of the request; calls of those that are not functions stay as they are.
        settled: What is delivered of it, where that is not all that was read.
    """
    calls, note = (reading.calls, "") if settled is None else (settled.calls, settled.note)
    return _PATCHES[protocol](document, _Plan(calls, reading, note, tools))


def join_note(text: str, note: str) -> str:
    """Return text with the lines about calls that are not delivered behind it."""
    return f"{text.rstrip()}\n\n{note}" if note and text.strip() else note or text


def settle_text(document: dict[str, Any], reading: Reading) -> dict[str, Any] | None:
    """Return a chat completion whose content is text, where it came in parts; else nothing."""
    choices = as_list(document.get("choices"))
    choice = as_fields(choices[0]) if len(choices) == 1 else {}
    message = as_fields(choice.get("message"))
    if not isinstance(message.get("content"), list):
        return None
    settled = {**message, "content": reading.content or None}
    if reading.reasoning and not message.get("reasoning_content"):
        settled["reasoning_content"] = reading.reasoning
    return {**document, "choices": [{**choice, "message": settled}]}


def fit_call_ids(reply: Reply) -> Reply:
    """Return a reply whose calls have the ids that a client of messages gets to see.

    They are compared with those of the conversation: a client must not see one of them twice.
    """
    calls = (
        replace(call, id=wire_id(call.id)) if isinstance(call.id, str) and call.id.strip() else call
        for call in reply.calls
    )
    return replace(reply, calls=tuple(calls))


def reply_with(reply: Reply, reading: Reading, settled: Settled | None = None) -> Reply:
    """Return a reply with the calls that were read in it, or with what is delivered of these."""
    calls, finish, content = reading.calls, reply.finish_reason, reading.content
    if settled is not None:
        calls, finish = settled.delivered, "stop"
        content = join_note(content, settled.note)
    return replace(
        reply,
        calls=tuple(
            RawCall(call.id, call.name, encode_text(call.arguments), "tool_calls", call.extra)
            for call in calls
        ),
        content=content or None,
        reasoning=reading.reasoning,
        finish_reason="tool_calls" if calls else finish,
        is_refusal=reply.is_refusal and not calls,
    )


def with_function_call(document: dict[str, Any]) -> dict[str, Any]:
    """Return a chat completion whose call is in the older field, if it has one."""
    choice = as_fields(as_list(document.get("choices"))[0])
    message = as_fields(choice.get("message"))
    calls = as_list(message.get("tool_calls"))
    if not calls:
        return document
    kept = {key: value for key, value in message.items() if key != "tool_calls"}
    kept["function_call"] = as_fields(calls[0])["function"]
    finish = choice.get("finish_reason")
    finish = "function_call" if finish == "tool_calls" else finish
    return {**document, "choices": [{**choice, "message": kept, "finish_reason": finish}]}


def is_from_text(reading: Reading) -> bool:
    """Tell whether the calls were written as text."""
    return bool(reading.calls) and reading.calls[0].format not in ("tool_calls", "function_call")


def _arguments_text(call: ToolCall) -> str:
    """Return the arguments as text: the model's own where these are what will be used."""
    if isinstance(call.raw, str) and decode_plain(call.raw) == call.arguments:
        return call.raw
    return encode_text(call.arguments)


def _note_finish(before: Any, after: str, place: str, *, has_calls: bool) -> tuple[Receipt, ...]:
    if before == after:
        return ()
    why = f"the reply has {'calls' if has_calls else 'no calls'}, and clients look for them by this"
    return (Receipt(FINISH_RULE, place, before, after, why=why),)


def says_calls(reply: Reply) -> bool:
    """Tell whether a reply says that it ended with calls."""
    return reply.finish_reason in ("tool_calls", "function_call")


def note_stop(before: Any) -> Receipt:
    """Return the receipt for a reply that said that it ended with calls, and has none."""
    return _note_finish(before, "stop", "/finish_reason", has_calls=False)[0]


# Chat completions


def _patch_chat(document: dict[str, Any], plan: _Plan) -> Patched:
    reading = plan.reading
    choice = as_fields(as_list(document.get("choices"))[0])
    message = dict(as_fields(choice.get("message")))
    receipts: tuple[Receipt, ...] = ()
    if plan.tools.is_legacy:
        field = "function_call"
        message.pop("tool_calls", None)
        call = next(iter(plan.own), None)
        calls: Any = call and {"name": call.name, "arguments": _arguments_text(call)}
    else:
        field = "tool_calls"
        calls = _chat_calls(message, plan)
        receipts = _note_types(message, calls)
        message.pop("function_call", None)
    message[field] = calls
    if not calls:
        del message[field]
    if is_from_text(reading):
        message["content"] = reading.content or None
        if reading.reasoning and not message.get("reasoning_content"):
            message["reasoning_content"] = reading.reasoning
    if not isinstance(message.get("content"), str | None):
        message["content"] = reading.content or None
    message.setdefault("content", None)
    if plan.note:
        message["content"] = join_note(message["content"] or "", plan.note)
    finish, place = field if calls else "stop", "/choices/0/finish_reason"
    receipts += _note_finish(choice.get("finish_reason"), finish, place, has_calls=bool(calls))
    patched = {**choice, "message": message, "finish_reason": finish}
    return Patched({**document, "choices": [patched]}, receipts)


def _note_types(message: dict[str, Any], calls: list[Any]) -> tuple[Receipt, ...]:
    """Return a receipt for each call that came without its type."""
    given = as_list(message.get("tool_calls"))
    if len(given) != len(calls):
        return ()
    return tuple(
        note_type(number) for number, entry in enumerate(given) if not as_fields(entry).get("type")
    )


def note_type(number: int) -> Receipt:
    """Return the receipt for a call that came without its type."""
    why = "some clients take no call without it"
    return Receipt(TYPE_RULE, f"/tool_calls/{number}/type", None, "function", why=why)


def _chat_calls(message: dict[str, Any], plan: _Plan) -> list[Any]:
    given: Any = message.get("tool_calls")
    listed: list[Any] = [given] if isinstance(given, dict) else as_list(given)
    entries = [as_fields(entry) for entry in listed if isinstance(entry, dict)]
    own = [entry for entry in entries if is_function(entry)]
    if is_from_text(plan.reading) or len(own) < len(plan.calls):
        calls = [_chat_call({}, call) for call in plan.own]
        return calls + [entry for entry in entries if not is_function(entry)]
    left = list(plan.calls)
    patched: list[Any] = []
    for entry in entries:
        if not is_function(entry):
            patched.append(entry)
        elif left and (call := left.pop(0)) is not None:
            patched.append(_chat_call(entry, call))
    return patched


def _chat_call(entry: dict[str, Any], call: ToolCall) -> dict[str, Any]:
    function = {
        **as_fields(entry.get("function")),
        "name": call.name,
        "arguments": _arguments_text(call),
    }
    rest = {key: value for key, value in entry.items() if key not in ("name", "arguments")}
    return {**rest, "id": call.id, "type": "function", "function": function}


# Messages


def _patch_messages(document: dict[str, Any], plan: _Plan) -> Patched:
    reading, tools = plan.reading, plan.tools
    content = document.get("content")
    blocks = as_list(content) if isinstance(content, list) else []
    calls = list(plan.calls)
    patched: list[Any] = []
    if is_from_text(reading) or not isinstance(content, list):
        kept = [block for block in blocks if as_fields(block).get("type") != "text"]
        patched = [block for block in kept if not _is_own(as_fields(block), "tool_use", tools)]
        if plan.text.strip():
            patched.append({"type": "text", "text": plan.text})
        patched += [_messages_call({}, call) for call in plan.own]
    else:
        for block in blocks:
            fields = as_fields(block)
            if not _is_own(fields, "tool_use", tools):
                patched.append(block)
            elif calls and (call := calls.pop(0)) is not None:
                patched.append(_messages_call(fields, call))
        if plan.note:
            patched.append({"type": "text", "text": plan.note})
    has_calls = any(as_fields(block).get("type") == "tool_use" for block in patched)
    reason = "tool_use" if has_calls else "end_turn"
    before = document.get("stop_reason")
    receipts = _note_finish(before, reason, "/stop_reason", has_calls=has_calls)
    return Patched({**document, "content": patched, "stop_reason": reason}, receipts)


def _is_own(item: dict[str, Any], kind: str, tools: CompiledTools) -> bool:
    """Tell whether an item is the call of a function."""
    return item.get("type") == kind and not tools.is_other(item.get("name"), item)


def _messages_call(block: dict[str, Any], call: ToolCall) -> dict[str, Any]:
    own = {"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}
    return {**block, **own}


# Responses


def _patch_responses(document: dict[str, Any], plan: _Plan) -> Patched:
    reading, tools = plan.reading, plan.tools
    calls = list(plan.calls)
    patched: list[Any] = []
    from_text = is_from_text(reading)
    has_text = False
    for item in as_list(document.get("output")):
        fields = as_fields(item)
        kind = fields.get("type")
        if _is_own(fields, "function_call", tools):
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
    receipts = _note_finish(before, "completed", "/status", has_calls=has_calls)
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
        "arguments": _arguments_text(call),
        "status": "completed",
    }
    return {"id": item.get("id") or new_id("fc_"), **item, **own}


# Gemini


def _patch_gemini(document: dict[str, Any], plan: _Plan) -> Patched:
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
    receipts = _note_finish(before, "STOP", place, has_calls=bool(plan.own))
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


_PATCHES: Final[Mapping[str, Callable[[dict[str, Any], _Plan], Patched]]] = {
    "chat_completions": _patch_chat,
    "gemini": _patch_gemini,
    "messages": _patch_messages,
    "responses": _patch_responses,
}
