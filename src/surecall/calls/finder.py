"""Calls in the text that the families left: found by the names of the tools, told by their place.

What is read here has no markers of its own, or stands where only a judgement makes it a call. So it
is only likely, and its receipt says which judgement it was.
"""

import html
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, Final, NamedTuple, cast

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import JSONTextError
from surecall.base.records import Receipt
from surecall.text import canonical_hash, decode

from .families import FORMATS
from .formats import MAX_CANDIDATES, Budget, Candidate, TextCall, text_receipt
from .mentions import Fence, Layout, Place, Span
from .named_bodies import find_bodies, repair_tags
from .names import MAX_NAMES, Name, ToolNames, find_names, names_a_tool, parameter_names
from .openers import find_openers
from .source import Source, TooMuchWork
from .unmarked_json import has_placeholder
from .written_json import find_json_calls
from .written_python import MAX_CALL_CHARS, find_python_calls

_MAX_CHARACTERS: Final = 100_000
_MARKS: Final = ("(", "{", "[", "<", "}", ":\n", '="', "='", "--")
_LABELS: Final = re.compile(r"\n[\w-]{1,64}+: \S")
"""Without one of them, or a label on a line of its own, no text calls anything."""
_LOOKS_PER_CHARACTER: Final = 2
_MAX_QUESTIONS_IN_VAIN: Final = 20_000
_BETWEEN: Final = re.compile(
    r"(?:[\s,;+&\[\](){}\"'`*|]++|-\s|\d{1,3}+[.)]\s|and\b|then\b|</?+[\w|:.-]{1,40}+>)*+"
)
_BEFORE: Final = re.compile(
    r"(?:\[[A-Z]{2,10}_[A-Z_]{2,20}+\]|[\[({\"'`*\s]|<[|/]?+[\w:.-]{1,40}+[|]?+>)++\Z"
)
_LAST_TAG: Final = re.compile(r"(<\|?+|\[)([\w:.-]{1,40}+(?:\|?+>|\]))\Z")
_LIST_MARKS: Final = frozenset("[<")
_WINDOW: Final = 160
_AFTER: Final = re.compile(
    r"(?:[\])}\"'`*;,]|[ \t]*+<[|/]?+[\w:.-]{1,40}+[|]?+>|\s*+\[/[A-Z]{2,10}_[A-Z_]{2,20}+\])*+"
)
_MARKER: Final = re.compile(
    r"<(?:[<|｜/]{0,4}+\s{0,8}+(?i:(?:start_)?(?:tool|function|invoke|call|action|DSML|ifm|GCML))"
    r"|\|(?i:constrain|python))|\[/?(?i:TOOL_)"
)
"""Markup of calls that no sentence has."""
_MAX_MARKERS: Final = 16
_REACH: Final = 240
_NEAR: Final = 60
_OPENS: Final = frozenset("<([{|>=:")
_CLOSES: Final = ">)]}|"
_OPENED: Final = re.compile(
    r"[\[({<>][\s\"'\w:=-]{0,40}\Z"
    r"|[\[{][\s\"'\w:;,=|{}\[\]()]{1,40}\Z"  # with a stray sign
    r"|(?:\A|[\"'])\w{1,20}[\"']?[\s\]}:=\"']{1,6}\Z|=[\w.]{1,40}\Z"
)
"""A bracket, tag or key right before a name."""
_DECLARES: Final = re.compile(r"[\"']properties[\"']|[\"']role[\"']\s*+:|\*args|\)\s*+->|\.{3}|…")
_DESCRIBES: Final = re.compile(r"[\"']description[\"']\s*+:")
"""What a tool's declaration, its result or its signature has, and a call has not."""


class LikelyCall(Struct, frozen=True, kw_only=True):
    """A call that was found, and the text it was read from."""

    call: TextCall
    format: str
    written: str
    why: str
    """The judgement that made it a call."""


class LikelyCalls(Struct, frozen=True, kw_only=True):
    """What was found in a text."""

    calls: tuple[LikelyCall, ...] = ()
    content: str = ""
    """The text without the calls."""
    unread: tuple[str, ...] = ()
    """The names of tools beside which arguments stand that were not taken."""
    is_over_limit: bool = False
    """Whether there was more to look at than is looked at."""


class _Group(Struct, kw_only=True):
    candidates: list[Candidate]
    fence: Fence | None

    @property
    def start(self) -> int:
        return self.candidates[0].start

    @property
    def end(self) -> int:
        return self.candidates[-1].end


def find_likely_calls(
    text: str, tools: ToolNames, *, is_beside: bool = False
) -> LikelyCalls | None:
    """Return the calls that a text makes outside any markup, or None when it makes none.

    Args:
        text: The text.
        tools: The tools that were offered.
        is_beside: Whether the text was left beside calls that markup made.
    """
    if not any(map(text.__contains__, _MARKS)) and not _LABELS.search(text):
        return None
    if len(text) > _MAX_CHARACTERS:
        is_silent = not names_a_tool(text, tools)
        return None if is_silent else LikelyCalls(content=text, is_over_limit=True)
    plain = _unescape(text)
    found = _find_in(plain, tools, is_beside=is_beside)
    if not found.calls and (inner := _unwrap_strings(text)) is not None:
        found = _find_in(inner, tools, is_beside=is_beside)
    if found.calls:
        return found
    is_empty = not (found.unread or found.is_over_limit)
    return None if is_empty else replace(found, content=text)


def _find_in(plain: "_Plain", tools: ToolNames, *, is_beside: bool) -> LikelyCalls:
    text = plain.text
    names = find_names(text, tools)
    candidates, is_over_limit = _find_candidates(text, tools, names)
    layout = Layout(text, [Span(it.start, it.end) for it in candidates])
    groups = [it for it in _group(layout, candidates) if not _why_mention(layout, it)]
    calls = tuple(_calls_of(plain, groups))
    taken = [Span(it.start, it.end) for group in groups for it in group.candidates]
    unread = tuple(_find_unread(layout, tools, names, taken))
    if not (unread or calls) and tools and _is_left_markup(layout, is_beside=is_beside):
        unread = ("",)
    return LikelyCalls(
        calls=calls,
        content=_without(text, groups) if calls else text,
        unread=unread,
        is_over_limit=is_over_limit,
    )


def _find_candidates(
    text: str, tools: ToolNames, names: list[Name]
) -> tuple[list[Candidate], bool]:
    """Return what may be calls, none inside another, and whether there was more to look at."""
    if not names:
        return [], False
    budget = Budget(_LOOKS_PER_CHARACTER * len(text) + MAX_CALL_CHARS)
    questions = Budget(_MAX_QUESTIONS_IN_VAIN)
    every = [
        *(_find_marked(text, tools, questions) if "<" in text or "[" in text else ()),
        *(find_json_calls(text, tools, names) if "{" in text or "[" in text else ()),
        *find_bodies(text, tools, names),
        *find_python_calls(text, tools, names, budget),
    ]
    every.sort(key=lambda it: (it.start, not it.is_marked, -it.end))
    apart: list[Candidate] = []
    calls = 0
    for candidate in every:
        if apart and candidate.start < apart[-1].end:
            continue
        calls += len(candidate.calls)
        if calls > MAX_CANDIDATES:
            break
        apart.append(candidate)
    is_spent = budget.is_spent or questions.is_spent
    return apart, calls >= MAX_CANDIDATES or len(names) == MAX_NAMES or is_spent


def _find_marked(text: str, tools: ToolNames, budget: Budget) -> Iterator[Candidate]:
    """Yield what families read at their openers, wherever on its line one stands."""
    openers = find_openers(tools, FORMATS)
    source = Source(text, tools, final=True)
    done = 0
    for opener in openers.pattern_for(text, is_whole=True).finditer(text):
        if opener.start() < done:
            continue
        for form in openers.formats.get(opener.group(), ()):
            if budget.is_spent:
                return
            source.begin()
            try:
                found = form.read(source, opener.start())
            except TooMuchWork:
                found = None
            budget.spend(source.questions if found is None else 0)
            if found is None or not found.calls or found.grade == "bare":
                continue
            calls = found.calls
            written = text[opener.start() : found.end]
            if len(calls) == 1 and (mended := repair_tags(calls[0], written, tools)):
                calls = (mended,)
            if all(call.state == "whole" and tools.resolve(call.name) for call in calls):
                done = found.end
                yield Candidate(
                    start=opener.start(),
                    end=done,
                    calls=calls,
                    format=form.name,
                    is_marked=not form.is_plain,
                )
                break


def _group(layout: Layout, candidates: list[Candidate]) -> Iterator[_Group]:
    """Put calls together that only separators stand between."""
    group: _Group | None = None
    for candidate in candidates:
        fence = layout.fence_at(candidate.start)
        if group is not None:
            between = _BETWEEN.match(layout.text, group.end, candidate.start)
            joins = between is not None and between.end() == candidate.start
            if joins and fence == group.fence:
                group.candidates.append(candidate)
                continue
            yield group
        group = _Group(candidates=[candidate], fence=fence)
    if group is not None:
        yield group


def _why_mention(layout: Layout, group: _Group) -> str:
    """Return why calls are only spoken of; empty when they are made."""
    calls = [call for one in group.candidates for call in one.calls]
    if any(has_placeholder(call.arguments) for call in calls):
        return "its values are placeholders"
    names = {name for one in group.candidates for name in one.names}
    if names and not names.isdisjoint(layout.assigned_names):
        return "its values are variables"
    opened = _BEFORE.search(layout.text, max(0, group.start - _WINDOW), group.start)
    place = Place(
        group.start,
        group.end,
        is_marked=all(it.is_marked for it in group.candidates),
        is_tag=layout.text.startswith("<", group.start),
        is_in_list=opened is not None and not _LIST_MARKS.isdisjoint(opened.group()),
        has_arguments=any(call.arguments for call in calls),
    )
    if why := layout.why_quoted(place):
        return why
    is_json = group.fence is None and group.candidates[0].format == "bare_json"
    if is_json and _is_all_between_tags(layout.text, group.start, group.end):
        return ""
    return layout.why_spoken_of(place)


def _is_all_between_tags(text: str, start: int, end: int) -> bool:
    """Tell whether pairs of tags around a place, of whatever name, are the rest of the text."""
    before, after = text[:start].strip(), text[end:].strip()
    if not before or len(before) + len(after) > _WINDOW:
        return False
    while before:
        tag = _LAST_TAG.search(before)
        closer = f"{tag[1]}/{tag[2]}" if tag else ""
        if tag is None or not after.startswith(closer):
            return False
        before, after = before[: tag.start()].rstrip(), after[len(closer) :].lstrip()
    return not after


def _calls_of(plain: "_Plain", groups: list[_Group]) -> Iterator[LikelyCall]:
    text = plain.text
    seen: set[str] = set()
    for group in groups:
        here: set[str] = set()
        why = _why(text, group)
        for candidate in group.candidates:
            written = text[candidate.start : candidate.end]
            for call in candidate.calls:
                said = _identity(call)
                if said in seen:  # said again, in other words or in another block
                    continue
                here.add(said)
                judged = text_receipt("judge_call_in_text", written, call.name, why)
                receipts = (*call.receipts, *plain.receipts, judged)
                yield LikelyCall(
                    call=replace(call, receipts=receipts),
                    format=candidate.format,
                    written=written,
                    why=why,
                )
        seen |= here


def _identity(call: TextCall) -> str:
    try:
        return canonical_hash([call.name, call.arguments])
    except JSONTextError:
        return f"{call.name}{call.arguments!r}"


def _why(text: str, group: _Group) -> str:
    if group.fence is not None:
        return "a block of code that calls an offered tool"
    if not text[: group.start].strip("[({\"'`*\n\t ") and not text[group.end :].strip(
        "])}\"'`*\n\t ;,."
    ):
        return "the message is a call of an offered tool"
    return "a call of an offered tool among other text"


def _without(text: str, groups: list[_Group]) -> str:
    """Return the text without the calls, their brackets, fences and tokens."""
    parts: list[str] = []
    here = 0
    for group in groups:
        start, end = group.start, group.end
        if group.fence is not None:
            start, end = group.fence.start, group.fence.end
        else:
            opened = _BEFORE.search(text, max(here, start - _WINDOW), start)
            start = opened.start() if opened else start
            closed = _AFTER.match(text, end)
            end = closed.end() if closed else end
        if start >= here:
            parts.append(text[here:start].rstrip())
        here = max(here, end)
    parts.append(text[here:].strip() if not parts else text[here:])
    return "\n".join(part.strip("\n") for part in parts if part.strip())


# what is not taken


def _find_unread(
    layout: Layout, tools: ToolNames, names: list[Name], taken: list[Span]
) -> Iterator[str]:
    """Yield the names of tools beside which arguments stand that no call has."""
    parts: list[str] = []
    here = 0
    for start, end in taken:
        parts += (layout.text[here:start], " " * (end - start))
        here = end
    text = "".join((*parts, layout.text[here:]))
    done = 0
    for name in names:
        keys = parameter_names(tools.parameters(name.tool))
        if name.start < done or text[name.start].isspace() or not keys:
            continue
        found = _find_arguments(text, name, _key_pattern(keys))
        if found is None:
            continue
        over = text.find("\n", found.end)
        over = min(len(text) if over < 0 else over, found.end + _REACH)
        is_described = "description" not in keys and _DESCRIBES.search(text, found.start, over)
        if not (is_described or _DECLARES.search(text, found.start, over)):
            done = found.end
            yield name.tool


def _find_arguments(text: str, name: Name, key: re.Pattern[str]) -> Span | None:
    """Return where a parameter with its value stands behind a bracket or tag next to a name."""
    after = text[name.end : name.end + _REACH]
    before = text[max(0, name.start - _REACH) : name.start]
    opened = key.search(after)
    if opened is not None and (
        not _OPENS.isdisjoint(after[: opened.start() + 1])
        or (not after[: opened.start()].strip() and "=" in opened.group())
        or opened.group().startswith("--")
        or _OPENED.search(before, max(0, len(before) - _NEAR))
    ):
        return Span(name.start, name.end + opened.end())
    given = key.search(before)
    if given is not None and given.end() <= max(map(before.rfind, _CLOSES)):
        return Span(name.start, name.end)
    return None


@lru_cache(maxsize=256)
def _key_pattern(keys: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern that finds a key with what notations put around one."""
    either = "|".join(map(re.escape, sorted(keys, key=len, reverse=True)))
    return re.compile(
        r"(?:<[/\w=:|. -]{0,40}|[\"'`“‘]|[({,\[>|+\s]|\\[\"n])"
        rf"(?:{either})(?!\w)"
        r"[ \t\"'`”’\\]{0,3}(?:[:=<>]|(?<=[\"'] )\w{1,20}=)"
        rf"|--(?:{either})\s"
    )


def _is_left_markup(layout: Layout, *, is_beside: bool) -> bool:
    """Tell whether markup of calls is left whose tool nobody can tell."""
    for found in islice(_MARKER.finditer(layout.text), _MAX_MARKERS):
        before, after = layout.line_of(found.start(), found.end())
        is_called = not before.strip() and bool(after.partition(">")[2].strip() or "\n" in after)
        if (is_beside or is_called) and not layout.is_in_echo(found.start()):
            return True
    return False


# texts that were escaped on their way

_MARKDOWN: Final = re.compile(r"\\([_*\[\]{}])")
_ESCAPED_QUOTES: Final = re.compile(r"\\{1,3}+([\"'])")
_FIRST_QUOTE: Final = re.compile(r"[^\"\\]*+(?:\\++[^\"\\]++)*+\\{1,3}+\"")
"""A text whose first quotation mark is escaped: no string can have begun before it."""
_HTML: Final = re.compile(r"\s*+(?:&lt;|\[?+\s*+\{\s*+&(?:quot|#34|#39);)")
_WIDE: Final = re.compile(r"(?<=[\"\]}\d])([：，])(?=\s*+[\"\[{\d-])")
_NARROW: Final = {"：": ":", "，": ","}
_PREFIXED: Final = re.compile(
    r"<(/?)[|｜]{0,2}[A-Za-z]{2,12}[|｜]{1,2}(/?)(?=[a-z]\w{1,40}+[\s>|｜=])"
)
_CLOSING_BAR: Final = re.compile(r"(?<=\w)[|｜]>")
_FIRST_CHARACTERS: Final = 80
_STRINGS: Final = re.compile(r"\s*+(?:\"|\[\s*+\")")


class _Plain(NamedTuple):
    """A text as it was meant, and what had been done to it."""

    text: str
    receipts: tuple[Receipt, ...] = ()


def _unescaped(text: str, rule: str, before: str, after: str, why: str) -> _Plain:
    return _Plain(text, (text_receipt(rule, before, after, why),))


def _unescape(text: str) -> _Plain:
    """Return a text without the escapes that all of it was written with."""
    if "\\_" in text:
        why = "underscores were escaped as in Markdown"
        return _unescaped(_MARKDOWN.sub(r"\1", text), "unescape_markdown", "\\_", "_", why)
    if '\\"' in text and _FIRST_QUOTE.match(text):
        why = "every quotation mark was escaped"
        return _unescaped(_ESCAPED_QUOTES.sub(r"\1", text), "unescape_quotes", '\\"', '"', why)
    if "&" in text and _HTML.match(text):
        plain = html.unescape(text)
        return _unescaped(plain, "unescape_tags", "&lt;", "<", "escaped as in HTML")
    if "：" in text and _WIDE.search(text):
        plain = _WIDE.sub(lambda found: _NARROW[found[1]], text)
        why = "colons were of full width"
        return _unescaped(plain, "look_alike_markers", "：", ":", why)
    if "<" in text and (prefixed := _PREFIXED.search(text)):
        plain = _CLOSING_BAR.sub(">", _PREFIXED.sub(r"<\1\2", text))
        why = "tags had a prefix of their own"
        return _unescaped(plain, "look_alike_markers", prefixed.group(), "<", why)
    return _Plain(text)


def _unwrap_strings(text: str) -> _Plain | None:
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
    return _unescaped("\n\n".join(entries), "unwrap_json_string", '"', "", why)
