"""What happened in a trial, as verdicts ask about it."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, Final, cast

from surecall.base.json_values import as_fields, as_list
from surecall.base.records import ToolSpec
from surecall.calls import ToolNames
from surecall.evals.as_made import MadeCall, is_same_name, list_turns
from surecall.evals.cases import Attempt
from surecall.loop import TurnTrace

from .conversation import Calls
from .paths import path_parts
from .scene import FOO, Scene

_LIMIT_REASONS: Final = frozenset({"length", "max_tokens", "model_length"})
_ROOTS: Final = frozenset({"workspace", "snapshot", "data"})
"""What models put before a path, because results show the workspace under it."""


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
        """The calls that name a hidden tool, as the tool or in what they send."""
        return tuple(made for made in self.attempts if self._is_hidden(made))

    def _is_hidden(self, made: MadeCall) -> bool:
        named = [made.name, *made.arguments, *_list_text_words(made.arguments, depth=4)]
        return any(is_same_name(word, tool) for word in named for tool in self.scene.hidden)

    def own_parts(self, path: str) -> tuple[str, ...]:
        """Return the parts of a path within the workspace, whatever is put before it."""
        parts = path_parts(path)
        own = path_parts(FOO)
        if parts[-len(own) :] == own:
            return own
        is_rooted = bool(parts) and parts[0] in {*_ROOTS, self.scene.before.id.lower()}
        return parts[1:] if is_rooted else parts

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


def _list_text_words(value: Any, depth: int) -> Iterator[str]:
    """Return the words of all texts in some arguments."""
    if depth <= 0:
        return
    if isinstance(value, str):
        yield from value.split()
    elif isinstance(value, dict | list):
        items = as_fields(value).values() if isinstance(value, dict) else as_list(value)
        for item in items:
            yield from _list_text_words(item, depth - 1)


def sets_value(made: MadeCall, parts: tuple[str, ...], value: Any) -> bool:
    """Tell whether a patch asks for a value at a path, whatever became of it."""
    return any(
        path_parts(str(item.get("path"))) == parts and item.get("value") == value
        for item in made.operations
    )


def _hit_limit(turn: TurnTrace) -> bool:
    summary = turn.response_summary
    return summary is not None and (summary.finish_reason or "").lower() in _LIMIT_REASONS
