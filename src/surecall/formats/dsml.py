"""DeepSeek DSML (V3.2, V4, V4.1): `<｜DSML｜invoke name="N">` and typed parameters."""

from collections.abc import Sequence
from typing import Any, Final, cast

from surecall.errors import SurecallError
from surecall.jsontext import decode
from surecall.records import Receipt, clip

from .base import CallFormat, Found
from .blocks import end_of_calls, read_calls
from .parameters import Parameter, build_typed
from .source import Source
from .tags import ElementGrammar, skip_debris, tag_receipt

__all__ = ["Dsml"]

_BARS: Final = ("｜｜", "｜", "||", "|", "‖")
_PREFIX: Final = r"(?:[｜|‖]{1,2}+[ ]?DSML[ ]?[｜|‖]{1,2}+[ ]?|DSML[ :]?)"
_GRAMMAR: Final = ElementGrammar(
    calls=("invoke",),
    values=("parameter",),
    sections=("function_calls", "functioncalls", "tool_calls", "toolcalls", "tool_call", "calls"),
    prefix=_PREFIX,
)
_CANONICAL: Final = "<｜DSML｜"


class Dsml(CallFormat):
    """A section of invokes, each with parameters that say whether they are strings."""

    name = "dsml"
    literals = (*(f"<{bar}DSML{bar}" for bar in _BARS), "<DSML")

    def read(self, source: Source, at: int) -> Found | None:
        """Read the invokes of a section, or one whose section is missing."""
        tag = _GRAMMAR.tag(source, at)
        if tag is None:
            return self._unfinished(source, at)
        begin = at
        if tag.kind == "open_section":
            here = skip_debris(source, tag.end)
            if source.at_end(here):
                return Found(end=here)
            begin, tag = tag.end, _GRAMMAR.tag(source, here)
            if tag is None and _GRAMMAR.is_begun(source, here):
                return Found(end=len(source.text))
        if tag is None or tag.kind != "open_call":
            return None
        damaged = not source.starts(_CANONICAL, at)
        if damaged and source.tools.resolve(tag.label) is None:
            return None
        calls, end = read_calls(source, _GRAMMAR, begin, build=build_dsml)
        if not calls:
            return None
        end, invented = end_of_calls(source, end)
        return Found(
            end=end,
            calls=tuple(calls),
            grade="damaged" if damaged else "marked",
            ends_message=invented,
        )

    def _unfinished(self, source: Source, at: int) -> Found | None:
        """Drop the beginning of a tag at the very end of the text."""
        if source.starts(_CANONICAL, at) and _GRAMMAR.is_begun(source, at):
            return Found(end=len(source.text))
        return None


def build_dsml(
    source: Source, name: str, parameters: Sequence[Parameter]
) -> tuple[Any, list[Receipt]]:
    """Return arguments typed by their `string` attribute, and by the schema where it is wrong."""
    built, receipts = build_typed(source, name, parameters)
    if not isinstance(built, dict):
        return built, receipts
    arguments = cast("dict[str, Any]", built)
    for key, text, tag in parameters:
        is_string = tag.attributes.get("string", "").lower()
        if is_string == "true":
            _keep_string(arguments, key, text, source.schema_of(name, key), receipts)
        elif is_string == "false":
            try:
                arguments[key] = decode(text.strip())
            except SurecallError:
                note = f"{key} is marked as JSON and is none"
                receipts.append(Receipt("text_for_json", "text", clip(text), text, why=note))
    return arguments, receipts


def _keep_string(
    arguments: dict[str, Any],
    key: str,
    text: str,
    schema: dict[str, Any] | None,
    receipts: list[Receipt],
) -> None:
    """Keep text that is marked as a string, unless the schema made something else of it."""
    typed = arguments[key]
    if schema is None or isinstance(typed, str):
        arguments[key] = text
        return
    receipts.append(tag_receipt("string_by_schema", text, type(typed).__name__))
