"""The final text: its language, asked for and judged by its script; its tags, left out or renamed.

Code and `{{placeholders}}` in it are left alone.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct

from surecall.base.errors import Code, did_you_mean, invalid_config
from surecall.base.patterns import lazy_pattern
from surecall.base.records import ErrorDetail, Receipt

# Parts that are left alone

_OPENER: Final = lazy_pattern(r"`{1,8}+|~~~|\{\{")
_FENCES: Final = ("```", "~~~")


class Zone(NamedTuple):
    """A part of a text."""

    text: str
    is_verbatim: bool


def split_zones(text: str) -> Iterator[Zone]:
    """Split a text into what may be changed, and code and `{{placeholders}}`, which may not.

    A fence that is never closed goes to the end; other openers without an end are plain text.
    """
    start = at = 0
    missing: set[str] = set()
    while (found := _OPENER.search(text, at)) is not None:
        opener = found.group()
        closer = "}}" if opener == "{{" else opener
        end = -1 if closer in missing else text.find(closer, found.end())
        is_fence = opener.startswith(_FENCES)
        if end < 0 and not is_fence:
            missing.add(closer)
            at = found.end()
            continue
        at = len(text) if end < 0 else end + len(closer)
        if found.start() > start:
            yield Zone(text[start : found.start()], is_verbatim=False)
        yield Zone(text[found.start() : at], is_verbatim=True)
        start = at
    if start < len(text):
        yield Zone(text[start:], is_verbatim=False)


# Language

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
_OTHER: Final = lazy_pattern(r"[^a-z]++")
_LANG_SPAN: Final = lazy_pattern(r"<lang\b[^<>]{0,80}+>[^<]*+</lang>", re.IGNORECASE)
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
        shape = _grade_script(self.target, letters, text)
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


def _grade_script(target: str, letters: dict[str, int], text: str) -> Shape:
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
            return _grade_writing(target, text) if shape == "ok" else shape


def _shape(own: float, other: float) -> Shape:
    if own >= _MOST:
        return "ok"
    return "drift" if other > 1 - _LITTLE * 2 else "unknown"


def _grade_writing(target: str, text: str) -> Shape:
    """Tell simplified from traditional characters by some that differ."""
    simplified = sum(char in _SIMPLIFIED - _TRADITIONAL for char in text)
    traditional = sum(char in _TRADITIONAL - _SIMPLIFIED for char in text)
    own, other = (simplified, traditional) if target == "zh-CN" else (traditional, simplified)
    return "drift" if other > own and other > 1 else "ok"


# Tags

EscapeMode = Literal["html_entity", "literal", "keep_backslash"]
"""What becomes of a tag behind a backslash: `&lt;b&gt;`, `<b>`, or as it is."""

_TAG: Final = lazy_pattern(r"(\\?)<(/?)([A-Za-z][\w.-]{0,40}+)([^<>]{0,200}+)>")
_CODE: Final = lazy_pattern(r"""\bcode\s*=\s*["']?([A-Za-z-]{2,12})""")
_RENAME: Final = "rename:"
_STRIP: Final = "strip"
_DROP: Final = "drop"
_LANG: Final = "lang"


class _Piece(Struct):
    """A tag, or text between tags; what is shown of it is decided when all are known."""

    text: str
    name: str = ""
    is_closer: bool = False
    rest: str = ""
    is_paired: bool = False
    shown: str | None = None

    @property
    def result(self) -> str:
        return self.text if self.shown is None else self.shown


class OutputTags:
    """Handles tags in the final text of a run; code and `{{placeholders}}` are never touched.

    Args:
        rules: For each name of a tag, `strip` leaves out the tag, `drop` also what it holds, and
            `rename:NAME` gives it another name. Tags without a rule stay.
        escape: What becomes of a tag behind a backslash.
        lang_spans: Clean `<lang code="ja-JP">` of all but a known code; without one, only what it
            holds is left.
    """

    def __init__(
        self,
        rules: Mapping[str, str],
        *,
        escape: EscapeMode = "html_entity",
        lang_spans: bool = False,
    ) -> None:
        for name, rule in rules.items():
            is_name = rule.startswith(_RENAME) and rule.removeprefix(_RENAME).isidentifier()
            if rule not in (_STRIP, _DROP) and not is_name:
                raise invalid_config(
                    f"the rule {rule!r} of the tag {name!r} is not known.",
                    "Use strip, drop or rename:NAME.",
                )
        self._rules = {name.lower(): rule for name, rule in rules.items()}
        self._escape = escape
        self._lang_spans = lang_spans

    def __call__(self, text: str) -> tuple[str, tuple[Receipt, ...]]:
        """Return the text with its tags treated, and a receipt for each change."""
        pieces = self._read(text)
        _pair(pieces)
        receipts: list[Receipt] = []
        self._treat(pieces, receipts)
        return "".join(piece.result for piece in pieces), tuple(receipts)

    def _read(self, text: str) -> list[_Piece]:
        pieces: list[_Piece] = []
        for zone in split_zones(text):
            if zone.is_verbatim:
                pieces.append(_Piece(zone.text))
                continue
            at = 0
            for found in _TAG.finditer(zone.text):
                pieces.append(_Piece(zone.text[at : found.start()]))
                pieces.append(self._read_tag(found))
                at = found.end()
            pieces.append(_Piece(zone.text[at:]))
        return pieces

    def _read_tag(self, found: re.Match[str]) -> _Piece:
        backslash, slash, name, rest = found.groups()
        name = name.lower()
        is_known = name in self._rules or (self._lang_spans and name == _LANG)
        if not is_known:
            return _Piece(found.group())
        if backslash:
            return _Piece(found.group(), shown=self._unescape(found.group()[1:]))
        return _Piece(found.group(), name, bool(slash), rest.strip())

    def _unescape(self, tag: str) -> str | None:
        if self._escape == "keep_backslash":
            return None
        if self._escape == "literal":
            return tag
        return tag.replace("<", "&lt;").replace(">", "&gt;")

    def _treat(self, pieces: list[_Piece], receipts: list[Receipt]) -> None:
        dropping: list[str] = []
        lang_codes: list[str | None] = []
        for piece in pieces:
            rule = self._rules.get(piece.name, "")
            is_drop = rule == _DROP and piece.is_paired
            if is_drop and not piece.is_closer:
                dropping.append(piece.name)
            if dropping:
                piece.shown = ""
                if is_drop and piece.is_closer and dropping[-1] == piece.name:
                    dropping.pop()
                if is_drop and piece.is_closer and not dropping:
                    receipts.append(Receipt("drop_tag", "/content", piece.name, "", lossless=False))
            elif piece.name == _LANG and self._lang_spans and not rule:
                piece.shown = _clean_lang(piece, lang_codes)
            elif rule.startswith(_RENAME):
                slash = "/" if piece.is_closer else ""
                rest = f" {piece.rest}" if piece.rest else ""
                piece.shown = f"<{slash}{rule.removeprefix(_RENAME)}{rest}>"
                receipts.append(Receipt("rename_tag", "/content", piece.text, piece.shown))
            elif piece.name:
                piece.shown = ""
                receipts.append(Receipt("strip_tag", "/content", piece.text, ""))


def _clean_lang(piece: _Piece, codes: list[str | None]) -> str:
    """Return the tag of a span in another language with nothing but a known code."""
    if not piece.is_paired:
        return ""
    if piece.is_closer:
        return "</lang>" if codes.pop() else ""
    found = _CODE.search(piece.rest)
    code = canonical_language(found[1]) if found else None
    codes.append(code)
    return f'<lang code="{code}">' if code else ""


def _pair(pieces: Iterable[_Piece]) -> None:
    """Mark the tags that have their other half: closers end the nearest opener of their name."""
    open_tags: dict[str, list[_Piece]] = {}
    for piece in pieces:
        if not piece.name or piece.rest.endswith("/"):
            continue
        waiting = open_tags.setdefault(piece.name, [])
        if not piece.is_closer:
            waiting.append(piece)
        elif waiting:
            waiting.pop().is_paired = piece.is_paired = True
