"""What a client gets of a stream: text at once, whole calls, and an honest end."""

import json
import tracemalloc
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.base.errors import (
    ProviderConnectionError,
    ProviderError,
    ProviderTimeoutError,
    SurecallError,
)
from surecall.base.records import RawCall, Reply, Usage
from surecall.exchange import Policy
from surecall.exchange.request import ClientRequest
from surecall.exchange.streams import StreamRelay
from surecall.faults import FAULTS
from surecall.wire import find_protocol
from surecall.wire.events import EventCutter

from .streaming import (
    ARGUMENTS,
    FORMATS,
    PROMPT,
    calls_in,
    fold,
    recorded,
    relay,
    relay_fault,
    request_for,
    route_to,
    stream_of,
    text_call,
)

EVERY_FORMAT = pytest.mark.parametrize("name", FORMATS)
KINDS = ("calls", "text")
COMMENT = b": surecall outcome=clean receipts=0 request=r-1\n\n"
MARKS = (b'"tool_calls"', b"tool_use", b"function_call", b"functionCall", b"look", b"save")
CALL_TEXT = 'I look.\n<tool_call>\n{"name": "look", "arguments": {"what": "door"}}\n</tool_call>'
RESET = ProviderConnectionError("CONNECTION_RESET", "The connection was reset.")


def last_comment(name: str, outcome: str = "clean") -> bytes:
    """Return what is sent last: clients of Gemini's format do not know comments."""
    return b"" if name == "gemini" else COMMENT.replace(b"clean", outcome.encode())


# Clean streams


@EVERY_FORMAT
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [0, 1, 7, 10**6], ids=["events", "bytes", "sevens", "burst"])
def test_a_clean_stream_comes_out_byte_for_byte(name: str, kind: str, size: int) -> None:
    """Nothing but the comment at the end is added, however the bytes were cut."""
    events = recorded(name, kind)
    data = b"".join(events)
    chunks = events if not size else [data[at : at + size] for at in range(0, len(data), size)]
    got = relay(request_for(name), route_to(name), chunks)
    assert got.sent == data + last_comment(name)
    assert got.ending.outcome == "clean"
    assert got.ending.calls == len(calls_in(fold(name, data)))
    assert got.ending.model_answered
    assert not any(mark in got.flowed for mark in MARKS)


STOPS = {
    "chat_completions": ('"finish_reason":"tool_calls"', '"finish_reason":"stop"'),
    "messages": ('"stop_reason":"tool_use"', '"stop_reason":"end_turn"'),
}
"""How a reply with calls ends, and how one without any does, where the two differ."""


@pytest.mark.parametrize("name", STOPS)
@pytest.mark.parametrize("hold_calls_bytes", [0, 10**6])
def test_a_stream_with_calls_never_ends_like_a_text(name: str, hold_calls_bytes: int) -> None:
    """The finish is put right as it is in a whole reply, also where a call goes on at once."""
    call = RawCall("call_a1", "save", json.dumps(ARGUMENTS))
    usual = [event.decode().replace('": "', '":"') for event in stream_of(name, call)]
    events = [event.replace(*STOPS[name]).encode() for event in usual]
    assert events != [event.encode() for event in usual]
    policy = Policy(hold_calls_bytes=hold_calls_bytes)
    got = relay(request_for(name), route_to(name), events, policy=policy)
    assert (got.ending.outcome, got.ending.calls) == ("repaired", 1)
    assert [receipt.rule for receipt in got.ending.receipts] == ["set_finish_reason"]
    reply = fold(name, got.sent)
    assert reply.finish_reason == "tool_calls"
    assert calls_in(reply) == [("save", ARGUMENTS)]


def test_a_call_that_was_demanded_by_name_may_end_with_a_stop() -> None:
    """Providers of chat completions answer so."""
    call = RawCall("call_a1", "save", json.dumps(ARGUMENTS))
    usual = b"".join(stream_of("chat_completions", call)).decode().replace('": "', '":"')
    request = request_for("chat_completions")
    choice = {"type": "function", "function": {"name": "save"}}
    body = json.dumps({**request.document, "tool_choice": choice}).encode()
    named = ClientRequest.parse("chat_completions", body)
    data = usual.replace(*STOPS["chat_completions"]).encode()
    got = relay(named, route_to("chat_completions"), [data])
    assert (got.ending.outcome, got.ending.calls) == ("clean", 1)


@EVERY_FORMAT
def test_words_flow_at_once(name: str) -> None:
    """Text that cannot begin a call is not held back."""
    events = stream_of(name, text="The door is green, and Paris is far away. " * 3, finish="stop")
    stream = StreamRelay(request_for(name), route_to(name), Policy())
    sent = 0
    has_text = False
    for number, event in enumerate(events[:-6]):  # without the end
        sent += stream.feed(event).count(b"data: ")
        has_text = has_text or b"The " in event  # what only begins a text may wait for it
        assert sent >= number or not has_text  # a space may be the beginning of something


@EVERY_FORMAT
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_every_split_gives_the_same(name: str, data: st.DataObject) -> None:
    """Where the bytes are cut makes no difference to what a client reads."""
    kind = data.draw(st.sampled_from(("calls", "text", "tagged")))
    events = text_call(name, CALL_TEXT) if kind == "tagged" else recorded(name, kind)
    stream = b"".join(events)
    if data.draw(st.booleans()):
        stream = stream.replace(b"\n", b"\r\n")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    chunks = [stream[a:b] for a, b in pairwise([0, *cuts, len(stream)])]
    whole = relay(request_for(name), route_to(name), [stream])
    split = relay(request_for(name), route_to(name), chunks)
    assert split.ending.outcome == whole.ending.outcome
    assert fold(name, split.sent) == fold(name, whole.sent)
    if kind != "tagged":
        assert split.sent == whole.sent


@pytest.mark.parametrize("upstream", FORMATS)
@pytest.mark.parametrize("client", FORMATS)
def test_every_format_is_answered_in_every_other(client: str, upstream: str) -> None:
    """Calls arrive in the client's format with their names and arguments."""
    events = recorded(upstream, "calls")
    got = relay(request_for(client), route_to(upstream), events)
    assert got.ending.outcome == "clean"
    reply = fold(client, got.sent)
    assert calls_in(reply) == calls_in(fold(upstream, b"".join(events)))
    assert reply.finish_reason == "tool_calls"
    assert got.ending.data.endswith(last_comment(client))


FIGURES = ("9223372036854775808", "-9223372036854775809", "NaN", "-Infinity", "1e400", "-1")
ODD_FIGURES = ("1.5", "true", "null", '"12"', "[1]", "{}", "1" + "0" * 400)


def with_figures(event: bytes, figure: str) -> bytes:
    """Return an event in which every number is another; texts stay as they are."""

    def mark(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: mark(item) for key, item in value.items() if key not in ("args", "input")}
        if isinstance(value, list):
            return [mark(item) for item in value]
        return value if isinstance(value, (str, bool)) or value is None else "@figure@"

    head, _, data = event.rpartition(b"data: ")
    if data.startswith(b"[DONE]"):
        return event
    document = json.loads(data)
    marked = mark(document)
    for key in ("candidates", "content_block"):  # what has the arguments stays
        if key in document:
            marked[key] = document[key]
    body = json.dumps(marked).replace('"@figure@"', figure)
    return b"%bdata: %b\n\n" % (head, body.encode())


@pytest.mark.parametrize("figure", [*FIGURES, *ODD_FIGURES])
@pytest.mark.parametrize("upstream", FORMATS)
@pytest.mark.parametrize("client", FORMATS)
def test_a_figure_that_means_nothing_costs_nobody_the_stream(
    client: str, upstream: str, figure: str
) -> None:
    """A provider that counts and numbers wrongly has answered all the same."""
    call = RawCall("c1", "save", json.dumps(ARGUMENTS))
    events = [with_figures(event, figure) for event in stream_of(upstream, call, text="I save.")]
    assert figure.encode() in b"".join(events)
    got = relay(request_for(client), route_to(upstream), events)
    assert got.ending.error is None
    found = fold(client, got.sent)
    assert found.content == "I save. "
    assert calls_in(found) == [("save", ARGUMENTS)]


def test_a_call_without_a_number_is_repaired_like_any_other() -> None:
    """A list in the place of the number says as little as no number."""
    function = {"name": "save", "arguments": json.dumps({**ARGUMENTS, "count": "3"})}
    call = {"index": [1], "id": "c1", "type": "function", "function": function}
    choices = [
        {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": "tool_calls"},
    ]
    events = [b"data: %b\n\n" % json.dumps({"choices": [item]}).encode() for item in choices]
    name = "chat_completions"
    got = relay(request_for(name), route_to(name), [*events, b"data: [DONE]\n\n"])
    assert got.ending.error is None
    assert calls_in(fold(name, got.sent)) == [("save", ARGUMENTS)]


def test_several_replies_at_once_are_passed_on() -> None:
    """Replies beside one another are not read, but their ends are looked for."""
    request = request_for("chat_completions")
    request.choices = 2
    chunks: list[bytes] = []
    for index in (0, 1):
        for delta, finish in (({"content": f"t{index}"}, None), ({}, "stop")):
            choice = {"index": index, "delta": delta, "finish_reason": finish}
            chunks.append(b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n")
    chunks.append(b"data: [DONE]\n\n")
    got = relay(request, route_to("chat_completions"), chunks)
    assert got.ending.outcome == "relayed"
    assert got.sent.startswith(b"".join(chunks))
    assert relay(request, route_to("chat_completions"), chunks[:-2]).ending.outcome == "failed"


# Cut streams


@EVERY_FORMAT
@pytest.mark.parametrize("kind", [*KINDS, "tagged"])
def test_a_cut_anywhere_gives_no_call_and_no_finish(name: str, kind: str) -> None:
    """A stream that was cut ends with an error, and no call was sent before."""
    events = text_call(name, CALL_TEXT) if kind == "tagged" else recorded(name, kind)
    data = b"".join(events)
    request, route = request_for(name), route_to(name)
    step = 1 + len(data) // 350
    for end in range(0, len(data), step):
        got = relay(request, route, [data[:end]])
        assert not any(mark in got.flowed for mark in (*MARKS, b"<tool_call>"))
        try:
            whole = fold(name, data[:end])
        except ProviderError:
            whole = None
        if whole is None:
            assert got.ending.outcome == "failed"
            assert got.ending.error is not None
            with pytest.raises(ProviderError):
                fold(name, got.sent)
        else:  # its end had come: what is left is usage, or a word of farewell
            assert got.ending.outcome in ("clean", "repaired")


@EVERY_FORMAT
@pytest.mark.parametrize(
    "error",
    [RESET, ProviderTimeoutError("IDLE_TIMEOUT", "Nothing came for 60 seconds.")],
    ids=["reset", "idle"],
)
def test_a_broken_connection_ends_with_an_error(name: str, error: SurecallError) -> None:
    """What ended the connection is what the client reads."""
    events = stream_of(name, RawCall("c1", "look", '{"what":"x"}'), text="Let us see")
    last = 1 if name == "gemini" else 2
    got = relay(request_for(name), route_to(name), events[:-last], error=error)
    assert got.ending.error is error
    assert b"functionCall" not in got.sent
    assert b"[DONE]" not in got.sent
    with pytest.raises(ProviderError):
        fold(name, got.sent)
    assert got.ending.data.endswith(last_comment(name, "failed"))


def test_errors_have_the_form_of_the_client() -> None:
    """Each format has its own way to break a stream off."""
    starts = {
        "chat_completions": b'data: {"error":{"message":',
        "responses": b'event: error\ndata: {"type":"error","sequence_number":',
        "messages": b'event: error\ndata: {"type":"error","error":{"type":',
        "gemini": b'data: {"error":{"code":',
    }
    for name, start in starts.items():
        got = relay(request_for(name), route_to(name), recorded(name, "text")[:1])
        assert got.ending.data.startswith(start)
        assert (b"event: response.failed\n" in got.ending.data) == (name == "responses")


def test_numbers_of_a_failed_response_go_on() -> None:
    """The events of an error are numbered behind those that were sent."""
    events = recorded("responses", "calls")
    got = relay(request_for("responses"), route_to("responses"), events[:8])
    numbers = [
        json.loads(line.removeprefix(b"data: "))["sequence_number"]
        for line in got.sent.split(b"\n")
        if line.startswith(b"data: ")
    ]
    assert numbers == list(range(len(numbers)))
    assert json.loads(got.ending.data.split(b"data: ")[2].split(b"\n")[0])["response"]["id"]


# Damaged calls


@EVERY_FORMAT
def test_a_damaged_call_is_repaired(name: str) -> None:
    """The client gets a valid call, and text, usage and finish as they were."""
    damaged = "{'text': 'a', 'count': '3', 'tags': ['x']}"
    call = RawCall("c1", "save", damaged)
    if name in ("messages", "gemini"):  # their calls are objects
        call = RawCall("c1", "save", '{"text": "a", "count": "3", "tags": ["x"]}')
    events = stream_of(name, call, text="I save it")
    got = relay(request_for(name), route_to(name), events)
    assert got.ending.outcome == "repaired"
    assert got.ending.receipts
    reply = fold(name, got.sent)
    assert calls_in(reply) == [("save", {"text": "a", "count": 3, "tags": ["x"]})]
    assert (reply.content or "").strip() == "I save it"
    assert reply.usage == Usage(3, 4, 7)
    assert reply.finish_reason == "tool_calls"
    assert not reply.defects


@pytest.mark.parametrize("upstream", FORMATS)
@pytest.mark.parametrize("client", FORMATS)
def test_a_call_written_as_text_becomes_one(client: str, upstream: str) -> None:
    """The text around the call is sent, the call in text is not."""
    events = text_call(upstream, CALL_TEXT)
    got = relay(request_for(client), route_to(upstream), events)
    assert got.ending.outcome == "repaired"
    assert b"<tool_call>" not in got.sent
    reply = fold(client, got.sent)
    assert calls_in(reply) == [("look", {"what": "door"})]
    assert (reply.content or "").strip() == "I look."
    assert reply.finish_reason == "tool_calls"
    assert not reply.defects


@EVERY_FORMAT
def test_text_that_only_looks_like_a_call_goes_on_as_it_is(name: str) -> None:
    """Held text that turns out to be text keeps its bytes."""
    text = "If a < b then use `x` [1] and {y}, or <b>this</b>. It is 5 < 6, is it not?"
    events = text_call(name, text)
    got = relay(request_for(name), route_to(name), events)
    assert got.sent == b"".join(events) + last_comment(name)


ODD = {"stream_differs", "text_promise", "id_repeated", "arguments_too_large"}
"""Faults that nothing can be seen of, or that bring another call."""
GROUPS = ("stream_", "text_", "arguments_", "id_", "name_")
REPAIRABLE = [
    fault
    for fault in FAULTS
    if fault.name.startswith(GROUPS)
    and fault.name not in ODD
    and not (fault.code or fault.refusal or fault.options)
]


WHOLE_ALREADY = ("gemini", "stream_comments_forever")
"""Here the two events before the fault are the whole reply."""


def with_formats(faults: Sequence[Any]) -> pytest.MarkDecorator:
    """Pair each fault with the formats that it has a form in."""
    pairs = [
        pytest.param(name, fault, id=f"{fault.name}-{name}")
        for fault in faults
        for name in FORMATS
        if (not fault.protocols or name in fault.protocols) and (name, fault.name) != WHOLE_ALREADY
    ]
    return pytest.mark.parametrize(("name", "fault"), pairs)


@with_formats(REPAIRABLE)
def test_repairable_faults_are_repaired(name: str, fault: Any) -> None:
    """The call arrives as the model meant it, in the same and in another format."""
    other = "messages" if name != "messages" else "chat_completions"
    for client in (name, other):
        got = relay_fault(fault.name, client, name, PROMPT, Policy(steps=("repair", "coerce")))
        assert got.ending.outcome in ("clean", "repaired"), got.ending
        reply = fold(client, got.sent)
        assert calls_in(reply) == [("save", ARGUMENTS)]
        assert reply.finish_reason == "tool_calls"


FATAL = [
    fault
    for fault in FAULTS
    if fault.name.startswith("stream_") and fault.code and fault.name not in ODD
]


@with_formats(FATAL)
def test_fatal_faults_end_with_an_error(name: str, fault: Any) -> None:
    """No finish is invented, and nothing of a call is sent."""
    for client in (name, "chat_completions"):
        got = relay_fault(fault.name, client, name, PROMPT)
        assert got.ending.outcome == "failed"
        with pytest.raises(ProviderError):
            fold(client, got.sent)
        assert b"save" not in got.flowed


# Asking again


@EVERY_FORMAT
def test_a_second_request_supplies_the_calls(name: str) -> None:
    """Text that was sent is not sent again; the calls of the second reply follow it."""
    wrong = RawCall("c1", "save", '{"text": "a"}')
    stream = StreamRelay(request_for(name), route_to(name), Policy(), request_id="r-1")
    flowed = b"".join([stream.feed(event) for event in stream_of(name, wrong, text="I save it")])
    first = stream.finish()
    assert first.ask is not None
    assert first.data == b""
    assert b"count" in first.ask
    right = RawCall("c2", "save", '{"text": "a", "count": 1, "tags": []}')
    for event in stream_of(name, right, text="Sorry again"):
        assert stream.feed(event) == b""
    ending = stream.finish()
    assert ending.ask is None
    assert ending.outcome == "reasked"
    assert ending.upstream_requests == 2
    assert ending.usage == Usage(6, 8, 14)
    assert [(step.name, step.outcome) for step in ending.steps] == [("reask", "ok")]
    assert ending.parse_error is not None
    reply = fold(name, flowed + ending.data)
    assert calls_in(reply) == [("save", {"text": "a", "count": 1, "tags": []})]
    assert (reply.content or "").strip() == "I save it"
    assert not reply.defects


@EVERY_FORMAT
def test_what_cannot_be_used_is_refused(name: str) -> None:
    """When asking again does not help, the stream ends with the reason."""
    wrong = RawCall("c1", "save", '{"text": "a"}')
    stream = StreamRelay(request_for(name), route_to(name), Policy(max_requests=2))
    flowed = b""
    for _ in range(2):
        flowed += b"".join([stream.feed(event) for event in stream_of(name, wrong)])
        ending = stream.finish()
    assert ending.ask is None
    assert ending.outcome == "refused"
    assert ending.upstream_requests == 2
    assert ending.error is not None
    assert ending.error.code == "CALLS_REFUSED"
    with pytest.raises(ProviderError):
        fold(name, flowed + ending.data)


@EVERY_FORMAT
def test_a_whole_body_answers_a_second_request(name: str) -> None:
    """The second answer need not be a stream, and its finish counts."""
    cut = RawCall("c1", "save", '{"text": "a", "count": 1, "tags": []}')
    stream = StreamRelay(request_for(name), route_to(name), Policy())
    flowed = b"".join([stream.feed(event) for event in stream_of(name, cut, finish="length")])
    assert stream.finish().ask is not None
    body = find_protocol(name).render_reply(
        Reply(calls=(cut,), finish_reason="tool_calls", model="m", id="r2")
    )
    stream.feed(json.dumps(body).encode())
    ending = stream.finish()
    assert ending.outcome == "reasked"
    reply = fold(name, flowed + ending.data)
    assert [call[0] for call in calls_in(reply)] == ["save"]
    assert reply.finish_reason == "tool_calls"


def test_a_likely_call_is_asked_for_again_delivered_or_left() -> None:
    """The policy decides about a call that may not be whole."""
    name = "chat_completions"
    call = RawCall("c1", "look", '{"what": "x"}')
    events = stream_of(name, call, finish="mystery")
    got = relay(request_for(name), route_to(name), events, policy=Policy())
    assert got.ending.ask is not None
    got = relay(request_for(name), route_to(name), events, policy=Policy(likely_calls="leave"))
    assert got.sent == b"".join(events) + COMMENT
    got = relay(request_for(name), route_to(name), events, policy=Policy(likely_calls="deliver"))
    assert calls_in(fold(name, got.sent)) == [("look", {"what": "x"})]


# Limits and signs of life


def test_comments_go_on_while_a_call_is_held() -> None:
    """Signs of life keep the client waiting."""
    events = recorded("chat_completions", "calls")
    stream = StreamRelay(request_for("chat_completions"), route_to("chat_completions"), Policy())
    for event in events[:3]:
        stream.feed(event)
    assert stream.feed(b": still working\n\n") == b": still working\n\n"
    assert stream.feed(events[3]) == b""
    ping = b'event: ping\ndata: {"type": "ping"}\n\n'
    stream = StreamRelay(request_for("messages"), route_to("messages"), Policy())
    events = recorded("messages", "calls")
    for event in events[:8]:
        stream.feed(event)
    assert stream.feed(ping) == ping


@pytest.mark.parametrize("at", [1, -1], ids=["before", "behind"])
@pytest.mark.parametrize("kind", KINDS)
def test_clients_of_gemini_never_read_a_comment(kind: str, at: int) -> None:
    """They do not know any, wherever it comes, also alone behind a call or the finish."""
    events = recorded("gemini", kind)
    got = relay(
        request_for("gemini"),
        route_to("gemini"),
        [*events[:at], b": still working\n\n", events[-1], b": still working\n\n"],
    )
    assert b"still working" not in got.sent
    assert got.ending.outcome == "clean"


@pytest.mark.parametrize("first", ["Well. ", "See <b>this</b>. "])
@EVERY_FORMAT
def test_a_long_answer_is_not_kept_piece_by_piece(name: str, first: str) -> None:
    """A gateway may hold a thousand of them at once."""
    text = first + "words, and more of them " * 1000
    events = stream_of(name, text=text, finish="stop")[:-6]  # without the end

    def pass_on() -> StreamRelay:
        stream = StreamRelay(request_for(name), route_to(name), Policy())
        for event in events:
            stream.feed(event)
        return stream

    pass_on()  # fills what is shared by all streams
    tracemalloc.start()
    stream = pass_on()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert not stream.done
    assert kept < 5 * len(text)


def test_lines_and_streams_are_limited() -> None:
    """Neither an event nor a stream goes on without end."""
    cutter = EventCutter(max_event_bytes=100, max_stream_bytes=1000)
    assert [event.raw for event in cutter.feed(b"data: 1\n\ndata: 2")] == [b"data: 1\n\n"]
    with pytest.raises(ProviderError, match="100 bytes"):
        cutter.feed(b"x" * 100)
    cutter = EventCutter(max_stream_bytes=50)
    for _ in range(5):
        cutter.feed(b"data: 1\n\n")
    with pytest.raises(ProviderError, match="50 bytes"):
        cutter.feed(b"data: 1\n\n")


@EVERY_FORMAT
def test_an_endless_line_is_refused(name: str) -> None:
    """Nothing of it is sent, and reading stops."""
    stream = StreamRelay(request_for(name), route_to(name), Policy())
    stream.feed(b"data: ")
    chunk = b"a" * 2**20
    fed = 0
    while not stream.done:
        assert stream.feed(chunk) == b""
        fed += 1
        assert fed < 18
    ending = stream.finish()
    assert ending.error is not None
    assert ending.error.code == "STREAM_TOO_LARGE"


def test_a_body_in_the_place_of_a_stream_is_streamed() -> None:
    """A client that asked for a stream gets one."""
    reply = Reply(content="Hello", finish_reason="stop", model="m", id="r1")
    for name in FORMATS:
        body = json.dumps(find_protocol(name).render_reply(reply)).encode()
        got = relay(request_for(name), route_to(name), [body])
        assert fold(name, got.sent).content == "Hello"
        assert got.ending.outcome == "clean"


def test_the_request_to_another_format_asks_for_a_stream() -> None:
    """The client's own bytes are sent where the format is the same."""
    stream = StreamRelay(request_for("messages"), route_to("chat_completions", "big"), Policy())
    body = json.loads(stream.body)
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert body["model"] == "big"
    request = request_for("messages")
    assert StreamRelay(request, route_to("messages"), Policy()).body is request.body


@pytest.mark.parametrize("written", ["", None, "left out"])
def test_a_call_without_arguments_arrives_with_an_empty_object(written: str | None) -> None:
    """Clients decode the arguments of every call, and blank text is no object."""
    tools: dict[str, Any] = {"ping": {"type": "object", "properties": {}}}
    request = request_for("chat_completions", tools=tools)
    events = stream_of("chat_completions", RawCall("c1", "ping", "{}"))
    changed: list[bytes] = []
    for event in events:
        document = json.loads(event[6:]) if event.startswith(b"data: {") else {}
        for choice in document.get("choices", ()):
            for call in choice["delta"].get("tool_calls", ()):
                call["function"]["arguments"] = written
                if written == "left out":
                    del call["function"]["arguments"]
                event = b"data: " + json.dumps(document).encode() + b"\n\n"
        changed.append(event)
    sent = relay(request, route_to("chat_completions"), changed).sent
    (call,) = fold("chat_completions", sent).calls
    assert (call.name, call.arguments) == ("ping", "{}")
