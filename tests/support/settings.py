"""Settings of a folder, with nothing of the real environment."""

import os
from pathlib import Path
from typing import Any

import pytest

from surecall.models.config import Config, load_config

__all__ = ["CANARY", "leave_environment", "load", "write"]

CANARY = "sk-canary-1234567890abcdef"


def load(folder: Path, environ: dict[str, str] | None = None, **more: Any) -> Config:
    """Load with nothing of the real environment."""
    return load_config(cwd=folder, environ=environ or {}, **more)


def write(folder: Path, text: str, name: str = "surecall.toml") -> Path:
    """Write a configuration file and return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, "utf-8")
    return folder


def leave_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in an empty folder, without settings from outside."""
    monkeypatch.chdir(folder)
    for name in list(os.environ):
        if name.startswith(("SURECALL_", "OPENAI_", "OPENROUTER_")):
            monkeypatch.delenv(name)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
