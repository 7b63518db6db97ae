"""The action for builds: its file is well formed, and its eval runs without a key."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from .sources import ROOT

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))


def test_every_input_that_is_used_exists() -> None:
    """A misspelt input would silently be empty."""
    text = (ROOT / "action.yml").read_text("utf-8")
    used = {part.split("}}")[0].split()[0] for part in text.split("inputs.")[1:]}
    assert used == set(ACTION["inputs"])
    assert all(given["description"] for given in ACTION["inputs"].values())


def test_no_input_is_put_into_a_script() -> None:
    """Text of a pull request never becomes code: scripts read variables only."""
    scripts = [step.get("run", "") for step in ACTION["runs"]["steps"]]
    assert [script for script in scripts if "${{" in script] == []


def test_no_secret_is_needed() -> None:
    """The action works on forks."""
    assert "secrets." not in (ROOT / "action.yml").read_text("utf-8")


def test_jobs_of_a_matrix_keep_their_reports_apart() -> None:
    """They have the same id, and two artifacts of one name are refused."""
    (kept,) = (step for step in ACTION["runs"]["steps"] if "upload" in step.get("uses", ""))
    assert "strategy.job-index" in kept["with"]["name"]
    assert "inputs.artifact" in kept["with"]["name"]


@pytest.mark.parametrize(("gate", "code"), [("strict>=0.5", 0), ("strict[model=zoo:*]>1", 1)])
def test_the_eval_runs_and_gates(tmp_path: Path, gate: str, code: int) -> None:
    """Reports are written, the summary of the job has the comment, and the gate decides."""
    output, summary = tmp_path / "output", tmp_path / "summary"
    tools = tmp_path / "bin"
    tools.mkdir()
    command = tools / "surecall"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m surecall "$@"\n')
    command.chmod(0o755)
    variables = {
        **os.environ,
        "PATH": f"{tools}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "RUNNER_TEMP": str(tmp_path),
        "GITHUB_OUTPUT": str(output),
        "GITHUB_STEP_SUMMARY": str(summary),
        "MODELS": "zoo:steady",
        "SCENARIOS": "happy_path",
        "TRIALS": "1",
        "GATES": f"{gate}\n\n",
        "ARGUMENTS": "--strategies 'baseline' --seed 3",
    }
    done = subprocess.run(
        ["bash", str(ROOT / "scripts" / "action.sh")],
        env=variables,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert output.read_text() == f"folder={tmp_path}/surecall-report\n"
    assert summary.read_text().startswith("### Tool calls: ")
    written = {path.name for path in (tmp_path / "surecall-report").iterdir()}
    assert {"report.html", "summary.md", "junit.xml"} <= written
