"""The store of facts: dated, expiring, shared, and without secrets."""

import logging
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from surecall.base.errors import ConfigError
from surecall.base.records import ErrorDetail
from surecall.models.probe import FactKey, FactStore, Finding
from surecall.models.probe.findings import Cost

KEY = FactKey.of("http://127.0.0.1:1/v1", "chat_completions", "m")


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock to move."""
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> FactStore:
    """A store that has no file yet."""
    return FactStore(tmp_path / "new" / "facts.sqlite3", max_age_s=100, clock=clock)


def finding(question: str = "grammar", **fields: Any) -> Finding:
    """Return an answer that decides these fields."""
    cost = Cost(2, 30, 4)
    return Finding(question=question, verdict="yes", fields=fields, evidence="seen", cost=cost)


def values(store: FactStore, key: FactKey = KEY) -> dict[str, Any]:
    """Return what is believed about the model."""
    return {fact.field: fact.value for fact in store.fresh(key)}


def test_a_fact_is_kept_with_date_evidence_version_and_cost(store: FactStore, clock: Clock) -> None:
    """Everything that is needed to judge a fact comes back with it."""
    store.save(KEY, [finding(grammar=True)])
    (fact,) = store.fresh(KEY)
    assert (fact.field, fact.value, fact.question, fact.evidence) == (
        "grammar",
        True,
        "grammar",
        "seen",
    )
    assert (fact.asked_at, fact.expires_at) == (clock.now, clock.now + 100)
    assert (fact.requests, fact.tokens) == (2, 34)
    assert fact.version


@dataclass(frozen=True)
class Age:
    id: str
    seconds: float
    believed: bool


@pytest.mark.parametrize(
    "age",
    [
        Age("new", 0, believed=True),
        Age("almost-too-old", 99.9, believed=True),
        Age("too-old", 100, believed=False),
        Age("from-the-future", -1, believed=False),
    ],
    ids=lambda age: age.id,
)
def test_a_fact_is_believed_for_its_time(store: FactStore, clock: Clock, age: Age) -> None:
    """A fact expires; one that a wrong clock dated ahead is not believed either."""
    store.save(KEY, [finding(grammar=True)])
    clock.now += age.seconds
    assert values(store) == ({"grammar": True} if age.believed else {})
    assert len(store.all()) == 1


def test_a_later_answer_replaces_an_earlier_one(store: FactStore, clock: Clock) -> None:
    """Asking again renews the value and the date, and leaves other fields alone."""
    store.save(KEY, [finding(grammar=True, json_schema=True)])
    clock.now += 90
    store.save(KEY, [finding(grammar=False)])
    clock.now += 20
    assert values(store) == {"grammar": False}


def test_what_is_inconclusive_leaves_earlier_facts_alone(store: FactStore) -> None:
    """No answer is no reason to forget one."""
    store.save(KEY, [finding(grammar=True)])
    store.save(KEY, [Finding(question="grammar", verdict="inconclusive", evidence="cut")])
    assert values(store) == {"grammar": True}


def test_lists_and_nothing_come_back_as_they_were(store: FactStore) -> None:
    """A choice of words and an id pattern that is not demanded are values too."""
    store.save(KEY, [finding(tool_choices=("auto", "named"), tool_id_pattern=None)])
    assert values(store) == {"tool_choices": ["auto", "named"], "tool_id_pattern": None}


def test_facts_of_other_models_and_places_are_not_mixed(store: FactStore) -> None:
    """Address, wire format and model all have to be the same."""
    store.save(KEY, [finding(grammar=True)])
    for other in (
        KEY._replace(model="n"),
        KEY._replace(protocol="messages"),
        KEY._replace(address="http://127.0.0.1:2/v1"),
    ):
        assert values(store, other) == {}


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        ("https://user:hunter2@Host.example/v1/?key=abc#x", "https://host.example/v1"),
        ("http://[::1]:8080/v1", "http://[::1]:8080/v1"),
        ("http://host/sk-abcdefghijklmnop/v1", "http://host/[redacted]/v1"),
        ("http://u:p@host:notaport/v1?key=abc", "host:notaport/v1"),
        ("embedded", "embedded"),
    ],
)
def test_an_address_loses_what_could_be_secret(address: str, kept: str) -> None:
    """User, password, query and anything shaped like a key never reach the file."""
    assert FactKey.of(address, "p", "m").address == kept


def test_no_secret_reaches_the_file(store: FactStore) -> None:
    """Evidence may quote what a provider said; a key in it is masked."""
    leaky = Finding(
        question="q", verdict="no", fields={"grammar": False}, evidence="key sk-abcdefghijklmnop"
    )
    store.save(FactKey.of("https://u:hunter2@h/v1?k=hunter2", "p", "m"), [leaky])
    files = b"".join(path.read_bytes() for path in store.path.parent.iterdir())
    assert b"hunter2" not in files
    assert b"abcdefghijklmnop" not in files
    assert b"[redacted]" in files


def test_what_another_version_wrote_is_passed_over(store: FactStore) -> None:
    """A field that does not exist, or a value it cannot have, is as good as no fact."""
    store.save(KEY, [finding(grammar=True, flies=True, json_stability="superb")])
    assert values(store) == {"grammar": True}


@pytest.mark.parametrize(
    "content", [b"this is no database at all" * 100, b"SQLite format 3\x00" + b"\xff" * 4096]
)
def test_a_damaged_file_is_put_aside_with_a_warning(
    store: FactStore, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Facts can be asked again; the damaged file is kept for whoever wants to look at it."""
    store.path.parent.mkdir()
    store.path.write_bytes(content)
    with caplog.at_level(logging.WARNING, "surecall.probe"):
        assert values(store) == {}
    assert "is damaged" in caplog.text
    (aside,) = store.path.parent.glob("facts.sqlite3.damaged-*")
    assert aside.read_bytes() == content
    store.save(KEY, [finding(grammar=True)])
    assert values(store) == {"grammar": True}


def test_a_file_damaged_inside_is_put_aside(store: FactStore) -> None:
    """A file whose header is right and whose pages are not is found out when it is read."""
    for number in range(20):
        long = Finding(question="q", verdict="yes", fields={"grammar": True}, evidence="e" * 2000)
        store.save(KEY._replace(model=f"m{number}"), [long])
    with closing(sqlite3.connect(store.path)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = bytearray(store.path.read_bytes())
    content[8192:] = b"\xfe" * (len(content) - 8192)
    store.path.write_bytes(content)
    store.all()
    store.save(KEY, [finding(grammar=True)])
    assert values(store) == {"grammar": True}
    assert list(store.path.parent.glob("facts.sqlite3.damaged-*"))


@pytest.mark.parametrize("column", ["address", "field", "value", "asked_at", "tokens"])
@pytest.mark.parametrize("damage", ["x'ff00fe'", "'garbage'", "CAST(x'ff41' AS TEXT)", "-1e300"])
def test_a_damaged_fact_is_as_good_as_none(store: FactStore, column: str, damage: str) -> None:
    """Whatever a column holds, reading goes on, and the fact can be asked again."""
    store.save(KEY, [finding(grammar=True), finding(question="q", text_formats=True)])
    with closing(sqlite3.connect(store.path)) as database:
        database.execute(f"UPDATE facts SET {column} = {damage} WHERE field = 'grammar'")
        database.commit()
    store.all()
    assert values(store).get("grammar", True) is True
    store.save(KEY, [finding(grammar=False)])
    assert values(store)["grammar"] is False


def test_a_damaged_lease_is_as_good_as_none(store: FactStore) -> None:
    """Nobody waits for a time that is not one."""
    assert store.take_lease(KEY, "a", 10).taken
    with closing(sqlite3.connect(store.path)) as database:
        database.execute("UPDATE leases SET leased_until = 'soon', message = x'00'")
        database.commit()
    assert store.take_lease(KEY, "b", 10).taken


def test_the_file_is_only_for_its_owner(store: FactStore) -> None:
    """Addresses and evidence are nobody else's business."""
    store.save(KEY, [finding(grammar=True)])
    assert {path.stat().st_mode & 0o777 for path in store.path.parent.iterdir()} == {0o600}


def test_a_file_of_a_later_version_is_left_alone(store: FactStore) -> None:
    """It is refused with a code, and not a byte of it changes."""
    store.save(KEY, [finding(grammar=True)])
    with closing(sqlite3.connect(store.path)) as database:
        database.execute("PRAGMA user_version = 99")
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = store.path.read_bytes()
    for use in (lambda: store.fresh(KEY), lambda: store.save(KEY, [finding(grammar=False)])):
        with pytest.raises(ConfigError, match="layout 99") as caught:
            use()
        assert caught.value.code == "FACTS_UNUSABLE"
    assert store.path.read_bytes() == before


def test_a_place_that_cannot_be_written_is_a_coded_error(tmp_path: Path) -> None:
    """A folder that is a file says so."""
    (tmp_path / "file").write_text("")
    store = FactStore(tmp_path / "file" / "facts.sqlite3")
    with pytest.raises(ConfigError) as caught:
        store.save(KEY, [finding(grammar=True)])
    assert caught.value.code == "FACTS_UNUSABLE"
    assert store.fresh(KEY) == ()


def test_reading_makes_no_file(store: FactStore) -> None:
    """Looking for facts that nobody has leaves nothing behind."""
    assert (store.fresh(KEY), store.all(), store.forget()) == ((), (), 0)
    assert not store.path.parent.exists()


def test_one_model_or_everything_is_forgotten(store: FactStore) -> None:
    """The number of facts that went is told."""
    store.save(KEY, [finding(grammar=True, json_schema=True)])
    store.save(KEY._replace(model="n"), [finding(grammar=True)])
    assert store.forget("m") == 2
    assert [key.model for key, _ in store.all()] == ["n"]
    assert store.forget() == 1
    assert store.all() == ()


def test_a_lease_is_held_by_one_until_it_ends(store: FactStore, clock: Clock) -> None:
    """Others may not probe meanwhile; a holder that died loses it with time."""
    assert store.take_lease(KEY, "a", 60).taken
    assert store.take_lease(KEY, "a", 60).taken
    assert not store.take_lease(KEY, "b", 60).taken
    assert store.take_lease(KEY._replace(model="n"), "b", 60).taken
    store.end_lease(KEY, "b")
    assert not store.take_lease(KEY, "b", 60).taken
    store.end_lease(KEY, "a")
    assert store.take_lease(KEY, "b", 60).taken
    clock.now += 60
    assert store.take_lease(KEY, "c", 60).taken


def test_a_failure_is_remembered_for_a_short_time(store: FactStore, clock: Clock) -> None:
    """Whoever asks meanwhile is told why, and may try again later."""
    store.take_lease(KEY, "a", 60)
    store.end_lease(KEY, "a", failed=ErrorDetail("AUTH", "no key"), remember_s=30)
    lease = store.take_lease(KEY, "b", 60)
    assert (lease.taken, lease.failed) == (False, ErrorDetail("AUTH", "no key"))
    clock.now += 30
    assert store.take_lease(KEY, "b", 60).taken


def test_a_lease_from_the_future_is_not_waited_for(store: FactStore, clock: Clock) -> None:
    """A clock that was wrong once blocks nobody."""
    clock.now += 1_000_000
    store.take_lease(KEY, "a", 60)
    store.end_lease(KEY, "a", failed=ErrorDetail("AUTH", "no key"), remember_s=30)
    store.take_lease(KEY._replace(model="n"), "a", 60)
    clock.now -= 1_000_000
    assert store.take_lease(KEY, "b", 60).taken
    assert store.take_lease(KEY._replace(model="n"), "b", 60).taken


WRITER = """
import sys
from surecall.models.probe import FactKey, FactStore, Finding
store = FactStore(sys.argv[1])
for number in range(40):
    finding = Finding(question="q", verdict="yes", fields={"grammar": True}, evidence="e")
    store.save(FactKey("http://h", "p", f"{sys.argv[2]}-{number}"), [finding])
"""


@pytest.fixture
def writers(tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two processes that write to a file neither of them has seen."""
    place = str(tmp_path / "facts.sqlite3")
    started = [subprocess.Popen([sys.executable, "-c", WRITER, place, who]) for who in "ab"]
    yield started
    for process in started:
        process.kill()
        process.wait()


def test_two_processes_may_write_at_once(
    tmp_path: Path, writers: list[subprocess.Popen[bytes]]
) -> None:
    """Nothing that one of them saved is lost, and neither fails."""
    assert [process.wait(timeout=100) for process in writers] == [0, 0]
    models = {key.model for key, _ in FactStore(tmp_path / "facts.sqlite3").all()}
    assert models == {f"{who}-{number}" for who in "ab" for number in range(40)}
