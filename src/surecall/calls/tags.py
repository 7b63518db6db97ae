"""Tags of formats whose values are plain text, with the damage models do to them."""

import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from surecall.base.patterns import lazy_pattern

from .source import NeedMore, Source

MAX_TAG_CHARS: Final = 512
"""A tag longer than this is no tag."""

TagKind = Literal[
    "open_call", "close_call", "open_value", "close_value", "open_section", "close_section"
]
Style = Literal["=", "name", "pair", "tag"]
"""How a tag carries its label: `<word=LABEL>`, `<word name="LABEL">`, in a pair of tags of its own,
or as the word itself."""

_DEBRIS: Final = lazy_pattern(r"(?:[ \t\r\n\u0120\u010a]|\\n)*+")
_UNFINISHED: Final = lazy_pattern(
    r"""<(?:[^<>"'\n]|"[^"\n]*+"|'[^'\n]*+')*+(?:"[^"\n]*+|'[^'\n]*+)?\Z"""
)
_ATTRIBUTE: Final = lazy_pattern(r"""([A-Za-z_][\w:-]*+)\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s"'/>]++)""")
_WORD_ALONE: Final = lazy_pattern(r"""<[^\s"'=<>]*+\s*+/?+>\Z""")
_ENTITIES: Final = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&"))
_PLAIN_LABEL: Final = lazy_pattern(r"[A-Za-z0-9_.:-]++\Z")
_CLOSER_DAMAGE: Final = lazy_pattern(r"[ \t]*+(?:\d++|_?function|=[^/]*+)?[ \t]*+/?[ \t]*+\Z")


_TRACE: Final = lazy_pattern(r"<[ \t]*+/?[ \t|｜]*+([\w:.｜-]{1,40}+)")
_TRACE_WITHOUT_BRACKET: Final = lazy_pattern(r"\b([\w-]{1,40}+)[ \t]*+[=>]")
_PARTS: Final = lazy_pattern(r"[:|｜]++")
_PREFIX_WORD: Final = lazy_pattern(r"[A-Za-z]{4,}+")
_MIN_WORD: Final = 4
_MIN_START: Final = 3

_NO_ATTRIBUTES: Final[Mapping[str, str]] = MappingProxyType({})
_OPENED: Final[dict[str, TagKind]] = {
    "call": "open_call",
    "value": "open_value",
    "section": "open_section",
}
_CLOSED: Final[dict[str, TagKind]] = {
    "call": "close_call",
    "value": "close_value",
    "section": "close_section",
}


class Tag(NamedTuple):
    """A tag of a format, and what it says."""

    kind: TagKind
    start: int
    end: int
    label: str = ""
    """The name of a tool or the key of a parameter."""
    word: str = ""
    attributes: Mapping[str, str] = _NO_ATTRIBUTES
    closed: bool = False
    """Whether it closes itself."""
    rule: str = ""
    """The rule by which a damaged tag was read."""


class Grammar:
    """Tags in angle brackets: sections hold calls, calls hold values.

    Args:
        calls: Words of the tags that are a call.
        values: Words of the tags that are a parameter.
        sections: Words of the tags around calls.
        style: How calls and parameters carry their label.
        prefix: A pattern of what stands before the word.
        label_keys: Attributes that may carry the label.
    """

    has_tokens = False
    """Whether tags are special tokens, which stand where they do on any line."""

    def __init__(
        self,
        *,
        calls: tuple[str, ...],
        values: tuple[str, ...],
        sections: tuple[str, ...] = (),
        style: Style = "name",
        prefix: str = "",
        label_keys: tuple[str, ...] = ("name",),
    ) -> None:
        self.style: Final = style
        self.pairs_words: Final = style == "tag"
        """Whether a value is closed only by a tag with the word of the one that opened it."""
        self.words: tuple[str, ...] = (*calls, *values, *sections, *_PREFIX_WORD.findall(prefix))
        self._kinds: dict[str, Literal["call", "value", "section"]] = {
            **dict.fromkeys(values, "value"),
            **dict.fromkeys(calls, "call"),
            **dict.fromkeys(sections, "section"),
        }
        self.calls: Final = calls
        self._sections, self._prefix = sections, prefix
        self._label_keys = label_keys
        words = sorted(self._kinds, key=len, reverse=True)
        alternatives = "|".join(map(re.escape, words)) if words else r"(?!)"
        begin = rf"<[ \t]*+(?P<slash>/?)[ \t]*+(?P<prefix>{prefix})(?P<word>{alternatives})"
        self.stops: re.Pattern[str] = lazy_pattern(begin)
        """Finds every place where a tag may begin."""
        self._pattern = lazy_pattern(
            begin
            + r"""(?P<rest>(?:[^<>"'\n]|"[^"\n]*+"|'[^'\n]*+')*+)"""
            + (">" if style == "tag" else r"(?P<end>>|\n)")
        )

    def tag(self, source: Source, at: int) -> Tag | None:
        """Return the tag that stands here."""
        if source.char(at) != "<":
            return None
        match = self._pattern.match(source.text, at, at + MAX_TAG_CHARS)
        if match is None:
            if not source.final and is_unfinished_tag(source.text, at):
                raise NeedMore
            return None
        kind, word, rest = self._kinds[match["word"]], match["word"], match["rest"]
        if match["slash"]:
            damaged = bool(rest.strip())
            if source.text[match.end() - 1] == "\n" or not _CLOSER_DAMAGE.match(rest):
                return None
            if damaged and self.style == "tag":
                return None
            rule = "damaged_closing_tag" if damaged else ""
            return Tag(_CLOSED[kind], at, match.end(), word=word, rule=rule)
        if source.text[match.end() - 1] == "\n":
            return self._unbracketed(at, match, kind)
        return self._opener(source, at, match.end(), word, rest)

    def is_begun(self, source: Source, at: int) -> bool:
        """Tell whether the text ends for good inside a tag that begins here."""
        return source.final and is_unfinished_tag(source.text, at)

    def with_properties(self, properties: tuple[str, ...]) -> "Grammar | None":
        """Return the grammar in which parameters are tags of their own."""
        if self.style in ("tag", "pair") or not properties:
            return None
        return _property_grammar(self.calls, properties, self._sections, self._prefix)

    def _opener(self, source: Source, at: int, end: int, word: str, rest: str) -> Tag | None:
        kind = self._kinds[word]
        stripped = rest.strip()
        closed = stripped.endswith("/")
        stripped = stripped.removesuffix("/").rstrip()
        if kind == "section":
            return Tag("open_section", at, end, word=word) if not stripped else None
        if self.style == "tag":
            if stripped:
                return None
            return Tag(_OPENED[kind], at, end, label=word, word=word, closed=closed)
        label, rule, attributes = self._label_of(word, stripped)
        if rest[:1] not in ("", "=", " ", "\t", "/") and not rule:
            if not stripped.startswith(self._label_keys):  # an element with a longer name
                return None
            rule = "collapsed_tag"
        if rule == "bare_label" and not _is_expected(source, kind, label):
            return None
        return Tag(_OPENED[kind], at, end, label, word, attributes, closed, rule)

    def _label_of(self, word: str, rest: str) -> tuple[str, str, dict[str, str]]:
        """Return the label, the rule that found it, and all attributes."""
        if rest.startswith("="):
            label = rest[1:].strip()
            rule = "" if self.style == "=" else "equals_label"
            while label.startswith(word + "="):
                label, rule = label[len(word) + 1 :], "doubled_word"
            if label[:1] in ('"', "'"):
                label, rule = label.strip("\"'"), "quoted_label"
            if label.endswith(":"):
                label, rule = label[:-1].rstrip(), "colon_after_label"
            return label, rule, {}
        attributes = parse_attributes(rest)
        for key in self._label_keys:
            if key in attributes:
                return (
                    attributes[key],
                    "" if self.style == "name" else "label_attribute",
                    attributes,
                )
        if _PLAIN_LABEL.match(rest):
            return rest, "bare_label", {}
        return "", "", attributes

    def _unbracketed(self, at: int, match: re.Match[str], kind: str) -> Tag | None:
        """Read `<parameter=room` and a newline where `>` should stand."""
        rest = match["rest"]
        if self.style != "=" or kind == "section" or not rest.startswith("="):
            return None
        label = self._label_of(match["word"], rest.strip())[0]
        if not _PLAIN_LABEL.match(label):
            return None
        return Tag(_OPENED[kind], at, match.end() - 1, label, match["word"], rule="missing_bracket")


@lru_cache(maxsize=256)
def _property_grammar(
    calls: tuple[str, ...], properties: tuple[str, ...], sections: tuple[str, ...], prefix: str
) -> Grammar:
    return Grammar(
        calls=calls,
        values=properties,
        sections=sections,
        style="tag",
        prefix=f"(?:{prefix})?" if prefix else "",
    )


def parse_attributes(text: str) -> dict[str, str]:
    """Return the attributes of a tag; quotes may be double, single or missing."""
    found: dict[str, str] = {}
    for key, value in _ATTRIBUTE.findall(text):
        plain: str = value[1:-1] if value[0] in "\"'" else value
        found.setdefault(key, unescape_entities(plain))
    return found


def unescape_entities(text: str) -> str:
    """Return text without the entities of XML."""
    for entity, character in _ENTITIES:
        text = text.replace(entity, character)
    return text


def has_only_attributes(tag: str) -> bool:
    """Tell whether a tag is a word and attributes, and nothing that is left over."""
    return _WORD_ALONE.match(_ATTRIBUTE.sub("", tag)) is not None


def leaves_traces(text: str, words: tuple[str, ...]) -> bool:
    """Tell whether a value holds a tag of the format it is written in, or the rest of one.

    A tag that lost a character, or half of it, is one that the value may have swallowed.
    """
    if text[-1:] == "<" or text[:1] == ">":
        return True
    if "<" in text and any(is_near(one[1], words) for one in _TRACE.finditer(text)):
        return True
    if ">" not in text and "=" not in text:
        return False
    known = [word for word in words if len(word) >= _MIN_WORD and word in text]
    return bool(known) and any(one[1] in known for one in _TRACE_WITHOUT_BRACKET.finditer(text))


@lru_cache(maxsize=4096)
def is_near(written: str, words: tuple[str, ...]) -> bool:
    """Tell whether a word is that of a tag, but for one character, or the beginning of it."""
    return any(_may_be(part, words) for part in _PARTS.split(written))


def _may_be(written: str, words: tuple[str, ...]) -> bool:
    return any(
        written == word
        or (
            len(word) >= _MIN_WORD
            and abs(len(word) - len(written)) <= 1
            and differ_by_one(written, word)
        )
        or (len(written) >= _MIN_START and word.startswith(written))
        for word in words
    )


def differ_by_one(one: str, other: str) -> bool:
    """Tell whether one character was lost, added, replaced, or changed places with the next."""
    same = 0
    while same < min(len(one), len(other)) and one[same] == other[same]:
        same += 1
    one, other = one[same:], other[same:]
    if one[1:] == other[1:] or one[1:] == other or one == other[1:]:
        return True
    return one[:2] == other[1::-1] and one[2:] == other[2:]


def is_unfinished_tag(text: str, at: int) -> bool:
    """Tell whether the text ends inside a tag that begins here."""
    if len(text) - at >= MAX_TAG_CHARS:
        return False
    return _UNFINISHED.match(text, at) is not None


def ends_within(source: Source, literal: str, at: int) -> bool:
    """Tell whether the text ends for good before a literal that begins here is complete."""
    rest = source.text[at : at + len(literal)]
    return source.final and len(rest) < len(literal) and literal.startswith(rest)


def run_end(source: Source, pattern: re.Pattern[str], at: int) -> int:
    """Return where a run of characters ends, once it is certain that it does."""
    match = pattern.match(source.text, at)
    end = match.end() if match else at
    source.at_end(end)
    return end


def skip_debris(source: Source, at: int) -> int:
    """Skip white space, also where a newline leaked as two characters or as a byte symbol."""
    end = run_end(source, _DEBRIS, at)
    if source.text.startswith("\\", end) and end + 1 >= len(source.text):
        source.at_end(end + 1)
    return end


def _is_expected(source: Source, kind: str, label: str) -> bool:
    """Tell whether a label without any mark is the name of a tool, or of a parameter of one."""
    if kind == "value":
        return label in source.tools.parameter_names
    return source.tools.resolve(label) is not None
