"""Calls as models write them into their text."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from surecall.jsontext import encode_text

__all__ = ["DIALECTS", "WrittenCalls"]

WrittenCalls = Sequence[tuple[str, dict[str, Any]]]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else encode_text(value)


def _lines(calls: WrittenCalls, template: str, between: str = "\n") -> str:
    return between.join(
        template.replace("NAME", name, 1).replace("JSON", encode_text(arguments), 1)
        for name, arguments in calls
    )


def _hermes(calls: WrittenCalls) -> str:
    return _lines(calls, '<tool_call>\n{"name": "NAME", "arguments": JSON}\n</tool_call>')


def _qwen_xml(calls: WrittenCalls) -> str:
    return "\n".join(
        f"<tool_call>\n<function={name}>\n"
        + "".join(
            f"<parameter={key}>\n{_text(item)}\n</parameter>\n" for key, item in values.items()
        )
        + "</function>\n</tool_call>"
        for name, values in calls
    )


def _glm(calls: WrittenCalls) -> str:
    return "\n".join(
        f"<tool_call>{name}\n"
        + "".join(
            f"<arg_key>{key}</arg_key>\n<arg_value>{_text(item)}</arg_value>\n"
            for key, item in values.items()
        )
        + "</tool_call>"
        for name, values in calls
    )


def _invokes(calls: WrittenCalls) -> str:
    return "".join(
        f'<invoke name="{name}">\n'
        + "".join(
            f'<parameter name="{key}">{_text(item)}</parameter>\n' for key, item in values.items()
        )
        + "</invoke>\n"
        for name, values in calls
    )


def _minimax(calls: WrittenCalls) -> str:
    return f"<minimax:tool_call>\n{_invokes(calls)}</minimax:tool_call>"


def _function_calls(calls: WrittenCalls) -> str:
    return f"<function_calls>\n{_invokes(calls)}</function_calls>"


def _mistral(calls: WrittenCalls) -> str:
    return f"[TOOL_CALLS] {encode_text(_objects(calls, 'arguments'))}"


def _deepseek(calls: WrittenCalls) -> str:
    body = _lines(
        calls,
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME\n```json\nJSON\n```<｜tool▁call▁end｜>",
    )
    return f"<｜tool▁calls▁begin｜>{body}<｜tool▁calls▁end｜>"


def _kimi(calls: WrittenCalls) -> str:
    body = "".join(
        f"<|tool_call_begin|>functions.{name}:{index}<|tool_call_argument_begin|>"
        f"{encode_text(values)}<|tool_call_end|>"
        for index, (name, values) in enumerate(calls)
    )
    return f"<|tool_calls_section_begin|>{body}<|tool_calls_section_end|>"


def _harmony(calls: WrittenCalls) -> str:
    return "<|start|>assistant".join(
        f"<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>"
        f"{encode_text(values)}<|call|>"
        for name, values in calls
    )


def _llama(calls: WrittenCalls) -> str:
    return "<|python_tag|>" + "; ".join(map(encode_text, _objects(calls, "parameters")))


def _pythonic(calls: WrittenCalls) -> str:
    written = (
        f"{name}({', '.join(f'{key}={item!r}' for key, item in values.items())})"
        for name, values in calls
    )
    return f"[{', '.join(written)}]"


def _json_fence(calls: WrittenCalls) -> str:
    return _lines(calls, '```json\n{"name": "NAME", "arguments": JSON}\n```')


def _bare_json(calls: WrittenCalls) -> str:
    return _lines(calls, '{"name": "NAME", "arguments": JSON}')


def _react(calls: WrittenCalls) -> str:
    name, values = calls[0]
    return f"Thought: I need a tool.\nAction: {name}\nAction Input: {encode_text(values)}\n"


def _objects(calls: WrittenCalls, key: str) -> list[dict[str, Any]]:
    return [{"name": name, key: values} for name, values in calls]


DIALECTS: Final[dict[str, Callable[[WrittenCalls], str]]] = {
    "bare_json": _bare_json,
    "deepseek": _deepseek,
    "function_calls": _function_calls,
    "glm": _glm,
    "harmony": _harmony,
    "hermes": _hermes,
    "json_fence": _json_fence,
    "kimi": _kimi,
    "llama": _llama,
    "minimax": _minimax,
    "mistral": _mistral,
    "pythonic": _pythonic,
    "qwen_xml": _qwen_xml,
    "react": _react,
}
"""How each dialect writes calls, by its name."""
