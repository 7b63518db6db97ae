"""What the provider's own tools found outlives a reply whose calls are asked for again."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecall.exchange.policy import Policy, Route
from surecall.exchange.request import ClientRequest
from surecall.exchange.streams import StreamRelay
from surecall.wire import find_protocol

from .scene import Script, ask
from .test_escalation import NAMED
from .test_other_tools import event

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
}
RIGHT = {"city": "Oslo", "days": 3}
WRONG = {"city": "Oslo"}
FORMATS = ("messages", "responses", "gemini")
CITATION = {"type": "web_search_result_location", "url": "https://a.example", "title": "A"}
URL = {"type": "url_citation", "url": "https://a.example", "start_index": 0, "end_index": 4}
TOOLS: dict[str, list[dict[str, Any]]] = {
    "messages": [
        {"name": "look", "input_schema": SCHEMA},
        {"type": "web_search_20250305", "name": "web_search"},
    ],
    "responses": [
        {"type": "function", "name": "look", "parameters": SCHEMA},
        {"type": "web_search"},
    ],
    "gemini": [
        {"functionDeclarations": [{"name": "look", "parameters": SCHEMA}]},
        {"codeExecution": {}},
        {"googleSearch": {}},
    ],
}


def _text(said: str, *annotations: dict[str, Any]) -> dict[str, Any]:
    part = {"type": "output_text", "text": said, "annotations": list(annotations)}
    head = {"type": "message", "id": f"msg_{len(said)}", "role": "assistant"}
    return {**head, "status": "completed", "content": [part]}


FOUND: dict[str, list[dict[str, Any]]] = {
    "messages": [
        {"type": "thinking", "thinking": "Search first.", "signature": "c2ln"},
        {
            "type": "server_tool_use",
            "id": "srvtoolu_1",
            "name": "web_search",
            "input": {"query": "Oslo"},
        },
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [{"type": "web_search_result", "url": "https://a.example", "title": "A"}],
        },
        {"type": "text", "text": "It is cold.", "citations": [CITATION]},
    ],
    "responses": [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {"type": "search", "query": "Oslo"},
        },
        _text("Cold", URL),
    ],
    "gemini": [
        {"executableCode": {"language": "PYTHON", "code": "print(3)"}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "3"}},
    ],
}
GROUNDS = {
    "webSearchQueries": ["Oslo"],
    "groundingChunks": [{"web": {"uri": "https://a.example", "title": "A"}}],
    "groundingSupports": [
        {
            "segment": {"partIndex": 2, "endIndex": 11, "text": "It is cold."},
            "groundingChunkIndices": [0],
        }
    ],
}
SAID: dict[str, dict[str, Any]] = {
    "messages": {"type": "text", "text": "I look."},
    "responses": _text("I look."),
    "gemini": {"text": "I look."},
}


def _call(name: str, arguments: dict[str, Any], number: int = 1) -> dict[str, Any]:
    if name == "messages":
        return {"type": "tool_use", "id": f"toolu_{number}", "name": "look", "input": arguments}
    if name == "gemini":
        return {"functionCall": {"name": "look", "args": arguments}}
    ids = {"id": f"fc_{number}", "call_id": f"call_{number}"}
    head = {"type": "function_call", **ids, "name": "look", "status": "completed"}
    return {**head, "arguments": json.dumps(arguments)}


def _reply(name: str, parts: list[dict[str, Any]], **candidate: Any) -> dict[str, Any]:
    if name == "messages":
        head = {"id": "r", "type": "message", "role": "assistant", "model": "m"}
        return {**head, "content": parts, "stop_reason": "tool_use", "stop_sequence": None}
    if name == "responses":
        return {
            "id": "r",
            "object": "response",
            "status": "completed",
            "model": "m",
            "output": parts,
        }
    content = {"role": "model", "parts": parts}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0, **candidate}]}


def _parts(name: str, document: dict[str, Any]) -> list[dict[str, Any]]:
    if name == "gemini":
        return document["candidates"][0]["content"]["parts"]
    return document["content" if name == "messages" else "output"]


def _body(name: str, *, stream: bool = False) -> bytes:
    tools = {"model": "m", "tools": TOOLS[name]}
    if name == "gemini":
        return json.dumps(
            {**tools, "contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
        ).encode()
    key = "input" if name == "responses" else "messages"
    said = [{"role": "user", "content": "hi"}]
    return json.dumps({**tools, key: said, "max_tokens": 99, "stream": stream}).encode()


async def _ask_again(name: str, *replies: dict[str, Any]) -> dict[str, Any]:
    delivered = await ask(
        Script(*replies), client=name, upstream=name, body=_body(name), capabilities=NAMED
    )
    assert delivered.outcome == "reasked"
    return json.loads(delivered.body)


@pytest.mark.parametrize("name", FORMATS)
async def test_a_whole_reply_begins_with_what_was_found(name: str) -> None:
    """The reply that is asked for again brings calls; results and citations stay."""
    bad = _reply(name, [*FOUND[name], SAID[name], _call(name, WRONG)])
    good = [SAID[name], _call(name, RIGHT, 2)]
    document = await _ask_again(name, bad, _reply(name, good))
    assert _parts(name, document) == [*FOUND[name], *good]


@pytest.mark.parametrize("name", FORMATS)
async def test_each_reply_adds_what_was_found_for_it(name: str) -> None:
    """Two replies that cannot be used leave their results in the order in which they came."""
    bad = [_reply(name, [*FOUND[name], _call(name, {"days": days})]) for days in (1, 2)]
    good = [*FOUND[name], _call(name, RIGHT, 2)]
    document = await _ask_again(name, *bad, _reply(name, good))
    assert _parts(name, document) == [*FOUND[name], *FOUND[name], *good]


@pytest.mark.parametrize("name", FORMATS)
async def test_nothing_found_changes_nothing(name: str) -> None:
    """Words and calls of the first reply are not delivered."""
    good = _reply(name, [SAID[name], _call(name, RIGHT, 2)])
    bad = _reply(name, [SAID[name], _call(name, WRONG)])
    assert await _ask_again(name, bad, good) == good


async def test_a_tool_without_a_result_is_left_out() -> None:
    """Code that waits for the client's answer is refused without it later."""
    waiting: dict[str, Any] = {**FOUND["messages"][1], "id": "srvtoolu_2"}
    good = [_call("messages", RIGHT, 2)]
    found = FOUND["messages"]
    first = [found[0], waiting, *found[1:], waiting, _call("messages", WRONG)]
    document = await _ask_again("messages", _reply("messages", first), _reply("messages", good))
    assert _parts("messages", document) == [*found, *good]


async def test_grounds_of_two_replies_are_joined() -> None:
    """Supports point at their own parts and sources."""
    bad = _reply(
        "gemini",
        [*FOUND["gemini"], {"text": "It is cold."}, _call("gemini", WRONG)],
        groundingMetadata=GROUNDS,
    )
    own = {
        "webSearchQueries": ["days"],
        "groundingChunks": [{"web": {"uri": "https://b.example"}}],
        "groundingSupports": [{"segment": {"endIndex": 7}, "groundingChunkIndices": [0, "x"]}],
    }
    good = [SAID["gemini"], _call("gemini", RIGHT)]
    document = await _ask_again("gemini", bad, _reply("gemini", good, groundingMetadata=own))
    assert _parts("gemini", document) == [*FOUND["gemini"], {"text": "It is cold."}, *good]
    joined = document["candidates"][0]["groundingMetadata"]
    assert joined["webSearchQueries"] == ["Oslo", "days"]
    assert joined["groundingChunks"] == [*GROUNDS["groundingChunks"], *own["groundingChunks"]]
    assert joined["groundingSupports"] == [
        *GROUNDS["groundingSupports"],
        {"segment": {"partIndex": 3, "endIndex": 7}, "groundingChunkIndices": [1]},
    ]


@pytest.mark.parametrize("bad", ["x", None, 3, {"segment": {"partIndex": 99}}])
async def test_odd_grounds_do_no_harm(bad: Any) -> None:
    """A support that points nowhere leaves the rest as it is."""
    grounds = {"groundingSupports": [bad], "searchEntryPoint": {"renderedContent": "<p>"}}
    first = _reply("gemini", [_call("gemini", WRONG)], groundingMetadata=grounds)
    good = [_call("gemini", RIGHT)]
    document = await _ask_again("gemini", first, _reply("gemini", good))
    assert document["candidates"][0]["groundingMetadata"] == grounds
    assert _parts("gemini", document) == good


_ODD: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 3) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                (
                    *("type", "id", "tool_use_id", "citations", "content", "annotations", "text"),
                    *("functionCall", "codeExecutionResult", "segment", "partIndex"),
                    *("groundingChunkIndices", "groundingSupports", "groundingChunks"),
                )
            ),
            inner | st.sampled_from(["tool_use", "server_tool_use", "web_search_call", "message"]),
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("name", FORMATS)
@given(st.lists(_ODD, max_size=4), _ODD)
def test_whatever_came_before_the_reply_stays_whole(name: str, parts: Any, grounds: Any) -> None:
    """Nothing of an earlier reply makes the one that is delivered worse."""
    good = [SAID[name], _call(name, RIGHT, 2)]
    earlier = _reply(name, parts, groundingMetadata=grounds)
    before = json.dumps(earlier)
    kept = find_protocol(name).keep_found(_reply(name, good), earlier)
    assert _parts(name, kept)[-2:] == good
    assert json.dumps(earlier) == before


def _stream(name: str, parts: list[dict[str, Any]], **candidate: Any) -> bytes:
    if name == "gemini":
        whole = _reply(name, [])["candidates"][0]
        chunks = [{"content": {"role": "model", "parts": [part]}, "index": 0} for part in parts]
        chunks[-1] |= candidate
        chunks.append({**whole, "content": {"role": "model", "parts": [{"text": ""}]}})
        return b"".join(event({"candidates": [chunk]}) for chunk in chunks)
    if name == "messages":
        return _messages_stream(parts)
    events: list[tuple[str, dict[str, Any]]] = []
    for index, item in enumerate(parts):
        place = {"output_index": index}
        events.append(("response.output_item.added", {**place, "item": item}))
        if item["type"] == "message":
            part = item["content"][0]
            place["content_index"] = 0
            events.append(("response.output_text.delta", {**place, "delta": part["text"]}))
            events.append(("response.output_text.done", {**place, "text": part["text"]}))
        events.append(("response.output_item.done", {"output_index": index, "item": item}))
    events.append(("response.completed", {"response": _reply(name, parts)}))
    return b"".join(
        event({"type": kind, "sequence_number": at, **item}, kind)
        for at, (kind, item) in enumerate(events)
    )


def _messages_stream(parts: list[dict[str, Any]]) -> bytes:
    begun = {**_reply("messages", []), "stop_reason": None}
    events: list[tuple[str, dict[str, Any]]] = [("message_start", {"message": begun})]
    for index, block in enumerate(parts):
        place = {"index": index}
        start, deltas = dict(block), list[dict[str, Any]]()
        if "input" in block:
            start["input"] = {}
            pieces = json.dumps(block["input"])
            deltas = [{"type": "input_json_delta", "partial_json": pieces}]
        elif block["type"] == "text":
            start = {"type": "text", "text": ""}
            cited = [
                {"type": "citations_delta", "citation": it} for it in block.get("citations", ())
            ]
            deltas = [{"type": "text_delta", "text": block["text"]}, *cited]
        events.append(("content_block_start", {**place, "content_block": start}))
        events += [("content_block_delta", {**place, "delta": delta}) for delta in deltas]
        events.append(("content_block_stop", place))
    events += [("message_delta", {"delta": {"stop_reason": "tool_use"}}), ("message_stop", {})]
    return b"".join(event({"type": kind, **item}, kind) for kind, item in events)


def _relay(name: str, first: bytes, then: bytes) -> tuple[bytes, bytes]:
    """Return what a client gets of a stream, before its end and in all, when it is asked again."""
    protocol = find_protocol(name)
    request = ClientRequest.parse(name, _body(name, stream=True), model="m")
    relay = StreamRelay(request, Route(protocol=protocol, model="m"), Policy())
    passed = relay.feed(first)
    assert relay.finish().ask is not None
    seen = passed + relay.feed(then)
    ending = relay.finish()
    assert ending.outcome == "reasked"
    return passed, seen + ending.data


@pytest.mark.parametrize("at_end", [False, True], ids=["before_call", "behind_call"])
@pytest.mark.parametrize("name", FORMATS)
def test_a_stream_has_what_was_found_once(name: str, at_end: bool) -> None:
    """It was passed on before the call, or is held with it, and comes once."""
    parts = [*FOUND[name], _call(name, WRONG)]
    first = _stream(name, parts[-1:] + parts[:-1] if at_end else parts)
    passed, seen = _relay(name, first, _stream(name, [_call(name, RIGHT, 2)]))
    mark = {"messages": b"tool_result", "responses": b"ws_1", "gemini": b"codeExecutionResult"}
    assert (mark[name] in passed) is not at_end
    if name == "responses":
        items = [
            json.loads(line[6:])["item"]
            for line in seen.split(b"\n")
            if line.startswith(b"data: ") and b".output_item.added" in line
        ]
        assert [item["type"] for item in items].count("web_search_call") == 1
        end = json.loads(seen.split(b"data: ")[-1].split(b"\n")[0])["response"]["output"]
        assert [item for item in end if item["type"] != "function_call"] == FOUND[name]
    else:
        assert seen.count(mark[name]) == 1
    folder = find_protocol(name).open_stream()
    folder.feed(seen)
    raw = folder.close()
    reply = find_protocol(name).parse_message(raw)
    (call,) = reply.calls
    arguments = call.arguments
    assert (json.loads(arguments) if isinstance(arguments, str) else arguments) == RIGHT


def test_grounds_beside_a_call_in_a_stream_are_kept() -> None:
    """The chunk of the wrong call may be the one that holds them."""
    first = _stream("gemini", [SAID["gemini"], _call("gemini", WRONG)], groundingMetadata=GROUNDS)
    _, seen = _relay("gemini", first, _stream("gemini", [_call("gemini", RIGHT)]))
    chunks = [json.loads(line[6:]) for line in seen.split(b"\n") if line.startswith(b"data: {")]
    found = [chunk["candidates"][0] for chunk in chunks if "candidates" in chunk]
    assert [one["groundingMetadata"] for one in found if "groundingMetadata" in one] == [GROUNDS]
    assert all(one["content"]["parts"] for one in found)
