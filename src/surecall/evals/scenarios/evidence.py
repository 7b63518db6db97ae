"""What happened in a trial, as verdicts ask about it."""

import re
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import Any, Final, cast

from surecall.evals.as_made import (
    MadeCall,
    is_same_name,
    list_turns,
    means_tool,
    names_passed_on,
)
from surecall.evals.cases import Attempt
from surecall.formats import ToolNames
from surecall.loop import TurnTrace
from surecall.narrow import as_fields, as_list
from surecall.records import ToolSpec

from .conversation import Calls
from .scene import Scene

_LIMIT_REASONS: Final = frozenset({"length", "max_tokens", "model_length"})
_PATH: Final = re.compile(r'"path\\{0,3}"\s{0,8}:\s{0,8}\\{0,3}"([^"\\]{0,200})')
_AROUND_WORDS: Final = "\"',;:()[]{}"
_SEPARATORS: Final = re.compile(r"[/.$#\[\]'\"\\]++")
_PATH_KEYS: Final = frozenset({"path", "pointer", "from", "field", "key", "target", "property"})
"""Keys under which models name what a patch is to change."""
_NO_AIMS: Final = frozenset({"workspace_id", "request_id", "select", "value", "op", "index"})
"""Keys whose values aim at nothing."""


class Evidence(Calls):
    """An attempt with everything that verdicts ask about."""

    def __init__(self, attempt: Attempt, unknown: Iterable[str] = ()) -> None:
        """Take what happened.

        Args:
            attempt: The run.
            unknown: Names of tools that there are not, to be found in text as well.
        """
        self.attempt = attempt
        self.scene = cast("Scene", attempt.prepared.state)
        self.error = attempt.error
        self.text = attempt.text
        self.turns = attempt.turns
        self.specs = tuple(tool.spec for tool in self.scene.tools)
        invented = (ToolSpec(name=name) for name in unknown)
        self.made = list_turns(attempt.trace, (*self.specs, *invented))
        self.calls = tuple(call for turn in self.made for call in turn.calls)
        self.attempts = tuple(call for turn in self.made for call in (*turn.calls, *turn.unread))
        """Every call as it was made: run, refused, left alone or only written down."""
        self._offered = ToolNames(spec for spec in self.specs if spec.exposed)

    def attempts_of(self, name: str) -> list[MadeCall]:
        """Return the calls that mean a tool, whatever became of them."""
        return [
            made
            for made in self.attempts
            if is_same_name(made.name, name) or self._offered.resolve(made.name) == name
        ]

    def offers(self, name: str) -> bool:
        """Tell whether a name means a tool that the model may use."""
        return self._offered.resolve(name) is not None

    @cached_property
    def hidden_calls(self) -> tuple[MadeCall, ...]:
        """The calls of tools that are hidden, under any spelling, also through a wrapper."""
        return tuple(made for made in self.attempts if self._is_hidden(made))

    def _is_hidden(self, made: MadeCall) -> bool:
        hidden = self.scene.hidden
        if any(is_same_name(key, tool) for key in made.arguments for tool in hidden):
            return True
        names = names_passed_on(made.arguments) if self.offers(made.name) else made.names
        return any(means_tool(name, tool) for name in names for tool in hidden)

    @property
    def unknown_calls(self) -> list[MadeCall]:
        """The calls of tools that there are not."""
        return [
            made
            for made in self.attempts
            if not self.offers(made.name) and made not in self.hidden_calls
        ]

    @property
    def written(self) -> list[tuple[str, ...]]:
        """The parts of every path that was written, in order; what was undone counts, too."""
        return [
            path_parts(path) for call in self.scene.log.calls if call.ok for path in call.written
        ]

    def values_set(self, parts: tuple[str, ...]) -> set[str]:
        """Return the different values that were written to a path, as text."""
        return {
            repr(as_fields(item).get("value"))
            for call in self.scene.log.calls
            if call.ok and isinstance(call.arguments.get("ops"), list)
            for item in call.arguments["ops"]
            if path_parts(str(as_fields(item).get("path"))) == parts
        }

    def met(self, calls: Iterable[MadeCall]) -> int | None:
        """Return the place of the first of these calls among all, or nothing."""
        wanted = [id(made) for made in calls]
        return next((i for i, made in enumerate(self.calls) if id(made) in wanted), None)

    def succeeded_after(self, name: str, place: int) -> bool:
        """Tell whether a call of the tool succeeded after a place."""
        return any(made.ok and made.name == name for made in self.calls[place + 1 :])

    @property
    def is_cut(self) -> bool:
        """Whether a token limit ended the last reply, or a call that was not made up for."""
        limited = {turn.turn for turn in self.turns if _hit_limit(turn)}
        if self.turns and self.turns[-1].turn in limited:
            return True
        last = {made.name: made for made in self.calls}
        return any(made.is_cut and made.turn in limited for made in last.values())


def paths_of(made: MadeCall, fields: Collection[str] = ()) -> list[str]:
    """Return the paths that a patch is aimed at, also where its arguments cannot be used.

    Args:
        made: The call.
        fields: Names of fields that count as a path wherever they are a key.
    """
    if not made.arguments:
        words = (word.strip(_AROUND_WORDS) for word in made.raw.split())
        return _PATH.findall(made.raw) or [word for word in words if word.startswith("/")]
    return list(dict.fromkeys(_list_aims(made.arguments, fields)))


def _list_aims(arguments: dict[str, Any], fields: Collection[str]) -> Iterator[str]:
    for key, value in arguments.items():
        if key in fields:
            yield key
        if key == "ops" and isinstance(value, dict) and not _is_operation(as_fields(value)):
            yield from (name for name in as_fields(value) if name not in _NO_AIMS)
        yield from _list_paths(key, value, fields, depth=4)


def _list_paths(key: str, value: Any, fields: Collection[str], depth: int) -> Iterator[str]:
    if key in _NO_AIMS or depth <= 0:
        return
    if isinstance(value, dict):
        for name, item in as_fields(value).items():
            if name in fields:
                yield name
            yield from _list_paths(name, item, fields, depth - 1)
    elif isinstance(value, list):
        for item in as_list(value):
            yield from _list_paths(key if isinstance(item, str) else "", item, fields, depth - 1)
    elif isinstance(value, str):
        if key in _PATH_KEYS:
            yield value
        else:
            yield from (word for word in value.split() if word.startswith(("/", "#/")))


def _is_operation(fields: dict[str, Any]) -> bool:
    return not _PATH_KEYS.isdisjoint(fields)


def path_parts(path: str) -> tuple[str, ...]:
    """Return the parts of a path in lower case, whatever separates them."""
    return tuple(part for part in _SEPARATORS.split(path.strip().lower()) if part)


def sets_value(made: MadeCall, parts: tuple[str, ...], value: Any) -> bool:
    """Tell whether a patch asks for a value at a path, whatever became of it."""
    return any(
        path_parts(str(item.get("path"))) == parts and item.get("value") == value
        for item in made.operations
    )


def _hit_limit(turn: TurnTrace) -> bool:
    summary = turn.response_summary
    return summary is not None and (summary.finish_reason or "").lower() in _LIMIT_REASONS
