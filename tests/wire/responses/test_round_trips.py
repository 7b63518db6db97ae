"""What one side writes, the other understands; how bytes are cut does not matter."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from support.conversations import requests, words
from surecall.base.errors import ProviderError, RequestError
from surecall.base.records import Message, ModelRequest, ToolCall, WireRequest
from surecall.text import encode
from surecall.wire import RawReply, Responses

from .builders import call_item, event, fold, response, text_item, thought_item

RESPONSES = Responses()
quick = settings(max_examples=80, deadline=None)

_parts = st.one_of(
    words.map(lambda text: {"type": "text", "text": text}),
    words.map(lambda text: {"type": "image_url", "image_url": {"url": f"https://{text}"}}),
    st.just({"type": "image_url", "image_url": {"url": "data:,", "detail": "low"}}),
    st.just({"type": "file", "file": {"file_id": "file_1"}}),
    st.just({"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}),
)
_contents = words | st.lists(_parts, min_size=1, max_size=3)


@st.composite
def turns(draw: st.DrawFn) -> list[Message]:
    """Make a question, a turn with reasoning before some calls, and their results."""
    ids = draw(st.lists(st.text("abc", min_size=1, max_size=3), max_size=3, unique=True))
    content = draw(st.none() | words if ids else words)
    calls = tuple(ToolCall(id=item, name="look", arguments={"q": 1}, raw='{"q":1}') for item in ids)
    # Reasoning leads to what stands first, or to any call behind it.
    behind = ids if content else ids[1:]
    places = [None] * draw(st.integers(0, 2)) + [place for place in behind if draw(st.booleans())]
    reasoning: list[dict[str, Any]] = [
        thought_item(f"rs_{number}", encrypted_content="e") for number in range(len(places))
    ]
    for item, place in zip(reasoning, places, strict=True):
        if place is not None:
            item["_before"] = place
    extra: dict[str, Any] = {"reasoning_items": reasoning} if reasoning else {}
    if content and draw(st.booleans()):
        extra["phase"] = "commentary"
    return [
        Message("user", draw(_contents)),
        Message("assistant", content, calls, extra=extra),
        *(Message("tool", draw(_contents), tool_call_id=item) for item in ids),
    ]


@given(made=st.lists(turns(), min_size=1, max_size=3), system=st.booleans())
@quick
def test_a_history_comes_back_whole(made: list[list[Message]], system: bool) -> None:
    """Calls, results, ids, text, pictures, reasoning and its places."""
    messages = [message for turn in made for message in turn]
    if system:
        messages.insert(0, Message("system", "Be brief."))
    request = ModelRequest(model="m", messages=tuple(messages))
    wire = RESPONSES.render_request(request)
    assert b"_before" not in encode(wire.body)
    assert RESPONSES.parse_request(wire) == request


@given(request=requests())
@quick
def test_a_rendered_request_does_not_change_any_more(request: ModelRequest) -> None:
    """What was understood renders to the same bytes."""
    wire = RESPONSES.render_request(request)
    assert RESPONSES.render_request(RESPONSES.parse_request(wire)) == wire


@st.composite
def outputs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Make the items of an output in any order."""
    items: list[dict[str, Any]] = []
    for number in range(draw(st.integers(0, 4))):
        kind = draw(st.sampled_from(["text", "refusal", "call", "summary", "thought"]))
        text = draw(words)
        name = f"i_{number}"
        if kind == "call":
            items.append(
                call_item(f"c{number}", draw(st.sampled_from(["{}", '{"a": "é😀"}', text])))
            )
        elif kind == "text":
            items.append(text_item(text, name))
        elif kind == "refusal":
            items.append(text_item("", name, content=[{"type": "refusal", "refusal": text}]))
        elif kind == "summary":
            items.append(thought_item(name, text, text, encrypted_content="e"))
        else:
            part = {"type": "reasoning_text", "text": text}
            items.append(thought_item(name, content=[part]))
    return items


def stream_of(output: list[dict[str, Any]], step: int, **fields: Any) -> bytes:
    """Return a response as an honest provider streams it, in pieces of `step` characters."""
    begun = response(status="in_progress", output=[])
    data = event("response.created", response=begun)
    for index, item in enumerate(output):
        place = {"output_index": index, "item_id": item["id"]}
        empty = {**item, **{key: [] for key in ("content", "summary") if key in item}}
        if "arguments" in item:
            empty["arguments"] = ""
        data += event("response.output_item.added", **place, item=empty)
        for kind, text, number in _texts(item):
            for at in range(0, len(text), step):
                piece = text[at : at + step]
                data += event(f"response.{kind}.delta", **place, **number, delta=piece)
        data += event("response.output_item.done", **place, item=item)
    end = response(*output, **fields)
    return data + event(f"response.{end['status']}", response=end)


def _texts(item: dict[str, Any]) -> list[tuple[str, str, dict[str, int]]]:
    if "arguments" in item:
        return [("function_call_arguments", item["arguments"], {})]
    found: list[tuple[str, str, dict[str, int]]] = []
    for number, part in enumerate(item.get("summary", ())):
        found.append(("reasoning_summary_text", part["text"], {"summary_index": number}))
    for number, part in enumerate(item.get("content", ())):
        kind = part["type"]
        text = part["refusal" if kind == "refusal" else "text"]
        found.append((kind, text, {"content_index": number}))
    return found


@given(
    output=outputs(),
    step=st.integers(1, 9),
    sizes=st.lists(st.integers(1, 90), max_size=40),
    cut=st.booleans(),
)
@quick
def test_a_stream_folds_to_the_whole_reply_however_it_is_cut(
    output: list[dict[str, Any]], step: int, sizes: list[int], cut: bool
) -> None:
    """Message, finish, names and usage are equal, nothing is odd, and all text was shown."""
    fields: dict[str, Any] = {"usage": {"input_tokens": 1, "output_tokens": 2}}
    if cut:
        fields |= {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}
    whole = RESPONSES.parse_body(encode(response(*output, **fields)))
    raw, text, reasoning = fold(stream_of(output, step, **fields), sizes)
    assert raw == whole
    reply = RESPONSES.parse_message(raw)
    assert reply.defects == ()
    assert (reasoning or None) == reply.reasoning
    texts = {part["type"] for item in output for part in item.get("content", ())}
    if not {"output_text", "refusal"} <= texts:
        assert (text or None) == reply.content


@given(output=outputs(), step=st.integers(1, 9), sizes=st.lists(st.integers(1, 90), max_size=20))
@quick
def test_pieces_alone_make_the_same_reply(
    output: list[dict[str, Any]], step: int, sizes: list[int]
) -> None:
    """When the end does not repeat the output, and items are not repeated either."""
    events = stream_of(output, step).split(b"\n\n")
    kept = [item for item in events[:-2] if b"output_item.done" not in item]
    end = event("response.completed", response={"id": "resp_1", "model": "m"})
    data = b"\n\n".join(kept) + b"\n\n" + end
    if not output:
        return
    streamed = RESPONSES.parse_message(fold(data, sizes)[0])
    whole = RESPONSES.parse_message(RESPONSES.parse_body(encode(response(*output))))
    assert (streamed.content, streamed.reasoning, streamed.calls, streamed.defects) == (
        whole.content,
        whole.reasoning,
        whole.calls,
        (),
    )


_scalars = st.none() | st.booleans() | st.integers(-2, 3) | st.text("ab", max_size=2)
_kinds = st.sampled_from(
    [
        "message",
        "reasoning",
        "function_call",
        "function_call_output",
        "response.completed",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.delta",
        "response.output_text.done",
        "response.function_call_arguments.delta",
        "response.reasoning_summary_text.done",
        "input_text",
        "input_image",
        "output_text",
    ]
) | st.sampled_from([None, 5, [], {}])
_keys = st.sampled_from(
    [
        "arguments",
        "call_id",
        "content",
        "content_index",
        "delta",
        "detail",
        "error",
        "image_url",
        "id",
        "item",
        "name",
        "output",
        "output_index",
        "phase",
        "response",
        "role",
        "status",
        "summary",
        "text",
    ]
)


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    typed = st.tuples(_kinds, st.dictionaries(_keys, inner, max_size=5))
    return typed.map(lambda pair: {"type": pair[0], **pair[1]})


_json = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | _objects(inner), max_leaves=12
)


@given(items=st.lists(_objects(_json), max_size=6))
@settings(max_examples=120, deadline=None)
def test_events_of_any_shape_end_in_a_reply_or_a_coded_error(items: list[Any]) -> None:
    """Nothing but our own errors comes out, and what is folded can be parsed."""
    data = "".join(f"data: {json.dumps(item)}\n\n" for item in items).encode()
    try:
        raw, _, _ = fold(data)
    except ProviderError:
        return
    assert isinstance(raw, RawReply)
    RESPONSES.parse_message(raw)


_settings = st.dictionaries(
    st.sampled_from(["tools", "tool_choice", "text", "reasoning", "include", "mode", "format"]),
    _json,
    max_size=2,
)


@given(value=st.lists(_json, max_size=4), fields=_settings)
@settings(max_examples=120, deadline=None)
def test_a_request_of_any_shape_is_understood_or_refused(
    value: list[Any], fields: dict[str, Any]
) -> None:
    """Nothing but our own errors comes out, and what is understood can be rendered."""
    body = {"model": "m", "input": value, **fields}
    try:
        request = RESPONSES.parse_request(WireRequest(path="/responses", body=body))
    except RequestError:
        return
    RESPONSES.render_request(request)
