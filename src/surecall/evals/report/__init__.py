"""The report of a run: one HTML file that needs nothing but a browser."""

import base64
import hashlib
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from html import escape
from pathlib import Path
from string import Template
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, astuple

from surecall.base.errors import Code, ConfigError, did_you_mean
from surecall.base.files import explain_write_errors, write_whole
from surecall.base.pages import SHARED_SCRIPTS, SHEET, join_scripts, read_asset
from surecall.base.records import clip
from surecall.evals.gates import check_stored
from surecall.evals.metrics.tally import tally_rows
from surecall.evals.records import CallFact, Cell, Parts, Reason, TrialBody, TrialRow
from surecall.evals.store import RunInfo, RunStore
from surecall.evals.taxonomy import Failure, classify
from surecall.text import repair_surrogates
from surecall.tools.outputs import encode_kept

from .board import render_answer
from .markup import Html, name

__all__ = ["MAX_FILE_BYTES", "BodyChoice", "render_html", "write_html"]

BodyChoice = Literal["none", "failed", "all"]
"""`failed` also takes one passing trial of each case, and stops where the file gets too large."""

_MIN_SHARED_BYTES: Final = 256
_COMPRESSION: Final = 9


class RowMark(Struct, frozen=True):
    """As much of a row as decides whether its body goes in."""

    index: int
    scenario: str
    case: tuple[Any, ...]
    """The name that repetitions of one trial share."""
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
        for key, value in getattr(body, field).items():
            data = encode_kept(value)
            if len(data) < _MIN_SHARED_BYTES:
                rest[key] = value
                continue
            if data not in shared:
                shared[data] = len(texts)
                texts.append(_deflate(data))
            parts.append((field, key, shared[data]))
    return {**own, "parts": parts, "transcript": body.transcript, "state": body.state}


def _deflate(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, _COMPRESSION)).decode("ascii")


_MAX_TEXT_CHARS: Final = 200
"""Longer texts are whole in the bodies only."""
_NONE: Final = -1

_PLAIN_OF_TRIAL: Final = (
    *("index", "trial", "turns", "requests", "cost_usd", "fabrications", "escalations"),
)
_TEXTS_OF_TRIAL: Final = ("case", "outcome", "code", "category", "error", "text")
_LISTS_OF_CALL: Final = ("rules", "error_codes", "error_kinds")
_TRIAL_FLAGS: Final = (
    "simulated",
    "control",
    "original_ok",
    "strict_ok",
    "cut_by_limit",
    "censored",
)
_CALL_FLAGS: Final = (
    "structured",
    "valid_before",
    "valid_after",
    "changed",
    "executed",
    "ok",
    "lossy",
)


class Columns:
    """Takes trials one after the other and gives them back as columns."""

    def __init__(self) -> None:
        self._texts: dict[str, int] = {}
        self._cells: dict[Cell, int] = {}
        self._failures: dict[Failure, int] = {}
        # The page counts by the first of these, which are there even without any trial.
        self._trials: defaultdict[str, list[Any]] = defaultdict(list, index=[])
        self._calls: defaultdict[str, list[Any]] = defaultdict(list, place=[])

    def add(self, row: TrialRow) -> None:
        """Take one trial."""
        place = len(self._trials["index"])
        for key, value in self._trial_values(row).items():
            self._trials[key].append(value)
        for call in row.calls:
            for key, value in self._call_values(place, call).items():
                self._calls[key].append(value)

    def data(self) -> dict[str, Any]:
        """Return everything that was taken, as plain data."""
        cells = [self._list(astuple(cell)) for cell in self._cells]
        failures = [self._list(astuple(failure)) for failure in self._failures]
        return {
            "texts": list(self._texts),
            "cells": cells,
            "failures": failures,
            "trials": self._trials,
            "calls": self._calls,
        }

    def _trial_values(self, row: TrialRow) -> dict[str, Any]:
        return {
            **{name: getattr(row, name) for name in _PLAIN_OF_TRIAL},
            **{name: self._text(getattr(row, name)) for name in _TEXTS_OF_TRIAL},
            **{name: self._list(getattr(row, name)) for name in ("rules", "saved_by")},
            "cell": self._cells.setdefault(row.cell, len(self._cells)),
            "seed": str(row.seed),  # may be larger than a number of JavaScript
            "flags": _bits(row, _TRIAL_FLAGS),
            "failure": self._failure(classify(row)),
            "status": row.error_status,
            "original_reasons": self._reasons(row.original_reasons),
            "strict_reasons": self._reasons(row.strict_reasons),
            "parts": self._parts(row.parts),
            "elapsed_ms": round(row.elapsed_ms, 1),
            "input_tokens": row.usage.input_tokens,
            "output_tokens": row.usage.output_tokens,
        }

    def _call_values(self, place: int, call: CallFact) -> dict[str, Any]:
        return {
            "place": place,
            "turn": call.turn,
            **{name: self._text(getattr(call, name)) for name in ("name", "format", "state")},
            **{name: self._list(getattr(call, name)) for name in _LISTS_OF_CALL},
            "flags": _bits(call, _CALL_FLAGS),
            "exact": _NONE if call.exact is None else int(call.exact),
            "arguments_bytes": call.arguments_bytes,
        }

    def _reasons(self, reasons: tuple[Reason, ...]) -> list[int]:
        """Return code and message of each reason, one after the other."""
        return self._list(part for one in reasons for part in (one.code, one.message))

    def _parts(self, parts: Parts | None) -> list[list[int] | None] | None:
        """Return the reasons of state, process and answer; None for what was not judged."""
        if parts is None:
            return None
        verdicts = (parts.state, parts.process, parts.answer)
        return [None if found is None else self._reasons(found.reasons) for found in verdicts]

    def _failure(self, failure: Failure | None) -> int:
        return _NONE if failure is None else self._failures.setdefault(failure, len(self._failures))

    def _list(self, texts: Iterable[str]) -> list[int]:
        return [self._text(text) for text in texts]

    def _text(self, text: str | None) -> int:
        if text is None:
            return _NONE
        return self._texts.setdefault(
            clip(repair_surrogates(text), _MAX_TEXT_CHARS), len(self._texts)
        )


def _bits(record: TrialRow | CallFact, names: tuple[str, ...]) -> int:
    return sum(bool(getattr(record, name)) << place for place, name in enumerate(names))


TrialSource: TypeAlias = RunStore | Iterable[TrialRow] | Iterable[tuple[TrialRow, TrialBody | None]]
"""A store, rows, or rows each with its body."""


class Trials(Struct, frozen=True):
    """The rows in order, and a way to the body of each."""

    rows: Iterator[TrialRow]
    body: Callable[[int], TrialBody | None]
    """Only to be asked once the rows have been read."""


def open_trials(source: TrialSource, run_id: str) -> Trials:
    """Return the trials of a run, read one by one."""
    if isinstance(source, RunStore):
        return Trials(source.rows(run_id), lambda index: source.find_body(run_id, index))
    bodies: dict[int, TrialBody] = {}
    return Trials(_split(source, bodies), bodies.get)


def _split(
    trials: Iterable[TrialRow] | Iterable[tuple[TrialRow, TrialBody | None]],
    bodies: dict[int, TrialBody],
) -> Iterator[TrialRow]:
    for trial in trials:
        row, body = (trial, None) if isinstance(trial, TrialRow) else trial
        if body is not None:
            bodies[row.index] = body
        yield row


MAX_FILE_BYTES: Final = 15_000_000
"""A report is no larger than this, unless all bodies are asked for."""

SCRIPTS: Final = (
    "data.js",
    "bodies.js",
    "state.js",
    "facets.js",
    "trials.js",
    "transcript.js",
    "trial.js",
    "main.js",
)
"""The report's own pieces of script, in the order in which they are joined."""

_DATA_VERSION: Final = 2
_HERE: Final = "surecall.evals.report"
_NOT_SHOWN: Final = frozenset({"units", "units_hash", "contenders", "catalog", "places"})
"""Fields of a manifest that the page does not need."""


def write_html(
    source: TrialSource,
    run_info: RunInfo,
    out_path: str | Path,
    *,
    bodies: BodyChoice = "failed",
) -> Path:
    """Write the report of a run and return where it is.

    Args:
        source: The store, or the rows, or the rows each with its body.
        run_info: What is known of the run.
        out_path: The file to write; its folder is made when it is not there.
        bodies: Whose transcripts go in: `none`, `failed` (and one passing trial of each case, as
            long as the file stays below 15 MB) or `all`.
    """
    path = Path(out_path)
    page = render_html(source, run_info, bodies=bodies)
    with explain_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_whole(path) as file:
            file.write(page)
    return path


def render_html(source: TrialSource, run_info: RunInfo, *, bodies: BodyChoice = "failed") -> bytes:
    """Return the report of a run; the same run gives the same bytes."""
    if bodies not in get_args(BodyChoice):
        raise ConfigError(
            Code.INVALID_OPTION,
            f"bodies is {bodies!r}.",
            hint=did_you_mean(str(bodies), get_args(BodyChoice)),
        )
    trials = open_trials(source, run_info.id)
    columns, marks = Columns(), list[RowMark]()
    tallies = tally_rows(_note(trials.rows, columns, marks))
    data = columns.data()
    room = None if bodies == "all" else MAX_FILE_BYTES - len(encode_kept(data)) - 1_000_000
    packed = pack_bodies(order_bodies(marks, bodies), trials.body, max_bytes=room)
    data |= {
        "version": _DATA_VERSION,
        "run": _header(run_info),
        "bodies": {
            "choice": bodies,
            "kept": [int(index) for index in packed.packed],
            "left_out": packed.left_out,
        },
    }
    answer = render_answer(
        tallies,
        run_info,
        gates=check_stored(source, run_info, tallies) if isinstance(source, RunStore) else (),
        kept=len(packed.packed),
        choice=bodies,
        left_out=packed.left_out,
    )
    return _fill(
        run=run_info.id,
        answer=answer,
        data=data,
        bodies={"shared": packed.shared, "packed": packed.packed},
    )


def _note(rows: Iterable[TrialRow], columns: Columns, marks: list[RowMark]) -> Iterator[TrialRow]:
    """Yield the rows, and note each for the page on its way."""
    for row in rows:
        columns.add(row)
        marks.append(RowMark.of(row))
        yield row


def _header(info: RunInfo) -> dict[str, Any]:
    """Return what the page says about the run."""
    shown = ("id", "status", "tags", "units", "done", "created_at", "ended_at")
    manifest = asdict(info.manifest)
    return {
        **{name: getattr(info, name) for name in shown},
        **{name: value for name, value in manifest.items() if name not in _NOT_SHOWN},
        "hash": info.manifest.hash,
    }


# The file


def _fill(*, run: str, answer: Html, data: Any, bodies: Any) -> bytes:
    style, script = read_asset(SHEET), _script()
    policy = "; ".join(
        (
            "default-src 'none'",
            f"style-src '{_hash(style)}'",
            f"script-src '{_hash(script)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )
    page = Template(read_asset("report.html", _HERE)).substitute(
        policy=policy,
        title=escape(f"surecall {repair_surrogates(run)}"),
        run=name(run),
        answer=answer,
        style=style,
        script=script,
        data=_inert(data),
        bodies=_inert(bodies),
    )
    return page.encode("utf-8")


def _inert(value: Any) -> str:
    """Return JSON that cannot end the element it stands in, whatever a model wrote."""
    text = encode_kept(value).decode("utf-8")
    # Outside of strings JSON has none of these characters, and inside an escape means the same.
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


@cache
def _script() -> str:
    shared = (read_asset(piece) for piece in SHARED_SCRIPTS)
    return join_scripts((*shared, *(read_asset(piece, _HERE) for piece in SCRIPTS)))


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode('ascii')}"
