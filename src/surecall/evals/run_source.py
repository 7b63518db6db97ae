"""A run that is exported: its trials, the dimensions in which they differ, and the files."""

import tempfile
from collections.abc import Generator, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, Self, TypeVar

from surecall.base.files import explain_write_errors, write_whole
from surecall.loop.stored import encode_kept

from .metrics.tally import Tallies, tally_rows
from .records import Cell, Task, TrialBody, TrialRow
from .store import RunStore

_COPY_BYTES: Final = 1 << 16


def check_folder(folder: Path) -> None:
    """Raise when nothing could be written into a folder, which need not be there yet.

    Nothing is left behind: a file without a name is made in the nearest folder that is there.
    """
    with explain_write_errors(folder):
        place = folder.absolute()
        while not place.exists():
            place = place.parent
        with tempfile.TemporaryFile(dir=place):
            pass


@contextmanager
def write_export(path: Path) -> Generator[BinaryIO]:
    """Open a file that appears under its name only when it is complete; make its folder."""
    with explain_write_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_whole(path) as file:
            yield file


class Spool:
    """Pieces of a file, kept on disk until the place is reached where they belong."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed on leaving the spool
        self._spans: dict[Hashable, list[tuple[int, int]]] = {}
        self._end = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, key: Hashable, piece: bytes) -> None:
        """Add a piece to a key."""
        spans = self._spans.setdefault(key, [])
        start, self._end = self._end, self._end + len(piece)
        if spans and spans[-1][1] == start:
            spans[-1] = (spans[-1][0], self._end)
        else:
            spans.append((start, self._end))
        self._file.write(piece)

    def pieces(self, key: Hashable) -> Iterable[bytes]:
        """Yield everything that was added to a key, in order."""
        for start, end in self._spans.get(key, ()):
            self._file.seek(start)
            while start < end:
                piece = self._file.read(min(_COPY_BYTES, end - start))
                start += len(piece)
                yield piece
        self._file.seek(self._end)


class RawJson:
    """A value that is written in pieces, each of them JSON already."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self.pieces = pieces


def render_object(fields: Mapping[str, Any], *, indent: int = 0) -> Iterator[bytes]:
    """Yield an object with a field a line, so that two files can be compared by eye."""
    margin = b"  " * (indent + 1)
    separator = b"{\n"
    for name, value in fields.items():
        yield separator + margin + encode_kept(name) + b": "
        if isinstance(value, RawJson):
            yield from value.pieces
        else:
            yield encode_kept(value)
        separator = b",\n"
    yield b"{}" if separator == b"{\n" else b"\n" + b"  " * indent + b"}"


def write_object(path: Path, fields: Mapping[str, Any]) -> None:
    """Write a file that holds one object."""
    with write_export(path) as file:
        file.writelines(render_object(fields))
        file.write(b"\n")


def utc_text(seconds: float | None) -> str | None:
    """Return a moment as text, such as `2026-02-08T12:00:00Z`."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class RunSource:
    """One run as it is at this moment; a run that goes on does not change under the reader."""

    def __init__(self, store: RunStore, run_id: str) -> None:
        self.store = store
        self.info = store.info(run_id)
        self.run_id = run_id
        complete = self.info.status == "complete"
        self._places = None if complete else frozenset(store.done(run_id))

    def rows(self) -> Iterator[TrialRow]:
        """Yield the trials in the order of the matrix; every time the same ones."""
        places = self._places
        for row in self.store.rows(self.run_id):
            if places is None or row.index in places:
                yield row

    def body(self, index: int) -> TrialBody | None:
        """Return what was stored of a trial besides its row, if anything was."""
        return self.store.find_body(self.run_id, index)

    @cached_property
    def tallies(self) -> Tallies:
        """The trials, counted by cell."""
        return tally_rows(self.rows())

    @cached_property
    def layout(self) -> "Layout":
        """The dimensions in which the trials differ."""
        return scan_layout(self.tallies)


_ALLOWED: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
_MAX_NAME_CHARS: Final = 200
_TRIAL: Final = "__trial_"
_ENDING: Final = ".json"

Value = TypeVar("Value")


class Layout(NamedTuple):
    """The values of every dimension, in the order in which they occur."""

    tasks: tuple[Task, ...]
    models: tuple[str, ...]
    profiles: tuple[str, ...]
    strategies: tuple[str, ...]
    fallbacks: tuple[str, ...]
    suites: tuple[str, ...]
    scenarios: tuple[str, ...]
    """As files name them."""
    shared: frozenset[str]
    """Scenarios that more than one suite has."""
    simulated: frozenset[str]
    """Models that are simulated."""

    def label(self, task: Task) -> str:
        """Return the model, and whatever else tells this task from others."""
        parts = [task.model]
        if len(self.profiles) > 1:
            parts.append(task.profile)
        if len(self.strategies) > 1:
            parts.append(task.strategy)
        if len(self.fallbacks) > 1:
            parts.append(task.fallback)
        return ":".join(parts)

    def scenario(self, cell: Cell) -> str:
        """Return the scenario, with its suite where the name alone would be ambiguous."""
        return f"{cell.suite}/{cell.scenario}" if cell.scenario in self.shared else cell.scenario


def scan_layout(tallies: Tallies) -> Layout:
    """Note which values occur in trials that were counted."""
    cells = dict.fromkeys(cell for cell, _ in tallies)
    suites_of: dict[str, set[str]] = {}
    for cell in cells:
        suites_of.setdefault(cell.scenario, set()).add(cell.suite)
    layout = Layout(
        tasks=_distinct(Task.of(cell) for cell in cells),
        models=_distinct(cell.model for cell in cells),
        profiles=_distinct(cell.profile for cell in cells),
        strategies=_distinct(cell.strategy for cell in cells),
        fallbacks=_distinct(cell.fallback for cell in cells),
        suites=_distinct(cell.suite for cell in cells),
        scenarios=(),
        shared=frozenset(name for name, suites in suites_of.items() if len(suites) > 1),
        simulated=frozenset(cell.model for (cell, _), tally in tallies.items() if tally.simulated),
    )
    return layout._replace(scenarios=_distinct(layout.scenario(cell) for cell in cells))


def _distinct(values: Iterable[Value]) -> tuple[Value, ...]:
    return tuple(dict.fromkeys(values))


class FileNames:
    """Names for the files of trials: readable, allowed everywhere, and never used twice."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._used: set[str] = set()

    def name(self, row: TrialRow) -> str:
        """Return the name of a trial's file: label, scenario and trial, without odd characters."""
        parts = [self._layout.label(Task.of(row.cell)), self._layout.scenario(row.cell)]
        if row.case:
            parts.append(row.case)
        stem = _plain("__".join(parts))
        number = f"{_TRIAL}{row.trial:02d}"
        if len(stem) > _MAX_NAME_CHARS:
            stem = f"{stem[:_MAX_NAME_CHARS]}__{row.index}"
        # Some disks take names for equal that differ in case only.
        while f"{stem}{number}".lower() in self._used:
            stem = f"{stem}__{row.index}"
        self._used.add(f"{stem}{number}".lower())
        return f"{stem}{number}{_ENDING}"

    def is_left_over(self, name: str) -> bool:
        """Tell whether a file is of a trial, but of none that was named here."""
        stem = name.removesuffix(_ENDING)
        return stem != name and _TRIAL in stem and stem.lower() not in self._used


def _plain(text: str) -> str:
    pieces: list[str] = []
    for char in text:
        if char in _ALLOWED:
            pieces.append(char)
        elif not pieces or pieces[-1] != "__":
            pieces.append("__")
    return "".join(pieces)
