"""Functions and classes as a model sees them: names, parameters, fields, annotations."""

import collections.abc
import dataclasses
import datetime
import decimal
import functools
import inspect
import math
import pathlib
import sys
import types
import typing
import uuid
from collections.abc import Callable, Iterable, Mapping
from enum import Enum, Flag
from pathlib import PurePath
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from surecall.base.errors import Code, ToolDefinitionError

from .docstrings import parse_docstring

NO_DEFAULT: Any = inspect.Parameter.empty

_QUALIFIERS = frozenset({"Final", "NotRequired", "ReadOnly", "Required"})


class Field(Struct, frozen=True):
    """One argument of a callable, or one field of a record type."""

    name: str
    key: str
    """Its name in JSON."""
    annotation: Any
    required: bool
    default: Any = NO_DEFAULT
    text: str = ""
    """What the docstring says about it."""


def parameters_of(function: Callable[..., Any]) -> tuple[Field, ...]:
    """Return what a model may pass to a callable, in order; injected parameters are left out."""
    texts = parse_docstring(_docstring(function)).arguments
    return tuple(
        Field(
            parameter.name,
            parameter.name,
            annotation,
            parameter.default is NO_DEFAULT,
            parameter.default,
            texts.get(parameter.name, ""),
        )
        for parameter, annotation in _signature(function)
        if _injected_class(annotation) is None
    )


def injected_parameters(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the parameters that are filled in by whoever runs the tool, with their classes."""
    found: dict[str, Any] = {}
    for parameter, annotation in _signature(function):
        if (injected := _injected_class(annotation)) is not None:
            found[parameter.name] = injected
    return found


def fields_of(annotation: Any) -> tuple[Field, ...] | None:
    """Return the fields of a dataclass, Struct, TypedDict or NamedTuple, or None."""
    cls = typing.get_origin(annotation) or annotation
    if not isinstance(cls, type):
        return None
    reader = _record_reader(cls)
    if reader is None:
        return None
    hints = _class_hints(cls)
    texts = parse_docstring(written_docstring(cls)).arguments
    substitution = dict(
        zip(getattr(cls, "__parameters__", ()), typing.get_args(annotation), strict=False)
    )
    return tuple(
        msgspec.structs.replace(
            field,
            annotation=_substitute(field.annotation, substitution),
            text=texts.get(field.name, ""),
        )
        for field in reader(cls, hints)
    )


def _name_in_typing(origin: Any) -> str | None:
    """Return the name of a special form, whichever of the two libraries it is from."""
    is_known = getattr(origin, "__module__", "") in {"typing", "typing_extensions"}
    return getattr(origin, "__name__", None) if is_known else None


def unwrap_annotation(annotation: Any) -> tuple[Any, tuple[Any, ...]]:
    """Take off Annotated, NewType and qualifiers; return the bare type and the metadata."""
    metadata: tuple[Any, ...] = ()
    while True:
        origin = typing.get_origin(annotation)
        if origin is typing.Annotated:
            metadata = annotation.__metadata__ + metadata
            annotation = annotation.__origin__
        elif _name_in_typing(origin) in _QUALIFIERS:
            annotation = typing.get_args(annotation)[0]
        elif hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        else:
            return annotation, metadata


def is_pydantic_model(cls: Any) -> bool:
    """Tell whether this is a pydantic model class, without importing pydantic."""
    return (
        isinstance(cls, type) and hasattr(cls, "model_json_schema") and hasattr(cls, "model_fields")
    )


def is_typed_dict(cls: Any) -> bool:
    """Tell whether this is a TypedDict class, from typing or from elsewhere."""
    return hasattr(cls, "__required_keys__") and isinstance(cls, type) and issubclass(cls, dict)


def written_docstring(cls: type) -> str:
    """Return the docstring somebody wrote for this very class, not a generated one."""
    doc = cls.__dict__.get("__doc__")
    if not isinstance(doc, str) or doc.startswith(f"{cls.__name__}("):
        return ""
    return doc


def type_name(annotation: Any) -> str:
    """Return a type as a reader would write it."""
    if isinstance(annotation, type) and not typing.get_args(annotation):
        return annotation.__qualname__
    return str(annotation).replace("typing.", "")


def _signature(function: Callable[..., Any]) -> list[tuple[inspect.Parameter, Any]]:
    name = getattr(function, "__name__", type(function).__name__)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError) as error:
        raise ToolDefinitionError(
            Code.INVALID_TOOL,
            f"The signature of {name} cannot be read: {error}.",
            hint="Wrap it in a Python function with annotated parameters.",
        ) from None
    for parameter in parameters:
        _refuse_kind(name, parameter)
        _refuse_field_default(name, parameter)
    target = _target(function)
    namespace = getattr(target, "__globals__", {})
    closure = _closure(target)
    return [
        (
            parameter,
            resolve_annotation(
                Any if parameter.annotation is NO_DEFAULT else parameter.annotation,
                namespace,
                closure,
                f"The parameter {parameter.name!r} of {name}",
            ),
        )
        for parameter in parameters
    ]


def _refuse_kind(name: str, parameter: inspect.Parameter) -> None:
    hints = {
        parameter.POSITIONAL_ONLY: "Remove the '/' from the signature: models pass by name.",
        parameter.VAR_POSITIONAL: "Take a list instead, such as `items: list[str]`.",
        parameter.VAR_KEYWORD: "Name each argument, or take one `dict[str, ...]` argument.",
    }
    if hint := hints.get(parameter.kind):
        raise ToolDefinitionError(
            Code.INVALID_TOOL,
            f"The parameter {str(parameter).partition(':')[0]!r} of {name} is "
            f"{parameter.kind.description}; a model can only pass arguments by name.",
            hint=hint,
        )


def _refuse_field_default(name: str, parameter: inspect.Parameter) -> None:
    if hasattr(parameter.default, "json_schema_extra") and hasattr(parameter.default, "metadata"):
        raise ToolDefinitionError(
            Code.INVALID_TOOL,
            f"The default of the parameter {parameter.name!r} of {name} is a field description, "
            "which the function itself would receive as the value.",
            hint="Write it inside the annotation: `Annotated[int, Field(ge=1)] = 1`.",
        )


def _target(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = function.func  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - any callable
    if isinstance(function, type):
        return function.__init__
    if not inspect.isroutine(function):
        function = type(function).__call__
    return inspect.unwrap(function)


def _docstring(function: Any) -> str | None:
    target = function if isinstance(function, type) else _target(function)
    return inspect.getdoc(target)


def _closure(function: Any) -> dict[str, Any]:
    cells = getattr(function, "__closure__", None) or ()
    names = function.__code__.co_freevars if cells else ()
    found: dict[str, Any] = {}
    for name, cell in zip(names, cells, strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # assigned after the function was made
            continue
    return found


def resolve_annotation(
    annotation: Any, namespace: dict[str, Any], local: Mapping[str, Any], where: str
) -> Any:
    """Return the annotation with every name in it looked up, or refuse it."""
    holder = types.SimpleNamespace(__annotations__={"value": annotation})
    try:
        return typing.get_type_hints(holder, namespace, dict(local), include_extras=True)["value"]
    except Exception as error:
        raise _refuse_annotation(where, annotation, error) from None


def _class_hints(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls, localns={cls.__name__: cls}, include_extras=True)
    except Exception as error:
        raise _refuse_annotation(f"A field of {cls.__qualname__}", cls, error) from None


def _refuse_annotation(where: str, annotation: Any, error: Exception) -> ToolDefinitionError:
    return ToolDefinitionError(
        Code.UNSUPPORTED_TYPE,
        f"{where} has an annotation that cannot be resolved: {type_name(annotation)} ({error}).",
        hint="Define or import the type at module level, not only under TYPE_CHECKING.",
    )


def _injected_class(annotation: Any) -> Any:
    bare, _ = unwrap_annotation(annotation)
    members = (
        typing.get_args(bare)
        if typing.get_origin(bare) in (typing.Union, types.UnionType)
        else (bare,)
    )
    for member in members:
        cls = typing.get_origin(member) or member
        if isinstance(cls, type) and getattr(cls, "__surecall_injected__", False) is True:
            return cls
    return None


def _substitute(annotation: Any, substitution: Mapping[Any, Any]) -> Any:
    if not substitution:
        return annotation
    if isinstance(annotation, typing.TypeVar):
        return substitution.get(annotation, annotation)
    parameters = getattr(annotation, "__parameters__", ())
    if not parameters or isinstance(annotation, type):
        return annotation
    return annotation[tuple(substitution.get(item, item) for item in parameters)]


_Reader = Callable[[Any, dict[str, Any]], list[Field]]


def _record_reader(cls: Any) -> _Reader | None:
    if dataclasses.is_dataclass(cls):
        return _dataclass_fields
    if issubclass(cls, Struct):
        return _struct_fields
    if is_typed_dict(cls):
        return _typed_dict_fields
    if hasattr(cls, "_field_defaults") and issubclass(cls, tuple):
        return _named_tuple_fields
    return None


def _dataclass_fields(cls: Any, hints: dict[str, Any]) -> list[Field]:
    found: list[Field] = []
    # Pseudo-fields are among these: what only the constructor takes, and class variables.
    members: dict[str, dataclasses.Field[Any]] = cls.__dataclass_fields__
    for field in members.values():
        annotation = hints[field.name]
        if not field.init or typing.get_origin(annotation) is typing.ClassVar:
            continue
        if _is_init_var(annotation):
            annotation = annotation.type
        required = field.default is field.default_factory is dataclasses.MISSING
        default = _default_of(field, dataclasses.MISSING)
        found.append(Field(field.name, field.name, annotation, required, default))
    return found


def _is_init_var(annotation: Any) -> bool:
    return isinstance(annotation, dataclasses.InitVar)


def _struct_fields(cls: Any, hints: dict[str, Any]) -> list[Field]:
    try:
        fields = msgspec.structs.fields(cls)
    except NameError as error:  # it resolves names by itself, and knows no local ones
        raise _refuse_annotation(f"A field of {cls.__qualname__}", cls, error) from None
    return [
        Field(
            field.name,
            field.encode_name,
            hints[field.name],
            field.required,
            _default_of(field, msgspec.NODEFAULT),
        )
        for field in fields
    ]


def _typed_dict_fields(cls: Any, hints: dict[str, Any]) -> list[Field]:
    found: list[Field] = []
    for name, annotation in hints.items():
        # Written as strings, the marks are not in __required_keys__ but in the hint alone.
        mark = _name_in_typing(typing.get_origin(annotation))
        required = mark == "Required" or (name in cls.__required_keys__ and mark != "NotRequired")
        found.append(Field(name, name, annotation, required))
    return found


def _named_tuple_fields(cls: Any, hints: dict[str, Any]) -> list[Field]:
    defaults: dict[str, Any] = cls._field_defaults
    return [
        Field(
            name, name, hints.get(name, Any), name not in defaults, defaults.get(name, NO_DEFAULT)
        )
        for name in cls._fields
    ]


def _default_of(field: Any, missing: Any) -> Any:
    if field.default is not missing:
        return field.default
    factory = field.default_factory
    return [] if factory is list else {} if factory is dict else NO_DEFAULT


class Rendered(Struct, frozen=True):
    """A value that has a JSON form."""

    value: Any


def render_default(value: Any) -> Rendered | None:
    """Return the JSON form of a value, or None when it has none."""
    try:
        built = msgspec.to_builtins(value, order="deterministic", enc_hook=_render_other)
        return Rendered(_as_json(built))
    except (TypeError, ValueError, RecursionError):
        return None


def _render_other(value: Any) -> Any:
    if isinstance(value, PurePath):
        return str(value)
    if callable(dump := getattr(value, "model_dump", None)):
        return dump(mode="json")
    raise TypeError


def _as_json(value: Any) -> Any:
    """Return a built-in value with lists for tuples; raise when JSON cannot say it."""
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        members = cast("dict[Any, Any]", value)
        if all(isinstance(key, str) for key in members):
            return {key: _as_json(item) for key, item in members.items()}
    elif isinstance(value, str | int | None) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise TypeError


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
    """What was said about a type besides the type itself."""

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


BASE64_PATTERN: Final = "^[A-Za-z0-9+/]*={0,2}$"
DECIMAL_PATTERN: Final = r"^-?[0-9]+(\.[0-9]+)?$"

LEAVES: Final[dict[Any, dict[str, Any]]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    Any: {},
    object: {},
    datetime.datetime: {"type": "string", "format": "date-time"},
    datetime.date: {"type": "string", "format": "date"},
    datetime.time: {"type": "string", "format": "time"},
    datetime.timedelta: {"type": "string", "format": "duration"},
    uuid.UUID: {"type": "string", "format": "uuid"},
    # A number would lose digits on the way through a float.
    decimal.Decimal: {"type": "string", "pattern": DECIMAL_PATTERN},
    bytes: {"type": "string", "pattern": BASE64_PATTERN, "description": "Base64 text."},
    bytearray: {"type": "string", "pattern": BASE64_PATTERN, "description": "Base64 text."},
    pathlib.PurePath: {"type": "string"},
    pathlib.PurePosixPath: {"type": "string"},
    pathlib.Path: {"type": "string"},
    dict: {"type": "object", "additionalProperties": True},
    list: {"type": "array", "items": {}},
    tuple: {"type": "array", "items": {}},
    typing.Tuple: {"type": "array", "items": {}},  # noqa: UP006 - bare, it is not tuple[()]
    set: {"type": "array", "items": {}, "uniqueItems": True},
    frozenset: {"type": "array", "items": {}, "uniqueItems": True},
}

CONVERTED_LEAVES: Final = frozenset(
    {
        datetime.datetime,
        datetime.date,
        datetime.time,
        datetime.timedelta,
        uuid.UUID,
        decimal.Decimal,
        bytes,
        bytearray,
    }
)
"""Leaves that msgspec makes from their JSON form."""

SEQUENCES: Final[dict[Any, type | None]] = {
    list: None,
    collections.abc.Sequence: None,
    collections.abc.MutableSequence: None,
    collections.abc.Iterable: None,
    collections.abc.Collection: None,
    tuple: tuple,
}
"""Kinds of array, with the class to build where a list would not do."""

SETS: Final[dict[Any, type]] = {
    set: set,
    frozenset: frozenset,
    collections.abc.Set: set,
    collections.abc.MutableSet: set,
}

MAPPINGS: Final = frozenset({dict, collections.abc.Mapping, collections.abc.MutableMapping})


def union_members(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union, or nothing when it is not a union."""
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType):
        return ()
    return tuple(item for item in typing.get_args(annotation) if item is not msgspec.UnsetType)


def enum_members(annotation: Any) -> tuple[Enum, ...]:
    """Return the members of an Enum class, or nothing when it is not one."""
    if not isinstance(annotation, type) or not issubclass(annotation, Enum):
        return ()
    return () if issubclass(annotation, Flag) else tuple(annotation)


def alias_value(annotation: Any) -> tuple[Any] | None:
    """Return what a `type` alias stands for, in a tuple, or None when it is not an alias."""
    alias = typing.get_origin(annotation) or annotation
    if type(alias).__name__ != "TypeAliasType":
        return None
    module = sys.modules.get(alias.__module__ or "")
    namespace = vars(module) if module else {}
    where = f"The alias {alias.__name__}"
    value = resolve_annotation(alias.__value__, namespace, {}, where)
    arguments = typing.get_args(annotation)
    if arguments and getattr(value, "__parameters__", ()):
        given = dict(zip(alias.__type_params__, arguments, strict=False))
        value = value[tuple(given.get(item, item) for item in value.__parameters__)]
    return (value,)


def below_partials(function: Any) -> Any:
    """Return the function that partials were made of."""
    while isinstance(function, functools.partial):
        function = cast("functools.partial[Any]", function).func
    return function


def name_function(function: Any) -> str:
    """Return the name of a function, or of the class of an object that can be called."""
    function = below_partials(function)
    return getattr(function, "__name__", type(function).__name__)


def describe_function(function: Any) -> str:
    """Return what the docstring of a function says, without its arguments."""
    function = below_partials(function)
    if inspect.isroutine(function):
        return parse_docstring(inspect.getdoc(function)).text
    kind = cast("type[Any]", type(function))
    return parse_docstring(kind.__call__.__doc__ or inspect.getdoc(kind)).text


def is_unbound_method(function: Any) -> bool:
    """Tell whether a function is a method that lacks its object."""
    if not inspect.isfunction(function):
        return False
    return next(iter(inspect.signature(function).parameters), "") == "self"


def bind_method(function: Any) -> Callable[..., Any]:
    """Return a function as its callers see it: a method without its first parameter."""
    return types.MethodType(function, object()) if is_unbound_method(function) else function
