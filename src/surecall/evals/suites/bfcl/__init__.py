"""The suite `bfcl`: cases of the Berkeley leaderboard, from its own data."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from surecall.base.errors import Code, ConfigError, did_you_mean
from surecall.evals.cases import Case
from surecall.evals.suites.single_turn import SingleTurnCase, Wish

from .conversations import CONVERSATIONS, list_conversation_files, read_conversations
from .data import BfclEntry, BfclFiles, find_bfcl, list_files, tool_names, tools_of
from .rules import check_calls
from .turns import ConversationCase

__all__ = ["BFCL_CATEGORIES", "SINGLE_TURN", "BfclSuite", "case_of"]

SINGLE_TURN: Final = (
    "simple_python",
    "multiple",
    "parallel",
    "parallel_multiple",
    "irrelevance",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
    "live_irrelevance",
    "live_relevance",
)
"""The categories that are one request each, with functions in Python."""
BFCL_CATEGORIES: Final = (*SINGLE_TURN, CONVERSATIONS)
"""Every category that is offered."""

_CHECKER: Final = "3"
"""Changes with the rule of the verdicts."""


class BfclSuite:
    """The leaderboard's cases, each category a scenario; judged by its own rule.

    Args:
        path: A wheel of `bfcl-eval`; without it the installed package is used.
        every: Take only each n-th case of a category, beginning with the first.
    """

    name = "bfcl"

    def __init__(self, path: "str | Path | None" = None, *, every: int = 1) -> None:
        self._path = path
        self._every = every
        self._files: BfclFiles | None = None
        self._cases: dict[str, tuple[Case, ...]] = {}

    @property
    def version(self) -> str:
        """Version of the package, hash of its data, version of the checks, and the sampling."""
        files = self._open()
        step = f"/{self._every}" if self._every > 1 else ""
        names = [name for category in SINGLE_TURN for name in list_files(category)]
        fingerprint = files.fingerprint((*names, *list_conversation_files()))
        return f"{files.version}+{fingerprint}.{_CHECKER}{step}"

    def scenarios(self) -> Sequence[str]:
        """Name the categories."""
        return BFCL_CATEGORIES

    def cases(self, scenario: str) -> Sequence[Case]:
        """Return the cases of a category, in the order of its file."""
        if scenario not in BFCL_CATEGORIES:
            raise ConfigError(
                Code.NOTHING_SELECTED,
                f"the suite bfcl has no category {scenario!r}.",
                hint=did_you_mean(scenario, BFCL_CATEGORIES),
            )
        if scenario not in self._cases:
            self._cases[scenario] = tuple(self._read(scenario)[:: self._every])
        return self._cases[scenario]

    def _read(self, scenario: str) -> Sequence[Case]:
        files = self._open()
        if scenario == CONVERSATIONS:
            return [
                ConversationCase(scenario=scenario, conversation=conversation)
                for conversation in read_conversations(files)
            ]
        return [case_of(scenario, entry) for entry in files.entries(scenario)]

    def _open(self) -> BfclFiles:
        if self._files is None:
            self._files = find_bfcl(self._path)
        return self._files


def case_of(scenario: str, entry: BfclEntry) -> SingleTurnCase:
    """Make a case of what the package states."""
    return SingleTurnCase(
        scenario=scenario,
        id=entry.id,
        messages=entry.messages,
        tools=tools_of(entry.functions),
        functions={function["name"]: function for function in entry.functions},
        names={
            tool: function["name"]
            for tool, function in zip(tool_names(entry.functions), entry.functions, strict=True)
        },
        answers=entry.answers or (),
        wish=_find_wish(scenario),
        check=check_calls,
    )


def _find_wish(scenario: str) -> Wish:
    if "irrelevance" in scenario:
        return "no_call"
    return "a_call" if "relevance" in scenario else "calls"
