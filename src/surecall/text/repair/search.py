"""Finds the JSON value in what a model wrote: between fences, in prose, or several in a row."""

import re
from itertools import pairwise
from operator import itemgetter
from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code, JSONTextError
from surecall.base.records import ErrorDetail
from surecall.base.redaction import excerpt
from surecall.text.codec import decode_noting, encode

from .certainty import find_doubt, grade, throws_away
from .containers import read, resume
from .cursor import Cursor
from .escapes import close_string
from .literals import LITERALS, rewrite_number
from .repaired import (
    Certainty,
    Changes,
    CutPolicy,
    CutShortError,
    Edit,
    NonFinitePolicy,
    RefusedError,
    Repaired,
    Steps,
    explain_repeated_key,
    refuse,
)
from .shortcuts import find_resumption, read_escaped
from .syntax import ANY_WS, FENCE, GAP_ANY, QUOTES, STRICT_STRING

_MAX_VALUES: Final = 10_000
_STEPS_PER_BRACKET: Final = 4
_CHARACTERS_PER_STEP: Final = 250
_MAX_PROSE_BRACKETS: Final = 256
_MAX_NESTED_TEXTS: Final = 4
_MAX_TEXT: Final = 200
_MARK: Final = "\ufeff"

_BRACKET: Final = re.compile(r"[{\[]")
_FENCE_START: Final = re.compile(
    r"(?:`{3,}+|~{3,}+)[ \t]*+(?:[\w.+#\-]*+(?=[ \t]*+[\n\r])|json5?+\b)?+"
)
_END: Final = re.compile(r"[\s;,]*+")
"""What may be left over after a text or number; a bracket would be the rest of something larger."""
_HINT: Final = "Send one JSON value, with keys and text in double quotes and nothing around it."

# The likely level
_LEAD: Final = re.compile(
    r"(?:[\s\ufeff\u200b\u2060]++|//[^\n\r]*+|/\*(?:[^*]++|\*(?!/))*+\*/|\#[^\n\r]*+"
    r"|(?:`{3,}+|~{3,}+)[ \t]*+(?:json[5cl]?+|[\w+#\-]*+(?=\s|\Z))|[,;](?=\s))*+"
)
_COMMENT: Final = re.compile(r"\s*+(?://[^\n\r]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/|\Z))")
_MEMBER: Final = re.compile(
    rf"(?:\"(?:[^\"\\\n]++|\\.)*+\"|'(?:[^'\\\n]++|\\.)*+'|[\w$][\w$.\-]*+[\"']){ANY_WS}:"
)
_BARE_MEMBERS: Final = re.compile(
    r"(?:[ \t]*+[\w$\-]++[ \t]*+:[ \t][^\n,:]++(?:[,\n]\s*+|\Z)){2,}+\Z"
)
_ITEM: Final = (
    r"(?:\"(?:[^\"\\\n]++|\\.)*+\"|'(?:[^'\\\n]++|\\.)*+'"
    r"|[+-]?+[0-9.]++(?:[eE][+-]?+[0-9]++)?+|true|false|null)"
)
_ITEMS: Final = re.compile(rf"{_ITEM}(?:[ \t]*+(?:,\s*+|\n\s*+){_ITEM})++\s*+[,\]]?+\s*+\Z")
_GROUPED: Final = re.compile(r"[+-]?+[0-9]{1,3}(?:,[0-9]{3})++(?:\.[0-9]++)?+\s*+\Z")
_WORDS: Final = re.compile(r"[^\n{}\[\]]++\s*+\Z")
_HALF_NUMBER: Final = re.compile(r"([+-]?+[0-9][0-9_]*+(?:\.[0-9]++)?+)(?:\.|\.?+[eE][+-]?+)?+\Z")
_LEFT_OVER: Final = "A part of the text belongs to no value."


_BRACKET_RULES: Final = frozenset(
    ("add_missing_comma", "drop_extra_comma", "drop_stray_closer", "fix_mismatched_closer")
)
"""With one of these, a bracket too few at the end is not the only thing that is wrong."""
_SEPARATOR: Final = re.compile(r"[\s,;`~]*+(?:json[5lc]?\s*+)?+")
"""What may be between values in a row."""
_LIKELY_SEPARATOR: Final = re.compile(r"(?:[\s,;}\])]|`{3,}+(?:json[5cl]?+)?+|~{3,}+|//[^\n]*+)*+")
_STRAY: Final = re.compile(r"[\s}\]);,]*+")
"""What may be left over right after a value."""

_FENCE_CHARACTERS: Final = 80
_FENCE_BEFORE: Final = re.compile(r"(?:`{3,}+|~{3,}+)[ \t]*+[\w.+#\-]*+\s*+\Z")
_KEY_BEFORE: Final = re.compile(r"[\"'”]\s*+[:=,]\s*+\Z")
_MORE_AFTER: Final = re.compile(r"\s*+[}\]]*+\s*+(?:,\s*+(?:[\"'{\[]|[\w$]++\s*+:)|:|[\"'])")
_KEY_AFTER: Final = re.compile(r"\"\s*+:|'[\w$.\-]++'\s*+:")


class Found(NamedTuple):
    """One value, or what is left of it."""

    start: int
    end: int
    edits: list[Edit]
    cut: str | None = None
    """Where the text ends, in words, when it ends inside the value."""
    is_fenced: bool = False
    has_evidence: bool = True


class Search(Struct):
    """Looks for values in one text."""

    text: str
    cut: CutPolicy
    non_finite: NonFinitePolicy
    steps: Steps
    ended: bool
    nested: Literal["decode", "keep"]
    level: Certainty = "certain"
    """Whether text that could mean several things is refused, or read by the likeliest."""
    lead: list[Edit] = []
    """What was changed before the value."""

    @property
    def guesses(self) -> bool:
        """Whether the level is likely."""
        return self.level == "likely"

    def one(self) -> Repaired:
        """Return the one value of the text, or the first of several in a row."""
        try:
            return self._repair(self._choose(self._find()))
        except RefusedError as refusal:
            escaped = None
            if refusal.code != Code.REPAIR_BUDGET_EXCEEDED and not self.guesses:
                escaped = read_escaped(self.text, self.steps)
            return escaped or refuse(self._explain(refusal))

    def grade(self, found: Repaired) -> Repaired:
        """Return a value with its certainty, or a refusal when its text may have meant another."""
        return grade(self.text, found) if found.changes.edits else found

    # Finding

    def _begin(self, *, is_fenced: bool = False) -> Cursor:
        return Cursor(
            self.text,
            self.non_finite,
            self.steps,
            level=self.level,
            is_fenced=is_fenced,
        )

    def _find(self) -> list[Found]:
        text = self.text
        if text[:1] in {"{", "["}:
            return self._find_brackets(0)
        if self.guesses:
            return self._find_behind_lead()
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
        return self._find_brackets(start)

    def _find_behind_lead(self) -> list[Found]:
        """Find values of which the outermost brackets may be missing."""
        start = _skip(_LEAD, self.text, 0)
        if start >= len(self.text):
            raise RefusedError("there is no value", 0)
        implied = self._find_implied(start)
        if implied is None:
            return self._find_brackets(start)
        one = self._read_at(start, start, implied)
        found = [] if isinstance(one, int) else [one]
        if implied != "}" or isinstance(one, int):
            return found
        return self._find_brackets(one.end, found)

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
        if _GROUPED.match(text, start):
            return ""
        if _ITEMS.match(text, start):
            return "]"
        is_short = len(text) - start <= _MAX_TEXT and _WORDS.match(text, start)
        has_word = any(one.isalnum() for one in text[start : start + _MAX_TEXT])
        return "" if text[start] in QUOTES or (is_short and has_word) else None

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
        after = _skip(_STRAY if text[start] == "(" else _END, text, cursor.skip_gap(end))
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

    def _find_brackets(self, start: int, found: list[Found] | None = None) -> list[Found]:
        found = [] if found is None else found
        first = start
        failures = 0
        match = _BRACKET.search(self.text, start)
        end = start if self.guesses else 0
        while match:
            start = match.start()
            self.steps.take(_STEPS_PER_BRACKET, start)
            one = self._read_at(start, end)
            if isinstance(one, int):
                failures += 1
                end = one
            else:
                found.append(one)
                end = max(one.end, start + 1)
            if failures > _MAX_PROSE_BRACKETS or len(found) > _MAX_VALUES:
                reason = "the text has more brackets outside a value than the limit allows"
                raise RefusedError(reason, start, Code.REPAIR_BUDGET_EXCEEDED)
            at = _skip(_COMMENT, self.text, end) if self.guesses else end
            match = _BRACKET.search(self.text, at)
        if not found:
            raise RefusedError("there is no JSON value in the text", first)
        return found

    def _read_at(self, start: int, before: int, implied: str = "") -> Found | int:
        """Return the value at a place, or where to look on when it belongs to prose."""
        text = self.text
        is_fenced = start > 0 and _has_fence_before(text, before if before < start else 0, start)
        cursor = self._begin(is_fenced=is_fenced)
        known = find_resumption(text) if start == 0 and not self.guesses else None
        try:
            end = resume(cursor, *known) if known else read(cursor, start, implied)
        except RefusedError as refusal:
            if (
                self.guesses
                or cursor.is_committed
                or refusal.code != Code.INVALID_JSON
                or not start
            ):
                raise
            return max(refusal.position, start + 1)
        except CutShortError as cut:
            found = self._end_early(cursor, start, cut, is_fenced=is_fenced)
        else:
            found = Found(
                start, end, cursor.edits, is_fenced=is_fenced, has_evidence=cursor.has_evidence
            )
        if isinstance(found, int):
            return found
        if self.guesses:
            is_alone = not text[:start].strip() and (
                not text[found.end :].strip(" \t\r\n,;}])") or start == 0
            )
            is_meant = found.has_evidence or is_fenced or is_alone or start == before
            return self._keep_open(found) if is_meant else start + 1
        return found

    def _keep_open(self, found: Found) -> Found:
        """Take a number or word for cut at the end of a text that may not have come to its own."""
        start, end = found.start, found.end
        if self.ended or end < len(self.text) or self.text[start] in QUOTES + "{[(":
            return found
        kept = (start, end, self.text[start:end], "keep_cut_value", False)
        return found._replace(edits=[*found.edits, kept], cut="inside a word")

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
        is_implied = len(cursor.stack) == 1 and cursor.stack[0].is_implied
        is_complete = (
            self.ended
            and (cursor.ended_with_closer or is_implied)
            and (cursor.guesses or not any(edit[3] in _BRACKET_RULES for edit in cursor.edits))
        )
        if cut.kind == "entry" and has_fence_after and cursor.comma >= 0:
            cursor.drop_comma()
            cut.kind = "after_entry"
        if cut.kind == "after_entry" and (is_complete or has_fence_after):
            cursor.close_all(cut.start, "close_missing_brackets")
            return Found(start, cut.start, cursor.edits, is_fenced=is_fenced)
        return Found(
            start,
            len(text),
            self._close(cursor, cut),
            cut.what,
            is_fenced=is_fenced,
            has_evidence=cursor.has_evidence or not cursor.guesses,
        )

    def _close(self, cursor: Cursor, cut: CutShortError) -> list[Edit]:
        """Note how what was cut is brought to an end; each of these changes may lose something."""
        if self.cut != "close":
            return cursor.edits
        text = self.text
        end = len(text)
        if cut.kind == "string":
            closed = close_string(text, cut.start, self.steps)
            cursor.note(cut.start, end, closed, "close_cut_string", lossless=False)
        elif cut.kind == "comment":
            cursor.note(cut.start, end, "", "drop_cut_comment", lossless=False)
            cursor.drop_comma()
        elif cut.kind == "word":
            word = text[cut.start :].lower()
            names = {LITERALS[name] for name in LITERALS if word and name.startswith(word)}
            if len(names) == 1:
                cursor.note(cut.start, end, names.pop(), "complete_cut_literal", lossless=False)
            elif not self._keep_last(cursor, cut):
                cursor.drop_entry()
        elif cut.kind == "member":
            if not self._keep_last(cursor, cut):
                cursor.drop_entry()
        else:
            cursor.drop_comma()
        if cursor.stack:
            cursor.close_all(end, "close_cut_brackets")
        return cursor.edits

    def _keep_last(self, cursor: Cursor, cut: CutShortError) -> bool:
        """Keep the number or word that the end of the text may have cut, if that is wanted."""
        if not cursor.guesses or cut.what not in _KEPT:
            return False
        last = self.text[cut.start :].rstrip()
        half = _HALF_NUMBER.match(last)
        number = rewrite_number(half[1], cut.start) if half else None
        if number is None and (not last or last in "+-." or '"' in last or "\\" in last):
            return False
        written = number or f'"{last}"'
        cursor.note(cut.start, len(self.text), written, "keep_cut_value", lossless=False)
        return True

    # Choosing

    def _choose(self, found: list[Found]) -> list[Found]:
        """Return the values that are meant, the one to take first; refuse if that is not clear."""
        text = self.text
        if self.guesses:
            while len(found) > 1 and found[-1].cut is not None and not found[-1].has_evidence:
                found = found[:-1]
        elif len(found) == 1:
            self._refuse_prose_value(found[0])
        separator = _LIKELY_SEPARATOR if self.guesses else _SEPARATOR
        if all(separator.fullmatch(text, one.end, other.start) for one, other in pairwise(found)):
            return found
        fenced = [one for one in found if one.is_fenced]
        objects = [one for one in found if text[one.start] == "{" and one.has_evidence]
        if self.guesses:
            return fenced or objects or found
        second = found[1].start
        found = [one for one in found if one.has_evidence] or found
        groups = [fenced] if len(fenced) > 1 else [found, fenced, objects]
        chosen = next((group[0] for group in groups if len(group) == 1), None)
        if chosen is None:
            raise RefusedError("several JSON values with other text between them", second)
        return [chosen, *(one for one in found if one is not chosen)]

    def _refuse_prose_value(self, one: Found) -> None:
        """Refuse brackets that are part of a sentence."""
        if one.has_evidence or one.is_fenced:
            return
        before = self.text[: one.start].strip()
        after = self.text[one.end :].strip(" \t\n\r}]);,`~")
        is_bare = any(edit[3] == "quote_bare_text" for edit in one.edits)
        is_marked = not after and (not before or before[-1] == ":" or before[-1] == "\n")
        if self.text[one.start] == "{" and is_marked:
            return
        if is_bare or not is_marked:
            raise RefusedError("brackets in prose are not a JSON value", one.start)

    # Results

    def _repair(self, taken: list[Found]) -> Repaired:
        guesses = self.guesses
        if guesses:
            around = _note_likely_around(self.text, taken)
        else:
            around = _note_around(self.text, taken[0], taken[1:], self.lead)
        first, last = taken[0], taken[-1]
        ends_open = last if guesses or first.cut is None else first
        if ends_open.cut is not None and (self.cut == "refuse" or (taken[1:] and not guesses)):
            return refuse(self._explain_cut(ends_open), "cut")
        edits = [*around, *self.lead]
        values: list[Any] = []
        for one in taken if guesses else taken[:1]:
            edits += one.edits
        for one in taken:
            value = self._decode(one, edits)
            if isinstance(value, ErrorDetail):
                return refuse(value, "cut" if one.cut and one is first else "unreadable")
            values.append(value)
        value, *rest = values
        why = ""
        alternatives: tuple[Any, ...] = ()
        if rest:
            encoded = encode(value)
            is_same = all(encode(one) == encoded for one in rest)
            start = taken[1].start if not guesses else first.start
            why = f"{len(rest)} besides the one that was taken; see `rest`"
            if is_same or not guesses:
                edits.append((start, last.end, "", "extra_values", is_same))
            else:
                edits.append((start, last.end, "[…]", "values_to_array", True))
                value, alternatives = values, (values[0], values[-1])
        if isinstance(value, str) and self.nested == "decode" and ends_open.cut is None:
            value = self._unwrap(value, first, edits)
            if isinstance(value, ErrorDetail):
                return refuse(value)
        errors = () if ends_open.cut is None else (self._explain_cut(ends_open),)
        found = Repaired(
            value,
            "cut" if errors else "whole",
            Changes(self.text, edits, why),
            errors,
            () if guesses else tuple(rest),
            alternatives=alternatives,
        )
        return self._mark_likely(found) if guesses else found

    def _mark_likely(self, found: Repaired) -> Repaired:
        """Mark a value as likely; one of which a part was thrown away is not whole."""
        edits = found.changes.edits
        doubt = find_doubt(edit[3] for edit in edits)
        if not throws_away(self.text, edits):
            return replace(found, certainty="likely", doubt=doubt)
        error = ErrorDetail(Code.INVALID_JSON, _LEFT_OVER, _HINT)
        if self.cut == "refuse":
            return refuse(error)
        state = "cut" if found.state == "cut" else "unreadable"
        errors = (*found.errors, error)
        return replace(found, state=state, errors=errors, certainty="likely", doubt=doubt)

    def _decode(self, found: Found, edits: list[Edit]) -> Any:
        """Return the value, or the error that it has after all repairs."""
        mended = _apply_edits(self.text, found)
        if found.cut is not None and (not mended or mended.isspace()):
            return self._explain_cut(found)
        try:
            value, repeated = decode_noting(mended)
        except JSONTextError as error:
            return ErrorDetail(error.code, error.message, error.hint)
        if repeated and not self.guesses:
            return explain_repeated_key(repeated[0])
        edits += [(found.start, found.end, key, "take_last_of_key", False) for key in repeated]
        return value

    def _unwrap(self, text: str, found: Found, edits: list[Edit]) -> Any:
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
                edits.append((found.start, found.end, bare, "decode_nested_text", True))
                return inner
            if not isinstance(inner, str):
                break
        is_quoted = any(edit[3] == "escape_inner_quotes" for edit in found.edits)
        if is_quoted and not self.guesses:
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


_KEPT: Final = frozenset(
    {"inside a number", "inside a word", "after a literal", "inside text without quotes"}
)
"""Where the end of the text may leave a value that is whole as it is."""


def _skip(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position


# Around a value

_start: Final = itemgetter(0)


def _apply_edits(text: str, found: Found) -> str:
    """Return the value as strict JSON."""
    pieces: list[str] = []
    position = found.start
    # Some changes are noted late, such as a comma that turns out to be the last thing.
    for start, end, after, _, _ in sorted(found.edits, key=_start):
        if start >= position:
            pieces += (text[position:start], after)
            position = end
    pieces.append(text[position : found.end])
    return "".join(pieces)


def _has_fence_before(text: str, start: int, end: int) -> bool:
    """Tell whether a code fence opens right before `end`, and not before `start`."""
    before = text[max(start, end - _FENCE_CHARACTERS) : end]
    return bool(before) and _FENCE_BEFORE.search(before) is not None


def _note_around(text: str, chosen: Found, others: list[Found], lead: list[Edit]) -> list[Edit]:
    """Return as changes what was around the value; refuse what looks like more of it."""
    if chosen.start == 0 and chosen.end == len(text):
        return []
    if _KEY_BEFORE.search(text[max(0, chosen.start - 40) : chosen.start]):
        raise RefusedError("there is a key before the value", chosen.start)
    _refuse_more(text, chosen, others)
    start = min(one.start for one in (chosen, *others))
    end = max(one.end for one in (chosen, *others))
    edits: list[Edit] = []
    end = _drop_stray(text, end, edits)
    if others and edits and edits[-1][3] == "drop_stray_closer":
        raise RefusedError("brackets are wrong in more than one way", end)
    if chosen.is_fenced:
        opener = _FENCE_BEFORE.search(text[max(0, start - _FENCE_CHARACTERS) : start])
        start -= len(opener[0]) if opener else 0
        closer = FENCE.match(text, end)
        end = closer.end() if closer else end
        edits.append((start, end, text[chosen.start : chosen.end], "strip_code_fence", True))
    first = len(_MARK) if text.startswith(_MARK) else 0
    noted = sum(edit[1] - edit[0] for edit in lead)
    for begin, finish, commented in ((first, start, noted), (end, len(text), 0)):
        prose = text[begin:finish].strip()
        if len(prose) > commented:
            edits.append((begin, finish, "", "strip_prose", True))
    return edits


def _drop_stray(text: str, end: int, edits: list[Edit]) -> int:
    """Note brackets and commas that are left over; return where they end."""
    stray = _STRAY.match(text, end)
    found = stray[0] if stray else ""
    shown = found.strip()
    if shown:
        is_bracket = any(mark in shown for mark in "}])")
        start = end + found.index(shown[0])
        rule = "drop_stray_closer" if is_bracket else "drop_extra_comma"
        edits.append((start, start + len(shown), "", rule, True))
    return end + len(found)


def _note_likely_around(text: str, taken: list[Found]) -> list[Edit]:
    """Return as changes what is around values and between them."""
    edits: list[Edit] = []
    at = 0
    for start, end in [*((one.start, one.end) for one in taken), (len(text), len(text))]:
        prose = text[at:start].strip(" \t\r\n")
        if prose:
            if not prose.strip("\ufeff\u200b\u2060\u00a0 "):
                rule = "strip_invisible"
            elif "```" in prose or "~~~" in prose:
                rule = "strip_code_fence"
            elif prose.strip("}]);, \t\r\n"):
                rule = "strip_prose"
            else:
                rule = "drop_stray_closer" if prose.strip(",; \t\r\n") else "drop_extra_comma"
            edits.append((at, start, "", rule, True))
        at = end
    return edits


def _refuse_more(text: str, chosen: Found, others: list[Found]) -> None:
    """Refuse a value that ended too soon: what follows it looks like the rest of it."""
    ends = [one.start for one in others if one.start >= chosen.end]
    tail = text[chosen.end : min(ends, default=len(text))]
    goes_on = _MORE_AFTER.match(tail) and not (ends and _SEPARATOR.fullmatch(tail))
    bare = tail.rstrip()
    is_closed_again = bare.strip("}]); \t\n\r") and bare[-1] in "}]"
    if goes_on or is_closed_again or _KEY_AFTER.search(tail):
        raise RefusedError("the text continues like JSON after the value has ended", chosen.end)
