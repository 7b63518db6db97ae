"""Killed at every boundary, a run resumes and no side effect happens twice."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from surecall.base.errors import Code
from surecall.loop import FileJournal

from .victim import Scene, Zygote

UNKNOWN = str(Code.OUTCOME_UNKNOWN)


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    """The process that forks the victims of this file."""
    process = Zygote()
    yield process
    process.close()


@pytest.fixture
def scene(zygote: Zygote, tmp_path: Path) -> Scene:
    """A run with one call of a tool that writes."""
    return Scene(zygote, tmp_path)


@dataclass(frozen=True)
class Boundary:
    """Where the process is killed, and what must hold before and after the resume."""

    id: str
    tool: str
    moment: str
    before: int
    """How often the tool acted before the kill."""
    after: int
    """How often in all, after the resume."""
    requests: int
    """How many requests the resume makes."""
    is_unknown: bool = False
    number: int = 1


def matrix() -> Iterator[Boundary]:
    """Yield every boundary for a tool that writes, one that is idempotent, and one that reads."""
    for tool in ("write", "put", "read"):
        once = tool == "write"
        for moment, before, after, requests, unknown, number in (
            ("after RunHeader", 0, 1, 2, False, 1),
            ("before RecordedReply", 0, 1, 2, False, 1),
            ("after RecordedReply", 0, 1, 1, False, 1),
            ("before RecordedIntent", 0, 1, 1, False, 1),
            ("after RecordedIntent", 0, 0 if once else 1, 1, once, 1),
            (f"during {tool}", 1, 1 if once else 2, 1, once, 1),
            ("before RecordedResult", 1, 1 if once else 2, 1, once, 1),
            ("after RecordedResult", 1, 1, 1, False, 1),
            ("before RecordedReply", 1, 1, 1, False, 2),
            ("after RecordedReply", 1, 1, 0, False, 2),
        ):
            name = f"{tool} {moment} {number}"
            yield Boundary(name, tool, moment, before, after, requests, unknown, number)


@pytest.mark.parametrize("case", list(matrix()), ids=lambda case: case.id)
def test_a_run_killed_at_a_boundary_resumes(case: Boundary, scene: Scene) -> None:
    """What is on record is used again; an effect that may have happened is not repeated."""
    scene.turns = [[case.tool]]
    assert scene.play(case.moment, case.number) is None
    assert len(scene.effects) == case.before
    resumed = scene.play()
    assert resumed is not None
    assert (resumed["text"], resumed["requests"]) == ("the end", case.requests)
    assert len(scene.effects) == case.after
    assert (UNKNOWN in resumed["told"][0]) is case.is_unknown
    key = f"{resumed['run_id']}/0/c0"
    assert set(scene.effects) <= {f"{case.tool} 0.0 {key}"}
    again = scene.play()
    assert again is not None
    assert again == {**resumed, "requests": 0}
    assert len(scene.effects) == case.after


def test_a_run_killed_at_any_record_does_each_thing_at_most_once(
    zygote: Zygote, tmp_path: Path
) -> None:
    """Three turns with several calls, killed before, inside and after each record, then resumed."""
    turns = [["write", "read", "write"], ["put"], ["write"]]
    for position in ("before any", "inside any", "after any"):
        number, killed = 0, True
        while killed:
            number += 1
            folder = tmp_path / f"{position} {number}"
            folder.mkdir()
            scene = Scene(zygote, folder, turns)
            killed = scene.play(position, number) is None
            result = scene.play()
            assert result is not None
            assert (result["code"], result["text"], len(result["told"])) == ("", "the end", 5)
            writes = scene.writes
            assert len(writes) == len(set(writes))
            unknown = sum(UNKNOWN in told for told in result["told"])
            assert len(writes) in {3 - unknown, 3}
            assert unknown <= 1
        assert number == 16, "fifteen records, and one run that was not killed"


def test_a_run_killed_at_random_moments_does_each_thing_at_most_once(
    zygote: Zygote, tmp_path: Path
) -> None:
    """From outside, wherever it happens to be; `bench/kill_runs.py` does it 200 times."""
    chance = random.Random(5)
    for number in range(8):
        folder = tmp_path / str(number)
        folder.mkdir()
        scene = Scene(zygote, folder, [["write", "read", "write"], ["put"], ["write"]])
        for _ in range(5):
            scene.play(kill_after_s=chance.uniform(0.0, 0.05))
        result = scene.play()
        assert result is not None
        assert (result["code"], result["text"]) == ("", "the end")
        assert len(scene.writes) == len(set(scene.writes))


def test_killed_again_and_again_while_resuming(scene: Scene) -> None:
    """Five kills in a row, each a step further on, and still one effect at most."""
    scene.turns = [["write"], ["write"]]
    moments = [
        ("after RecordedIntent", 1),
        ("before RecordedResult", 1),
        ("after RecordedResult", 1),
        ("after RecordedReply", 1),
        ("during write", 1),
        ("before RecordedResult", 1),
    ]
    for moment, number in moments:
        assert scene.play(moment, number) is None, moment
    result = scene.play()
    assert result is not None
    assert [UNKNOWN in told for told in result["told"]] == [True, True]
    assert [line.split()[1] for line in scene.effects] == ["1.0"]
    assert result["requests"] == 1


def test_killed_five_times_before_the_second_request_is_answered(scene: Scene) -> None:
    """A refusal on record is used again each time and recorded only once."""
    scene.extra = {"refuses_tools": True}
    for _ in range(5):
        assert scene.play("before RecordedReply") is None
    assert [type(record).__name__ for record in scene.records] == ["RunHeader", "RecordedFailure"]
    result = scene.play()
    assert result is not None
    assert (result["code"], result["text"], result["requests"]) == ("", "the end", 1)


def test_a_run_that_failed_at_the_model_is_resumed_without_its_tools_running_again(
    scene: Scene,
) -> None:
    """The stored result goes out with the request that is made again."""
    assert scene.play("before RecordedReply", 2) is None
    result = scene.play()
    assert result is not None
    assert (result["requests"], len(scene.effects)) == (1, 1)
    assert '"done":"0.0"' in result["told"][0]


def test_another_request_does_not_resume_the_run(scene: Scene) -> None:
    """A changed option is another run; nothing is sent and nothing is run."""
    assert scene.play("after RecordedReply") is None
    before = (scene.folder / "journal").read_bytes()
    for options in ({"max_turns": 8}, {"system": "be brief"}, {"tool_denylist": ["put"]}):
        assert scene.play(options=options) == {"code": "JOURNAL_MISMATCH", "requests": 0}
    assert scene.effects == []
    assert (scene.folder / "journal").read_bytes() == before
    result = scene.play()
    assert result is not None
    assert result["code"] == ""


def test_a_second_process_is_kept_out(scene: Scene) -> None:
    """While the journal is open here, no other process may use it."""
    journal = FileJournal(scene.folder / "journal")
    journal.load()
    assert scene.play() == {"code": "JOURNAL_IN_USE", "requests": 0}
    assert scene.effects == []
    journal.close()
    result = scene.play()
    assert result is not None
    assert len(scene.effects) == 1
