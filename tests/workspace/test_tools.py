"""The tools of a workspace: their schemas, their rules, and the log of calls."""

from typing import Any

import pytest

from surecall.base.errors import Code
from surecall.base.records import Receipt, ToolCall
from surecall.tools import Dispatcher, MaskedRegistry, ToolContext, ToolFailed
from surecall.workspace import MemoryStore, ProposedFact, Workspace, WorkspaceTools, new_state


class Desk:
    """A workspace with its tools, and a way to call them as a model does."""

    def __init__(self, tools: dict[str, Any] | None = None, **fields: Any) -> None:
        state = new_state(id="w1", **fields)
        self.store = MemoryStore()
        self.store.put(state)
        self.workspace = Workspace("w1", self.store)
        self.tools = WorkspaceTools(self.workspace, **(tools or {}))
        self._dispatcher = Dispatcher(self.tools.registry())

    @property
    def state(self) -> Any:
        """The newest state."""
        return self.store.find("w1")

    async def call(self, name: str, **arguments: Any) -> Any:
        """Return the envelope of a call."""
        call = ToolCall(id="c", name=name, arguments=arguments)
        context = ToolContext("run", 1, "c", (Receipt("strip_code_fence", "", 1, 2),))
        return (await self._dispatcher.dispatch(call, context)).envelope


def patch(path: str = "/draft/foo", **fields: Any) -> dict[str, Any]:
    """Return the arguments of a patch."""
    return {"request_id": "r1", "ops": [{"op": "set", "path": path, "value": "bar"}], **fields}


def test_the_schemas_are_the_documented_ones() -> None:
    """Names, types, required fields and closed objects are as the original has them."""
    specs = {spec.name: spec for spec in Desk({"original": True}).tools.registry().specs()}
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


def test_ids_may_be_left_out() -> None:
    """Only what a call is about is required."""
    specs = Desk().tools.registry().specs()
    assert {spec.name: (spec.parameters["required"], spec.exposed) for spec in specs} == {
        "state_get": ([], True),
        "state_patch": (["ops"], True),
        "facts_propose": (["proposals"], True),
        "ui_render": (["actions"], True),
        "facts_commit": (["proposal_id"], False),
    }


def test_a_model_is_shown_what_is_exposed() -> None:
    """Committing is never shown; the others can be hidden too."""
    tools = Desk().tools
    shown = MaskedRegistry(tools.registry()).names
    assert shown == ("state_get", "state_patch", "facts_propose", "ui_render")
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
    assert whole.data["snapshot"] == desk.state.snapshot() | {"proposals": []}
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
    desk = Desk({"settable": ("/draft/foo",)})
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
    """The model proposes, a person confirms, the application commits."""
    desk = Desk()
    proposals = [{"path": "/facts/a", "value": 1, "reason": "seen"}]
    proposed = await desk.call("facts_propose", proposals=proposals)
    (found,) = await desk.workspace.proposals()
    assert proposed.data == {"proposal_id": found.id, "proposed": 1}
    commit = {"proposal_id": found.id}
    assert (await desk.call("facts_commit", **commit)).error_codes == (Code.TOOL_NOT_ALLOWED,)
    with pytest.raises(ToolFailed) as caught:
        await desk.tools.execute("facts_commit", commit)
    assert caught.value.code == Code.APPROVAL_MISSING
    await desk.workspace.accept(found.id, by="anna")
    done = await desk.tools.execute("facts_commit", commit)
    assert done == {"facts_etag": "facts:1", "committed": 1, "changed_paths": ["/facts/a"]}
    assert desk.state.facts == {"a": 1}


async def test_the_original_commit_needs_a_clear_yes() -> None:
    """Anything but true is a no, whatever was confirmed before."""
    desk = Desk({"original": True})
    proposal = await desk.workspace.propose([ProposedFact("/facts/a", 1)])
    await desk.workspace.accept(proposal.id, by="anna")
    for confirmed in (False, None, "yes", 1):
        arguments = {"proposal_id": proposal.id, "user_confirmed": confirmed}
        with pytest.raises(ToolFailed, match="confirmation"):
            await desk.tools.execute("facts_commit", arguments)
    await desk.tools.execute("facts_commit", {"proposal_id": proposal.id, "user_confirmed": True})
    assert desk.state.facts == {"a": 1}


async def test_a_model_reads_why_its_proposal_was_rejected() -> None:
    """The reason and what was accepted of others are in what it reads."""
    desk = Desk()
    for path in ("/facts/a", "/facts/b"):
        facts = [{"path": path, "value": 1}, {"path": "/facts/c", "value": 2}]
        await desk.call("facts_propose", proposals=facts)
    second, first = await desk.workspace.proposals()
    await desk.workspace.reject(first.id, by="anna", reason="That is last year's price.")
    await desk.workspace.accept(second.id, by="anna", only=["/facts/b"])
    read = await desk.call("state_get", select=["/proposals"])
    assert read.data["snapshot"]["/proposals"] == [
        {
            "proposal_id": second.id,
            "status": "approved",
            "paths": ["/facts/b", "/facts/c"],
            "accepted": ["/facts/b"],
        },
        {
            "proposal_id": first.id,
            "status": "rejected",
            "paths": ["/facts/a", "/facts/c"],
            "reason": "That is last year's price.",
        },
    ]


async def test_a_request_id_is_claimed_by_a_success() -> None:
    """A repeated patch is answered again and not applied again; another one is refused."""
    desk = Desk(draft={"list": []})
    bad = {"op": "append", "path": "/draft/list/x", "value": 1}
    good = {"op": "append", "path": "/draft/list", "value": 1}
    assert not (await desk.call("state_patch", request_id="r", ops=[bad])).ok
    first = await desk.call("state_patch", request_id="r", ops=[good])
    await desk.call("state_patch", ops=[good])
    again = await desk.call("state_patch", request_id="r", ops=[good], draft_etag="draft:0")
    assert first.data == again.data == {"draft_etag": "draft:1", "applied": 1}
    other = await desk.call("state_patch", request_id="r", ops=[good, good])
    assert other.error_codes == (Code.REQUEST_ID_REUSED,)
    assert desk.state.draft == {"list": [1, 1]}


async def test_a_stale_version_is_refused() -> None:
    """A patch for another version of the draft changes nothing."""
    desk = Desk()
    await desk.call("state_patch", **patch(), draft_etag="draft:0")
    stale = await desk.call("state_patch", ops=patch()["ops"], draft_etag="draft:0")
    assert stale.error_codes == (Code.ARGUMENT_ERROR,)
    assert desk.state.draft_etag == "draft:1"


async def test_what_an_interface_should_show() -> None:
    """The actions are in the ui state, and those before are gone."""
    desk = Desk(ui_state={"tab": 2})
    await desk.call("ui_render", actions=[{"show": "form"}])
    rendered = await desk.call("ui_render", actions=[{"show": "list"}, {"focus": "name"}])
    assert rendered.data == {"rendered": 2}
    assert desk.state.ui_state == {"tab": 2, "last_render": [{"show": "list"}, {"focus": "name"}]}
    assert desk.state.ui_state_etag == "ui_state:2"


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/draft/notes", True),
        ("/draft/notes/", True),
        ("/draft/notes/0/text", True),
        ("/draft/note", False),
        ("/draft/notesmore", False),
        ("/draft/", False),
        ("/draft/other/../notes", False),
        ("draft/notes", False),
    ],
)
async def test_writing_is_held_to_the_allowed_paths(path: str, allowed: bool) -> None:
    """By whole parts of a path, whatever the operation is."""
    desk = Desk({"allowed_paths": ["/draft/notes", "facts/price"]}, draft={"notes": [{}]})
    for operation in ("set", "delete"):
        ops = [{"op": operation, "path": path, "value": {}}]
        envelope = await desk.call("state_patch", ops=ops)
        assert envelope.ok is allowed
    facts = [{"path": "/facts/price", "value": 1}]
    assert (await desk.call("facts_propose", proposals=facts)).ok
    facts.append({"path": "/facts/owner", "value": 1})
    refused = await desk.call("facts_propose", proposals=facts)
    assert "/draft/notes or /facts/price" in refused.errors[0].message


async def test_a_call_leaves_its_run_and_its_receipts_in_the_log_of_changes() -> None:
    """Who changed what, through which call, and what was repaired in it."""
    desk = Desk()
    await desk.call("state_patch", **patch())
    (change,) = await desk.workspace.changes()
    assert (change.kind, change.paths, change.etags) == ("patch", ("/draft/foo",), ("draft:1",))
    assert (change.author.by, change.author.run_id, change.author.call_id) == ("model", "run", "c")
    assert [receipt.rule for receipt in change.author.receipts] == ["strip_code_fence"]


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
