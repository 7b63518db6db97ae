"""Docstrings in Google, NumPy and reST style: the prose, and one text per argument."""

import inspect
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

_ARGUMENT_TITLES = frozenset(
    {
        "args",
        "arguments",
        "attributes",
        "keyword args",
        "keyword arguments",
        "other parameters",
        "parameters",
        "params",
    }
)
_OTHER_TITLES = frozenset(
    {
        "example",
        "examples",
        "note",
        "notes",
        "raises",
        "references",
        "return",
        "returns",
        "see also",
        "todo",
        "warning",
        "warnings",
        "warns",
        "yield",
        "yields",
    }
)
_TITLES = _ARGUMENT_TITLES | _OTHER_TITLES
_ARGUMENT_FIELDS = frozenset(
    {"arg", "argument", "attribute", "ivar", "key", "keyword", "param", "parameter", "var"}
)
_OTHER_FIELDS = frozenset(
    {"except", "exception", "meta", "raise", "raises", "return", "returns", "rtype", "type"}
    | {"vartype", "yield", "yields", "ytype"}
)


class Docstring(Struct, frozen=True):
    """A docstring taken apart."""

    summary: str = ""
    """The first paragraph, on one line."""
    text: str = ""
    """All prose, without the sections."""
    arguments: dict[str, str] = {}
    """The text of each argument, on one line."""


def parse_docstring(doc: str | None) -> Docstring:
    """Take a docstring apart; a text in no known style is all prose."""
    lines = inspect.cleandoc(doc or "").splitlines()
    prose: list[str] = []
    arguments: dict[str, str] = {}
    at = 0
    while at < len(lines):
        if title := _underlined_title(lines, at):
            end = _numpy_end(lines, at + 2)
            if title in _ARGUMENT_TITLES:
                arguments.update(_items(lines[at + 2 : end], _numpy_names))
        elif title := _colon_title(lines, at):
            end = _indented_end(lines, at + 1)
            if title in _ARGUMENT_TITLES:
                arguments.update(_items(lines[at + 1 : end], _google_names))
        elif field := _field_name(lines[at]):
            end = _indented_end(lines, at + 1)
            if len(field) > 1 and field[0] in _ARGUMENT_FIELDS:
                first = lines[at][1:].partition(":")[2]
                arguments[field[-1].lstrip("*")] = _one_line([first, *lines[at + 1 : end]])
        else:
            if lines[at].strip() or (prose and prose[-1]):
                prose.append(lines[at])
            end = at + 1
        at = end
    return Docstring(_first_paragraph(prose), "\n".join(prose).strip(), arguments)


def _underlined_title(lines: Sequence[str], at: int) -> str:
    title = lines[at].strip().lower()
    if title not in _TITLES or at + 1 >= len(lines):
        return ""
    rule = lines[at + 1].strip()
    return title if len(rule) > 2 and (not rule.strip("-") or not rule.strip("=")) else ""


def _numpy_end(lines: Sequence[str], at: int) -> int:
    while at < len(lines) and not _underlined_title(lines, at):
        at += 1
    return at


def _colon_title(lines: Sequence[str], at: int) -> str:
    line = lines[at].rstrip()
    title = line[:-1].lower()
    if not line.endswith(":") or title not in _TITLES:
        return ""
    body = lines[at + 1] if at + 1 < len(lines) else ""
    return title if body[:1].isspace() else ""


def _indented_end(lines: Sequence[str], at: int) -> int:
    end = at
    while at < len(lines) and (not lines[at] or lines[at][0].isspace()):
        at += 1
        if lines[at - 1].strip():
            end = at
    return end


def _field_name(line: str) -> list[str]:
    """Return the words between the colons of `:param int x: text`, if it is such a field."""
    if not line.startswith(":"):
        return []
    head, colon, _ = line[1:].partition(":")
    words = head.split()
    if not colon or not words or words[0] not in _ARGUMENT_FIELDS | _OTHER_FIELDS:
        return []
    return words


def _google_names(line: str) -> tuple[list[str], str]:
    head, text = _split_outside_brackets(line)
    return [head.partition("(")[0].strip()], text


def _numpy_names(line: str) -> tuple[list[str], str]:
    return [name.strip() for name in line.partition(":")[0].split(",")], ""


def _items(
    lines: Sequence[str], names_of: Callable[[str], tuple[list[str], str]]
) -> dict[str, str]:
    indents = [len(line) - len(line.lstrip()) for line in lines]
    base = next((i for i, line in zip(indents, lines, strict=True) if line.strip()), 0)
    texts: dict[str, list[str]] = {}
    current: list[str] = []
    for indent, line in zip(indents, lines, strict=True):
        if indent > base or not line.strip():
            current.append(line)
            continue
        names, text = names_of(line.strip())
        names = [name.lstrip("*\\") for name in names]
        if all(name.isidentifier() for name in names):
            current = [text]
            texts.update(dict.fromkeys(names, current))
        else:
            current.append(line)
    return {name: _one_line(parts) for name, parts in texts.items()}


def _split_outside_brackets(line: str) -> tuple[str, str]:
    depth = 0
    for at, character in enumerate(line):
        if character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character == ":" and depth <= 0:
            return line[:at], line[at + 1 :]
    return "", line


def _first_paragraph(lines: Iterable[str]) -> str:
    first: list[str] = []
    for line in lines:
        if line.strip():
            first.append(line)
        elif first:
            break
    return _one_line(first)


def _one_line(lines: Iterable[str]) -> str:
    return " ".join(" ".join(lines).split())
