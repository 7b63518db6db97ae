"""Tools that tests of reading offer, and texts in which a model calls them."""

from surecall.base.records import ToolSpec

__all__ = ["BERGEN", "NOTE", "OSLO", "PING", "SAVE", "TEXTS", "TOOLS", "WEATHER", "tagged"]

WEATHER = ToolSpec(
    name="weather",
    effect="read",
    parameters={
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"],
        "additionalProperties": False,
    },
)
NOTE = ToolSpec(
    name="save_note",
    parameters={
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    },
)
PING = ToolSpec(name="ping", effect="read", parameters={"type": "object", "properties": {}})
TOOLS = (WEATHER, NOTE, PING)


def tagged(payload: str) -> str:
    """Return a call as Hermes and Qwen models write it."""
    return f"<tool_call>\n{payload}\n</tool_call>"


OSLO = tagged('{"name": "weather", "arguments": {"city": "Oslo"}}')
BERGEN = tagged('{"name": "weather", "arguments": {"city": "Bergen", "days": "3"}}')
SAVE = tagged('{"name": "save_note", "arguments": {"text": "a </b> {c} \\"d\\"\\n"}}')

TEXTS: dict[str, str] = {
    "nothing": "",
    "blank": " \n ",
    "prose": "The sky over Oslo is clear, and  so on.\n",
    "prose with brackets": 'Use {"a": [1]} or <b>bold</b>, or x < y > z.',
    "unicode": "Ærlig talt, 😀 – ja.",
    "a call": OSLO,
    "a call in prose": f"Let me look.\n\n{OSLO}\n\nThat is all.",
    "three calls": f"{OSLO}\n{BERGEN}{SAVE}\n",
    "an unknown tool": tagged('{"name": "launch", "arguments": {}}'),
    "no name": tagged('{"arguments": {}}'),
    "not a call": tagged("hello"),
    "slips in a call": tagged("{'name': 'weather', 'arguments': {city: 'Oslo',}}"),
    "arguments as text": tagged('{"name": "ping", "arguments": "{}"}'),
    "cut in a call": OSLO[:-20],
    "cut after a payload": OSLO.removesuffix("\n</tool_call>"),
    "cut in a closer": OSLO[:-4],
    "second call cut": f"{OSLO}\n{BERGEN[:-25]}",
    "reasoning": "<think>The user asks.\n</think>\n\nClear.",
    "reasoning and a call": f"<think>I need {{weather}}.</think>{OSLO}",
    "a call only thought about": f"<think>Maybe {OSLO}?</think>No call.",
    "reasoning never closed": "<think>and so on, and so",
    "reasoning opened in the prompt": f"The user asks.</think>Clear.{OSLO}",
    "a call in code": f"Write:\n```\n{OSLO}\n```\nlike that.",
    "a call in inline code": "Write `<tool_call>` and `</tool_call>`.",
    "bare JSON": '{"name": "weather", "arguments": {"city": "Oslo"}}',
    "bare JSON with space": ' \n{"name": "ping", "arguments": {}}\n',
    "python": '[weather(city="Oslo", days=3)]',
    "function tag": '<function=weather>{"city": "Oslo"}</function>',
    "qwen xml": tagged("<function=weather>\n<parameter=city>\nOslo\n</parameter>\n</function>"),
    "mistral": '[TOOL_CALLS][{"name": "weather", "arguments": {"city": "Oslo"}}]',
    "end token": f"{OSLO}<|im_end|>",
}
