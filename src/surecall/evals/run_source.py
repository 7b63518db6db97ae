"""A run that is exported: its trials, the dimensions in which they differ, and the files."""

import tempfile
from array import array
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, TypeVar, cast

import msgspec

from surecall.base.files import explain_write_errors, write_whole
from surecall.base.json_values import as_fields
from surecall.tools.outputs import encode_kept

from .metrics.tally import Tallies, tally_rows
from .records import Cell, Task, TrialBody, TrialRow
from .store import RunStore


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
    """Lines of JSON by key, kept on disk until the place is reached where they belong."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the spool
        self._places: defaultdict[Task, array[int]] = defaultdict(lambda: array("q"))

    def append(self, key: Task, line: bytes) -> None:
        """Add a line to a key."""
        self._places[key].append(self._file.tell())
        self._file.write(line + b"\n")

    def lines(self, key: Task) -> Iterator[msgspec.Raw]:
        """Yield every line of a key, in order."""
        for place in self._places[key]:
            self._file.seek(place)
            yield msgspec.Raw(self._file.readline())

    def close(self) -> None:
        """Forget everything."""
        self._file.close()


def render_lines(value: Any, depth: int, indent: int = 0) -> Iterator[bytes]:
    """Yield JSON with a line for each member down to a depth, to be compared by eye."""
    if not value or not depth or not isinstance(value, dict | list | Iterator):
        yield encode_kept(value).rstrip()
        return
    is_object = isinstance(value, dict)
    margin, separator = b"\n" + b"  " * indent, b"{" if is_object else b"["
    unnamed: Iterable[tuple[str | None, Any]] = ((None, each) for each in cast("Any", value))
    members = as_fields(value).items() if is_object else unnamed
    for name, member in members:
        yield separator + margin + b"  " + (b"" if name is None else encode_kept(name) + b": ")
        yield from render_lines(member, depth - 1, indent + 1)
        separator = b","
    begun = b"" if separator == b"," else separator
    yield begun + margin + (b"}" if is_object else b"]")


def write_object(path: Path, fields: dict[str, Any], *, depth: int = 1) -> None:
    """Write a file that holds one object, with a line for each field."""
    with write_export(path) as file:
        file.writelines(render_lines(fields, depth))
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
