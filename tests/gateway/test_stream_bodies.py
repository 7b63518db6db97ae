"""Streamed replies in records, where bodies are kept."""

from pathlib import Path

import pytest

from surecall.base.redaction import Secret
from surecall.gateway.dashboard.lists import find_calls
from surecall.gateway.jobs.client import StreamCopy
from surecall.store.records.record import MAX_BODY_BYTES

from .harness import STREAM_END, STREAM_HEAD, ask, chat, piece, serve_faults, serve_stubbed

CHAT = "/v1/chat/completions"
KEEP = "[store]\nkeep_bodies = true\n"
STREAM = [STREAM_HEAD + piece("Hello") + piece(" there", "stop") + STREAM_END]


@pytest.mark.parametrize("wish", ["", "off"])
async def test_the_record_has_the_events_that_the_client_got(wish: str, tmp_path: Path) -> None:
    """The record is made before the last bytes are sent, and has these, too."""
    async with serve_stubbed(tmp_path, STREAM, text=KEEP) as (served, _):
        answer = await ask(served, "POST", CHAT, chat("m", stream=True), {"x-surecall": wish})
        assert answer.body.count(b"data: ") == 3
        assert served.last.reply_body == answer.body
        assert served.last.reply_bytes == len(answer.body)


async def test_the_calls_of_a_kept_stream_can_be_read(tmp_path: Path) -> None:
    """A case for an eval can be made of it."""
    text = '[upstreams.faults]\nurl = "{url}"\nprobe = "off"\n' + KEEP
    async with serve_faults(tmp_path, text) as (served, _):
        await ask(served, "POST", CHAT, chat(stream=True))
        expected = [{"tool": "get_weather", "arguments": {"city": "Paris", "days": 3}}]
        assert find_calls(served.last) == expected


async def test_nothing_of_a_stream_is_kept_unless_bodies_are(tmp_path: Path) -> None:
    """That is the default."""
    async with serve_stubbed(tmp_path, STREAM) as (served, _):
        await ask(served, "POST", CHAT, chat("m", stream=True))
        assert served.last.reply_body is None


def test_a_copy_is_bounded() -> None:
    """A long stream takes no more memory than a record keeps."""
    copy = StreamCopy()
    for _ in range(100):
        copy.add(b"data: {}\n" * 1000)
    assert len(copy.read() or b"") == MAX_BODY_BYTES


def test_a_secret_spread_over_events_is_not_kept() -> None:
    """Redaction sees one text at a time, so such a stream is left out."""
    secret = Secret("correct-horse-battery-staple")
    copy = StreamCopy()
    for part in ("it is correct-horse", "-battery", "-staple."):
        copy.add(b'data: {"choices":[{"delta":{"content":"%b"}}]}\n\n' % part.encode())
    assert copy.read() is None
    del secret


@pytest.mark.parametrize("has_begun", [True, False])
async def test_what_fails_unexpectedly_ends_the_stream_with_an_error(
    has_begun: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client reads why, and its request has a record."""

    def fail(*_: object) -> None:
        raise TypeError("odd")

    monkeypatch.setattr("surecall.exchange.streams.relay.StreamRelay._finish", fail)
    events = STREAM if has_begun else [STREAM_HEAD + piece("", "stop") + STREAM_END]
    async with serve_stubbed(tmp_path, events) as (served, _):
        answer = await ask(served, "POST", CHAT, chat("m", stream=True))
        assert answer.status == (200 if has_begun else 500)
        assert b"INTERNAL_ERROR" in answer.body
        assert served.last.error_code == "INTERNAL_ERROR"
