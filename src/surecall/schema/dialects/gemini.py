"""The subset of OpenAPI 3.0 that Gemini takes; the result accepts at least what was accepted."""

from typing import Any, Final

from .nodes import (
    Losses,
    Node,
    add_remark,
    flatten_root,
    join_choices,
    limits_of,
    resolve_types,
    round_bounds,
    split_null,
    values_of,
)

_FORMATS: Final = {
    "integer": frozenset({"int32", "int64"}),
    "number": frozenset({"double", "float"}),
    "string": frozenset({"date-time", "enum"}),
}
_KEPT: Final = frozenset(
    {"maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength"}
    | {"minProperties", "minimum", "pattern"}
)


def write_gemini(root: Node, losses: Losses) -> dict[str, Any]:
    """Write a schema as Gemini takes it."""
    return _write(flatten_root(root, losses), losses)


def _write(node: Node, losses: Losses) -> dict[str, Any]:
    node = resolve_types(node, losses)
    if node.is_nothing:
        losses.note_nothing(node)
        return dict(node.texts)
    if node.choices:
        rest, has_null = split_null(node)
        if rest.choices is None:
            written = _write(rest, losses)
        else:
            written = join_choices([_write(choice, losses) for choice in rest.choices], rest.texts)
        return {**written, "nullable": True} if has_null else written
    types = [kind for kind in node.types or () if kind != "null"]
    if not types:
        return {**node.texts, "type": "null"} if node.types else dict(node.texts)
    if len(types) == 1:
        written = _write_type(node, types[0], dict(node.texts), losses)
    else:
        written = join_choices([_write_type(node, kind, {}, losses) for kind in types], node.texts)
    return {**written, "nullable": True} if "null" in (node.types or ()) else written


def _write_type(node: Node, kind: str, texts: dict[str, Any], losses: Losses) -> dict[str, Any]:
    wire: dict[str, Any] = {"type": kind}
    values = values_of(node, kind)
    if values is not None:
        if kind == "string" and all(values):
            wire["enum"] = values
        else:
            why = "only non-empty strings can be listed; the description names the values"
            losses.note(node, "enum", why, "weakened")
            add_remark(texts, "one of", values)
    else:
        _write_limits(node, kind, wire, texts, losses)
    if kind == "array":
        wire["items"] = _write(node.items, losses) if node.items else {}
    elif kind == "object":
        _write_object(node, wire, losses)
    return {**wire, **texts}


def _write_limits(
    node: Node, kind: str, wire: dict[str, Any], texts: dict[str, Any], losses: Losses
) -> None:
    limits = limits_of(node, kind)
    if kind == "integer":
        others = {key: value for key, value in limits.items() if not key.endswith("imum")}
        limits = {**others, **round_bounds(limits)}
    for keyword, value in limits.items():
        if keyword in _KEPT or (keyword == "format" and value in _FORMATS.get(kind, ())):
            wire.setdefault(keyword, value)
        elif keyword in {"exclusiveMinimum", "exclusiveMaximum"}:
            plain = keyword.replace("exclusiveM", "m")
            pick = max if plain == "minimum" else min
            wire[plain] = pick(value, wire.get(plain, limits.get(plain, value)))
            losses.note(node, keyword, "the bound itself is allowed", "weakened")
            add_remark(texts, keyword, value)
        else:
            losses.note(node, keyword, f"{keyword} is not supported", "dropped")
            add_remark(texts, keyword, value)


def _write_object(node: Node, wire: dict[str, Any], losses: Losses) -> None:
    if node.additional is not None:
        why = "any other properties are allowed"
        losses.note(node, "additionalProperties", why, "dropped")
    properties = node.properties or {}
    known = [name for name in node.required if name in properties]
    if len(known) < len(node.required):
        losses.note(node, "required", "only described properties can be required", "weakened")
    if properties:
        wire["properties"] = {name: _write(inner, losses) for name, inner in properties.items()}
    if known:
        wire["required"] = known
    if len(properties) > 1:
        first = [name for name in dict.fromkeys(node.ordering) if name in properties]
        wire["propertyOrdering"] = list(dict.fromkeys((*first, *properties)))
