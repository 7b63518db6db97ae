"""JSON behind a token: Granite 3, Phi-4-mini, GigaChat 3, InternLM, Apertus and `functools`."""

import re
from typing import Final

from msgspec.structs import replace

from surecall.base.errors import JSONTextError
from surecall.calls.fitting import code_call
from surecall.calls.formats import CallFormat, Found, TextCall, add_receipts
from surecall.calls.json_block import (
    close_block,
    read_after_token,
    read_block,
    read_payload,
    receipt,
)
from surecall.calls.shapes import find_calls
from surecall.calls.source import Source
from surecall.text import decode, repair_json

_SEPARATOR: Final = "<|message_sep|>"
_ROLE: Final = "function call"
_ROLE_END: Final = "<|role_sep|>"
_ACTION: Final = "<|action_start|>"
_PLUGIN: Final = "<|plugin|>"
_INTERPRETER: Final = "<|interpreter|>"
_ACTION_END: Final = "<|action_end|>"
_FENCED: Final = re.compile(r"```(?:python|py)?+\n((?:[^\n]++|\n(?!```\Z))*+)\n```")


_CLOSERS: Final[dict[str, tuple[str, ...]]] = {
    "<|tool_call|>": ("<|/tool_call|>", "<|end_tool_call|>"),
    "<|function_call|>": (),
    _SEPARATOR: (),
    _ROLE + _ROLE_END: (),
    _ACTION: (_ACTION_END,),
}


class TokenJson(CallFormat):
    """One object, an array, or objects in a row, after a special token."""

    name = "token_json"
    trims = False
    literals = tuple(_CLOSERS)

    def read(self, source: Source, at: int) -> Found | None:
        """Read the calls after the token; text that ends inside one makes it cut."""
        opener = source.starts_any(_CLOSERS, at)
        here = at + len(opener)
        if opener == _SEPARATOR:
            here = _skip_role(source, here)
            if here < 0:
                return None
        elif opener == _ACTION:
            here = source.skip_space(here)
            if source.starts(_INTERPRETER, here):
                return _read_code(source, here + len(_INTERPRETER))
            if source.starts(_PLUGIN, here):
                here += len(_PLUGIN)
        return read_after_token(source, here, opener, _CLOSERS[opener], closes=opener == _ACTION)


def _skip_role(source: Source, at: int) -> int:
    """Return where the JSON begins after `function call` as the role of a message, or -1."""
    here = source.skip_space(at)
    if not source.starts(_ROLE, here):
        return -1
    here = source.skip_space(here + len(_ROLE))
    return here + len(_ROLE_END) if source.starts(_ROLE_END, here) else -1


def _read_code(source: Source, at: int) -> Found | None:
    """Read raw code for the one tool that runs code, where there is one."""
    if code_call(source.tools, "") is None:
        return None
    end = source.find(_ACTION_END, at)
    is_cut = end < 0
    end = len(source.text) if is_cut else end
    written = source.text[at:end].strip("\n")
    fenced = _FENCED.fullmatch(written)
    call = code_call(source.tools, fenced[1] if fenced else written)
    if call is None:
        return None
    if is_cut:
        call = replace(call, state="cut")
    return Found(end=end if is_cut else end + len(_ACTION_END), calls=(call,))


_APERTUS: Final = "<|tools_prefix|>"
_CLOSER: Final = "<|tools_suffix|>"


class Apertus(CallFormat):
    """An array of objects whose keys are the names of the tools."""

    name = "apertus"
    trims = False
    literals = (_APERTUS,)

    def read(self, source: Source, at: int) -> Found | None:
        """Read the array up to its bracket; what follows without the suffix is text."""
        here = source.skip_space(at + len(_APERTUS))
        if source.at_end(here):
            return Found(end=here)
        if source.char(here) == "{":
            return _read_items(source, here, is_array=False)
        return _read_items(source, here + 1) if source.char(here) == "[" else None


def _read_items(source: Source, at: int, *, is_array: bool = True) -> Found | None:
    """Read one object after the other, so that a broken one does not hide the rest."""
    calls: list[TextCall] = []
    here = source.skip_space(at)
    while payload := read_payload(source, here, (_CLOSER, _APERTUS)):
        if payload.state == "cut":
            calls.extend(_cut_call(payload.text))
            return Found(end=payload.end, calls=tuple(calls))
        repaired = repair_json(payload.text, ended=True)
        found = find_calls(repaired.value, repaired.receipts, tools=source.tools, keyed=True)
        calls.extend(found.calls or _broken_call(payload.text))
        here = source.skip_space(payload.end)
        if is_array and source.char(here) == ",":
            here = source.skip_space(here + 1)
    if source.at_end(here) and is_array and not calls:
        return Found(end=here)
    if is_array and source.char(here) == "]":
        here += 1
    elif not calls:
        return None
    end, closer = close_block(source, here, (_CLOSER,))
    receipts = ()
    if closer != _CLOSER:
        why = "the calls themselves are complete"
        receipts = (receipt("missing_closer", closer, _CLOSER, why),)
    return Found(end=end, calls=add_receipts(calls, *receipts))


def _broken_call(text: str) -> tuple[TextCall, ...]:
    """Return the call that an object names whose arguments cannot be told."""
    return tuple(replace(call, state="unreadable") for call in _cut_call(text))


def _cut_call(text: str) -> tuple[TextCall, ...]:
    """Return the call that an object without its end was going to be, once its name is there."""
    head, colon, rest = text[1:].partition(":")
    try:
        name = decode(head.strip()) if colon else None
    except JSONTextError:
        name = None
    if not isinstance(name, str):
        return ()
    return (TextCall(name=name, arguments=rest.strip(), state="cut"),)


_WORD: Final = "functools"
_FUNCTOOLS: Final = _WORD + "["


class FunctoolsArray(CallFormat):
    """An array of calls directly after the word `functools`."""

    name = "functools"
    literals = (_FUNCTOOLS,)

    def read(self, source: Source, at: int) -> Found | None:
        """Read the array; a subscript of the Python module is none."""
        inside = source.skip_space(at + len(_FUNCTOOLS))
        if source.at_end(inside):
            return Found(end=inside)
        if source.char(inside) not in ("{", "]", '"'):
            return None
        block = read_block(source, at + len(_WORD), (_FUNCTOOLS,))
        return None if block is None else Found(end=block.end, calls=block.calls)
