"""The numbers in a final text, as digits or as words."""

import re
from typing import Final
from unicodedata import normalize, numeric

from .sentences import is_negated, is_question, list_sentences, split_words

_UNDER_TWENTY: Final = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen
"""
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety"
_SCALES: Final = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "dozen": 12}
_SPELLED: Final = {
    **{word: number for number, word in enumerate(_UNDER_TWENTY.split())},
    **{word: 10 * number for number, word in enumerate(_TENS.split(), 2)},
}
_TOKEN: Final = re.compile(
    r"[-−]?\d[\d.,]*+(?:[^\W\d_]++)?+|[^\W\d_]++(?:['’][^\W\d_]++)?+|[%‰+*/^~<>≈≤≥$€£]"
)
_MARKUP: Final = re.compile(r"</?[A-Za-z][^<>\n]{0,40}>|\*\*")
_DIGITS: Final = re.compile(r"[-−]?\d[\d.,]*+")
_WEEKS: Final = split_words("week weeks 周 週 星期 个 個")
_OTHER_AMOUNT: Final = split_words(
    "% ‰ + * / ^ ~ < > ≈ ≤ ≥ $ € £ percent weeks months years hours minutes seconds times squared "
    "k thousand half twice double plus minus in within after working business nights"
)
"""Next to a number, they make another amount of it."""
_BEFORE: Final = split_words(
    "about around than to nearly almost roughly approximately circa least most below above between "
    "under over some"
)
_AFTER: Final = split_words("or ish give plus")
"""Shortly before or after a number, they make it uncertain."""
_HEDGES: Final = split_words(
    "maybe perhaps possibly might doubt kidding joking wrong false untrue incorrect lie lies lying "
    "supposedly allegedly depends varies unless except"
)


def states_number(text: str, wanted: int) -> bool:
    """Tell whether a text names one number of days, which is the wanted one, and stands by it.

    The one of `one week` or `1 week` is no answer. A number that is denied, doubted, asked for or
    part of another amount is not stated.
    """
    plain = _MARKUP.sub(" ", normalize("NFKC", text).replace("\ufe0f", "").replace("\u20e3", ""))
    tokens = [token.casefold() for token in _TOKEN.findall(plain)]
    places = _find_numbers(tokens)
    if not places or any(value != wanted for _, _, value in places):
        return False
    if not _HEDGES.isdisjoint(tokens):
        return False
    if any(_is_other_amount(tokens, start, end) for start, end, _ in places):
        return False
    return not any(
        is_negated(sentence) or (is_question(sentence) and list_numbers(sentence))
        for sentence in list_sentences(plain)
    )


def _is_other_amount(tokens: list[str], start: int, end: int) -> bool:
    before, after = tokens[max(start - 2, 0) : start], tokens[end : end + 2]
    if not _OTHER_AMOUNT.isdisjoint((*before[-1:], *after[:1])) or not _BEFORE.isdisjoint(before):
        return True
    return not _AFTER.isdisjoint(after) and not _find_numbers(after)


def list_numbers(text: str) -> list[float]:
    """Return every number that a text names, in order."""
    tokens = [token.casefold() for token in _TOKEN.findall(normalize("NFKC", text))]
    return [value for _, _, value in _find_numbers(tokens)]


def _find_numbers(tokens: list[str]) -> list[tuple[int, int, float]]:
    """Return each number with the places of its first token and of what follows it."""
    found: list[tuple[int, int, float]] = []
    place = 0
    while place < len(tokens):
        start, value = place, _read_digits(tokens[place])
        place += 1
        if value is None:
            place = start
            value, place = _read_words(tokens, start)
        if value is None:
            place = start + 1
        elif not (value == 1 and place < len(tokens) and tokens[place] in _WEEKS):
            found.append((start, place, value))
    return found


def _read_digits(token: str) -> float | None:
    match = _DIGITS.match(token)
    if match is None:
        return _read_sign(token)
    unit = token[match.end() :]
    if unit and unit.isascii() and unit not in {"d", "day", "days"}:
        return float("nan")  # 7k and 7th are other numbers
    try:
        return float(match.group().rstrip(".,").replace("−", "-").replace(",", ""))
    except ValueError:
        return float("nan")


def _read_sign(token: str) -> float | None:
    """Return the number that a sign of another script stands for, alone or before a unit."""
    if token.isascii():
        return None
    values = [numeric(char) for char in token if not char.isascii() and numeric(char, -1.0) >= 0]
    if values[:1] == [1.0] and len(values) > 1:
        values = values[1:]  # one week has seven days
    return values[0] if len(values) == 1 else None


def _read_words(tokens: list[str], start: int) -> tuple[float | None, int]:
    """Return the number that words from a place on spell, and the place after them."""
    total, part, place, is_number = 0.0, 0.0, start, False
    while place < len(tokens):
        word = tokens[place]
        if word in _SPELLED:
            part, is_number = part + _SPELLED[word], True
        elif word in _SCALES and (is_number or tokens[place - 1 : place] == ["a"]):
            part, is_number = max(part, 1) * _SCALES[word], True
            if _SCALES[word] >= 1_000:
                total, part = total + part, 0.0
        elif not (word == "and" and is_number and _continues(tokens, place)):
            break
        place += 1
    return (total + part if is_number else None), place


def _continues(tokens: list[str], place: int) -> bool:
    """Tell whether an `and` is within one number, as in `two hundred and five`."""
    return (
        tokens[place - 1] in _SCALES
        and tokens[place + 1 : place + 2] != []
        and (tokens[place + 1] in _SPELLED)
    )
