"""The reading of one answer: candidates are fitted to the schema, and the best one is taken."""

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code
from surecall.base.limits import MAX_ARGUMENTS_BYTES, MAX_JSON_DEPTH
from surecall.base.records import CallState, Certainty, ErrorDetail, Receipt, clip
from surecall.reading import wording
from surecall.reading.truncation import (
    came_to_its_end,
    cut_cause,
    doubt_finish,
    is_complete,
    may_lack_members_only,
    vouch_for_members,
)
from surecall.schema import SchemaChecker
from surecall.schema.coerce.parts import SchemaParts
from surecall.schema.coerce.walk import Log, Walk, same_json
from surecall.schema.coerce.walk import TooMuchWorkError as WalkTooLongError
from surecall.schema.explain import show_json
from surecall.schema.narrow import nests_deeper
from surecall.text import CutPolicy

from .candidates import (
    Candidate,
    Origin,
    add_braces,
    decode_nested,
    drop_reasoning,
    find_blocks,
    find_spans,
    find_whole,
    surround,
    words_of,
)
from .fit import UNFIT, Fit, TooMuchWorkError
from .objects import Fitter

Schema: TypeAlias = dict[str, Any] | bool
"""A JSON schema."""

_MAX_BEATEN: Final = 8
_CUE: Final = re.compile(
    r"\b(?:final|finally|answer|corrected|correction|actually|instead|updated?|revised|result)\b",
    re.IGNORECASE,
)
_MARK: Final = "\ufeff"
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
    body, receipt = drop_reasoning(text)
    reader = _Reader(body, checker, finish_reason)
    try:
        reading = reader.read()
    except (TooMuchWorkError, WalkTooLongError):
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


class _Fitted(NamedTuple):
    candidate: Candidate
    fit: Fit
    cost: int


class _Reader:
    """Reads one text."""

    __slots__ = ("_checker", "_ended", "_fitter", "_parts", "_text", "origin")

    def __init__(self, text: str, checker: SchemaChecker, finish_reason: str | None) -> None:
        self._text = text
        self._checker = checker
        self._ended = came_to_its_end(finish_reason)
        self._parts = SchemaParts(checker.schema, checker)
        self.origin: Origin = "whole"
        """Where the value was."""
        self._fitter = Fitter(checker.schema, self._parts, _decode)

    def read(self) -> ValueReading:
        """Return what the text says.

        Raises:
            TooMuchWorkError: the forms that the value may take multiply.
        """
        whole = self._vouch(find_whole(self._text, ended=self._ended))
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

    def _vouch(self, whole: Candidate | None) -> Candidate | None:
        """Take the doubt from a value that may lack only members, and has all there are."""
        if whole is None or whole.doubt != wording.NOT_QUITE_JSON:
            return whole
        text = self._text.strip().removeprefix(_MARK)
        has_all = is_complete(whole.value, self._checker.schema)
        if not (has_all and may_lack_members_only(text, whole.receipts)):
            return whole
        return whole._replace(receipts=vouch_for_members(whole.receipts), doubt="")

    def _read_certainly(self, whole: Candidate) -> ValueReading | None:
        """Return a value that fits as it is, or after changes that leave one meaning."""
        value = whole.value
        if nests_deeper(value, MAX_JSON_DEPTH):
            return None
        log = Log()
        if not self._checker.is_valid(value):
            value = Walk(self._parts).run(value, self._checker.schema, log)
            if not self._checker.is_valid(value):
                return None
        return ValueReading(
            value=value,
            receipts=whole.receipts + tuple(log.receipts),
            certainty="likely" if whole.doubt else "certain",
            doubt=whole.doubt,
        )

    def _asks_for_text(self) -> bool:
        """Tell whether any text of this kind is a value as it is."""
        view = self._parts.view(self._checker.schema)
        return view.kind == "string" and view.options is None and self._checker.is_valid(self._text)

    def _read_words(self) -> ValueReading | None:
        """Return the option or scalar that is all of the text."""
        types = self._parts.view(self._checker.schema).types
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
        log = Log()
        value = Walk(self._parts).run(bare, self._checker.schema, log)
        if {item.rule for item in log.receipts} <= _PLAIN_RULES and self._checker.is_valid(value):
            return ValueReading(value=value, receipts=tuple(log.receipts))
        return None

    # What is likely

    def _list_candidates(self, whole: Candidate | None) -> Iterable[Candidate]:
        text, ended = self._text, self._ended
        if whole is not None:
            yield whole
            if not isinstance(whole.value, str):
                return
            yield words_of(whole.value)
            return
        braced = add_braces(text, ended=ended)
        if braced is not None:
            yield braced
        spans = find_spans(text, ended=ended)
        for span in spans:
            yield surround(span, text)
        if any(map(_is_meant_as_json, spans)):
            return
        for block, start in find_blocks(text):
            if block.strip():
                inner = words_of(block)._replace(start=start, end=start + len(block))
                yield surround(inner, text)
        yield words_of(text)

    def _fit(self, candidate: Candidate) -> _Fitted:
        value = candidate.value
        if nests_deeper(value, MAX_JSON_DEPTH):
            return _Fitted(candidate, Fit(value, UNFIT), UNFIT)
        fit = self._fitter.fit(value)
        return _Fitted(candidate, fit, candidate.cost + fit.cost + self._distance(fit.value))

    def _distance(self, value: Any) -> int:
        """Return how many declared properties a value lacks, and how many others it has."""
        if not isinstance(value, dict):
            return 0
        names = self._fitter.view().properties.keys()
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
        stood_out = False
        if not all(same_json(one.fit.value, chosen.fit.value) for one in best):
            cued = [one for one in best if self._has_cue(one, best)]
            if len(cued) != 1:
                shown = tuple(one.fit.value for one in best)
                reading = _refuse(wording.refuse_several(shown))
                return replace(reading, candidates=_list_beaten(best, None))
            chosen, stood_out = cued[0], True
        candidate, fit, _ = chosen
        self.origin = candidate.origin
        beaten = _list_beaten(fitted, chosen)
        doubts = [*fit.doubts, candidate.doubt]
        if stood_out:
            doubts.insert(0, wording.CUED)
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


def _is_json_text(whole: Candidate | None) -> bool:
    """Tell whether a text is a JSON string, and not only words."""
    return whole is not None and isinstance(whole.value, str) and not whole.receipts


def _is_meant_as_json(span: Candidate) -> bool:
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
    whole = Candidate(
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


def _decode(text: str) -> Fit | None:
    found = decode_nested(text)
    if found is None:
        return None
    return Fit(found.value, found.cost, found.receipts, (found.doubt,) if found.doubt else ())


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
