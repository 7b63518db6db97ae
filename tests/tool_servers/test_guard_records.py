"""Calls through `surecall mcp guard` are recorded where requests of a gateway are."""

import json
import os
import subprocess
import sys
from pathlib import Path

from mcp import Client, StdioServerParameters

import surecall
from surecall.store.records import open_for_reading

SOURCES = str(Path(surecall.__file__).parents[1])


async def test_calls_are_recorded_with_the_requests_of_a_gateway(
    command: list[str], tmp_path: Path
) -> None:
    """What passed, what was mended and what was refused, each with its times."""
    place, env = tmp_path / "requests.db", {**os.environ, "PYTHONPATH": SOURCES}
    words = ["-m", "surecall", "mcp", "guard", "--store", str(place), "--name", "sums", "--"]
    guard = StdioServerParameters(command=sys.executable, args=[*words, *command], env=env)
    async with Client(guard) as client:
        assert "add" in {tool.name for tool in (await client.list_tools()).tools}
        for given in ({"a": 1, "b": 2}, {"a": "1", "b": 2}, {"a": 1}):
            await client.call_tool("add", given)
    store = open_for_reading(place)
    found = [record async for record in store.export()]
    await store.close()
    assert [record.outcome for record in found] == ["clean", "repaired", "refused"]
    assert {(record.upstream, record.model_asked) for record in found} == {("sums", "tool:add")}
    assert [record.calls for record in found] == [1, 1, 0]
    assert [record.error_code for record in found] == ["", "", "ARGUMENTS_INVALID"]
    assert len(found[1].receipts) == 1
    assert min(record.upstream_ms for record in found[:2]) > 0
    listed = subprocess.run(
        [sys.executable, "-m", "surecall", "requests", "--store", str(place), "--json"],
        check=True,
        capture_output=True,
        env=env,
        timeout=120,
    )
    rows = json.loads(listed.stdout)["requests"]
    assert [row["id"] for row in rows] == [record.id for record in reversed(found)]
