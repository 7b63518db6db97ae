"""Writing exports: whole or not at all, and with a way to put pieces in another order."""

import tempfile
from collections.abc import Generator, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final, Self

from surecall.base.files import explain_write_errors, write_whole
from surecall.loop.stored import encode_kept

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
    """Open a file that appears under its name only when all is in it; its folder is made, too."""
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
        """Add a piece to those of a key."""
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
