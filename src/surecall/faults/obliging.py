"""The oracle that does what a plain question asks for: for clients that know no directives."""

from collections.abc import Iterator
from typing import Any, Final

from surecall.jsontext import encode_text
from surecall.records import ModelRequest, ToolSpec

from .actions import Action, CallTools, PlannedCall, Say
from .conversation import last_user_text
from .directives import FINAL_TEXT
from .samples import sample_arguments

__all__ = ["ObligingOracle"]

_WORD: Final = "single word:"
_TWICE: Final = ("two times", "twice")
_FORBIDS: Final = ("do not call", "don't call")


class ObligingOracle:
    """Calls the tools that the user names, answers with the word that is asked for, or is done.

    A call takes what stands in double quotes as its texts, as the user wants it; only a strict
    tool is held to its schema.
    """

    def next_action(self, request: ModelRequest) -> Action | None:
        """Return what the last text of the user asks for."""
        text = last_user_text(request)
        tools = _wanted_tools(request, text)
        if tools:
            return CallTools(tuple(_calls(tools, text)))
        if "json" in text.lower():
            return Say(_json_text(text))
        return Say(_wanted_word(request) or FINAL_TEXT)


def _wanted_tools(request: ModelRequest, text: str) -> list[ToolSpec]:
    lowered = text.lower()
    if not request.messages or request.messages[-1].role != "user":
        return []
    if any(words in lowered for words in _FORBIDS):
        return []
    named = [tool for tool in request.tools if tool.name in text]
    return named or (list(request.tools[:1]) if "call it" in lowered else [])


def _calls(tools: list[ToolSpec], text: str) -> Iterator[PlannedCall]:
    texts = list(_quoted(text))
    times = 2 if any(words in text.lower() for words in _TWICE) else 1
    for number in range(times):
        for tool in tools:
            yield PlannedCall(tool.name, _arguments(tool, texts[number:]))


def _arguments(tool: ToolSpec, texts: list[str]) -> dict[str, Any]:
    arguments = sample_arguments(tool.parameters, tuple(texts))
    if tool.extra.get("strict"):
        return arguments
    wanted = iter(texts)
    return {
        key: next(wanted, value) if isinstance(value, str) else value
        for key, value in arguments.items()
    }


def _json_text(text: str) -> str:
    written = encode_text({"answer": FINAL_TEXT})
    is_fenced = "```json" in text and "without a code fence" not in text
    return f"Here it is.\n```json\n{written}\n```" if is_fenced else written


def _wanted_word(request: ModelRequest) -> str:
    """Return the word that the newest instruction asks for, if one does."""
    for message in reversed(request.messages):
        if message.role not in {"user", "system", "developer"}:
            continue
        words = message.text.partition(_WORD)[2].split(maxsplit=1)
        if words:
            return words[0].rstrip(".,!")
    return ""


def _quoted(text: str) -> Iterator[str]:
    """Yield what stands between double quotes."""
    parts = text.split('"')
    yield from (part for part in parts[1:-1:2] if part)
