"""Schemas of the arguments of callables."""

import datetime
import functools
import typing
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pydantic
import pytest

from surecall.base.errors import Code, ToolDefinitionError
from surecall.schema import SchemaChecker, infer_parameters, injected_parameters


class Context:
    __surecall_injected__ = True


def create_task(  # noqa: D417 - some arguments have no text
    title: str,
    due_days: Annotated[int, "Days until it is due."] = 3,
    *,
    tags: "list[str] | None" = None,
    when: datetime.datetime = datetime.datetime(2026, 3, 31, tzinfo=datetime.UTC),
    place: Path = Path("home"),
    odd: Any = object(),  # noqa: B008
    sloppy: int = None,  # noqa: RUF013 - as people write it
    context: Context,
    maybe: Context | None = None,
) -> str:
    """Create a task.

    Args:
        title: What it is called.
        due_days: Not used: the annotation says it.
        tags: Words to find it by.
    """
    return ""


def test_signature_becomes_an_object_schema() -> None:
    """Order, defaults, texts and required names come from the signature and the docstring."""
    schema = infer_parameters(create_task)
    assert schema == {
        "type": "object",
        "properties": {
            "title": {"type": "string", "description": "What it is called."},
            "due_days": {"type": "integer", "description": "Days until it is due.", "default": 3},
            "tags": {
                "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}],
                "description": "Words to find it by.",
                "default": None,
            },
            "when": {"type": "string", "format": "date-time", "default": "2026-03-31T00:00:00Z"},
            "place": {"type": "string", "default": "home"},
            "odd": {},
            "sloppy": {"type": "integer"},
        },
        "required": ["title"],
        "additionalProperties": False,
    }
    assert list(schema["properties"]) == [
        "title",
        "due_days",
        "tags",
        "when",
        "place",
        "odd",
        "sloppy",
    ]


def test_injected_parameters_are_named_apart() -> None:
    """Parameters that a model must not fill in are known by name and class."""
    assert {"context": Context, "maybe": Context} == injected_parameters(create_task)


def test_callable_without_parameters_takes_an_empty_object() -> None:
    """Nothing to pass is still an object, without an empty list of required names."""

    def ping() -> None: ...

    assert infer_parameters(ping) == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


class Service:
    def method(self, x: int) -> None:
        """Do it.

        Args:
            x: The x.
        """

    @staticmethod
    def static(x: int) -> None:
        """Do it.

        Args:
            x: The x.
        """

    def __call__(self, x: int) -> None:
        """Do it.

        Args:
            x: The x.
        """


@functools.wraps(Service.static)
def wrapped(*args: Any, **kwargs: Any) -> None:
    """Hide the signature."""
    Service.static(*args, **kwargs)


async def coroutine(x: int) -> None:
    """Do it.

    Args:
        x: The x.
    """


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(Service().method, id="bound method"),
        pytest.param(Service.static, id="static method"),
        pytest.param(Service(), id="callable object"),
        pytest.param(wrapped, id="wrapped function"),
        pytest.param(coroutine, id="coroutine function"),
        pytest.param(functools.partial(coroutine), id="partial"),
    ],
)
def test_every_kind_of_callable_is_read(function: Callable[..., Any]) -> None:
    """Methods, objects, wrappers and partials give what their function gives."""
    assert infer_parameters(function)["properties"] == {
        "x": {"type": "integer", "description": "The x."}
    }


def test_name_from_an_enclosing_function_is_found() -> None:
    """A quoted type that only the enclosing function knows is resolved when it is used inside."""

    @dataclass
    class Local:
        a: int

    def tool(item: "Local") -> Any:
        return Local(item.a)

    assert infer_parameters(tool)["properties"]["item"]["type"] == "object"


def test_recursive_parameter_is_defined_at_the_root() -> None:
    """Definitions sit where the references of the whole schema look for them."""

    class Tree(pydantic.BaseModel):
        children: list["Tree"] = []

    def plant(tree: Tree) -> None: ...

    schema = infer_parameters(plant)
    assert schema["properties"]["tree"] == {"$ref": "#/$defs/Tree"}
    assert SchemaChecker(schema).is_valid({"tree": {"children": [{}]}})
    assert not SchemaChecker(schema).is_valid({"tree": {"children": [1]}})


@dataclass(frozen=True)
class Refusal:
    id: str
    function: Callable[..., Any]
    code: str
    words: str
    hint: str


class Bad:
    @staticmethod
    def star(*items: int) -> None: ...

    @staticmethod
    def double_star(**options: int) -> None: ...

    @staticmethod
    def positional(x: int, /) -> None: ...

    @staticmethod
    def unsupported(box: "list[complex]") -> None: ...

    @staticmethod
    def nested(outer: "Holder") -> None: ...

    @staticmethod
    def unresolved(x: "Nowhere") -> None: ...  # noqa: F821 - the point of the case

    @staticmethod
    def field_default(x: int = pydantic.Field(1, ge=1)) -> None: ...


class Holder(typing.TypedDict):
    inner: complex


REFUSALS = [
    Refusal("*args", Bad.star, Code.INVALID_TOOL, "'*items' of star", "list"),
    Refusal("**kwargs", Bad.double_star, Code.INVALID_TOOL, "'**options' of double_star", "dict"),
    Refusal("positional only", Bad.positional, Code.INVALID_TOOL, "'x' of positional", "'/'"),
    Refusal(
        "type",
        Bad.unsupported,
        Code.UNSUPPORTED_TYPE,
        "'box' of unsupported has the type complex",
        "dataclass",
    ),
    Refusal("nested", Bad.nested, Code.UNSUPPORTED_TYPE, "'outer.inner' of nested", "dataclass"),
    Refusal("name", Bad.unresolved, Code.UNSUPPORTED_TYPE, "'x' of unresolved", "module level"),
    Refusal(
        "field as default",
        Bad.field_default,
        Code.INVALID_TOOL,
        "'x' of field_default",
        "Annotated",
    ),
    Refusal("no signature", min, Code.INVALID_TOOL, "cannot be read", "Wrap it"),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
def test_callable_a_model_cannot_call_is_refused(case: Refusal) -> None:
    """The refusal names the parameter and says what to write instead."""
    with pytest.raises(ToolDefinitionError) as caught:
        infer_parameters(case.function)
    assert (case.code, True) == (caught.value.code, case.words in caught.value.message), (
        caught.value
    )
    assert case.hint in (caught.value.hint or "")
