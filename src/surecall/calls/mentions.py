"""Whether calls among other text are made there, or only quoted or spoken of.

This is told by where they stand: what else is on their lines, around them and below. The layout of
a text is the same in every language. `Surroundings` knows the text that has arrived in a stream,
for calls that families read; `Layout` knows a whole text, for calls that are likely at most.
"""

import re
from bisect import bisect_right
from collections import deque
from functools import cached_property
from typing import Final, NamedTuple

from msgspec import Struct

from surecall.base.patterns import lazy_pattern

from .formats import Found
from .leftovers import RESIDUE
from .source import Source

CALL_LANGUAGES: Final = frozenset(
    {
        "", "json", "json5", "jsonc", "jsonl", "python", "python3", "py", "text", "txt",
        "plaintext", "xml", "tool_code", "tool_call", "tool_calls", "tool", "tool_use",
        "function", "functions", "function_call", "function_calls", "api", "call", "action",
        "tool_json", "code", "yaml", "yml",
    }
)  # fmt: skip
ECHOES: Final = (
    "tool_response", "tool_result", "tool_results", "tool_output", "function_result",
    "function_results", "function_response", "observation", "result", "results",
)  # fmt: skip
"""Tags around the result of a call, which a model repeats or makes up."""
AROUND_CALLS: Final = lazy_pattern(
    "tool|func|call|action|invoke|use|exec|answer|response|assistant", re.IGNORECASE
)
"""Names of elements that models put around calls."""
_FENCE_LINE: Final = lazy_pattern(r"^[ \t]{0,12}+(```++|~~~++)[ \t]*+([^\n`]*+)$", re.MULTILINE)
_ECHO: Final = re.compile(rf"<(/?)({'|'.join(ECHOES)}|examples?)\b", re.IGNORECASE)
_OTHER_PARTY: Final = lazy_pattern(
    r"^[*#\[ ]{0,4}+(?:User|Human|Customer|Client|System|Q|Observation"
    r"|(?:Tool|Function)[ _](?:output|result|response)s?)\b[*\]]{0,3}+:",
    re.MULTILINE | re.IGNORECASE,
)
_MARKUP: Final = lazy_pattern(r"<[|/?!]?+[\w:. =\"'-]{0,80}+[|?/]?+>|<!--|-->")
_WORD: Final = lazy_pattern(r"[^\W\d_]{3,}+|\d{2,}+")
_WRAPPER: Final = lazy_pattern(
    r"(?:<[^<>\s]{0,40}?(?:tool|func|call|action|invoke|exec)[^<>\n]{0,80}+>{1,2}+"
    r"|\[/?(?:tool|func|call|action)[\w ]{0,20}+\]|(?:^|[>\s])(?:tool|function)_calls?+>?+"
    r"|<\|[\w ]{1,40}+\|>|<\?xml[^<>\n]{0,80}+>|<!\[CDATA\[?)\s*+\Z",
    re.IGNORECASE,
)
"""Markup right before a call: a tag around calls, a token of a template, a document's start."""
_LABEL: Final = lazy_pattern(
    r"(?:[^\n.!?:]|:(?!\s*+\Z)){0,80}+[:：]\s*+\Z"
    r"|(?:(?:const|let|var|await|return|yield|(?:print|str|json\.dumps)(?:\(|\Z))\s*+"
    r"|[^\W\d][\w.]*+(?:\[[^\]\n]*+\])?+\s*+=\s*+)++\Z|\W*+\Z"
)
"""A name or a label for a call on its line, an assignment to a variable, or nothing."""
_SENTENCE: Final = lazy_pattern(
    r"\S+\s.*[.!:]\s*+\Z|.*[。！：]\s*+\Z|[^\W\d_]{2,}+!\s*+\Z", re.DOTALL
)
_ITEM: Final = lazy_pattern(r"\s*+(?:[-*+•→]|\(?\d{1,3}+[.):]|[a-z][.)])?+\s*+")
_GOES_ON: Final = lazy_pattern(
    r"[\s.,;:!*`\"'()\]}>]*+(?:\Z|\n|[A-Z<#+&|]|//|--|\[\s*+[-\d\"'/]|\.\w)"
)
"""What may stand behind a call on its line: a new sentence, a comment, another call, indexing."""
_RESULT: Final = lazy_pattern(r"\s*+(?:->|=>|→|==|!=|—|–|:\s*+\w|-\s++\w|\(\d)")
_GOES_ON_BELOW: Final = lazy_pattern(r"[`*_ \t]{0,8}+\n\s{0,8}+(?:[a-z]{2,}+,? ){1}[a-z]{2,}+\b")
"""A line behind a call that begins like the middle of a sentence."""
_QUESTION: Final = lazy_pattern(r"[^.!?？。\n\"'(){}\[\]<>]++[?？](?=[\s*_)”]|\Z)")
_QUESTION_MARK: Final = lazy_pattern("[?？](?!>)")
_QUOTED_LINE: Final = lazy_pattern(
    r"\s*+(?:>|>>>|<!--|\||//|#|\$|%|!|\+\+\+|---|@@|\d{4}-\d\d-\d\d|~~|[-+]\Z)"
    r"|.*(?<!\d)[012]?+\d:[0-5]\d(?!\d)"
    r"|(?:.*\W)?(?:def|class|assert|import|from|function|fn|func|new)\s++\Z"
)
"""A line of a quotation, a table, a program, a log, or a definition."""
_ITEM_MARK: Final = lazy_pattern(r"\s*+(?:[-*+•]|\(?\d{1,3}+[.):]|[a-z][.)])\s")
_LABELLED: Final = lazy_pattern(r"[\s*\[]{0,4}+[^\W\d][\w .()*\]-]{0,40}+:\s*+")
_NEXT_LABEL: Final = lazy_pattern(r"[\s*\[]{0,4}+[^\W\d][\w .()*\]-]{0,40}+:[ \t]++\S")
_HEADING: Final = lazy_pattern(r"^#{1,6} \S", re.MULTILINE)
_COMMENT_LINE: Final = lazy_pattern(r"\s*+(?:#|//|--|/\*|<!--)")
_CHANGES: Final = lazy_pattern(
    r"^(?:@@ -\d|\+\+\+ |diff --git |<{7} |-(?!-)[^\n]{1,400}+\n\+(?!\+)[ \w]"
    r"|(?:#{1,6}+ ?+|\*\*)\[?+v?+\d{1,4}+\.\d|(?:v|version |release )\d{1,4}+\.\d"
    r"|[*+-] [0-9a-f]{7,40}+ )",
    re.MULTILINE | re.IGNORECASE,
)
"""The first line of a list of changes."""
_TABLE_RULE: Final = lazy_pattern(
    r"^[ \t|+:]{0,8}+[-=]{3,}+[ \t:]{0,8}+[|+]|^[ \t]*+[-=]{3,}+[ \t]{1,20}+[-=]{3,}", re.MULTILINE
)
_CELL: Final = lazy_pattern(r"\S(?: {3,}|[ \t]*+\t[ \t]*+)\Z")
_NEXT_CELL: Final = lazy_pattern(r"[`*]{0,3}+(?:[ \t]*+\|(?!\|)| {2,}+[^\s#/]|[ \t]*+\t[^\s#/])")
_FIRST_CELL: Final = lazy_pattern(
    r"[`*]{0,4}+[\w.\-]{1,80}+[`*]{0,4}+(?:[ \t]*+\|| {2,}+[\[{(\"'])"
)
_MEMBER_LINE: Final = lazy_pattern(r"[ \t]{1,12}+(?:- )?+[\w-]++:[ \t]*+")
_PARENT_LINE: Final = lazy_pattern(r"^[ \t]{0,8}+[\w-]++:[ \t]*+$", re.MULTILINE)
_PROGRAM: Final = lazy_pattern(
    r"^[ \t]*+(?:(?:async )?+def \w++\(|class \w++[:({]|import \w|from [\w.]++ import\b"
    r"|for \(|for \w++(?:, ?\w++)*+ in\b|with [\w.]++\(|try:|else:|try \{|finally:|except\b"
    r"|(?:if|elif|else if|while|switch|catch)\b[^\n]*+(?<=[:{])$|assert\b|function\b|raise \w"
    r"|(?:const|let|var) \w++ =|return\b[^\n]*+(?<=;)$|public |private |using [\w.]++;"
    r"|[})\]]{1,4}+;|expect\(|package \w|#include |[^\n]*+(?<=[)>] \{)$|>>>|\$ |\.\.\. )",
    re.MULTILINE,
)
"""Lines that only programs have."""
_ASSIGNED: Final = lazy_pattern(
    r"^[ \t]*+([^\W\d]\w*+)[ \t]*+=(?!=)|\bfor ([^\W\d]\w*+) in\b", re.MULTILINE
)
_IN_ELEMENT: Final = lazy_pattern(r"<([^\W\d][\w.:-]{0,60}+)(?:\s[^<>]{0,200}+)?+>\Z")
_SENTENCE_END: Final = lazy_pattern(r"[.!?。！？](?=\s)|\n\s*+\n|\n(?=\s*+(?:[-*•]|\d++[.)])\s)")
_QUOTES: Final = {
    '"': '"', "'": "'", "“": "”", "„": "“", "‘": "’", "«": "»", "»": "«", "‹": "›", "「": "」",
    "『": "』", "《": "》",
}  # fmt: skip
_PAIRED: Final = ('"', "“", "„", "«", "»", "‹", "「", "『", "《")
"""Those of them that are no apostrophes, so that they tell where a quotation began."""
_ANY_QUOTE: Final = "".join({*_QUOTES, *_QUOTES.values()} - {"'"})
_AROUND: Final = "`*_([{ "
_AFTER: Final = "`*_)]} \"'"
_INLINE: Final = ("`", "'", '"')
"""Marks in which a line quotes even markup of a call."""
_MAX_LINE_HEAD: Final = 100
_MAX_LINE_TAIL: Final = 500
_MAX_PARAGRAPH: Final = 600
_MAX_LEAD: Final = 300
_MAX_TRAIL: Final = 400
_CODE_INDENT: Final = 4


_MAX_LINE: Final = 200
_MAX_LINES: Final = 16
_MAX_TAIL: Final = 4
_ENDS: Final = (".", "!", "。", "！")
_FINISHED: Final = (*_ENDS, ":", "：")
_PUNCTUATION: Final = (",", ".", ";", ":", "!", "?", ")")
_BEHIND_KEYS: Final = "'\"=:_"
_MAX_WORD: Final = 64
_QUESTION_MARKS: Final = ("?", "？")
_ITEM_MARKS: Final = ("-", "*", "+", "•", "|", "#", ">", "/", "$")
_OPENED: Final = re.compile(r"(?:^|[\s(\[:=])([\"'“„‘«»‹]|``?)\Z|([「『《])\Z")
"""A quotation mark, or ticks of inline code, behind which a quotation begins and none ends."""
_COMMENT: Final = ("<!--", "-->")
_USER: Final = re.compile(r"[*#\[ ]{0,4}+(?:User|Human)\b[*\]]{0,3}+:")
_ASSISTANT: Final = re.compile(r"[*#\[ ]{0,4}+(?:Assistant|Model|AI)\b[*\]]{0,3}+:[* ]{0,3}+")
_OPEN_TAG: Final = re.compile(r"<([A-Za-z_][\w.:-]*+)(?:\s[^<>]*+)?>")
_VOID: Final = frozenset({"br", "hr", "img", "input", "link", "meta"})
_EXAMPLES: Final = frozenset({"example", "examples", _COMMENT[0], *ECHOES})
_QUOTING_TAG: Final = re.compile(
    rf"<(/?)(?:examples?|{'|'.join(map(re.escape, ECHOES))})\b[^<>]{{0,100}}+>", re.IGNORECASE
)
_END_TOKENS: Final = frozenset(token for token in RESIDUE if token.endswith(">"))
_SPACES: Final = " \t\u00a0\u202f"


class Fence(Struct, frozen=True):
    """A block of code: where it and its body begin and end, and its language."""

    start: int
    body: int
    body_end: int
    end: int
    language: str


class Span(NamedTuple):
    """A part of a text."""

    start: int
    end: int


class Place(Struct, frozen=True):
    """Calls next to each other: where they stand, and how they are written."""

    start: int
    end: int
    is_tag: bool = False
    is_marked: bool = False
    """Whether a family read them by its markers, which no sentence has."""
    is_in_list: bool = False
    """Whether brackets stand around them, or quotes inside brackets."""
    has_arguments: bool = True


def has_words(text: str) -> bool:
    """Tell whether more than markup stands in a text."""
    return _WORD.search(_MARKUP.sub(" ", text)) is not None


class Layout:
    """A text in which calls stand, and what it says about each place in it.

    Args:
        text: The whole text.
        candidates: Where what may be a call stands, in order.
    """

    def __init__(self, text: str, candidates: list[Span]) -> None:
        self.text = text
        self._candidates = candidates
        self._programs: dict[int, bool] = {}
        self._first: dict[re.Pattern[str], int] = {}

    def why_quoted(self, place: Place) -> str:
        """Return why a place is in another's words or in code; empty when it is in neither."""
        if self.is_in_echo(place.start):
            return "it is an echo, an example, or what another party said"
        if self._find_first(_CHANGES) <= place.start:
            return "it is in a list of changes"
        fence = self.fence_at(place.start)
        if fence is not None:
            return self._why_code(fence, place.start)
        prefix, suffix = self.line_of(place.start, place.end)
        if _QUOTED_LINE.match(prefix):
            return "it is in a quoted line, a program or a log"
        if self._is_in_table(prefix, suffix, place.start):
            return "it is in a table"
        above, below = self._paragraph_of(place.start, place.end)
        if _MEMBER_LINE.fullmatch(prefix) and _PARENT_LINE.search(above):
            return "it is in settings"
        if _PROGRAM.search(f"{above}_{below}"):
            return "it is a part of a program"
        if self._is_indented(prefix, place.start - len(prefix)):
            return "it is in an indented block"
        opened = _IN_ELEMENT.search(self.text[: place.start].rstrip()[-_MAX_LEAD:])
        if place.is_tag and opened and not AROUND_CALLS.search(opened[1]):
            return "it is a part of a document"
        is_quoted = prefix.rstrip(_AROUND)[-1:] in _ANY_QUOTE and bool(prefix.strip(_AROUND))
        if (is_quoted and not place.is_in_list) or _is_quoted_part(prefix, suffix):
            return "it is in quotation marks" if self._has_text_outside(place) else ""
        return ""

    def is_in_echo(self, at: int) -> bool:
        """Tell whether a place lies in an echoed result, an example or another party's words."""
        return _is_in(self._echoes, at) or _is_in(self._other_parties, at)

    def why_spoken_of(self, place: Place) -> str:
        """Return why a sentence only speaks of calls; empty when they stand alone."""
        fence = self.fence_at(place.start)
        start, end = (fence.start, fence.end) if fence else (place.start, place.end)
        trail = self.text[end : end + _MAX_TRAIL]
        if fence is None and (why := self._why_on_line(place)):
            return why
        if _GOES_ON_BELOW.match(trail):
            return "the sentence goes on below it"
        if _QUESTION.search(trail) or _QUESTION_MARK.search(
            _MARKUP.sub(" ", self._sentence_before(start))
        ):
            return "the text asks about it"
        return ""

    def fence_at(self, at: int) -> Fence | None:
        """Return the block of code in whose body a place lies."""
        index = bisect_right(self._fences, at, key=lambda fence: fence.body) - 1
        fence = self._fences[index] if index >= 0 else None
        return fence if fence is not None and at < fence.body_end else None

    def line_of(self, start: int, end: int) -> tuple[str, str]:
        """Return what stands before and behind a place on its line, without a long middle."""
        begun = self.text.rfind("\n", 0, start) + 1
        over = self.text.find("\n", end)
        over = len(self.text) if over < 0 else over
        tail = start - _MAX_LINE_TAIL
        if tail > begun + _MAX_LINE_HEAD:
            head = self.text[begun : begun + _MAX_LINE_HEAD]
            before = f"{head} {self.text[tail:start]}"
        else:
            before = self.text[begun:start]
        return before, self.text[end : min(over, end + _MAX_LINE_TAIL)]

    @cached_property
    def assigned_names(self) -> frozenset[str]:
        """The names that a text gives a value, as in `name = …` and `for name in …`."""
        return frozenset(it[1] or it[2] for it in _ASSIGNED.finditer(self.text))

    def _why_code(self, fence: Fence, at: int) -> str:
        if fence.language.split(" ")[0] not in CALL_LANGUAGES:
            return "it is in a block of code of another language"
        if fence.start not in self._programs:
            body = self._blank(fence.body, fence.body_end)
            self._programs[fence.start] = bool(_PROGRAM.search(body))
        if self._programs[fence.start]:
            return "it is a part of a program"
        if _COMMENT_LINE.match(self.text, self.text.rfind("\n", 0, at) + 1, at):
            return "it is in a comment"
        return ""

    def _why_on_line(self, place: Place) -> str:
        """Return why calls are a part of a sentence, by the words before and behind them."""
        prefix, suffix = self.line_of(place.start, place.end)
        if self._is_one_of_several(prefix, place):
            return "its line is one of several that are no calls"
        is_inline = prefix[-1:] in _INLINE and suffix[:1] == prefix[-1:]
        prefix = _WRAPPER.sub("", prefix.rstrip(_AROUND + _ANY_QUOTE)).rstrip(_AROUND + _ANY_QUOTE)
        words = _ITEM.sub("", _WRAPPER.sub("", prefix), count=1) if prefix.strip() else ""
        follows = suffix.lstrip(_AFTER)
        if place.is_marked and not is_inline:
            return ""
        if not place.has_arguments and (words or follows.strip("; .")):
            return "only its name is mentioned"
        if not (_LABEL.match(words) or _SENTENCE.match(words)):
            return "it is a part of a sentence"
        if not _GOES_ON.match(follows) or _RESULT.match(follows):
            return "the sentence goes on about it"
        return ""

    def _is_one_of_several(self, prefix: str, place: Place) -> bool:
        """Tell whether a line with a label or an item's mark stands among others without a call."""
        line = prefix.rstrip(_AROUND + _ANY_QUOTE)
        is_item = _ITEM_MARK.match(line) is not None
        if not is_item and not _LABELLED.fullmatch(line):
            return False
        mark = _ITEM_MARK if is_item else _NEXT_LABEL
        above, below = self._paragraph_of(place.start, place.end)
        rows = [*above.split("\n")[:-1], *below.split("\n")[1:]]
        return any(mark.match(row) and row.strip("-*+•0123456789.) `")[-1:] != "_" for row in rows)

    def _sentence_before(self, start: int) -> str:
        """Return the sentence before a place, and what precedes the place on its line."""
        before = self.text[max(0, start - _MAX_LEAD) : start].rstrip("`*_([{ \"'\n\t")
        cut = 0
        for found in _SENTENCE_END.finditer(before):
            if found.end() < len(before):
                cut = found.end()
        return before[cut:]

    def _is_in_table(self, prefix: str, suffix: str, start: int) -> bool:
        if _CELL.search(prefix) or _NEXT_CELL.match(suffix):
            return True
        if self._find_first(_TABLE_RULE) > start:
            return False
        return "|" in prefix or _FIRST_CELL.match(self.text, start) is not None

    def _is_indented(self, prefix: str, line: int) -> bool:
        """Tell whether a line with a margin is code: one below the tag around calls is none."""
        margin = len(prefix) - len(prefix.lstrip())
        if not (prefix.isspace() and (prefix.startswith("\t") or margin >= _CODE_INDENT)):
            return False
        before = self.text[max(0, line - _MAX_LEAD) : line]
        return bool(self.text[:line].strip()) and not _WRAPPER.search(before)

    def _has_text_outside(self, place: Place) -> bool:
        around = f"{_AROUND}{_AFTER}{_ANY_QUOTE}\n"
        start = len(self.text) - len(self.text.lstrip(around))
        return start < place.start or len(self.text.rstrip(around)) > place.end

    def _find_first(self, pattern: re.Pattern[str]) -> int:
        """Return where a pattern is found first, or a place behind the end of the text."""
        if pattern not in self._first:
            found = pattern.search(self.text)
            self._first[pattern] = found.start() if found else len(self.text) + 1
        return self._first[pattern]

    def _paragraph_of(self, start: int, end: int) -> tuple[str, str]:
        """Return the lines above and below a place, up to an empty one, without its candidates."""
        above = self.text[max(0, start - _MAX_PARAGRAPH) : start].rpartition("\n\n")[2]
        below = self.text[end : end + _MAX_PARAGRAPH].partition("\n\n")[0]
        return self._blank(start - len(above), start), self._blank(end, end + len(below))

    def _blank(self, start: int, end: int) -> str:
        """Return a part of the text with a mark for every candidate in it."""
        parts: list[str] = []
        here = start
        index = bisect_right(self._candidates, start, key=lambda span: span.end)
        for begun, over in self._candidates[index:]:
            if begun >= end:
                break
            parts.append(self.text[here:begun])
            here = over
        parts.append(self.text[here:end])
        return "_".join(parts)

    @cached_property
    def _fences(self) -> list[Fence]:
        """The fenced blocks of a text; one that is not closed goes to its end."""
        fences: list[Fence] = []
        opened: re.Match[str] | None = None
        for line in _FENCE_LINE.finditer(self.text):
            if opened is None:
                opened = line
            elif line[1].startswith(opened[1]) and not line[2].strip():
                fences.append(_fence(opened, line.start(), line.end()))
                opened = None
        if opened is not None:
            fences.append(_fence(opened, len(self.text), len(self.text)))
        return fences

    @cached_property
    def _echoes(self) -> list[Span]:
        spans: list[Span] = []
        opened: re.Match[str] | None = None
        for found in _ECHO.finditer(self.text):
            if opened is not None and not found[1]:
                spans.append(Span(opened.end(), found.end()))
            if not found[1]:
                opened = found
            elif opened is not None and found[2] == opened[2]:
                spans.append(Span(opened.end(), found.start()))
                opened = None
        if opened is not None:
            spans.append(Span(opened.end(), len(self.text)))
        return spans

    @cached_property
    def _other_parties(self) -> list[Span]:
        spans: list[Span] = []
        for said in _OTHER_PARTY.finditer(self.text):
            if spans and said.end() < spans[-1].end:
                continue
            end = self.text.find("\n\n", said.end())
            spans.append(Span(said.end(), len(self.text) if end < 0 else end))
        return spans


def _is_in(spans: list[Span], at: int) -> bool:
    index = bisect_right(spans, at, key=lambda span: span.start) - 1
    return index >= 0 and at <= spans[index].end


def _fence(opened: re.Match[str], body_end: int, end: int) -> Fence:
    language = opened[2].strip().lower()
    return Fence(opened.start(), opened.end() + 1, body_end, end, language)


def _is_quoted_part(prefix: str, suffix: str) -> bool:
    """Tell whether a quotation that began with other words on the line holds the call."""
    for opened in _PAIRED:
        closed = _QUOTES[opened]
        if opened == closed:
            if prefix.count(opened) % 2 == 1 and suffix.count(opened) % 2 == 1:
                return True
        elif prefix.rfind(opened) > prefix.rfind(closed) and closed in suffix:
            return True
    return False


class Surroundings:
    """The line, the element and the turn in which the visible text has arrived.

    A call in quotation marks, in a quoted line, in the transcript of a dialogue or in an example
    is quoted. One without markers of its own is also no call as a part of a larger document, or
    as the subject of a sentence.
    """

    __slots__ = ("_element", "_line", "_lines", "_tail", "_user_spoke")

    def __init__(self) -> None:
        self._line = ""
        self._lines: deque[str] = deque(maxlen=_MAX_LINES)
        self._tail = ""
        self._element = ""
        self._user_spoke = False

    def add(self, text: str, *, is_code: bool = False) -> None:
        """Take the next visible text."""
        if not text:
            return
        self._tail = (self._tail + text[-_MAX_TAIL:])[-_MAX_TAIL:]
        first, *lines = text.split("\n")
        self._line = (self._line + first)[:_MAX_LINE]
        for line in lines:
            if not is_code:
                self._end_line(self._line.strip())
            self._line = line[:_MAX_LINE]

    def end_call(self) -> None:
        """Take note that a call stands behind the visible text so far."""
        self._tail = ""

    def _end_line(self, line: str) -> None:
        if not line:
            return
        self._lines.append(line)
        may_close = _COMMENT[1] in line or len(self._line) >= _MAX_LINE
        if _USER.match(line):
            self._user_spoke = True
        if self._element:
            if self._element == _COMMENT[0]:
                self._element = "" if may_close else self._element
            elif line.endswith(f"</{self._element}>"):
                self._element = ""
        elif line.startswith(_COMMENT[0]):
            self._element = "" if may_close else _COMMENT[0]
        elif (tag := _OPEN_TAG.fullmatch(line)) and not line.endswith("/>"):
            name = tag[1]
            is_plain = name.lower() not in _VOID and not AROUND_CALLS.search(name)
            if is_plain or name.lower() in ECHOES:
                self._element = name

    def quote(self, source: Source, at: int, found: Found) -> bool:
        """Tell whether the calls that were found next are only quoted."""
        line = self._line.lstrip()
        if self._user_spoke and self._is_in_transcript():
            return True
        if self._element.lower() in _EXAMPLES or (line and self._is_quoted_line(line)):
            return True
        opened = _OPENED.search(self._tail) if self._line else None
        is_code = self._is_indented_below_words()
        may_be_quoted = is_code or opened is not None or self.is_in_quotation
        end = found.end
        if may_be_quoted or (not source.at_end(end) and source.char(end) in "<["):
            end += len(source.starts_any(_END_TOKENS, end))
        if is_code and goes_on_at_margin(source, end):
            return True
        if opened is not None:
            closing = _QUOTES.get(opened[opened.lastindex or 0])
            if closing is None or source.at_end(end) or source.starts(closing, end):
                return True
        if self._ends_quotation(source, end):
            return True
        if not found.ends_message and goes_on_behind(source, end, is_begun=_begins_sentence(line)):
            return True
        if found.grade == "marked":
            return False
        if self._element and source.char(at) == "<":
            return True
        if found.grade == "bare":  # in an item of a list, a row of a table, or a comment of code
            return line[:1] in _ITEM_MARKS or line[:1].isdigit()
        return source.char(at) == "<" and _begins_sentence(line)

    def _is_quoted_line(self, line: str) -> bool:
        """Tell whether all of a line is quoted, or an element that quotes what it holds is open."""
        if _QUOTED_LINE.match(line) or _USER.match(line):
            return True
        if line.rfind(_COMMENT[0]) > line.rfind(_COMMENT[1]):
            return True
        opened = None
        for tag in _QUOTING_TAG.finditer(self._line):
            opened = None if tag[1] else tag
        return opened is not None

    def _is_indented_below_words(self) -> bool:
        """Tell whether the line has nothing but the margin of a block of code, below words."""
        if not self._line.isspace():
            return False
        is_code = len(self._line.expandtabs(_CODE_INDENT)) >= _CODE_INDENT
        return is_code and bool(self._lines) and has_words(self._lines[-1])

    def stands_alone(self) -> bool:
        """Tell whether no words stand before what comes next, or a finished sentence above it."""
        if has_words(self._line):
            return False
        lead = next(filter(has_words, reversed(self._lines)), "")
        return not lead or lead.rstrip(" *_").endswith(_ENDS)

    def mention(self, source: Source, end: int) -> bool:
        """Tell whether the marker that ends here stands alone between quotation marks."""
        opened = _OPENED.search(self._tail) if self._line else None
        closing = _QUOTES.get(opened[opened.lastindex or 0]) if opened else None
        return closing is not None and source.starts(closing, end)

    @property
    def is_in_quotation(self) -> bool:
        """Whether a quotation was begun on the line and has not ended."""
        return bool(self._open_marks())

    def _ends_quotation(self, source: Source, at: int) -> bool:
        """Tell whether a quotation that began with other words on the line ends here."""
        marks = self._open_marks()
        if not marks or source.at_end(at):
            return False
        while not source.at_end(at) and source.char(at) in _SPACES:
            at += 1
        if not source.at_end(at) and source.char(at) in _PUNCTUATION:
            at += 1
        return not source.at_end(at) and bool(source.starts_any([_QUOTES[it] for it in marks], at))

    def _open_marks(self) -> list[str]:
        line = self._line
        return [mark for mark in _PAIRED if mark in line and self._is_open(mark)] if line else []

    def _is_open(self, mark: str) -> bool:
        line, closing = self._line, _QUOTES[mark]
        if mark == closing:
            return len(line) < _MAX_LINE and line.count(mark) % 2 == 1
        # In another language it may be the mark that closes.
        closes = any(_QUOTES[other] == mark and other in line for other in _PAIRED)
        return not closes and line.rfind(mark) > line.rfind(closing)

    def _is_in_transcript(self) -> bool:
        line = self._line.strip()
        if not line and _USER.match(self._lines[-1]) and self._lines[-1].endswith((">", ":")):
            return True
        return bool(
            _ASSISTANT.match(line)
            if line
            else self._lines and _ASSISTANT.fullmatch(self._lines[-1])
        )


def _begins_sentence(line: str) -> bool:
    """Tell whether words before a call on its line are no sentence of their own."""
    return has_words(line) and not line.rstrip(" *_").endswith(_FINISHED)


def goes_on_behind(source: Source, at: int, *, is_begun: bool = False) -> bool:
    """Tell whether the line goes on behind a call with the rest of a sentence about it.

    A capital or a digit may begin a new sentence, unless one was begun before the call.
    """
    here, marks = at, ""
    while not source.at_end(here) and here - at < _MAX_TAIL:
        char = source.text[here]
        if char in _QUESTION_MARKS:
            return True
        if char not in _SPACES and char not in _PUNCTUATION:
            is_glued = here == at and char.isascii()
            begins = (char.isalpha() and not char.isupper()) or (is_begun and char.isalnum())
            return (
                begins and not is_glued and _is_in_words(source, here, is_listed=marks in ("", ","))
            )
        marks += char.strip()
        here += 1
    ends = bool(marks) and not source.at_end(here) and source.text[here] == "\n"
    return is_begun and ends


def _is_in_words(source: Source, at: int, *, is_listed: bool) -> bool:
    """Tell whether more than one word follows, and neither markup nor the key of a lost member."""
    end = at
    while end - at < _MAX_WORD and not source.at_end(end) and source.text[end].isalnum():
        end += 1
    if source.at_end(end) or (is_listed and source.text[end] in _BEHIND_KEYS):
        return False
    if is_listed:
        over = min(source.line_end(at), at + _MAX_LINE)
        if source.text[at:over].rstrip().endswith(("}", "]")):
            return False  # of brackets that the call opened
    end = source.skip_space(end)
    return not source.at_end(end) and source.text[end] not in "<["


def goes_on_at_margin(source: Source, at: int) -> bool:
    """Tell whether a line without a margin, which begins with a word, is the next to have text."""
    at = source.skip_space(at)
    return not source.at_end(at) and source.char(at - 1) == "\n" and source.char(at).isalpha()
