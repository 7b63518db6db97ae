"""A wheel with the layout of the leaderboard's package, and a few cases of its own."""

import inspect
import json
import zipfile
from pathlib import Path
from typing import Any

from surecall.evals.suites.bfcl import list_conversation_files
from surecall.evals.suites.bfcl.worlds import APIS

from .bfcl_apis import SOURCES

__all__ = ["AREA", "CONVERSATIONS", "write_wheel"]

CONVERSATIONS: list[dict[str, Any]] = json.loads(
    Path(__file__).with_name("bfcl_conversations.json").read_text()
)
"""Conversations of our own, on each of the leaderboard's APIs."""
_TICKETS = [row for row in CONVERSATIONS if row["involved_classes"] == ["TicketAPI"]]
_CODE = "bfcl_eval/eval_checker/multi_turn_eval/func_source_code"

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
        *("live_irrelevance", "live_relevance", "multi_turn_base"),
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("bfcl_eval-1.2.3.dist-info/METADATA", "Name: bfcl-eval\nVersion: 1.2.3\n")
        archive.writestr("bfcl_eval/__init__.py", "raise RuntimeError('must not be imported')\n")
        for category in categories:
            rows = {**_CASES, "multi_turn_base": _TICKETS, **(cases or {})}.get(category, [])
            asked = [{k: v for k, v in row.items() if k != "ground_truth"} for row in rows]
            answers = [{"id": r["id"], "ground_truth": r.get("ground_truth")} for r in rows]
            name = f"BFCL_v4_{category}.json"
            archive.writestr(f"bfcl_eval/data/{name}", _lines(asked))
            if "relevance" not in category:
                archive.writestr(f"bfcl_eval/data/possible_answer/{name}", _lines(answers))
        docs = (name for name in list_conversation_files() if "func_doc" in name)
        for name, api in zip(docs, APIS.values(), strict=True):
            class_name, source = SOURCES.get(api, ("", ""))
            functions = [_describe(*each) for each in _list_functions(class_name, source)]
            archive.writestr(f"bfcl_eval/data/{name}", _lines(functions))
            if source:
                archive.writestr(f"{_CODE}/{api}.py", source)
    return path


def _list_functions(class_name: str, source: str) -> list[tuple[str, Any]]:
    """Return the functions of a class by their names."""
    scope: dict[str, Any] = {}
    exec(source.replace("import mpmath", ""), scope)
    found: dict[str, Any] = dict(vars(scope[class_name])) if class_name else {}
    return sorted((name, each) for name, each in found.items() if name[0] != "_")


_TYPES = {"bool": "boolean", "float": "float", "int": "integer", "str": "string"}


def _describe(name: str, function: Any) -> dict[str, Any]:
    """Describe a function by its own signature."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    return {
        "name": name,
        "description": inspect.getdoc(function),
        "parameters": {
            "type": "dict",
            "properties": {each.name: {"type": _name_type(each)} for each in parameters},
            "required": [each.name for each in parameters if each.default is each.empty],
        },
    }


def _name_type(parameter: inspect.Parameter) -> str:
    name = getattr(parameter.annotation, "__name__", "") or str(parameter.annotation)
    if "list" in name:
        return "array"
    return "dict" if "Dict" in str(parameter.annotation) else _TYPES.get(name, "string")


def _lines(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)
