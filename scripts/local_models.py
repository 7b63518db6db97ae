"""Measure tool calling of the embedded models, through the loop that applications use.

python scripts/local_models.py --bfcl bfcl_eval-2026.3.23-py3-none-any.whl --record runs
python scripts/local_models.py --record runs --model embedded:smollm2-135m --suite one_tool

Every reply is kept in the folder named with --record and is not asked for again: a change in the
reading of replies is measured anew in seconds. Delete the folder to ask the models again.
"""

import argparse
import asyncio
import platform
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from importlib import metadata
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

from surecall import Session
from surecall.base.errors import Code, JSONTextError, ProviderError, RunError
from surecall.base.records import ToolCallEnded, WireReply, WireRequest
from surecall.evals.cases import Attempt
from surecall.evals.stats import wilson
from surecall.evals.suites.bfcl import BfclSuite
from surecall.evals.suites.one_tool import OneToolSuite
from surecall.evals.suites.single_turn import SingleTurnCase
from surecall.models.config import load_config
from surecall.models.profiles import find_weights
from surecall.models.transport import EmbeddedTransport, Transport, WireStream
from surecall.reading import read_reply
from surecall.schema import SchemaChecker
from surecall.text import canonical_hash, decode, encode

SMOLLM = "embedded:smollm2-135m"
QWEN = "embedded:qwen2.5-coder-1.5b"
SAMPLING = {"temperature": 0, "seed": 1, "max_tokens": 160}

MODES: dict[str, dict[str, Any]] = {
    "raw": {
        "preset": (),
        "capabilities": {"supports_tool_use": True},
        "tool_prompting": "native",
        "text_formats": "off",
        "disabled_rules": ("*",),
        "fix_empty_final": False,
        "max_turns": 1,
    },
    "native": {"tool_prompting": "native", "text_formats": "all"},
    "taught": {"tool_prompting": "taught"},
    "constrained": {"tool_prompting": "constrained"},
    "constrained, required": {
        "preset": ("default_tool_calling",),
        "tool_prompting": "constrained",
        "tool_choice": "required",
    },
    "production": {},
    "production, required": {"tool_choice": "required"},
}
"""What the loop is told in each mode; everything else is what it does by itself."""

PLAN = (
    (SMOLLM, "one_tool", ("raw", "taught", "constrained, required", "production, required")),
    (SMOLLM, "one_tool_fresh", ("raw", "production, required")),
    (SMOLLM, "simple_python", ("production, required",)),
    (QWEN, "one_tool", ("raw", "production", "taught", "production, required")),
    (QWEN, "one_tool_fresh", ("raw", "production", "taught", "production, required")),
    (QWEN, "simple_python", ("raw", "production", "production, required")),
    (QWEN, "irrelevance", ("raw", "production", "taught", "constrained")),
)
"""Which modes are tried with which model and suite."""

OWN_SUITE = OneToolSuite()
OWN = tuple(OWN_SUITE.scenarios())
EVERY = {"simple_python": 4, "irrelevance": 6}
"""Of these categories each n-th case is taken, beginning with the first."""


HEADING = (
    "| Mode | a call arrived | the first reply fits the schema | a call ran | it is right | cut |"
)


class Outcome(NamedTuple):
    """What one case came to."""

    case: SingleTurnCase
    called: bool
    first_valid: bool
    valid: bool
    correct: bool
    cut: bool
    turns: int
    reasons: str
    said: str
    rules: tuple[str, ...]


class KeptReplies:
    """A transport that keeps every reply in a file and asks the same only once."""

    def __init__(self, model: str, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._model = model
        self._path = folder / f"{model.partition(':')[2].replace('/', '_')}.jsonl"
        self._kept: dict[str, bytes] = {}
        if self._path.exists():
            for line in self._path.read_bytes().splitlines():
                row = decode(line)
                self._kept[row["key"]] = encode(row["reply"])
        self._engine: EmbeddedTransport | None = None
        self.stop = False
        self.label = ""

    async def send(self, request: WireRequest) -> WireReply:
        """Return the kept reply, or ask the model and keep what it says."""
        if self.stop:
            raise ProviderError(Code.CONNECTION_FAILED, "the case is over: a call has run.")
        key = canonical_hash(request.body)
        if key not in self._kept:
            started = perf_counter()
            reply = await self._open().send(request)
            seconds = round(perf_counter() - started, 2)
            row = {
                "key": key,
                "label": self.label,
                "seconds": seconds,
                "request": request.body,
                "reply": decode(reply.body),
            }
            with self._path.open("ab") as file:
                file.write(encode(row) + b"\n")
            self._kept[key] = encode(row["reply"])
        body = self._kept[key]
        return WireReply(status=200, headers={"content-type": "application/json"}, body=body)

    def stream(self, request: WireRequest) -> AbstractAsyncContextManager[WireStream]:
        """Refuse: whole replies are kept."""
        raise ProviderError(Code.CONNECTION_FAILED, "this transport does not stream.")

    async def aclose(self) -> None:
        """Give up the connection to the model."""
        if self._engine is not None:
            await self._engine.aclose()

    def _open(self) -> Transport:
        if self._engine is None:
            weights = find_weights(self._model.partition(":")[2])
            self._engine = EmbeddedTransport(weights, cache_dir=load_config().cache_dir)
        return self._engine


async def try_case(case: SingleTurnCase, model: str, mode: str, transport: KeptReplies) -> Outcome:
    """Run one case until a call has run or there is an answer."""
    prepared = case.prepare(1)
    transport.stop = False
    transport.label = f"{mode} {case.id}"

    def on_event(event: Any) -> None:
        transport.stop |= isinstance(event, ToolCallEnded) and event.executed

    session = Session(
        model=model,
        tools=prepared.tools,
        transport=transport,
        request_overrides=SAMPLING,
        on_event=on_event,
        **{**prepared.options, **MODES[mode]},
    )
    result, error = None, None
    try:
        result = await session.run(prepared.messages)
    except (ProviderError, RunError) as raised:
        error = raised
    trace = result.trace if result is not None else getattr(error, "trace", None)
    grades = case.grade(
        Attempt(prepared=prepared, result=result, error=error, trace=trace, text="")
    )
    turns = [turn for turn in trace.turns if turn.raw is not None] if trace is not None else []
    if not turns:
        raise RuntimeError(f"{case.id}: the model was not asked") from error
    return Outcome(
        case,
        called=any(turn.calls for turn in turns),
        first_valid=any(result.executed for result in turns[0].results),
        valid=any(result.executed for turn in turns for result in turn.results),
        correct=grades.strict.ok,
        cut=any(turn.response_summary.finish_reason == "length" for turn in turns),
        turns=len(turns),
        reasons="; ".join(f"{r.code} {r.message}".strip() for r in grades.strict.reasons),
        said=turns[0].raw.message.get("content") or "",
        rules=tuple(dict.fromkeys(receipt.rule for receipt in trace.receipts)),
    )


async def measure(
    cases: Sequence[SingleTurnCase], model: str, mode: str, transport: KeptReplies
) -> list[Outcome]:
    """Try every case in one mode."""
    outcomes: list[Outcome] = []
    for case in cases:
        outcomes.append(await try_case(case, model, mode, transport))
        print(f"\r{model} {mode} {len(outcomes)}/{len(cases)} ", end="", file=sys.stderr)
    print(file=sys.stderr)
    return outcomes


def share(outcomes: Sequence[Outcome], field: str) -> str:
    """Return how many of the outcomes have a property, with the 95 % interval of Wilson."""
    hits, total = sum(bool(getattr(each, field)) for each in outcomes), len(outcomes)
    low, high = wilson(hits, total).low, wilson(hits, total).high
    return f"{hits}/{total} = {hits / total:.1%} ({low:.0%} to {high:.0%})"


def draw_rates(outcomes: Sequence[Outcome], mode: str) -> str:
    """Draw one row of a table in which calls are expected."""
    fields = ("called", "first_valid", "valid", "correct", "cut")
    return f"| {mode} | " + " | ".join(share(outcomes, field) for field in fields) + " |"


def draw_irrelevance(outcomes: Sequence[Outcome], mode: str) -> str:
    """Draw one row of a table in which no call is right."""
    fields = ("called", "valid", "correct")
    return f"| {mode} | " + " | ".join(share(outcomes, field) for field in fields) + " |"


def draw_gates(outcomes: Sequence[Outcome]) -> str:
    """Count what three ways of reading the same replies would run, where no call is right."""
    counts = Counter[str]()
    for outcome in outcomes:
        counts["normal"] += outcome.valid
        reading = read_reply(outcome.said, tools=outcome.case.tools, taught=True)
        fits = {tool.name: SchemaChecker(tool.parameters) for tool in outcome.case.tools}
        counts["taught"] += any(
            call.arguments is not None and fits[call.name].is_valid(call.arguments)
            for call in reading.calls
        )
        offered = {tool.name for tool in outcome.case.tools} | set(outcome.case.names.values())
        name = loose_call(outcome.said)
        counts["loose, offered"] += name in offered
        counts["loose, not offered"] += name is not None and name not in offered
    total = len(outcomes)
    return "\n".join(f"| {way} | {count}/{total} |" for way, count in counts.items())


def loose_call(text: str) -> str | None:
    """Return the name in the outermost braces of a text, as a careless rescue would."""
    try:
        value = decode(text[text.index("{") : text.rindex("}") + 1])
    except (ValueError, JSONTextError):
        return None
    name = value.get("name") if isinstance(value, dict) else None
    return name if isinstance(name, str) else None


def draw_misses(outcomes: Sequence[Outcome]) -> str:
    """List what was not right, each with the reason and what the model wrote."""
    return "\n".join(
        f"- {each.case.id}: {each.reasons or 'refused'}; turns {each.turns}; "
        f"{' '.join(each.said.split())[:300]}"
        for each in outcomes
        if not each.correct or not each.first_valid
    )


def cases_of(suite: str, bfcl: str | None) -> Sequence[SingleTurnCase]:
    """Return the cases of a suite, sampled as stated."""
    if suite in OWN:
        return OWN_SUITE.cases(suite)
    return BfclSuite(bfcl, every=EVERY[suite]).cases(suite)


async def main() -> int:
    """Run the plan, or the part of it that was asked for, and print tables."""
    parser = argparse.ArgumentParser(description="Measure tool calling of the embedded models.")
    parser.add_argument("--record", type=Path, required=True, help="folder of the kept replies")
    parser.add_argument("--bfcl", help="a wheel of bfcl-eval; else the installed package")
    parser.add_argument("--model", choices=(SMOLLM, QWEN))
    parser.add_argument("--suite", choices=(*OWN, *EVERY))
    parser.add_argument("--mode", choices=tuple(MODES))
    parser.add_argument("--misses", action="store_true", help="list every case that was not right")
    given = parser.parse_args()
    print(
        f"surecall {metadata.version('surecall')}, xllamacpp {metadata.version('xllamacpp')}, "
        f"Python {platform.python_version()}, {platform.machine()}; "
        + ", ".join(f"{name} {value}" for name, value in SAMPLING.items())
    )
    for model, suite, modes in PLAN:
        if given.model not in (None, model) or given.suite not in (None, suite):
            continue
        cases = cases_of(suite, given.bfcl)
        transport = KeptReplies(model, given.record)
        print(f"\n{model}, {suite}, n = {len(cases)}\n")
        is_irrelevance = suite == "irrelevance"
        print("| Mode | a call was tried | a call ran | none ran |" if is_irrelevance else HEADING)
        for mode in modes:
            if given.mode not in (None, mode):
                continue
            outcomes = await measure(cases, model, mode, transport)
            print((draw_irrelevance if is_irrelevance else draw_rates)(outcomes, mode))
            if is_irrelevance and mode == "production":
                print(draw_gates(outcomes))
            if given.misses:
                print(draw_misses(outcomes))
        await transport.aclose()
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
