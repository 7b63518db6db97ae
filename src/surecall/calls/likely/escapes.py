"""Texts that were escaped on their way: for Markdown, for HTML, or for a string of JSON."""

import html
import re
from typing import Any, Final, NamedTuple, cast

from surecall.base.errors import JSONTextError
from surecall.text import decode

_MARKDOWN: Final = re.compile(r"\\([_*\[\]{}])")
_QUOTES: Final = re.compile(r"\\{1,3}+([\"'])")
_FIRST_QUOTE: Final = re.compile(r"[^\"\\]*+(?:\\++[^\"\\]++)*+\\{1,3}+\"")
"""A text whose first quotation mark is escaped: no string can have begun before it."""
_HTML: Final = re.compile(r"\s*+(?:&lt;|\[?+\s*+\{\s*+&(?:quot|#34|#39);)")
_WIDE_BEFORE: Final = re.compile(r"(?<=[\"\]}\d])([：，])(?=\s*+[\"\[{\d-])")
_NARROW: Final = {"：": ":", "，": ","}
_FIRST_CHARACTERS: Final = 80
_STRINGS: Final = re.compile(r"\s*+(?:\"|\[\s*+\")")


class Unescaped(NamedTuple):
    """A text as it was meant, and what had been done to it."""

    text: str
    rule: str = ""
    before: str = ""
    after: str = ""
    why: str = ""


def unescape_text(text: str) -> Unescaped:
    """Return a text without the escapes that all of it was written with."""
    if "\\" not in text and "&" not in text and "：" not in text:  # most texts
        return Unescaped(text)
    if "\\_" in text:
        plain = _MARKDOWN.sub(r"\1", text)
        why = "underscores were escaped as in Markdown"
        return Unescaped(plain, "unescape_markdown", "\\_", "_", why)
    if '\\"' in text and _FIRST_QUOTE.match(text):
        why = "every quotation mark was escaped"
        return Unescaped(_QUOTES.sub(r"\1", text), "unescape_quotes", '\\"', '"', why)
    if "&" in text and _HTML.match(text):
        return Unescaped(html.unescape(text), "unescape_tags", "&lt;", "<", "escaped as in HTML")
    if "：" in text:
        plain = _WIDE_BEFORE.sub(lambda found: _NARROW[found[1]], text)
        return Unescaped(plain, "look_alike_markers", "：", ":", "colons were of full width")
    return Unescaped(text)


def unwrap_strings(text: str) -> Unescaped | None:
    """Return what a text says that is nothing but a string of JSON, or a list of them."""
    if '"' not in text[:_FIRST_CHARACTERS] or not _STRINGS.match(text):
        return None
    try:
        value: Any = decode(text)
    except JSONTextError:
        return None
    entries = cast("list[Any]", value) if isinstance(value, list) else [value]
    if not all(isinstance(entry, str) for entry in entries):
        return None
    why = "all of the text was a string of JSON"
    return Unescaped("\n\n".join(entries), "unwrap_json_string", '"', "", why)
