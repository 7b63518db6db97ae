"""One small case with two tools, tried with replies from a script."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal

from surecall import tool
from surecall.base.records import Message, ModelRequest
from surecall.evals.cases import Attempt, Contender, Grades, Ideal, OpenTransport, Prepared, failed
from surecall.evals.records import Cell, TrialBody, TrialRow, Unit, Verdict
from surecall.evals.strategies import Settled, settle
from surecall.evals.trial import run_trial
from surecall.models.transport import ScriptedTransport, Transport
from surecall.tools import ToolRegistry

__all__ = ["Desk", "DeskCase", "attempt", "contender", "script", "unit"]

PROMPT = "Note that the answer is 7."


class Desk:
    """What the tools have done."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, int]] = []

    def registry(self) -> ToolRegistry:
        """Return tools that work on this desk."""

        @tool
        def note(text: str, count: int, mood: Literal["calm", "cross"] = "calm") -> dict[str, Any]:
            """Keep a note."""
            self.notes.append((text, count))
            return {"kept": len(self.notes)}

        @tool(effect="read")
        def look(place: str) -> dict[str, Any]:
            """Look somewhere."""
            return {"seen": place}

        return ToolRegistry([note, look])


class DeskCase:
    """Right when exactly one note was taken and the answer is not empty."""

    scenario = "desk"
    id = ""

    def __init__(self, *, control: bool = False, **options: Any) -> None:
        self.control = control
        self.options = options
        self.breaks_on = ""

    def prepare(self, seed: int) -> Prepared:
        """Set up a desk of its own."""
        if self.breaks_on == "prepare":
            raise RuntimeError("no desk")
        desk = Desk()
        return Prepared(
            tools=desk.registry(),
            system="Be brief.",
            messages=(Message("user", PROMPT),),
            options=self.options,
            state=desk,
        )

    def grade(self, attempt: Attempt) -> Grades:
        """Look at the notes."""
        if self.breaks_on == "grade":
            raise RuntimeError("no verdict")
        notes = attempt.prepared.state.notes
        ok = len(notes) == 1 and bool(attempt.text.strip())
        verdict = Verdict(ok=True) if ok else failed("WRONG_NOTES", f"{len(notes)} notes")
        calls = [call for turn in attempt.trace.turns for call in turn.calls] if ok else []
        exact = tuple(call.arguments == {"text": "seven", "count": 7} for call in calls)
        return Grades(original=verdict, strict=verdict, exact=exact, state={"notes": notes})

    def ideal(self, request: ModelRequest) -> Ideal | None:
        """Leave it to the script."""
        return None


def contender(**fields: Any) -> Contender:
    """Return a model that nobody serves, but for what is named."""
    return Contender(**{"label": "m", "model": "some-model", **fields})


def unit(**fields: Any) -> Unit:
    """Return a unit of the desk."""
    return Unit(**{"index": 0, "cell": Cell(model="m", scenario="desk"), "seed": 5, **fields})


def script(replies: Sequence[Any], **options: Any) -> OpenTransport:
    """Return what opens a transport that answers from a script."""

    @asynccontextmanager
    async def opened(_contender: Contender, _unit: Unit, _case: Any) -> AsyncIterator[Transport]:
        yield ScriptedTransport(replies, **options)

    return opened


async def attempt(
    replies: Sequence[Any],
    strategy: str = "production",
    *,
    case: DeskCase | None = None,
    who: Contender | None = None,
    settled: Settled | None = None,
    **arguments: Any,
) -> tuple[TrialRow, TrialBody]:
    """Run one trial of the desk with these replies."""
    who = who or contender()
    return await run_trial(
        unit(),
        case or DeskCase(),
        who,
        script(replies),
        settled or settle(strategy, who),
        **arguments,
    )
