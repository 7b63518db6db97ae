"""`junit.xml`: a suite for each model, profile and strategy, and a case for each scenario.

A case passes when every trial is strictly right. It is an error rather than a failure when the
model had no part in it: the network, the provider or surecall itself failed.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from surecall.evals.gates import VERDICTS, GateResult, check_stored, describe_observed
from surecall.evals.metrics.tally import Tallies, Tally, rate_cases
from surecall.evals.records import Cell, Task, TrialRow
from surecall.evals.run_source import Layout, RunSource, utc_text, write_export
from surecall.evals.store import RunStore
from surecall.evals.taxonomy import ENDPOINT_LAYERS, Failure
from surecall.evals.wording import describe_reasons, label_simulated

_MAX_FAILURES: Final = 5
_MAX_TEXT_CHARS: Final = 400
_NOT_XML: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES: Final = str.maketrans(
    {
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
        '"': "&quot;",
        # A reader would turn these into spaces in an attribute, and a CR into a line feed in text.
        "\t": "&#9;",
        "\n": "&#10;",
        "\r": "&#13;",
    }
)


def write_junit(store: RunStore, run_id: str, out: Path) -> tuple[Path, ...]:
    """Write `junit.xml` into a folder."""
    source = RunSource(store, run_id)
    path = out / "junit.xml"
    with write_export(path) as file:
        for line in _document(source):
            file.write(line.encode("utf-8") + b"\n")
    return (path,)


def clean_xml(text: str) -> str:
    """Return text for an attribute or between tags; what XML cannot carry is shown by number."""
    return _NOT_XML.sub(_by_number, text).translate(_ESCAPES)


def _by_number(match: re.Match[str]) -> str:
    code = ord(match[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _document(source: RunSource) -> Iterator[str]:
    cells = source.tallies
    suites: dict[Task, list[tuple[Cell, bool]]] = {}
    for cell, control in cells:
        suites.setdefault(Task.of(cell), []).append((cell, control))
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    gates = check_stored(source.store, source.info, source.tallies)
    totals = _totals(cells.values())
    if gates:
        of_gates = _gate_totals(gates)
        added = {
            name: str(int(totals[name]) + int(of_gates[name]))
            for name in of_gates
            if name != "time"
        }
        totals |= added
    yield _open("testsuites", {"name": f"surecall {source.run_id}"} | totals)
    for task, members in suites.items():
        yield from _suite(source, task, {key: cells[key] for key in members})
    if gates:
        yield from _gates(gates)
    yield "</testsuites>"


def _gates(results: Sequence[GateResult]) -> Iterator[str]:
    """Yield a suite of all gates: one that lets through what it cannot decide is skipped."""
    yield _open("testsuite", {"name": "gates", **_gate_totals(results)}, indent=1)
    for result in results:
        attributes = {"classname": "gates", "name": result.gate.text, "time": "0.000"}
        yield _open("testcase", attributes, indent=2)
        words = "; ".join(part for part in (describe_observed(result), result.note) if part)
        message = clean_xml(f"{VERDICTS[result.verdict]}: {words}")
        if not result.ok:
            yield f'      <failure message="{message}" type="{result.verdict}"/>'
        elif result.verdict == "undecided":
            yield f'      <skipped message="{message}"/>'
        yield "    </testcase>"
    yield "  </testsuite>"


def _gate_totals(results: Sequence[GateResult]) -> dict[str, str]:
    failed = sum(not result.ok for result in results)
    skipped = sum(result.ok and result.verdict == "undecided" for result in results)
    counts = {"tests": len(results), "failures": failed, "errors": 0, "skipped": skipped}
    return {name: str(count) for name, count in counts.items()} | {"time": "0.000"}


def _suite(source: RunSource, task: Task, cells: Tallies) -> Iterator[str]:
    name = _suite_name(source.layout, task)
    started = utc_text(source.info.created_at) or ""
    attributes = {"name": name, **_totals(cells.values()), "timestamp": started.removesuffix("Z")}
    yield _open("testsuite", attributes, indent=1)
    about = {
        "run": source.run_id,
        **task._asdict(),
        "simulated": str(task.model in source.layout.simulated).lower(),
        "package": source.info.manifest.package,
    }
    yield from _properties(about, indent=2)
    for (cell, _), tally in cells.items():
        yield from _case(source, name, cell, tally)
    yield "  </testsuite>"


def _case(source: RunSource, suite: str, cell: Cell, tally: Tally) -> Iterator[str]:
    strict, original = (rate_cases(tally, name, "tried") for name in ("strict_ok", "original_ok"))
    attributes = {"classname": suite, "name": source.layout.scenario(cell)}
    attributes["time"] = _seconds([tally])
    yield _open("testcase", attributes, indent=2)
    about = {
        "suite": cell.suite,
        "strict": f"{strict.k}/{strict.n}",
        "strict_interval": f"{strict.interval.low:.4f}..{strict.interval.high:.4f}",
        "original": f"{original.k}/{original.n}",
        "original_interval": f"{original.interval.low:.4f}..{original.interval.high:.4f}",
        "errors": str(tally.errors),
        "simulated": str(tally.simulated > 0).lower(),
    }
    yield from _properties(about, indent=3)
    kind = _kind(tally)
    if kind:
        causes = tally.failures or tally.error_causes
        failures = sorted(causes.items(), key=lambda item: (-item[1], item[0]))
        worst = failures[0][0] if failures else None
        message = f"{tally.judged - tally.strict_ok} of {tally.judged} trials failed"
        if tally.errors and kind == "error":
            message = f"the endpoint failed {tally.errors} of {tally.n} trials"
        attributes = {"message": message, "type": worst.code if worst else "UNEXPLAINED"}
        words = clean_xml("\n".join(_explain(source, tally, failures)))
        # Line ends between tags are fine as they are, and people read them.
        yield f"{_open(kind, attributes, indent=3)}{words.replace('&#10;', chr(10))}</{kind}>"
    yield "    </testcase>"


def _explain(
    source: RunSource, tally: Tally, failures: Sequence[tuple[Failure, int]]
) -> Iterator[str]:
    for failure, count in failures[:_MAX_FAILURES]:
        index = tally.examples[failure]
        row = source.store.row(source.run_id, index)
        where = f"{failure.layer} {failure.code} {failure.detail}".rstrip()
        yield f"{count} x {where}, as in trial {index}: {explain_row(row)}"
    if len(failures) > _MAX_FAILURES:
        yield f"and {len(failures) - _MAX_FAILURES} more kinds"


def explain_row(row: TrialRow) -> str:
    """Return what went wrong in a trial, on one line."""
    text = " ".join((row.error or describe_reasons(row.strict_reasons)).split())
    return text if len(text) <= _MAX_TEXT_CHARS else f"{text[:_MAX_TEXT_CHARS]}…"


def _kind(tally: Tally) -> str:
    # Runs of before have errors of the endpoint among their failures.
    if any(failure.layer not in ENDPOINT_LAYERS for failure in tally.failures):
        return "failure"
    return "error" if tally.errors or tally.failures else ""


def _suite_name(layout: Layout, task: Task) -> str:
    parts = [task.model, task.profile, task.strategy]
    if len(layout.fallbacks) > 1:
        parts.append(task.fallback)
    mark = label_simulated("all" if task.model in layout.simulated else "none")
    return " / ".join(parts) + mark


def _totals(tallies: Collection[Tally]) -> dict[str, str]:
    kinds = [_kind(tally) for tally in tallies]
    return {
        "tests": str(len(kinds)),
        "failures": str(kinds.count("failure")),
        "errors": str(kinds.count("error")),
        "skipped": "0",
        "time": _seconds(tallies),
    }


def _seconds(tallies: Collection[Tally]) -> str:
    spent = (sum(tally.elapsed_ms) + sum(tally.censored_ms) for tally in tallies)
    return f"{sum(spent) / 1000:.3f}"


def _properties(values: Mapping[str, str], *, indent: int) -> Iterator[str]:
    margin = "  " * indent
    yield f"{margin}<properties>"
    for name, value in values.items():
        yield f'{margin}  <property name="{clean_xml(name)}" value="{clean_xml(value)}"/>'
    yield f"{margin}</properties>"


def _open(tag: str, attributes: Mapping[str, str], *, indent: int = 0) -> str:
    given = "".join(f' {name}="{clean_xml(value)}"' for name, value in attributes.items())
    return f"{'  ' * indent}<{tag}{given}>"
