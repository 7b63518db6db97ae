"""Results of calls, which are objects in this format.

Plain text goes under `output`, an error under `error`, as Gemini asks for; an object is sent as it
is, unless it could be mistaken for one of those.
"""

from typing import Any, Final, cast

from surecall.errors import JSONTextError
from surecall.jsontext import decode, encode_text
from surecall.protocols.standins import stand_in_arguments

__all__ = ["parse_arguments", "parse_response", "render_arguments", "render_response"]

_WRAPPERS: Final = ("output", "error", "result")


def render_response(text: str, *, is_error: bool) -> dict[str, Any]:
    """Render the text of a result."""
    found = _object_in(text)
    if is_error:
        return {"error": text if found is None else found}
    if found is None or (len(found) == 1 and next(iter(found)) in _WRAPPERS):
        return {"output": text}
    return found


def parse_response(response: Any) -> tuple[str, bool]:
    """Return the text of a result, and whether it is an error."""
    if not isinstance(response, dict):
        return (response if isinstance(response, str) else encode_text(response)), False
    fields = cast("dict[str, Any]", response)
    if len(fields) == 1 and next(iter(fields)) in _WRAPPERS:
        key, value = next(iter(fields.items()))
        if isinstance(value, str) or key == "error":
            return (value if isinstance(value, str) else encode_text(value)), key == "error"
    return encode_text(fields), False


def render_arguments(arguments: Any) -> dict[str, Any]:
    """Render arguments, however they came; a stand-in for those that are no object."""
    if arguments is None or (isinstance(arguments, str) and not arguments.strip()):
        return {}
    if isinstance(arguments, dict):
        return cast("dict[str, Any]", arguments)
    found = _object_in(arguments) if isinstance(arguments, str) else None
    return stand_in_arguments(arguments) if found is None else found


def parse_arguments(args: Any) -> Any:
    """Return arguments as they came; none at all are an empty object."""
    return {} if args is None else args


def _object_in(text: str) -> dict[str, Any] | None:
    if not text.lstrip().startswith("{"):
        return None
    try:
        value = decode(text)
    except JSONTextError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
