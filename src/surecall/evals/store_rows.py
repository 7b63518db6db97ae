"""Runs and trials as they are kept: rows of JSON with a checksum, and compressed bodies.

Whatever a file holds in place of a row is either decoded to what was kept or is a `ValueError`.
"""

import math
import zlib
from collections.abc import Mapping
from typing import Any, Final, Literal, cast, get_args

import msgspec
from msgspec import Struct

from surecall.errors import JSONTextError
from surecall.jsontext import decode_own, encode, mend_surrogates
from surecall.loop.stored import checksum, seal_line, split_sealed
from surecall.tools.outputs import plain_data

from .manifest import Manifest
from .records import Cell, TrialBody, TrialRow

__all__ = [
    "COLUMNS",
    "RunInfo",
    "RunStatus",
    "cell_key",
    "check_types",
    "columns_of",
    "decode_body",
    "decode_info",
    "decode_row",
    "encode_body",
    "encode_kept",
]

COLUMNS: Final = (
    "run",
    "idx",
    "cell",
    "case_id",
    "trial",
    "seed",
    "simulated",
    "control",
    "seed_ok",
    "strict_ok",
    "outcome",
    "code",
    "category",
    "elapsed_ms",
    "started_at",
    "row",
)
"""The columns of the table `trials`."""

_SET_APART: Final = frozenset({"run", "cell", "row"})
"""Columns that do not repeat a field of the row."""

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
    seed_ok: int = 0
    strict_ok: int = 0
    tags: tuple[str, ...] = ()
    created_at: float = 0.0
    """Seconds since 1970."""
    ended_at: float | None = None

    @property
    def is_complete(self) -> bool:
        """Whether every trial is there."""
        return self.done >= self.units


def columns_of(run: int, cell: int, row: TrialRow) -> tuple[Any, ...]:
    """Return the values of a row of the table, in the order of `COLUMNS`."""
    text = encode_kept(row)
    return (
        run,
        row.index,
        cell,
        mend_surrogates(row.case),
        row.trial,
        row.seed,
        row.simulated,
        row.control,
        row.seed_ok,
        row.strict_ok,
        row.outcome,
        row.code and mend_surrogates(row.code),
        row.category and mend_surrogates(row.category),
        row.elapsed_ms,
        row.started_at,
        seal_line(text, checksum(b"", text)).decode(),
    )


def check_types(found: Mapping[str, Any]) -> None:
    """Raise when a column holds something of another type, or a moment that has no date."""
    for name in found.keys():  # noqa: SIM118 - iterating over a row of sqlite yields its values
        value, types = found[name], _TYPES.get(name)
        if types is not None and not isinstance(value, types):
            raise ValueError(f"{name} holds {type(value).__name__}")
        if name.endswith("_at") and value is not None and not 0 <= value <= _LATEST_S:
            raise ValueError(f"{name} is {value}")


def decode_row(found: Mapping[str, Any]) -> TrialRow:
    """Return the trial of a stored row, which must say the same as the columns beside it."""
    text, check = split_sealed(found["row"].encode())
    if check is not None and check != checksum(b"", text):  # rows of before have none
        raise ValueError("the checksum of a trial does not fit")
    row = msgspec.convert(_decode_json(text), TrialRow)
    columns = dict(zip(COLUMNS, columns_of(0, 0, row), strict=True))
    for name in COLUMNS:
        if name not in _SET_APART and found[name] != columns[name]:
            raise ValueError(f"{name} is not what the row says")
    return row


def decode_info(row: Mapping[str, Any]) -> RunInfo:
    """Return what is known of a stored run."""
    manifest = msgspec.convert(_decode_json(row["manifest"].encode()), Manifest)
    if row["status"] not in get_args(RunStatus):
        raise ValueError(f"a run is {row['status']!r}")
    if row["units"] != manifest.units:
        raise ValueError("a run has another size than its manifest")
    if min(row["done"], row["seed_ok"], row["strict_ok"]) < 0:
        raise ValueError("a run has less than no trials")
    return RunInfo(
        id=row["id"],
        status=row["status"],
        manifest=manifest,
        units=row["units"],
        done=row["done"],
        seed_ok=row["seed_ok"],
        strict_ok=row["strict_ok"],
        tags=tuple(sorted((row["tags"] or "").split(","))) if row["tags"] else (),
        created_at=row["created_at"],
        ended_at=row["ended_at"],
    )


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


def encode_kept(value: Any) -> bytes:
    """Encode anything a trial may hold: what JSON cannot carry is replaced, never refused."""
    try:
        return encode(value)
    except JSONTextError:
        return encode(_writable(value))


def cell_key(cell: Cell) -> tuple[str, ...]:
    """Return what tells one cell from another."""
    return tuple(map(mend_surrogates, msgspec.structs.astuple(cell)))


def _writable(value: Any) -> Any:
    """Return plain data: halves of characters and numbers without end are replaced."""
    try:
        return _mended(plain_data(value))
    except TypeError:
        return _mended(msgspec.to_builtins(value, str_keys=True, enc_hook=repr))


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return mend_surrogates(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {_mended(k): _mended(v) for k, v in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_mended(item) for item in cast("list[Any]", value)]
    return value
