"""The same call with the same result for the third time is noted, and the model may be told."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecall.base.records import Message, ToolCall
from surecall.exchange.history import Repeats, repair_body
from surecall.exchange.policy import Policy
from surecall.wire import find_protocol

from .scene import FORMATS, GOOD, Script, ask, completion, write_request

NOTE = "look was called {} times with the same arguments and had the same result."
DONE = completion(content="Done.")


def turns(*rounds: tuple[Any, Any]) -> list[Message]:
    """Return a conversation with these arguments and results, each call with an id of its own."""
    said: list[Message] = []
    for number, (arguments, result) in enumerate(rounds):
        call = ToolCall(id=f"call_{number}", name="look", arguments={"what": arguments})
        said += [
            Message("assistant", None, (call,)),
            Message("tool", result, tool_call_id=call.id),
        ]
    return said


def body_of(name: str, *rounds: tuple[Any, Any]) -> bytes:
    """Return a request of a format with such a conversation."""
    return write_request(name, "m", turns(*rounds), text="Go")


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("tells", [False, True])
def test_the_third_equal_result_of_an_equal_call_is_a_defect(name: str, tells: bool) -> None:
    """The count goes on; another result or other arguments count by themselves."""
    same = ("a", "nothing there")
    for rounds, counts in (
        ((same, same), []),
        ((same, ("a", "now there"), same), []),
        ((same, ("b", "nothing there"), same), []),
        ((same, same, same), [3]),
        ((same, ("b", "x"), same, same, same), [4]),
        ((same, same, same, ("b", "x")), []),
    ):
        repeats = Repeats(tells=tells)
        body = body_of(name, *rounds)
        mended, receipts = repair_body(body, name, repeats=repeats)
        assert [item.message for item in repeats.defects] == [NOTE.format(n) for n in counts]
        assert {item.code for item in repeats.defects} <= {"REPEATED_CALL"}
        if not tells:
            assert (mended, receipts) == (body, ())
        noted = mended.count(b"was called")
        assert noted == (len(receipts) if tells else 0)
        assert bool(noted) == (tells and rounds.count(same) > 2)


@pytest.mark.parametrize("name", FORMATS)
def test_what_the_model_is_told_stays_the_same_in_later_turns(name: str) -> None:
    """So a longer conversation begins with the same bytes, for caches of prompts."""
    same = ("a", "nothing there")
    key = find_protocol(name).open_conversation({}).key
    shorter: list[Any] = []
    for count in range(1, 7):
        body = body_of(name, *([same] * count))
        mended, _ = repair_body(body, name, repeats=Repeats(tells=True))
        items = json.loads(mended)[key]
        assert items[: len(shorter)] == shorter
        shorter = items


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy")), max_size=9))
def test_the_count_is_how_often_the_pair_came(rounds: list[tuple[str, str]]) -> None:
    """Whatever comes between."""
    repeats = Repeats(tells=False)
    repair_body(body_of("chat_completions", *rounds), "chat_completions", repeats=repeats)
    times = rounds.count(rounds[-1]) if rounds else 0
    assert [item.message for item in repeats.defects] == (
        [NOTE.format(times)] if times >= 3 else []
    )


@pytest.mark.parametrize("upstream", ["chat_completions", "messages"])
async def test_a_policy_says_whether_the_model_is_told(upstream: str) -> None:
    """The defect is in the report either way, also of a request that is translated."""
    body = body_of("chat_completions", *([("a", "nothing there")] * 3))
    answers = {"chat_completions": DONE, "messages": None}
    for way in ("note", "tell"):
        reply = answers[upstream] or {
            "id": "m1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "stop_reason": "end_turn",
            "content": [{"type": "text", "text": "Done."}],
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        script = Script(reply)
        policy = Policy(repeated_calls=way)
        delivered = await ask(script, body=body, upstream=upstream, policy=policy)
        assert [item.code for item in delivered.defects] == ["REPEATED_CALL"]
        assert (b"was called 3 times" in script.bodies[0]) == (way == "tell")
    assert (await ask(Script(GOOD))).defects == ()
