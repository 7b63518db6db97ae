"""Turns that a client sends as several items keep every result with its call."""

import json
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.base.records import Message, WireRequest
from surecall.exchange.history import repair_body, repair_history
from surecall.loop.plan import complete_history
from surecall.models.profiles import Capabilities
from surecall.wire import find_protocol

from .scene import GOOD, LIST_KEYS, Script, ask, completion, write_request

PARTS = {"gemini": "parts", "messages": "content"}
MODEL = {"gemini": "model", "messages": "assistant"}
TURNS = pytest.mark.parametrize("name", ["messages", "gemini"])


def call(name: str, call_id: str) -> dict[str, Any]:
    """Write a call of a tool that is named after it."""
    if name == "gemini":
        return {"functionCall": {"name": f"do_{call_id}", "args": {"n": 1}}}
    return {"type": "tool_use", "id": call_id, "name": f"do_{call_id}", "input": {"n": 1}}


def result(name: str, call_id: str) -> dict[str, Any]:
    """Write the result of such a call."""
    if name == "gemini":
        return {"functionResponse": {"name": f"do_{call_id}", "response": {"is": f"r-{call_id}"}}}
    return {"type": "tool_result", "tool_use_id": call_id, "content": f"r-{call_id}"}


def text(name: str, said: str) -> dict[str, Any]:
    """Write a text."""
    return {"text": said} if name == "gemini" else {"type": "text", "text": said}


def model(name: str, *parts: Any) -> dict[str, Any]:
    """Write an item of the model."""
    return {"role": MODEL[name], PARTS[name]: list(parts)}


def user(name: str, *parts: Any) -> dict[str, Any]:
    """Write an item of the user."""
    return {"role": "user", PARTS[name]: list(parts)}


def mend(name: str, *items: Any) -> tuple[list[Any], list[str]]:
    """Return the mended items and the rules that changed them; mending again changes nothing."""
    body = json.dumps({LIST_KEYS[name]: [user(name, text(name, "hi")), *items]}).encode()
    mended, receipts = repair_body(body, name)
    assert repair_body(mended, name) == (mended, ())
    assert bool(receipts) == (mended != body)
    return json.loads(mended)[LIST_KEYS[name]][1:], [receipt.rule for receipt in receipts]


@TURNS
def test_results_in_several_items_are_one_turn(name: str) -> None:
    """Providers join them, so their bytes stay."""
    items = (
        model(name, text(name, "Let me see."), call(name, "a")),
        model(name, call(name, "b")),
        user(name, result(name, "b")),
        user(name, result(name, "a"), text(name, "go on")),
        user(name, text(name, "please")),
        model(name, text(name, "Done.")),
    )
    assert mend(name, *items) == (list(items), [])


@TURNS
def test_results_go_before_text_of_their_turn(name: str) -> None:
    """Wherever in the turn they are; what the user says stays in order."""
    mended, rules = mend(
        name,
        model(name, call(name, "a"), call(name, "b")),
        user(name, text(name, "one")),
        user(name, result(name, "a")),
        user(name, text(name, "two"), result(name, "b")),
    )
    assert rules == ["move_result", "move_result"]
    results = (result(name, "a"), result(name, "b"))
    assert mended[1:] == [
        user(name, *results, text(name, "one")),
        user(name, text(name, "two")),
    ]


def test_a_plain_text_before_a_result_becomes_a_part_behind_it() -> None:
    """The item with nothing but the result is joined with it."""
    note = {"role": "user", "content": "note"}
    found = user("messages", result("messages", "a"))
    mended, rules = mend("messages", model("messages", call("messages", "a")), note, found)
    assert rules == ["move_result"]
    assert mended[1:] == [user("messages", result("messages", "a"), text("messages", "note"))]


def test_results_go_before_a_message_of_the_system() -> None:
    """They do not become a part of it."""
    system = {"role": "system", "content": "Be brief."}
    found = user("messages", result("messages", "a"))
    mended, rules = mend("messages", model("messages", call("messages", "a")), system, found)
    assert rules == ["move_result"]
    assert mended[1:] == [found, system]


@TURNS
def test_a_call_without_a_result_gets_one_in_the_turn_that_answers_the_others(name: str) -> None:
    """Real results are never replaced."""
    mended, rules = mend(
        name,
        model(name, call(name, "a")),
        model(name, call(name, "b")),
        user(name, result(name, "a")),
        user(name, text(name, "go on")),
    )
    assert rules == ["add_missing_result"]
    assert mended[2][PARTS[name]][0] == result(name, "a")
    assert "OUTCOME_UNKNOWN" in json.dumps(mended[2][PARTS[name]][1])
    assert mended[3] == user(name, text(name, "go on"))


@TURNS
def test_a_made_result_stays_where_it_was_when_the_conversation_goes_on(name: str) -> None:
    """So the next request begins with the same bytes."""
    first, _ = mend(name, model(name, call(name, "a")))
    second, rules = mend(
        name,
        model(name, call(name, "a")),
        model(name, call(name, "b")),
        user(name, result(name, "b")),
    )
    assert rules == ["add_missing_result"]
    assert second[: len(first)] == first
    assert second[len(first) :] == [model(name, call(name, "b")), user(name, result(name, "b"))]


def test_of_calls_that_share_an_id_the_last_has_the_result() -> None:
    """The model made it again because it saw none."""
    mended, rules = mend(
        "messages",
        model("messages", call("messages", "a")),
        model("messages", call("messages", "a")),
        user("messages", result("messages", "a")),
    )
    assert rules == ["rename_repeated_id", "add_missing_result"]
    assert "OUTCOME_UNKNOWN" in mended[1]["content"][0]["content"]
    assert mended[2]["content"][0]["id"] == mended[3]["content"][0]["tool_use_id"] == "a__2"
    assert mended[3]["content"][0]["content"] == "r-a"


@TURNS
def test_a_turn_of_several_items_ends_with_results(name: str) -> None:
    """An answer is due after it, as after one item."""
    items = [model(name, call(name, "a")), user(name, result(name, "a")), user(name)]
    wire = find_protocol(name)

    def ends(items: list[Any]) -> bool:
        return wire.open_conversation({LIST_KEYS[name]: items}).ends_with_results()

    assert ends(items)
    assert not ends([*items, model(name), user(name)])
    assert not ends([])


# Any valid history, split in any way


class Round(NamedTuple):
    """What the model said, and what was said to it next: words, and numbers of calls."""

    said: list[str]
    heard: list[str]


@st.composite
def rounds(draw: st.DrawFn) -> list[Round]:
    """Make valid histories: every call has its result in the turn behind it, in any order."""
    found: list[Round] = []
    for number in range(draw(st.integers(1, 3))):
        ids = [f"{number}{letter}" for letter in "abc"[: draw(st.integers(0, 3))]]
        words = st.lists(st.sampled_from(["uno", "dos", "tres"]), min_size=0 if ids else 1)
        said, heard = draw(words), draw(words)
        found.append(
            Round(
                draw(st.permutations([*said[:2], *(f"#{call_id}" for call_id in ids)])),
                draw(st.permutations([*heard[:2], *(f"#{call_id}" for call_id in ids)])),
            )
        )
    return found


def split(draw: Any, parts: list[Any]) -> list[list[Any]]:
    """Cut a list anywhere."""
    cuts = draw(st.sets(st.integers(1, max(1, len(parts) - 1))))
    edges = [0, *sorted(cut for cut in cuts if cut < len(parts)), len(parts)]
    return [parts[start:end] for start, end in pairwise(edges)]


def write_parts(name: str, turns: list[Round], draw: Any) -> list[Any]:
    """Write a history of a format whose calls and results are parts, cut into items."""
    items: list[Any] = [user(name, text(name, "hi"))]
    for turn in turns:
        for role, words, write in ((model, turn.said, call), (user, turn.heard, result)):
            parts = [write(name, w[1:]) if w[0] == "#" else text(name, w) for w in words]
            items += [role(name, *found) for found in split(draw, parts)]
    return items


def write_chat(turns: list[Round], draw: Any) -> list[Any]:
    """Write a history as chat completions, with the calls of a turn in one message or several."""
    items: list[Any] = [{"role": "user", "content": "hi"}]
    for turn in turns:
        for words in split(draw, turn.said):
            made = [
                {"id": w[1:], "type": "function", "function": {"name": w, "arguments": "{}"}}
                for w in words
                if w[0] == "#"
            ]
            spoken = "".join(w for w in words if w[0] != "#")
            more = {"tool_calls": made} if made else {}
            items.append({"role": "assistant", "content": spoken, **more})
        items += [
            {"role": "tool", "tool_call_id": w[1:], "content": f"r-{w[1:]}"}
            if w[0] == "#"
            else {"role": "user", "content": w}
            for w in turn.heard
        ]
    return items


def write_responses(turns: list[Round]) -> list[Any]:
    """Write a history as items of responses."""
    items: list[Any] = [{"role": "user", "content": "hi"}]
    for turn in turns:
        items += [
            {"type": "function_call", "call_id": w[1:], "name": "do", "arguments": "{}"}
            if w[0] == "#"
            else {"role": "assistant", "content": w}
            for w in turn.said
        ]
        items += [
            {"type": "function_call_output", "call_id": w[1:], "output": f"r-{w[1:]}"}
            if w[0] == "#"
            else {"role": "user", "content": w}
            for w in turn.heard
        ]
    return items


def understand(name: str, document: dict[str, Any]) -> tuple[Message, ...]:
    """Return the messages of a request."""
    wire = WireRequest(path="/models/m:generateContent", body={"model": "m", **document})
    return find_protocol(name).parse_request(wire).messages


@pytest.mark.parametrize("name", LIST_KEYS)
@settings(max_examples=40, deadline=None)
@given(turns=rounds(), data=st.data())
def test_any_split_of_a_valid_history_keeps_results_with_calls(
    name: str, turns: list[Round], data: st.DataObject
) -> None:
    """Nothing is made up or lost, and mending twice is mending once."""
    if name in PARTS:
        items = write_parts(name, turns, data.draw)
    elif name == "chat_completions":
        items = write_chat(turns, data.draw)
    else:
        items = write_responses(turns)
    key = LIST_KEYS[name]
    document, receipts = repair_history({key: items}, name)
    assert {receipt.rule for receipt in receipts} <= {"move_result"}
    assert repair_history(document, name) == (document, ())
    messages = understand(name, document)
    assert complete_history(messages) == messages
    made = [call.id for message in messages for call in message.tool_calls]
    answered = {m.tool_call_id: m.text for m in messages if m.role == "tool"}
    assert sorted(made) == sorted(str(call_id) for call_id in answered)
    wanted = [w[1:] for turn in turns for w in turn.said if w[0] == "#"]
    names = {call.id: call.name for message in messages for call in message.tool_calls}
    for call_id in wanted:
        given_id = call_id
        if name == "gemini":  # whose calls have no ids
            given_id = next(found for found in names if names[found] == f"do_{call_id}")
        assert f"r-{call_id}" in answered[given_id]
    heard = "".join(message.text for message in messages if message.role == "user")
    assert heard == "hi" + "".join(w for turn in turns for w in turn.heard if w[0] != "#")
    spoken = "".join(message.text for message in messages if message.role == "assistant")
    assert spoken == "".join(w for turn in turns for w in turn.said if w[0] != "#")


@TURNS
@settings(max_examples=40, deadline=None)
@given(turns=rounds(), data=st.data())
def test_any_split_with_results_first_keeps_its_bytes(
    name: str, turns: list[Round], data: st.DataObject
) -> None:
    """The provider takes it as it is."""
    ordered = [Round(said, sorted(heard, key=lambda w: w[0] != "#")) for said, heard in turns]
    body = json.dumps({LIST_KEYS[name]: write_parts(name, ordered, data.draw)}, indent=1).encode()
    assert repair_body(body, name) == (body, ())


# What the endpoint gets

REPLIES: dict[str, Any] = {
    "chat_completions": GOOD,
    "gemini": {
        "candidates": [
            {"content": {"role": "model", "parts": [{"text": "ok"}]}, "finishReason": "STOP"}
        ],
        "modelVersion": "g",
    },
    "messages": {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "ok"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
}


TAKEN = Capabilities(takes_user_after_result=True, takes_repeated_roles=True)
TURNS_TAKEN = frozenset({"takes_user_after_result", "takes_repeated_roles"})
"""What has to be known of a chat endpoint, so that turns need not alternate."""


async def send(client: str, upstream: str, items: list[Any]) -> dict[str, Any]:
    """Return what an endpoint of one format gets of the conversation of a client of another."""
    document = json.loads(write_request(client, "m", text="hi"))
    document[LIST_KEYS[client]] += items
    script = Script(REPLIES[upstream])
    body = json.dumps(document).encode()
    delivered = await ask(
        script,
        client=client,
        upstream=upstream,
        body=body,
        capabilities=TAKEN,
        known=TURNS_TAKEN,
    )
    assert delivered.status == 200
    return script.asked[0]


@TURNS
async def test_calls_of_several_items_are_one_message_for_chat_endpoints(name: str) -> None:
    """Which want all results directly behind the message with their calls."""
    items = [
        model(name, text(name, "A"), call(name, "a")),
        model(name, text(name, "B"), call(name, "b")),
        user(name, result(name, "a")),
        user(name, result(name, "b"), text(name, "go on")),
    ]
    sent = (await send(name, "chat_completions", items))["messages"][1:]
    assert [item["role"] for item in sent] == ["assistant", "tool", "tool", "user"]
    assert sent[0]["content"] == "AB"
    made = [(entry["id"], entry["function"]["name"]) for entry in sent[0]["tool_calls"]]
    assert [item["tool_call_id"] for item in sent[1:3]] == [call_id for call_id, _ in made]
    assert [name for _, name in made] == ["do_a", "do_b"]
    assert ["r-a" in sent[1]["content"], "r-b" in sent[2]["content"]] == [True, True]


@pytest.mark.parametrize("upstream", ["chat_completions", "messages", "gemini"])
async def test_a_late_result_of_responses_is_behind_its_call_elsewhere(upstream: str) -> None:
    """Only that format lets it come later."""
    items = [
        {"type": "function_call", "call_id": "c1", "name": "save", "arguments": "{}"},
        {"role": "user", "content": "note"},
        {"type": "function_call", "call_id": "c2", "name": "save", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "one"},
        {"type": "function_call_output", "call_id": "c2", "output": "two"},
    ]
    sent = await send("responses", upstream, items)
    messages = understand(upstream, sent)
    assert complete_history(messages) == messages
    said = [(m.role, m.tool_call_id, m.content) for m in messages[1:] if m.role != "assistant"]
    assert said == [("tool", "c1", "one"), ("user", None, "note"), ("tool", "c2", "two")]


async def test_calls_of_several_items_are_serialised_one_by_one() -> None:
    """Also where each call needs a message of its own."""
    document = json.loads(write_request("messages", "m", text="hi"))
    document["messages"] += [
        model("messages", call("messages", "a")),
        model("messages", call("messages", "b")),
        user("messages", text("messages", "x"), result("messages", "b")),
        user("messages", result("messages", "a")),
    ]
    script = Script(completion(content="ok"))
    known = TURNS_TAKEN | {"supports_parallel_tools"}
    body = json.dumps(document).encode()
    await ask(script, client="messages", body=body, capabilities=TAKEN, known=known)
    sent = script.asked[0]["messages"][1:]
    assert [item["role"] for item in sent] == ["assistant", "tool", "assistant", "tool", "user"]
    assert [item["content"] for item in sent[1::2]] == ["r-a", "r-b"]
