"""The examples that are run by another program: by pytest, by `surecall with` and by a workflow."""

import asyncio
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from surecall.faults import FaultServer, FaultyProvider

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
BROKEN = "arguments_fenced"


def run(*words: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a folder."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=os.environ | {"OPENAI_API_KEY": "none"} | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.timeout(150)
def test_the_tests_of_the_example_pass(tmp_path: Path) -> None:
    """Each fault is repaired in every trial."""
    plugins = ("-p", "no:cacheprovider", "-p", "no:xdist")
    done = run("-m", "pytest", str(EXAMPLES / "test_booking.py"), *plugins, folder=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout


@pytest.mark.timeout(150)
async def test_a_plain_agent_is_right_only_through_surecall(tmp_path: Path) -> None:
    """Alone it ends with a traceback; with a gateway of its own it answers."""
    agent = [str(EXAMPLES / "plain_agent.py"), 'call weather with {"city": "Oslo"}']
    async with FaultServer(FaultyProvider()) as provider:
        through = (
            "-m",
            "surecall",
            "with",
            "--upstream",
            provider.url,
            "--store",
            "off",
            sys.executable,
        )
        done = await asyncio.to_thread(
            run, *through, "--", *agent, f"faults:{BROKEN}", folder=tmp_path
        )
        alone = await asyncio.to_thread(
            run, *agent, f"faults:{BROKEN}", folder=tmp_path, OPENAI_BASE_URL=provider.url
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert "JSONDecodeError" in alone.stderr


@pytest.mark.timeout(150)
def test_the_workflow_runs_a_gate_that_passes(tmp_path: Path) -> None:
    """The command of the workflow works as it is written there."""
    text = (EXAMPLES / "gate.yml").read_text("utf-8")
    found = re.search(r"run: >\n((?:\s+\S.*\n)+?)\s+- if", text)
    assert found is not None
    words = shlex.split(" ".join(found[1].split()))
    words = [word.replace("examples/", f"{EXAMPLES}/") for word in words]
    done = run("-m", *words, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "results" / "summary.md").exists()


def test_the_list_of_examples_names_them_all() -> None:
    """No example is left out."""
    page = (EXAMPLES / "README.md").read_text("utf-8")
    here = {
        path.name for path in EXAMPLES.iterdir() if path.name not in {"README.md", "__pycache__"}
    }
    assert {name for name in here if f"[{name}]" not in page} == set()
