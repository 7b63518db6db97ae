"""Schemas that must not be compiled: too deep, too large, reaching outside, or exploding."""

from typing import Any, cast
from urllib.parse import unquote

from surecall.errors import Code, JSONTextError, ToolDefinitionError
from surecall.jsontext import render_pointer, resolve_pointer
from surecall.records import clip

from .walk import in_place_schemas, walk_schema

__all__ = ["MAX_SCHEMA_DEPTH", "MAX_SCHEMA_NODES", "refuse_unsafe_schema", "remote_reference"]

MAX_SCHEMA_DEPTH = 64
MAX_SCHEMA_NODES = 5_000
_MAX_EXPANSION = 20_000
_DIALECTS = frozenset(
    {
        "json-schema.org/draft-04/schema",
        "json-schema.org/draft-06/schema",
        "json-schema.org/draft-07/schema",
        "json-schema.org/draft/2019-09/schema",
        "json-schema.org/draft/2020-12/schema",
    }
)
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


def refuse_unsafe_schema(schema: Any) -> None:
    """Raise for a schema that would be dangerous or pointless to compile."""
    if not isinstance(schema, dict):
        raise ToolDefinitionError(
            Code.INVALID_SCHEMA,
            f"A schema is a JSON object, not {type(schema).__name__}.",
            hint='Write {"type": "object", "properties": {...}}.',
        )
    _refuse_size(schema)  # pyright: ignore[reportUnknownArgumentType] - any JSON
    _refuse_dialect(cast(dict[str, Any], schema))
    _refuse_references(cast(dict[str, Any], schema))


def _refuse_size(root: Any) -> None:
    stack: list[tuple[Any, int]] = [(root, 1)]
    nodes = 0
    while stack:
        value, depth = stack.pop()
        nodes += 1
        if depth > MAX_SCHEMA_DEPTH:
            raise ToolDefinitionError(
                Code.INVALID_SCHEMA,
                f"The schema is nested deeper than {MAX_SCHEMA_DEPTH} levels.",
                hint="Flatten it: models fill flat arguments far more reliably.",
            )
        if isinstance(value, dict):
            members = cast(dict[Any, Any], value)
            stack.extend((members[k], depth + 1) for k in members if _is_container(members[k]))
        elif isinstance(value, list):
            stack.extend((item, depth + 1) for item in cast(list[Any], value))
        if nodes + len(stack) > MAX_SCHEMA_NODES:
            raise ToolDefinitionError(
                Code.INVALID_SCHEMA,
                f"The schema has more than {MAX_SCHEMA_NODES} objects and list elements.",
                hint="Split the tool, or pass long lists of choices as text to look up.",
            )


def _is_container(value: Any) -> bool:
    return isinstance(value, dict | list)


def _refuse_dialect(root: dict[str, Any]) -> None:
    dialect = root.get("$schema")
    if not isinstance(dialect, str):
        return
    name = dialect.rstrip("#").removeprefix("https://").removeprefix("http://")
    if name not in _DIALECTS:
        raise ToolDefinitionError(
            Code.INVALID_SCHEMA,
            f"The schema is written in an unknown dialect: {clip(dialect, 120)!r} at /$schema.",
            hint='Leave "$schema" out for draft 2020-12, or name a draft from 4 to 2020-12.',
        )


def _refuse_references(root: dict[str, Any]) -> None:
    budget = _MAX_EXPANSION
    known = {
        f"#{name}": place.schema
        for place in walk_schema(root)
        for keyword in ("$anchor", "$dynamicAnchor")
        if isinstance(name := place.schema.get(keyword), str)
    }
    known["#"] = root
    for place in walk_schema(root):
        for keyword in _REFERENCES:
            reference = place.schema.get(keyword)
            if not isinstance(reference, str):
                continue
            if not reference.startswith("#"):
                raise remote_reference(reference, render_pointer((*place.path, keyword)))
            budget = _spend(known, reference, budget)


def _spend(known: dict[str, dict[str, Any]], reference: str, budget: int) -> int:
    """Follow everything a reference applies to one value; references of references multiply."""
    stack = [reference]
    while stack:
        target = _target(known, stack.pop())
        pending: list[dict[str, Any]] = [target] if isinstance(target, dict) else []
        while pending:
            budget -= 1
            if budget < 0:
                raise ToolDefinitionError(
                    Code.INVALID_SCHEMA,
                    f"The references of the schema never end or multiply: following {reference!r} "
                    f"takes more than {_MAX_EXPANSION} steps.",
                    hint="A $ref must not lead back to itself except through a property or item.",
                )
            schema = pending.pop()
            pending.extend(in_place_schemas(schema))
            inner = schema.get("$ref")
            if isinstance(inner, str) and inner.startswith("#"):
                stack.append(inner)
    return budget


def _target(known: dict[str, dict[str, Any]], reference: str) -> Any:
    if reference in known:
        return known[reference]
    try:
        return resolve_pointer(known["#"], unquote(reference[1:]))
    except JSONTextError:
        return None


def remote_reference(reference: str, place: str) -> ToolDefinitionError:
    """Return the refusal of a reference that leads out of the schema."""
    where = f" at {place}" if place else ""
    return ToolDefinitionError(
        Code.REMOTE_REF_REFUSED,
        f"The schema refers to {clip(reference, 120)!r}{where}, outside of itself; "
        "schemas are never fetched.",
        hint='Copy the schema into "$defs" and refer to it as "#/$defs/Name".',
    )
