"""Whether arguments fit a tool, as far as a reader of text must know."""

from collections.abc import Iterable
from typing import Any, Final, cast

from .base import TextCall
from .names import ToolNames

__all__ = [
    "code_call",
    "fits",
    "has_required",
    "parameter_names",
    "single_parameter",
]

_CODE_TOOLS: Final = frozenset(
    {
        "code",
        "code_interpreter",
        "execute_code",
        "execute_python",
        "interpreter",
        "ipython",
        "python",
        "python_interpreter",
        "run_code",
        "run_python",
    }
)


def parameter_names(parameters: dict[str, Any] | None) -> tuple[str, ...]:
    """Return the names of the parameters, in the order of the schema."""
    properties = (parameters or {}).get("properties")
    return tuple(cast("dict[str, Any]", properties)) if isinstance(properties, dict) else ()


def has_required(parameters: dict[str, Any] | None) -> bool:
    """Tell whether a call without arguments would lack something."""
    return bool((parameters or {}).get("required"))


def fits(parameters: dict[str, Any] | None, keys: Iterable[str]) -> bool:
    """Tell whether a tool has parameters of these names, or says that it takes others too.

    A schema that is silent about further keys is read as taking none: bare text must fit exactly.
    """
    schema = parameters or {}
    if not isinstance(schema.get("properties"), dict):
        return True
    if schema.get("additionalProperties") or schema.get("patternProperties"):
        return True
    return set(keys) <= set(parameter_names(schema))


def single_parameter(parameters: dict[str, Any] | None) -> str | None:
    """Return the one parameter that plain text can be meant for, if there is exactly one."""
    names = parameter_names(parameters)
    if len(names) == 1:
        return names[0]
    required = (parameters or {}).get("required")
    if isinstance(required, list):
        wanted = [name for name in cast("list[Any]", required) if name in names]
        return wanted[0] if len(wanted) == 1 else None
    return None


def code_call(tools: ToolNames, code: str, *, is_ended: bool = True) -> TextCall | None:
    """Return raw code as a call of the one tool that runs code, if there is exactly one.

    Code has no end of its own, so without a marker behind it (`is_ended`) it is whole only if the
    message came to its end.
    """
    able = [name for name in tools.names if name.lower() in _CODE_TOOLS]
    if len(able) != 1:
        return None
    names = parameter_names(tools.parameters(able[0])) or ("code",)
    if len(names) != 1:
        return None
    arguments = {names[0]: code}
    if is_ended:
        return TextCall(name=able[0], arguments=arguments)
    return TextCall(
        name=able[0], arguments=arguments, state="cut", unclosed=arguments, may_go_on=True
    )
