"""`surecall eval runs`: what is kept is listed, shown, named and removed."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from support.eval_fakes import fake_finished, fake_manifest, fake_units
from surecall.cli.console import Output
from surecall.evals.store import RunStore

from .harness import document, invoke

UNITS = fake_units(trials=2)
STORE = Path(".surecall/evals.db")


@pytest.fixture
def runs(own_folder: Path) -> list[str]:
    """Three runs: a complete one, an interrupted one, and one that was killed."""
    made: list[str] = []
    with RunStore(STORE) as store:
        for number, count in enumerate((6, 3, 1)):
            manifest = fake_manifest(
                UNITS,
                axes={"trials": number},
                command=f"surecall eval --seed {number}",
                simulated=("fake:a",),
                contenders={"fake:a": {}},
            )
            run = store.create(manifest, now_s=1_790_000_000 + 100_000 * number)
            finished = [fake_finished(unit) for unit in UNITS[:count]]
            store.add(run, [(item.row, item.body) for item in finished])
            made.append(run)
        store.finish(made[0], "complete", now_s=1_790_000_060)
        store.finish(made[1], "interrupted")
    return made


def test_runs_are_listed_latest_first(runs: list[str]) -> None:
    """With their status, how far they came, and that they are simulated."""
    for words in (("eval", "runs"), ("eval", "runs", "list")):
        lines = invoke(*words).stdout.splitlines()
        assert [line.split()[0] for line in lines] == ["run", *reversed(runs)]
        assert "complete" in lines[3]
        assert "6/6" in lines[3]
        assert "interrupted" in lines[2]
        assert "interrupted" in lines[1], "killed is interrupted as well"
        place = lines[0].index("models")
        assert lines[1][place:].split() == ["simulated"]
        assert "2026-09-21" in lines[3]


def test_the_list_as_data(runs: list[str]) -> None:
    """Everything that is known of each run, and how many there are."""
    found = document(invoke("eval", "runs", "list", "--limit", "2", "--json"))
    assert (found["type"], found["count"]) == ("runs", 3)
    assert [item["run"] for item in found["runs"]] == [runs[2], runs[1]]
    first = found["runs"][0]
    assert (first["status"], first["done"], first["units"]) == ("interrupted", 1, 6)
    assert first["manifest"]["axes"] == {"trials": 2}


def test_the_table_and_the_data_have_the_same_totals(own_folder: Path) -> None:
    """A trial that the endpoint failed is wrong in both, as in gates; controls are in neither."""
    rows = [
        replace(fake_finished(unit).row, strict_ok=True, original_ok=True, outcome="called")
        for unit in UNITS[:4]
    ]
    rows[1] = replace(rows[1], control=True)
    rows[2] = replace(rows[2], strict_ok=False, original_ok=False, outcome="error")
    with RunStore(STORE) as store:
        run = store.create(fake_manifest(UNITS))
        store.add(run, [(row, None) for row in rows])
    line = invoke("eval", "runs").stdout.splitlines()[1]
    assert line.split().count("2/3") == 2
    for words in (("eval", "runs", "list"), ("eval", "runs", "show", run)):
        found = document(invoke(*words, "--json"))
        found = found["runs"][0] if "runs" in found else found
        assert (found["tried"], found["strict_ok"], found["original_ok"]) == (3, 2, 2)
        assert (found["done"], found["errors"]) == (4, 1)


def test_more_than_the_limit_is_said(runs: list[str]) -> None:
    """So that nobody takes the list for all there is."""
    result = invoke("eval", "runs", "list", "--limit", "1")
    assert result.stdout.splitlines()[-1] == "… 2 more: --limit 3"


def test_a_wide_terminal_shows_the_commands(runs: list[str]) -> None:
    """There is no room for them elsewhere."""
    assert "surecall eval --seed 1" in invoke("eval", "runs", COLUMNS="160").stdout
    assert "surecall eval" not in invoke("eval", "runs", COLUMNS="80").stdout


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_narrow_terminal_shows_whole_ids(runs: list[str], width: int) -> None:
    """A run can always be named by what the list shows."""
    lines = invoke("eval", "runs", COLUMNS=str(width)).stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["run", *reversed(runs)]
    assert all("…" not in line for line in lines)


def test_somebody_at_work_is_seen(runs: list[str]) -> None:
    """A run that is held is running."""
    with RunStore(STORE) as store, store.hold(runs[2]):
        found = document(invoke("eval", "runs", "--json"))
    assert [item["status"] for item in found["runs"]] == ["running", "interrupted", "complete"]


def test_a_run_is_shown(runs: list[str]) -> None:
    """What it is made of, and what it came to."""
    text = invoke("eval", "runs", "show", runs[0]).stdout
    assert "surecall eval --seed 0" in text
    assert "fake:a (simulated)" in text
    assert "6 of 6 trials" in text
    shown = document(invoke("eval", "runs", "show", "@latest~2", "--json"))
    assert (shown["type"], shown["run"], shown["status"]) == ("run", runs[0], "complete")
    assert shown["overall"]["n"] == 6
    assert shown["rows"][0]["model"] == "fake:a"
    assert shown["manifest"]["command"] == "surecall eval --seed 0"


def test_the_latest_is_shown_when_none_is_named(runs: list[str]) -> None:
    """As everywhere."""
    assert document(invoke("eval", "runs", "show", "--json"))["run"] == runs[2]


def test_a_tag_names_a_run(runs: list[str]) -> None:
    """Given, used, moved and taken away."""
    assert invoke("eval", "runs", "tag", runs[0][:2], "@baseline").exit_code == 4
    assert invoke("eval", "runs", "tag", runs[0], "@baseline").stdout == f"@baseline is {runs[0]}\n"
    assert document(invoke("eval", "runs", "show", "@baseline", "--json"))["run"] == runs[0]
    moved = document(invoke("eval", "runs", "tag", "@latest", "baseline", "--json"))
    assert (moved["run"], moved["tag"]) == (runs[2], "baseline")
    assert "baseline" in invoke("eval", "runs").stdout.splitlines()[1]
    assert invoke("eval", "runs", "untag", "baseline").exit_code == 0
    assert invoke("eval", "runs", "show", "@baseline").exit_code == 4
    assert (
        document(invoke("eval", "runs", "untag", "baseline", "--json"))["code"] == "RUN_NOT_FOUND"
    )


def test_runs_are_removed(runs: list[str]) -> None:
    """Those that are named, each once."""
    result = invoke("eval", "runs", "rm", runs[0], runs[0][:8], "@latest", "--yes", "--json")
    assert document(result)["runs"] == [runs[0], runs[2]]
    assert [item["run"] for item in document(invoke("eval", "runs", "--json"))["runs"]] == [runs[1]]


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_nothing_is_removed_where_nobody_can_be_asked(
    runs: list[str], flags: tuple[str, ...]
) -> None:
    """A pipe is not consent, whatever comes out of it."""
    for answer in ("n\n", "y\n", ""):
        result = invoke("eval", "runs", "rm", "@latest", *flags, stdin=answer)
        assert result.exit_code == 4
        assert "--yes" in (result.stdout if flags else result.stderr)
    assert document(invoke("eval", "runs", "--json"))["count"] == 3


@pytest.mark.parametrize(("answer", "code", "left"), [("n\n", 2, 3), ("y\n", 0, 2)])
def test_whoever_sits_at_the_terminal_is_asked(
    runs: list[str], monkeypatch: pytest.MonkeyPatch, answer: str, code: int, left: int
) -> None:
    """And only a yes removes."""
    monkeypatch.setattr(Output, "is_attended", True)
    result = invoke("eval", "runs", "rm", runs[0], stdin=answer)
    assert result.exit_code == code
    assert f"Remove {runs[0]} with 6 trials?" in result.stderr
    assert document(invoke("eval", "runs", "--json"))["count"] == left


def test_nothing_is_removed_when_one_name_is_wrong(runs: list[str]) -> None:
    """All names are looked up first."""
    result = invoke("eval", "runs", "rm", runs[0], "nothing", "--json")
    assert (document(result)["code"], result.exit_code) == ("RUN_NOT_FOUND", 4)
    assert document(invoke("eval", "runs", "--json"))["count"] == 3


def test_a_run_that_is_worked_on_is_not_removed(runs: list[str]) -> None:
    """Its trials are still to come."""
    with RunStore(STORE) as store, store.hold(runs[1]):
        result = invoke("eval", "runs", "rm", runs[1], "--yes", "--json")
    assert (document(result)["code"], result.exit_code) == ("RUN_IN_USE", 4)


@pytest.mark.parametrize("words", [("list",), ("show",), ("tag", "x", "y"), ("rm", "x")])
def test_without_a_store_there_are_no_runs(words: tuple[str, ...]) -> None:
    """Looking does not make one."""
    result = invoke("eval", "runs", *words, "--json")
    assert (document(result)["code"], result.exit_code) == ("RUN_NOT_FOUND", 4)
    assert not STORE.exists()


def test_the_store_may_be_elsewhere(runs: list[str], tmp_path: Path) -> None:
    """Named by a flag, or by the settings."""
    (tmp_path / "other").mkdir()
    STORE.rename(tmp_path / "other" / "evals.db")
    flag = document(invoke("eval", "runs", "list", "--store", "other/evals.db", "--json"))
    setting = document(invoke("eval", "runs", "list", "--json", SURECALL_EVALS_DIR="other"))
    assert flag["count"] == setting["count"] == 3
