"""An experiment that needs no model: units, a job that runs them at once, and a suite of cases.

    matrix, executor = FakeMatrix(fake_units(trials=4)), LocalExecutor(fake_job())
    info = await run_experiment(matrix, manifest, store, executor=executor)

What a trial comes to follows from its seed alone, whoever runs it and however often.
"""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from surecall.base.records import Message, ModelRequest, Usage
from surecall.evals.cases import (
    Attempt,
    Case,
    Contender,
    Grades,
    Ideal,
    IdealCall,
    Prepared,
    failed,
)
from surecall.evals.jobs import Finished, Job, Lane, RunUnit, TrialParams, Trials
from surecall.evals.records import (
    CallFact,
    Cell,
    Manifest,
    Reason,
    TrialBody,
    TrialRow,
    Unit,
    Verdict,
    make_manifest,
)
from surecall.models.transport import ScriptedTransport, Transport, assistant, tool_call
from surecall.tools import ToolRegistry
from surecall.tools.define import tool

__all__ = [
    "FakeCase",
    "FakeMatrix",
    "FakeSuite",
    "fake_finished",
    "fake_job",
    "fake_manifest",
    "fake_row",
    "fake_trials_job",
    "fake_units",
    "open_fake_job",
    "open_fake_transport",
    "open_fake_trials",
]

SCENARIOS = ("first", "second", "third")

ORIGINAL_PROFILES = "default,recommended,conversation,creative,tool_calling"
"""The profiles of the full matrix of the original experiment."""


class FakeMatrix(Struct, frozen=True):
    """Units and nothing else."""

    units: tuple[Unit, ...]


def fake_units(
    *,
    models: Sequence[str] = ("fake:a",),
    scenarios: Sequence[str] = SCENARIOS,
    trials: int = 2,
    strategies: Sequence[str] = ("production",),
) -> tuple[Unit, ...]:
    """Return the units of a small matrix, in order."""
    made: list[Unit] = []
    for model in models:
        for strategy in strategies:
            for trial in range(1, trials + 1):
                for scenario in scenarios:
                    cell = Cell(model=model, strategy=strategy, suite="fake", scenario=scenario)
                    seed = 7919 * len(made) + 13
                    made.append(Unit(index=len(made), cell=cell, trial=trial, seed=seed))
    return tuple(made)


def fake_manifest(units: Iterable[Unit], **changes: Any) -> Manifest:
    """Describe an experiment of these units."""
    listed = list(units)
    fields: dict[str, Any] = {"axes": {"trials": 2}, "suites": {"fake": "1"}, **changes}
    return make_manifest(listed, **fields)


def fake_row(unit: Unit) -> TrialRow:
    """Return what a unit comes to: two of three pass, every fifth breaks."""
    ok = unit.seed % 3 != 0
    is_broken = unit.seed % 5 == 0
    call = CallFact(
        turn=1,
        name="note",
        format="tool_calls",
        structured=True,
        state="ready",
        valid_before=not is_broken,
        valid_after=True,
        changed=is_broken,
        executed=True,
        ok=True,
        rules=("json.quotes",) if is_broken else (),
        arguments_bytes=10 + unit.seed % 7,
    )
    return TrialRow(
        index=unit.index,
        cell=unit.cell,
        case=unit.case,
        trial=unit.trial,
        seed=unit.seed,
        simulated=True,
        original_ok=ok or unit.seed % 2 == 0,
        strict_ok=ok,
        strict_reasons=() if ok else (Reason("WRONG_TEXT", "it said no"),),
        outcome="called",
        elapsed_ms=float(unit.seed % 100),
        turns=2,
        requests=2,
        usage=Usage(100, 10, 110),
        calls=(call,),
        rules=call.rules,
        text="Done." if ok else "No.",
        started_at=1_780_000_000.0 + unit.index,
    )


def fake_finished(unit: Unit) -> Finished:
    """Return a finished trial with a body."""
    body = TrialBody(
        index=unit.index,
        request={"messages": [{"role": "user", "content": f"seed {unit.seed}"}]},
        config={"max_turns": [12, "default"]},
        transcript=({"turn": 1, "text": "x" * 50},),
    )
    return Finished(fake_row(unit), body)


def fake_job(*, lanes: dict[str, Lane] | None = None, **params: Any) -> Job:
    """Return a job that `open_fake_job` opens, here or in another process."""
    return Job(open="support.eval_fakes:open_fake_job", params=params, lanes=lanes or {})


@asynccontextmanager
async def open_fake_job(params: dict[str, Any]) -> AsyncGenerator[RunUnit, None]:
    """Run units at once.

    Params:
        delay_s: How long each takes.
        dies: Indexes that kill the process that runs them, every time.
        dies_once: Indexes that do so the first time; `marks` is a folder to remember it in.
        log: A file that gets a line for every unit that begins.
        dies_when_opened: Whether opening kills the process.
        bad: A message with which opening fails.
    """
    if params.get("bad"):
        raise ValueError(params["bad"])
    if params.get("dies_when_opened"):
        os.kill(os.getpid(), signal.SIGKILL)

    async def run(unit: Unit) -> Finished:
        if log := params.get("log"):
            with Path(log).open("a") as file:
                file.write(f"{unit.index} {os.getpid()}\n")
        await asyncio.sleep(params.get("delay_s", 0))
        if unit.index in params.get("dies", ()):
            os.kill(os.getpid(), signal.SIGKILL)
        if unit.index in params.get("dies_once", ()):
            mark = Path(params["marks"]) / str(unit.index)
            if not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return fake_finished(unit)

    yield run


# a suite of cases that go through the real loop


@tool(effect="write")
def note(text: str) -> str:
    """Write a note."""
    return f"noted {text}"


class FakeCase(Struct, frozen=True, kw_only=True):
    """A case that one call of `note` with the right text solves."""

    scenario: str
    id: str = ""
    control: bool = False

    def prepare(self, seed: int) -> Prepared:
        """Set up the one tool."""
        prompt = Message("user", f"Note the word {self.scenario}. ({seed})")
        return Prepared(tools=ToolRegistry([note]), messages=(prompt,))

    def grade(self, attempt: Attempt) -> Grades:
        """Ask for the final text."""
        ok = attempt.text == "Done."
        verdict = Verdict(ok=True) if ok else failed("WRONG_TEXT", attempt.text)
        return Grades(original=verdict, strict=verdict, exact=(True,) if ok else ())

    def ideal(self, request: ModelRequest) -> Ideal | None:
        """Call once, then answer."""
        if any(message.role == "tool" for message in request.messages):
            return Ideal(text="Done.")
        return Ideal(calls=(IdealCall("note", {"text": self.scenario}),))


class FakeSuite:
    """Three scenarios of one case each."""

    name = "fake"
    version = "1"

    def scenarios(self) -> Sequence[str]:
        """Name the three."""
        return SCENARIOS

    def cases(self, scenario: str) -> Sequence[FakeCase]:
        """Return the only case of a scenario."""
        return (FakeCase(scenario=scenario),) if scenario in SCENARIOS else ()


def fake_trials_job(**params: Any) -> Job:
    """Return a job that runs the cases of `FakeSuite` through the real loop."""
    return Job(open="support.eval_fakes:open_fake_trials", params=params)


@asynccontextmanager
async def open_fake_trials(params: dict[str, Any]) -> AsyncGenerator[RunUnit, None]:
    """Run units as an experiment does, against models that answer at once."""
    contenders = tuple(
        Contender(label=label, model=label, kind="simulated") for label in params["models"]
    )
    settings = TrialParams(
        suites=("fake",), contenders=contenders, open_transport="", timeout_s=5.0
    )
    yield Trials(settings, [FakeSuite()], open_fake_transport).run


@asynccontextmanager
async def open_fake_transport(_contender: Any, unit: Unit, case: Case) -> AsyncIterator[Transport]:
    """Answer as a good model would; every third seed gets the final text wrong."""

    def answer(request: Any) -> Any:
        if any(message["role"] == "tool" for message in request.body["messages"]):
            return "Done." if unit.seed % 3 else "No."
        return assistant(None, tool_call("note", {"text": case.scenario}))

    yield ScriptedTransport(answer)
