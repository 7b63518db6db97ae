"""From a reply to calls that can be checked and run, with a receipt for every change."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from msgspec.structs import replace

from surecall.errors import Code
from surecall.protocols import ChatCompletions, RawReply
from surecall.records import Defect, ErrorDetail, RawCall, Reading, Receipt, Reply, ToolCall

from .arguments import MAX_ARGUMENTS_BYTES, ArgumentsReading, read_arguments
from .ids import CallIds, read_name
from .truncation import cut_cause, truncated

__all__ = ["MAX_TOTAL_ARGUMENTS_BYTES", "read_reply"]

MAX_TOTAL_ARGUMENTS_BYTES: Final = 1024 * 1024

_protocol: Final = ChatCompletions()


def read_reply(
    message: Reply | Mapping[str, Any] | str,
    *,
    finish_reason: str | None = None,
    used_ids: Collection[str] = (),
    max_arguments_bytes: int = MAX_ARGUMENTS_BYTES,
    max_total_arguments_bytes: int = MAX_TOTAL_ARGUMENTS_BYTES,
) -> Reading:
    """Read what a model answered.

    Args:
        message: A parsed reply, an assistant message as an object, or its plain text.
        finish_reason: Why the model stopped, when the message does not say.
        used_ids: Ids of earlier calls in the conversation, which are not given again.
        max_arguments_bytes: How large the arguments of one call may be.
        max_total_arguments_bytes: How large all arguments of the reply may be together.
    """
    reply = _as_reply(message, finish_reason)
    defects = list(reply.defects)
    reader = _CallReader(reply, used_ids, max_arguments_bytes, max_total_arguments_bytes)
    calls = tuple(reader.read(call, at, defects) for at, call in enumerate(reply.calls))
    return Reading(
        calls=calls,
        content=reply.content or "",
        reasoning=reply.reasoning,
        defects=tuple(defects),
        finish_reason=reply.finish_reason,
    )


def _as_reply(message: Reply | Mapping[str, Any] | str, finish_reason: str | None) -> Reply:
    if isinstance(message, Reply):
        return message if finish_reason is None else replace(message, finish_reason=finish_reason)
    if isinstance(message, str):
        return Reply(content=message, finish_reason=finish_reason)
    return _protocol.parse_message(RawReply(message=dict(message), finish_reason=finish_reason))


class _CallReader:
    """Reads the calls of one reply in order."""

    def __init__(
        self, reply: Reply, used_ids: Collection[str], max_bytes: int, max_total_bytes: int
    ) -> None:
        self._ids = CallIds(used_ids)
        self._cause = cut_cause(reply.finish_reason, reply.defects)
        codes = [defect.code for defect in reply.defects]
        self._has_repeated_key = Code.DUPLICATE_KEY in codes
        self._max_bytes = max_bytes
        self._max_total_bytes = max_total_bytes
        self._total_bytes = 0

    def read(self, call: RawCall, position: int, defects: list[Defect]) -> ToolCall:
        """Read one call; what is odd about it is added to the defects."""
        receipts: list[Receipt] = []
        call_id = self._ids.read(call, position, receipts, defects)
        name = read_name(call, position, receipts, defects)
        reading = read_arguments(call.arguments, max_bytes=self._max_bytes)
        self._total_bytes += reading.bytes
        error = self._refusal()
        if error is not None:
            state = "cut" if self._cause else "unreadable"
            reading = ArgumentsReading(state=state, errors=(error,), bytes=reading.bytes)
        return ToolCall(
            id=call_id,
            name=name,
            arguments=reading.value,
            raw=call.arguments,
            state=reading.state,
            receipts=(*receipts, *reading.receipts),
            errors=reading.errors,
            format=call.format,
            extra=call.extra,
            arguments_bytes=reading.bytes,
        )

    def _refusal(self) -> ErrorDetail | None:
        """Return why a call is refused for what its reply is, whatever its own arguments say."""
        if self._cause is not None:
            return truncated(self._cause)
        if self._total_bytes > self._max_total_bytes:
            message = (
                f"The calls up to this one have {self._total_bytes:,} bytes of arguments; "
                f"the limit for one reply is {self._max_total_bytes:,} bytes."
            )
            hint = "Make this call again, in a reply with fewer or smaller calls."
            return ErrorDetail(Code.ARGUMENTS_TOO_LARGE, message, hint)
        # A transform may have made text of an object, so no call of the reply is above suspicion.
        if self._has_repeated_key:
            message = "A key in the arguments is given more than once, with differing values."
            return ErrorDetail(Code.ARGUMENTS_JSON_PARSE_ERROR, message, "Send each key once.")
        return None
