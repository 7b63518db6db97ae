"""Who decides what would be right: directives, scripts, scenarios and plain questions."""

from pathlib import Path
from typing import Any

import pytest

import surecall
from support.workspace import Workspace
from surecall.base.errors import ConfigError
from surecall.base.records import Message, ModelRequest, ToolSpec
from surecall.faults import (
    BUILTIN_ORACLES,
    SCENARIOS,
    CallTools,
    DirectiveOracle,
    ObligingOracle,
    PlannedCall,
    Say,
    SimulatedTransport,
    WorkspaceOracle,
    load_script,
)

from .conversations import failed, request_of, succeeded

SAVE_A = 'call save with {"text": "a"}'
OVERRIDES: dict[str, dict[str, Any]] = {
    "partial_success_failure": {"request_overrides": {"parallel_tool_calls": True}},
    "happy_path_parallel": {"request_overrides": {"parallel_tool_calls": True}},
    "long_arguments_guard": {
        "max_tool_args_bytes": 300,
        "request_overrides": {"max_tokens": 256},
    },
    "tool_output_truncation": {
        "max_tool_output_bytes": 5000,
        "tool_failure_policy": "tolerated",
    },
    "chat_only": {"tool_use_mode": "disabled", "request_overrides": {"max_tokens": 32}},
}


def test_a_directive_is_a_call() -> None:
    """The text names the tool and its arguments."""
    action = DirectiveOracle().next_action(request_of(SAVE_A))
    assert action == CallTools((PlannedCall("save", {"text": "a"}),))


def test_a_directive_is_repeated_until_it_succeeds() -> None:
    """A failed call is made again, a successful one is not."""
    oracle = DirectiveOracle()
    again = oracle.next_action(request_of(SAVE_A, *failed("save", code="X")))
    assert again == CallTools((PlannedCall("save", {"text": "a"}),))
    assert oracle.next_action(request_of(SAVE_A, *succeeded("save"))) == Say("Done.")


def test_directives_joined_by_and_come_in_one_reply() -> None:
    """What is joined by `then` comes later."""
    text = f"call look with {{}} and {SAVE_A} then call look with {{}} and say All saved."
    oracle = DirectiveOracle()
    look, save = PlannedCall("look"), PlannedCall("save", {"text": "a"})
    assert oracle.next_action(request_of(text)) == CallTools((look, save))
    one = (*succeeded("look"), *succeeded("save"))
    assert oracle.next_action(request_of(text, *one)) == CallTools((look,))
    assert oracle.next_action(request_of(text, *one, *succeeded("look"))) == Say("All saved.")


def test_a_later_directive_begins_anew() -> None:
    """Results before the last directive do not count for it."""
    messages = (SAVE_A, *succeeded("save"), Message("assistant", "Done."), SAVE_A)
    action = DirectiveOracle().next_action(request_of(*messages))
    assert action == CallTools((PlannedCall("save", {"text": "a"}),))


@pytest.mark.parametrize(
    "text", ["hello", "call me with care", "call save with arguments", 'call save with {"text": "a']
)
def test_text_that_is_no_directive_is_left_to_others(text: str) -> None:
    """Words that only look like a directive are none."""
    assert DirectiveOracle().next_action(request_of(text)) is None


def test_a_directive_for_a_tool_that_is_not_offered_is_not_followed() -> None:
    """A clean model never calls what it was not given."""
    assert DirectiveOracle().next_action(request_of(SAVE_A, tools=())) == Say("Done.")


def test_a_plain_question_that_names_a_tool_gets_a_call_that_fits() -> None:
    """Required fields are filled, from quoted words where there are some."""
    tool = ToolSpec(
        name="book",
        parameters={
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "nights": {"type": "integer", "minimum": 2},
                "rooms": {"type": "array", "minItems": 1, "items": {"enum": ["single"]}},
                "note": {"type": "string"},
            },
            "required": ["city", "nights", "rooms"],
        },
    )
    action = ObligingOracle().next_action(request_of('Use book for "Oslo".', tools=(tool,)))
    assert action == CallTools(
        (PlannedCall("book", {"city": "Oslo", "nights": 2, "rooms": ["single"]}),)
    )


def test_a_script_is_followed_step_by_step(tmp_path: Path) -> None:
    """Calls, several calls at once, and what is said at the end."""
    path = tmp_path / "script.toml"
    path.write_text(
        '[[steps]]\ncall = "save"\narguments = { text = "a" }\n'
        '[[steps]]\ncalls = [{ name = "look" }, { name = "save", arguments = { text = "b" } }]\n'
        '[[steps]]\nsay = "Finished."\n'
    )
    oracle = load_script(path)
    saved = succeeded("save")
    assert oracle.next_action(request_of("go")) == CallTools((PlannedCall("save", {"text": "a"}),))
    assert oracle.next_action(request_of("go", *saved)) == CallTools(
        (PlannedCall("look"), PlannedCall("save", {"text": "b"}))
    )
    rest = (*saved, *succeeded("look"), *succeeded("save", text="bb"))
    assert oracle.next_action(request_of("go", *rest)) == Say("Finished.")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('[[steps]]\ncal = "save"', "cal"),
        ('[[steps]]\ncall = "save"\nsay = "x"', "one of"),
        ("steps = 3", "array"),
        ("[[steps", "TOML"),
    ],
)
def test_a_script_with_a_mistake_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    """What is wrong is said before anything is served."""
    path = tmp_path / "script.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=problem):
        load_script(path)


@pytest.mark.parametrize("scenario", SCENARIOS)
async def test_a_scenario_is_played_without_a_mistake(scenario: str) -> None:
    """The draft is patched once and the answer is the one that was asked for."""
    is_big = scenario == "tool_output_truncation"
    workspace = Workspace({"big": "b" * 12_000} if is_big else None)
    result = await surecall.run(
        f"workspace_id={workspace.id}",
        system=f"scenario={scenario}",
        model="m",
        tools=workspace.tools,
        transport=SimulatedTransport("steady"),
        preset=(),
        **{"tool_use_mode": "enforced", **OVERRIDES.get(scenario, {})},
    )
    assert result.text == "Done."
    codes = {code for item in result.results for code in item.envelope.error_codes}
    per_turn = [len(turn.calls) for turn in result.trace.turns]
    if scenario == "chat_only":
        assert workspace.executed == []
        return
    assert workspace.draft["foo"] == "bar"
    assert workspace.draft_version == 1
    expected = {
        "happy_path": (set[str](), [1, 1, 0]),
        "missing_workspace_id": (set[str](), [1, 1, 0]),
        "type_error_recovery": (set[str](), [1, 1, 0]),
        "happy_path_parallel": (set[str](), [2, 0]),
        "partial_success_failure": ({"ARGUMENT_ERROR"}, [2, 1, 0]),
        "long_arguments_guard": ({"ARGUMENTS_TOO_LARGE"}, [1, 1, 1, 0]),
        "tool_output_truncation": ({"TOOL_OUTPUT_TOO_LARGE"}, [1, 1, 0]),
    }
    assert (codes, per_turn) == expected[scenario]
    given = [call.arguments for call in result.calls if call.arguments is not None]
    has_id = any("workspace_id" in arguments for arguments in given)
    assert has_id == (scenario != "missing_workspace_id")


@pytest.mark.parametrize(
    ("system", "calls"),
    [
        ("On ARGUMENTS_TOO_LARGE retry with bar.", ["state_get"]),
        ("The first reply holds both calls.", ["state_get", "state_patch"]),
        ("Never pass workspace_id to a tool.", ["state_get"]),
        ("Read first.", ["state_get"]),
    ],
)
def test_a_scenario_is_recognised_by_what_its_text_asks_for(system: str, calls: list[str]) -> None:
    """Without a marker, the words of the system text tell."""
    tools = (ToolSpec(name="state_get"), ToolSpec(name="state_patch"))
    request = request_of(Message("system", system), "workspace_id=w1", tools=tools)
    action = WorkspaceOracle().next_action(request)
    assert isinstance(action, CallTools)
    assert [call.name for call in action.calls] == calls
    has_id = "workspace_id" in action.calls[0].arguments
    assert has_id == ("Never pass" not in system)


async def test_an_oracle_of_ones_own_comes_first() -> None:
    """Whoever knows the conversation better can be put before the others."""

    class Parrot:
        """Repeats the last text."""

        def next_action(self, request: ModelRequest) -> Say | None:
            """Return what was said."""
            return Say(request.messages[-1].text)

    transport = SimulatedTransport(oracles=(Parrot(), *BUILTIN_ORACLES))
    result = await surecall.run("polly", model="m", transport=transport, preset=())
    assert result.text == "polly"
