"""Where trials run: in this process, in several, or on a cluster."""

from .base import DEFAULT_CONCURRENCY, Deliver, Executor, Finished, Job, Lane, RunUnit
from .local import LocalExecutor
from .processes import ProcessExecutor
from .ray import RayExecutor

__all__ = [
    "DEFAULT_CONCURRENCY",
    "Deliver",
    "Executor",
    "Finished",
    "Job",
    "Lane",
    "LocalExecutor",
    "ProcessExecutor",
    "RayExecutor",
    "RunUnit",
]
