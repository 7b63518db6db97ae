"""Settings of a folder, with nothing of the real environment."""

from pathlib import Path
from typing import Any

from surecall.config import Config, load_config

__all__ = ["CANARY", "load", "write"]

CANARY = "sk-canary-1234567890abcdef"


def load(folder: Path, environ: dict[str, str] | None = None, **more: Any) -> Config:
    """Load with nothing of the real environment."""
    return load_config(cwd=folder, environ=environ or {}, **more)


def write(folder: Path, text: str, name: str = "surecall.toml") -> Path:
    """Write a configuration file and return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, "utf-8")
    return folder
