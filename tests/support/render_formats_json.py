"""Writes calls as models of the JSON families write them."""

import json
from collections.abc import Callable, Sequence
from typing import Any

__all__ = [
    "Calls",
    "Renderer",
    "render_apertus",
    "render_apriel",
    "render_cohere",
    "render_deepseek_v3",
    "render_deepseek_v31",
    "render_functools",
    "render_gigachat",
    "render_granite",
    "render_granite_function",
    "render_hermes",
    "render_inkling",
    "render_internlm",
    "render_kimi",
    "render_minimax_m1",
    "render_mistral_array",
    "render_mistral_compact",
    "render_mistral_ids",
    "render_nemotron",
    "render_phi",
    "render_solar",
]

Calls = Sequence[tuple[str, dict[str, Any]]]
Renderer = Callable[[Calls, str, str], str]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _objects(calls: Calls, name: str = "name", arguments: str = "arguments") -> list[Any]:
    return [{name: called, arguments: values} for called, values in calls]


def render_hermes(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """A tag around each object."""
    blocks = [f"<tool_call>\n{_json(item)}\n</tool_call>" for item in _objects(calls)]
    return text_before + "\n".join(blocks) + text_after


def render_granite(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """A token and an indented array, with the arguments before the name."""
    items = [{"arguments": values, "name": name} for name, values in calls]
    array = json.dumps(items, ensure_ascii=False, indent=2)
    return f"{text_before}<|tool_call|>{array}{text_after}"


def render_granite_function(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """A tag without a closer before each object."""
    blocks = [f"<function_call> {_json(item)}" for item in _objects(calls)]
    return text_before + " ".join(blocks) + text_after


def render_phi(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """An array between two tokens."""
    return f"{text_before}<|tool_call|>{_json(_objects(calls))}<|/tool_call|>{text_after}"


def render_minimax_m1(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """One object a line in one tag."""
    lines = "\n".join(map(_json, _objects(calls)))
    return f"{text_before}<tool_calls>\n{lines}\n</tool_calls>{text_after}"


def render_apriel(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """An array in one tag."""
    return f"{text_before}<tool_calls>{_json(_objects(calls))}</tool_calls>{text_after}"


def render_nemotron(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """An array in one tag of capitals."""
    return f"{text_before}<TOOLCALL>{_json(_objects(calls))}</TOOLCALL>{text_after}"


def render_lmstudio(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """An object in brackets of its own, as LM Studio teaches models without a format."""
    blocks = [f"[TOOL_REQUEST]{_json(item)}[END_TOOL_REQUEST]" for item in _objects(calls)]
    return text_before + "\n".join(blocks) + text_after


def render_gigachat(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """A token before each object."""
    blocks = [f"<|function_call|>{_json(item)}" for item in _objects(calls)]
    return text_before + "".join(blocks) + text_after


def render_internlm(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Two tokens before each object and one after."""
    items = _objects(calls, arguments="parameters")
    blocks = [f"<|action_start|><|plugin|>\n{_json(item)}<|action_end|>" for item in items]
    return text_before + "".join(blocks) + text_after


def render_functools(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """A word directly before an array."""
    return f"{text_before}functools{_json(_objects(calls))}{text_after}"


def render_cohere(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """An indented array with running ids between two tokens."""
    rows = [
        _json({"tool_call_id": str(index), "tool_name": name, "parameters": values})
        for index, (name, values) in enumerate(calls)
    ]
    body = ",\n    ".join(rows)
    return f"{text_before}<|START_ACTION|>[\n    {body}\n]<|END_ACTION|>{text_after}"


def render_apertus(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """An array of objects with the name as the only key."""
    items = _json([{name: values} for name, values in calls])
    return f"{text_before}<|tools_prefix|>{items}<|tools_suffix|>{text_after}"


def render_mistral_array(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """An array after one token."""
    return f"{text_before}[TOOL_CALLS] {_json(_objects(calls))}{text_after}"


def render_mistral_compact(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """A token, the name, a token and the arguments."""
    blocks = [f"[TOOL_CALLS]{name}[ARGS]{_json(values)}" for name, values in calls]
    return text_before + "".join(blocks) + text_after


def render_mistral_ids(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """The compact form with an id of nine characters."""
    blocks = [
        f"[TOOL_CALLS]{name}[CALL_ID]abcdefg{index:02}[ARGS]{_json(values)}"
        for index, (name, values) in enumerate(calls)
    ]
    return text_before + "".join(blocks) + text_after


def render_deepseek_v3(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """A section of calls with a type, a name and fenced arguments."""
    blocks = [
        f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{_json(values)}\n```"
        "<｜tool▁call▁end｜>"
        for name, values in calls
    ]
    body = "\n".join(blocks)
    return f"{text_before}<｜tool▁calls▁begin｜>{body}<｜tool▁calls▁end｜>{text_after}"


def render_deepseek_v31(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """A section of calls with a name and bare arguments."""
    blocks = [
        f"<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{_json(values)}<｜tool▁call▁end｜>"
        for name, values in calls
    ]
    body = "".join(blocks)
    return f"{text_before}<｜tool▁calls▁begin｜>{body}<｜tool▁calls▁end｜>{text_after}"


def render_kimi(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """A section of calls with an id that holds the name."""
    blocks = [
        f"<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>"
        f"{_json(values)}<|tool_call_end|>"
        for index, (name, values) in enumerate(calls)
    ]
    begin, end = "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"
    return text_before + begin + "".join(blocks) + end + text_after


def render_solar(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """A message of calls with id, name and arguments."""
    blocks = [
        f"<|tool_call:begin|>id{index}<|tool_call:name|>{name}<|tool_call:args|>{_json(values)}"
        "<|tool_call:end|>"
        for index, (name, values) in enumerate(calls)
    ]
    body = "".join(blocks)
    return f"{text_before}<|begin|>assistant<|tool_calls|>{body}<|calls|>{text_after}"


def render_inkling(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """A message for each call."""
    blocks = [
        f"<|message_model|>{name}<|content_invoke_tool_json|>"
        f"{_json({'name': name, 'args': values})}<|end_message|>"
        for name, values in calls
    ]
    return text_before + "".join(blocks) + text_after
