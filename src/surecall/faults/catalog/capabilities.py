"""Faults of abilities: a provider lacks them, refuses them, or only pretends to have them.

Each carries the truth that a probe must find out about such a provider.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Final

from msgspec.structs import replace

from surecall.base.errors import Code
from surecall.base.records import ModelRequest
from surecall.faults.answers import Answer, error_answer
from surecall.faults.replies import Occasion, PlannedReply

from .fault import CHAT_ONLY, ENFORCED, ONE_CALL, READS_TEXT, Fault, FaultTable
from .reply_shapes import find_companion, id_reused
from .texts import write_hermes

_CALL_ID: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_CALL_ID_CHARS: Final = 9
_SYSTEM: Final = frozenset({"system", "developer"})
_OPENAI: Final = ("chat_completions", "responses")
_NOT_GEMINI: Final = (*_OPENAI, "messages")
_NOT_MESSAGES: Final = (*_OPENAI, "gemini")
_COMPATIBLE: Final = "OpenAI-compatible servers"
_ACCEPTS: Final = "servers that accept the field only"
_STRUCTURED: Final = "vibe_tavern study: HTTP errors of structured modes"

TOOL_CHOICE: Final = FaultTable("tool_choice")
CAPABILITY: Final = FaultTable("capability")


def _refuses(
    table: FaultTable, message: str, *, status: int = 400, **fields: Any
) -> Callable[[Callable[[ModelRequest], bool]], Fault]:
    """Declare a fault that answers an error to the requests of which the function is true."""

    def declare(is_refused: Callable[[ModelRequest], bool]) -> Fault:
        def wire(answer: Answer, occasion: Occasion) -> Answer:
            if not is_refused(occasion.request):
                return answer
            return error_answer(occasion, status, message)

        return table.add(is_refused.__name__, is_refused.__doc__ or "", wire=wire, **fields)

    return declare


@_refuses(
    TOOL_CHOICE,
    "No endpoints found that support tool use.",
    status=404,
    seen="OpenRouter, for models without an endpoint that takes tools",
    code=Code.NO_TOOL_USE_ENDPOINT,
)
def tools_refused(request: ModelRequest) -> bool:
    """Answers 404 to every request with tools."""
    return bool(request.tools)


@_refuses(
    TOOL_CHOICE,
    "tool_choice is not supported with this model.",
    seen="vLLM without the flags for it",
    code=Code.BAD_REQUEST,
    needs="tool_choice = required",
    options={"tool_choice": "required"},
)
def choice_refused(request: ModelRequest) -> bool:
    """Answers 400 to a tool choice other than `auto`."""
    return request.tool_choice not in (None, "auto")


@TOOL_CHOICE.on_calls(
    seen="servers that pass the choice on as a wish",
    needs="tool_choice names a tool",
    options={"tool_choice": "save"},
)
def choice_of_another_tool(reply: PlannedReply, occasion: Occasion) -> PlannedReply:
    """Calls another tool than the one that was demanded."""
    call = reply.calls[0]
    function = find_companion(occasion, {call["function"]["name"]})
    if function is None or not isinstance(occasion.request.tool_choice, dict):
        return reply
    return reply.with_calls([{**call, "function": function}])


@_refuses(
    TOOL_CHOICE,
    "Unknown field: parallel_tool_calls.",
    seen="vibe_tavern study: not all providers take the field",
    code=Code.BAD_REQUEST,
    truth={"supports_parallel_tools": False},
    protocols=_OPENAI,
    **ONE_CALL,
)
def parallel_refused(request: ModelRequest) -> bool:
    """Answers 400 when `parallel_tool_calls` is sent."""
    return request.parallel_tool_calls is not None


@CAPABILITY.on_request(
    seen="servers whose template has no place for tools",
    truth={"supports_tool_use": False},
    code=Code.NO_TOOL_CALLS,
    **ENFORCED,
)
def tools_dropped(request: ModelRequest) -> ModelRequest:
    """Takes the tools and never shows them to the model."""
    return replace(request, tools=(), tool_choice=None)


@CAPABILITY.on_calls(
    seen="servers started without a parser for the model",
    truth={"text_formats": True},
    **READS_TEXT,
)
def text_calls_only(reply: PlannedReply, _: Occasion) -> PlannedReply:
    """Shows tools to the model and never parses its calls."""
    return reply.with_text(write_hermes(reply))


@CAPABILITY.on_request(seen=_ACCEPTS, truth={"tool_choices": ("auto", "none", "named")})
def required_ignored(request: ModelRequest) -> ModelRequest:
    """Takes `tool_choice: required` for `auto`."""
    return replace(request, tool_choice=None) if request.tool_choice == "required" else request


@CAPABILITY.on_request(seen=_ACCEPTS, truth={"tool_choices": ("auto", "none", "required")})
def named_ignored(request: ModelRequest) -> ModelRequest:
    """Takes a demanded tool for `auto`."""
    is_named = isinstance(request.tool_choice, dict)
    return replace(request, tool_choice=None) if is_named else request


@CAPABILITY.on_request(seen=_ACCEPTS, truth={"tool_choices": ("auto", "required", "named")})
def none_ignored(request: ModelRequest) -> ModelRequest:
    """Takes `tool_choice: none` for `auto`."""
    return replace(request, tool_choice=None) if request.tool_choice == "none" else request


def _drop_parallel(request: ModelRequest) -> ModelRequest:
    return replace(request, parallel_tool_calls=None)


@CAPABILITY.on_calls(
    seen="vibe_tavern study: several calls in one reply even when told not to",
    truth={"honours_parallel_false": False},
    protocols=_NOT_GEMINI,
    see=_drop_parallel,
    **ONE_CALL,
)
def parallel_false_ignored(reply: PlannedReply, _: Occasion) -> PlannedReply:
    """Makes two calls though `parallel_tool_calls` is false."""
    if len(reply.calls) != 1:
        return reply
    call = reply.calls[0]
    return reply.with_calls([call, {**call, "id": f"{call['id']}_2"}])


CAPABILITY.add(
    "ids_not_unique",
    "Starts counting calls again in every reply, so ids repeat.",
    seen="servers that number the calls of one reply",
    truth={"unique_call_ids": False},
    reply=id_reused.reply,
)


def _shorten_ids(reply: PlannedReply, _: Occasion) -> PlannedReply:
    calls = [{**call, "id": call["id"][-_CALL_ID_CHARS:]} for call in reply.calls]
    return reply.with_calls(calls) if calls else reply


@_refuses(
    CAPABILITY,
    "Tool call id must be a-z, A-Z, 0-9, with a length of 9.",
    seen="Mistral",
    truth={"tool_id_pattern": f"^[a-zA-Z0-9]{{{_CALL_ID_CHARS}}}$"},
    reply=_shorten_ids,
)
def ids_of_nine(request: ModelRequest) -> bool:
    """Answers 400 to call ids that are not nine letters or digits."""
    ids = [call.id for message in request.messages for call in message.tool_calls]
    return any(len(found) != _CALL_ID_CHARS or not _CALL_ID.issuperset(found) for found in ids)


@CAPABILITY.on_calls(
    seen="servers that parse calls only when the reply is whole",
    truth={"stream_equals_whole": False},
    code=Code.NO_TOOL_CALLS,
    reach="stream",
    **ENFORCED,
)
def stream_differs(reply: PlannedReply, occasion: Occasion) -> PlannedReply:
    """Calls tools in whole replies only; when streamed, it talks."""
    return reply.with_text("One moment, please.") if occasion.stream else reply


@_refuses(
    CAPABILITY,
    "Streaming is not supported.",
    seen="small servers",
    truth={"streaming": False},
    code=Code.BAD_REQUEST,
    reach="stream",
)
def no_streaming(request: ModelRequest) -> bool:
    """Answers 400 when a stream is asked for."""
    return request.stream


@CAPABILITY.on_arguments(
    seen="vibe_tavern study, failure modes: blank arguments", truth={"empty_arguments": "blank"}
)
def empty_arguments_blank(text: str) -> str:
    """Writes no arguments as blank text."""
    return "" if text == "{}" else text


@CAPABILITY.on_arguments(seen=_COMPATIBLE, truth={"empty_arguments": "null"}, protocols=CHAT_ONLY)
def empty_arguments_null(text: str) -> str | None:
    """Writes no arguments as null."""
    return None if text == "{}" else text


@CAPABILITY.on_calls(seen=_COMPATIBLE, truth={"empty_arguments": "missing"}, protocols=_NOT_GEMINI)
def empty_arguments_missing(reply: PlannedReply, _: Occasion) -> PlannedReply:
    """Leaves the arguments out when there are none."""
    return reply.with_calls(
        {**call, "function": {"name": call["function"]["name"]}}
        if call["function"]["arguments"] == "{}"
        else call
        for call in reply.calls
    )


@_refuses(
    CAPABILITY,
    "response_format json_object is unsupported.",
    seen=_STRUCTURED,
    truth={"json_object": False},
    protocols=_NOT_MESSAGES,
)
def json_object_refused(request: ModelRequest) -> bool:
    """Answers 400 when a JSON object is asked for."""
    return (request.response_format or {}).get("type") == "json_object"


@_refuses(
    CAPABILITY,
    "response_format json_schema is unsupported.",
    seen=_STRUCTURED,
    truth={"json_schema": False},
)
def json_schema_refused(request: ModelRequest) -> bool:
    """Answers 400 when a JSON schema is given."""
    return (request.response_format or {}).get("type") == "json_schema"


@CAPABILITY.on_request(seen=_ACCEPTS, truth={"json_schema": False, "json_object": False})
def json_schema_ignored(request: ModelRequest) -> ModelRequest:
    """Takes a JSON schema and does not hold the reply to it."""
    return replace(request, response_format=None)


@_refuses(
    CAPABILITY,
    "strict is not supported.",
    seen=_COMPATIBLE,
    truth={"strict_tools": False},
    protocols=_NOT_GEMINI,
)
def strict_refused(request: ModelRequest) -> bool:
    """Answers 400 to tools with `strict`."""
    return any(tool.extra.get("strict") for tool in request.tools)


@_refuses(
    CAPABILITY,
    "Unknown field: grammar.",
    seen="everything but llama.cpp",
    truth={"grammar": False},
    protocols=CHAT_ONLY,
)
def grammar_refused(request: ModelRequest) -> bool:
    """Answers 400 to a grammar."""
    return "grammar" in request.params


@_refuses(
    CAPABILITY,
    "System message must be at the beginning.",
    seen="servers with templates that allow one at the beginning only",
    truth={"allows_midturn_system": False},
    protocols=_OPENAI,
)
def midturn_system_refused(request: ModelRequest) -> bool:
    """Answers 400 to a system message after the first turn."""
    is_system = [message.role in _SYSTEM for message in request.messages]
    return (False, True) in pairwise(is_system)


def _add_thought(reply: PlannedReply, _: Occasion) -> PlannedReply:
    return reply.with_message(reasoning_content="The user wants this done.")


@_refuses(
    CAPABILITY,
    "Missing `reasoning_content` field in the assistant message.",
    seen="DeepSeek; vibe_tavern study: preset deepseek_openrouter_compat",
    truth={"needs_reasoning_echo": True},
    protocols=CHAT_ONLY,
    reply=_add_thought,
)
def reasoning_echo_needed(request: ModelRequest) -> bool:
    """Answers 400 when the reasoning of a turn with calls is not sent back."""
    return any(
        message.tool_calls and "reasoning_content" not in message.extra
        for message in request.messages
    )
