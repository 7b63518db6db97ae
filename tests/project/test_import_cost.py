"""Starting is cheap: heavy packages are loaded when they are needed, not before."""

import subprocess
import sys
from dataclasses import dataclass

import pytest

HEAVY = {
    "aiohttp",
    "asyncpg",
    "click",
    "httptools",
    "jsonschema",
    "jsonschema_rs",
    "msgspec",
    "opentelemetry",
    "pydantic",
    "rich",
    "sqlite3",
    "starlette",
    "uvicorn",
    "yarl",
}


@dataclass(frozen=True)
class Start:
    id: str
    arguments: tuple[str, ...]
    allowed: frozenset[str] = frozenset()


STARTS = [
    Start("import", ("-c", "import surecall")),
    Start("use a name", ("-c", "import surecall; surecall.tool"), frozenset({"msgspec"})),
    Start("version", ("-m", "surecall", "--version"), frozenset({"click"})),
    Start("help", ("-m", "surecall", "--help"), frozenset({"click"})),
]


@pytest.mark.parametrize("case", STARTS, ids=lambda case: case.id)
def test_starting_loads_nothing_heavy(case: Start) -> None:
    """Neither the import nor the quick commands load HTTP, terminal or database packages."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *case.arguments],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    lines = done.stderr.splitlines()
    loaded = {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}
    assert done.returncode == 0, done.stderr[-2000:]
    assert "surecall" in loaded
    assert {name.partition(".")[0] for name in loaded} & (HEAVY - case.allowed) == set()
