"""The second tier of repair: the likeliest reading of text that the first tier refuses.

What the first tier reads is certain and stays as it is. Anything else is read by a cursor that
judges instead of refusing, in two ways; the reading that loses less is taken, and the others are
kept as alternatives. A reading that was judged is never more than likely.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, Literal, NamedTuple

from msgspec.structs import replace

from surecall.base.errors import Code, JSONTextError
from surecall.base.records import ErrorDetail, Receipt, clip
from surecall.base.redaction import excerpt
from surecall.text.codec import decode_noting, encode
from surecall.text.repair.cursor import Edit
from surecall.text.repair.doubts import DOUBTS, find_doubt
from surecall.text.repair.found import has_fence_before, make_edit_receipts
from surecall.text.repair.outcome import (
    CutPolicy,
    NonFinitePolicy,
    RefusedError,
    Repaired,
    Steps,
    refuse,
)
from surecall.text.repair.patterns import QUOTES

from .cursor import LooseCursor
from .reader import read

__all__ = ["guess_json"]

_GUESSED: Final = frozenset((Code.INVALID_JSON, Code.DUPLICATE_KEY))
"""Refusals of the first tier after which it is worth guessing; the others are limits."""
_MAX_ALTERNATIVES: Final = 4
_MAX_VALUES: Final = 10_000
_MAX_PROSE_BRACKETS: Final = 256
_MAX_TEXT: Final = 200
_MAX_TWICE: Final = 20_000
"""Longer text is read in one way only: the second would take as long again."""
_LEFT_OVER: Final = "A part of the text belongs to no value."
_HINT: Final = "Send one JSON value, with keys and text in double quotes and nothing around it."

_BLANK: Final = r"[\s\ufeff\u200b\u2060]*+"
_LEAD: Final = re.compile(
    r"(?:[\s\ufeff\u200b\u2060]++|//[^\n\r]*+|/\*(?:[^*]++|\*(?!/))*+\*/|\#[^\n\r]*+"
    r"|(?:`{3,}+|~{3,}+)[ \t]*+(?:json[5cl]?+|[\w+#\-]*+(?=\s|\Z))|[,;](?=\s))*+"
)
_BRACKET: Final = re.compile(r"[{\[]")
_SEPARATOR: Final = re.compile(r"(?:[\s,;}\])]|`{3,}+(?:json[5cl]?+)?+|~{3,}+|//[^\n]*+)*+")
_ROW: Final = re.compile(r"[}\]](?:[\s,;]|`{3,}+(?:json[5cl]?+)?+|~{3,}+)*+\Z")
_COMMENT: Final = re.compile(r"\s*+(?://[^\n\r]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z))")
_MEMBER: Final = re.compile(
    rf"(?:\"(?:[^\"\\\n]++|\\.)*+\"|'(?:[^'\\\n]++|\\.)*+'|[\w$][\w$.\-]*+[\"']){_BLANK}:"
)
_BARE_MEMBERS: Final = re.compile(
    r"(?:[ \t]*+[\w$\-]++[ \t]*+:[ \t][^\n,:]++(?:[,\n]\s*+|\Z)){2,}+\Z"
)
_ITEM: Final = (
    r"(?:\"(?:[^\"\\\n]++|\\.)*+\"|'(?:[^'\\\n]++|\\.)*+'"
    r"|[+-]?+[0-9.]++(?:[eE][+-]?+[0-9]++)?+|true|false|null)"
)
_ITEMS: Final = re.compile(rf"{_ITEM}(?:[ \t]*+(?:,\s*+|\n\s*+){_ITEM})++\s*+[,\]]?+\s*+\Z")
_WORDS: Final = re.compile(r"[^\n{}\[\]]++\s*+\Z")
_ESCAPED: Final = re.compile(rf"{_BLANK}[{{\[](?:\\[nrt]|\s|[{{\[])*+\\++\"")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_UNESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t"}
_MARKDOWN: Final = re.compile(rf"{_BLANK}\\[{{\[]")
_MARKDOWN_ESCAPE: Final = re.compile(r"\\([{}\[\]_*])")
_ENTITY: Final = re.compile(r"&(?:quot|amp|lt|gt|apos|nbsp|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")

_WEIGHTS: Final = {
    "drop_stray_text": 6,
    "key_without_value": 6,
    "take_last_of_key": 4,
    "fill_missing_value": 4,
    "fix_mismatched_closer": 2,
    "drop_cut_member": 3,
    "close_cut_string": 3,
    "escape_control_characters": 0,
    "replace_quotes": 0,
}
"""What a change tells against a reading, if not 1."""


class _Read(NamedTuple):
    """One value that was read from the text."""

    start: int
    end: int
    value: Any
    edits: list[Edit]
    cut: str
    has_evidence: bool
    is_fenced: bool


class _Reading(NamedTuple):
    """One way to read the whole text."""

    value: Any
    edits: list[Edit]
    cut: str
    cost: int
    others: tuple[Any, ...] = ()
    """What else the values that were found could mean."""


def guess_json(
    text: str,
    first: Repaired,
    cut: CutPolicy,
    non_finite: NonFinitePolicy,
    steps: Steps,
    *,
    ended: bool,
    nested: Literal["decode", "keep"],
) -> Repaired:
    """Return the likeliest reading of a text, or what the first tier says of it.

    Args:
        text: The text.
        first: What became of it in the first tier.
        cut: What becomes of a value that is cut.
        non_finite: What becomes of NaN and the infinities.
        steps: The budget.
        ended: Whether the text is known to have come to its own end.
        nested: Whether a text that is itself one JSON object or array is decoded, at the top.
    """
    if first.state == "whole":
        extra = next((one for one in first.receipts if one.rule == "extra_values"), None)
        is_row = extra and _ROW.search(text, 0, int(extra.place.partition(":")[0]))
        return _list_values(first) if extra and is_row and not extra.lossless else first
    if (first.state == "cut" and cut == "refuse") or first.errors[0].code not in _GUESSED:
        return first
    if isinstance(first.value, str):
        doubt = DOUBTS["close_cut_string"]
        return replace(first, certainty="likely", doubt=doubt)
    inner, lead = _unescape(text)
    guesser = _Guesser(inner, non_finite, steps, ended=ended)
    try:
        readings = guesser.read()
    except RefusedError as refusal:
        return refuse(_explain(inner, refusal))
    if not readings:
        return first
    best = readings[0]
    if not best.cut and _throws_away(inner, best.edits):
        return refuse(ErrorDetail(Code.INVALID_JSON, _LEFT_OVER, _HINT))
    edits = best.edits
    value = best.value
    receipts = [*lead, *make_edit_receipts(inner, edits)]
    if (
        isinstance(value, str)
        and nested == "decode"
        and (found := _decode_nested(value)) is not None
    ):
        receipts.append(Receipt("decode_nested_text", f"0:{len(inner)}", clip(value), clip(value)))
        value = found
    if best.cut and cut == "refuse":
        return refuse(_explain_cut(inner, best.cut), "cut")
    if not _identify(value):
        return first
    alternatives = [one for reading in readings for one in (reading.value, *reading.others)]
    if first.value is not None:
        alternatives.append(first.value)
    return Repaired(
        value,
        "cut" if best.cut else "whole",
        tuple(receipts),
        (_explain_cut(inner, best.cut),) if best.cut else (),
        certainty="likely",
        doubt=find_doubt(edit[3] for edit in edits),
        alternatives=_pick_others(value, alternatives),
    )


def _throws_away(text: str, edits: list[Edit]) -> bool:
    """Tell whether a reading leaves out what may be a part of the value."""
    for start, end, _, rule, _ in edits:
        if rule == "key_without_value":
            return True
        dropped = text[start:end] if rule in ("drop_stray_text", "strip_prose") else ""
        if '"' in dropped or (rule == "drop_stray_text" and any(map(str.isalnum, dropped))):
            return True
    return False


def _list_values(first: Repaired) -> Repaired:
    """Put values in a row into a list: the first tier takes the first of them."""
    values = [first.value, *first.rest]
    receipts = tuple(
        Receipt("values_to_array", one.place, one.before, "[…]")
        if one.rule == "extra_values"
        else one
        for one in first.receipts
    )
    return replace(
        first,
        value=values,
        receipts=receipts,
        rest=(),
        certainty="likely",
        doubt=DOUBTS["values_to_array"],
        alternatives=(first.value,),
    )


def _pick_others(value: Any, others: list[Any]) -> tuple[Any, ...]:
    """Return the readings that differ from the one that was taken and from one another."""
    seen = {_identify(value)}
    found: list[Any] = []
    for other in others:
        encoded = _identify(other)
        if encoded and encoded not in seen and len(found) < _MAX_ALTERNATIVES:
            seen.add(encoded)
            found.append(other)
    return tuple(found)


def _identify(value: Any) -> bytes:
    """Return a value as JSON; nothing for one with half a character, which nobody can send."""
    try:
        return encode(value)
    except JSONTextError:
        return b""


def _decode_nested(text: str) -> Any:
    bare = text.strip()
    if bare[:1] not in ("{", "["):
        return None
    try:
        value, repeated = decode_noting(bare)
    except JSONTextError:
        return None
    return None if repeated else value


def _unescape(text: str) -> tuple[str, list[Receipt]]:
    """Return text that was escaped as a whole without its escapes, and a receipt for that."""
    inner, rule = text, ""
    if _ESCAPED.match(text):
        rule = "decode_nested_text"
        inner = _ESCAPE.sub(lambda match: _UNESCAPED.get(match[1], match[1]), text)
    elif _MARKDOWN.match(text):
        rule = "fix_escapes"
        inner = _MARKDOWN_ESCAPE.sub(r"\1", text)
    elif '"' not in text and "&quot;" in text:
        from html import unescape  # its table of names is large, and seldom needed

        rule = "unescape_entities"
        inner = _ENTITY.sub(lambda match: unescape(match[0]), text)
    if not rule:
        return text, []
    return inner, [Receipt(rule, f"0:{len(text)}", clip(text), clip(inner))]


def _explain(text: str, refusal: RefusedError) -> ErrorDetail:
    near = text[max(0, refusal.position - 24) : refusal.position + 24]
    message = f"{refusal.reason}, at character {refusal.position} near {near!r}."
    return ErrorDetail(refusal.code, message, _HINT)


def _explain_cut(text: str, cut: str) -> ErrorDetail:
    message = f"the text ends {cut}, after {excerpt(text, 80, at=len(text))!r}."
    return ErrorDetail(Code.INVALID_JSON, message, "Send the whole value, or a shorter one.")


class _Guesser:
    """Reads one text in several ways."""

    def __init__(
        self, text: str, non_finite: NonFinitePolicy, steps: Steps, *, ended: bool
    ) -> None:
        self.text = text
        self.non_finite: NonFinitePolicy = non_finite
        self.steps = steps
        self.ended = ended

    def read(self) -> list[_Reading]:
        """Return the ways to read the text, the best first."""
        judged = self._read_text(plain=False)
        if judged is None:
            return []
        if len(self.text) > _MAX_TWICE:
            return [judged]
        try:
            plain = self._read_text(plain=True)
        except RefusedError:  # of the budget, mostly: it shows an alternative only
            plain = None
        readings = [judged] if plain is None else [judged, plain]
        return sorted(readings, key=lambda reading: reading.cost)

    def _read_text(self, *, plain: bool) -> _Reading | None:
        text = self.text
        lead = _LEAD.match(text)
        start = lead.end() if lead else 0
        if start >= len(text):
            return None
        reads = list(self._find(start, plain=plain))
        if not reads:
            return None
        return self._choose(reads)

    def _find(self, start: int, *, plain: bool) -> Iterator[_Read]:
        text = self.text
        implied = self._find_implied(start)
        if implied is not None:
            one = self._read_at(start, start, implied, plain=plain)
            if one is not None:
                yield one
                start = one.end
            if implied != "}":
                return
        end = start
        failures = 0
        match = _BRACKET.search(text, start)
        while match and failures < _MAX_PROSE_BRACKETS:
            self.steps.take(4, match.start())
            one = self._read_at(match.start(), end, "", plain=plain)
            if one is None:
                failures += 1
                end = match.start() + 1
            else:
                yield one
                end = max(one.end, match.start() + 1)
            comment = _COMMENT.match(text, end)
            match = _BRACKET.search(text, comment.end() if comment else end)

    def _find_implied(self, start: int) -> str | None:
        """Return which brackets are missing around the text, "" for none; None: look for some."""
        text = self.text
        if text[start] in "{[":
            return None
        if _MEMBER.match(text, start):
            return "}"
        if _BRACKET.search(text, start):
            return None
        if _BARE_MEMBERS.match(text, start):
            return "}"
        if _ITEMS.match(text, start):
            return "]"
        is_short = len(text) - start <= _MAX_TEXT and _WORDS.match(text, start)
        has_word = any(one.isalnum() for one in text[start : start + _MAX_TEXT])
        if text[start] in QUOTES or (is_short and has_word):
            return ""
        return None

    def _read_at(self, start: int, before: int, implied: str, *, plain: bool) -> _Read | None:
        """Read the value at a place; None when it is nothing but brackets in prose."""
        text = self.text
        cursor = LooseCursor(text, self.steps, self.non_finite, ended=self.ended, plain=plain)
        end = read(cursor, start, implied)
        if not cursor.has_value:
            return None
        is_fenced = has_fence_before(text, before, start)
        is_alone = not text[:start].strip() and (not text[end:].strip(" \t\r\n,;}])") or start == 0)
        if not (cursor.has_evidence or is_fenced or is_alone or start == before):
            return None
        return _Read(
            start, end, cursor.value, cursor.edits, cursor.cut, cursor.has_evidence, is_fenced
        )

    def _choose(self, reads: list[_Read]) -> _Reading:
        text = self.text
        while len(reads) > 1 and reads[-1].cut and not reads[-1].value:
            reads.pop()
        if len(reads) > 1:
            between = [text[one.end : other.start] for one, other in pairwise(reads)]
            is_row = all(_SEPARATOR.fullmatch(one) for one in between)
            fenced = [one for one in reads if one.is_fenced]
            objects = [one for one in reads if isinstance(one.value, dict) and one.has_evidence]
            if not is_row:
                reads = fenced or objects or reads
        taken = reads
        edits = [edit for one in taken for edit in one.edits]
        value: Any = taken[0].value
        others: tuple[Any, ...] = ()
        if len(taken) > 1:
            value = [one.value for one in taken]
            start, end = taken[0].start, taken[-1].end
            if all(repr(one) == repr(value[0]) for one in value):
                edits.append((start, end, "", "extra_values", True))
                value = value[0]
            else:
                edits.append((start, end, "[…]", "values_to_array", True))
                others = (taken[0].value, taken[-1].value)
        self._note_around(taken, edits)
        cost = sum(_WEIGHTS.get(edit[3], 1) for edit in edits)
        return _Reading(value, edits, taken[-1].cut, cost, others)

    def _note_around(self, taken: list[_Read], edits: list[Edit]) -> None:
        """Note what is around the values and between them."""
        text = self.text
        at = 0
        for start, end in [*((one.start, one.end) for one in taken), (len(text), len(text))]:
            prose = text[at:start].strip(" \t\r\n")
            if prose:
                is_stray = not prose.strip("}]);, \t\r\n")
                is_fence = "```" in prose or "~~~" in prose
                rule = "strip_code_fence" if is_fence else "strip_prose"
                if not prose.strip("\ufeff\u200b\u2060\u00a0 "):
                    rule = "strip_invisible"
                elif is_stray:
                    rule = "drop_stray_closer" if prose.strip(",; \t\r\n") else "drop_extra_comma"
                edits.append((at, start, "", rule, True))
            at = end
