"""Journals and traces that an earlier surecall wrote are resumed and replayed."""

import shutil
from pathlib import Path
from typing import Any, Final

import pytest

import surecall
from surecall.loop import load_trace, replay_trace
from surecall.models.transport import ScriptedTransport

from .toolbox import assistant, look, save, saved, tool_call

OLD: Final = Path(__file__).with_name("old_runs")
TAG: Final = '<tool_call>{"name": "save", "arguments": {"text": "one"}}</tool_call>'
FINAL: Final = "It is saved."

SCRIPTS: Final[dict[str, tuple[list[Any], dict[str, Any]]]] = {
    "tags": (
        [f"First.\n{TAG}", "<tool_call>look</tool_call>", FINAL],
        {"preset": "content_tag_tool_call_fallback"},
    ),
    "legacy": (
        [
            assistant(None, function_call={"name": "save", "arguments": '{"text": "one"}'}),
            assistant(None, tool_calls=tool_call("look", '{"what": "x"}', id="c1")),
            FINAL,
        ],
        {"preset": "default_tool_calling"},
    ),
    "objects": (
        [
            assistant(
                None, {"id": "a", "function": {"name": "save", "arguments": {"text": "one"}}}
            ),
            assistant(None, tool_call("look", "  ", id="b")),
            FINAL,
        ],
        {"preset": "default_tool_calling"},
    ),
    "formats": ([f"{TAG}", FINAL], {"preset": (), "text_formats": True}),
}
"""What was run, by the names of the files: the replies, and the arguments."""
IDS: Final = {
    "tags": ["tag_call_1", "tag_call_1__2"],
    "legacy": ["call_1", "c1"],
    "objects": ["a", "b"],
    "formats": ["tc_1"],
}


async def run(name: str, journal: Path, replies: list[Any]) -> surecall.RunResult:
    """Run a script with a journal."""
    return await surecall.run(
        "Save one.",
        model="m",
        tools=[look, save],
        transport=ScriptedTransport(replies),
        journal=str(journal),
        run_id=f"r-{name}",
        **SCRIPTS[name][1],
    )


@pytest.mark.parametrize("cuts", range(2))
@pytest.mark.parametrize("name", SCRIPTS)
async def test_an_effect_on_record_is_not_repeated(name: str, cuts: int, tmp_path: Path) -> None:
    """The call gets the id it had, so that its result is found; the run goes on from there."""
    path = Path(shutil.copyfile(OLD / f"{name}.jsonl", tmp_path / "run.jsonl"))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[: len(lines) - cuts]))
    known = sum(b'"kind":"reply"' in line for line in lines[: len(lines) - cuts])
    result = await run(name, path, SCRIPTS[name][0][known:])
    assert saved == []
    assert result.text == FINAL
    assert [call.id for call in result.calls] == IDS[name]
    assert all(item.ok for item in result.results)


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_old_trace_is_replayed(name: str) -> None:
    """The same calls are read from the recorded replies."""
    replay = replay_trace(load_trace(OLD / f"{name}.trace.json"))
    assert (replay.differences, replay.text) == ((), FINAL)
