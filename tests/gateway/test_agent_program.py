"""An agent program as people start it: two steps and an answer, though its model errs in each.

More programs and faults are measured by `scripts/agent_programs.py`.
"""

import asyncio
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from surecall.base.records import ModelRequest
from surecall.faults import FaultServer, FaultyProvider
from surecall.faults.conversation import Action, CallTools, PlannedCall
from surecall.faults.schedule import FaultPlan

from .harness import make_settings, serve_gateway

CODE = "print(' '.join(['Goodbye', 'world']))"
START = (
    *(sys.executable, "-c", "from smolagents.cli import main; main()", "Say goodbye."),
    *("--model-type", "OpenAIModel", "--model-id", "weak", "--action-type", "tool_calling"),
    *("--tools", "python_interpreter", "--api-key", "client-key-0123456789"),
)


class Goodbye:
    """Runs a line of Python, and answers with what it prints."""

    def next_action(self, request: ModelRequest) -> Action:
        """Return the next step."""
        if "Goodbye world" not in request.messages[-1].text:
            return CallTools((PlannedCall("python_interpreter", {"code": CODE}),))
        return CallTools((PlannedCall("final_answer", {"answer": "It prints: TASK-DONE"}),))


@pytest.mark.skipif(find_spec("smolagents") is None, reason="smolagents is not installed")
async def test_smolagents_finishes_its_task(tmp_path: Path) -> None:
    """Its model writes the names of tools in capitals, so alone it runs out of steps."""
    provider = FaultyProvider(plan=FaultPlan.of("name_in_capitals"), oracles=(Goodbye(),))
    async with FaultServer(provider) as server:
        entry = f'[upstreams.a]\nurl = "{server.url}"\nprobe = "off"\n'
        async with serve_gateway(make_settings(tmp_path, entry)) as served:
            process = await asyncio.create_subprocess_exec(
                *START,
                *("--api-base", f"{served.url}/v1"),
                env={**os.environ, "HF_HUB_OFFLINE": "1", "HOME": str(tmp_path)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            try:
                output, _ = await asyncio.wait_for(process.communicate(), 120)
            finally:
                if process.returncode is None:
                    process.kill()
                    await process.wait()
            assert [record.outcome for record in served.store.records] == ["repaired", "repaired"]
    assert "TASK-DONE" in output.decode("utf-8", "replace")
    assert process.returncode == 0
    assert provider.requests == 2
