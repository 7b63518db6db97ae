"""Patches of a workspace document: paths, operations, and what each changed."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from msgspec import UNSET, UnsetType

from surecall.base.errors import Code, JSONTextError, WorkspaceError, did_you_mean
from surecall.text import apply_patch, parse_pointer
from surecall.text.pointer import json_type, quote_text

_MAX_PARTS: Final = 64
_QUOTES: Final = "\"'`"


def refusal(message: str, hint: str | None = None) -> WorkspaceError:
    """Build the error for what a workspace does not do."""
    return WorkspaceError(Code.ARGUMENT_ERROR, message, hint=hint)


def not_usable(error: JSONTextError) -> WorkspaceError:
    """Build the error for what is not a pointer, or cannot be JSON."""
    return refusal(error.message, error.hint)


def too_large(message: str) -> WorkspaceError:
    """Build the error for what is above a limit."""
    return WorkspaceError(Code.WORKSPACE_TOO_LARGE, message, hint="Send less.")


def clean_pointer(text: str) -> str:
    """Return a pointer as a model meant it: without quotes around it or `#` before it."""
    text = text.strip().strip(_QUOTES).strip()
    if text.startswith("#/"):
        text = text[1:]
    return text if text.startswith("/") else f"/{text}"


def split_path(pointer: str) -> tuple[str, ...]:
    """Return the parts of a path; empty ones at its end do not count.

    Raises:
        WorkspaceError: `ARGUMENT_ERROR`, when it is not a pointer or too deep.
    """
    try:
        parts = parse_pointer(pointer)
    except JSONTextError as error:
        raise not_usable(error) from None
    count = len(parts)
    while count and not parts[count - 1]:
        count -= 1
    if count > _MAX_PARTS:
        raise refusal(f"the path {quote_text(pointer)} has more than {_MAX_PARTS} parts.")
    return parts[:count]


def find_value(document: Any, parts: tuple[str, ...]) -> Any | UnsetType:
    """Return the value that the parts lead to, or `UNSET` when they lead nowhere."""
    value = document
    for part in parts:
        if isinstance(value, dict):
            value = cast("dict[str, Any]", value).get(part, UNSET)
        elif isinstance(value, list):
            items = cast("list[Any]", value)
            index = list_index(part, len(items))
            value = items[index] if index is not None and 0 <= index < len(items) else UNSET
        else:
            return UNSET
    return value


def list_index(part: str, length: int) -> int | None:
    """Return the index that a part names, counted from the end when it is negative.

    The index may lie outside the list; `None` means that the part is not a number.
    """
    digits = part.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 9:
        return None
    index = int(part)
    return index + length if index < 0 else index


def is_under(parts: tuple[str, ...], prefix: tuple[str, ...]) -> bool:
    """Tell whether a path is the given one or lies below it."""
    return parts[: len(prefix)] == prefix


OPERATIONS: Final = ("append", "delete", "insert", "set")
"""The operations of a workspace patch."""

_MAX_PADDING: Final = 1_000
"""How many nulls one operation may put between the end of a list and what it sets."""


def apply_operations(
    document: dict[str, Any], operations: Sequence[Any], *, root: str = "draft"
) -> dict[str, Any]:
    """Return the document as the operations leave it; the one given is never changed.

    Args:
        document: The object to start from.
        operations: Objects with `op`, `path`, and `value` and `index` where they are needed.
        root: The first part of every path.

    Raises:
        WorkspaceError: `ARGUMENT_ERROR`, naming the operation that could not be applied.
    """
    work = _Work(copy_value(document), root)
    for index, operation in enumerate(operations):
        try:
            work.apply(operation)
        except WorkspaceError as error:
            raise WorkspaceError(
                error.code, f"operation {index}: {error.message}", hint=error.hint
            ) from None
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
            raise refusal(f"an operation is an object, not {json_type(operation)}.")
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
                self._list_at(parts).append(value)
            case "insert":
                self._insert(parts, members.get("index"), _value(members))
            case _:
                raise refusal(
                    f"{quote_text(name)} is not an operation.", did_you_mean(name, OPERATIONS)
                )

    def _parts(self, path: str) -> tuple[str, ...]:
        if not path.startswith(f"/{self._root}/"):
            raise refusal(
                f"the path {quote_text(path)} is not inside the {self._root}.",
                f"A path here begins with '/{self._root}/'.",
            )
        return split_path(path)[1:]

    def _set(self, parts: tuple[str, ...], value: Any) -> None:
        if parts:
            _put(self._parent(parts), parts[-1], value)
        elif isinstance(value, dict):
            self.document = cast("dict[str, Any]", value)
        else:
            raise refusal(f"the whole {self._root} can only be set to an object.")

    def _delete(self, parts: tuple[str, ...]) -> None:
        if not parts:
            raise refusal(f"the whole {self._root} cannot be deleted.")
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
            raise refusal(f"its 'index' must be a whole number and is {json_type(index)}.")
        is_new = find_value(self.document, parts) is UNSET
        items = self._list_at(parts)
        index = 0 if is_new else index
        if not 0 <= index <= len(items):
            raise refusal(f"index {index} is not in the list of {len(items)} items.")
        items.insert(index, value)

    def _list_at(self, parts: tuple[str, ...]) -> list[Any]:
        """Return the list at a path, made anew when nothing is there."""
        found = find_value(self.document, parts)
        if found is UNSET and parts:
            found = []
            _put(self._parent(parts), parts[-1], found)
        if not isinstance(found, list):
            raise refusal(f"there is {json_type(found)} at the path, not an array.")
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
        raise refusal(
            f"there is {json_type(container)} on the way, which holds no {quote_text(part)}."
        )
    items = cast("list[Any]", container)
    index = _index(part, len(items))
    if not 0 <= index <= len(items) + _MAX_PADDING:
        raise refusal(f"index {part} is too far outside the list of {len(items)} items.")
    items.extend([None] * (index + 1 - len(items)))
    items[index] = value


def _index(part: str, length: int) -> int:
    index = list_index(part, length)
    if index is None:
        raise refusal(f"{quote_text(part)} is not an index of a list.")
    return index


def _text(operation: Mapping[str, Any], name: str) -> str:
    value = operation.get(name)
    if not isinstance(value, str):
        found = json_type(value) if name in operation else "missing"
        raise refusal(f"its {name!r} must be a string and is {found}.")
    return value


def _value(operation: Mapping[str, Any]) -> Any:
    if "value" not in operation:
        raise refusal("its 'value' is missing.")
    return copy_value(operation["value"])
