"""Changing a document by operations: all of them, or none.

`set` writes a value, `delete` takes one away, `append` adds to the end of a list, `insert` adds to
a list at an index. Objects that are missing on the way to a value that is written are made.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from msgspec import UNSET

from surecall.errors import Code, WorkspaceError, did_you_mean
from surecall.jsontext import apply_patch
from surecall.jsontext.pointer import json_type, shown

from .pointers import find_value, list_index, split_path

__all__ = ["OPERATIONS", "apply_operations", "copy_value"]

OPERATIONS: Final = ("append", "delete", "insert", "set")

_MAX_PADDING: Final = 1_000
"""How many nulls one operation may put between the end of a list and what it sets."""


def apply_operations(
    document: dict[str, Any], operations: Sequence[Any], *, root: str = "draft"
) -> dict[str, Any]:
    """Return the document as the operations leave it; the one given is never changed.

    Args:
        document: The object to start from.
        operations: Objects with `op`, `path`, and `value` and `index` where they are needed.
        root: What every path begins with.

    Raises:
        WorkspaceError: `ARGUMENT_ERROR`, naming the operation that could not be applied.
    """
    work = _Work(copy_value(document), root)
    for index, operation in enumerate(operations):
        try:
            work.apply(operation)
        except WorkspaceError as error:
            message = f"operation {index}: {error.message}"
            raise WorkspaceError(error.code, message, hint=error.hint) from None
    return work.document


def copy_value(value: Any) -> Any:
    """Return a deep copy of a JSON value, made without recursion."""
    return apply_patch(value, ())


class _Work:
    def __init__(self, document: dict[str, Any], root: str) -> None:
        self.document = document
        self._root = root

    def apply(self, operation: Any) -> None:
        if not isinstance(operation, Mapping):
            raise _refusal(f"an operation is an object, not {json_type(operation)}.")
        members = cast("Mapping[str, Any]", operation)
        name = _text(members, "op")
        parts = self._parts(_text(members, "path"))
        match name:
            case "set":
                self._set(parts, _value(members))
            case "delete":
                self._delete(parts)
            case "append":
                value = _value(members)
                items = self._list_at(parts)
                items.append(value)
            case "insert":
                self._insert(parts, members.get("index"), _value(members))
            case _:
                raise _refusal(f"{shown(name)} is no operation.", did_you_mean(name, OPERATIONS))

    def _parts(self, path: str) -> tuple[str, ...]:
        if not path.startswith(f"/{self._root}/"):
            raise _refusal(
                f"the path {shown(path)} is not inside the {self._root}.",
                f"A path here begins with '/{self._root}/'.",
            )
        return split_path(path)[1:]

    def _set(self, parts: tuple[str, ...], value: Any) -> None:
        if parts:
            _put(self._parent(parts), parts[-1], value)
        elif isinstance(value, dict):
            self.document = cast("dict[str, Any]", value)
        else:
            raise _refusal(f"the whole {self._root} can only be set to an object.")

    def _delete(self, parts: tuple[str, ...]) -> None:
        if not parts:
            raise _refusal(f"the whole {self._root} cannot be deleted.")
        parent = find_value(self.document, parts[:-1])
        if isinstance(parent, dict):
            cast("dict[str, Any]", parent).pop(parts[-1], None)
        elif isinstance(parent, list):
            items = cast("list[Any]", parent)
            index = _index(parts[-1], len(items))
            if 0 <= index < len(items):
                del items[index]

    def _insert(self, parts: tuple[str, ...], index: Any, value: Any) -> None:
        if not isinstance(index, int) or isinstance(index, bool):
            raise _refusal(f"its 'index' must be a whole number and is {json_type(index)}.")
        is_new = find_value(self.document, parts) is UNSET
        items = self._list_at(parts)
        index = 0 if is_new else index
        if not 0 <= index <= len(items):
            raise _refusal(f"index {index} is not in the list of {len(items)} items.")
        items.insert(index, value)

    def _list_at(self, parts: tuple[str, ...]) -> list[Any]:
        """Return the list at a path, made anew when nothing is there."""
        found = find_value(self.document, parts)
        if found is UNSET and parts:
            found = []
            _put(self._parent(parts), parts[-1], found)
        if not isinstance(found, list):
            raise _refusal(f"there is {json_type(found)} at the path, not an array.")
        return cast("list[Any]", found)

    def _parent(self, parts: tuple[str, ...]) -> Any:
        """Return what holds the last part; objects that are missing on the way are made."""
        container: Any = self.document
        for part in parts[:-1]:
            found: Any = find_value(container, (part,))
            if found is UNSET or found is None:
                found = dict[str, Any]()
                _put(container, part, found)
            container = found
        return container


def _put(container: Any, part: str, value: Any) -> None:
    if isinstance(container, dict):
        container[part] = value
        return
    if not isinstance(container, list):
        raise _refusal(f"there is {json_type(container)} on the way, which holds no {shown(part)}.")
    items = cast("list[Any]", container)
    index = _index(part, len(items))
    if not 0 <= index <= len(items) + _MAX_PADDING:
        raise _refusal(f"index {part} is too far outside the list of {len(items)} items.")
    items.extend([None] * (index + 1 - len(items)))
    items[index] = value


def _index(part: str, length: int) -> int:
    index = list_index(part, length)
    if index is None:
        raise _refusal(f"{shown(part)} is no index of a list.")
    return index


def _text(operation: Mapping[str, Any], name: str) -> str:
    value = operation.get(name)
    if not isinstance(value, str):
        found = json_type(value) if name in operation else "missing"
        raise _refusal(f"its {name!r} must be a string and is {found}.")
    return value


def _value(operation: Mapping[str, Any]) -> Any:
    if "value" not in operation:
        raise _refusal("its 'value' is missing.")
    return copy_value(operation["value"])


def _refusal(message: str, hint: str | None = None) -> WorkspaceError:
    return WorkspaceError(Code.ARGUMENT_ERROR, message, hint=hint)
