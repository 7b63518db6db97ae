"""The tools of a workspace: their schemas, their rules, and the log of calls."""

from typing import Any

import pytest

from surecall.errors import Code
from surecall.records import ToolCall
from surecall.tools import Dispatcher, MaskedRegistry, ToolContext, ToolFailed
from surecall.workspace import MemoryStore, Workspace, WorkspaceTools, new_state


class Desk:
    """A workspace with its tools, and a way to call them as a model does."""

    def __init__(self, settable: tuple[str, ...] | None = None, **fields: Any) -> None:
        state = new_state(id="w1", **fields)
        self.store = MemoryStore()
        self.store.add(state)
        self.tools = WorkspaceTools(Workspace("w1", self.store), settable=settable)
        self._dispatcher = Dispatcher(self.tools.registry())

    @property
    def state(self) -> Any:
        """The newest state."""
        return self.store.find("w1")

    async def call(self, name: str, **arguments: Any) -> Any:
        """Return the envelope of a call."""
        call = ToolCall(id="c", name=name, arguments=arguments)
        return (await self._dispatcher.dispatch(call, ToolContext())).envelope


def patch(path: str = "/draft/foo", **fields: Any) -> dict[str, Any]:
    """Return the arguments of a patch."""
    return {"request_id": "r1", "ops": [{"op": "set", "path": path, "value": "bar"}], **fields}


def test_the_schemas_are_the_documented_ones() -> None:
    """Names, types, required fields and closed objects are as the original has them."""
    specs = {spec.name: spec for spec in Desk().tools.registry().specs()}
    shapes = {
        name: (sorted(spec.parameters["properties"]), spec.parameters["required"], spec.exposed)
        for name, spec in specs.items()
    }
    assert shapes == {
        "state_get": (["select", "workspace_id"], [], True),
        "state_patch": (["ops", "request_id", "workspace_id"], ["request_id", "ops"], True),
        "facts_propose": (
            ["proposals", "request_id", "workspace_id"],
            ["request_id", "proposals"],
            True,
        ),
        "facts_commit": (
            ["proposal_id", "request_id", "user_confirmed", "workspace_id"],
            ["workspace_id", "request_id", "proposal_id", "user_confirmed"],
            False,
        ),
    }
    operation = specs["state_patch"].parameters["properties"]["ops"]["items"]
    assert sorted(operation["properties"]) == ["index", "op", "path", "value"]
    assert operation["required"] == ["op", "path"]
    closed = [spec.parameters["additionalProperties"] for spec in specs.values()]
    assert [*closed, operation["additionalProperties"]] == [False] * 5
    assert [name for name, spec in specs.items() if spec.effect == "read"] == ["state_get"]


def test_a_model_is_shown_what_is_exposed() -> None:
    """Committing is never shown; the others can be hidden too."""
    tools = Desk().tools
    shown = MaskedRegistry(tools.registry()).names
    assert shown == ("state_get", "state_patch", "facts_propose")
    fewer = MaskedRegistry(tools.registry(exposed=("state_get", "facts_commit"))).names
    assert fewer == ("state_get",)


@pytest.mark.parametrize("given", [{}, {"workspace_id": ""}, {"workspace_id": "workspace_id"}])
async def test_the_current_workspace_is_meant_without_an_id(given: dict[str, Any]) -> None:
    """Left out, empty, or the name of the field: all mean the same."""
    assert (await Desk().call("state_get", **given)).ok


@pytest.mark.parametrize("name", ["state_get", "state_patch"])
async def test_another_workspace_is_not_found(name: str) -> None:
    """Nothing is read or changed, and the model is told what to do."""
    desk = Desk()
    arguments = patch() if name == "state_patch" else {}
    envelope = await desk.call(name, **arguments, workspace_id="w2")
    assert envelope.error_codes == (Code.WORKSPACE_NOT_FOUND,)
    assert "Leave workspace_id out" in envelope.errors[0].hint
    assert desk.state.revision == 0


async def test_reading_all_and_some() -> None:
    """Without a selection the whole snapshot comes, with one only what it names."""
    desk = Desk(draft={"foo": 1})
    whole = await desk.call("state_get", select=[])
    assert whole.data["snapshot"] == desk.state.snapshot()
    some = await desk.call("state_get", select=["draft/foo", "/nowhere"])
    assert some.data == {"snapshot": {"/draft/foo": 1, "/nowhere": None}}
    single = await desk.tools.execute("state_get", {"select": "#/draft/foo"})
    assert single == {"snapshot": {"/draft/foo": 1}}


async def test_a_patch_answers_with_the_new_version() -> None:
    """The version and the number of operations come back."""
    envelope = await Desk().call("state_patch", **patch())
    assert envelope.data == {"draft_etag": "draft:1", "applied": 1}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "set", "path": "/draft/other", "value": 1},
        {"op": "set", "path": "/draft/foo/", "value": 1},
        {"op": "delete", "path": "/draft/foo"},
    ],
)
async def test_only_what_may_be_set_can_be_set(operation: dict[str, Any]) -> None:
    """One operation that is not allowed stops the patch, and the allowed path is named."""
    desk = Desk(settable=("/draft/foo",))
    good = {"op": "set", "path": "/draft/foo", "value": 1}
    envelope = await desk.call("state_patch", request_id="r", ops=[good, operation])
    assert envelope.error_codes == (Code.ARGUMENT_ERROR,)
    assert "/draft/foo" in envelope.errors[0].message
    assert desk.state.draft == {}


async def test_the_code_of_a_lock_reaches_the_model() -> None:
    """A locked path has a code of its own."""
    envelope = await Desk(locks=["/draft/foo"]).call("state_patch", **patch())
    assert envelope.error_codes == (Code.PATH_LOCKED,)


@pytest.mark.parametrize("ops", [[], 7, None, ["set"]])
async def test_operations_are_checked_without_a_schema_too(ops: Any) -> None:
    """An application may run the tools by itself."""
    with pytest.raises(ToolFailed) as caught:
        await Desk().tools.execute("state_patch", {"request_id": "r", "ops": ops})
    assert caught.value.code == Code.ARGUMENT_ERROR


async def test_a_proposal_waits_for_its_commit() -> None:
    """The model proposes, the application commits."""
    desk = Desk()
    proposals = [{"path": "/facts/a", "value": 1, "reason": "seen"}]
    proposed = await desk.call("facts_propose", request_id="r", proposals=proposals)
    assert proposed.data == {"proposal_id": "p1", "proposed": 1}
    refused = await desk.call("facts_commit", request_id="r", proposal_id="p1", user_confirmed=True)
    assert refused.error_codes == (Code.TOOL_NOT_ALLOWED,)
    arguments = {"request_id": "r", "proposal_id": "p1", "user_confirmed": True}
    done = await desk.tools.execute("facts_commit", arguments)
    assert done == {"facts_etag": "facts:1", "committed": 1, "changed_paths": ["/facts/a"]}
    assert desk.state.facts == {"a": 1}


async def test_an_unknown_tool_is_not_implemented() -> None:
    """The executor itself knows only its own tools."""
    with pytest.raises(ToolFailed) as caught:
        await Desk().tools.execute("state_burn", {})
    assert caught.value.code == Code.TOOL_NOT_IMPLEMENTED


async def test_every_call_is_logged_in_order() -> None:
    """What was read and written, with which arguments, and what was refused."""
    desk = Desk(locks=["/draft/title"])
    await desk.call("state_get")
    await desk.call("state_get", select=["/draft/a"])
    await desk.call("state_patch", **patch("/draft/title"))
    await desk.call("state_patch", **patch())
    await desk.call("state_patch", request_id=5, ops=[])
    logged = [
        (call.tool, call.ok, call.code, call.read, call.written, call.etag)
        for call in desk.tools.log.calls
    ]
    assert logged == [
        ("state_get", True, None, ("/",), (), None),
        ("state_get", True, None, ("/draft/a",), (), None),
        ("state_patch", False, "PATH_LOCKED", (), (), None),
        ("state_patch", True, None, (), ("/draft/foo",), "draft:1"),
    ]
    assert desk.tools.log.calls[3].arguments == patch()
