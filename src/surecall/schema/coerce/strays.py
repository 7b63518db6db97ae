"""Keys that a schema does not name and says nothing about, given the name they clearly mean."""

from collections.abc import Mapping
from typing import Any, Final, cast

from surecall.base.json_values import as_list

from .parts import PartView, SchemaParts
from .values import match_name
from .walk import Log

_MAX_NODES: Final = 10_000


class StrayKeys:
    """Renames stray keys of a value that fits its schema.

    Where a schema is silent about other keys, tools ignore them: an argument in other capitals
    would be lost. Where it allows them in words, they stay.
    """

    __slots__ = ("_left", "_log", "_parts")

    def __init__(self, parts: SchemaParts, log: Log) -> None:
        self._parts = parts
        self._log = log
        self._left = _MAX_NODES

    def name(self, value: Any, part: Any, path: tuple[str | int, ...] = ()) -> Any:
        """Return the value with the keys that its schema names."""
        self._left -= 1
        if self._left < 0 or value.__class__ not in (dict, list):
            return value
        view = self._view(part, value)
        if view is None:
            return value
        if isinstance(value, list):
            return self._name_in_list(as_list(cast("Any", value)), view, path)
        fields = cast("dict[str, Any]", value)
        names = self._find_names(fields, view) if view.is_silent else {}
        result: dict[str, Any] = {}
        for key, item in fields.items():
            name = names.get(key, key)
            if name is not key:
                self._log.change("rename_key", (*path, key), key, name)
            schema = view.properties.get(name)
            result[name] = item if schema is None else self.name(item, schema, (*path, name))
        return result

    def _name_in_list(self, items: list[Any], view: PartView, path: tuple[str | int, ...]) -> Any:
        first = view.first_items
        return [
            self.name(item, first[index] if index < len(first) else view.items, (*path, index))
            for index, item in enumerate(items)
        ]

    def _view(self, part: Any, value: Any) -> PartView | None:
        """Return what is said about a value; nothing where several parts may be meant."""
        if not isinstance(part, dict):
            return None
        view = self._parts.view(part)
        for _ in range(4):
            if not view.branches:
                return view
            fitting = [branch for branch in view.branches if self._parts.fits(branch, value)]
            if len(fitting) != 1:
                return None
            view = self._parts.view(fitting[0])
        return None

    def _find_names(self, value: Mapping[str, Any], view: PartView) -> dict[str, str]:
        """Return the names that stray keys mean, where one free name is meant by one key."""
        found: dict[str, list[str]] = {}
        for key, item in value.items():
            if key in view.properties:
                continue
            self._left -= len(view.properties)
            meant = match_name(key, view.properties, quoted=True)
            if len(meant) == 1 and meant[0] not in value:
                name = meant[0]
                if self._parts.fits(view.properties[name], item):
                    found.setdefault(name, []).append(key)
        return {keys[0]: name for name, keys in found.items() if len(keys) == 1}
