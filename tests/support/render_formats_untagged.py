"""Writes calls as models do that use channels, Python syntax, fences or no marker at all."""

import json
from collections.abc import Sequence
from typing import Any

__all__ = [
    "render_bare_array",
    "render_bare_objects",
    "render_built_in",
    "render_chatglm",
    "render_code_tag",
    "render_command_r",
    "render_florette",
    "render_function_gemma",
    "render_functionary_tokens",
    "render_functionary_words",
    "render_gemma",
    "render_gorilla",
    "render_harmony",
    "render_harmony_in_channel",
    "render_json_fence",
    "render_lfm2",
    "render_llama4",
    "render_llama_json",
    "render_minicpm",
    "render_olmo",
    "render_pythonic",
    "render_raven",
    "render_react",
    "render_stripped_harmony",
    "render_tool_code",
]

Calls = Sequence[tuple[str, dict[str, Any]]]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _python(calls: Calls) -> list[str]:
    return [
        f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
        for name, arguments in calls
    ]


def _gemma(value: Any, quote: str) -> str:
    if isinstance(value, str):
        return f"{quote}{value}{quote}"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_gemma(item, quote)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_gemma(item, quote) for item in value) + "]"
    return _json(value)


def render_harmony(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write messages with the recipient in the role, as the model does after `assistant`."""
    messages = [f"<|channel|>commentary<|message|>{text_before}"] if text_before else []
    messages += [
        f" to=functions.{name}<|channel|>commentary <|constrain|>json<|message|>{_json(arguments)}"
        for name, arguments in calls
    ]
    messages += [f"<|channel|>final<|message|>{text_after}"] if text_after else []
    return "<|end|><|start|>assistant".join(messages)


def render_harmony_in_channel(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write messages with the recipient behind the channel."""
    messages = [f"<|channel|>commentary<|message|>{text_before}<|end|>"] if text_before else []
    messages += [
        f"<|channel|>commentary to=functions.{name}<|message|>{_json(arguments)}<|call|>"
        for name, arguments in calls
    ]
    messages += [f"<|channel|>final<|message|>{text_after}<|return|>"] if text_after else []
    return "<|start|>assistant".join(messages)


def render_stripped_harmony(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write what is left of messages without their tokens."""
    parts = [text_before]
    for name, arguments in calls:
        parts.append(f"assistantcommentary to=functions.{name} json{_json(arguments)}")
    return "".join(parts) + (f"assistantfinal{text_after}" if text_after else "")


def render_gemma(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write Gemma 4's notation between its tokens."""
    quote = '<|"|>'
    parts = [f"<|tool_call>call:{name}{_gemma(args, quote)}<tool_call|>" for name, args in calls]
    return text_before + "".join(parts) + text_after


def render_function_gemma(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write FunctionGemma's notation between its tokens."""
    parts = [
        f"<start_function_call>call:{name}{_gemma(args, '<escape>')}<end_function_call>"
        for name, args in calls
    ]
    return text_before + "".join(parts) + text_after


def render_pythonic(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write a list of calls that is the last thing of the message."""
    lead = f"{text_before}\n" if text_before else ""
    return f"{lead}[{', '.join(_python(calls))}]{text_after}"


def render_llama4(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write a list of calls between Llama 4's tokens."""
    return f"{text_before}<|python_start|>[{', '.join(_python(calls))}]<|python_end|>{text_after}"


def render_lfm2(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write a list of calls between LFM2's tokens."""
    body = ", ".join(_python(calls))
    return f"{text_before}<|tool_call_start|>[{body}]<|tool_call_end|>{text_after}"


def render_minicpm(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write calls in a fence between MiniCPM's tokens."""
    body = "\n".join(_python(calls))
    fenced = f"\n```python\n{body}\n```\n"
    return f"{text_before}<|tool_call_start|>{fenced}<|tool_call_end|>{text_after}"


def render_olmo(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write one call a line between Olmo's tags."""
    body = "\n".join(_python(calls))
    return f"{text_before}<function_calls>\n{body}\n</function_calls>{text_after}"


def render_tool_code(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write printed calls in a fence of code for tools."""
    body = "\n".join(f"print(default_api.{call})" for call in _python(calls))
    lead = f"{text_before}\n" if text_before else ""
    return f"{lead}```tool_code\n{body}\n```{text_after}"


def render_code_tag(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write code of an agent between its tags."""
    lead = f"{text_before}\n" if text_before else ""
    tail = f"\n{text_after}" if text_after else ""
    return f"{lead}<code>\n" + "\n".join(_python(calls)) + f"\n</code>{tail}"


def render_gorilla(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write calls behind OpenFunctions' marker."""
    return f"{text_before}<<function>>{', '.join(_python(calls))}{text_after}"


def render_raven(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write calls behind NexusRaven's label."""
    lead = f"{text_before}\n" if text_before else ""
    return f"{lead}Call: {'; '.join(_python(calls))}<bot_end>{text_after}"


def render_llama_json(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write objects behind Llama's tag."""
    objects = [_json({"name": name, "parameters": arguments}) for name, arguments in calls]
    return f"{text_before}<|python_tag|>{'; '.join(objects)}<|eom_id|>{text_after}"


def render_built_in(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write the call of one built-in tool of Llama."""
    (call,) = _python([(f"{name}.call", arguments) for name, arguments in calls[:1]])
    return f"{text_before}<|python_tag|>{call}{text_after}"


def render_bare_objects(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write one object a line at the end of the message."""
    lead = f"{text_before}\n" if text_before else ""
    lines = [_json({"name": name, "arguments": arguments}) for name, arguments in calls]
    return lead + "\n".join(lines) + text_after


def render_bare_array(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write an array of objects at the end of the message."""
    lead = f"{text_before}\n" if text_before else ""
    items = [{"name": name, "parameters": arguments} for name, arguments in calls]
    return lead + json.dumps(items, ensure_ascii=False, indent=2) + text_after


def render_json_fence(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write one fence a call."""
    lead = f"{text_before}\n" if text_before else ""
    fences = [
        f"```json\n{json.dumps({'name': name, 'arguments': arguments}, ensure_ascii=False)}\n```"
        for name, arguments in calls
    ]
    return lead + "\n".join(fences) + text_after


def render_react(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write one action and its input."""
    lead = f"{text_before}\n" if text_before else ""
    name, arguments = calls[0]
    tail = f"\nObservation: {text_after}" if text_after else "\n"
    return f"{lead}Action: {name}\nAction Input: {_json(arguments)}{tail}"


def render_command_r(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write an array in the fence after `Action:`."""
    lead = f"{text_before}\n" if text_before else ""
    items = [{"tool_name": name, "parameters": arguments} for name, arguments in calls]
    return f"{lead}Action:\n```json\n{_json(items)}\n```{text_after}"


def render_florette(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write pairs of a name and its arguments."""
    pairs = [f"✿FUNCTION✿: {name}\n✿ARGS✿: {_json(arguments)}\n" for name, arguments in calls]
    return text_before + "".join(pairs) + (f"✿RESULT✿: {text_after}" if text_after else "")


def render_functionary_tokens(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write messages to recipients behind version 2's tokens."""
    parts = (
        [f"<|from|>assistant\n<|recipient|>all\n<|content|>{text_before}"] if text_before else []
    )
    parts += [
        f"<|from|>assistant\n<|recipient|>{name}\n<|content|>{_json(arguments)}"
        for name, arguments in calls
    ]
    return "".join(parts) + f"<|stop|>{text_after}"


def render_functionary_words(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write messages to recipients behind version 3.2's mark; the first mark was in the prompt."""
    parts = [f"all\n{text_before}"] if text_before else [""]
    parts += [f"{name}\n{_json(arguments)}" for name, arguments in calls]
    return ">>>".join(parts) + text_after


def render_chatglm(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write a name on a line of its own and its arguments."""
    lead = f"{text_before}\n" if text_before else ""
    parts = [f"{name}\n{_json(arguments)}" for name, arguments in calls]
    return lead + "<|assistant|>".join(parts) + text_after
