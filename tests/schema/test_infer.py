"""Schemas of Python types."""

import collections.abc
import datetime
import decimal
import enum
import pathlib
import typing
import uuid
from dataclasses import InitVar, dataclass, field
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Required,
    TypedDict,
    TypeVar,
)

import annotated_types as at
import msgspec
import pydantic
import pytest
import typing_extensions

from surecall.errors import Code, ToolDefinitionError
from surecall.schema import SchemaChecker, infer_schema

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


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    A = "a"
    B = 1
    C = None


class Bits(enum.Flag):
    A = 1


@dataclass
class Point:
    x: float
    y: float = 0.0


@dataclass
class Line:
    """Two points.

    Attributes:
        start: Where it begins.
    """

    start: Point
    end: Annotated[Point | None, "Where it ends."] = None
    tags: list[str] = field(default_factory=list)
    made: datetime.datetime = field(default_factory=datetime.datetime.now)
    length: float = field(init=False, default=0.0)


@dataclass
class WithInit:
    kind: typing.ClassVar[str] = "x"
    y: int
    x: InitVar[int] = 1


@dataclass
class Box(Generic[T]):
    item: T
    others: list[T]


@dataclass
class Node:
    name: str
    children: "list[Node]"


@dataclass
class Left:
    right: "Right | None"


@dataclass
class Right:
    left: Left | None


@dataclass
class Both:
    left: Left
    right: Right


class Job(msgspec.Struct, rename="camel", tag="job", tag_field="kind"):
    retry_count: Annotated[int, msgspec.Meta(ge=0, description="How often.")] = 3
    owner: str | msgspec.UnsetType = msgspec.UNSET


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


class Partial(TypedDict, total=False):
    title: Required[str]
    year: "int"


class Spot(NamedTuple):
    x: int
    label: str = "here"


class Inner(pydantic.BaseModel):
    a: int


class Outer(pydantic.BaseModel):
    """What pydantic says."""

    title: str = pydantic.Field(description="A name.", min_length=2)
    inner: Inner
    more: list[Inner] = []
    kind: Literal["outer"] = "outer"


class Looping(pydantic.BaseModel):
    children: list["Looping"] = []


class PydanticLike:
    """Has what a model has, with the pattern older releases give a Decimal."""

    model_fields: typing.ClassVar[dict[str, Any]] = {}

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        return {
            "title": "PydanticLike",
            "type": "object",
            "properties": {
                "title": {"title": "Title", "type": "string", "pattern": r"^(?!^[-+.]*$)[+-]?\d*$"},
                "shape": {"oneOf": [{"const": 1}, {"const": 2}], "discriminator": {"x": "y"}},
            },
        }


class Failing:
    model_fields: typing.ClassVar[dict[str, Any]] = {}

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        raise TypeError("no schema for a socket")


POINT = {
    "type": "object",
    "properties": {"x": {"type": "number"}, "y": {"type": "number", "default": 0.0}},
    "required": ["x"],
    "additionalProperties": False,
}
INNER = {
    "type": "object",
    "properties": {"a": {"type": "integer"}},
    "required": ["a"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Case:
    id: str
    annotation: Any
    expected: dict[str, Any]


STRING = {"type": "string"}
INTEGER = {"type": "integer"}
NULL = {"type": "null"}

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
    Case("dataclass", Point, POINT),
    Case(
        "nested dataclass",
        Line,
        {
            "type": "object",
            "properties": {
                "start": {**POINT, "description": "Where it begins."},
                "end": {"anyOf": [POINT, NULL], "description": "Where it ends.", "default": None},
                "tags": {"type": "array", "items": STRING, "default": []},
                "made": {"type": "string", "format": "date-time"},
            },
            "required": ["start"],
            "additionalProperties": False,
            "description": "Two points.",
        },
    ),
    Case(
        "what only the constructor takes",
        WithInit,
        {
            "type": "object",
            "properties": {"y": INTEGER, "x": {"type": "integer", "default": 1}},
            "required": ["y"],
            "additionalProperties": False,
        },
    ),
    Case(
        "generic dataclass",
        Box[int],
        {
            "type": "object",
            "properties": {"item": INTEGER, "others": {"type": "array", "items": INTEGER}},
            "required": ["item", "others"],
            "additionalProperties": False,
        },
    ),
    Case(
        "recursive dataclass",
        Node,
        {
            "$ref": "#/$defs/Node",
            "$defs": {
                "Node": {
                    "type": "object",
                    "properties": {
                        "name": STRING,
                        "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
                    },
                    "required": ["name", "children"],
                    "additionalProperties": False,
                }
            },
        },
    ),
    Case(
        "Struct",
        Job,
        {
            "type": "object",
            "properties": {
                "kind": {"type": "string", "enum": ["job"]},
                "retryCount": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "How often.",
                    "default": 3,
                },
                "owner": STRING,
            },
            "required": ["kind"],
            "additionalProperties": False,
        },
    ),
    Case(
        "TypedDict",
        Movie,
        {
            "type": "object",
            "properties": {"title": STRING, "year": INTEGER},
            "required": ["title"],
            "additionalProperties": False,
        },
    ),
    Case(
        "TypedDict not total",
        Partial,
        {
            "type": "object",
            "properties": {"title": STRING, "year": INTEGER},
            "required": ["title"],
            "additionalProperties": False,
        },
    ),
    Case(
        "NamedTuple",
        Spot,
        {
            "type": "object",
            "properties": {"x": INTEGER, "label": {"type": "string", "default": "here"}},
            "required": ["x"],
            "additionalProperties": False,
        },
    ),
    Case(
        "pydantic model",
        Outer,
        {
            "type": "object",
            "description": "What pydantic says.",
            "properties": {
                "title": {"type": "string", "description": "A name.", "minLength": 2},
                "inner": INNER,
                "more": {"type": "array", "items": INNER, "default": []},
                "kind": {"type": "string", "enum": ["outer"], "default": "outer"},
            },
            "required": ["title", "inner"],
            "additionalProperties": False,
        },
    ),
    Case(
        "recursive pydantic model",
        Looping,
        {
            "$ref": "#/$defs/Looping",
            "$defs": {
                "Looping": {
                    "type": "object",
                    "properties": {
                        "children": {
                            "type": "array",
                            "items": {"$ref": "#/$defs/Looping"},
                            "default": [],
                        }
                    },
                    "additionalProperties": False,
                }
            },
        },
    ),
    Case(
        "keywords that providers refuse",
        PydanticLike,
        {
            "type": "object",
            "properties": {
                "title": {"type": "string", "pattern": r"^[+-]?\d*$"},
                "shape": {"anyOf": [{"enum": [1]}, {"enum": [2]}]},
            },
            "additionalProperties": False,
        },
    ),
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


def test_recursive_types_that_meet_are_defined_once() -> None:
    """Types that contain each other are defined where references find them."""
    schema = infer_schema(Both)
    assert {"Left", "Right"} >= set(schema["$defs"])
    assert SchemaChecker(schema).is_valid(
        {"left": {"right": {"left": None}}, "right": {"left": None}}
    )
    assert not SchemaChecker(schema).is_valid(
        {"left": {"right": {"left": 1}}, "right": {"left": None}}
    )


def test_recursive_types_of_the_same_name_are_kept_apart() -> None:
    """A second type with a taken name gets a name of its own."""

    def make() -> Any:
        @dataclass
        class Item:
            parts: "list[Item]"

        return Item

    schema = infer_schema(tuple[make(), make()])
    assert list(schema["$defs"]) == ["Item", "Item_2"]


def test_result_shares_nothing_with_a_later_one() -> None:
    """Changing a schema does not change the next one."""
    infer_schema(list)["items"]["type"] = "string"
    assert infer_schema(list) == {"type": "array", "items": {}}


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
