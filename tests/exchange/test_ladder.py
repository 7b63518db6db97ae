"""Which rungs there are from where a conversation stands, and where an answer is asked for next."""

from typing import Any

import pytest

from surecall.base.records import ToolCall, ToolSpec
from surecall.exchange.ladder import (
    Place,
    Rung,
    Standing,
    choose_hold,
    find_list_rung,
    list_rungs,
    next_rung,
    takes_list,
)
from surecall.exchange.prompting import PromptMode
from surecall.models.profiles import Capabilities
from surecall.reading import read_reply

NONE = Capabilities()
NAMED = Capabilities(tool_choices=("auto", "named"))
SCHEMA = Capabilities(json_schema=True)
FIELD = Capabilities(schema_field="structured_outputs")
ALL = Capabilities(strict_tools=True, json_schema=True, tool_choices=("auto", "named", "required"))
TABLE = [
    (Standing("native", "save"), NONE, "errors taught"),
    (Standing("native", "save"), NAMED, "errors forced_choice taught"),
    (Standing("native", "save"), SCHEMA, "errors schema taught"),
    (Standing("native", "save"), FIELD, "errors schema taught"),
    (Standing("taught", "save"), FIELD, "errors schema"),
    (Standing("native"), FIELD, "errors taught"),
    (Standing("native", None, "call"), FIELD, "errors free_choice taught"),
    (Standing("native", "save"), ALL, "errors strict_tool schema taught"),
    (Standing("strict", "save"), ALL, "errors strict_tool schema taught"),
    (Standing("taught", "save"), ALL, "errors schema"),
    (Standing("constrained", "save"), ALL, "errors"),
    (Standing("native"), ALL, "errors schema taught"),
    (Standing("taught"), NAMED, "errors"),
    (Standing("native", "save", "call"), ALL, "errors strict_tool schema taught"),
    (Standing("native", None, "call"), ALL, "errors free_choice schema taught"),
    (Standing("taught", None, "call"), ALL, "errors schema"),
    (Standing("native", "save", "tool"), ALL, "errors schema free_choice taught"),
    (Standing("native", "save", "tool"), NAMED, "errors free_choice taught"),
    (Standing("native", "save", "no_call"), ALL, "errors no_tools"),
    (Standing("taught", "save", "no_call"), ALL, "errors"),
    (Standing("native", "save", is_silent=True), ALL, "errors"),
]


@pytest.mark.parametrize(("standing", "can", "names"), TABLE)
def test_the_rungs_from_a_standing(standing: Standing, can: Capabilities, names: str) -> None:
    """What the model takes and what the client demands decide, and nothing else."""
    rungs = list_rungs(standing, can)
    assert " ".join(rung.name for rung in rungs) == names
    assert rungs[0].mode == standing.mode
    wanted = ("strict_tool", "forced_choice", "schema")
    assert all(rung.tool == (standing.tool if rung.name in wanted else None) for rung in rungs)


@pytest.mark.parametrize(
    ("climbed", "budget", "name"),
    [
        (0, 0, None),
        (0, 1, "strict_tool"),
        (1, 1, None),
        (1, 9, "schema"),
        (2, 9, "taught"),
        (3, 9, None),
    ],
)
def test_a_run_climbs_one_rung_at_a_time(climbed: int, budget: int, name: str | None) -> None:
    """Above the errors, which it always tells, as far as its budget goes."""
    rung = next_rung(Standing("native", "save"), ALL, climbed=climbed, budget=budget)
    assert (None if rung is None else rung.name) == name


@pytest.mark.parametrize(
    ("can", "can_name", "native", "taught"),
    [
        (ALL, True, "schema", "schema"),
        (NAMED, True, "forced_choice", "words"),
        (NAMED, False, "words", "words"),
        (Capabilities(tool_choices=("required",)), False, "forced_choice", "words"),
        (NONE, False, "words", "words"),
    ],
)
def test_how_a_call_is_demanded(
    can: Capabilities, can_name: bool, native: str, taught: str
) -> None:
    """By what the provider honours; a model that is taught its tools has no choice to force."""
    assert choose_hold(can, "native", can_name=can_name) == native
    assert choose_hold(can, "taught", can_name=can_name) == taught


def test_a_value_is_asked_for_in_each_way_as_often_as_may_be() -> None:
    """With its errors first, then in the next way; a refused request is not made again."""
    place: Place | None = Place()
    seen: list[Place] = []
    while place is not None:
        seen.append(place)
        place = place.next(2, 1)
    assert seen == [Place(0, 0, 1), Place(0, 1, 2), Place(1, 0, 3), Place(1, 1, 4)]
    assert Place(0, 0, 1).next_way(2) == Place(1, 0, 2)
    assert Place(1, 0, 2).next_way(2) is None
    assert Place().next(1, 0) is None


WRITES = Capabilities(json_schema=True, text_formats=True)
SEVERAL = Capabilities(json_schema=True, text_formats=True, supports_parallel_tools=True)
TEXT = '```json\n{"name": "save", "arguments": {"n": 1}}\n```'


@pytest.mark.parametrize(
    ("can", "mode", "is_asked"),
    [
        (WRITES, "native", True),
        (WRITES, "taught", True),
        (WRITES, "constrained", False),
        (SCHEMA, "native", False),
        (SCHEMA, "taught", True),
        (NONE, "taught", False),
        (SEVERAL, "native", False),
    ],
)
def test_when_a_model_is_asked_for_a_list(
    can: Capabilities, mode: PromptMode, is_asked: bool
) -> None:
    """Where it can be held to one, writes its calls as text, and is not known to make several."""
    calls = read_reply(TEXT, tools=[ToolSpec(name="save")]).calls
    rung = find_list_rung(calls, mode, can)
    assert rung == (Rung("list", "constrained", "save") if is_asked else None)
    assert find_list_rung((), mode, can) is None
    assert find_list_rung(calls * 2, mode, can) is None


def _call(number: int, **fields: Any) -> ToolCall:
    given = {"id": f"c{number}", "name": "save", "arguments": {"n": number}, "format": "object"}
    return ToolCall(**{**given, **fields})


def test_which_list_is_taken() -> None:
    """One that came whole, of the tool that was called, in which no call comes twice."""
    one, two = _call(1), _call(2)
    assert takes_list((one, two), "save", "stop")
    assert not takes_list((), "save", "stop")
    assert not takes_list((one, one), "save", "stop")
    assert not takes_list((one, _call(2, name="look")), "save", "stop")
    assert not takes_list((one, two), "save", "length")
    assert not takes_list((one, _call(2, format="json_fence")), "save", "stop")
