"""Requests that must not be sent are refused here, before they cost anything."""

from surecall.errors import Code, RequestError
from surecall.profiles import RESERVED_REQUEST_KEYS, Capabilities
from surecall.records import ModelRequest

__all__ = ["check_request"]


def check_request(request: ModelRequest, capabilities: Capabilities) -> None:
    """Raise `RequestError` when the request cannot be right for what the model can do."""
    reserved = RESERVED_REQUEST_KEYS & request.params.keys()
    if reserved:
        raise RequestError(
            Code.RESERVED_KEY,
            f"params may not set {', '.join(sorted(reserved))}.",
            hint="Use the request's own fields for them.",
        )
    if request.tools and request.response_format is not None:
        raise RequestError(
            Code.TOOLS_WITH_RESPONSE_FORMAT,
            "a request cannot ask for tool calls and a response format at once.",
            hint="Ask for one of them; many providers ignore one silently.",
        )
    if request.tools and not capabilities.supports_tool_use:
        raise _unsupported("tools", "supports_tool_use", "tool_use_mode='disabled'")
    if request.stream and not capabilities.streaming:
        raise _unsupported("streaming", "streaming", "stream=False")
    if request.response_format is None:
        return
    kind = request.response_format.get("type")
    if kind == "json_object" and not capabilities.json_object:
        raise _unsupported("response_format json_object", "json_object", "no response_format")
    if kind == "json_schema" and not capabilities.json_schema:
        raise _unsupported("response_format json_schema", "json_schema", "no response_format")


def _unsupported(what: str, field: str, instead: str) -> RequestError:
    return RequestError(
        Code.CAPABILITY_UNSUPPORTED,
        f"this model is declared not to support {what}.",
        hint=f"Use {instead}, or declare capabilities={{'{field}': True}} if it does.",
    )
