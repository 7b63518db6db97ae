"""The registry of tools, and the one whose tools share an executor."""

from typing import Any

import pytest

from surecall.base.errors import Code, ToolDefinitionError
from surecall.base.records import ToolSpec
from surecall.tools import Dispatcher, Tool, ToolFailed, ToolRegistry, tool

from .calls import CONTEXT, dispatch, make_call


def first(x: int) -> int:
    """Do one thing."""
    return x


def second() -> str:
    """Do another."""
    return "done"


def test_a_new_registry_is_empty() -> None:
    """The package ships no tools."""
    registry = ToolRegistry()
    assert len(registry) == 0
    assert registry.specs() == ()
    assert list(registry) == []


def test_tools_keep_the_order_of_registration() -> None:
    """Iteration, descriptions and membership agree."""
    registry = ToolRegistry([second, tool(effect="read")(first)])
    assert [item.name for item in registry] == ["second", "first"]
    assert [spec.name for spec in registry.specs()] == ["second", "first"]
    assert [spec.effect for spec in registry.specs()] == ["write", "read"]
    assert "first" in registry
    assert "First" not in registry
    assert len(registry) == 2


def test_find_compares_names_exactly() -> None:
    """Only the very name finds a tool."""
    registry = ToolRegistry([first])
    found = registry.find("first")
    assert found is not None
    assert found.function is first
    assert registry.find("first ") is None


def test_register_decorates_bare_and_with_options() -> None:
    """Both forms leave a tool in the registry and in the name."""
    registry = ToolRegistry()

    @registry.register
    def ping() -> str:
        """Answer."""
        return "pong"

    @registry.register(name="look", effect="read")
    def lookup(key: str) -> str:
        """Look up."""
        return key

    assert isinstance(ping, Tool)
    assert ping() == "pong"
    assert lookup("k") == "k"
    assert [(spec.name, spec.effect) for spec in registry.specs()] == [
        ("ping", "write"),
        ("look", "read"),
    ]


def test_a_name_is_taken_once() -> None:
    """A second tool of the same name is refused, and the first stays."""
    registry = ToolRegistry([first])
    with pytest.raises(ToolDefinitionError) as caught:
        registry.add(tool(name="first")(second))
    assert caught.value.code == Code.DUPLICATE_TOOL
    assert registry.specs()[0].description == "Do one thing."


SPECS = [
    ToolSpec(name="lookup", parameters={"type": "object", "properties": {"k": {"type": "string"}}}),
    ToolSpec(name="ping"),
]


async def test_one_executor_runs_every_tool() -> None:
    """It is told the name and the arguments, and the call id when it asks for it."""
    seen: list[Any] = []

    def executor(name: str, arguments: dict[str, Any], tool_call_id: str) -> Any:
        seen.append((name, arguments, tool_call_id))
        return {"name": name}

    dispatcher = Dispatcher(ToolRegistry.from_executor(SPECS, executor))
    result = await dispatcher.dispatch(make_call("lookup", {"k": "v"}), CONTEXT)
    assert result.envelope.data == {"name": "lookup"}
    invalid = await dispatcher.dispatch(make_call("lookup", {"k": 1}), CONTEXT)
    assert invalid.envelope.error_codes == ("ARGUMENTS_INVALID",)
    assert seen == [("lookup", {"k": "v"}, "tc_1")]


async def test_an_executor_may_be_a_coroutine_and_need_no_call_id() -> None:
    """Two parameters are enough; keywords of any name also get the id."""

    async def two(name: str, arguments: dict[str, Any]) -> Any:
        return f"{name}{arguments}"

    def keywords(name: str, arguments: dict[str, Any], **more: Any) -> Any:
        return more

    registry = ToolRegistry.from_executor(SPECS, two)
    assert [item.is_async for item in registry] == [True, True]
    result = await Dispatcher(registry).dispatch(make_call("ping"), CONTEXT)
    assert result.envelope.data == {"value": "ping{}"}
    registry = ToolRegistry.from_executor(SPECS, keywords)
    result = await Dispatcher(registry).dispatch(make_call("ping"), CONTEXT)
    assert result.envelope.data == {"tool_call_id": "tc_1"}


async def test_an_executor_says_what_it_does_not_implement() -> None:
    """It may answer with any code."""

    def executor(name: str, arguments: dict[str, Any]) -> Any:
        raise ToolFailed(Code.TOOL_NOT_IMPLEMENTED, f"{name} is not ready.")

    result = await Dispatcher(ToolRegistry.from_executor(SPECS, executor)).dispatch(
        make_call("ping"), CONTEXT
    )
    assert result.envelope.error_codes == ("TOOL_NOT_IMPLEMENTED",)


async def test_a_description_without_a_function_is_not_implemented() -> None:
    """The model is told, and nothing was run."""
    result = await dispatch([ToolSpec(name="planned")], "planned")
    assert result.envelope.error_codes == ("TOOL_NOT_IMPLEMENTED",)
    assert not result.executed
