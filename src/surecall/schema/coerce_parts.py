"""The parts of a schema as coercion needs them: references followed, `allOf` joined, checkable.

A part is any schema inside the whole one, or one made here from several of them. The whole was
compiled before, so its depth and the steps of its references are bounded.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple, cast
from urllib.parse import unquote

import msgspec

from surecall.errors import JSONTextError, ToolDefinitionError
from surecall.jsontext import resolve_pointer

from .check import SchemaChecker
from .walk import walk_schema

__all__ = ["PartView", "SchemaParts", "find_facets", "resolve_reference"]

_ANNOTATIONS: Final = frozenset(
    {"$comment", "default", "deprecated", "description", "examples", "readOnly", "title"}
)
_JOINED: Final = ("$ref", "allOf", "$defs", "definitions", "$schema", "$id")
_NOT_PORTABLE: Final = ("$id", "id", "$dynamicRef", "$recursiveRef")
_CLASSES: Final[dict[str, tuple[type, ...]]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "null": (type(None),),
    "number": (int, float),
    "object": (dict,),
    "string": (str,),
}


class PartView(NamedTuple):
    """What one part says about a value."""

    kind: str | None
    """The one type allowed; None when any is, or when there are branches."""
    options: list[Any] | None
    """The values allowed, from `enum` or `const`."""
    format_name: str | None
    properties: dict[str, Any]
    required: frozenset[str]
    open_names: Any
    """Schema of names that are not among the properties: `True` and `False` are schemas too."""
    pattern_names: dict[str, Any] | None
    """Part that accepts just the names that `patternProperties` speaks of."""
    first_items: list[Any]
    items: Any
    branches: tuple[Any, ...]
    """Parts of which one must fit: of `anyOf` or `oneOf`, or one for each of several types."""
    types: frozenset[str] | None
    """Every type that may be allowed, branches included; None when any may be."""
    is_plain: bool
    """Whether its one type is all it says."""


class SchemaParts:
    """Looks at the parts of one schema and checks values against them; remembers both."""

    __slots__ = ("_checkers", "_root", "_root_checker", "_views")

    def __init__(self, root: dict[str, Any], checker: SchemaChecker) -> None:
        self._root = root
        self._root_checker = checker
        # By identity; the part is kept beside, so that its identity is not given away.
        self._views: dict[int, tuple[Any, PartView]] = {}
        self._checkers: dict[int, tuple[Any, SchemaChecker | None]] = {}

    def view(self, part: Any) -> PartView:
        """Return what a part says."""
        known = self._views.get(id(part))
        if known is None:
            known = part, _view(find_facets(part, self._root))
            view = known[1]
            if view.branches and view.types is None:
                known = part, view._replace(types=self._types(view.branches))
            self._views[id(part)] = known
        return known[1]

    def fits(self, part: Any, value: Any) -> bool:
        """Tell whether a value fits a part."""
        if part is self._root:
            return self._root_checker.is_valid(value)
        if not isinstance(part, dict):
            return part is not False
        view = self.view(part)  # pyright: ignore[reportUnknownArgumentType] - any schema
        if view.is_plain and view.kind is not None:
            if value.__class__ in _CLASSES[view.kind]:
                return True
            if view.kind != "integer" or value.__class__ is not float:
                return False
        checker = self._checker(cast("dict[str, Any]", part))
        return checker is not None and checker.is_valid(value)

    def _types(self, branches: Iterable[Any]) -> frozenset[str] | None:
        found: set[str] = set()
        for branch in branches:
            types = self.view(branch).types
            if types is None:
                return None
            found |= types
        return frozenset(found)

    def _checker(self, part: dict[str, Any]) -> SchemaChecker | None:
        known = self._checkers.get(id(part))
        if known is None:
            checker = None
            schema = self._standalone(part)
            if schema is not None:
                checker = SchemaChecker(schema)
                try:
                    checker.compile()
                except ToolDefinitionError:  # larger than the whole, by what it refers to
                    checker = None
            known = self._checkers[id(part)] = part, checker
        return known[1]

    def _standalone(self, part: dict[str, Any]) -> dict[str, Any] | None:
        """Return a part as a schema of its own, with all that it refers to."""
        names: dict[str, str] = {}
        copies: list[dict[str, Any]] = []
        pending: list[Any] = [part]
        while pending:
            copy: Any = msgspec.to_builtins(pending.pop(0))
            if not isinstance(copy, dict):
                return None
            copies.append(cast("dict[str, Any]", copy))
            for place in walk_schema(copies[-1]):
                schema = place.schema
                for keyword in ("$anchor", "$defs", "$schema", "definitions"):
                    schema.pop(keyword, None)
                reference = schema.get("$ref")
                if isinstance(reference, str):
                    if reference not in names:
                        names[reference] = f"#/$defs/{len(names)}"
                        pending.append(resolve_reference(self._root, reference))
                    schema["$ref"] = names[reference]
                if not place.path:
                    schema.pop("$id", None)
                if any(word in schema for word in _NOT_PORTABLE):
                    return None
        whole = copies[0]
        if len(copies) > 1:
            whole["$defs"] = {str(number): item for number, item in enumerate(copies[1:])}
        if "$schema" in self._root:
            whole["$schema"] = self._root["$schema"]
        return whole


def resolve_reference(root: dict[str, Any], reference: str) -> Any:
    """Return the schema that a local reference leads to, or None."""
    pointer = unquote(reference[1:])
    if not reference.startswith("#"):
        return None
    if pointer and not pointer.startswith("/"):
        places = (place.schema for place in walk_schema(root))
        return next((schema for schema in places if schema.get("$anchor") == pointer), None)
    try:
        return resolve_pointer(root, pointer)
    except JSONTextError:
        return None


def find_facets(part: Any, root: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the schemas that all apply where a part does: itself, `$ref` and `allOf` followed."""
    facets: list[dict[str, Any]] = []
    seen: set[str] = set()
    stack: list[Any] = [part]
    while stack:
        item = stack.pop()
        if not isinstance(item, dict):
            continue
        schema = cast("dict[str, Any]", item)
        rest = {key: schema[key] for key in schema if key not in _JOINED}
        if rest:
            facets.append(rest if len(rest) < len(schema) else schema)
        joined = schema.get("allOf")
        if isinstance(joined, list):
            stack.extend(reversed(cast("list[Any]", joined)))
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference not in seen:
            seen.add(reference)
            stack.append(resolve_reference(root, reference))
    return facets


def _view(facets: list[dict[str, Any]]) -> PartView:
    types = _common_types(facets)
    options = _common_options(facets, types)
    branches = _branches(facets)
    if not branches and options is None and types is not None and len(types) > 1:
        branches = tuple({"allOf": [*facets, {"type": name}]} for name in sorted(types))
    if options is not None:
        types = _types_of(options)
    own = [set(facet) - _ANNOTATIONS for facet in facets]
    single = types is not None and len(types) == 1 and not branches and options is None
    return PartView(
        kind=next(iter(types)) if single and types else None,
        options=None if branches else options,
        format_name=_first(facets, "format", str),
        properties=_properties(facets),
        required=frozenset(
            name
            for facet in facets
            for name in cast("list[Any]", facet.get("required") or [])
            if isinstance(name, str)
        ),
        open_names=_open_names(facets),
        pattern_names=_pattern_names(facets),
        first_items=_first(facets, "prefixItems", list) or _first(facets, "items", list) or [],
        items=_first(facets, "items", dict),
        branches=branches,
        types=types,
        is_plain=single and all(words <= {"type"} for words in own),
    )


def _first(facets: list[dict[str, Any]], keyword: str, kind: type) -> Any:
    return next((facet[keyword] for facet in facets if isinstance(facet.get(keyword), kind)), None)


def _common_types(facets: list[dict[str, Any]]) -> frozenset[str] | None:
    common: set[str] | None = None
    for facet in facets:
        word = facet.get("type")
        if word is None:
            continue
        names = {word} if isinstance(word, str) else set(cast("list[str]", word))
        if "number" in names:
            names.add("integer")
        common = names if common is None else common & names
    if common and "number" in common:
        common.discard("integer")
    return None if common is None else frozenset(common)


def _common_options(facets: list[dict[str, Any]], types: frozenset[str] | None) -> list[Any] | None:
    """Return the values that every `enum` and `const` allows and the types do not rule out."""
    lists = [found for facet in facets if (found := _options(facet)) is not None]
    if not lists:
        return None
    return [
        item
        for item in lists[0]
        if all(item in other for other in lists[1:])
        and (types is None or types & _types_of([item]))
    ]


def _options(facet: dict[str, Any]) -> list[Any] | None:
    if "const" in facet:
        return [facet["const"]]
    options = facet.get("enum")
    return cast("list[Any]", options) if isinstance(options, list) else None


def _types_of(options: list[Any]) -> frozenset[str]:
    found: set[str] = set()
    for item in options:
        found.update(name for name, kinds in _CLASSES.items() if item.__class__ in kinds)
    return frozenset(found)


def _branches(facets: list[dict[str, Any]]) -> tuple[Any, ...]:
    """Return the branches of the first choice, each joined with all that applies beside it."""
    for number, facet in enumerate(facets):
        for keyword in ("anyOf", "oneOf"):
            branches = facet.get(keyword)
            if not isinstance(branches, list) or not branches:
                continue
            rest = {key: value for key, value in facet.items() if key != keyword}
            beside = [*facets[:number], rest, *facets[number + 1 :]]
            beside = [item for item in beside if item.keys() - _ANNOTATIONS]
            return tuple(
                {"allOf": [*beside, branch]} if beside else branch
                for branch in cast("list[Any]", branches)
            )
    return ()


def _properties(facets: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, list[Any]] = {}
    for facet in facets:
        properties = facet.get("properties")
        if isinstance(properties, dict):
            for name, schema in cast("dict[str, Any]", properties).items():
                found.setdefault(name, []).append(schema)
    return {
        name: schemas[0] if len(schemas) == 1 else {"allOf": schemas}
        for name, schemas in found.items()
    }


def _open_names(facets: list[dict[str, Any]]) -> Any:
    found: Any = True
    for facet in facets:
        for keyword in ("additionalProperties", "unevaluatedProperties"):
            schema = facet.get(keyword, True)
            if schema is False:
                return False
            if schema is not True:
                found = schema
    return found


def _pattern_names(facets: list[dict[str, Any]]) -> dict[str, Any] | None:
    patterns = _first(facets, "patternProperties", dict)
    if not patterns:
        return None
    return {"patternProperties": dict.fromkeys(patterns, True), "additionalProperties": False}
