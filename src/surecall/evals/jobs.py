"""The job of an experiment: from a unit to the trial that it stands for, in whichever process."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from importlib import import_module
from typing import Any, cast

import msgspec
from msgspec import Struct

from surecall.base.errors import Code, ConfigError
from surecall.base.redaction import Secret
from surecall.evals.cases import Contender, OpenTransport, close_transports, endpoint_of
from surecall.evals.transports import CachedOpener
from surecall.models.config import load_config
from surecall.models.profiles import Catalog

from .cases import Case, Suite
from .records import Task, TrialBody, TrialRow, Unit
from .strategies import Settled, settle
from .suites import load_suite
from .transports import MAX_WAIT_S
from .trial import run_trial


class Finished(Struct, frozen=True):
    """One trial that is over."""

    row: TrialRow
    body: TrialBody


RunUnit = Callable[[Unit], Awaitable[Finished]]
"""Runs one trial; raises nothing but `CancelledError`."""

OpenJob = Callable[[dict[str, Any]], AbstractAsyncContextManager[RunUnit]]
"""Sets up whatever the trials of one process share, such as connections."""


class Lane(Struct, frozen=True, kw_only=True):
    """Trials that draw on the same provider, and how many of them may be under way at once."""

    name: str
    max_concurrency: int | None = None
    """Fewer than what was asked for, such as one for a model that computes in this process."""


class Job(Struct, frozen=True, kw_only=True):
    """How trials are run: plain data, so that it can be sent to another process."""

    open: str
    """Where the function is that opens the job, as `package.module:name`."""
    params: dict[str, Any] = {}
    """What that function is given; plain JSON data."""
    lanes: dict[str, Lane] = {}
    """The lane of each model; one without an entry has a lane of its own."""

    def lane_of(self, unit: Unit) -> Lane:
        """Return the lane in which a trial runs."""
        model = unit.cell.model
        return self.lanes.get(model) or Lane(name=model)


def open_job(job: Job) -> AbstractAsyncContextManager[RunUnit]:
    """Open a job in this process."""
    return cast("OpenJob", load_name(job.open))(job.params)


def load_name(path: str) -> Any:
    """Return what `package.module:name` stands for, or raise `ConfigError`."""
    module, _, name = path.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            Code.INVALID_CONFIG,
            f"{path!r} cannot be loaded: {error}.",
            hint="Give a place such as package.module:name that can be imported.",
        ) from error


class TrialParams(Struct, frozen=True, kw_only=True):
    """What a process must know to run any trial of an experiment."""

    suites: tuple[str, ...]
    contenders: tuple[Contender, ...]
    open_transport: str
    """Where the function is that opens a transport, as `package.module:name`."""
    timeout_s: float | None = None
    options: dict[str, Any] = {}
    """Options for every trial."""
    cache: str | None = None
    """The folder with replies of before, if they are to be used."""
    max_wait_s: float = MAX_WAIT_S
    """How long an endpoint is waited for that refuses because it was asked too much."""
    agent: str = ""
    """The command of a program that is run in place of the loop."""
    verbose: int = 0
    """Whether what happens in each trial is told on standard error: 1, or 2 with sizes."""


def make_trials_job(params: TrialParams) -> Job:
    """Describe how the trials of an experiment are run, here or in another process."""
    return Job(
        open="surecall.evals.jobs:open_trials",
        params=msgspec.to_builtins(params),
        lanes={contender.label: _lane_of(contender) for contender in params.contenders},
    )


def _lane_of(contender: Contender) -> Lane:
    if contender.kind == "embedded":
        # They share the processors; two at once would only make both seem slow.
        return Lane(name="embedded", max_concurrency=1)
    if contender.kind == "simulated":
        return Lane(name="simulated")  # they need no provider, only this process
    return Lane(name=endpoint_of(contender))


@asynccontextmanager
async def open_trials(params: dict[str, Any]) -> AsyncGenerator[RunUnit, None]:
    """Load suites and models once, and run units until the job is closed."""
    settings = msgspec.convert(params, TrialParams)
    opener: OpenTransport = load_name(settings.open_transport)
    if hasattr(opener, "max_wait_s"):
        setattr(opener, "max_wait_s", settings.max_wait_s)  # noqa: B010 - a seam of plain functions
    if settings.cache is not None:
        opener = CachedOpener(opener, settings.cache)
    trials = Trials(settings, [load_suite(name) for name in settings.suites], opener)
    try:
        yield trials.run
    finally:
        await close_transports(opener)


class Trials:
    """Runs units; what all trials of a cell have in common is worked out once."""

    def __init__(
        self, params: TrialParams, suites: Iterable[Suite], open_transport: OpenTransport
    ) -> None:
        self.params = params
        self._suites = {suite.name: suite for suite in suites}
        self._contenders = {contender.label: contender for contender in params.contenders}
        self._open_transport = open_transport
        self._catalog = Catalog.builtin()
        self._cases: dict[tuple[str, str], dict[str, Case]] = {}
        self._settled: dict[Task, Settled] = {}
        # They are taken out of everything that is kept while somebody holds them.
        self._secrets = _secrets_of(params.contenders)

    async def run(self, unit: Unit) -> Finished:
        """Run the trial of a unit."""
        case = self.find_case(unit)
        contender = self._contenders[unit.cell.model]
        row, body = await run_trial(
            unit,
            case,
            contender,
            self._open_transport,
            self.settle(unit, contender),
            timeout_s=self.params.timeout_s,
            verbose=self.params.verbose,
            agent=self.params.agent,
        )
        return Finished(row, body)

    def find_case(self, unit: Unit) -> Case:
        """Return the case of a unit.

        Raises:
            ConfigError: The suites have no such case.
        """
        suite, scenario = unit.cell.suite, unit.cell.scenario
        if (suite, scenario) not in self._cases:
            found = self._suites[suite].cases(scenario) if suite in self._suites else ()
            self._cases[suite, scenario] = {case.id: case for case in found}
        try:
            return self._cases[suite, scenario][unit.case]
        except KeyError:
            raise ConfigError(
                Code.UNKNOWN_SCENARIO,
                f"there is no case {unit.case!r} of scenario {scenario!r} in suite {suite!r}.",
                hint="The suites of all processes must be the same.",
            ) from None

    def settle(self, unit: Unit, contender: Contender) -> Settled:
        """Return what is in force for a unit, apart from what its case asks for."""
        task = Task.of(unit.cell)
        if task not in self._settled:
            self._settled[task] = settle(
                task.strategy,
                contender,
                task.fallback,
                task.profile,
                catalog=self._catalog,
                overrides=self.params.options,
            )
        return self._settled[task]


def _secrets_of(contenders: Iterable[Contender]) -> tuple[Secret, ...]:
    """Return the keys that are sent to anybody here: none of them may be kept with a trial."""
    addresses = {contender.base_url for contender in contenders if contender.kind == "live"}
    keys = (load_config(overrides={"base_url": address}).api_key for address in addresses)
    return tuple(key for key in keys if key is not None)
