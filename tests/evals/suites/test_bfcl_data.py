"""Reading the leaderboard's data without running its package."""

import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from surecall.base.errors import ConfigError, SetupError
from surecall.base.records import Message
from surecall.evals.suites.bfcl.data import (
    find_bfcl,
    json_schema_of,
    list_files,
    tool_names,
    tools_of,
)

from .bfcl_wheel import AREA, write_wheel


def test_a_wheel_is_read_as_it_is(tmp_path: Path) -> None:
    """Questions, functions and answers come out of the zip file, and nothing is imported."""
    files = find_bfcl(write_wheel(tmp_path))
    entry = files.entries("simple_python")[1]
    assert files.version == "1.2.3"
    assert entry.id == "simple_python_2"
    assert entry.messages == (Message("user", "Area of 2 by 3?"),)
    assert entry.functions == (AREA,)
    assert entry.answers is not None
    assert entry.answers[0]["geometry.area"]["unit"] == ["units", ""]
    assert "bfcl_eval" not in sys.modules


def test_a_category_without_answers_has_none(tmp_path: Path) -> None:
    """Irrelevance has no file of answers, and keeps its system message."""
    (entry,) = find_bfcl(write_wheel(tmp_path)).entries("irrelevance")
    assert entry.answers is None
    assert [message.role for message in entry.messages] == ["system", "user"]


def test_a_folder_serves_as_well(tmp_path: Path) -> None:
    """An unpacked wheel is read the same way."""
    with zipfile.ZipFile(write_wheel(tmp_path)) as archive:
        archive.extractall(tmp_path / "unpacked")
    assert len(find_bfcl(tmp_path / "unpacked").entries("simple_python")) == 3


def test_an_installed_package_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a path the files of the installed package are read."""
    with zipfile.ZipFile(write_wheel(tmp_path)) as archive:
        archive.extractall(tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    files = find_bfcl()
    assert files.version == "1.2.3"
    assert len(files.entries("simple_python")) == 3
    assert "bfcl_eval" not in sys.modules


def test_a_missing_package_is_told_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says how to install what is missing."""

    def missing(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", missing)
    with pytest.raises(SetupError) as caught:
        find_bfcl()
    assert caught.value.code == "SUITE_DATA_MISSING"
    assert "pip install --no-deps bfcl-eval" in (caught.value.hint or "")


@pytest.mark.parametrize("name", ["nothing.whl", "text.whl", "folder"])
def test_a_path_without_the_data_is_refused(tmp_path: Path, name: str) -> None:
    """A file that is missing, no zip file, or a folder without data is named in the error."""
    (tmp_path / "text.whl").write_text("no zip")
    (tmp_path / "folder").mkdir()
    with pytest.raises(SetupError, match=name) as caught:
        find_bfcl(tmp_path / name)
    assert caught.value.code == "SUITE_DATA_MISSING"


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    """A line that is not JSON stops the reading and is counted out."""
    path = tmp_path / "damaged.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("bfcl_eval/data/BFCL_v4_irrelevance.json", "\n{]\n")
    with pytest.raises(ConfigError, match="line 2") as caught:
        find_bfcl(path).entries("irrelevance")
    assert caught.value.code == "SUITE_DATA_UNREADABLE"


def test_a_row_of_another_shape_is_refused(tmp_path: Path) -> None:
    """A row without its question is not left out silently."""
    path = write_wheel(tmp_path, cases={"irrelevance": [{"id": "irrelevance_0"}]})
    with pytest.raises(ConfigError, match="question") as caught:
        find_bfcl(path).entries("irrelevance")
    assert caught.value.code == "SUITE_DATA_UNREADABLE"


def test_the_fingerprint_follows_the_data(tmp_path: Path) -> None:
    """The same data has the same fingerprint, other data another."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "c").mkdir()
    names = (*list_files("simple_python"), *list_files("irrelevance"))
    same = find_bfcl(write_wheel(tmp_path / "a")).fingerprint(names)
    again = find_bfcl(write_wheel(tmp_path / "b")).fingerprint(names)
    other = find_bfcl(write_wheel(tmp_path / "c", cases={"irrelevance": []}))
    assert same == again
    assert other.fingerprint(names) != same


def test_types_get_their_json_schema_names() -> None:
    """Python's names of types become those of JSON Schema, at every depth."""
    written = {
        "type": "dict",
        "properties": {
            "size": {"type": "float", "default": 1.5},
            "point": {"type": "tuple", "items": {"type": "float"}},
            "rows": {"type": "array", "items": {"type": "dict", "properties": {}}},
            "value": {"type": "any", "description": "What."},
            "flag": {"type": "boolean", "optional": True},
        },
        "required": ["size"],
    }
    assert json_schema_of(written) == {
        "type": "object",
        "properties": {
            "size": {"type": "number", "default": 1.5},
            "point": {"type": "array", "items": {"type": "number"}},
            "rows": {"type": "array", "items": {"type": "object", "properties": {}}},
            "value": {"description": "What."},
            "flag": {"type": "boolean"},
        },
        "required": ["size"],
    }


def test_names_become_usable_and_stay_different() -> None:
    """Dots become underscores, and two names that then clash are told apart."""
    functions = [{"name": name} for name in ("a.b", "a_b", "größe", "x" * 70, "x" * 71)]
    names = tool_names(functions)
    assert names[:3] == ("a_b", "a_b_2", "gr__e")
    assert len(set(names)) == 5
    assert max(map(len, names)) <= 64


def test_a_function_becomes_a_tool() -> None:
    """A tool has the function's description, and runs without effects."""
    (tool,) = tools_of([AREA])
    assert (tool.name, tool.description, tool.effect) == (
        "geometry_area",
        "Area of a rectangle.",
        "read",
    )
    assert tool.parameters["properties"]["width"] == {"type": "number", "description": "Width."}
