"""Calls outside the markup of any family: what a careful person would say is a call.

Read from a whole text that no format found a call in. Each call that is found takes a judgement,
so it is only likely, and its receipt says which judgement it was.
"""

import re
from collections.abc import Iterator
from itertools import islice, pairwise
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import JSONTextError
from surecall.base.records import Receipt, clip
from surecall.calls.formats import TextCall
from surecall.calls.names import ToolNames
from surecall.text import canonical_hash

from .candidates import find_candidates
from .escapes import Unescaped, unescape_text, unwrap_strings
from .layout import Fence, Layout, Span
from .mentions import IN_WORDS, Place, has_words, subjects_of, why_mention
from .naming import Candidate, names_a_tool
from .phrases import CALL_LANGUAGES
from .traces import (
    Trace,
    begins_with_opener,
    find_traces,
    is_damaged,
    is_near_language,
    is_on_its_line,
)
from .written_json import mend_call

__all__ = ["LikelyCall", "LikelyCalls", "find_likely_calls", "mend_call", "names_a_tool"]

_MAX_CHARACTERS: Final = 100_000
_MARKS: Final = ("(", "{", "[", "<", "}", ":\n")
"""Without one of them no text calls anything."""
_BETWEEN: Final = re.compile(
    r"(?:[\s,;+&\[\](){}\"'`*|]++|-\s|\d{1,3}+[.)]\s|and\b|then\b|</?+[\w|:.-]{1,40}+>)*+"
)
_BEFORE: Final = re.compile(r"(?:[\[({\"'`*\s]|<[|/]?+[\w:.-]{1,40}+[|]?+>)++\Z")
_LAST_TAG: Final = re.compile(r"(<\|?+|\[)([\w:.-]{1,40}+(?:\|?+>|\]))\Z")
_LIST_MARKS: Final = frozenset("[<")
_WINDOW: Final = 160
_AFTER: Final = re.compile(r"(?:[\])}\"'`*;,]|[ \t]*+<[|/]?+[\w:.-]{1,40}+[|]?+>)*+")
_OR: Final = re.compile(
    r"[\s\W]*+(?:<[|\w]++>\s*+)*+(?:or|oder|ou|o|或者|alternatively|otherwise|vs|versus)\b|\s*+/\s*+\Z",
    re.IGNORECASE,
)


_MARKER: Final = re.compile(
    r"<(?:[<|｜/]{0,4}+\s{0,8}+(?i:(?:start_)?(?:tool|function|invoke|call|action|DSML|ifm|GCML))"
    r"|\|(?i:constrain|python))|\[/?(?i:TOOL_)"
)
"""Markup of calls that no sentence has."""
_IN_BRACKETS: Final = re.compile(r"\[/?(?i:TOOL_)")
_MAX_MARKERS: Final = 16
_NEAR: Final = 24
_INSIDE: Final = re.compile(r"[\[({<\"':]")


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
    """The names of tools beside which arguments stand that nobody can read."""
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
    if not any(mark in text for mark in _MARKS):
        return None
    if len(text) > _MAX_CHARACTERS:
        is_silent = not names_a_tool(text, tools)
        return None if is_silent else LikelyCalls(content=text, is_over_limit=True)
    plain = unescape_text(text)
    found = _find_in(plain, tools, is_beside=is_beside)
    if not (found and found.calls) and (inner := unwrap_strings(text)) is not None:
        found = _find_in(inner, tools, is_beside=is_beside) or found
    if found is None or found.calls:
        return found
    return replace(found, content=text)


def _find_in(plain: Unescaped, tools: ToolNames, *, is_beside: bool) -> LikelyCalls | None:
    text = plain.text
    candidates, known, is_over_limit = find_candidates(text, tools)
    unread = tuple(_find_unread(text, tools, known, is_beside=is_beside))
    if not (unread or candidates) and tools:
        unread = tuple(_find_markup(text, is_beside=is_beside))
    if not candidates:
        if not (is_over_limit or unread):
            return None
        return LikelyCalls(content=text, unread=unread, is_over_limit=is_over_limit)
    layout = Layout(text, [Span(it.start, it.end) for it in candidates])
    groups: list[_Group] = []
    for group in _without_choices(text, list(_group(layout, candidates))):
        why = _why_mention(layout, group)
        if not why:
            groups.append(group)
        elif why in IN_WORDS and (is_beside or _is_damaged_group(text, group)):
            unread += tuple(call.name for one in group.candidates for call in one.calls)
    calls = tuple(_calls_of(plain, groups))
    if not calls:
        if not (is_over_limit or unread):
            return None
        return LikelyCalls(content=text, unread=unread, is_over_limit=is_over_limit)
    return LikelyCalls(
        calls=calls,
        content=_without(text, groups),
        unread=unread,
        is_over_limit=is_over_limit,
    )


def _find_unread(
    text: str, tools: ToolNames, known: list[Span], *, is_beside: bool
) -> Iterator[str]:
    """Yield the names of tools that a text calls, unless it only speaks of them."""
    traces = find_traces(text, tools, known)
    layout = Layout(text, [Span(it.start, it.end) for it in traces])
    for name in traces:
        if not layout.is_in_echo(name.start):
            why = why_mention(layout, Place(name.start, name.end), layout.fence_at(name.start))
            if not why or (why in IN_WORDS and (is_beside or _is_damaged_trace(text, name))):
                yield name.tool


def _find_markup(text: str, *, is_beside: bool) -> Iterator[str]:
    """Yield an empty name where a text holds markup of a call whose tool cannot be told."""
    layout = Layout(text, [])
    has_marker = "<" in text or _IN_BRACKETS.search(text)
    for found in islice(_MARKER.finditer(text), _MAX_MARKERS) if has_marker else ():
        start, end = found.start(), found.end()
        is_called = is_beside or _begins_line(layout, start, end)
        if not is_called or layout.is_in_echo(start):
            continue
        over = text.find("\n", end)
        place = Place(start, len(text) if over < 0 else over)
        why = why_mention(layout, place, layout.fence_at(start))
        if not why or (is_beside and why in IN_WORDS):
            yield ""
            return
    if is_beside and begins_with_opener(text):
        yield ""


def _begins_line(layout: Layout, start: int, end: int) -> bool:
    """Tell whether no word stands before markup on its line, and something in it."""
    if has_words(layout.line_of(start, end)[0]):
        return False
    inside = layout.text[end : end + _WINDOW].partition(">")[2] or layout.text[end : end + _WINDOW]
    return has_words(inside) and _INSIDE.search(layout.text, end, end + _WINDOW) is not None


def _is_damaged_trace(text: str, trace: Trace) -> bool:
    if _MARKER.match(text, trace.start) or is_damaged(text, trace.start, trace.end):
        return True
    if _MARKER.search(text, max(0, trace.named - _NEAR), trace.named):
        return True
    return is_damaged(text, trace.named, trace.named) or is_on_its_line(text, trace)


def _is_damaged_group(text: str, group: _Group) -> bool:
    fence = group.fence
    if fence is None:
        return is_damaged(text, group.start, group.end)
    is_other = fence.language.split(" ")[0] not in CALL_LANGUAGES
    is_slip = is_other and is_near_language(fence.language)
    return is_slip or is_damaged(text, fence.start, fence.end)


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


def _without_choices(text: str, groups: list[_Group]) -> list[_Group]:
    """Leave out calls of which the reader is to choose one, as in `this() or that()`."""
    chosen = [False] * len(groups)
    for number, (here, following) in enumerate(pairwise(groups)):
        if _OR.match(text, here.end, following.start):
            chosen[number] = chosen[number + 1] = True
    return [group for group, is_choice in zip(groups, chosen, strict=True) if not is_choice]


def _why_mention(layout: Layout, group: _Group) -> str:
    if layout.is_in_echo(group.start):
        return "it is an echo"
    names = {name for one in group.candidates for name in one.names}
    if not names.isdisjoint(layout.assigned_names if names else ()):
        return "its values are variables"
    is_json = group.fence is None and group.candidates[0].format == "bare_json"
    if is_json and _is_all_between_tags(layout.text, group.start, group.end):
        return ""
    opened = _BEFORE.search(layout.text, max(0, group.start - _WINDOW), group.start)
    place = Place(
        group.start,
        group.end,
        is_tag=group.candidates[0].format == "name_tag",
        is_in_list=opened is not None and not _LIST_MARKS.isdisjoint(opened.group()),
        has_arguments=any(call.arguments for one in group.candidates for call in one.calls),
        subjects=subjects_of(call for one in group.candidates for call in one.calls),
    )
    return why_mention(layout, place, group.fence)


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


def _calls_of(plain: Unescaped, groups: list[_Group]) -> Iterator[LikelyCall]:
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
                receipts = [*call.receipts]
                if plain.rule:
                    receipts.append(
                        Receipt(plain.rule, "text", plain.before, plain.after, why=plain.why)
                    )
                receipts.append(
                    Receipt("judge_call_in_text", "text", clip(written), call.name, why=why)
                )
                yield LikelyCall(
                    call=replace(call, receipts=tuple(receipts)),
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
