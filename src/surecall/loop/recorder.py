"""The loop's side of a journal: what was recorded is handed out again, the rest is recorded."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Coroutine, Sequence
from typing import Any

from surecall.base.errors import Code, JournalError
from surecall.base.records import Effect, ToolCall, ToolResult
from surecall.wire import RawReply

from .journal import (
    JOURNAL_VERSION,
    Journal,
    JournalRecord,
    RecordedFailure,
    RecordedIntent,
    RecordedReply,
    RecordedResult,
    RunHeader,
)
from .paused import StoreJournal


class Recorder:
    """Replays a journal to a run, then records what is new."""

    def __init__(self, journal: Journal | StoreJournal | None) -> None:
        self._journal = journal
        self._answers: defaultdict[int, deque[RecordedReply | RecordedFailure]] = defaultdict(deque)
        self._intents: set[tuple[int, str]] = set()
        self._results: dict[tuple[int, str], ToolResult] = {}

    def open(self, run_id: str, fingerprint: str) -> tuple[str, bool]:
        """Load the journal; return the run's id and whether it goes on from before."""
        if self._journal is None:
            return run_id, False
        if isinstance(self._journal, StoreJournal):
            self._index(self._journal.records)
            return run_id, True
        records = self._journal.load()
        if not records:
            self._journal.append(RunHeader(run_id, fingerprint), durable=True)
            return run_id, False
        header = records[0]
        if not isinstance(header, RunHeader):
            raise JournalError(
                Code.JOURNAL_CORRUPT,
                "the journal does not begin with a run.",
                hint="Start the run again with another journal.",
            )
        if header.version != JOURNAL_VERSION:
            raise JournalError(
                Code.JOURNAL_MISMATCH,
                f"the journal has version {header.version}; this surecall reads {JOURNAL_VERSION}.",
                hint="Resume with the version that wrote it, or use another journal.",
            )
        if header.fingerprint != fingerprint:
            raise JournalError(
                Code.JOURNAL_MISMATCH,
                "the journal belongs to a different request: model, messages, tools or options "
                "have changed since.",
                hint="Resume with what the run was started with, or use another journal.",
            )
        self._index(records[1:])
        return header.run_id, True

    def close(self) -> None:
        """Close the journal."""
        if self._journal is not None:
            self._journal.close()

    def next_answer(self, turn: int) -> RawReply | RecordedFailure | None:
        """Return what the provider answered in this turn the last time, if it was recorded."""
        waiting = self._answers.get(turn)
        if not waiting:
            return None
        record = waiting.popleft()
        return record if isinstance(record, RecordedFailure) else record.reply

    def result(self, turn: int, call_id: str) -> ToolResult | None:
        """Return the recorded result of a call."""
        return self._results.get((turn, call_id))

    def was_intended(self, turn: int, call_id: str) -> bool:
        """Tell whether a call without a result had been started."""
        return (turn, call_id) in self._intents

    def record_reply(self, turn: int, raw: RawReply) -> None:
        """Record a reply."""
        if self._journal is not None:
            self._journal.append(RecordedReply(turn, raw), durable=False)

    def record_failure(self, turn: int, code: str, message: str, status: int | None) -> None:
        """Record a refused request that another one follows."""
        if self._journal is not None:
            self._journal.append(RecordedFailure(turn, code, message, status), durable=False)

    async def record_intent(self, turn: int, call: ToolCall, effect: Effect, key: str) -> None:
        """Record that a tool is about to run."""
        await self._append(RecordedIntent(turn, call.id, call.name, effect, key), effect)

    async def record_result(self, turn: int, result: ToolResult, effect: Effect) -> None:
        """Record what became of a call."""
        await self._append(RecordedResult(turn, result), effect)

    async def _append(self, record: JournalRecord, effect: Effect) -> None:
        if self._journal is None:
            return
        if effect == "read":
            self._journal.append(record, durable=False)
        elif isinstance(self._journal, StoreJournal):
            self._journal.append(record, durable=True)
            await _finish(self._journal.save())
        else:
            await _finish(asyncio.to_thread(self._journal.append, record, durable=True))

    def _index(self, records: Sequence[JournalRecord]) -> None:
        for record in records:
            if isinstance(record, RecordedReply | RecordedFailure):
                self._answers[record.turn].append(record)
            elif isinstance(record, RecordedIntent):
                self._intents.add((record.turn, record.call_id))
            elif isinstance(record, RecordedResult):
                self._results[record.turn, record.result.call_id] = record.result


async def _finish(writing: Coroutine[Any, Any, None]) -> None:
    """Wait for a write in a thread to its end, also when cancelled: the file must stay open."""
    task = asyncio.ensure_future(writing)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        task.result()
        return
    task.exception()
    raise cancelled
