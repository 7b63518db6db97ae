"""Finds the JSON value in what a model wrote: between fences, in prose, or several in a row."""

import re
from itertools import pairwise
from typing import Any, Final, Literal

from msgspec import Struct

from surecall.base.errors import Code, JSONTextError
from surecall.base.records import ErrorDetail, Receipt, clip
from surecall.base.redaction import excerpt
from surecall.text.codec import decode_noting, encode

from .cursor import Cursor, Edit
from .found import (
    BRACKET_RULES,
    SEPARATOR,
    STRAY,
    Found,
    apply_edits,
    has_fence_before,
    make_edit_receipts,
    make_surrounding_receipts,
)
from .outcome import (
    CutPolicy,
    CutShortError,
    NonFinitePolicy,
    RefusedError,
    Repaired,
    Steps,
    explain_repeated_key,
    refuse,
)
from .patterns import FENCE, GAP_ANY, QUOTES, STRICT_STRING
from .reader import read, resume
from .scalars import LITERALS
from .strict import find_resumption, read_escaped
from .strings import close_string

_MAX_VALUES: Final = 10_000
_STEPS_PER_BRACKET: Final = 4
_CHARACTERS_PER_STEP: Final = 250
_MAX_PROSE_BRACKETS: Final = 256
_MAX_NESTED_TEXTS: Final = 4
_MARK: Final = "\ufeff"

_BRACKET: Final = re.compile(r"[{\[]")
_FENCE_START: Final = re.compile(
    r"(?:`{3,}+|~{3,}+)[ \t]*+(?:[\w.+#\-]*+(?=[ \t]*+[\n\r])|json5?+\b)?+"
)
_END: Final = re.compile(r"[\s;,]*+")
"""What may be left over after a text or number; a bracket would be the rest of something larger."""
_CLOSING: Final = " \t\n\r}])`~;"
_WRONG_CLOSERS: Final = frozenset(("drop_stray_closer", "fix_mismatched_closer"))
_HINT: Final = "Send one JSON value, with keys and text in double quotes and nothing around it."


class Search(Struct):
    """Looks for values in one text."""

    text: str
    cut: CutPolicy
    non_finite: NonFinitePolicy
    steps: Steps
    ended: bool
    nested: Literal["decode", "keep"]
    lead: list[Edit] = []
    """What was changed before the value."""
    closers_at: int = -1

    def __post_init__(self) -> None:
        self.closers_at = len(self.text.rstrip(_CLOSING))

    def one(self) -> Repaired:
        """Return the one value of the text, or the first of several in a row."""
        try:
            chosen, others = self._choose(self._find())
            around = make_surrounding_receipts(self.text, chosen, others, self.lead)
            return self._repair(chosen, others, around)
        except RefusedError as refusal:
            escaped = None
            if refusal.code != Code.REPAIR_BUDGET_EXCEEDED:
                escaped = read_escaped(self.text, self.steps)
            return escaped or refuse(self._explain(refusal))

    def every(self) -> tuple[Repaired, ...]:
        """Return all values of the text."""
        try:
            return tuple([self._repair(found, [], []) for found in self._find()])
        except RefusedError as refusal:
            return (refuse(self._explain(refusal)),)

    # Finding

    def _begin(self, *, is_fenced: bool = False) -> Cursor:
        return Cursor(self.text, self.non_finite, self.steps, self.closers_at, is_fenced=is_fenced)

    def _find(self) -> list[Found]:
        text = self.text
        if text[:1] in {"{", "["}:
            return self._find_brackets(0)
        lead = self._begin()
        start = lead.skip_gap(1 if text.startswith(_MARK) else 0)
        self.lead = lead.edits
        fence = _FENCE_START.match(text, start)
        if fence:
            start = lead.skip_gap(fence.end())
        if start >= len(text):
            raise RefusedError("the text is empty" if not text else "there is no value", 0)
        if text[start] not in "{[":
            found = self._try_whole(start, is_fenced=fence is not None)
            if found:
                return [found]
        found = self._find_brackets(start)
        if not found:
            raise RefusedError("there is no JSON value in the text", start)
        return found

    def _try_whole(self, start: int, *, is_fenced: bool) -> Found | None:
        """Read a value that is not an object or array, if the text is nothing else."""
        text = self.text
        cursor = self._begin(is_fenced=is_fenced)
        try:
            end = read(cursor, start)
        except CutShortError as cut:
            return self._cut_scalar(cursor, start, cut)
        except RefusedError as refusal:
            if refusal.code != Code.INVALID_JSON:
                raise
            return None
        if not self.ended and end == len(text) and text[start] not in QUOTES + "(tfnTFNu":
            cut = CutShortError("member", start, "inside a number")
            return self._cut_scalar(cursor, start, cut)
        after = _skip(STRAY if text[start] == "(" else _END, text, cursor.skip_gap(end))
        fence = FENCE.match(text, after)
        if fence and is_fenced:
            after = _skip(GAP_ANY, text, fence.end())
        # Two backticks are not text: they may be the start of a code fence.
        if after < len(text) or text[start:end] == "``":
            return None
        return Found(start, end, cursor.edits, is_fenced=is_fenced)

    def _cut_scalar(self, cursor: Cursor, start: int, cut: CutShortError) -> Found | None:
        text = self.text
        is_open_text = text[start] == '"' and not STRICT_STRING.match(text, start)
        is_number = cut.kind == "member"
        word = text[start:].lower()
        is_literal = cut.kind == "word" and any(name.startswith(word) for name in LITERALS)
        if text[start] != "(" and not (is_open_text or is_number or is_literal):
            return None
        return Found(start, len(text), self._close(cursor, cut), cut.what)

    def _find_brackets(self, start: int) -> list[Found]:
        found: list[Found] = []
        failures = 0
        match = _BRACKET.search(self.text, start)
        end = 0
        while match:
            start = match.start()
            self.steps.take(_STEPS_PER_BRACKET, start)
            one = self._read_at(start, end)
            if isinstance(one, int):
                failures += 1
                end = one
            else:
                found.append(one)
                end = one.end
            if failures > _MAX_PROSE_BRACKETS or len(found) > _MAX_VALUES:
                reason = "the text has more brackets outside a value than the limit allows"
                raise RefusedError(reason, start, Code.REPAIR_BUDGET_EXCEEDED)
            match = _BRACKET.search(self.text, end)
        return found

    def _read_at(self, start: int, previous_end: int) -> Found | int:
        """Return the value at a bracket, or where to look on when it belongs to prose."""
        text = self.text
        is_fenced = start > 0 and has_fence_before(text, previous_end, start)
        cursor = self._begin(is_fenced=is_fenced)
        known = find_resumption(text) if start == 0 else None
        try:
            end = resume(cursor, *known) if known else read(cursor, start)
        except RefusedError as refusal:
            if cursor.is_committed or refusal.code != Code.INVALID_JSON or start == 0:
                raise
            return max(refusal.position, start + 1)
        except CutShortError as cut:
            return self._end_early(cursor, start, cut, is_fenced=is_fenced)
        kinds = {edit[3] for edit in cursor.edits} & BRACKET_RULES if cursor.edits else ()
        if len(kinds) > 1 and not _WRONG_CLOSERS.isdisjoint(kinds):
            raise RefusedError("brackets are wrong in more than one way", start)
        return Found(
            start, end, cursor.edits, is_fenced=is_fenced, has_evidence=cursor.has_evidence
        )

    def _end_early(
        self, cursor: Cursor, start: int, cut: CutShortError, *, is_fenced: bool
    ) -> Found | int:
        text = self.text
        is_doubtful = text[start] == "[" and not cursor.has_evidence and not is_fenced
        if is_doubtful and text[:start].strip():
            # All of the text was looked at, and will be again from the next bracket on.
            self.steps.take((len(text) - start) // _CHARACTERS_PER_STEP, start)
            return start + 1
        has_fence_after = cut.start < len(text)
        is_complete = (
            self.ended
            and cursor.ended_with_closer
            and not any(edit[3] in BRACKET_RULES for edit in cursor.edits)
        )
        if cut.kind == "after_entry" and (is_complete or has_fence_after):
            cursor.close_all(cut.start, "close_missing_brackets")
            return Found(start, cut.start, cursor.edits, is_fenced=is_fenced)
        return Found(start, len(text), self._close(cursor, cut), cut.what, is_fenced=is_fenced)

    def _close(self, cursor: Cursor, cut: CutShortError) -> list[Edit]:
        """Note how what was cut is brought to an end; each of these changes may lose something."""
        if self.cut != "close":
            return cursor.edits
        text = self.text
        end = len(text)
        if cut.kind == "string":
            closed = close_string(text, cut.start, self.steps, is_raw=cut.is_raw)
            start = cut.start - cut.prefix_characters
            cursor.note(start, end, closed, "close_cut_string", lossless=False)
        elif cut.kind == "comment":
            cursor.note(cut.start, end, "", "drop_cut_comment", lossless=False)
            cursor.drop_comma()
        elif cut.kind == "word":
            word = text[cut.start :].lower()
            names = {LITERALS[name] for name in LITERALS if word and name.startswith(word)}
            if len(names) == 1:
                cursor.note(cut.start, end, names.pop(), "complete_cut_literal", lossless=False)
            else:
                cursor.drop_entry()
        elif cut.kind == "member":
            cursor.drop_entry()
        else:
            cursor.drop_comma()
        if cursor.stack:
            cursor.close_all(end, "close_cut_brackets")
        return cursor.edits

    # Choosing

    def _choose(self, found: list[Found]) -> tuple[Found, list[Found]]:
        """Return the value that is meant and the others; refuse when that is not clear."""
        if len(found) == 1:
            self._refuse_prose_value(found[0])
            return found[0], []
        if all(
            SEPARATOR.fullmatch(self.text, one.end, other.start) for one, other in pairwise(found)
        ):
            return found[0], found[1:]
        found = [one for one in found if one.has_evidence] or found
        if len(found) == 1:
            return found[0], []
        fenced = [one for one in found if one.is_fenced]
        objects = [one for one in found if self.text[one.start] == "{" and one.has_evidence]
        for group in (fenced, objects):
            if len(group) == 1:
                chosen = group[0]
                return chosen, [one for one in found if one is not chosen]
        raise RefusedError("several JSON values with other text between them", found[1].start)

    def _refuse_prose_value(self, one: Found) -> None:
        """Refuse brackets that are part of a sentence."""
        before = self.text[: one.start].strip()
        after = self.text[one.end :].strip(" \t\n\r}]);,`~")
        if one.has_evidence or one.is_fenced:
            return
        is_bare = any(edit[3] == "quote_bare_text" for edit in one.edits)
        is_marked = not after and (not before or before[-1] == ":" or before[-1] == "\n")
        if self.text[one.start] == "{" and is_marked:
            return
        if is_bare or not is_marked:
            raise RefusedError("brackets in prose are not a JSON value", one.start)

    # Results

    def _repair(self, chosen: Found, others: list[Found], around: list[Receipt]) -> Repaired:
        if chosen.cut is not None and self.cut == "refuse":
            return refuse(self._explain_cut(chosen), "cut")
        if others and others[-1].cut is not None:
            return refuse(self._explain_cut(others[-1]), "cut")
        value = self._decode(chosen)
        if isinstance(value, ErrorDetail):
            return refuse(value, "cut" if chosen.cut else "unreadable")
        receipts = [*around, *make_edit_receipts(self.text, [*self.lead, *chosen.edits])]
        rest: list[Any] = []
        if others:
            rest = [self._decode(one) for one in others]
            failed = next((one for one in rest if isinstance(one, ErrorDetail)), None)
            if failed is not None:
                return refuse(failed)
            receipts.append(self._make_extra_receipt(value, others, rest))
        if chosen.cut is not None:
            errors = (self._explain_cut(chosen),)
            return Repaired(value, "cut", tuple(receipts), errors, tuple(rest))
        if isinstance(value, str) and self.nested == "decode":
            value = self._unwrap(value, chosen, receipts)
            if isinstance(value, ErrorDetail):
                return refuse(value)
        return Repaired(value, "whole", tuple(receipts), (), tuple(rest))

    def _make_extra_receipt(self, value: Any, others: list[Found], rest: list[Any]) -> Receipt:
        start, end = others[0].start, others[-1].end
        encoded = encode(value)
        is_same = all(encode(one) == encoded for one in rest)
        why = f"{len(rest)} besides the one that was taken; see `rest`"
        shown = clip(self.text[start:end])
        return Receipt("extra_values", f"{start}:{end}", shown, "", is_same, why)

    def _decode(self, found: Found) -> Any:
        """Return the value, or the error that it has after all repairs."""
        mended = apply_edits(self.text, found)
        if found.cut is not None and (not mended or mended.isspace()):
            return self._explain_cut(found)
        try:
            value, repeated = decode_noting(mended)
        except JSONTextError as error:
            return ErrorDetail(error.code, error.message, error.hint)
        return explain_repeated_key(repeated[0]) if repeated else value

    def _unwrap(self, text: str, found: Found, receipts: list[Receipt]) -> Any:
        """Return the object or array that a text is, or the text."""
        inner: Any = text
        for _ in range(_MAX_NESTED_TEXTS):
            bare = inner.strip()
            if bare[:1] not in {"{", "[", '"'}:
                break
            try:
                inner, repeated = decode_noting(bare)
            except JSONTextError:
                break
            if repeated:
                return explain_repeated_key(repeated[0])
            if inner.__class__ is dict or inner.__class__ is list:
                place = f"{found.start}:{found.end}"
                receipts.append(Receipt("decode_nested_text", place, clip(text), clip(bare)))
                return inner
            if not isinstance(inner, str):
                break
        if any(edit[3] == "escape_inner_quotes" for edit in found.edits):
            reason = "text in quotes, with more quotes inside, is not a JSON value"
            return self._explain(RefusedError(reason, found.start))
        return text

    def _explain_cut(self, found: Found) -> ErrorDetail:
        message = f"the text ends {found.cut}, after {excerpt(self.text, 80, at=len(self.text))!r}."
        hint = "Send the whole value, or a shorter one."
        return ErrorDetail(Code.INVALID_JSON, message, hint)

    def _explain(self, refusal: RefusedError) -> ErrorDetail:
        position = refusal.position
        near = self.text[max(0, position - 24) : position + 24]
        message = f"{refusal.reason}, at character {position} near {near!r}."
        return ErrorDetail(refusal.code, message, _HINT)


def _skip(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position
