"""Trials of an experiment that nobody ran, the same ones every time.

    rows = make_rows(trials=5)            # 6 models x 3 strategies x 8 scenarios x 5
    body = make_body(rows[0])             # the transcript that belongs to a row
    rows = seed_sized_rows()              # 1,450, as many as the original experiment had

Models differ in skill, strategies help, scenarios are hard or easy; every kind of failure, repair,
timeout and refusal occurs. Equal arguments give equal rows.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from surecall.base.records import Usage
from surecall.evals.records import CallFact, Cell, Reason, TrialBody, TrialRow

__all__ = [
    "CONTROL",
    "MODELS",
    "SCENARIOS",
    "STRATEGIES",
    "SampleModel",
    "make_body",
    "make_rows",
    "seed_sized_rows",
]


@dataclass(frozen=True)
class SampleModel:
    """A model with a skill: how often it does right without any help."""

    name: str
    skill: float
    needs_help: float
    """Which share of its failures the strategies make good."""
    median_ms: float
    simulated: bool = False


MODELS = (
    SampleModel("zoo:steady", 0.97, 0.7, 420.0, simulated=True),
    SampleModel("zoo:tag-writer", 0.15, 0.93, 380.0, simulated=True),
    SampleModel("zoo:loose-arguments", 0.45, 0.85, 510.0, simulated=True),
    SampleModel("acme/large-2", 0.93, 0.75, 2300.0),
    SampleModel("acme/small-2", 0.62, 0.6, 900.0),
    SampleModel("embedded:smollm2-135m", 0.08, 0.3, 5200.0),
)
STRATEGIES = ("raw", "baseline", "production")
CONTROL = "chat_only"
SCENARIOS = (
    "happy_path",
    "partial_success_failure",
    "missing_workspace_id",
    "type_error_recovery",
    "happy_path_parallel",
    "long_arguments_guard",
    "tool_output_truncation",
    CONTROL,
)
_HARD = {
    "partial_success_failure": 0.25,
    "long_arguments_guard": 0.35,
    "happy_path_parallel": 0.15,
    "tool_output_truncation": 0.2,
}
_HELP = {"raw": 0.0, "baseline": 0.45, "production": 1.0}
_SAVERS = (
    ("parse_tagged_calls", "strip_code_fence"),
    ("replace_quotes", "drop_trailing_comma"),
    ("parse_number_text",),
    ("unwrap_double_encoding",),
    ("fix_empty_final",),
)
_FAILURES = (
    ("NOTHING_PATCHED", None, "ASSERTION_FAILED", "broke"),
    ("FINAL_TEXT_WRONG", None, "ASSERTION_FAILED", "called"),
    ("NO_TOOL_CALLS", "NO_TOOL_CALLS", "NO_TOOL_CALLS", "abstained"),
    ("READ_CAME_LATER", None, "ASSERTION_FAILED", "called"),
    ("GUARD_NEVER_FIRED", None, "ASSERTION_FAILED", "called"),
    ("MAX_TURNS_REACHED", "MAX_TURNS_REACHED", "EXCEPTION", "called"),
    ("UPSTREAM_5XX", "UPSTREAM_5XX", "UPSTREAM_5XX", "broke"),
    ("TOTAL_TIMEOUT", "TOTAL_TIMEOUT", "TIMEOUT", "abstained"),
)
_MESSAGES = {
    "ARGUMENTS_INVALID": "7 is not of type string.",
    "ARGUMENTS_TOO_LARGE": "The arguments are larger than 300 bytes.",
}
_TIMEOUT_MS = 120_000.0
_LIMIT_BYTES = 300
_STARTED_AT = 1_790_000_000.0


def make_rows(
    *,
    models: Sequence[SampleModel] = MODELS,
    strategies: Sequence[str] = STRATEGIES,
    scenarios: Sequence[str] = SCENARIOS,
    trials: int = 5,
    seed: int = 7,
) -> list[TrialRow]:
    """Make every trial of a matrix, in the order in which an experiment gives them."""
    places = (
        (model, Cell(model=model.name, strategy=strategy, scenario=scenario), trial)
        for model in models
        for strategy in strategies
        for trial in range(1, trials + 1)
        for scenario in scenarios
    )
    return [_make_row(index, *place, seed) for index, place in enumerate(places)]


def seed_sized_rows() -> list[TrialRow]:
    """Make 1,450 trials: 29 models, 10 trials each of 5 scenarios."""
    models = [
        SampleModel(f"vendor-{n // 6}/model-{n}", 0.3 + n * 0.023, 0.7, 300.0 + 90.0 * n)
        for n in range(29)
    ]
    scenarios = (*SCENARIOS[:1], *SCENARIOS[2:4], "long_arguments_guard", CONTROL)
    return make_rows(models=models, strategies=("production",), scenarios=scenarios, trials=10)


def make_body(row: TrialRow) -> TrialBody:
    """Make the transcript that belongs to a row: what arrived, what was changed, what was run."""
    options = {"max_turns": 12, "max_tool_args_bytes": _limit_of(row.cell.scenario)}
    return TrialBody(
        index=row.index,
        request={
            "system": "Read the state first, then set /draft/foo to bar. Finish with: Done.",
            "messages": [{"role": "user", "content": "workspace_id=0190-aaaa"}],
            "tools": [] if row.control else [_tool("state_get"), _tool("state_patch")],
        },
        config={
            "options": options,
            "origins": {"max_turns": "default", "max_tool_args_bytes": "scenario"},
            "capabilities": {"supports_tool_use": True},
            "capability_origins": {"supports_tool_use": "catalog"},
        },
        transcript=tuple(_turns(row)),
        state={"draft": {"foo": "bar"} if row.original_ok else {}},
    )


# Rows


def _make_row(index: int, model: SampleModel, cell: Cell, trial: int, seed: int) -> TrialRow:
    # Luck is shared by the strategies, so that they can be compared pair by pair.
    luck = random.Random(f"{seed}/{model.name}/{cell.scenario}/{trial}")
    dice = random.Random(f"{seed}/{cell.label}/{trial}")
    control = cell.scenario == CONTROL
    skill = 0.96 if control else max(0.0, model.skill - _HARD.get(cell.scenario, 0.0))
    alone = luck.random() < skill and dice.random() < 0.985
    helped = not alone and luck.random() < model.needs_help * _HELP.get(cell.strategy, 1.0)
    ok = alone or helped
    savers = dice.choice(_SAVERS) if helped else ()
    reason, code, category, outcome = (
        ("", None, None, "abstained" if control else "called") if ok else dice.choice(_FAILURES)
    )
    timed_out = code == "TOTAL_TIMEOUT"
    elapsed = _TIMEOUT_MS if timed_out else round(model.median_ms * dice.lognormvariate(0, 0.6), 1)
    calls = () if control or outcome == "abstained" else tuple(_calls(dice, cell, savers, ok))
    loose = ok or (code is None and dice.random() < 0.3)
    why = () if ok else (Reason(reason, f"what was seen in trial {trial}"),)
    tokens_in, tokens_out = dice.randrange(400, 3000), dice.randrange(20, 400)
    return TrialRow(
        index=index,
        cell=cell,
        trial=trial,
        seed=dice.randrange(1 << 31),
        simulated=model.simulated,
        control=control,
        original_ok=loose,
        strict_ok=ok,
        original_reasons=() if loose else why,
        strict_reasons=why,
        outcome=outcome,
        category=category,
        code=code,
        error=f"{code}: the run ended without an answer." if code else None,
        error_status=502 if code == "UPSTREAM_5XX" else None,
        cut_by_limit=not ok and code is None and dice.random() < 0.1,
        censored=timed_out,
        elapsed_ms=elapsed,
        turns=len(calls) + 1,
        requests=len(calls) + 1 + (dice.random() < 0.1),
        usage=Usage(tokens_in, tokens_out, tokens_in + tokens_out),
        calls=calls,
        rules=tuple(dict.fromkeys(rule for call in calls for rule in call.rules)) or savers,
        saved_by=savers,
        escalations=int(bool(savers) and dice.random() < 0.2),
        text="Done." if ok else ("" if code else "I have updated the draft for you."),
        started_at=_STARTED_AT + index,
    )


def _calls(dice: random.Random, cell: Cell, savers: Sequence[str], ok: bool) -> Iterator[CallFact]:
    yield _call(dice, 0, "state_get", (), ok=True)
    if cell.scenario == "long_arguments_guard":
        size = dice.randrange(310, 900)
        yield _call(dice, 1, "state_patch", (), ok=False, size=size, code="ARGUMENTS_TOO_LARGE")
    turn = 2 if cell.scenario == "long_arguments_guard" else 1
    if ok:
        yield _call(dice, turn, "state_patch", savers, ok=True)
    else:
        yield _call(dice, turn, "state_patch", (), ok=False, code="ARGUMENTS_INVALID")


def _call(
    dice: random.Random,
    turn: int,
    name: str,
    rules: Sequence[str],
    *,
    ok: bool,
    size: int = 0,
    code: str = "",
) -> CallFact:
    from_text = "parse_tagged_calls" in rules
    return CallFact(
        turn=turn,
        name=name,
        format="tagged_json" if from_text else "tool_calls",
        structured=not from_text,
        state="whole",
        valid_before=ok and not rules,
        valid_after=ok,
        changed=bool(rules),
        exact=ok if name == "state_patch" else None,
        executed=ok,
        ok=ok,
        rules=tuple(rules),
        error_codes=(code,) if code else (),
        error_kinds=("type",) if code == "ARGUMENTS_INVALID" else (),
        arguments_bytes=size or dice.randrange(24, 260),
    )


# Bodies


def _limit_of(scenario: str) -> int:
    return _LIMIT_BYTES if scenario == "long_arguments_guard" else 200_000


def _tool(name: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"workspace_id": {"type": "string"}}}
    return {"name": name, "description": f"The tool {name}.", "parameters": parameters}


def _turns(row: TrialRow) -> Iterator[dict[str, Any]]:
    for call in row.calls:
        yield _turn(call.turn, [call], "tool_calls")
    if row.code is None:
        last = row.calls[-1].turn + 1 if row.calls else 0
        yield _turn(last, [], "stop", row.text)
    elif not row.calls:
        failure = {"code": row.code, "message": row.error, "status": row.error_status}
        yield {"turn": 0, "failures": [failure], "elapsed_ms": row.elapsed_ms}


def _turn(turn: int, calls: Sequence[CallFact], finish: str, text: str = "") -> dict[str, Any]:
    sent = [_received(call) for call in calls]
    structured = [
        {"id": f"call_{turn}", "type": "function", "function": {"name": c.name, "arguments": raw}}
        for c, raw in zip(calls, sent, strict=True)
        if c.structured
    ]
    content = text or "".join(
        f'<tool_call>{{"name": "{c.name}", "arguments": {raw}}}</tool_call>'
        for c, raw in zip(calls, sent, strict=True)
        if not c.structured
    )
    return {
        "turn": turn,
        "elapsed_ms": 120.5,
        "raw": {"role": "assistant", "content": content, "tool_calls": structured},
        "finish_reason": finish,
        "receipts": [],
        "defects": [],
        "calls": [_read(c, raw, turn) for c, raw in zip(calls, sent, strict=True)],
        "results": [_result(c, turn) for c in calls],
    }


def _received(call: CallFact) -> str:
    if "replace_quotes" in call.rules:
        return "{'path': '/draft/foo', 'value': 'bar',}"
    if "parse_number_text" in call.rules:
        return '{"path":"/draft/foo","value":"bar","revision":"3"}'
    if call.name == "state_get":
        return '{"workspace_id":"0190-aaaa"}'
    if "ARGUMENTS_TOO_LARGE" in call.error_codes:
        return f'{{"path":"/draft/foo","value":"{"x" * (call.arguments_bytes - 33)}"}}'
    return '{"path":"/draft/foo","value":"bar"}' if call.ok else '{"path":7}'


def _read(call: CallFact, raw: str, turn: int) -> dict[str, Any]:
    arguments = {"path": "/draft/foo", "value": "bar"} if call.ok else {"path": 7}
    errors = [
        {"code": code, "message": _MESSAGES[code], "path": "/path"} for code in call.error_codes
    ]
    return {
        "id": f"call_{turn}",
        "name": call.name,
        "raw": raw,
        "arguments": {"workspace_id": "0190-aaaa"} if call.name == "state_get" else arguments,
        "state": call.state,
        "format": call.format,
        "receipts": [
            {
                "rule": rule,
                "place": f"{n}:{n + 6}",
                "before": "'path'",
                "after": '"path"',
                "lossless": not call.lossy,
                "why": "JSON has double quotes only.",
            }
            for n, rule in enumerate(call.rules)
        ],
        "errors": errors,
        "arguments_bytes": call.arguments_bytes,
    }


def _result(call: CallFact, turn: int) -> dict[str, Any]:
    errors = [
        {"code": code, "message": _MESSAGES[code], "hint": "Send less, or text."}
        for code in call.error_codes
    ]
    envelope = {"ok": call.ok, "tool_name": call.name, "data": {}, "errors": errors}
    return {
        "call_id": f"call_{turn}",
        "name": call.name,
        "ok": call.ok,
        "executed": call.executed,
        "elapsed_ms": 1.25,
        "envelope": envelope,
        "text": '{"ok":true}' if call.ok else '{"ok":false}',
    }
