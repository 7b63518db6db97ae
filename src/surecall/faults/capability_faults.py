"""Faults of abilities: what a provider does not do, refuses, or only pretends to do.

Each carries the truth that a probe must find out about such a provider.
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec.structs import replace

from surecall.errors import Code
from surecall.records import ModelRequest

from .answers import Answer
from .drafts import Draft, Occasion
from .edits import edit_arguments
from .errors import error_answer
from .records import CHAT_ONLY, Fault
from .shape_faults import ID_FAULTS
from .text_faults import TEXT_FORMAT_FAULTS

__all__ = ["CAPABILITY_FAULTS", "TOOL_CHOICE_FAULTS"]

_ENFORCED: Final = {"tool_use_mode": "enforced"}
_ALL_CHOICES: Final = ("auto", "none", "required", "named")
_CALL_ID: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_CALL_ID_CHARS: Final = 9
_OPENAI: Final = ("chat_completions", "responses")
_NOT_GEMINI: Final = (*_OPENAI, "messages")
_NOT_MESSAGES: Final = (*_OPENAI, "gemini")
_THOUGHT: Final = "The user wants this done."


def _choices_without(*names: str) -> dict[str, Any]:
    return {"tool_choices": tuple(name for name in _ALL_CHOICES if name not in names)}


def _without_tools(request: ModelRequest) -> ModelRequest:
    return replace(request, tools=(), tool_choice=None)


def _without_choice(kind: str) -> Callable[[ModelRequest], ModelRequest]:
    def see(request: ModelRequest) -> ModelRequest:
        choice = request.tool_choice
        is_kind = isinstance(choice, dict) if kind == "named" else choice == kind
        return replace(request, tool_choice=None) if is_kind else request

    return see


def _without_parallel(request: ModelRequest) -> ModelRequest:
    return replace(request, parallel_tool_calls=None)


def _without_format(request: ModelRequest) -> ModelRequest:
    return replace(request, response_format=None)


def _refusing(
    is_refused: Callable[[ModelRequest], bool], message: str, status: int = 400
) -> Callable[[Answer, Occasion], Answer]:
    """Answer an error to requests that ask for something."""

    def wire(answer: Answer, occasion: Occasion) -> Answer:
        if not is_refused(occasion.request):
            return answer
        return error_answer(occasion.protocol, status, message, request_id=occasion.request_id)

    return wire


def _asks_format(kind: str) -> Callable[[ModelRequest], bool]:
    return lambda request: (request.response_format or {}).get("type") == kind


def _has_midturn_system(request: ModelRequest) -> bool:
    roles = [message.role for message in request.messages]
    return any(
        role in {"system", "developer"} and roles[index - 1] not in {"system", "developer"}
        for index, role in enumerate(roles)
        if index
    )


def _lacks_echo(request: ModelRequest) -> bool:
    return any(
        message.tool_calls and "reasoning_content" not in message.extra
        for message in request.messages
    )


def _has_odd_id(request: ModelRequest) -> bool:
    ids = [call.id for message in request.messages for call in message.tool_calls]
    return any(len(found) != _CALL_ID_CHARS or not _CALL_ID.issuperset(found) for found in ids)


def _with_thought(draft: Draft, _: Occasion) -> Draft:
    return draft.with_message(reasoning_content=_THOUGHT)


def _short_ids(draft: Draft, _: Occasion) -> Draft:
    calls = [{**call, "id": call["id"][-_CALL_ID_CHARS:]} for call in draft.calls]
    return draft.with_message(tool_calls=calls) if calls else draft


def _empty_as(value: Any) -> Callable[[Draft, Occasion], Draft]:
    return edit_arguments(lambda text, _: value if text == "{}" else text)


def _missing_when_empty(draft: Draft, _: Occasion) -> Draft:
    calls = [
        {**call, "function": {"name": call["function"]["name"]}}
        if call["function"]["arguments"] == "{}"
        else call
        for call in draft.calls
    ]
    return draft.with_message(tool_calls=calls) if calls else draft


def _promise_when_streamed(draft: Draft, occasion: Occasion) -> Draft:
    if not (occasion.stream and draft.calls):
        return draft
    message = {"role": "assistant", "content": "One moment, please."}
    return replace(draft, message=message, finish_reason="stop")


def _two_calls(draft: Draft, _: Occasion) -> Draft:
    if len(draft.calls) != 1:
        return draft
    call = draft.calls[0]
    return draft.with_message(tool_calls=[call, {**call, "id": f"{call['id']}_2"}])


def _wrong_tool(draft: Draft, occasion: Occasion) -> Draft:
    if not isinstance(occasion.request.tool_choice, dict) or not draft.calls:
        return draft
    used = draft.calls[0]["function"]["name"]
    for tool in occasion.request.tools:
        if tool.name != used and not tool.parameters.get("required"):
            function = {"name": tool.name, "arguments": "{}"}
            return draft.with_message(tool_calls=[{**draft.calls[0], "function": function}])
    return draft


TOOL_CHOICE_FAULTS: Final = (
    Fault(
        name="tools_refused",
        group="tool_choice",
        does="Answers 404 to every request with tools.",
        seen="OpenRouter, for models without an endpoint that takes tools",
        repairable=False,
        code=Code.NO_TOOL_USE_ENDPOINT,
        wire=_refusing(
            lambda request: bool(request.tools),
            "No endpoints found that support tool use.",
            404,
        ),
    ),
    Fault(
        name="choice_refused",
        group="tool_choice",
        does="Answers 400 to a tool choice other than `auto`.",
        seen="vLLM without the flags for it",
        repairable=False,
        code=Code.BAD_REQUEST,
        needs="tool_choice = required",
        options={"tool_choice": "required"},
        wire=_refusing(
            lambda request: request.tool_choice not in (None, "auto"),
            "tool_choice is not supported with this model.",
        ),
    ),
    Fault(
        name="choice_of_another_tool",
        group="tool_choice",
        does="Calls another tool than the one that was demanded.",
        seen="servers that pass the choice on as a wish",
        needs="tool_choice names a tool",
        options={"tool_choice": "save"},
        draft=_wrong_tool,
    ),
    Fault(
        name="parallel_refused",
        group="tool_choice",
        does="Answers 400 when `parallel_tool_calls` is sent.",
        seen="vibe_tavern study: not all providers take the field",
        repairable=False,
        code=Code.BAD_REQUEST,
        needs="parallel_tool_calls = false",
        options={"request_overrides": {"parallel_tool_calls": False}},
        truth={"supports_parallel_tools": False},
        protocols=_OPENAI,
        wire=_refusing(
            lambda request: request.parallel_tool_calls is not None,
            "Unknown field: parallel_tool_calls.",
        ),
    ),
)


def _capability(name: str, does: str, seen: str, truth: dict[str, Any], **fields: Any) -> Fault:
    return Fault(name=name, group="capability", does=does, seen=seen, truth=truth, **fields)


CAPABILITY_FAULTS: Final = (
    _capability(
        "tools_dropped",
        "Takes the tools and never shows them to the model.",
        "servers whose template has no place for tools",
        {"supports_tool_use": False},
        repairable=False,
        code=Code.NO_TOOL_CALLS,
        needs="tool_use_mode = enforced",
        options=_ENFORCED,
        see=_without_tools,
    ),
    _capability(
        "text_calls_only",
        "Shows tools to the model and never parses its calls.",
        "servers started without a parser for the model",
        {"text_formats": True},
        needs="text_formats = true",
        options={"text_formats": True},
        draft=next(fault.draft for fault in TEXT_FORMAT_FAULTS if fault.name == "text_hermes"),
    ),
    _capability(
        "required_ignored",
        "Takes `tool_choice: required` for `auto`.",
        "servers that accept the field only",
        _choices_without("required"),
        see=_without_choice("required"),
    ),
    _capability(
        "named_ignored",
        "Takes a demanded tool for `auto`.",
        "servers that accept the field only",
        _choices_without("named"),
        see=_without_choice("named"),
    ),
    _capability(
        "none_ignored",
        "Takes `tool_choice: none` for `auto`.",
        "servers that accept the field only",
        _choices_without("none"),
        see=_without_choice("none"),
    ),
    _capability(
        "parallel_false_ignored",
        "Makes two calls though `parallel_tool_calls` is false.",
        "vibe_tavern study: several calls in one reply even when told not to",
        {"honours_parallel_false": False},
        needs="parallel_tool_calls = false",
        options={"request_overrides": {"parallel_tool_calls": False}},
        protocols=_NOT_GEMINI,
        see=_without_parallel,
        draft=_two_calls,
    ),
    _capability(
        "ids_not_unique",
        "Counts calls anew in every reply, so that ids come again.",
        "servers that number the calls of one reply",
        {"unique_call_ids": False},
        draft=next(fault.draft for fault in ID_FAULTS if fault.name == "id_reused"),
    ),
    _capability(
        "ids_of_nine",
        "Answers 400 to call ids that are not nine letters or digits.",
        "Mistral",
        {"tool_id_pattern": f"^[a-zA-Z0-9]{{{_CALL_ID_CHARS}}}$"},
        draft=_short_ids,
        wire=_refusing(_has_odd_id, "Tool call id must be a-z, A-Z, 0-9, with a length of 9."),
    ),
    _capability(
        "stream_differs",
        "Calls tools in whole replies only; when streamed, it talks.",
        "servers that parse calls only when the reply is whole",
        {"stream_equals_whole": False},
        repairable=False,
        code=Code.NO_TOOL_CALLS,
        reach="stream",
        needs="tool_use_mode = enforced",
        options=_ENFORCED,
        draft=_promise_when_streamed,
    ),
    _capability(
        "no_streaming",
        "Answers 400 when a stream is asked for.",
        "small servers",
        {"streaming": False},
        repairable=False,
        code=Code.BAD_REQUEST,
        reach="stream",
        wire=_refusing(lambda request: request.stream, "Streaming is not supported."),
    ),
    _capability(
        "empty_arguments_blank",
        "Writes no arguments as blank text.",
        "vibe_tavern study, failure modes: blank arguments",
        {"empty_arguments": "blank"},
        draft=_empty_as(""),
    ),
    _capability(
        "empty_arguments_null",
        "Writes no arguments as null.",
        "OpenAI-compatible servers",
        {"empty_arguments": "null"},
        protocols=CHAT_ONLY,
        draft=_empty_as(None),
    ),
    _capability(
        "empty_arguments_missing",
        "Leaves the arguments out when there are none.",
        "OpenAI-compatible servers",
        {"empty_arguments": "missing"},
        protocols=_NOT_GEMINI,
        draft=_missing_when_empty,
    ),
    _capability(
        "json_object_refused",
        "Answers 400 when a JSON object is asked for.",
        "vibe_tavern study: HTTP errors of structured modes",
        {"json_object": False},
        protocols=_NOT_MESSAGES,
        wire=_refusing(_asks_format("json_object"), "response_format json_object is unsupported."),
    ),
    _capability(
        "json_schema_refused",
        "Answers 400 when a JSON schema is given.",
        "vibe_tavern study: HTTP errors of structured modes",
        {"json_schema": False},
        wire=_refusing(_asks_format("json_schema"), "response_format json_schema is unsupported."),
    ),
    _capability(
        "json_schema_ignored",
        "Takes a JSON schema and does not hold the reply to it.",
        "servers that accept the field only",
        {"json_schema": False, "json_object": False},
        see=_without_format,
    ),
    _capability(
        "strict_refused",
        "Answers 400 to tools with `strict`.",
        "OpenAI-compatible servers",
        {"strict_tools": False},
        protocols=_NOT_GEMINI,
        wire=_refusing(
            lambda request: any(tool.extra.get("strict") for tool in request.tools),
            "strict is not supported.",
        ),
    ),
    _capability(
        "grammar_refused",
        "Answers 400 to a grammar.",
        "everything but llama.cpp",
        {"grammar": False},
        protocols=CHAT_ONLY,
        wire=_refusing(lambda request: "grammar" in request.params, "Unknown field: grammar."),
    ),
    _capability(
        "midturn_system_refused",
        "Answers 400 to a system message after the first turn.",
        "servers with templates that allow one at the beginning only",
        {"allows_midturn_system": False},
        protocols=_OPENAI,
        wire=_refusing(_has_midturn_system, "System message must be at the beginning."),
    ),
    _capability(
        "reasoning_echo_needed",
        "Answers 400 when the reasoning of a turn with calls is not sent back.",
        "DeepSeek; vibe_tavern study: preset deepseek_openrouter_compat",
        {"needs_reasoning_echo": True},
        protocols=CHAT_ONLY,
        draft=_with_thought,
        wire=_refusing(_lacks_echo, "Missing `reasoning_content` field in the assistant message."),
    ),
)
