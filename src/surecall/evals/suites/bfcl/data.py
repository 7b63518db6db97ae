"""The leaderboard's data: where they lie, how a row is read, and its functions as tools."""

import zipfile
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from typing import Any, Final, cast

from msgspec import Struct

from surecall.base.errors import Code, ConfigError, JSONTextError, SetupError
from surecall.base.records import Message, ToolSpec
from surecall.text import decode

_TYPES: Final = {
    "dict": "object",
    "float": "number",
    "tuple": "array",
    "list": "array",
    "int": "integer",
    "bool": "boolean",
    "str": "string",
}
_NOT_SCHEMA: Final = frozenset({"optional"})
_MAX_NAME_CHARS: Final = 64


def tools_of(functions: Sequence[dict[str, Any]]) -> tuple[ToolSpec, ...]:
    """Return the tools that these functions are, under names that every provider takes."""
    return tuple(
        ToolSpec(
            name=name,
            description=function.get("description", ""),
            parameters=json_schema_of(function["parameters"]),
            effect="read",
        )
        for name, function in zip(tool_names(functions), functions, strict=True)
    )


def tool_names(functions: Sequence[dict[str, Any]]) -> tuple[str, ...]:
    """Return a name for each function, in order: letters, digits, `_` and `-`, all different."""
    taken: list[str] = []
    for function in functions:
        clean = "".join(
            c if (c.isascii() and c.isalnum()) or c in "_-" else "_" for c in function["name"]
        )
        name, number = clean[:_MAX_NAME_CHARS], 2
        while name in taken:
            name = f"{clean[: _MAX_NAME_CHARS - 4]}_{number}"
            number += 1
        taken.append(name)
    return tuple(taken)


def json_schema_of(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters as JSON Schema: only the names of types differ."""
    schema: dict[str, Any] = {}
    for key, value in parameters.items():
        if key == "type":
            if value != "any":
                schema[key] = _TYPES.get(value, value)
        elif key == "properties":
            schema[key] = {name: json_schema_of(each) for name, each in value.items()}
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            schema[key] = json_schema_of(cast("dict[str, Any]", value))
        elif key not in _NOT_SCHEMA:
            schema[key] = value
    return schema


BFCL_PACKAGE: Final = "bfcl-eval"

_DATA: Final = "bfcl_eval/data"
_CODE: Final = "bfcl_eval/eval_checker/multi_turn_eval/func_source_code"
_PREFIX: Final = "BFCL_v4_"
_HINT: Final = (
    f"Run: pip install --no-deps {BFCL_PACKAGE}==2026.3.23, or name its wheel: bfcl:PATH.whl."
)


class BfclEntry(Struct, frozen=True, kw_only=True):
    """One case as the package states it."""

    id: str
    messages: tuple[Message, ...]
    functions: tuple[dict[str, Any], ...]
    """Name, description and parameters, with Python's names for types."""
    answers: tuple[dict[str, dict[str, list[Any]]], ...] | None = None
    """Per expected call: its name, and for each parameter the values that count as right."""


class BfclFiles:
    """Where the package lies: opens one file by its place in it."""

    def __init__(self, version: str, read: Callable[[str], bytes]) -> None:
        self.version = version
        """Version of the package the data came with."""
        self._read = read

    def rows(self, name: str) -> list[Any]:
        """Read a file with one object per line."""
        rows: list[Any] = []
        for number, line in enumerate(self._bytes(name).splitlines(), start=1):
            if line.strip():
                try:
                    rows.append(decode(line))
                except JSONTextError as error:
                    raise refuse_data(name, f"line {number}: {error}") from error
        return rows

    def entries(self, category: str) -> tuple[BfclEntry, ...]:
        """Read a category, such as `simple_python`, with its answers where it has some."""
        name, *of_answers = list_files(category)
        questions = self.rows(name)
        answers = {row["id"]: row["ground_truth"] for each in of_answers for row in self.rows(each)}
        try:
            return tuple(_read_entry(row, answers) for row in questions)
        except (KeyError, TypeError, IndexError) as error:
            raise refuse_data(name, f"a row is not as expected ({error!r})") from error

    def fingerprint(self, names: Iterable[str]) -> str:
        """Return a short hash over some files."""
        digest = sha256()
        for name in names:
            digest.update(self._bytes(name))
        return digest.hexdigest()[:12]

    def read_code(self, name: str) -> bytes:
        """Read the source of an API."""
        try:
            return self._read(f"{_CODE}/{name}")
        except (KeyError, OSError, zipfile.BadZipFile) as error:
            raise refuse_data(name, str(error)) from error

    def _bytes(self, name: str) -> bytes:
        try:
            return self._read(f"{_DATA}/{name}")
        except (KeyError, OSError, zipfile.BadZipFile) as error:
            raise refuse_data(name, str(error)) from error


def list_files(category: str) -> tuple[str, ...]:
    """Return the file with the questions of a category, and that of its answers if it has some."""
    name = f"{_PREFIX}{category}.json"
    return (name,) if "relevance" in category else (name, f"possible_answer/{name}")


def find_bfcl(path: "str | Path | None" = None) -> BfclFiles:
    """Find the data: in a wheel or folder that is named, or in the installed package.

    Args:
        path: A wheel of `bfcl-eval`, or a folder with `bfcl_eval/data` in it.

    Raises:
        SetupError: `SUITE_DATA_MISSING`, with the command that installs it.
    """
    if path is None:
        return _find_installed()
    place = Path(path).expanduser()
    if place.is_dir():
        if (place / _DATA).is_dir():
            return BfclFiles("unknown", lambda name: (place / name).read_bytes())
    elif zipfile.is_zipfile(place):
        return _open_wheel(place)
    raise SetupError(
        Code.SUITE_DATA_MISSING,
        f"there is no data of {BFCL_PACKAGE} at {place}.",
        hint=_HINT,
    )


def _find_installed() -> BfclFiles:
    try:
        found = metadata.distribution(BFCL_PACKAGE)
    except metadata.PackageNotFoundError as error:
        raise SetupError(
            Code.SUITE_DATA_MISSING,
            f"the suite bfcl needs the data of {BFCL_PACKAGE}, which is not installed.",
            hint=_HINT,
        ) from error
    folder = Path(str(found.locate_file("")))
    return BfclFiles(found.version, lambda name: (folder / name).read_bytes())


def _open_wheel(path: Path) -> BfclFiles:
    with zipfile.ZipFile(path) as archive:
        about = next((n for n in archive.namelist() if n.endswith(".dist-info/METADATA")), None)
        text = archive.read(about).decode("utf-8", "replace") if about else ""
    version = next(
        (line[len("Version:") :].strip() for line in text.splitlines() if line[:8] == "Version:"),
        "unknown",
    )

    def read(name: str) -> bytes:
        with zipfile.ZipFile(path) as archive:
            return archive.read(name)

    return BfclFiles(version, read)


def _read_entry(row: dict[str, Any], answers: dict[Any, Any]) -> BfclEntry:
    said = row["question"][0]
    return BfclEntry(
        id=row["id"],
        messages=tuple(Message(message["role"], message["content"]) for message in said),
        functions=tuple(row["function"]),
        answers=tuple(answers[row["id"]]) if answers else None,
    )


def refuse_data(name: str, reason: str) -> ConfigError:
    """Return the error of a file that is not as expected."""
    return ConfigError(
        Code.SUITE_DATA_UNREADABLE,
        f"{name} of {BFCL_PACKAGE} cannot be read: {reason}.",
        hint=_HINT,
    )
