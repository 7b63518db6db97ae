"""Schemas of classes with fields: dataclasses, structs, typed dicts, named tuples and models."""

import datetime
import typing
from dataclasses import InitVar, dataclass, field
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NotRequired,
    Required,
    TypedDict,
    TypeVar,
)

import msgspec
import pydantic
import pytest

from surecall.schema import SchemaChecker, infer_schema

from .inferred import INTEGER, NULL, STRING, Case

T = TypeVar("T")


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
CASES = [
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
