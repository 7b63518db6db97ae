"""From a reply to calls that can be checked and run, with a receipt for every change."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from msgspec.structs import replace

from surecall.errors import Code
from surecall.formats import ToolNames
from surecall.protocols import ChatCompletions, RawReply
from surecall.records import ErrorDetail, Reading, Reply, ToolCall

from .calls import CallReader, ReadingLimits, read_clean_calls
from .stream import ReplyReader
from .tools import ToolsLike, parse_tools
from .truncation import came_to_its_end, cut_cause, doubt_finish, truncated

__all__ = ["read_reply"]

_protocol: Final = ChatCompletions()
_NO_TOOLS: Final = ToolNames()
_CLEAN_ENDS: Final = frozenset({"stop", "tool_calls", None})


def read_reply(
    message: Reply | Mapping[str, Any] | str,
    *,
    tools: ToolsLike | ToolNames = None,
    finish_reason: str | None = None,
    generation_prompt: str | None = None,
    text_formats: bool = True,
    used_ids: Collection[str] = (),
    limits: ReadingLimits = ReadingLimits(),  # noqa: B008 - frozen
    taught: bool = False,
) -> Reading:
    """Read what a model answered.

    Args:
        message: A parsed reply, an assistant message as an object, or its plain text.
        tools: The tools that were offered: OpenAI tool objects, specs, or a registry. With tools,
            arguments are fitted to their schemas, and calls written as text are found.
        finish_reason: Why the model stopped, when the message does not say.
        generation_prompt: What the template had already opened, such as `<think>`.
        text_formats: Whether to look for calls written as text when there are no others.
        used_ids: Ids of earlier calls in the conversation, which are not given again.
        limits: How large arguments may be.
        taught: Whether the model was told to write its calls in fenced blocks.
    """
    names = _tool_names(tools)
    reply = _as_reply(message, finish_reason)
    if text_formats and names and reply.content and not reply.calls:
        reader = ReplyReader(
            names, generation_prompt, used_ids=used_ids, limits=limits, taught=taught
        )
        return _read_text(reply, reader)
    if reply.finish_reason in _CLEAN_ENDS and not reply.defects:
        clean = read_clean_calls(reply.calls, names, used_ids, limits)
        if clean is not None:
            return Reading(
                calls=clean,
                content=reply.content or "",
                reasoning=reply.reasoning,
                receipts=reply.receipts,
                finish_reason=reply.finish_reason,
            )
    reader = CallReader(
        names,
        used_ids=used_ids,
        limits=limits,
        ended=came_to_its_end(reply.finish_reason),
        doubt=doubt_finish(reply.finish_reason),
    )
    refusal = _refusal(reply)
    calls = tuple([reader.read(call, refusal) for call in reply.calls])
    return Reading(
        calls=calls,
        content=reply.content or "",
        reasoning=reply.reasoning,
        defects=(*reply.defects, *reader.defects),
        receipts=reply.receipts,
        finish_reason=reply.finish_reason,
    )


def _read_text(reply: Reply, reader: ReplyReader) -> Reading:
    reading = reader.read_whole(reply.content or "", reply.finish_reason)
    parts = [part for part in (reply.reasoning, reading.reasoning) if part]
    lost = cut_cause(None, reply.defects)
    return replace(
        reading,
        calls=reading.calls if lost is None else tuple(_cut(call, lost) for call in reading.calls),
        reasoning="\n".join(parts) or None,
        defects=(*reply.defects, *reading.defects),
        receipts=(*reply.receipts, *reading.receipts),
    )


def _cut(call: ToolCall, cause: str) -> ToolCall:
    return replace(
        call,
        arguments=None,
        state="cut",
        errors=(truncated(cause),),
        certainty="certain",
        doubt="",
    )


def _as_reply(message: Reply | Mapping[str, Any] | str, finish_reason: str | None) -> Reply:
    if isinstance(message, Reply):
        return message if finish_reason is None else replace(message, finish_reason=finish_reason)
    if isinstance(message, str):
        return Reply(content=message, finish_reason=finish_reason)
    return _protocol.parse_message(RawReply(message=dict(message), finish_reason=finish_reason))


def _tool_names(tools: ToolsLike | ToolNames) -> ToolNames:
    if tools is None:
        return _NO_TOOLS
    return tools if isinstance(tools, ToolNames) else ToolNames(parse_tools(tools))


def _refusal(reply: Reply) -> ErrorDetail | None:
    """Return why every call is refused for what its reply is, whatever its own arguments say.

    Arguments that are text now may have been the object with the repeated key: a transform can
    have written it out.
    """
    cause = cut_cause(reply.finish_reason, reply.defects)
    if cause is not None:
        return truncated(cause)
    if reply.defects and any(defect.code == Code.DUPLICATE_KEY for defect in reply.defects):
        return ErrorDetail(
            Code.ARGUMENTS_JSON_PARSE_ERROR,
            "A key in the arguments is given more than once, with differing values.",
            "Send each key once.",
        )
    return None
