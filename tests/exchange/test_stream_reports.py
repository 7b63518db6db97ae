"""What a stream leaves besides its reply: receipts, echoes, and events that clients can read."""

import json
from typing import Any

import pytest

from surecall.base.records import RawCall
from surecall.exchange import Policy
from surecall.exchange.history import repair_history
from surecall.exchange.request import ClientRequest
from surecall.exchange.signatures import EchoCache
from surecall.exchange.streams import StreamRelay

from .streaming import FORMATS, calls_in, fold, relay, request_for, route_to, stream_of, text_call

LOOSE = RawCall("c1", "save", '{"text": "a", "count": "1", "tags": []}')
EVERY_FORMAT = pytest.mark.parametrize("name", FORMATS)


@EVERY_FORMAT
def test_a_stream_says_what_was_done_when_asked(name: str) -> None:
    """In a comment, or in the last event for clients that know no comments."""
    policy = Policy(show_receipts=True)
    sent = relay(request_for(name), route_to(name), stream_of(name, LOOSE), policy=policy).sent
    if name == "gemini":
        assert b"\n:" not in sent
        report = json.loads(sent.rpartition(b"data: ")[2])["surecall"]
    else:
        comment = sent.rpartition(b": surecall {")[2]
        report = json.loads(b"{" + comment)
    assert (report["outcome"], report["upstream_requests"]) == ("repaired", 1)
    assert [item["rule"] for item in report["receipts"]] == ["parse_number_text"]
    assert calls_in(fold(name, sent)) == [("save", {"text": "a", "count": 1, "tags": []})]
    without = relay(request_for(name), route_to(name), stream_of(name, LOOSE)).sent
    assert b"parse_number_text" not in without


def chat_events(*deltas: dict[str, Any], finish: str = "tool_calls") -> list[bytes]:
    """Return the events of a streamed chat completion."""
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": finish})
    head = {"id": "r1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    events = [json.dumps({**head, "choices": [choice]}).encode() for choice in choices]
    return [b"data: " + event + b"\n\n" for event in (*events, b"[DONE]")]


@pytest.mark.parametrize("arguments", ['{"what": "x"}', '{"what": "x",}'])
def test_reasoning_of_a_stream_is_kept_for_the_next_request(arguments: str) -> None:
    """A client that leaves it out of the history has it put back, as after a whole reply."""
    call = {"index": 0, "id": "a1B2c3D4e", "type": "function"}
    call["function"] = {"name": "look", "arguments": arguments}
    events = chat_events(
        {"role": "assistant", "reasoning_content": "Let me "},
        {"reasoning_content": "look."},
        {"tool_calls": [call]},
    )
    echoes = EchoCache()
    name = "chat_completions"
    policy = Policy()
    stream = StreamRelay(request_for(name), route_to(name), policy, echoes=echoes, scope="k")
    sent = b"".join([stream.feed(event) for event in events]) + stream.finish().data
    made = {"role": "assistant", "tool_calls": [call | {"function": dict(call["function"])}]}
    made["tool_calls"][0]["function"]["arguments"] = fold(name, sent).calls[0].arguments
    result = {"role": "tool", "tool_call_id": "a1B2c3D4e", "content": "a moon"}
    document = {"messages": [{"role": "user", "content": "hi"}, made, result]}
    mended, receipts = repair_history(document, name, echoes=echoes, scope="k")
    assert mended["messages"][1]["reasoning_content"] == "Let me look."
    assert [receipt.rule for receipt in receipts] == ["restore_echo"]
    assert repair_history(document, name, echoes=echoes, scope="other")[1] == ()


def test_signatures_of_a_stream_are_kept_for_the_next_request() -> None:
    """Those of Gemini come with the part that holds the call."""
    call = {"id": "a1B2c3D4e", "name": "look", "args": {"what": "x"}}
    part = {"functionCall": call, "thoughtSignature": "abc"}
    chunk = {"candidates": [{"content": {"role": "model", "parts": [part]}, "index": 0}]}
    last = {"candidates": [{"content": {"role": "model", "parts": []}, "finishReason": "STOP"}]}
    echoes = EchoCache()
    stream = StreamRelay(
        request_for("gemini"), route_to("gemini"), Policy(), echoes=echoes, scope="k"
    )
    for event in (chunk, last):
        stream.feed(b"data: " + json.dumps(event).encode() + b"\n\n")
    assert stream.finish().calls == 1
    said = {"role": "model", "parts": [{"functionCall": part["functionCall"]}]}
    answer = {"functionResponse": {"name": "look", "response": {"output": "a moon"}}}
    document = {"contents": [said, {"role": "user", "parts": [answer]}]}
    mended, _ = repair_history(document, "gemini", echoes=echoes, scope="k")
    assert mended["contents"][0]["parts"][0]["thoughtSignature"] == "abc"


ODD = {
    "no blank": lambda data: data.replace(b"data: ", b"data:").replace(b"event: ", b"event:"),
    "carriage returns": lambda data: data.replace(b"\n", b"\r"),
    "more fields": lambda data: data.replace(b"data: ", b"id: 7\nretry: 10\ndata: "),
    "byte order mark": lambda data: b"\xef\xbb\xbf" + data,
    "comments": lambda data: data.replace(b"\n\n", b"\n\n: still here\n\n"),
}


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("odd", ODD)
@EVERY_FORMAT
def test_odd_events_are_written_as_clients_read_them(name: str, odd: str, size: int) -> None:
    """Whatever the rules of event streams allow, a client gets the usual form."""
    plain = b"".join(text_call(name, "Hello there."))
    data = ODD[odd](plain)
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    got = relay(request_for(name), route_to(name), pieces).sent
    lines = [line for line in got.split(b"\n") if line]
    starts = (b"data: ", b"event: ", b": ") if name != "gemini" else (b"data: ",)
    assert all(line.startswith(starts) for line in lines)
    assert fold(name, got).content == "Hello there."
    if odd != "comments" or name == "gemini":
        own = got.partition(b": surecall")[0]
        assert own == plain


def test_line_ends_of_windows_stay() -> None:
    """Clients read these, so the bytes are left alone."""
    plain = b"".join(text_call("chat_completions", "Hello.")).replace(b"\n", b"\r\n")
    got = relay(request_for("chat_completions"), route_to("chat_completions"), [plain]).sent
    assert got.startswith(plain)


def test_names_of_events_are_given_where_clients_look_for_them() -> None:
    """Clients of messages take no event without its name."""
    plain = b"".join(text_call("messages", "Hello."))
    bare = b"".join(line + b"\n" for line in plain.split(b"\n") if not line.startswith(b"event"))
    got = relay(request_for("messages"), route_to("messages"), [bare[:-1]]).sent
    assert got.partition(b": surecall")[0] == plain


def test_content_in_parts_is_joined() -> None:
    """Clients of chat completions add pieces of text to one another."""
    parts = [{"type": "text", "text": "Hello "}, {"type": "text", "text": "there."}]
    events = chat_events({"role": "assistant", "content": parts}, finish="stop")
    name = "chat_completions"
    got = relay(request_for(name), route_to(name), events).sent
    assert fold(name, got).content == "Hello there."
    assert not fold(name, got).defects
    assert b'"content":"Hello there."' in got


def test_several_replies_are_asked_for_whole_and_streamed() -> None:
    """Each reply has its own place, and usage comes last when it was asked for."""
    document = json.loads(request_for("chat_completions").body)
    document |= {"n": 2, "stream_options": {"include_usage": True}}
    request = ClientRequest.parse("chat_completions", json.dumps(document).encode())
    assert request.streams_several
    whole = request.as_whole()
    assert (whole.stream, whole.choices) == (False, 2)
    assert "stream" not in whole.document
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    made = {"role": "assistant", "content": None, "tool_calls": [call]}
    said = {"role": "assistant", "content": "Hello."}
    reply = {
        "id": "r1",
        "object": "chat.completion",
        "choices": [
            {"index": 0, "message": made, "finish_reason": "tool_calls"},
            {"index": 1, "message": said, "finish_reason": "stop"},
        ],
        "usage": {"total_tokens": 3},
    }
    events = request.write_events(json.dumps(reply).encode()).split(b"\n\n")
    chunks = [json.loads(event[6:]) for event in events[:-2]]
    assert events[-2] == b"data: [DONE]"
    assert chunks[0]["choices"][0]["delta"]["tool_calls"] == [{"index": 0, **call}]
    places = [choice["index"] for chunk in chunks for choice in chunk["choices"]]
    assert places == [0, 0, 1, 1]
    assert chunks[-1]["usage"] == {"total_tokens": 3}
