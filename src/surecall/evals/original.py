"""The names of the original experiment, each with what it is called today and what differs.

One table feeds three things: the variables `OPENROUTER_*` are read by it, `surecall docs` knows
its names, and the page "Coming from the experiment" is made of it. A variable that is not set, or
blank, says nothing. A value that cannot be used is an error; the original took some of them for
another. No variable with the prefix is ignored in silence.
"""

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final, NamedTuple, cast

import msgspec
from msgspec import Struct

from surecall.base.errors import JSONTextError, invalid_config
from surecall.base.json_values import as_fields
from surecall.evals.metrics.tally import Tallies, Tally, merge_tallies
from surecall.evals.records import Manifest, Task, read_data
from surecall.evals.stats import percentile
from surecall.models.config.load import all_variables, list_variables
from surecall.text import decode

_YES: Final = 0.975
_CONDITIONAL: Final = 0.875
_BRITTLE: Final = 0.5
RULE: Final = (
    f"Yes: at least {_YES:.1%} of the tool scenarios right; Conditional: at least "
    f"{_CONDITIONAL:.1%}; (tool scenarios): under {_BRITTLE:.0%} of chat_only right."
)
"""How a recommendation is found; its limits are in the table of its documents."""


class Table(NamedTuple):
    """A table of texts."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class _Row(NamedTuple):
    """One model under one profile, strategy and fallback."""

    model: str
    task: Task
    tools: Tally
    controls: Tally
    failures: str

    @property
    def rate(self) -> float:
        return self.tools.original_ok / self.tools.n if self.tools.n else 0.0

    @property
    def verdict(self) -> str:
        if self.rate < _CONDITIONAL:
            return "No (for tool calling)"
        is_brittle = self.controls.n and self.controls.original_ok < _BRITTLE * self.controls.n
        word = "Yes" if self.rate >= _YES else "Conditional"
        return f"{word} (tool scenarios)" if is_brittle else word


def list_tables(manifest: Manifest, tallies: Tallies) -> dict[str, Table]:
    """Return the tables of a run that the variables of the experiment describe, by title."""
    options = as_fields(manifest.options.get("options"))
    if PRESET not in cast("Sequence[str]", options.get("preset", ())):
        return {}
    return {
        "Model/profile matrix": tabulate_run(manifest, tallies),
        "Recommendations": recommend_by_model(manifest, tallies),
    }


def tabulate_run(manifest: Manifest, tallies: Tallies) -> Table:
    """Return the experiment's table: a row for each model and sampling profile."""
    rows = _list_rows(manifest, tallies)
    axes = [axis for axis in ("strategy", "fallback") if len({_of(row, axis) for row in rows}) > 1]
    figures = ("tool_ok", "tool_ok_rate", "control_ok", "p95_ms", "top tool failures")
    return Table(
        ("model", "sampling_profile", *axes, *figures),
        tuple(
            (
                row.model,
                row.task.profile,
                *(_of(row, axis) for axis in axes),
                f"{row.tools.original_ok}/{row.tools.n}",
                f"{row.rate:.1%}" if row.tools.n else "-",
                f"{row.controls.original_ok}/{row.controls.n}",
                f"{percentile(row.tools.elapsed_ms + row.tools.censored_ms, 0.95):.0f}",
                row.failures,
            )
            for row in rows
        ),
    )


def recommend_by_model(manifest: Manifest, tallies: Tallies) -> Table:
    """Return for each model its best profile, and Yes, Conditional or No."""
    best: dict[str, _Row] = {}
    for row in _list_rows(manifest, tallies):
        if row.model not in best or row.rate > best[row.model].rate:
            best[row.model] = row
    return Table(
        ("model", "recommended sampling profile", "strategy", "recommended?", "notes"),
        tuple(
            (
                model,
                row.task.profile,
                row.task.strategy,
                row.verdict,
                f"{row.rate:.1%} of {row.tools.n} tool runs"
                + (f"; {row.failures}" if row.failures != "-" else ""),
            )
            for model, row in best.items()
        ),
    )


def _of(row: _Row, axis: str) -> str:
    return cast("str", getattr(row.task, axis))


def _list_rows(manifest: Manifest, tallies: Tallies) -> list[_Row]:
    found: dict[Task, dict[bool, dict[str, Tally]]] = {}
    for (cell, control), tally in tallies.items():
        group = found.setdefault(Task.of(cell), {False: {}, True: {}})[control]
        group[cell.scenario] = merge_tallies(
            [*([group[cell.scenario]] if cell.scenario in group else []), tally]
        )
    rows = [
        _Row(
            _model_of(manifest, task.model),
            task,
            merge_tallies(group[False].values()),
            merge_tallies(group[True].values()),
            _list_failures(group[False]),
        )
        for task, group in found.items()
    ]
    return sorted(rows, key=lambda row: (row.model, row.task.profile))


def _model_of(manifest: Manifest, label: str) -> str:
    known: Any = as_fields(manifest.contenders.get(label)).get("model")
    return str(known or label)


def _list_failures(scenarios: dict[str, Tally]) -> str:
    """Return the two scenarios with the most failures, and the most frequent category."""
    missed = {name: tally.n - tally.original_ok for name, tally in scenarios.items()}
    worst = sorted((name for name in missed if missed[name]), key=lambda name: -missed[name])[:2]
    categories = merge_tallies(scenarios.values()).categories.most_common(1)
    return (
        "; ".join(
            [f"{name} x{missed[name]}" for name in worst]
            + [f"{category} x{count}" for category, count in categories if worst]
        )
        or "-"
    )


KEY: Final = "OPENROUTER_API_KEY"
"""Set alone, it makes `surecall eval` run the stable models, as the original did."""
STABLE: Final = "openrouter:stable"
PRESET: Final = "original"
"""The preset of a run that the variables describe."""

_PREFIX: Final = "OPENROUTER_"
_ROOT: Final = "https://openrouter.ai/api"
_TRUE: Final = frozenset({"1", "on", "true", "yes"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})
_EVERYTHING: Final = frozenset({"*", "all", "full"})
_NOTHING: Final = frozenset({"0", "false", "none", "off"})


class OriginalSettings(Struct, frozen=True, kw_only=True):
    """What the variables say."""

    axes: dict[str, Any] = {}
    """Fields of `Axes`."""
    options: dict[str, Any] = {}
    """Options of every run, and the preset that the strategies of the experiment had."""
    settings: dict[str, Any] = {}
    """Settings of the configuration, by dotted key."""
    concurrency: int | None = None
    has_key: bool = False
    """Whether the key of the experiment is set."""
    verbose: int = 0
    """How much is told of each turn: nothing, what happens, or sizes as well."""
    notes: tuple[str, ...] = ()
    """Variables that are set and change nothing, and why."""


class OldName(Struct, frozen=True):
    """A name of the experiment, and what it is today."""

    old: str
    new: str
    difference: str = ""
    why: str = ""


class Variable(OldName, frozen=True, kw_only=True):
    """A variable of the experiment, and where its value goes."""

    place: str = ""
    """The table and the key; without a key the value is merged into the table."""
    reads: str = "text"
    choices: tuple[str, ...] = ()
    sets: Any = None
    """The value that a flag, or any of the choices, stands for."""

    def read(self, text: str) -> Any:
        """Return the value of a text; an error completes the sentence "must be ..."."""
        if self.choices and text.lower() not in self.choices:
            raise ValueError(f"one of {', '.join(self.choices)}")
        value = text.lower() if self.choices else _READERS[self.reads](text)
        if self.sets is None:
            return value
        return self.sets if value else None


def read_original_settings(environ: Mapping[str, str] | None = None) -> OriginalSettings:
    """Read the variables; those of the process by default.

    Raises:
        ConfigError: `INVALID_CONFIG` for a value that cannot be used.
    """
    texts = list_variables(_PREFIX, environ)
    found: dict[str, Any] = {
        name: {} for name in ("axes", "options", "defaults", "overrides", "settings", "run")
    }
    notes: list[str] = []
    for variable in VARIABLES:
        text = texts.pop(variable.old.removeprefix(_PREFIX), None)
        if text is None:
            continue
        if not variable.place:
            notes.append(f"{variable.old} changes nothing: {variable.why}.")
        _put(found, variable, _read(variable, text))
    notes += [_explain_unknown(f"{_PREFIX}{name}") for name in texts]
    values = all_variables() if environ is None else environ
    found["settings"] |= _settle_address(found["settings"], values)
    if found["options"].get("tool_use_mode") == "disabled":
        found["axes"]["scenarios"] = "chat_only"
    options = {"preset": [PRESET]} if found["axes"] else {}
    options |= found["options"]
    for name in ("defaults", "overrides"):
        if found[name]:
            options[f"request_{name}"] = found[name]
    return OriginalSettings(
        axes=found["axes"],
        options=options,
        settings=found["settings"],
        concurrency=found["run"].get("concurrency"),
        has_key=bool(values.get(KEY, "").strip()),
        verbose=_read_verbose(values),
        notes=tuple(notes),
    )


def _read(variable: Variable, text: str) -> Any:
    try:
        return variable.read(text)
    except ValueError as error:
        raise invalid_config(f"{variable.old} must be {error}, not {text!r}.") from None


def _put(found: dict[str, Any], variable: Variable, value: Any) -> None:
    table, _, key = variable.place.partition(".")
    if value is None or not table:
        return
    if not key:
        found[table] |= value
    elif key.startswith(_ROUTING):
        given = found[table].get("provider")
        inner = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        found[table]["provider"] = {**inner, key.removeprefix(_ROUTING): value}
    else:
        found[table][key] = value


def _settle_address(settings: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the address with the prefix of its paths, and the key that is sent there."""
    name = f"{_PREFIX}API_PREFIX"
    if "base_url" not in settings and not environ.get(name):
        return {}
    root = settings.get("base_url", _ROOT).rstrip("/")
    prefix = environ.get(name, "" if root.endswith("/v1") else "/v1").strip().strip("/")
    address = {"base_url": f"{root}/{prefix}" if prefix else root}
    return {**address, **({"api_key_env": KEY} if environ.get(KEY) else {})}


def _explain_unknown(name: str) -> str:
    close = get_close_matches(name, [one.old for one in VARIABLES], n=1)
    hint = f"; did you mean {close[0]}?" if close else "."
    return f"{name} is not a variable of the experiment, and changes nothing{hint}"


def _read_verbose(environ: Mapping[str, str]) -> int:
    text = environ.get("VERBOSE", "").strip()
    return min(int(text), 2) if text.isdecimal() else 0


# One value each; what is raised completes the sentence "must be ..."


def _flag(text: str) -> bool:
    lowered = text.lower()
    if lowered not in _TRUE | _FALSE:
        raise ValueError("1 or 0")
    return lowered in _TRUE


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError("a whole number, 1 or more")
    return int(text)


def _count_or_none(text: str) -> int:
    if not text.isdecimal():
        raise ValueError("a whole number, 0 or more")
    return int(text)


def _number(text: str) -> float:
    try:
        value = decode(text)
    except JSONTextError:
        value = None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("a number")
    return value


def _seconds(text: str) -> float | None:
    value = _number(text)
    if value < 0:
        raise ValueError("seconds, 0 or more")
    return value or None  # nothing is waited for without end; 0 leaves the default


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _allowlist(text: str) -> list[str] | None:
    names = _list(text)
    return None if _EVERYTHING.intersection(name.lower() for name in names) else names


def _transforms(text: str) -> list[str] | None:
    if text.lower() in _NOTHING:
        return []
    return None if text.lower() == "auto" else _list(text)


def _object(text: str) -> dict[str, Any]:
    try:
        value = decode(text)
    except JSONTextError:
        value = None
    if not isinstance(value, dict):
        raise ValueError("a JSON object")
    return cast("dict[str, Any]", value)


def _at_openrouter(text: str) -> str:
    """Return a filter of the original experiment, whose models were all at one provider."""
    return ",".join(part if part.startswith("!") else f"openrouter:{part}" for part in _list(text))


_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "allowlist": _allowlist,
    "count": _count,
    "count_or_none": _count_or_none,
    "flag": _flag,
    "list": _list,
    "models": _at_openrouter,
    "number": _number,
    "object": _object,
    "seconds": _seconds,
    "text": str,
    "transforms": _transforms,
}
_ROUTING: Final = "provider."
_DATA: Final = read_data("original_names.toml")
VARIABLES: Final = msgspec.convert(_DATA["variables"], tuple[Variable, ...])
"""The variables in the order in which they are read: a later one wins where two set one value."""
WORDS: Final = msgspec.convert(_DATA["words"], tuple[OldName, ...])
"""Other words of its documents."""
