"""Finding the file of a model on this machine, and trusting only the right bytes."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from support.weight_files import make_weights
from surecall.base.errors import Code, SetupError
from surecall.base.records import Weights
from surecall.models.profiles import find_weights, known_weights
from surecall.models.profiles.catalog import parse_weights
from surecall.models.transport import load_embedded, survey_weights
from surecall.models.transport.weights import (
    locate_weights,
    require_model_file,
    require_verified,
    weights_folder,
)


def put(weights: Weights, cache: Path, content: bytes) -> Path:
    """Write a file where fetched weights are."""
    path = weights_folder(cache) / weights.file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.fixture
def tiny(tmp_path: Path) -> Weights:
    """Weights of one part, which is no package that is installed."""
    return make_weights(tmp_path / "index", [b"GGUF-abc"])


def test_an_installed_package_is_found_without_importing_it(tmp_path: Path) -> None:
    """The file of the package is found by the package's own list of files."""
    weights = find_weights("smollm2-135m")
    found = survey_weights(weights, tmp_path)
    assert found.state == "installed"
    assert found.path is not None
    assert found.path.stat().st_size == weights.size_bytes


def test_an_installed_package_of_another_version_does_not_count(tmp_path: Path) -> None:
    """Only the version that the catalog knows is trusted to have the file."""
    weights = find_weights("smollm2-135m")
    other = replace(weights, parts=(replace(weights.parts[0], version="9.9"),))
    assert locate_weights(other, tmp_path) is None


def test_the_cache_folder_comes_second(tiny: Weights, tmp_path: Path) -> None:
    """What was fetched is found; without a cache folder it is not looked for."""
    path = put(tiny, tmp_path, b"GGUF-abc")
    assert locate_weights(tiny, tmp_path) == path
    assert locate_weights(tiny, None) is None


@dataclass(frozen=True)
class State:
    id: str
    content: bytes | None
    parts: bool
    state: str


STATES = [
    State("missing", None, False, "missing"),
    State("begun", None, True, "partial"),
    State("whole", b"GGUF-abc", False, "fetched"),
    State("of another size", b"GGUF", False, "damaged"),
]


@pytest.mark.parametrize("case", STATES, ids=lambda case: case.id)
def test_the_state_is_told(case: State, tiny: Weights, tmp_path: Path) -> None:
    """Missing, begun, whole and damaged weights are told apart without reading them."""
    if case.content is not None:
        put(tiny, tmp_path, case.content)
    if case.parts:
        (weights_folder(tmp_path) / "tiny.parts").mkdir(parents=True)
    assert survey_weights(tiny, tmp_path).state == case.state


@pytest.mark.parametrize("content", [b"GGUF-abd", b"GGUF-ab"], ids=["changed", "cut"])
def test_a_wrong_file_is_never_loaded(content: bytes, tiny: Weights, tmp_path: Path) -> None:
    """A file with another hash is refused before the engine sees it."""
    put(tiny, tmp_path, content)
    with pytest.raises(SetupError) as caught:
        load_embedded(tiny, cache_dir=tmp_path)
    assert caught.value.code == Code.WEIGHTS_HASH_MISMATCH
    assert "surecall models fetch tiny" in str(caught.value)


def test_a_file_that_was_right_is_not_read_again(tiny: Weights, tmp_path: Path) -> None:
    """Size and time of change are remembered; a file changed since is read and refused."""
    path = put(tiny, tmp_path, b"GGUF-abc")
    require_verified(path, tiny, tmp_path)
    status = path.stat()
    path.write_bytes(b"GGUF-XYZ")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    require_verified(path, tiny, tmp_path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    with pytest.raises(SetupError, match="WEIGHTS_HASH_MISMATCH"):
        require_verified(path, tiny, tmp_path)


@pytest.mark.parametrize("note", [b"", b"{", b"[]", b'{"size_bytes": 8}'])
def test_a_damaged_note_is_as_good_as_none(note: bytes, tiny: Weights, tmp_path: Path) -> None:
    """The file is read again, and its hash decides."""
    path = put(tiny, tmp_path, b"GGUF-abd")
    (weights_folder(tmp_path) / "tiny.verified").write_bytes(note)
    with pytest.raises(SetupError, match="WEIGHTS_HASH_MISMATCH"):
        require_verified(path, tiny, tmp_path)


def test_missing_weights_name_the_command(tiny: Weights, tmp_path: Path) -> None:
    """Nothing is downloaded; the error says what to run."""
    with pytest.raises(SetupError) as caught:
        load_embedded(tiny, cache_dir=tmp_path)
    assert caught.value.code == Code.MODEL_WEIGHTS_MISSING
    assert caught.value.hint == "Run: surecall models fetch tiny"


def test_a_path_must_be_a_model(tmp_path: Path) -> None:
    """A file that is not there and a file of another kind have codes of their own."""
    with pytest.raises(SetupError, match="MODEL_WEIGHTS_MISSING"):
        require_model_file(tmp_path / "none.gguf")
    other = tmp_path / "other.gguf"
    other.write_bytes(b"PK\x03\x04")
    with pytest.raises(SetupError, match="MODEL_NOT_LOADABLE"):
        load_embedded(other)


@pytest.mark.parametrize("name", ["smollm2-135m", "embedded:smollm2-135m", " SmolLM2-135M "])
def test_weights_are_found_by_name(name: str) -> None:
    """With or without the prefix, in any case."""
    assert find_weights(name).name == "smollm2-135m"


def test_an_unknown_name_is_answered_with_the_closest() -> None:
    """A misspelt name is refused, with the one that was probably meant."""
    with pytest.raises(SetupError, match="Did you mean 'smollm2-135m'") as caught:
        find_weights("smolm2-135m")
    assert caught.value.code == Code.UNKNOWN_MODEL


@pytest.mark.parametrize("weights", known_weights(), ids=lambda weights: weights.name)
def test_every_entry_is_complete(weights: Weights) -> None:
    """Hashes have their length, names are lower case, and claims have a source."""
    assert weights.name == weights.name.lower()
    assert weights.file.endswith(".gguf")
    assert weights.parts
    for digest in (weights.sha256, *(part.sha256 for part in weights.parts)):
        assert len(bytes.fromhex(digest)) == 32
    assert weights.licence.strip()
    assert weights.source.strip()
    assert weights.evidence.strip()


@pytest.mark.parametrize("row", [{}, {"name": "x", "colour": 1}, 3], ids=["empty", "extra", "int"])
def test_a_wrong_entry_is_refused(row: Any) -> None:
    """An entry that lacks something or has more is no entry."""
    with pytest.raises(SetupError, match="INVALID_CONFIG"):
        parse_weights({"weights": [row]})
