"""What llama.cpp's converter from schema to grammar turns into rules.

A keyword it passes over is left out here, so that what is written is what holds. Some schemas make
it fail, generate something else or never end (boolean schemas, `allOf` of other things than
objects, a minimum above its maximum); none of those is written.
"""

from typing import Any, Final

from surecall.schema.references import used_definitions

from .forms import joined, limits_of, rounded_bounds, settled
from .nodes import Losses, Node

__all__ = ["grammar_pattern", "write_llama_cpp"]

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
    return used_definitions(schema, {key: writer.write(definitions[key]) for key in definitions})


class _GrammarWriter:
    def __init__(self, losses: Losses, max_string: int | None, max_items: int | None) -> None:
        self._losses = losses
        self._max_string = max_string
        self._max_items = max_items

    def write(self, node: Node) -> dict[str, Any]:
        node = settled(node, self._losses)
        texts = {key: node.texts[key] for key in ("title", "description") if key in node.texts}
        if node.ref:
            return {"$ref": node.ref}
        if node.choices:
            return joined([self.write(choice) for choice in node.choices], texts)
        if node.is_nothing:
            self._losses.note(node, "false", "that no value fits cannot be said", "dropped")
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
                why = f"the {next(iter(kept))} decides alone what a text looks like"
                self._losses.note(node, keyword, why, "dropped")
        else:
            self._bound(node, lengths, ("minLength", "maxLength"), self._max_string)
            kept = lengths
        wire.update(kept)

    def _write_integer(self, node: Node, limits: dict[str, Any], wire: dict[str, Any]) -> None:
        for keyword in limits:
            if not keyword.endswith("imum"):
                self._drop(node, keyword)
        for keyword, value in rounded_bounds(limits).items():
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
        properties = dict(node.properties or {})
        for name in node.required:
            if name not in properties:
                properties[name] = node.additional or Node(place=node.place)
        if properties:
            wire["properties"] = {name: self.write(inner) for name, inner in properties.items()}
        if node.required:
            wire["required"] = list(node.required)
        if node.additional is not None:
            wire["additionalProperties"] = node.additional and self.write(node.additional)

    def _bound(
        self, node: Node, limits: dict[str, Any], names: tuple[str, str], bound: int | None
    ) -> None:
        """Set an upper limit where there is none: small models may never end such a value."""
        low, high = names
        if bound is not None and high not in limits:
            limits[high] = max(bound, limits.get(low, 0))
            why = f"no upper limit was given; {limits[high]} is set"
            self._losses.note(node, high, why, "changed")

    def _drop(self, node: Node, keyword: str) -> None:
        self._losses.note(node, keyword, f"{keyword} has no rule in a grammar", "dropped")


_MAX_PATTERN: Final = 1_000
_MAX_NESTING: Final = 20
_SETS: Final = {"d": "0-9", "w": "A-Za-z0-9_"}
_ESCAPABLE: Final = frozenset(".*+?()[]{}|^$-/")
_SPECIAL: Final = frozenset(".*+?()[]{}|^$")


def grammar_pattern(pattern: str) -> str | None:
    """Return the pattern as the converter reads it, or nothing when it cannot."""
    if len(pattern) > _MAX_PATTERN or len(pattern) < 2:
        return None
    if not (pattern.startswith("^") and pattern.endswith("$")) or pattern.endswith("\\$"):
        return None
    try:
        return f"^{_Scanner(pattern[1:-1]).run()}$"
    except _CannotBeSaidError:
        return None


class _CannotBeSaidError(Exception):
    pass


class _Scanner:
    """Goes through a pattern once; anything it does not know is refused."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._nesting = 0

    def run(self) -> str:
        pieces: list[str] = []
        can_repeat = False
        while self._at < len(self._text):
            char = self._next()
            if char == "(":
                pieces.append(self._open_group())
                can_repeat = False
            elif char == ")":
                self._close_group()
                pieces.append(char)
                can_repeat = True
            elif char == "|":
                if not self._nesting:  # an anchor would belong to one side only
                    raise _CannotBeSaidError
                pieces.append(char)
                can_repeat = False
            elif char in "*+?{":
                if not can_repeat:
                    raise _CannotBeSaidError
                pieces.append(char if char != "{" else self._count())
                can_repeat = False
            else:
                pieces.append(self._atom(char))
                can_repeat = True
        if self._nesting:
            raise _CannotBeSaidError
        return "".join(pieces)

    def _next(self) -> str:
        if self._at >= len(self._text):
            raise _CannotBeSaidError
        self._at += 1
        return self._text[self._at - 1]

    def _open_group(self) -> str:
        self._nesting += 1
        if self._nesting > _MAX_NESTING:
            raise _CannotBeSaidError
        if self._text.startswith("?:", self._at):
            self._at += 2
        elif self._text.startswith("?", self._at):
            raise _CannotBeSaidError
        return "(?:"

    def _close_group(self) -> None:
        self._nesting -= 1
        if self._nesting < 0:
            raise _CannotBeSaidError

    def _count(self) -> str:
        end = self._text.find("}", self._at)
        inner = self._text[self._at : end] if end >= 0 else ""
        low, _, high = inner.partition(",")
        if not _is_number(low) or (high and not _is_number(high)):
            raise _CannotBeSaidError
        if high and int(high) < int(low):
            raise _CannotBeSaidError
        self._at = end + 1
        return f"{{{inner}}}"

    def _atom(self, char: str) -> str:
        if char == "[":
            return self._class()
        if char == "\\":
            escaped = self._next()
            if escaped in _SETS:
                return f"[{_SETS[escaped]}]"
            return _literal(_unescaped(escaped))
        if char in _SPECIAL:
            raise _CannotBeSaidError
        return _literal(char)

    def _class(self) -> str:
        pieces: list[str] = []
        while (char := self._next()) != "]":
            if char == "\\":
                escaped = self._next()
                if escaped in _SETS:
                    pieces.append(_SETS[escaped])
                    continue
                char = _unescaped(escaped)
            elif char in "[^":
                raise _CannotBeSaidError
            pieces.append(self._range(char))
        if not pieces:
            raise _CannotBeSaidError
        return f"[{''.join(pieces)}]"

    def _range(self, low: str) -> str:
        following = self._text[self._at : self._at + 2]
        if len(following) < 2 or following[0] != "-" or following[1] in "]\\[":
            return _in_class(_plain(low))
        self._at += 2
        high = following[1]
        if high < low or any(low <= char <= high for char in '"\\\x7f'):
            raise _CannotBeSaidError
        return f"{_in_class(_plain(low))}-{_in_class(_plain(high))}"


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 4


def _unescaped(char: str) -> str:
    if char not in _ESCAPABLE:
        raise _CannotBeSaidError
    return char


def _plain(char: str) -> str:
    if char in '"\\\x7f' or char < " ":
        raise _CannotBeSaidError
    return char


def _literal(char: str) -> str:
    return f"\\{_plain(char)}" if char in _SPECIAL else _plain(char)


def _in_class(char: str) -> str:
    return f"\\{char}" if char in "]-^[" else char
