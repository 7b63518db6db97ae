"""What llama.cpp's converter from schema to grammar turns into rules.

A keyword it passes over is left out here, so that what is written is what holds. Some schemas make
it fail, generate something else or never end (boolean schemas, `allOf` of other things than
objects, a minimum above its maximum); none of those is written.
"""

import re
from collections.abc import Container
from typing import Any, Final

from surecall.schema.structure import add_definitions

from .nodes import (
    Losses,
    Node,
    join_choices,
    limits_of,
    named_properties,
    resolve_types,
    round_bounds,
)

_FORMATS: Final = frozenset({"date", "date-time", "time", "uuid"})
_MAX_INTEGER: Final = 2**53


def write_llama_cpp(
    root: Node,
    definitions: dict[str, Node],
    losses: Losses,
    *,
    max_string: int | None,
    max_items: int | None,
) -> dict[str, Any]:
    """Write a schema whose every keyword the converter understands."""
    writer = _GrammarWriter(losses, max_string, max_items)
    schema = writer.write(root)
    return add_definitions(schema, {key: writer.write(definitions[key]) for key in definitions})


class _GrammarWriter:
    def __init__(self, losses: Losses, max_string: int | None, max_items: int | None) -> None:
        self._losses = losses
        self._max_string = max_string
        self._max_items = max_items

    def write(self, node: Node) -> dict[str, Any]:
        node = resolve_types(node, self._losses)
        texts = {key: node.texts[key] for key in ("title", "description") if key in node.texts}
        if node.ref:
            return {"$ref": node.ref}
        if node.choices:
            return join_choices([self.write(choice) for choice in node.choices], texts)
        if node.is_nothing:
            self._losses.note_nothing(node)
            return texts
        if node.enum is not None:
            return {"enum": node.enum, **texts}
        wire: dict[str, Any] = {}
        if node.types:
            wire["type"] = node.types[0] if len(node.types) == 1 else list(node.types)
        for kind in node.types or ():
            self._write_type(node, kind, wire)
        return {**wire, **texts}

    def _write_type(self, node: Node, kind: str, wire: dict[str, Any]) -> None:
        limits = limits_of(node, kind)
        if kind == "string":
            self._write_string(node, limits, wire)
        elif kind == "integer":
            self._write_integer(node, limits, wire)
        elif kind == "number":
            for keyword in limits:
                self._drop(node, keyword)
        elif kind == "array":
            self._write_array(node, limits, wire)
        elif kind == "object":
            self._write_object(node, limits, wire)

    def _write_string(self, node: Node, limits: dict[str, Any], wire: dict[str, Any]) -> None:
        lengths = {key: limits[key] for key in ("minLength", "maxLength") if key in limits}
        pattern = grammar_pattern(limits["pattern"]) if "pattern" in limits else None
        if "pattern" in limits and pattern is None:
            self._drop(node, "pattern")
        kept = {"pattern": pattern} if pattern is not None else {}
        if "format" in limits:
            if not kept and limits["format"] in _FORMATS:
                kept = {"format": limits["format"]}
            else:
                self._drop(node, "format")
        if kept:
            for keyword in lengths:
                why = f"the {next(iter(kept))} alone decides what the string looks like"
                self._losses.note(node, keyword, why, "dropped")
        else:
            self._bound(node, lengths, ("minLength", "maxLength"), self._max_string)
            kept = lengths
        wire.update(kept)

    def _write_integer(self, node: Node, limits: dict[str, Any], wire: dict[str, Any]) -> None:
        for keyword in limits:
            if not keyword.endswith("imum"):
                self._drop(node, keyword)
        for keyword, value in round_bounds(limits).items():
            if abs(value) <= _MAX_INTEGER:
                wire[keyword] = value
            else:
                self._drop(node, keyword)

    def _write_array(self, node: Node, limits: dict[str, Any], wire: dict[str, Any]) -> None:
        if "uniqueItems" in limits:
            self._drop(node, "uniqueItems")
        counts = {key: limits[key] for key in ("minItems", "maxItems") if key in limits}
        self._bound(node, counts, ("minItems", "maxItems"), self._max_items)
        wire.update(counts)
        wire["items"] = self.write(node.items) if node.items else {}

    def _write_object(self, node: Node, limits: dict[str, Any], wire: dict[str, Any]) -> None:
        for keyword in limits:
            self._drop(node, keyword)
        properties = named_properties(node)
        if properties:
            wire["properties"] = {name: self.write(inner) for name, inner in properties.items()}
        if node.required:
            wire["required"] = list(node.required)
        if node.additional and not resolve_types(node.additional, self._losses).is_nothing:
            wire["additionalProperties"] = self.write(node.additional)
        elif node.additional is not None:
            wire["additionalProperties"] = False

    def _bound(
        self, node: Node, limits: dict[str, Any], names: tuple[str, str], bound: int | None
    ) -> None:
        """Set an upper limit where there is none: small models may never end such a value."""
        low, high = names
        if bound is not None and high not in limits:
            limits[high] = max(bound, limits.get(low, 0))
            why = f"no upper limit is given; it is set to {limits[high]}"
            self._losses.note(node, high, why, "changed")

    def _drop(self, node: Node, keyword: str) -> None:
        self._losses.note(node, keyword, f"{keyword} cannot be expressed in a grammar", "dropped")


# Patterns

_MAX_PATTERN: Final = 1_000
_MAX_NESTING: Final = 20
_SETS: Final = {"\\d": "0-9", "\\w": "A-Za-z0-9_"}
_ESCAPABLE: Final = frozenset(".*+?()[]{}|^$-/")
_SPECIAL: Final = frozenset(".*+?()[]{}|^$")
_FORBIDDEN: Final = '"\\\x7f'
_TOKEN: Final = re.compile(
    r"""
    (?P<open>\((?:\?:)?(?!\?)) | (?P<close>\)) | (?P<either>\|)
    | (?P<repeat>[*+?]|\{(?P<low>\d{1,4})(?:,(?P<high>\d{1,4})?)?\})
    | \[(?P<set>(?:\\.|[^\]\\])++)\]
    | (?P<atom>\\?.)
    """,
    re.ASCII | re.DOTALL | re.VERBOSE,
)
_SET_ITEM: Final = re.compile(r"\\[dw]|(\\?.)(?:-([^\]\\\[]))?", re.DOTALL)


def grammar_pattern(pattern: str) -> str | None:
    """Return the pattern as the converter reads it, or None when it cannot."""
    if not 2 <= len(pattern) <= _MAX_PATTERN or pattern.endswith("\\$"):
        return None
    if not (pattern.startswith("^") and pattern.endswith("$")):
        return None
    pieces: list[str] = []
    depth = 0
    can_repeat = False
    for token in _TOKEN.finditer(pattern[1:-1]):
        piece = token[0]
        match token.lastgroup:
            case "open":
                depth += 1
                piece = "(?:"
            case "close":
                depth -= 1
            case "either":  # at the top an anchor would belong to one side only
                piece = piece if depth else ""
            case "repeat":
                is_empty = token["high"] and int(token["high"]) < int(token["low"])
                piece = piece if can_repeat and not is_empty else ""
            case "set":
                piece = _write_set(token["set"])
            case _:
                piece = _write_atom(piece)
        if not piece or not 0 <= depth <= _MAX_NESTING:
            return None
        pieces.append(piece)
        can_repeat = token.lastgroup in {"close", "set", "atom"}
    return None if depth else f"^{''.join(pieces)}$"


def _write_atom(text: str) -> str:
    """Return a character or an escape outside of a set; an empty text when it cannot be written."""
    if text in _SETS:
        return f"[{_SETS[text]}]"
    char = text[-1]
    if not _can_be_written(text, _SPECIAL):
        return ""
    return f"\\{char}" if char in _SPECIAL else char


def _write_set(body: str) -> str:
    """Return a set of characters; an empty text when it cannot be written."""
    pieces: list[str] = []
    for item in _SET_ITEM.finditer(body):
        if item[0] in _SETS:
            pieces.append(_SETS[item[0]])
            continue
        low, high = item[1][-1], item[2]
        if not _can_be_written(item[1], "[^"):
            return ""
        pieces.append(_write_member(low))
        if high:
            if high < low or any(low <= char <= high for char in _FORBIDDEN):
                return ""
            pieces.append(f"-{_write_member(high)}")
    return f"[{''.join(pieces)}]"


def _can_be_written(text: str, special: Container[str]) -> bool:
    char = text[-1]
    if char in _FORBIDDEN or char < " ":
        return False
    return char in _ESCAPABLE if len(text) > 1 else char not in special


def _write_member(char: str) -> str:
    return f"\\{char}" if char in "]-^[" else char
