"""Faults in the shape of a reply: calls, names, ids and content that are not where they belong."""

from collections.abc import Callable
from typing import Any, Final, cast

from msgspec.structs import replace

from surecall.errors import Code
from surecall.jsontext import encode_text, render_event

from .answers import Answer, with_body
from .drafts import Draft, Occasion
from .edits import edit_json_body
from .records import CHAT_ONLY, Fault

__all__ = ["ID_FAULTS", "MULTI_CALL_FAULTS", "SHAPE_FAULTS"]

_ONE_CALL: Final = {"request_overrides": {"parallel_tool_calls": False}}
_MANY: Final = 24


def _legacy(draft: Draft, _: Occasion) -> Draft:
    if not draft.calls:
        return draft
    rest = {name: value for name, value in draft.message.items() if name != "tool_calls"}
    message = {**rest, "function_call": draft.calls[0]["function"]}
    return replace(draft, message=message, finish_reason="function_call")


def _as_object(draft: Draft, _: Occasion) -> Draft:
    return draft.with_message(tool_calls=draft.calls[0]) if draft.calls else draft


def _without_type(draft: Draft, _: Occasion) -> Draft:
    return _on_calls(draft, lambda call: {"id": call["id"], "function": call["function"]})


def _flat(draft: Draft, _: Occasion) -> Draft:
    return _on_calls(draft, lambda call: {"id": call["id"], **call["function"]})


def _content_parts(draft: Draft, _: Occasion) -> Draft:
    return draft.with_message(content=[{"type": "text", "text": draft.text}])


def _beside(draft: Draft, _: Occasion) -> Draft:
    return draft.with_message(content="Let me do that for you.") if draft.calls else draft


def _finish(reason: str) -> Callable[[Draft, Occasion], Draft]:
    def edit(draft: Draft, _: Occasion) -> Draft:
        return replace(draft, finish_reason=reason) if draft.calls else draft

    return edit


def _nulls(draft: Draft, _: Occasion) -> Draft:
    extra: dict[str, Any] = {
        "refusal": None,
        "audio": None,
        "function_call": None,
        "annotations": [],
    }
    return draft.with_message(**extra, **({} if draft.calls else {"tool_calls": None}))


def _junk(draft: Draft, _: Occasion) -> Draft:
    return draft.with_message(tool_calls=[None, *draft.calls, "call"]) if draft.calls else draft


def _second_choice(answer: Answer, occasion: Occasion) -> Answer:
    if occasion.protocol.name == "gemini":
        return _second_candidate(answer)
    other = {
        "index": 1,
        "message": {"role": "assistant", "content": "Another answer."},
        "finish_reason": "stop",
    }
    return edit_json_body(answer, lambda body: _with_item(body, "choices", other))


def _second_candidate(answer: Answer) -> Answer:
    content = {"role": "model", "parts": [{"text": "Another answer."}]}
    other = {"index": 1, "content": content, "finishReason": "STOP"}
    if answer.framing == "chunked":
        event = render_event(encode_text({"candidates": [other]}))
        return replace(answer, pieces=(*answer.pieces[:1], event, *answer.pieces[1:]))
    return edit_json_body(answer, lambda body: _with_item(body, "candidates", other))


def _with_item(body: dict[str, Any], key: str, item: dict[str, Any]) -> dict[str, Any]:
    items = body.get(key)
    return {**body, key: [*cast("list[Any]", items), item]} if isinstance(items, list) else body


def _second_choice_chunks(chunks: list[Any], _: Occasion) -> list[Any]:
    delta = {"role": "assistant", "content": "Another answer."}
    other = {"choices": [{"index": 1, "delta": delta, "finish_reason": "stop"}]}
    return [*chunks[:1], {**chunks[0], **other}, *chunks[1:]]


def _content_type(answer: Answer, _: Occasion) -> Answer:
    return with_body(answer, answer.body, content_type="text/plain")


def _renamed(rename: Callable[[str], str]) -> Callable[[Draft, Occasion], Draft]:
    def edit(draft: Draft, _: Occasion) -> Draft:
        return _on_calls(draft, lambda call: _with_name(call, rename(call["function"]["name"])))

    return edit


def _with_name(call: dict[str, Any], name: str) -> dict[str, Any]:
    return {**call, "function": {**call["function"], "name": name}}


def _on_calls(draft: Draft, edit: Callable[[dict[str, Any]], Any]) -> Draft:
    if not draft.calls:
        return draft
    return draft.with_message(tool_calls=[edit(call) for call in draft.calls])


def _with_ids(make: Callable[[int], Any]) -> Callable[[Draft, Occasion], Draft]:
    def edit(draft: Draft, _: Occasion) -> Draft:
        calls = [{**call, "id": make(index)} for index, call in enumerate(draft.calls)]
        return draft.with_message(tool_calls=calls) if calls else draft

    return edit


def _without_ids(draft: Draft, _: Occasion) -> Draft:
    return _on_calls(draft, lambda call: {key: call[key] for key in call if key != "id"})


def _companion(draft: Draft, occasion: Occasion) -> dict[str, Any] | None:
    """Return a second call, of another tool that needs no arguments, if there is one."""
    used = {call["function"]["name"] for call in draft.calls}
    for tool in occasion.request.tools:
        if tool.name not in used and not tool.parameters.get("required"):
            function = {"name": tool.name, "arguments": "{}"}
            return {"id": "call_companion", "type": "function", "function": function}
    return None


def _same_ids(draft: Draft, occasion: Occasion) -> Draft:
    other = _companion(draft, occasion) if draft.calls else None
    if other is None:
        return draft
    return draft.with_message(tool_calls=[*draft.calls, {**other, "id": draft.calls[0]["id"]}])


def _extra_call(draft: Draft, occasion: Occasion) -> Draft:
    other = _companion(draft, occasion) if draft.calls else None
    return draft if other is None else draft.with_message(tool_calls=[*draft.calls, other])


def _copied(count: int) -> Callable[[Draft, Occasion], Draft]:
    def edit(draft: Draft, _: Occasion) -> Draft:
        if not draft.calls:
            return draft
        call = draft.calls[0]
        copies = [{**call, "id": f"{call['id']}_{number}"} for number in range(count)]
        return draft.with_message(tool_calls=copies)

    return edit


SHAPE_FAULTS: Final = (
    Fault(
        name="function_call_field",
        group="shape",
        does="Puts the call into the older field `function_call`.",
        seen="vibe_tavern study: shapes that differ between providers",
        protocols=CHAT_ONLY,
        draft=_legacy,
    ),
    Fault(
        name="tool_calls_object",
        group="shape",
        does="Sends `tool_calls` as one object in place of a list.",
        seen="vibe_tavern study: shapes that differ between providers",
        protocols=CHAT_ONLY,
        draft=_as_object,
    ),
    Fault(
        name="call_without_type",
        group="shape",
        does="Leaves `type` out of every call.",
        seen="OpenAI-compatible servers that copy only what they need",
        protocols=CHAT_ONLY,
        draft=_without_type,
    ),
    Fault(
        name="call_flat",
        group="shape",
        does="Puts name and arguments beside the id, without `function` around them.",
        seen="OpenAI-compatible servers in front of other formats",
        protocols=CHAT_ONLY,
        draft=_flat,
    ),
    Fault(
        name="call_list_with_junk",
        group="shape",
        does="Puts a null and a text between the calls.",
        seen="servers that collect calls while they stream",
        protocols=CHAT_ONLY,
        draft=_junk,
    ),
    Fault(
        name="content_as_parts",
        group="shape",
        does="Sends the content as a list of parts in place of text.",
        seen="vibe_tavern study: content that is a list of parts",
        protocols=CHAT_ONLY,
        draft=_content_parts,
    ),
    Fault(
        name="content_beside_calls",
        group="shape",
        does="Says something for people beside the call.",
        seen="most models, sometimes",
        draft=_beside,
    ),
    Fault(
        name="finish_stop_with_calls",
        group="shape",
        does="Says `finish_reason: stop` though there are calls.",
        seen="OpenAI-compatible servers, often",
        protocols=("chat_completions", "messages"),
        draft=_finish("stop"),
    ),
    Fault(
        name="finish_unknown",
        group="shape",
        does="Says a `finish_reason` that no document names.",
        seen="OpenAI-compatible servers in front of other formats",
        protocols=("chat_completions", "messages", "gemini"),
        draft=_finish("COMPLETE"),
    ),
    Fault(
        name="null_fields",
        group="shape",
        does="Fills the message with fields that are null.",
        seen="the OpenAI API itself",
        protocols=CHAT_ONLY,
        draft=_nulls,
    ),
    Fault(
        name="second_choice",
        group="shape",
        does="Sends a second choice with another answer.",
        seen="servers with a default `n` above one",
        protocols=("chat_completions", "gemini"),
        chunks=_second_choice_chunks,
        wire=_second_choice,
    ),
    Fault(
        name="content_type_plain",
        group="shape",
        does="Labels the JSON body as plain text.",
        seen="proxies, login pages and servers under load",
        reach="whole",
        wire=_content_type,
    ),
    Fault(
        name="name_with_prefix",
        group="shape",
        does="Writes `functions.` before the name of the tool.",
        seen="models trained on the harmony and Kimi formats",
        draft=_renamed(lambda name: f"functions.{name}"),
    ),
    Fault(
        name="name_in_capitals",
        group="shape",
        does="Writes the name of the tool in capitals.",
        seen="small models",
        draft=_renamed(str.upper),
    ),
    Fault(
        name="name_padded",
        group="shape",
        does="Puts blanks around the name of the tool.",
        seen="vibe_tavern study: names are stripped before they are looked up",
        draft=_renamed(lambda name: f" {name}\n"),
    ),
    Fault(
        name="name_unknown",
        group="shape",
        does="Calls a tool that was never offered.",
        seen="all models, sometimes",
        repairable=False,
        told=Code.TOOL_NOT_ALLOWED,
        code=Code.REPEATED_CALL,
        draft=_renamed(lambda name: f"browser_open_{len(name)}"),
    ),
    Fault(
        name="name_missing",
        group="shape",
        does="Sends a call without a name.",
        seen="OpenAI-compatible servers; SDKs pass it on as it is",
        repairable=False,
        told=Code.TOOL_NOT_ALLOWED,
        code=Code.REPEATED_CALL,
        draft=_renamed(lambda _: ""),
    ),
)

ID_FAULTS: Final = (
    Fault(
        name="id_missing",
        group="ids",
        does="Leaves the id out of every call.",
        seen="OpenAI-compatible servers; SDKs pass it on as it is",
        draft=_without_ids,
    ),
    Fault(
        name="id_empty",
        group="ids",
        does="Sends an empty id.",
        seen="OpenAI-compatible servers; SDKs pass it on as it is",
        draft=_with_ids(lambda _: ""),
    ),
    Fault(
        name="id_number",
        group="ids",
        does="Sends the id as a number.",
        seen="OpenAI-compatible servers; SDKs pass it on as it is",
        draft=_with_ids(lambda index: 7 + index),
    ),
    Fault(
        name="id_reused",
        group="ids",
        does="Uses the same id again in every turn.",
        seen="servers that count calls anew in each reply",
        draft=_with_ids(lambda index: f"call_{index}"),
    ),
    Fault(
        name="id_repeated",
        group="ids",
        does="Gives two calls of one reply the same id.",
        seen="OpenAI-compatible servers; SDKs pass it on as it is",
        draft=_same_ids,
    ),
)

MULTI_CALL_FAULTS: Final = (
    Fault(
        name="extra_call",
        group="multi_call",
        does="Adds a call of another tool, though one at a time was asked for.",
        seen="vibe_tavern study: several calls in one reply even when told not to",
        needs="parallel_tool_calls = false",
        options=_ONE_CALL,
        draft=_extra_call,
    ),
    Fault(
        name="call_twice",
        group="multi_call",
        does="Makes the same call twice in one reply.",
        seen="vibe_tavern study: scenario duplicate_tool_calls",
        needs="parallel_tool_calls = false",
        options=_ONE_CALL,
        draft=_copied(2),
    ),
    Fault(
        name="call_flood",
        group="multi_call",
        does=f"Makes the same call {_MANY} times in one reply.",
        seen="small models that repeat themselves",
        needs="parallel_tool_calls = false",
        options=_ONE_CALL,
        draft=_copied(_MANY),
    ),
)
