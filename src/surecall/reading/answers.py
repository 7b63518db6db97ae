"""A value of any schema out of what a model answered: read, or refused with what it could be.

What in a text may be the value are candidates: all of it, blocks of code, JSON in prose, or its
words. Each is fitted to the schema, and the best one is taken.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code, JSONTextError
from surecall.base.limits import MAX_ARGUMENTS_BYTES, MAX_JSON_DEPTH
from surecall.base.records import CallState, Certainty, ErrorDetail, Receipt, clip
from surecall.calls.thinking import REASONING, REASONING_CLOSERS
from surecall.schema import SchemaChecker
from surecall.schema.fitter import UNFIT, Fit, Fitter, TooMuchWorkError, same_json
from surecall.schema.mismatches import show_json
from surecall.schema.structure import nests_deeper
from surecall.schema.subschemas import SchemaParts
from surecall.text import (
    MAX_ARGUMENT_STEPS,
    CutPolicy,
    Repaired,
    decode_noting,
    repair_json,
    scan_value_end,
)

from . import wording
from .truncation import (
    came_to_its_end,
    cut_cause,
    doubt_finish,
    is_complete,
    is_missing_closer,
    may_lack_members_only,
    vouch_for_members,
)

Schema: TypeAlias = dict[str, Any] | bool
"""A JSON schema."""
Origin: TypeAlias = Literal["whole", "block", "prose", "several", "words"]
"""Where a candidate was: it is the whole text, a block of code, JSON in prose, several values of
JSON that were put into one list, or the words of the text."""

_MAX_BEATEN: Final = 8
_CUE: Final = re.compile(
    r"\b(?:final|finally|answer|corrected|correction|actually|instead|updated?|revised|result)\b",
    re.IGNORECASE,
)
_QUOTES: Final = frozenset("\"'`")
_PLAIN_RULES: Final = frozenset(
    {"drop_zero_fraction", "match_enum", "parse_boolean_text", "parse_null_text",
     "parse_number_text", "spell_date", "spell_date_time", "spell_time"}
)  # fmt: skip


class ValueCandidate(Struct, frozen=True):
    """Something that a text could also mean."""

    value: Any
    origin: Origin
    """Where it was: `whole`, `block`, `prose`, `several` or `words`."""
    fits: bool = False
    """Whether it could be made to fit the schema."""


class ValueReading(Struct, frozen=True, kw_only=True):
    """What became of a text that was asked for one value."""

    value: Any = None
    """The value, when `state` is `whole` and there are no errors; otherwise what could be made of
    the text, if anything."""
    state: CallState = "whole"
    """`whole`, `cut` (the text ends inside the value) or `unreadable`."""
    certainty: Certainty = "certain"
    """`likely` when it took a judgement to say what is meant."""
    doubt: str = ""
    """Why it is only likely: one sentence that a model can read."""
    receipts: tuple[Receipt, ...] = ()
    """Every change, in order."""
    errors: tuple[ErrorDetail, ...] = ()
    candidates: tuple[ValueCandidate, ...] = ()
    """What else the text could mean: what was beaten, or what a refusal was about."""


def read_value(
    text: str,
    schema: Schema,
    *,
    accept: Certainty = "certain",
    finish_reason: str | None = None,
    cut: CutPolicy | None = None,
    max_bytes: int = MAX_ARGUMENTS_BYTES,
    checker: SchemaChecker | None = None,
) -> ValueReading:
    """Read a value of any schema out of what a model answered; nothing is made up.

        surecall.read_value("['a', 'b']", {"type": "array"}).value  # ['a', 'b']

    Certain is what is nothing but the value: JSON that fits, after repairs and coercions that
    leave one meaning, an option, a number or a boolean that is all of the text, or any text for a
    schema that asks for a string, which is taken as it is. Likely is what a careful reader would
    find: JSON in prose, an option in a sentence, `key: value` lines, a number with its unit. What
    could be two things equally is refused with `VALUE_AMBIGUOUS`.

    A value with `state` `whole` and no errors fits the schema. A value that was cut is never
    `whole`; what can be saved of it is in `value` only with `cut="close"`.

    Args:
        text: What the model wrote.
        schema: A JSON schema, or a boolean as JSON Schema has it.
        accept: `likely` also takes readings that rest on a judgement; otherwise these are refused
            with `VALUE_NOT_CERTAIN`, and listed in `candidates`.
        finish_reason: Why the model stopped; it decides whether a value can be whole.
        cut: What becomes of a value that is cut; `close` where likely readings are accepted,
            `refuse` otherwise, unless it is given.
        max_bytes: Longer text is refused unread.
        checker: The compiled schema, when there is one already.

    Raises:
        ToolDefinitionError: The schema cannot be used.
    """
    if len(text) > max_bytes:
        return _refuse(wording.refuse_long_text(len(text), max_bytes))
    if checker is None:
        checker = SchemaChecker(_as_schema(schema))
    checker.compile()
    if cut is None:
        cut = "close" if accept == "likely" else "refuse"
    body, receipt = _drop_reasoning(text)
    reader = _Reader(body, checker, finish_reason)
    try:
        reading = reader.read()
    except TooMuchWorkError:
        reading = _refuse(wording.TOO_MUCH_WORK)
    if receipt is not None:
        reading = replace(reading, receipts=(receipt, *reading.receipts))
    return _accept(reading, reader.origin, accept, finish_reason, cut)


def _as_schema(schema: Schema) -> dict[str, Any]:
    # Here other descriptions of a type may come to be read.
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    return schema


def _accept(
    reading: ValueReading,
    origin: Origin,
    accept: Certainty,
    finish_reason: str | None,
    cut: CutPolicy,
) -> ValueReading:
    """Return a reading as far as the caller takes it, and the reason the reply ended allows."""
    cause = cut_cause(finish_reason)
    if cause is not None and reading.state == "whole":
        reading = replace(reading, state="cut", errors=(wording.refuse_cut_value(cause),))
    if reading.state == "cut":
        return reading if cut == "close" else replace(reading, value=None)
    if reading.state == "whole" and reading.certainty == "certain":
        doubt = doubt_finish(finish_reason)
        if doubt:
            reading = replace(reading, certainty="likely", doubt=doubt)
    if reading.state != "whole" or accept == "likely" or reading.certainty == "certain":
        return reading
    seen = ValueCandidate(reading.value, origin, fits=True)
    return replace(
        reading,
        value=None,
        state="unreadable",
        errors=(wording.refuse_doubtful(reading.doubt), *reading.errors),
        candidates=(seen, *reading.candidates)[:_MAX_BEATEN],
    )


# Candidates

_MAX_SPANS: Final = 48
_MAX_FAILED: Final = 12
_MAX_PASSES: Final = 2
_FREE_CHARS: Final = 10_000
_COSTS: Final[dict[Origin, int]] = {
    "whole": 0, "block": 1, "prose": 2, "several": 3, "words": 8
}  # fmt: skip
_FENCE: Final = re.compile(r"^[ \t]{0,3}(`{3,}+|~{3,}+)[ \t]*+([^\n`]*+)(?:\n|\Z)", re.MULTILINE)
_INLINE_FENCE: Final = re.compile(r"```(?:json)?+")
_OPENER: Final = re.compile(r"[{\[]")
_MEMBER: Final = re.compile(r"\s*+(?:\"[^\"\n]{1,80}\"|'[^'\n]{1,80}')\s*+:")
_AROUND: Final = frozenset({"strip_prose", "extra_values"})
_BETWEEN: Final = " \t\r\n,;"
_BRACKETS: Final = frozenset("{[")
_JSON_SIGNS: Final = frozenset(',:"')
_CLOSERS: Final = frozenset("}]")
_MARK: Final = "\ufeff"
_QUOTES_OF_ONE: Final = 2


class _Candidate(NamedTuple):
    """Something in a text that may be the value."""

    value: Any
    origin: Origin
    start: int
    end: int
    receipts: tuple[Receipt, ...] = ()
    doubt: str = ""
    is_cut: bool = False

    @property
    def cost(self) -> int:
        """How far it is from being all that was said."""
        is_damaged = self.doubt == wording.NOT_QUITE_JSON
        return _COSTS[self.origin] + len(self.receipts) // 4 + 4 * is_damaged


def _repair(text: str, *, ended: bool, guess: bool = False) -> Repaired:
    """Return the JSON in a text; every repair of a value goes through here.

    `guess` asks for the likeliest of several readings: only where it is clear that JSON was meant,
    and where it begins and ends. Words, and several values, are judged by the schema instead.
    """
    return repair_json(
        text,
        cut="close",
        ended=ended,
        nested="keep",
        max_steps=MAX_ARGUMENT_STEPS,
        guess=guess,
    )


def _drop_reasoning(text: str) -> tuple[str, Receipt | None]:
    """Return the text behind what the model thought aloud before it."""
    start = 0
    for closer in REASONING_CLOSERS:
        at = text.find(closer)
        if at < 0:
            continue
        before = text[:at].lstrip()
        openers = [opener for opener, mark in REASONING.items() if closer in mark.closers]
        if before.startswith(tuple(openers)) or not any(item in before for item in openers):
            start = max(start, at + len(closer))
    if not start:
        return text, None
    receipt = Receipt("drop_reasoning", f"0:{start}", clip(text[:start]), "")
    return text[start:], receipt


def _find_whole(text: str, *, ended: bool) -> _Candidate | None:
    """Return the value that a text is, with nothing but a code fence around it."""
    bare = text.strip().removeprefix(_MARK)
    if not bare:
        return None
    try:
        value, repeated = decode_noting(bare)
    except JSONTextError:
        pass
    else:
        return None if repeated else _Candidate(value, "whole", 0, len(text))
    found = _repair(bare, ended=ended)
    if found.state == "unreadable" or _is_part(found):
        return None
    if isinstance(found.value, str) and found.receipts and bare.count(bare[0]) > _QUOTES_OF_ONE:
        return None  # several strings, or words that begin and end with a quotation
    if found.state == "cut":
        if not isinstance(found.value, (dict, list)):
            return None
        found = _keep_last(bare, found, ended=ended)
    return _as_candidate(found, "whole", 0, len(text))


def _find_spans(text: str, *, ended: bool) -> list[_Candidate]:
    """Return the objects and arrays in a text, in order, each with its place."""
    fences = list(_find_fences(text))
    found: list[_Candidate] = []
    at = failed = 0
    left = _MAX_PASSES * len(text) + _FREE_CHARS
    while len(found) < _MAX_SPANS and failed < _MAX_FAILED and left > 0:
        opener = _OPENER.search(text, at)
        if opener is None:
            break
        start = opener.start()
        fence = next((item for item in fences if item[0] <= start < item[1]), None)
        limit = fence[1] if fence else len(text)
        inner = text[start:limit]
        length = scan_value_end(inner)
        piece = inner if length is None else inner[:length]
        left -= len(piece)
        is_closed = length is not None or (fence is not None and fence[2])
        origin: Origin = "block" if fence else "prose"
        one = _read_span(piece, start, origin, ended=is_closed or ended)
        if one is None and length is not None and fence is not None:
            # A quote that is not escaped may have ended the value too soon.
            one = _read_span(inner.rstrip(), start, origin, ended=True)
        if one is None:
            one = _guess_span(text, piece, start, origin, ended=is_closed or ended)
        if one is None:
            failed += 1
            at = start + 1
        else:
            found.append(one)
            at = one.end
    return found


def _read_span(
    piece: str, start: int, origin: Origin, *, ended: bool, guess: bool = False
) -> _Candidate | None:
    found = _repair(piece, ended=ended, guess=guess)
    if found.state == "unreadable" or not isinstance(found.value, (dict, list)):
        return None
    if _is_part(found) or piece == "[ ]":
        return None
    if found.state == "cut" and not guess:
        found = _keep_last(piece, found, ended=ended)
    return _as_candidate(found, origin, start, start + len(piece))


def _keep_last(text: str, found: Repaired, *, ended: bool) -> Repaired:
    """Return a cut value with the number or word that was written last, as far as it goes."""
    closed = _repair(text, ended=ended, guess=True)
    is_better = closed.state == "cut" and not _is_part(closed) and closed.value is not None
    return closed if is_better else found


def _guess_span(
    text: str, piece: str, start: int, origin: Origin, *, ended: bool
) -> _Candidate | None:
    """Return the likeliest reading of all behind a bracket, or of what it seems to enclose."""
    if not text[:start].strip() and text.rstrip()[-1:] in _CLOSERS:
        whole = _read_span(text[start:].rstrip(), start, "whole", ended=ended, guess=True)
        if whole is not None and not whole.is_cut:
            return whole
    if origin == "prose" and not _JSON_SIGNS & set(piece):
        return None  # a remark in brackets
    return _read_span(piece, start, origin, ended=ended, guess=True)


def _is_part(found: Repaired) -> bool:
    """Tell whether there is more in the text than the value that was found."""
    return bool(found.rest) or any(receipt.rule in _AROUND for receipt in found.receipts)


def _find_fences(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield where the content of each block of code begins and ends, and whether it is closed."""
    at = 0
    for _ in range(_MAX_SPANS):
        opener = _FENCE.search(text, at)
        if opener is None:
            return
        mark = opener[1]
        # `json {"a": 1}` on the line of the fence is content.
        tag_end = opener.end(2) if not _BRACKETS & set(opener[2]) else opener.start(2)
        end = text.find(mark, opener.end(1))
        yield tag_end, len(text) if end < 0 else end, end >= 0
        if end < 0:
            return
        at = end + len(mark)


def _find_blocks(text: str) -> Iterator[tuple[str, int]]:
    """Yield the content of each block of code, and where it begins."""
    for start, end, _ in _find_fences(text):
        yield text[start:end].strip("\n"), start


def _add_braces(text: str, *, ended: bool) -> _Candidate | None:
    """Return the object whose braces are missing: `"a": 1, "b": 2`."""
    body = text.strip()
    if not _MEMBER.match(body):
        return None
    opened = body if body.endswith("}") else body.rstrip(",") + "}"
    found = _repair("{" + opened, ended=ended)
    if found.state != "whole" or not isinstance(found.value, dict) or _is_part(found):
        return None
    one = _as_candidate(found, "whole", 0, len(text))
    step = Receipt("add_braces", "0:0", clip(body), clip("{" + opened), why=wording.BRACES_MISSING)
    return one._replace(receipts=(step, *one.receipts), doubt=wording.BRACES_MISSING)


def _words_of(text: str) -> _Candidate:
    """Return the words of a text as a candidate."""
    return _Candidate(text.strip(), "words", 0, len(text), (), wording.WORDS_ALONE)


def _surround(candidate: _Candidate, text: str) -> _Candidate:
    """Return a candidate with a receipt and a doubt for the text around it."""
    before, after = text[: candidate.start].strip(), text[candidate.end :].strip()
    if not before and not after:
        return candidate
    steps: list[Receipt] = []
    if before:
        steps.append(Receipt("strip_prose", f"0:{candidate.start}", clip(before), ""))
    if after:
        steps.append(Receipt("strip_prose", f"{candidate.end}:{len(text)}", clip(after), ""))
    return candidate._replace(
        receipts=(*steps, *candidate.receipts), doubt=candidate.doubt or wording.IN_PROSE
    )


def _as_candidate(found: Repaired, origin: Origin, start: int, end: int) -> _Candidate:
    doubt = ""
    if any(map(is_missing_closer, found.receipts)):
        doubt = wording.MISSING_END
    elif getattr(found, "certainty", "certain") == "likely" or not all(
        receipt.lossless for receipt in found.receipts
    ):
        doubt = wording.NOT_QUITE_JSON
    return _Candidate(found.value, origin, start, end, found.receipts, doubt, found.state == "cut")


# The best of them


class _Fitted(NamedTuple):
    candidate: _Candidate
    fit: Fit
    cost: int


class _Reader:
    """Reads one text."""

    __slots__ = ("_certain", "_checker", "_ended", "_likely", "_parts", "_text", "origin")

    def __init__(self, text: str, checker: SchemaChecker, finish_reason: str | None) -> None:
        self._text = text
        self._checker = checker
        self._ended = came_to_its_end(finish_reason)
        self._parts = SchemaParts.of(checker)
        self.origin: Origin = "whole"
        """Where the value was."""
        self._certain = Fitter(self._parts, in_answer=True)
        self._likely = Fitter(self._parts, in_answer=True, likely=True)

    def read(self) -> ValueReading:
        """Return what the text says.

        Raises:
            TooMuchWorkError: the forms that the value may take multiply.
        """
        whole = self._vouch(_find_whole(self._text, ended=self._ended))
        if self._asks_for_text() and not _is_json_text(whole):
            return ValueReading(value=self._text)
        if whole is not None and not whole.is_cut:
            certain = self._read_certainly(whole)
            if certain is not None:
                return certain
        spoken = self._read_words()
        if spoken is not None:
            return spoken
        if not self._text.strip():
            return _refuse(wording.EMPTY_TEXT)
        candidates = list(self._list_candidates(whole))
        fitted = [self._fit(candidate) for candidate in candidates]
        return self._choose(_gather(fitted))

    # What is certain

    def _vouch(self, whole: _Candidate | None) -> _Candidate | None:
        """Take the doubt from a value that may lack only members, and has all there are."""
        if whole is None or whole.doubt != wording.NOT_QUITE_JSON:
            return whole
        text = self._text.strip().removeprefix(_MARK)
        has_all = is_complete(whole.value, self._checker.schema)
        if not (has_all and may_lack_members_only(text, whole.receipts)):
            return whole
        return whole._replace(receipts=vouch_for_members(whole.receipts), doubt="")

    def _read_certainly(self, whole: _Candidate) -> ValueReading | None:
        """Return a value that fits as it is, or after changes that leave one meaning."""
        value = whole.value
        if nests_deeper(value, MAX_JSON_DEPTH):
            return None
        fit = Fit(value) if self._checker.is_valid(value) else self._certain.fit(value)
        if not self._checker.is_valid(fit.value):
            return None
        doubt = whole.doubt or next(iter(fit.doubts), "")
        return ValueReading(
            value=fit.value,
            receipts=whole.receipts + fit.receipts,
            certainty="likely" if doubt else "certain",
            doubt=doubt,
        )

    def _asks_for_text(self) -> bool:
        """Tell whether any text of this kind is a value as it is."""
        view = self._parts.view(self._parts.root)
        return view.kind == "string" and view.options is None and self._checker.is_valid(self._text)

    def _read_words(self) -> ValueReading | None:
        """Return the option or scalar that is all of the text."""
        types = self._parts.view(self._parts.root).types
        bare = self._text.strip()
        if bare[:1] in _QUOTES and bare[-1:] != bare[:1]:
            return None  # the end may be missing
        if types is None or types & {"object", "array"}:
            return None
        if bare != self._text and self._checker.is_valid(bare):
            step = Receipt("strip_prose", "", clip(self._text), clip(bare))
            return ValueReading(value=bare, receipts=(step,))
        if self._checker.is_valid(bare):
            return ValueReading(value=bare)
        fit = self._certain.fit(bare)
        is_plain = {item.rule for item in fit.receipts} <= _PLAIN_RULES
        if is_plain and self._checker.is_valid(fit.value):
            return ValueReading(value=fit.value, receipts=fit.receipts)
        return None

    # What is likely

    def _list_candidates(self, whole: _Candidate | None) -> Iterable[_Candidate]:
        text, ended = self._text, self._ended
        if whole is not None:
            yield whole
            if not isinstance(whole.value, str):
                return
            yield _words_of(whole.value)
            return
        braced = _add_braces(text, ended=ended)
        if braced is not None:
            yield braced
        spans = _find_spans(text, ended=ended)
        for span in spans:
            yield _surround(span, text)
        if any(map(_is_meant_as_json, spans)):
            return
        for block, start in _find_blocks(text):
            if block.strip():
                inner = _words_of(block)._replace(start=start, end=start + len(block))
                yield _surround(inner, text)
        yield _words_of(text)

    def _fit(self, candidate: _Candidate) -> _Fitted:
        value = candidate.value
        if nests_deeper(value, MAX_JSON_DEPTH):
            return _Fitted(candidate, Fit(value, UNFIT), UNFIT)
        self._likely.null_word = _null_word(candidate)
        fit = self._likely.fit(value)
        return _Fitted(candidate, fit, candidate.cost + fit.cost + self._distance(fit.value))

    def _distance(self, value: Any) -> int:
        """Return how many declared properties a value lacks, and how many others it has."""
        if not isinstance(value, dict):
            return 0
        names = self._likely.view().properties.keys()
        return len(names ^ cast("dict[str, Any]", value).keys()) if names else 0

    def _choose(self, fitted: list[_Fitted]) -> ValueReading:
        """Return the reading of the best candidate."""
        if not fitted:
            return _refuse(wording.NO_VALUE)
        cut = [one for one in fitted if one.candidate.is_cut]
        if cut:
            return self._report_cut(min(cut, key=lambda one: one.cost), fitted)
        good = [one for one in fitted if one.fit.fits and self._checker.is_valid(one.fit.value)]
        if not good:
            return self._report_unfit(min(fitted, key=lambda one: one.cost), fitted)
        least = min(one.cost for one in good)
        best = [one for one in good if one.cost == least]
        chosen = best[-1]
        why = ""
        if not all(same_json(one.fit.value, chosen.fit.value) for one in best):
            cued = [one for one in best if self._has_cue(one, best)]
            in_row = [] if cued else self._first_in_row(best, fitted)
            if len(cued or in_row) != 1:
                shown = tuple(one.fit.value for one in best)
                reading = _refuse(wording.refuse_several(shown))
                return replace(reading, candidates=_list_beaten(best, None))
            chosen = (cued or in_row)[0]
            why = wording.CUED if cued else wording.FIRST_IN_ROW
        candidate, fit, _ = chosen
        self.origin = candidate.origin
        beaten = _list_beaten(fitted, chosen)
        doubts = [*fit.doubts, candidate.doubt]
        if why:
            doubts.insert(0, why)
        doubt = next((item for item in doubts if item), "")
        if not doubt and beaten:
            doubt = wording.SEVERAL_SEEN
        receipts = candidate.receipts + fit.receipts
        if not doubt and receipts and not all(item.lossless for item in receipts):
            doubt = wording.NOT_QUITE_JSON
        if not doubt and candidate.origin != "whole":
            doubt = wording.IN_PROSE
        return ValueReading(
            value=fit.value,
            receipts=receipts,
            certainty="likely" if doubt else "certain",
            doubt=doubt,
            candidates=beaten,
        )

    def _has_cue(self, one: _Fitted, rivals: list[_Fitted]) -> bool:
        """Tell whether the words before a candidate say that it is the one meant."""
        start = one.candidate.start
        ends = [rival.candidate.end for rival in rivals if rival.candidate.end <= start]
        return _CUE.search(self._text[max([start - 160, *ends, 0]) : start]) is not None

    def _first_in_row(self, best: list[_Fitted], fitted: list[_Fitted]) -> list[_Fitted]:
        """Return the first of values that follow one another with nothing said between them."""
        spans = sorted({(one.candidate.start, one.candidate.end) for one in fitted})
        start, end = best[0].candidate.start, best[-1].candidate.end
        for left, right in spans:
            if left > start and self._text[start:left].strip(_BETWEEN):
                return []
            start = max(start, right)
        return best[:1] if start >= end and best[0].candidate.origin != "words" else []

    def _report_cut(self, one: _Fitted, fitted: list[_Fitted]) -> ValueReading:
        error = wording.refuse_cut_value(wording.ENDS_INSIDE)
        return ValueReading(
            value=one.fit.value,
            state="cut",
            certainty="likely",
            doubt=wording.MISSING_END,
            receipts=one.candidate.receipts + one.fit.receipts,
            errors=(error,),
            candidates=_list_beaten(fitted, one),
        )

    def _report_unfit(self, one: _Fitted, fitted: list[_Fitted]) -> ValueReading:
        """Say what is wrong with what comes closest."""
        notes = one.fit.notes or tuple(note for item in fitted for note in item.fit.notes)
        found = [wording.as_value_error(note, Code.VALUE_AMBIGUOUS) for note in notes]
        value = one.fit.value
        if not found and one.candidate.origin == "words":
            found = [wording.NO_VALUE]
        else:
            known = {error.path for error in found}
            found += [
                wording.as_value_error(error, Code.VALUE_INVALID)
                for error in self._checker.check(value)
                if error.path not in known
            ]
        is_value = one.candidate.origin != "words" or not isinstance(value, str)
        return ValueReading(
            value=value if is_value else None,
            state="unreadable",
            receipts=one.candidate.receipts + one.fit.receipts if is_value else (),
            errors=tuple(dict.fromkeys(found)) or (wording.NO_VALUE,),
            candidates=_list_beaten(fitted, one),
        )


def _is_json_text(whole: _Candidate | None) -> bool:
    """Tell whether a text is a JSON string, and not only words."""
    return whole is not None and isinstance(whole.value, str) and not whole.receipts


def _is_meant_as_json(span: _Candidate) -> bool:
    """Tell whether a value in a text is surely one, and not a remark in brackets."""
    is_large = isinstance(span.value, dict) or span.origin == "block"
    return is_large and span.doubt != wording.NOT_QUITE_JSON


def _gather(fitted: list[_Fitted]) -> list[_Fitted]:
    """Put values that each make a list of one into one list, as a model means that writes several.

    The same value again is the same answer.
    """
    ones = [one for one in fitted if one.fit.fits and _is_single(one)]
    if all(same_json(one.fit.value, ones[0].fit.value) for one in ones):
        return fitted
    values = [item for one in ones for item in one.fit.value]
    why = wording.SEVERAL_GATHERED
    step = Receipt("gather_values", "", len(values), clip(show_json(values)), why=why)
    whole = _Candidate(
        values,
        "several",
        ones[0].candidate.start,
        ones[-1].candidate.end,
        tuple(receipt for one in ones for receipt in one.candidate.receipts),
        why,
        any(one.candidate.is_cut for one in ones),
    )
    receipts = (*(receipt for one in ones for receipt in one.fit.receipts), step)
    fit = Fit(values, sum(one.fit.cost for one in ones), receipts, (why,))
    left = [one for one in fitted if one not in ones]
    return [*left, _Fitted(whole, fit, whole.cost + min(one.cost for one in ones))]


def _is_single(one: _Fitted) -> bool:
    """Tell whether an object of a text was taken as a list of one."""
    return isinstance(one.candidate.value, dict) and isinstance(one.fit.value, list)


def _null_word(candidate: _Candidate) -> str:
    """Return the one word that stood wherever a value has null, such as `None`."""
    steps = [item for item in candidate.receipts if item.rule == "replace_literal"]
    words = {str(item.before) for item in steps if item.after == "null"}
    if len(words) != 1 or len(words) != len({item.after for item in steps}):
        return ""
    return words.pop() if _count_nulls(candidate.value) == len(steps) else ""


def _count_nulls(value: Any) -> int:
    found, level = 0, [value]
    while level:
        item = level.pop()
        found += item is None
        if isinstance(item, (dict, list)):
            level += cast("dict[str, Any]", item).values() if isinstance(item, dict) else item
    return found


def _list_beaten(fitted: list[_Fitted], chosen: _Fitted | None) -> tuple[ValueCandidate, ...]:
    others = sorted((one for one in fitted if one is not chosen), key=lambda one: one.cost)
    found: list[ValueCandidate] = []
    for one in others:
        value = one.fit.value
        if chosen is not None and same_json(value, chosen.fit.value):
            continue
        if isinstance(value, str) and one.candidate.origin == "words" and not one.fit.fits:
            continue
        found.append(ValueCandidate(value, one.candidate.origin, one.fit.fits))
    return tuple(found[:_MAX_BEATEN])


def _refuse(error: ErrorDetail) -> ValueReading:
    return ValueReading(state="unreadable", errors=(error,))
