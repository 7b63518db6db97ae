"""From what the command says to what is run: who, what and how often."""

import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, cast

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from surecall.base.errors import Code, ConfigError
from surecall.evals.cases import Contender, Price, parse_price
from surecall.models.config import Config
from surecall.models.profiles import Catalog

from .choosing import CaseFilter
from .executors import DEFAULT_CONCURRENCY
from .jobs import Job, TrialParams, make_trials_job
from .matrix import Axes, Matrix, build_matrix, shuffle_units
from .models import find_contenders
from .original import KEY, PRESET, STABLE, read_original_settings
from .records import Manifest, drop_defaults, hash_of, make_manifest
from .store import FIRST_EVAL
from .suites import load_suite, locate_suite
from .transports import MAX_WAIT_S

DEFAULT_SUITE: Final = "state"
DEFAULT_TIMEOUT_S: Final = 120.0

_OPEN_TRANSPORT: Final = "surecall.evals.models:open_transport"
_AGENT_HINT: Final = "Write the command that starts it, such as --agent 'python agent.py'."
_NOT_COMPARED: Final = ("price", "tags")
_EVIDENCE: Final = frozenset({"base_url", "date", "evidence", "key_env", "purpose", "source"})
"""Fields of the catalog that say where a fact or a provider is or what it is for, and decide
nothing else."""


class Wanted(Struct, frozen=True, kw_only=True):
    """What is asked for; None means that nothing was said."""

    models: str | None = None
    suites: tuple[str, ...] | None = None
    scenarios: str | None = None
    profiles: str | None = None
    strategies: str | None = None
    fallbacks: str | None = None
    trials: int | None = None
    seed: int | None = None
    enforce_applicability: bool | None = None
    timeout_s: float | None = None
    options: dict[str, Any] | None = None
    concurrency: int | None = None
    max_wait_s: float | None = None
    """How long an endpoint is waited for that refuses because it was asked too much."""
    cases: str | None = None
    """Cases by id or glob."""
    sample: int | None = None
    limit: int | None = None
    agent: str | None = None
    """The command of a program that is run in place of the loop."""
    shuffle: bool | None = None
    """Whether trials are run in an order that the seed decides."""
    cache: str | None = None
    """The folder with replies of before; `off` for none."""
    places: dict[str, str] | None = None
    """Where suites that are files were found when the run was begun."""

    def over(self, weaker: "Wanted") -> "Wanted":
        """Return this, with what it does not say taken from something weaker."""
        if self.suites is not None:
            weaker = replace(weaker, places=None)  # a file that is named is meant from here
        said = {name: value for name, value in asdict(self).items() if value is not None}
        return Wanted(**(asdict(weaker) | said))


class Experiment(Struct, frozen=True, kw_only=True):
    """Everything that is needed to begin."""

    matrix: Matrix
    manifest: Manifest
    job: Job
    concurrency: int
    timeout_s: float
    notes: tuple[str, ...] = ()
    """What the user should know before it begins."""


def wanted_of(manifest: Manifest) -> Wanted:
    """Return what a run was begun with, so that its id alone is enough to resume it."""
    axes = {name: value for name, value in manifest.axes.items() if value is not None}
    known = {name: axes[name] for name in Wanted.__struct_fields__ if name in axes}
    options = {name: manifest.options.get(name) for name in ("timeout_s", "options", "agent")}
    return msgspec.convert(known | options | {"places": manifest.places}, Wanted)


def plan_experiment(
    wanted: Wanted,
    config: Config,
    *,
    prices: Mapping[str, Price],
    command: str = "",
    engine: str = "local",
    verbose: int | None = None,
) -> Experiment:
    """Build the matrix and everything around it; nothing is asked and nothing is written."""
    original = read_original_settings()
    weaker = Wanted(
        **original.axes, options=original.options or None, concurrency=original.concurrency
    )
    wanted = wanted.over(weaker)
    expression, notes = wanted.models or config.model, original.notes
    if not expression and original.has_key:
        expression = STABLE
        wanted = replace(wanted, options={"preset": [PRESET], **(wanted.options or {})})
        notes += (f"{KEY} is set and no model is named: the stable models take part.",)
    if not expression:
        raise ConfigError(
            Code.NOTHING_SELECTED,
            "no model is named.",
            hint=f"Without key or network: {FIRST_EVAL}.",
        )
    catalog = Catalog.builtin()
    contenders = find_contenders(expression, config=config, catalog=catalog, prices=prices)
    names = wanted.suites or (DEFAULT_SUITE,)
    found = {name: (wanted.places or {}).get(name, name) for name in names}
    suites = [load_suite(name) for name in found.values()]
    places = {name: locate_suite(place) for name, place in found.items()}
    if wanted.trials is None:
        wanted = replace(wanted, trials=max(getattr(suite, "trials", 1) for suite in suites))
    if wanted.agent is not None:
        wanted = _plan_program(wanted)
    axes = _axes(wanted)
    matrix = build_matrix(axes, suites, contenders, catalog)
    timeout_s = wanted.timeout_s or DEFAULT_TIMEOUT_S
    options = wanted.options or {}
    manifest = make_manifest(
        matrix.units,
        axes=_describe_axes(axes) | {"models": expression, "suites": list(names)},
        suites={suite.name: suite.version for suite in suites},
        contenders={item.label: _list_compared(item) for item in matrix.contenders},
        catalog=hash_of(drop_defaults(catalog, without=_EVIDENCE)),
        options={
            "timeout_s": timeout_s,
            "options": options,
            **({"agent": wanted.agent} if wanted.agent else {}),
        },
        command=command,
        engine=engine,
        places={name: place for name, place in places.items() if place != name},
        simulated=tuple(item.label for item in matrix.contenders if item.simulated),
    )
    if wanted.shuffle:  # results have their places whatever the order, so it is no other experiment
        matrix = replace(matrix, units=shuffle_units(matrix.units, axes.seed))
    params = TrialParams(
        suites=tuple(places.values()),
        contenders=matrix.contenders,
        open_transport=_OPEN_TRANSPORT,
        timeout_s=timeout_s,
        options=options,
        cache=_find_cache(wanted.cache),
        max_wait_s=MAX_WAIT_S if wanted.max_wait_s is None else wanted.max_wait_s,
        verbose=original.verbose if verbose is None else verbose,
        agent=wanted.agent or "",
    )
    return Experiment(
        matrix=matrix,
        manifest=manifest,
        job=make_trials_job(params),
        concurrency=wanted.concurrency or DEFAULT_CONCURRENCY,
        timeout_s=timeout_s,
        notes=notes,
    )


def _plan_program(wanted: Wanted) -> Wanted:
    """Return what is wanted of a program: it is run as it is, whatever strategies there are."""
    if not shlex.split(wanted.agent or ""):
        raise ConfigError(Code.INVALID_OPTION, "no program is named.", hint=_AGENT_HINT)
    if wanted.strategies not in (None, "raw"):
        raise ConfigError(
            Code.INVALID_OPTION,
            f"a program of your own cannot run under the strategy {wanted.strategies!r}.",
            hint="Leave --strategies out: a program is run as it is, which is the strategy raw.",
        )
    return replace(wanted, strategies="raw")


def _axes(wanted: Wanted) -> Axes:
    said = {
        name: value
        for name, value in asdict(wanted).items()
        if value is not None and name in Axes.__struct_fields__
    }
    filters = {name: getattr(wanted, name) for name in CaseFilter.__struct_fields__}
    return Axes(**said, case_filter=CaseFilter(**filters))


def _find_cache(folder: str | None) -> str | None:
    return None if folder in (None, "off") else str(Path(folder).expanduser().absolute())


def _describe_axes(axes: Axes) -> dict[str, Any]:
    """Return the axes as the manifest has them: filters of cases only where there are any."""
    fields = asdict(axes)
    filters = asdict(fields.pop("case_filter"))
    return fields | {name: value for name, value in filters.items() if value is not None}


def _list_compared(contender: Contender) -> dict[str, Any]:
    fields = cast("dict[str, Any]", msgspec.to_builtins(contender))
    return {name: value for name, value in fields.items() if name not in _NOT_COMPARED and value}


def parse_prices(items: Iterable[str]) -> dict[str, Price]:
    """Read `MODEL=INPUT/OUTPUT`, in dollars for a million tokens."""
    prices: dict[str, Price] = {}
    for item in items:
        name, equals, price = item.rpartition("=")
        if not equals or not name:
            raise ConfigError(
                Code.INVALID_OPTION,
                f"{item!r} is not of the form MODEL=INPUT/OUTPUT.",
                hint="For example --price openai/gpt-5.2=1.75/14.",
            )
        prices[name] = parse_price(price)
    return prices
