"""ChatGLM3 and GLM-4-9B: the name on one line, the arguments as all the rest."""

from collections.abc import Sequence
from typing import Any, Final, cast

from surecall.jsontext import repair_json

from .base import CallFormat, Found, TextCall
from .endings import skip_to_end
from .fitting import fits
from .names import ToolNames
from .python_calls import PythonCall
from .pythonic import read_calls_in_python
from .source import Source

__all__ = ["ChatGlm"]

_ASSISTANT: Final = "<|assistant|>"
_FENCE: Final = "```python"
_TICKS: Final = "```"
_MAX_CALLS: Final = 64
_KEY_STARTS: Final = ('"', "'", "}")


class ChatGlm(CallFormat):
    """The name of a tool, a newline and an object, up to the end of the message."""

    name = "chatglm"
    line_start = True

    def openers(self, tools: ToolNames) -> Sequence[str]:
        """Return the name of every tool, as a line, and the token of the turn before it."""
        names = tuple(f"{name}\n" for name in tools.names)
        return (*names, *(f"{_ASSISTANT}{name}" for name in names))

    def read(self, source: Source, at: int) -> Found | None:
        """Read names and arguments by turns; the token of the next turn stands between them."""
        calls: list[TextCall] = []
        here = at + len(source.starts_any((_ASSISTANT,), at))
        while len(calls) < _MAX_CALLS:
            read = _read_one(source, here)
            if read is None:
                return None
            call, end = read
            calls.append(call)
            if call.state == "cut":
                return Found(end=end, calls=tuple(calls), grade="bare")
            here = source.skip_space(end)
            if source.starts(">>>", here):
                return Found(end=here, calls=tuple(calls), grade="bare")
            if not source.starts(_ASSISTANT, here):
                last = skip_to_end(source, end)
                found = Found(end=last or 0, calls=tuple(calls), grade="bare")
                return None if last is None else found
            here += len(_ASSISTANT)
        return None


def _read_one(source: Source, at: int) -> tuple[TextCall, int] | None:
    name, end = source.read_name(at)
    if source.tools.resolve(name) is None or source.char(end) != "\n":
        return None
    here = source.skip_space(end)
    if source.starts(_FENCE, here):
        return _read_code(source, name, here + len(_FENCE))
    if source.char(here) != "{":
        return None
    end = source.value_end(here)
    if end is None:
        inside = source.skip_space(here + 1)
        if not source.at_end(inside) and source.char(inside) not in _KEY_STARTS:
            return None
        rest = source.text[here:]
        return TextCall(name=name, arguments=rest, state="cut"), len(source.text)
    text = source.text[here:end]
    value = repair_json(text).value
    keys = cast("dict[str, Any]", value) if isinstance(value, dict) else None
    if keys is None or not fits(source.tools.parameters(name), keys):
        return None  # a line of prose or code in braces, or data under a heading
    return TextCall(name=name, arguments=text), end


def _read_code(source: Source, name: str, at: int) -> tuple[TextCall, int] | None:
    """Read the arguments of a made-up function that stands for the tool."""
    found = read_calls_in_python(source, at)
    if found.state == "cut" and found.cut_name is not None and not found.calls:
        rest = source.text[found.cut_from :]
        return TextCall(name=name, arguments=rest, state="cut"), len(source.text)
    if found.state != "whole" or len(found.calls) != 1 or not _fits(source, name, found.calls[0]):
        return None
    here = source.skip_space(found.end)
    end = here + len(_TICKS) if source.starts(_TICKS, here) else found.end
    return TextCall(name=name, arguments=found.calls[0].keywords), end


def _fits(source: Source, name: str, call: PythonCall) -> bool:
    return not call.positional and fits(source.tools.parameters(name), call.keywords)
