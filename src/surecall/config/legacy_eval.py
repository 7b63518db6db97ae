"""The variables of the experiment that surecall's evals come from, read as options of today.

A variable that is not set, or blank, says nothing. A value that cannot be used is an error; the
original took some of them for another. What has no meaning here any more is listed in `notes`.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

from msgspec import Struct

from surecall.errors import ConfigError, JSONTextError, invalid_config
from surecall.jsontext import decode

__all__ = ["LegacyEval", "read_legacy_eval"]

_PREFIX: Final = "OPENROUTER_"
_FULL_PROFILES: Final = "default,recommended,conversation,creative,tool_calling"
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
    "PRODUCTION_AUTO_SAMPLING_PROFILE": "no profile is chosen by itself; "
    "name it in the profiles, such as default,recommended",
    "REPORT_DIR": "reports are made of a stored run",
    "RUN_LANGUAGE_POLICY_EVAL": "there is no language policy",
}


class LegacyEval(Struct, frozen=True, kw_only=True):
    """What the variables say."""

    axes: dict[str, Any] = {}
    """Fields of `Axes`."""
    options: dict[str, Any] = {}
    """Options of every run."""
    settings: dict[str, Any] = {}
    """Settings of the configuration, by dotted key."""
    concurrency: int | None = None
    origins: dict[str, str] = {}
    """The variable behind each field, option and setting."""
    notes: tuple[str, ...] = ()
    """Variables that are set and change nothing, and why."""


def read_legacy_eval(environ: Mapping[str, str] | None = None) -> LegacyEval:
    """Read the variables; those of the process by default.

    Raises:
        ConfigError: `INVALID_CONFIG` for a value that cannot be used.
    """
    variables = os.environ if environ is None else environ
    reader = _Reader(
        {
            name.removeprefix(_PREFIX): value.strip()
            for name, value in variables.items()
            if name.startswith(_PREFIX) and value.strip()
        }
    )
    _read_axes(reader)
    _read_options(reader)
    _read_request(reader)
    _read_settings(reader)
    jobs = reader.read("JOBS", _count)
    return LegacyEval(
        axes=reader.axes,
        options=reader.options,
        settings=reader.settings,
        concurrency=jobs,
        origins=reader.origins,
        notes=tuple(reader.notes()),
    )


class _Reader:
    """Values by the part of their name behind `OPENROUTER_`, and what was made of them."""

    def __init__(self, values: dict[str, str]) -> None:
        self._values = values
        self.axes: dict[str, Any] = {}
        self.options: dict[str, Any] = {}
        self.settings: dict[str, Any] = {}
        self.origins: dict[str, str] = {}

    def read(self, name: str, parse: Callable[[str], Any]) -> Any:
        """Return a value, or `None` when it is not set."""
        text = self._values.get(name)
        if text is None:
            return None
        try:
            return parse(text)
        except ValueError as error:
            raise _refuse(name, text, str(error)) from None

    def put(
        self, target: dict[str, Any], key: str, name: str, parse: Callable[[str], Any] = str
    ) -> None:
        """Keep a value under a key, if it is set."""
        value = self.read(name, parse)
        if value is not None:
            target[key] = value
            self.origins[key] = f"{_PREFIX}{name}"

    def notes(self) -> Iterator[str]:
        """List the variables that change nothing."""
        for name, why in _NOTES.items():
            if name in self._values:
                yield f"{_PREFIX}{name} changes nothing: {why}."


def _refuse(name: str, text: str, wanted: str) -> ConfigError:
    return invalid_config(f"{_PREFIX}{name} must be {wanted}, not {text!r}.")


def _read_axes(reader: _Reader) -> None:
    axes = reader.axes
    if _is_full(reader):
        axes |= {
            "trials": 10,
            "models": "all",
            "profiles": _FULL_PROFILES,
            "scenarios": "all",
            "strategies": "raw,baseline,production",
        }
    reader.put(axes, "trials", "TRIALS", _count)
    reader.put(axes, "models", "MODEL_FILTER")
    reader.put(axes, "scenarios", "SCENARIOS")
    reader.put(axes, "profiles", "SAMPLING_PROFILE_FILTER")
    reader.put(axes, "enforce_applicability", "SAMPLING_PROFILE_ENFORCE_APPLICABILITY", _flag)
    reader.put(axes, "strategies", "STRATEGY_FILTER")
    if reader.read("STRATEGY_MATRIX", _flag):
        reader.put(axes, "strategies", "STRATEGY_MATRIX", lambda _: "baseline,production")
    if reader.read("ENABLE_CONTENT_TAG_TOOL_CALL_FALLBACK", _flag):
        reader.put(axes, "fallbacks", "ENABLE_CONTENT_TAG_TOOL_CALL_FALLBACK", lambda _: "on")
    if reader.read("FALLBACK_MATRIX", _flag):
        reader.put(axes, "fallbacks", "FALLBACK_MATRIX", lambda _: "both")


def _is_full(reader: _Reader) -> bool:
    preset = reader.read("EVAL_PRESET", _one_of("full", "all"))
    return preset is not None or bool(reader.read("EVAL_FULL", _flag))


def _read_options(reader: _Reader) -> None:
    options = reader.options
    reader.put(
        options, "tool_use_mode", "TOOL_USE_MODE", _one_of("enforced", "relaxed", "disabled")
    )
    reader.put(options, "tool_failure_policy", "TOOL_FAILURE_POLICY", _one_of("fatal", "tolerated"))
    reader.put(options, "fallback_retry_count", "TOOL_CALLING_FALLBACK_RETRY_COUNT", _count_or_none)
    reader.put(options, "fix_empty_final", "FIX_EMPTY_FINAL", _flag)
    reader.put(options, "tool_allowlist", "TOOL_ALLOWLIST", _allowlist)


def _read_request(reader: _Reader) -> None:
    """Read what goes into the body of requests."""
    defaults: dict[str, Any] = {}
    overrides: dict[str, Any] = {}
    routing: dict[str, Any] = {}
    defaults |= reader.read("LLM_OPTIONS_DEFAULTS_JSON", _object) or {}
    for name, parse in (("TEMPERATURE", _number), ("TOP_P", _number), ("MIN_P", _number)):
        reader.put(defaults, name.lower(), name, parse)
    reader.put(defaults, "top_k", "TOP_K", _count)
    overrides |= reader.read("REQUEST_OVERRIDES_JSON", _object) or {}
    reader.put(overrides, "route", "ROUTE")
    reader.put(overrides, "transforms", "TRANSFORMS", _transforms)
    for name in ("ONLY", "ORDER", "IGNORE"):
        reader.put(routing, name.lower(), f"PROVIDER_{name}", _list)
    if routing:
        given = overrides.get("provider")
        inner = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
        overrides["provider"] = {**inner, **routing}
    if defaults:
        reader.options["request_defaults"] = defaults
    if overrides:
        reader.options["request_overrides"] = overrides


def _read_settings(reader: _Reader) -> None:
    settings = reader.settings
    reader.put(settings, "base_url", "BASE_URL")
    if "base_url" in settings and not settings["base_url"].rstrip("/").endswith("/v1"):
        settings["api_prefix"] = "/v1"
    reader.put(settings, "api_prefix", "API_PREFIX")
    reader.put(settings, "headers.http-referer", "HTTP_REFERER")
    reader.put(settings, "headers.x-title", "X_TITLE")
    reader.put(settings, "deadlines.total_s", "CLIENT_TIMEOUT", _seconds)
    reader.put(settings, "deadlines.connect_s", "CLIENT_OPEN_TIMEOUT", _seconds)
    reader.put(settings, "deadlines.idle_s", "CLIENT_READ_TIMEOUT", _seconds)


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


def _decode(text: str) -> Any:
    try:
        return decode(text)
    except JSONTextError:
        return None


def _number(text: str) -> float:
    value = _decode(text)
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
    value = _decode(text)
    if not isinstance(value, dict):
        raise ValueError("a JSON object")
    return cast("dict[str, Any]", value)


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in choices:
            raise ValueError(f"one of {', '.join(choices)}")
        return text.lower()

    return parse
