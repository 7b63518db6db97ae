"""The comparison of two runs as one HTML file: no script, no network, nothing from a model run."""

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, cast

from surecall.base.pages import read_asset
from surecall.evals.wording import describe_points, label_simulated
from surecall.tools.outputs import encode_kept

from .clusters import METHOD
from .diff import Change, DiffResult, PairedRate, Side, TrialPair
from .records import TrialBody
from .report.markup import Html, fill

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
_SHOWN: Final = ("a", "b", "judged", "only_a", "only_b", "errors")

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
    view: dict[str, Any] = {
        "digest": digest,
        "style": Html(_STYLE),
        **{
            name: getattr(result, name)
            for name in ("a", "b", "judged", "only_a", "only_b", "errors")
        },
        "has_config": bool(result.config),
        "config": list(result.config),
        "aside": f", whatever the {' and '.join(result.across)}" if result.across else "",
        "method": METHOD,
        "rates": [_view_rate(rate) for rate in list_rates(result)],
        "sentence": name_sentence(result),
        "changes": list(_list_changes(result, bodies, max_transcripts)),
    }
    return fill("diff.html", "surecall.evals.report", view) + "\n"


def _view_rate(rate: PairedRate) -> dict[str, Any]:
    name, *cells, words = describe_pair(rate)
    css = rate.verdict.split()[0]
    return {"who": name, "cells": [rate.counts.n, *cells], "css": css, "verdict": words}


def name_sentence(result: DiffResult) -> str:
    """Return what all pairs show, in one sentence."""
    return f"B against A: {result.overall.sentence}"


def list_rates(result: DiffResult) -> list[PairedRate]:
    """Return the rates in the order in which they are shown."""
    controls = [] if result.controls is None else [result.controls]
    return [result.overall, *controls, *result.groups]


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


def _list_changes(
    result: DiffResult, bodies: PairBodies | None, room: int
) -> Iterator[dict[str, Any]]:
    for change, heading in CHANGES.items():
        pairs, views = result.having(change), list[dict[str, Any]]()
        for pair in pairs[:_MAX_LISTED]:
            kept = bodies(pair) if bodies is not None and room > 0 else (None, None)
            room -= bodies is not None
            views.append(_view_pair(pair, kept))
        left = max(0, len(pairs) - _MAX_LISTED)
        yield {
            "change": change,
            "heading": heading,
            "count": len(pairs),
            "pairs": views,
            "left": left,
        }


def _view_pair(pair: TrialPair, kept: tuple[TrialBody | None, TrialBody | None]) -> dict[str, Any]:
    sides = (("A", pair.a), ("B", pair.b))
    has_turns = any(body is not None for body in kept)
    return {
        "anchor": f"pair-{pair.a.index}-{pair.b.index}",
        "title": pair.title,
        "why": _why(pair),
        "sides": [
            {"words": f"{label}, trial #{side.index}: {_side_words(side)}"} for label, side in sides
        ],
        "has_turns": has_turns,
        "turns": list(_list_turns(*kept)) if has_turns else [],
    }


def _why(pair: TrialPair) -> str:
    before, now = (side.failure.code if side.failure else "ok" for side in (pair.a, pair.b))
    return before if before == now else f"{before} → {now}"


def _side_words(side: Side) -> str:
    if side.ok or side.failure is None:
        return f"✓ ok, {side.elapsed_ms:.0f} ms"
    failure = side.failure
    path = " / ".join(part for part in (failure.layer, failure.code, failure.detail) if part)
    return f"✗ {path}: {side.reason}" if side.reason else f"✗ {path}"


def _list_turns(a: TrialBody | None, b: TrialBody | None) -> Iterator[dict[str, Any]]:
    turns = [body.transcript if body is not None else () for body in (a, b)]
    apart = first_divergence(*turns)
    for at in range(max(map(len, turns))):
        for side in turns:
            shown = _turn_text(side[at]) if at < len(side) else "(no such turn)"
            yield {"number": at + 1, "is_first": at == apart, "shown": shown}


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
