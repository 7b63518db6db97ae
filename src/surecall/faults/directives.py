"""Oracles for any tools: what the user's text says in words that can be followed exactly.

call NAME with {"a": 1}                       one call
call NAME with {…} and call OTHER with {…}    both in one reply
call NAME with {…} then call OTHER with {…}   one after the other
say TEXT                                      the final answer, to the end of the line
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

from msgspec.structs import replace

from surecall.errors import JSONTextError
from surecall.jsontext import decode, scan_value_end
from surecall.records import ModelRequest

from .actions import Action, CallTools, Oracle, PlannedCall, Say
from .conversation import answered_calls

__all__ = ["FINAL_TEXT", "DirectiveOracle", "StepsOracle", "ask_oracles"]

FINAL_TEXT: Final = "Done."

_CALL: Final = "call "
_WITH: Final = " with "
_SAY: Final = "say "
_MAX_STEPS: Final = 64


class StepsOracle:
    """Follows a fixed list of steps: a step of calls is done when each of its calls succeeded."""

    def __init__(self, steps: Sequence[Action]) -> None:
        self._steps = tuple(steps)

    def next_action(self, request: ModelRequest) -> Action | None:
        """Return the first step that is not done, or the last text once more."""
        succeeded = Counter(item.call.name for item in answered_calls(request) if item.ok)
        said = sum(
            message.role == "assistant" and not message.tool_calls for message in request.messages
        )
        last: Action = Say(FINAL_TEXT)
        for step in self._steps:
            if isinstance(step, Say):
                last = step
                if not said:
                    return step
                said -= 1
                continue
            wanted = Counter(call.name for call in step.calls)
            if wanted - succeeded:
                left = wanted - succeeded
                return CallTools(tuple(call for call in step.calls if left[call.name]))
            succeeded -= wanted
        return last if isinstance(last, Say) else Say(FINAL_TEXT)


class DirectiveOracle:
    """Follows the directives in the last text of the user that has any."""

    def next_action(self, request: ModelRequest) -> Action | None:
        """Return the next step of the directives, or `None` when there are none."""
        offered = {tool.name for tool in request.tools}
        for position in reversed(range(len(request.messages))):
            message = request.messages[position]
            steps = list(_steps_in(message.text)) if message.role == "user" else []
            if not steps:
                continue
            calls = [call for step in steps if isinstance(step, CallTools) for call in step.calls]
            if not all(call.name in offered for call in calls):
                return Say(FINAL_TEXT)
            since = replace(request, messages=request.messages[position:])
            return StepsOracle(steps).next_action(since)
        return None


def ask_oracles(oracles: Sequence[Oracle], request: ModelRequest) -> Action:
    """Return what the first oracle that knows the conversation says."""
    for oracle in oracles:
        action = oracle.next_action(request)
        if action is not None:
            return action
    return Say(FINAL_TEXT)


def _steps_in(text: str) -> Iterator[Action]:
    """Yield the steps that the text asks for."""
    pending: list[PlannedCall] = []
    position = 0
    for _ in range(_MAX_STEPS):
        found = _call_at(text, text.find(_CALL, position))
        if found is None:
            break
        call, position = found
        pending.append(call)
        if not text[position:].lstrip(" ,").startswith(f"and {_CALL}"):
            yield CallTools(tuple(pending))
            pending = []
    if pending:
        yield CallTools(tuple(pending))
    said = text.find(_SAY, position)
    if said >= 0 and (position or said == 0):
        yield Say(text[said + len(_SAY) :].partition("\n")[0].strip())


def _call_at(text: str, start: int) -> tuple[PlannedCall, int] | None:
    if start < 0:
        return None
    begin = start + len(_CALL)
    middle = text.find(_WITH, begin)
    name = text[begin:middle].strip()
    opened = middle + len(_WITH)
    if middle < 0 or not name or " " in name or text[opened : opened + 1] != "{":
        return None
    end = scan_value_end(text, opened)
    arguments = _decoded(text[opened:end]) if end is not None else None
    return None if arguments is None else (PlannedCall(name, arguments), end or len(text))


def _decoded(text: str) -> dict[str, Any] | None:
    try:
        value = decode(text)
    except JSONTextError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
