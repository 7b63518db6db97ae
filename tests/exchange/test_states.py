"""What each state and verdict leads to: the next requests, the outcome, the receipts."""

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

from surecall.base.errors import Code, ProviderConnectionError
from surecall.base.records import Message, ToolCall
from surecall.exchange.policy import Policy, Sent
from surecall.models.profiles import Capabilities

from .scene import ARGUMENTS, BAD, GOOD, Script, ask, completion, write_request

WRITTEN = json.dumps(ARGUMENTS)
HISTORY = (
    Message("assistant", None, (ToolCall(id="call_0", name="ping", arguments={}),)),
    Message("tool", "pong", tool_call_id="call_0"),
)
REPLIES: dict[str, Any] = {
    "good": GOOD,
    "ping": completion(("call_1", "ping", "{}")),
    "bad": BAD,
    "worse": completion(("call_2", "save", '{"title": 1}')),
    "broken": completion(("call_1", "save", "two numbers")),
    "cut": completion(("call_1", "save", '{"title": "a"'), finish="length"),
    "nothing": completion(("call_1", "save", "")),
    "loose": completion(("call_1", "save", json.dumps({**ARGUMENTS, "count": "3"}))),
    "fenced": completion(("call_1", "save", f"```json\n{WRITTEN}\n```")),
    "stranger": completion(("call_1", "delete", "{}")),
    "no_id": completion(("", "save", WRITTEN)),
    "both": completion(("call_1", "ping", "{}"), ("call_2", "save", "{}")),
    "same_id": completion(("call_1", "save", WRITTEN), ("call_1", "ping", "{}")),
    "words": completion(content="I have saved it."),
    "maybe": completion(content=f"save {WRITTEN}"),
    "block": completion(content=f'```json\n{{"name": "save", "arguments": {WRITTEN}}}\n```'),
    "bad_block": completion(content='```json\n{"arguments": {"title": 1}}\n```'),
    "object": completion(content=f'{{"name": "save", "arguments": {WRITTEN}}}'),
    "bad_object": completion(content='{"name": "save", "arguments": {"title": "a"}}'),
    "silent": completion(content=""),
    "claims": completion(content="", finish="tool_calls"),
    "empty": b"",
    "tired": Sent(200, {}, b"", attempts=2),
    "page": b"<html>busy</html>",
    "lost": ProviderConnectionError(Code.CONNECTION_RESET, "The connection broke.", retryable=True),
    "slow_down": Sent(429, {}, b'{"error": {"message": "Slow down."}}'),
    "no_tools": Sent(
        404, {}, b'{"error": {"message": "No endpoints found that support tool use."}}'
    ),
}
CAN: dict[str, Capabilities] = {
    "nothing": Capabilities(),
    "name": Capabilities(tool_choices=("auto", "named")),
    "schema": Capabilities(json_schema=True),
    "strict": Capabilities(strict_tools=True),
    "most": Capabilities(json_schema=True, tool_choices=("named",)),
    "all": Capabilities(strict_tools=True, json_schema=True, tool_choices=("named",)),
}
MARKS = {"ok": "+", "failed": "-", "skipped": "?"}
CHOICES: dict[str, Any] = {
    "free": None,
    "any": "required",
    "save": {"type": "function", "function": {"name": "save"}},
    "none": "none",
}


class Row(NamedTuple):
    """A state, the replies in their order, and what is to come of them."""

    replies: str
    requests: str
    """What is asked after the first request."""
    outcome: str
    steps: str = ""
    """Each with what came of it: `+` helped, `-` did not, `?` there was no way to take it."""
    calls: int = 1
    receipts: str = ""
    can: str = "nothing"
    choice: str = "free"
    after_results: bool = False
    state: Mapping[str, Any] = {}
    """What is passed to the route and the policy besides."""


def budget(requests: int, **policy: Any) -> dict[str, Any]:
    """Return a policy with another budget."""
    return {"policy": Policy(max_requests=requests, **policy)}


TAUGHT: dict[str, Any] = {"strategy": "taught"}
READ = "read_call_from_text"

ROWS = [
    # Nothing has to be asked.
    Row("good", "", "clean"),
    Row("words", "", "clean", calls=0),
    Row("loose", "", "repaired", "coerce+", receipts="parse_number_text"),
    Row("fenced", "", "repaired", "repair+", receipts="strip_code_fence"),
    Row("no_id", "", "repaired", "repair+", receipts="assign_call_id"),
    Row("same_id", "", "repaired", "repair+", calls=2, receipts="rename_repeated_id"),
    Row("block", "", "repaired", "repair+", receipts="read_call_from_text set_finish_reason"),
    Row("words", "", "clean", calls=0, after_results=True),
    Row("object", "", "repaired", "repair+", receipts="read_call_from_text set_finish_reason"),
    # The model reads what is wrong, and makes it right, or not.
    Row("bad good", "errors", "reasked", "reask+"),
    Row("broken good", "errors", "reasked", "reask+"),
    Row("cut good", "errors", "reasked", "reask+"),
    Row("nothing good", "errors", "reasked", "reask+"),
    Row("stranger good", "errors", "reasked", "reask+"),
    Row("both good", "errors", "reasked", "reask+"),
    Row("claims good", "errors", "reasked", "reask+"),
    Row("bad words", "errors", "reasked", "reask+", calls=0),
    Row("bad loose", "errors", "reasked", "coerce+ reask+", receipts="parse_number_text"),
    Row("maybe good", "errors", "reasked", "reask+"),
    Row("maybe words", "errors", "reasked", "reask-", calls=0),
    Row("maybe maybe", "errors taught", "reasked", "reask- force? taught-", calls=0),
    Row("silent words", "errors", "reasked", "reask+", calls=0, after_results=True),
    Row("silent silent", "errors", "reasked", "reask- force? taught?", calls=0, after_results=True),
    Row("silent", "", "clean", calls=0),
    Row("bad bad bad", "errors taught", "refused", "reask- force? taught-", calls=0),
    Row("cut cut cut", "errors taught", "refused", "reask- force? taught-", calls=0),
    Row("stranger stranger stranger", "errors taught", "refused", "reask- force? taught-", calls=0),
    Row(
        "bad worse block",
        "errors taught",
        "reasked",
        "repair+ reask- force? taught+",
        receipts=READ,
    ),
    Row("bad bad words", "errors taught", "refused", "reask- force? taught-", calls=0),
    Row("bad bad bad", "errors taught", "unrepaired", "reask- force? taught-", after_results=True),
    Row(
        "cut cut cut",
        "errors taught",
        "unrepaired",
        "reask- force? taught-",
        calls=0,
        receipts="tell_call_not_run set_finish_reason",
        after_results=True,
    ),
    # Each rung that the model takes, one after the other, as far as the budget goes.
    Row("bad bad good", "errors forced", "reasked", "reask- force+", can="name"),
    Row(
        "bad bad object",
        "errors schema",
        "reasked",
        "repair+ reask- force+",
        receipts=READ,
        can="schema",
    ),
    Row("bad bad good", "errors strict", "reasked", "reask- force+", can="strict"),
    Row("bad bad good", "errors forced", "reasked", "reask- force+", can="most"),
    Row("bad bad good", "errors strict", "reasked", "reask- force+", can="all"),
    Row(
        "bad bad bad object",
        "errors forced schema",
        "reasked",
        "repair+ reask- force- force+",
        receipts=READ,
        can="most",
        state=budget(4),
    ),
    Row(
        "bad bad bad bad_object block",
        "errors forced schema taught",
        "reasked",
        "repair+ reask- force- force- taught+",
        receipts=READ,
        can="most",
        state=budget(5),
    ),
    Row(
        "bad bad bad bad_object block",
        "errors strict schema taught",
        "reasked",
        "repair+ reask- force- force- taught+",
        receipts=READ,
        can="all",
        state=budget(5),
    ),
    Row(
        "bad bad bad bad_object",
        "errors strict schema taught",
        "refused",
        "reask- force- force- taught-",
        calls=0,
        receipts=READ,
        can="all",
        state=budget(9),
    ),
    Row("both both good", "errors forced", "reasked", "reask- force+", can="name"),
    Row("cut cut good", "errors forced", "reasked", "reask- force+", can="name"),
    Row(
        "stranger stranger block",
        "errors taught",
        "reasked",
        "repair+ reask- force? taught+",
        receipts=READ,
        can="all",
    ),
    Row(
        "claims claims block",
        "errors taught",
        "reasked",
        "repair+ reask- force? taught+",
        receipts=READ,
        can="all",
    ),
    Row("bad bad ping", "errors forced", "reasked", "reask- force+", can="name"),
    Row(
        "bad lost block", "errors taught", "reasked", "repair+ reask- force? taught+", receipts=READ
    ),
    Row("bad lost good", "errors forced", "reasked", "reask- force+", can="name"),
    Row(
        "bad empty block",
        "errors taught",
        "reasked",
        "repair+ reask- force? taught+",
        receipts=READ,
    ),
    # What the client demands decides which rungs there are.
    Row("words good", "errors", "reasked", "reask+", choice="any"),
    Row("words words good", "errors free", "reasked", "reask- force+", choice="any"),
    Row("words words words", "errors free", "refused", "reask- force-", calls=0, choice="any"),
    Row("bad bad good", "errors forced", "reasked", "reask- force+", can="name", choice="any"),
    Row("ping good", "errors", "reasked", "reask+", choice="save"),
    Row(
        "ping ping object",
        "errors schema",
        "reasked",
        "repair+ reask- force+",
        receipts=READ,
        can="schema",
        choice="save",
    ),
    Row("words words good", "errors schema", "reasked", "reask- force+", can="all", choice="save"),
    Row("ping ping ping", "errors free", "refused", "reask- force-", calls=0, choice="save"),
    Row(
        "ping ping bad_object good",
        "errors schema free",
        "reasked",
        "reask- force- force+",
        can="schema",
        choice="save",
        state=budget(4),
    ),
    Row(
        "ping ping good good",
        "errors free",
        "reasked",
        "reask- force+",
        choice="save",
        state=budget(4),
    ),
    Row("good words", "errors", "reasked", "reask+", calls=0, choice="none"),
    Row("good good words", "errors no_tools", "reasked", "reask- force+", calls=0, choice="none"),
    Row("good good good", "errors no_tools", "refused", "reask- force-", calls=0, choice="none"),
    # A model that is taught its tools.
    Row("block", "", "clean", "repair+", receipts=READ, state=TAUGHT),
    Row("bad_block block", "taught", "reasked", "repair+ reask+", receipts=READ, state=TAUGHT),
    Row(
        "bad_block bad_block object",
        "taught schema",
        "reasked",
        "repair+ reask- force+",
        receipts=READ,
        can="schema",
        state=TAUGHT,
    ),
    Row(
        "bad_block bad_block bad_block",
        "taught",
        "refused",
        "reask- force? taught?",
        calls=0,
        state=TAUGHT,
    ),
    Row("words", "", "clean", calls=0, state=TAUGHT),
    Row(
        "words block",
        "taught",
        "reasked",
        "repair+ reask+",
        receipts=READ,
        choice="any",
        state=TAUGHT,
    ),
    # What the endpoint answers besides replies.
    Row("empty good", "same", "reasked", "retry+"),
    Row("tired good", "", "failed", calls=0),
    Row("page good", "", "failed", calls=0),
    Row("empty empty", "same", "failed", "retry-", calls=0),
    Row("lost", "", "failed", calls=0),
    Row("slow_down", "", "failed", calls=0),
    Row("no_tools block", "taught", "reasked", "repair+ taught+", receipts=READ),
    Row("no_tools words", "taught", "reasked", "taught+", calls=0),
    Row("no_tools", "", "failed", calls=0, state=budget(1)),
    Row("empty", "", "failed", calls=0, state=budget(1)),
    Row("empty good", "", "failed", calls=0, state=budget(3, steps=("repair",))),
    # What the policy leaves out.
    Row("bad good", "", "refused", calls=0, state=budget(1)),
    Row("bad bad good", "errors", "refused", "reask-", calls=0, can="name", state=budget(2)),
    Row(
        "bad good",
        "forced",
        "reasked",
        "force+",
        can="name",
        state=budget(3, steps=("repair", "coerce", "force")),
    ),
    Row("bad block", "taught", "refused", "taught-", calls=0, state=budget(3, steps=("taught",))),
    Row("loose good", "errors", "reasked", "reask+", state=budget(3, steps=("reask",))),
    Row(
        "nothing",
        "errors taught",
        "refused",
        "reask- force? taught-",
        calls=0,
        receipts="blank_to_empty_object",
        state=budget(3, likely_calls="leave"),
    ),
    Row(
        "maybe",
        "",
        "repaired",
        "repair+",
        receipts="read_call_from_text judge_call_in_text set_finish_reason",
        state=budget(3, likely_calls="deliver"),
    ),
    Row("maybe", "", "clean", calls=0, state=budget(3, likely_calls="leave")),
    Row("bad good", "", "refused", calls=0, state=budget(3, max_tokens=15)),
]


def describe(first: dict[str, Any], asked: dict[str, Any]) -> str:
    """Name what a request asks, beside the first one."""
    if asked == first:
        return "same"
    if "response_format" in asked:
        return "schema"
    tools = asked.get("tools")
    if not tools:
        return "taught" if "# Tools" in json.dumps(asked["messages"]) else "no_tools"
    if tools[0]["function"].get("strict"):
        return "strict"
    if asked.get("tool_choice") != first.get("tool_choice"):
        return "free" if "tool_choice" not in asked else "forced"
    return "errors"


def check_conversation(replies: list[str], asked: list[dict[str, Any]]) -> None:
    """Check that each request goes on from the one before it, with what was wrong since."""
    for reply, (before, after) in zip(replies, pairwise(asked), strict=False):
        if describe(asked[0], after) not in ("errors", "strict", "forced", "free"):
            return
        said = after["messages"][len(before["messages"]) :]
        assert after["messages"][: len(before["messages"])] == before["messages"]
        assert bool(said) == (reply not in ("lost", "empty"))


async def observe(row: Row) -> Row:
    """Return the row as it comes out."""
    document = json.loads(write_request("chat_completions", "m", HISTORY * row.after_results))
    if (choice := CHOICES[row.choice]) is not None:
        document["tool_choice"] = choice
    script = Script(*(REPLIES[name] for name in row.replies.split()))
    delivered = await ask(
        script, body=json.dumps(document).encode(), capabilities=CAN[row.can], **row.state
    )
    assert delivered.upstream_requests == len(script.asked)
    check_conversation(row.replies.split(), script.asked)
    return row._replace(
        requests=" ".join(describe(script.asked[0], asked) for asked in script.asked[1:]),
        outcome=delivered.outcome,
        steps=" ".join(step.name + MARKS[step.outcome] for step in delivered.steps),
        calls=delivered.calls,
        receipts=" ".join(dict.fromkeys(item.rule for item in delivered.receipts)),
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.replies}-{row.can}-{row.choice}")
async def test_what_a_state_leads_to(row: Row) -> None:
    """Requests, outcome, steps, calls and receipts are these and no others."""
    assert await observe(row) == row
