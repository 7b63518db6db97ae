"""What clients of one format get to see of a reply in another, whole and as a stream."""

from typing import Any

import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from support.family_server import render_stream
from surecall.base.records import Reply, Usage
from surecall.text import SSEReader, decode, encode
from surecall.wire import PROTOCOLS, StreamTranslator, find_protocol, translate_reply


def translated(source: str, target: str, body: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Translate a whole body."""
    return translate_reply(encode(body), find_protocol(source), find_protocol(target), **fields)


def streamed(source: str, target: str, reply: Reply, **fields: Any) -> list[Any]:
    """Translate a stream of a reply, byte by byte, and return the events of the client."""
    translator = StreamTranslator(find_protocol(source), find_protocol(target), "m", **fields)
    data = b"".join(render_stream(find_protocol(source), reply))
    written = [translator.feed(data[at : at + 1]) for at in range(len(data))]
    written.append(translator.close())
    assert translator.error is None
    reader = SSEReader()
    events = [*reader.feed(b"".join(written)), *reader.close()]
    return [event.data if event.data == "[DONE]" else decode(event.data) for event in events]


# usage


MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "Hello"}],
    "stop_reason": "end_turn",
    "usage": {
        "input_tokens": 5,
        "cache_creation_input_tokens": 70,
        "cache_read_input_tokens": 20,
        "output_tokens": 3,
    },
}


def test_tokens_that_were_put_into_the_cache_are_counted_for_every_client() -> None:
    """They cost more than others, so a client looks for them."""
    chat = translated("messages", "chat_completions", MESSAGE)["usage"]
    assert chat["prompt_tokens"] == 95
    assert chat["prompt_tokens_details"] == {"cached_tokens": 20, "cache_write_tokens": 70}
    response = translated("messages", "responses", MESSAGE)["usage"]
    assert response["input_tokens"] == 95
    assert response["input_tokens_details"] == {"cached_tokens": 20, "cache_write_tokens": 70}
    gemini = translated("messages", "gemini", MESSAGE)["usageMetadata"]
    assert gemini == {
        "promptTokenCount": 95,
        "candidatesTokenCount": 3,
        "totalTokenCount": 98,
        "cachedContentTokenCount": 20,
    }


@pytest.mark.parametrize("name", sorted(PROTOCOLS.keys() - {"gemini"}))
def test_a_client_of_messages_gets_the_counts_that_it_knows(name: str) -> None:
    """What was put into the cache and what came from it are no part of the other input."""
    usage = Usage(95, 3, 98, cached_tokens=20, cache_write_tokens=70)
    reply = Reply(content="Hello", finish_reason="stop", usage=usage)
    counts = {
        "input_tokens": 5,
        "cache_creation_input_tokens": 70,
        "cache_read_input_tokens": 20,
        "output_tokens": 3,
    }
    body = find_protocol(name).render_reply(reply)
    assert translated(name, "messages", body)["usage"] == counts
    events = streamed(name, "messages", reply)
    assert next(e for e in events if e["type"] == "message_delta")["usage"] == counts


# how a turn ended


PAUSED = Reply(content="So far.", finish_reason="pause_turn")


def test_a_paused_turn_has_ended_for_clients_that_know_no_pause() -> None:
    """No client gets a word that its format does not have."""
    body = find_protocol("messages").render_reply(PAUSED)
    assert body["stop_reason"] == "pause_turn"
    choice = translated("messages", "chat_completions", body)["choices"][0]
    assert choice["finish_reason"] == "stop"
    chunks = streamed("messages", "chat_completions", PAUSED)
    finishes = [item["finish_reason"] for chunk in chunks[:-1] for item in chunk["choices"]]
    assert [finish for finish in finishes if finish] == ["stop"]
    response = translated("messages", "responses", body)
    assert (response["status"], response["incomplete_details"]) == ("completed", None)
    last = streamed("messages", "responses", PAUSED)[-1]
    assert (last["type"], last["response"]["status"]) == ("response.completed", "completed")
    candidate = translated("messages", "gemini", body)["candidates"][0]
    assert candidate["finishReason"] == "OTHER"


# refusals


NO = "I cannot help with that."
REFUSED = Reply(content=NO, finish_reason="stop", is_refusal=True)


@pytest.mark.parametrize("source", ["chat_completions", "responses"])
def test_a_refusal_is_one_in_every_format(source: str) -> None:
    """A client that looks for it finds it where its format has it, and never takes it for text."""
    body = find_protocol(source).render_reply(REFUSED)
    message = translated(source, "chat_completions", body)["choices"][0]["message"]
    assert message == {"role": "assistant", "content": None, "refusal": NO}
    response = translated(source, "responses", body)
    assert response["status"] == "completed"
    assert response["output"][0]["content"] == [{"type": "refusal", "refusal": NO}]
    said = translated(source, "messages", body)
    assert said["content"] == [{"type": "text", "text": NO}]
    assert said["stop_reason"] == "refusal"
    candidate = translated(source, "gemini", body)["candidates"][0]
    assert candidate["content"]["parts"] == [{"text": NO}]
    assert candidate["finishReason"] == "SAFETY"


def test_a_streamed_refusal_is_one_for_chat() -> None:
    """Its pieces are in `delta.refusal`."""
    chunks = streamed("responses", "chat_completions", REFUSED)
    deltas = [choice["delta"] for chunk in chunks[:-1] for choice in chunk["choices"]]
    assert "".join(delta.get("refusal") or "" for delta in deltas) == NO
    assert not any(delta.get("content") for delta in deltas)


def test_a_streamed_refusal_is_one_for_responses() -> None:
    """It has events of its own, and the response at the end has it too."""
    events = streamed("chat_completions", "responses", REFUSED)
    kinds = [event["type"] for event in events]
    assert "response.output_text.delta" not in kinds
    pieces = [event for event in events if event["type"] == "response.refusal.delta"]
    assert "".join(event["delta"] for event in pieces) == NO
    done = next(event for event in events if event["type"] == "response.refusal.done")
    assert done["refusal"] == NO
    part = {"type": "refusal", "refusal": ""}
    begun = next(event for event in events if event["type"] == "response.content_part.added")
    assert begun["part"] == part
    ended = next(event for event in events if event["type"] == "response.content_part.done")
    assert ended["part"] == {**part, "refusal": NO}
    assert events[-1]["response"]["output"][0]["content"] == [{**part, "refusal": NO}]
    for event in events:
        TypeAdapter(ResponseStreamEvent).validate_python(event)


@pytest.mark.parametrize("source", ["chat_completions", "responses"])
def test_a_streamed_refusal_is_text_elsewhere_and_the_end_says_so(source: str) -> None:
    """These formats have no other place for it."""
    events = streamed(source, "messages", REFUSED)
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert "".join(delta["text"] for delta in deltas) == NO
    end = next(event for event in events if event["type"] == "message_delta")
    assert end["delta"]["stop_reason"] == "refusal"
    candidates = [chunk["candidates"][0] for chunk in streamed(source, "gemini", REFUSED)]
    parts = [part for candidate in candidates for part in candidate["content"]["parts"]]
    assert "".join(part["text"] for part in parts) == NO
    assert candidates[-1]["finishReason"] == "SAFETY"


def test_a_message_without_a_refusal_says_that_too() -> None:
    """The field is there in every reply of the API itself."""
    body = find_protocol("messages").render_reply(Reply(content="Hello", finish_reason="stop"))
    message = translated("messages", "chat_completions", body)["choices"][0]["message"]
    assert message == {"role": "assistant", "content": "Hello", "refusal": None}


# what the client asked for


COUNTED = Reply(content="Hello", finish_reason="stop", usage=Usage(7, 5, 12))
SOURCES = sorted(PROTOCOLS.keys() - {"chat_completions"})


@pytest.mark.parametrize("source", SOURCES)
def test_usage_comes_last_in_a_stream_that_is_to_have_it(source: str) -> None:
    """In a chunk without a choice, as the API does it; all others say that they have none."""
    asked = {"stream_options": {"include_usage": True}}
    *chunks, last, done = streamed(source, "chat_completions", COUNTED, request=asked)
    assert done == "[DONE]"
    assert last["choices"] == []
    assert last["usage"]["total_tokens"] == 12
    assert all(chunk["choices"] and chunk["usage"] is None for chunk in chunks)
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("asked", [{}, {"stream_options": {"include_usage": False}}])
def test_usage_is_in_no_chunk_of_another_stream(source: str, asked: dict[str, Any]) -> None:
    """A client that did not ask for it may trip over a chunk without a choice."""
    *chunks, done = streamed(source, "chat_completions", COUNTED, request=asked)
    assert done == "[DONE]"
    assert all(chunk["choices"] and "usage" not in chunk for chunk in chunks)


TOOL: dict[str, Any] = {
    "type": "function",
    "name": "look",
    "parameters": {"type": "object", "properties": {}},
    "strict": True,
}
WISHES: dict[str, Any] = {
    "instructions": "Be brief.",
    "max_output_tokens": 50,
    "metadata": {"a": "b"},
    "parallel_tool_calls": False,
    "temperature": 0.5,
    "tool_choice": {"type": "function", "name": "look"},
    "top_p": 0.9,
    "top_logprobs": 2,
    "truncation": "auto",
    "user": "ann",
}


def test_a_response_repeats_the_settings_of_its_request() -> None:
    """Whole, when it begins and when it ends; what is null counts as not said."""
    asked = {
        **WISHES,
        "model": "m",
        "input": "Hi",
        "store": True,
        "tools": [TOOL],
        "reasoning": {"effort": "low"},
        "text": {"verbosity": "low"},
        "prompt_cache_key": None,
    }
    body = find_protocol("chat_completions").render_reply(COUNTED)
    response = translated("chat_completions", "responses", body, request=asked)
    events = streamed("chat_completions", "responses", COUNTED, request=asked)
    for found in (response, events[0]["response"], events[-1]["response"]):
        assert {key: found[key] for key in WISHES} == WISHES
        assert found["tools"] == [{"description": None, **TOOL}]
        assert found["reasoning"] == {"effort": "low", "summary": None}
        assert found["text"] == {"format": {"type": "text"}, "verbosity": "low"}
        assert found["store"] is False
        assert not found.keys() & {"input", "prompt_cache_key"}
        Response.model_validate(found)


def test_a_response_to_a_request_that_says_nothing_has_the_settings_of_the_api() -> None:
    """Every field that clients count on is there."""
    found = find_protocol("responses").render_reply(COUNTED, {"model": "m", "input": "Hi"})
    assert (found["tools"], found["tool_choice"], found["instructions"]) == ([], "auto", None)
    assert (found["parallel_tool_calls"], found["metadata"]) == (True, {})
    Response.model_validate(found)
