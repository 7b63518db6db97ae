"""Conversations on their way through the gateway: turns in several items, and what goes back."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from .harness import STREAM_HEAD, ask, chunk, completion, reply, serve_stubbed

MESSAGES = "/v1/messages"
TOOL = {
    "name": "look",
    "input_schema": {"type": "object", "properties": {"at": {"type": "string"}}},
}
MOON = {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "moon"}}
MARS = {"type": "tool_use", "id": "t2", "name": "look", "input": {"at": "mars"}}
SAID: dict[str, Any] = {
    "id": "m1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "Fine."}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


def request(*items: tuple[str, Any], **fields: Any) -> dict[str, Any]:
    """Write a request of the messages format: each item is a role and its content."""
    messages = [{"role": role, "content": content} for role, content in (("user", "hi"), *items)]
    return {"model": "m", "max_tokens": 9, "tools": [TOOL], "messages": messages, **fields}


def result(call_id: str, text: str = "seen") -> dict[str, Any]:
    """Write a result."""
    return {"type": "tool_result", "tool_use_id": call_id, "content": text}


async def test_a_turn_in_several_items_keeps_its_bytes(tmp_path: Path) -> None:
    """The endpoint joins them; only a result behind text is moved, and that is noted."""
    text = 'protocol = "messages"\n'
    async with serve_stubbed(tmp_path, [reply(SAID)], text=text) as (served, stub):
        calls = (("assistant", [MOON]), ("assistant", [MARS]))
        whole = request(*calls, ("user", [result("t1")]), ("user", [result("t2")]), ("user", "go"))
        body = json.dumps(whole, indent=1).encode()
        got = await ask(served, "POST", MESSAGES, body)
        assert (got.status, got.headers["x-surecall-outcome"]) == (200, "clean")
        assert stub.bodies[0] == body
        late = request(("assistant", [MOON]), ("user", "note"), ("user", [result("t1")]))
        got = await ask(served, "POST", MESSAGES, late)
        assert [item.rule for item in served.last.receipts] == ["move_result"]
        note = {"type": "text", "text": "note"}
        assert json.loads(stub.bodies[1])["messages"][2:] == [
            {"role": "user", "content": [result("t1"), note]}
        ]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_signature_goes_back_to_gemini(stream: bool, tmp_path: Path) -> None:
    """The client sends back what it got, which has no place for the signature."""
    part = {"functionCall": {"id": "g1", "name": "look", "args": {"at": "moon"}}}
    content = {"role": "model", "parts": [{**part, "thoughtSignature": "c2ln"}]}
    made = {"candidates": [{"content": content, "finishReason": "STOP"}], "modelVersion": "m"}
    event = chunk(b"data: " + json.dumps(made).encode() + b"\n\n")
    answer = [STREAM_HEAD + event + b"0\r\n\r\n"] if stream else [reply(made)]
    text = 'protocol = "gemini"\n'
    async with serve_stubbed(tmp_path, answer, text=text) as (served, stub):
        got = await ask(served, "POST", MESSAGES, request(stream=stream))
        own = re.search(rb'"id": ?"(tc_[0-9a-f]{24})"', got.body)
        assert (got.status, own is not None, b'"g1"' in got.body) == (200, True, False)
        call_id = own[1].decode() if own else ""
        call = {"type": "tool_use", "id": call_id, "name": "look", "input": {"at": "moon"}}
        again = request(("assistant", [call]), ("user", [result(call_id)]), stream=stream)
        assert (await ask(served, "POST", MESSAGES, again)).status == 200
        assert served.last.receipts[0].rule == "restore_echo"
        (sent,) = json.loads(stub.bodies[1])["contents"][1]["parts"]
        assert sent["thoughtSignature"] == "c2ln"
        assert sent["functionCall"] == {**part["functionCall"], "id": call_id}


async def test_what_agent_programs_send_arrives_as_its_endpoint_takes_it(tmp_path: Path) -> None:
    """What is left out is named; what the settings themselves put in arrives."""
    text = 'provider = "vllm"\n[models.m]\nrequest_defaults = { metadata = { team = "a" } }\n'
    text += "request_overrides = { store = true }\n"
    answer = reply(completion())
    async with serve_stubbed(tmp_path, [answer], text=text) as (served, stub):
        said = [
            {"role": "developer", "content": "rules"},
            {"role": "user", "content": [{"type": "input_text", "text": "one"}]},
            {"role": "user", "content": "two"},
        ]
        body = {
            "model": "m",
            "instructions": "be brief",
            "input": said,
            "client_metadata": {"a": 1},
        }
        got = await ask(served, "POST", "/v1/responses", body)
        assert (got.status, got.headers["x-surecall-defects"]) == (200, "FIELD_NOT_CARRIED")
        assert [item.place for item in served.last.defects] == ["client_metadata"]
        sent = json.loads(stub.bodies[0])
        assert sent["messages"] == [
            {"role": "system", "content": "be brief\n\nrules"},
            {"role": "user", "content": "one\n\ntwo"},
        ]
        assert (sent["metadata"], sent["store"]) == ({"team": "a"}, True)
