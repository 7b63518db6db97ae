"""What `Annotated` says about a type, as keywords of a schema.

Anything with attributes named `ge`, `gt`, `le`, `lt`, `multiple_of`, `min_length`, `max_length`,
`pattern` or `description` counts, so that annotated_types, msgspec and pydantic all work without
being imported.
"""

from collections.abc import Iterable
from typing import Any, cast

from msgspec import Struct

from .defaults import render_default

__all__ = ["Constraints", "apply_constraints", "read_constraints"]

_KEYWORDS: dict[str, dict[str, str]] = {
    "ge": {"integer": "minimum", "number": "minimum"},
    "gt": {"integer": "exclusiveMinimum", "number": "exclusiveMinimum"},
    "le": {"integer": "maximum", "number": "maximum"},
    "lt": {"integer": "exclusiveMaximum", "number": "exclusiveMaximum"},
    "multiple_of": {"integer": "multipleOf", "number": "multipleOf"},
    "min_length": {"string": "minLength", "array": "minItems", "object": "minProperties"},
    "max_length": {"string": "maxLength", "array": "maxItems", "object": "maxProperties"},
    "pattern": {"string": "pattern"},
}


class Constraints(Struct, frozen=True):
    """What was said about a type beside the type itself."""

    description: str = ""
    limits: dict[str, Any] = {}
    """By the attribute they came from, such as `ge`."""
    keywords: dict[str, Any] = {}
    """Keywords to add as they are."""


def read_constraints(metadata: Iterable[Any]) -> Constraints:
    """Read the metadata of an `Annotated` type; objects that say nothing are passed over."""
    texts: list[str] = []
    limits: dict[str, Any] = {}
    keywords: dict[str, Any] = {}
    for item in _flat(metadata):
        if isinstance(item, str):
            texts.append(item)
            continue
        said = (getattr(item, attribute, None) for attribute in ("description", "documentation"))
        texts.extend(text for text in said if isinstance(text, str))
        for attribute in _KEYWORDS:
            if (limit := getattr(item, attribute, None)) is not None:
                limits[attribute] = limit
        examples = getattr(item, "examples", None)
        if isinstance(examples, list) and (rendered := render_default(examples)) is not None:
            keywords["examples"] = rendered.value
        if isinstance(extra := getattr(item, "extra_json_schema", None), dict):
            keywords.update(cast(dict[str, Any], extra))
    return Constraints(" ".join(" ".join(texts).split()), limits, keywords)


def apply_constraints(schema: dict[str, Any], constraints: Constraints) -> str | None:
    """Add the constraints to a schema in place; return the first one that does not fit, or None."""
    for attribute, limit in constraints.limits.items():
        if not _fits(attribute, limit):
            return f"{attribute}={limit!r}"
        branches = [branch for branch in _branches(schema) if _keyword(attribute, branch)]
        if not branches:
            return f"{attribute}={limit!r}"
        for branch in branches:
            branch[_keyword(attribute, branch)] = getattr(limit, "pattern", limit)
    if constraints.description:
        schema["description"] = constraints.description
    schema.update(constraints.keywords)
    return None


def _flat(metadata: Iterable[Any]) -> Iterable[Any]:
    for item in metadata:
        yield item
        # A pydantic field keeps its limits in a list of its own.
        inner = getattr(item, "metadata", None)
        if isinstance(inner, list):
            yield from inner


def _fits(attribute: str, limit: Any) -> bool:
    if attribute == "pattern":
        return isinstance(getattr(limit, "pattern", limit), str)
    return isinstance(limit, int | float) and not isinstance(limit, bool)


def _branches(schema: dict[str, Any]) -> list[dict[str, Any]]:
    return schema.get("anyOf", [schema])


def _keyword(attribute: str, branch: dict[str, Any]) -> str:
    kind = branch.get("type")
    return _KEYWORDS[attribute].get(kind, "") if isinstance(kind, str) else ""
