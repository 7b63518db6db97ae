"""The file that is only type-checked covers the public names."""

import ast
from pathlib import Path

import surecall

API = Path(__file__).parents[1] / "typing" / "api.py"


def test_the_typing_file_uses_every_top_level_name() -> None:
    """Each name is imported from the package, and used at least once after that."""
    tree = ast.parse(API.read_text("utf-8"))
    imported = {
        alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == "surecall"
        for alias in node.names
    }
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert imported == set(surecall.__all__)
    assert imported <= used
