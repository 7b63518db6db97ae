"""Resuming from a journal, in one process: torn files, disk errors, cancellation."""

import asyncio
import errno
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import surecall
from surecall.base.errors import Code, JournalError, RunLimitError, SurecallError
from surecall.base.records import Event, RunStarted, ToolCallEnded
from surecall.base.redaction import Secret
from surecall.loop import FileJournal, MemoryJournal, replay_trace
from surecall.loop import journal as journal_module
from surecall.loop.journal import (
    JOURNAL_VERSION,
    JournalRecord,
    RecordedIntent,
    RecordedReply,
    RecordedResult,
    RunHeader,
)
from surecall.models.transport import ScriptedReply, ScriptedTransport

from .toolbox import assistant, run_script, saved, tool_call

SAVE = assistant(None, tool_call("save", {"text": "a"}))
SCRIPT = [SAVE, "done"]


def kinds(journal: MemoryJournal) -> list[str]:
    """Name the records of a journal."""
    return [type(record).__name__ for record in journal.records]


async def test_a_run_is_recorded_step_by_step() -> None:
    """Header, replies, and around each tool an intent and a result."""
    journal = MemoryJournal()
    refused = ScriptedReply(status=400, message="no")
    result = await run_script(
        [SAVE, refused, "done"], journal=journal, run_id="r", fallback_retry_count=1
    )
    assert kinds(journal) == [
        "RunHeader",
        "RecordedReply",
        "RecordedIntent",
        "RecordedResult",
        "RecordedFailure",
        "RecordedReply",
    ]
    assert journal.records[0] == RunHeader("r", result.trace.fingerprint)
    assert journal.records[2] == RecordedIntent(0, "call_1", "save", "write", "r/0/call_1")
    assert journal.records[3] == RecordedResult(0, result.results[0])


async def test_a_finished_run_is_handed_out_again_without_any_request() -> None:
    """The same answer, history and results; no tool runs; listeners hear that it is a resume."""
    journal, events = MemoryJournal(), list[Event]()
    first = await run_script(SCRIPT, journal=journal)
    before = list(journal.records)
    transport = ScriptedTransport([])
    second = await run_script([], transport=transport, journal=journal, on_event=events.append)
    assert transport.requests == []
    assert (second.text, second.history, second.usage) == (first.text, first.history, first.usage)
    assert (second.results, second.run_id) == (first.results, first.run_id)
    assert saved == ["a"]
    assert journal.records == before
    started = events[0]
    assert isinstance(started, RunStarted)
    assert started.resumed is True


async def test_a_run_that_ended_at_a_limit_ends_there_again() -> None:
    """Resuming decides again, with the same outcome and without a request."""
    journal = MemoryJournal()
    for replies in ([SAVE], []):
        with pytest.raises(RunLimitError, match="MAX_TURNS_REACHED"):
            await run_script(replies, journal=journal, max_turns=1)
    assert saved == ["a"]


async def test_a_torn_result_is_an_unknown_outcome_at_every_byte(tmp_path: Path) -> None:
    """Wherever the last line was torn, the write is not repeated and the model is told."""
    path = tmp_path / "j"
    with pytest.raises(SurecallError):
        await run_script([SAVE], journal=str(path))
    content = path.read_bytes()
    start = content.rindex(b"\n", 0, -1) + 1
    assert content[start:].startswith(b'{"kind":"result"')
    for end in range(start, len(content)):
        path.write_bytes(content[:end])
        transport = ScriptedTransport(["done"])
        result = await run_script([], transport=transport, journal=str(path))
        assert result.results[0].envelope.error_codes == (Code.OUTCOME_UNKNOWN,)
        assert result.results[0].executed is False
        assert "OUTCOME_UNKNOWN" in transport.requests[0].body["messages"][-1]["content"]
    assert saved == ["a"]


async def test_a_torn_intent_is_no_intent_at_any_byte(tmp_path: Path) -> None:
    """The tool runs only after its intent is written, so a torn one means it did not run."""
    path = tmp_path / "j"
    journal = MemoryJournal()
    await run_script(SCRIPT, journal=journal)
    file = FileJournal(path)
    for record in journal.records[:3]:
        file.append(record, durable=False)
    file.close()
    content = path.read_bytes()
    start = content.rindex(b"\n", 0, -1) + 1
    assert content[start:].startswith(b'{"kind":"intent"')
    for end in range(start, len(content)):
        path.write_bytes(content[:end])
        saved.clear()
        result = await run_script(["done"], journal=str(path))
        assert result.results[0].ok
        assert saved == ["a"]


async def test_the_operator_hears_of_an_unknown_outcome() -> None:
    """The event of the call has the code and says that nothing was run."""
    journal, events = MemoryJournal(), list[Event]()
    await run_script(SCRIPT, journal=journal)
    del journal.records[3:]
    await run_script(["done"], journal=journal, on_event=events.append)
    ended = next(event for event in events if isinstance(event, ToolCallEnded))
    assert (ended.error_codes, ended.executed) == ((Code.OUTCOME_UNKNOWN,), False)
    assert saved == ["a"]


HALF = ScriptedReply(
    message=assistant(None, tool_call("save", '{"text": "a"}')), finish_reason="eclipse"
)


async def test_a_call_that_is_not_certain_is_refused_without_an_intent() -> None:
    """It is never recorded as one that may have run, and the model is told to send it again."""
    journal = MemoryJournal()
    result = await run_script([HALF, "done"], journal=journal)
    assert kinds(journal) == ["RunHeader", "RecordedReply", "RecordedResult", "RecordedReply"]
    (error,) = result.results[0].envelope.errors
    assert (error.code, result.results[0].executed) == (Code.CALL_NOT_CERTAIN, False)
    assert "'eclipse'" in error.message
    assert "NOT EXECUTED" in error.message
    assert error.hint is not None
    assert "again" in error.hint
    assert saved == []
    assert (await run_script([], journal=journal)).results == result.results


async def test_an_intent_of_before_is_an_unknown_outcome_though_it_would_be_refused_now() -> None:
    """An earlier version may have run the call, so nobody says that it was not."""
    journal = MemoryJournal()
    await run_script([HALF, "done"], journal=journal)
    del journal.records[2:]
    journal.records.append(RecordedIntent(0, "call_1", "save", "write", "r/0/call_1"))
    result = await run_script(["done"], journal=journal)
    assert result.results[0].envelope.error_codes == (Code.OUTCOME_UNKNOWN,)
    assert saved == []


@pytest.mark.parametrize(
    ("records", "code"),
    [
        pytest.param([RunHeader("r", "other")], Code.JOURNAL_MISMATCH, id="other fingerprint"),
        pytest.param(
            [RunHeader("r", "f", JOURNAL_VERSION + 1)], Code.JOURNAL_MISMATCH, id="other version"
        ),
        pytest.param(
            [RecordedIntent(0, "c", "save", "write", "k")], Code.JOURNAL_CORRUPT, id="no header"
        ),
    ],
)
async def test_a_journal_that_does_not_fit_is_refused(
    records: list[JournalRecord], code: str, tmp_path: Path
) -> None:
    """Nothing is sent or run, the file stays as it is, and it is not kept locked."""
    path = tmp_path / "j"
    file = FileJournal(path)
    for record in records:
        file.append(record, durable=False)
    file.close()
    before = path.read_bytes()
    transport = ScriptedTransport(SCRIPT)
    for _ in range(2):
        with pytest.raises(JournalError) as caught:
            await run_script([], transport=transport, journal=str(path))
        assert caught.value.code == code
    assert (transport.requests, saved) == ([], [])
    assert path.read_bytes() == before


async def test_a_resumed_call_runs_again_only_when_that_is_safe() -> None:
    """Idempotent and reading tools get the key they were given before."""
    keys: list[str] = []

    def tools(**options: Any) -> list[Any]:
        @surecall.tool(**options)
        def act(context: surecall.ToolContext) -> str:
            """Act."""
            keys.append(context.idempotency_key)
            return "ok"

        return [act]

    for options, runs in (
        ({"effect": "write"}, 1),
        ({"effect": "external"}, 1),
        ({"effect": "write", "idempotent": True}, 2),
        ({"effect": "read"}, 2),
    ):
        keys.clear()
        journal = MemoryJournal()
        script = [assistant(None, tool_call("act")), "done"]
        await run_script(script, journal=journal, run_id="r", tools=tools(**options))
        del journal.records[3:]
        result = await run_script(["done"], journal=journal, run_id="x", tools=tools(**options))
        assert keys == ["r/0/call_1"] * runs
        assert result.run_id == "r"
        assert result.results[0].ok is (runs == 2)


class FaultyDisk:
    """The `os` module whose nth write or sync fails."""

    def __init__(self, fault: str, number: int) -> None:
        self._fault, self._left = fault, number
        self.failed = False

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def write(self, descriptor: int, data: bytes) -> int:
        """Write, or fail."""
        if self.failed and self._fault == "short":
            raise OSError(errno.ENOSPC, "No space left on device")
        if self._fault == "short" and self._is_due():
            return os.write(descriptor, data[: len(data) // 2])
        if self._fault == "full" and self._is_due():
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.write(descriptor, data)

    def fsync(self, descriptor: int) -> None:
        """Pretend to sync, or fail."""
        del descriptor
        if self._fault == "sync" and self._is_due():
            raise OSError(errno.EIO, "Input/output error")

    def _is_due(self) -> bool:
        self._left -= 1
        self.failed = self.failed or self._left == 0
        return self._left == 0


@pytest.mark.parametrize("fault", ["full", "short", "sync"])
async def test_every_disk_error_is_told_and_the_run_can_be_resumed(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nth write fails, for every n: a code, at most one effect, and a journal that resumes."""
    for number in range(1, 20):
        saved.clear()
        path = tmp_path / f"{number}"
        disk = FaultyDisk(fault, number)
        with monkeypatch.context() as patch:
            patch.setattr(journal_module, "os", disk)
            code = await outcome_of(SCRIPT, path)
        expected = Code.JOURNAL_WRITE_FAILED if fault == "sync" else Code.DISK_FULL
        assert code == (expected if disk.failed else "")
        if not disk.failed:
            break
        recorded = FileJournal(path)
        intents = [item for item in recorded.load() if isinstance(item, RecordedIntent)]
        replies = [item for item in recorded.load() if isinstance(item, RecordedReply)]
        recorded.close()
        assert len(saved) <= len(intents)
        rest = ScriptedTransport(SCRIPT[len(replies) :])
        result = await run_script([], transport=rest, journal=str(path))
        assert result.text == "done"
        if not result.results[0].ok:
            assert result.results[0].envelope.error_codes == (Code.OUTCOME_UNKNOWN,)
        assert len(saved) <= 1
        assert len(saved) == 1 or not result.results[0].ok
    else:
        pytest.fail("the disk never stopped failing")
    assert number > 3


async def outcome_of(replies: list[Any], path: Path) -> str:
    """Return the code of the journal error a run ends with, if any."""
    try:
        await run_script(replies, journal=str(path))
    except JournalError as error:
        return error.code
    return ""


async def test_a_tool_never_runs_without_its_intent_on_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the intent cannot be written, the run ends before the tool."""

    def refuse(self: FileJournal, record: JournalRecord, *, durable: bool) -> None:
        if isinstance(record, RecordedIntent):
            raise JournalError(Code.JOURNAL_WRITE_FAILED, "full")
        original(self, record, durable=durable)

    original = FileJournal.append
    monkeypatch.setattr(FileJournal, "append", refuse)
    assert await outcome_of(SCRIPT, tmp_path / "j") == Code.JOURNAL_WRITE_FAILED
    assert saved == []


class SlowJournal(FileJournal):
    """A journal whose durable writes take until they are allowed to end."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.begun, self.go_on = threading.Event(), threading.Event()
        self.closed_early = False
        self._writing = False

    def append(self, record: JournalRecord, *, durable: bool) -> None:
        """Wait before an intent is written."""
        if isinstance(record, RecordedIntent):
            self._writing = True
            self.begun.set()
            self.go_on.wait(5)
        super().append(record, durable=durable)
        self._writing = False

    def close(self) -> None:
        """Note whether a write was still going on."""
        self.closed_early = self.closed_early or self._writing
        super().close()


async def test_a_cancelled_run_waits_for_the_write_that_is_going_on(tmp_path: Path) -> None:
    """The file is not closed under a thread that writes to it, and stays whole."""
    journal = SlowJournal(tmp_path / "j")
    task = asyncio.create_task(run_script(SCRIPT, journal=journal))
    assert await asyncio.to_thread(journal.begun.wait, 5)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    journal.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert journal.closed_early is False
    assert saved == []
    loaded = FileJournal(tmp_path / "j")
    assert [type(record).__name__ for record in loaded.load()] == [
        "RunHeader",
        "RecordedReply",
        "RecordedIntent",
    ]
    loaded.close()


class Point(BaseModel):
    """What a tool may return inside its answer."""

    x: int = 1


@surecall.tool(effect="write")
def locate() -> dict[str, Any]:
    """Return a model inside a dict."""
    saved.append("located")
    return {"at": Point()}


async def test_results_that_are_not_plain_data_are_recorded(tmp_path: Path) -> None:
    """A tool may return models; the run goes on, and so does its resume."""
    script = [assistant(None, tool_call("locate")), "done"]
    first = await run_script(script, tools=[locate], journal=str(tmp_path / "j"))
    second = await run_script([], tools=[locate], journal=str(tmp_path / "j"))
    assert (first.text, second.text, saved) == ("done", "done", ["located"])
    assert second.results[0].text == first.results[0].text
    assert second.results[0].envelope.data == {"at": {"x": 1}}


async def test_streamed_and_whole_replies_resume_alike() -> None:
    """A streamed run resumes from its journal without asking for the stream again."""
    journal = MemoryJournal()
    first = await run_script(SCRIPT, journal=journal, stream=True)
    second = await run_script([], journal=journal, stream=True)
    assert (second.text, second.history) == (first.text, first.history)


async def test_a_call_that_held_a_key_runs_neither_now_nor_when_it_is_resumed(
    tmp_path: Path,
) -> None:
    """The journal has the mask, which is never taken for the value that was written."""
    key = Secret("plain-looking-key-of-mine")
    path = tmp_path / "journal"
    call = assistant(None, tool_call("save", {"text": key.reveal()}))
    first = await run_script([call, "done"], journal=FileJournal(path))
    assert b"[redacted]" in path.read_bytes()
    again = await run_script([], journal=FileJournal(path))
    for result in (first, again):
        assert result.results[0].envelope.error_codes == (Code.ARGUMENTS_HOLD_SECRET,)
        assert Code.SECRET_REDACTED in [item.code for item in result.trace.turns[0].defects]
        assert replay_trace(result.trace).same
    assert saved == []


async def test_a_model_may_write_the_mask_itself() -> None:
    """It is ordinary text where nothing was taken out."""
    call = assistant(None, tool_call("save", {"text": "[redacted]"}))
    result = await run_script([call, "done"])
    assert result.results[0].ok
    assert saved == ["[redacted]"]
