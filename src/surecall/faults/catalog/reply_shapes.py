"""Faults in the shape of a reply: calls, names, ids and content that are not where they belong."""

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from surecall.base.errors import Code
from surecall.faults.answers import Answer, edit_json_body, with_body
from surecall.faults.replies import Occasion, PlannedReply
from surecall.text import encode_text, render_event

from .fault import CHAT_ONLY, ONE_CALL, FaultTable, ReplyEdit, edit_calls

_MANY: Final = 24
_STUDY: Final = "vibe_tavern study: shapes that differ between providers"
_TRANSLATED: Final = "OpenAI-compatible servers in front of other formats"
_PASSED_ON: Final = "OpenAI-compatible servers; SDKs pass it on as it is"
_OTHER_ANSWER: Final = "Another answer."

SHAPE: Final = FaultTable("shape")
IDS: Final = FaultTable("ids", seen=_PASSED_ON)
MULTI_CALL: Final = FaultTable("multi_call", **ONE_CALL)


@SHAPE.on_calls(seen=_STUDY, protocols=CHAT_ONLY)
def function_call_field(reply: PlannedReply, _: Occasion) -> PlannedReply:
    """Puts the call into the older field `function_call`."""
    rest = {name: value for name, value in reply.message.items() if name != "tool_calls"}
    message = {**rest, "function_call": reply.calls[0]["function"]}
    return replace(reply, message=message, finish_reason="function_call")


@SHAPE.on_calls(seen=_STUDY, protocols=CHAT_ONLY)
def tool_calls_object(reply: PlannedReply, _: Occasion) -> PlannedReply:
    """Sends `tool_calls` as one object instead of a list."""
    return reply.with_message(tool_calls=reply.calls[0])


@SHAPE.on_calls(seen="OpenAI-compatible servers that copy only what they need", protocols=CHAT_ONLY)
def call_without_type(reply: PlannedReply, _: Occasion) -> PlannedReply:
    """Leaves `type` out of every call."""
    return reply.with_calls({"id": it["id"], "function": it["function"]} for it in reply.calls)


@SHAPE.on_calls(seen=_TRANSLATED, protocols=CHAT_ONLY)
def call_flat(reply: PlannedReply, _: Occasion) -> PlannedReply:
    """Puts name and arguments next to the id, without `function` around them."""
    return reply.with_calls({"id": call["id"], **call["function"]} for call in reply.calls)


@SHAPE.on_calls(seen="servers that collect calls while they stream", protocols=CHAT_ONLY)
def call_list_with_junk(reply: PlannedReply, _: Occasion) -> PlannedReply:
    """Puts a null and a string between the calls."""
    return reply.with_calls([None, *reply.calls, "call"])


@SHAPE.on_reply(seen="vibe_tavern study: content that is a list of parts", protocols=CHAT_ONLY)
def content_as_parts(reply: PlannedReply, _: Occasion) -> PlannedReply:
    """Sends the content as a list of parts instead of text."""
    return reply.with_message(content=[{"type": "text", "text": reply.text}])


@SHAPE.on_calls(seen="most models, sometimes")
def content_beside_calls(reply: PlannedReply, _: Occasion) -> PlannedReply:
    """Says something for people next to the call."""
    return reply.with_message(content="Let me do that for you.")


@SHAPE.on_calls(seen="OpenAI-compatible servers, often", protocols=("chat_completions", "messages"))
def finish_stop_with_calls(reply: PlannedReply, _: Occasion) -> PlannedReply:
    """Says `finish_reason: stop` though there are calls."""
    return replace(reply, finish_reason="stop")


@SHAPE.on_calls(seen=_TRANSLATED, protocols=("chat_completions", "messages", "gemini"))
def finish_unknown(reply: PlannedReply, _: Occasion) -> PlannedReply:
    """Says a `finish_reason` that no document names."""
    return replace(reply, finish_reason="COMPLETE")


@SHAPE.on_reply(seen="the OpenAI API itself", protocols=CHAT_ONLY)
def null_fields(reply: PlannedReply, _: Occasion) -> PlannedReply:
    """Fills the message with fields that are null."""
    calls: dict[str, Any] = {} if reply.calls else {"tool_calls": None}
    return reply.with_message(refusal=None, audio=None, function_call=None, annotations=[], **calls)


def _add_choice_chunk(chunks: list[Any], _: Occasion) -> list[Any]:
    delta = {"role": "assistant", "content": _OTHER_ANSWER}
    other = {"choices": [{"index": 1, "delta": delta, "finish_reason": "stop"}]}
    return [*chunks[:1], {**chunks[0], **other}, *chunks[1:]]


@SHAPE.on_wire(
    seen="servers with a default `n` above one",
    protocols=("chat_completions", "gemini"),
    chunks=_add_choice_chunk,
)
def second_choice(answer: Answer, occasion: Occasion) -> Answer:
    """Sends a second choice with another answer."""
    key = occasion.protocol.traits.choices_key
    if key == "candidates":
        content = {"role": "model", "parts": [{"text": _OTHER_ANSWER}]}
        other = {"index": 1, "content": content, "finishReason": "STOP"}
        if answer.framing == "chunked":
            event = render_event(encode_text({key: [other]}))
            return replace(answer, pieces=(*answer.pieces[:1], event, *answer.pieces[1:]))
    else:
        message = {"role": "assistant", "content": _OTHER_ANSWER}
        other = {"index": 1, "message": message, "finish_reason": "stop"}
    return edit_json_body(
        answer,
        lambda body: (
            {**body, key: [*body[key], other]} if isinstance(body.get(key), list) else body
        ),
    )


@SHAPE.on_wire(seen="proxies, login pages and servers under load", reach="whole")
def content_type_plain(answer: Answer, _: Occasion) -> Answer:
    """Labels the JSON body as plain text."""
    return with_body(answer, answer.body, content_type="text/plain")


@SHAPE.on_names(seen="models trained on the harmony and Kimi formats")
def name_with_prefix(name: str) -> str:
    """Writes `functions.` before the name of the tool."""
    return f"functions.{name}"


@SHAPE.on_names(seen="small models")
def name_in_capitals(name: str) -> str:
    """Writes the name of the tool in capitals."""
    return name.upper()


@SHAPE.on_names(seen="vibe_tavern study: names are stripped before they are looked up")
def name_padded(name: str) -> str:
    """Puts blanks around the name of the tool."""
    return f" {name}\n"


@SHAPE.on_names(seen="all models, sometimes", refusal=Code.TOOL_NOT_ALLOWED)
def name_unknown(name: str) -> str:
    """Calls a tool that was never offered."""
    return f"browser_open_{len(name)}"


@SHAPE.on_names(seen=_PASSED_ON, refusal=Code.TOOL_NOT_ALLOWED)
def name_missing(_: str) -> str:
    """Sends a call without a name."""
    return ""


def _with_ids(make: Callable[[int], Any]) -> ReplyEdit:
    return edit_calls(
        lambda reply, _: reply.with_calls(
            {**call, "id": make(index)} for index, call in enumerate(reply.calls)
        )
    )


@IDS.on_calls()
def id_missing(reply: PlannedReply, _: Occasion) -> PlannedReply:
    """Leaves the id out of every call."""
    return reply.with_calls(
        {key: item for key, item in call.items() if key != "id"} for call in reply.calls
    )


IDS.add("id_empty", "Sends an empty id.", reply=_with_ids(lambda _: ""))
IDS.add("id_number", "Sends the id as a number.", reply=_with_ids(lambda index: 7 + index))
id_reused: Final = IDS.add(
    "id_reused",
    "Uses the same id again in every turn.",
    seen="servers that start counting calls again in each reply",
    reply=_with_ids(lambda index: f"call_{index}"),
)


@IDS.on_calls()
def id_repeated(reply: PlannedReply, occasion: Occasion) -> PlannedReply:
    """Gives two calls of one reply the same id."""
    return _add_companion(reply, occasion, call_id=reply.calls[0]["id"])


@MULTI_CALL.on_calls(seen="vibe_tavern study: several calls in one reply even when told not to")
def extra_call(reply: PlannedReply, occasion: Occasion) -> PlannedReply:
    """Adds a call of another tool, though one at a time was asked for."""
    return _add_companion(reply, occasion, call_id="call_companion")


def find_companion(occasion: Occasion, used: set[str]) -> dict[str, Any] | None:
    """Return the function of a call of another tool that needs no arguments, if there is one."""
    for tool in occasion.request.tools:
        if tool.name not in used and not tool.parameters.get("required"):
            return {"name": tool.name, "arguments": "{}"}
    return None


def _add_companion(reply: PlannedReply, occasion: Occasion, *, call_id: str) -> PlannedReply:
    function = find_companion(occasion, {call["function"]["name"] for call in reply.calls})
    if function is None:
        return reply
    other = {"id": call_id, "type": "function", "function": function}
    return reply.with_calls([*reply.calls, other])


def _copy_first(count: int) -> ReplyEdit:
    def edit(reply: PlannedReply, _: Occasion) -> PlannedReply:
        call = reply.calls[0]
        return reply.with_calls({**call, "id": f"{call['id']}_{number}"} for number in range(count))

    return edit_calls(edit)


MULTI_CALL.add(
    "call_twice",
    "Makes the same call twice in one reply.",
    seen="vibe_tavern study: scenario duplicate_tool_calls",
    reply=_copy_first(2),
)
MULTI_CALL.add(
    "call_flood",
    f"Makes the same call {_MANY} times in one reply.",
    seen="small models that repeat themselves",
    reply=_copy_first(_MANY),
)
