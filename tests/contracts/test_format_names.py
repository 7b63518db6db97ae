"""The name of a wire format is compared in the folder of that format, and nowhere else."""

import ast
from collections import Counter
from pathlib import Path

from surecall.wire import PROTOCOLS

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "surecall"
NAMES = frozenset(PROTOCOLS)
OUR_OWN = ("wire", "exchange")
LEFT = {
    "exchange/judge.py": 2,
    "exchange/policy.py": 1,
    "exchange/prepare.py": 7,
    "exchange/request.py": 12,
    "exchange/streams/ending.py": 1,
}
"""Comparisons that are still there; a figure here may only fall."""


def _is_name(node: ast.expr) -> bool:
    """Tell whether an expression is the name of a format, or several of them."""
    if isinstance(node, ast.Tuple | ast.Set | ast.List):
        return bool(node.elts) and all(map(_is_name, node.elts))
    return isinstance(node, ast.Constant) and node.value in NAMES


def _is_protocol(node: ast.expr) -> bool:
    """Tell whether an expression says which format something is in."""
    written = ast.unparse(node)
    return "protocol" in written or written in {"name", "wire.name", "format", "target.name"}


def count_comparisons(path: Path) -> int:
    """Count where one file compares the name of a format."""
    tree = ast.parse(path.read_text("utf-8"))
    found = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            found += any(map(_is_name, sides)) and any(map(_is_protocol, sides))
    return found


def test_a_format_is_known_by_its_name_in_its_own_folder_only() -> None:
    """Whoever else wants to know something of a format asks it."""
    found: Counter[str] = Counter()
    for room in OUR_OWN:
        for path in (PACKAGE / room).rglob("*.py"):
            place = path.relative_to(PACKAGE)
            if len(place.parts) > 2 and place.parts[1] in NAMES:
                continue
            found[str(place)] += count_comparisons(path)
    assert +found == LEFT
