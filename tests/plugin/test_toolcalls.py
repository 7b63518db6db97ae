"""Tests marked `toolcalls` are repeated, and pass when enough trials do."""

import subprocess
import sys
from pathlib import Path

import pytest

import surecall
import surecall.evals.stats  # loaded once here, and not again by every run below

SOURCES = str(Path(surecall.__file__).parents[1])
ALONE = ("-p", "no:randomly", "-p", "no:cacheprovider")

COUNTED = """
import pytest
count = 0

@pytest.fixture(scope="module")
def once():
    yield []
    print("module ended")

@pytest.fixture
def fresh(once):
    once.append(1)
    yield [len(once)]
    print("torn down")

@pytest.mark.toolcalls(trials={trials}, min_rate={min_rate})
def test_it(fresh, trial_number):
    global count
    count += 1
    assert fresh == [count] and trial_number == count
    fresh.append("left over")
    assert count not in {failing}

def test_count(once):
    assert count == {made}
    assert len(once) == {made}
"""


@pytest.fixture(autouse=True)
def no_other_plugins(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Load no other plugin into the runs inside this process: each costs seconds in all."""
    if "workers" not in request.fixturenames:
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def run(pytester: pytest.Pytester, source: str, *flags: str) -> pytest.RunResult:
    """Run a test file with the plugin, in this process."""
    pytester.makepyfile(source)
    return pytester.runpytest_inprocess("-p", "surecall.pytest_plugin", *ALONE, *flags)


@pytest.mark.parametrize(
    ("trials", "min_rate", "failing", "made", "passes", "words"),
    [
        (10, 0.9, "{3}", 10, True, "9/10 passed, 95% interval 60% to 98%"),
        (10, 0.9, "set()", 9, True, "9/9 passed*1 of 10 not needed"),
        (10, 0.9, "{1, 2}", 2, False, "0/2 passed*8 of 10 not needed"),
        (3, 1.0, "set()", 3, True, "3/3 passed"),
        (3, 1.0, "{2}", 2, False, "1/2 passed"),
        (10, 0.7, "{1, 2, 3}", 10, True, "7/10 passed"),
        (2, 0, "{1, 2}", 1, True, "0/1 passed"),
    ],
)
def test_a_test_passes_when_enough_trials_do(
    pytester: pytest.Pytester,
    trials: int,
    min_rate: float,
    failing: str,
    made: int,
    passes: bool,
    words: str,
) -> None:
    """Each trial has new fixtures, those of the module stay, and no trial is made in vain."""
    source = COUNTED.format(trials=trials, min_rate=min_rate, failing=failing, made=made)
    result = run(pytester, source)
    result.assert_outcomes(passed=1 + passes, failed=1 - passes)
    result.stdout.fnmatch_lines(["*tool calls*", f"*test_it: {words}*"])


def test_every_trial_is_made_on_request(pytester: pytest.Pytester) -> None:
    """The flag leaves nothing out, though the outcome is certain."""
    source = COUNTED.format(trials=10, min_rate=0.5, failing="set()", made=10)
    result = run(pytester, source, "--toolcalls-all")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*test_it: 10/10 passed, 95% interval 72% to 100%*"])


def test_what_is_not_the_model_ends_the_test_at_once(pytester: pytest.Pytester) -> None:
    """A fixture that fails, before or after, is an error; a skip is a skip; nothing is counted."""
    result = run(
        pytester,
        """
        import pytest

        made = []

        @pytest.fixture
        def broken():
            made.append("broken")
            raise OSError

        @pytest.fixture
        def leaves_badly():
            yield
            made.append("leaves badly")
            raise OSError

        @pytest.mark.toolcalls(trials=5)
        def test_broken(broken): ...

        @pytest.mark.toolcalls(trials=5)
        def test_leaves_badly(leaves_badly): ...

        @pytest.mark.toolcalls(trials=5)
        def test_skipped():
            made.append("skipped")
            pytest.skip("no key")

        @pytest.mark.skip
        @pytest.mark.toolcalls(trials=5)
        def test_never(): ...

        def test_made():
            assert made == ["broken", "leaves badly", "skipped"]

        @pytest.fixture(scope="module")
        def ends_badly():
            yield
            raise OSError

        @pytest.mark.toolcalls(trials=2, min_rate=0)
        def test_last(ends_badly): ...
        """,
    )
    result.assert_outcomes(errors=3, passed=3, skipped=2)
    assert result.stdout.str().count(" passed, 95% interval") == 1


@pytest.mark.parametrize("given", ["trials=0", "min_rate=2", "trial=3", "10", "trials=True"])
def test_a_mark_that_makes_no_sense_is_refused(pytester: pytest.Pytester, given: str) -> None:
    """Nothing runs, and the message names the test."""
    source = f"import pytest\n@pytest.mark.toolcalls({given})\ndef test_it(): ...\n"
    result = run(pytester, source)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "test_it: toolcalls takes trials" in result.stderr.str() + result.stdout.str()


MODELS = """
import pytest, surecall
from surecall.models.transport import assistant, tool_call

def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b

@pytest.mark.toolcalls(trials=3)
def test_scripted(scripted_model):
    model = scripted_model(assistant(None, tool_call("add", {"a": 1, "b": 2})), "Three.")
    result = surecall.run_sync("1 + 2?", model="m", tools=[add], transport=model)
    assert result.text == "Three." and result.results[0].ok

@pytest.mark.toolcalls(trials=4, min_rate=0.5)
@pytest.mark.parametrize("fault", ["arguments_fenced", "faults:arguments_blank", "zoo:steady"])
def test_faulty(faulty_model, fault):
    model = faulty_model(fault)
    result = surecall.run_sync("Call add.", model="m", tools=[add], transport=model)
    assert result.calls
"""


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_models_come_as_fixtures_in_one_process_or_several(
    pytester: pytest.Pytester, workers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over xdist every count arrives once, and the report for a build server has it, too."""
    monkeypatch.setenv("PYTHONPATH", SOURCES)
    pytester.makepyfile(MODELS)
    result = pytester.runpytest_subprocess(
        "-p", "surecall.pytest_plugin", *ALONE, *workers, "--junitxml=junit.xml"
    )
    result.assert_outcomes(passed=4)
    shown = result.stdout.str()
    assert shown.count(": 3/3 passed") == 1
    assert shown.count(": 2/2 passed") == 3
    report = (pytester.path / "junit.xml").read_text()
    assert report.count('name="toolcalls"') == 4
    assert 'tests="4"' in report


def test_a_subtest_that_fails_fails_its_trial(pytester: pytest.Pytester) -> None:
    """It does not fail the test, as long as enough trials pass."""
    result = run(
        pytester,
        """
        import pytest

        @pytest.mark.toolcalls(trials=4, min_rate=0.5)
        def test_enough(trial_number, subtests):
            with subtests.test("one"):
                assert trial_number > 2

        @pytest.mark.toolcalls(trials=4, min_rate=0.5)
        def test_too_few(trial_number, subtests):
            with subtests.test("one"):
                assert trial_number > 3, "too early"
        """,
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        ["*too early*", "*test_enough: 2/4 passed*", "*test_too_few: 0/3 passed*"]
    )


def test_a_failed_test_shows_a_trial_that_failed(pytester: pytest.Pytester) -> None:
    """The reason of the last failure and the count are together."""
    result = run(
        pytester,
        """
        import pytest

        @pytest.mark.toolcalls(trials=4, min_rate=0.75)
        def test_it(trial_number):
            assert trial_number % 2, f"trial {trial_number} went wrong"
        """,
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*trial 4 went wrong*", "*toolcalls*", "2/4 passed*"])


def test_the_plugin_costs_nothing_until_it_is_used() -> None:
    """Loading it brings in pytest and nothing of surecall but the package itself."""
    code = (
        "import sys, pytest, _pytest.runner, decimal; before = set(sys.modules)\n"
        "import surecall.pytest_plugin\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": SOURCES},
    )
    loaded = {"surecall", "surecall.base", "surecall.base.version", "surecall.pytest_plugin"}
    assert set(found.stdout.split()) == loaded
