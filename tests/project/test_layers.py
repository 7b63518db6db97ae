"""The direction of imports, as pyproject.toml states it."""

import subprocess
import sys
from pathlib import Path

from .sources import ROOT


def test_imports_only_point_downwards() -> None:
    """All import contracts are kept."""
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 broken" in done.stdout
