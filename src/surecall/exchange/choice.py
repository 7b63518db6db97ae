"""What the choice of a tool in a request demands of the reply, in any of the formats."""

from collections.abc import Collection
from typing import Any, Final, Literal

from msgspec import Struct

from surecall.base.json_values import as_fields, as_list, text_or_none
from surecall.text import decode

Wanted = Literal["any", "call", "none"]
"""Whether a reply may have calls, must have one, or must have none."""

_AUTO: Final = (b'"auto"', b'{"type":"auto"}', b'{"type": "auto"}')
_WANTED: Final[dict[str, Wanted]] = {
    "any": "call",
    "function": "call",
    "none": "none",
    "required": "call",
    "tool": "call",
}


class ToolChoice(Struct, frozen=True):
    """What a reply has to meet besides its schemas."""

    wanted: Wanted = "any"
    tools: frozenset[str] | None = None
    """The tools that may be called; `None` means all that are offered."""

    @property
    def is_free(self) -> bool:
        """Whether nothing is demanded."""
        return self.wanted == "any" and self.tools is None

    @property
    def only_tool(self) -> str | None:
        """The one tool that must be called, if it is one."""
        if self.wanted != "call" or self.tools is None or len(self.tools) != 1:
            return None
        return next(iter(self.tools))

    def takes(self, name: str) -> bool:
        """Tell whether a tool may be called."""
        return self.wanted != "none" and (self.tools is None or name in self.tools)


FREE: Final = ToolChoice()


def read_choice(
    written: bytes, *, has_others: bool = False, others: Collection[str] = ()
) -> ToolChoice:
    """Return what a choice demands.

    Args:
        written: The choice as the client wrote it; empty when there is none.
        has_others: Whether tools are offered that are not functions: a call of one of these
            meets the demand of any call, too.
        others: The names of these tools, as far as a choice can name them.
    """
    if not written or written in _AUTO:
        return FREE
    value = decode(written, surrogates="replace")
    choice = _read_text(value) if isinstance(value, str) else _read_fields(as_fields(value))
    if has_others and choice.wanted == "call" and choice.tools is None:
        return FREE
    if choice.tools is not None and not choice.tools.isdisjoint(others):
        return FREE
    return choice


def _read_text(value: str) -> ToolChoice:
    return ToolChoice(_WANTED.get(value, "any"))


def _read_fields(fields: dict[str, Any]) -> ToolChoice:
    config = fields.get("functionCallingConfig") or fields.get("function_calling_config")
    if config is not None:
        return _read_gemini(as_fields(config))
    kind = text_or_none(fields.get("type"))
    if kind == "allowed_tools":
        return _read_allowed(as_fields(fields.get("allowed_tools")) or fields)
    if kind not in (None, *_WANTED):
        return FREE  # a tool that is not a function
    name = text_or_none(as_fields(fields.get("function")).get("name"))
    name = name or text_or_none(fields.get("name"))
    if name is not None:
        return ToolChoice("call", frozenset({name}))
    return _read_text(kind or "")


def _read_allowed(fields: dict[str, Any]) -> ToolChoice:
    """Read a choice of some tools; one that is not a function makes it a matter of the endpoint."""
    entries = [as_fields(entry) for entry in as_list(fields.get("tools"))]
    if any(entry.get("type") != "function" for entry in entries):
        return FREE
    names = [as_fields(entry.get("function")).get("name") or entry.get("name") for entry in entries]
    tools = frozenset(str(name) for name in names) if names else None
    return ToolChoice("call" if fields.get("mode") == "required" else "any", tools)


def _read_gemini(fields: dict[str, Any]) -> ToolChoice:
    mode = str(fields.get("mode")).upper()
    if mode == "NONE":
        return ToolChoice("none")
    allowed = fields.get("allowedFunctionNames") or fields.get("allowed_function_names")
    names = frozenset(str(name) for name in as_list(allowed)) or None
    if mode not in ("ANY", "VALIDATED"):
        return FREE
    return ToolChoice("call" if mode == "ANY" else "any", names)
