"""On which line of a TOML file a key stands, for messages about it."""

from typing import Final

__all__ = ["KeyPath", "LineMap", "show_path"]

KeyPath = tuple[str | int, ...]
"""The way to a value, such as `("cases", 0, "prompt")`."""

_QUOTES: Final = ('"""', "'''")


class LineMap:
    """The lines of headers and keys, as far as each has a line of its own."""

    def __init__(self, text: str) -> None:
        self._lines: dict[KeyPath, int] = {}
        self._counts: dict[KeyPath, int] = {}
        self._read(text)

    def line_of(self, path: KeyPath) -> int | None:
        """Return the line of a key, or of the closest table or key around it."""
        while path:
            if path in self._lines:
                return self._lines[path]
            path = path[:-1]
        return None

    def _read(self, text: str) -> None:
        table: KeyPath = ()
        closing = ""
        for number, line in enumerate(text.splitlines(), 1):
            if closing:
                closing = _still_open(line, closing)
                continue
            stripped = line.strip()
            if stripped.startswith("[["):
                table = self._begin_item(stripped[2:].partition("]]")[0])
                self._lines.setdefault(table, number)
            elif stripped.startswith("[") and "=" not in stripped.partition("]")[0]:
                table = self._resolve(_parts(stripped[1:].partition("]")[0]))
                self._lines.setdefault(table, number)
            else:
                key, equals, value = stripped.partition("=")
                if equals and _is_key(key):
                    self._lines.setdefault((*table, *_parts(key)), number)
                    closing = _opened(value)

    def _begin_item(self, header: str) -> KeyPath:
        """Return the path of the next item of an array of tables."""
        *outer, last = _parts(header) or ("",)
        path = (*self._resolve(tuple(outer)), last)
        self._counts[path] = self._counts.get(path, -1) + 1
        return (*path, self._counts[path])

    def _resolve(self, parts: tuple[str, ...]) -> KeyPath:
        """Return a path with the number of the item that was begun last in every array."""
        path: KeyPath = ()
        for part in parts:
            path = (*path, part)
            if path in self._counts:
                path = (*path, self._counts[path])
        return path


def show_path(path: KeyPath) -> str:
    """Return a path as text, such as `cases[0].prompt`."""
    shown = ""
    for part in path:
        if isinstance(part, int):
            shown += f"[{part}]"
        else:
            shown += f".{part}" if shown else part
    return shown


def _parts(header: str) -> tuple[str, ...]:
    return tuple(part.strip().strip("\"'") for part in header.split(".") if part.strip())


def _is_key(text: str) -> bool:
    return bool(text.strip()) and not any(char in "#{}[]," for char in text)


def _opened(value: str) -> str:
    """Return the quotes that end the text which a value begins and does not end."""
    value = value.strip()
    for quotes in _QUOTES:
        if value.startswith(quotes):
            return quotes if quotes not in value[3:] else ""
    return ""


def _still_open(line: str, closing: str) -> str:
    return "" if closing in line else closing
