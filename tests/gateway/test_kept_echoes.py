"""What providers want back is found by other workers and after a restart."""

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from surecall.store.remembered_signatures import ECHOES_FILE, KeptEchoes

from .harness import ask, reply, serve_stubbed

CHAT = "/v1/chat/completions"
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


def request(*items: Any) -> dict[str, Any]:
    """Write a request of chat completions."""
    return {"model": "m", "tools": [TOOL], "messages": [{"role": "user", "content": "hi"}, *items]}


def signed(signature: str) -> bytes:
    """Write an answer with a call that has no id."""
    part = {"functionCall": {"name": "look", "args": {}}, "thoughtSignature": signature}
    content = {"role": "model", "parts": [part]}
    return reply({"candidates": [{"content": content, "finishReason": "STOP"}]})


async def test_signatures_outlive_a_restart(tmp_path: Path) -> None:
    """Two conversations with the same call get their own, from a gateway that knows neither."""
    text = 'protocol = "gemini"\n'
    first = serve_stubbed(tmp_path, [signed("one")], [signed("two")], text=text, shared=tmp_path)
    calls: list[Any] = []
    async with first as (served, _):
        for _ in range(2):
            got = await ask(served, "POST", CHAT, request())
            message = json.loads(got.body)["choices"][0]["message"]
            (call,) = message["tool_calls"]
            calls.append({name: call[name] for name in ("id", "type", "function")})
    if sys.platform != "win32":
        assert stat.S_IMODE((tmp_path / ECHOES_FILE).stat().st_mode) == 0o600
    later = serve_stubbed(tmp_path, [signed("three")], text=text, shared=tmp_path)
    async with later as (served, stub):
        for call in calls:
            made = {"role": "assistant", "content": None, "tool_calls": [call]}
            result = {"role": "tool", "tool_call_id": call["id"], "content": "ok"}
            await ask(served, "POST", CHAT, request(made, result))
        sent = [json.loads(body)["contents"][1]["parts"][0] for body in stub.bodies]
        assert [part["thoughtSignature"] for part in sent] == ["one", "two"]


def test_a_file_that_cannot_be_used_fails_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said once, and nothing is found."""
    path = tmp_path / ECHOES_FILE
    path.write_bytes(b"not a database" * 100)
    kept = KeptEchoes(path)
    assert kept.is_empty()
    kept.save("a", b"x")
    assert kept.load("a") is None
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    kept.close()


def test_another_process_sees_at_once_that_something_is_kept(tmp_path: Path) -> None:
    """What is kept later under the same key takes its place."""
    one, other = KeptEchoes(tmp_path / "e.db"), KeptEchoes(tmp_path / "e.db")
    assert (one.is_empty(), other.is_empty()) == (True, True)
    one.save("a", b"x")
    other.save("b", b"y")
    other.save("b", b"z")
    assert (one.is_empty(), other.is_empty()) == (False, False)
    assert (other.load("a"), one.load("b"), one.load("c")) == (b"x", b"z", None)
    one.close()
    other.close()
