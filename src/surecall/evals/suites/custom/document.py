"""A file of cases as data: every key, its type and line, and what is wrong with other files."""

import math
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import NoneType
from typing import Any, Final, Literal, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType

from surecall.base.errors import Code, ConfigError, JSONTextError, did_you_mean
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Effect
from surecall.text import decode

from .rows import ROW_FILES, CaseRows, read_rows

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
                closing = "" if closing in line else closing
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
                    closing = _find_closing(value)

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


def _find_closing(value: str) -> str:
    """Return the quotes that end the text which a value begins and does not end."""
    value = value.strip()
    for quotes in _QUOTES:
        if value.startswith(quotes):
            return quotes if quotes not in value[3:] else ""
    return ""


_MAX_FILE_BYTES: Final = 10 * 1024 * 1024
_PLAIN: Final = (str, int, float, bool, NoneType)
_GUIDE: Final = "`surecall docs write-your-own-cases` has every key."


class ErrorDoc(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An error that a tool answers with."""

    code: str
    message: str
    hint: str | None = None


class ResultDoc(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a tool answers to some calls."""

    tool: str = ""
    """Which tool; only where the result belongs to a case."""
    when: dict[str, Any] = {}
    """Arguments that the call must have; without any, every call is meant."""
    result: Any = UNSET
    error: ErrorDoc | None = None


class ToolDoc(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tool that only answers what the file says."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    """JSON Schema of the arguments; without one there are none."""
    effect: Effect = "write"
    result: Any = UNSET
    """What it answers when none of `results` fits."""
    results: tuple[ResultDoc, ...] = ()
    """The first that fits is the answer."""


class CallDoc(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call that is expected."""

    tool: str = ""
    arguments: dict[str, Any] = {}
    match: Literal["exact", "subset"] = "exact"
    """`exact`: these arguments and no others; `subset`: these, and others may be there."""
    one_of: dict[str, tuple[Any, ...]] = {}
    """For each of these arguments, the values that count as right."""
    absent: tuple[str, ...] = ()
    """Arguments that must not be there."""
    any_of: "tuple[CallDoc, ...]" = ()
    """Calls of which any is right, in place of the fields above."""


class ChecksDoc(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is looked at when the run is over."""

    text_equals: str | None = None
    text_one_of: tuple[str, ...] = ()
    text_contains: tuple[str, ...] = ()
    text_lacks: tuple[str, ...] = ()
    text_number: float | None = None
    """A number that the text has to name, in digits."""
    text_matches: str | None = None
    """A regular expression that has to match somewhere in the text."""
    text_schema: dict[str, Any] | None = None
    """A JSON schema that the text has to fulfil."""
    ignore_case: bool = False
    state: Any = None
    """A function in Python, as `FILE.py:name`, or `name` in the file with the tools."""

    @property
    def checks_text(self) -> bool:
        """Whether anything is asked of the final text."""
        return self != ChecksDoc(ignore_case=self.ignore_case, state=self.state)


class MessageDoc(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One message of the conversation so far."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str


class CaseDoc(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One case."""

    id: str
    scenario: str = "cases"
    """The group in which it is counted."""
    prompt: str | None = None
    messages: tuple[MessageDoc, ...] = ()
    system: str | None = None
    tools: tuple[str, ...] | None = None
    """The tools that are offered; all of the file when left out."""
    options: dict[str, Any] = {}
    calls: tuple[CallDoc, ...] | None = None
    """The calls that are expected; an empty list means that none may be made."""
    order: Literal["given", "any"] = "given"
    extra_calls: Literal["refuse", "allow"] = "refuse"
    absent: tuple[str, ...] = ()
    """Tools that must not be called."""
    results: tuple[ResultDoc, ...] = ()
    """What tools answer in this case; looked at before what is said of the tool."""
    checks: ChecksDoc = ChecksDoc()
    control: bool = False


class SuiteDoc(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole file."""

    cases: tuple[CaseDoc, ...] = ()
    name: str | None = None
    system: str | None = None
    trials: int = 1
    drawn: bool = False
    """Whether the cases are a sample of many, and not each one that stands for itself."""
    options: dict[str, Any] = {}
    tools_from: str | None = None
    tools: tuple[ToolDoc, ...] = ()
    cases_from: str | None = None
    """A CSV, JSONL or Parquet file with more cases, relative to this file."""


_KINDS: Final[Mapping[str, type[Struct]]] = {
    "any_of": CallDoc,
    "calls": CallDoc,
    "cases": CaseDoc,
    "checks": ChecksDoc,
    "error": ErrorDoc,
    "messages": MessageDoc,
    "results": ResultDoc,
    "tools": ToolDoc,
}
"""The contents of the tables under a key."""
_UNKNOWN_KEY: Final = "Object contains unknown field `"


class Document:
    """A file that was read, with a way to say what is wrong in it, and where."""

    def __init__(
        self,
        place: Path,
        content: Mapping[str, Any],
        text: str = "",
        rows: CaseRows | None = None,
    ) -> None:
        """Check the content.

        Args:
            place: The file.
            content: What is in it; cases of rows come after its own.
            text: The file as text, to find the lines of keys.
            rows: The cases that come from rows.
        """
        self.place = place
        self._lines = LineMap(text)
        self._rows = rows
        self._own_cases = len(as_list(content.get("cases")))
        if rows is not None:
            content = {**content, "cases": [*as_list(content.get("cases")), *rows.cases]}
        self.suite = self._convert(content)

    def refusal(self, path: KeyPath, message: str, hint: str | None = None) -> ConfigError:
        """Return the error for something that is wrong at a place in the file."""
        place, line = self._find_place(path)
        where = [str(place)]
        if line is not None:
            where.append(f"line {line}")
        if path:
            where.append(show_path(path))
        return ConfigError(Code.INVALID_CASE, f"{', '.join(where)}: {message}", hint=hint or _GUIDE)

    def _find_place(self, path: KeyPath) -> tuple[Path, int | None]:
        number = path[1] if path[:1] == ("cases",) and len(path) > 1 else None
        if self._rows is not None and isinstance(number, int) and number >= self._own_cases:
            return self._rows.place, self._rows.lines[number - self._own_cases]
        return self.place, self._lines.line_of(path)

    def _convert(self, content: Mapping[str, Any]) -> SuiteDoc:
        try:
            return msgspec.convert(content, SuiteDoc)
        except msgspec.ValidationError as error:
            message, _, at = str(error).partition(" - at `$")
            path = _parse_path(at.rstrip("`"))
            if not message.startswith(_UNKNOWN_KEY):
                raise self.refusal(path, f"{message}.") from error
        key = message.removeprefix(_UNKNOWN_KEY).rstrip("`")
        table = next((part for part in reversed(path) if isinstance(part, str)), "")
        hint = did_you_mean(key, _KINDS.get(table, SuiteDoc).__struct_fields__)
        raise self.refusal((*path, key), f"there is no key {key!r} here.", hint)

    def check_json(self, value: Any, path: KeyPath) -> None:
        """Refuse a value that no model could send, such as a date of TOML's own."""
        waiting = [value]
        while waiting:
            item: Any = waiting.pop()
            if isinstance(item, Mapping):
                waiting += cast("Mapping[Any, Any]", item).values()
            elif isinstance(item, list | tuple):
                waiting += cast("list[Any]", item)
            elif not isinstance(item, _PLAIN) or (
                isinstance(item, float) and not math.isfinite(item)
            ):
                message = f"{item!s:.80} ({type(item).__name__}) has no form in JSON."
                raise self.refusal(path, message, "Write dates and times as text, in quotes.")


def read_document(place: Path) -> tuple[Document, bytes]:
    """Read a file of cases; return it and all bytes that decide about the cases.

    Raises:
        ConfigError: It cannot be read, is of another form, or has keys or values that are not
            known.
    """
    data = read_bytes(place)
    if place.suffix in ROW_FILES:
        rows = read_rows(place, data)
        return Document(place, rows.suite, rows=rows), data
    is_json = place.suffix == ".json"
    try:
        text = data.decode("utf-8")
        content = decode(text) if is_json else tomllib.loads(text)
    except (
        UnicodeDecodeError,
        tomllib.TOMLDecodeError,
        JSONTextError,
        RecursionError,
    ) as error:
        kind = "JSON" if is_json else "TOML"
        reason = error.message if isinstance(error, JSONTextError) else str(error)
        raise ConfigError(
            Code.INVALID_CASE, f"{place} is not a {kind} file: {reason.rstrip('.')}.", hint=_GUIDE
        ) from error
    if not isinstance(content, dict):
        raise ConfigError(Code.INVALID_CASE, f"{place} does not hold an object.", hint=_GUIDE)
    content = as_fields(content)
    # Lines are known of TOML only: there a key has one of its own.
    text = "" if is_json else text
    named = content.get("cases_from")
    if not isinstance(named, str):
        return Document(place, content, text), data
    more = place.parent / named
    if more.suffix not in ROW_FILES:
        raise ConfigError(
            Code.INVALID_CASE, f"{place}: {named} is not a CSV, JSONL or Parquet file.", hint=_GUIDE
        )
    rows = read_rows(more, read_bytes(more))
    if rows.suite:
        raise ConfigError(
            Code.INVALID_CASE, f"{more}: every line must be a case here.", hint=_GUIDE
        )
    return Document(place, content, text, rows), data + rows.data


def read_bytes(place: Path) -> bytes:
    """Read a file of a sensible size."""
    try:
        with place.open("rb") as file:
            data = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        problem = error.strerror or str(error)
        raise ConfigError(
            Code.INVALID_CASE,
            f"{place}: {problem}.",
            hint="Name a .toml, .json, .csv, .jsonl or .py file with cases.",
        ) from error
    if len(data) > _MAX_FILE_BYTES:
        raise ConfigError(
            Code.INVALID_CASE, f"{place} is larger than 10 MiB.", hint="Split it into several."
        )
    return data


def _parse_path(text: str) -> KeyPath:
    """Return the path in a message such as `.cases[0].prompt`."""
    parts: list[str | int] = []
    for part in text.split("."):
        name, *places = part.split("[")
        if name:
            parts.append(name)
        parts += [int(place[:-1]) for place in places if place[:-1].isdigit()]
    return tuple(parts)


def is_given(value: Any) -> bool:
    """Tell whether a key that may hold anything was there at all."""
    return not isinstance(value, UnsetType)
