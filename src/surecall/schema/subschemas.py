"""The parts of a schema as coercion needs them: references followed, `allOf` joined, checkable.

A part is any schema inside the whole one, or one made here from several of them. The whole was
compiled before, so its depth and the steps of its references are bounded.
"""

from collections.abc import Iterable
from typing import Any, Final, NamedTuple, cast

from surecall.base.errors import ToolDefinitionError
from surecall.base.json_values import as_list

from .check import SPEAKS_OF_NAMES, SchemaChecker
from .structure import References, json_types, listed_values, members_of

_ANNOTATIONS: Final = frozenset(
    {"$comment", "default", "deprecated", "description", "examples", "readOnly", "title"}
)
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
    is_silent: bool
    """Whether nothing is said about names that are not among the properties."""
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

    __slots__ = ("_checkers", "_references", "_root_checker", "_views", "root")

    def __init__(self, root: dict[str, Any], checker: SchemaChecker) -> None:
        self.root = root
        self._references = References(root)
        self._root_checker = checker
        # By identity; the part is kept beside, so that its identity is not given away.
        self._views: dict[int, tuple[Any, PartView]] = {}
        self._checkers: dict[int, tuple[Any, SchemaChecker | None]] = {}

    @classmethod
    def of(cls, checker: SchemaChecker) -> "SchemaParts":
        """Return the parts of a schema, which whoever compiles the same one finds again.

        Raises:
            ToolDefinitionError: the schema cannot be used.
        """
        made = checker.compile()
        if made.parts is None:
            made.parts = cls(made.schema, checker)
        return made.parts

    def view(self, part: Any) -> PartView:
        """Return what a part says."""
        known = self._views.get(id(part))
        if known is None:
            known = part, _view(self._references.list_facets(part))
            view = known[1]
            if view.branches and view.types is None:
                known = part, view._replace(types=self._types(view.branches))
            self._views[id(part)] = known
        return known[1]

    def fits(self, part: Any, value: Any) -> bool:
        """Tell whether a value fits a part."""
        if part is self.root:
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
            schema = self._references.extract(part)
            if schema is not None:
                checker = SchemaChecker(schema)
                try:
                    checker.compile()
                except ToolDefinitionError:  # larger than the whole, by what it refers to
                    checker = None
            known = self._checkers[id(part)] = part, checker
        return known[1]


def _view(facets: list[dict[str, Any]]) -> PartView:
    types = _common_types(facets)
    options = _common_options(facets, types)
    branches = _branches(facets)
    if not branches and options is None and types is not None and len(types) > 1:
        branches = tuple({"allOf": [*facets, {"type": name}]} for name in sorted(types))
    if options is not None:
        types = frozenset(name for item in options for name in json_types(item))
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
            for name in as_list(facet.get("required"))
            if isinstance(name, str)
        ),
        open_names=_open_names(facets),
        is_silent=not any(SPEAKS_OF_NAMES & facet.keys() for facet in facets),
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
    lists = [found for facet in facets if (found := listed_values(facet)) is not None]
    if not lists:
        return None
    return [
        item
        for item in lists[0]
        if all(item in other for other in lists[1:])
        and (types is None or types.intersection(json_types(item)))
    ]


def _branches(facets: list[dict[str, Any]]) -> tuple[Any, ...]:
    """Return the branches of the first choice, each joined with all that applies beside it."""
    for number, facet in enumerate(facets):
        for keyword in ("anyOf", "oneOf"):
            branches = as_list(facet.get(keyword))
            if not branches:
                continue
            rest = {key: value for key, value in facet.items() if key != keyword}
            beside = [*facets[:number], rest, *facets[number + 1 :]]
            beside = [item for item in beside if item.keys() - _ANNOTATIONS]
            return tuple({"allOf": [*beside, branch]} if beside else branch for branch in branches)
    return ()


def _properties(facets: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, list[Any]] = {}
    for facet in facets:
        for name, schema in members_of(facet).items():
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
