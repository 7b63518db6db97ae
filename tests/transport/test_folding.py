"""Bursts of a stream: other tasks get their turns, whatever arrives at once."""

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from support.streams import DONE, chunk
from surecall.models.transport import interface
from surecall.models.transport.interface import fold_stream
from surecall.wire import RawReply, StreamDelta, find_protocol

END = chunk({}, "stop") + DONE


class Burst:
    """A stream that brings everything at once and never waits."""

    status = 200
    attempts = 1

    def __init__(self, *chunks: bytes) -> None:
        self.headers: dict[str, str] = {}
        self._chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for data in self._chunks:
            yield data


async def turns_during(*chunks: bytes) -> tuple[int, str, list[StreamDelta]]:
    """Fold a burst; return how many turns another task got, the content and what was shown."""
    turns = 0
    shown: list[StreamDelta] = []

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.ensure_future(count())
    folder = find_protocol("chat_completions").open_stream()
    reply = await fold_stream(Burst(*chunks), folder, shown.append)
    counting.cancel()
    return turns, reply.message["content"] or "", shown


@pytest.mark.parametrize(
    "burst",
    [
        pytest.param(b"\n" * 200_000, id="blank lines"),
        pytest.param(b":\n\n" * 70_000, id="comments"),
        pytest.param(b"data: {}\n\n" * 20_000, id="tiny events"),
        pytest.param(chunk({"content": ""}) * 2_000, id="empty deltas"),
        pytest.param(b": " + b"x" * 200_000 + b"\n", id="a long line"),
    ],
)
async def test_other_tasks_get_turns_during_a_burst(
    burst: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is a break after every few kilobytes when time is up, also inside one chunk."""
    monkeypatch.setattr(interface, "_MAX_BUSY_S", 0.0)
    turns, content, _ = await turns_during(burst + chunk({"content": "hi"}), END)
    assert content == "hi"
    assert turns >= len(burst) // interface._SLICE_BYTES  # pyright: ignore[reportPrivateUsage]


async def test_a_long_text_is_shown_in_pieces_with_breaks_between(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever reads along gets one long text in steps; together they are the text."""
    monkeypatch.setattr(interface, "_MAX_BUSY_S", 0.0)
    text = "so long " * 12_500
    turns, content, shown = await turns_during(chunk({"content": text}) + END)
    assert content == "".join(delta.text for delta in shown) == text
    assert len(shown) > 10
    assert turns > len(shown)


@pytest.mark.parametrize("line_end", [b"\n", b"\r", b"\r\n"], ids=["lf", "cr", "crlf"])
async def test_a_very_long_line_is_read_in_a_thread(
    line_end: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So is the end of a long stream; what comes before and after the line is not."""
    folder = find_protocol("chat_completions").open_stream()
    on_loop: list[bool] = []
    feed, close = folder.feed, folder.close

    def note_feed(piece: bytes) -> list[StreamDelta]:
        deltas = feed(piece)
        if deltas:
            on_loop.append(threading.current_thread() is threading.main_thread())
        return deltas

    def note_close() -> RawReply:
        on_loop.append(threading.current_thread() is threading.main_thread())
        return close()

    monkeypatch.setattr(folder, "feed", note_feed)
    monkeypatch.setattr(folder, "close", note_close)
    texts = ["short", "é" * 200_000, "end"]
    chunks = [chunk({"content": text}).replace(b"\n", line_end) for text in texts]
    reply = await fold_stream(Burst(*chunks, END), folder)
    assert reply.message["content"] == "".join(texts)
    assert on_loop == [True, False, True, False]


async def test_without_much_to_do_there_is_no_break() -> None:
    """A short stream is folded in one go."""
    turns, content, shown = await turns_during(chunk({"content": "hi"}), END)
    assert (content, shown) == ("hi", [StreamDelta("text", "hi")])
    assert turns == 0


async def test_a_cancellation_that_a_stream_swallows_still_ends_it() -> None:
    """What arrives after it is not folded."""
    shown: list[StreamDelta] = []
    waiting = asyncio.Event()

    class Stubborn(Burst):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                waiting.set()
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                yield chunk({"content": "late"})
                yield END

    folder = find_protocol("chat_completions").open_stream()
    task = asyncio.ensure_future(fold_stream(Stubborn(), folder, shown.append))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert shown == []
