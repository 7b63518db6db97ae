"""Transcripts for a report: which of them go in, and how they are packed.

A body is compressed JSON in base64, so that it costs little and is only unpacked when it is looked
at. Parts that many trials share, such as the tools, are packed once. The page unpacks them with
`assets/bodies.js`; the two change together.
"""

import base64
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from surecall.evals.records import TrialBody, TrialRow
from surecall.loop.stored import encode_kept

BodyChoice = Literal["none", "failed", "all"]
"""`failed` also takes one passing trial of each case, and stops where the file gets too large."""

_MIN_SHARED_BYTES: Final = 256
_COMPRESSION: Final = 9


class RowMark(Struct, frozen=True):
    """As much of a row as decides whether its body goes in."""

    index: int
    scenario: str
    case: tuple[Any, ...]
    """What trials have in common that are repetitions of one another."""
    failed: bool

    @classmethod
    def of(cls, row: TrialRow) -> "RowMark":
        """Take the mark of a row."""
        case = (*msgspec.structs.astuple(row.cell), row.case)
        failed = not (row.strict_ok and row.original_ok)
        return cls(row.index, row.cell.scenario, case, failed=failed)


class PackedBodies(Struct, frozen=True):
    """Bodies, ready to be written."""

    shared: tuple[str, ...]
    """Parts that several bodies have."""
    packed: dict[str, str]
    """By index of the trial."""
    left_out: int
    """How many were wanted and found no room."""


def order_bodies(marks: Sequence[RowMark], choice: BodyChoice) -> list[int]:
    """Return which bodies are wanted, the most wanted first.

    Failures come first, and of these one of every case before the second of any; so that whatever
    there is room for, every case can be looked into.
    """
    if choice == "none":
        return []
    if choice == "all":
        return [mark.index for mark in marks]
    failures = _in_rounds(mark for mark in marks if mark.failed)
    passing: dict[tuple[Any, ...], int] = {}
    for mark in marks:
        if not mark.failed:
            passing.setdefault(mark.case, mark.index)
    return [*failures, *passing.values()]


def _in_rounds(marks: Iterable[RowMark]) -> list[int]:
    met: dict[tuple[Any, ...], int] = {}
    ranked: list[tuple[int, int]] = []
    for mark in marks:
        place = met.get(mark.case, 0)
        met[mark.case] = place + 1
        ranked.append((place, mark.index))
    return [index for _, index in sorted(ranked)]


def pack_bodies(
    order: Iterable[int],
    body_of: Callable[[int], TrialBody | None],
    *,
    max_bytes: int | None = None,
) -> PackedBodies:
    """Pack bodies in this order; those for which there is no more room are counted."""
    shared: dict[bytes, int] = {}
    texts: list[str] = []
    packed: dict[int, str] = {}
    used = left_out = 0
    for index in order:
        body = body_of(index)
        if body is None:
            continue
        known = len(texts)
        text = _deflate(encode_kept(_with_shared_parts(body, shared, texts)))
        size = len(text) + sum(map(len, texts[known:])) + 16 * (1 + len(texts) - known)
        if max_bytes is not None and used + size > max_bytes:
            left_out += 1
            del texts[known:]
            shared = {part: place for part, place in shared.items() if place < known}
            continue
        used += size
        packed[index] = text
    return PackedBodies(tuple(texts), {str(i): packed[i] for i in sorted(packed)}, left_out)


def _with_shared_parts(
    body: TrialBody, shared: dict[bytes, int], texts: list[str]
) -> dict[str, Any]:
    """Return the body with the larger parts of request and config replaced by their number."""
    parts: list[tuple[str, str, int]] = []
    own: dict[str, dict[str, Any]] = {"request": {}, "config": {}}
    for field, rest in own.items():
        for name, value in getattr(body, field).items():
            data = encode_kept(value)
            if len(data) < _MIN_SHARED_BYTES:
                rest[name] = value
                continue
            if data not in shared:
                shared[data] = len(texts)
                texts.append(_deflate(data))
            parts.append((field, name, shared[data]))
    return {**own, "parts": parts, "transcript": body.transcript, "state": body.state}


def _deflate(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, _COMPRESSION)).decode("ascii")
