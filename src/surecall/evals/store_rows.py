"""Trials as they are kept: a row of JSON, and a compressed body."""

import math
import zlib
from typing import Any, Final, cast

import msgspec

from surecall.errors import JSONTextError
from surecall.jsontext import decode_own, encode, mend_surrogates
from surecall.tools.envelopes import plain_data

from .records import Cell, TrialBody, TrialRow

__all__ = [
    "COLUMNS",
    "cell_key",
    "columns_of",
    "decode_body",
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

_COMPRESSION: Final = 1
"""Bodies are text that repeats itself; more effort gains little and costs several times as much."""


def columns_of(run: int, cell: int, row: TrialRow) -> tuple[Any, ...]:
    """Return the values of a row of the table, in the order of `COLUMNS`."""
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
        row.code,
        row.category,
        row.elapsed_ms,
        row.started_at,
        encode_kept(row).decode(),
    )


def decode_row(text: str) -> TrialRow:
    """Return the trial of a stored row."""
    return msgspec.convert(decode_own(text.encode()), TrialRow)


def encode_body(body: TrialBody) -> bytes:
    """Return a body as it is kept."""
    return zlib.compress(encode_kept(body), _COMPRESSION)


def decode_body(data: bytes) -> TrialBody:
    """Return the body of a stored trial."""
    return msgspec.convert(decode_own(zlib.decompress(data)), TrialBody)


def encode_kept(value: Any) -> bytes:
    """Encode anything a trial may hold: what JSON cannot carry is replaced, never refused."""
    try:
        return encode(value)
    except JSONTextError:
        return encode(_writable(value))


def cell_key(cell: Cell) -> tuple[str, ...]:
    """Return what tells one cell from another."""
    return cast("tuple[str, ...]", msgspec.structs.astuple(cell))


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
