"""Validated JSON arguments become the Python values a signature asks for."""

import typing
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import PurePath
from typing import Any, cast

import msgspec

from surecall.base.records import clip

from .check import SchemaChecker
from .fields import (
    CONVERTED_LEAVES,
    MAPPINGS,
    SEQUENCES,
    SETS,
    Field,
    alias_value,
    enum_members,
    fields_of,
    is_pydantic_model,
    is_typed_dict,
    parameters_of,
    union_members,
    unwrap_annotation,
)
from .infer import infer_schema

_Converter = Callable[[Any], Any]


class ArgumentBinder:
    """Turns the arguments of one callable from JSON into Python; made once, used for every call."""

    __slots__ = ("_plan",)

    def __init__(self, function: Callable[..., Any]) -> None:
        converters = _Converters()
        self._plan = [
            (field.key, convert)
            for field in parameters_of(function)
            if (convert := converters.find(field.annotation)) is not None
        ]

    def __call__(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments to call with: the same dict when nothing needs converting.

        Raises:
            ValueError: an argument cannot become what the signature asks for.
        """
        bound = arguments
        for key, convert in self._plan:
            if key not in arguments:
                continue
            value = arguments[key]
            try:
                converted = convert(value)
            except (TypeError, ValueError) as error:
                raise ValueError(f"/{key} cannot be used: {_reason(error)}") from error
            if converted is not value:
                if bound is arguments:
                    bound = dict(arguments)
                bound[key] = converted
        return bound


class ValueBinder:
    """Turns a JSON value that fits the schema of a type into an object of that type."""

    __slots__ = ("_convert",)

    def __init__(self, annotation: Any) -> None:
        self._convert = _Converters().find(annotation)

    def __call__(self, value: Any) -> Any:
        """Return the object; the value itself when its JSON form is its Python form.

        Raises:
            ValueError: the type refuses the value.
        """
        try:
            return _call(self._convert, value)
        except (TypeError, ValueError) as error:
            raise ValueError(_reason(error)) from error


class _Converters:
    """Finds the converter of a type; None means that its JSON form is its Python form."""

    def __init__(self) -> None:
        self._known: dict[Any, _Converter | None] = {}

    def find(self, annotation: Any) -> _Converter | None:
        bare, _ = unwrap_annotation(annotation)
        if bare is int:
            return _to_integer
        if bare in CONVERTED_LEAVES:
            return lambda value: msgspec.convert(value, bare)
        if bare in self._known:
            return self._known[bare]
        # A type that contains itself finds this one while its own converter is being made.
        self._known[bare] = lambda value: _call(self._known[bare], value)
        self._known[bare] = self._make(bare)
        return self._known[bare]

    def _make(self, bare: Any) -> _Converter | None:
        origin = typing.get_origin(bare) or bare
        if isinstance(bare, typing.TypeVar):
            return self._union(bare.__constraints__ or (bare.__bound__ or Any,))
        if alias := alias_value(bare):
            return self.find(alias[0])
        if members := union_members(bare):
            return self._union(members)
        if origin is typing.Literal:
            return _literal(typing.get_args(bare))
        if enum_members(bare):
            return bare
        if origin in SETS or origin in SEQUENCES or origin in MAPPINGS:
            return self._container(origin, typing.get_args(bare))
        return self._class(bare, origin)

    def _container(self, origin: Any, arguments: tuple[Any, ...]) -> _Converter | None:
        if origin in MAPPINGS:
            return _mapping(self.find(arguments[1])) if len(arguments) > 1 else None
        if origin is tuple and arguments and arguments[-1] is not Ellipsis:
            return _fixed_tuple([self.find(item) for item in arguments])
        item = self.find(arguments[0]) if arguments else None
        return _sequence(item, SETS.get(origin) or SEQUENCES[origin])

    def _class(self, bare: Any, cls: Any) -> _Converter | None:
        if is_pydantic_model(cls):
            return cls.model_validate
        fields = fields_of(bare)
        if fields is not None:
            return self._record(cls, fields)
        if isinstance(cls, type) and issubclass(cls, PurePath):
            return cls
        return None

    def _record(self, cls: Any, fields: Iterable[Field]) -> _Converter | None:
        plan = {field.key: (field.name, self.find(field.annotation)) for field in fields}
        if is_typed_dict(cls) and all(converter is None for _, converter in plan.values()):
            return None
        tag_field = getattr(getattr(cls, "__struct_config__", None), "tag_field", None)

        def convert(value: Any) -> Any:
            values = _expect(value, dict, "an object")
            built: dict[str, Any] = {}
            for key, item in values.items():
                if key == tag_field:
                    continue
                if key not in plan:
                    raise ValueError(f"{key!r} is not a field of {cls.__name__}")
                name, converter = plan[key]
                built[name] = item if converter is None else converter(item)
            return cls(**built)

        return convert

    def _union(self, members: tuple[Any, ...]) -> _Converter | None:
        found = [(member, self.find(member)) for member in members]
        if all(converter is None for _, converter in found):
            return None
        # The first member whose schema accepts the value is the one that is meant.
        options = [(SchemaChecker(infer_schema(member)), converter) for member, converter in found]

        def convert(value: Any) -> Any:
            for checker, converter in options:
                if checker.is_valid(value):
                    return _call(converter, value)
            raise ValueError("it fits none of the allowed types")

        return convert


def _call(converter: _Converter | None, value: Any) -> Any:
    return value if converter is None else converter(value)


def _to_integer(value: Any) -> Any:
    """JSON Schema counts 3.0 as an integer; Python does not."""
    return int(value) if value.__class__ is float and value.is_integer() else value


def _literal(choices: tuple[Any, ...]) -> _Converter | None:
    if all(
        isinstance(choice, str | bool | None) and not isinstance(choice, Enum) for choice in choices
    ):
        return None

    def convert(value: Any) -> Any:
        for choice in choices:
            plain = choice.value if isinstance(choice, Enum) else choice
            if plain == value and isinstance(plain, bool) == isinstance(value, bool):
                return choice
        raise ValueError("it is not one of the allowed values")

    return convert


def _sequence(item: _Converter | None, build: type | None) -> _Converter | None:
    if item is None and build is None:
        return None

    def convert(value: Any) -> Any:
        values = _expect(value, list, "an array")
        if item is not None:
            values = [item(each) for each in values]
        return values if build is None else build(values)

    return convert


def _fixed_tuple(items: list[_Converter | None]) -> _Converter:
    def convert(value: Any) -> Any:
        values = _expect(value, list, "an array")
        if len(values) != len(items):
            raise ValueError(f"it must have {len(items)} elements but has {len(values)}")
        return tuple(_call(item, each) for item, each in zip(items, values, strict=True))

    return convert


def _mapping(item: _Converter | None) -> _Converter | None:
    if item is None:
        return None

    def convert(value: Any) -> Any:
        return {key: item(each) for key, each in _expect(value, dict, "an object").items()}

    return convert


def _expect(value: Any, kind: type, words: str) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{words} is required here, not {type(value).__name__}")
    return value


def _reason(error: Exception) -> str:
    details = getattr(error, "errors", None)
    if not callable(details):
        return clip(str(error))
    parts: list[str] = []
    for item in cast(list[dict[str, Any]], details())[:5]:
        place = ".".join(str(part) for part in item.get("loc", ()))
        parts.append(f"{place}: {item.get('msg')}" if place else str(item.get("msg")))
    return clip("; ".join(parts), 400)
