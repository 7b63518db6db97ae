"""Parameters as they were written, and the arguments they become."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, NamedTuple, cast

from surecall.jsontext import encode_text
from surecall.records import Receipt

from .source import Source
from .tags import Tag, tag_receipt

__all__ = [
    "ARGUMENT_CONTAINERS",
    "Builder",
    "Padding",
    "Parameter",
    "build_typed",
    "property_names",
    "strip_padding",
]

Padding = Literal["none", "newline", "pair", "trim"]
"""What around a value is not part of it: nothing, a newline on either side, newlines when both
sides have one, or all white space."""

ARGUMENT_CONTAINERS: Final = frozenset({"arguments", "parameters", "properties", "args", "input"})
"""Keys under which models put all arguments once more."""


class Parameter(NamedTuple):
    """One parameter as it was written."""

    key: str
    text: str
    tag: Tag


Builder = Callable[[Source, str, Sequence[Parameter]], tuple[Any, list[Receipt]]]
"""Makes arguments of the parameters of a call, given the name of its tool."""


def _repeated(parameters: Sequence[Parameter]) -> str:
    """Return parameters as JSON text that gives a key twice, which is refused as such."""
    pairs = (f"{encode_text(key)}: {encode_text(text)}" for key, text, _ in parameters)
    return f"{{{', '.join(pairs)}}}"


def build_typed(
    source: Source, name: str, parameters: Sequence[Parameter]
) -> tuple[Any, list[Receipt]]:
    """Return the arguments as the tool's schema types them."""
    receipts: list[Receipt] = []
    values: dict[str, str] = {}
    for key, text, _ in parameters:
        if key in values and values[key] != text:
            return _repeated(parameters), receipts
        values[key] = text
    wrapped = _unwrap(source, name, values)
    if wrapped is not None:
        receipts.append(tag_receipt("unwrap_arguments", wrapped, "arguments"))
        return wrapped, receipts
    return source.typed(name, values), receipts


def _unwrap(source: Source, name: str, values: dict[str, str]) -> str | None:
    """Return the JSON text of a lone parameter that holds all arguments."""
    if len(values) != 1:
        return None
    key, text = next(iter(values.items()))
    if key not in ARGUMENT_CONTAINERS or key in property_names(source, name):
        return None
    return text.strip() if text.lstrip().startswith("{") else None


def property_names(source: Source, name: str) -> tuple[str, ...]:
    """Return the parameters of a tool, as far as its schema lists them."""
    schema = source.tools.parameters(name) or {}
    properties: Any = schema.get("properties")
    return tuple(cast("dict[str, Any]", properties)) if isinstance(properties, dict) else ()


def strip_padding(text: str, padding: Padding) -> str:
    """Return a value without what the template puts around it."""
    if padding == "trim":
        return text.strip()
    if padding == "pair":
        return text[1:-1] if len(text) > 1 and text[0] == text[-1] == "\n" else text
    if padding == "newline":
        if text.startswith("\r\n") and text.endswith("\r\n") and len(text) > 2:
            return text[2:-2]
        return text.removeprefix("\n").removesuffix("\n")
    return text
