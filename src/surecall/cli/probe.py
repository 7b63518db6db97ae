"""`surecall probe`: ask a provider what a model really does."""

import asyncio
import time
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

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

from .flags import count_flag, invalid_option, pass_output, settings_flags
from .output import ExitCode, Output, select_fields
from .probe_page import (
    Arrivals,
    Change,
    list_changes,
    show_capabilities,
    show_facts,
    show_questions,
)
from .progress import count_of
from .suggestions import complete_models, complete_questions

_USUAL: Final = (
    "tools",
    "tools_seen",
    "tool_choice",
    "parallel_calls",
    "streaming",
    "id_pattern",
    "strict_tools",
    "json_object",
    "json_schema",
    "grammar",
    "midturn_system",
    "reasoning_echo",
    "context_window",
)
"""What changes how a run goes."""


@click.command
@click.argument("model", required=False, shell_complete=complete_models)
@settings_flags("base_url", "protocol", "provider")
@click.option(
    "--question",
    "names",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_questions,
    help="Ask only this.",
)
@click.option("--all", "ask_all", is_flag=True, help="Ask everything, not only what runs use.")
@click.option("--refresh", is_flag=True, help="Ask again what an earlier probe answered.")
@count_flag("--max-requests", "Total number of requests allowed.", DEFAULT_MAX_REQUESTS)
@click.option("-y", "--yes", is_flag=True, help="Do not ask before sending anything.")
@click.option("--list", "list_questions", is_flag=True, help="List the questions and their cost.")
@click.option("--facts", is_flag=True, help="Show what earlier probes found.")
@click.option("--forget", is_flag=True, help="Forget what is known of MODEL, or everything.")
@pass_output
def probe(
    output: Output,
    *,
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
        self._output.data(
            {
                "type": "probe",
                "model": self._model,
                "address": self._address,
                "protocol": self._protocol.name,
                "asked_at": date_text(report.asked_at) if report else None,
                "fields": report.fields if report else {},
                "inconclusive": [f.question for f in findings if f.verdict == "inconclusive"],
                "cost": report.cost if report else None,
                "capabilities": msgspec.to_builtins(after.capabilities),
                "findings": msgspec.to_builtins(after.findings),
                "origins": after.origins,
                "changes": [change._asdict() for change in changes],
            }
        )

    def _verdict(self, report: ProbeReport | None) -> ExitCode:
        if report is None:
            return ExitCode.OK
        for error in (report.error, report.store_error):
            if error is not None:
                self._output.problem(error.code, error.message, error.hint)
        if report.error is not None:
            return ExitCode.PROVIDER
        return ExitCode.PARTIAL if report.store_error is not None else ExitCode.OK
