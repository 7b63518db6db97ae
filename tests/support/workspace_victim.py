"""Processes that work on a workspace, and may be killed at any boundary.

Run as a program, it reads one order a line, forks as often as the order says, and waits. A worker
patches the draft, proposes a fact, confirms and commits it, item by item, and acknowledges every
step in a file. Told to, it kills itself at the boundary with a given number: before and after each
statement and each transaction of the store.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any

from surecall.store import DatabaseStore, open_store
from surecall.workspace import ProposedFact, Workspace

__all__ = ["KillScene", "Workers"]

WORKSPACE = "w"


class Workers:
    """Starts workers, kills them, and says how they ended."""

    def __init__(self) -> None:
        self._zygote = subprocess.Popen(
            [sys.executable, "-m", "support.workspace_victim"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
        )
        self._line()  # it has imported everything

    def start(self, order: dict[str, Any]) -> list[int]:
        """Start the workers of an order and return the numbers of their processes."""
        assert self._zygote.stdin is not None
        self._zygote.stdin.write(json.dumps(order) + "\n")
        self._zygote.stdin.flush()
        return json.loads(self._line())

    def wait(self) -> list[int]:
        """Return how the workers ended."""
        return json.loads(self._line())

    def close(self) -> None:
        """Send everybody home."""
        self._zygote.communicate()

    def _line(self) -> str:
        assert self._zygote.stdout is not None
        return self._zygote.stdout.readline()


class KillScene:
    """One workspace whose worker is killed again and again."""

    def __init__(self, place: str, folder: Path) -> None:
        self.place = place
        self.acks = folder / "acks"
        self.acks.touch()
        self.boundaries: Counter[str] = Counter()

    async def begin(self) -> None:
        """Make the workspace."""
        async with open_store(self.place) as store:
            await Workspace.create(store, id=WORKSPACE, draft={"items": []})

    def order(self, kill_at: int | None) -> dict[str, Any]:
        """Return what the next worker is told: it goes on with the first item not committed."""
        item = len([1 for words in self.lines() if words[0] == "commit"])
        return {
            "store": self.place,
            "acks": str(self.acks),
            "item": item,
            "kill_at": kill_at,
            "job": "commit",
        }

    def lines(self) -> list[list[str]]:
        """Return what was acknowledged, in order."""
        return [line.split() for line in self.acks.read_text().splitlines()]

    async def check(self) -> tuple[int, int]:
        """Check that nothing acknowledged is lost and nothing was done twice.

        Returns:
            How many commits were acknowledged, and how many are in the store.
        """
        acked: dict[str, list[str]] = {}
        for kind, value, *_ in self.lines():
            acked.setdefault(kind, []).append(value)
        self.boundaries = Counter(acked.pop("killed", []))
        async with open_store(self.place) as store:
            workspace = Workspace(WORKSPACE, store)
            state = await workspace.read()
            changes = [
                each
                for end in range(state.revision + 1, -1, -1000)
                for each in await workspace.changes(before=end, limit=1000)
            ]
            proposals = {each.id: each for each in await workspace.proposals(limit=1000)}
        patched = [int(value) for value in acked.get("patch", [])]
        assert len(set(patched)) == len(patched)
        assert set(patched) <= set(state.draft["items"])
        assert len(set(state.draft["items"])) == len(state.draft["items"]), "a patch was doubled"
        commits = [each for each in changes if each.kind == "commit"]
        assert len(commits) == state.facts_version == len(state.facts), "a commit was doubled"
        assert set(acked.get("commit", [])) <= set(state.facts), "a commit was lost"
        used = {each.id for each in proposals.values() if each.status == "committed"}
        recent = {each.proposal_id for each in commits if each.proposal_id in proposals}
        assert used == recent, "a confirmation and its commit came apart"
        assert [each.revision for each in changes] == list(range(state.revision, -1, -1))
        return len(acked.get("commit", [])), len(commits)


class _Boundaries:
    """Passes everything on to a database, and ends the process at one boundary."""

    def __init__(self, database: Any, acks: int, kill_at: int) -> None:
        self.database = database
        self._acks = acks
        self._left = kill_at
        self.step = ""

    def point(self, name: str) -> None:
        """Pass a boundary, or end there."""
        if self._left == 0:
            os.write(self._acks, f"killed {self.step}:{name}\n".encode())
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1

    async def run(self, taken: Any, *, writes: bool) -> Any:
        """Run the steps with boundaries around and between them."""
        if not writes:
            return await self.database.run(taken, writes=False)
        self.point("before_transaction")
        result = await self.database.run(self._watch(taken), writes=True)
        self.point("after_commit")
        return result

    async def close(self) -> None:
        """Close the database."""
        await self.database.close()

    def _watch(self, taken: Any) -> Generator[Any, Any, Any]:
        try:
            query = next(taken)
            while True:
                rows = yield query
                consumed = query.text.startswith("UPDATE surecall_approvals")
                self.point("confirmation_written" if consumed else "after_statement")
                query = taken.send(rows)
        except StopIteration as done:
            self.point("before_commit")
            return done.value


async def _work(order: dict[str, Any]) -> None:
    acks = os.open(order["acks"], os.O_WRONLY | os.O_APPEND)
    store: DatabaseStore = open_store(order["store"])
    at = order["kill_at"]
    boundaries = _Boundaries(store.database, acks, 10**9 if at is None else at)
    store.database = boundaries
    workspace = Workspace(WORKSPACE, store)
    item = order["item"]
    while True:
        await _commit_item(workspace, boundaries, acks, item)
        item += 1


async def _commit_item(workspace: Workspace, boundaries: _Boundaries, acks: int, item: int) -> None:
    def acknowledge(step: str) -> None:
        os.write(acks, f"{step} {item}\n".encode())

    boundaries.step = "patch"
    append = {"op": "append", "path": "/draft/items", "value": item}
    known = await workspace._store.find_request(WORKSPACE, f"patch-{item}")
    await workspace.patch([append], request_id=f"patch-{item}")
    if known is None:
        acknowledge("patch")
    boundaries.step = "propose"
    facts = [ProposedFact(f"/facts/{item}", item)]
    proposal = await workspace.propose(facts, request_id=f"propose-{item}")
    boundaries.step = "accept"
    if proposal.status == "pending":
        proposal = await workspace.accept(proposal.id, by="anna")
    boundaries.step = "commit"
    if item % 2:  # both ways for a caller to find out whether it had committed
        await workspace.commit(proposal.id, request_id=f"commit-{item}")
    elif proposal.status != "committed":
        await workspace.commit(proposal.id)
    acknowledge("commit")


async def _append(order: dict[str, Any], number: int) -> None:
    async with open_store(order["store"]) as store:
        workspace = Workspace(WORKSPACE, store)
        for count in range(order["count"]):
            append = {"op": "append", "path": "/draft/items", "value": f"{number}-{count}"}
            await workspace.patch([append])


def _run_child(order: dict[str, Any], number: int) -> None:
    try:
        asyncio.run(_work(order) if order["job"] == "commit" else _append(order, number))
    except BaseException as error:
        sys.stderr.write(f"{error!r}\n")
        os._exit(1)
    os._exit(0)


def main() -> None:
    """Take orders until there are no more."""
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        children: list[int] = []
        for number in range(order.get("workers", 1)):
            child = os.fork()
            if child == 0:
                _run_child(order, number)
            children.append(child)
        print(json.dumps(children), flush=True)
        ends = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        print(json.dumps(ends), flush=True)


if __name__ == "__main__":
    main()
