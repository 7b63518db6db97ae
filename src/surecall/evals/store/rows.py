"""Runs and trials as they are kept: rows of JSON with a checksum, and compressed bodies.

Whatever a file holds in place of a row is either decoded to what was kept or is a `ValueError`.
"""

import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from surecall.base.errors import JSONTextError
from surecall.evals.records import Cell, Manifest, TrialBody, TrialRow
from surecall.loop.stored import checksum, encode_kept, seal_line, split_sealed
from surecall.text import decode_own, mend_surrogates

_REPEATED: Final[Mapping[str, Callable[[TrialRow], Any]]] = {
    "idx": lambda row: row.index,
    "case_id": lambda row: mend_surrogates(row.case),
    "trial": lambda row: row.trial,
    "seed": lambda row: row.seed,
    "simulated": lambda row: row.simulated,
    "control": lambda row: row.control,
    "seed_ok": lambda row: row.original_ok,
    "strict_ok": lambda row: row.strict_ok,
    "outcome": lambda row: row.outcome,
    "code": lambda row: row.code and mend_surrogates(row.code),
    "category": lambda row: row.category and mend_surrogates(row.category),
    "elapsed_ms": lambda row: row.elapsed_ms,
    "started_at": lambda row: row.started_at,
}
"""Columns that repeat a field of the row; the original verdict kept its old name."""

COLUMNS: Final = ("run", "cell", *_REPEATED, "row")
"""The columns of the table `trials`."""

_LATEST_S: Final = 253_402_300_799
"""The last second that has a date."""

_TEXT, _WHOLE, _NUMBER, _NONE = (str,), (int,), (float, int), type(None)
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    **dict.fromkeys(("id", "status", "manifest", "case_id", "outcome", "row", "name"), _TEXT),
    **dict.fromkeys(("code", "category", "tags"), (str, _NONE)),
    **dict.fromkeys(("number", "units", "done", "idx", "trial", "seed"), _WHOLE),
    **dict.fromkeys(("simulated", "control", "seed_ok", "strict_ok"), _WHOLE),
    **dict.fromkeys(("elapsed_ms", "started_at", "created_at"), _NUMBER),
    "ended_at": (*_NUMBER, _NONE),
    "body": (bytes,),
}
"""What the columns hold; a file may hold anything in any of them."""

RunStatus = Literal["running", "interrupted", "complete"]
"""`running` is also what a run is called whose process was killed."""

_COMPRESSION: Final = 1
"""Bodies are text that repeats itself; more effort gains little and costs several times as much."""


class RunInfo(Struct, frozen=True, kw_only=True):
    """One run, as it is listed."""

    id: str
    status: RunStatus
    manifest: Manifest
    units: int
    done: int
    original_ok: int = 0
    strict_ok: int = 0
    errors: int = 0
    """Trials that the endpoint failed: in no rate."""
    tags: tuple[str, ...] = ()
    created_at: float = 0.0
    """Seconds since 1970."""
    ended_at: float | None = None

    @property
    def judged(self) -> int:
        """How many trials say something about the model."""
        return self.done - self.errors

    @property
    def is_complete(self) -> bool:
        """Whether every trial is there."""
        return self.done >= self.units


def columns_of(run: int, cell: int, row: TrialRow) -> tuple[Any, ...]:
    """Return the values of a row of the table, in the order of `COLUMNS`."""
    text = encode_kept(row)
    repeated = (read(row) for read in _REPEATED.values())
    return (run, cell, *repeated, seal_line(text, checksum(b"", text)).decode())


def check_types(found: Mapping[str, Any]) -> None:
    """Raise when a column holds something of another type, or a moment that has no date."""
    for name in found.keys():  # noqa: SIM118 - iterating over a row of sqlite yields its values
        value, types = found[name], _TYPES.get(name)
        if types is not None and not isinstance(value, types):
            raise ValueError(f"{name} holds {type(value).__name__}")
        if name.endswith("_at") and value is not None and not 0 <= value <= _LATEST_S:
            raise ValueError(f"{name} is {value}")


def decode_sealed(found: Mapping[str, Any]) -> TrialRow:
    """Return the trial in the column `row`, which must be as it was written."""
    text, check = split_sealed(found["row"].encode())
    if check is not None and check != checksum(b"", text):  # rows of before have none
        raise ValueError("the checksum of a trial does not fit")
    return msgspec.convert(_decode_json(text), TrialRow)


def decode_row(found: Mapping[str, Any]) -> TrialRow:
    """Return the trial of a stored row, which must say the same as its other columns."""
    row = decode_sealed(found)
    for name, read in _REPEATED.items():
        if found[name] != read(row):
            raise ValueError(f"{name} is not what the row says")
    return row


def decode_info(row: Mapping[str, Any]) -> RunInfo:
    """Return what is known of a stored run."""
    info = msgspec.convert(
        {
            **dict(row),
            "manifest": _decode_json(row["manifest"].encode()),
            "original_ok": row["seed_ok"],
            "tags": sorted(row["tags"].split(",")) if row["tags"] else (),
        },
        RunInfo,
    )
    if info.units != info.manifest.units:
        raise ValueError("a run has another size than its manifest")
    if min(info.done, info.original_ok, info.strict_ok, info.errors, info.judged) < 0:
        raise ValueError("a run has less than no trials")
    return info


def _decode_json(text: bytes) -> Any:
    try:
        return decode_own(text)
    except JSONTextError as error:
        raise ValueError(error.message.rstrip(".")) from error


def encode_body(body: TrialBody) -> bytes:
    """Return a body as it is kept."""
    return zlib.compress(encode_kept(body), _COMPRESSION)


def decode_body(data: bytes) -> TrialBody:
    """Return the body of a stored trial."""
    try:
        return msgspec.convert(_decode_json(zlib.decompress(data)), TrialBody)
    except zlib.error as error:
        raise ValueError("a body cannot be unpacked") from error


def cell_key(cell: Cell) -> tuple[str, ...]:
    """Return what tells one cell from another."""
    return tuple(map(mend_surrogates, msgspec.structs.astuple(cell)))
