"""A wire format is told from others by its traits: its name is compared in `wire/` only."""

import ast
from collections.abc import Iterator

import pytest

from surecall.wire import PROTOCOLS

from .sources import SOURCE, source_trees

SHARED = frozenset({"messages", "responses"})
"""Names of formats that members of bodies have as well."""
OF_FORMATS = ("protocol", "format", "wire", ".name")


def constants(node: ast.expr) -> Iterator[str]:
    """Yield the texts of one side of a comparison: a constant, or a row of them."""
    for inner in node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else (node,):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value


def compared_names(tree: ast.AST) -> Iterator[str]:
    """Yield every comparison with the name of a format, and every case of a match on one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            texts = {text for side in sides for text in constants(side)} & PROTOCOLS.keys()
            others = " ".join(ast.unparse(side) for side in sides if not [*constants(side)])
            if "dialect" in others:  # of schemas, one of which has the name of a format
                continue
            if texts - SHARED or (texts and any(word in others for word in OF_FORMATS)):
                yield f"line {node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.MatchValue) and {*constants(node.value)} & PROTOCOLS.keys():
            yield f"line {node.lineno}: case {ast.unparse(node)}"


def test_no_name_of_a_wire_format_is_compared() -> None:
    """Whoever needs to know how a format differs reads its traits, or a table by its name."""
    found = {
        path: list(compared_names(tree))
        for path, tree in source_trees().items()
        if not path.is_relative_to(SOURCE / "wire")
    }
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "text",
    [
        "if protocol.name == 'gemini': pass",
        "x = 'chat_completions' != name",
        "if protocol in ('messages', 'responses'): pass",
        "if route.protocol.name not in {'responses'}: pass",
        "match protocol:\n    case 'messages':\n        pass",
    ],
)
def test_the_walk_sees_what_it_is_for(text: str) -> None:
    """Each way to compare."""
    assert list(compared_names(ast.parse(text)))
