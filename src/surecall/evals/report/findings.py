"""More findings: closed lines that each say their result, and how everything was measured."""

from collections.abc import Sequence
from datetime import UTC, datetime

from surecall.evals.clusters import METHOD
from surecall.evals.metrics import render_group
from surecall.evals.metrics.records import Group
from surecall.evals.metrics.tally import Tallies, merge_tallies
from surecall.evals.recommendation import duration
from surecall.evals.standings import Standing, Standings
from surecall.evals.store import RunInfo

from .markup import Child, Html, code, join, name, table, tag, trials_link

_MAX_REASONS = 12
_NAMED = 3
_ABOUT_INTERVALS = (
    f"95\u202f%, {METHOD}: where cases differ more than chance, or are few, trials count for "
    "less. Fields of the map show counts alone."
)
_ABOUT_VERDICTS = (
    "strict is state and process together; the answer is counted separately. original is the loose "
    "assertion of the original experiment."
)


def findings_view(tallies: Tallies, standings: Standings) -> Html:
    """Return what else the trials of a strategy say."""
    whole = render_group(
        merge_tallies(
            tally
            for (cell, control), tally in tallies.items()
            if cell.strategy == standings.strategy and not control
        ),
        axis="strategy",
        value=standings.strategy,
    )
    return tag(
        "section",
        {"class": "block", "aria-label": "More findings"},
        tag("h2", None, "More findings"),
        tag(
            "div",
            {"class": "findings"},
            _finding("Why trials fail", _say_reasons(whole), _reasons(whole)),
            _finding("Right every time", _say_repeats(standings), _repeats(standings.everyone)),
            _finding("How long trials take", _say_times(whole), _times(standings.everyone)),
        ),
    )


def _finding(title: str, said: Child, opened: Html) -> Html:
    return tag(
        "details",
        None,
        tag("summary", None, tag("b", None, title), tag("span", {"class": "k2"}, said)),
        opened,
    )


def _say_reasons(whole: Group) -> Child:
    if not whole.failures:
        return "No trial failed."
    first, failed = whole.failures[0], whole.judged - whole.strict.k
    return ["Most often ", code(first.failure.code), f" ({first.count:,} of {failed:,})."]


def _reasons(whole: Group) -> Html:
    rows = [
        _row(
            [code(found.failure.code), " ", tag("small", None, name(found.failure.detail))],
            str(found.failure.layer),
            tag("a", {"href": trials_link(failure=found.failure.code)}, f"{found.count:,}"),
            tag("a", {"href": f"#/trial/{found.example}"}, f"trial {found.example}"),
        )
        for found in whole.failures[:_MAX_REASONS]
    ]
    head = [("Reason", ""), ("Layer", ""), ("Trials", "num"), ("Example", "num")]
    return table("Why trials fail", "plain", head, rows)


def _say_repeats(standings: Standings) -> str:
    named = [
        f"{one.name} in {one.group.stability.always:,} of {_count_cases(one):,} cases"
        for one in standings.everyone[:_NAMED]
        if _count_cases(one)
    ]
    if not named:
        return "Every case was tried once, so nothing is known."
    return f"All repeats are right: {', '.join(named)}."


def _count_cases(one: Standing) -> int:
    found = one.group.stability
    return found.always + found.sometimes + found.never


def _repeats(everyone: Sequence[Standing]) -> Html:
    rows = [
        _row(
            name(one.name),
            *(
                f"{getattr(one.group.stability, word):,}"
                for word in ("always", "sometimes", "never", "once")
            ),
        )
        for one in everyone
    ]
    words = ("always", "sometimes", "never", "tried once")
    head = [("Cases that are right", ""), *((word, "num") for word in words)]
    return table("Right every time", "plain", head, rows)


def _say_times(whole: Group) -> str:
    if not whole.latency.n:
        return "No trial was timed."
    said = f"Half of all trials end within {duration(whole.latency.true_p50_ms)}."
    stopped = whole.latency.censored
    return f"{said} {stopped:,} were stopped by a time limit." if stopped else said


def _times(everyone: Sequence[Standing]) -> Html:
    rows = [
        _row(
            name(one.name),
            duration(one.group.latency.true_p50_ms),
            duration(one.p95_ms),
            duration(one.group.latency.true_p99_ms),
            f"{one.group.latency.censored:,}",
        )
        for one in everyone
    ]
    head = [("Model", ""), ("p50", "num"), ("p95", "num"), ("p99", "num"), ("stopped", "num")]
    return join(
        table("How long trials take", "plain", head, rows),
        tag(
            "p",
            {"class": "caption"},
            "Kaplan-Meier: a trial that was stopped would have taken longer. A dash lies beyond "
            "what was waited for.",
        ),
    )


def _row(first: Child, *rest: Child) -> Html:
    return tag(
        "tr",
        {"role": "row"},
        tag("th", {"scope": "row", "role": "rowheader"}, first),
        *(tag("td", {"role": "cell", "class": "num"}, cell) for cell in rest),
    )


# How it was measured


def kicker_view(info: RunInfo, tallies: Tallies, standings: Standings) -> Html:
    """Return what ran, in one line above the answer."""
    cells = {cell for cell, _ in tallies}
    tools = {(cell.suite, cell.scenario) for cell, control in tallies if not control}
    controls = {(cell.suite, cell.scenario) for cell, control in tallies if control}
    sizes = sorted({one.group.judged for one in standings.everyone})
    parts = [
        f"suite {', '.join(dict.fromkeys(cell.suite for cell, _ in tallies))}" if cells else "",
        _count(len({cell.model for cell in cells}), "model"),
        _count(len(tools), "scenario")
        + (f" and {_count(len(controls), 'control')}" if controls else ""),
        f"n = {'–'.join(f'{size:,}' for size in sizes[:1] + sizes[1:][-1:])} a model"
        if sizes
        else "",
        f"strategy {standings.strategy}" if standings.strategy else "",
        f"{standings.judged} verdict",
        f"{datetime.fromtimestamp(info.created_at, UTC):%d %b %Y}" if info.created_at else "",
    ]
    return tag(
        "p",
        {"class": "kicker"},
        *(tag("span", None, name(part)) for part in parts if part),
        tag("a", {"href": "#how"}, "How it was measured"),
    )


def notices_view(info: RunInfo, tallies: Tallies, left_out: int, strategies: Sequence[str]) -> Html:
    """Return what a reader must know before the figures."""
    found: list[str] = []
    if info.done < info.units:
        found.append(
            f"The run is not complete: {info.done:,} of {_count(info.units, 'trial')} are done. "
            f"To go on: surecall eval --resume {info.id}"
        )
    if "guided" in strategies:
        found.append(
            "The strategy guided uses what an application would declare for each task: tools that "
            "must have succeeded, and tools that need others first. No other strategy does."
        )
    if left_out:
        found.append(f"{_count(left_out, 'transcript')} found no room in this file.")
    return join(*(tag("p", {"class": "notice"}, name(text)) for text in found))


def method_view(info: RunInfo, kept: int, choice: str) -> Html:
    """Return how the run was made and how its figures are."""
    manifest = info.manifest
    whose = {
        "none": "none",
        "failed": "failed trials, and one right trial of each case",
        "all": "all",
    }
    suites = ", ".join(f"{suite} {version}" for suite, version in manifest.suites.items())
    pairs: list[tuple[str, Child]] = [
        (
            "Run",
            [name(info.id), *(tag("span", {"class": "count"}, name(tag_)) for tag_ in info.tags)],
        ),
        ("Command", code(manifest.command) if manifest.command else "–"),
        ("Trials", f"{info.done:,} of {info.units:,}, {info.status}"),
        ("Begun, ended", f"{_moment(info.created_at)}, {_moment(info.ended_at)}"),
        (
            "Software",
            name(
                f"surecall {manifest.package}, Python {manifest.python}, engine {manifest.engine}"
            ),
        ),
        ("Suites", name(suites) if suites else "–"),
        ("Experiment", code(manifest.hash)),
        ("Intervals", _ABOUT_INTERVALS),
        ("Verdict", _ABOUT_VERDICTS),
        ("Transcripts here", f"{kept:,} ({whose[choice]})"),
    ]
    return tag(
        "section",
        {"class": "block", "id": "how", "aria-label": "How it was measured"},
        tag("div", {"class": "head"}, tag("h2", None, "How it was measured")),
        tag(
            "dl",
            {"class": "facts"},
            *((tag("dt", None, key), tag("dd", None, value)) for key, value in pairs),
        ),
    )


def _moment(seconds: float | None) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC" if seconds else "–"


def _count(n: int, word: str) -> str:
    return f"{n:,} {word}{'' if n == 1 else 's'}"
