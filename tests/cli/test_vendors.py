"""`surecall eval vendors`: simulated endpoints, run for real and compared."""

from pathlib import Path

import pytest
from click.testing import Result

from surecall.cli import ExitCode
from surecall.evals.runner import CellFinished
from surecall.evals.store import RunStore

from .harness import documents, invoke

STORE = Path(".surecall/evals.db")


def vendors(*words: str) -> Result:
    """Run the command on a few trials."""
    return invoke(
        "eval", "vendors", *words, "--trials", "6", "--scenarios", "happy_path", COLUMNS="160"
    )


def lines_of(text: str) -> list[str]:
    """Return the lines with single spaces."""
    return [" ".join(line.split()) for line in text.splitlines()]


def test_an_endpoint_that_never_calls_is_found_worse() -> None:
    """Figures, faults and verdicts are shown, all of them labelled as simulated."""
    result = vendors("--reference", "zoo:steady", "--against", "zoo:storyteller", "zoo:friendly")
    assert result.exit_code == 1, result.stderr
    lines = lines_of(result.stdout)
    assert lines[0] == "endpoint trigger F1 schema accuracy strict unanswered"
    assert lines[1].startswith("zoo:steady (simulated) (reference) - 12/12 [75.8, 100.0] 6/6")
    assert lines[2].startswith("zoo:storyteller (simulated) 0.000")
    assert "✗ worse zoo:storyteller (simulated)" in lines
    assert "? too few to tell zoo:friendly (simulated)" in lines
    assert any(line.startswith("trigger: 0/6 against 6/6, -100.0 points") for line in lines)
    assert "about 203 trials would tell" in result.stdout
    assert "trigger F1 of the reference with itself: 1.000 [0.610, 1.000]" in lines
    assert "zoo:steady (simulated) / happy_path: 6/6" in lines_of(result.stderr)


def test_too_few_trials_do_not_fail_the_command() -> None:
    """Nothing was found, and that is said; the exit code is 0."""
    result = vendors("--reference", "zoo:steady", "--against", "zoo:friendly")
    assert result.exit_code == 0
    assert "too few to tell" in result.stdout


def test_as_json_there_is_a_document_for_each_cell_and_one_for_the_whole() -> None:
    """The last document is the report."""
    result = vendors("--reference", "zoo:steady", "--against", "zoo:friendly", "--json")
    *cells, whole = documents(result)
    assert {(cell["type"], cell["model"], cell["done"]) for cell in cells} == {
        ("cell", "zoo:steady", 6),
        ("cell", "zoo:friendly", 6),
    }
    assert (whole["type"], whole["ok"], whole["run"]["done"]) == ("vendors", True, 12)
    assert whole["reference"]["label"] == "zoo:steady"
    assert whole["endpoints"][0]["simulated"] == "all"
    assert [one["measure"] for one in whole["endpoints"][0]["comparisons"]] == [
        "trigger",
        "schema",
        "strict",
    ]


def test_nobody_is_asked_twice() -> None:
    """The same comparison is read from the store, unless a new one is asked for."""
    words = ("--reference", "zoo:steady", "--against", "zoo:friendly")
    for _ in range(2):
        vendors(*words)
    with RunStore(STORE) as store:
        assert len(store.runs()) == 1
    vendors(*words, "--new")
    with RunStore(STORE) as store:
        assert len(store.runs()) == 2


def test_a_kept_run_can_be_compared_by_another_reference() -> None:
    """Nothing is run; labels name the endpoints."""
    vendors("--reference", "zoo:steady", "--against", "zoo:friendly")
    result = vendors("--run", "@latest", "--reference", "zoo:friendly", "--json")
    [whole] = documents(result)
    assert whole["reference"]["label"] == "zoo:friendly"
    assert [one["label"] for one in whole["endpoints"]] == ["zoo:steady"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        pytest.param(("--reference", "zoo:steady"), "INVALID_OPTION", id="nobody else"),
        pytest.param(
            ("--reference", "zoo:*", "--against", "zoo:steady"), "INVALID_OPTION", id="several"
        ),
        pytest.param(
            ("--reference", "zoo:steady", "--against", "zoo:steady"), "INVALID_OPTION", id="itself"
        ),
        pytest.param(
            ("--reference", "zoo:stedy", "--against", "zoo:steady"), "UNKNOWN_MODEL", id="unknown"
        ),
        pytest.param(("--against", "zoo:steady"), "INVALID_OPTION", id="no reference"),
    ],
)
def test_what_is_wrong_in_the_command_is_told(words: tuple[str, ...], code: str) -> None:
    """Exit code 4 and the code, before anything is run."""
    result = vendors(*words)
    assert result.exit_code == ExitCode.USAGE
    assert code in result.stderr


def test_a_kept_run_must_exist() -> None:
    """No empty store is made for reading."""
    result = vendors("--run", "@latest", "--reference", "zoo:steady")
    assert "RUN_NOT_FOUND" in result.stderr
    assert not STORE.exists()


def test_an_endpoint_that_is_not_there_is_not_the_same_as_far_as_seen() -> None:
    """Nobody heard is exit code 6, and one of several 7: a build must not pass on that."""
    nowhere = ("a@http://127.0.0.1:9/v1", "b@http://127.0.0.1:9/v1")
    words = ("--trials", "1", "--scenarios", "happy_path")
    nobody = invoke("eval", "vendors", "--reference", nowhere[0], "--against", nowhere[1], *words)
    assert nobody.exit_code == ExitCode.PROVIDER, nobody.stderr
    one = invoke("eval", "vendors", "--reference", "zoo:steady", "--against", nowhere[1], *words)
    assert one.exit_code == ExitCode.PARTIAL


def test_an_interrupted_comparison_says_how_to_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit code 2, and the very command, which then needs to ask for nothing twice."""

    def interrupt(_display: object, event: object) -> None:
        if isinstance(event, CellFinished):
            raise KeyboardInterrupt

    words = ("--reference", "zoo:steady", "--against", "zoo:friendly")
    with monkeypatch.context() as patched:
        patched.setattr("surecall.cli.eval.vendors._Cells.tell", interrupt)
        result = vendors(*words)
    assert result.exit_code == ExitCode.INTERRUPTED
    command = result.stderr.splitlines()[-1].split()
    assert command[:3] == ["surecall", "eval", "vendors"]
    again = invoke("eval", "vendors", *command[3:])
    assert again.exit_code == 0, again.stderr
    with RunStore(STORE) as store:
        [info] = store.runs()
        assert info.is_complete


def test_suites_are_named_as_in_an_eval() -> None:
    """A list with commas, in one option or in several."""
    result = vendors("--reference", "zoo:steady", "--against", "zoo:friendly", "--suite", "state,x")
    assert "There is no suite 'x'" in result.stderr
