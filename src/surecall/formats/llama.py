"""What Llama 3 writes after `<|python_tag|>`: JSON calls, built-in calls, or code."""

from typing import Final

from msgspec import structs

from surecall.errors import JSONTextError
from surecall.jsontext import decode

from .base import CallFormat, Found, TextCall
from .fitting import code_call
from .json_block import receipt
from .pythonic import read_calls_in_python, text_calls_of
from .shapes import read_json_calls
from .source import Source

__all__ = ["LlamaPythonTag"]

_TAG: Final = "<|python_tag|>"
_ENDS: Final = ("<|eom_id|>", "<|eot_id|>", "<|eom|>", "<|eot|>", "<|end_of_text|>")
_BUILT_IN: Final = ".call"
_MAX_VALUES: Final = 64


class LlamaPythonTag(CallFormat):
    """Calls behind the tag: objects, `NAME.call(...)`, or code for the one tool that runs it.

    Calls as Python writes them count where no tool runs code.
    """

    name = "llama_python_tag"
    trims = False
    literals = (_TAG,)

    def read(self, source: Source, at: int) -> Found | None:
        """Read what follows the tag."""
        here = source.skip_space(at + len(_TAG))
        if source.at_end(here):
            return Found(end=here)
        if source.char(here) in ("{", "["):
            found = _read_objects(source, here)
            if found is not None:
                return found
        found = _read_built_in(source, here)
        return found or _read_code(source, here)


def _read_objects(source: Source, at: int) -> Found | None:
    """Read objects, one after the other, with or without semicolons between them."""
    here, end = at, at
    for _ in range(_MAX_VALUES):
        if source.char(here) not in ("{", "["):
            break
        found = source.value_end(here)
        if found is None:
            calls = read_json_calls(source.text[at:], ended=False)
            return Found(end=len(source.text), calls=calls)
        end = found
        here = source.skip_space(end)
        if source.char(here) in (";", ","):
            here = source.skip_space(here + 1)
    calls = read_json_calls(source.text[at:end])
    return Found(end=end, calls=calls) if calls else None


def _read_built_in(source: Source, at: int) -> Found | None:
    found = read_calls_in_python(source, at, nested_quotes=True)
    name = found.cut_name or (found.calls[0].name if found.calls else "")
    calls = None if found.state == "not_calls" else text_calls_of(source, found)
    if not calls:
        return None
    if not name.endswith(_BUILT_IN):
        return _as_written(source, calls, found.end)
    if len(calls) != 1:
        return None
    call = structs.replace(calls[0], name=name.removesuffix(_BUILT_IN))
    end = found.end if call.state == "whole" else len(source.text)
    return Found(end=end, calls=(call,))


def _as_written(source: Source, calls: tuple[TextCall, ...], end: int) -> Found | None:
    """Return calls of tools in Python syntax, unless there is a tool that would run them."""
    if code_call(source.tools, "") is not None:
        return None
    is_cut = calls[-1].state == "cut"
    return Found(end=len(source.text) if is_cut else end, calls=calls, grade="damaged")


def _read_code(source: Source, at: int) -> Found | None:
    if code_call(source.tools, "") is None:
        return None
    end, _ = source.find_any(_ENDS, at)
    is_ended = end >= 0
    end = end if is_ended else len(source.text)
    written = source.text[at:end].rstrip()
    code = _decoded(written)
    call = code_call(source.tools, code, is_ended=is_ended)
    if call is None:
        return None
    if code != written:
        note = receipt("decode_nested_text", written, code, "the code was written as a JSON string")
        call = structs.replace(call, receipts=(note,))
    return Found(end=end, calls=(call,))


def _decoded(code: str) -> str:
    """Return the code that a JSON string holds, as Functionary writes it."""
    if not code.startswith('"'):
        return code
    try:
        value = decode(code)
    except JSONTextError:
        return code
    return value if isinstance(value, str) else code
