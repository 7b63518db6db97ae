"""Measure tool calling of the embedded models, through the loop that applications use.

python scripts/local_models.py --model embedded:smollm2-135m --suite one_tool --mode raw
python scripts/local_models.py --all --bfcl bfcl_eval-2026.3.23-py3-none-any.whl --record runs

Every reply is kept in the folder named with --record and is not asked for again: a change in the
reading of replies is measured anew in seconds. Delete the folder to ask the model again.
"""

import argparse
import asyncio
import platform
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from importlib import metadata
from math import sqrt
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, NoReturn

from surecall import Session
from surecall.config import load_config
from surecall.errors import Code, ProviderError, SurecallError
from surecall.evals.cases import Attempt
from surecall.evals.suites import BfclSuite, OneToolSuite
from surecall.evals.suites.single_turn import SingleTurnCase, calls_that_ran
from surecall.formats import ToolNames
from surecall.jsontext import canonical_hash, decode, encode
from surecall.profiles import find_weights
from surecall.reading import read_reply
from surecall.protocols import ChatCompletions
from surecall.records import WireReply, WireRequest
from surecall.transport import EmbeddedTransport, Transport, WireStream

SMOLLM = "embedded:smollm2-135m"
QWEN = "embedded:qwen2.5-coder-1.5b"
SAMPLING = {"temperature": 0, "seed": 1, "max_tokens": 160}

MODES: dict[str, dict[str, Any]] = {
    "raw": {
        "preset": (),
        "tool_prompting": "native",
        "text_formats": False,
        "disabled_rules": ("*",),
        "fix_empty_final": False,
    },
    "native": {"tool_prompting": "native", "text_formats": True},
    "taught": {"tool_prompting": "taught"},
    "constrained": {"tool_prompting": "constrained"},
    "constrained-required": {"tool_prompting": "constrained", "tool_choice": "required"},
}
"""What the loop is told in each mode; everything else is what it does by itself."""


class Suite(NamedTuple):
    """Cases to put to a model."""

    title: str
    cases: Sequence[SingleTurnCase]


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


async def try_case(
    case: SingleTurnCase, model: str, mode: str, transport: KeptReplies, max_turns: int
) -> Outcome:
    """Run one case until a call has run or there is an answer."""
    prepared = case.prepare(1)
    transport.stop = False
    transport.label = f"{mode} {case.id}"

    def on_event(event: Any) -> None:
        if type(event).__name__ == "ToolCallEnded" and event.executed:
            transport.stop = True

    session = Session(
        model=model,
        tools=prepared.tools,
        transport=transport,
        request_overrides=SAMPLING,
        on_event=on_event,
        **{**prepared.options, "max_turns": max_turns, **MODES[mode]},
    )
    result, error = None, None
    try:
        result = await session.run(prepared.messages)
    except SurecallError as raised:
        error = raised
    trace = result.trace if result is not None else getattr(error, "trace", None)
    grades = case.grade(
        Attempt(prepared=prepared, result=result, error=error, trace=trace, text="")
    )
    turns = [turn for turn in trace.turns if turn.raw is not None] if trace is not None else []
    return Outcome(
        case,
        called=any(turn.calls for turn in turns),
        first_valid=bool(turns) and any(result.executed for result in turns[0].results),
        valid=bool(calls_that_ran(trace, case.names)),
        correct=grades.strict.ok,
        cut=any(turn.response_summary.finish_reason == "length" for turn in turns),
        turns=len(turns),
        reasons="; ".join(f"{r.code} {r.message}".strip() for r in grades.strict.reasons),
        said=turns[0].raw.message.get("content") or "" if turns else str(error),
        rules=tuple(dict.fromkeys(receipt.rule for receipt in trace.receipts)) if trace else (),
    )


def interval(hits: int, total: int) -> str:
    """Return a rate with the 95 % interval of Wilson."""
    if not total:
        return "-"
    z, rate = 1.959964, hits / total
    middle = (rate + z * z / (2 * total)) / (1 + z * z / total)
    half = z * sqrt(rate * (1 - rate) / total + z * z / (4 * total * total)) / (1 + z * z / total)
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    return f"{hits}/{total} = {rate:.0%} ({low:.0%} to {high:.0%})"


async def measure(
    suite: Suite, model: str, mode: str, transport: KeptReplies, max_turns: int
) -> list[Outcome]:
    """Try every case of a suite in one mode."""
    outcomes: list[Outcome] = []
    for case in suite.cases:
        outcomes.append(await try_case(case, model, mode, transport, max_turns))
        print(f"\r{suite.title} {mode} {len(outcomes)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return outcomes
