"""Sentences and clauses of a final text, and whether they deny something."""

import re
from typing import Final
from unicodedata import category, normalize

QUOTES: Final = "\"'` \t\r\n"
ASKING: Final = ("?", "？", "؟")
_SENTENCE: Final = re.compile(r"[^.!?;\n。！？؟]++[.!?;\n。！？؟]*+")
_CLAUSE: Final = re.compile(r"[,:()—–]| but | and ")
_WORD: Final = re.compile(r"[^\W_]++(?:['’][^\W\d_]++)?+")


def split_words(words: str) -> frozenset[str]:
    """Return the words of a list that is written as one text."""
    return frozenset(words.split())


_NEGATIONS: Final = split_words(
    "not no nobody nowhere never none nothing cannot cant unable failed fail fails failing failure "
    "without neither nor unfortunately refused refuse refuses decline declines declined instead "
    "incomplete unfinished undone unchanged unsaved impossible couldn "
    "nicht nichts kein keine nein leider pas jamais rien nunca nada niet geen не нет ничего"
)
_NEGATIVE_SIGNS: Final = ("不", "没", "沒", "未", "失败", "失敗", "ません", "なかった", "않", "못")
_HARMLESS_NEGATION: Final = re.compile(
    r"\b(?:no|nothing|none|not|without|nichts|rien|nada)(?:\s++(?:any|anything|a|an|the))?+\s++"
    r"(?:else|other|others|further|more|less|fewer|problem|problems|worries|issue|issues|error|errors|doubt|"
    r"need|trouble|weiter|anderes|autre|más)\b"
)
"""`No problem` and `nothing else` deny nothing of the work."""


def says_nothing(text: str) -> bool:
    """Tell whether a text has no letter, digit or sign that a reader could see."""
    return not any(category(char)[0] in "LNS" for char in text)


def list_sentences(text: str) -> list[str]:
    """Return the sentences of a text, with what ends them."""
    found = (match.group().strip() for match in _SENTENCE.finditer(normalize("NFKC", text)))
    return [sentence for sentence in found if sentence]


def list_clauses(sentence: str) -> list[str]:
    """Return the parts of a sentence that stand on their own."""
    return [part for part in _CLAUSE.split(sentence) if part.strip()]


def list_words(text: str) -> list[str]:
    """Return the words of a text without case."""
    return [word.replace("’", "'").casefold() for word in _WORD.findall(text)]


def is_question(sentence: str) -> bool:
    """Tell whether a sentence asks."""
    return sentence.rstrip(QUOTES + ")*_").endswith(ASKING)


def is_negated(sentence: str) -> bool:
    """Tell whether a sentence denies something."""
    plain = _HARMLESS_NEGATION.sub(" ", sentence.casefold())
    if any(word in _NEGATIONS or word.endswith("n't") for word in list_words(plain)):
        return True
    return any(sign in plain for sign in _NEGATIVE_SIGNS)
