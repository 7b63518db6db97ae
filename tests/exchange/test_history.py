"""Conversations that a provider would refuse are mended without loss, and stay the same."""

import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.base.records import Message, ModelRequest, ToolCall, WireRequest
from surecall.exchange.history import repair_body, repair_history
from surecall.exchange.signatures import EchoCache
from surecall.loop.plan import complete_history
from surecall.models.profiles import Capabilities
from surecall.wire import find_protocol

from .scene import (
    ARGUMENTS,
    FORMATS,
    GOOD,
    LIST_KEYS,
    Script,
    ask,
    calls_in,
    completion,
    write_request,
)


def call(call_id: str, arguments: Any = "{}", name: str = "ping") -> dict[str, Any]:
    """Write a call of a chat completion."""
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def calls(*entries: dict[str, Any]) -> dict[str, Any]:
    """Write a message with calls."""
    return {"role": "assistant", "content": None, "tool_calls": list(entries)}


def result(call_id: str, text: str = "ok") -> dict[str, Any]:
    """Write a result."""
    return {"role": "tool", "tool_call_id": call_id, "content": text}


USER: dict[str, Any] = {"role": "user", "content": "x"}


def mend(*messages: dict[str, Any]) -> tuple[list[Any], list[str]]:
    """Return the mended messages and the rules that changed them."""
    given = deepcopy(list(messages))
    document, receipts = repair_history({"messages": given}, "chat_completions")
    assert given == list(messages)
    again, more = repair_history(document, "chat_completions")
    assert (again, more) == (document, ())
    return document["messages"], [receipt.rule for receipt in receipts]


def test_what_needs_nothing_is_the_same_object() -> None:
    """Nothing is copied, so that its bytes stay."""
    document = {"messages": [USER, calls(call("a")), result("a"), USER]}
    assert repair_history(document, "chat_completions")[0] is document


def test_a_call_without_a_result_gets_one() -> None:
    """It says that nobody knows what became of the call."""
    mended, rules = mend(USER, calls(call("a"), call("b")), result("b"), USER)
    assert rules == ["add_missing_result"]
    assert [item.get("tool_call_id") for item in mended] == [None, None, "b", "a", None]
    assert "OUTCOME_UNKNOWN" in mended[3]["content"]


def test_a_result_without_a_call_becomes_text() -> None:
    """What it says is not lost."""
    mended, rules = mend(USER, result("gone", "12 degrees"), USER)
    assert rules == ["tell_lost_result"]
    assert mended[1]["role"] == "user"
    assert "12 degrees" in mended[1]["content"]


def test_a_second_result_of_a_call_becomes_text() -> None:
    """Only the first answers the call."""
    mended, rules = mend(calls(call("a")), result("a", "1"), result("a", "2"))
    assert rules == ["tell_lost_result"]
    assert [item["role"] for item in mended] == ["assistant", "tool", "user"]


def test_a_result_in_the_wrong_place_goes_behind_its_call() -> None:
    """Providers want it there."""
    mended, rules = mend(calls(call("a")), USER, result("a"))
    assert rules == ["move_result"]
    assert mended == [calls(call("a")), result("a"), USER]


def test_calls_that_share_an_id_get_their_own() -> None:
    """Their results follow them."""
    mended, rules = mend(calls(call("a")), result("a", "1"), calls(call("a")), result("a", "2"))
    assert rules == ["rename_repeated_id"]
    assert mended[2]["tool_calls"][0]["id"] == mended[3]["tool_call_id"] == "a__2"
    assert mended[3]["content"] == "2"


@pytest.mark.parametrize(
    ("given_arguments", "wanted"),
    [
        ("", {}),
        (None, {}),
        ({"a": 1}, {"a": 1}),
        ("{'a': 1}", {"a": 1}),
        ('{"a": 1', {"_unreadable_arguments": '{"a": 1'}),
        ("prose", {"_unreadable_arguments": "prose"}),
    ],
)
def test_arguments_become_the_text_of_an_object(given_arguments: Any, wanted: Any) -> None:
    """What cannot be read is shown, and never made up."""
    mended, rules = mend(calls(call("a", given_arguments)), result("a"))
    assert rules == ["rewrite_history_arguments"]
    assert json.loads(mended[0]["tool_calls"][0]["function"]["arguments"]) == wanted


def _make_calls(ids: list[str], text: str | None) -> dict[str, Any]:
    return calls(*(call(each, text) for each in ids))


TURNS = st.lists(
    st.one_of(
        st.just(USER),
        st.builds(
            _make_calls,
            st.lists(st.sampled_from(["a", "b", "", "c"]), min_size=1, max_size=2),
            st.sampled_from(["{}", "", '{"a": 1', "{'a': 1}", None, '{"a": 2}']),
        ),
        st.builds(result, st.sampled_from(["a", "b", "c"]), st.text(max_size=4)),
    ),
    max_size=8,
)


@settings(max_examples=150, deadline=None)
@given(TURNS, TURNS)
def test_any_history_becomes_one_that_providers_take(before: Any, after: Any) -> None:
    """Calls and results pair, nothing that was said is lost, and the beginning stays the same."""
    mended, _ = mend(USER, *before, USER)
    parsed = find_protocol("chat_completions").parse_request(
        WireRequest(path="", body={"model": "m", "messages": mended})
    )
    assert complete_history(parsed.messages) == parsed.messages
    ids = [entry.id for message in parsed.messages for entry in message.tool_calls]
    assert len(ids) == len(set(ids))
    told = json.dumps(mended)
    assert all(json.dumps(item["content"])[1:-1] in told for item in before if item.get("content"))
    known = {item["tool_call_id"] for item in before if item["role"] == "tool"}
    reused = {entry["id"] for item in after for entry in item.get("tool_calls", ())} | {
        item.get("tool_call_id") for item in after
    }
    if not known & reused and not {"a", "b", "c", ""} & reused:
        longer, _ = mend(USER, *before, USER, *after, USER)
        assert longer[: len(mended)] == mended


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_mended(name: str) -> None:
    """A call without a result, a lost result and a repeated id, as each format writes them."""
    protocol = find_protocol(name)
    made = ToolCall(id="a", name="save", arguments=ARGUMENTS, raw=json.dumps(ARGUMENTS))
    answer = Message("tool", '{"x": 1}', tool_call_id="a")
    messages = (
        Message("user", "x"),
        Message("assistant", None, (made,)),
        answer,
        Message("user", "y"),
        Message("assistant", None, (made,)),
        answer,
        Message("user", "z"),
    )
    whole = protocol.render_request(ModelRequest(model="m", messages=messages)).body
    path = "/models/m:generateContent"
    key = LIST_KEYS[name]
    size = len(whole[key])
    for left_out in range(size):
        items = [item for at, item in enumerate(whole[key]) if at != left_out]
        body = json.dumps({**whole, key: items}).encode()
        mended, _ = repair_body(body, name)
        assert repair_body(mended, name) == (mended, ())
        wire = WireRequest(path=path, body=json.loads(mended))
        parsed = protocol.parse_request(wire).messages
        assert complete_history(parsed) == parsed
    same = json.dumps(whole, indent=1).encode()
    if name == "gemini":
        assert repair_body(same, name) == (same, ())
    assert len(find_protocol(name).open_conversation(whole).find_call_ids()) >= 0


def test_only_messages_that_change_are_written_anew() -> None:
    """Bytes of the others, and of the rest of the request, stay as they are."""
    before = b'{"model":"m","messages":[ {"role":"user", "content":"x"},'
    broken = b'{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":'
    broken += b'{"name":"f","arguments":"{}"}}]}], "seed": 1.50}'
    mended, receipts = repair_body(before + broken, "chat_completions")
    assert [receipt.rule for receipt in receipts] == ["add_missing_result"]
    assert b'{"role":"user", "content":"x"},{"role":"assistant"' in mended
    assert mended.endswith(b', "seed": 1.50}')
    assert mended.startswith(b'{"model":"m","messages":[')


def test_results_of_calls_that_the_endpoint_keeps_stay() -> None:
    """With a previous response the call is not in the request."""
    item = {"type": "function_call_output", "call_id": "a", "output": "1"}
    document = {"input": [item], "previous_response_id": "r"}
    assert repair_history(document, "responses") == (document, ())
    mended, receipts = repair_history({"input": [item]}, "responses")
    assert mended["input"][0]["role"] == "user"
    assert len(receipts) == 1


async def test_a_mended_history_is_what_is_sent() -> None:
    """The exchange says what it changed."""
    document = json.loads(write_request("chat_completions", "m"))
    document["messages"].append(calls(call("a")))
    script = Script(GOOD)
    delivered = await ask(script, body=json.dumps(document).encode())
    assert script.asked[0]["messages"][-1]["role"] == "tool"
    assert delivered.outcome == "repaired"
    assert [receipt.rule for receipt in delivered.receipts] == ["add_missing_result"]


async def test_reasoning_and_signatures_are_put_back() -> None:
    """A client that leaves out what came with a call does not lose it."""
    echoes = EchoCache()
    reply = completion(("a1B2c3D4e", "save", json.dumps(ARGUMENTS)), reasoning_content="I think.")
    reply["choices"][0]["message"]["tool_calls"][0]["extra_content"] = {"google": {"s": "sig"}}
    needs = Capabilities(needs_reasoning_echo=True)
    await ask(Script(reply), echoes=echoes, capabilities=needs)
    assert len(echoes) == 1
    document = json.loads(write_request("chat_completions", "m"))
    document["messages"] += [
        calls(call("a1B2c3D4e", json.dumps(ARGUMENTS), "save")),
        result("a1B2c3D4e"),
    ]
    body = json.dumps(document).encode()
    script = Script(GOOD)
    await ask(script, echoes=echoes, capabilities=needs, body=body)
    assert script.asked[0]["messages"][-2]["reasoning_content"] == "I think."
    script = Script(GOOD)
    await ask(script, echoes=echoes, body=body)
    assert "reasoning_content" not in script.asked[0]["messages"][-2]
    sent = script.asked[0]["messages"][-2]["tool_calls"][0]
    assert sent["extra_content"] == {"google": {"s": "sig"}}
    other = body.replace(b'\\"count\\": 3', b'\\"count\\": 4')
    script = Script(GOOD)
    await ask(script, echoes=echoes, body=other)
    assert script.bodies[0] == other


async def test_a_signature_of_gemini_comes_back_from_a_chat_client() -> None:
    """The client speaks another format, which has no place for it."""
    echoes = EchoCache()
    part = {"functionCall": {"name": "save", "args": ARGUMENTS}, "thoughtSignature": "sig"}
    content = {"role": "model", "parts": [part]}
    reply = {"candidates": [{"content": content, "finishReason": "STOP"}], "modelVersion": "g"}
    delivered = await ask(Script(reply), upstream="gemini", echoes=echoes)
    assert calls_in("chat_completions", delivered) == [("save", ARGUMENTS)]
    made = json.loads(delivered.body)["choices"][0]["message"]["tool_calls"][0]
    document = json.loads(write_request("chat_completions", "m"))
    document["messages"] += [calls(call(made["id"], made["function"]["arguments"], "save"))]
    document["messages"] += [result(made["id"])]
    script = Script(reply)
    await ask(script, upstream="gemini", echoes=echoes, body=json.dumps(document).encode())
    sent = [part for item in script.asked[0]["contents"] for part in item["parts"]]
    assert [part["thoughtSignature"] for part in sent if "functionCall" in part] == ["sig"]


def test_what_is_kept_is_bounded() -> None:
    """The oldest goes first, and what is huge is not kept."""
    echoes = EchoCache(max_entries=2, max_entry_bytes=100)
    for number in range(4):
        echoes.keep("", f"a1B2c3D4e{number}", "f", "{}", {"reasoning_content": "x"}, {})
    echoes.keep("", "b1I2g3F4r5", "f", "{}", {"reasoning_content": "x" * 200}, {})
    assert len(echoes) == 2
    assert echoes.find("", "a1B2c3D4e3", "f", {}) is not None
    assert echoes.find("", "a1B2c3D4e0", "f", {}) is None
    assert echoes.find("another", "a1B2c3D4e3", "f", {}) is None
    assert echoes.find("", "a1B2c3D4e3", "f", {}) is not None


async def test_calls_are_serialised_where_several_are_not_supported() -> None:
    """Each call goes back in a message of its own, and the field is not sent."""
    document: dict[str, Any] = json.loads(write_request("chat_completions", "m"))
    document["parallel_tool_calls"] = True
    document["messages"] += [calls(call("a"), call("b")), result("a"), result("b")]
    script = Script(GOOD)
    known = frozenset({"supports_parallel_tools"})
    await ask(script, body=json.dumps(document).encode(), known=known)
    roles = [item["role"] for item in script.asked[0]["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant", "tool"]
    assert "parallel_tool_calls" not in script.asked[0]
