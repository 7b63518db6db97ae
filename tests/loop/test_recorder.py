"""The loop's side of a journal."""

from msgspec.structs import replace

from surecall.base.records import ToolCall
from surecall.loop import MemoryJournal
from surecall.loop.call_runner import Recorder
from surecall.loop.journal import RecordedFailure, RecordedIntent, RunHeader
from surecall.wire import RawReply

from .builders import result_of

CALL = ToolCall(id="c1", name="save", arguments={})
REPLY = RawReply(message={"role": "assistant", "content": "x"}, finish_reason="stop")


async def test_without_a_journal_nothing_is_recorded() -> None:
    """Every run has a recorder; without a journal it does nothing."""
    recorder = Recorder(None)
    assert recorder.open("r", "f") == ("r", False)
    recorder.record_reply(0, REPLY)
    recorder.record_failure(0, "X", "no", 400)
    await recorder.record_intent(0, CALL, "write", "k")
    await recorder.record_result(0, result_of("save"), "write")
    assert recorder.next_answer(0) is None
    assert recorder.result(0, "c1") is None
    assert recorder.was_intended(0, "c1") is False
    recorder.close()


def test_a_new_journal_begins_with_the_run() -> None:
    """The header names the run and its fingerprint."""
    journal = MemoryJournal()
    assert Recorder(journal).open("r", "f") == ("r", False)
    assert journal.records == [RunHeader("r", "f")]
    assert Recorder(journal).open("another", "f") == ("r", True)


async def test_what_was_recorded_is_handed_out_by_turn_and_call() -> None:
    """Answers come in the order in which they arrived, each once; results by their call."""
    journal = MemoryJournal()
    first = Recorder(journal)
    first.open("r", "f")
    first.record_failure(0, "BAD_REQUEST", "no", 400)
    first.record_reply(0, REPLY)
    await first.record_intent(0, CALL, "write", "r/0/c1")
    await first.record_result(0, result_of("save"), "write")
    other = replace(REPLY, id="2")
    first.record_reply(1, other)
    await first.record_intent(1, CALL, "read", "r/1/c1")
    second = Recorder(journal)
    second.open("r", "f")
    assert second.next_answer(0) == RecordedFailure(0, "BAD_REQUEST", "no", 400)
    assert second.next_answer(0) == REPLY
    assert second.next_answer(0) is None
    assert second.next_answer(1) == other
    assert second.next_answer(2) is None
    assert second.result(0, "c1") == result_of("save")
    assert (second.result(1, "c1"), second.was_intended(1, "c1")) == (None, True)
    assert second.was_intended(0, "c2") is False
    assert journal.records[-1] == RecordedIntent(1, "c1", "save", "read", "r/1/c1")
