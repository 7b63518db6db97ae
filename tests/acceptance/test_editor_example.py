"""The example `examples/editor`, with a scripted model and a person who answers."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from surecall import ScriptedTransport
from surecall.models.transport import assistant, tool_call
from surecall.store import SqliteStore
from surecall.workspace import Workspace

EXAMPLE = Path(__file__).parents[2] / "examples" / "editor" / "__main__.py"


@pytest.fixture
def editor() -> Any:
    """The example as a module."""
    spec = importlib.util.spec_from_file_location("editor", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def play(editor: Any, path: Path, answers: list[str], value: str = "08:00") -> int:
    """Run the example once, in a process of its own as far as the store can tell."""
    facts = [{"path": "/facts/opens", "value": value}]
    replies = [assistant(None, tool_call("facts_propose", {"proposals": facts})), "I proposed it."]
    async with SqliteStore(path) as store:
        return await editor.main(
            editor.NOTE,
            store,
            lambda _question: answers.pop(0),
            model="demo",
            transport=ScriptedTransport(replies),
        )


async def test_a_proposal_is_shown_committed_and_undone(
    editor: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The person sees what would change, and the log says who did what."""
    assert await play(editor, tmp_path / "s.db", ["y", "y"]) == 0
    shown = capsys.readouterr().out
    assert "/facts/opens: '09:00' -> '08:00'" in shown
    assert [line.split() for line in shown.splitlines()[-4:]] == [
        ["3", "undo", "you", "facts:0"],
        ["2", "commit", "you", "/facts/opens"],
        ["1", "propose", "model", "/facts/opens"],
        ["0", "create", "application"],
    ]
    async with SqliteStore(tmp_path / "s.db") as store:
        state = await Workspace("tea-house", store).read()
    assert (state.facts["opens"], state.facts_etag) == ("09:00", "facts:2")


async def test_what_is_rejected_stays_out_and_the_next_run_continues(
    editor: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A rejection keeps its reason; a later commit is there after a restart."""
    assert await play(editor, tmp_path / "s.db", ["n", "It is a holiday."], "07:00") == 0
    assert await play(editor, tmp_path / "s.db", ["yes", "no"]) == 0
    async with SqliteStore(tmp_path / "s.db") as store:
        workspace = Workspace("tea-house", store)
        assert (await workspace.read()).facts["opens"] == "08:00"
        assert [each.reason for each in await workspace.proposals("rejected")] == [
            "It is a holiday."
        ]
    assert "Rejected; no fact changed." in capsys.readouterr().out


def test_a_model_that_is_not_there_is_reported(
    editor: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """With what to do about it."""
    assert editor.run(["--model", "embedded:nothing.gguf", "--yes"]) == 1
    assert "nothing" in capsys.readouterr().err
