"""Calls that are long or come slowly: their beginning goes on as it came; a cut one never ends."""

import gc
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.base.errors import ProviderError
from surecall.base.json_values import as_fields
from surecall.base.records import RawCall
from surecall.exchange import Policy
from surecall.exchange.policy import Ending
from surecall.exchange.streams import StreamRelay
from surecall.text import SSEReader

from .streaming import (
    ARGUMENTS,
    PROMPT,
    calls_in,
    fold,
    relay_fault,
    request_for,
    route_to,
    slow_stream,
    stream_of,
)

STREAMED = ("chat_completions", "responses", "messages")
WRITTEN = json.dumps(ARGUMENTS, ensure_ascii=False)
RIGHT = [("save", ARGUMENTS)]
_LASTS = (b'"finish_reason":"', b"arguments.done", b"content_block_stop")


class Client:
    """What a client gets of a stream, one second after the other."""

    def __init__(self, name: str, **policy: Any) -> None:
        self.now = 0.0
        self.heard = [0.0]
        self.data = b""
        self.relay = StreamRelay(
            request_for(name), route_to(name), Policy(**policy), clock=lambda: self.now
        )

    def feed(self, chunks: list[bytes], seconds: float = 1.0) -> None:
        """Pass chunks on, and look after the client every two seconds."""
        for chunk in chunks:
            for sent in (self.relay.feed(chunk), self.relay.pulse() if self.now % 2 == 0 else b""):
                self.data += sent
                if sent:
                    self.heard.append(self.now)
            self.now += seconds

    def finish(self) -> Ending:
        """End the stream."""
        ending = self.relay.finish()
        self.data += ending.data
        return ending


def played(name: str, chunks: list[bytes], **policy: Any) -> tuple[Client, Ending]:
    """Return a client that has heard a whole stream, and the end of that."""
    client = Client(name, **policy)
    client.feed(chunks)
    return client, client.finish()


@pytest.mark.parametrize("text", ["", "I save it."])
@pytest.mark.parametrize("name", STREAMED)
def test_a_slow_call_goes_on_as_it_came(name: str, text: str) -> None:
    """Byte for byte, from five seconds on; the object ends with the reply alone."""
    chunks = slow_stream(name, WRITTEN, text=text)
    client, ending = played(name, chunks, hold_calls_s=5.0)
    assert (ending.outcome, ending.calls) == ("clean", 1)
    assert calls_in(fold(name, client.data)) == RIGHT
    gaps = [after - before for before, after in zip(client.heard, client.heard[1:], strict=False)]
    assert max(gaps) <= 5
    relay = StreamRelay(request_for(name), route_to(name), Policy(hold_calls_s=0))
    flowed = [relay.feed(chunk) for chunk in chunks]
    whole = b"".join(chunks)
    assert whole.startswith(b"".join(flowed))
    assert len(b"".join(flowed)) > len(whole) // 2
    assert b"".join([*flowed, relay.finish().data]).startswith(whole[:-1])


@pytest.mark.parametrize("name", STREAMED)
def test_a_large_call_goes_on_at_once(name: str) -> None:
    """Also when no time passes at all."""
    long = json.dumps({**ARGUMENTS, "text": "word " * 5000})
    chunks = slow_stream(name, long, size=100)
    client = Client(name)
    client.feed(chunks[: len(chunks) - 12], seconds=0)
    assert len(client.data) > 20_000
    client.feed(chunks[len(chunks) - 12 :], seconds=0)
    assert client.finish().outcome == "clean"
    small = Client(name)
    small.feed(slow_stream(name, WRITTEN), seconds=0)
    assert WRITTEN[:10] not in json.dumps(small.data.decode())


@pytest.mark.parametrize("name", STREAMED)
def test_a_call_that_was_cut_is_never_whole(name: str) -> None:
    """At every event the stream may end in; the client is told of an error and of no finish."""
    chunks = slow_stream(name, WRITTEN, size=6)
    for end in range(1, len(chunks)):
        for refused in ("auto", "deliver", "tell"):
            client = Client(name, hold_calls_s=0.0, refused_calls=refused)
            client.feed(chunks[:end])
            has_begun = b"save" in client.data
            ending = client.finish()
            if ending.error is None and ending.ask is None:
                assert calls_in(fold(name, client.data)) == RIGHT  # only the end itself was lost
                continue
            if has_begun:
                assert ending.ask is None
                assert b"error" in ending.data
                with pytest.raises(ProviderError):
                    fold(name, client.data)
            assert arguments_in(client.data) != ARGUMENTS


def arguments_in(data: bytes) -> Any:
    """Return the arguments that a client has of the first call, if these are JSON."""
    pieces: list[str] = []
    reader = SSEReader()
    for event in reader.feed(data) + reader.close():
        fields: dict[str, Any] = {} if event.data == "[DONE]" else json.loads(event.data)
        for choice in fields.get("choices", ()):
            calls = choice["delta"].get("tool_calls", ())
            pieces += [call["function"].get("arguments", "") for call in calls]
        if fields.get("type") == "response.function_call_arguments.delta":
            pieces.append(fields["delta"])
        pieces.append(as_fields(fields.get("delta")).get("partial_json", ""))
    try:
        return json.loads("".join(pieces))
    except ValueError:
        return None


@pytest.mark.parametrize("name", STREAMED)
@pytest.mark.parametrize(
    "written",
    [WRITTEN.replace("true", "True"), WRITTEN[:-1] + ",}", WRITTEN.replace('"urgent"', "urgent")],
    ids=["a word of Python", "a comma", "no quotes"],
)
def test_the_rest_is_repaired(name: str, written: str) -> None:
    """What cannot be sent as it is waits, and what comes goes on from what was sent."""
    client, ending = played(name, slow_stream(name, written, size=3), hold_calls_s=3.0)
    assert (ending.outcome, ending.calls) == ("repaired", 1)
    assert calls_in(fold(name, client.data)) == RIGHT
    assert arguments_in(client.data) == ARGUMENTS
    early = StreamRelay(request_for(name), route_to(name), Policy(hold_calls_s=0))
    sent = b"".join([early.feed(chunk) for chunk in slow_stream(name, written, size=3)])
    assert sent.count(b"delta") > 10


@pytest.mark.parametrize("name", STREAMED)
@pytest.mark.parametrize("written", [WRITTEN[:-1], WRITTEN + "}"], ids=["no brace", "one more"])
def test_an_end_in_doubt_is_asked_for_again(name: str, written: str) -> None:
    """The second reply counts only if it begins with exactly what was sent."""
    for again, outcome in ((WRITTEN, "reasked"), (WRITTEN.replace("Zo", "zo"), "refused")):
        client = Client(name, hold_calls_s=3.0, max_requests=2)
        client.feed(slow_stream(name, written, size=3))
        assert client.finish().ask is not None
        client.feed(slow_stream(name, again))
        ending = client.finish()
        assert (ending.outcome, ending.ask) == (outcome, None)
        if outcome == "reasked":
            assert calls_in(fold(name, client.data)) == RIGHT
            assert arguments_in(client.data) == ARGUMENTS
        else:
            with pytest.raises(ProviderError):
                fold(name, client.data)


@pytest.mark.parametrize("name", STREAMED)
def test_a_token_limit_in_a_call_is_no_finish(name: str) -> None:
    """The reply came to its end, and the call did not."""
    calls = (RawCall("c1", "save", WRITTEN),)
    whole = slow_stream(name, WRITTEN[:-20], size=3)
    last = [event for event in stream_of(name, *calls, finish="length") if b"length" in event]
    last = last or [event for event in stream_of(name, *calls, finish="length") if b"max_" in event]
    at = next(n for n, event in enumerate(whole) if any(one in event for one in _LASTS))
    client, ending = played(name, [*whole[:at], *last], hold_calls_s=0.0, refused_calls="deliver")
    assert ending.error is not None
    assert ending.ask is None
    with pytest.raises(ProviderError):
        fold(name, client.data)


@pytest.mark.parametrize("name", STREAMED)
def test_a_call_that_lacks_something_is_no_silent_call(name: str) -> None:
    """It is delivered as made where the policy says so, and is an error otherwise."""
    wrong = json.dumps({"text": "a long text", "count": 1})
    chunks = slow_stream(name, wrong, size=3)
    client, ending = played(name, chunks, hold_calls_s=3.0, refused_calls="deliver")
    assert ending.outcome == "unrepaired"
    assert arguments_in(client.data) == json.loads(wrong)
    assert fold(name, client.data).calls
    for refused in ("auto", "tell", "error"):
        client, ending = played(name, chunks, hold_calls_s=3.0, refused_calls=refused)
        assert (ending.outcome, ending.ask) == ("refused", None)
        assert ending.error is not None
        with pytest.raises(ProviderError):
            fold(name, client.data)


@pytest.mark.parametrize("name", STREAMED)
@pytest.mark.parametrize(
    "written",
    ["{'text': 'a', 'count': 3, 'tags': []}", '{"txt": "a", "count": 3, "tags": []}'],
    ids=["quotes", "name"],
)
def test_a_call_in_doubt_is_held(name: str, written: str) -> None:
    """From the first doubt on nothing is sent, so that all of it can be made right."""
    client, ending = played(name, slow_stream(name, written, size=30), hold_calls_s=0.0)
    assert ending.error is None
    assert arguments_in(client.data) in (None, {"text": "a", "count": 3, "tags": []})


@pytest.mark.parametrize("name", STREAMED)
def test_more_calls_come_behind_the_first(name: str) -> None:
    """They are held until the reply has ended; a repair of one keeps the other."""
    calls = (RawCall("c1", "save", WRITTEN), RawCall("c2", "look", '{"What": "b"}'))
    chunks = stream_of(name, *calls)
    client = Client(name, hold_calls_s=0.0)
    client.feed(chunks)
    ending = client.finish()
    assert ending.error is None
    assert calls_in(fold(name, client.data)) == [*RIGHT, ("look", {"what": "b"})]


@settings(max_examples=25)
@given(data=st.data())
@pytest.mark.parametrize("name", STREAMED)
def test_any_text_and_any_split(name: str, data: st.DataObject) -> None:
    """Whatever is in the arguments, the client has the same as without any hurry."""
    text = data.draw(st.text(max_size=30))
    written = json.dumps({**ARGUMENTS, "text": text}, ensure_ascii=data.draw(st.booleans()))
    cut = data.draw(st.integers(0, 2))
    stream = b"".join(slow_stream(name, written[: len(written) - cut], size=4))
    size = data.draw(st.integers(1, 400))
    chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
    quick, _ = played(name, chunks, hold_calls_s=0.0, steps=("repair",))
    usual, _ = played(name, chunks, hold_calls_s=1e9, steps=("repair",))
    try:
        right = calls_in(fold(name, usual.data))
    except ProviderError:
        right = None
    try:
        found = calls_in(fold(name, quick.data))
    except ProviderError:
        found = None
    assert found in (right, None) if cut else found == right


def test_gemini_has_its_calls_in_one_piece() -> None:
    """So nothing of them can go on earlier."""
    client, ending = played("gemini", stream_of("gemini", RawCall("c1", "save", ARGUMENTS)))
    assert (ending.outcome, ending.calls) == ("clean", 1)
    assert calls_in(fold("gemini", client.data)) == RIGHT


@pytest.mark.parametrize("name", ["chat_completions", "messages", "gemini"])
def test_an_end_that_no_client_knows_is_named_for_the_calls_before_it(name: str) -> None:
    """Some clients run a call only if the reply ends with the word for calls."""
    got = relay_fault("finish_unknown", name, name, PROMPT)
    assert got.ending.outcome == "repaired"
    assert [receipt.rule for receipt in got.ending.receipts] == ["set_finish_reason"]
    assert fold(name, got.sent).finish_reason == "tool_calls"
    assert b"COMPLETE" not in got.sent


@pytest.mark.parametrize("name", STREAMED)
def test_a_held_call_leaves_nothing_to_collect(name: str) -> None:
    """What is held of a stream is let go of at its end, without a search for garbage."""
    chunks = slow_stream(name, WRITTEN)

    def pass_on() -> None:
        relay = StreamRelay(request_for(name), route_to(name), Policy())
        for chunk in chunks:
            relay.feed(chunk)
        assert relay.finish().calls == 1

    pass_on()
    gc.collect()
    gc.disable()
    try:
        pass_on()
        assert gc.collect() == 0
    finally:
        gc.enable()


def gemini_pieces(*parts: dict[str, Any]) -> list[bytes]:
    """Return a stream of Gemini 3 with one call in pieces."""
    events: list[bytes] = []
    for part in (*parts, None):
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": []}, "index": 0}
        if part is None:
            candidate["finishReason"] = "STOP"
        else:
            candidate["content"]["parts"] = [{"functionCall": part}]
        body = {"candidates": [candidate], "modelVersion": "g", "responseId": "r"}
        events.append(b"data: " + json.dumps(body).encode() + b"\r\n\r\n")
    return events


@pytest.mark.parametrize("client", ["gemini", "chat_completions"])
def test_arguments_in_pieces_of_gemini_arrive_whole(client: str) -> None:
    """The optional ones too; in Gemini's format byte for byte, with signs of life meanwhile."""
    piece = {"jsonPath": "$.what", "stringValue": "a b", "willContinue": True}
    more = {"jsonPath": "$.what", "stringValue": " c"}
    events = gemini_pieces(
        {"name": "look", "id": "c1", "willContinue": True},
        {"partialArgs": [piece], "willContinue": True},
        {"partialArgs": [more], "willContinue": True},
        {},
    )
    relay = StreamRelay(request_for(client), route_to("gemini"), Policy(), request_id="x")
    sent = b"".join(relay.feed(event) for event in events[:-1])
    sent += relay.feed(events[-1])
    ending = relay.finish(None)
    assert ending.outcome == "clean"
    assert calls_in(fold(client, sent + ending.data)) == [("look", {"what": "a b c"})]
    if client == "gemini":
        assert (sent + ending.data).startswith(b"".join(events))


def test_a_call_of_gemini_that_never_ends_is_not_delivered() -> None:
    """Though all that it needs is there: it was cut."""
    piece = {"jsonPath": "$.what", "stringValue": "a b"}
    events = gemini_pieces(
        {"name": "look", "id": "c1", "willContinue": True},
        {"partialArgs": [piece], "willContinue": True},
    )
    relay = StreamRelay(
        request_for("gemini"), route_to("gemini"), Policy(max_requests=1), request_id="x"
    )
    sent = b"".join(map(relay.feed, events))
    ending = relay.finish(None)
    assert ending.outcome == "refused"
    assert b"a b" not in sent
