"""The fields that a patch is aimed at, however a model writes them down."""

import re
from collections.abc import Collection, Iterator
from typing import Any, Final

from surecall.base.json_values import as_fields, as_list
from surecall.evals.as_made import MadeCall

_PATH: Final = re.compile(r'"path\\{0,3}"\s{0,8}:\s{0,8}\\{0,3}"([^"\\]{0,200})')
_AROUND_WORDS: Final = "\"',;:()[]{}"
_SEPARATORS: Final = re.compile(r"[/.$#\[\]'\"\\]++")
_BASE_KEYS: Final = ("path", "pointer")
_FIELD_KEYS: Final = ("key", "field", "property", "name")
_PATH_KEYS: Final = frozenset({"path", "pointer", "from", "field", "key", "target", "property"})
"""Keys under which models name what a patch is to change."""
_NO_AIMS: Final = frozenset({"workspace_id", "request_id", "select", "value", "op", "index"})
"""Keys whose values aim at nothing."""
_POINTERS: Final = ("/", "#/")
_MAX_DEPTH: Final = 4


def path_parts(path: str) -> tuple[str, ...]:
    """Return the parts of a path in lower case, whatever separates them."""
    return tuple(part for part in _SEPARATORS.split(path.strip().lower()) if part)


def paths_of(made: MadeCall, fields: Collection[str] = ()) -> list[str]:
    """Return the paths that a patch is aimed at, also where its arguments cannot be used.

    Args:
        made: The call.
        fields: Names of fields that count as a path wherever they are a key or a value.
    """
    if not made.arguments:
        words = (word.strip(_AROUND_WORDS) for word in made.raw.split())
        return _PATH.findall(made.raw) or [word for word in words if word.startswith("/")]
    return list(dict.fromkeys(_list_aims(made.arguments, fields)))


def _list_aims(arguments: dict[str, Any], fields: Collection[str]) -> Iterator[str]:
    for key, value in arguments.items():
        if key in fields:
            yield key
        if key == "ops" and isinstance(value, dict) and _PATH_KEYS.isdisjoint(as_fields(value)):
            yield from _list_leaves(as_fields(value), "", _MAX_DEPTH)
        else:
            yield from _list_paths(key, value, fields, _MAX_DEPTH)


def _list_leaves(value: dict[str, Any], base: str, depth: int) -> Iterator[str]:
    """Return the paths of an object that has the shape of what is changed."""
    for name, item in value.items():
        if name in _NO_AIMS:
            continue
        path = name if name.startswith(_POINTERS) else f"{base}/{name}"
        inner = as_fields(item) if isinstance(item, dict) and depth > 0 else {}
        if inner:
            yield from _list_leaves(inner, path, depth - 1)
        else:
            yield path


def _list_paths(key: str, value: Any, fields: Collection[str], depth: int) -> Iterator[str]:
    if key in _NO_AIMS or depth <= 0:
        return
    if isinstance(value, dict):
        members = as_fields(value)
        yield from (name for name in members if name in fields or name.startswith(_POINTERS))
        whole, used = _join_field(members)
        yield from whole
        for name, item in members.items():
            if name not in used:
                yield from _list_paths(name, item, fields, depth - 1)
    elif isinstance(value, list):
        items = as_list(value)
        if key in _PATH_KEYS and _are_parts(items):
            yield "/".join(items)
            return
        for item in items:
            yield from _list_paths(key if isinstance(item, str) else "", item, fields, depth - 1)
    elif isinstance(value, str):
        if key in _PATH_KEYS or path_parts(value)[-1:] in {(field,) for field in fields}:
            yield value
        else:
            yield from (word for word in value.split() if word.startswith(_POINTERS))


def _join_field(operation: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the path that an operation gives as a base and a field, and the keys it uses."""
    bases = [key for key in _BASE_KEYS if isinstance(operation.get(key), str)]
    names = [key for key in _FIELD_KEYS if isinstance(operation.get(key), str)]
    if len(bases) != 1 or len(names) != 1 or operation[names[0]].startswith(_POINTERS):
        return [], []
    return [f"{operation[bases[0]]}/{operation[names[0]]}"], [*bases, *names]


def _are_parts(items: list[Any]) -> bool:
    """Tell whether a list is one path in parts, and not several paths."""
    return all(isinstance(item, str) and len(path_parts(item)) == 1 for item in items)
