"""The request of one turn, and the reading of its reply: the same when a run is replayed."""

import re
from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from surecall.base.errors import Code
from surecall.base.records import (
    Defect,
    Message,
    ModelRequest,
    Reading,
    Reply,
    ToolCall,
    clip,
)
from surecall.base.redaction import MASK
from surecall.calls import ToolNames
from surecall.exchange.prompting import present_tools, taught_way
from surecall.exchange.provider_rules import find_own_ids, fit_history
from surecall.reading import (
    ReplyReader,
    find_broken_attempt,
    find_broken_call,
    parse_object_reply,
    read_reply,
    without_rules,
)
from surecall.reading.reply import Accept
from surecall.reading.rules import JUDGE_IN_TEXT
from surecall.reading.taught import with_receipts
from surecall.reading.truncation import says_malformed
from surecall.reading.wording import note_unread
from surecall.text import encode_text

from .guidance import find_lesson, guide_request, is_guided, must_call
from .output_steps import build_output_request
from .plan import Plan
from .steps import RunState
from .wording import HELD_SECRET, MALFORMED

_MAX_SNIPPET_CHARS: Final = 200
_MARKED: Final = re.compile(
    r"[<>\[\]{}()|`=✿◁｜‖▁]|action|analysis|assistant|commentary|final|function|my re|tool|thought",
    re.IGNORECASE,
)
"""Something of this is in every text that makes a call or holds thoughts."""


def build_request(plan: Plan, state: RunState, *, stream: bool) -> ModelRequest:
    """Build the request of a turn."""
    if state.output is not None:
        return build_output_request(plan, state, stream=stream)
    request = plan.request(
        state.history,
        tools_enabled=state.tools_enabled,
        stream=stream and plan.may_stream(tools_enabled=state.tools_enabled),
        calls_seen=state.calls_seen,
        after_cut=state.was_cut,
    )
    guidance = state.guidance
    if is_guided(plan, guidance) or guidance.held_by is not None:
        request = guide_request(request, plan, guidance, state.mode)
    request = present_tools(
        request,
        state.mode,
        plan.capabilities,
        forced_tool=state.forced_tool,
        must_call=request.tool_choice not in (None, "auto", "none")
        or must_call(plan, guidance, state.mode),
        lesson=find_lesson(plan, guidance, state.mode),
        lists=state.single is not None,
        wish=plan.request_text,
    )
    messages, changes = fit_history(request.messages, plan.history_rules(state.mode))
    return replace(request, messages=messages) if changes else request


def read_answer(
    plan: Plan, state: RunState, reply: Reply, names: ToolNames, transforms: frozenset[str]
) -> Reading:
    """Read a reply in the way its request asked for it, with the named transforms of replies."""
    disabled = frozenset(plan.options.disabled_rules)
    if state.output is not None:
        # The text is a value, and nothing in it is a call.
        limits = plan.reading_limits
        return read_reply(
            reply, used_ids=state.used_ids, tools=names, text_formats=False, limits=limits
        )
    way = taught_way(state.mode)
    pattern = plan.history_rules(state.mode).id_pattern
    reply = reply if pattern is None else _with_own_ids(reply, state.history, pattern)
    may_call = state.tools_enabled and plan.tool_choice != "none"
    reads_text = way is not None or (
        plan.reads_text(tools_offered=may_call)
        and (says_malformed(reply.finish_reason) or _MARKED.search(reply.content or "") is not None)
    )
    given, receipts = reply, ()
    if way == "object":
        given, receipts = parse_object_reply(reply, is_grammar=plan.capabilities.grammar)

    def read(given: Reply, accept: Accept) -> Reading:
        return read_reply(
            given,
            used_ids=state.used_ids,
            tools=names,
            accept=accept,
            text_formats=reads_text,
            limits=plan.reading_limits,
            taught=way is not None,
            transforms=transforms - disabled,
        )

    takes_likely = plan.options.likely_calls != "never" and JUDGE_IN_TEXT not in disabled
    if takes_likely and reads_text and may_call and way != "object":
        reading = _read_likely(plan, state, given, read)
    else:
        reading = read(given, "certain")
    if receipts:
        reading = with_receipts(reading, receipts)
    if any(defect.code == Code.SECRET_REDACTED for defect in reply.defects):
        reading = replace(reading, calls=tuple(map(_refuse_masked, reading.calls)))
    if disabled:
        reading = without_rules(reading, reply, disabled, names)
    if reading.content and names:
        reading = _note_unread_calls(reading, names, reads_text=reads_text)
        if not reads_text and plan.options.text_formats == "auto":
            reading = _read_thoughts(reading)
    if may_call and not reading.calls:
        broken = _find_broken(reading, names, is_taught=way is not None, reads_text=reads_text)
        if broken is not None:
            reading = replace(reading, defects=(*reading.defects, broken))
    return reading


_Read = Callable[[Reply, Accept], Reading]


def _read_likely(plan: Plan, state: RunState, given: Reply, read: _Read) -> Reading:
    """Read a reply with the calls that its text probably makes."""
    reading = read(given, "likely")
    if state.compensations and reading.calls and all(map(plan.holds_back, reading.calls)):
        return read(given, "certain")  # the model was told that this is not how to call a tool
    return reading


def _note_unread_calls(reading: Reading, names: ToolNames, *, reads_text: bool) -> Reading:
    """List the calls that the text seems to make where it was not read for calls."""
    if reads_text or reading.seen:
        return reading  # it was read, and what is left in it is noted
    if not any(name in reading.content for name in names.names):
        return reading
    known = [(call.name, call.arguments) for call in reading.calls]
    found = read_reply(reading.content, tools=names, accept="likely").calls
    seen = tuple(call for call in found if (call.name, call.arguments) not in known)
    if not seen or (known and all(call.arguments is None for call in seen)):
        return reading
    return replace(reading, seen=seen, defects=(*reading.defects, *map(note_unread, seen)))


def _read_thoughts(reading: Reading) -> Reading:
    """Move thoughts in tags to where reasoning belongs, in a turn without tools."""
    if "<" not in reading.content and "[" not in reading.content:
        return reading
    read = ReplyReader([]).read_whole(reading.content)
    parts = [part for part in (reading.reasoning, read.reasoning) if part]
    return replace(reading, content=read.content, reasoning="\n".join(parts) or None)


def _find_broken(
    reading: Reading, names: ToolNames, *, is_taught: bool, reads_text: bool
) -> Defect | None:
    """Return why what looks like an attempt at a call could not be read."""
    broken = None
    if is_taught:
        broken = find_broken_attempt(reading.content, names)
    elif reads_text:
        broken = find_broken_call(reading.content, names)
    if broken is None and says_malformed(reading.finish_reason):
        snippet = clip(reading.content, _MAX_SNIPPET_CHARS)
        broken = Defect(Code.TOOL_NOT_EXECUTED, MALFORMED, snippet)
    return broken


def _with_own_ids(reply: Reply, history: tuple[Message, ...], pattern: str) -> Reply:
    """Give calls that came with an id we made for an earlier one the id which that one has."""
    if not reply.calls:
        return reply
    own_ids = find_own_ids(history, pattern)
    calls = tuple(
        replace(call, id=own_ids[call.id])
        if isinstance(call.id, str) and call.id in own_ids
        else call
        for call in reply.calls
    )
    return reply if calls == reply.calls else replace(reply, calls=calls)


def _refuse_masked(call: ToolCall) -> ToolCall:
    """Refuse a call that a secret was taken out of: it must not run with the mask as its value."""
    if not (_holds_mask(call.raw) or _holds_mask(call.arguments)):
        return call
    return replace(call, arguments=None, state="unreadable", errors=(HELD_SECRET,))


def _holds_mask(value: Any) -> bool:
    return MASK in (value if isinstance(value, str) else encode_text(value))
