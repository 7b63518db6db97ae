"""The comparison of two runs as one HTML file: no script, no network, nothing from a model run."""

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from typing import Any, Final, cast

from surecall.base.pages import read_asset
from surecall.evals.wording import describe_points, label_simulated
from surecall.loop.stored import encode_kept

from .clusters import METHOD
from .diff import Change, DiffResult, PairedRate, Side, TrialPair
from .records import TrialBody

PairBodies = Callable[[TrialPair], tuple[TrialBody | None, TrialBody | None]]
"""Returns what was kept of both trials of a pair."""

CHANGES: Final[dict[Change, str]] = {
    "newly_failing": "Newly failing",
    "newly_passing": "Newly passing",
    "changed_reason": "Failing for another reason",
    "still_failing": "Still failing",
}
"""Kinds of pairs with their headings, the most urgent first."""

_MAX_TURN_CHARS: Final = 6000
_MAX_LISTED: Final = 500

_STYLE: Final = read_asset("diff.css", "surecall.evals.report")


def render_diff_html(
    result: DiffResult, *, bodies: PairBodies | None = None, max_transcripts: int = 40
) -> str:
    """Return the comparison as a page that needs nothing else.

    Args:
        result: From `diff_rows`.
        bodies: Where transcripts come from; without it there are none.
        max_transcripts: Pairs whose transcripts are shown side by side.
    """
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    title = f"surecall eval diff {_text(result.a)} {_text(result.b)}"
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{title}</title><style>{_STYLE}</style></head><body><main>",
        f"<h1>{_text(result.a)} → {_text(result.b)}</h1>",
        *_config(result),
        *_rates(result),
        *_pairs(result, bodies, max_transcripts),
        "</main></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _text(value: object) -> str:
    # A lone surrogate in what a model wrote must not keep the page from being written.
    return escape(str(value).encode("utf-8", "backslashreplace").decode())


def _rates(result: DiffResult) -> Iterator[str]:
    aside = f", whatever the {' and '.join(result.across)}" if result.across else ""
    yield (
        f'<p class="soft">{_text(result.judged)} verdict; trials paired by cell, case and number'
        f"{_text(aside)}. {result.only_a} trials of A and {result.only_b} of B have no partner. "
        f"{result.errors} pairs met an endpoint error, which counts as wrong. "
        f"Differences are in points. Intervals: Newcombe, paired, {METHOD}, 95 %. "
        "Test: McNemar, exact, two-sided, corrected for the groups of an axis and for the number "
        "of named cases (Holm).</p>"
    )
    yield "<table><thead><tr><th>trials</th><th>pairs</th><th>A</th><th>B</th>"
    yield "<th>B minus A</th><th>better/worse</th><th>p</th><th>verdict</th></tr>"
    yield "</thead><tbody>"
    yield from map(_rate_row, list_rates(result))
    yield "</tbody></table>"
    yield f"<p>{_text(name_sentence(result))}.</p>"


def name_sentence(result: DiffResult) -> str:
    """Return what all pairs show, in one sentence."""
    return f"B against A: {result.overall.sentence}"


def list_rates(result: DiffResult) -> list[PairedRate]:
    """Return the rates in the order in which they are shown."""
    controls = [] if result.controls is None else [result.controls]
    return [result.overall, *controls, *result.groups]


def _rate_row(rate: PairedRate) -> str:
    name, *cells, words = describe_pair(rate)
    numbers = "".join(f'<td class="number">{cell}</td>' for cell in (rate.counts.n, *cells))
    verdict = f'<td class="{rate.verdict.split()[0]}">{_text(words)}</td>'
    return f"<tr><td>{_text(name)}</td>{numbers}{verdict}</tr>"


def describe_pair(rate: PairedRate) -> tuple[str, ...]:
    """Return name, A, B, difference, better and worse, p and verdict of paired trials, in words."""
    counts = rate.counts
    name = rate.value if rate.axis in {"overall", "controls"} else f"{rate.axis} {rate.value}"
    return (
        name + label_simulated(rate.simulated),
        f"{counts.both + counts.only_a}/{counts.n}",
        f"{counts.both + counts.only_b}/{counts.n}",
        describe_points(counts.difference, rate.interval),
        f"{counts.only_b}/{counts.only_a}",
        f"{rate.p:.3g}",
        rate.verdict + (f"; about {rate.needed} pairs would tell" if rate.needed else ""),
    )


def _config(result: DiffResult) -> Iterator[str]:
    if not result.config:
        yield '<p class="soft">Same settings.</p>'
        return
    yield "<p>Different settings:</p><ul>"
    yield from (f"<li>{_text(line)}</li>" for line in result.config)
    yield "</ul>"


def _pairs(result: DiffResult, bodies: PairBodies | None, room: int) -> Iterator[str]:
    for change, heading in CHANGES.items():
        pairs = result.having(change)
        yield f'<h2 class="{change}" id="{change}">{heading}: {len(pairs)}</h2>'
        for pair in pairs[:_MAX_LISTED]:
            shown = bodies is not None and room > 0
            room -= shown
            yield from _pair(pair, bodies(pair) if bodies is not None and shown else (None, None))
        if len(pairs) > _MAX_LISTED:
            yield f'<p class="soft">and {len(pairs) - _MAX_LISTED} more</p>'


def _pair(pair: TrialPair, kept: tuple[TrialBody | None, TrialBody | None]) -> Iterator[str]:
    anchor = f"pair-{pair.a.index}-{pair.b.index}"
    yield f'<details id="{anchor}"><summary>{_text(pair.title)}: {_text(_why(pair))}</summary>'
    yield '<div class="sides">'
    for label, side in (("A", pair.a), ("B", pair.b)):
        yield f"<div><p>{label}, trial #{side.index}: {_text(_side_words(side))}</p></div>"
    yield "</div>"
    if any(body is not None for body in kept):
        yield from _transcripts(*kept)
    yield "</details>"


def _why(pair: TrialPair) -> str:
    before, now = (side.failure.code if side.failure else "ok" for side in (pair.a, pair.b))
    return before if before == now else f"{before} → {now}"


def _side_words(side: Side) -> str:
    if side.ok or side.failure is None:
        return f"✓ ok, {side.elapsed_ms:.0f} ms"
    failure = side.failure
    path = " / ".join(part for part in (failure.layer, failure.code, failure.detail) if part)
    return f"✗ {path}: {side.reason}" if side.reason else f"✗ {path}"


def _transcripts(a: TrialBody | None, b: TrialBody | None) -> Iterator[str]:
    turns = [body.transcript if body is not None else () for body in (a, b)]
    apart = first_divergence(*turns)
    yield '<div class="sides">'
    for at in range(max(map(len, turns))):
        for side in turns:
            mark = " apart" if at == apart else ""
            words = " first difference" if at == apart else ""
            shown = _turn_text(side[at]) if at < len(side) else "(no such turn)"
            yield (
                f'<div class="turn{mark}"><span class="soft">turn {at + 1}{words}</span>'
                f"<pre>{_text(shown)}</pre></div>"
            )
    yield "</div>"


def _turn_text(turn: dict[str, Any]) -> str:
    lines = [f"{name}: {encode_kept(value).decode()}" for name, value in turn.items() if value]
    text = "\n".join(lines)
    left_out = len(text) - _MAX_TURN_CHARS
    return text if left_out <= 0 else f"{text[:_MAX_TURN_CHARS]}… (+{left_out} characters)"


def first_divergence(a: Sequence[dict[str, Any]], b: Sequence[dict[str, Any]]) -> int | None:
    """Return the first turn in which the model did something else; None if there is none.

    Calls are compared by name and arguments, and text as it is; ids and times are not.
    """
    for at, (left, right) in enumerate(zip(a, b, strict=False)):
        if _said(left) != _said(right):
            return at
    return None if len(a) == len(b) else min(len(a), len(b))


def _said(turn: dict[str, Any]) -> tuple[Any, ...]:
    raw: Any = turn.get("raw")
    content: Any = cast("dict[str, Any]", raw).get("content") if isinstance(raw, dict) else raw
    calls = cast("Iterable[Any]", turn.get("calls") or ())
    made = [
        (call.get("name"), call.get("arguments"))
        for call in calls
        if isinstance(call, dict)
        for call in (cast("dict[str, Any]", call),)
    ]
    return content, made
