"""`--option KEY=VALUE`: a value as TOML writes it, else as text."""

import tomllib
from collections.abc import Iterable, Mapping
from typing import Any, cast

from surecall.errors import Code, ConfigError

__all__ = ["check_options", "parse_options"]


def parse_options(items: Iterable[str]) -> dict[str, Any]:
    """Return the options; a dotted key such as `request_overrides.temperature` is a place inside.

    Raises:
        ConfigError: An item has no `=`, or two of them cannot both be.
    """
    options: dict[str, Any] = {}
    for item in items:
        key, equals, raw = item.partition("=")
        parts = key.strip().split(".")
        if not equals or not all(parts):
            raise ConfigError(
                Code.INVALID_OPTION,
                f"{item!r} is not of the form KEY=VALUE.",
                hint="For example --option max_turns=4 or "
                "--option request_overrides.temperature=0.",
            )
        _put(options, parts, _parse_value(raw.strip()), key)
    return options


def _put(options: dict[str, Any], parts: list[str], value: Any, key: str) -> None:
    place = options
    for part in parts[:-1]:
        inner = place.setdefault(part, {})
        if not isinstance(inner, dict):
            raise ConfigError(
                Code.INVALID_OPTION, f"{key} is given, but {part} has a value already."
            )
        place = cast("dict[str, Any]", inner)
    place[parts[-1]] = value


def _parse_value(raw: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {raw}")
    except (ValueError, RecursionError):
        return raw
    value: Any = parsed.get("value")
    usable = len(parsed) == 1 and isinstance(value, bool | int | float | str | list | dict)
    return cast("Any", value) if usable else raw


def check_options(options: Mapping[str, Any]) -> None:
    """Raise when an option, its value or a transform that it names cannot be used."""
    from surecall.loop import resolve_options
    from surecall.loop.resolve import make_chain
    from surecall.profiles import merge_presets
    from surecall.transforms import TransformRegistry

    merged = merge_presets([("flag", options)])
    resolved = resolve_options(merged.values, merged.origins)
    make_chain(TransformRegistry.builtin(), resolved.options)
