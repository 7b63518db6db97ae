"""A request that teaches tools in its prompt, as a model that was taught them understands it."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from surecall.base.json_values import as_fields
from surecall.base.records import Message, ModelRequest, ToolCall, ToolSpec
from surecall.calls.teach import ANSWER_KEY, MUST_CALL, REPLY_KEY, RESULT_OF, TOOLS_FOLLOW
from surecall.reading.truncation import cut_cause
from surecall.text import encode_text

from .inputs import parse_fields
from .replies import PlannedReply

_FENCE: Final = "```json\n"
_FENCE_END: Final = "\n```"
_REQUIRED: Final = "required arguments"
_OPTIONAL: Final = "optional arguments"


class Lesson:
    """What a request teaches: its tools and results back in their fields, and how to answer.

    A request that teaches nothing is left as it is, and so is the reply to it.
    """

    def __init__(self, request: ModelRequest) -> None:
        taught = "" if request.tools else _find_lesson(request.messages)
        schema = _find_schema(request)
        self._is_wrapped = REPLY_KEY in schema
        self.holds_reply = _is_reply_schema(schema)
        """Whether the provider holds the reply to a schema, so that no mistake gets through."""
        self._is_taught = bool(taught) or self.holds_reply
        self.request = request
        if self._is_taught or _has_results(request.messages):
            self.request = _understand(request, taught, held=self.holds_reply)

    def write(self, reply: PlannedReply) -> PlannedReply:
        """Return a reply in the form that was taught."""
        if not self._is_taught or not (reply.calls or self.holds_reply):
            return reply
        calls = reply.calls[:1] if self.holds_reply else reply.calls
        text = self._write_text(reply, calls)
        if calls and cut_cause(reply.finish_reason) is not None:
            return reply.with_text(_leave_open(text, calls[-1]), reply.finish_reason)
        return reply.with_text(text)

    def _write_text(self, reply: PlannedReply, calls: Sequence[dict[str, Any]]) -> str:
        if not self.holds_reply:
            return "\n\n".join(f"{_FENCE}{_write_call(call)}{_FENCE_END}" for call in calls)
        text = _write_call(calls[0]) if calls else encode_text({ANSWER_KEY: reply.text})
        return f'{{"{REPLY_KEY}": {text}}}' if self._is_wrapped else text


def _leave_open(text: str, last: dict[str, Any]) -> str:
    """Leave out what follows the last arguments: a model that is stopped there closes nothing."""
    arguments = _arguments(as_fields(last.get("function")))
    return text[: text.rindex(arguments) + len(arguments)]


def _write_call(call: dict[str, Any]) -> str:
    """Write a call with its arguments as they are, which may not be JSON at all."""
    function = as_fields(call.get("function"))
    return f'{{"name": {encode_text(function.get("name"))}, "arguments": {_arguments(function)}}}'


def _arguments(function: dict[str, Any]) -> str:
    written = function.get("arguments")
    return written if isinstance(written, str) and written else encode_text(written)


def _find_lesson(messages: Sequence[Message]) -> str:
    first = messages[0].text if messages else ""
    return first if TOOLS_FOLLOW in first else ""


def _find_schema(request: ModelRequest) -> dict[str, Any]:
    """Return the properties that a reply is held to."""
    wanted = as_fields(request.response_format)
    if wanted.get("type") != "json_schema":
        return {}
    schema = as_fields(as_fields(wanted.get("json_schema")).get("schema"))
    choices: Any = schema.get("anyOf") or [schema]
    return {key: part for each in choices for key, part in _properties(each).items()}


def _properties(schema: Any) -> dict[str, Any]:
    return as_fields(as_fields(schema).get("properties"))


def _is_reply_schema(properties: dict[str, Any]) -> bool:
    """Tell whether it is the schema of a call or an answer, and not one that a user gave."""
    keys = properties.keys()
    return keys in ({REPLY_KEY}, {ANSWER_KEY}, {"name", "arguments"}) or keys == {
        "name",
        "arguments",
        ANSWER_KEY,
    }


def _has_results(messages: Sequence[Message]) -> bool:
    return any(message.role == "user" and _is_result(message.text) for message in messages)


def _is_result(text: str) -> bool:
    return text.startswith(RESULT_OF) and ":\n" in text


def _understand(request: ModelRequest, taught: str, *, held: bool) -> ModelRequest:
    tools = tuple(_read_tools(taught))
    must_call = taught.rstrip().endswith(MUST_CALL)
    return replace(
        request,
        messages=tuple(_read_history(request.messages)),
        tools=tools,
        tool_choice="required" if must_call and tools else None,
        parallel_tool_calls=False if held else None,
        response_format=None if held else request.response_format,
    )


def _read_tools(taught: str) -> Iterator[ToolSpec]:
    for line in taught.partition(TOOLS_FOLLOW)[2].splitlines():
        described = parse_fields(line)
        if not described or not isinstance(described.get("name"), str):
            return
        yield ToolSpec(
            name=described["name"],
            description=str(described.get("description", "")),
            parameters=_read_parameters(described),
        )


def _read_parameters(described: dict[str, Any]) -> dict[str, Any]:
    if "parameters" in described:
        return as_fields(described["parameters"])
    required = as_fields(described.get(_REQUIRED))
    optional: dict[str, Any] = {}
    for key, value in described.items():
        if key.startswith(_OPTIONAL):
            optional = as_fields(value)
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
    }


def _read_history(messages: Sequence[Message]) -> Iterator[Message]:
    """Yield the conversation with the calls and results that were told as text."""
    waiting: list[ToolCall] = []
    for place, message in enumerate(messages):
        if message.role == "assistant" and not message.tool_calls:
            calls = tuple(_read_calls(message.text, place))
            if calls:
                waiting = list(calls)
                yield Message("assistant", "", calls)
                continue
        if message.role == "user" and waiting and _is_result(message.text):
            yield from _read_results(message.text, waiting)
            waiting = []
            continue
        yield message


def _read_calls(text: str, place: int) -> Iterator[ToolCall]:
    parts = text.split(_FENCE)
    written = [part.partition(_FENCE_END)[0] for part in parts[1:]] or text.split("\n\n")
    for number, one in enumerate(written):
        fields = parse_fields(one.strip()) or {}
        if isinstance(fields.get("name"), str) and "arguments" in fields:
            arguments: Any = fields["arguments"]
            yield ToolCall(
                id=f"taught_{place}_{number}",
                name=fields["name"],
                arguments=as_fields(arguments) if isinstance(arguments, dict) else None,
                raw=arguments,
            )


def _read_results(text: str, waiting: Sequence[ToolCall]) -> Iterator[Message]:
    """Yield the results in the order of their calls, and what the user says after them."""
    rest = text
    for place, call in enumerate(waiting):
        head = f"{RESULT_OF}{call.name}:\n"
        if not rest.startswith(head):
            break
        rest = rest.removeprefix(head)
        following = waiting[place + 1].name if place + 1 < len(waiting) else ""
        result, found, rest = rest.partition(
            f"\n\n{RESULT_OF}{following}:\n" if following else "\n\n"
        )
        if found and following:
            rest = f"{RESULT_OF}{following}:\n{rest}"
        yield Message("tool", result, tool_call_id=call.id)
    if rest.strip():
        yield Message("user", rest)
