"""Where the file of a model is on this machine, and whether it is the right one."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal, cast

from msgspec import Struct

from surecall.base.errors import Code, JSONTextError, SetupError
from surecall.base.files import write_whole
from surecall.base.records import Weights
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
