"""The name of a wire format is compared in the folder of that format, and nowhere else."""

import ast
from collections import Counter
from pathlib import Path

from surecall.wire import PROTOCOLS

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "surecall"
NAMES = frozenset(PROTOCOLS)
LEFT = {
    "faults/answers.py": 7,  # headers and errors as each provider writes them
    "faults/catalog/shapes.py": 1,
    "gateway/jobs/relaying.py": 1,  # the list of models that each SDK reads
    "reading/documents.py": 1,  # tells formats apart by what they look like
    "reading/inputs.py": 1,
    "schema/dialects/__init__.py": 2,  # a dialect of schemas, which has the name of a format
    "wire/translate.py": 2,
}
"""Comparisons that are still there; a figure here may only fall."""


def _is_name(node: ast.expr) -> bool:
    """Tell whether an expression is the name of a format, or several of them."""
    if isinstance(node, ast.Tuple | ast.Set | ast.List):
        return bool(node.elts) and all(map(_is_name, node.elts))
    return isinstance(node, ast.Constant) and node.value in NAMES


def count_comparisons(path: Path) -> int:
    """Count where one file compares the name of a format."""
    tree = ast.parse(path.read_text("utf-8"))
    found = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            found += any(map(_is_name, sides))
    return found


def test_a_format_is_known_by_its_name_in_its_own_folder_only() -> None:
    """Whoever else wants to know something of a format asks it."""
    found: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        place = path.relative_to(PACKAGE)
        if len(place.parts) > 2 and place.parts[1] in NAMES:
            continue
        found[str(place)] += count_comparisons(path)
    assert +found == LEFT
