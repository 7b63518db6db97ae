"""What `surecall probe` shows, and what a new probe changes."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

import msgspec

from surecall.loop.options import Options
from surecall.loop.prompting import choose_mode
from surecall.models.config import Config
from surecall.models.probe import (
    FactKey,
    FactStore,
    Finding,
    ProbedFact,
    ProbeReport,
    Question,
    date_text,
    total_cost,
)
from surecall.models.profiles import Catalog, ResolvedCapabilities

from .output import Output, select_fields
from .reach import resolve_configured
from .terminal import bounded, line_of, make_table, shown_value, styled

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text


class Change(NamedTuple):
    """One thing that a run does differently."""

    what: str
    before: str
    after: str


def list_changes(
    config: Config, catalog: Catalog, before: ResolvedCapabilities, after: ResolvedCapabilities
) -> tuple[Change, ...]:
    """Return what a run with these settings does differently because of a probe."""
    options = resolve_configured(config, catalog).options
    rows = zip(_behaviour(options, before), _behaviour(options, after), strict=True)
    return tuple(Change(what, old, new) for (what, old), (_, new) in rows if old != new)


def _behaviour(options: Options, known: ResolvedCapabilities) -> list[tuple[str, str]]:
    can = known.capabilities
    text = "no" if options.text_formats == "off" else "where tools are offered"
    if options.text_formats == "all" or (can.text_formats and options.text_formats == "auto"):
        text = "in every turn"
    several = can.supports_parallel_tools or known.origins["supports_parallel_tools"] == "default"
    midturn = can.allows_midturn_system or known.origins["allows_midturn_system"] == "default"
    window = can.context_window_tokens
    room = "any size" if window is None else f"{window - can.reserved_response_tokens} tokens"
    return [
        ("tools are given to the model", choose_mode(options, can, known.origins).mode),
        ("calls written as text are looked for", text),
        ("parallel_tool_calls may be sent", _word(several)),
        ("calls of one reply may run together", _word(several)),
        ("call ids are made to match", can.tool_id_pattern or "nothing"),
        ("system messages stay where they are", _word(midturn)),
        ("empty reasoning is added to calls", _word(can.needs_reasoning_echo)),
        ("replies may be streamed", _word(can.streaming)),
        ("turns with tools may be streamed", _word(can.stream_equals_whole is not False)),
        ("prompts may have", room),
        ("response_format json_object may be sent", _word(can.json_object)),
        ("response_format json_schema may be sent", _word(can.json_schema)),
    ]


def _word(is_so: object) -> str:
    return "yes" if is_so else "no"


_MARKS: Final = {
    "yes": ("✓ yes", "green"),
    "no": ("✗ no", "red"),
    "inconclusive": ("? open", "yellow"),
    "known": ("· known", "dim"),
    "waiting": ("… ", "dim"),
}
_MARK_WIDTH: Final = 8
_MIN_ROOM: Final = 30


class Arrivals:
    """A table of questions that fills while the answers arrive; plain lines off a terminal.

    Args:
        output: Where to show it.
        questions: Everything that is asked or known.
        known: The facts that answer the questions which are not asked again.
    """

    def __init__(
        self,
        output: Output,
        questions: tuple[Question, ...],
        known: Mapping[str, tuple[ProbedFact, ...]],
    ) -> None:
        self._output = output
        self._names = [question.name for question in questions]
        self._known = known
        self._found: dict[str, Finding] = {}
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._output.json:
            return self
        if self._output.stdout.isatty():
            from rich.live import Live

            table = self._table(*self._names)
            self._live = Live(table, console=self._output.page(), auto_refresh=False)
            self._live.start()
        else:
            for name in self._known:
                self._output.page().print(self._table(name))
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def add(self, finding: Finding) -> None:
        """Show an answer."""
        self._found[finding.question] = finding
        if self._output.json:
            self._output.data({"type": "finding", **msgspec.to_builtins(finding)})
        elif self._live is not None:
            self._live.update(self._table(*self._names), refresh=True)
        else:
            self._output.page().print(self._table(finding.question))

    def _table(self, *names: str) -> "Table":
        columns = {"mark": "whole", "name": "whole", "words": ""}
        table = make_table(columns, map(self._row, names), headings=False)
        table.columns[0].width, table.columns[1].width = _MARK_WIDTH, 16
        return table

    def _row(self, name: str) -> "tuple[Text, str, str]":
        finding = self._found.get(name)
        if finding is not None:
            state, words = finding.verdict, f"{_list_fields(finding.fields)}{finding.evidence}"
        elif name in self._known:
            facts = self._known[name]
            state = "known"
            dates = date_text(min(fact.asked_at for fact in facts))[:10] if facts else ""
            fields = {fact.field: fact.value for fact in facts}
            words = f"{_list_fields(fields)}found on {dates}"
        else:
            state, words = "waiting", ""
        mark, style = _MARKS[state]
        return styled((f"{mark:<{_MARK_WIDTH}}", style)), name, line_of(words)


def _list_fields(fields: Mapping[str, Any]) -> str:
    words = ", ".join(f"{name} = {shown_value(value)}" for name, value in fields.items())
    return f"{words}; " if words else ""


def show_questions(output: Output, questions: tuple[Question, ...]) -> None:
    """List the questions with what they decide and cost."""
    if output.json:
        fields = ("name", "title", "decides", "max_requests", "rough_tokens")
        listed = [select_fields(question, *fields) for question in questions]
        output.data({"type": "questions", "questions": listed})
        return
    console = output.page()
    columns = {"question": "whole", "asks": "", "decides": "", "requests": "right whole"}
    table = make_table(columns, optional=("decides",))
    for asked in questions:
        table.add_row(asked.name, asked.title, ", ".join(asked.decides), str(asked.max_requests))
    console.print(table)
    requests, tokens = total_cost(questions)
    console.print(f"\nin total: at most {requests} requests, about {tokens} tokens")


def show_facts(output: Output, store: FactStore, model: str | None, now: float) -> None:
    """Show what earlier probes found, expired or not."""
    rows = [(key, fact) for key, fact in store.all() if model in (None, key.model)]
    if output.json:
        facts = [_fact_row(*row, now) for row in rows]
        output.data({"type": "facts", "path": str(store.path), "facts": facts})
        return
    console = output.page()
    if not rows:
        console.print(f"nothing is known yet; facts are stored in {line_of(str(store.path))}")
    for key in dict.fromkeys(key for key, _ in rows):
        where = f"  at {line_of(key.address)}, {key.protocol}"
        console.print(styled((line_of(key.model), "bold"), (where, "dim")), soft_wrap=True)
        facts = [fact for owner, fact in rows if owner == key]
        console.print(_facts_table(facts, now, room=max(console.width - 68, _MIN_ROOM)))


def _fact_row(key: FactKey, fact: ProbedFact, now: float) -> dict[str, Any]:
    dates = {
        "asked_at": date_text(fact.asked_at),
        "expires_at": date_text(fact.expires_at),
        "fresh": fact.asked_at <= now < fact.expires_at,
    }
    return {**key._asdict(), **msgspec.to_builtins(fact), **dates}


def _facts_table(facts: Iterable[ProbedFact], now: float, room: int) -> "Table":
    table = make_table({}, headings=False)
    for fact in facts:
        is_fresh = fact.asked_at <= now < fact.expires_at
        until = f"until {date_text(fact.expires_at)[:10]}" if is_fresh else "expired"
        table.add_row(
            f"  {fact.field}",
            line_of(shown_value(fact.value)),
            date_text(fact.asked_at)[:10],
            styled((until, "" if is_fresh else "yellow")),
            styled((bounded(fact.evidence, room), "dim")),
        )
    return table


def show_capabilities(
    output: Output,
    known: ResolvedCapabilities,
    changes: tuple[Change, ...],
    report: ProbeReport | None,
) -> None:
    """Show the capabilities in force with their origins, and what a run does differently."""
    console = output.page()
    for title, record in (("capabilities", known.capabilities), ("findings", known.findings)):
        console.print(f"\n{title}", style="bold")
        table = make_table({}, headings=False)
        for name, value in msgspec.to_builtins(record).items():
            origin = known.origins[name]
            style = "dim" if origin == "default" else ""
            cells = (f"  {name}", style), (line_of(shown_value(value)), style), (origin, "dim")
            table.add_row(*map(styled, cells))
        console.print(table)
    console.print("\nin a run", style="bold")
    if not changes:
        console.print("  nothing changes because of this probe")
    for change in changes:
        console.print(f"  {change.what}: {change.before} → {change.after}", soft_wrap=True)
    if report is not None:
        cost = report.cost
        console.print(f"\n{cost.requests} requests, {cost.tokens} tokens", style="dim")
