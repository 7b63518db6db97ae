"""Evals: models, profiles and strategies compared on scenarios, from Python or the command line.

experiment = plan("zoo:*", strategies="raw,production", trials=3)
run = await evaluate(experiment, store="evals.db")
print(run.summary().overall.strict)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cases import Contender
    from .experiments import EvalRun, evaluate, evaluate_sync, list_runs, load_run, plan
    from .history import compare_case, find_trend
    from .metrics import Summary
    from .models import find_contenders
    from .planning import Experiment
    from .recommendation import Recommendation
    from .records import TrialBody, TrialRow
    from .regrading import Regraded, regrade, regrade_sync
    from .vendors import compare_vendors

__all__ = [
    "Contender",
    "EvalRun",
    "Experiment",
    "Recommendation",
    "Regraded",
    "Summary",
    "TrialBody",
    "TrialRow",
    "compare_case",
    "compare_vendors",
    "evaluate",
    "evaluate_sync",
    "find_contenders",
    "find_trend",
    "list_runs",
    "load_run",
    "plan",
    "regrade",
    "regrade_sync",
]

# Loaded when first used: a worker process needs a few of these modules and not the rest.
_HOMES = {
    "cases": ("Contender",),
    "experiments": ("EvalRun", "evaluate", "evaluate_sync", "list_runs", "load_run", "plan"),
    "history": ("compare_case", "find_trend"),
    "metrics": ("Summary",),
    "models": ("find_contenders",),
    "planning": ("Experiment",),
    "recommendation": ("Recommendation",),
    "records": ("TrialBody", "TrialRow"),
    "regrading": ("Regraded", "regrade", "regrade_sync"),
    "vendors": ("compare_vendors",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
