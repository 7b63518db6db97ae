"""Says why a Python value cannot be written as JSON, and where in it the reason is."""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias, cast

import msgspec

from surecall.errors import Code, JSONTextError

from .pointer import render_pointer

__all__ = ["WRITE_FAILURES", "explain_unwritable", "find_non_finite"]

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
        if _contains_itself(value):
            message = "a container that contains itself cannot be written as JSON."
            return JSONTextError(Code.NOT_SERIALIZABLE, message, hint="Write a finite value.")
        message = "the value is nested too deep to be written as JSON."
        return JSONTextError(Code.JSON_TOO_DEEP, message, hint="Write a flatter value.")
    culprit, way, reason = _find_culprit(value, error, write)
    where = f" at {_pointer(way)!r}" if way else ""
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
    stack: list[tuple[Any, _Way]] = [(value, None)]
    while stack:
        node, way = stack.pop()
        if isinstance(node, float):
            if node - node != 0:
                where = f" at {_pointer(way)!r}" if way else ""
                message = f"the number{where} is {node}, which JSON cannot express."
                hint = "Write null or a string instead."
                return JSONTextError(Code.NON_FINITE_NUMBER, message, hint=hint)
        elif node is not None and not isinstance(node, (str, int)):
            stack.extend((child, (way, key)) for key, child in _members(node))
    return None


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
    stack: list[tuple[Any, _Way]] = [(value, None)]
    seen: set[int] = set()
    while stack:
        node, way = stack.pop()
        if not _is_container(node):
            failure = _failure(node, write)
            if failure:
                return node, way, failure
        elif id(node) not in seen:
            seen.add(id(node))
            members = list(_members(node))
            for key, _ in members:
                failure = _failure({key: None}, write) if isinstance(node, dict) else None
                if failure:
                    return key, way, failure
            stack.extend((child, (way, key)) for key, child in reversed(members))
    return value, None, error


def _is_container(node: Any) -> bool:
    return isinstance(node, (dict, list, tuple))


def _failure(part: Any, write: Callable[[Any], object]) -> Exception | None:
    try:
        write(part)
    except WRITE_FAILURES as error:
        return error
    return None


def _contains_itself(value: Any) -> bool:
    """Tell whether a container is among its own descendants, without recursion."""
    open_ids: set[int] = set()
    done_ids: set[int] = set()
    stack: list[tuple[Any, bool]] = [(value, False)]
    while stack:
        node, is_left = stack.pop()
        if not _is_container(node):
            continue
        identity = id(node)
        if is_left:
            open_ids.discard(identity)
            done_ids.add(identity)
        elif identity in open_ids:
            return True
        elif identity not in done_ids:
            open_ids.add(identity)
            stack.append((node, True))
            stack.extend((child, False) for _, child in _members(node))
    return False


def _pointer(way: _Way) -> str:
    parts: list[str | int] = []
    while way is not None:
        way, part = way
        parts.append(part)
    return render_pointer(reversed(parts))
