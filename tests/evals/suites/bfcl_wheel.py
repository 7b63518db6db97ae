"""A wheel with the layout of the leaderboard's package, and a few cases of its own."""

import json
import zipfile
from pathlib import Path
from typing import Any

__all__ = ["AREA", "write_wheel"]

AREA: dict[str, Any] = {
    "name": "geometry.area",
    "description": "Area of a rectangle.",
    "parameters": {
        "type": "dict",
        "properties": {
            "width": {"type": "float", "description": "Width."},
            "height": {"type": "float"},
            "unit": {"type": "string", "optional": True},
        },
        "required": ["width", "height"],
    },
}
_CASES: dict[str, list[dict[str, Any]]] = {
    "simple_python": [
        {
            "id": f"simple_python_{number}",
            "question": [[{"role": "user", "content": f"Area of {number} by 3?"}]],
            "function": [AREA],
            "ground_truth": [
                {
                    "geometry.area": {
                        "width": [float(number)],
                        "height": [3.0],
                        "unit": ["units", ""],
                    }
                }
            ],
        }
        for number in range(1, 4)
    ],
    "irrelevance": [
        {
            "id": "irrelevance_0",
            "question": [
                [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]
            ],
            "function": [AREA],
        }
    ],
}


def write_wheel(folder: Path, *, cases: "dict[str, list[dict[str, Any]]] | None" = None) -> Path:
    """Write the wheel into a folder; categories without cases get an empty file."""
    path = folder / "bfcl_eval-1.2.3-py3-none-any.whl"
    categories = (
        *("simple_python", "multiple", "parallel", "parallel_multiple", "irrelevance"),
        *("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple"),
        *("live_irrelevance", "live_relevance"),
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("bfcl_eval-1.2.3.dist-info/METADATA", "Name: bfcl-eval\nVersion: 1.2.3\n")
        archive.writestr("bfcl_eval/__init__.py", "raise RuntimeError('must not be imported')\n")
        for category in categories:
            rows = {**_CASES, **(cases or {})}.get(category, [])
            asked = [{k: v for k, v in row.items() if k != "ground_truth"} for row in rows]
            answers = [{"id": r["id"], "ground_truth": r.get("ground_truth")} for r in rows]
            name = f"BFCL_v4_{category}.json"
            archive.writestr(f"bfcl_eval/data/{name}", _lines(asked))
            if "relevance" not in category:
                archive.writestr(f"bfcl_eval/data/possible_answer/{name}", _lines(answers))
    return path


def _lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)
