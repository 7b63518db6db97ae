"""Parameters as tagged text: where a value ends, and the arguments they become."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, Literal, NamedTuple, cast

from surecall.base.errors import SurecallError
from surecall.base.patterns import lazy_pattern
from surecall.base.records import Receipt
from surecall.schema import takes_text
from surecall.text import decode, encode_text

from .formats import text_receipt
from .names import parameter_names
from .source import NeedMore, Source
from .tags import Grammar, Tag, skip_debris

Padding = Literal["none", "newline", "pair", "trim"]
"""What around a value is not part of it: nothing, a newline on either side, newlines when both
sides have one, or all white space."""

ARGUMENT_CONTAINERS: Final = frozenset({"arguments", "parameters", "properties", "args", "input"})
"""Keys under which models put all arguments once more."""


class Parameter(NamedTuple):
    """One parameter as it was written."""

    key: str
    text: str
    tag: Tag


Builder = Callable[[Source, str, Sequence[Parameter]], tuple[Any, list[Receipt]]]
"""Makes arguments of the parameters of a call, given the name of its tool."""


def _repeated(parameters: Sequence[Parameter]) -> str:
    """Return parameters as JSON text that gives a key twice, which is refused as such."""
    pairs = (f"{encode_text(key)}: {encode_text(text)}" for key, text, _ in parameters)
    return f"{{{', '.join(pairs)}}}"


def build_typed(
    source: Source, name: str, parameters: Sequence[Parameter]
) -> tuple[Any, list[Receipt]]:
    """Return the arguments as the tool's schema types them."""
    values: dict[str, str] = {}
    for key, text, _ in parameters:
        if key in values and values[key] != text:
            return _repeated(parameters), []
        values[key] = text
    key = lone_container(source, name, values)
    if key and values[key].lstrip().startswith("{"):
        wrapped = values[key].strip()
        return wrapped, [text_receipt("unwrap_arguments", wrapped, "arguments")]
    arguments = source.typed(name, values)
    return arguments, note_broken(source, name, arguments)


def build_declared(
    source: Source, name: str, parameters: Sequence[Parameter]
) -> tuple[Any, list[Receipt]]:
    """Return arguments typed as their tags say (`string="true"`, `type="number"`), or the schema.

    The schema is right where a tag says that a text is one and it is none.
    """
    built, receipts = build_typed(source, name, parameters)
    if not isinstance(built, dict):
        return built, receipts
    arguments = cast("dict[str, Any]", built)
    for key, text, tag in parameters:
        is_string = tag.attributes.get("string", "").lower()
        kind = tag.attributes.get("type") or {"true": "string", "false": "json"}.get(is_string)
        typed = arguments[key]
        if kind == "string" and (isinstance(typed, str) or source.schema_of(name, key) is None):
            arguments[key] = text
        elif kind == "string":
            receipts.append(text_receipt("string_by_schema", text, type(typed).__name__))
        elif kind:
            try:
                arguments[key] = decode(text.strip())
            except SurecallError:
                note = f"{key} is marked as JSON and is none"
                receipts.append(text_receipt("text_for_json", text, text, note))
    return arguments, receipts


def note_broken(source: Source, name: str, arguments: dict[str, Any]) -> list[Receipt]:
    """Return receipts for text of values that are no text, and that seems to be damaged JSON."""
    return [
        text_receipt("text_for_json", value, key, f"{key} is no text", lossless=False)
        for key, value in arguments.items()
        if isinstance(value, str)
        and not _BRACKETS.isdisjoint(value.strip()[:1] + value.strip()[-1:])
        and not takes_text(source.schema_of(name, key))
    ]


def lone_container(source: Source, name: str, values: Collection[str]) -> str:
    """Return the only key, if it says that its value holds all arguments, or an empty text."""
    key = next(iter(values), "")
    is_lone = len(values) == 1 and key in ARGUMENT_CONTAINERS
    return key if is_lone and key not in parameter_names(source.tools.parameters(name)) else ""


def strip_padding(text: str, padding: Padding) -> str:
    """Return a value without what the template puts around it."""
    if padding == "trim":
        return text.strip()
    if padding == "pair":
        return text[1:-1] if len(text) > 1 and text[0] == text[-1] == "\n" else text
    if padding == "newline":
        if text.startswith("\r\n") and text.endswith("\r\n") and len(text) > 2:
            return text[2:-2]
        return text.removeprefix("\n").removesuffix("\n")
    return text


_MAX_INDENT: Final = 64
STRAY_CLOSERS: Final = lazy_pattern(r"(?:</[\w.:-]{1,60}+>\s{0,40}+){1,8}+")
"""A few closing tags of whatever words, up to the end of a text."""
_BRACKETS: Final = frozenset("{}[]\"'")


class ValueEnd(NamedTuple):
    """Where a value ends and where reading goes on."""

    end: int
    resume: int
    rule: str = ""
    """Set when its own closing tag was missing or damaged."""
    certain: bool = True
    """Whether only one reading of the text is well formed."""
    passed: int = -1
    """Behind the first closing tag in the value, which did not end it."""


class _OpenNestError(Exception):
    """The value seems to hold a call of its own that never ends."""


def find_value_end(
    source: Source, grammar: Grammar, at: int, word: str, expects: Callable[[str], bool]
) -> ValueEnd | None:
    """Return where the value that begins here ends, or `None` when it is cut off.

    The first closing tag counts that leaves something well formed behind it. A value that begins
    on a new line has its tags on lines of their own, so a tag in the middle of a line is text.

    Args:
        source: The text.
        grammar: The tags of the format.
        at: Where the value begins.
        word: The word of the tag that opened it.
        expects: Tells whether a key may come next, so that it ends a value left open.
    """
    scan = _ValueScan(source, grammar, at, word, expects)
    try:
        return scan.run(nesting=True)
    except _OpenNestError:
        return scan.run(nesting=False)


class _ValueScan:
    def __init__(
        self, source: Source, grammar: Grammar, at: int, word: str, expects: Callable[[str], bool]
    ) -> None:
        self._source = source
        self._grammar = grammar
        self._at = at
        self._word = word
        self._expects = expects
        self._padded = not grammar.has_tokens and source.char(at) in ("\n", "\r")
        self._nest: list[bool] = []
        """For each call inside the value, whether it has a value open."""
        self._sections = 0
        self._mentions = False
        """Whether an opener stands in a line of the value: its closer says nothing about it."""
        self._certain = True
        self._passed = -1

    def run(self, *, nesting: bool) -> ValueEnd | None:
        source, here = self._source, self._at
        self._nest = []
        self._sections, self._mentions, self._certain = 0, False, True
        self._passed = -1
        while True:
            stop = self._grammar.stops.search(source.text, here)
            if stop is None:
                break
            tag = self._grammar.tag(source, stop.start())
            here = stop.end() if tag is None else tag.end
            if tag is None or (self._nest and self._is_nested(tag)):
                continue
            alone = not self._padded or _begins_line(source.text, tag.start)
            if tag.kind == "open_call":
                if nesting and alone and tag.label:
                    self._nest.append(False)
                self._mentions = self._mentions or not (alone and tag.label)
                continue
            found = self._end_at(tag, alone=alone)
            if found is not None:
                return found
        if not source.final:
            raise NeedMore
        if self._nest:
            raise _OpenNestError
        return None

    def _end_at(self, tag: Tag, *, alone: bool) -> ValueEnd | None:
        """Return the end of the value, if this tag ends it."""
        if tag.kind == "close_value":
            if self._grammar.pairs_words and tag.word != self._word:
                return None
            if self._closes(tag, alone=alone):
                return ValueEnd(tag.start, tag.end, tag.rule, passed=self._passed)
            self._certain = False
            self._passed = tag.end if self._passed < 0 else self._passed
        elif tag.kind == "open_section":
            self._sections += alone
            self._mentions = self._mentions or not alone
        elif tag.kind == "close_section" and self._sections:
            self._sections -= 1
        elif alone and self._implies_end(tag):
            is_certain = self._certain and (tag.kind == "open_value" or not self._mentions)
            return ValueEnd(tag.start, tag.start, "missing_closing_tag", is_certain)
        return None

    def _is_nested(self, tag: Tag) -> bool:
        """Follow a call inside the value; its tags say nothing about the value."""
        if tag.kind == "open_value":
            self._nest[-1] = True
        elif tag.kind == "close_value" and self._nest[-1]:
            self._nest[-1] = False
        elif tag.kind == "close_call":
            self._nest.pop()
        else:
            return False
        return True

    def _closes(self, tag: Tag, *, alone: bool) -> bool:
        after = skip_debris(self._source, tag.end)
        if self._source.at_end(after):
            return True
        follower = self._grammar.tag(self._source, after)
        if follower is None:
            return STRAY_CLOSERS.fullmatch(self._source.text, after) is not None
        if follower.kind == "close_value":  # written twice, unless the value has such an element
            text, start = self._source.text, self._at
            if not self._word or text.find(f"<{self._word}", start, tag.start) >= 0:
                return False
            return bool(text[start : tag.start].strip())
        if follower.kind == "open_value":
            return True
        alone = alone or _begins_line(self._source.text, follower.start)
        return self._ends_call(follower, strict=not alone)

    def _implies_end(self, tag: Tag) -> bool:
        if tag.kind == "open_value":
            return self._expects(tag.label)
        if tag.kind == "close_call":
            return self._ends_call(tag, strict=True)
        after = skip_debris(self._source, tag.end)
        if self._source.at_end(after):
            return True
        follower = self._grammar.tag(self._source, after)
        return follower is not None and follower.kind == "open_section"

    def _ends_call(self, tag: Tag, *, strict: bool) -> bool:
        """Tell whether what follows the end of a call is not the rest of a value after all."""
        source = self._source
        while tag.kind in ("close_call", "close_section"):
            after = skip_debris(source, tag.end)
            if source.at_end(after):
                return True
            follower = self._grammar.tag(source, after)
            if follower is None:
                breaks = "\n" in source.text[tag.end : after]
                return not strict or (tag.kind == "close_section" and breaks)
            is_again = tag.kind == follower.kind and tag.word == follower.word
            if follower.kind in ("close_value", "open_value"):
                return False
            if follower.kind == "close_call" and not is_again:
                return False
            if tag.kind == follower.kind == "close_section":
                return True
            tag = follower
        return True


def _begins_line(text: str, at: int) -> bool:
    low = max(0, at - _MAX_INDENT)
    while at > low and text[at - 1] in " \t":
        at -= 1
    return at == 0 or text[at - 1] == "\n"
