"""Tags in a final text: left out, left out with what they hold, or given another name."""

import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from msgspec import Struct

from surecall.base.errors import Code, invalid_config
from surecall.base.records import ErrorDetail, Receipt, clip

from .language import canonical_language
from .zones import split_zones

EscapeMode = Literal["html_entity", "literal", "keep_backslash"]
"""What becomes of a tag behind a backslash: `&lt;b&gt;`, `<b>`, or as it is."""

_TAG: Final = re.compile(r"(\\?)<(/?)([A-Za-z][\w.-]{0,40}+)([^<>]{0,200}+)>")
_CODE: Final = re.compile(r"""\bcode\s*=\s*["']?([A-Za-z-]{2,12})""")
_RENAME: Final = "rename:"
_STRIP: Final = "strip"
_DROP: Final = "drop"
_LANG: Final = "lang"


class _Piece(Struct):
    """A tag, or text between tags; what is shown of it is settled when all are known."""

    text: str
    name: str = ""
    is_closer: bool = False
    rest: str = ""
    is_paired: bool = False
    shown: str | None = None

    @property
    def result(self) -> str:
        return self.text if self.shown is None else self.shown


class TaggedText(NamedTuple):
    """A text after its tags were treated."""

    text: str
    receipts: tuple[Receipt, ...] = ()


class OutputTags:
    """Treats tags in the final text of a run; code and `{{placeholders}}` are never touched.

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
        """Treat a text as a transform of answers does."""
        return tuple(self.apply(text))  # pyright: ignore[reportReturnType]

    def apply(self, text: str) -> TaggedText:
        """Return the text with its tags treated, and a receipt for each change."""
        pieces = self._read(text)
        _pair(pieces)
        receipts: list[Receipt] = []
        self._treat(pieces, receipts)
        return TaggedText("".join(piece.result for piece in pieces), tuple(receipts))

    def check(self, text: str) -> tuple[ErrorDetail, ...]:
        """Say which tags that have a rule lack their other half."""
        pieces = self._read(text)
        _pair(pieces)
        return tuple(
            ErrorDetail(Code.INVALID_REPLY, f"{clip(piece.text, 60)} has no other half.")
            for piece in pieces
            if piece.name and not piece.is_paired and not piece.rest.endswith("/")
        )

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
