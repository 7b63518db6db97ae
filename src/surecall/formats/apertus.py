"""Apertus: `<|tools_prefix|>[{"name of a tool": {arguments}}, ...]<|tools_suffix|>`."""

from typing import Final

from surecall.errors import JSONTextError
from surecall.jsontext import decode, repair_json

from .base import CallFormat, Found, TextCall
from .json_block import close_block, noted, read_payload, receipt
from .shapes import find_calls
from .source import Source

__all__ = ["Apertus"]

_OPENER: Final = "<|tools_prefix|>"
_CLOSER: Final = "<|tools_suffix|>"


class Apertus(CallFormat):
    """An array of objects whose keys are the names of the tools."""

    name = "apertus"
    trims = False
    literals = (_OPENER,)

    def read(self, source: Source, at: int) -> Found | None:
        """Read the array up to its bracket; what follows without the suffix is text."""
        here = source.skip_space(at + len(_OPENER))
        if source.at_end(here):
            return Found(end=here)
        if source.char(here) == "{":
            return _read_items(source, here, is_array=False)
        return _read_items(source, here + 1) if source.char(here) == "[" else None


def _read_items(source: Source, at: int, *, is_array: bool = True) -> Found | None:
    """Read one object after the other, so that a broken one does not hide the rest."""
    calls: list[TextCall] = []
    here = source.skip_space(at)
    while payload := read_payload(source, here, (_CLOSER, _OPENER)):
        if payload.state == "cut":
            calls.extend(_cut_call(payload.text))
            return Found(end=payload.end, calls=tuple(calls))
        repaired = repair_json(payload.text)
        calls.extend(find_calls(repaired.value, repaired.receipts, keyed=True).calls)
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
    return Found(end=end, calls=noted(calls, *receipts))


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
