"""Says in plain words why JSON cannot be read from a text, or written from a value, and where."""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from surecall.base.errors import Code, JSONTextError
from surecall.base.limits import MAX_JSON_DEPTH
from surecall.base.redaction import excerpt

from .pointer import render_pointer
from .surrogates import find_lone_surrogate

_SNIPPET_CHARACTERS: Final = 24

# Finding the place costs Python time for every token: it is looked for only so far.
_SEARCHED_CHARACTERS: Final = 1 << 18

_MAX_RUNS: Final = 30_000

_STRING: Final = r'\\.|"(?:[^"\\]++|\\.)*+"?+'
_BRACKETS: Final = re.compile(rf"{_STRING}|[\[{{]++|[\]}}]++", re.DOTALL)

_WORDS: Final = (
    ("Expecting value", "{found} where a value should be"),
    ("Expecting property name", "{found} where a key in double quotes should be"),
    ("Expecting ':'", "{found} where a ':' should be"),
    ("Expecting ','", "{found} where a ',' or a closing bracket should be"),
    ("Extra data", "{found} after the end of the value"),
    ("Unterminated string", "a string starts here and never ends"),
    ("Invalid control character", "a raw control character U+{mark:04X} inside a string"),
    ("Invalid \\", "an escape inside a string that JSON does not know"),
    ("Illegal trailing comma", "a comma with no value after it"),
)
"""What the standard library finds, and how we say it."""


class Source(msgspec.Struct, frozen=True):
    """Text under diagnosis, and how a place in it is described."""

    text: str
    """What was given, as text, without its byte order mark."""
    unit: Literal["byte", "character"]
    """What positions count: bytes when bytes were given."""
    had_mark: bool

    def explain_malformed(self, message: str, index: int) -> JSONTextError:
        """Return the error for text that is not JSON, given the standard library's finding."""
        if not self.text.strip(" \t\n\r"):
            what = "only whitespace" if self.text else "empty"
            message, hint = f"the text is {what}.", "Send one JSON value."
            position = self._position(0)
            return JSONTextError(Code.INVALID_JSON, message, position=position, hint=hint)
        index = min(index, len(self.text))
        hint = "Send strict JSON: keys and text in double quotes, no comments, no spare commas."
        return self._refusal(Code.INVALID_JSON, self._describe(message, index), index, hint)

    def explain_depth(self) -> JSONTextError:
        """Return the error for containers that nest too deep."""
        message = "containers are nested deeper than the limit, or than the stack that is left."
        return self.find_depth() or JSONTextError(
            Code.JSON_TOO_DEEP, message, hint="Send a flatter value."
        )

    def find_depth(self, end: int = _SEARCHED_CHARACTERS) -> JSONTextError | None:
        """Return an error when containers nest too deep before an index, if that can be seen."""
        depth = 0
        end = min(end, _SEARCHED_CHARACTERS)
        if self.text.count("[", 0, end) + self.text.count("{", 0, end) <= MAX_JSON_DEPTH:
            return None
        for match in islice(_BRACKETS.finditer(self.text, 0, end), _MAX_RUNS):
            start, stop = match.span()
            mark = self.text[start]
            if mark in "[{":
                if depth + stop - start > MAX_JSON_DEPTH:
                    message = f"more than {MAX_JSON_DEPTH} containers are nested in one another"
                    hint = "Send a flatter value."
                    index = start + MAX_JSON_DEPTH - depth
                    return self._refusal(Code.JSON_TOO_DEEP, message, index, hint)
                depth += stop - start
            elif mark in "]}":
                depth = max(0, depth - (stop - start))
        return None

    def explain_lone_surrogate(self) -> JSONTextError:
        """Return the error for half of a surrogate pair."""
        message = "half of a surrogate pair is not a character"
        hint = "Send the whole character, or its two escapes next to each other."
        index = find_lone_surrogate(self.text, _SEARCHED_CHARACTERS)
        return self._refusal(Code.LONE_SURROGATE, message, index, hint)

    def explain_long_number(self, literal: str) -> JSONTextError:
        """Return the error for an integer with too many digits."""
        message = f"an integer of {len(literal.lstrip('-'))} digits is too long to be kept exactly"
        index = self._index_of_number(literal)
        return self._refusal(Code.NUMBER_TOO_LONG, message, index, "Send it as a string.")

    def explain_non_finite(self, literal: str) -> JSONTextError:
        """Return the error for a number that is not a number, or too large for a float."""
        shown = literal if len(literal) <= _SNIPPET_CHARACTERS else literal[:20] + "…"
        hint = "Send null, a string, or a number that a 64-bit float can hold."
        index = self._index_of_number(literal)
        return self._refusal(
            Code.NON_FINITE_NUMBER, f"the number {shown} is not finite", index, hint
        )

    def _refusal(
        self, code: Code, message: str, index: int | None, hint: str | None = None
    ) -> JSONTextError:
        if index is None:
            return JSONTextError(code, f"{message}.", hint=hint)
        position = self._position(index)
        message = f"{message}, at {self.unit} {position} near {self._snippet(index)}."
        return JSONTextError(code, message, position=position, hint=hint)

    def _index_of_number(self, literal: str) -> int | None:
        begun = re.escape(literal[:_SNIPPET_CHARACTERS])
        number = re.compile(rf"{_STRING}|(?<![\w.+-]){begun}", re.DOTALL)
        for match in islice(number.finditer(self.text, 0, _SEARCHED_CHARACTERS), _MAX_RUNS):
            if self.text.startswith(literal, match.start()):
                return match.start()
        return None

    def _position(self, index: int) -> int:
        if self.unit == "character":
            return index + self.had_mark
        return len(self.text[:index].encode("utf-8")) + 3 * self.had_mark

    def _snippet(self, index: int) -> str:
        return repr(excerpt(self.text, 2 * _SNIPPET_CHARACTERS, at=index))

    def _describe(self, message: str, index: int) -> str:
        mark = self.text[index : index + 1]
        found = f"found {mark!r}" if mark else "the text ends"
        for start, words in _WORDS:
            if message.startswith(start):
                return words.format(found=found, mark=ord(mark or "\0"))
        return message[:1].lower() + message[1:]


WRITE_FAILURES: Final = (TypeError, ValueError, AttributeError, RecursionError)
"""What encoding a value may raise."""

_SCALARS: Final = frozenset((str, int, bool, type(None)))

_Way: TypeAlias = "tuple[_Way, str | int] | None"
"""The way to a node, as a chain from the node up to the root."""


def explain_unwritable(
    value: Any, error: Exception, write: Callable[[Any], object]
) -> JSONTextError:
    """Return our error for the one that `write(value)` raised."""
    if isinstance(error, RecursionError):
        message = "the value contains itself, or is nested too deep to be written as JSON."
        return JSONTextError(Code.JSON_TOO_DEEP, message, hint="Write a flatter value.")
    culprit, way, reason = _find_culprit(value, error, write)
    where = _describe_way(way)
    if isinstance(reason, UnicodeEncodeError):
        message = f"the text{where} has half of a surrogate pair, which is not a character."
        return JSONTextError(Code.LONE_SURROGATE, message, hint="Mend the text before writing it.")
    if isinstance(culprit, int) and isinstance(reason, ValueError):
        message = f"the integer{where} has more than 4300 digits."
        return JSONTextError(Code.NUMBER_TOO_LONG, message, hint="Write it as a string.")
    message = (
        f"a value of type {type(culprit).__name__}{where} cannot be written as JSON: {reason}."
    )
    hint = "Use dict, list, str, int, float, bool or None."
    return JSONTextError(Code.NOT_SERIALIZABLE, message, hint=hint)


def find_non_finite(value: Any) -> JSONTextError | None:
    """Return an error when a float in the value is NaN or infinite."""
    if _is_plainly_finite(value):
        return None
    for node, way in _walk(value):
        if isinstance(node, float) and node - node != 0:
            message = f"the number{_describe_way(way)} is {node}, which JSON cannot express."
            hint = "Write null or a string instead."
            return JSONTextError(Code.NON_FINITE_NUMBER, message, hint=hint)
    return None


def _walk(value: Any) -> Iterator[tuple[Any, _Way]]:
    """Yield every part of a value with the way to it, each container once."""
    stack: list[tuple[Any, _Way]] = [(value, None)]
    seen: set[int] = set()
    while stack:
        node, way = stack.pop()
        yield node, way
        if node is not None and not isinstance(node, (str, int, float)) and id(node) not in seen:
            seen.add(id(node))
            members = reversed(list(_members(node)))
            stack.extend((child, (way, key)) for key, child in members)


def _is_plainly_finite(value: Any) -> bool:
    """Tell, for plain JSON values and without noting the way, that all floats are finite."""
    nodes: list[Any] = [value]
    for node in nodes:
        kind: Any = node.__class__
        if kind is dict:
            nodes.extend(node.values())
        elif kind is list:
            nodes.extend(node)
        elif kind is float:
            if node - node != 0:
                return False
        elif kind not in _SCALARS:
            return False
    return True


def _members(node: Any) -> Iterable[tuple[str | int, Any]]:
    if isinstance(node, dict):
        return cast("dict[str, Any]", node).items()
    if isinstance(node, (list, tuple, set, frozenset)):
        return enumerate(cast("list[Any]", node))
    try:
        plain: Any = msgspec.to_builtins(node)
    except WRITE_FAILURES:
        return ()
    return _members(plain) if isinstance(plain, (dict, list)) else ()


def _find_culprit(
    value: Any, error: Exception, write: Callable[[Any], object]
) -> tuple[Any, _Way, Exception]:
    """Return the part that cannot be written, the way to it, and why."""
    for node, way in _walk(value):
        if not isinstance(node, (dict, list, tuple)):
            failure = _failure(node, write)
            if failure:
                return node, way, failure
        for key in cast("dict[Any, Any]", node) if isinstance(node, dict) else ():
            failure = _failure({key: None}, write)
            if failure:
                return key, way, failure
    return value, None, error


def _failure(part: Any, write: Callable[[Any], object]) -> Exception | None:
    try:
        write(part)
    except WRITE_FAILURES as error:
        return error
    return None


def _describe_way(way: _Way) -> str:
    if way is None:
        return ""
    parts: list[str | int] = []
    while way is not None:
        way, part = way
        parts.append(part)
    return f" at {render_pointer(reversed(parts))!r}"
