"""One call becomes one result: which calls run, under which names, and which are refused."""

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from surecall.base.errors import Code
from surecall.base.records import ErrorDetail, ToolCall
from surecall.tools import Dispatcher, MaskedRegistry, ToolRegistry, tool

from .calls import CONTEXT, dispatch, make_call, shown


class Log:
    """Tools that note when they run."""

    def __init__(self) -> None:
        self.ran: list[Any] = []

    @tool(effect="read")
    def look_up(self, key: str, limit: int = 10) -> dict[str, Any]:
        """Look something up."""
        self.ran.append(("look_up", key, limit))
        return {"key": key, "limit": limit}

    @tool(effect="write")
    async def store(self, items: list[str]) -> str:
        """Store things."""
        items.append("changed by the tool")
        self.ran.append(("store", items))
        return "stored"

    @tool(effect="write", exposed=False)
    def commit(self) -> str:
        """Commit."""
        self.ran.append("commit")
        return "committed"

    def dispatcher(self, **options: Any) -> Dispatcher:
        registry = ToolRegistry([self.look_up, self.store, self.commit])
        return Dispatcher(registry, **options)


async def test_a_good_call_runs_once_and_is_told_in_full() -> None:
    """Both kinds of function give the same kind of result."""
    log = Log()
    dispatcher = log.dispatcher()
    result = await dispatcher.dispatch(make_call("look_up", {"key": "a"}, id="tc_7"), CONTEXT)
    assert result.text == (
        '{"ok":true,"tool_name":"look_up","data":{"key":"a","limit":10},"warnings":[],"errors":[]}'
    )
    assert (result.call_id, result.name, result.ok) == ("tc_7", "look_up", True)
    assert (result.executed, result.replaced) == (True, False)
    assert result.elapsed_ms > 0
    result = await dispatcher.dispatch(make_call("store", {"items": []}), CONTEXT)
    assert shown(result)["data"] == {"value": "stored"}
    assert [entry[0] for entry in log.ran] == ["look_up", "store"]


TRUNCATED = ErrorDetail(Code.ARGUMENTS_TRUNCATED, "Cut.", "Send less.")
TOO_LARGE = ErrorDetail(Code.ARGUMENTS_TOO_LARGE, "Large.")


@dataclass(frozen=True)
class Unread:
    id: str
    call: ToolCall
    errors: tuple[str, ...]
    data: dict[str, Any]


UNREAD = [
    Unread(
        "errors of the reading",
        make_call("look_up", {"key": "a"}, errors=(TRUNCATED, TOO_LARGE), arguments_bytes=101),
        ("ARGUMENTS_TRUNCATED", "ARGUMENTS_TOO_LARGE"),
        {"bytes": 101, "max_bytes": 100},
    ),
    Unread("cut", make_call("look_up", {"key": "a"}, state="cut"), ("ARGUMENTS_TRUNCATED",), {}),
    Unread(
        "unreadable",
        make_call("look_up", {"key": "a"}, state="unreadable"),
        ("ARGUMENTS_JSON_PARSE_ERROR",),
        {},
    ),
    Unread(
        "no arguments",
        ToolCall(id="x", name="look_up", arguments=None),
        ("ARGUMENTS_JSON_PARSE_ERROR",),
        {},
    ),
    Unread(
        "over the limit of the whole reply",
        make_call("look_up", {"key": "a"}, errors=(TOO_LARGE,), arguments_bytes=7),
        ("ARGUMENTS_TOO_LARGE",),
        {},
    ),
    Unread(
        "dotted name keeps the tool's name",
        make_call("look.up", {"key": "a"}, state="cut"),
        ("ARGUMENTS_TRUNCATED",),
        {},
    ),
]


@pytest.mark.parametrize("case", UNREAD, ids=lambda case: case.id)
async def test_a_call_that_was_not_read_whole_never_runs(case: Unread) -> None:
    """The errors are in the envelope, and the tool was not started."""
    log = Log()
    dispatcher = log.dispatcher(max_arguments_bytes=100)
    result = await dispatcher.dispatch(case.call, CONTEXT)
    assert result.envelope.error_codes == case.errors
    assert [error["code"] for error in shown(result)["errors"]] == list(case.errors)
    assert shown(result)["data"] == case.data
    assert (result.executed, result.replaced, result.name) == (False, False, "look_up")
    assert log.ran == []


async def test_a_likely_call_runs_only_on_a_tool_that_reads() -> None:
    """The other one is told what was seen, and to send the call again."""
    log = Log()
    dispatcher = log.dispatcher()
    doubt = {"certainty": "likely", "doubt": "A bracket is missing."}
    read = await dispatcher.dispatch(make_call("look_up", {"key": "a"}, **doubt), CONTEXT)
    store = await dispatcher.dispatch(make_call("store", {"items": []}, **doubt), CONTEXT)
    assert (read.executed, store.executed) == (True, False)
    assert shown(store)["errors"] == [
        {
            "code": "CALL_NOT_CERTAIN",
            "message": 'A bracket is missing. What was seen: store with {"items":[]}. '
            "The call was NOT EXECUTED, because store has effects.",
            "hint": "Send the complete call again, with every argument and everything that closes "
            "it.",
        }
    ]
    assert log.ran == [("look_up", "a", 10)]


async def test_arguments_at_the_limit_run() -> None:
    """The limit itself is allowed."""
    log = Log()
    dispatcher = log.dispatcher(max_arguments_bytes=100)
    call = make_call("look_up", {"key": "a"}, arguments_bytes=100)
    assert (await dispatcher.dispatch(call, CONTEXT)).ok


@pytest.mark.parametrize("name", ["look.up", " look_up", "look_up\n", "\tlook.up "])
async def test_dots_and_outer_space_are_understood_with_a_warning(name: str) -> None:
    """The model is told the real name, and the result is kept under it."""
    result = await Log().dispatcher().dispatch(make_call(name, {"key": "a"}), CONTEXT)
    assert result.ok
    assert result.name == "look_up"
    assert shown(result)["tool_name"] == "look_up"
    assert shown(result)["warnings"] == ["The tool is named look_up; use that name."]


async def test_warnings_of_the_caller_are_told_after_those_of_the_tool() -> None:
    """All of them reach the model, in one list."""

    def careful() -> Any:
        return {"ok": True, "warnings": ["mind the gap"]}

    dispatcher = Dispatcher(ToolRegistry([careful]))
    result = await dispatcher.dispatch(
        make_call("careful "), CONTEXT, warnings=("called three times",)
    )
    assert shown(result)["warnings"] == [
        "mind the gap",
        "The tool is named careful; use that name.",
        "called three times",
    ]


async def test_a_registered_name_with_its_own_spelling_wins() -> None:
    """The exact name is never taken for another."""
    result = await dispatch([tool(name="a_b")(lambda: 1), tool(name="a-b")(lambda: 2)], "a-b")
    assert result.envelope.data == {"value": 2}
    assert result.envelope.warnings == ()


NAMES_THAT_ARE_NOT_TOOLS = [
    "commit",
    "unknown",
    "",
    "   ",
    "Look_up",
    "LOOK_UP",
    "lооk_up",
    "look_up\u200b",
    "look_up\u00a0",
    "look_up\x00",
    "look/up",
    "../../look_up",
    "look..up",
    "functions.look_up",
    "look_up()",
    "ｌｏｏｋ＿ｕｐ",
    "\ud800look_up",
    "x" * 10_240,
]


@pytest.mark.parametrize("name", NAMES_THAT_ARE_NOT_TOOLS, ids=lambda name: ascii(name[:20]))
async def test_every_name_that_is_not_a_visible_tool_gets_the_same_answer(name: str) -> None:
    """Nothing runs, and nothing tells a hidden tool from one that does not exist."""
    log = Log()
    result = await log.dispatcher().dispatch(make_call(name, {"key": "a"}), CONTEXT)
    answer = shown(result)
    assert result.envelope.error_codes == ("TOOL_NOT_ALLOWED",)
    assert sorted(answer["errors"][0]) == ["code", "hint", "message"]
    assert answer["errors"][0]["message"].endswith(" is not an available tool.")
    assert answer["errors"][0]["hint"].startswith("Call one of these, spelled exactly: ")
    assert "look_up" in answer["errors"][0]["hint"]
    assert "store" in answer["errors"][0]["hint"]
    assert "commit" not in answer["errors"][0]["hint"]
    assert len(result.text) < 500
    assert not result.executed
    assert log.ran == []


async def test_denied_hidden_and_unknown_tools_answer_alike() -> None:
    """Apart from the name that was called the text is the same, byte for byte."""
    log = Log()
    view = MaskedRegistry(ToolRegistry([log.look_up, log.store, log.commit]), deny=["store"])
    dispatcher = Dispatcher(view)
    texts: list[str] = []
    for name in ("store", "commit", "quux"):
        result = await dispatcher.dispatch(make_call(name, {"items": []}), CONTEXT)
        texts.append(result.text.replace(name, "?"))
    assert texts[0] == texts[1] == texts[2]
    assert log.ran == []


async def test_without_tools_the_model_is_told_so() -> None:
    """The hint does not list an empty list."""
    result = await dispatch([], "x")
    assert shown(result)["errors"][0]["hint"] == (
        "No tools are available; answer without calling one."
    )


async def test_every_wrong_argument_is_named_at_once() -> None:
    """One refusal is enough to correct the whole call."""

    def book(seats: int, day: Literal["mon", "tue"], name: str) -> str:
        return "booked"

    result = await dispatch([book], "book", {"seats": "many", "day": "sun", "extra": 1})
    errors = shown(result)["errors"]
    assert {error["code"] for error in errors} == {"ARGUMENTS_INVALID"}
    assert {error["path"] for error in errors} == {"/seats", "/day", "/extra", ""}
    missing = next(error for error in errors if error["path"] == "")
    assert "name" in missing["message"]
    assert errors[-1]["hint"].endswith("Correct all of these and call the tool again.")
    assert not result.executed


async def test_what_a_tool_does_to_its_arguments_stays_with_the_tool() -> None:
    """The record of the call is not the object the tool was given."""
    log = Log()
    call = make_call("store", {"items": ["a"]})
    await log.dispatcher().dispatch(call, CONTEXT)
    assert log.ran == [("store", ["a", "changed by the tool"])]
    assert call.arguments == {"items": ["a"]}


async def test_refuse_makes_a_result_without_running() -> None:
    """Used for what the loop decides on its own."""
    log = Log()
    result = log.dispatcher().refuse(
        make_call("look.up", id="tc_9"),
        Code.OUTCOME_UNKNOWN,
        "It may have run.",
        hint="Look first.",
        data={"key": "r/1/tc_9"},
    )
    assert shown(result) == {
        "ok": False,
        "tool_name": "look_up",
        "data": {"key": "r/1/tc_9"},
        "warnings": [],
        "errors": [
            {"code": "OUTCOME_UNKNOWN", "message": "It may have run.", "hint": "Look first."}
        ],
    }
    assert (result.call_id, result.name, result.executed) == ("tc_9", "look_up", False)
    unknown = log.dispatcher().refuse(
        make_call("x" * 200), Code.CALL_BUDGET_EXCEEDED, "Enough.", data={"odd": object()}
    )
    assert unknown.name == f"{'x' * 64}… (+136 characters)"
    assert shown(unknown)["data"] == {}
    assert log.ran == []


@pytest.mark.parametrize(
    ("call", "effect"),
    [
        (make_call("look_up", {}), "read"),
        (make_call("look.up", {}), "read"),
        (make_call("store", {}), "write"),
        (make_call("commit", {}), None),
        (make_call("nothing", {}), None),
        (make_call("store", {}, state="cut"), None),
        (make_call("store", {}, certainty="likely"), None),
        (make_call("look_up", {}, certainty="likely"), "read"),
        (make_call("store", {}, errors=(TRUNCATED,)), None),
        (ToolCall(id="x", name="store", arguments=None), None),
    ],
)
def test_effect_of_a_call_is_none_when_it_will_be_refused(
    call: ToolCall, effect: str | None
) -> None:
    """What will not run holds nothing up."""
    assert Log().dispatcher().effect_of(call) == effect


def test_only_reads_and_idempotent_tools_may_repeat() -> None:
    """A tool that is not known may not."""
    safe = tool(name="put", idempotent=True)(lambda: 1)
    log = Log()
    dispatcher = Dispatcher(ToolRegistry([log.look_up, log.store, log.commit, safe]))
    repeatable = {
        name: dispatcher.may_repeat(make_call(name))
        for name in ("look_up", "store", "commit", "put", "x")
    }
    assert repeatable == {
        "look_up": True,
        "store": False,
        "commit": False,
        "put": True,
        "x": False,
    }
