"""What a run returns, and how it shows itself."""

from typing import Any

import pytest

from surecall.base.records import Envelope, ModelRequestEnded, Receipt, ToolResult, name_changes
from surecall.models.transport import ScriptedReply

from .toolbox import assistant, run_script, tool_call

EVIL = "<script>alert('x')</script>"


async def test_a_result_tells_what_led_to_it() -> None:
    """Calls, results, turns and receipts are there in order."""
    result = await run_script(
        [
            assistant(None, tool_call("look", ' ```{"what": "a"}``` '), tool_call("save", "{", "")),
            ScriptedReply(message="done", usage={"prompt_tokens": 3, "completion_tokens": 4}),
        ],
        run_id="r1",
    )
    assert (result.text, result.run_id, result.turns, result.cut) == ("done", "r1", 2, False)
    assert [call.id for call in result.calls] == ["call_1", "tc_2"]
    assert [item.call_id for item in result.results] == ["call_1", "tc_2"]
    assert [item.ok for item in result.results] == [True, False]
    assert [receipt.rule for receipt in result.receipts] == ["strip_code_fence", "assign_call_id"]
    assert result.usage.total_tokens == 7


@pytest.mark.parametrize(("finish", "cut"), [("stop", False), ("length", True)])
async def test_an_answer_that_stopped_at_a_limit_says_so(finish: str, cut: bool) -> None:
    """A cut answer is handed out and marked."""
    result = await run_script([ScriptedReply(message="do", finish_reason=finish)])
    assert (result.text, result.cut) == ("do", cut)


@pytest.mark.parametrize(
    ("replies", "empty"),
    [
        pytest.param(["done"], False, id="text"),
        pytest.param([""], True, id="nothing at all"),
        pytest.param(
            [assistant(None, tool_call("look", {"what": "a"})), "", " "], True, id="twice"
        ),
        pytest.param(
            [assistant(None, tool_call("look", {"what": "a"})), "", "x"], False, id="once"
        ),
    ],
)
async def test_an_answer_without_text_says_so(replies: list[Any], empty: bool) -> None:
    """The run is no failure, and neither the result nor the trace hides that nothing was said."""
    told: list[Any] = []
    result = await run_script(replies, on_event=told.append)
    assert result.empty is empty
    codes = [defect.code for defect in result.trace.turns[-1].defects]
    assert codes == (["ANSWER_EMPTY"] if empty else [])
    ended = [event for event in told if isinstance(event, ModelRequestEnded)]
    assert list(ended[-1].defect_codes) == codes


async def test_the_repr_is_short_and_lists_the_calls() -> None:
    """One line for the answer and one for each call, long values clipped."""
    result = await run_script(
        [
            assistant(
                None,
                tool_call("look", {"what": "x" * 500}),
                tool_call("save", "[1]", "call_2"),
            ),
            "y" * 500,
        ]
    )
    first, look, save = repr(result).split("\n")
    assert first.startswith("<RunResult 'yyy")
    assert "2 turns, 2 calls, 0 tokens" in first
    assert len(first) < 200
    assert look.startswith("  look(what='xxx")
    assert look.endswith(") -> ok")
    assert len(look) < 120
    assert save == "  save([1]) -> ARGUMENTS_JSON_PARSE_ERROR"


async def test_the_repr_of_a_plain_answer_is_one_line() -> None:
    """Without calls there is nothing to list, and one of something is not plural."""
    result = await run_script(["ok"])
    assert repr(result).startswith("<RunResult 'ok': 1 turn, 0 calls, 0 tokens, ")
    assert "\n" not in repr(result)


async def test_the_html_shows_markup_as_text() -> None:
    """Nothing that a model wrote becomes markup: answer, names, keys, values or errors."""
    result = await run_script(
        [
            assistant(
                None,
                tool_call("look", {"what": EVIL}),
                tool_call("save", {EVIL: 1}, "call_2"),
                tool_call(EVIL, EVIL, "call_3"),
            ),
            EVIL,
        ]
    )
    html = result._repr_html_()
    assert "<script" not in html
    assert html.count("&lt;script&gt;") >= 4
    assert "<table>" in html
    assert "ARGUMENTS_JSON_PARSE_ERROR" in html


async def test_the_html_of_a_plain_answer_has_no_table() -> None:
    """Without calls there is no empty table."""
    result = await run_script(["ok"])
    assert "<table>" not in result._repr_html_()


def test_many_changes_by_one_rule_are_told_by_their_number() -> None:
    """Fifteen lines that say the same say no more than one."""
    quotes = [Receipt("replace_quotes", f"{at}:{at + 1}", "'", '"') for at in range(15)]
    changes = [*quotes, Receipt("drop_comma", "40:41", ",", "")]
    assert name_changes(changes) == "replace_quotes ×15, drop_comma"


def test_the_result_of_a_tool_is_shown_in_one_line() -> None:
    """Its name, how it ended, and the start of what the model reads."""
    envelope = Envelope(tool_name="look", ok=True, data={"x": 1})
    result = ToolResult(call_id="1", name="look", envelope=envelope, text="x" * 5000)
    assert repr(result).startswith("<ToolResult look: ok, xxx")
    assert len(repr(result)) < 200
