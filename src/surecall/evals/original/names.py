"""The names of the original experiment, each with what it is called today and what differs.

One table feeds three things: the variables `OPENROUTER_*` are read by it, `surecall docs` knows
its names, and the page "Coming from the experiment" is made of it. A variable that is not set, or
blank, says nothing. A value that cannot be used is an error; the original took some of them for
another. No variable with the prefix is ignored in silence.
"""

from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from surecall.base.errors import JSONTextError, invalid_config
from surecall.evals.cases import read_data
from surecall.models.config.load import all_variables, list_variables
from surecall.text import decode

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
_DATA: Final = read_data("names.toml", package="surecall.evals.original")
VARIABLES: Final = msgspec.convert(_DATA["variables"], tuple[Variable, ...])
"""The variables in the order in which they are read: a later one wins where two set one value."""
WORDS: Final = msgspec.convert(_DATA["words"], tuple[OldName, ...])
"""Other words of its documents."""
