"""Long replies are read in a thread, so that deadlines and cancellation hold meanwhile."""

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from surecall.base.background import is_long
from surecall.base.errors import RunLimitError
from surecall.base.records import TextDelta
from surecall.loop import asking
from surecall.loop.events import StreamedText
from surecall.reading import ReplyReader
from surecall.wire import ChatCompletions, StreamDelta

from .toolbox import assistant, run_script, save, saved, tool_call

LONG = "word " * 20_000 + "end"
SAVE = [{"type": "function", "function": {"name": "save", "parameters": {"type": "object"}}}]


@pytest.fixture
def slow_reading(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, list[bool]]]:
    """Make reading a reply wait for an event, and note whether it waits on the event loop."""
    may_go_on = threading.Event()
    on_loop: list[bool] = []
    read = asking.read_reply

    def wait_and_read(*arguments: Any, **options: Any) -> Any:
        on_loop.append(threading.current_thread() is threading.main_thread())
        if not on_loop[-1]:
            assert may_go_on.wait(15)
        return read(*arguments, **options)

    monkeypatch.setattr(asking, "read_reply", wait_and_read)
    yield may_go_on, on_loop
    may_go_on.set()


async def test_a_long_reply_is_read_beside_the_event_loop(
    slow_reading: tuple[threading.Event, list[bool]],
) -> None:
    """What else is due happens in the meantime; the answer is the same."""
    may_go_on, on_loop = slow_reading
    asyncio.get_running_loop().call_later(0.01, may_go_on.set)
    result = await run_script([LONG])
    assert result.text == LONG
    assert on_loop == [False]


async def test_a_short_reply_is_read_at_once(
    slow_reading: tuple[threading.Event, list[bool]],
) -> None:
    """No thread is started for it."""
    result = await run_script(["short"])
    assert (result.text, slow_reading[1]) == ("short", [True])


async def test_long_arguments_are_read_beside_the_event_loop(
    slow_reading: tuple[threading.Event, list[bool]],
) -> None:
    """The length of the arguments counts as that of the text does."""
    may_go_on, on_loop = slow_reading
    may_go_on.set()
    reply = assistant(None, tool_call("save", {"text": LONG}))
    saved.clear()
    await run_script([reply, "done"], tools=[save])
    assert saved == [LONG]
    assert on_loop == [False, True]


async def test_very_many_calls_are_read_beside_the_event_loop(
    slow_reading: tuple[threading.Event, list[bool]],
) -> None:
    """However short each of them is."""
    may_go_on, on_loop = slow_reading
    may_go_on.set()
    calls = [tool_call("look", {"what": str(number)}) for number in range(1_100)]
    result = await run_script([assistant(None, *calls), "done"])
    assert result.text == "done"
    assert on_loop == [False, True]


async def test_a_long_body_is_parsed_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both steps are: finding the message, and understanding it."""
    on_loop: list[bool] = []

    def note(step: Any) -> Any:
        def run(*arguments: Any) -> Any:
            on_loop.append(threading.current_thread() is threading.main_thread())
            return step(*arguments)

        return staticmethod(run)

    monkeypatch.setattr(ChatCompletions, "parse_body", note(ChatCompletions.parse_body))
    monkeypatch.setattr(ChatCompletions, "parse_message", note(ChatCompletions.parse_message))
    calls = [tool_call("look", {"what": str(number)}) for number in range(1_100)]
    await run_script([assistant(None, *calls), "done"])
    assert on_loop == [False, False, True, True]


@pytest.mark.parametrize(
    ("value", "long"),
    [
        pytest.param("word", False, id="a word"),
        pytest.param({"a": ["b", {"c": None}]}, False, id="a few values"),
        pytest.param(LONG, True, id="a long text"),
        pytest.param({"a": [LONG]}, True, id="a long text inside"),
        pytest.param({LONG: 1}, True, id="a long key"),
        pytest.param([{}] * 1_100, True, id="many empty objects"),
    ],
)
def test_what_is_long_shows_in_text_and_in_values(value: Any, long: bool) -> None:
    """A value costs time as characters do."""
    assert is_long(value) is long


async def test_a_deadline_holds_while_a_reply_is_read(
    slow_reading: tuple[threading.Event, list[bool]],
) -> None:
    """The run ends, and does not wait for the reading."""
    with pytest.raises(RunLimitError, match="DEADLINE_EXCEEDED") as caught:
        await run_script([LONG], deadline_s=0.05)
    assert not slow_reading[0].is_set()
    slow_reading[0].set()
    assert [message.role for message in caught.value.history] == ["user"]


async def test_a_run_can_be_cancelled_while_a_reply_is_read(
    slow_reading: tuple[threading.Event, list[bool]],
) -> None:
    """Cancellation is not held up by the reading either."""
    task = asyncio.create_task(run_script([LONG]))
    while not slow_reading[1]:
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not slow_reading[0].is_set()
    slow_reading[0].set()


async def test_a_long_call_written_as_text_is_not_looked_at_with_every_piece() -> None:
    """What is held back beyond a bound waits for the end, and the events say the same."""
    fed: list[int] = []

    class Reader(ReplyReader):
        def feed(self, chunk: str) -> Any:
            fed.append(len(chunk))
            return super().feed(chunk)

    shown: list[Any] = []
    call = f'{{"name": "save", "arguments": {{"text": "{LONG}"}}}}'
    text = f"Saving.\n<tool_call>{call}</tool_call>"
    shown_text = StreamedText(Reader(SAVE), lambda kind, **fields: shown.append((kind, fields)))
    for start in range(0, len(text), 100):
        shown_text.feed(StreamDelta("text", text[start : start + 100]))
    pieces = len(fed)
    await shown_text.close("Saving.")
    assert 600 < pieces < 700
    assert fed[pieces:] == [len(text) - 100 * pieces]
    assert shown == [(TextDelta, {"text": "Saving."})]
