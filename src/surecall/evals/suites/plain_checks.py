"""What suites without a workspace look at: calls as they were made, and the final text."""

from collections.abc import Iterator

from surecall.base.records import ToolSpec, clip
from surecall.evals.as_made import MadeCall, find_text_calls, list_turns
from surecall.evals.cases import Attempt
from surecall.evals.final_text import says_nothing, shows_call
from surecall.evals.records import Reason

_MAX_SHOWN: int = 80


def list_attempts(attempt: Attempt) -> list[MadeCall]:
    """Return every call of a run: run, refused, left alone or only written down."""
    turns = list_turns(attempt.trace, _specs(attempt))
    return [call for turn in turns for call in (*turn.calls, *turn.unread)]


def check_one_by_one(attempt: Attempt) -> Iterator[Reason]:
    """Yield replies with several calls, where one at a time was ordered."""
    for turn in list_turns(attempt.trace, _specs(attempt)):
        count = len(turn.calls) + len(turn.unread)
        if count > 1:
            yield Reason("SEVERAL_CALLS_AT_ONCE", f"{count} calls in turn {turn.turn}")
            return


def check_written_calls(attempt: Attempt) -> Iterator[Reason]:
    """Yield a call that the last reply only writes down."""
    specs = _specs(attempt)
    is_written = any(
        call.is_text for turn in list_turns(attempt.trace, specs)[-1:] for call in turn.unread
    )
    is_shown = shows_call(attempt.text) or bool(find_text_calls(attempt.text, specs))
    if attempt.error is None and (is_written or is_shown):
        yield Reason("CALL_NOT_MADE", clip(attempt.text, _MAX_SHOWN))


def check_plain_answer(
    attempt: Attempt, wrong: list[Reason] | None = None, *, may_be_empty: bool = False
) -> list[Reason] | None:
    """Return what is wrong with a final text; None when there is none, or nothing was checked.

    Args:
        attempt: What happened.
        wrong: What the case's own checks found wrong; None when it declares none.
        may_be_empty: Whether a run without a final text is fine.
    """
    if attempt.error is not None or attempt.trace is None:
        return None
    text = attempt.text
    if says_nothing(text):
        return wrong if may_be_empty else [Reason("EMPTY_FINAL")]
    if shows_call(text) or find_text_calls(text, _specs(attempt)):
        return [*(wrong or ()), Reason("TEXT_CALL_LEAKED", clip(text, _MAX_SHOWN))]
    return wrong


def _specs(attempt: Attempt) -> list[ToolSpec]:
    return [tool.spec for tool in attempt.prepared.tools]
