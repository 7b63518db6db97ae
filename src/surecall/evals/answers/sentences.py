"""The sentences, clauses and words of a final text."""

import re
from typing import Final
from unicodedata import category, normalize

QUOTES: Final = "\"'` \t\r\n"
ASKING: Final = ("?", "？", "؟")
_SENTENCE: Final = re.compile(r"(?:[^.!?;\n。！？؟]|(?<=\d)\.(?=\d))++[.!?;\n。！？؟]*+")
_CLAUSE: Final = re.compile(r"[,:](?!\d)|[()|—–，：]| - |(?<!thing)(?<! all) but | and | so ")
_WORD: Final = re.compile(r"[^\W_]++(?:['’][^\W\d_]++)?+")


def split_words(words: str) -> frozenset[str]:
    """Return the words of a list that is written as one text."""
    return frozenset(words.split())


def says_nothing(text: str) -> bool:
    """Tell whether a text has no letter, digit or sign that a reader could see."""
    return not any(category(char)[0] in "LNS" for char in text)


def list_sentences(text: str) -> list[str]:
    """Return the sentences of a text, with what ends them."""
    found = (match.group().strip() for match in _SENTENCE.finditer(normalize("NFKC", text)))
    return [sentence for sentence in found if sentence]


def list_clauses(text: str) -> list[str]:
    """Return the parts of a text that stand on their own."""
    parts = (part for sentence in list_sentences(text) for part in _CLAUSE.split(sentence))
    return [part for part in parts if part.strip()]


def list_words(text: str) -> list[str]:
    """Return the words of a text without case."""
    return [word.replace("’", "'").casefold() for word in _WORD.findall(text)]


def is_latin(word: str) -> bool:
    """Tell whether a word is written in Latin letters."""
    return any(char < "\u0250" for char in word)


def is_question(sentence: str) -> bool:
    """Tell whether a sentence asks."""
    return sentence.rstrip(QUOTES + ")*_").endswith(ASKING)
