"""The variables of the original experiment, `OPENROUTER_*`, read as options of today.

A variable that is not set, or blank, says nothing. A value that cannot be used is an error; the
original took some of them for another. What has no meaning here any more is reported in `notes`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

from msgspec import Struct

from surecall.base.errors import JSONTextError, invalid_config
from surecall.models.config.load import list_variables
from surecall.text import decode

ORIGINAL_PROFILES: Final = "default,recommended,conversation,creative,tool_calling"
"""The profiles of the original experiment's full matrix."""

_PREFIX: Final = "OPENROUTER_"
_PRESET: Final = "original"
_TRUE: Final = frozenset({"1", "on", "true", "yes"})
_FALSE: Final = frozenset({"0", "false", "no", "off"})
_EVERYTHING: Final = frozenset({"*", "all", "full"})
_NOTHING: Final = frozenset({"0", "false", "none", "off"})
_NOTES: Final = {
    "EMPTY_RESPONSE_RETRY_COUNT": "a trial is never repeated; fix_empty_final asks once more",
    "HTTP_ADAPTER": "there is one HTTP client",
    "LANGUAGE_POLICY_FILTER": "there is no language policy",
    "LANGUAGE_POLICY_MATRIX": "there is no language policy",
    "LANGUAGE_POLICY_STRICT": "there is no language policy",
    "PRODUCTION_AUTO_SAMPLING_PROFILE": "no profile is chosen automatically; "
    "name it in the profiles, such as default,recommended",
    "REPORT_DIR": "reports are made of a stored run",
    "RUN_LANGUAGE_POLICY_EVAL": "there is no language policy",
}


class OriginalSettings(Struct, frozen=True, kw_only=True):
    """What the variables say."""

    axes: dict[str, Any] = {}
    """Fields of `Axes`."""
    options: dict[str, Any] = {}
    """Options of every run, and the preset that the strategies of the experiment had."""
    settings: dict[str, Any] = {}
    """Settings of the configuration, by dotted key."""
    concurrency: int | None = None
    notes: tuple[str, ...] = ()
    """Variables that are set and change nothing, and why."""


def read_original_settings(environ: Mapping[str, str] | None = None) -> OriginalSettings:
    """Read the variables; those of the process by default.

    Raises:
        ConfigError: `INVALID_CONFIG` for a value that cannot be used.
    """
    variables = _Variables(list_variables(_PREFIX, environ))
    axes = _read_axes(variables)
    preset = {"preset": [_PRESET]} if axes else {}
    return OriginalSettings(
        axes=axes,
        options=preset | variables.read_all(_OPTIONS) | _read_request(variables),
        settings=_read_settings(variables),
        concurrency=variables.read("JOBS", _count),
        notes=tuple(
            f"{_PREFIX}{name} changes nothing: {why}."
            for name, why in _NOTES.items()
            if name in variables.texts
        ),
    )


class _Variables:
    """The values by the part of their name behind `OPENROUTER_`."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts

    def read(self, name: str, parse: Callable[[str], Any]) -> Any:
        """Return a value, or `None` when it is not set."""
        text = self.texts.get(name)
        if text is None:
            return None
        try:
            return parse(text)
        except ValueError as error:
            raise invalid_config(f"{_PREFIX}{name} must be {error}, not {text!r}.") from None

    def read_all(self, rows: Iterable["_Row"]) -> dict[str, Any]:
        """Return those values of a table that are set, by their names of today."""
        found = ((key, self.read(name, parse)) for key, name, parse in rows)
        return {key: value for key, value in found if value is not None}


def _read_axes(variables: _Variables) -> dict[str, Any]:
    preset = variables.read("EVAL_PRESET", _one_of("full", "all"))
    is_full = preset is not None or variables.read("EVAL_FULL", _flag)
    axes: dict[str, Any] = (dict(_FULL) if is_full else {}) | variables.read_all(_AXES)
    if variables.read("STRATEGY_MATRIX", _flag):
        axes["strategies"] = "baseline,production"
    if variables.read("ENABLE_CONTENT_TAG_TOOL_CALL_FALLBACK", _flag):
        axes["fallbacks"] = "on"
    if variables.read("FALLBACK_MATRIX", _flag):
        axes["fallbacks"] = "both"
    return axes


def _read_request(variables: _Variables) -> dict[str, Any]:
    """Read what goes into the body of requests."""
    defaults: dict[str, Any] = variables.read("LLM_OPTIONS_DEFAULTS_JSON", _object) or {}
    defaults |= variables.read_all(_SAMPLING)
    overrides: dict[str, Any] = variables.read("REQUEST_OVERRIDES_JSON", _object) or {}
    overrides |= variables.read_all(_OVERRIDES)
    routing = variables.read_all(_ROUTING)
    if routing:
        given = overrides.get("provider")
        inner = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        overrides["provider"] = {**inner, **routing}
    found = {"request_defaults": defaults, "request_overrides": overrides}
    return {name: fields for name, fields in found.items() if fields}


def _read_settings(variables: _Variables) -> dict[str, Any]:
    settings = variables.read_all(_SETTINGS)
    if "base_url" in settings and not settings["base_url"].rstrip("/").endswith("/v1"):
        settings.setdefault("api_prefix", "/v1")
    return settings


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


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return text.lower()

    return parse


def _at_openrouter(text: str) -> str:
    """Return a filter of the original experiment, whose models were all at one provider."""
    return ",".join(part if part.startswith("!") else f"openrouter:{part}" for part in _list(text))


_Row = tuple[str, str, Callable[[str], Any]]
"""What it is called today, what it was called, and how its value is read."""

_FULL: Final = {
    "trials": 10,
    "models": "openrouter:all",
    "profiles": ORIGINAL_PROFILES,
    "scenarios": "all",
    "strategies": "raw,baseline,production",
}
_AXES: Final[tuple[_Row, ...]] = (
    ("trials", "TRIALS", _count),
    ("models", "MODEL_FILTER", _at_openrouter),
    ("scenarios", "SCENARIOS", str),
    ("profiles", "SAMPLING_PROFILE_FILTER", str),
    ("enforce_applicability", "SAMPLING_PROFILE_ENFORCE_APPLICABILITY", _flag),
    ("strategies", "STRATEGY_FILTER", str),
)
_OPTIONS: Final[tuple[_Row, ...]] = (
    ("tool_use_mode", "TOOL_USE_MODE", _one_of("enforced", "relaxed", "disabled")),
    ("tool_failure_policy", "TOOL_FAILURE_POLICY", _one_of("fatal", "tolerated")),
    ("fallback_retry_count", "TOOL_CALLING_FALLBACK_RETRY_COUNT", _count_or_none),
    ("fix_empty_final", "FIX_EMPTY_FINAL", _flag),
    ("tool_allowlist", "TOOL_ALLOWLIST", _allowlist),
)
_SAMPLING: Final[tuple[_Row, ...]] = (
    ("temperature", "TEMPERATURE", _number),
    ("top_p", "TOP_P", _number),
    ("min_p", "MIN_P", _number),
    ("top_k", "TOP_K", _count),
)
_OVERRIDES: Final[tuple[_Row, ...]] = (
    ("route", "ROUTE", str),
    ("transforms", "TRANSFORMS", _transforms),
)
_ROUTING: Final[tuple[_Row, ...]] = (
    ("only", "PROVIDER_ONLY", _list),
    ("order", "PROVIDER_ORDER", _list),
    ("ignore", "PROVIDER_IGNORE", _list),
)
_SETTINGS: Final[tuple[_Row, ...]] = (
    ("base_url", "BASE_URL", str),
    ("api_prefix", "API_PREFIX", str),
    ("headers.http-referer", "HTTP_REFERER", str),
    ("headers.x-title", "X_TITLE", str),
    ("deadlines.total_s", "CLIENT_TIMEOUT", _seconds),
    # Its documents say the first name of each, its programs read the second, which wins.
    ("deadlines.connect_s", "OPEN_TIMEOUT", _seconds),
    ("deadlines.connect_s", "CLIENT_OPEN_TIMEOUT", _seconds),
    ("deadlines.idle_s", "READ_TIMEOUT", _seconds),
    ("deadlines.idle_s", "CLIENT_READ_TIMEOUT", _seconds),
)
