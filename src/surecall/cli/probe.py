"""`surecall probe`: ask a provider what a model really does."""

import asyncio
import time
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

import click
import msgspec

from surecall.loop.probing import FACTS_FILE, fact_address
from surecall.loop.resolve import choose_protocol, find_provider, make_transport
from surecall.models.config import Config, load_config
from surecall.models.probe import (
    DEFAULT_MAX_REQUESTS,
    ON_REQUEST,
    QUESTIONS,
    FactKey,
    FactStore,
    Finding,
    ProbedFact,
    ProbeReport,
    Question,
    date_text,
    fetch_listing,
    probe_model,
    select_questions,
    total_cost,
)
from surecall.models.profiles import Catalog, ResolvedCapabilities, resolve_capabilities
from surecall.wire import WireProtocol

from .console import ExitCode, Output, select_fields
from .event_lines import count_of
from .flags import count_flag, flag, invalid_option, pass_output, settings_flags
from .reach import Change, list_changes
from .suggestions import complete_models, complete_questions
from .terminal import bounded, line_of, make_table, shown_value, styled

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text


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
    fields = ("name", "title", "decides", "max_requests", "rough_tokens")
    listed = [select_fields(question, *fields) for question in questions]
    columns = {"question": "whole", "asks": "", "decides": "", "requests": "right whole"}
    rows = ((q.name, q.title, ", ".join(q.decides), str(q.max_requests)) for q in questions)
    data = {"type": "questions", "questions": listed}
    output.listing(data, columns, rows, optional=("decides",))
    if not output.json:
        requests, tokens = total_cost(questions)
        output.text(f"\nin total: at most {requests} requests, about {tokens} tokens")


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


_USUAL: Final = (
    *("tools", "tools_seen", "tool_choice", "parallel_calls", "streaming", "id_pattern"),
    *("strict_tools", "json_object", "json_schema", "grammar", "midturn_system"),
    *("reasoning_echo", "context_window"),
)
"""Questions whose answers change a run."""


@click.command
@click.argument("named", metavar="[MODEL]", required=False, shell_complete=complete_models)
@settings_flags("model", "base_url", "protocol", "provider")
@flag("--question NAME", "Ask only this.", to="names", multiple=True, complete=complete_questions)
@flag("--all", "Ask everything, not only what runs use.", to="ask_all")
@flag("--refresh", "Ask again what an earlier probe answered.")
@count_flag("--max-requests", "Total number of requests allowed.", DEFAULT_MAX_REQUESTS)
@flag("-y --yes", "Do not ask before sending anything.")
@flag("--list", "List the questions and their cost.", to="list_questions")
@flag("--facts", "Show what earlier probes found.")
@flag("--forget", "Forget what is known of MODEL, or everything.")
@pass_output
def probe(
    output: Output,
    *,
    named: str | None,
    model: str | None,
    names: tuple[str, ...],
    ask_all: bool,
    refresh: bool,
    max_requests: int,
    yes: bool,
    list_questions: bool,
    facts: bool,
    forget: bool,
    **settings: str | None,
) -> ExitCode:
    """Find out what MODEL really does at a provider, and remember the answers.

    Every question is a short request with a harmless tool or a short text. Later runs use the
    answers instead of the catalog, until they expire.
    """
    if named and model:
        raise click.UsageError("Name the model once: as MODEL or with --model.")
    model = named or model
    if list_questions + facts + forget > 1:
        raise click.UsageError("Give one of --list, --facts and --forget.")
    if list_questions:
        show_questions(output, (*QUESTIONS, *ON_REQUEST))
        return ExitCode.OK
    config = load_config(overrides={"model": model, **settings})
    store = FactStore(config.cache_dir / FACTS_FILE, max_age_s=config.max_probe_age_s)
    if forget:
        count = store.forget(model)
        words = f"forgot {count_of(count, 'fact')} about {model or 'any model'}"
        output.answer({"type": "forgotten", "model": model, "facts": count}, words)
        return ExitCode.OK
    if facts:
        show_facts(output, store, model, time.time())
        return ExitCode.OK
    if names and ask_all:
        raise click.UsageError("Use either --question or --all.")
    questions = QUESTIONS if ask_all else select_questions(names or _USUAL)
    asking = _Asking(output, config, store)
    unknown = questions if refresh else asking.unknown(questions)
    if unknown and not asking.may_ask(unknown, max_requests, yes=yes):
        return ExitCode.INTERRUPTED
    return asking.run(questions, unknown, max_requests)


class _Asking:
    """One model, and everything that is needed to ask about it."""

    def __init__(self, output: Output, config: Config, store: FactStore) -> None:
        if not config.model:
            raise invalid_option(
                "no model is given.",
                "For example: surecall probe qwen3-8b --base-url http://127.0.0.1:8000/v1.",
            )
        self._output = output
        self._config = config
        self._model = config.model
        self._store = store
        self._catalog = Catalog.builtin()
        self._protocol: WireProtocol = choose_protocol(None, config, self._catalog)
        self._address = fact_address(config, self._protocol)
        self._transport = make_transport(config, self._protocol)
        self._key = FactKey.of(self._address, self._protocol.name, self._model)

    def unknown(self, questions: tuple[Question, ...]) -> tuple[Question, ...]:
        """Return the questions whose answers are not known from an earlier probe."""
        known = {fact.field for fact in self._store.fresh(self._key)}
        return tuple(question for question in questions if not known & set(question.decides))

    def may_ask(self, questions: tuple[Question, ...], max_requests: int, *, yes: bool) -> bool:
        """State the cost, and ask for consent where somebody can give it."""
        requests, tokens = total_cost(questions)
        requests = min(requests, max_requests)
        if self._output.json:
            who = {"type": "cost", "model": self._model, "address": self._address}
            names = [question.name for question in questions]
            cost = {"max_requests": requests, "rough_tokens": tokens}
            self._output.data({**who, "questions": names, **cost})
            return True
        asked, sent = count_of(len(questions), "question"), count_of(requests, "request")
        words = (
            f"{asked} for {self._model} at {self._address}: at most {sent}, about {tokens} tokens; "
            "more for reasoning models."
        )
        self._output.people().print(words, soft_wrap=True)
        if yes or not self._output.is_attended:
            return True
        return click.confirm("Ask?", default=True, err=True)

    def run(
        self, questions: tuple[Question, ...], unknown: tuple[Question, ...], max_requests: int
    ) -> ExitCode:
        """Ask, show the answers as they arrive, and say what follows from them."""
        before = self._resolve({}, {})
        known = self._known(questions, unknown)
        with Arrivals(self._output, questions, known) as arrivals:
            report = asyncio.run(self._ask(unknown, max_requests, arrivals)) if unknown else None
        after = self._after(report)
        changes = list_changes(self._config, self._catalog, before, after)
        if self._output.json:
            self._report(report, after, changes)
        else:
            show_capabilities(self._output, after, changes, report)
        return self._verdict(report)

    async def _ask(
        self, questions: tuple[Question, ...], max_requests: int, arrivals: Arrivals
    ) -> ProbeReport:
        config = self._config
        listing = partial(
            fetch_listing,
            config.base_url or "",
            self._protocol,
            **select_fields(config, "api_prefix", "api_key", "headers", "network"),
        )
        try:
            return await probe_model(
                self._transport,
                self._protocol,
                self._model,
                questions=questions,
                store=self._store,
                on_finding=arrivals.add,
                address=self._address,
                listing=listing if config.base_url else None,
                max_requests=max_requests,
            )
        finally:
            await self._transport.aclose()

    def _known(
        self, questions: tuple[Question, ...], unknown: tuple[Question, ...]
    ) -> Mapping[str, tuple[ProbedFact, ...]]:
        """Return the facts that answer the questions which are not asked again."""
        facts = self._store.fresh(self._key) if len(unknown) < len(questions) else ()
        return {
            question.name: tuple(fact for fact in facts if fact.field in question.decides)
            for question in questions
            if question not in unknown
        }

    def _after(self, report: ProbeReport | None) -> ResolvedCapabilities:
        facts = () if report and report.store_error else self._store.fresh(self._key)
        fields = {fact.field: fact.value for fact in facts}
        dates = {fact.field: date_text(fact.asked_at)[:10] for fact in facts}
        if report:
            fields |= report.fields
            dates |= dict.fromkeys(report.fields, date_text(report.asked_at)[:10])
        return self._resolve(fields, dates)

    def _resolve(self, fields: dict[str, Any], dates: dict[str, str]) -> ResolvedCapabilities:
        return resolve_capabilities(
            find_provider(self._config, self._catalog),
            self._model,
            overrides=self._config.capabilities,
            probed=fields,
            probed_on=dates,
            catalog=self._catalog,
        )

    def _report(
        self,
        report: ProbeReport | None,
        after: ResolvedCapabilities,
        changes: tuple[Change, ...],
    ) -> None:
        findings: tuple[Finding, ...] = report.findings if report else ()
        who = {"model": self._model, "address": self._address, "protocol": self._protocol.name}
        asked = {
            "asked_at": date_text(report.asked_at) if report else None,
            "fields": report.fields if report else {},
            "inconclusive": [f.question for f in findings if f.verdict == "inconclusive"],
            "cost": report.cost if report else None,
        }
        known = msgspec.to_builtins(select_fields(after, "capabilities", "findings", "origins"))
        listed = [change._asdict() for change in changes]
        self._output.data({"type": "probe", **who, **asked, **known, "changes": listed})

    def _verdict(self, report: ProbeReport | None) -> ExitCode:
        if report is None:
            return ExitCode.OK
        for error in (report.error, report.store_error):
            if error is not None:
                self._output.problem(error.code, error.message, error.hint)
        if report.error is not None:
            return ExitCode.PROVIDER
        return ExitCode.PARTIAL if report.store_error is not None else ExitCode.OK
