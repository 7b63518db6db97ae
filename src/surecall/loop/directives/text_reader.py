"""The text of one member, decoded while the JSON around it is still arriving."""

import re
from typing import Final, Literal

from surecall.calls.thinking import REASONING
from surecall.text import ValueScanner

from .registry import tokenize

_Place = Literal[
    "start", "thinking", "before", "member", "key", "colon", "value", "text", "skip", "after"
]

_BLANK: Final = re.compile(r"\s*+")
_PLAIN: Final = re.compile(r"[^\"\\]++")
_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_BROKEN: Final = re.compile(r"\\u[0-9a-fA-F]{0,3}[^0-9a-fA-F]")
_WHOLE: Final = re.compile(
    r"(?:[^\"\\]++|\\[^u]|\\u(?![dD][89abAB])[0-9a-fA-F]{4}"
    # the first half of a character, once what follows it is there
    rf"|\\u[dD][89abAB][0-9a-fA-F]{{2}}(?=[^\\]|\\[^u]|\\u[0-9a-fA-F]{{4}}|{_BROKEN.pattern}))++"
)
_MAX_KEY_CHARS: Final = 200
_MAX_MARK_CHARS: Final = max(
    *map(len, REASONING), *(len(closer) for mark in REASONING.values() for closer in mark.closers)
)


class MemberTextReader:
    """Takes a reply in pieces and returns the decoded text of one member of its object.

    However the reply is split, the same text comes out in all. The member belongs to the first
    object that has it; what the model thinks or says before the object is passed over. What could
    still become a part of an escape is held back until it is there.

    Args:
        name: The name of the member; case and signs in the reply's spelling do not matter.
    """

    def __init__(self, name: str) -> None:
        self._name = tokenize(name)
        self._place: _Place = "start"
        self._rest = ""
        """What has arrived and cannot be used yet."""
        self._scanner = ValueScanner()
        self._passed = 0
        """How much of the value that is passed over was in earlier pieces."""
        self._key = ""
        self._closers: frozenset[str] = frozenset()
        """What ends the thoughts that the reply begins with."""
        self.is_done = False
        """Whether the member has ended; nothing more will be returned."""

    def feed(self, text: str) -> str:
        """Take a piece; return the text that it completes."""
        if self.is_done:
            return ""
        text = self._rest + text
        self._rest = ""
        shown: list[str] = []
        at: int | None = 0
        while at is not None and at < len(text) and not self.is_done:
            at = self._step(text, at, shown)
        return "".join(shown)

    def _step(self, text: str, at: int, shown: list[str]) -> int | None:
        """Go on from a place; return the next one, or None when more text is needed."""
        match self._place:
            case "start":
                return self._begin(text, at)
            case "thinking":
                return self._end_thoughts(text, at)
            case "before":
                return self._find_object(text, at)
            case "text":
                return self._read_text(text, at, shown)
            case "skip":
                return self._skip_value(text, at)
            case "key":
                return self._read_key(text, at)
            case _:
                return self._read_sign(text, at)

    def _begin(self, text: str, at: int) -> int | None:
        """Tell whether the reply begins with thoughts."""
        blank = _BLANK.match(text, at)
        at = blank.end() if blank else at
        said = text[at : at + _MAX_MARK_CHARS]
        for opener, mark in REASONING.items():
            if said.startswith(opener):
                self._place, self._closers = "thinking", frozenset(mark.closers)
                return at + len(opener)
        if any(opener.startswith(said) for opener in REASONING):
            self._rest = said
            return None
        self._place = "before"
        return at

    def _end_thoughts(self, text: str, at: int) -> int | None:
        """Go behind the thoughts that the reply begins with."""
        found = [
            (place, closer) for closer in self._closers if (place := text.find(closer, at)) >= 0
        ]
        if not found:
            self._rest = text[max(at, len(text) - _MAX_MARK_CHARS) :]
            return None
        self._place = "before"
        place, closer = min(found)
        return place + len(closer)

    def _find_object(self, text: str, at: int) -> int | None:
        brace = text.find("{", at)
        if brace < 0:
            return None
        self._place = "member"
        return brace + 1

    def _read_sign(self, text: str, at: int) -> int | None:
        """Read the sign that must come next: a quote, a colon, a comma or a brace."""
        blank = _BLANK.match(text, at)
        at = blank.end() if blank else at
        if at == len(text):
            return None
        sign = text[at]
        if self._place == "value":
            is_text = sign == '"' and tokenize(self._key) == self._name
            self._place = "text" if is_text else "skip"
            self._scanner = ValueScanner()
            return at + 1 if is_text else at
        if self._place == "colon" and sign == ":":
            self._place = "value"
        elif self._place in ("member", "after") and sign == ",":
            self._place = "member"
        elif self._place == "member" and sign == '"':
            self._place = "key"
        else:
            # The object has ended without the member, or is not JSON: another may follow.
            self._place = "before"
            return at + 1 if sign == "}" else at
        return at + 1

    def _read_key(self, text: str, at: int) -> int | None:
        end = at
        while (plain := _PLAIN.match(text, end)) or text[end : end + 1] == "\\":
            end = plain.end() if plain else end + 2
            if end - at > _MAX_KEY_CHARS:
                self._place = "before"
                return min(end, len(text))
        if end >= len(text):
            self._rest = text[at:]
            return None
        self._key = text[at:end]
        self._place = "colon"
        return end + 1

    def _skip_value(self, text: str, at: int) -> int | None:
        piece = text[at:]
        before = self._passed
        end = self._scanner.feed(piece)
        if end is None:
            self._passed = before + len(piece)
            return None
        self._passed = 0
        self._place = "after"
        return at + end - before

    def _read_text(self, text: str, at: int, shown: list[str]) -> int | None:
        """Show what is surely whole: an escape may go on, also as the first half of a pair."""
        found = _WHOLE.match(text, at)
        end = found.end() if found else at
        is_end = text[end : end + 1] == '"'
        shown.append(_decode(text[at:end]))
        if is_end:
            self.is_done = True
            return end + 1
        if _BROKEN.match(text, end):  # not an escape: shown as it is written
            shown.append("\\u")
            return end + 2
        self._rest = text[end:]
        return None


def _decode(text: str) -> str:
    """Return a text without its escapes; half of a character becomes a sign for a lost one."""
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(lambda found: _unescape(found[1]), text)
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unescape(sign: str) -> str:
    return chr(int(sign[1:], 16)) if len(sign) > 1 else _ESCAPES.get(sign, sign)
