"""Reports for tests: what is known of a run that nobody ran, and the data inside a page."""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from surecall.evals.records import Manifest, TrialBody, TrialRow
from surecall.evals.store import RunInfo

from .eval_rows import make_body

__all__ = ["embedded", "file_url", "make_info", "with_bodies"]

_BEGUN_AT = 1_790_000_000.0


def make_info(rows: Sequence[TrialRow], **changes: Any) -> RunInfo:
    """Describe a finished run with these rows."""
    manifest = Manifest(
        axes={"trials": max((row.trial for row in rows), default=0), "seed": 7},
        units=len(rows),
        suites={"state": "1"},
        package="0.1.0",
        python="3.11",
        command="surecall eval --models 'zoo:*' --trials 5",
        simulated=tuple(dict.fromkeys(row.cell.model for row in rows if row.simulated)),
    )
    fields: dict[str, Any] = {
        "id": "20260921-kestrel",
        "status": "complete",
        "manifest": manifest,
        "units": len(rows),
        "done": len(rows),
        "tags": ("baseline",),
        "created_at": _BEGUN_AT,
        "ended_at": _BEGUN_AT + 900,
    }
    return RunInfo(**(fields | changes))


def with_bodies(rows: Iterable[TrialRow]) -> list[tuple[TrialRow, TrialBody]]:
    """Give every row its body."""
    return [(row, make_body(row)) for row in rows]


def embedded(page: bytes, name: str) -> Any:
    """Return the data that a page carries under this name."""
    pattern = rf'<script type="application/json" id="{name}">(.*?)</script>'
    found = re.findall(pattern, page.decode("utf-8"), re.DOTALL)
    assert len(found) == 1
    return json.loads(found[0])


def file_url(path: Path, hash_part: str = "") -> str:
    """Return the address of a file, opened at a place."""
    return path.resolve().as_uri() + hash_part
