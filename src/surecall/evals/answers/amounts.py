"""Whether a final text states one amount, plainly and no other."""

import math
import re
from collections.abc import Collection
from typing import Final
from unicodedata import normalize

from .moods import is_doubted, is_negated, is_offer
from .numbers import find_numbers, list_numbers, list_tokens
from .sentences import is_latin, is_question, list_clauses, list_sentences, list_words, split_words

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
_OTHERWISE: Final = re.compile(
    r"(?<!\bno )\b(?:more|less|fewer)\b|\bused to\b|\b(?:or|minus|times|anything but)\b"
    r"|\bmade (?:it|this|that) up\b"
)
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
_DAYS: Final = split_words(
    "d day days tag tage tagen jour jours día días dia dias giorni giorno dag dagen dagar dager "
    "dage dni dní gün hari ngày"
)
_OTHER_SPANS: Final = split_words(
    "hour hours minute minutes month months year years fortnight working work business school leap"
)
_SPANS: Final = split_words("in for within after before every next last past")
"""Right before a number of days, they make a time of it: `in 7 days`."""
_MEANS: Final = split_words(
    "tool tools call calls function functions workspace lookup search need needed required "
    "necessary"
)
"""That none of these was used says nothing about the number."""
_PARTS: Final = re.compile(r"[,:](?!\d)|[()|—–，：]| - ")
_LABELS: Final = split_words("query step stage attempt version option section chapter page room id")
_PLACES: Final = split_words("week weeks day days")
_ROWS: Final = split_words("row rows result results record records entry line")
_MAX_OFF_SHARE: Final = 1e-6
_SCALES: Final = split_words(
    "% ‰ + percent million thousand hundred billion dozen thirds k or to x"
)


def states_number(text: str, wanted: int) -> bool:
    """Tell whether a text names one number of days, which is the wanted one, and stands by it.

    The part of a sentence with the number counts days, or has nothing but words that cannot
    change it, in a language that is known here; of other scripts only the number is read.
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
    if any(_is_denial(clause) or _names_place(clause) for clause in list_clauses(sentence)):
        return True
    if not list_numbers(sentence):
        is_alternative = list_words(sentence)[:1] == ["or"]
        return is_alternative or (not is_question(sentence) and _is_doubtful(sentence))
    if is_question(sentence) or _OTHERWISE.search(sentence.casefold()) or _is_doubtful(sentence):
        return True
    return not all(_is_plain(part) for part in _PARTS.split(sentence) if list_numbers(part))


def _is_denial(clause: str) -> bool:
    """Tell whether a clause denies something else than that tools were needed."""
    is_aside = not list_numbers(clause) and not _MEANS.isdisjoint(list_words(clause))
    return is_negated(clause) and not is_aside


def _is_doubtful(sentence: str) -> bool:
    return any(is_doubted(clause) and not is_offer(clause) for clause in list_clauses(sentence))


def _is_plain(part: str) -> bool:
    """Tell whether nothing next to a number makes it anything but a number of days."""
    tokens = list_tokens(part)
    if not _OTHER_SPANS.isdisjoint(tokens):
        return False
    for start, end, _ in find_numbers(tokens):
        before, after = tokens[max(start - 1, 0) : start], tokens[end : end + 2]
        counts_days = not _DAYS.isdisjoint(after)
        if not _LABELS.isdisjoint(before) or (counts_days and not _SPANS.isdisjoint(before)):
            return False
        if not counts_days and any(map(_is_other_thing, after[:1])):
            return False
    return True


def _is_other_thing(word: str) -> bool:
    """Tell whether a word after a number may be what is counted, and no day."""
    return word == "of" or (is_latin(word) and word not in _PLAIN_WORDS | _PLAIN_WORDS_ABROAD)


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
