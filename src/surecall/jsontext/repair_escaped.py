"""JSON that was escaped as a whole, one time too often: its quotes, its line breaks, for HTML."""

import html
import re
from collections.abc import Iterator
from typing import Any, Final

from surecall.errors import JSONTextError
from surecall.records import Receipt, clip

from .codec import decode, decode_noting
from .repair_signals import RefusedError, Steps
from .repaired import Repaired

__all__ = ["read_escaped"]

_ENTITY: Final = re.compile(r"&(?:quot|amp|lt|gt|apos|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")
_QUOTED_OR_BLANK: Final = re.compile(r"(\"(?:[^\"\\]++|\\.)*+\"?+|\\[^nrt])|\\[nrt]", re.DOTALL)
_RAW_BLANKS: Final = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t"})


_MARKS_PER_STEP: Final = 3


def read_escaped(text: str, steps: Steps) -> Repaired | None:
    """Return the object or array of a text that is strict JSON once it is unescaped, or None."""
    bare = text.strip()
    if bare[:1] not in ("{", "["):
        return None
    marks = bare.count("&") + bare.count("\\") + bare.count('"')
    try:
        steps.take(marks // _MARKS_PER_STEP, 0)
    except RefusedError:
        return None
    for rule, inner in _unescaped(bare):
        try:
            value: Any
            value, repeated = decode_noting(inner)
        except JSONTextError:
            continue
        if not repeated:
            receipt = Receipt(rule, f"0:{len(text)}", clip(text), clip(inner))
            return Repaired(value, "whole", (receipt,))
    return None


def _unescaped(text: str) -> Iterator[tuple[str, str]]:
    if '"' not in text and "&" in text:
        inner, count = _ENTITY.subn(lambda match: html.unescape(match[0]), text)
        if text.count("&") == count:
            yield "unescape_entities", inner
    if "\\" not in text:
        return
    try:
        yield "decode_nested_text", str(decode(f'"{text.translate(_RAW_BLANKS)}"'))
    except JSONTextError:
        pass
    # A backslash written twice could be one of JSON, or one that was escaped with the rest.
    if "\\\\" not in text:
        yield "strip_invisible", _QUOTED_OR_BLANK.sub(lambda match: match[1] or " ", text)
