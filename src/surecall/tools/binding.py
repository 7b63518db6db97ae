"""From checked arguments to a call that is ready to be made."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from surecall.base.errors import Code, ToolDefinitionError, did_you_mean
from surecall.schema import (
    ArgumentBinder,
    References,
    clean_parameters,
    infer_schema,
    injected_parameters,
)

Binder = Callable[[dict[str, Any], Any], Callable[[], Any]]
"""Takes the arguments and the context of a call, and returns the call itself, ready to be made."""

_OPEN_ENDED = frozenset({"anyOf", "oneOf", "patternProperties"})
"""Keywords by which an object may have other properties than those that are listed."""


def make_binder(
    tool_name: str, schema: Mapping[str, Any], parameters: Any, function: Callable[..., Any]
) -> Binder:
    """Return how the function is called with arguments that fit the schema.

    `parameters` is what its author gave in place of the signature, if anything.
    """
    root = dict(schema)
    schema = References(root).join(root)
    if parameters is not None and not isinstance(parameters, Mapping):
        binder = _bind_record(function, parameters, schema.get("properties", {}))
        if binder is not None:
            return binder
    if parameters is not None:
        _refuse_misfit(tool_name, function, schema)
    return _bind_by_name(function)


def _bind_by_name(function: Callable[..., Any]) -> Binder:
    convert = None if _takes_any_keyword(function) else ArgumentBinder(function)
    injected = _marked_parameters(function)

    def bind(arguments: dict[str, Any], context: Any) -> Callable[[], Any]:
        bound = arguments if convert is None else convert(arguments)
        if injected:
            bound = {**bound, **dict.fromkeys(injected, context)}
        return functools.partial(function, **bound)

    return bind


def _bind_record(
    function: Callable[..., Any], record: Any, fields: Mapping[str, Any]
) -> Binder | None:
    """Return a binder that passes all arguments as one record, if the function takes just that."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
        injected = injected_parameters(function)
    except (TypeError, ValueError, ToolDefinitionError):
        return None
    visible = [parameter for parameter in parameters if parameter.name not in injected]
    if len(visible) != 1:
        return None
    name, annotation = visible[0].name, visible[0].annotation
    says_nothing = annotation in (inspect.Parameter.empty, Any) or isinstance(annotation, str)
    if annotation is not record and (name in fields or not says_nothing):
        return None

    def holder(value: Any) -> None: ...

    holder.__annotations__ = {"value": record}
    convert = ArgumentBinder(holder)

    def bind(arguments: dict[str, Any], context: Any) -> Callable[[], Any]:
        bound = {name: convert({"value": arguments})["value"], **dict.fromkeys(injected, context)}
        return functools.partial(function, **bound)

    return bind


def render_parameters(tool_name: str, parameters: Any) -> dict[str, Any]:
    """Return the schema that was given as such, or as a record type."""
    if isinstance(parameters, Mapping):
        schema = clean_parameters(dict(parameters))  # pyright: ignore[reportUnknownArgumentType] - a schema of any shape
    else:
        schema = infer_schema(parameters)
    if schema.get("type", "object") != "object":
        raise ToolDefinitionError(
            Code.INVALID_SCHEMA,
            f"The parameters of {tool_name} are of type {schema['type']!r}.",
            hint="Arguments are always one object: use a schema of type object.",
        )
    return {"type": "object", **schema}


def invalid_tool(message: str, hint: str) -> ToolDefinitionError:
    """Build the error for what cannot be a tool."""
    return ToolDefinitionError(Code.INVALID_TOOL, message, hint=hint)


def _refuse_misfit(tool_name: str, function: Callable[..., Any], schema: Mapping[str, Any]) -> None:
    """Refuse a schema with what the function cannot take, or without what it needs."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return
    properties: Mapping[str, Any] = schema.get("properties", {})
    if not _takes_any_keyword(function):
        for name in properties:
            if name not in parameters:
                raise invalid_tool(
                    f"The schema of {tool_name} has {name!r}, which the function does not take.",
                    did_you_mean(name, parameters),
                )
    if _OPEN_ENDED & schema.keys():
        return
    filled = (*properties, *_marked_parameters(function))
    for parameter in parameters.values():
        if (
            parameter.default is parameter.empty
            and parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
            and parameter.name not in filled
        ):
            raise invalid_tool(
                f"The function of {tool_name} needs {parameter.name!r}, which its schema lacks.",
                "Add it to the schema, or give the parameter a default.",
            )


def _takes_any_keyword(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False
    return any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)


def _marked_parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    if not _takes_any_keyword(function):
        return tuple(injected_parameters(function))
    return tuple(
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if getattr(parameter.annotation, "__surecall_injected__", False) is True
    )
