"""Functions become tools."""

import asyncio
import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pydantic
import pytest

from surecall.base.errors import Code, ToolDefinitionError
from surecall.base.records import ToolSpec
from surecall.tools import Tool, ToolContext, ToolFailed, as_tool, tool

from .calls import dispatch


def weather(city: str, days: int = 1) -> dict[str, Any]:
    """Tell the weather.

    Only for places on land.

    Args:
        city: Name of the city.
        days: How many days ahead.
    """
    return {"city": city, "days": days}


def test_bare_decorator_reads_name_text_and_schema_from_the_function() -> None:
    """Nothing has to be said twice."""
    made = tool(weather)
    assert made.spec == ToolSpec(
        name="weather",
        description="Tell the weather.\n\nOnly for places on land.",
        parameters={
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Name of the city."},
                "days": {"type": "integer", "description": "How many days ahead.", "default": 1},
            },
            "required": ["city"],
            "additionalProperties": False,
        },
        effect="write",
    )


def test_options_override_what_the_function_says() -> None:
    """Every field of the description can be given."""
    made = tool(
        name="forecast",
        description="Look ahead.",
        effect="read",
        exposed=False,
        idempotent=True,
        polling=True,
        timeout_s=2.5,
        coerce="off",
    )(weather)
    spec = msgspec.structs.replace(made.spec, parameters={})
    assert spec == ToolSpec(
        name="forecast",
        description="Look ahead.",
        effect="read",
        exposed=False,
        idempotent=True,
        polling=True,
        timeout_s=2.5,
        coerce="off",
    )


def test_a_decorated_function_is_still_the_function() -> None:
    """Calling it by hand works as before, and it keeps its name and text."""
    made = tool(weather)
    assert made("Oslo", days=2) == {"city": "Oslo", "days": 2}
    assert made.__name__ == "weather"
    assert made.__doc__ == weather.__doc__
    assert made.function is weather


def test_a_tool_never_changes() -> None:
    """Neither setting nor deleting is possible."""
    made = tool(weather)
    with pytest.raises(AttributeError, match="never changes"):
        made.spec = ToolSpec(name="other")
    with pytest.raises(AttributeError, match="never changes"):
        del made.function
    assert made.name == "weather"


class Counter:
    """Counts."""

    def __init__(self) -> None:
        self.total = 0

    def __call__(self, step: int) -> int:
        self.total += step
        return self.total

    def plain(self, step: int) -> int:
        """Count plainly."""
        return self(step)

    @tool(effect="write", name="count_up")
    def decorated(self, step: int) -> int:
        """Count up."""
        return self(step)

    async def later(self, step: int) -> int:
        """Count later."""
        return self(step)


@dataclass(frozen=True)
class Source:
    id: str
    make: Callable[[], Any]
    name: str
    description: str
    is_async: bool = False


SOURCES = [
    Source("function", lambda: weather, "weather", tool(weather).spec.description),
    Source("bound method", lambda: Counter().plain, "plain", "Count plainly."),
    Source("async method", lambda: Counter().later, "later", "Count later.", is_async=True),
    Source("decorated method", lambda: Counter().decorated, "count_up", "Count up."),
    Source("callable object", Counter, "Counter", "Counts."),
    Source(
        "partial", lambda: functools.partial(Counter().later, step=1), "later", "Count later.", True
    ),
    Source("tool", lambda: tool(name="w")(weather), "w", tool(weather).spec.description),
]


@pytest.mark.parametrize("case", SOURCES, ids=lambda case: case.id)
def test_as_tool_accepts(case: Source) -> None:
    """Whatever can be called with named arguments can be a tool."""
    made = as_tool(case.make())
    assert (made.name, made.spec.description, made.is_async) == (
        case.name,
        case.description,
        case.is_async,
    )
    assert made.spec.effect == "write"


async def test_methods_run_on_their_object() -> None:
    """A decorated method, a plain one and the object itself share the object's state."""
    counter = Counter()
    steps = [(counter.decorated, 2), (counter.plain, 5), (counter, 6), (counter.later, 7)]
    previous = 0
    for item, total in steps:
        name = as_tool(item).name
        result = await dispatch([item], name, {"step": total - previous})
        assert result.envelope.data == {"value": total}
        previous = total


def generator(count: int) -> Any:
    """Yield."""
    yield count


async def async_generator(count: int) -> Any:
    """Yield."""
    yield count


OPENAI_TOOL = {"type": "function", "function": {"name": "x", "parameters": {}}}


@dataclass(frozen=True)
class Refused:
    id: str
    make: Callable[[], Any]
    code: Code
    words: str


REFUSED = [
    Refused("dict", lambda: as_tool(OPENAI_TOOL), Code.INVALID_TOOL, "from_executor"),
    Refused("class", lambda: as_tool(Counter), Code.INVALID_TOOL, "bound method"),
    Refused("number", lambda: as_tool(3), Code.INVALID_TOOL, "bound method"),
    Refused("unbound method", lambda: as_tool(Counter.decorated), Code.INVALID_TOOL, "its object"),
    Refused("generator", lambda: as_tool(generator), Code.INVALID_TOOL, "answers once"),
    Refused("async generator", lambda: as_tool(async_generator), Code.INVALID_TOOL, "answers once"),
    Refused("lambda", lambda: as_tool(lambda: 1), Code.INVALID_TOOL_NAME, "'lambda'"),
    Refused("dots", lambda: tool(name="a.b c")(weather), Code.INVALID_TOOL_NAME, "'a_b_c'"),
    Refused("empty name", lambda: tool(name="")(weather), Code.INVALID_TOOL_NAME, "1 to 64"),
    Refused("65 letters", lambda: tool(name="x" * 65)(weather), Code.INVALID_TOOL_NAME, "x" * 64),
    Refused("newline", lambda: tool(name="ok\n")(weather), Code.INVALID_TOOL_NAME, "'ok'"),
    Refused("look-alike", lambda: tool(name="wеather")(weather), Code.INVALID_TOOL_NAME, "w_ather"),
    Refused(
        "effect",
        lambda: tool(effect="reed")(weather),  # pyright: ignore[reportCallIssue, reportArgumentType] - wrong on purpose
        Code.INVALID_OPTION,
        "read, write, external",
    ),
    Refused(
        "coerce",
        lambda: tool(coerce="maybe")(weather),  # pyright: ignore[reportCallIssue, reportArgumentType] - wrong on purpose
        Code.INVALID_OPTION,
        "on, off",
    ),
    Refused("timeout", lambda: tool(timeout_s=0)(weather), Code.INVALID_OPTION, "above zero"),
    Refused(
        "unknown option",
        lambda: tool(efect="read")(weather),  # pyright: ignore[reportCallIssue] - wrong on purpose
        Code.UNKNOWN_OPTION,
        "'effect'",
    ),
    Refused(
        "array schema",
        lambda: tool(parameters={"type": "array"})(weather),
        Code.INVALID_SCHEMA,
        "one object",
    ),
    Refused(
        "broken schema",
        lambda: tool(parameters={"type": "object", "properties": {"city": {"type": "strin"}}})(
            weather
        ),
        Code.INVALID_SCHEMA,
        "/properties/city/type",
    ),
    Refused(
        "schema of a spec",
        lambda: as_tool(ToolSpec(name="x", parameters={"type": 7})),
        Code.INVALID_SCHEMA,
        "/type",
    ),
    Refused(
        "schema has more",
        lambda: tool(
            parameters={"properties": {"city": {"type": "string"}, "day": {"type": "integer"}}}
        )(weather),
        Code.INVALID_TOOL,
        "Did you mean 'days'?",
    ),
    Refused(
        "schema has less",
        lambda: tool(parameters={"properties": {"days": {"type": "integer"}}})(weather),
        Code.INVALID_TOOL,
        "needs 'city'",
    ),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_refuses(case: Refused) -> None:
    """What cannot become a tool is refused with its code and what to do instead."""
    with pytest.raises(ToolDefinitionError) as caught:
        case.make()
    assert caught.value.code == case.code
    assert case.words in str(caught.value)


class Place(msgspec.Struct):
    """A place."""

    city: str
    days: int = 1


@dataclasses.dataclass
class PlaceData:
    city: str
    days: int = 1


class PlaceModel(pydantic.BaseModel):
    city: str
    days: int = 1


@pytest.mark.parametrize("kind", [Place, PlaceData, PlaceModel])
async def test_a_record_type_describes_and_carries_the_arguments(kind: Any) -> None:
    """A function with one parameter gets the record; other functions get its fields by name."""

    def as_one(place: Any) -> Any:
        assert type(place) is kind
        return {"city": place.city, "days": place.days}

    for function in (as_one, weather):
        made = tool(parameters=kind, name="w")(function)
        assert made.spec.parameters["required"] == ["city"]
        result = await dispatch([made], "w", {"city": "Oslo", "days": 2})
        assert result.envelope.data == {"city": "Oslo", "days": 2}


async def test_an_explicit_schema_may_feed_any_keywords() -> None:
    """A function with `**arguments` takes whatever the schema lets through, and the context."""

    def anything(context: ToolContext, **arguments: Any) -> Any:
        return {**arguments, "call": context.call_id}

    made = tool(parameters={"type": "object", "required": []})(anything)
    assert made.spec.parameters == {"type": "object"}
    result = await dispatch([made], "anything", {"x": [1]})
    assert result.envelope.data == {"x": [1], "call": "tc_1"}


async def test_the_context_is_injected_and_not_in_the_schema() -> None:
    """A tool learns which call it answers; the model cannot see or set it."""

    def pay(amount: int, context: ToolContext) -> Any:
        return {"key": context.idempotency_key, "amount": amount}

    made = tool(pay)
    assert list(made.spec.parameters["properties"]) == ["amount"]
    result = await dispatch([made], "pay", {"amount": 5})
    assert result.envelope.data == {"key": "run-1/3/tc_1", "amount": 5}
    forged = await dispatch([made], "pay", {"amount": 5, "context": {"run_id": "x"}})
    assert forged.envelope.error_codes == ("ARGUMENTS_INVALID",)


def test_the_schema_is_compiled_once_and_shared_by_bound_methods() -> None:
    """Binding a method costs no second compilation."""
    counter = Counter()
    assert counter.decorated.checker is counter.decorated.checker
    assert counter.decorated.checker.is_valid({"step": 1})
    assert not counter.decorated.checker.is_valid({"step": "x"})


def test_a_description_alone_is_a_tool_that_cannot_be_called() -> None:
    """It can be sent to a model; calling it says that there is nothing behind it."""
    made: Tool[..., Any] = as_tool(ToolSpec(name="described"))
    assert made.function is None
    with pytest.raises(ToolDefinitionError) as caught:
        made()
    assert caught.value.code == Code.TOOL_NOT_IMPLEMENTED


def test_tool_failed_carries_what_the_model_will_read() -> None:
    """It is not one of the package's own errors."""
    failed = ToolFailed("NO_SUCH_CITY", "No city by that name.", "Check it.", {"closest": "Oslo"})
    assert (failed.code, failed.message, failed.hint) == (
        "NO_SUCH_CITY",
        "No city by that name.",
        "Check it.",
    )
    assert failed.data == {"closest": "Oslo"}
    assert str(failed) == "No city by that name."


def test_a_coroutine_tool_called_by_hand_returns_its_coroutine() -> None:
    """Decoration does not change how it is awaited."""

    @tool
    async def add(a: int, b: int) -> int:
        return a + b

    assert add.is_async
    assert asyncio.run(add(1, 2)) == 3
