"""Faults in what a model says: calls written as text, reasoning out of place, empty answers."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from msgspec.structs import replace

from surecall.base.errors import Code
from surecall.faults.answers import Answer, json_answer
from surecall.faults.replies import Occasion, PlannedReply
from surecall.text import decode, encode_text
from surecall.wire import PROTOCOLS

from .fault import CHAT_ONLY, ENFORCED, READS_TEXT, FaultTable, ReplyEdit, edit_calls

WrittenCalls = Sequence[tuple[str, dict[str, Any]]]
Writer = Callable[[WrittenCalls], str]

_THOUGHT: Final = "The user wants this done. I will use a tool."
_ENFORCED_TEXT: Final = {
    **ENFORCED,
    "options": {"tool_use_mode": "enforced", "text_formats": "all"},
}
_UNSPLIT: Final = "reasoning models behind servers that do not split it off"

TEXT_FORMAT: Final = FaultTable("text_format", **READS_TEXT)
REASONING: Final = FaultTable("reasoning")
EMPTY_FINAL: Final = FaultTable(
    "empty_final", seen="vibe_tavern study, failure modes: empty final messages"
)


def _dialect(seen: str) -> Callable[[Writer], Writer]:
    """Declare the fault of a model that writes its calls as text, as the function does."""

    def declare(write: Writer) -> Writer:
        name = write.__name__.strip("_")
        TEXT_FORMAT.add(
            f"text_{name}",
            f"Writes calls as text in the {name} dialect.",
            seen=seen,
            reply=edit_calls(lambda reply, _: reply.with_text(_write_calls(reply, write))),
        )
        return write

    return declare


def _write_calls(reply: PlannedReply, write: Writer) -> str:
    functions = [call["function"] for call in reply.calls]
    return write([(function["name"], decode(function["arguments"])) for function in functions])


def _write_json(calls: WrittenCalls, template: str) -> str:
    return "\n".join(
        template.replace("NAME", name, 1).replace("JSON", encode_text(arguments), 1)
        for name, arguments in calls
    )


def _write_parameters(calls: WrittenCalls, begin: str, parameter: str, end: str) -> str:
    return "\n".join(
        begin.format(name=name)
        + "".join(
            parameter.format(key=key, value=item if isinstance(item, str) else encode_text(item))
            for key, item in values.items()
        )
        + end
        for name, values in calls
    )


def _write_invokes(calls: WrittenCalls) -> str:
    parameter = '<parameter name="{key}">{value}</parameter>\n'
    return _write_parameters(calls, '<invoke name="{name}">\n', parameter, "</invoke>") + "\n"


def _list_objects(calls: WrittenCalls, key: str) -> list[dict[str, Any]]:
    return [{"name": name, key: values} for name, values in calls]


@_dialect("small models without a template for tools")
def _bare_json(calls: WrittenCalls) -> str:
    return _write_json(calls, '{"name": "NAME", "arguments": JSON}')


@_dialect("DeepSeek V3 and R1 behind servers that do not parse them")
def _deepseek(calls: WrittenCalls) -> str:
    body = _write_json(
        calls,
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME\n```json\nJSON\n```<｜tool▁call▁end｜>",
    )
    return f"<｜tool▁calls▁begin｜>{body}<｜tool▁calls▁end｜>"


@_dialect("models prompted in the style of Claude")
def _function_calls(calls: WrittenCalls) -> str:
    return f"<function_calls>\n{_write_invokes(calls)}</function_calls>"


@_dialect("GLM-4.5 and later; vibe_tavern study: content tags of GLM models")
def _glm(calls: WrittenCalls) -> str:
    parameter = "<arg_key>{key}</arg_key>\n<arg_value>{value}</arg_value>\n"
    return _write_parameters(calls, "<tool_call>{name}\n", parameter, "</tool_call>")


@_dialect("gpt-oss behind servers that do not parse its channels")
def _harmony(calls: WrittenCalls) -> str:
    return "<|start|>assistant".join(
        f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>"
        f"{encode_text(values)}<|call|>"
        for name, values in calls
    )


@_dialect("Qwen and Hermes models; vibe_tavern study: content tags of Qwen models")
def _hermes(calls: WrittenCalls) -> str:
    return _write_json(calls, '<tool_call>\n{"name": "NAME", "arguments": JSON}\n</tool_call>')


@_dialect("instruction models without a template for tools")
def _json_fence(calls: WrittenCalls) -> str:
    return _write_json(calls, '```json\n{"name": "NAME", "arguments": JSON}\n```')


@_dialect("Kimi K2 behind servers that do not parse it")
def _kimi(calls: WrittenCalls) -> str:
    body = "".join(
        f"<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>"
        f"{encode_text(values)}<|tool_call_end|>"
        for index, (name, values) in enumerate(calls)
    )
    return f"<|tool_calls_section_begin|>{body}<|tool_calls_section_end|>"


@_dialect("Llama 3 behind servers that do not parse it")
def _llama(calls: WrittenCalls) -> str:
    return "<|python_tag|>" + "; ".join(map(encode_text, _list_objects(calls, "parameters")))


@_dialect("MiniMax-M2; vibe_tavern study: content tags of MiniMax models")
def _minimax(calls: WrittenCalls) -> str:
    return f"<minimax:tool_call>\n{_write_invokes(calls)}</minimax:tool_call>"


@_dialect("Mistral models behind servers that do not parse them")
def _mistral(calls: WrittenCalls) -> str:
    return f"[TOOL_CALLS] {encode_text(_list_objects(calls, 'arguments'))}"


@_dialect("Llama 3.2, Llama 4 and small models trained on Python calls")
def _pythonic(calls: WrittenCalls) -> str:
    written = (
        f"{name}({', '.join(f'{key}={item!r}' for key, item in values.items())})"
        for name, values in calls
    )
    return f"[{', '.join(written)}]"


@_dialect("Qwen3-Coder behind servers that do not parse it")
def _qwen_xml(calls: WrittenCalls) -> str:
    begin, end = "<tool_call>\n<function={name}>\n", "</function>\n</tool_call>"
    return _write_parameters(calls, begin, "<parameter={key}>\n{value}\n</parameter>\n", end)


@_dialect("models prompted in the style of ReAct")
def _react(calls: WrittenCalls) -> str:
    name, values = calls[0]
    return f"Thought: I need a tool.\nAction: {name}\nAction Input: {encode_text(values)}\n"


def write_hermes(reply: PlannedReply) -> str:
    """Write the calls of a reply as most models that are tagged do."""
    return _write_calls(reply, _hermes)


@TEXT_FORMAT.on_calls(
    seen="every model that writes calls as text", refusal=Code.ARGUMENTS_TRUNCATED
)
def text_cut(reply: PlannedReply, _: Occasion) -> PlannedReply:
    """Stops at the token limit in the middle of a call written as text."""
    text = write_hermes(reply)
    return reply.with_text(text[: len(text) * 2 // 3], "length")


@TEXT_FORMAT.on_wire(seen="servers that parse calls themselves and give up", protocols=CHAT_ONLY)
def text_in_error(answer: Answer, occasion: Occasion) -> Answer:
    """Answers 400 with the call that the server could not parse in `failed_generation`."""
    if not (occasion.reply.calls and occasion.reply.is_clean):
        return answer
    error = {
        "message": "Failed to call a function. Please adjust your prompt.",
        "type": "invalid_request_error",
        "code": "tool_use_failed",
        "failed_generation": write_hermes(occasion.reply),
    }
    return json_answer({"error": error}, 400)


@TEXT_FORMAT.on_calls(
    seen="vibe_tavern study: NO_TOOL_CALLS of MiniMax models",
    code=Code.NO_TOOL_CALLS,
    **_ENFORCED_TEXT,
)
def text_promise(reply: PlannedReply, _: Occasion) -> PlannedReply:
    """Says which tool it will use, and does not call it."""
    name = reply.calls[0]["function"]["name"]
    return reply.with_text(f"I will now use {name} to do what you asked.")


@REASONING.on_reply(seen="DeepSeek and most servers of reasoning models")
def reasoning_content(reply: PlannedReply, _: Occasion) -> PlannedReply:
    """Sends its reasoning next to the content."""
    return reply.with_message(reasoning_content=_THOUGHT)


@REASONING.on_reply(seen="OpenRouter", protocols=CHAT_ONLY)
def reasoning_details(reply: PlannedReply, _: Occasion) -> PlannedReply:
    """Sends its reasoning as a list of details."""
    details = [{"type": "reasoning.text", "text": _THOUGHT, "index": 0}]
    return reply.with_message(reasoning=_THOUGHT, reasoning_details=details)


@REASONING.on_reply(seen=_UNSPLIT, **READS_TEXT)
def reasoning_in_content(reply: PlannedReply, _: Occasion) -> PlannedReply:
    """Puts its reasoning in tags before the content."""
    return reply.with_message(content=f"<think>\n{_THOUGHT}\n</think>\n\n{reply.text}")


@REASONING.on_calls(seen=_UNSPLIT, **READS_TEXT)
def reasoning_unclosed(reply: PlannedReply, _: Occasion) -> PlannedReply:
    """Begins to reason in the content next to a call and never closes the tag."""
    return reply.with_message(content=f"<think>\n{_THOUGHT}")


@REASONING.on_calls(
    seen="reasoning models that forget to leave their reasoning",
    code=Code.NO_TOOL_CALLS,
    **_ENFORCED_TEXT,
)
def reasoning_holds_call(reply: PlannedReply, _: Occasion) -> PlannedReply:
    """Writes the call into its reasoning and nowhere else."""
    return reply.with_text("", reasoning_content=write_hermes(reply))


def _empty(**fields: Any) -> ReplyEdit:
    """Give no answer right after results; asked once more, the model answers."""

    def edit(reply: PlannedReply, occasion: Occasion) -> PlannedReply:
        if reply.calls or occasion.request.messages[-1].role != "tool":
            return reply
        return replace(reply, message={"role": "assistant", **fields})

    return edit


for _name, _does, _fields, _protocols in (
    ("final_empty", "Answers with empty text", {"content": ""}, tuple(PROTOCOLS)),
    ("final_null", "Answers with a null", {"content": None}, CHAT_ONLY),
    ("final_blank", "Answers with blanks", {"content": " \n"}, tuple(PROTOCOLS)),
    ("final_missing", "Leaves the content out", {}, CHAT_ONLY),
):
    _does = f"{_does} after the tools have run."
    EMPTY_FINAL.add(_name, _does, protocols=_protocols, reply=_empty(**_fields))
EMPTY_FINAL.add(
    "final_only_reasoning",
    "Puts all it has to say into its reasoning.",
    seen="reasoning models",
    reply=_empty(content="", reasoning_content="All is done, I will tell the user so."),
)
