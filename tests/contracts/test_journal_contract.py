"""What every journal must do."""

from collections.abc import Callable
from pathlib import Path

import pytest

from surecall.base.records import Defect, Envelope, ErrorDetail, ToolResult, Usage
from surecall.loop import FileJournal, Journal, MemoryJournal
from surecall.loop.journal import (
    JournalRecord,
    RecordedFailure,
    RecordedIntent,
    RecordedReply,
    RecordedResult,
    RunHeader,
)
from surecall.wire import RawReply

Open = Callable[[], Journal]

RECORDS: tuple[JournalRecord, ...] = (
    RunHeader("r1", "f" * 64),
    RecordedFailure(0, "BAD_REQUEST", "no tools\nhere", 400),
    RecordedReply(
        0,
        RawReply(
            message={"role": "assistant", "content": 'ünï "x"\n\u2028', "tool_calls": [{"id": 1}]},
            finish_reason="tool_calls",
            usage=Usage(1, 2, 3),
            defects=(Defect("ID_REPEATED", "again", "/tool_calls/0"),),
        ),
    ),
    RecordedIntent(0, "c1", "save", "write", "r1/0/c1"),
    RecordedResult(
        0,
        ToolResult(
            call_id="c1",
            name="save",
            envelope=Envelope(
                ok=False, tool_name="save", data={"n": 1}, errors=(ErrorDetail("X", "no", "why"),)
            ),
            text='{"ok":false}',
            elapsed_ms=1.5,
            executed=True,
        ),
    ),
)


@pytest.fixture(params=["file", "memory"])
def open_journal(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Return a function that opens the same journal again."""
    if request.param == "file":
        return lambda: FileJournal(tmp_path / "folder" / "run.journal")
    memory = MemoryJournal()
    return lambda: memory


def test_a_new_journal_is_empty(open_journal: Open) -> None:
    """Nothing was recorded yet."""
    journal = open_journal()
    assert journal.load() == ()
    journal.close()


@pytest.mark.parametrize("durable", [True, False])
def test_records_come_back_as_they_were_written(open_journal: Open, durable: bool) -> None:
    """Every kind of record survives, in order."""
    journal = open_journal()
    journal.load()
    for record in RECORDS:
        journal.append(record, durable=durable)
    journal.close()
    again = open_journal()
    assert again.load() == RECORDS
    again.close()


def test_a_journal_goes_on_where_it_ended(open_journal: Open) -> None:
    """Opened again, it appends behind what is there."""
    for record in RECORDS:
        journal = open_journal()
        journal.load()
        journal.append(record, durable=True)
        journal.close()
    last = open_journal()
    assert last.load() == RECORDS
    last.close()


def test_loading_twice_changes_nothing(open_journal: Open) -> None:
    """`load` may be called again, also between records."""
    journal = open_journal()
    assert journal.load() == ()
    journal.append(RECORDS[0], durable=False)
    assert journal.load() == RECORDS[:1]
    journal.append(RECORDS[1], durable=False)
    assert journal.load() == RECORDS[:2]
    journal.close()


def test_appending_without_loading_destroys_nothing(open_journal: Open) -> None:
    """A record written before or after loading never lands on top of another."""
    first = open_journal()
    first.append(RECORDS[0], durable=True)
    first.close()
    second = open_journal()
    second.append(RECORDS[1], durable=True)
    second.close()
    second.append(RECORDS[2], durable=True)
    second.close()
    last = open_journal()
    assert last.load() == RECORDS[:3]
    last.close()


def test_closing_twice_is_harmless(open_journal: Open) -> None:
    """`close` may be called whether or not anything is open."""
    journal = open_journal()
    journal.close()
    journal.load()
    journal.close()
    journal.close()
