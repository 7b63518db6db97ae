"""Writes calls as models with tagged formats write them."""

from collections.abc import Callable, Sequence
from typing import Any

from surecall.text import encode_text

__all__ = ["RENDERERS", "Calls", "Renderer"]

Calls = Sequence[tuple[str, dict[str, Any]]]
Renderer = Callable[[Calls, str, str], str]

_NAMESPACE = "antml:"
_M3 = "]<]minimax[>["
_XML_TYPES = {str: "string", bool: "boolean", int: "number", list: "array"}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else encode_text(value)


def render_qwen_xml(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write calls as Qwen3-Coder does."""
    blocks: list[str] = []
    for name, arguments in calls:
        values = "".join(
            f"<parameter={key}>\n{_text(value)}\n</parameter>\n" for key, value in arguments.items()
        )
        blocks.append(f"<tool_call>\n<function={name}>\n{values}</function>\n</tool_call>")
    return text_before + "\n".join(blocks) + text_after


def render_seed(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write calls as Seed-OSS does: values on the line of their tags."""
    blocks: list[str] = []
    for name, arguments in calls:
        values = "".join(
            f"<parameter={key}>{_text(value)}</parameter>\n" for key, value in arguments.items()
        )
        blocks.append(
            f"<seed:tool_call>\n<function={name}>\n{values}</function>\n</seed:tool_call>"
        )
    return text_before + "\n".join(blocks) + text_after


def _pairs(arguments: dict[str, Any], between: str, prefix: str = "", suffix: str = "") -> str:
    key_tag, value_tag = f"{prefix}arg_key{suffix}", f"{prefix}arg_value{suffix}"
    return "".join(
        f"<{key_tag}>{key}</{key_tag}>{between}<{value_tag}>{_text(value)}</{value_tag}>{between}"
        for key, value in arguments.items()
    )


def render_glm45(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write calls as GLM-4.5 does: a newline after each tag."""
    blocks = [
        f"<tool_call>{name}\n{_pairs(arguments, chr(10))}</tool_call>" for name, arguments in calls
    ]
    return text_before + "\n".join(blocks) + text_after


def render_glm47(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write calls as GLM-4.7 does: no newline anywhere."""
    blocks = [f"<tool_call>{name}{_pairs(arguments, '')}</tool_call>" for name, arguments in calls]
    return text_before + "".join(blocks) + text_after


def render_hunyuan_v3(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write calls as Hunyuan Hy3 does: a section, and a suffix in every tag."""
    s = ":opensource"
    blocks = [
        f"<tool_call{s}>{name}<tool_sep{s}>\n"
        f"{_pairs(arguments, chr(10), suffix=s)}</tool_call{s}>\n"
        for name, arguments in calls
    ]
    return f"{text_before}<tool_calls{s}>\n{''.join(blocks)}</tool_calls{s}>{text_after}"


def render_longcat(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write calls as LongCat does."""
    blocks = [
        f"<longcat_tool_call>{name}\n{_pairs(arguments, chr(10), 'longcat_')}</longcat_tool_call>"
        for name, arguments in calls
    ]
    return text_before + "\n".join(blocks) + text_after


def _invokes(calls: Calls, prefix: str) -> str:
    blocks: list[str] = []
    for name, arguments in calls:
        values = "".join(
            f'<{prefix}parameter name="{key}">{_text(value)}</{prefix}parameter>\n'
            for key, value in arguments.items()
        )
        blocks.append(f'<{prefix}invoke name="{name}">\n{values}</{prefix}invoke>\n')
    return "".join(blocks)


def render_minimax_m2(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write calls as MiniMax-M2 does."""
    tag = "minimax:tool_call"
    return f"{text_before}<{tag}>\n{_invokes(calls, '')}</{tag}>{text_after}"


def render_anthropic(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write calls in tags without a prefix."""
    return f"{text_before}<function_calls>\n{_invokes(calls, '')}</function_calls>{text_after}"


def render_anthropic_prefixed(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write calls in tags with the namespace prefix."""
    tag = f"{_NAMESPACE}function_calls"
    return f"{text_before}<{tag}>\n{_invokes(calls, _NAMESPACE)}</{tag}>{text_after}"


def render_dots(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write calls as dots does."""
    tag = "dots_function_call"
    return f"{text_before}<{tag}>\n{_invokes(calls, '')}</{tag}>{text_after}"


def render_muse(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write calls as Muse Glimmer does: text to the user, then a message for a tool."""
    said = f" to=user<|message|>{text_before}<|eom|>" if text_before else ""
    parts = [
        f"<|start|>assistant to={name}<|message|><atem:function_calls>\n"
        f"{_invokes([(name, arguments)], 'atem:')}</atem:function_calls><|eom|>"
        for name, arguments in calls
    ]
    after = f"<|start|>assistant to=user<|message|>{text_after}<|eot|>" if text_after else ""
    return said + "".join(parts) + after


def _dsml(calls: Calls, section: str, space: str, text_before: str, text_after: str) -> str:
    d = f"｜DSML｜{space}"
    blocks: list[str] = []
    for name, arguments in calls:
        values = "".join(
            f'<{d}parameter name="{key}" string="{str(isinstance(value, str)).lower()}">'
            f"{_text(value)}</{d}parameter>\n"
            for key, value in arguments.items()
        )
        blocks.append(f'<{d}invoke name="{name}">\n{values}</{d}invoke>\n')
    before = f"{text_before}\n\n" if text_before else ""
    return f"{before}<{d}{section}>\n{''.join(blocks)}</{d}{section}>{text_after}"


def render_dsml_v32(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write calls as DeepSeek V3.2 does."""
    return _dsml(calls, "function_calls", "", text_before, text_after)


def render_dsml_v4(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write calls as DeepSeek V4 does."""
    return _dsml(calls, "tool_calls", "", text_before, text_after)


def render_dsml_v41(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write calls as DeepSeek V4.1 does."""
    return _dsml(calls, "calls", " ", text_before, text_after)


def render_kimi_k3(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write calls as Kimi K3 does: channels, and a type for each argument."""
    blocks: list[str] = []
    for index, (name, arguments) in enumerate(calls, 1):
        values = "".join(
            f'<|open|>argument key="{key}" type="{_XML_TYPES[type(value)]}"<|sep|>'
            f"{_text(value)}<|close|>argument<|sep|>"
            for key, value in arguments.items()
        )
        blocks.append(
            f'<|open|>call tool="{name}" index="{index}"<|sep|>{values}<|close|>call<|sep|>'
        )
    return (
        f"<|open|>response<|sep|>{text_before}<|close|>response<|sep|>"
        f"<|open|>tools<|sep|>{''.join(blocks)}<|close|>tools<|sep|>"
        f"{text_after}<|close|>message<|sep|>"
    )


def render_step3(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write calls as Step3 does."""
    blocks: list[str] = []
    for name, arguments in calls:
        values = "".join(
            f'<steptml:parameter name="{key}">{_text(value)}</steptml:parameter>'
            for key, value in arguments.items()
        )
        blocks.append(
            f'<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="{name}">'
            f"{values}</steptml:invoke><｜tool_call_end｜>"
        )
    joined = "\n".join(blocks)
    return f"{text_before}<｜tool_calls_begin｜>{joined}<｜tool_calls_end｜>{text_after}"


def _m3_value(key: str, value: Any) -> str:
    if isinstance(value, list):
        value = "".join(_m3_value("item", item) for item in value)
    return f"{_M3}<{key}>{_text(value)}{_M3}</{key}>"


def render_minimax_m3(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write calls as MiniMax-M3 does: a token before each tag, lists as items."""
    blocks = [
        f'{_M3}<invoke name="{name}">'
        + "".join(_m3_value(key, value) for key, value in arguments.items())
        + f"{_M3}</invoke>"
        for name, arguments in calls
    ]
    return f"{text_before}{_M3}<tool_call>{''.join(blocks)}{_M3}</tool_call>{text_after}"


def _cdata(text: str) -> str:
    return f"<![CDATA[{text}]]>" if any(sign in text for sign in "<&\n") else text


def render_minicpm5(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write calls as MiniCPM5 does: CDATA around what needs it."""
    blocks: list[str] = []
    for name, arguments in calls:
        values = "".join(
            f'<param name="{key}">{_cdata(_text(value))}</param>'
            for key, value in arguments.items()
        )
        blocks.append(f'<function name="{name}">{values}</function>')
    return text_before + "\n".join(blocks) + text_after


def render_function_tag(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write calls as Functionary v3.1 does."""
    blocks = [f"<function={name}>{encode_text(value)}</function>" for name, value in calls]
    return text_before + "".join(blocks) + text_after


def render_name_tag(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write calls as Cline's prompt asks: the tool is the tag."""
    blocks: list[str] = []
    for name, arguments in calls:
        values = "".join(f"<{key}>{_text(value)}</{key}>\n" for key, value in arguments.items())
        blocks.append(f"<{name}>\n{values}</{name}>")
    before = f"{text_before}\n" if text_before else ""
    return before + "\n".join(blocks) + text_after


def render_langchain_xml(calls: Calls, text_before: str = "", text_after: str = "") -> str:
    """Write calls as LangChain's XML agent does, with a JSON input."""
    blocks = [
        f"<tool>{name}</tool><tool_input>{encode_text(value)}</tool_input>" for name, value in calls
    ]
    return text_before + "\n".join(blocks) + text_after


RENDERERS: dict[str, Renderer] = {
    "qwen_xml": render_qwen_xml,
    "seed": render_seed,
    "glm45": render_glm45,
    "glm47": render_glm47,
    "hunyuan_v3": render_hunyuan_v3,
    "longcat": render_longcat,
    "minimax_m2": render_minimax_m2,
    "anthropic": render_anthropic,
    "anthropic_prefixed": render_anthropic_prefixed,
    "dots": render_dots,
    "muse": render_muse,
    "dsml_v32": render_dsml_v32,
    "dsml_v4": render_dsml_v4,
    "dsml_v41": render_dsml_v41,
    "kimi_k3": render_kimi_k3,
    "step3": render_step3,
    "minimax_m3": render_minimax_m3,
    "minicpm5": render_minicpm5,
    "function_tag": render_function_tag,
    "name_tag": render_name_tag,
    "langchain_xml": render_langchain_xml,
}
"""How each family writes calls."""
