"""Functionary: recipients behind tokens (v2) or behind `>>>` (v3.2)."""

from typing import Final

from .base import CallFormat, Found, TextCall
from .fitting import code_call
from .source import Source

__all__ = ["Functionary", "FunctionaryStart"]

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
    """A message whose first `>>>` was in the prompt, so that it begins with `all`."""

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
    return _read_code(source, body, (_MARK, _STOP), damaged=True)


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
        return _read_code(source, body, (_FROM, _STOP))
    stop, _ = source.find_any((_FROM, _STOP), body)
    stop = len(source.text) if stop < 0 else stop
    return Found(end=stop, calls=(TextCall(name=name, arguments=source.text[body:stop]),))


def _read_object(source: Source, name: str, at: int) -> tuple[TextCall, int]:
    end = source.value_end(at)
    if end is None:
        return TextCall(name=name, arguments=source.text[at:], state="cut"), len(source.text)
    return TextCall(name=name, arguments=source.text[at:end]), end


def _read_code(
    source: Source, at: int, stops: tuple[str, ...], *, damaged: bool = False
) -> Found | None:
    stop, _ = source.find_any(stops, at)
    is_ended = stop >= 0
    stop = stop if is_ended else len(source.text)
    call = code_call(source.tools, source.text[at:stop].rstrip(), is_ended=is_ended)
    if call is None:
        return None
    return Found(end=stop, calls=(call,), grade="damaged" if damaged else "marked")
