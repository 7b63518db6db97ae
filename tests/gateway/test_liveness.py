"""Liveness while the event loop is silent: a thread answers, and takes nothing from the loop."""

import asyncio
import json
import socket
import threading
import time
from pathlib import Path

import pytest

from surecall.gateway import liveness

from .harness import Plain, Served, chat, completion, reply, serve_stubbed

HELD_S = 5.0


def begin(served: Served, first: bytes, then: bytes = b"") -> tuple[threading.Thread, list[Plain]]:
    """Send bytes on a connection of its own, in a thread, and note what comes back."""
    answers: list[Plain] = []
    port = served.port

    def exchange() -> None:
        with socket.create_connection(("127.0.0.1", port), HELD_S) as connection:
            connection.sendall(first.replace(b"PORT", str(port).encode()))
            if then:
                time.sleep(0.3)
                connection.sendall(then)
            received = b""
            while piece := connection.recv(1 << 16):
                received += piece
        answers.append(Plain(received))

    thread = threading.Thread(target=exchange)
    thread.start()
    return thread, answers


HEALTH = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1:PORT\r\n\r\n"


async def test_liveness_is_answered_while_the_loop_is_silent(tmp_path: Path) -> None:
    """The answer says for how long the loop has been silent."""
    async with serve_stubbed(tmp_path, []) as (served, _):
        asking, answers = begin(served, HEALTH)
        asking.join(HELD_S)  # holds the loop
        assert [answer.status for answer in answers] == [200]
        assert answers[0].json["status"] == "ok"
        assert answers[0].json["loop_silent_ms"] > 0
        assert answers[0].headers["connection"] == "close"


async def test_a_loop_that_stays_silent_is_reported_as_stalled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever restarts processes learns of it."""
    monkeypatch.setattr(liveness, "_STALLED_S", 0.01)
    async with serve_stubbed(tmp_path, []) as (served, _):
        asking, answers = begin(served, HEALTH)
        asking.join(HELD_S)
        assert [(answer.status, answer.json["status"]) for answer in answers] == [(503, "stalled")]


@pytest.mark.parametrize("kind", ["a request", "a foreign host", "a head in two parts"])
async def test_what_the_thread_does_not_answer_is_left_to_the_loop(
    kind: str, tmp_path: Path
) -> None:
    """Connections that came while the loop was silent are served as all others."""
    first, then, status = HEALTH[:-2], b"\r\n", 200
    if kind == "a foreign host":
        first, then, status = HEALTH[:-2].replace(b"127.0.0.1:PORT", b"evil.example"), b"", 403
        first += b"connection: close\r\n\r\n"
    elif kind == "a request":
        body = json.dumps(chat("m")).encode()
        first = b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:PORT\r\n"
        first += b"connection: close\r\ncontent-type: application/json\r\n"
        first, then = first + b"content-length: %d\r\n\r\n" % len(body), body
    async with serve_stubbed(tmp_path, [reply(completion())]) as (served, _):
        asking, answers = begin(served, first, then)
        asking.join(0.25)  # holds the loop
        assert answers == []
        await asyncio.to_thread(asking.join, HELD_S)
        assert [answer.status for answer in answers] == [status]
