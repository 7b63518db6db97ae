"""Cases as rows of a CSV, JSONL or Parquet file: each row a case, with the keys of TOML."""

import csv
import importlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from surecall.base.errors import Code, ConfigError, JSONTextError
from surecall.base.json_values import as_fields
from surecall.evals.export.tables import check_parquet
from surecall.text import decode

ROW_FILES: Final = frozenset({".csv", ".jsonl", ".parquet"})
"""The endings of files that have cases as rows."""

_GUIDE: Final = "`surecall docs write-your-own-cases` has every column."
_CASE_KEYS: Final = frozenset({"id", "messages", "prompt"})
"""A line of JSON with none of these speaks of the whole file."""
_LISTS: Final = frozenset({"absent", "tools"})
_CHECKS: Final = frozenset(
    {"ignore_case", "state", "text_equals", "text_matches", "text_number", "text_schema"}
)
_LIST_CHECKS: Final = frozenset({"text_contains", "text_lacks", "text_one_of"})
_JSON: Final = frozenset({"calls", "messages", "options", "results", "text_number", "text_schema"})
_FLAGS: Final = frozenset({"control", "ignore_case"})
_CALL: Final = frozenset({"arguments", "match", "tool"})
"""Columns of the one call that a row expects."""
_YES_NO: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class CaseRows(Struct, frozen=True, kw_only=True):
    """The cases of a file, each with its line, and what the file says of all of them."""

    place: Path
    data: bytes
    cases: list[dict[str, Any]]
    lines: list[int]
    suite: dict[str, Any] = {}


def read_rows(place: Path, data: bytes) -> CaseRows:
    """Read the rows of a file.

    Raises:
        ConfigError: It cannot be read; the message has the line.
    """
    if place.suffix == ".parquet":
        found = _read_parquet(place)
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise _refuse(place, None, f"it is not UTF-8: {error}") from error
        found = _read_csv(place, text) if place.suffix == ".csv" else _read_jsonl(place, text)
    cases: list[dict[str, Any]] = []
    lines: list[int] = []
    suite: dict[str, Any] = {}
    for line, row in found:
        if place.suffix == ".jsonl" and not _CASE_KEYS & row.keys():
            suite |= row
            continue
        cases.append({"id": f"row-{line}", **row})
        lines.append(line)
    return CaseRows(place=place, data=data, cases=cases, lines=lines, suite=suite)


def _read_jsonl(place: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = decode(line)
        except JSONTextError as error:
            raise _refuse(place, number, f"it is not JSON: {error.message}") from error
        if not isinstance(row, dict):
            raise _refuse(place, number, "a line must be an object.")
        yield number, as_fields(row)


def _read_csv(place: Path, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        names = [name.strip() for name in next(reader, list[str]())]
        line = reader.line_num + 1
        for cells in reader:
            if len(cells) > len(names):
                raise _refuse(place, line, f"{len(cells)} cells, but {len(names)} columns.")
            given = {name: cell for name, cell in zip(names, cells, strict=False) if cell.strip()}
            if given:
                yield line, _make_case(place, line, given)
            line = reader.line_num + 1
    except csv.Error as error:
        raise _refuse(place, reader.line_num, f"it is not CSV: {error}.") from error


def _read_parquet(place: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    missing = check_parquet()
    if missing is not None:
        raise missing
    duckdb: Any = importlib.import_module("duckdb")
    try:
        with duckdb.connect(":memory:", config={"autoinstall_known_extensions": False}) as database:
            query = "SELECT to_json(t) FROM read_parquet(?) AS t"
            rows = database.execute(query, [str(place)]).fetchall()
    except duckdb.Error as error:
        raise _refuse(place, None, f"it is not Parquet: {error}") from error
    for number, (text,) in enumerate(rows, start=1):
        given = {name: cell for name, cell in as_fields(decode(text)).items() if cell is not None}
        yield number, _make_case(place, number, given)


def _make_case(place: Path, line: int, given: dict[str, Any]) -> dict[str, Any]:
    """Make a case of the cells of a row that say something."""
    case: dict[str, Any] = {}
    call: dict[str, Any] = {}
    checks: dict[str, Any] = {}
    for name, cell in given.items():
        value = _read_cell(place, line, name, cell)
        if name in _CALL:
            call[name] = value
        elif name in _CHECKS or name in _LIST_CHECKS:
            checks[name] = value
        else:
            case[name] = value
    if call and "calls" in case:
        raise _refuse(place, line, "give either `calls` or `tool` and `arguments`.")
    if call:
        case["calls"] = [call]
    return case | ({"checks": checks} if checks else {})


def _read_cell(place: Path, line: int, name: str, cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    if name in _FLAGS:
        if cell.strip().lower() not in _YES_NO:
            raise _refuse(place, line, f"{name} is {cell!r}, and must be yes or no.")
        return _YES_NO[cell.strip().lower()]
    is_list = name in _LISTS or name in _LIST_CHECKS
    if name not in _JSON and name != "arguments" and not (is_list and cell.lstrip()[:1] == "["):
        return [cell] if is_list else cell
    try:
        return decode(cell)
    except JSONTextError as error:
        raise _refuse(place, line, f"{name} is not JSON: {error.message}") from error


def _refuse(place: Path, line: int | None, message: str) -> ConfigError:
    where = f"{place}, line {line}" if line is not None else str(place)
    return ConfigError(Code.INVALID_CASE, f"{where}: {message}", hint=_GUIDE)
