"""JSON arguments become the Python values a signature asks for."""

import collections.abc
import datetime
import decimal
import enum
import pathlib
import typing
import uuid
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, TypedDict

import msgspec
import pydantic
import pytest
import typing_extensions

from surecall.schema import ArgumentBinder, infer_parameters

When = NewType("When", datetime.date)
Tree = typing_extensions.TypeAliasType("Tree", "dict[str, Tree] | datetime.date")


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1


@dataclass
class Circle:
    radius: float
    when: datetime.date | None = None


@dataclass
class Square:
    side: float


@dataclass
class Node:
    name: str
    children: "list[Node]" = field(default_factory=list)


@dataclass
class Picky:
    age: int

    def __post_init__(self) -> None:
        if self.age > 150:
            raise ValueError("nobody is that old")


class Job(msgspec.Struct, rename="camel", tag="job"):
    due_on: datetime.date
    shape: Circle | Square


class Branch(msgspec.Struct):
    on: datetime.date
    inner: "Branch | None" = None


class Movie(TypedDict):
    title: str
    seen: NotRequired[datetime.date]


class Plain(TypedDict):
    title: str


class Spot(NamedTuple):
    x: int
    on: datetime.date | None = None


class Model(pydantic.BaseModel):
    a: int
    on: datetime.date | None = None


DAY = datetime.date(2026, 3, 31)
UUID = uuid.UUID("123e4567-e89b-12d3-a456-426614174000")


@dataclass(frozen=True)
class Case:
    id: str
    annotation: Any
    given: Any
    expected: Any


CASES = [
    Case("str", str, "a", "a"),
    Case("int", int, 3, 3),
    Case("whole float for int", int, 3.0, 3),
    Case("whole floats in a list", list[int], [1, 2.0], [1, 2]),
    Case("int for float", float, 3, 3),
    Case("Any", Any, {"a": [1]}, {"a": [1]}),
    Case(
        "datetime",
        datetime.datetime,
        "2026-03-31T09:30:00",
        datetime.datetime.fromisoformat("2026-03-31T09:30:00"),
    ),
    Case("date", datetime.date, "2026-03-31", DAY),
    Case("time", datetime.time, "09:30:00", datetime.time(9, 30)),
    Case("timedelta", datetime.timedelta, "PT1H", datetime.timedelta(hours=1)),
    Case("UUID", uuid.UUID, str(UUID), UUID),
    Case("Decimal", decimal.Decimal, "1.10", decimal.Decimal("1.10")),
    Case("bytes", bytes, "YWI=", b"ab"),
    Case("Path", pathlib.Path, "a/b", pathlib.Path("a/b")),
    Case("NewType", When, "2026-03-31", DAY),
    Case("Annotated", Annotated[datetime.date, "When."], "2026-03-31", DAY),
    Case("Enum", Color, "blue", Color.BLUE),
    Case("IntEnum", Level, 1.0, Level.LOW),
    Case("Literal", Literal["a"], "a", "a"),
    Case("Literal number", Literal[1, True], 1.0, 1),
    Case("Literal bool", Literal[1, True], True, True),
    Case("Literal member", Literal[Color.RED], "red", Color.RED),
    Case("optional, given", datetime.date | None, "2026-03-31", DAY),
    Case("optional, null", datetime.date | None, None, None),
    Case("first of two that fit", str | datetime.date, "2026-03-31", "2026-03-31"),
    Case("second when the first does not fit", datetime.date | str, "soon", "soon"),
    Case("list", list[datetime.date], ["2026-03-31"], [DAY]),
    Case("Sequence", collections.abc.Sequence[datetime.date], ["2026-03-31"], [DAY]),
    Case("tuple", tuple[datetime.date, ...], ["2026-03-31"], (DAY,)),
    Case("bare tuple", tuple, [1, "a"], (1, "a")),
    Case("fixed tuple", tuple[int, datetime.date], [1.0, "2026-03-31"], (1, DAY)),
    Case("set", set[str], ["a", "b"], {"a", "b"}),
    Case("frozenset", frozenset[datetime.date], ["2026-03-31"], frozenset({DAY})),
    Case("dict", dict[str, datetime.date], {"a": "2026-03-31"}, {"a": DAY}),
    Case("dataclass", Circle, {"radius": 1, "when": "2026-03-31"}, Circle(1, DAY)),
    Case("dataclass by default", Circle, {"radius": 1}, Circle(1)),
    Case("union of dataclasses", Circle | Square, {"side": 2}, Square(2)),
    Case("recursive", Node, {"name": "a", "children": [{"name": "b"}]}, Node("a", [Node("b")])),
    Case("recursive alias", Tree, {"a": {"b": "2026-03-31"}}, {"a": {"b": DAY}}),
    Case(
        "Struct",
        Job,
        {"type": "job", "dueOn": "2026-03-31", "shape": {"side": 1}},
        Job(DAY, Square(1)),
    ),
    Case("TypedDict", Movie, {"title": "x", "seen": "2026-03-31"}, {"title": "x", "seen": DAY}),
    Case("NamedTuple", Spot, {"x": 1.0}, Spot(1)),
    Case("pydantic", Model, {"a": 1, "on": "2026-03-31"}, Model(a=1, on=DAY)),
    Case("list of pydantic", list[Model] | None, [{"a": 1}], [Model(a=1)]),
]


def make_function(annotation: Any) -> Any:
    """Return a function with one parameter of this type."""

    def function(value: Any) -> None: ...

    function.__annotations__ = {"value": annotation}
    return function


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_argument_becomes_this_value(case: Case) -> None:
    """Each kind of type has the value and the class that the signature asks for."""
    bound = ArgumentBinder(make_function(case.annotation))({"value": case.given})["value"]
    assert bound == case.expected
    assert type(bound) is type(case.expected)


@pytest.mark.parametrize(
    "annotation",
    [
        str,
        int,
        float,
        bool,
        Any,
        list[str],
        dict[str, Any],
        str | None,
        Literal["a"],
        Plain,
        list[Plain],
    ],
    ids=str,
)
def test_plain_arguments_are_passed_on_untouched(annotation: Any) -> None:
    """When JSON is what the signature asks for, the very same dict comes back."""
    arguments = {"value": 3 if annotation is int else "a", "other": [1]}
    assert ArgumentBinder(make_function(annotation))(arguments) is arguments


def test_given_arguments_are_never_changed() -> None:
    """Converting makes a new dict; what the model sent stays as it was."""
    arguments = {"value": [{"radius": 1}], "other": 1}
    bound = ArgumentBinder(make_function(list[Circle]))(arguments)
    assert arguments == {"value": [{"radius": 1}], "other": 1}
    assert bound == {"value": [Circle(1)], "other": 1}


def test_absent_argument_stays_absent() -> None:
    """The default of the function applies, not one of ours."""
    assert ArgumentBinder(make_function(datetime.date))({}) == {}


def test_recursive_union_is_bound() -> None:
    """A type that contains itself inside a union is converted all the way down."""
    function = make_function(Branch)
    schema = infer_parameters(function)
    value = {"on": "2026-03-31", "inner": {"on": "2026-03-31"}}
    assert "Branch" in schema["$defs"]
    assert ArgumentBinder(function)({"value": value}) == {"value": Branch(DAY, Branch(DAY))}


@dataclass(frozen=True)
class Refusal:
    id: str
    annotation: Any
    given: Any
    message: str


REFUSALS = [
    Refusal("date", datetime.date, "soon", "/value cannot be used: Invalid RFC3339 encoded date"),
    Refusal("bytes", bytes, "Y", "/value cannot be used: Invalid base64 encoded string"),
    Refusal("enum", Color, "pink", "/value cannot be used: 'pink' is not a valid Color"),
    Refusal("own rule", Picky, {"age": 200}, "/value cannot be used: nobody is that old"),
    Refusal(
        "not an object", Circle, [], "/value cannot be used: an object is required here, not list"
    ),
    Refusal(
        "not an array", set[str], "a", "/value cannot be used: an array is required here, not str"
    ),
    Refusal(
        "unknown field",
        Square,
        {"sides": 1},
        "/value cannot be used: 'sides' is not a field of Square",
    ),
    Refusal(
        "length", tuple[int, str], [1], "/value cannot be used: it must have 2 elements but has 1"
    ),
    Refusal(
        "no member",
        Circle | None,
        3,
        "/value cannot be used: it fits none of the allowed types",
    ),
    Refusal(
        "literal",
        Literal[1],
        2,
        "/value cannot be used: it is not one of the allowed values",
    ),
    Refusal("unhashable", set[typing.Any], [[]], "/value cannot be used: unhashable type: 'list'"),
    Refusal("pydantic", Model, {"on": 1}, "/value cannot be used: a: Field required"),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
def test_value_that_does_not_convert_is_a_value_error(case: Refusal) -> None:
    """The message names the argument and the reason."""
    with pytest.raises(ValueError, match="cannot be used") as caught:
        ArgumentBinder(make_function(case.annotation))({"value": case.given})
    assert str(caught.value).startswith(case.message)
