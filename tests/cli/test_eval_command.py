"""`surecall eval`: what is chosen, what is told, and how it ends."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from support.eval_fakes import fake_manifest, fake_row, fake_units
from surecall.base.errors import Code, ConfigError
from surecall.cli.console import Output
from surecall.cli.eval.progress import LineByCell, LiveMatrix, duration_of, make_display
from surecall.evals.export import FORMATS, check_folder
from surecall.evals.runner import ExperimentStarted, Stopping, Tally, TrialFinished
from surecall.evals.store import RunStore

from .harness import STEADY, document, documents, invoke, of_type


def test_an_experiment_runs_without_key_and_network() -> None:
    """A simulated model is tried, and the table says that it is simulated."""
    result = invoke("eval", *STEADY, "--trials", "3")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["model", "strict", "answer", "original", "p50", "p95"]
    assert "zoo:steady (simulated)" in lines[1]
    assert "3/3 [44, 100]" in lines[1]
    assert "3 of 3 trials" in lines[-1]
    assert Path(".surecall/evals.db").exists()
    assert "*" in Path(".surecall/.gitignore").read_text().splitlines()


def test_a_cell_is_a_line_where_nobody_watches() -> None:
    """Lines go to standard error, with the verdict in words and signs."""
    result = invoke("eval", *STEADY, "--trials", "2")
    first, second = result.stderr.splitlines()
    assert first.endswith(": 2 trials in 1 cell")
    place = "✓ zoo:steady (simulated) / default / production / best_effort / happy_path"
    assert second == f"{place}: 2/2 strict, 2/2 original  [2/2 trials · 0 failed]"


def test_quiet_tells_nothing_but_the_result() -> None:
    """Standard error stays empty."""
    result = invoke("eval", *STEADY, "-q")
    assert result.stderr == ""
    assert "zoo:steady" in result.stdout


def test_json_has_a_launch_trials_cells_and_a_summary() -> None:
    """Every line is a document of its own; nothing else is on standard output."""
    result = invoke("eval", "--json", *STEADY, "--trials", "2")
    found = documents(result)
    assert [item["type"] for item in found] == ["launch", "trial", "trial", "cell", "summary"]
    launch, first, _, cell, summary = found
    assert (launch["units"], launch["cells"], launch["resumed"]) == (2, 1, False)
    assert launch["command"].startswith("surecall eval --models zoo:steady")
    assert launch["simulated"] == ["zoo:steady"]
    assert (first["model"], first["scenario"], first["strict_ok"]) == (
        "zoo:steady",
        "happy_path",
        True,
    )
    assert (cell["trials"], cell["strict_ok"]) == (2, 2)
    assert (summary["status"], summary["trials"], summary["resume"]) == ("complete", 2, None)
    assert summary["overall"]["strict"]["k"] == 2
    assert summary["overall"]["simulated"] == "all"
    assert summary["rows"][0]["strategy"] == "production"
    assert result.stderr == ""


def test_the_word_run_may_be_left_out_or_not() -> None:
    """Flags may come before it as well."""
    for words in (("eval", "run", "--json"), ("eval", "--json", "run"), ("--json", "eval")):
        found = documents(invoke(*words, *STEADY, "--dry-run"))
        assert [item["type"] for item in found] == ["plan"], words


def test_help_shows_the_options() -> None:
    """Those of the experiment, not only a list of commands."""
    text = invoke("eval", "--help").stdout
    assert text.startswith("Usage: surecall eval [OPTIONS]\n")
    assert "--strategies" in text
    assert "vendors" in text


def test_a_dry_run_shows_the_matrix_and_leaves_nothing() -> None:
    """What would run, how much it would take; no file is made."""
    words = ("eval", "--models", "zoo:steady,zoo:hasty", "--strategies", "raw,production")
    result = invoke(*words, "--trials", "2", "--scenarios", "simple", "--dry-run")
    assert result.exit_code == 0
    assert "16 trials in 8 cells" in result.stdout
    assert "zoo:hasty (simulated)" in result.stdout
    assert "a rough guess" in result.stdout
    plan = document(invoke(*words, "--scenarios", "simple", "--dry-run", "--json"))
    assert (plan["type"], plan["trials"], plan["cells"], plan["run"]) == ("plan", 8, 8, None)
    assert plan["estimate"]["requests"] == 24
    assert list(Path().iterdir()) == []


def test_a_dry_run_judges_by_earlier_runs() -> None:
    """What trials took before is what they are expected to take."""
    invoke("eval", *STEADY, "-q")
    plan = document(invoke("eval", *STEADY, "--trials", "3", "--dry-run", "--json"))
    assert plan["estimate"]["known_trials"] == 3
    assert plan["estimate"]["requests"] == 9
    assert plan["estimate"]["cost_usd"] == 0.0


def test_a_dry_run_does_not_judge_by_trials_that_were_never_answered() -> None:
    """They took no tokens, which says nothing about those to come."""
    words = ("--models", "m@http://127.0.0.1:9/v1", "--scenarios", "happy_path")
    variables = {"SURECALL_RETRY__MAX_RETRIES": "0"}
    before = document(invoke("eval", *words, "--dry-run", "--json"))["estimate"]
    assert invoke("eval", *words, "-q", **variables).exit_code == 6
    assert document(invoke("eval", *words, "--dry-run", "--json"))["estimate"] == before
    assert before["tokens"] > 0


@pytest.mark.parametrize(
    ("words", "code", "exit_code"),
    [
        ((), "NOTHING_SELECTED", 5),
        (("--models", "zoo:stedy"), "UNKNOWN_MODEL", 4),
        ((*STEADY, "--scenarios", "happy"), "NOTHING_SELECTED", 5),
        ((*STEADY, "--strategies", "best"), "NOTHING_SELECTED", 5),
        ((*STEADY, "--suite", "stat"), "NOTHING_SELECTED", 5),
        ((*STEADY, "--profiles", "wild"), "NOTHING_SELECTED", 5),
        ((*STEADY, "--gate", "strict"), "INVALID_GATE", 4),
        ((*STEADY, "--gate", "strict[scenario=happy_pth]>=0.9"), "INVALID_GATE", 4),
        ((*STEADY, "--dry-run", "--gate", "strict[scenario=happy_pth]>=0.9"), "INVALID_GATE", 4),
        ((*STEADY, "--dry-run", "--gate", "regression<=0 vs @nope"), "RUN_NOT_FOUND", 4),
        ((*STEADY, "--report", "pdf"), "INVALID_OPTION", 4),
        ((*STEADY, "--report", "md", "-o", "/dev/null/out"), "INVALID_OPTION", 4),
        ((*STEADY, "--out", "out"), "INVALID_OPTION", 4),
        ((*STEADY, "--option", 'disabled_rules=["quote_kay"]'), "INVALID_OPTION", 4),
        ((*STEADY, "--option", "max_turns"), "INVALID_OPTION", 4),
        ((*STEADY, "--price", "1/2"), "INVALID_OPTION", 4),
        ((*STEADY, "--tag", "a b"), "INVALID_OPTION", 4),
        ((*STEADY, "--trials", "0"), "INVALID_OPTION", 4),
        ((*STEADY, "--new", "--resume"), "INVALID_OPTION", 4),
        ((*STEADY, "--ray-address", "x"), "INVALID_OPTION", 4),
        ((*STEADY, "--resume", "zzz"), "RUN_NOT_FOUND", 4),
        ((*STEADY, "--resume"), "RUN_NOT_FOUND", 4),
        ((*STEADY, "--price", "zoo:stedy=1/2"), "UNKNOWN_MODEL", 4),
        (("--models", "zoo:*,!zoo:stedy"), "NOTHING_SELECTED", 5),
        (("--models", "openrouter:stabel"), "UNKNOWN_MODEL", 4),
        ((*STEADY, "--option", "max_turn=3"), "UNKNOWN_OPTION", 4),
        ((*STEADY, "--trials", "100000000", "--dry-run"), "INVALID_OPTION", 4),
        ((*STEADY, "--option", 'tool_transforms=["nope"]'), "UNKNOWN_TRANSFORM", 4),
        ((*STEADY, "--option", "max_turns=abc"), "INVALID_OPTION", 4),
        ((*STEADY, "--gate", "regression<=0 vs @nope"), "RUN_NOT_FOUND", 4),
        (("--models", "embedded:smolm2-135m"), "UNKNOWN_MODEL", 4),
        (("--models", "zoo:steady", "--suite", "bfcl:nope.whl"), "SUITE_DATA_MISSING", 4),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_run(
    words: tuple[str, ...], code: str, exit_code: int
) -> None:
    """Each with its code and exit code, and no trial is made."""
    result = invoke("eval", *words, "--json")
    (problem,) = documents(result)
    assert (problem["code"], result.exit_code) == (code, exit_code)
    if Path(".surecall").exists():
        assert "--gate" in words  # which is compared with earlier runs
        with RunStore(Path(".surecall/evals.db")) as store:
            assert store.runs() == []


def test_common_parameters_are_options_of_an_experiment() -> None:
    """As for a run."""
    words = ("eval", *STEADY, "--option", "temperature=0.5", "--dry-run")
    assert invoke(*words).exit_code == 0


def test_strategies_and_options_reach_the_trials() -> None:
    """What is in force is kept with every trial."""
    words = (*STEADY, "--strategies", "raw,production", "--option", "max_turns=7")
    summary = documents(invoke("eval", *words, "--json"))[-1]
    assert [row["strategy"] for row in summary["rows"]] == ["raw", "production"]
    with RunStore(Path(".surecall/evals.db")) as store:
        body = store.body(summary["run"], 0)
    assert body.config["options"]["max_turns"] == 7
    assert body.config["origins"]["max_turns"] == "experiment"
    assert body.config["timeout_s"] == 120.0


def test_the_variables_of_the_original_still_work() -> None:
    """They say what flags do not."""
    variables = {"OPENROUTER_TRIALS": "3", "OPENROUTER_STRATEGY_MATRIX": "1"}
    words = ("eval", *STEADY, "--dry-run", "--json")
    plan = document(invoke(*words, **variables))
    assert (plan["trials"], len(plan["rows"])) == (6, 2)
    plan = document(invoke(*words, "--trials", "1", **variables))
    assert plan["trials"] == 2


# gates, reports, tags


def test_a_gate_that_does_not_hold_fails_the_command() -> None:
    """With exit code 1; one that holds lets it through."""
    assert invoke("eval", *STEADY, "--gate", "strict>=0.9").exit_code == 0
    result = invoke("eval", *STEADY, "--gate", "strict<0.5", "--gate", "strict>=0.9", "--json")
    (gates,) = of_type(documents(result), "gates")
    assert result.exit_code == 1
    assert [gate["ok"] for gate in gates["gates"]] == [False, True]


def test_a_gate_compares_with_the_latest_run_before_this_one() -> None:
    """A run that is compared with itself would always pass."""
    words = ("--models", "zoo:steady", "--scenarios", "happy_path", "--trials", "20")
    gate = ("--gate", "regression<=0 vs @latest")
    invoke("eval", *words, "-q")
    worse = invoke("eval", *words, "--option", "max_turns=1", *gate, "--json")
    (gates,) = of_type(documents(worse), "gates")
    assert [item["observed"] for item in gates["gates"]] == [1.0]
    assert worse.exit_code == 1
    itself = invoke("eval", "--resume", "@latest", *gate, "--json")
    assert documents(itself)[-1]["code"] == "INVALID_GATE"


def test_reports_are_written_when_asked_for(tmp_path: Path) -> None:
    """Into the folder that is named."""
    out = tmp_path / "out"
    result = invoke("eval", *STEADY, "--report", "md,junit", "-o", str(out), "--json")
    (report,) = of_type(documents(result), "report")
    assert result.exit_code == 0
    assert sorted(Path(path).suffix for path in report["files"]) == [".md", ".xml"]
    assert all(Path(path).is_file() for path in report["files"])


def test_a_report_that_cannot_be_written_is_refused_beforehand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is asked for a format whose package is not installed."""
    missing = ConfigError(Code.EXTRA_MISSING, "it is not installed.")
    absent = FORMATS["parquet"]._replace(missing=lambda: missing)
    monkeypatch.setitem(FORMATS, "parquet", absent)  # type: ignore[arg-type] - it is a dict
    result = invoke("eval", *STEADY, "--report", "md,parquet")
    assert result.exit_code == 4
    assert "EXTRA_MISSING" in result.stderr
    assert not Path(".surecall").exists()
    told = invoke("eval", *STEADY, "--report", "all")
    assert told.exit_code == 0
    assert "parquet left out: it is not installed." in told.stderr


def test_a_folder_that_cannot_be_written_is_refused_beforehand(tmp_path: Path) -> None:
    """No trial is made, and a folder that can be written is not made yet either."""
    taken = tmp_path / "taken"
    taken.write_text("a file", "utf-8")
    for place in (taken, taken / "deep" / "er"):
        result = invoke("eval", *STEADY, "--report", "md", "-o", str(place))
        assert result.exit_code == 4
        assert f"{place} cannot be written: Not a directory" in result.stderr
        assert not Path(".surecall").exists()
    before = sorted(tmp_path.iterdir())
    check_folder(tmp_path / "not" / "there" / "yet")
    assert sorted(tmp_path.iterdir()) == before


def test_a_run_can_be_named_as_it_is_made() -> None:
    """The tag finds it again."""
    run = documents(invoke("eval", *STEADY, "--tag", "baseline", "--json"))[-1]["run"]
    with RunStore(Path(".surecall/evals.db")) as store:
        assert store.resolve("@baseline") == run


# who could not be heard


def test_a_provider_that_cannot_be_reached_is_not_a_model_that_failed() -> None:
    """Exit code 6 when nobody answered, 7 when some did."""
    nowhere = "m@http://127.0.0.1:9/v1"
    variables = {"SURECALL_RETRY__MAX_RETRIES": "0"}
    words = ("--scenarios", "happy_path", "--json")
    result = invoke("eval", "--models", nowhere, *words, **variables)
    assert result.exit_code == 6
    overall = documents(result)[-1]["overall"]
    assert (overall["errors"], overall["strict"]["n"], overall["failures"]) == (1, 0, [])
    assert overall["error_causes"][0]["code"] == "CONNECTION_REFUSED"
    result = invoke("eval", "--models", f"zoo:steady,{nowhere}", *words, **variables)
    assert result.exit_code == 7
    assert invoke("eval", "--resume", "@latest").exit_code == 7


# other engines


def test_several_processes_give_the_same_verdicts() -> None:
    """Trials run elsewhere come to the same."""
    words = ("--models", "zoo:steady,zoo:storyteller", "--scenarios", "simple", "--trials", "2")
    local = documents(invoke("eval", *words, "--json"))[-1]
    other = documents(
        invoke("eval", *words, "--new", "--engine", "processes", "--workers", "2", "--json")
    )[-1]
    assert [row["strict"] for row in other["rows"]] == [row["strict"] for row in local["rows"]]
    with RunStore(Path(".surecall/evals.db")) as store:
        rows = [list(store.rows(run)) for run in (local["run"], other["run"])]
    assert [row.strict_ok for row in rows[0]] == [row.strict_ok for row in rows[1]]
    assert [row.text for row in rows[0]] == [row.text for row in rows[1]]


# the live table


def table_of(tally: Tally, *, width: int = 120, height: int = 30) -> str:
    """Draw the table of a tally as text."""
    display = LiveMatrix(Output(stderr=io.StringIO()), frozenset({"fake:a"}))
    console = Console(width=width, height=height, file=io.StringIO(), force_terminal=False)
    display._console = console
    console.print(display.render(tally))
    text = console.file.getvalue()  # pyright: ignore[reportAttributeAccessIssue]
    return "\n".join(line.rstrip() for line in text.splitlines())


def test_the_live_table_shows_what_passed_of_what_is_done() -> None:
    """Dots stand for what is to come; a row for each model, a column for each scenario."""
    units = fake_units(models=("fake:a", "fake:b"), trials=4)
    tally = Tally(units)
    for unit in units[:9]:
        tally.add(fake_row(unit))
    lines = table_of(tally).splitlines()
    assert lines[0].split() == ["model", "first", "second", "third", "all"]
    rows = [fake_row(unit) for unit in units[:9]]
    ok = [sum(row.strict_ok for row in rows[at::3]) for at in range(3)]
    counts = [f"{count}/3…" for count in ok] + [f"{sum(ok)}/9…"]
    assert lines[1].split() == ["fake:a", "(simulated)", *counts]
    assert lines[2].split() == ["fake:b", "·", "·", "·", "·"]
    assert lines[3].startswith("9/24 trials")


def test_the_live_table_fits_its_terminal() -> None:
    """Narrow ones show sums only, low ones the rows that are under way."""
    units = fake_units(models=tuple(f"fake:{n}" for n in range(50)), trials=1)
    tally = Tally(units)
    for unit in units[-4:]:
        tally.add(fake_row(unit))
    narrow = table_of(tally, width=60).splitlines()
    assert narrow[0].split() == ["model", "all"]
    low = table_of(tally, height=12).splitlines()
    assert len(low) <= 12
    assert "fake:48" in "\n".join(low)
    assert "… 44 more" in low[-2]


def test_drawing_takes_less_than_a_hundredth_of_a_processor() -> None:
    """The longer a drawing took, the longer the next one waits."""
    now = iter([0.0, 0.5, 10.0, 10.01, 20.0, 20.02, 30.0, 30.9])
    display = LiveMatrix(Output(stderr=io.StringIO()), frozenset(), clock=lambda: next(now))
    tally = Tally(fake_units())
    with display:
        display.tell(ExperimentStarted(run_id="r", tally=tally, resumed=False))
        intervals: list[float] = []
        for _ in range(3):
            display.refresh()
            intervals.append(display.interval_s)
    assert intervals[0] == 0.25
    assert intervals[1] == pytest.approx(1.25)
    assert intervals[2] == pytest.approx(2.5)


def test_stopping_is_explained() -> None:
    """What happens now, and what a second interrupt does."""
    stderr = io.StringIO()
    display = LineByCell(Output(stderr=stderr), frozenset())
    display.tell(Stopping(run_id="r", how="draining"))
    display.tell(Stopping(run_id="r", how="now"))
    assert stderr.getvalue().splitlines() == [
        "stopping after the trials in progress; Ctrl-C again stops at once",
        "stopping now",
    ]


def test_control_characters_in_names_reach_no_terminal() -> None:
    """A model may be called anything."""
    units = fake_units(models=("fake:\x1b[31mred",), trials=1)
    stderr = io.StringIO()
    display = make_display(Output(stderr=stderr), fake_manifest(units), "x.db")
    assert isinstance(display, LineByCell)
    tally = Tally(units)
    tally.add(fake_row(units[0]))
    display.tell(TrialFinished(run_id="r", row=fake_row(units[0]), tally=tally))
    assert "\x1b" not in table_of(tally)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "0 s"), (89, "89 s"), (120, "2 min"), (7200, "2.0 h")]
)
def test_durations_are_told_as_people_say_them(seconds: float, text: str) -> None:
    """Seconds, minutes, hours."""
    assert duration_of(seconds) == text
