"""What in a text may be the value: all of it, blocks of code, JSON in prose, or its words."""

import re
from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from surecall.base.errors import JSONTextError
from surecall.base.records import Receipt, clip
from surecall.calls.thinking import REASONING, REASONING_CLOSERS
from surecall.reading.truncation import is_missing_closer
from surecall.reading.wording import (
    BRACES_MISSING,
    IN_PROSE,
    MISSING_END,
    NOT_QUITE_JSON,
    WORDS_ALONE,
)
from surecall.text import (
    MAX_ARGUMENT_STEPS,
    Repaired,
    decode_noting,
    repair_json,
    scan_value_end,
)

Origin: TypeAlias = Literal["whole", "block", "prose", "several", "words"]
"""Where a candidate was: it is the whole text, a block of code, JSON in prose, several values of
JSON that were put into one list, or the words of the text."""

_MAX_SPANS: Final = 48
_MAX_FAILED: Final = 12
_MAX_PASSES: Final = 2
_FREE_CHARS: Final = 10_000
_MAX_NESTED_TEXTS: Final = 2
_COSTS: Final[dict[Origin, int]] = {
    "whole": 0, "block": 1, "prose": 2, "several": 3, "words": 8
}  # fmt: skip
_FENCE: Final = re.compile(r"^[ \t]{0,3}(`{3,}+|~{3,}+)[ \t]*+([^\n`]*+)(?:\n|\Z)", re.MULTILINE)
_INLINE_FENCE: Final = re.compile(r"```(?:json)?+")
_OPENER: Final = re.compile(r"[{\[]")
_MEMBER: Final = re.compile(r"\s*+(?:\"[^\"\n]{1,80}\"|'[^'\n]{1,80}')\s*+:")
_AROUND: Final = frozenset({"strip_prose", "extra_values"})
_BRACKETS: Final = frozenset("{[")
_JSON_SIGNS: Final = frozenset(',:"')
_CLOSERS: Final = frozenset("}]")
_MARK: Final = "\ufeff"
_QUOTES_OF_ONE: Final = 2


class Candidate(NamedTuple):
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
        return _COSTS[self.origin] + len(self.receipts) // 4 + 4 * (self.doubt == NOT_QUITE_JSON)


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


def drop_reasoning(text: str) -> tuple[str, Receipt | None]:
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


def find_whole(text: str, *, ended: bool) -> Candidate | None:
    """Return the value that a text is, with nothing but a code fence around it."""
    bare = text.strip().removeprefix(_MARK)
    if not bare:
        return None
    try:
        value, repeated = decode_noting(bare)
    except JSONTextError:
        pass
    else:
        return None if repeated else Candidate(value, "whole", 0, len(text))
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


def decode_nested(text: str) -> Candidate | None:
    """Return the object or array in a text that is the value of a member, or None."""
    start = text.lstrip()[:1]
    if start not in {"{", "[", '"', "`"}:
        return None
    for _ in range(_MAX_NESTED_TEXTS):
        found = find_whole(text, ended=True)
        if found is None or found.is_cut:
            return None
        if isinstance(found.value, (dict, list)):
            return found
        if not isinstance(found.value, str):
            return None
        text = found.value
    return None


def find_spans(text: str, *, ended: bool) -> list[Candidate]:
    """Return the objects and arrays in a text, in order, each with its place."""
    fences = list(_find_fences(text))
    found: list[Candidate] = []
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
) -> Candidate | None:
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
) -> Candidate | None:
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


def find_blocks(text: str) -> Iterator[tuple[str, int]]:
    """Yield the content of each block of code, and where it begins."""
    for start, end, _ in _find_fences(text):
        yield text[start:end].strip("\n"), start


def add_braces(text: str, *, ended: bool) -> Candidate | None:
    """Return the object whose braces are missing: `"a": 1, "b": 2`."""
    body = text.strip()
    if not _MEMBER.match(body):
        return None
    opened = body if body.endswith("}") else body.rstrip(",") + "}"
    found = _repair("{" + opened, ended=ended)
    if found.state != "whole" or not isinstance(found.value, dict) or _is_part(found):
        return None
    one = _as_candidate(found, "whole", 0, len(text))
    step = Receipt("add_braces", "0:0", clip(body), clip("{" + opened), why=BRACES_MISSING)
    return one._replace(receipts=(step, *one.receipts), doubt=BRACES_MISSING)


def words_of(text: str) -> Candidate:
    """Return the words of a text as a candidate."""
    return Candidate(text.strip(), "words", 0, len(text), (), WORDS_ALONE)


def surround(candidate: Candidate, text: str) -> Candidate:
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
        receipts=(*steps, *candidate.receipts), doubt=candidate.doubt or IN_PROSE
    )


def _as_candidate(found: Repaired, origin: Origin, start: int, end: int) -> Candidate:
    doubt = ""
    if any(map(is_missing_closer, found.receipts)):
        doubt = MISSING_END
    elif getattr(found, "certainty", "certain") == "likely" or not all(
        receipt.lossless for receipt in found.receipts
    ):
        doubt = NOT_QUITE_JSON
    return Candidate(found.value, origin, start, end, found.receipts, doubt, found.state == "cut")
