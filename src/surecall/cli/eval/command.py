"""`surecall eval`: models, profiles and strategies compared on scenarios."""

from pathlib import Path
from typing import Any, Final

import click

from surecall.base.errors import did_you_mean
from surecall.cli.console import ExitCode, Output
from surecall.cli.flags import (
    check_options,
    command_text,
    count_flag,
    max_errors_flag,
    output_flags,
    parse_options,
    pass_output,
    split_names,
    store_flag,
    undecided_flag,
)
from surecall.cli.groups import CommandEntry, LazyGroup
from surecall.cli.suggestions import (
    complete_contenders,
    complete_folders,
    complete_formats,
    complete_profile_lists,
    complete_runs,
    complete_strategies,
    complete_suites,
)
from surecall.evals.executors import DEFAULT_CONCURRENCY
from surecall.evals.experiments import (
    LATEST_MATCH,
    choose_run,
    find_latest,
    make_executor,
    open_run_store,
    run_store_path,
)
from surecall.evals.export import check_folder, check_formats, parse_formats
from surecall.evals.gates import limit_errors, parse_gate, refuse_unmatched
from surecall.evals.matrix import Axes
from surecall.evals.planning import (
    DEFAULT_SUITE,
    DEFAULT_TIMEOUT_S,
    Experiment,
    Wanted,
    parse_prices,
    plan_experiment,
    wanted_of,
)
from surecall.evals.store import check_tag
from surecall.evals.suites import SUITES
from surecall.evals.transports import MAX_WAIT_S
from surecall.loop.options import fold_parameters
from surecall.models.config import load_config
from surecall.models.profiles import STRATEGIES

from .work import EvalWork

_RUN: Final = "run"
_FLAGS: Final = frozenset({"--json", "-q", "--quiet", "--debug"})
_DEFAULTS: Final = Axes()
_SUITES_HELP: Final = f"{', '.join(SUITES)} or custom:FILE. [default: {DEFAULT_SUITE}]"
_SCENARIOS_HELP: Final = "Scenarios by name, glob or preset. [default: the suite's own choice]"
_NOT_IN_COMMAND: Final = frozenset({"is_new", "resume", "retry_errors", "dry_run"})


_COMMANDS: Final = {
    "report": CommandEntry("eval_runs", "report", "Write a run as a page, tables or summaries."),
    "diff": CommandEntry("run_diff", "diff", "Compare two runs, trial by trial."),
    "recommend": CommandEntry("recommend", "recommend_model", "Say which model a run speaks for."),
    "runs": CommandEntry("eval_runs", "runs", "List, show, tag and remove runs."),
    "regrade": CommandEntry("eval_runs", "regrade", "Judge the kept replies of a run again."),
    "vendors": CommandEntry("eval.vendors", "vendors", "Compare endpoints that serve one model."),
}


class _RunOrCommand(LazyGroup):
    """A group in which everything that is not a command belongs to `run`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `run` where a command is expected and none is given."""
        at = 0
        while at < len(args) and (args[at] in _FLAGS or args[at].startswith("--color")):
            at += 2 if args[at] == "--color" else 1
        word = args[at] if at < len(args) else ""
        known = self.list_commands(ctx)
        if word and not word.startswith("-") and word not in known:
            close = did_you_mean(word, set(known) - {_RUN})
            raise click.UsageError(
                f"There is no command {word!r}; --models names models. {close}", ctx
            )
        if word not in known:
            args = [*args[:at], _RUN, *args[at:]]
        return super().parse_args(ctx, args)


class _SilentName(click.Context):
    """The context of a command whose name nobody types."""

    @property
    def command_path(self) -> str:
        """The name of the group, which is what was typed."""
        assert self.parent is not None
        return self.parent.command_path


class _SilentCommand(click.Command):
    """The command that a group runs by itself; its help lists the other commands as well."""

    context_class = _SilentName

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options, and the commands of the group."""
        super().format_options(ctx, formatter)
        assert ctx.parent is not None
        assert isinstance(ctx.parent.command, click.Group)
        ctx.parent.command.format_commands(ctx.parent, formatter)


@click.group("eval", cls=_RunOrCommand, entries=_COMMANDS, default=_RUN)
@output_flags
def evaluate() -> None:
    """Compare models, profiles and strategies on scenarios."""


@evaluate.command(_RUN, cls=_SilentCommand)
@click.option(
    "--models",
    metavar="LIST",
    shell_complete=complete_contenders,
    help="Models to compare. [SURECALL_MODEL]",
)
@click.option(
    "--suite", "suites", metavar="LIST", shell_complete=complete_suites, help=_SUITES_HELP
)
@click.option("--scenarios", metavar="FILTER", help=_SCENARIOS_HELP)
@click.option("--cases", metavar="LIST", help="Cases by id or glob.")
@count_flag("--sample", "Draw this many cases, from each scenario in proportion to its size.")
@count_flag("--limit", "Take at most this many cases.")
@click.option("--agent", metavar="COMMAND", help="Program to start for each trial.")
@click.option("--shuffle", is_flag=True, default=None, help="Run trials in random order.")
@click.option(
    "--profiles", metavar="FILTER", shell_complete=complete_profile_lists, help="Sampling profiles."
)
@click.option(
    "--strategies",
    metavar="FILTER",
    shell_complete=complete_strategies,
    help=f"{', '.join(item.id for item in STRATEGIES)}, ablate:NAME. "
    f"[default: {_DEFAULTS.strategies}]",
)
@click.option(
    "--fallback",
    "fallbacks",
    metavar="WHICH",
    help="Look for calls in text: off, on, both, or best_effort (up to the strategy).",
)
@count_flag("--trials", "Trials of each case. [default: 1]")
@click.option("--seed", type=int, help="Random seed. [default: 0]")
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    help=f"Time limit of a trial, in seconds. [default: {DEFAULT_TIMEOUT_S:.0f}]",
)
@click.option(
    "--max-wait",
    "max_wait_s",
    type=click.FloatRange(min=0),
    help=f"Seconds to wait for an endpoint that answers 429 or 503. [default: {MAX_WAIT_S:.0f}]",
)
@click.option(
    "--option", "options", multiple=True, metavar="KEY=VALUE", help="Any option, for every trial."
)
@count_flag("--concurrency", f"Trials at once per provider. [default: {DEFAULT_CONCURRENCY}]")
@click.option(
    "--engine",
    type=click.Choice(["local", "processes", "ray"]),
    default="local",
    show_default=True,
    help="Where trials run.",
)
@click.option(
    "--cache",
    metavar="DIR|off",
    shell_complete=complete_folders,
    help="Keep replies there, and use those of the same requests. [default: off]",
)
@count_flag("--workers", "Processes. [default: one per core]")
@click.option("--ray-address", metavar="ADDRESS", help="Existing Ray cluster.")
@click.option("--price", "prices", multiple=True, metavar="MODEL=IN/OUT", help="$ per 1M tokens.")
@click.option("--dry-run", is_flag=True, help="Show what would run, and its cost.")
@click.option("--new", "is_new", is_flag=True, help="Start a new run.")
@click.option(
    "--resume",
    is_flag=False,
    flag_value=LATEST_MATCH,
    metavar="[RUN]",
    shell_complete=complete_runs,
    help="Resume this run; by default the latest unfinished run of this experiment.",
)
@click.option(
    "--retry-errors",
    metavar="RUN",
    shell_complete=complete_runs,
    help="Run the trials of this run again that its endpoints failed.",
)
@click.option("--gate", "gates", multiple=True, metavar="EXPR", help="Exit with 1 unless it holds.")
@undecided_flag
@max_errors_flag
@click.option(
    "--report",
    "formats",
    metavar="LIST",
    shell_complete=complete_formats,
    help="Write files: html, md, junit, …",
)
@click.option(
    "-o",
    "--out",
    "folder",
    metavar="DIR",
    shell_complete=complete_folders,
    help="Their folder. [default: surecall-RUN]",
)
@click.option("--tag", metavar="NAME", help="Give the run a name.")
@store_flag
@pass_output
def run(
    output: Output,
    *,
    suites: str | None,
    options: tuple[str, ...],
    engine: str,
    workers: int | None,
    ray_address: str | None,
    prices: tuple[str, ...],
    dry_run: bool,
    is_new: bool,
    resume: str | None,
    retry_errors: str | None,
    gates: tuple[str, ...],
    undecided: Any,
    max_errors: str | None,
    formats: str | None,
    folder: str | None,
    tag: str | None,
    store_file: str | None,
    **axes: Any,
) -> ExitCode:
    """Run every combination, and report how often each did what was asked.

    Models: zoo:NAME, zoo:* and zoo:catalog are simulated and need neither key nor network;
    embedded:NAME runs on this machine; openrouter:ID and ID@https://HOST/v1 need the network.
    Finished trials are stored; after an interruption the same command resumes the run.
    `surecall eval vendors` compares endpoints that serve the same model.
    """
    resume = _choose_run(is_new, resume, retry_errors, engine, ray_address)
    parsed_gates = [parse_gate(text, undecided=undecided) for text in gates]
    if max_errors is not None:
        parsed_gates.append(limit_errors(max_errors))
    parsed_formats = _read_formats(formats, folder)
    if tag is not None:
        check_tag(tag)
    given_options = dict(fold_parameters(parse_options(options)))
    check_options(given_options)
    wanted = Wanted(suites=split_names(suites), options=given_options or None, **axes)
    says_nothing = wanted == Wanted(concurrency=wanted.concurrency, max_wait_s=wanted.max_wait_s)
    work = EvalWork(output, parsed_gates, store_file)

    def plan(wanted: Wanted) -> Experiment:
        planned = plan_experiment(
            wanted,
            load_config(),
            prices=parse_prices(prices),
            command=command_text("eval", leave_out=_NOT_IN_COMMAND),
            engine=engine,
            verbose=0 if output.json or output.quiet else None,
        )
        refuse_unmatched(parsed_gates, planned.matrix.cells)
        return planned

    # before there is a store: what cannot be run leaves none
    experiment = plan(wanted) if resume is None else None
    is_compared = any(gate.against for gate in parsed_gates)
    if dry_run and experiment and not is_compared and not run_store_path(store_file).exists():
        work.note(*experiment.notes)
        return work.show_plan(None, experiment, None)
    with open_run_store(store_file, must_exist=dry_run or resume is not None) as store:
        if resume == LATEST_MATCH and says_nothing:
            resume = find_latest(store)
        if resume is not None and resume != LATEST_MATCH:
            wanted = wanted.over(wanted_of(store.info(store.resolve(resume)).manifest))
        experiment = experiment or plan(wanted)
        chosen = choose_run(store, experiment.manifest, resume=resume, is_new=is_new)
        work.note(*experiment.notes, *chosen.notes)
        experiment = work.settle_gates(
            store, experiment, chosen.run_id, is_resumed=resume is not None
        )
        if dry_run:
            return work.show_plan(store, experiment, chosen.run_id)
        if retry_errors is not None:
            chosen = work.retry_errors(store, chosen)
        try:
            if chosen.is_complete and chosen.run_id is not None:
                info = store.info(chosen.run_id)
                work.note(f"run {info.id} is already complete")
            else:
                executor = make_executor(
                    engine,
                    experiment.job,
                    concurrency=experiment.concurrency,
                    workers=workers,
                    ray_address=ray_address,
                )
                info = work.run(store, experiment, executor, chosen.run_id)
            if tag is not None:
                store.tag(info.id, tag)
            return work.finish(store, info, parsed_formats, folder)
        except KeyboardInterrupt:
            return work.cut_short(store)


def _choose_run(
    is_new: bool, resume: str | None, retry_errors: str | None, engine: str, address: str | None
) -> str | None:
    """Return the run to resume, and refuse flags that contradict each other."""
    if sum(map(bool, (is_new, resume, retry_errors))) > 1:
        raise click.UsageError("Use one of --new, --resume and --retry-errors.")
    if address is not None and engine != "ray":
        raise click.UsageError("--ray-address is for --engine ray.")
    return retry_errors or resume


def _read_formats(formats: str | None, folder: str | None) -> tuple[str, ...]:
    """Return what to write at the end; whether it can be written is checked at once."""
    if not formats:
        if folder is not None:
            raise click.UsageError("--out is the folder for --report; say what to write.")
        return ()
    parsed = parse_formats(formats)
    check_formats(parsed)
    check_folder(Path(folder or "."))
    return parsed
