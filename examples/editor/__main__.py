"""A model proposes a fact, you decide, and you can undo it: no key, no network.

python examples/editor
python examples/editor "The tea house closes at 20:00 now." --store tea.db

The model runs on this machine: pip install 'surecall[local]', then once
surecall models fetch smollm2-135m
"""

import argparse
import asyncio
import sys
from collections.abc import Callable
from typing import Any

import surecall
from surecall import SqliteStore
from surecall.base.errors import RunLimitError
from surecall.workspace import (
    Author,
    MemoryStore,
    Proposal,
    Workspace,
    WorkspaceStore,
    WorkspaceTools,
)

NOTE = "From Monday on the tea house opens at 08:00."
FACTS = {"name": "The Tea House", "opens": "09:00", "seats": "20"}
SYSTEM = "You keep the facts of a tea house. For every note, call facts_propose once."
EXAMPLES = (
    ("With the new tables, the tea house has 24 seats.", "/facts/seats", "24"),
    ("In winter the tea house opens at 10:00.", "/facts/opens", "10:00"),
    ("We close at 19:00 from now on.", "/facts/closes", "19:00"),
)
"""A small model does well what it was shown."""

Ask = Callable[[str], str]


async def main(note: str, store: WorkspaceStore, ask: Ask, **model: Any) -> int:
    """Have a fact proposed, ask about it, commit it, and offer to undo it."""
    workspace = await open_workspace(store)
    await show_facts(workspace)
    print(f"\nnote      {note}")
    tools = WorkspaceTools(workspace, allowed_paths=["/facts"])
    try:
        await surecall.run(
            make_conversation(note),
            system=SYSTEM,
            tools=tools.registry(exposed=["facts_propose"]),
            **model,
        )
    except RunLimitError as error:  # what was proposed until then still counts
        print(f"          ({error.code})")
    waiting = await workspace.proposals("pending", limit=1)
    if not waiting:
        print("The model proposed nothing that could become a fact.")
        return 1
    await show_proposal(workspace, waiting[0])
    if not is_yes(ask("Commit this? [y/N] ")):
        reason = ask("Why not? The model reads it with state_get: ")
        await workspace.reject(waiting[0].id, by="you", reason=reason)
        print("Rejected; no fact changed.")
        return 0
    before = await workspace.read()
    await workspace.accept(waiting[0].id, by="you")
    await workspace.commit(waiting[0].id)
    await show_facts(workspace)
    if is_yes(ask(f"\nUndo, back to {before.facts_etag}? [y/N] ")):
        await workspace.undo(before.facts_etag, author=Author(by="you"))
        await show_facts(workspace)
    await show_log(workspace)
    return 0


async def open_workspace(store: WorkspaceStore) -> Workspace:
    """Return the workspace of the tea house, made when it is not there."""
    try:
        return await Workspace.create(store, id="tea-house", facts=FACTS)
    except surecall.SurecallError as error:
        if error.code != surecall.Code.WORKSPACE_EXISTS:
            raise
    return Workspace("tea-house", store)


def make_conversation(note: str) -> list[surecall.Message]:
    """Return the note after examples of how earlier ones were proposed."""
    messages: list[surecall.Message] = []
    for number, (text, path, value) in enumerate(EXAMPLES):
        facts = [{"path": path, "value": value, "reason": text}]
        call = surecall.ToolCall(
            id=f"example_{number}", name="facts_propose", arguments={"proposals": facts}
        )
        messages += [
            surecall.Message("user", text),
            surecall.Message("assistant", "", (call,)),
            surecall.Message("tool", '{"ok": true, "data": {"proposed": 1}}', tool_call_id=call.id),
            surecall.Message("assistant", "I proposed it."),
        ]
    return [*messages, surecall.Message("user", note)]


async def show_facts(workspace: Workspace) -> None:
    """Print the facts with their version."""
    state = await workspace.read()
    print(f"\n{state.facts_etag}")
    for name, value in state.facts.items():
        print(f"  {name:<14}{value!r}")


async def show_proposal(workspace: Workspace, proposal: Proposal) -> None:
    """Print what would change, and what a decision binds."""
    print(f"\nproposal  {proposal.id}, sha256 {proposal.digest[:16]}…")
    for difference in await workspace.compare(proposal.id):
        before = "nothing" if difference.is_new else repr(difference.before)
        print(f"  {difference.path}: {before} -> {difference.after!r}")


async def show_log(workspace: Workspace) -> None:
    """Print who changed what."""
    print("\nlog, newest first")
    for change in await workspace.changes(limit=6):
        what = change.restored or ", ".join(change.paths)
        print(f"  {change.revision:>3}  {change.kind:<8}{change.author.by:<12}{what}")


def is_yes(answer: str) -> bool:
    """Tell whether an answer is a clear yes."""
    return answer.strip().lower() in ("y", "yes")


def say_yes(question: str) -> str:
    """Answer yes, and show that."""
    print(f"{question}y")
    return "y"


def run(arguments: list[str]) -> int:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("note", nargs="?", default=NOTE)
    parser.add_argument("--model", default="embedded:smollm2-135m")
    parser.add_argument("--store", help="a file that keeps the workspace")
    parser.add_argument("--yes", action="store_true", help="answer every question with yes")
    given = parser.parse_args(arguments)
    store = SqliteStore(given.store) if given.store else MemoryStore()
    overrides = {"max_tokens": 160, "temperature": 0, "seed": 1}
    try:
        return asyncio.run(
            main(
                given.note,
                store,
                say_yes if given.yes else input,
                model=given.model,
                max_turns=2,
                request_overrides=overrides,
                **({"tool_prompting": "taught"} if given.model.startswith("embedded:") else {}),
            )
        )
    except surecall.SurecallError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
