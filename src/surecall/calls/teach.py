"""Tools for a model that is not shown any: taught in the prompt, called in its text.

Three ways are taught. `fenced`: a call is one fenced block, anything else is the answer. `object`:
every reply is one JSON object, which a provider can be made to hold to a schema. `list`: that
object lists every call that the request needs.
"""

from collections.abc import Sequence
from typing import Any, Final, Literal

from msgspec.structs import replace

from surecall.base.records import Message, ToolCall, ToolSpec, clip
from surecall.schema import Loss, clean_parameters, rewrite_schema
from surecall.text import encode_text

TaughtWay = Literal["fenced", "list", "object"]

ANSWER_KEY: Final = "answer"
"""Holds the answer in a reply that is one object and calls nothing."""
CALLS_KEY: Final = "calls"
"""Holds the calls in a reply that lists them."""
REPLY_KEY: Final = "reply"
"""Holds the whole reply where a schema must not have a choice at its root."""

ASK_FOR_ANSWER: Final = (
    f'Use no more tools. From the results above, answer the user in "{ANSWER_KEY}".'
)
"""Asks a model that writes objects for its answer, when it may not call anything."""

TOOLS_FOLLOW: Final = "The tools, with the JSON Schema of their arguments:\n\n"
"""Stands before the tools of a lesson, each a line of JSON."""
MUST_CALL: Final = "Use a tool now."
RESULT_OF: Final = "Result of "
"""Begins what a model that was taught tools reads of a result."""

_EXAMPLE: Final = '```json\n{"name": "tool_name", "arguments": {"argument": "value"}}\n```'
_OBJECT_EXAMPLE: Final = '{"name": "tool_name", "arguments": {"argument": "value"}}'
_ONE_FOR_EACH: Final = (
    "Make one call for each thing that is asked for: several when the request names several, "
    "one when it names one."
)
MAX_GRAMMAR_CHARS: Final = 2_000
MAX_GRAMMAR_ITEMS: Final = 64
MAX_LISTED_CALLS: Final = 16
"""Bounds of texts and lists in a grammar; what reaches one was ended by it, not by the model."""
_MAX_ANSWER_CHARS: Final = 4_000
_CUT_OFF: Final = "(cut off)"
"""Shown instead of arguments that were cut: a model repeats a loop that it is shown again."""
_SPLIT_KEYWORDS: Final = frozenset(
    {"$schema", "additionalProperties", "description", "properties", "required", "title", "type"}
)
"""What a schema may say besides, and still be shown in two halves."""


def teach_tools(
    messages: Sequence[Message],
    tools: Sequence[ToolSpec],
    way: TaughtWay,
    *,
    must_call: bool = False,
) -> tuple[Message, ...]:
    """Return the conversation as plain text, with the tools explained in its system message."""
    explained = _explain_tools(tools, way, must_call=must_call)
    history = retell_history(messages, way)
    if history and history[0].role in ("system", "developer"):
        first = history[0]
        if isinstance(first.content, str):
            first = replace(first, content=f"{first.content}\n\n{explained}")
            return (first, *history[1:])
    return (Message("system", explained), *history)


def retell_history(messages: Sequence[Message], way: TaughtWay = "fenced") -> tuple[Message, ...]:
    """Tell calls and results as text, for a model that knows no other form of them.

    Results become one message with what the user says next: many templates refuse a conversation
    whose roles do not alternate.
    """
    told: list[Message] = []
    names: dict[str, str] = {}
    after_results = False
    for message in messages:
        is_result = message.role == "tool"
        if is_result:
            name = names.get(message.tool_call_id or "", "the tool")
            message = Message("user", f"{RESULT_OF}{name}:\n{message.text}")
        elif message.tool_calls:
            names.update((call.id, call.name) for call in message.tool_calls)
            message = Message("assistant", _tell_calls(message, way))
        if after_results and message.role == "user" and isinstance(message.content, str):
            told[-1] = replace(told[-1], content=f"{told[-1].content}\n\n{message.content}")
            continue
        told.append(message)
        after_results = is_result
    return tuple(told)


def tell_not_executed(reason: str, way: TaughtWay) -> str:
    """Return what a model reads when what it wrote could not be read as a call."""
    form = f"one fenced block:\n\n{_EXAMPLE}" if way == "fenced" else f"this: {_OBJECT_EXAMPLE}"
    return (
        f"[tool not executed] {reason}\n\nTo use a tool, reply with nothing but {form}\n\n"
        "If no tool is needed, answer the user now."
    )


def reply_schema(
    tools: Sequence[ToolSpec], *, may_answer: bool, is_grammar: bool, lists: bool = False
) -> tuple[dict[str, Any], tuple[Loss, ...]]:
    """Return the schema of "call one of these tools, or answer", and what was lost on the way.

    Args:
        tools: The tools that may be called.
        may_answer: Whether the reply may be an answer instead.
        is_grammar: Whether the schema becomes a llama.cpp grammar. Text is bounded then, because
            a small model may never leave a string, and an optional argument may be null; other
            providers get their strict subset.
        lists: Whether the reply lists its calls instead: at least one, and no answer.
    """
    choices: list[dict[str, Any]] = []
    losses: list[Loss] = []
    for tool in tools:
        parameters = clean_parameters(tool.parameters or {"type": "object", "properties": {}})
        if is_grammar:
            fitted = rewrite_schema(
                parameters, "llama_cpp", max_string=MAX_GRAMMAR_CHARS, max_items=MAX_GRAMMAR_ITEMS
            )
        else:
            fitted = rewrite_schema(parameters, "openai_strict")
        losses.extend(fitted.losses)
        arguments = fitted.schema
        if is_grammar and tool.coerce == "on":
            arguments = _with_null_for_absence(arguments)
        choices.append(
            _closed({"name": {"type": "string", "enum": [tool.name]}, "arguments": arguments})
        )
    if lists:
        entry = choices[0] if len(choices) == 1 else {"anyOf": choices}
        bounds = {"minItems": 1, "maxItems": MAX_LISTED_CALLS} if is_grammar else {}
        calls = {"type": "array", "items": entry, **bounds}
        return _closed({CALLS_KEY: calls}), tuple(losses)
    if may_answer:
        answer: dict[str, Any] = {"type": "string"}
        if is_grammar:
            answer["maxLength"] = _MAX_ANSWER_CHARS
        choices.append(_closed({ANSWER_KEY: answer}))
    if len(choices) == 1:
        return choices[0], tuple(losses)
    if is_grammar:
        return {"anyOf": choices}, tuple(losses)
    return _closed({REPLY_KEY: {"anyOf": choices}}), tuple(losses)


def _with_null_for_absence(arguments: dict[str, Any]) -> dict[str, Any]:
    """Let an optional argument be null, which is read as left out.

    A small model writes every argument it was shown; where it cannot say null it makes up a value.
    """
    required = arguments.get("required", ())
    properties = arguments.get("properties", {})
    loosened = {
        name: schema if name in required else {"anyOf": [schema, {"type": "null"}]}
        for name, schema in properties.items()
    }
    return {**arguments, "properties": loosened} if loosened != properties else arguments


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _explain_tools(tools: Sequence[ToolSpec], way: TaughtWay, *, must_call: bool) -> str:
    described = "\n".join(_describe(tool) for tool in tools)
    if way == "list":
        form = (
            "Reply with one JSON object that lists every call the request needs: "
            f'{{"{CALLS_KEY}": [{_OBJECT_EXAMPLE}]}}'
        )
        return f"# Tools\n\n{form}\n\n{TOOLS_FOLLOW}{described}\n\n{_ONE_FOR_EACH}"
    if way == "fenced":
        form = (
            "To use a tool, reply with one fenced block and nothing else, exactly in this form:\n\n"
            f"{_EXAMPLE}"
        )
        ending = "When no tool is needed, answer the user in plain text without such a block."
    else:
        form = f"Reply with one JSON object. To use a tool: {_OBJECT_EXAMPLE}"
        ending = f'When no tool is needed, put the answer to the user in "{ANSWER_KEY}" instead.'
    if must_call:
        ending = MUST_CALL
    return (
        f"# Tools\n\n{form}\n\n{TOOLS_FOLLOW}"
        f"{described}\n\nThe result of each call is given to you. {ending}"
    )


def _describe(tool: ToolSpec) -> str:
    described: dict[str, Any] = {"name": tool.name}
    if tool.description:
        described["description"] = tool.description
    parameters = clean_parameters(tool.parameters or {"type": "object", "properties": {}})
    return encode_text({**described, **_describe_arguments(parameters)})


def _describe_arguments(parameters: dict[str, Any]) -> dict[str, Any]:
    """Show what must be given apart from what may be.

    Shown one schema, a small model fills in everything that it names, asked for or not.
    """
    properties: dict[str, Any] = parameters.get("properties", {})
    required = parameters.get("required", ())
    optional = {name: schema for name, schema in properties.items() if name not in required}
    is_plain = parameters.keys() <= _SPLIT_KEYWORDS and isinstance(
        parameters.get("additionalProperties", False), bool
    )
    if not optional or not is_plain:
        return {"parameters": parameters}
    return {
        "required arguments": {name: properties[name] for name in required if name in properties},
        "optional arguments, only if the user asks for them": optional,
    }


def _tell_calls(message: Message, way: TaughtWay) -> str:
    parts = [message.text] if message.text.strip() else []
    for call in message.tool_calls:
        written = encode_text({"name": call.name, "arguments": _arguments(call)})
        parts.append(f"```json\n{written}\n```" if way == "fenced" else written)
    return "\n\n".join(parts)


def _arguments(call: ToolCall) -> Any:
    if call.state == "cut":
        return _CUT_OFF
    return clip(str(call.raw)) if call.arguments is None else call.arguments
