"""Laying sets of options over each other, and keeping account of where each value came from."""

from collections.abc import Collection, Iterable, Mapping
from copy import deepcopy
from typing import Any, Final, NamedTuple, cast

from surecall.base.errors import Code, ConfigError, did_you_mean, invalid_config
from surecall.base.redaction import excerpt

from .catalog import canonical_name
from .entries import LIST_FIELDS, OBJECT_FIELDS, PRESET_FIELDS

_REMOVE: Final = "!"
_OPTION_LIST: Final = "surecall docs explain --list --kind option"
REQUEST_FIELDS: Final = frozenset(
    {
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_output_tokens",
        "min_p",
        "parallel_tool_calls",
        "presence_penalty",
        "reasoning",
        "reasoning_effort",
        "repetition_penalty",
        "response_format",
        "service_tier",
        "thinking",
        "top_k",
        "top_p",
        "user",
        "verbosity",
    }
)
"""Body fields that callers of SDKs know as arguments."""

Path = tuple[str, ...]


class Merged(NamedTuple):
    """Merged options, and the origin of every field, list item and nested key."""

    values: dict[str, Any]
    origins: dict[str, str]
    """Keys are dotted, such as `tool_use_mode`, `tool_allowlist.search` or
    `request_overrides.provider.order`; a part that holds a dot itself is quoted."""


def merge_presets(
    layers: Iterable[tuple[str, Mapping[str, Any]]],
    *,
    fields: Collection[str] = PRESET_FIELDS,
) -> Merged:
    """Merge layers of options from left to right.

    Each layer is an origin and the options it sets. Objects are merged key by key; lists become
    unions in order, where an empty list clears and an item such as `"!name"` takes `name` out;
    null sets null; anything else replaces what was there.
    """
    merger = _Merger()
    for origin, layer in layers:
        for field, value in layer.items():
            if field not in fields:
                hint = did_you_mean(field, fields, listed_by=_OPTION_LIST)
                if field in REQUEST_FIELDS:
                    hint = f"It is a field of the request: write request_overrides.{field}."
                raise ConfigError(
                    Code.UNKNOWN_OPTION,
                    f"there is no option {field!r} (from {origin}).",
                    hint=hint,
                )
            merger.add(origin, field, value)
    origins = {_dotted(path): origin for path, origin in merger.origins.items()}
    return Merged(merger.values, origins)


def deep_merge(base: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return both objects merged key by key; arrays and scalars of `new` replace."""
    merger = _Merger()
    field = "request_overrides"
    merger.add("", field, base)
    merger.add("", field, new)
    return merger.values[field]


class _Merger:
    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.origins: dict[Path, str] = {}

    def add(self, origin: str, field: str, value: Any) -> None:
        if value is None:
            self._replace(origin, self.values, (field,), None)
        elif field in LIST_FIELDS:
            self._add_list(origin, field, _items(origin, field, value))
        elif field in OBJECT_FIELDS:
            if not isinstance(value, Mapping):
                raise _wrong_type(origin, field, value, "an object")
            self._add_object(origin, self.values, (field,), cast("Mapping[str, Any]", value))
        else:
            self._replace(origin, self.values, (field,), value)

    def _replace(self, origin: str, target: dict[str, Any], path: Path, value: Any) -> None:
        target[path[-1]] = deepcopy(value)
        self._forget(path)
        self.origins[path] = origin

    def _forget(self, path: Path) -> None:
        """Drop what is known about a place and everything below it."""
        for known in [known for known in self.origins if known[: len(path)] == path]:
            del self.origins[known]

    def _add_object(
        self, origin: str, target: dict[str, Any], path: Path, new: Mapping[str, Any]
    ) -> None:
        base = target.get(path[-1])
        if not isinstance(base, dict):
            self._replace(origin, target, path, {})
            base = target[path[-1]]
        if new:
            self.origins.pop(path, None)  # an empty object has an origin, a filled one has many
        base = cast("dict[str, Any]", base)
        for key, value in new.items():
            if isinstance(value, Mapping):
                self._add_object(origin, base, (*path, key), cast("Mapping[str, Any]", value))
            else:
                self._replace(origin, base, (*path, key), value)

    def _add_list(self, origin: str, field: str, new: list[str]) -> None:
        current: list[str] = self.values.get(field) or []
        adds = any(not item.startswith(_REMOVE) for item in new)
        if not new:
            self._replace(origin, self.values, (field,), [])
            return
        if not current and not adds:
            return
        result = list(current)
        for item in new:
            name = item.removeprefix(_REMOVE)
            removes = item.startswith(_REMOVE)
            if removes and name in result:
                result.remove(name)
                self.origins.pop((field, name), None)
            elif not removes and name not in result:
                result.append(name)
                self.origins[field, name] = origin
        if field == "tool_allowlist" and current and not result:
            raise invalid_config(
                f"{origin} takes the last tool out of tool_allowlist: every tool would be allowed.",
                "Use tool_use_mode 'disabled' to allow none, or an empty list to allow all.",
            )
        self.values[field] = result
        self.origins[field,] = origin


def _items(origin: str, field: str, value: Any) -> list[str]:
    """Return a list field's items; a comma-separated string is a list too."""
    if isinstance(value, str):
        value = value.split(",")
    if not isinstance(value, list | tuple):
        raise _wrong_type(origin, field, value, "a list of names")
    items: list[str] = []
    for item in cast("list[Any]", value):
        name = item.strip() if isinstance(item, str) else ""
        removes = name.startswith(_REMOVE)
        name = name.removeprefix(_REMOVE).strip()
        if not name:
            raise _wrong_type(origin, field, item, "a list of names")
        if field.endswith("_transforms"):
            name = canonical_name(name)
        items.append(_REMOVE + name if removes else name)
    return items


def _wrong_type(origin: str, field: str, value: Any, expected: str) -> ConfigError:
    place = "" if origin == "caller" else f" (from {origin})"
    return invalid_config(
        f"{field}{place} must be {expected}, not {excerpt(repr(value), 60)}.",
        "An empty list clears, null means unset.",
    )


def _dotted(path: Path) -> str:
    return ".".join(f'"{part}"' if "." in part or not part else part for part in path)
