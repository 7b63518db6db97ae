"""Reads text in which a model may have written calls, whole or in pieces."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from surecall.base.records import ToolSpec
from surecall.calls import CallPiece, Piece, TextPiece, TextReader
from surecall.calls.formats import CallFormat, TextCall
from surecall.calls.names import ToolNames

__all__ = ["TOOLS", "ReadText", "check_cuts", "check_splits", "read", "read_pieces"]


def _tool(name: str, required: Sequence[str] = (), /, **properties: str) -> ToolSpec:
    schemas = {
        key: {"type": "array", "items": {"type": "string"}} if kind == "array" else {"type": kind}
        for key, kind in properties.items()
    }
    parameters = {"type": "object", "properties": schemas, "required": list(required)}
    return ToolSpec(name=name, parameters=parameters)


TOOLS = (
    _tool("dim_lamp", ("room",), room="string", level="integer", fade="boolean"),
    _tool("ferry_times", ("origin",), origin="string", rows="integer"),
    _tool("save_note", ("title",), title="string", body="string", tags="array"),
    _tool("ping"),
)


class ReadText(NamedTuple):
    """What became of a text."""

    content: str
    reasoning: str
    calls: list[TextCall]


def read(
    text: str,
    formats: Sequence[CallFormat],
    tools: Iterable[ToolSpec] = TOOLS,
    generation_prompt: str | None = None,
) -> ReadText:
    """Read a text that is there as a whole."""
    return read_pieces([text], formats, tools, generation_prompt)


def read_pieces(
    texts: Iterable[str],
    formats: Sequence[CallFormat],
    tools: Iterable[ToolSpec] = TOOLS,
    generation_prompt: str | None = None,
) -> ReadText:
    """Read a text that arrives in pieces."""
    reader = TextReader(ToolNames(tools), formats, generation_prompt)
    pieces: list[Piece] = []
    for text in texts:
        pieces += reader.feed(text)
    pieces += reader.close()
    content, reasoning, calls = "", "", list[TextCall]()
    for piece in pieces:
        match piece:
            case CallPiece(call=call):
                calls.append(call)
            case TextPiece(kind="reclassified"):
                reasoning, content = (reasoning + content).strip(), ""
            case TextPiece(kind="reasoning", text=text):
                reasoning += text
            case TextPiece(text=text):
                content += text
    return ReadText(content, reasoning, calls)


def check_splits(
    text: str,
    formats: Sequence[CallFormat],
    tools: Iterable[ToolSpec] = TOOLS,
    generation_prompt: str | None = None,
) -> ReadText:
    """Read a text in every split in two and character by character; all must read the same."""
    tools = tuple(tools)
    whole = read(text, formats, tools, generation_prompt)
    splits = [[text[:at], text[at:]] for at in range(1, len(text))]
    for split in [*splits, list(text)]:
        assert read_pieces(split, formats, tools, generation_prompt) == whole, split
    return whole


def check_cuts(text: str, formats: Sequence[CallFormat], tools: Iterable[ToolSpec] = TOOLS) -> None:
    """Cut a text everywhere: what is read as whole must be a call of the text that was not cut."""
    tools = tuple(tools)
    expected = [(call.name, call.arguments) for call in read(text, formats, tools).calls]
    for at in range(len(text)):
        calls = read(text[:at], formats, tools).calls
        whole = [(call.name, call.arguments) for call in calls if call.state == "whole"]
        assert whole == expected[: len(whole)], text[:at]
        assert all(call.name in {name for name, _ in expected} for call in calls), text[:at]
