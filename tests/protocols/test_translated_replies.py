"""What clients of one format get to see of a reply in another, whole and as a stream."""

from typing import Any

import pytest

from support.family_server import render_stream
from surecall.jsontext import SSEReader, decode, encode
from surecall.protocols import PROTOCOLS, StreamTranslator, find_protocol, translate_reply
from surecall.records import Reply, Usage


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
    last = [
        event for event in streamed(name, "messages", reply) if event["type"] == "message_delta"
    ]
    assert last[-1]["usage"] == counts


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
