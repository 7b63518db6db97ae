"""What stands behind a call: what ends a turn, and what a damaged call left there.

A bracket or a tag that closes too early leaves members of the arguments outside. They are put back
where they can only be arguments, and the call is never certain.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from surecall.base.records import Receipt

from .formats import TextCall, add_receipts, as_object, text_receipt
from .names import ToolNames, parameter_names
from .source import Source

FLAT_ARGUMENTS: Final = "nest_flat_arguments"
"""The rule by which arguments beside the name are read."""
RESIDUE: Final = frozenset((
    "</longcat_s>", "<SPECIAL_11>Assistant", "<SPECIAL_11>User", "<SPECIAL_12>", "</s>",
    "<end_code>", "<end_of_sentence>", "<end_of_turn>", "<eop>", "<eos>", "<seed:eos>", "<turn|>",
    "<|END_OF_TURN_TOKEN|>", "<|END_RESPONSE|>", "<|END_TEXT|>", "<|START_RESPONSE|>",
    "<|START_TEXT|>", "<|begin_of_text|>", "<|call|>", "<|close|>message<|sep|>",
    "<|content_model_end_sampling|>", "<|end_message|>", "<|end_of_msg|>", "<|end_of_text|>",
    "<|endoftext|>", "<|end|>", "<|eom_id|>", "<|eom|>", "<|eos|>", "<|eot_id|>", "<|eot|>",
    "<|im_end|>", "<|im_start|>assistant", "<|message_sep|>", "<|observation|>", "<|return|>",
    "<|role_sep|>", "<|start_header_id|>assistant<|end_header_id|>", "<|start|>assistant",
    "<|stop|>", "<|tool_response>", "<|turn>model", "<|user|>", "<｜Assistant｜>",
    "<｜end▁of▁sentence｜>", "<｜hy_eos:opensource｜>", "<｜hy_eos｜>", "[EOS]",
    "[END FINAL RESPONSE]", "[EOT]", "[e~[",
))  # fmt: skip
"""Stripped where only more of them and white space stand between them and an end of the text."""

_STRAYS: Final = (";", "}", "]")

_OPEN_ENDS: Final = "}])\"'"
"""What a call ends with that has no marker behind it."""
_GOES_ON: Final = frozenset(",:}])\"'={")
"""What stands behind a value, a key or a bracket, and begins no sentence."""
_GLUED: Final = re.compile(r"[a-z0-9_]|\.\d")
"""What no sentence begins with."""
_SEPARATORS: Final = (",", ";")
_MAX_LINE: Final = 400
_MAX_LINES: Final = 40
_INDENTED: Final = ' \t"}])'
_CLOSERS: Final = re.compile(
    r"(?:\s*+(?:</[\w.:｜▁-]{1,60}+>|\[/[A-Z_]{1,40}+\]|<\|/?[\w.:]{1,60}+\|>|<[\w.:]{1,60}+\|>))*+"
)
_MARKUP: Final = re.compile(r"</?[A-Za-z|｜_/]|\[/?[A-Z]{2}")
_CLOSING_TAG: Final = re.compile(r"</([\w.:-]{1,60}+)>|\[/([A-Z_]{1,40}+)\]")
_TOKEN: Final = re.compile(r"<[|｜][^<>\s]{1,60}+>|<[^<>\s]{1,60}+\|>|<end_\w{1,40}+>")
_BRACKETS: Final = re.compile(r'[{}]|"(?:[^"\\\n]++|\\.)*+"')
_DROPPED: Final = "drop_leftover"
_MOVED: Final = "return_members"
_LEFT: Final = "Text behind the call seems to belong to it, and was not read."
_BESIDE: Final = "Something stands beside the arguments that is none of the call's own keys."
_PUT_BACK: Final = "Members that stood outside the arguments were taken as arguments."


def doubt_calls(
    calls: Iterable[TextCall], doubt: str, receipt: Receipt | None = None
) -> tuple[TextCall, ...]:
    """Return calls that are only likely, with the receipt that says why."""
    added = () if receipt is None else (receipt,)
    return tuple(
        replace(call, doubt=call.doubt or doubt, receipts=(*call.receipts, *added))
        for call in calls
    )


def return_members(
    call: TextCall, members: Mapping[str, Any], tools: ToolNames | None, written: str
) -> TextCall:
    """Return a call with members that stood outside its arguments, where they can only be these."""
    given = {} if call.arguments is None else as_object(call.arguments)
    known = parameter_names(None if tools is None else tools.parameters(call.name))
    fits = given is not None and given.keys().isdisjoint(members) and set(members) <= set(known)
    if given is None or not members or not fits:
        note = text_receipt(_DROPPED, written, "", _BESIDE, lossless=False)
        return doubt_calls((call,), _BESIDE, note)[0]
    note = text_receipt(_MOVED, written, ", ".join(members), _PUT_BACK, lossless=False)
    return doubt_calls((replace(call, arguments={**given, **members}),), _PUT_BACK, note)[0]


def take_leftover(
    calls: tuple[TextCall, ...], written: str, tools: ToolNames
) -> tuple[TextCall, ...]:
    """Return calls behind which text stands that belongs to the last of them."""
    *others, last = calls
    last = return_members(last, _members_of(written), tools, written)
    return (*others, replace(last, doubt=last.doubt if last.doubt != _BESIDE else _LEFT))


def _members_of(written: str) -> dict[str, Any]:
    """Return the members of an object that a text is the rest of; none if it is not all of it."""
    inner = written.strip().lstrip(",").strip()
    inner = inner[:end] if (end := inner.rfind("}")) >= 0 else inner
    members = as_object("{" + inner.rstrip(" \n\t\r,}") + "}")
    return (as_object("{" + inner + "}") if members is None else members) or {}


def find_leftover(
    source: Source,
    start: int,
    at: int,
    find_mark: Callable[[int], tuple[int, str] | None],
    *,
    is_over: bool = False,
) -> int:
    """Return where text ends that belongs to the call before `at`; `at` when there is none.

    Args:
        source: The text.
        start: Where the call begins.
        at: Where it ended.
        find_mark: Returns where the next opener or token stands from a place on, and which it is.
        is_over: Whether what follows is of no interest, unless it goes on with the arguments.
    """
    here = source.skip_space(at)
    if source.at_end(here) or _is_mark(find_mark, here):
        return at
    text = source.text
    is_open = text[at - 1] in _OPEN_ENDS
    breaks = "\n" in text[at:here]
    if text[here] in _SEPARATORS:
        beyond = source.skip_space(here + 1)
        if source.at_end(beyond) or _is_mark(find_mark, beyond):
            return at
    if text[here] == ".":
        source.char(here + 1)
    is_glued = is_open and here == at and _GLUED.match(text, here) is not None
    goes_on = is_glued or (text[here] in _GOES_ON and (is_open or not breaks))
    if is_over and not (goes_on and is_open):
        return at
    source.char(here + 1)
    if not (is_open or goes_on or _MARKUP.match(text, here)):
        return at  # the call has its own end, and a sentence follows
    end = _end_of_line(source, here, find_mark)
    line = text[here:end]
    if not (
        goes_on
        or (not breaks and _MARKUP.match(text, here) and not _only_closes(text[start:at], line))
        or (not breaks and _closes_something(text[start:at], line))
        or (not breaks and is_open and line.strip().isdecimal())  # the rest of a number
    ):
        return at
    return _end_of_members(source, end, find_mark) if goes_on else end


def _end_of_members(
    source: Source, at: int, find_mark: Callable[[int], tuple[int, str] | None]
) -> int:
    """Return where the lines below end that go on with members, or close what holds them."""
    for _ in range(_MAX_LINES):
        if source.at_end(at) or source.text[at] != "\n":
            return at
        if not source.char(at + 1) or source.text[at + 1] not in _INDENTED:
            return at
        at = _end_of_line(source, at + 1, find_mark)
    return at


def _is_mark(find_mark: Callable[[int], tuple[int, str] | None], at: int) -> bool:
    found = find_mark(at)
    return found is not None and found[0] == at and len(found[1]) > 1


def _end_of_line(
    source: Source, at: int, find_mark: Callable[[int], tuple[int, str] | None]
) -> int:
    """Return where the line ends, or the next opener of a call stands on it."""
    found = source.text.find("\n", at, at + _MAX_LINE)
    end = min(at + _MAX_LINE, len(source.text)) if found < 0 else found
    if found < 0 and end < at + _MAX_LINE:
        source.at_end(end)
    here = at
    while (mark := find_mark(here)) is not None and mark[0] < end:
        if len(mark[1]) > 1:
            return mark[0]
        here = mark[0] + len(mark[1])
    return end


def _only_closes(written: str, line: str) -> bool:
    """Tell whether nothing but closing tags of the call's own kinds stands on a line."""
    match = _CLOSERS.match(line)
    if match is None or line[match.end() :].strip():
        return False
    words = [one or other for one, other in _CLOSING_TAG.findall(line)]
    return all(word in written for word in words)


def _closes_something(written: str, line: str) -> bool:
    """Tell whether a line closes a bracket that was not opened on it, or a tag of the call."""
    depth = 0
    for mark in _BRACKETS.findall(line):
        depth += (mark == "{") - (mark == "}")
        if depth < 0:
            return True
    words = [one or other for one, other in _CLOSING_TAG.findall(line)]
    closes = any(f"<{word}" in written or f"[{word}" in written for word in words)
    return closes or _TOKEN.search(line) is not None


def skip_residue(source: Source, at: int) -> int:
    """Return where white space and tokens that end a turn are over."""
    at = source.skip_space(at)
    while literal := source.starts_any(RESIDUE, at):
        at = source.skip_space(at + len(literal))
    return at


def note_missing(calls: tuple[TextCall, ...], closer: str) -> tuple[TextCall, ...]:
    """Return whole calls with a receipt that says that their closer was missing."""
    receipt = text_receipt("add_closer", "", closer, "the closer was missing")
    return tuple(
        replace(call, receipts=(*call.receipts, receipt)) if call.state == "whole" else call
        for call in calls
    )


def skip_to_end(source: Source, at: int, also: str = "") -> int | None:
    """Return the end of the text when nothing that matters follows, else `None`.

    Args:
        source: The text.
        at: Where to look from.
        also: Characters that do not matter either.
    """
    at = source.skip_space(at)
    while not source.at_end(at) and source.text[at] in also:
        at = source.skip_space(at + 1)
    at = skip_residue(source, at)
    return at if source.at_end(at) else None


def skip_leftovers(source: Source, at: int) -> int:
    """Return where semicolons and brackets that nothing opened are over, behind JSON."""
    here = source.skip_space(at)
    while source.char(here) in _STRAYS:
        at = here + 1
        here = source.skip_space(at)
    return at


def note_leftovers(
    calls: tuple[TextCall, ...], written: str, leftovers: str
) -> tuple[TextCall, ...]:
    """Return calls with a receipt for the brackets behind them that nothing opened, if any.

    Where another one of their kind closed something before, that one may be the one too many;
    where nothing is nested, what should have been may be lost; and behind a text, a bracket and
    the quote may have changed places: `"a}"}}` and `"a"}}}`.
    """
    if not leftovers:
        return calls
    inner = written.rstrip("}] \t\r\n")
    run = "".join(written[len(inner) :].split())
    is_last = len(run) > 1 and not inner.endswith('"')
    is_last &= all(bracket not in inner for bracket in "}]" if bracket in leftovers)
    is_flat = any(one.rule == FLAT_ARGUMENTS for call in calls for one in call.receipts)
    is_lossless = is_last and not is_flat
    why = "nothing opened them"
    note = text_receipt("drop_extra_brackets", leftovers, "", why, lossless=is_lossless)
    return add_receipts(calls, note)
