import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run every command in an empty folder, without settings from outside."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith(("SURECALL_", "OPENAI_", "OPENROUTER_")):
            monkeypatch.delenv(name)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path
