from pathlib import Path

import pytest

from support.settings import leave_environment


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run every command in an empty folder, without settings from outside."""
    leave_environment(tmp_path, monkeypatch)
    return tmp_path
