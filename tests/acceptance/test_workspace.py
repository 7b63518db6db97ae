"""A workspace whose tools guard themselves, used through the loop."""

import pytest

from support.workspace import ALLOWED_PATH, Workspace
from surecall.base.errors import Code
from surecall.models.transport import assistant, tool_call

from .doors import Door


def patch(path: str = ALLOWED_PATH, **fields: object) -> dict[str, object]:
    """Return the arguments of a patch that sets one path to "bar"."""
    return {
        "request_id": "r1",
        "ops": [{"op": "set", "path": path, "value": "bar"}],
        **fields,
    }


async def test_read_then_patch_then_done(door: Door) -> None:
    """The plain course of events: the draft is read, changed, and the answer given."""
    workspace = Workspace()
    result = await door.run(
        [
            assistant(None, tool_call("state_get", {"workspace_id": workspace.id}, "c1")),
            assistant(None, tool_call("state_patch", patch(workspace_id=workspace.id), "c2")),
            "Done.",
        ],
        f"workspace_id={workspace.id}",
        tools=workspace.tools,
        tool_use_mode="enforced",
    )

    assert result.text == "Done."
    assert workspace.draft == {"foo": "bar"}
    assert door.answers[1]["data"] == {"draft_etag": "draft:1", "applied": 1}


@pytest.mark.parametrize("given", [None, "", "workspace_id"], ids=["left out", "empty", "literal"])
async def test_the_workspace_id_may_be_implicit(door: Door, given: str | None) -> None:
    """Without an id of its own a call means the current workspace."""
    workspace = Workspace()
    fields = {} if given is None else {"workspace_id": given}
    await door.run(
        [assistant(None, tool_call("state_patch", patch(**fields))), "Done."],
        tools=workspace.tools,
    )

    assert door.answers[0]["ok"] is True
    assert workspace.draft == {"foo": "bar"}


async def test_a_wrong_workspace_id_is_not_found(door: Door) -> None:
    """A call for another workspace changes nothing and is told the tool's own code."""
    workspace = Workspace()
    await door.run(
        [assistant(None, tool_call("state_patch", patch(workspace_id="elsewhere"))), "Sorry."],
        tools=workspace.tools,
    )

    assert door.answers[0]["errors"][0]["code"] == "WORKSPACE_NOT_FOUND"
    assert workspace.draft == {}


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/foo", id="wrong path: outside the draft"),
        pytest.param("draft/foo", id="wrong path: no pointer"),
        pytest.param("/draft/other", id="path not allowed: another field of the draft"),
        pytest.param("/facts/foo", id="path not allowed: a fact"),
    ],
)
async def test_a_patch_elsewhere_is_refused_and_names_the_allowed_path(
    door: Door, path: str
) -> None:
    """Nothing is changed, and the model reads where it may write."""
    workspace = Workspace()
    await door.run(
        [assistant(None, tool_call("state_patch", patch(path))), "Sorry."], tools=workspace.tools
    )

    error = door.answers[0]["errors"][0]
    assert error["code"] == Code.ARGUMENT_ERROR
    assert ALLOWED_PATH in error["message"]
    assert workspace.draft == {}
    assert workspace.facts == {}
    assert workspace.draft_version == 0


async def test_a_failed_patch_can_be_corrected(door: Door) -> None:
    """After the correction the run counts as a success, also when failures are fatal."""
    workspace = Workspace()
    result = await door.run(
        [
            assistant(None, tool_call("state_patch", patch("/draft/other"), "c1")),
            assistant(None, tool_call("state_patch", patch(), "c2")),
            "Done.",
        ],
        tools=workspace.tools,
        tool_use_mode="enforced",
        tool_failure_policy="fatal",
    )

    assert result.text == "Done."
    assert [answer["ok"] for answer in door.answers] == [False, True]
    assert workspace.draft == {"foo": "bar"}


async def test_success_and_failure_in_one_turn(door: Door) -> None:
    """A read succeeds beside a patch that is refused."""
    workspace = Workspace()
    both = assistant(
        None,
        tool_call("state_get", {}, "c1"),
        tool_call("state_patch", patch("/draft/other"), "c2"),
    )
    result = await door.run([both, "Sorry."], tools=workspace.tools)

    outcomes = [(r.name, r.ok, r.error_codes) for r in result.trace.turns[0].tool_results]
    assert outcomes == [("state_get", True, ()), ("state_patch", False, ("ARGUMENT_ERROR",))]


async def test_an_empty_patch_is_an_argument_error(door: Door) -> None:
    """A patch that does nothing is refused by the tool itself."""
    workspace = Workspace()
    await door.run(
        [assistant(None, tool_call("state_patch", {"request_id": "r1", "ops": []})), "Sorry."],
        tools=workspace.tools,
    )

    assert door.answers[0]["errors"][0]["code"] == Code.ARGUMENT_ERROR
    assert workspace.executed == ["state_patch"]


async def test_arguments_of_a_wrong_type_do_not_reach_the_tool(door: Door) -> None:
    """`ops` must be an array; the schema says so before the tool does."""
    workspace = Workspace()
    await door.run(
        [assistant(None, tool_call("state_patch", {"request_id": "r1", "ops": 7})), "Sorry."],
        tools=workspace.tools,
    )

    error = door.answers[0]["errors"][0]
    assert (error["code"], error["path"]) == (Code.ARGUMENTS_INVALID, "/ops")
    assert workspace.executed == []


async def test_committing_facts_is_not_for_the_model(door: Door) -> None:
    """The tool is registered but hidden: neither offered nor run."""
    workspace = Workspace()
    arguments = {
        "workspace_id": workspace.id,
        "request_id": "r1",
        "proposal_id": "p1",
        "user_confirmed": True,
    }
    await door.run(
        [assistant(None, tool_call("facts_commit", arguments)), "Sorry."], tools=workspace.tools
    )

    assert door.tool_names == ["state_get", "state_patch"]
    assert door.answers[0]["errors"][0]["code"] == Code.TOOL_NOT_ALLOWED
    assert workspace.executed == []


async def test_a_selection_reads_only_what_it_names(door: Door) -> None:
    """Pointers that lead nowhere are null, never an error."""
    workspace = Workspace({"foo": "bar", "big": "x" * 1000})
    select = ["/draft/foo", "#/versions/draft_etag", "nowhere"]
    await door.run(
        [assistant(None, tool_call("state_get", {"select": select})), "Done."],
        tools=workspace.tools,
    )

    assert door.answers[0]["data"]["snapshot"] == {
        "/draft/foo": "bar",
        "/versions/draft_etag": "draft:0",
        "/nowhere": None,
    }


async def test_a_read_that_is_too_large_does_not_stop_the_work(door: Door) -> None:
    """After TOOL_OUTPUT_TOO_LARGE the model goes on and patches."""
    workspace = Workspace({"big": "x" * 12_000})
    result = await door.run(
        [
            assistant(None, tool_call("state_get", {}, "c1")),
            assistant(None, tool_call("state_patch", patch(), "c2")),
            "Done.",
        ],
        tools=workspace.tools,
        tool_use_mode="enforced",
        tool_failure_policy="tolerated",
        max_tool_output_bytes=5000,
    )

    assert door.answers[0]["errors"][0]["code"] == Code.TOOL_OUTPUT_TOO_LARGE
    assert workspace.draft["foo"] == "bar"
    assert result.text == "Done."
