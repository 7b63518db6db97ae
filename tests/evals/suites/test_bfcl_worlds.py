"""The APIs of conversations: what they keep, and what no call may do to this process."""

import json
from typing import Any

import pytest

from surecall.evals.suites.bfcl.worlds import WORLDS, Worlds
from surecall.evals.suites.sampling import sample_value

TREE: dict[str, Any] = {
    "root": {
        "home": {
            "contents": {
                "a": {
                    "type": "directory",
                    "contents": {
                        "b": {"type": "directory", "contents": {}},
                        "note": {"type": "file", "content": "old"},
                    },
                },
                "n": {"type": "file", "content": "text"},
            }
        }
    }
}


def open_world(name: str, config: dict[str, Any] | None = None) -> Worlds:
    """Open one API."""
    return Worlds([name], {name: config or {}})


def run(worlds: Worlds, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """Make some calls and return what they say."""
    return [worlds.call(name, arguments).value for name, arguments in calls]


@pytest.mark.parametrize("name", WORLDS)
def test_functions_that_read_change_nothing(name: str) -> None:
    """Whatever they are given, the state stays as it is."""
    api = WORLDS[name]
    worlds = open_world(name)
    before = worlds.snapshot()
    values: list[Any] = ["x", 1, [1.5, 2], sample_value({"type": "boolean"})]
    for function in api.reads.split():
        for value in values:
            parameters = getattr(api, function).__annotations__
            worlds.call(function, {each: value for each in parameters if each != "return"})
    assert worlds.snapshot() == before


@pytest.mark.parametrize("name", WORLDS)
def test_each_trial_has_a_world_of_its_own(name: str) -> None:
    """Nothing that is done in one is seen in another, defaults included."""
    first, second = open_world(name), open_world(name)
    before = second.snapshot()
    for function in sorted(WORLDS[name].functions()):
        parameters = getattr(WORLDS[name], function).__annotations__
        for value in ("x", 1, ["x"]):
            first.call(function, {each: value for each in parameters if each != "return"})
    assert second.snapshot() == before == open_world(name).snapshot()
    json.dumps(first.snapshot(), default=repr)


def test_a_post_does_not_share_its_mentions_with_the_next() -> None:
    """The leaderboard's own posts do, when no mentions are given."""
    worlds = open_world("TwitterAPI", {"authenticated": True})
    one, _, two = run(
        worlds,
        ("post_tweet", {"content": "one"}),
        ("mention", {"tweet_id": 0, "mentioned_usernames": ["@kim"]}),
        ("post_tweet", {"content": "two"}),
    )
    assert (one["mentions"], two["mentions"]) == ([], [])
    assert worlds.snapshot()["TwitterAPI"]["tweets"][0]["mentions"] == ["@kim"]


def test_a_copied_folder_has_the_same_files() -> None:
    """Writing through one of the two names is seen through the other."""
    worlds = open_world("GorillaFileSystem", TREE)
    run(
        worlds,
        ("cp", {"source": "a", "destination": "c"}),
        ("cd", {"folder": "a"}),
        ("echo", {"content": "new", "file_name": "note"}),
    )
    tree = worlds.snapshot()["GorillaFileSystem"]["root"]["home"]
    assert (tree["a"]["note"], tree["c"]["note"]) == ("new", "new")


def test_a_folder_moved_or_copied_into_itself_makes_no_circle() -> None:
    """The state can still be listed afterwards."""
    worlds = open_world("GorillaFileSystem", TREE)
    run(worlds, ("cp", {"source": "a", "destination": "a"}))
    tree = worlds.snapshot()["GorillaFileSystem"]["root"]["home"]
    assert tree["a"]["a"] == {"b": {}, "note": "old"}
    worlds = open_world("GorillaFileSystem", TREE)
    run(worlds, ("mv", {"source": "a", "destination": "a"}))
    assert worlds.snapshot()["GorillaFileSystem"]["root"]["home"] == {"n": "text"}


def test_copies_of_copies_do_not_fill_the_memory() -> None:
    """A model that doubles a folder again and again is told that there is no more room."""
    worlds = open_world("GorillaFileSystem", TREE)
    said: list[Any] = []
    for number in range(40):
        inner = f"x{number}"
        said += run(
            worlds,
            ("cp", {"source": "a", "destination": inner}),
            ("mv", {"source": inner, "destination": "a"}),
        )
    assert "Error during execution: No space left on device" in said
    assert len(json.dumps(worlds.snapshot())) < 1_000_000
    (found,) = run(worlds, ("find", {"path": "."}))
    assert len(found["matches"]) <= 5_000


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("power", {"base": 10, "exponent": 10**9}),
        ("square_root", {"number": 2, "precision": 10**9}),
        ("logarithm", {"value": 2, "base": 10, "precision": 10**9}),
        ("round_number", {"number": 5, "decimal_places": -(10**9)}),
    ],
)
def test_no_call_computes_for_ever(function: str, arguments: dict[str, Any]) -> None:
    """Numbers with more digits than anybody reads are refused."""
    outcome = open_world("MathAPI").call(function, arguments)
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
    value: float, base: float, precision: int, text: str
) -> None:
    """The texts are those of mpmath 1.3.0."""
    outcome = open_world("MathAPI").call(
        "logarithm", {"value": value, "base": base, "precision": precision}
    )
    assert outcome.text == text


def test_a_wrong_call_is_a_result() -> None:
    """A parameter that there is not, or one that is missing, raises nothing here."""
    worlds = open_world("TicketAPI")
    for arguments in ({"ticket": 1}, {}):
        assert worlds.call("get_ticket", arguments).text.startswith("Error during execution: ")
