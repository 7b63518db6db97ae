"""Events that go on with the arguments of a call: alike but for the text that each brings.

An endpoint writes all of them in the same way, so one that was read in full shows the bytes around
its text. Where another has the very same bytes there, only its text is left to be read.
"""

import re
from typing import Final

from surecall.text import decoder_of

from .wire import UNREADABLE

_KEY: Final = b'"arguments"'
_TEXT: Final = re.compile(rb'(?:[^"\\]|\\.)*+')
_OPENINGS: Final = (b'"arguments":"', b'"arguments": "')

_decode_text: Final = decoder_of(str)
_decode_texts: Final = decoder_of(list[str])


class PieceForm:
    """The bytes around the text of an event; use `find_form`.

    Args:
        start: What comes before the text, with its quotation mark.
        end: What comes behind it, from its quotation mark to the blank line.
    """

    __slots__ = (
        "_between",
        "_end",
        "_end_size",
        "_escaped_end",
        "_start",
        "_start_size",
        "is_used",
    )

    def __init__(self, start: bytes, end: bytes) -> None:
        self._start = start
        self._start_size = len(start)
        self._end = end
        self._end_size = len(end)
        self._between = end + start
        self._escaped_end = b"\\" + end
        self.is_used = False
        """Whether any other event had this form."""

    def read(self, event: bytes) -> str | None:
        """Return the text of an event of this form; `None` of any other."""
        if not event.startswith(self._start) or not event.endswith(self._end):
            return None
        try:
            text = _decode_text(b'"%b"' % event[self._start_size : -self._end_size])
        except UNREADABLE:
            return None
        self.is_used = True
        return text

    def read_run(self, data: bytes) -> tuple[list[str], int]:
        """Return the texts of the events of this form that some events begin with, and their size.

        Each text has to be one by itself: a mark that ends it too early makes more of them, and
        what would hide its end is not read here.
        """
        start, size = self._start, self._start_size
        if not data.startswith(start) or data.find(self._escaped_end) >= 0:
            return [], 0
        blocks = data.split(self._end)
        rest = blocks.pop()
        texts = [block[size:] for block in blocks]
        if b"%b%b%b%b" % (start, self._between.join(texts), self._end, rest) != data:
            others = (at for at, block in enumerate(blocks) if not block.startswith(start))
            del texts[next(others, 0) :]
        try:
            found = _decode_texts(b'["%b"]' % b'","'.join(texts))
        except UNREADABLE:
            return [], 0
        if len(found) != len(texts):
            return [], 0
        self.is_used = True
        return found, sum(map(len, texts)) + len(texts) * (size + self._end_size)


def find_form(event: bytes, text: str) -> PieceForm | None:
    """Return the form of an event that was read in full, if it can be told from its bytes.

    Args:
        event: One event, of one line, with the blank line behind it.
        text: The arguments that it brings.
    """
    opening = next((item for item in _OPENINGS if item in event), None)
    if opening is None or event.count(_KEY) != 1:
        return None
    start = event.index(opening) + len(opening)
    found = _TEXT.match(event, start)
    end = len(event) if found is None else found.end()
    form = PieceForm(event[:start], event[end:])
    # No key is spelled in another way, and the text is what was found by reading all of it.
    is_sure = b"\\" not in event[:start] and b"\\" not in event[end:] and form.read(event) == text
    form.is_used = False
    return form if is_sure else None
