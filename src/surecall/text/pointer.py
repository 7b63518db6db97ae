"""JSON pointers (RFC 6901), and the patches that are made of them (RFC 6902)."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

from surecall.base.errors import Code, JSONTextError, did_you_mean

_BAD_TILDE: Final = re.compile(r"~(?![01])")
_INDEX: Final = re.compile(r"(?:0|[1-9][0-9]{0,17})\Z", re.ASCII)
_MAX_SHOWN_KEYS: Final = 8
_MAX_SHOWN_CHARACTERS: Final = 60
_TYPE_NAMES: Final[tuple[tuple[type | tuple[type, ...], str], ...]] = (
    (type(None), "null"),
    (bool, "a boolean"),
    ((int, float), "a number"),
    (str, "a string"),
    (list, "an array"),
    (dict, "an object"),
)


def parse_pointer(text: str) -> tuple[str, ...]:
    """Return the unescaped parts of a pointer; the empty pointer has none."""
    if not text:
        return ()
    if not text.startswith("/"):
        hint = "A pointer is empty or starts with '/', like '/items/0/name'."
        raise _refusal(
            f"the pointer {quote_text(text)} does not start with '/'", position=0, hint=hint
        )
    bad = _BAD_TILDE.search(text)
    if bad:
        hint = "Write '~' as '~0' and '/' as '~1' inside a part."
        message = f"the pointer {quote_text(text)} has a '~' that is not '~0' or '~1'"
        raise _refusal(message, position=bad.start(), hint=hint)
    parts = text[1:].split("/")
    if "~" in text:
        parts = [part.replace("~1", "/").replace("~0", "~") for part in parts]
    return tuple(parts)


def render_pointer(parts: Iterable[str | int]) -> str:
    """Return the pointer that leads through the given keys and indexes."""
    return "".join(["/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts])


def resolve_pointer(document: Any, pointer: str) -> Any:
    """Return the value a pointer leads to, or raise `INVALID_POINTER` saying where it ended."""
    return _resolve_parts(document, parse_pointer(pointer))


def _resolve_parts(document: Any, parts: tuple[str, ...]) -> Any:
    """Return the value that already parsed parts lead to."""
    value = document
    for count in range(len(parts)):
        value = _step_into(value, parts, count)
    return value


def _step_into(container: Any, parts: tuple[str, ...], count: int) -> Any:
    """Return the child that part number `count` names; the parts before it led here."""
    part = parts[count]
    if isinstance(container, dict):
        members = cast("dict[str, Any]", container)
        if part in members:
            return members[part]
        raise _missing_key(members, part, parts[:count])
    if isinstance(container, list):
        elements = cast("list[Any]", container)
        return elements[_array_index(parts, count, len(elements))]
    kind = json_type(container)
    raise _refusal(
        f"{_describe_place(parts[:count])} is {kind} and has no {quote_text(part)} in it"
    )


def _array_index(parts: tuple[str, ...], count: int, length: int) -> int:
    """Return the index below `length` that part number `count` names, or raise."""
    part = parts[count]
    array = _describe_place(parts[:count])
    if part == "-":
        raise _refusal(f"'-' is the place after the last element of {array}, not an element")
    if not _INDEX.match(part):
        hint = "An index is 0 or a positive whole number without leading zeros."
        raise _refusal(f"{quote_text(part)} is not an index of {array}", hint=hint)
    index = int(part)
    if index >= length:
        why = f"the last possible is {length - 1}" if length else "it is empty"
        raise _refusal(f"index {part} is out of range for {array}: {why}")
    return index


def _missing_key(container: dict[str, Any], part: str, before: tuple[str, ...]) -> JSONTextError:
    """Return the error for a key that is not there; it names some that are."""
    if not container:
        return _refusal(f"{_describe_place(before)} has no key {quote_text(part)}: it is empty")
    keys = [quote_text(str(key)) for _, key in zip(range(_MAX_SHOWN_KEYS), container, strict=False)]
    more = ", …" if len(container) > _MAX_SHOWN_KEYS else ""
    message = (
        f"{_describe_place(before)} has no key {quote_text(part)}; it has {', '.join(keys)}{more}"
    )
    return _refusal(message)


def _describe_place(parts: tuple[str, ...]) -> str:
    """Return words for the value that parts lead to."""
    return f"the value at {quote_text(render_pointer(parts))}" if parts else "the document"


def quote_text(text: str) -> str:
    """Return the text quoted and bounded, fit for a message."""
    if len(text) > _MAX_SHOWN_CHARACTERS:
        text = text[: _MAX_SHOWN_CHARACTERS - 1] + "…"
    return repr(text)


def json_type(value: Any) -> str:
    """Return the JSON name of a value's type, with its article."""
    for kind, name in _TYPE_NAMES:
        if isinstance(value, kind):
            return name
    return f"a {type(value).__name__}"


def _refusal(
    message: str, *, position: int | None = None, hint: str | None = None
) -> JSONTextError:
    return JSONTextError(Code.INVALID_POINTER, f"{message}.", position=position, hint=hint)


_OPERATIONS: Final = ("add", "copy", "move", "remove", "replace", "test")

# `copy` can double a document with every operation: all copies together stay below this.
_MAX_COPIED_VALUES: Final = 1_000_000


def apply_patch(document: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    """Return the document as the operations leave it, all of them; the one given never changes.

    Raises:
        JSONTextError: `INVALID_PATCH`, naming the operation that could not be applied.
    """
    if not isinstance(operations, (list, tuple)):
        message = f"a patch is an array of operations, not {json_type(operations)}."
        raise JSONTextError(Code.INVALID_PATCH, message)
    work = _Work(document)
    for index, operation in enumerate(cast("Sequence[Any]", operations)):
        try:
            work.apply(operation)
        except JSONTextError as error:
            message = f"operation {index}{_describe_operation(operation)}: {error.message}"
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
        name = _read_text(members, "op")
        path = parse_pointer(_read_text(members, "path"))
        match name:
            case "add":
                self._put(path, self._copy(_read_value(members)))
            case "remove":
                self._remove(path)
            case "replace":
                self._put(path, self._copy(_read_value(members)), is_new=False)
            case "move":
                self._move(parse_pointer(_read_text(members, "from")), path)
            case "copy":
                source = _resolve_parts(self.document, parse_pointer(_read_text(members, "from")))
                self._put(path, self._copy(source))
            case "test":
                if not _are_equal(_resolve_parts(self.document, path), _read_value(members)):
                    raise _refusal("the value there is not the one expected")
            case _:
                message = f"{quote_text(name)} is not an operation"
                raise _refusal(message, hint=did_you_mean(name, _OPERATIONS))

    def _put(self, path: tuple[str, ...], value: Any, *, is_new: bool = True) -> None:
        """Put a value at a path: a new one, or instead of the one that is there."""
        if not path:
            self.document = value
            return
        parent, last, count = self._parent(path)
        if not (is_new and isinstance(parent, (dict, list))):
            _step_into(parent, path, count)
        if isinstance(parent, dict):
            parent[last] = value
        elif not is_new:
            parent[int(last)] = value
        else:
            elements = cast("list[Any]", parent)
            length = len(elements)
            index = length if last == "-" else _array_index(path, count, length + 1)
            elements.insert(index, value)

    def _remove(self, path: tuple[str, ...]) -> Any:
        if not path:
            raise _refusal("the whole document cannot be removed")
        parent, last, count = self._parent(path)
        value = _step_into(parent, path, count)
        del parent[last if isinstance(parent, dict) else int(last)]
        return value

    def _move(self, origin: tuple[str, ...], path: tuple[str, ...]) -> None:
        if origin == path:
            _resolve_parts(self.document, origin)
        elif path[: len(origin)] == origin:
            raise _refusal("a value cannot be moved into itself")
        else:
            self._put(path, self._remove(origin))

    def _parent(self, path: tuple[str, ...]) -> tuple[Any, str, int]:
        count = len(path) - 1
        return _resolve_parts(self.document, path[:count]), path[count], count

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
            for key in _list_keys(container):
                if isinstance(container[key], (dict, list)):
                    container[key] = container[key].copy()
                    stack.append(container[key])
        return holder[0]


def _read_text(operation: Mapping[str, Any], name: str) -> str:
    value = operation.get(name)
    if not isinstance(value, str):
        found = json_type(value) if name in operation else "missing"
        raise _refusal(f"its {name!r} must be a string and is {found}")
    return value


def _read_value(operation: Mapping[str, Any]) -> Any:
    if "value" not in operation:
        raise _refusal("its 'value' is missing")
    return operation["value"]


def _are_equal(left: Any, right: Any) -> bool:
    """Tell whether two JSON values are equal: numbers by value, and never to a boolean."""
    stack: list[tuple[Any, Any]] = [(left, right)]
    while stack:
        one, other = stack.pop()
        if json_type(one) != json_type(other):
            return False
        if json_type(one) in ("an object", "an array"):
            if set(_list_keys(one)) != set(_list_keys(other)):
                return False
            stack.extend((one[key], other[key]) for key in _list_keys(one))
        elif one != other:
            return False
    return True


def _list_keys(container: Any) -> Iterable[Any]:
    if isinstance(container, dict):
        return list(cast("dict[str, Any]", container))
    return range(len(container))


def _describe_operation(operation: Any) -> str:
    if not isinstance(operation, Mapping):
        return ""
    members = cast("Mapping[str, Any]", operation)
    words = [str(members[key])[:60] for key in ("op", "path") if isinstance(members.get(key), str)]
    return f" ({' '.join(words)})" if words else ""
