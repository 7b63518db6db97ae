"""The APIs of conversations: what they keep, and what no call may do to this process."""

from pathlib import Path
from typing import Any

import pytest

from surecall.base.errors import ConfigError
from surecall.evals.suites.bfcl.data import BfclFiles, find_bfcl
from surecall.evals.suites.bfcl.worlds import ApiSource, Worlds, is_same_state

from .bfcl_wheel import write_wheel


@pytest.fixture
def source(tmp_path: Path) -> ApiSource:
    """Return the APIs of a wheel."""
    return ApiSource(find_bfcl(write_wheel(tmp_path)))


def run(worlds: Worlds, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """Make some calls and return what they say."""
    return [worlds.call(name, arguments).value for name, arguments in calls]


def test_each_trial_has_a_world_of_its_own(source: ApiSource) -> None:
    """Nothing that is done in one is seen in another, nor in the data."""
    config: dict[str, Any] = {"TicketAPI": {"ticket_queue": []}}
    first, second = (Worlds(source, ["TicketAPI"], config) for _ in range(2))
    before = second.snapshot()
    run(first, ("create_ticket", {"title": "Lift"}), ("ticket_login", {"username": "Mira"}))
    assert second.snapshot() == before == {"TicketAPI": {**before["TicketAPI"]}}
    assert config == {"TicketAPI": {"ticket_queue": []}}
    assert len(first.snapshot()["TicketAPI"]["ticket_queue"]) == 1


def test_a_default_that_a_call_fills_is_seen_by_no_other(source: ApiSource) -> None:
    """The leaderboard's own functions share such a list over all trials of a process."""
    worlds = Worlds(source, ["TicketAPI"], {})
    said = run(worlds, ("note_words", {"word": "one"}), ("note_words", {"word": "two"}))
    assert said == [["one"], ["two"]]


def test_a_wrong_call_is_a_result(source: ApiSource) -> None:
    """A parameter that there is not, or one that is missing, raises nothing here."""
    worlds = Worlds(source, ["TicketAPI"], {})
    for arguments in ({"ticket": 1}, {}, {"ticket_id": 5}):
        assert worlds.call("get_ticket", arguments).text.startswith("Error during execution: ")


def test_the_source_can_open_nothing(source: ApiSource, tmp_path: Path) -> None:
    """It has neither files nor programs, whatever it asks for."""
    secret = tmp_path / "secret"
    secret.write_text("secret")
    outcome = Worlds(source, ["TicketAPI"], {}).call("start_program", {"path": str(secret)})
    assert outcome.text == "Error during execution: name 'open' is not defined"


@pytest.mark.parametrize("text", ["import os", "class Other: pass", "class TicketAPI(", ""])
def test_a_source_that_is_not_as_expected_is_refused(text: str) -> None:
    """A package of another version says what is wrong with it."""
    with pytest.raises(ConfigError) as refused:
        ApiSource(BfclFiles("1", lambda _: text.encode())).find("TicketAPI")
    assert refused.value.code == "SUITE_DATA_UNREADABLE"


def test_data_without_the_source_say_what_is_missing(tmp_path: Path) -> None:
    """A folder may have the data alone."""
    (tmp_path / "bfcl_eval/data").mkdir(parents=True)
    with pytest.raises(ConfigError, match=r"ticket_api\.py"):
        ApiSource(find_bfcl(tmp_path)).find("TicketAPI")


def test_copies_of_copies_do_not_fill_the_memory(source: ApiSource) -> None:
    """A model that doubles a folder again and again is told that there is no more room."""
    worlds = Worlds(source, ["GorillaFileSystem"], {})
    said: list[Any] = []
    for number in range(40):
        said += run(worlds, ("cp", {"source": "a", "destination": f"x{number}"}))
    assert "Error during execution: No space left on device" in said


def test_a_folder_in_itself_is_like_no_other(source: ApiSource) -> None:
    """The state can be kept and compared all the same."""
    worlds = Worlds(source, ["GorillaFileSystem"], {})
    run(worlds, ("mv", {"source": "a", "destination": "a"}))
    one, other = (worlds.snapshot()["GorillaFileSystem"]["root"] for _ in range(2))
    assert not is_same_state(one, other)
    fresh = Worlds(source, ["GorillaFileSystem"], {}).snapshot()["GorillaFileSystem"]["root"]
    assert not is_same_state(one, fresh)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("power", {"base": 10, "exponent": 10**9}),
        ("square_root", {"number": 2, "precision": 10**9}),
        ("logarithm", {"value": 2, "base": 10, "precision": 10**9}),
        ("round_number", {"number": 5, "decimal_places": -(10**9)}),
    ],
)
def test_no_call_computes_for_ever(
    source: ApiSource, function: str, arguments: dict[str, Any]
) -> None:
    """Numbers with more digits than anybody reads are refused."""
    outcome = Worlds(source, ["MathAPI"], {}).call(function, arguments)
    assert "More than 1000 digits are not computed." in outcome.text


@pytest.mark.parametrize(
    ("value", "base", "precision", "text"),
    [
        (36.0, 6.0, 4, "{'result': mpf('2.0')}"),
        (20, 10, 2, "{'result': mpf('1.3027')}"),
        (980.0, 20, 10, "{'result': mpf('2.299121531134')}"),
        (2.5, 0.5, 15, "{'result': mpf('-1.3219280948873624')}"),
        (1, 10, 3, "{'result': mpf('0.0')}"),
        (10**30, 10, 5, "{'result': mpf('29.999969')}"),
        (1e300, 1.0000001, 5, "{'result': mpf('6.9077565e+9')}"),
        (10, 1, 3, "{'error': ''}"),
    ],
)
def test_logarithms_are_rounded_as_the_library_does(
    source: ApiSource, value: float, base: float, precision: int, text: str
) -> None:
    """The texts are those of mpmath 1.3.0."""
    outcome = Worlds(source, ["MathAPI"], {}).call(
        "logarithm", {"value": value, "base": base, "precision": precision}
    )
    assert outcome.text == text
