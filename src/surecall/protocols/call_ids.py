"""Ids of calls: each used once, and the same for the same input."""

from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec.structs import replace

from surecall.errors import Code, JSONTextError, RequestError
from surecall.jsontext import canonical_hash
from surecall.records import Message, RawCall

__all__ = ["CallIds", "pair_calls"]

_DIGEST_CHARS: Final = 24


class CallIds:
    """Gives calls ids that differ, in order: more calls change none of them.

    Args:
        fit: Turns an id into one that the format takes.
        prefix: How ids begin that are made here, for calls that came without one.
        seed: What else such ids depend on, such as the id of the reply.
        max_ids: How many different ids `fit` can make.
    """

    def __init__(
        self,
        fit: Callable[[str], str] = str,
        *,
        prefix: str = "call_",
        seed: str = "",
        max_ids: int | None = None,
    ) -> None:
        self._fit = fit
        self._max_ids = max_ids
        self._prefix = prefix
        self._seed = seed
        self._used: set[str] = set()
        self._suffixes: dict[str, int] = {}

    def assign(self, call_id: str) -> str:
        """Return an id for the next call, which may have the id of an earlier one."""
        wanted = given = self._fit(call_id)
        number = self._suffixes.get(wanted, 1)
        if given in self._used and self._max_ids is not None and len(self._used) >= self._max_ids:
            raise RequestError(
                Code.CAPABILITY_UNSUPPORTED,
                f"the history has more calls than there are ids for: {self._max_ids}.",
                hint="Declare a tool_id_pattern with room for more, or shorten the history.",
            )
        while given in self._used:
            number += 1
            given = self._fit(f"{wanted}__{number}")
        self._suffixes[wanted] = number
        self._used.add(given)
        return given

    def assign_to(self, call: RawCall) -> str:
        """Return an id for the next call of a reply, also where the model gave none."""
        return self.assign(_said(call.id) or self._made_for(call))

    def _made_for(self, call: RawCall) -> str:
        try:
            digest = canonical_hash([self._seed, call.name, call.arguments])
        except JSONTextError:
            digest = canonical_hash([self._seed, str(call.name)])
        return f"{self._prefix}{digest[:_DIGEST_CHARS]}"


def pair_calls(messages: Iterable[Message], ids: CallIds | None = None) -> tuple[Message, ...]:
    """Return a history in which no two calls share an id, and each result has that of its call."""
    ids = ids or CallIds()
    waiting: dict[str, list[str]] = {}
    paired: list[Message] = []
    for message in messages:
        if message.tool_calls:
            given = [ids.assign(call.id) for call in message.tool_calls]
            waiting = {}
            for call, call_id in zip(message.tool_calls, given, strict=True):
                waiting.setdefault(call.id, []).append(call_id)
            if given != [call.id for call in message.tool_calls]:
                calls = zip(message.tool_calls, given, strict=True)
                message = replace(
                    message, tool_calls=tuple(replace(call, id=call_id) for call, call_id in calls)
                )
        elif message.role == "tool" and waiting.get(message.tool_call_id or ""):
            call_id = waiting[message.tool_call_id or ""].pop(0)
            if call_id != message.tool_call_id:
                message = replace(message, tool_call_id=call_id)
        paired.append(message)
    return tuple(paired)


def _said(call_id: Any) -> str:
    """Return what was sent as an id, as text; empty when it is none."""
    if isinstance(call_id, str):
        return call_id if call_id.strip() else ""
    return str(call_id) if type(call_id) is int and call_id.bit_length() <= 128 else ""
