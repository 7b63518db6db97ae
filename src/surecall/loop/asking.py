"""The request of one turn, and the reading of its reply: the same when a run is replayed."""

from functools import partial
from typing import Any

from msgspec.structs import replace

from surecall.apart import is_long, read_aside
from surecall.errors import Code
from surecall.formats import ToolNames
from surecall.jsontext import encode_text
from surecall.reading import find_broken_attempt, parse_object_reply, read_reply, without_rules
from surecall.records import (
    Message,
    ModelRequest,
    Reading,
    Receipt,
    Reply,
    ToolCall,
)
from surecall.redaction import MASK

from .history import find_own_ids, fit_history
from .plan import Plan
from .prompting import present_tools, taught_way
from .steps import RunState
from .wording import HELD_SECRET


def build_request(plan: Plan, state: RunState, *, stream: bool) -> ModelRequest:
    """Build the request of a turn."""
    request = plan.request(
        state.history,
        tools_enabled=state.tools_enabled,
        stream=stream and plan.may_stream(tools_enabled=state.tools_enabled),
        calls_seen=state.calls_seen,
        after_cut=state.was_cut,
    )
    request = present_tools(
        request,
        state.mode,
        plan.capabilities,
        forced_tool=state.forced_tool,
        must_call=request.tool_choice not in (None, "auto", "none"),
    )
    messages, changes = fit_history(request.messages, plan.history_rules(state.mode))
    return replace(request, messages=messages) if changes else request


def read_answer(
    plan: Plan, state: RunState, reply: Reply, names: ToolNames, transforms: frozenset[str]
) -> Reading:
    """Read a reply in the way its request asked for it, with the named transforms of replies."""
    disabled = frozenset(plan.options.disabled_rules)
    way = taught_way(state.mode)
    pattern = plan.history_rules(state.mode).id_pattern
    reply = reply if pattern is None else _with_own_ids(reply, state.history, pattern)
    given, receipts = reply, ()
    if way == "object":
        given, receipts = parse_object_reply(reply, is_grammar=plan.capabilities.grammar)
    reading = read_reply(
        given,
        used_ids=state.used_ids,
        tools=names,
        text_formats=plan.text_formats or way is not None,
        limits=plan.reading_limits,
        taught=way is not None,
        transforms=transforms - disabled,
    )
    if receipts:
        reading = _with_receipts(reading, receipts)
    if any(defect.code == Code.SECRET_REDACTED for defect in reply.defects):
        reading = replace(reading, calls=tuple(map(_refuse_masked, reading.calls)))
    if disabled:
        reading = without_rules(reading, reply, disabled)
    if way is not None and state.tools_enabled and not reading.calls:
        broken = find_broken_attempt(reading.content, names)
        if broken is not None:
            reading = replace(reading, defects=(*reading.defects, broken))
    return reading


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


async def read_answer_aside(
    plan: Plan,
    state: RunState,
    reply: Reply,
    names: ToolNames,
    transforms: frozenset[str],
) -> Reading:
    """Do what `read_answer` does, in a thread if the reply is long, so that deadlines are kept.

    A run that ends in the meantime does not wait for the thread, which changes nothing.
    """
    said = [reply.content, *(call.arguments for call in reply.calls)]
    read = partial(read_answer, plan, state, reply, names, transforms)
    return await read_aside(read, is_long=is_long(said))


def _with_receipts(reading: Reading, receipts: tuple[Receipt, ...]) -> Reading:
    """Attach the receipts of an object to its call, or to the answer it held."""
    if not reading.calls:
        return replace(reading, receipts=receipts + reading.receipts)
    call, *rest = reading.calls
    return replace(reading, calls=(replace(call, receipts=receipts + call.receipts), *rest))


def _refuse_masked(call: ToolCall) -> ToolCall:
    """Refuse a call that a secret was taken out of: it must not run with the mask as its value."""
    if not (_holds_mask(call.raw) or _holds_mask(call.arguments)):
        return call
    return replace(call, arguments=None, state="unreadable", errors=(HELD_SECRET,))


def _holds_mask(value: Any) -> bool:
    return MASK in (value if isinstance(value, str) else encode_text(value))
