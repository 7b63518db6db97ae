"""What the server half of every wire format has in common.

A wrong field of a client's request is shown and refused in one way, and the same tools, choices
and switches are read alike. A reply gets its ids and its finish here, an error its status.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

from msgspec.structs import asdict

from surecall.base.errors import (
    Code,
    ProviderConnectionError,
    ProviderError,
    ProviderTimeoutError,
    RequestError,
    SetupError,
    SurecallError,
    did_you_mean,
)
from surecall.base.json_values import as_fields, as_list, text_or_none
from surecall.base.records import RawCall, Reply, ToolSpec, clip
from surecall.text import encode_text

from .errors import CODES_BY_STATUS

ERROR_TYPES: Final[Mapping[int, str]] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""What chat completions and messages call the error of a status."""
_BY_CODE: Final[Mapping[str, int]] = {
    **{code: status for status, code in CODES_BY_STATUS.items()},
    Code.CALLS_REFUSED: 422,
    Code.NO_TOOL_USE_ENDPOINT: 404,
    Code.PROMPT_BLOCKED: 400,
    Code.QUOTA_EXCEEDED: 429,
}


def invalid_request(message: str, hint: str | None) -> RequestError:
    """Return the refusal of a request that a client sent."""
    return RequestError(Code.INVALID_REQUEST, message, hint=hint)


def invalid_message(message: str, hint: str | None) -> RequestError:
    """Return the refusal of a message of a request."""
    return RequestError(Code.INVALID_MESSAGE, message, hint=hint)


def show(value: Any) -> str:
    """Show a value without walking through it."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, str):
        return repr(clip(value, 80))
    if value in ([], {}):
        return f"an empty {'list' if isinstance(value, list) else 'object'}"
    return f"a value of type {type(value).__name__}"


def parse_items(items: Any, place: str, hint: str) -> list[Any]:
    """Return a list that has to hold something."""
    if not isinstance(items, list) or not items:
        raise invalid_request(f"{place} is {show(items)}.", hint)
    return as_list(items)


def parse_role(role: Any, roles: Sequence[str], place: str) -> str:
    """Return the role of a message."""
    if not isinstance(role, str) or role not in roles:
        hint = did_you_mean(role, roles) if isinstance(role, str) else "Give it a role."
        raise invalid_message(f"{place} has the role {show(role)}.", hint)
    return role


def parse_model(body: Mapping[str, Any]) -> str:
    """Return the name of the model."""
    model = body.get("model")
    if not isinstance(model, str) or not model.strip():
        raise invalid_request(f"model is {show(model)}.", "Name the model as text.")
    return model


def parse_switch(body: Mapping[str, Any], key: str) -> bool | None:
    """Return a field that is true, false or missing."""
    value = body.get(key)
    if value is not None and not isinstance(value, bool):
        raise invalid_request(f"{key} is {show(value)}.", "Use true or false.")
    return value


def parse_object(body: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return a field that is an object, an empty one when it is missing."""
    value = body.get(key)
    if value is not None and not isinstance(value, dict):
        raise invalid_request(f"{key} is {show(value)}.", "Use an object.")
    return as_fields(value)


def parse_tools(
    items: Any, parse_tool: Callable[[dict[str, Any], str], ToolSpec], place: str = "tools"
) -> tuple[ToolSpec, ...]:
    """Return the tools of a list, each read with its place."""
    if items is None:
        return ()
    if not isinstance(items, list):
        raise invalid_request(f"{place} is {show(items)}.", "Send a list of tools.")
    tools = enumerate(as_list(items))
    return tuple(parse_tool(as_fields(item), f"{place}[{index}]") for index, item in tools)


def parse_description(tool: Mapping[str, Any], place: str) -> tuple[str, str]:
    """Return the name and the description of a tool."""
    name, description = text_or_none(tool.get("name")), tool.get("description")
    if name is None:
        shown = show(tool.get("name"))
        raise invalid_request(f"{place} has the name {shown}.", "Give every tool a name.")
    if description is not None and not isinstance(description, str):
        raise invalid_request(f"{place} has the description {show(description)}.", "Use text.")
    return name, description or ""


def parse_function(function: Mapping[str, Any], place: str, extra: dict[str, Any]) -> ToolSpec:
    """Return the tool that a function with a name and parameters describes."""
    name, description = parse_description(function, place)
    parameters = function.get("parameters")
    if parameters is not None and not isinstance(parameters, dict):
        raise invalid_request(
            f"{place} has the parameters {show(parameters)}.", "Use a JSON Schema."
        )
    return ToolSpec(
        name=name, description=description, parameters=as_fields(parameters), extra=extra
    )


def parse_choice(
    choice: Any, words: Mapping[str, str], tools: tuple[ToolSpec, ...], place: str = "tool_choice"
) -> tuple[tuple[ToolSpec, ...], str | dict[str, Any] | None]:
    """Return the tools that are offered, and the choice among them.

    Args:
        choice: What the client sent.
        words: The words the format knows, and those of the records for them.
        tools: The tools of the request.
        place: The name of the field.
    """
    if choice is None:
        return tools, None
    if isinstance(choice, str):
        if choice not in words:
            raise invalid_request(f"{place} is {show(choice)}.", did_you_mean(choice, words))
        return tools, words[choice]
    fields = as_fields(choice)
    if fields.get("type") == "allowed_tools":
        inner = fields.get("allowed_tools")
        return _offer_allowed({"mode": "auto", **as_fields(inner)} if inner else fields, tools)
    name = tool_name_in(fields)
    if name is None or fields.get("type", "function") != "function":
        raise invalid_request(
            f"{place} is {show(choice)}.", "Use auto, none, required, or name a function."
        )
    return tools, {"type": "function", "function": {"name": name}}


def tool_name_in(entry: Any) -> str | None:
    """Return the name of a tool, which chat completions nest and responses do not."""
    fields = as_fields(entry)
    inner = fields.get("function")
    return text_or_none((as_fields(inner) if isinstance(inner, dict) else fields).get("name"))


def _offer_allowed(
    allowed: Mapping[str, Any], tools: tuple[ToolSpec, ...]
) -> tuple[tuple[ToolSpec, ...], str]:
    """Offer only the tools that are allowed, which is what such a choice means."""
    mode, entries = allowed.get("mode"), allowed.get("tools")
    if mode not in ("auto", "required") or not isinstance(entries, list):
        raise invalid_request(
            "tool_choice allows tools without saying which, or in an unknown mode.",
            "Use the mode auto or required and a list of tools.",
        )
    names = {tool_name_in(entry) for entry in as_list(entries)}
    return tuple(tool for tool in tools if tool.name in names), mode


PAUSED_FINISH: Final = "pause_turn"
"""Why a turn ended that the model has not finished; only messages have a word for it."""


def new_id(prefix: str = "") -> str:
    """Return an id that nothing else has."""
    return f"{prefix}{uuid4().hex}"


def finish_of(reply: Reply, *, wrote_calls: bool = False) -> str:
    """Return the finish reason to render, the same whole and streamed.

    A provider that answers whole may leave it out. In a stream that would look like a reply that
    was cut, so what other providers would have said is written: calls, or a plain stop.

    Args:
        reply: The reply.
        wrote_calls: Whether calls were written already, which the reply need not repeat.
    """
    if reply.finish_reason is not None:
        return reply.finish_reason
    return "tool_calls" if reply.calls or wrote_calls else "stop"


def status_of(error: SurecallError) -> int:
    """Return the HTTP status for an error: of the client, of the provider, or ours."""
    if isinstance(error, SetupError):
        return 400
    if not isinstance(error, ProviderError):
        return 500
    if error.code in _BY_CODE:
        return _BY_CODE[error.code]
    if error.status is not None and 400 <= error.status < 600:
        return error.status
    if isinstance(error, ProviderTimeoutError):
        return 504
    return 503 if isinstance(error, ProviderConnectionError) else 502


def error_reasons(error: SurecallError) -> dict[str, Any]:
    """Return what a client can read by program: the code, and what is wrong with each call."""
    errors = error.errors if isinstance(error, ProviderError) else ()
    if not errors:
        return {}
    reasons = [{key: item for key, item in asdict(one).items() if item} for one in errors]
    return {"surecall": {"code": str(error.code), "errors": reasons}}


def error_text(error: SurecallError) -> str:
    """Return what a client reads: what was wrong, and what to do."""
    return f"{error.message} {error.hint}" if error.hint else error.message


def arguments_text(call: RawCall) -> str:
    """Return the arguments of a call as text, also where the model gave none or an object."""
    arguments = call.arguments
    if isinstance(arguments, str):
        return arguments
    return encode_text({} if arguments is None else arguments)


def name_text(call: RawCall) -> str:
    """Return the name of a call, empty where the model gave none."""
    return call.name if isinstance(call.name, str) else ""
