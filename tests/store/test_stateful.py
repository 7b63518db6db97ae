"""Workspaces, proposals, locks and undo against a simple model, over every store."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from support.workspace_stores import empty_postgres
from surecall.base.errors import Code, SurecallError
from surecall.store import SqliteStore
from surecall.workspace import MemoryStore, ProposedFact, Workspace

KEYS = st.sampled_from(["a", "ab", "b"])
VALUES = st.integers(0, 3) | st.lists(st.integers(0, 1), max_size=2)
CHANCE = st.integers(0, 10**6)
REQUESTS = st.none() | st.sampled_from(["q1", "q2", "q3"])


class Model:
    """What a workspace should hold: flat objects, every version of them, and what was decided."""

    def __init__(self) -> None:
        self.versions: dict[str, list[dict[str, Any]]] = {"facts": [{}], "draft": [{}]}
        self.locks: set[tuple[str, str]] = set()
        self.proposals: list[dict[str, Any]] = []
        self.claims: dict[str, tuple[Any, int]] = {}
        self.revision = 0

    def now(self, part: str) -> dict[str, Any]:
        """Return what a part holds."""
        return self.versions[part][-1]

    def change(self, part: str, content: dict[str, Any]) -> None:
        """Give a part its next version."""
        self.versions[part].append(content)
        self.revision += 1

    def is_moved(self, part: str, content: dict[str, Any]) -> bool:
        """Tell whether content differs from the present one where a lock is."""
        missing = object()
        old = self.now(part)
        keys = [key for place, key in self.locks if place == part]
        return any(old.get(key, missing) != content.get(key, missing) for key in keys)

    def guarded(self) -> list[tuple[str, int]]:
        """Return the versions that cannot be restored because of a lock."""
        return [
            (part, version)
            for part, versions in self.versions.items()
            for version, content in enumerate(versions)
            if self.is_moved(part, content)
        ]


class WorkspaceMachine(RuleBasedStateMachine):
    """Does the same to a workspace and to the model, and compares."""

    def __init__(self, runner: asyncio.Runner, store: Any) -> None:
        super().__init__()
        self.runner = runner
        self.workspace: Workspace = self.run(Workspace.create(store))
        self.model = Model()

    def run(self, step: Any) -> Any:
        """Wait for a step."""
        return self.runner.run(step)

    def code(self, step: Any) -> str | None:
        """Return the code with which a step is refused, or `None` when it is not."""
        try:
            self.run(step)
        except SurecallError as error:
            return error.code
        return None

    def patch(self, operation: dict[str, Any], **fields: Any) -> str | None:
        """Send one operation."""
        return self.code(self.workspace.patch([operation], **fields))

    @rule(key=KEYS, value=VALUES, request_id=REQUESTS)
    def set_a_value(self, key: str, value: Any, request_id: str | None) -> None:
        """Set it unless it is locked, once for each request id."""
        operation = {"op": "set", "path": f"/draft/{key}", "value": value}
        code = self.patch(operation, request_id=request_id)
        claim = self.model.claims.get(request_id or "")
        if claim is not None:
            assert code == (None if claim[0] == operation else Code.REQUEST_ID_REUSED)
        elif ("draft", key) in self.model.locks:
            assert code == Code.PATH_LOCKED
        else:
            assert code is None
            self.model.change("draft", {**self.model.now("draft"), key: value})
            if request_id is not None:
                self.model.claims[request_id] = (operation, self.model.revision)

    @rule(key=KEYS)
    def delete_a_value(self, key: str) -> None:
        """Delete it unless it is locked."""
        code = self.patch({"op": "delete", "path": f"/draft/{key}"})
        if ("draft", key) in self.model.locks:
            assert code == Code.PATH_LOCKED
            return
        assert code is None
        rest = {name: value for name, value in self.model.now("draft").items() if name != key}
        self.model.change("draft", rest)

    @rule(key=KEYS, value=st.integers(0, 3))
    def append_a_value(self, key: str, value: int) -> None:
        """Append to what is a list, or begin one."""
        code = self.patch({"op": "append", "path": f"/draft/{key}", "value": value})
        found = self.model.now("draft").get(key, [])
        if ("draft", key) in self.model.locks:
            assert code == Code.PATH_LOCKED
        elif not isinstance(found, list):
            assert code == Code.ARGUMENT_ERROR
        else:
            assert code is None
            self.model.change("draft", {**self.model.now("draft"), key: [*found, value]})

    @rule(key=KEYS, back=st.integers(1, 3))
    def patch_a_stale_version(self, key: str, back: int) -> None:
        """A version that is not the present one is refused."""
        stale = f"draft:{len(self.model.versions['draft']) - 1 - back}"
        operation = {"op": "set", "path": f"/draft/{key}", "value": 1}
        assert self.patch(operation, etag=stale) == Code.ARGUMENT_ERROR

    @rule(part=st.sampled_from(["facts", "draft"]), key=KEYS)
    def lock(self, part: str, key: str) -> None:
        """Lock a path."""
        self.run(self.workspace.lock(f"/{part}/{key}"))
        self.model.locks.add((part, key))
        self.model.revision += 1

    @rule(part=st.sampled_from(["facts", "draft"]), key=KEYS)
    def unlock(self, part: str, key: str) -> None:
        """Unlock a path, if it is locked."""
        self.run(self.workspace.unlock(f"/{part}/{key}"))
        if (part, key) in self.model.locks:
            self.model.locks.remove((part, key))
            self.model.revision += 1

    @rule(facts=st.dictionaries(KEYS, VALUES, min_size=1, max_size=3))
    def propose(self, facts: dict[str, Any]) -> None:
        """Propose facts, which changes none."""
        proposed = [ProposedFact(f"/facts/{key}", value) for key, value in facts.items()]
        made = self.run(self.workspace.propose(proposed))
        self.model.proposals.append({"id": made.id, "facts": facts, "status": "pending"})
        self.model.revision += 1

    def pick(self, chance: int) -> dict[str, Any]:
        """Return one of the proposals."""
        return self.model.proposals[chance % len(self.model.proposals)]

    @precondition(lambda self: self.model.proposals)
    @rule(chance=CHANCE, whole=st.booleans())
    def accept(self, chance: int, whole: bool) -> None:
        """Accept all of a proposal or its first fact, unless it was decided."""
        proposal = self.pick(chance)
        first = next(iter(proposal["facts"]))
        only = None if whole else [f"/facts/{first}"]
        code = self.code(self.workspace.accept(proposal["id"], by="anna", only=only))
        if proposal["status"] != "pending":
            assert code == Code.APPROVAL_DECIDED
            return
        assert code is None
        facts = proposal["facts"]
        proposal |= {"status": "approved", "accepted": facts if whole else {first: facts[first]}}

    @precondition(lambda self: self.model.proposals)
    @rule(chance=CHANCE)
    def reject(self, chance: int) -> None:
        """Reject a proposal, unless it was decided."""
        proposal = self.pick(chance)
        code = self.code(self.workspace.reject(proposal["id"], by="anna", reason="no"))
        assert code == (None if proposal["status"] == "pending" else Code.APPROVAL_DECIDED)
        if code is None:
            proposal["status"] = "rejected"

    @precondition(lambda self: self.model.proposals)
    @rule(chance=CHANCE)
    def commit(self, chance: int) -> None:
        """Commit what was accepted, once, unless something of it is locked."""
        proposal = self.pick(chance)
        code = self.code(self.workspace.commit(proposal["id"]))
        if proposal["status"] == "committed":
            assert code == Code.APPROVAL_USED
        elif proposal["status"] != "approved":
            assert code == Code.APPROVAL_MISSING
        elif any(("facts", key) in self.model.locks for key in proposal["accepted"]):
            assert code == Code.PATH_LOCKED
        else:
            assert code is None
            proposal["status"] = "committed"
            self.model.change("facts", {**self.model.now("facts"), **proposal["accepted"]})

    @rule(part=st.sampled_from(["facts", "draft"]), chance=CHANCE)
    def undo(self, part: str, chance: int) -> None:
        """Go back to any version, as a new one, unless that would change what is locked."""
        versions = self.model.versions[part]
        version = chance % (len(versions) + 1)
        code = self.code(self.workspace.undo(f"{part}:{version}"))
        if version == len(versions):
            assert code == Code.VERSION_NOT_FOUND
        elif self.model.is_moved(part, versions[version]):
            assert code == Code.PATH_LOCKED
        else:
            assert code is None
            if version != len(versions) - 1:
                self.model.change(part, versions[version])

    @precondition(lambda self: self.model.guarded())
    @rule(chance=CHANCE)
    def undo_past_a_lock(self, chance: int) -> None:
        """A version that differs where a lock is cannot be restored."""
        guarded = self.model.guarded()
        part, version = guarded[chance % len(guarded)]
        assert self.code(self.workspace.undo(f"{part}:{version}")) == Code.PATH_LOCKED

    @invariant()
    def both_are_the_same(self) -> None:
        """Content, versions, locks, proposals, the log, and what was claimed agree."""
        state = self.run(self.workspace.read())
        for part in ("facts", "draft"):
            assert getattr(state, part) == self.model.now(part)
            assert state.version(part) == len(self.model.versions[part]) - 1
        assert {tuple(lock.split("/")[1:]) for lock in state.locks} == self.model.locks
        assert state.revision == self.model.revision
        found = self.run(self.workspace.proposals())
        expected = [(each["id"], each["status"]) for each in reversed(self.model.proposals)]
        assert [(each.id, each.status) for each in found] == expected
        log = self.run(self.workspace.changes(limit=1000))
        assert [each.revision for each in log] == list(range(self.model.revision, -1, -1))


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    """One event loop for all examples."""
    with asyncio.Runner() as made:
        yield made


@pytest.mark.parametrize(("kind", "examples"), [("memory", 40), ("sqlite", 6), ("postgres", 6)])
def test_every_store_behaves_as_the_model(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    runner: asyncio.Runner,
    kind: str,
    examples: int,
) -> None:
    """Whatever is done in whatever order, store and model stay the same."""
    if kind == "memory":
        store: Any = MemoryStore()
    elif kind == "sqlite":
        store = SqliteStore(tmp_path / "s.db")
    else:
        url = request.getfixturevalue("server").get_uri()
        store = runner.run(empty_postgres(url))
    run_state_machine_as_test(
        lambda: WorkspaceMachine(runner, store),
        settings=settings(max_examples=examples, stateful_step_count=30, deadline=None),
    )
    if kind != "memory":
        runner.run(store.close())
