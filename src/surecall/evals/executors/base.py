"""The seam between an experiment and where its trials run."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from typing import Any, Final, Protocol, cast

from msgspec import Struct

from surecall.base.errors import Code, ConfigError
from surecall.evals.records import TrialBody, TrialRow, Unit

DEFAULT_CONCURRENCY: Final = 8
"""Trials at once at each provider."""


class Finished(Struct, frozen=True, tag="finished"):
    """One trial that is over."""

    row: TrialRow
    body: TrialBody


RunUnit = Callable[[Unit], Awaitable[Finished]]
"""Runs one trial; raises nothing but `CancelledError`."""

Deliver = Callable[[Finished], Awaitable[None]]
"""Takes a finished trial; waits while too many have not been kept yet."""

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


class Executor(Protocol):
    """Runs units somewhere and delivers what becomes of them, in whatever order they end."""

    @property
    def name(self) -> str:
        """Its name on the command line."""
        ...

    async def run(self, units: Sequence[Unit], deliver: Deliver) -> None:
        """Run all units, each delivered once; cancelling stops at once what is under way."""
        ...

    def drain(self) -> None:
        """Begin nothing more; `run` returns when what is under way has been delivered."""
        ...


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
