"""Texts that are strict JSON, or would be but for one thing.

That is a code fence around them, being escaped one time too often (quotes, line breaks, for HTML),
or ending too soon.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from surecall.base.errors import Code, JSONTextError
from surecall.base.limits import MAX_JSON_DEPTH
from surecall.base.records import ErrorDetail
from surecall.text.codec import (
    Decoded,
    NotJSONError,
    decode,
    decode_doubtful,
    decode_noting,
    decode_plain,
    is_start_of_json,
)

from .repaired import Changes, Edit, RefusedError, Repaired, Steps, explain_repeated_key, refuse

_MARK: Final = "\ufeff"
_ENDS: Final = {"{": "}", "[": "]"}
_PLAIN_STARTS: Final = frozenset('"-0123456789tfn')
_REPAIRABLE: Final = frozenset((Code.INVALID_JSON, Code.NON_FINITE_NUMBER))

_FENCE_START: Final = re.compile(r"([^{\[`~]*+)(?:`{3,}+|~{3,}+)[ \t]*+[\w.+#\-]*+\s*+(?=[{\[])")
_FENCE_END: Final = re.compile(r"\s*+(`{3,}+|~{3,}+)[^{\[`~]*+\Z")

_ENTITY: Final = re.compile(r"&(?:quot|amp|lt|gt|apos|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")
_QUOTED_OR_BLANK: Final = re.compile(r"(\"(?:[^\"\\]++|\\.)*+\"?+|\\[^nrt])|\\[nrt]", re.DOTALL)
_MARKS_PER_STEP: Final = 3

_FEW_ESCAPES: Final = {"strip_invisible": 1, "decode_nested_text": 2}
"""As many may be signs that are not escaped: a line break of a text, the backslash of a key."""
_ESCAPED_SIGN: Final = "An escaped sign is outside any text, where it may not belong."
_ESCAPE: Final = re.compile(r"\\.", re.DOTALL)
_NO_BRACKETS: Final = dict.fromkeys(map(ord, " \t\n\r,:+-.0123456789Eaeflnrstu"))
_ROUNDS: Final = 8
_ESCAPED: Final = re.compile(r"\s*+[{\[](?:\s|[{\[])*+\\(?:[nrt]|\\*+\")")
_ANY_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_UNESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t"}
_MARKDOWN: Final = re.compile(r"\s*+\\[{\[]")
_MARKDOWN_ESCAPE: Final = re.compile(r"\\([{}\[\]_*])")


def read_strictly(
    text: str | bytes,
    max_bytes: int | None,
    read: Callable[..., Decoded],
    *,
    ended: bool,
    nested: str,
) -> Repaired | None:
    """Return what became of strict JSON, or None when the text needs repair."""
    if max_bytes is None and isinstance(text, str) and not _may_be_strict(text):
        return None
    try:
        value, repeated = read(text, max_bytes=max_bytes, explains=False)
    except NotJSONError:
        return None
    except JSONTextError as error:
        if error.code in _REPAIRABLE:
            return None
        return refuse(ErrorDetail(error.code, error.message, error.hint))
    if repeated:
        return refuse(explain_repeated_key(repeated[0]))
    kind: Any = value.__class__
    if (kind is str and nested == "decode") or (not ended and (kind is int or kind is float)):
        return None
    return Repaired(value)


def read_fenced(text: str) -> Repaired | None:
    """Return the strict JSON in the only code fence of a text, or None."""
    opening = _FENCE_START.match(text)
    if opening is None:
        return None
    start = opening.end()
    end = text.rfind(_ENDS[text[start]]) + 1
    closing = _FENCE_END.match(text, end)
    if closing is None or end <= start:
        return None
    inner = text[start:end]
    value: Any = decode_plain(inner)  # begins with a bracket: it cannot be null
    if value is None:
        try:
            value, repeated = decode_doubtful(inner)
        except JSONTextError:
            return None
        if repeated:
            return refuse(explain_repeated_key(repeated[0]))
    first, last = opening.end(1), closing.end(1)
    edits: list[Edit] = [(first, last, inner, "strip_code_fence", True)]
    if text[:first].strip():
        edits.append((0, first, "", "strip_prose", True))
    if text[last:].strip():
        edits.append((last, len(text), "", "strip_prose", True))
    return Repaired(value, "whole", Changes(text, edits))


def _may_be_strict(text: str) -> bool:
    """Tell by the ends of the text whether decoding is worth a try."""
    bare = text.strip(" \t\n\r")
    first = bare[:1]
    end = _ENDS.get(first)
    if end is None:
        return first in _PLAIN_STARTS or first == _MARK
    return bare[-1] == end and (first == "[" or bare[1] in '"} \t\n\r')


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
    for rule, inner in _unescape(bare):
        try:
            value: Any
            value, repeated = decode_noting(inner)
        except JSONTextError:
            continue
        if not repeated:
            # `{\"\": 1}` is also `{"\\": 1}` with two signs swapped.
            is_known = rule != "strip_invisible" and '""' not in inner
            is_sure = is_known or len(bare) - len(inner) > _FEW_ESCAPES.get(rule, 0)
            doubt = "" if is_sure else _ESCAPED_SIGN
            changes = Changes(text, [(0, len(text), inner, rule, not doubt)])
            certainty = "likely" if doubt else "certain"
            return Repaired(value, "whole", changes, certainty=certainty, doubt=doubt)
    return None


def _unescape(text: str) -> Iterator[tuple[str, str]]:
    if '"' not in text and "&" in text:
        from html import unescape  # its table of names is large, and seldom needed

        inner, count = _ENTITY.subn(lambda match: unescape(match[0]), text)
        if text.count("&") == count:
            yield "unescape_entities", inner
    if "\\" not in text:
        return
    try:
        # Three times `replace`: `translate` takes ten times as long for text beyond ASCII.
        escaped = text.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
        yield "decode_nested_text", str(decode(f'"{escaped}"'))
    except JSONTextError:
        pass
    # A backslash written twice could be one of JSON, or one that was escaped with the rest.
    if "\\\\" not in text:
        yield "strip_invisible", _QUOTED_OR_BLANK.sub(lambda match: match[1] or " ", text)


def unescape_loosely(text: str) -> tuple[str, str]:
    """Return text that was escaped as a whole without its escapes, and the rule for that."""
    if _ESCAPED.match(text):
        inner = _ANY_ESCAPE.sub(lambda match: _UNESCAPED.get(match[1], match[1]), text)
        return inner, "decode_nested_text"
    if _MARKDOWN.match(text):
        return _MARKDOWN_ESCAPE.sub(r"\1", text), "fix_escapes"
    if '"' not in text and "&quot;" in text:
        from html import unescape  # its table of names is large, and seldom needed

        return _ENTITY.sub(lambda match: unescape(match[0]), text), "unescape_entities"
    return text, ""


def find_resumption(text: str) -> tuple[int, list[str]] | None:
    """Return the last place to begin at in a text that is the start of strict JSON.

    That is a comma, an opening bracket, or the quote of a value that has no end. With it come the
    closers of the brackets that are open there.

    None for any other text, and for one that has no such place but its first character.
    """
    if text[-1] == _ENDS[text[0]] or not is_start_of_json(text):
        return None
    # Every other part is outside the strings.
    parts = (_ESCAPE.sub("__", text) if "\\" in text else text).split('"')
    last = len(parts) - 1
    end = len(text)
    if last % 2:
        end -= len(parts[last]) + 1
        last -= 1
        if parts[last].rstrip()[-1:] == ":":
            return _make_resumption(end, "".join(parts[::2]))
    while (found := _find_last_mark(parts[last])) < 0:
        end -= len(parts[last]) + len(parts[last - 1]) + 2
        last -= 2
    position = end - len(parts[last]) + found
    return _make_resumption(position, "".join(parts[:last:2]) + parts[last][:found])


def _make_resumption(position: int, outside: str) -> tuple[int, list[str]] | None:
    brackets = outside.translate(_NO_BRACKETS)
    # Pairs go quickly where few are nested; each round passes over all that is left.
    for _ in range(_ROUNDS):
        fewer = brackets.replace("{}", "").replace("[]", "")
        if fewer == brackets:
            break
        brackets = fewer
    opened: list[str] = []
    for mark in brackets:
        if mark in _ENDS:
            opened.append(_ENDS[mark])
        elif len(opened) > MAX_JSON_DEPTH - _ROUNDS:
            return None  # it was nested too deep before
        else:
            opened.pop()
    # Nothing is open at the first character.
    return (position, opened) if opened else None


def _find_last_mark(part: str) -> int:
    return max(part.rfind(","), part.rfind("{"), part.rfind("["))
