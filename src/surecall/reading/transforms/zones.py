"""Parts of a text that are left alone: code, placeholders, and everything else in between."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_OPENER: Final = re.compile(r"`{1,8}+|~~~|\{\{")
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
