"""Tools in whatever form a caller has them."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, Protocol, cast
from weakref import ref

import msgspec

from surecall.base.errors import Code, RequestError, ToolDefinitionError
from surecall.base.json_values import as_fields
from surecall.base.records import ToolSpec
from surecall.calls import ToolNames
from surecall.schema import bind_method, describe_function, infer_parameters, name_function

from .inputs import to_plain


class _HasSpecs(Protocol):
    def specs(self) -> Iterable[ToolSpec]: ...


ToolsLike = Iterable[ToolSpec | Mapping[str, Any] | Callable[..., Any]] | _HasSpecs | None
"""Functions, tools, specs, tool objects of any wire format, or a registry."""

_HINT: Final = (
    "Pass functions, tools, ToolSpec records, tool objects of a wire format, or a ToolRegistry."
)
_DECLARED: Final = ("functionDeclarations", "function_declarations")
_JSON_SCHEMA: Final = ("parametersJsonSchema", "parameters_json_schema")
_PROVIDER_TYPES: Final = (
    "code_interpreter",
    "computer",
    "file_search",
    "image_generation",
    "local_shell",
    "mcp",
    "shell",
    "web_search",
)
_PROVIDER_FIELDS: Final = frozenset(
    {
        "codeExecution",
        "code_execution",
        "computerUse",
        "computer_use",
        "fileSearch",
        "file_search",
        "googleMaps",
        "googleSearch",
        "googleSearchRetrieval",
        "google_maps",
        "google_search",
        "google_search_retrieval",
        "urlContext",
        "url_context",
    }
)
"""Tools that a provider runs itself have one of these types or fields, and no name."""
_MAX_KEPT: Final = 64
_MAX_KEPT_BYTES: Final = 256 * 1024
_NO_TOOLS: Final = ToolNames()
_by_identity: dict[tuple[int, ...], tuple[tuple["ref[Any]", ...], ToolNames]] = {}


def name_tools(tools: ToolsLike) -> ToolNames:
    """Return tools ready to be read with; the same tools are parsed and compiled once.

    Raises:
        ToolDefinitionError: One of them is not a tool.
    """
    specs = getattr(tools, "specs", None)
    items: Any = specs() if callable(specs) else tools
    if not isinstance(items, list | tuple):
        return ToolNames(parse_tools(tools))
    if not items:
        return _NO_TOOLS
    if set(map(type, cast("list[Any]", items))) == {dict}:
        return _name_objects(items)
    return _name_by_identity(tuple(cast("list[Any]", items)))


def _name_objects(tools: Any) -> ToolNames:
    """Keep tools by what they say: their owner may build them for each reply, or change them."""
    try:
        packed = msgspec.msgpack.encode(tools)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return ToolNames(parse_tools(tools))
    return _unpack(packed) if len(packed) <= _MAX_KEPT_BYTES else ToolNames(parse_tools(tools))


@lru_cache(maxsize=_MAX_KEPT)
def _unpack(packed: bytes) -> ToolNames:
    return ToolNames(parse_tools(msgspec.msgpack.decode(packed)))


def _name_by_identity(tools: tuple[Any, ...]) -> ToolNames:
    """Keep functions, tools and specs by what they are, for as long as they live."""
    key = tuple(map(id, tools))
    kept = _by_identity.get(key)
    if kept is not None and all(
        known() is tool for known, tool in zip(kept[0], tools, strict=True)
    ):
        return kept[1]
    names = ToolNames(parse_tools(tools))
    try:
        known = tuple(map(ref, tools))
    except TypeError:
        return names
    if len(_by_identity) >= _MAX_KEPT:
        _by_identity.clear()
    _by_identity[key] = known, names
    return names


def parse_tools(tools: ToolsLike) -> tuple[ToolSpec, ...]:
    """Return tool specs from functions, tools, specs, tool objects, or a registry.

    Tools that the provider runs itself, such as a search, are left out: no call of them arrives.

    Raises:
        ToolDefinitionError: One of them is not a tool.
    """
    if tools is None:
        return ()
    specs = getattr(tools, "specs", None)
    if callable(specs):
        return tuple(cast("Iterable[ToolSpec]", specs()))
    given: Any = tools
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        raise _refuse(f"{type(tools).__name__} is not a list of tools.")
    return tuple(spec for tool in cast("Iterable[Any]", given) for spec in _parse_tool(tool))


def _parse_tool(tool: Any) -> tuple[ToolSpec, ...]:
    if isinstance(tool, ToolSpec):
        return (tool,)
    if isinstance(spec := getattr(tool, "spec", None), ToolSpec):
        return (spec,)
    if callable(tool) and not isinstance(tool, type):
        return (_parse_function(tool),)
    fields = as_fields(to_plain(tool))
    if any(fields.get(key) for key in _DECLARED):
        return _parse_declarations(fields)
    described = as_fields(fields.get("function")) or fields
    if _is_declaration(described):
        return _parse_declarations({_DECLARED[0]: [described]})
    if isinstance(name := described.get("name"), str):
        schema = described.get("parameters") or described.get("input_schema")
        description = str(described.get("description") or "")
        return (ToolSpec(name=name, description=description, parameters=as_fields(schema)),)
    if _is_run_by_provider(fields):
        return ()
    raise _refuse(f"{type(tool).__name__} is not a tool.")


def _parse_function(function: Callable[..., Any]) -> ToolSpec:
    name = name_function(function)
    if not name.isidentifier():
        raise _refuse(f"a function called {name!r} is not a tool.")
    parameters = infer_parameters(bind_method(function))
    return ToolSpec(name=name, description=describe_function(function), parameters=parameters)


def _parse_declarations(fields: dict[str, Any]) -> tuple[ToolSpec, ...]:
    # Loaded when first used: most programs speak one wire format only.
    from surecall.wire.gemini.server import parse_tools as parse_declared

    try:
        return parse_declared([fields])
    except RequestError as error:
        raise ToolDefinitionError(Code.INVALID_TOOL, error.message, hint=error.hint) from error


def _is_declaration(described: dict[str, Any]) -> bool:
    """Tell a function as Gemini declares it, whose types have names in capitals."""
    if any(described.get(key) is not None for key in _JSON_SCHEMA):
        return True
    kind = as_fields(described.get("parameters")).get("type")
    return isinstance(kind, str) and kind.isupper()


def _is_run_by_provider(fields: dict[str, Any]) -> bool:
    """Tell whether an object without a name is a tool all the same, such as `web_search`."""
    kind = fields.get("type")
    if isinstance(kind, str) and kind.startswith(_PROVIDER_TYPES):
        return True
    return any(fields.get(key) is not None for key in _PROVIDER_FIELDS)


def _refuse(message: str) -> ToolDefinitionError:
    return ToolDefinitionError(Code.INVALID_TOOL, message, hint=_HINT)
