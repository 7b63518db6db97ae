"""Whether a clause says that something is accomplished, in whatever words."""

import re
from typing import Final

from .sentences import list_words, split_words

_PERFECT: Final = re.compile(
    r"(?:\b(?:have|has|had|is|are|was|were|been|got)|['’]ve|['’]s)\s+(?:(?:now|just|all|both|already)\s+)?"
    r"(?!needed|required|expected|allowed|supposed|planned)(?:[a-z]{2,20}ed|made|paid|set|sent|taken|put|given|written|gone|got|run)\b"
)
"""`It was issued`: what is accomplished, whatever the verb is."""
_PERFECT_ABROAD: Final = re.compile(
    r"\b(?:wurde|wurden|habe|haben|hat|ist)\b[^.!?]{0,80}\b[a-zäöüß]{3,30}(?:t|en)\b"
    r"|\b(?:a été|ont été|ai|avons|est)\s+[a-zéèêç]{2,30}é(?:e|s|es)?\b"
    r"|\b(?:ha sido|han sido|he|hemos|fue|está|foi|é)\s+[a-zñáéíóú]{2,30}[ai]d[oa]s?\b"
    r"|\b(?:è stat[oa]|ho|abbiamo)\s+[a-zàèéìòù]{2,30}[aiu]t[oa]\b"
)
_SIGNS: Final = ("已", "完", "成功", "好了", "ました", "완료", "습니다", "تم")
"""The same in scripts without spaces, or with other endings."""
_PAST: Final = split_words("went did made took put wrote ran gave brought carried got came")
_SPEAKERS: Final = split_words("i i'm you you're we we're so very")
_NO_DEEDS: Final = split_words(
    "needed required expected allowed supposed planned indeed tried attempted wanted hoped decided "
    "wished waited started stopped liked loved"
)
"""Whoever did these has accomplished nothing."""
_MAX_HEADLINE_WORDS: Final = 4


def is_accomplished(clause: str) -> bool:
    """Tell whether a clause that states something says that it is accomplished."""
    lowered, words = clause.casefold(), list_words(clause)
    if any(sign in clause for sign in _SIGNS) or not _PAST.isdisjoint(words):
        return True
    if _PERFECT.search(lowered) or _PERFECT_ABROAD.search(lowered):
        return True
    return _is_headline(words) or _tells_deed(words)


def _is_headline(words: list[str]) -> bool:
    """Tell whether a few words are a report of their own: `Mission accomplished`."""
    is_short = 2 <= len(words) <= _MAX_HEADLINE_WORDS and words[0] not in _SPEAKERS
    return is_short and _is_deed(words[-1])


def _tells_deed(words: list[str]) -> bool:
    """Tell whether somebody says what was done: `I finished it`, `we carefully changed it`."""
    return words[:1] in (["i"], ["we"]) and any(map(_is_deed, words[1:3]))


def _is_deed(word: str) -> bool:
    return word.endswith("ed") and word not in _NO_DEEDS
