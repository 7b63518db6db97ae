"""Tools in whatever form a caller has them."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, cast

from surecall.errors import Code, ToolDefinitionError
from surecall.records import ToolSpec


class _HasSpecs(Protocol):
    def specs(self) -> Iterable[ToolSpec]: ...


ToolsLike = Iterable[ToolSpec | Mapping[str, Any]] | _HasSpecs | None


def parse_tools(tools: ToolsLike) -> tuple[ToolSpec, ...]:
    """Return tool specs from OpenAI tool objects, specs, or a registry."""
    if tools is None:
        return ()
    specs = getattr(tools, "specs", None)
    if specs is not None:
        return tuple(specs())
    return tuple(_parse_tool(tool) for tool in cast("Iterable[Any]", tools))


def _parse_tool(tool: Any) -> ToolSpec:
    if isinstance(tool, ToolSpec):
        return tool
    if isinstance(spec := getattr(tool, "spec", None), ToolSpec):
        return spec
    described = _object(_object(tool).get("function", tool))
    if isinstance(name := described.get("name"), str):
        return ToolSpec(
            name=name,
            description=str(described.get("description") or ""),
            parameters=dict(_object(described.get("parameters") or described.get("input_schema"))),
        )
    raise ToolDefinitionError(
        Code.INVALID_TOOL,
        f"{type(tool).__name__} is not a tool.",
        hint="Pass OpenAI tool objects, ToolSpec records, tools, or a ToolRegistry.",
    )


def _object(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
