"""Replies and errors as a server answers them."""

import json
from typing import Any

import pytest

from surecall.base.errors import (
    Code,
    ProviderError,
    ProviderStatusError,
    ProviderTimeoutError,
    RequestError,
)
from surecall.base.records import RawCall, Reply, Usage
from surecall.wire import Responses, WireProtocol

from .builders import fold, thought_item

RESPONSES: WireProtocol = Responses()
FULL = Reply(
    content="Wait.",
    reasoning="Hm.",
    calls=(RawCall("c1", "look", '{"a":1}'), RawCall("c2", "look", {"b": 2})),
    finish_reason="tool_calls",
    usage=Usage(7, 5, 12, reasoning_tokens=2, cached_tokens=3),
    model="m",
    id="resp_1",
)


def events(data: bytes) -> list[dict[str, Any]]:
    """Return the data of every event, whose name must be its type."""
    found: list[dict[str, Any]] = []
    for block in data.decode().removesuffix("\n\n").split("\n\n"):
        name, text = block.split("\n")
        fields = json.loads(text.removeprefix("data: "))
        assert name == f"event: {fields['type']}"
        found.append(fields)
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    return found


def written(reply: Reply) -> bytes:
    """Write a reply as a stream, its text letter by letter."""
    writer = RESPONSES.open_writer(model=reply.model or "", reply_id=reply.id)
    data = writer.begin()
    data += b"".join(writer.reasoning(letter) for letter in reply.reasoning or "")
    data += b"".join(writer.text(letter) for letter in reply.content or "")
    data += b"".join(writer.call(call) for call in reply.calls)
    return data + writer.end(reply)


def comparable(response: dict[str, Any]) -> dict[str, Any]:
    """Return a response without the times of its making."""
    return {key: value for key, value in response.items() if not key.endswith("_at")}


def test_a_whole_reply_is_a_response() -> None:
    """Reasoning, text and calls in this order, each with an id of its own."""
    body = RESPONSES.render_reply(FULL)
    assert (body["id"], body["object"], body["status"]) == ("resp_1", "response", "completed")
    thought, text, first, second = body["output"]
    assert thought["content"] == [{"type": "reasoning_text", "text": "Hm."}]
    assert text["content"][0]["text"] == "Wait."
    assert [item["status"] for item in (text, first, second)] == ["completed"] * 3
    assert (first["call_id"], first["name"], first["arguments"]) == ("c1", "look", '{"a":1}')
    assert second["arguments"] == '{"b":2}'
    assert len({item["id"] for item in body["output"]}) == 4
    assert body["usage"] == {
        "input_tokens": 7,
        "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 12,
    }


def test_a_stream_ends_with_the_response_that_would_have_come_whole() -> None:
    """Up to the ids of the items, which follow the order of writing."""
    *_, last = events(written(FULL))
    assert last["type"] == "response.completed"
    whole, streamed = comparable(RESPONSES.render_reply(FULL)), comparable(last["response"])
    for item in (*whole["output"], *streamed["output"]):
        item["id"] = item["id"].rpartition("_")[0]
    assert streamed == whole


def test_a_stream_has_every_event_that_clients_expect() -> None:
    """In their order, each item and part opened and closed."""
    reply = Reply(
        content="ab", reasoning="r", calls=(RawCall("c1", "look", "{}"),), model="m", id="resp_1"
    )
    found = events(written(reply))
    assert [event["type"].removeprefix("response.") for event in found] == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "reasoning_text.delta",
        "reasoning_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.done",
        "completed",
    ]
    assert found[0]["response"]["status"] == "in_progress"
    assert found[8]["item"]["content"] == []
    assert found[8]["item"]["status"] == "in_progress"
    assert found[15]["item"]["arguments"] == ""
    places = {event["output_index"] for event in found[15:19]}
    names = {event.get("item_id", event.get("item", {}).get("id")) for event in found[15:19]}
    assert (places, len(names)) == ({2}, 1)


def test_empty_pieces_write_nothing() -> None:
    """And an item is opened only for something to say."""
    writer = RESPONSES.open_writer(model="m")
    assert writer.text("") == writer.reasoning("") == b""


def test_text_after_a_call_is_a_message_of_its_own() -> None:
    """Items do not overlap."""
    writer = RESPONSES.open_writer(model="m", reply_id="resp_1")
    data = (
        writer.begin() + writer.text("a") + writer.call(RawCall("c1", "f", "")) + writer.text("b")
    )
    *_, last = events(data + writer.end(Reply(finish_reason="tool_calls")))
    assert [item["type"] for item in last["response"]["output"]] == [
        "message",
        "function_call",
        "message",
    ]


@pytest.mark.parametrize(
    ("finish", "status", "reason"),
    [
        ("stop", "completed", None),
        ("tool_calls", "completed", None),
        (None, "completed", None),
        ("length", "incomplete", "max_output_tokens"),
        ("content_filter", "incomplete", "content_filter"),
        ("pause_turn", "completed", None),
    ],
)
def test_a_finish_reason_is_a_status(finish: str | None, status: str, reason: str | None) -> None:
    """Whole and streamed; what is cut says so of its last item too."""
    reply = Reply(content="a", calls=(RawCall("c1", "f", "{"),), finish_reason=finish, id="resp_1")
    *_, last = events(written(reply))
    assert last["type"] == f"response.{status}"
    for body in (RESPONSES.render_reply(reply), last["response"]):
        assert body["status"] == status
        assert (body["incomplete_details"] or {}).get("reason") == reason
        assert [item["status"] for item in body["output"]] == ["completed", status]


def test_a_client_gets_ids_and_text_where_a_model_gave_none() -> None:
    """Every call can be answered."""
    reply = Reply(calls=(RawCall(None, None, None, extra={"thought_signature": "s"}),))
    (item,) = RESPONSES.render_reply(reply)["output"]
    assert item["call_id"].startswith("call_")
    assert (item["name"], item["arguments"], item["thought_signature"]) == ("", "{}", "s")
    body = RESPONSES.render_reply(Reply(content=""))
    assert body["id"].startswith("resp_")
    assert body["output"][0]["content"][0]["text"] == ""
    assert RESPONSES.render_reply(Reply())["output"] == []


def test_items_to_send_back_stand_where_they_led_to() -> None:
    """They come without our mark, and instead of reasoning in words."""
    first, second = thought_item("rs_1", "Hm."), thought_item("rs_2", encrypted_content="e")
    extra = {"reasoning_items": [first, {**second, "_before": "c2"}], "phase": "commentary"}
    reply = Reply(content="a", reasoning="Hm.", calls=FULL.calls, id="resp_1", extra=extra)
    output = RESPONSES.render_reply(reply)["output"]
    assert output[0] == first
    assert output[3] == second
    assert [item["type"] for item in output] == [
        "reasoning",
        "message",
        "function_call",
        "reasoning",
        "function_call",
    ]
    assert output[1]["phase"] == "commentary"


def test_items_to_send_back_replace_the_reasoning_that_was_shown() -> None:
    """Also when a stream learns of them at its end only; the words are the same."""
    item = thought_item("rs_1", "Hm.", encrypted_content="e")
    extra = {"reasoning_items": [item], "phase": "commentary"}
    reply = Reply(content="a", reasoning="Hm.", calls=FULL.calls, id="resp_1", extra=extra)
    raw, text, reasoning = fold(written(reply))
    got = RESPONSES.parse_message(raw)
    assert (text, reasoning, got.extra, got.defects) == ("a", "Hm.", extra, ())


def test_items_to_send_back_that_come_late_are_written_at_the_end() -> None:
    """So that a client which collects items gets them too; the response has them in their place."""
    item = thought_item("rs_1", encrypted_content="e")
    reply = Reply(content="a", id="resp_1", extra={"reasoning_items": [{**item, "status": None}]})
    *_, added, done, last = events(written(reply))
    assert (added["item"], done["item"], done["output_index"]) == (item, item, 1)
    assert last["response"]["output"][0] == item
    assert fold(written(reply))[0].defects == ()


@pytest.mark.parametrize(
    ("error", "status", "kind", "code", "failure"),
    [
        pytest.param(
            RequestError(Code.STATE_NOT_KEPT, "No memory.", hint="Send all."),
            400,
            "invalid_request_error",
            "STATE_NOT_KEPT",
            "invalid_prompt",
            id="request",
        ),
        pytest.param(
            ProviderStatusError(Code.RATE_LIMIT, "Slow.", status=429),
            429,
            "rate_limit_error",
            "RATE_LIMIT",
            "rate_limit_exceeded",
            id="rate",
        ),
        pytest.param(
            ProviderTimeoutError(Code.IDLE_TIMEOUT, "Too late."),
            504,
            "timeout_error",
            "IDLE_TIMEOUT",
            "server_error",
            id="time",
        ),
    ],
)
def test_errors_have_the_shape_that_clients_know(
    error: ProviderError | RequestError, status: int, kind: str, code: str, failure: str
) -> None:
    """As an answer, and in the middle of a stream."""
    fault = RESPONSES.render_error(error)
    assert fault.status == status
    told = fault.body["error"]
    assert (told["type"], told["code"], told["param"]) == (kind, code, None)
    assert told["message"].startswith(error.message)
    writer = RESPONSES.open_writer(model="m", reply_id="resp_1")
    *_, broken, failed = events(writer.begin() + writer.text("a") + writer.fail(error))
    assert (broken["type"], broken["code"], broken["error"]) == ("error", code, told)
    assert failed["type"] == "response.failed"
    assert failed["response"]["status"] == "failed"
    assert failed["response"]["error"] == {"code": failure, "message": told["message"]}


def test_items_to_send_back_that_come_in_time_are_written_in_their_place() -> None:
    """Before the text that they led to, in the events as well as in the response."""
    item = thought_item("rs_1", encrypted_content="e")
    writer = RESPONSES.open_writer(model="m", reply_id="resp_1")
    data = writer.begin() + writer.reasoning("", {"reasoning_items": [item]}) + writer.text("a")
    data += writer.end(Reply(content="a", extra={"reasoning_items": [item]}))
    found = events(data)
    done = [event["item"]["type"] for event in found if event["type"].endswith("item.done")]
    output = found[-1]["response"]["output"]
    assert done == [entry["type"] for entry in output] == ["reasoning", "message"]
    assert output[0] == item


def test_thoughts_that_led_to_different_calls_stand_before_them() -> None:
    """The API takes reasoning back only directly before what it led to."""
    items = [thought_item("rs_1", "A.", encrypted_content="e"), thought_item("rs_2", "B.")]
    writer = RESPONSES.open_writer(model="m", reply_id="resp_1")
    data = writer.begin()
    data += writer.reasoning("A.") + writer.reasoning("", {"reasoning_items": items[:1]})
    data += writer.reasoning("\n\n") + writer.reasoning("B.")
    data += writer.reasoning("", {"reasoning_items": items[1:]})
    data += b"".join(writer.call(call) for call in FULL.calls)
    extra = {"reasoning_items": [items[0], {**items[1], "_before": "c2"}]}
    reply = Reply(reasoning="A.\n\nB.", calls=FULL.calls, id="resp_1", extra=extra)
    data += writer.end(reply)
    assert comparable(events(data)[-1]["response"])["output"] == [
        {**item, "id": ids}
        for item, ids in zip(
            RESPONSES.render_reply(reply)["output"],
            [item["id"] for item in events(data)[-1]["response"]["output"]],
            strict=True,
        )
    ]
    raw, _, reasoning = fold(data)
    got = RESPONSES.parse_message(raw)
    assert (reasoning, got.reasoning, got.extra, got.defects) == ("A.\n\nB.", "A.\n\nB.", extra, ())
