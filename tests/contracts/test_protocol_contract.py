"""What every wire format promises, on both of its sides."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.conversations import (
    CONVERSATION,
    essence_of_reply,
    essence_of_request,
    replies,
    requests,
)
from support.family_server import render_stream
from surecall.base.errors import Code, ProviderError, ProviderStatusError
from surecall.base.records import Message, ModelRequest, RawCall, Reply, ToolCall, ToolSpec
from surecall.text import decode_own, encode
from surecall.wire import PROTOCOLS, RawReply, WireProtocol, find_protocol

RECORDED = Path(__file__).parents[1] / "wire" / "recorded"

FAMILIES = [find_protocol(name) for name in sorted(PROTOCOLS)]
each_family = pytest.mark.parametrize("family", FAMILIES, ids=sorted(PROTOCOLS))
quick = settings(max_examples=40, deadline=None)


@dataclass(frozen=True)
class Recorded:
    """What a provider sent, and what it means."""

    id: str
    family: WireProtocol
    data: dict[str, Any]

    @property
    def expected(self) -> dict[str, Any]:
        """What is to be understood."""
        return self.data["expect"]

    def stream(self) -> bytes:
        """Return the events as they come over the wire."""
        return b"".join(_event(event) for event in self.data["events"])


def _event(event: Any) -> bytes:
    if isinstance(event, str):
        return f"data: {event}\n\n".encode()
    name = f"event: {event['event']}\n" if "event" in event else ""
    return f"{name}data: {json.dumps(event['data'], ensure_ascii=False)}\n\n".encode()


def recorded(kind: str) -> list[Any]:
    """List the recorded cases of one kind, over all families."""
    found: list[Any] = []
    for name in sorted(PROTOCOLS):
        for path in sorted((RECORDED / name).glob("*.json")):
            data = json.loads(path.read_text("utf-8"))
            case = Recorded(f"{name}-{path.stem}", find_protocol(name), data)
            if kind in data:
                found.append(pytest.param(case, id=case.id))
    return found


def understood(reply: Reply) -> dict[str, Any]:
    """Return a reply in the form in which recorded cases state it."""
    essence = essence_of_reply(reply)
    usage = reply.usage
    return {
        **essence,
        "calls": [list(call) for call in essence["calls"]],
        "usage": None if usage is None else list(msgspec.structs.astuple(usage)),
    }


def fold(family: WireProtocol, data: bytes, sizes: list[int] | None = None) -> Reply:
    """Fold a stream cut into pieces of these sizes, the last as long as is left."""
    return family.parse_message(_fold(family, data, sizes or []))


def _fold(family: WireProtocol, data: bytes, sizes: list[int]) -> RawReply:
    folder = family.open_stream()
    for piece in _cut(data, sizes):
        folder.feed(piece)
    return folder.close()


def _cut(data: bytes, sizes: list[int]) -> Iterator[bytes]:
    start = 0
    for size in sizes:
        yield data[start : start + size]
        start += size
    yield data[start:]


# what providers send


@pytest.mark.parametrize("case", recorded("body"))
def test_a_recorded_reply_is_understood(case: Recorded) -> None:
    """Text, reasoning, calls, finish and usage are what the provider meant, without defects."""
    raw = case.family.parse_body(encode(case.data["body"]))
    reply = case.family.parse_message(raw)
    assert understood(reply) == case.expected
    assert reply.defects == ()


@pytest.mark.parametrize("case", recorded("events"))
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_a_recorded_stream_is_understood_however_it_is_cut(case: Recorded, size: int) -> None:
    """Also when every byte comes alone."""
    data = case.stream()
    reply = fold(case.family, data, [size] * (len(data) // size))
    assert understood(reply) == case.expected
    assert reply.defects == ()


@pytest.mark.parametrize("case", recorded("events"))
def test_a_recorded_stream_without_its_last_events_is_truncated(case: Recorded) -> None:
    """A finish is never invented: nothing of an unfinished reply is used."""
    events = case.data["events"]
    cut = b"".join(_event(event) for event in events[: case.data["finish_at"]])
    with pytest.raises(ProviderError) as caught:
        fold(case.family, cut)
    assert caught.value.code == Code.STREAM_TRUNCATED
    assert caught.value.retryable


@pytest.mark.parametrize("case", recorded("fault"))
def test_a_recorded_error_has_its_code(case: Recorded) -> None:
    """And says whether trying again can help."""
    fault = case.data["fault"]
    error = case.family.parse_error(fault["status"], {}, encode(fault["body"]))
    assert error.code == case.expected["code"]
    assert error.retryable is case.expected["retryable"]
    assert case.expected["message"] in error.message


@pytest.mark.parametrize("case", recorded("broken_stream"))
def test_a_recorded_error_inside_a_stream_has_its_code(case: Recorded) -> None:
    """The status was 200 long before it went wrong."""
    data = b"".join(_event(event) for event in case.data["broken_stream"])
    with pytest.raises(ProviderError) as caught:
        fold(case.family, data)
    assert caught.value.code == case.expected["code"]


@each_family
def test_every_family_has_recorded_cases_of_each_kind(family: WireProtocol) -> None:
    """No family is left with generated cases alone."""
    kinds = {"body", "events", "fault", "broken_stream"}
    for kind in kinds:
        assert [case for case in recorded(kind) if case.values[0].family.name == family.name]


# the seam itself


@each_family
def test_a_family_is_found_by_its_own_name(family: WireProtocol) -> None:
    """The name in settings is the name it gives itself."""
    assert find_protocol(family.name).name == family.name
    assert family.default_prefix.startswith("/v")


@each_family
def test_a_key_goes_into_one_header(family: WireProtocol) -> None:
    """And nowhere else."""
    headers = family.render_auth("k-123")
    assert len(headers) == 1
    assert next(iter(headers.values())).endswith("k-123")


# requests


@each_family
def test_the_same_conversation_comes_back_from_every_format(family: WireProtocol) -> None:
    """What the client side writes, the server side understands."""
    wire = family.render_request(CONVERSATION)
    request = family.parse_request(wire)
    assert essence_of_request(request) == essence_of_request(CONVERSATION)
    assert {"temperature": 0.5, "max_tokens": 100}.items() <= request.params.items()


@each_family
@given(request=requests())
@quick
def test_any_conversation_comes_back(family: WireProtocol, request: ModelRequest) -> None:
    """Calls, results, ids, text and order survive rendering and parsing."""
    wire = family.render_request(request)
    assert wire.stream is request.stream
    assert essence_of_request(family.parse_request(wire)) == essence_of_request(request)


# replies


@each_family
@given(reply=replies())
@quick
def test_what_a_server_renders_a_client_understands(family: WireProtocol, reply: Reply) -> None:
    """Nothing is lost and nothing is odd about it."""
    got = family.parse_message(family.parse_body(encode(family.render_reply(reply))))
    assert essence_of_reply(got) == essence_of_reply(reply)
    assert (got.model, got.id) == (reply.model, reply.id)


@each_family
@given(reply=replies(), sizes=st.lists(st.integers(1, 60), max_size=30))
@quick
def test_a_stream_folds_to_the_same_reply_however_it_is_cut(
    family: WireProtocol, reply: Reply, sizes: list[int]
) -> None:
    """Streamed or whole, cut or not: one reply."""
    whole = family.parse_message(family.parse_body(encode(family.render_reply(reply))))
    streamed = fold(family, b"".join(render_stream(family, reply)), sizes)
    assert essence_of_reply(streamed) == essence_of_reply(whole)
    assert streamed.defects == whole.defects == ()


@each_family
@given(reply=replies())
@quick
def test_text_is_shown_as_it_arrives(family: WireProtocol, reply: Reply) -> None:
    """Every piece of text and reasoning is handed out once."""
    folder = family.open_stream()
    shown = {"text": "", "reasoning": ""}
    for piece in render_stream(family, reply):
        for delta in folder.feed(piece):
            shown[delta.kind] += delta.text
    folder.close()
    assert shown == {"text": reply.content or "", "reasoning": reply.reasoning or ""}


@each_family
@given(reply=replies())
@quick
def test_a_reply_is_understood_again_after_it_was_stored(
    family: WireProtocol, reply: Reply
) -> None:
    """Journals and traces keep the message as JSON and read it later."""
    raw = _fold(family, b"".join(render_stream(family, reply)), [])
    stored = msgspec.convert(decode_own(encode(msgspec.to_builtins(raw))), RawReply)
    assert family.parse_message(stored) == family.parse_message(raw)


@each_family
@given(reply=replies())
@quick
def test_a_stream_without_its_end_is_truncated(family: WireProtocol, reply: Reply) -> None:
    """However much of the reply was there already."""
    *pieces, _ = render_stream(family, reply)
    with pytest.raises(ProviderError) as caught:
        fold(family, b"".join(pieces))
    assert caught.value.code == Code.STREAM_TRUNCATED


@each_family
@pytest.mark.parametrize("calls", [(), (RawCall("c1", "look", {}),)], ids=["text", "calls"])
def test_a_finish_that_is_not_known_is_the_same_whole_and_streamed(
    family: WireProtocol, calls: tuple[RawCall, ...]
) -> None:
    """A provider that answered whole without one did not cut the reply."""
    reply = Reply(content="Hello", calls=calls, model="m", id="reply_1")
    whole = family.parse_message(family.parse_body(encode(family.render_reply(reply))))
    streamed = fold(family, b"".join(render_stream(family, reply)))
    expected = "tool_calls" if calls else "stop"
    assert whole.finish_reason == streamed.finish_reason == expected


SAME_IDS = (
    RawCall("c1", "look", {"what": "a"}),
    RawCall("c1", "look", {"what": "b"}),
    RawCall("c1__2", "look", {"what": "c"}),
    RawCall("c2", "look", {}),
)


@each_family
def test_calls_with_one_id_get_ids_of_their_own(family: WireProtocol) -> None:
    """The same whole, streamed and again, and the first keeps what the model said."""
    reply = Reply(calls=SAME_IDS, finish_reason="tool_calls", model="m", id="reply_1")
    whole = family.parse_message(family.parse_body(encode(family.render_reply(reply))))
    streamed = fold(family, b"".join(render_stream(family, reply)))
    expected = [("c1", "a"), ("c1__2", "b"), ("c1__2__2", "c"), ("c2", None)]
    for got in (whole, streamed):
        assert [
            (call[0], call[2].get("what")) for call in essence_of_reply(got)["calls"]
        ] == expected


@each_family
def test_calls_without_ids_are_told_apart_in_the_same_way_every_time(family: WireProtocol) -> None:
    """Whole or streamed; a format that needs no ids has none."""
    calls = (RawCall(None, "look", {"a": 1}), RawCall("", "look", {"a": 1}), RawCall(7, "go", {}))
    reply = Reply(calls=calls, finish_reason="tool_calls", model="m", id="reply_1")
    whole = family.parse_message(family.parse_body(encode(family.render_reply(reply))))
    streamed = fold(family, b"".join(render_stream(family, reply)))
    ids = [call.id for call in whole.calls]
    assert ids == [call.id for call in streamed.calls]
    assert ids == [None] * 3 if family.name == "gemini" else len(set(ids)) == 3


@each_family
def test_a_plain_body_in_place_of_a_stream_is_told(family: WireProtocol) -> None:
    """Whoever asks whether a provider streams has to know."""
    reply = Reply(content="Hello", finish_reason="stop", model="m", id="reply_1")
    folder = family.open_stream()
    folder.feed(encode(family.render_reply(reply)))
    assert folder.came_whole
    folder = family.open_stream()
    for piece in render_stream(family, reply):
        folder.feed(piece)
    assert not folder.came_whole


@each_family
@pytest.mark.parametrize("mode", ["auto", "required"])
def test_a_choice_among_some_tools_leaves_only_those(family: WireProtocol, mode: str) -> None:
    """Whether by a word of the format or by offering no other."""
    named = {"type": "function", "function": {"name": "look"}}
    request = ModelRequest(
        model="m",
        messages=(Message("user", "Hi"),),
        tools=(ToolSpec(name="look"), ToolSpec(name="leap")),
        tool_choice={
            "type": "allowed_tools",
            "allowed_tools": {"mode": mode, "tools": [named]},
        },
    )
    got = family.parse_request(family.render_request(request))
    assert [tool.name for tool in got.tools] == ["look"]
    assert got.tool_choice == mode


@each_family
def test_a_name_that_a_tool_has_is_the_same_in_history(family: WireProtocol) -> None:
    """What the model reads in its own calls is what it is offered."""
    name = "weather/" + "x" * 140
    request = ModelRequest(
        model="m",
        messages=(
            Message("user", "Hi"),
            Message("assistant", None, (ToolCall(id="c1", name=name, arguments={}),)),
            Message("tool", "fine", tool_call_id="c1"),
        ),
        tools=(ToolSpec(name=name),),
        tool_choice={"type": "function", "function": {"name": name}},
    )
    got = family.parse_request(family.render_request(request))
    offered = got.tools[0].name
    assert got.messages[1].tool_calls[0].name == offered
    assert got.tool_choice == {"type": "function", "function": {"name": offered}}


@each_family
def test_a_call_whose_arguments_were_cut_is_not_made_whole(family: WireProtocol) -> None:
    """A reply that ran into its limit keeps its unreadable arguments, and its finish."""
    call = RawCall("call_1", "look", '{"what": "a')
    reply = Reply(calls=(call,), finish_reason="length", model="m", id="reply_1")
    (got,) = family.parse_message(family.parse_body(encode(family.render_reply(reply)))).calls
    assert got.arguments not in ({}, {"what": "a"})


# errors


CODES = (
    Code.AUTH,
    Code.BAD_REQUEST,
    Code.FORBIDDEN,
    Code.NOT_FOUND,
    Code.OVERLOADED,
    Code.RATE_LIMIT,
    Code.REQUEST_TOO_LARGE,
    Code.UPSTREAM_5XX,
)


@each_family
@pytest.mark.parametrize("code", CODES)
def test_an_error_keeps_its_code_through_a_server(family: WireProtocol, code: Code) -> None:
    """Rendered for a client and understood by one."""
    fault = family.render_error(ProviderStatusError(code, "It went wrong.", status=None))
    error = family.parse_error(fault.status, {}, encode(fault.body))
    assert error.code == code
    assert "It went wrong." in error.message


@each_family
def test_a_stream_that_is_broken_off_says_why(family: WireProtocol) -> None:
    """The client learns more than that it ended early."""
    writer = family.open_writer(model="m")
    error = ProviderStatusError(Code.OVERLOADED, "Too busy.", status=529)
    data = writer.begin() + writer.text("Hel") + writer.fail(error)
    with pytest.raises(ProviderStatusError, match=r"Too busy\."):
        fold(family, data)


@each_family
@given(body=st.binary(max_size=60))
@quick
def test_a_body_of_any_bytes_is_refused_with_a_code(family: WireProtocol, body: bytes) -> None:
    """Only our own errors come out."""
    for read in (family.parse_body, lambda data: fold(family, data)):
        with pytest.raises(ProviderError):
            read(body)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "content", "text", "output", "parts", "name", "id", "arguments", "input"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@each_family
@given(
    message=st.dictionaries(
        st.sampled_from(
            ["role", "content", "tool_calls", "output", "parts", "stop_reason", "type"]
        ),
        _JSON,
        max_size=4,
    )
)
@quick
def test_a_message_of_any_shape_is_read_without_raising(
    family: WireProtocol, message: dict[str, Any]
) -> None:
    """A provider's odd message is noted, never a crash."""
    assert isinstance(family.parse_message(RawReply(message=message)), Reply)
