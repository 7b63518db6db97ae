"""`surecall eval`: resuming a run, and the interrupts that make it necessary."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from surecall.evals.store import RunStore

from .harness import STEADY, document, documents, invoke, of_type

# resuming


def interrupted_run(trials: int = 4) -> str:
    """Make a run, take the last of its trials away, and return its id."""
    run = documents(invoke("eval", *STEADY, "--trials", str(trials), "--json"))[-1]["run"]
    with RunStore(Path(".surecall/evals.db")) as store:
        database: Any = store._database
        database.execute("DELETE FROM bodies WHERE idx >= 2")
        database.execute("DELETE FROM trials WHERE idx >= 2")
        database.execute("UPDATE runs SET done = 2, status = 'running'")
    return run


def test_a_dry_run_counts_what_is_left_of_a_run() -> None:
    """Trials that are there already cost nothing more."""
    run = interrupted_run()
    plan = document(invoke("eval", *STEADY, "--trials", "4", "--dry-run", "--json"))
    assert (plan["run"], plan["trials"], plan["done"]) == (run, 4, 2)
    assert plan["estimate"]["requests"] == 6
    shown = invoke("eval", *STEADY, "--trials", "4", "--dry-run").stdout
    assert f"4 trials in 1 cell, 2 of them already finished in run {run}" in shown


def test_the_same_command_goes_on_with_what_is_left() -> None:
    """Without a flag; the trials that are there are not run again."""
    run = interrupted_run()
    found = documents(invoke("eval", *STEADY, "--trials", "4", "--json"))
    assert (found[0]["run"], found[0]["resumed"], found[0]["done"]) == (run, True, 2)
    assert [item["index"] for item in of_type(found, "trial")] == [2, 3]
    assert (found[-1]["run"], found[-1]["trials"]) == (run, 4)


@pytest.mark.parametrize("words", [("--resume",), ("--resume", "@latest")])
def test_the_name_of_a_run_is_enough_to_go_on_with_it(words: tuple[str, ...]) -> None:
    """Everything else is taken from the run, and the latest may be left out."""
    run = interrupted_run()
    found = documents(invoke("eval", *words, "--json"))
    assert (found[0]["run"], found[-1]["trials"]) == (run, 4)


def test_what_an_endpoint_failed_is_run_again() -> None:
    """In place, with the failed attempt kept; nothing else is run."""
    run = documents(invoke("eval", *STEADY, "--trials", "4", "--json"))[-1]["run"]
    with RunStore(Path(".surecall/evals.db")) as store:
        failed = [
            replace(row, outcome="error", code="RATE_LIMIT", strict_ok=False, original_ok=False)
            for row in store.rows(run)
            if row.index in (1, 3)
        ]
        store.replace_verdicts(run, store.info(run).manifest, failed)
        assert (store.info(run).errors, store.info(run).is_complete) == (2, True)
    assert document(invoke("eval", "--retry-errors", run, "--dry-run", "--json"))["done"] == 4
    found = documents(invoke("eval", "--retry-errors", run, "--json"))
    assert [item["index"] for item in of_type(found, "trial")] == [1, 3]
    with RunStore(Path(".surecall/evals.db")) as store:
        info = store.info(run)
        assert (info.done, info.errors, info.strict_ok, info.status) == (4, 0, 4, "complete")
        attempts = store.failed_attempts(run)
        assert [(number, row.index) for number, row in attempts] == [(1, 1), (1, 3)]
        store.replace_verdicts(run, info.manifest, failed[:1])
    invoke("eval", "--retry-errors", run, "-q")
    with RunStore(Path(".surecall/evals.db")) as store:
        attempts = store.failed_attempts(run)
        assert [(number, row.index) for number, row in attempts] == [(1, 1), (2, 1), (1, 3)]
        store.remove(run)
    assert invoke("eval", "--retry-errors", "@latest", "--new").exit_code == 4


@pytest.mark.parametrize(
    "words",
    [
        ("eval", *STEADY),
        ("eval", "--resume"),
        ("eval", "--retry-errors", "@latest"),
        ("eval", "runs", "list"),
        ("eval", "runs", "show"),
        ("eval", "recommend"),
    ],
    ids=" ".join,
)
def test_every_command_refuses_a_damaged_store(words: tuple[str, ...]) -> None:
    """Also one that would only add to it, and it is not changed."""
    invoke("eval", *STEADY, "--trials", "60", "-q")
    place = Path(".surecall/evals.db")
    with RunStore(place) as store:
        (root,) = store._database.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'bodies'"
        ).fetchone()
        (size,) = store._database.execute("PRAGMA page_size").fetchone()
        store._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    data = bytearray(place.read_bytes())
    data[(root - 1) * size : root * size] = b"\xa5" * size
    place.write_bytes(data)
    result = invoke(*words)
    assert result.exit_code != 0
    assert "STORE_CORRUPT" in result.stderr
    assert place.read_bytes() == bytes(data)


CASES = """
[[tools]]
name = "say"
description = "Say something."
result = "said"

[[cases]]
id = "one"
prompt = "Say hello."
calls = [{ tool = "say" }]
"""


@pytest.mark.parametrize("name", ["cases.toml", "./cases.toml"])
def test_a_run_of_your_own_cases_is_resumed_from_any_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run knows where its file was; naming the file again means the one that is here."""
    begun, other = tmp_path / "begun", tmp_path / "other"
    begun.mkdir()
    other.mkdir()
    (begun / "cases.toml").write_text(CASES, "utf-8")
    store = ("--store", str(tmp_path / "runs.db"))
    monkeypatch.chdir(begun)
    words = ("--models", "zoo:steady", "--suite", f"custom:{name}", "--trials", "2", *store)
    begun_with = documents(invoke("eval", *words, "--json"))
    assert begun_with[-1]["trials"] == 2
    run = begun_with[-1]["run"]
    with RunStore(tmp_path / "runs.db") as kept:
        database: Any = kept._database
        database.execute("DELETE FROM bodies WHERE idx = 1")
        database.execute("DELETE FROM trials WHERE idx = 1")
        database.execute("UPDATE runs SET done = 1, status = 'running'")
        assert kept.info(run).manifest.axes["suites"] == [f"custom:{name}"]
    monkeypatch.chdir(other)
    here = ("--resume", run, "--suite", f"custom:{name}", *store)
    assert documents(invoke("eval", *here, "--json"))[-1]["code"] == "INVALID_CASE"
    found = documents(invoke("eval", "--resume", run, *store, "--json"))
    assert (found[0]["run"], found[0]["done"], found[-1]["trials"]) == (run, 1, 2)


def test_new_begins_a_new_run() -> None:
    """Also when there is an unfinished one."""
    run = interrupted_run()
    found = documents(invoke("eval", *STEADY, "--trials", "4", "--new", "--json"))
    assert found[0]["run"] != run
    assert found[0]["resumed"] is False


def test_a_complete_run_is_already_complete() -> None:
    """Going on with it asks nobody anything, checks the gates, and ends well."""
    run = documents(invoke("eval", *STEADY, "--json"))[-1]["run"]
    result = invoke("eval", *STEADY, "--resume", "--json")
    note, summary = documents(result)
    assert (note["type"], note["message"]) == ("note", f"run {run} is already complete")
    assert (summary["run"], result.exit_code) == (run, 0)
    assert invoke("eval", "--resume", run, "--gate", "strict<0.5").exit_code == 1


def test_a_resumed_run_is_held_to_its_own_gates() -> None:
    """It ends as it would have; other gates replace them, and the same experiment may have none."""
    gated = (*STEADY, "--trials", "1", "--gate", "strict<0.5", "--json")
    assert invoke("eval", *gated).exit_code == 1
    resumed = invoke("eval", "--resume", "@latest", "--json")
    assert resumed.exit_code == 1
    (gates,) = of_type(documents(resumed), "gates")
    assert [item["gate"]["text"] for item in gates["gates"]] == ["strict<0.5"]
    assert invoke("eval", "--resume", "@latest", "--gate", "strict>=0.5").exit_code == 0
    assert invoke("eval", *STEADY, "--trials", "1").exit_code == 0


def test_reports_show_the_gates_of_the_last_command() -> None:
    """Gates that replace those of a run are its own from then on."""
    invoke("eval", *STEADY, "--gate", "strict<0.5", "-q")
    again = ("--gate", "strict>=0.25", "--undecided", "fail", "--report", "md", "-o", "out")
    invoke("eval", "--resume", "@latest", *again, "-q")
    summary = Path("out/summary.md").read_text("utf-8")
    assert "- gate `strict>=0.25 undecided=fail` **undecided**, stops the build" in summary
    assert "strict<0.5" not in summary
    assert invoke("eval", "--resume", "@latest").exit_code == 1


def test_a_kept_gate_compares_with_the_same_run_again() -> None:
    """The latest run of then is not the latest any more."""
    first = documents(invoke("eval", *STEADY, "--trials", "2", "--json"))[-1]["run"]
    gate = ("--gate", "regression<=0.5 vs @latest")
    assert invoke("eval", *STEADY, "--trials", "2", "--new", *gate).exit_code == 0
    (gates,) = of_type(documents(invoke("eval", "--resume", "@latest", "--json")), "gates")
    assert gates["gates"][0]["gate"]["against"] == first


def test_a_later_complete_run_does_not_hide_an_unfinished_one() -> None:
    """`--resume` alone continues what is not finished."""
    run = interrupted_run()
    later = documents(invoke("eval", *STEADY, "--trials", "1", "--json"))[-1]["run"]
    assert run != later
    assert documents(invoke("eval", "--resume", "--json"))[0]["run"] == run
    again = documents(invoke("eval", "--resume", "--json"))
    assert of_type(again, "summary")[0]["run"] == later


def test_a_complete_run_is_made_again_without_a_flag() -> None:
    """Nothing says that an old result is wanted."""
    first = documents(invoke("eval", *STEADY, "--json"))[-1]["run"]
    assert documents(invoke("eval", *STEADY, "--json"))[-1]["run"] != first


def test_a_run_that_differs_is_not_resumed() -> None:
    """Every difference is listed."""
    run = interrupted_run()
    result = invoke("eval", *STEADY, "--trials", "5", "--seed", "3", "--resume", run, "--json")
    (problem,) = documents(result)
    assert (problem["code"], result.exit_code) == ("RUN_MISMATCH", 4)
    assert "axes.trials: 4 → 5" in problem["message"]
    assert "axes.seed: 0 → 3" in problem["message"]


def test_why_an_unfinished_run_is_left_behind_is_said() -> None:
    """The same flags with another version of something begin a new run, and say so."""
    run = interrupted_run()
    with RunStore(Path(".surecall/evals.db")) as store:
        database: Any = store._database
        database.execute(
            "UPDATE runs SET manifest_hash = 'old', manifest = json_set(manifest, '$.package', '0')"
        )
    found = documents(invoke("eval", *STEADY, "--trials", "4", "--json"))
    notes = [item["message"] for item in of_type(found, "note")]
    assert notes[0] == f"run {run} is not finished, but cannot be resumed:"
    assert notes[1].startswith("  package: 0 → ")
    assert of_type(found, "launch")[0]["run"] != run


def test_a_run_that_somebody_works_on_is_left_to_them() -> None:
    """The second command stops before it asks anybody."""
    run = interrupted_run()
    with RunStore(Path(".surecall/evals.db")) as store, store.hold(run):
        result = invoke("eval", *STEADY, "--trials", "4", "--json")
    (problem,) = documents(result)
    assert (problem["code"], result.exit_code) == ("RUN_IN_USE", 4)


# interrupts


class Process:
    """The command as a process of its own."""

    def __init__(self, *words: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "surecall", "eval", "--json", *words],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.documents: list[dict[str, Any]] = []

    def read_until(self, kind: str) -> None:
        """Read until a document of this type."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.documents.append(json.loads(line))
            if self.documents[-1]["type"] == kind:
                return

    def interrupt(self) -> None:
        """Send what Ctrl-C sends."""
        self._process.send_signal(signal.SIGINT)

    def end(self) -> int:
        """Read the rest and return how it ended."""
        self.read_until("")
        assert self._process.stdout is not None
        self._process.stdout.close()
        return self._process.wait()

    def leave(self) -> int:
        """Read no more, and return how it ended."""
        assert self._process.stdout is not None
        self._process.stdout.close()
        return self._process.wait()


MANY = ("--models", "zoo:*", "--trials", "200")


def test_an_interrupt_leaves_a_run_that_can_be_resumed() -> None:
    """Exit code 2, the command to go on, and every trial that was told is kept."""
    process = Process(*MANY)
    process.read_until("trial")
    process.interrupt()
    assert process.end() == 2
    found = process.documents
    run = found[0]["run"]
    assert of_type(found, "stopping") == [
        {"schema_version": 1, "type": "stopping", "run": run, "how": "draining"}
    ]
    assert found[-1]["resume"] == f"surecall eval --resume {run}"
    told = {item["index"] for item in of_type(found, "trial")}
    with RunStore(Path(".surecall/evals.db")) as store:
        assert store.done(run) == told
        assert store.info(run).status == "interrupted"
        assert not store.is_held(run)
    assert 0 < len(told) < 16_000


def test_a_second_interrupt_stops_at_once() -> None:
    """A model that takes its time is not waited for."""
    process = Process("--models", "zoo:slow-and-strict", "--trials", "500")
    process.read_until("trial")
    process.interrupt()
    process.read_until("stopping")
    process.interrupt()
    assert process.end() == 2
    run = process.documents[0]["run"]
    told = {item["index"] for item in of_type(process.documents, "trial")}
    with RunStore(Path(".surecall/evals.db")) as store:
        assert store.done(run) == told


@pytest.mark.parametrize("times", [3, 6])
def test_interrupts_without_end_leave_the_command_to_go_on(times: int) -> None:
    """Also those that come while the run is being closed and summed up."""
    process = Process(*MANY)
    process.read_until("trial")
    for _ in range(times):
        process.interrupt()
        time.sleep(0.03)
    assert process.end() == 2
    run = process.documents[0]["run"]
    assert process.documents[-1]["resume"] == f"surecall eval --resume {run}"


def test_a_reader_that_leaves_stops_the_run_but_is_no_success() -> None:
    """As Ctrl-C would: exit code 2, and what is done is kept."""
    process = Process(*MANY)
    process.read_until("trial")
    assert process.leave() == 2
    with RunStore(Path(".surecall/evals.db")) as store:
        (info,) = store.runs()
    assert info.status == "interrupted"
    assert 0 < info.done < info.units


def test_a_gate_fails_also_when_nobody_reads_on() -> None:
    """The exit code is that of the gate."""
    process = Process("-q", *STEADY, "--trials", "1", "--gate", "strict<0.5")
    process.read_until("summary")
    assert process.leave() == 1
