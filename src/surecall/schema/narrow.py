"""The part of a large value that is wrong, found without listing every error of the whole."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Literal, NamedTuple, cast

from surecall.errors import JSONTextError
from surecall.jsontext import parse_pointer, render_pointer, resolve_pointer

__all__ = ["MAX_ERRORS", "Part", "has_few_nodes", "narrow", "nests_deeper", "shallow_schema"]

MAX_ERRORS = 50
_MAX_STEPS = 100
_OWN_KEYWORDS = frozenset(
    {
        "const",
        "dependentRequired",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "pattern",
        "required",
        "type",
        "uniqueItems",
    }
)
_PYTHON_TYPES: dict[str, type | tuple[type, ...]] = {
    "array": list,
    "object": dict,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "integer": (int, float),
    "number": (int, float),
}

_Path = tuple[str | int, ...]


class Part(NamedTuple):
    """A part of a value, and the part of the schema that applies to it."""

    path: _Path
    value: Any
    pointer: _Path
    scope: Literal["whole", "own", "end"] = "whole"
    """List all its errors, only its own, or only its own because nothing inside is wrong."""


def nests_deeper(root: Any, limit: int) -> bool:
    """Tell whether a value holds more than `limit` containers in one another."""
    level: list[Any] = [root] if isinstance(root, dict | list) else []
    for _ in range(limit + 1):
        below: list[Any] = []
        for item in level:
            parts: Any = cast("dict[str, Any]", item).values() if isinstance(item, dict) else item
            below += [part for part in parts if isinstance(part, (dict, list))]
        if not below:
            return False
        level = below
    return True


def has_few_nodes(root: Any, limit: int) -> bool:
    """Tell whether a value has at most so many parts; stops counting beyond."""
    stack = [root]
    seen = 0
    while stack:
        value = stack.pop()
        seen += 1
        if isinstance(value, dict):
            stack.extend(cast(dict[str, Any], value).values())
        elif isinstance(value, list):
            stack.extend(cast(list[Any], value))
        if seen + len(stack) > limit:
            return False
    return True


def narrow(
    schema: dict[str, Any], value: Any, fits: Callable[[str, Any], bool], limit: int
) -> Iterator[Part]:
    """Yield the parts that are wrong: small ones whole, large ones for what they are themselves."""
    large = [Part((), value, ())]
    steps = 0
    while large and steps < _MAX_STEPS:
        steps += 1
        part = large.pop()
        wrong = islice(
            (
                item
                for item in _inner(schema, part)
                if not fits(f"#{render_pointer(item.pointer)}", item.value)
            ),
            MAX_ERRORS,
        )
        small: list[Part] = []
        found = len(large)
        for item in wrong:
            (small if has_few_nodes(item.value, limit) else large).append(item)
        ended = not small and len(large) == found
        yield part._replace(scope="end" if ended else "own")
        yield from small


def shallow_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return what a schema says about a value itself, and nothing about what is inside."""
    shallow = {key: value for key, value in schema.items() if key in _OWN_KEYWORDS}
    if schema.get("additionalProperties") is False and "patternProperties" not in schema:
        shallow["properties"] = dict.fromkeys(_members(schema, "properties"), True)
        shallow["additionalProperties"] = False
    return shallow


def _inner(schema: dict[str, Any], part: Part) -> Iterator[Part]:
    here: Any = resolve_pointer(schema, render_pointer(part.pointer))
    if not isinstance(here, dict):
        return
    here = cast(dict[str, Any], here)
    value: Any = part.value
    items: Any = here.get("items")
    yield from _same_value(schema, here, part)
    if isinstance(value, dict):
        properties = _members(here, "properties")
        others = isinstance(here.get("additionalProperties"), dict)
        for key, item in cast(dict[str, Any], value).items():
            if key in properties:
                yield Part((*part.path, key), item, (*part.pointer, "properties", key))
            elif others and "patternProperties" not in here:
                yield Part((*part.path, key), item, (*part.pointer, "additionalProperties"))
    elif isinstance(value, list) and isinstance(items, dict) and "prefixItems" not in here:
        for index, item in enumerate(cast(list[Any], value)):
            yield Part((*part.path, index), item, (*part.pointer, "items"))


def _same_value(schema: dict[str, Any], here: dict[str, Any], part: Part) -> Iterator[Part]:
    reference = here.get("$ref")
    if isinstance(reference, str) and reference.startswith("#"):
        try:
            target = parse_pointer(reference[1:])
            resolve_pointer(schema, reference[1:])
        except JSONTextError:
            target = None
        if target is not None:
            yield Part(part.path, part.value, target)
    for keyword in ("anyOf", "oneOf"):
        branches = cast(list[Any], here.get(keyword, []))
        meant = [index for index, item in enumerate(branches) if _may_be(item, part.value)]
        if len(meant) == 1:
            yield Part(part.path, part.value, (*part.pointer, keyword, meant[0]))
    for index in range(len(cast(list[Any], here.get("allOf", [])))):
        yield Part(part.path, part.value, (*part.pointer, "allOf", index))


def _may_be(branch: Any, value: Any) -> bool:
    kind = cast(dict[str, Any], branch).get("type") if isinstance(branch, dict) else None
    return not isinstance(kind, str) or isinstance(value, _PYTHON_TYPES.get(kind, object))


def _members(schema: dict[str, Any], keyword: str) -> dict[str, Any]:
    members = schema.get(keyword)
    return cast(dict[str, Any], members) if isinstance(members, dict) else {}
