"""Foreign text is cut in one place, which takes secrets out first."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import surecall

SOURCE = Path(surecall.__file__).parent
FOREIGN = ("clients", "gateway", "models", "tools/mcp", "tools/openapi", "wire")
"""Rooms that handle what others send."""
FOR_MODELS = {
    "tools/mcp/definitions.py",
    "tools/openapi/operations.py",
    "models/probe/fit_gate.py",
    "wire/conversation.py",
    "wire/messages/blocks.py",
    "wire/server.py",
    "wire/translate.py",
}
"""Where text is cut that models read, and nobody else."""


def files() -> Iterator[tuple[str, ast.Module]]:
    """Yield the modules of these rooms."""
    for room in FOREIGN:
        found = sorted((SOURCE / room).rglob("*.py"))
        assert found, f"there is no room {room}"
        for file in found:
            yield file.relative_to(SOURCE).as_posix(), ast.parse(file.read_text("utf-8"))


def cuts_text(node: ast.expr) -> bool:
    """Tell whether an expression is a slice up to, or from, a fixed number of characters."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice):
        return False
    ends = (node.slice.lower, node.slice.upper)
    return any(
        isinstance(end, ast.Constant | ast.Name | ast.UnaryOp | ast.BinOp) for end in ends if end
    )


def decodes(node: ast.expr) -> bool:
    """Tell whether an expression makes text of bytes that may not be text."""
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return is_call and node.func.attr == "decode" and len(node.args) > 1


def puts_a_part(node: ast.FormattedValue) -> bool:
    """Tell whether a message gets a part of a text, without a function that makes it."""
    parts = [part for part in ast.walk(node.value) if isinstance(part, ast.expr)]
    is_made = any(isinstance(part, ast.Call) for part in parts)
    spec = "" if node.format_spec is None else ast.unparse(node.format_spec)
    has_limit = node.conversion == ord("r") and "." in spec
    return has_limit or (not is_made and any(map(cuts_text, parts)))


def findings(tree: ast.Module) -> Iterator[str]:
    """Yield what cuts foreign text without taking secrets out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(name.name == "clip" for name in node.names):
            yield "imports clip, which is for values of receipts"
        elif isinstance(node, ast.FormattedValue) and puts_a_part(node):
            yield f"line {node.lineno}: cuts what it puts into a message"
        elif isinstance(node, ast.Call) and decodes(node):
            assert isinstance(node.func, ast.Attribute)
            if cuts_text(node.func.value):
                yield f"line {node.lineno}: decodes a part of a body"
        elif isinstance(node, ast.Subscript) and cuts_text(node) and decodes(node.value):
            yield f"line {node.lineno}: cuts a decoded body"


def test_foreign_text_is_cut_by_one_function() -> None:
    """Error messages, logs and records show excerpts, which never hold half a key."""
    found = {
        name: problems
        for name, tree in files()
        if name not in FOR_MODELS and (problems := list(findings(tree)))
    }
    assert found == {}


@pytest.mark.parametrize(
    "code",
    [
        "from surecall.base.records import Reply, clip",
        'f"no {name[:80]!r}"',
        'f"no {body[-_MAX:]}"',
        'f"no {name!r:.80}"',
        'body[:200].decode("utf-8", "replace")',
        'body.decode("utf-8", "replace")[:200]',
    ],
)
def test_the_test_finds_what_cuts(code: str) -> None:
    """Each way to cut text is found."""
    assert list(findings(ast.parse(code)))
