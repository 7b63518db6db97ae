"""A reply before it goes onto the wire: the clean one, made from what would be right to do."""

from random import Random
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from surecall.errors import JSONTextError
from surecall.jsontext import decode, encode_text
from surecall.protocols import ChatCompletions, WireProtocol
from surecall.records import ModelRequest, ToolSpec

from .actions import Action, CallTools, PlannedCall, Say
from .samples import sample_arguments, sample_value

__all__ = ["Draft", "Occasion", "draft_reply", "honour_request"]

_ID_CHARS: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_CHARS_PER_TOKEN: Final = 4
_ROOT: Final = 'root ::= "'


class Draft(Struct, frozen=True, kw_only=True):
    """A reply as chat providers write it: the message and why it ended."""

    message: dict[str, Any]
    finish_reason: str | None = "stop"
    usage: dict[str, int] | None = None

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls, when they are still in their usual place."""
        calls = self.message.get("tool_calls")
        return cast("list[dict[str, Any]]", calls) if isinstance(calls, list) else []

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
        return all(_is_clean_call(call) for call in cast("list[Any]", calls))

    def with_message(self, **fields: Any) -> "Draft":
        """Return the draft with fields of its message changed; `None` stays a null."""
        return replace(self, message={**self.message, **fields})


class Occasion(Struct, frozen=True, kw_only=True):
    """What a fault may look at: the request, its number, and chance that can be repeated."""

    request: ModelRequest
    number: int
    """Which request this is, from 1."""
    random: Random
    stream: bool = False
    protocol: WireProtocol = ChatCompletions()
    """The wire format that is spoken."""
    draft: Draft = Draft(message={})
    """The reply that is being sent; only known on the wire."""
    reply_id: str = ""
    """What its ids are made of; only known on the wire."""

    @property
    def request_id(self) -> str:
        """The id under which the provider knows the request."""
        return f"req_{self.reply_id}"


def honour_request(action: Action, request: ModelRequest) -> Action:
    """Return the action that does what the request demands of any reply."""
    if not request.tools or request.tool_choice == "none":
        return _formatted(action if isinstance(action, Say) else Say("Done."), request)
    forced = _forced_tool(action, request)
    if forced is not None:
        named = [call for call in _calls(action) if call.name == forced.name]
        call = named[0] if named else PlannedCall(forced.name, sample_arguments(forced.parameters))
        action = CallTools((call,))
    if isinstance(action, Say):
        return _formatted(action, request)
    if request.parallel_tool_calls is False:
        return CallTools(action.calls[:1])
    return action


def draft_reply(action: Action, occasion: Occasion) -> Draft:
    """Write an action as a clean reply."""
    if isinstance(action, Say):
        draft = Draft(message={"role": "assistant", "content": action.text})
    else:
        calls = [_wire_call(call, occasion.random) for call in action.calls]
        message = {"role": "assistant", "content": None, "tool_calls": calls}
        draft = Draft(message=message, finish_reason="tool_calls")
    return replace(draft, usage=_usage(draft, occasion.request))


def _is_clean_call(call: Any) -> bool:
    fields = cast("dict[str, Any]", call) if isinstance(call, dict) else {}
    function: Any = fields.get("function")
    inner = cast("dict[str, Any]", function) if isinstance(function, dict) else {}
    arguments = inner.get("arguments")
    texts = (fields.get("id"), inner.get("name"), arguments)
    if not all(isinstance(text, str) and text for text in texts):
        return False
    try:
        return isinstance(decode(str(arguments)), dict)
    except JSONTextError:
        return False


def _calls(action: Action) -> tuple[PlannedCall, ...]:
    return action.calls if isinstance(action, CallTools) else ()


def _forced_tool(action: Action, request: ModelRequest) -> ToolSpec | None:
    """Return the tool that must be called though the action does not, or the one that is named."""
    choice = request.tool_choice
    if isinstance(choice, dict):
        function = choice.get("function")
        fields = cast("dict[str, Any]", function) if isinstance(function, dict) else choice
        name = fields.get("name")
        return next((tool for tool in request.tools if tool.name == name), None)
    if choice == "required" and isinstance(action, Say):
        return request.tools[0]
    return None


def _formatted(action: Say, request: ModelRequest) -> Say:
    """Return the text in the form that the request demands."""
    grammar = request.params.get("grammar")
    if isinstance(grammar, str) and _ROOT in grammar:
        return Say(grammar.partition(_ROOT)[2].partition('"')[0])
    wanted = request.response_format or {}
    if wanted.get("type") == "json_schema":
        described: Any = wanted.get("json_schema")
        inner = cast("dict[str, Any]", described) if isinstance(described, dict) else {}
        return Say(encode_text(sample_value(inner.get("schema", {}))))
    if wanted.get("type") == "json_object" and not action.text.startswith("{"):
        return Say(encode_text({"answer": action.text}))
    return action


def _wire_call(call: PlannedCall, random: Random) -> dict[str, Any]:
    call_id = "call_" + "".join(random.choices(_ID_CHARS, k=24))
    function = {"name": call.name, "arguments": encode_text(call.arguments)}
    return {"id": call_id, "type": "function", "function": function}


def _usage(draft: Draft, request: ModelRequest) -> dict[str, int]:
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
    completion = 1 + len(encode_text(draft.message)) // _CHARS_PER_TOKEN
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }
