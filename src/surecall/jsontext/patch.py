"""JSON patches (RFC 6902), applied whole or not at all."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from surecall.errors import Code, JSONTextError, did_you_mean

from .pointer import (
    array_index,
    json_type,
    parse_pointer,
    resolve_parts,
    shown,
    step_into,
)

__all__ = ["apply_patch"]

_OPERATIONS: Final = ("add", "copy", "move", "remove", "replace", "test")

# `copy` can double a document with every operation: all copies together stay below this.
_MAX_COPIED_VALUES: Final = 1_000_000


def apply_patch(document: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    """Return the document as the operations leave it; the one given is never changed.

    Raises:
        JSONTextError: `INVALID_PATCH`, naming the operation that could not be applied.
    """
    if not isinstance(operations, (list, tuple)):
        raise _refusal(f"a patch is an array of operations, not {json_type(operations)}")
    work = _Work(document)
    for index, operation in enumerate(cast("Sequence[Any]", operations)):
        try:
            work.apply(operation)
        except JSONTextError as error:
            message = f"operation {index}{_name(operation)}: {error.message}"
            raise JSONTextError(Code.INVALID_PATCH, message, hint=error.hint) from None
    return work.document


class _Work:
    """A private copy of the document, changed step by step."""

    def __init__(self, document: Any) -> None:
        self._copied = 0
        self.document = self._copy(document, limit=None)

    def apply(self, operation: Any) -> None:
        if not isinstance(operation, Mapping):
            raise _refusal(f"an operation is an object, not {json_type(operation)}")
        members = cast("Mapping[str, Any]", operation)
        name = _text(members, "op")
        path = parse_pointer(_text(members, "path"))
        match name:
            case "add":
                self._add(path, self._copy(_value(members)))
            case "remove":
                self._remove(path)
            case "replace":
                self._replace(path, self._copy(_value(members)))
            case "move":
                self._move(parse_pointer(_text(members, "from")), path)
            case "copy":
                source = resolve_parts(self.document, parse_pointer(_text(members, "from")))
                self._add(path, self._copy(source))
            case "test":
                if not _same(resolve_parts(self.document, path), _value(members)):
                    raise _refusal("the value there is not the one expected")
            case _:
                raise _refusal(f"{shown(name)} is no operation", did_you_mean(name, _OPERATIONS))

    def _add(self, path: tuple[str, ...], value: Any) -> None:
        if not path:
            self.document = value
            return
        parent, last, count = self._parent(path)
        if isinstance(parent, dict):
            parent[last] = value
        elif isinstance(parent, list):
            elements = cast("list[Any]", parent)
            length = len(elements)
            index = length if last == "-" else array_index(path, count, length + 1)
            elements.insert(index, value)
        else:
            step_into(parent, path, count)

    def _remove(self, path: tuple[str, ...]) -> Any:
        if not path:
            raise _refusal("the whole document cannot be removed")
        parent, last, count = self._parent(path)
        value = step_into(parent, path, count)
        del parent[last if isinstance(parent, dict) else int(last)]
        return value

    def _replace(self, path: tuple[str, ...], value: Any) -> None:
        if not path:
            self.document = value
            return
        parent, last, count = self._parent(path)
        step_into(parent, path, count)
        parent[last if isinstance(parent, dict) else int(last)] = value

    def _move(self, origin: tuple[str, ...], path: tuple[str, ...]) -> None:
        if origin == path:
            resolve_parts(self.document, origin)
        elif path[: len(origin)] == origin:
            raise _refusal("a value cannot be moved into itself")
        else:
            self._add(path, self._remove(origin))

    def _parent(self, path: tuple[str, ...]) -> tuple[Any, str, int]:
        count = len(path) - 1
        return resolve_parts(self.document, path[:count]), path[count], count

    def _copy(self, value: Any, *, limit: int | None = _MAX_COPIED_VALUES) -> Any:
        """Return a deep copy, made without recursion."""
        if not isinstance(value, (dict, list)):
            return value
        holder: list[Any] = [value]
        stack: list[Any] = [holder]
        while stack:
            container = stack.pop()
            if limit is not None:
                self._copied += len(container)
                if self._copied > limit:
                    raise _refusal(f"the patch copies more than {limit} values")
            for key in _keys(container):
                if isinstance(container[key], (dict, list)):
                    container[key] = container[key].copy()
                    stack.append(container[key])
        return holder[0]


def _text(operation: Mapping[str, Any], name: str) -> str:
    value = operation.get(name)
    if not isinstance(value, str):
        found = json_type(value) if name in operation else "missing"
        raise _refusal(f"its {name!r} must be a string and is {found}")
    return value


def _value(operation: Mapping[str, Any]) -> Any:
    if "value" not in operation:
        raise _refusal("its 'value' is missing")
    return operation["value"]


def _same(left: Any, right: Any) -> bool:
    """Tell whether two JSON values are equal: numbers by value, and never to a boolean."""
    stack: list[tuple[Any, Any]] = [(left, right)]
    while stack:
        one, other = stack.pop()
        if json_type(one) != json_type(other):
            return False
        if json_type(one) in ("an object", "an array"):
            if set(_keys(one)) != set(_keys(other)):
                return False
            stack.extend((one[key], other[key]) for key in _keys(one))
        elif one != other:
            return False
    return True


def _keys(container: Any) -> Iterable[Any]:
    if isinstance(container, dict):
        return list(cast("dict[str, Any]", container))
    return range(len(container))


def _name(operation: Any) -> str:
    if not isinstance(operation, Mapping):
        return ""
    members = cast("Mapping[str, Any]", operation)
    words = [str(members[key])[:60] for key in ("op", "path") if isinstance(members.get(key), str)]
    return f" ({' '.join(words)})" if words else ""


def _refusal(message: str, hint: str | None = None) -> JSONTextError:
    return JSONTextError(Code.INVALID_PATCH, f"{message}.", hint=hint)
