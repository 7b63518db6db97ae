"""The language of answers: asked for in a block of the system text, and judged by its script."""

import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from surecall.base.errors import Code, did_you_mean
from surecall.base.records import ErrorDetail

from .zones import split_zones

Shape = Literal["ok", "drift", "unknown"]
"""Whether a text is in a language, in another one, or nobody can say."""

LANGUAGES: Final[Mapping[str, str]] = {
    "en-US": "English (United States)",
    "zh-CN": "Simplified Chinese",
    "zh-TW": "Traditional Chinese (Taiwan)",
    "yue-HK": "Cantonese (Hong Kong)",
    "ja-JP": "Japanese",
    "ko-KR": "Korean",
}
"""The languages that can be asked for."""
_ALIASES: Final = {
    "en-US": "en english enus eng",
    "zh-CN": "zh cn chinese zhhans zhhanscn zhsg mandarin simplifiedchinese",
    "zh-TW": "tw zhhant zhhanttw traditionalchinese taiwanese",
    "yue-HK": "yue hk zhhk zhhanthk cantonese",
    "ja-JP": "ja jp japanese jpn",
    "ko-KR": "ko kr korean kor",
}
_BY_ALIAS: Final = {
    alias: code
    for code, words in _ALIASES.items()
    for alias in (*words.split(), code.lower().replace("-", ""))
}
_OTHER: Final = re.compile(r"[^a-z]++")
_LANG_SPAN: Final = re.compile(r"<lang\b[^<>]{0,80}+>[^<]*+</lang>", re.IGNORECASE)
_SCRIPTS: Final = {"CJK": "han", "HIRAGANA": "kana", "KATAKANA": "kana", "HANGUL": "hangul"}
_SIMPLIFIED: Final = frozenset("这国们来时说会学对发经开关长东车马门见书话语请问给让还过现实为")
_TRADITIONAL: Final = frozenset("這國們來時說會學對發經開關長東車馬門見書話語請問給讓還過現實為裡")
_MIN_LETTERS: Final = 4
_MOST: Final = 0.5
_LITTLE: Final = 0.1


def canonical_language(name: str) -> str | None:
    """Return the code of a language that is known, such as `zh-CN` for `zh_hans`; else None."""
    return _BY_ALIAS.get(_OTHER.sub("", name.lower()))


class LanguageCheck(Struct, frozen=True, kw_only=True):
    """What the letters of a text say about its language."""

    shape: Shape
    letters: dict[str, int] = {}
    """How many letters of each script there are, outside of code and marked spans."""
    errors: tuple[ErrorDetail, ...] = ()
    """`LANGUAGE_DRIFT`, where a drift counts as a failure."""

    @property
    def ok(self) -> bool:
        """Whether nothing counts as a failure."""
        return not self.errors


class LanguagePolicy:
    """Asks for one language, and tells whether a text is in it.

    Args:
        target: The language, by code or name. One that is not known switches the policy off, with
            a `warning`.
        strict: Whether a drift is a failure.
    """

    def __init__(self, target: str, *, strict: bool = False) -> None:
        self.target = canonical_language(target)
        self.strict = strict
        self.warning: str | None = None
        """Why the policy is off."""
        if self.target is None:
            hint = did_you_mean(target, LANGUAGES)
            self.warning = f"The language {target!r} is not supported: no policy holds. {hint}"

    @property
    def block(self) -> str:
        """What the model is told; empty when the policy is off."""
        if self.target is None:
            return ""
        return (
            f"Write every answer to the user in {LANGUAGES[self.target]} ({self.target}). Leave "
            "code, JSON keys, names of tools, addresses and {{placeholders}} as they are. A "
            'passage in another language is marked: <lang code="ja-JP">...</lang>.'
        )

    def add_block(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return messages with the block before the last ones of the user and of tools.

        It is a transform of outbound messages.
        """
        if not self.block:
            return messages
        place = len(messages)
        while place > 0 and messages[place - 1].get("role") in ("user", "tool"):
            place -= 1
        if place > 0 and messages[place - 1].get("tool_calls"):
            place -= 1  # results stay behind their calls
        block = {"role": "system", "content": self.block}
        return [*messages[:place], block, *messages[place:]]

    def check(self, text: str) -> LanguageCheck:
        """Judge a text by its script; short ones and mixtures are unknown."""
        if self.target is None:
            return LanguageCheck(shape="unknown")
        letters = count_scripts(text)
        shape = _judge(self.target, letters, text)
        errors: tuple[ErrorDetail, ...] = ()
        if self.strict and shape == "drift":
            message = f"The answer is not in {LANGUAGES[self.target]}."
            errors = (ErrorDetail(Code.LANGUAGE_DRIFT, message),)
        return LanguageCheck(shape=shape, letters=letters, errors=errors)


def count_scripts(text: str) -> dict[str, int]:
    """Count the letters of a text by script, without code and passages marked as foreign."""
    counts: dict[str, int] = {}
    for zone in split_zones(text):
        if zone.is_verbatim:
            continue
        for char in _LANG_SPAN.sub("", zone.text):
            if char.isalpha():
                script = _script_of(char)
                counts[script] = counts.get(script, 0) + 1
    return counts


def _script_of(char: str) -> str:
    if char.isascii():
        return "latin"
    word = unicodedata.name(char, "").partition(" ")[0]
    return _SCRIPTS.get(word, "latin" if word == "LATIN" else "other")


def _judge(target: str, letters: dict[str, int], text: str) -> Shape:
    total = sum(letters.values())
    if total < _MIN_LETTERS:
        return "unknown"
    share = {script: count / total for script, count in letters.items()}
    han, kana, hangul = (share.get(script, 0.0) for script in ("han", "kana", "hangul"))
    latin = share.get("latin", 0.0)
    match target:
        case "en-US":
            return _shape(latin, han + kana + hangul + share.get("other", 0.0))
        case "ko-KR":
            return _shape(hangul, 1 - hangul)
        case "ja-JP":
            # Without a single kana it may still be a heading; Chinese is longer.
            if han > _MOST and not kana:
                return "drift" if total > 20 else "unknown"
            return _shape(han + kana, latin + hangul)
        case _:
            if kana > _LITTLE:
                return "drift"
            shape = _shape(han, 1 - han)
            return _judge_writing(target, text) if shape == "ok" else shape


def _shape(own: float, other: float) -> Shape:
    if own >= _MOST:
        return "ok"
    return "drift" if other > 1 - _LITTLE * 2 else "unknown"


def _judge_writing(target: str, text: str) -> Shape:
    """Tell simplified from traditional characters by some that differ."""
    simplified = sum(char in _SIMPLIFIED - _TRADITIONAL for char in text)
    traditional = sum(char in _TRADITIONAL - _SIMPLIFIED for char in text)
    own, other = (simplified, traditional) if target == "zh-CN" else (traditional, simplified)
    return "drift" if other > own and other > 1 else "ok"
