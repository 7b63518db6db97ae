"""Running commands in this process, with their two streams apart."""

import json
from typing import Any

from click.testing import CliRunner, Result

from surecall.cli import cli

__all__ = ["STEADY", "document", "documents", "invoke", "of_type"]

STEADY = ("--models", "zoo:steady", "--scenarios", "happy_path")


def invoke(*arguments: str, stdin: str | None = None, **variables: str) -> Result:
    """Run a command and return what it wrote and how it ended."""
    return CliRunner().invoke(
        cli, list(arguments), input=stdin, env=variables, prog_name="surecall"
    )


def documents(result: Result) -> list[dict[str, Any]]:
    """Parse every line of standard output; each must be a document with its version and type."""
    parsed = [json.loads(line) for line in result.stdout.splitlines()]
    assert all(item["schema_version"] == 1 and item["type"] for item in parsed)
    return parsed


def document(result: Result) -> dict[str, Any]:
    """Parse standard output as exactly one document."""
    (only,) = documents(result)
    return only


def of_type(found: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    """Return the documents of one type."""
    return [item for item in found if item["type"] == kind]
