"""Reasoning in tags that a text begins with: delivered as reasoning, whole and streamed."""

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from surecall.base.records import RawCall, Reply, ToolSpec
from surecall.calls import ToolNames
from surecall.exchange import Policy
from surecall.exchange.request import ClientRequest
from surecall.exchange.streams import StreamRelay
from surecall.exchange.thoughts import ThoughtSplitter, begins_thought
from surecall.reading import ReplyReader
from surecall.wire import find_protocol

from . import scene
from .scene import Script, seen
from .streaming import ARGUMENTS, FORMATS, Relayed, fold, relay, request_for, route_to

EVERY_FORMAT = pytest.mark.parametrize("name", FORMATS)
NAMES = ToolNames([ToolSpec(name="save", parameters={"type": "object"})])
CALL = RawCall("call_1", "save", json.dumps(scene.ARGUMENTS))
STREAMED_CALL = RawCall("call_1", "save", json.dumps(ARGUMENTS))
WRITTEN = f"<tool_call>{json.dumps({'name': 'save', 'arguments': ARGUMENTS})}</tool_call>"
CASES = {
    "closed": ("<think>\nI see.\n</think>\n\nDone.", "I see.", "Done."),
    "unclosed": ("\n<think>I see.", "I see.", ""),
    "empty": ("<think>\n\n</think>\n\nDone.", None, "Done."),
    "two": ("[THINK]One.[/THINK] <think>Two.</think>Done.", "One.\nTwo.", "Done."),
    "holds": ("<think>Not <tool_call> yet.</think>Done.", "Not <tool_call> yet.", "Done."),
}
EVERY_CASE = pytest.mark.parametrize(("text", "thought", "rest"), CASES.values(), ids=CASES)
WITH_CALLS = pytest.mark.parametrize("has_call", [False, True], ids=["text", "call"])


def write_reply(name: str, text: str, *calls: RawCall) -> dict[str, Any]:
    """Write a whole reply."""
    finish = "tool_calls" if calls else "stop"
    reply = Reply(content=text, calls=calls, finish_reason=finish, model="m", id="r1")
    return find_protocol(name).render_reply(reply)


def write_stream(name: str, pieces: list[str], *calls: RawCall) -> list[bytes]:
    """Write the events of a reply whose text comes in pieces."""
    writer = find_protocol(name).open_writer(model="m", reply_id="r1")
    written = [writer.begin(), *map(writer.text, pieces), *map(writer.call, calls)]
    finish = "tool_calls" if calls else "stop"
    written.append(writer.end(Reply(calls=calls, finish_reason=finish)))
    return [event + b"\n\n" for event in b"".join(written).split(b"\n\n")[:-1]]


def stream(name: str, pieces: list[str], *calls: RawCall, **options: Any) -> Relayed:
    """Pass a reply through a relay in its own format."""
    return relay(request_for(name), route_to(name), write_stream(name, pieces, *calls), **options)


@EVERY_FORMAT
@EVERY_CASE
@WITH_CALLS
async def test_a_whole_reply_has_its_reasoning_in_its_place(
    name: str, text: str, thought: str | None, rest: str, has_call: bool
) -> None:
    """Reasoning and text are apart, the call is the same, and a receipt says what was done."""
    calls = (CALL,) if has_call else ()
    script = Script(write_reply(name, text, *calls))
    delivered = await scene.ask(script, client=name, upstream=name)
    reply = seen(name, delivered)
    assert (reply.reasoning, reply.content or "") == (thought, rest)
    assert [call.id for call in reply.calls] == [call.id for call in calls]
    assert delivered.outcome == "repaired"
    assert [receipt.rule for receipt in delivered.receipts] == ["move_reasoning"]
    assert delivered.receipts[0].before.startswith(text.strip()[:7])


@pytest.mark.parametrize("upstream", FORMATS)
@pytest.mark.parametrize("client", FORMATS)
@WITH_CALLS
def test_a_stream_has_its_reasoning_in_its_place(
    client: str, upstream: str, has_call: bool
) -> None:
    """The same is true of streams, between all formats and however the text is cut."""
    calls = (STREAMED_CALL,) if has_call else ()
    for text, thought, rest in CASES.values():
        for size in (1, 5, 100):
            pieces = [text[at : at + size] for at in range(0, len(text), size)]
            events = write_stream(upstream, pieces, *calls)
            got = relay(request_for(client), route_to(upstream), events)
            reply = fold(client, got.sent)
            assert (reply.reasoning, reply.content or "") == (thought, rest)
            assert [call.id for call in reply.calls] == [call.id for call in calls]
            assert got.ending.outcome == "repaired"
            assert [receipt.rule for receipt in got.ending.receipts] == ["move_reasoning"]
            assert [step.name for step in got.ending.steps] == ["repair"]


@EVERY_FORMAT
async def test_a_call_in_reasoning_without_an_end_is_delivered(name: str) -> None:
    """What was thought before it is reasoning, whole and streamed."""
    text = f"<think>I save it. {WRITTEN}"
    delivered = await scene.ask(
        Script(write_reply(name, text.replace(WRITTEN, write_call()))), client=name, upstream=name
    )
    got = stream(name, [text[at : at + 3] for at in range(0, len(text), 3)])
    for reply in (seen(name, delivered), fold(name, got.sent)):
        assert (reply.reasoning, reply.content or "") == ("I save it.", "")
        assert [call.name for call in reply.calls] == ["save"]
    rules = {receipt.rule for receipt in got.ending.receipts}
    assert rules == {"move_reasoning", "read_call_from_text"}


def write_call() -> str:
    """Write a call of the tool of whole replies as text."""
    return f"<tool_call>{json.dumps({'name': 'save', 'arguments': scene.ARGUMENTS})}</tool_call>"


@EVERY_FORMAT
def test_reasoning_flows_as_it_comes(name: str) -> None:
    """Words of the reasoning go on before it ends; only what may be a tag is held."""
    events = write_stream(name, ["<think>Aha.", " Doors!", " Now!</th", "ink>Open!", " Go!"])
    relayed = StreamRelay(request_for(name), route_to(name), Policy())
    words = ["Aha.", "Doors!", "Now!", "Open!", "Go!"]
    shown: list[str] = []
    for event in events:
        sent = relayed.feed(event)
        shown += [word for word in words if word.encode() in sent]
        if b" Now!</th" in event:
            break
    assert shown == ["Aha.", "Doors!", "Now!"]


@EVERY_FORMAT
@pytest.mark.parametrize(
    "policy",
    [Policy(text_formats=False), Policy(steps=("coerce",))],
    ids=["text formats off", "repair off"],
)
async def test_replies_that_may_not_be_repaired_stay_as_they_are(name: str, policy: Policy) -> None:
    """Byte for byte, whole and streamed."""
    text = "<think>I see.</think>Done."
    body = json.dumps(write_reply(name, text, CALL)).encode()
    delivered = await scene.ask(Script(body), client=name, upstream=name, policy=policy)
    assert (delivered.body, delivered.outcome) == (body, "clean")
    events = write_stream(name, [text[:9], text[9:]], STREAMED_CALL)
    got = relay(request_for(name), route_to(name), events, policy=policy)
    assert got.sent.startswith(b"".join(events))
    assert got.ending.outcome == "clean"


@EVERY_FORMAT
async def test_replies_to_requests_without_tools_stay_as_they_are(name: str) -> None:
    """Byte for byte, whole and streamed."""
    text = "<think>I see.</think>Done."
    request = request_for(name, tools={})
    events = write_stream(name, [text[:9], text[9:]])
    got = relay(request, route_to(name), events)
    assert got.sent.startswith(b"".join(events))
    body = json.dumps(write_reply(name, text)).encode()
    delivered = await scene.ask(Script(body), client=name, upstream=name, body=request.body)
    assert (delivered.body, delivered.outcome) == (body, "clean")


tags = ["<think>", "</think>", "[THINK]", "[/THINK]", "<thi", "</", "<", "<tool_c"]
atoms = st.sampled_from([*tags, "a", "b c", "é", " ", "\n", "Done.", "x < y", "`", "**"])
starts = st.sampled_from(["", "", "<think>", "\n<think>", " [THINK]"])


@st.composite
def pieces_of(draw: st.DrawFn) -> list[str]:
    """Cut a text into pieces."""
    text = draw(starts) + "".join(draw(st.lists(atoms, min_size=1, max_size=8)))
    text = text if text.strip() else "a"
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    return [text[a:b] for a, b in pairwise([0, *cuts, len(text)]) if a < b]


@settings(max_examples=200, deadline=None)
@given(pieces=pieces_of())
@example(pieces=["<think>a<tool_call>", "b</think>c"])
def test_any_cut_of_a_text_gives_what_the_reader_finds(pieces: list[str]) -> None:
    """Text without reasoning stays; reasoning is what the full reading takes as reasoning."""
    splitter = ThoughtSplitter(NAMES)
    split = [*map(splitter.feed, pieces), splitter.close()]
    thought, text = "".join(s.thought for s in split), "".join(s.text for s in split)
    whole = "".join(pieces)
    assert splitter.is_split == begins_thought(whole)
    if not splitter.is_split:
        assert (thought, text) == ("", whole)
    elif "<" not in text and "[" not in text:
        reading = ReplyReader(NAMES).read_whole(whole, "stop")
        assert thought == (reading.reasoning or "").strip()
        assert text.strip() == reading.content.strip()


@EVERY_FORMAT
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_stream_delivers_what_the_whole_reply_does(name: str, data: st.DataObject) -> None:
    """Text and reasoning are the same, with and without tags, and however the text is cut."""
    pieces = data.draw(pieces_of())
    got = stream(name, pieces)
    streamed = fold(name, got.sent)
    body = json.dumps(write_reply(name, "".join(pieces))).encode()
    content, reasoning = judge_whole(name, body)
    # Where a stream is written anew, later tags in its text are read as in translated streams.
    if name in ("chat_completions", "gemini") or not any(mark in content for mark in "<[`"):
        assert (streamed.content or "", streamed.reasoning) == (content, reasoning)
    assert (got.ending.outcome == "repaired") == begins_thought("".join(pieces))


def judge_whole(name: str, body: bytes) -> tuple[str, str | None]:
    """Return the text and the reasoning that a client gets of a whole reply."""
    delivered = asyncio.run(scene.ask(Script(body), client=name, upstream=name))
    reply = seen(name, delivered)
    return reply.content or "", reply.reasoning


def test_so_many_blanks_come_before_no_reasoning() -> None:
    """Blanks are held only so long: what comes behind more of them is text."""
    assert begins_thought(" " * 1000 + "<think>a")
    assert not begins_thought(" " * 1001 + "<think>a")
    splitter = ThoughtSplitter(NAMES)
    said = "".join([splitter.feed(" ").text for _ in range(1001)])
    assert splitter.is_done
    assert said == " " * 1001


def test_blanks_inside_of_reasoning_wait_for_more_of_it() -> None:
    """Blanks at the end of reasoning are no part of it, in however many pieces they come."""
    splitter = ThoughtSplitter(NAMES)
    pieces = ["<think>a", *" \n" * 3, "b", *" " * 3, "</think>c"]
    found = [splitter.feed(piece) for piece in pieces]
    assert "".join(split.thought for split in found) == "a \n \n \nb"
    assert "".join(split.text for split in found) == "c"


@pytest.mark.parametrize("name", ["messages", "responses"])
def test_streams_with_tools_of_the_provider_stay_as_they_are(name: str) -> None:
    """What such a tool sends has no place in a stream that is written anew."""
    own = {"type": "web_search_20250305" if name == "messages" else "web_search", "name": "search"}
    body = json.loads(request_for(name).body)
    body["tools"].append(own)
    request = ClientRequest.parse(name, json.dumps(body).encode(), model="m", stream=True)
    events = write_stream(name, ["<think>I see.</think>", "Done."])
    got = relay(request, route_to(name), events)
    assert got.sent.startswith(b"".join(events))
    assert got.ending.outcome == "clean"


def test_tags_without_end_are_text_at_last() -> None:
    """Only so many are taken, so that a text of nothing else takes no longer than others."""
    splitter = ThoughtSplitter(NAMES)
    split = splitter.feed("<think>a</think>" * 101)
    assert (split.thought.count("a"), split.text) == (100, "<think>a</think>")
