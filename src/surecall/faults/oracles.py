"""Oracles for any tools: orders in the user's text that can be followed exactly.

call NAME with {"a": 1}                       one call
call NAME with {…} and call OTHER with {…}    both in one reply
call NAME with {…} then call OTHER with {…}   one after the other
say TEXT                                      the final answer, to the end of the line
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.records import ModelRequest, ToolSpec
from surecall.text import encode_text, scan_value_end

from .conversation import (
    Action,
    CallTools,
    Oracle,
    PlannedCall,
    Say,
    answered_calls,
    last_user_text,
)
from .replies import sample_arguments
from .toml_files import load_table, parse_fields

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
        last = Say(FINAL_TEXT)
        for step in self._steps:
            if isinstance(step, Say):
                last = step
                if not said:
                    return step
                said -= 1
                continue
            wanted = Counter(call.name for call in step.calls)
            if left := wanted - succeeded:
                return CallTools(tuple(call for call in step.calls if left[call.name]))
            succeeded -= wanted
        return last


class DirectiveOracle:
    """Follows the directives in the last text of the user that has any."""

    def next_action(self, request: ModelRequest) -> Action | None:
        """Return the next step of the directives, or `None` when there are none."""
        offered = {tool.name for tool in request.tools}
        for position in reversed(range(len(request.messages))):
            message = request.messages[position]
            steps = list(_find_steps(message.text)) if message.role == "user" else []
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


def _find_steps(text: str) -> Iterator[Action]:
    """Yield the steps that the text asks for."""
    pending: list[PlannedCall] = []
    position = 0
    for _ in range(_MAX_STEPS):
        found = _parse_call(text, text.find(_CALL, position))
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


def _parse_call(text: str, start: int) -> tuple[PlannedCall, int] | None:
    if start < 0:
        return None
    begin = start + len(_CALL)
    middle = text.find(_WITH, begin)
    name = text[begin:middle].strip()
    opened = middle + len(_WITH)
    if middle < 0 or not name or " " in name or text[opened : opened + 1] != "{":
        return None
    end = scan_value_end(text, opened)
    arguments = parse_fields(text[opened:end]) if end is not None else None
    return None if arguments is None else (PlannedCall(name, arguments), end or len(text))


_HINT: Final = "Write a list of [[steps]], each with call and arguments, calls, or say."


class _Step(Struct, frozen=True, forbid_unknown_fields=True):
    call: str | None = None
    arguments: dict[str, Any] = {}
    calls: tuple[PlannedCall, ...] = ()
    say: str | None = None

    def __post_init__(self) -> None:
        if sum((self.call is not None, bool(self.calls), self.say is not None)) != 1:
            raise ValueError("a step has one of call, calls and say")

    @property
    def action(self) -> Action:
        if self.say is not None:
            return Say(self.say)
        if self.call is not None:
            return CallTools((PlannedCall(self.call, self.arguments),))
        return CallTools(self.calls)


class _Script(Struct, frozen=True, forbid_unknown_fields=True):
    steps: tuple[_Step, ...]


def load_script(path: str | Path) -> StepsOracle:
    """Read a script."""
    script = load_table(path, _Script, f"the script {path}", _HINT)
    return StepsOracle([step.action for step in script.steps])


_WORD: Final = "single word:"
_TWICE: Final = ("two times", "twice", "both calls")
_FORBIDS: Final = ("do not call", "don't call", "do not use", "don't use")
_ASKING_WORDS: Final = frozenset({"fetch", "find", "get", "list", "look", "read", "show"})
"""Words of names that a question need not have: whoever asks for the weather wants to get it."""
_EXACTLY: Final = "exactly: "


class ObligingOracle:
    """Calls the tools that the user speaks of, answers with the word that is asked for, or is done.

    A call takes what is in quotes, or said to be exact, as its texts, as the user wants it; only a
    strict tool is held to its schema.
    """

    def next_action(self, request: ModelRequest) -> Action | None:
        """Return what the last text of the user asks for."""
        text = last_user_text(request)
        tools = _find_tools(request, text)
        if tools:
            return CallTools(tuple(_plan_calls(tools, text)))
        if "json" in text.lower():
            return Say(_write_json(text))
        return Say(_find_word(request) or FINAL_TEXT)


def _find_tools(request: ModelRequest, text: str) -> list[ToolSpec]:
    lowered = text.lower()
    if not request.messages or request.messages[-1].role != "user":
        return []
    if any(words in lowered for words in _FORBIDS):
        return []
    named = [tool for tool in request.tools if tool.name in text]
    if named or "call it" in lowered:
        return named or list(request.tools[:1])
    words = set(re.findall(r"\w+", lowered))
    return [tool for tool in request.tools if _speaks_of(tool, words)]


def _speaks_of(tool: ToolSpec, words: set[str]) -> bool:
    """Tell whether a text has the words of a tool's name, apart from those that only ask."""
    wanted = set(tool.name.lower().split("_")) - _ASKING_WORDS
    return bool(wanted) and wanted <= words


def _plan_calls(tools: list[ToolSpec], text: str) -> Iterator[PlannedCall]:
    texts = list(_find_quoted(text))
    times = 2 if any(words in text.lower() for words in _TWICE) else 1
    for number in range(times):
        for tool in tools:
            yield PlannedCall(tool.name, _fill_arguments(tool, texts[number:]))


def _fill_arguments(tool: ToolSpec, texts: list[str]) -> dict[str, Any]:
    arguments = sample_arguments(tool.parameters, tuple(texts))
    if tool.extra.get("strict"):
        return arguments
    wanted = iter(texts)
    return {
        key: next(wanted, value) if isinstance(value, str) else value
        for key, value in arguments.items()
    }


def _write_json(text: str) -> str:
    written = encode_text({"answer": FINAL_TEXT})
    is_fenced = "```json" in text and "without a code fence" not in text
    return f"Here it is.\n```json\n{written}\n```" if is_fenced else written


def _find_word(request: ModelRequest) -> str:
    """Return the word that the newest instruction asks for, if one does."""
    for message in reversed(request.messages):
        if message.role not in {"user", "system", "developer"}:
            continue
        words = message.text.partition(_WORD)[2].split(maxsplit=1)
        if words:
            return words[0].rstrip(".,!")
    return ""


def _find_quoted(text: str) -> Iterator[str]:
    """Yield what is between double quotes; else between single ones, and what is to be exact."""
    parts = text.split('"')
    found = [part for part in parts[1:-1:2] if part]
    if not found:
        found = re.findall(r"(?<!\w)'([^']+)'(?!\w)", text)
        _, is_exact, exact = text.partition(_EXACTLY)
        found += [exact] if is_exact else []
    yield from found
