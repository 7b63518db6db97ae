"""A reply before it goes onto the wire: the clean one, made from what would be right to do."""

from collections.abc import Iterable, Mapping
from random import Random
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.json_values import as_fields, as_list
from surecall.base.records import ModelRequest, ToolSpec
from surecall.reading import read_value
from surecall.schema import References
from surecall.text import encode_text
from surecall.wire import ChatCompletions, WireProtocol

from .conversation import Action, CallTools, PlannedCall, Say
from .toml_files import parse_fields

_ID_CHARS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_CHARS_PER_TOKEN: Final = 4
_ROOT: Final = 'root ::= "'


class PlannedReply(Struct, frozen=True, kw_only=True):
    """A reply as chat providers write it: the message and why it ended."""

    message: dict[str, Any]
    finish_reason: str | None = "stop"
    usage: dict[str, int] | None = None

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls, when they are still in their usual place."""
        return as_list(self.message.get("tool_calls"))

    @property
    def text(self) -> str:
        """The content, when it is text."""
        content = self.message.get("content")
        return content if isinstance(content, str) else ""

    @property
    def is_clean(self) -> bool:
        """Whether every call is as a document would have it, so that it can be worked on."""
        calls: Any = self.message.get("tool_calls", [])
        if not isinstance(calls, list) or "function_call" in self.message:
            return False
        return all(_is_clean_call(as_fields(call)) for call in as_list(calls))

    def with_message(self, **fields: Any) -> "PlannedReply":
        """Return the reply with fields of its message changed; `None` stays a null."""
        return replace(self, message={**self.message, **fields})

    def with_calls(self, calls: Iterable[Any]) -> "PlannedReply":
        """Return the reply with other calls."""
        return self.with_message(tool_calls=list(calls))

    def with_text(
        self, text: str, finish_reason: str | None = "stop", **fields: Any
    ) -> "PlannedReply":
        """Return the reply with nothing but text in place of its message."""
        message = {"role": "assistant", "content": text, **fields}
        return replace(self, message=message, finish_reason=finish_reason)


class Occasion(Struct, frozen=True, kw_only=True):
    """Everything a fault may look at: the request, its number and repeatable chance."""

    request: ModelRequest
    number: int
    """Which request this is, from 1."""
    random: Random
    stream: bool = False
    protocol: WireProtocol = ChatCompletions()
    """The wire format that is spoken."""
    reply: PlannedReply = PlannedReply(message={})
    """The reply that is being sent; only known on the wire."""
    reply_id: str = ""
    """The root of its ids; only known on the wire."""
    settings: Mapping[str, Any] = MappingProxyType({})
    """The tools as the client stated them, where some are not functions."""

    @property
    def request_id(self) -> str:
        """The id under which the provider knows the request."""
        return f"req_{self.reply_id}"


def honour_request(action: Action, request: ModelRequest) -> Action:
    """Return the action that does what the request demands of any reply."""
    if not request.tools or request.tool_choice == "none":
        return _format_text(action if isinstance(action, Say) else Say("Done."), request)
    forced = _find_forced_tool(action, request)
    if forced is not None:
        named = [call for call in _calls(action) if call.name == forced.name]
        call = named[0] if named else PlannedCall(forced.name, sample_arguments(forced.parameters))
        action = CallTools((call,))
    if isinstance(action, Say):
        return _format_text(action, request)
    if request.parallel_tool_calls is False:
        return CallTools(action.calls[:1])
    return action


def plan_reply(action: Action, occasion: Occasion) -> PlannedReply:
    """Write an action as a clean reply."""
    if isinstance(action, Say):
        reply = PlannedReply(message={"role": "assistant", "content": action.text})
    else:
        calls = [_write_call(call, occasion.random) for call in action.calls]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
        reply = PlannedReply(message=message, finish_reason="tool_calls")
    return replace(reply, usage=_count_usage(reply, occasion.request))


def _is_clean_call(call: dict[str, Any]) -> bool:
    function = as_fields(call.get("function"))
    texts = (call.get("id"), function.get("name"), function.get("arguments"))
    if not all(isinstance(text, str) and text for text in texts):
        return False
    return parse_fields(function["arguments"]) is not None


def _calls(action: Action) -> tuple[PlannedCall, ...]:
    return action.calls if isinstance(action, CallTools) else ()


def _find_forced_tool(action: Action, request: ModelRequest) -> ToolSpec | None:
    """Return the tool that must be called though the action does not, or the one that is named."""
    choice = request.tool_choice
    if isinstance(choice, dict):
        function = choice.get("function")
        name = (as_fields(function) if isinstance(function, dict) else choice).get("name")
        return next((tool for tool in request.tools if tool.name == name), None)
    if choice == "required" and isinstance(action, Say):
        return request.tools[0]
    return None


def _format_text(action: Say, request: ModelRequest) -> Say:
    """Return the text in the form that the request demands."""
    grammar = request.params.get("grammar")
    if isinstance(grammar, str) and _ROOT in grammar:
        return Say(grammar.partition(_ROOT)[2].partition('"')[0])
    wanted = request.response_format or {}
    if wanted.get("type") == "json_schema":
        schema = as_fields(wanted.get("json_schema")).get("schema", {})
        held = _hold_to_schema(action.text, schema)
        if held is not None:
            return Say(held)
        return Say(encode_text(sample_value(schema)))
    if wanted.get("type") == "json_object" and not action.text.startswith("{"):
        return Say(encode_text({"answer": action.text}))
    return action


def _hold_to_schema(text: str, schema: dict[str, Any]) -> str | None:
    """Return JSON as a provider writes it that holds its model to a schema; None if it is none."""
    if not text.startswith("{"):
        return None
    found = read_value(text, schema, accept="likely")
    is_same = all(receipt.rule == "fill_null" for receipt in found.receipts)
    is_whole = found.state == "whole" and not found.errors
    return encode_text(found.value) if is_whole and is_same else None


def _write_call(call: PlannedCall, random: Random) -> dict[str, Any]:
    call_id = "call_" + "".join(random.choices(_ID_CHARS, k=24))
    function = {"name": call.name, "arguments": encode_text(call.arguments)}
    return {"id": call_id, "type": "function", "function": function}


def _count_usage(reply: PlannedReply, request: ModelRequest) -> dict[str, int]:
    """Count tokens as a provider would, so that tools that are seen can be seen in the count."""
    chars = sum(len(message.text) + 8 for message in request.messages)
    chars += sum(
        len(call.name) + len(encode_text(call.arguments))
        for message in request.messages
        for call in message.tool_calls
    )
    chars += sum(
        len(tool.name) + len(tool.description) + len(encode_text(tool.parameters))
        for tool in request.tools
    )
    prompt = 1 + chars // _CHARS_PER_TOKEN
    completion = 1 + len(encode_text(reply.message)) // _CHARS_PER_TOKEN
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


_MAX_DEPTH: Final = 8
_BY_TYPE: Final = {"boolean": True, "null": None}


def sample_arguments(schema: dict[str, Any], texts: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return arguments with the required fields, and texts where the schema takes any text."""
    return as_fields(sample_value(schema, texts=texts))


def sample_value(schema: Any, *, texts: tuple[str, ...] = ()) -> Any:
    """Return a value that fits the schema, as far as its usual keywords tell."""
    return _Sampler(schema, list(texts)).sample(schema, 0)


class _Sampler:
    def __init__(self, root: Any, texts: list[str]) -> None:
        self._references = References(root)
        self._texts = texts

    def sample(self, schema: Any, depth: int) -> Any:
        if not isinstance(schema, dict) or depth > _MAX_DEPTH:
            return "sample"
        fields = self._references.join(as_fields(schema))
        for name in ("const", "default"):
            if name in fields:
                return fields[name]
        if isinstance(fields.get("enum"), list) and fields["enum"]:
            return fields["enum"][0]
        for name in ("anyOf", "oneOf"):
            if isinstance(fields.get(name), list) and fields[name]:
                return self.sample(fields[name][0], depth + 1)
        return self._sample_type(fields, depth)

    def _sample_type(self, fields: dict[str, Any], depth: int) -> Any:
        kind: Any = fields.get("type")
        if isinstance(kind, list):
            kind = next(iter(as_list(kind)), None)
        if kind == "object" or "properties" in fields:
            return self._sample_object(fields, depth)
        if kind == "array":
            items = max(int(fields.get("minItems") or 0), 0)
            return [self.sample(fields.get("items", {}), depth + 1) for _ in range(min(items, 16))]
        if kind in {"integer", "number"}:
            return max(1, fields.get("minimum") or 1)
        if kind == "string" or kind is None:
            text = self._texts.pop(0) if self._texts else "sample"
            return text.ljust(min(int(fields.get("minLength") or 0), 1000), "x")
        return _BY_TYPE.get(str(kind), "sample")

    def _sample_object(self, fields: dict[str, Any], depth: int) -> dict[str, Any]:
        known, wanted = as_fields(fields.get("properties")), as_list(fields.get("required"))
        return {str(name): self.sample(known.get(str(name), {}), depth + 1) for name in wanted}
