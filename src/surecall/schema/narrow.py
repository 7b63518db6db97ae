"""The part of a large value that is wrong, found without listing every error of the whole."""

from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any, Final, Literal, NamedTuple, cast

from surecall.base.json_values import as_fields, as_list
from surecall.text import render_pointer

from .structure import References, SchemaPath, json_types, members_of

MAX_ERRORS: Final = 50
_MAX_STEPS: Final = 100
_OWN_KEYWORDS: Final = frozenset(
    {"const", "dependentRequired", "enum", "exclusiveMaximum", "exclusiveMinimum", "format"}
    | {"maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength"}
    | {"minProperties", "minimum", "multipleOf", "pattern", "required", "type", "uniqueItems"}
)


class Part(NamedTuple):
    """A part of a value, and the part of the schema that applies to it."""

    path: SchemaPath
    value: Any
    pointer: SchemaPath
    schema: Any
    scope: Literal["whole", "own", "end"] = "whole"
    """List all its errors, only its own, or only its own because nothing inside is wrong."""

    def apply(self, schema: Any, *way: str | int) -> "Part":
        """Return the same value with a schema that is found under this one."""
        return self._replace(pointer=(*self.pointer, *way), schema=schema)

    def enter(self, key: str | int, value: Any, schema: Any, *way: str | int) -> "Part":
        """Return a member or an element of the value with its schema."""
        return Part((*self.path, key), value, (*self.pointer, *way), schema)


def nests_deeper(root: Any, limit: int) -> bool:
    """Tell whether a value holds more than `limit` containers in one another."""
    level: list[Any] = [root] if isinstance(root, dict | list) else []
    for _ in range(limit):
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
        stack += as_fields(value).values() or as_list(value)
        if seen + len(stack) > limit:
            return False
    return True


def narrow(
    schema: dict[str, Any], value: Any, fits: Callable[[str, Any], bool], limit: int
) -> Iterator[Part]:
    """Yield the parts that are wrong: small ones whole, large ones for what they are themselves."""
    references = References(schema)
    large = [Part((), value, (), schema)]
    steps = 0
    while large and steps < _MAX_STEPS:
        steps += 1
        part = large.pop()
        inner = chain(_apply_in_place(part, references), _enter_parts(part))
        wrong = (item for item in inner if not fits(f"#{render_pointer(item.pointer)}", item.value))
        small: list[Part] = []
        found = len(large)
        for item in islice(wrong, MAX_ERRORS):
            (small if has_few_nodes(item.value, limit) else large).append(item)
        ended = not small and len(large) == found
        yield part._replace(scope="end" if ended else "own")
        yield from small


def shallow_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return what a schema says about a value itself, and nothing about what is inside."""
    shallow = {key: value for key, value in schema.items() if key in _OWN_KEYWORDS}
    if schema.get("additionalProperties") is False and "patternProperties" not in schema:
        shallow["properties"] = dict.fromkeys(members_of(schema), True)
        shallow["additionalProperties"] = False
    return shallow


def _apply_in_place(part: Part, references: References) -> Iterator[Part]:
    """Yield the value with the other schemas that apply to it."""
    here = as_fields(part.schema)
    reference = here.get("$ref")
    if isinstance(reference, str):
        pointer, target = references.find(reference)
        if target is not None:
            yield part._replace(pointer=pointer, schema=target)
    for keyword in ("anyOf", "oneOf"):
        branches = enumerate(as_list(here.get(keyword)))
        meant = [(index, item) for index, item in branches if _may_be(item, part.value)]
        if len(meant) == 1:
            yield part.apply(meant[0][1], keyword, meant[0][0])
    for index, item in enumerate(as_list(here.get("allOf"))):
        yield part.apply(item, "allOf", index)


def _enter_parts(part: Part) -> Iterator[Part]:
    """Yield the members or elements of the value that the schema describes."""
    here = as_fields(part.schema)
    members = as_fields(part.value)
    if members:
        properties = members_of(here)
        others = here.get("additionalProperties")
        has_others = isinstance(others, dict) and "patternProperties" not in here
        for key, item in members.items():
            if key in properties:
                yield part.enter(key, item, properties[key], "properties", key)
            elif has_others:
                yield part.enter(key, item, others, "additionalProperties")
    elif isinstance(here.get("items"), dict) and "prefixItems" not in here:
        for index, item in enumerate(as_list(part.value)):
            yield part.enter(index, item, here["items"], "items")


def _may_be(branch: Any, value: Any) -> bool:
    kind = as_fields(branch).get("type")
    return not isinstance(kind, str) or kind in json_types(value)
