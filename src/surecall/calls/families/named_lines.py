"""Calls under the name of a tool on its line: ChatGLM, Functionary and Qwen-Agent's florette."""

from collections.abc import Sequence
from typing import Any, Final, cast

from surecall.calls.endings import skip_to_end
from surecall.calls.fitting import code_call, fits
from surecall.calls.formats import CallFormat, Found, TextCall
from surecall.calls.names import ToolNames
from surecall.calls.python_calls import PythonCall, read_calls_in_python
from surecall.calls.source import Source
from surecall.text import repair_json

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
    value = repair_json(text, ended=True).value
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


_FROM: Final = "<|from|>"
_RECIPIENT: Final = "<|recipient|>"
_CONTENT: Final = "<|content|>"
_STOP: Final = "<|stop|>"
_MARK: Final = ">>>"
_ALL: Final = "all"
_MAX_NAME: Final = 128


class Functionary(CallFormat):
    """Messages to a recipient: `all` is text, any other is a tool."""

    name = "functionary"
    trims = False
    literals = (_FROM, _RECIPIENT, _MARK)

    def read(self, source: Source, at: int) -> Found | None:
        """Read one header, and the arguments when it names a tool."""
        if source.starts(_MARK, at):
            return _read_marked(source, at + len(_MARK))
        here = at
        if source.starts(_FROM, at):
            here = source.text.find(_RECIPIENT, at, at + _MAX_NAME)
            if here < 0:
                source.at_end(at + _MAX_NAME)
                return None
        return _read_header(source, here + len(_RECIPIENT))


class FunctionaryStart(CallFormat):
    """A message whose first `>>>` was in the prompt, so it begins with `all`."""

    name = "functionary"
    line_start = True
    literals = (f"{_ALL}\n",)

    def read(self, source: Source, at: int) -> Found | None:
        """Drop the recipient when a call follows its text."""
        start = at + len(_ALL) + 1
        found, mark = source.find_any((_MARK, f"\n{_ALL}\n"), start - 1)
        if mark != _MARK or _read_marked(source, found + len(_MARK)) is None:
            return None
        return Found(end=start, grade="damaged")


def _read_marked(source: Source, at: int) -> Found | None:
    name, end = source.read_name(at)
    if source.char(end) != "\n":
        return None
    if name == _ALL:
        return Found(end=end + 1, grade="damaged")
    if source.tools.resolve(name) is None:
        return None
    body = source.skip_space(end)
    if source.char(body) == "{":
        call, end = _read_object(source, name, body)
        return Found(end=end, calls=(call,), grade="damaged")
    code = code_call(source.tools, "")
    if code is None or source.tools.resolve(name) != code.name:
        return None
    return _read_functionary_code(source, body, (_MARK, _STOP), damaged=True)


def _read_header(source: Source, at: int) -> Found | None:
    name, end = source.read_name(source.skip_space(at))
    end = source.skip_space(end)
    if source.at_end(end):
        return Found(end=end)
    if not name or not source.starts(_CONTENT, end):
        return None
    body = end + len(_CONTENT)
    if name == _ALL:
        return Found(end=body)
    body = source.skip_space(body)
    if source.at_end(body):
        return Found(end=body, calls=(TextCall(name=name, arguments="", state="cut"),))
    if source.char(body) == "{":
        call, end = _read_object(source, name, body)
        return Found(end=end, calls=(call,))
    code = code_call(source.tools, "")
    if code is not None and source.tools.resolve(name) == code.name:
        return _read_functionary_code(source, body, (_FROM, _STOP))
    stop, _ = source.find_any((_FROM, _STOP), body)
    stop = len(source.text) if stop < 0 else stop
    return Found(end=stop, calls=(TextCall(name=name, arguments=source.text[body:stop]),))


def _read_object(source: Source, name: str, at: int) -> tuple[TextCall, int]:
    end = source.value_end(at)
    if end is None:
        return TextCall(name=name, arguments=source.text[at:], state="cut"), len(source.text)
    return TextCall(name=name, arguments=source.text[at:end]), end


def _read_functionary_code(
    source: Source, at: int, stops: tuple[str, ...], *, damaged: bool = False
) -> Found | None:
    stop, _ = source.find_any(stops, at)
    is_ended = stop >= 0
    stop = stop if is_ended else len(source.text)
    call = code_call(source.tools, source.text[at:stop].rstrip(), is_ended=is_ended)
    if call is None:
        return None
    return Found(end=stop, calls=(call,), grade="damaged" if damaged else "marked")


_FUNCTION: Final = "✿FUNCTION✿"
_ARGS: Final = "✿ARGS✿"
_MAX_LINE: Final = 256
_RETURN: Final = "✿RETURN✿:"
_RESULTS: Final = ("✿RESULT✿", "✿RETURN✿")


class FloretteAnswer(CallFormat):
    """The marker before an answer, which is dropped."""

    name = "florette"
    line_start = True
    trims = False
    literals = (_RETURN,)

    def read(self, source: Source, at: int) -> Found | None:
        """Pass over the marker."""
        return Found(end=source.skip_space(at + len(_RETURN)), grade="damaged")


class Florette(CallFormat):
    """Pairs of a name and its arguments; results that follow are made up."""

    name = "florette"
    literals = (_FUNCTION,)

    def read(self, source: Source, at: int) -> Found | None:
        """Read pairs up to a result or the end."""
        calls: list[TextCall] = []
        end = here = at
        while source.starts(_FUNCTION, here):
            line = _line_end(source, here)
            name = source.text[here + len(_FUNCTION) : line].strip().removeprefix(":").strip()
            if line < 0 or not name or source.tools.resolve(name) is None:
                break
            if source.at_end(line):
                return Found(end=line, calls=tuple(calls), grade="damaged")
            call, end = _read_arguments(source, name, source.skip_space(line))
            calls.append(call)
            here = source.skip_space(end)
        if not calls:
            return None
        if source.begun_at_end((*_RESULTS, _FUNCTION), here):
            return Found(end=len(source.text), calls=tuple(calls), grade="damaged")
        if source.starts_any(_RESULTS, here):
            return Found(end=here, calls=tuple(calls), grade="damaged", ends_message=True)
        return Found(end=end, calls=tuple(calls), grade="damaged")


def _line_end(source: Source, at: int) -> int:
    """Return where the line of a name ends, or -1 when it is longer than names are."""
    found = source.text.find("\n", at, at + _MAX_LINE)
    if found >= 0:
        return found
    return len(source.text) if source.at_end(at + _MAX_LINE) else -1


def _read_arguments(source: Source, name: str, at: int) -> tuple[TextCall, int]:
    if source.at_end(at):
        return TextCall(name=name, arguments="", state="cut"), at
    if not source.starts(_ARGS, at):
        partial = source.text[at : at + len(_ARGS)]
        if _ARGS.startswith(partial):
            return TextCall(name=name, arguments="", state="cut"), len(source.text)
        return TextCall(name=name, arguments=None), at
    here = source.skip_space(at + len(_ARGS))
    if source.char(here) == ":":
        here = source.skip_space(here + 1)
    if source.at_end(here):
        return TextCall(name=name, arguments="", state="cut"), here
    if source.char(here) != "{":
        end = source.line_end(here)
        return TextCall(name=name, arguments=source.text[here:end]), end
    end = source.value_end(here)
    if end is None:
        return TextCall(name=name, arguments=source.text[here:], state="cut"), len(source.text)
    return TextCall(name=name, arguments=source.text[here:end]), end
