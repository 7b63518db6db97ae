"""The numbers in a final text, as digits or as words."""

import re
from typing import Final
from unicodedata import normalize, numeric

from .sentences import split_words

_UNDER_TWENTY: Final = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen
"""
_TENS: Final = "twenty thirty forty fifty sixty seventy eighty ninety"
_SCALES: Final = {"hundred": 100, "thousand": 1_000, "million": 1_000_000, "dozen": 12}
_OTHER_LANGUAGES: Final = {
    2: "zwei deux dos dois twee два",
    3: "drei trois tres tre três drie три",
    4: "vier quatre cuatro quattro quatro четыре",
    5: "fünf cinq cinco cinque vijf пять",
    6: "sechs seis sei zes шесть",
    7: "sieben sept siete sette sete zeven sju syv sedm siedem семь vii",
    8: "acht huit ocho otto oito восемь",
    9: "neun neuf nueve nove negen девять",
    10: "zehn dix diez dieci dez tien десять",
}
SPELLED: Final = {
    **{word: number for number, words in _OTHER_LANGUAGES.items() for word in words.split()},
    **{word: number for number, word in enumerate(_UNDER_TWENTY.split())},
    **{word: 10 * number for number, word in enumerate(_TENS.split(), 2)},
}
_TOKEN: Final = re.compile(
    r"[-−]?[.,]?\d[\d.,]*+(?:[^\W\d_]++)?+|[^\W\d_]++(?:['’][^\W\d_]++)?+|[%‰+*/^÷×√~<>≈≤≥$€£]"
)
_DIGITS: Final = re.compile(r"[-−]?[.,]?\d[\d.,]*+")
_PADDED: Final = re.compile(r"0\d")
_WEEKS: Final = split_words("week weeks 周 週 星期 个 個 주")
_POINTING: Final = split_words("a an this that which each every any no the last first second")
_ONE_WEEK: Final = ("周", "週", "星期", "个", "個", "주")


def list_numbers(text: str) -> list[float]:
    """Return every number that a text names, in order."""
    return [value for _, _, value in find_numbers(list_tokens(text))]


def list_tokens(text: str) -> list[str]:
    """Return the numbers, words and signs of a text without case."""
    return [token.casefold() for token in _TOKEN.findall(normalize("NFKC", text))]


def find_numbers(tokens: list[str]) -> list[tuple[int, int, float]]:
    """Return each number with the places of its first token and of what follows it.

    The one of `one week`, `1 week` or `this one` is none.
    """
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
        elif value != 1 or not _is_article(tokens, start, place):
            found.append((start, place, value))
    return found


def _is_article(tokens: list[str], start: int, end: int) -> bool:
    """Tell whether a one counts nothing: it stands for a thing, or for the week itself."""
    before = tokens[max(start - 2, 0) : start]
    is_shared = tokens[end : end + 1] in (["for"], ["of"])
    is_pronoun = tokens[start] == "one" and (is_shared or not _POINTING.isdisjoint(before))
    return is_pronoun or not _WEEKS.isdisjoint(tokens[end : end + 2])


def _read_digits(token: str) -> float | None:
    match = _DIGITS.match(token)
    if match is None:
        return _read_sign(token)
    unit = token[match.end() :]
    if unit and unit.isascii() and unit not in {"d", "day", "days"}:
        return float("nan")  # 7k and 7th are other numbers
    if match.group() == "1" and unit.startswith(_ONE_WEEK):
        return None
    if _PADDED.match(match.group()):
        return float("nan")
    try:
        return float(match.group().rstrip(".,").replace("−", "-").replace(",", ""))
    except ValueError:
        return float("nan")


def _read_sign(token: str) -> float | None:
    """Return the number that a sign of another script stands for, alone or before a unit."""
    if token.isascii() or token in SPELLED:
        return None
    values = [numeric(char) for char in token if not char.isascii() and numeric(char, -1.0) >= 0]
    if values[:1] == [1.0] and len(token) > 1:
        values = values[1:]  # one week has seven days
    return values[0] if len(values) == 1 else None


def _read_words(tokens: list[str], start: int) -> tuple[float | None, int]:
    """Return the number that words from a place on spell, and the place after them."""
    total, part, place, is_number = 0.0, 0.0, start, False
    while place < len(tokens):
        word = tokens[place]
        if word in SPELLED and _adds_up(part, SPELLED[word], is_first=not is_number):
            part, is_number = part + SPELLED[word], True
        elif word in _SCALES and (is_number or tokens[place - 1 : place] == ["a"]):
            part, is_number = max(part, 1) * _SCALES[word], True
            if _SCALES[word] >= 1_000:
                total, part = total + part, 0.0
        elif not (word == "and" and is_number and _continues(tokens, place)):
            break
        place += 1
    return (total + part if is_number else None), place


def _adds_up(part: float, value: float, *, is_first: bool) -> bool:
    """Tell whether a word goes on with a number: `twenty-seven` is one, `one, seven` are two."""
    last = part % 100
    return is_first or last == 0 or (last >= 20 and last % 10 == 0 and value < 10)


def _continues(tokens: list[str], place: int) -> bool:
    """Tell whether an `and` is within one number, as in `two hundred and five`."""
    return (
        tokens[place - 1] in _SCALES
        and tokens[place + 1 : place + 2] != []
        and (tokens[place + 1] in SPELLED)
    )
