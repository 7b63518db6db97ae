"""Whether a final text states one amount, plainly and no other."""

import math
import re
from collections.abc import Collection
from typing import Final
from unicodedata import normalize

from .moods import is_doubted, is_negated
from .numbers import SPELLED, find_numbers, list_numbers, list_tokens
from .sentences import is_question, list_clauses, list_sentences, list_words, split_words

_MARKUP: Final = re.compile(
    r"</?[A-Za-z][^<>\n]{0,40}>|\*\*|(?m:^[ \t]{0,8}[*#>+-]{1,6}[ \t])|"
    r"\$(?=\d[\d.,]{0,20}\$)|(?<=\d)\$|\b(?:made|makes?)\s+up\b"
)
_SIGNS: Final = split_words("% ‰ + * / ^ ÷ × √ ~ < > ≈ ≤ ≥ $ € £ percent")
"""Next to a number, they make another amount of it."""
_BOUNDS: Final = split_words(
    "about around than nearly almost roughly approximately circa least most below above between "
    "under over some either min max minimum maximum"
)
"""Shortly before a number, they make it uncertain."""
_MONEY: Final = split_words("$ € £ euro euros eur")
_PLAIN_WORDS: Final = split_words(
    "a an the one this that it it's its is are there there's there're here here's has have having "
    "contains contain consists consist comprises comprise makes make equals equal in per each "
    "every any all of and week week's weekly calendar full whole standard normal regular more "
    "less fewer day days d answer answers number result count total correct right exactly "
    "precisely always just only simply from through to till until monday tuesday wednesday "
    "thursday friday saturday sunday mon tue wed thu fri sat sun sure course certainly definitely "
    "yes ok okay well so hi hello hey thanks thank you for asking your question my friend as "
    "everyone we know knows easy happy help glad quick do not no don't need needed required use "
    "used tool tools call calls was were i without exception exceptions doubt name named long "
    "boxed text final namely they're they that's why would be"
)
"""Around the number of days these words change nothing; any other word might."""
_OTHERWISE: Final = re.compile(r"(?<!\bno )\b(?:more|less|fewer)\b|\bused to\b")
"""Plain words that change the number when they stand like this."""
_PLAIN_WORDS_ABROAD: Final = split_words(
    "eine die der das woche hat haben tage tag es sind gibt ist zahl antwort lautet in pro jede "
    "une la le semaine a compte comporte jours jour il y dans ce sont c'est réponse est par chaque "
    "una un semana tiene días día dias dia hay en son respuesta es cada por "
    "settimana ha giorni giorno sono ci risposta è ogni uma tem há são resposta "
    "een weken dagen dag er zijn het antwoord "
    "tydzień ma dni týden má dní vecka har dagar uke har dager uge dage viikossa on päivää "
    "hafta gün hari minggu tuần ngày"
)
_LABELS: Final = split_words("query step stage attempt version option section chapter page room id")
_PLACES: Final = split_words("week weeks day days")
_ROWS: Final = split_words("row rows result results record records entry line")
_MAX_OFF_SHARE: Final = 1e-6
_SCALES: Final = split_words(
    "% ‰ + percent million thousand hundred billion dozen thirds k or to x"
)


def states_number(text: str, wanted: int) -> bool:
    """Tell whether a text names one number of days, which is the wanted one, and stands by it.

    A sentence with the number may hold nothing but words that cannot change it, in a language
    that is known here; of other scripts only the number is read.
    """
    plain = _read_plain(text)
    tokens = list_tokens(plain)
    places = find_numbers(tokens)
    if not places or any(value != wanted for _, _, value in places):
        return False
    if any(_is_other_amount(tokens, start, end) for start, end, _ in places):
        return False
    return not any(map(_spoils_days, list_sentences(plain)))


def _spoils_days(sentence: str) -> bool:
    """Tell whether a sentence denies, doubts, asks for or changes the number of days."""
    if any(is_negated(clause) or _names_place(clause) for clause in list_clauses(sentence)):
        return True
    if not list_numbers(sentence):
        is_alternative = list_words(sentence)[:1] == ["or"]
        return is_alternative or (is_doubted(sentence) and not is_question(sentence))
    if is_question(sentence) or _OTHERWISE.search(sentence.casefold()):
        return True
    words = {word for word in list_words(sentence) if word not in SPELLED}
    words = {word for word in words if not any(char.isnumeric() for char in word)}
    return not all(
        word in _PLAIN_WORDS or word in _PLAIN_WORDS_ABROAD or not _is_latin(word) for word in words
    )


def _is_latin(word: str) -> bool:
    return any(char < "\u0250" for char in word)


def _is_other_amount(tokens: list[str], start: int, end: int) -> bool:
    before, after = tokens[max(start - 2, 0) : start], tokens[end : end + 1]
    if not _SIGNS.isdisjoint((*before[-1:], *after)) or not _BOUNDS.isdisjoint(before):
        return True
    return after == ["week"] or before[-1:] == ["to"]


def _names_place(clause: str) -> bool:
    """Tell whether a number says which one it is, as in `week 7`, and not how many."""
    tokens = list_tokens(clause)
    return any(
        not _PLACES.isdisjoint(tokens[max(start - 1, 0) : start])
        and _PLACES.isdisjoint(tokens[end : end + 1])
        for start, end, _ in find_numbers(tokens)
    )


def states_amount(
    text: str, wanted: float, *, off: float, besides: Collection[float] = (), may_deny: bool = False
) -> bool:
    """Tell whether a text names one amount, which is the wanted one, and stands by it.

    Args:
        text: The final answer.
        wanted: The amount.
        off: By how much the amount may differ.
        besides: Other numbers that it may name, such as those of the question.
        may_deny: Whether it counts what is not, so that a denial is no denial of the amount.
    """
    is_named = False
    for sentence in list_sentences(_read_plain(text)):
        is_unsure = is_question(sentence) or is_doubted(sentence)
        for clause in list_clauses(sentence):
            is_denied = is_negated(clause) and not may_deny
            tokens = [token for token in list_tokens(clause) if token not in _MONEY]
            for start, end, value in find_numbers(tokens):
                if math.isclose(value, wanted, rel_tol=_MAX_OFF_SHARE, abs_tol=off):
                    if is_denied or is_unsure:
                        return False
                    is_named |= _is_plain_amount(tokens, start, end)
                elif value not in besides and not _counts_rows(tokens, end, value):
                    return False
    return is_named


def _is_plain_amount(tokens: list[str], start: int, end: int) -> bool:
    before, after = tokens[max(start - 2, 0) : start], tokens[end : end + 1]
    if not _BOUNDS.isdisjoint(before) or not _LABELS.isdisjoint(before[-1:]):
        return False
    return _SCALES.isdisjoint(after)


def _counts_rows(tokens: list[str], end: int, value: float) -> bool:
    return value == 1 and not _ROWS.isdisjoint(tokens[end : end + 1])


def list_sums(text: str) -> list[float]:
    """Return the numbers of a text that are sums of money."""
    tokens = list_tokens(_read_plain(text))
    return [
        value
        for start, end, value in find_numbers(tokens)
        if not _MONEY.isdisjoint((*tokens[max(start - 1, 0) : start], *tokens[end : end + 1]))
    ]


def _read_plain(text: str) -> str:
    """Return a text without marks that only set words off."""
    plain = normalize("NFKC", text).replace("\ufe0f", "").replace("\u20e3", "")
    return _MARKUP.sub(" ", plain)
