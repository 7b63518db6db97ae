"""Finds the keys of JSON text that were given differing values."""

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, cast

import msgspec

from .pointer import render_pointer

_MAX_NAMED: Final = 100
_encode: Final = msgspec.json.Encoder(order="sorted").encode


def find_conflicts(text: str) -> tuple[str, ...]:
    """Return the pointers of keys with differing values, in the order of the text.

    Of very many, the first are named.
    """
    left = _MAX_NAMED

    def keep_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal left
        members = dict(pairs)
        if len(members) == len(pairs):
            return members
        # What was said twice in the same words may be forgotten, unless more is inside it.
        has_more = any(value and value.__class__ in _CONTAINERS for _, value in pairs)
        is_differing = left > 0 and bool(_find_differing(pairs))
        left -= is_differing
        return _Repeated(pairs) if is_differing or has_more else members

    tree = json.JSONDecoder(object_pairs_hook=keep_pairs).decode(text)
    found = islice(_walk(tree), _MAX_NAMED) if left < _MAX_NAMED else ()
    return tuple(dict.fromkeys(found))


class _Repeated(dict[str, Any]):
    """An object in which a key was repeated; keeps all that was said."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


_CONTAINERS: Final = frozenset({dict, list, _Repeated})


def _walk(tree: Any) -> Iterator[str]:
    stack: list[tuple[Any, tuple[str | int, ...]]] = [(tree, ())]
    members: Iterable[tuple[Any, Any]]
    while stack:
        node, parts = stack.pop()
        if node.__class__ is list:
            members = enumerate(cast("list[Any]", node))
        elif node.__class__ is _Repeated:
            members = cast("_Repeated", node).pairs
            for key in _find_differing(members):
                yield render_pointer((*parts, key))
        elif node.__class__ is dict:
            members = cast("dict[str, Any]", node).items()
        else:
            continue
        inner = [
            (child, (*parts, key))
            for key, child in members
            if child and child.__class__ in _CONTAINERS
        ]
        if inner:
            stack += inner[::-1]


def _find_differing(pairs: list[tuple[str, Any]]) -> list[str]:
    """Return the keys that were given differing values, in the order of the text."""
    first: dict[str, Any] = {}
    differing: set[str] = set()
    for key, value in pairs:
        known = first.setdefault(key, value)
        if known is not value and key not in differing and not _is_same(known, value):
            differing.add(key)
    return [key for key in first if key in differing] if differing else []


def _is_same(one: Any, other: Any) -> bool:
    """Tell whether two values are written alike, so that `1`, `1.0` and `true` differ.

    What is unlike is told by the first difference: that takes no longer than the smaller is long.
    """
    kind = one.__class__
    if one != other:
        return False
    if kind is float:
        return repr(one) == repr(other)
    if kind not in _CONTAINERS or not one:
        return kind is other.__class__
    try:
        return _encode(one) == _encode(other)
    except UnicodeEncodeError:  # a kept surrogate
        return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
