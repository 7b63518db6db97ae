"""Runs on disk: what was added is there, once, and whatever is wrong with the file has a code."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from support.eval_fakes import fake_finished, fake_manifest, fake_row, fake_units
from surecall.base.errors import ConfigError, RowRefusedError, StoreError
from surecall.evals.records import TrialBody, TrialRow
from surecall.evals.store import RunStore

UNITS = fake_units(models=("fake:a", "fake:b"), trials=4)
MANIFEST = fake_manifest(UNITS)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    """An empty store."""
    with RunStore(tmp_path / "folder" / "evals.db") as made:
        yield made


def pairs(*indexes: int) -> list[tuple[TrialRow, TrialBody]]:
    """Return finished trials."""
    made = [fake_finished(UNITS[index]) for index in indexes]
    return [(item.row, item.body) for item in made]


def test_trials_come_back_as_they_were_added(store: RunStore) -> None:
    """Rows in the order of the matrix, bodies one by one, also after the file was closed."""
    run = store.create(MANIFEST)
    assert store.add(run, pairs(5, 0)) == (5, 0)
    assert store.add(run, pairs(2)) == (2,)
    store.close()
    with RunStore(store.path) as again:
        assert list(again.rows(run)) == [fake_row(UNITS[index]) for index in (0, 2, 5)]
        assert again.row(run, 5) == fake_row(UNITS[5])
        assert again.body(run, 5) == fake_finished(UNITS[5]).body
        assert again.done(run) == {0, 2, 5}


def test_a_trial_is_kept_once(store: RunStore) -> None:
    """A second record of the same place changes nothing, in the same batch or a later one."""
    run = store.create(MANIFEST)
    assert store.add(run, [*pairs(1), *pairs(1)]) == (1,)
    other = msgspec.structs.replace(fake_row(UNITS[1]), text="something else")
    assert store.add(run, [(other, TrialBody(index=1)), *pairs(2)]) == (2,)
    assert store.row(run, 1) == fake_row(UNITS[1])
    info = store.info(run)
    assert (info.done, info.original_ok, info.strict_ok) == (
        2,
        sum(fake_row(UNITS[index]).original_ok for index in (1, 2)),
        sum(fake_row(UNITS[index]).strict_ok for index in (1, 2)),
    )


def test_a_run_without_trials_has_none_right(store: RunStore) -> None:
    """It may have begun just now, and is listed with the others."""
    run = store.create(MANIFEST)
    assert store.count_right(run) == (0, 0, 0)
    store.add(run, pairs(0, 1))
    assert store.count_right(run).n == 2


def test_two_runs_keep_apart(store: RunStore) -> None:
    """The same place in two runs is two trials."""
    first, second = store.create(MANIFEST), store.create(MANIFEST)
    assert first != second
    store.add(first, pairs(0, 1))
    store.add(second, pairs(1))
    assert (store.done(first), store.done(second)) == ({0, 1}, {1})


def test_a_batch_is_all_or_nothing(store: RunStore) -> None:
    """When one trial cannot be written, none of its batch is."""
    run = store.create(MANIFEST)
    broken = msgspec.structs.replace(fake_row(UNITS[1]), seed=2**80)
    with pytest.raises(RowRefusedError):
        store.add(run, [*pairs(0), (broken, TrialBody(index=1))])
    assert store.done(run) == set()
    assert store.add(run, pairs(0)) == (0,)
    assert store.info(run).done == 1


def test_text_that_json_cannot_carry_is_replaced(store: RunStore) -> None:
    """Half a character, a number without end, and keys that are no text lose no trial."""
    run = store.create(MANIFEST)
    row = msgspec.structs.replace(fake_row(UNITS[0]), text="a\ud800b", case="c\ud800")
    body = TrialBody(index=0, request={"x": float("nan"), "y": ["\udfff"]}, state={"z": {1: 2}})
    store.add(run, [(row, body)])
    assert store.row(run, 0).text == "a\ufffdb"
    assert store.body(run, 0).request == {"x": "nan", "y": ["\ufffd"]}
    assert store.body(run, 0).state == {"z": {"1": 2}}


def test_numbers_beyond_64_bits_survive(store: RunStore) -> None:
    """Arguments of calls may hold them."""
    run = store.create(MANIFEST)
    body = TrialBody(index=0, transcript=({"arguments": {"n": 2**70}},))
    store.add(run, [(fake_row(UNITS[0]), body)])
    assert store.body(run, 0) == body


def test_many_trials_are_read_page_by_page(store: RunStore) -> None:
    """More than a page, in order, while more are added."""
    units = fake_units(trials=400)
    run = store.create(fake_manifest(units))
    store.add(run, [(fake_row(unit), None) for unit in reversed(units[:1100])])
    rows = store.rows(run)
    first = next(rows)
    store.add(run, [(fake_row(unit), None) for unit in units[1100:]])
    assert [first.index, *(row.index for row in rows)] == list(range(1200))


def test_a_trial_without_a_body_has_none(store: RunStore) -> None:
    """Asking for it is an error with a code."""
    run = store.create(MANIFEST)
    store.add(run, [(fake_row(UNITS[0]), None)])
    for missing in (0, 7):
        with pytest.raises(StoreError, match=f"no trial {missing}") as caught:
            store.body(run, missing)
        assert caught.value.code == "RUN_NOT_FOUND"


def test_threads_may_share_a_store(store: RunStore) -> None:
    """Adding and reading from several threads loses nothing."""
    units = fake_units(trials=100)
    run = store.create(fake_manifest(units))

    def add(part: int) -> None:
        for unit in units[part::4]:
            store.add(run, [(fake_row(unit), None)])
            store.info(run)

    threads = [threading.Thread(target=add, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.done(run) == {unit.index for unit in units}


def test_a_second_process_sees_what_was_added(store: RunStore) -> None:
    """Another connection reads while this one is open."""
    run = store.create(MANIFEST)
    store.add(run, pairs(3))
    with RunStore(store.path) as other:
        assert other.info(run).done == 1
        other.add(run, pairs(4))
    assert store.done(run) == {3, 4}


# runs


def test_runs_are_listed_latest_first(store: RunStore) -> None:
    """With what is known of each."""
    first = store.create(MANIFEST, now_s=1_790_000_000)
    second = store.create(fake_manifest(UNITS, axes={"trials": 9}), now_s=1_790_000_100)
    store.add(first, pairs(0))
    store.finish(first, "interrupted", now_s=1_790_000_050)
    listed = store.runs()
    assert [info.id for info in listed] == [second, first]
    assert listed[1] == store.info(first)
    info = store.info(first)
    assert (info.status, info.done, info.units) == ("interrupted", 1, len(UNITS))
    assert (info.created_at, info.ended_at) == (1_790_000_000, 1_790_000_050)
    assert info.manifest == MANIFEST
    assert not info.is_complete


def test_ids_are_short_and_sort_by_time(store: RunStore) -> None:
    """Eight characters that nobody mistakes for others."""
    ids = [store.create(MANIFEST, now_s=1_790_000_000 + second) for second in range(5)]
    assert ids == sorted(ids)
    assert all(len(run) == 8 and not set(run) & set("ilou") for run in ids)


def test_the_latest_unfinished_run_of_an_experiment_is_found(store: RunStore) -> None:
    """Complete ones and those of other experiments are not."""
    assert store.find_unfinished(MANIFEST.hash) is None
    old = store.create(MANIFEST, now_s=1_790_000_000)
    assert store.find_unfinished(MANIFEST.hash) == old
    new = store.create(MANIFEST, now_s=1_790_000_001)
    store.create(fake_manifest(UNITS, axes={"trials": 9}), now_s=1_790_000_002)
    assert store.find_unfinished(MANIFEST.hash) == new
    store.finish(new, "complete")
    assert store.find_unfinished(MANIFEST.hash) == old
    store.finish(old, "interrupted")
    assert store.find_unfinished(MANIFEST.hash) == old
    assert store.find_complete(MANIFEST.hash) == new


def test_a_run_is_found_by_any_of_its_names(store: RunStore) -> None:
    """By id, by its beginning, by tag with or without its sign, and counted back."""
    first = store.create(MANIFEST, now_s=1_790_000_000)
    second = store.create(MANIFEST, now_s=1_790_500_000)
    store.tag(first, "@baseline")
    for reference in (first, first[:6], "@baseline", "baseline", "@latest~1"):
        assert store.resolve(reference) == first, reference
    assert store.resolve("@latest") == store.resolve("@latest~0") == second
    assert store.info(first).tags == ("baseline",)


@pytest.mark.parametrize(
    "reference", ["", "zzzzzzzz", "@nothing", "@latest~2", "@latest~x", "@latest~-1", "@", "%"]
)
def test_a_name_of_no_run_is_an_error(store: RunStore, reference: str) -> None:
    """Nothing is guessed."""
    store.create(MANIFEST, now_s=1_790_000_000)
    store.create(MANIFEST, now_s=1_790_500_000)
    with pytest.raises(StoreError) as caught:
        store.resolve(reference)
    assert caught.value.code == "RUN_NOT_FOUND"


def test_the_beginning_of_several_runs_names_them(store: RunStore) -> None:
    """The error lists what could be meant."""
    ids = [store.create(MANIFEST, now_s=1_790_000_000 + 40_000 * n) for n in range(2)]
    common = ids[0][:2]
    with pytest.raises(StoreError, match="beginning of 2 runs") as caught:
        store.resolve(common)
    assert caught.value.hint == f"Type more of it: {ids[0]}, {ids[1]}."


def test_a_tag_moves_and_can_be_taken_away(store: RunStore) -> None:
    """One name is one run."""
    first, second = store.create(MANIFEST), store.create(MANIFEST)
    store.tag(first, "baseline")
    store.tag(second, "baseline")
    assert (store.info(first).tags, store.info(second).tags) == ((), ("baseline",))
    store.untag("@baseline")
    assert store.info(second).tags == ()


@pytest.mark.parametrize("name", ["", "@latest", "latest", "a b", "a~1", "-x", "@@x", "x" * 65])
def test_what_cannot_be_a_tag_is_refused(store: RunStore, name: str) -> None:
    """A tag must be told from everything else a run can be named by."""
    with pytest.raises(ConfigError, match="cannot be a tag") as caught:
        store.tag(store.create(MANIFEST), name)
    assert ("begun last" in str(caught.value.hint)) is (name in {"@latest", "latest"})


def test_a_removed_run_leaves_nothing(store: RunStore) -> None:
    """Its trials, bodies and tags go with it; others stay."""
    gone, kept = store.create(MANIFEST), store.create(MANIFEST)
    store.add(gone, pairs(0, 1))
    store.add(kept, pairs(2))
    store.tag(gone, "old")
    store.remove(gone)
    assert [info.id for info in store.runs()] == [kept]
    assert store.done(kept) == {2}
    with pytest.raises(StoreError):
        store.done(gone)
    with closing(sqlite3.connect(store.path)) as database:
        counts = [
            database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
            for table in ("runs", "trials", "bodies", "tags")
        ]
    assert counts == [1, 1, 1, 0]


def test_only_one_works_on_a_run(store: RunStore) -> None:
    """The second is told, also by another store; the lock is gone afterwards."""
    run = store.create(MANIFEST)
    assert not store.is_held(run)
    with store.hold(run), RunStore(store.path) as other:
        assert other.is_held(run)
        with pytest.raises(StoreError, match="another process") as caught, other.hold(run):
            pass
        assert caught.value.code == "RUN_IN_USE"
        with pytest.raises(StoreError):
            other.remove(run)
        with other.hold(other.create(MANIFEST)):
            pass
    assert not store.is_held(run)
    with store.hold(run):
        pass
    assert [path.name for path in store.path.parent.glob("*.lock")] == []


# the file


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    """It is refused with a code and not changed."""
    path = tmp_path / "evals.db"
    path.write_bytes(b"these are my notes, not a database\n" * 50)
    before = path.read_bytes()
    with pytest.raises(StoreError) as caught:
        RunStore(path)
    assert caught.value.code == "STORE_CORRUPT"
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    """Its tables are not ours."""
    path = tmp_path / "evals.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE songs (name)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program") as caught:
        RunStore(path)
    assert caught.value.code == "STORE_CORRUPT"
    assert path.read_bytes() == before


def test_a_store_of_a_later_version_is_left_alone(store: RunStore) -> None:
    """Whoever wrote it knows more than we do."""
    store.close()
    with closing(sqlite3.connect(store.path)) as database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="layout 99") as caught:
        RunStore(store.path)
    assert caught.value.code == "STORE_TOO_NEW"


def test_a_damaged_page_is_told_with_a_code(store: RunStore) -> None:
    """Reading what the disk has lost is no crash."""
    units = fake_units(trials=100)
    run = store.create(fake_manifest(units))
    store.add(run, [(fake_row(unit), fake_finished(unit).body) for unit in units])
    store.close()
    content = bytearray(store.path.read_bytes())
    content[8192:] = b"\xff" * (len(content) - 8192)
    store.path.write_bytes(bytes(content))
    with pytest.raises(StoreError) as caught, RunStore(store.path) as again:
        list(again.rows(run))
    assert caught.value.code == "STORE_CORRUPT"


@pytest.mark.parametrize("place", ["file/evals.db", "folder"])
def test_a_place_that_cannot_be_written_is_told_with_a_code(tmp_path: Path, place: str) -> None:
    """A file where a folder should be, or a folder where the file should be."""
    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError) as caught:
        RunStore(tmp_path / place)
    assert caught.value.code == "STORE_WRITE_FAILED"


def test_every_file_is_only_for_its_owner(store: RunStore) -> None:
    """The database, what it keeps beside itself, and the lock hold what models said."""
    run = store.create(MANIFEST)
    with store.hold(run):
        store.add(run, pairs(0))
        found = {path.name: path.stat().st_mode & 0o777 for path in store.path.parent.iterdir()}
    assert set(found.values()) == {0o600}
    assert set(found) == {
        "evals.db",
        "evals.db-wal",
        "evals.db-shm",
        f"evals.db.{run}.lock",
    }


def test_a_full_disk_has_its_own_code(store: RunStore) -> None:
    """Nothing of the batch is kept, and with more room the run goes on."""
    database: Any = store._database
    run = store.create(MANIFEST)
    (pages,) = database.execute("PRAGMA page_count").fetchone()
    database.execute(f"PRAGMA max_page_count = {pages}")
    big = msgspec.structs.replace(fake_row(UNITS[0]), text="x" * 100_000)
    with pytest.raises(StoreError) as caught:
        store.add(run, [(big, None)])
    assert caught.value.code == "DISK_FULL"
    assert store.done(run) == set()
    database.execute("PRAGMA max_page_count = 100000")
    assert store.add(run, [(big, None)]) == (0,)


def test_a_missing_table_is_damage(store: RunStore) -> None:
    """Our queries are right, so the file is not."""
    database: Any = store._database
    database.execute("DROP TABLE tags")
    with pytest.raises(StoreError) as caught:
        store.runs()
    assert caught.value.code == "STORE_CORRUPT"


def test_commits_reach_the_disk(store: RunStore) -> None:
    """The file is kept as it must be for a loss of power: write-ahead log, synchronous in full."""
    database: Any = store._database
    assert database.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
    assert database.execute("PRAGMA synchronous").fetchone()[0] == 2


# views


def test_views_show_trials_and_calls(store: RunStore) -> None:
    """The columns that others rely on are there, with the values of the records."""
    run = store.create(MANIFEST)
    store.add(run, pairs(*range(len(UNITS))))
    store.tag(run, "baseline")
    with closing(sqlite3.connect(store.path)) as database:
        database.row_factory = sqlite3.Row
        trials = database.execute("SELECT * FROM v_trials ORDER BY idx").fetchall()
        calls = database.execute("SELECT * FROM v_tool_calls ORDER BY idx").fetchall()
        (listed,) = database.execute("SELECT * FROM v_runs").fetchall()
    assert len(trials) == len(calls) == len(UNITS)
    for unit, trial, call in zip(UNITS, trials, calls, strict=True):
        row = fake_row(unit)
        assert (trial["run"], trial["idx"], trial["model"]) == (run, unit.index, unit.cell.model)
        assert (trial["scenario"], trial["case_id"], trial["trial"]) == (
            unit.cell.scenario,
            "",
            unit.trial,
        )
        assert (trial["original_ok"], trial["strict_ok"]) == (row.original_ok, row.strict_ok)
        assert (trial["turns"], trial["requests"], trial["input_tokens"]) == (2, 2, 100)
        assert trial["strict_reason"] == (None if row.strict_ok else "WRONG_TEXT")
        assert (call["name"], call["turn"], call["structured"]) == ("note", 1, 1)
        assert call["valid_before"] == row.calls[0].valid_before
        assert call["arguments_bytes"] == row.calls[0].arguments_bytes
    assert (listed["run"], listed["done"], listed["tags"]) == (run, len(UNITS), "baseline")
    assert listed["created_at"].startswith("20")


# manifests


def test_a_manifest_tells_what_differs() -> None:
    """Field by field, and nothing when only the telling fields differ."""
    same = fake_manifest(UNITS, command="surecall eval --trials 2", simulated=("fake:a",))
    assert same.hash == MANIFEST.hash
    assert MANIFEST.differences(same) == []
    other = fake_manifest(UNITS[:-1], axes={"trials": 3, "seed": 1}, suites={"fake": "2"})
    assert other.hash != MANIFEST.hash
    found = MANIFEST.differences(other)
    assert found[0] == "axes.trials: 2 → 3"
    assert "units: 24 → 23" in found
    assert "suites.fake: 1 → 2" in found
    assert "axes.seed: (not there) → 1" in found
    assert [line.partition(":")[0] for line in found if "hash" in line] == ["units_hash"]


def test_a_changed_seed_is_another_experiment() -> None:
    """Also when everything else is the same."""
    changed = (msgspec.structs.replace(UNITS[0], seed=1), *UNITS[1:])
    assert fake_manifest(changed).hash != MANIFEST.hash
