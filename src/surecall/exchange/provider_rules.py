"""What one provider demands of a history, beyond what all of them accept.

The history of a run is never changed by what a provider demands, only what is sent of it. Each
change is the same whatever is said later, so that a longer history begins with the same bytes and
prompt caches hold.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from surecall.base.records import Message
from surecall.reading import IDENTITY_RULES
from surecall.wire.call_ids import find_id_shape, pair_calls

from .wording import FROM_SYSTEM

_SYSTEM_ROLES: Final = frozenset({"developer", "system"})
_REASONING_KEYS: Final = frozenset(
    {"reasoning", "reasoning_content", "reasoning_details", "reasoning_items", "thinking_blocks"}
)


class HistoryRules(NamedTuple):
    """What a provider is known to demand of a history."""

    one_call_each: bool = False
    """A message carries one call at most."""
    system_first: bool = False
    """System messages stand before all others."""
    echo_reasoning: bool = False
    """A message with calls has its reasoning."""
    id_pattern: str | None = None
    """Ids of calls match this."""
    ids_as_sent: bool = False
    """Calls go back with the ids that the model gave them, also where it gave one twice."""


def fit_history(
    messages: tuple[Message, ...], rules: HistoryRules
) -> tuple[tuple[Message, ...], tuple[str, ...]]:
    """Return the messages as a provider demands them, and the names of what was changed."""
    changes: list[str] = []
    if not any(rules):
        return messages, ()
    for name, is_wanted, change in (
        ("split_calls", rules.one_call_each, _split_calls),
        ("system_to_user", rules.system_first, _move_system),
        ("add_empty_reasoning", rules.echo_reasoning, _echo_reasoning),
        ("restore_call_ids", rules.ids_as_sent, _restore_ids),
    ):
        fitted = tuple(change(messages)) if is_wanted else messages
        if fitted != messages:
            changes.append(name)
            messages = fitted
    if rules.id_pattern is not None:
        fitted = pair_calls(messages, find_id_shape(rules.id_pattern).open())
        if fitted != messages:
            changes.append("rewrite_call_ids")
            messages = fitted
    return messages, tuple(changes)


def _restore_ids(messages: Sequence[Message]) -> Iterator[Message]:
    """Give calls, and their results, the ids under which they arrived."""
    sent: dict[str, str] = {}
    for message in messages:
        for call in message.tool_calls:
            for receipt in call.receipts:
                if receipt.rule in IDENTITY_RULES and receipt.after == call.id:
                    sent[call.id] = str(receipt.before or "")
        if message.role == "tool" and message.tool_call_id in sent:
            yield replace(message, tool_call_id=sent[message.tool_call_id])
        elif any(call.id in sent for call in message.tool_calls):
            calls = (replace(call, id=sent.get(call.id, call.id)) for call in message.tool_calls)
            yield replace(message, tool_calls=tuple(calls))
        else:
            yield message


def find_own_ids(messages: tuple[Message, ...], pattern: str) -> dict[str, str]:
    """Return the ids that calls of a history have, by those they are sent with."""
    sent = pair_calls(messages, find_id_shape(pattern).open())
    return {
        there.id: here.id
        for old, new in zip(messages, sent, strict=True)
        for here, there in zip(old.tool_calls, new.tool_calls, strict=True)
        if there.id != here.id
    }


def _split_calls(messages: Sequence[Message]) -> Iterator[Message]:
    """Give every call a message of its own, with its result behind it; the first has the text."""
    at = 0
    while at < len(messages):
        message = messages[at]
        at += 1
        if len(message.tool_calls) < 2:
            yield message
            continue
        end = at
        while end < len(messages) and messages[end].role == "tool":
            end += 1
        results = {result.tool_call_id: result for result in messages[at:end]}
        at = end
        head, *others = message.tool_calls
        parts = [replace(message, tool_calls=(head,))]
        parts += [Message("assistant", "", (call,)) for call in others]
        for part in parts:
            yield part
            yield results[part.tool_calls[0].id]


def _move_system(messages: Sequence[Message]) -> Iterable[Message]:
    """Make system messages behind others part of what the user says in that place."""
    fitted: list[Message] = []
    is_leading, was_moved = True, False
    for message in messages:
        is_leading = is_leading and message.role in _SYSTEM_ROLES
        is_moved = message.role in _SYSTEM_ROLES and not is_leading
        if is_moved:
            message = _from_user(message)
        joined = _join_users(fitted[-1], message) if is_moved or was_moved else None
        if joined is None:
            fitted.append(message)
        else:
            fitted[-1] = joined
        was_moved = is_moved
    return fitted


def _from_user(message: Message) -> Message:
    if isinstance(message.content, list):
        return Message("user", [{"type": "text", "text": FROM_SYSTEM}, *message.content])
    return Message("user", f"{FROM_SYSTEM}\n{message.content or ''}")


def _join_users(first: Message, second: Message) -> Message | None:
    """Return two messages of the user as one, since many who refuse the system demand turns."""
    if not (first.role == second.role == "user"):
        return None
    if isinstance(first.content, str) and isinstance(second.content, str):
        return replace(first, content=f"{first.content}\n\n{second.content}")
    return None


def _echo_reasoning(messages: Sequence[Message]) -> Iterator[Message]:
    """Give messages with calls an empty reasoning when they have none."""
    for message in messages:
        if message.tool_calls and not _REASONING_KEYS & message.extra.keys():
            message = replace(message, extra={**message.extra, "reasoning_content": ""})
        yield message
