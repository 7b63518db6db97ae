"""Schemas of plain types, their limits and descriptions, and types that have none."""

import collections.abc
import datetime
import decimal
import enum
import pathlib
import typing
import uuid
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NewType, TypeVar

import annotated_types as at
import msgspec
import pydantic
import pytest
import typing_extensions

from surecall.base.errors import Code, ToolDefinitionError
from surecall.schema import SchemaChecker, infer_schema

from .inferred import INTEGER, NULL, STRING, Case

T = TypeVar("T")
Bounded = TypeVar("Bounded", bound=int)
UserId = NewType("UserId", str)
Names = typing_extensions.TypeAliasType("Names", list[str])
Tree = typing_extensions.TypeAliasType("Tree", "dict[str, Tree] | str")
Pair = typing_extensions.TypeAliasType("Pair", tuple[T, T], type_params=(T,))


class Color(enum.Enum):
    """Which paint."""

    RED = "red"
    BLUE = "blue"
    CRIMSON = "red"  # noqa: PIE796 - an alias


class Mixed(enum.Enum):
    A = "a"
    B = 1
    C = None


CASES = [
    Case("str", str, STRING),
    Case("int", int, INTEGER),
    Case("float", float, {"type": "number"}),
    Case("bool", bool, {"type": "boolean"}),
    Case("None", None, NULL),
    Case("NoneType", type(None), NULL),
    Case("Any", Any, {}),
    Case("object", object, {}),
    Case("bare list", list, {"type": "array", "items": {}}),
    Case("list", list[int], {"type": "array", "items": INTEGER}),
    Case("typing.List", typing.List[int], {"type": "array", "items": INTEGER}),  # noqa: UP006
    Case("bare tuple", tuple, {"type": "array", "items": {}}),
    Case("typing.Tuple", typing.Tuple, {"type": "array", "items": {}}),  # noqa: UP006
    Case("open tuple", tuple[int, ...], {"type": "array", "items": INTEGER}),
    Case(
        "pair of one type",
        tuple[int, int],
        {"type": "array", "items": INTEGER, "minItems": 2, "maxItems": 2},
    ),
    Case(
        "fixed tuple",
        tuple[int, str],
        {
            "type": "array",
            "prefixItems": [INTEGER, STRING],
            "items": False,
            "minItems": 2,
            "maxItems": 2,
        },
    ),
    Case("empty tuple", tuple[()], {"type": "array", "items": {}, "minItems": 0, "maxItems": 0}),
    Case("set", set[str], {"type": "array", "items": STRING, "uniqueItems": True}),
    Case("bare set", set, {"type": "array", "items": {}, "uniqueItems": True}),
    Case("frozenset", frozenset[str], {"type": "array", "items": STRING, "uniqueItems": True}),
    Case("Sequence", collections.abc.Sequence[str], {"type": "array", "items": STRING}),
    Case("bare Sequence", typing.Sequence, {"type": "array", "items": {}}),
    Case("Iterable", collections.abc.Iterable[str], {"type": "array", "items": STRING}),
    Case("bare dict", dict, {"type": "object", "additionalProperties": True}),
    Case("dict", dict[str, int], {"type": "object", "additionalProperties": INTEGER}),
    Case("dict of Any", dict[str, Any], {"type": "object", "additionalProperties": True}),
    Case(
        "Mapping",
        collections.abc.Mapping[str, int],
        {"type": "object", "additionalProperties": INTEGER},
    ),
    Case("bare Mapping", collections.abc.Mapping, {"type": "object", "additionalProperties": True}),
    Case("Optional", typing.Optional[int], {"anyOf": [INTEGER, NULL]}),  # noqa: UP045
    Case("Union", typing.Union[int, str], {"anyOf": [INTEGER, STRING]}),  # noqa: UP007
    Case("pipe", int | str | None, {"anyOf": [INTEGER, STRING, NULL]}),
    Case("union with Any", int | Any, {}),
    Case("int | float", int | float, {"type": "number"}),
    Case(
        "nested union",
        Literal["a"] | int | None,
        {"anyOf": [{"type": "string", "enum": ["a"]}, INTEGER, NULL]},
    ),
    Case("same branch twice", str | pathlib.Path, STRING),
    Case("Literal", Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
    Case("Literal bool", Literal[True], {"type": "boolean", "enum": [True]}),
    Case(
        "Literal of several types",
        Literal["a", 1, None],  # noqa: PYI061 - as people write it
        {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer", "enum": [1]}, NULL]},
    ),
    Case("Literal member", Literal[Color.RED], {"type": "string", "enum": ["red"]}),
    Case("Enum", Color, {"type": "string", "enum": ["red", "blue"], "description": "Which paint."}),
    Case(
        "mixed Enum",
        Mixed,
        {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer", "enum": [1]}, NULL]},
    ),
    Case("datetime", datetime.datetime, {"type": "string", "format": "date-time"}),
    Case("date", datetime.date, {"type": "string", "format": "date"}),
    Case("time", datetime.time, {"type": "string", "format": "time"}),
    Case("timedelta", datetime.timedelta, {"type": "string", "format": "duration"}),
    Case("UUID", uuid.UUID, {"type": "string", "format": "uuid"}),
    Case("Decimal", decimal.Decimal, {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?$"}),
    Case(
        "bytes",
        bytes,
        {"type": "string", "pattern": "^[A-Za-z0-9+/]*={0,2}$", "description": "Base64 text."},
    ),
    Case("Path", pathlib.Path, STRING),
    Case("NewType", UserId, STRING),
    Case("alias", Names, {"type": "array", "items": STRING}),
    Case(
        "generic alias",
        Pair[int],
        {"type": "array", "items": INTEGER, "minItems": 2, "maxItems": 2},
    ),
    Case(
        "recursive alias",
        Tree,
        {
            "$ref": "#/$defs/Tree",
            "$defs": {
                "Tree": {
                    "anyOf": [
                        {"type": "object", "additionalProperties": {"$ref": "#/$defs/Tree"}},
                        STRING,
                    ]
                }
            },
        },
    ),
    Case("TypeVar", T, {}),
    Case("bound TypeVar", Bounded, INTEGER),
    Case("text", Annotated[int, "How many."], {"type": "integer", "description": "How many."}),
    Case(
        "Doc",
        Annotated[int, typing_extensions.Doc("How many.")],
        {"type": "integer", "description": "How many."},
    ),
    Case(
        "inner text",
        list[Annotated[int, "One."]],
        {"type": "array", "items": {"type": "integer", "description": "One."}},
    ),
    Case(
        "annotated_types",
        Annotated[int, at.Ge(1), at.Lt(10), at.MultipleOf(2)],
        {"type": "integer", "minimum": 1, "exclusiveMaximum": 10, "multipleOf": 2},
    ),
    Case(
        "interval",
        Annotated[float, at.Interval(gt=0, le=1)],
        {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    ),
    Case(
        "length of text",
        Annotated[str, at.Len(1, 5)],
        {"type": "string", "minLength": 1, "maxLength": 5},
    ),
    Case(
        "length of list",
        Annotated[list[int], at.MinLen(1)],
        {"type": "array", "items": INTEGER, "minItems": 1},
    ),
    Case(
        "length of dict",
        Annotated[dict[str, int], at.MaxLen(2)],
        {"type": "object", "additionalProperties": INTEGER, "maxProperties": 2},
    ),
    Case(
        "limit on a union",
        Annotated[int | None, at.Ge(1)],
        {"anyOf": [{"type": "integer", "minimum": 1}, NULL]},
    ),
    Case(
        "msgspec.Meta",
        Annotated[str, msgspec.Meta(pattern="^a", examples=["ab"], extra_json_schema={"x-y": 1})],
        {"type": "string", "pattern": "^a", "examples": ["ab"], "x-y": 1},
    ),
    Case(
        "pydantic field",
        Annotated[int, pydantic.Field(ge=1, description="How many.")],
        {"type": "integer", "minimum": 1, "description": "How many."},
    ),
    Case(
        "pydantic pattern",
        Annotated[str, pydantic.Field(pattern="^a")],
        {"type": "string", "pattern": "^a"},
    ),
    Case("metadata that says nothing", Annotated[int, object()], INTEGER),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_type_has_this_schema(case: Case) -> None:
    """Each supported kind of type has one expected schema, which compiles."""
    schema = infer_schema(case.annotation)
    assert case.expected == schema
    SchemaChecker(schema).compile()


def test_result_shares_nothing_with_a_later_one() -> None:
    """Changing a schema does not change the next one."""
    infer_schema(list)["items"]["type"] = "string"
    assert infer_schema(list) == {"type": "array", "items": {}}


class Bits(enum.Flag):
    A = 1


class Failing:
    model_fields: typing.ClassVar[dict[str, Any]] = {}

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        raise TypeError("no schema for a socket")


@dataclass
class Unresolved:
    x: "Missing"  # noqa: F821 - the point of the case


@dataclass(frozen=True)
class Refusal:
    id: str
    annotation: Any
    words: str


REFUSALS = [
    Refusal("class", complex, "has the type complex, which has no JSON form"),
    Refusal("callable", collections.abc.Callable[[int], str], "Callable[[int], str]"),
    Refusal("inside", list[complex], "has the type complex"),
    Refusal("keys", dict[int, str], "the keys of a JSON object are strings"),
    Refusal("flag", Bits, "has the type Bits"),
    Refusal("literal value", Literal[b"x"], "whose value b'x' has no JSON form"),
    Refusal("limit on the wrong type", Annotated[str, at.Ge(1)], "limited by ge=1"),
    Refusal("limit on Decimal", Annotated[decimal.Decimal, at.Ge(1)], "limited by ge=1"),
    Refusal("limit that is no number", Annotated[int, at.Ge("a")], "limited by ge='a'"),
    Refusal("pattern on a number", Annotated[int, msgspec.Meta(pattern="a")], "limited by pattern"),
    Refusal("forward reference", Unresolved, "cannot be resolved"),
    Refusal("model without a schema", Failing, "no schema for a socket"),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
def test_type_without_json_form_is_refused(case: Refusal) -> None:
    """A type a model cannot send is refused by name, with something to do about it."""
    with pytest.raises(ToolDefinitionError) as caught:
        infer_schema(case.annotation)
    assert caught.value.code == Code.UNSUPPORTED_TYPE
    assert case.words in caught.value.message
    assert caught.value.hint
