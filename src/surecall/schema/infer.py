"""JSON Schema from Python: callables and types become schemas that every provider accepts.

Everything is written in place; only recursive types use `$defs` and `$ref`.
"""

import copy
import typing
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, cast

from surecall.base.errors import Code, ToolDefinitionError

from .docstrings import parse_docstring
from .fields import (
    LEAVES,
    MAPPINGS,
    NO_DEFAULT,
    SEQUENCES,
    SETS,
    Field,
    alias_value,
    apply_constraints,
    enum_members,
    fields_of,
    is_pydantic_model,
    parameters_of,
    read_constraints,
    render_default,
    type_name,
    union_members,
    unwrap_annotation,
    written_docstring,
)
from .structure import References

_SUPPORTED = (
    "Use str, int, float, bool, list, dict[str, ...], Literal, an Enum, a dataclass, a TypedDict, "
    "a Struct or a pydantic model."
)
_BuildOnce = Callable[[Any, str, Callable[[], dict[str, Any]]], dict[str, Any]]

_DATA = frozenset({"default", "enum", "examples", "required"})
_DROPPED = frozenset({"$defs", "discriminator", "title"})
# How pydantic starts the pattern of a Decimal; engines without look-around refuse it.
_LOOK_AHEAD = "(?!^[-+.]*$)"


def infer_parameters(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the schema of the arguments a model may pass to a callable."""
    name = getattr(function, "__name__", type(function).__name__)
    inference = _Inference(f"of {name}")
    schema = inference.record(parameters_of(function))
    return inference.finish(schema)


def infer_schema(annotation: Any) -> dict[str, Any]:
    """Return the schema of a type."""
    inference = _Inference()
    return inference.finish(inference.schema(annotation))


class _Inference:
    """One walk over types; knows where it is, and which types refer to themselves."""

    def __init__(self, owner: str = "") -> None:
        self._owner = owner
        self._place: list[str] = []
        self._open: set[Any] = set()
        self._names: dict[Any, str] = {}
        self._defs: dict[str, Any] = {}

    def finish(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Put the definitions of recursive types where references look for them."""
        return {**schema, "$defs": self._defs} if self._defs else schema

    def schema(self, annotation: Any) -> dict[str, Any]:
        """Return the schema of a type with all that `Annotated` says about it."""
        bare, metadata = unwrap_annotation(annotation)
        schema = self._bare(bare)
        misfit = apply_constraints(schema, read_constraints(metadata))
        if misfit is not None:
            raise self._refusal(
                f"is {type_name(bare)} limited by {misfit}, which JSON Schema cannot express",
                "Drop the limit and check it inside the tool, or use another type.",
            )
        return schema

    def record(self, fields: Iterable[Field]) -> dict[str, Any]:
        """Return the schema of an object with exactly these fields."""
        properties: dict[str, Any] = {}
        required: list[str] = []
        for field in fields:
            self._place.append(field.key)
            schema = self.schema(field.annotation)
            if (
                field.text
                and not read_constraints(unwrap_annotation(field.annotation)[1]).description
            ):
                schema["description"] = field.text
            _add_default(schema, field.default)
            self._place.pop()
            properties[field.key] = schema
            if field.required:
                required.append(field.key)
        result: dict[str, Any] = {"type": "object", "properties": properties}
        if required:
            result["required"] = required
        return {**result, "additionalProperties": False}

    def build_once(
        self, key: Any, name: str, build: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """Build the schema of a type that may contain itself; in place unless it does."""
        if key in self._open and key not in self._names:
            self._names[key] = self._free_name(name)
        if key not in self._names:
            self._open.add(key)
            schema = build()
            self._open.discard(key)
            if key not in self._names:
                return schema
            self._defs[self._names[key]] = schema
        return {"$ref": f"#/$defs/{self._names[key]}"}

    def _bare(self, annotation: Any) -> dict[str, Any]:
        try:
            leaf = LEAVES.get(annotation)
        except TypeError:
            leaf = None
        if leaf is not None:
            return copy.deepcopy(leaf)
        for kind in (self._special, self._container, self._class):
            if (schema := kind(annotation)) is not None:
                return schema
        raise self._refusal(
            f"has the type {type_name(annotation)}, which has no JSON form a model could send",
            _SUPPORTED,
        )

    def _special(self, annotation: Any) -> dict[str, Any] | None:
        if isinstance(annotation, typing.TypeVar):
            members = annotation.__constraints__ or (annotation.__bound__ or Any,)
            return _any_of([self.schema(member) for member in members])
        if alias := alias_value(annotation):
            name = getattr(typing.get_origin(annotation) or annotation, "__name__", "Alias")
            return self.build_once(annotation, name, lambda: self.schema(alias[0]))
        if members := union_members(annotation):
            return _any_of([self.schema(member) for member in members])
        if typing.get_origin(annotation) is typing.Literal:
            return self._choices(typing.get_args(annotation), annotation)
        return None

    def _container(self, annotation: Any) -> dict[str, Any] | None:
        origin = typing.get_origin(annotation) or annotation
        arguments = typing.get_args(annotation)
        if origin in SETS:
            return {"type": "array", "items": self._item(arguments), "uniqueItems": True}
        if origin in MAPPINGS:
            return self._mapping(annotation, arguments)
        if origin is tuple and not (len(arguments) == 2 and arguments[1] is Ellipsis):
            return self._fixed_tuple(arguments)
        if origin in SEQUENCES:
            return {"type": "array", "items": self._item(arguments)}
        return None

    def _class(self, annotation: Any) -> dict[str, Any] | None:
        if members := enum_members(annotation):
            return self._describe(annotation, self._choices(members, annotation))
        if is_pydantic_model(annotation):
            return self._model(annotation)
        cls = typing.get_origin(annotation) or annotation
        if (fields := fields_of(annotation)) is None:
            return None
        return self.build_once(
            annotation,
            cls.__name__,
            lambda: self._describe(cls, _add_tag(cls, self.record(fields))),
        )

    def _item(self, arguments: tuple[Any, ...]) -> dict[str, Any]:
        return self.schema(arguments[0]) if arguments else {}

    def _mapping(self, annotation: Any, arguments: tuple[Any, ...]) -> dict[str, Any]:
        if not arguments:
            return {"type": "object", "additionalProperties": True}
        key, _ = unwrap_annotation(arguments[0])
        if key not in (str, Any):
            raise self._refusal(
                f"has the type {type_name(annotation)}, but the keys of a JSON object are strings",
                "Use dict[str, ...].",
            )
        values = self.schema(arguments[1])
        return {"type": "object", "additionalProperties": values or True}

    def _fixed_tuple(self, arguments: tuple[Any, ...]) -> dict[str, Any]:
        items = [self.schema(item) for item in arguments]
        size = {"minItems": len(items), "maxItems": len(items)}
        if any(item != items[0] for item in items):
            return {"type": "array", "prefixItems": items, "items": False, **size}
        return {"type": "array", "items": items[0] if items else {}, **size}

    def _choices(self, members: Iterable[Any], annotation: Any) -> dict[str, Any]:
        groups: dict[str, list[Any]] = {}
        for member in members:
            value = member.value if isinstance(member, Enum) else member
            leaf = LEAVES.get(type(value), {}) if type(value) in _SCALARS else {}
            if not leaf:
                raise self._refusal(
                    f"has the type {type_name(annotation)}, whose value {value!r} has no JSON form",
                    "Use strings, numbers, booleans or None as values.",
                )
            groups.setdefault(leaf["type"], []).append(value)
        return _any_of(
            [
                {"type": kind} if kind == "null" else {"type": kind, "enum": values}
                for kind, values in groups.items()
            ]
        )

    def _model(self, model: Any) -> dict[str, Any]:
        try:
            schema = model.model_json_schema()
        except Exception as error:
            raise self._refusal(
                f"has the type {model.__qualname__}, whose own schema cannot be made: {error}",
                _SUPPORTED,
            ) from None
        rendering = _ModelSchema(model, schema, self.build_once)
        return self.build_once(model, model.__name__, lambda: rendering.schema(schema))

    def _describe(self, cls: type, schema: dict[str, Any]) -> dict[str, Any]:
        summary = parse_docstring(written_docstring(cls)).summary
        return {**schema, "description": summary} if summary else schema

    def _free_name(self, name: str) -> str:
        taken = set(self._names.values())
        candidate, count = name, 1
        while candidate in taken:
            count += 1
            candidate = f"{name}_{count}"
        return candidate

    def _refusal(self, problem: str, hint: str) -> ToolDefinitionError:
        subject = "The type"
        if self._place:
            subject = f"The parameter {'.'.join(self._place)!r} {self._owner}".rstrip()
        return ToolDefinitionError(Code.UNSUPPORTED_TYPE, f"{subject} {problem}.", hint=hint)


_SCALARS = (str, int, float, bool, type(None))


def _any_of(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    flat: list[dict[str, Any]] = []
    for schema in schemas:
        for branch in schema["anyOf"] if set(schema) == {"anyOf"} else [schema]:
            if branch == {}:
                return {}
            if branch not in flat:
                flat.append(branch)
    if {"type": "number"} in flat and {"type": "integer"} in flat:
        flat.remove({"type": "integer"})
    return flat[0] if len(flat) == 1 else {"anyOf": flat}


def _add_tag(cls: Any, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a class with the field that tells it from others, if it has one."""
    config = getattr(cls, "__struct_config__", None)
    if config is None or config.tag_field is None:
        return schema
    name, tag = config.tag_field, config.tag
    kind = "string" if isinstance(tag, str) else "integer"
    properties = {name: {"type": kind, "enum": [tag]}, **schema["properties"]}
    return {**schema, "properties": properties, "required": [name, *schema.get("required", [])]}


def _add_default(schema: dict[str, Any], default: Any) -> None:
    if default is NO_DEFAULT or (rendered := render_default(default)) is None:
        return
    if rendered.value is None and not _allows_null(schema):
        return
    schema["default"] = rendered.value


def _allows_null(schema: dict[str, Any]) -> bool:
    branches: list[dict[str, Any]] = schema.get("anyOf", [schema])
    return any(branch.get("type", "null") == "null" for branch in branches)


class _ModelSchema:
    """The schema that a pydantic model gives, in the form that all others have.

    It has no titles, and references only where it recurses.
    """

    def __init__(self, model: Any, root: dict[str, Any], build_once: _BuildOnce) -> None:
        self._model = model
        self._references = References(root)
        self._build_once = build_once

    def schema(self, node: dict[str, Any]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for keyword, value in node.items():
            if keyword not in _DROPPED:
                result.update(self._keyword(keyword, value))
        if "properties" in result:
            result.setdefault("additionalProperties", False)
        return result

    def _keyword(self, keyword: str, value: Any) -> dict[str, Any]:
        match keyword:
            case "$ref":
                return self._resolve(value)
            case "const":
                return {"enum": [value]}
            case "pattern":
                return {keyword: value.replace(_LOOK_AHEAD, "")}
            case "oneOf":
                return {"anyOf": self._value(value)}
            case "properties" | "patternProperties":
                return {keyword: {name: self._value(item) for name, item in value.items()}}
            case _:
                return {keyword: value if keyword in _DATA else self._value(value)}

    def _value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return self.schema(cast(dict[str, Any], value))
        if isinstance(value, list):
            return [self._value(item) for item in cast(list[Any], value)]
        return value

    def _resolve(self, reference: str) -> dict[str, Any]:
        path, target = self._references.find(reference)
        if target is None:
            return {"$ref": reference}
        key, name = (self._model, reference), str(path[-1]) if path else self._model.__name__
        return self._build_once(key, name, lambda: self.schema(target))
