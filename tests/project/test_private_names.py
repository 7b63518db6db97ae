"""No private name of another package is used: they change without a word."""

import ast
from collections.abc import Iterator
from functools import cache

import pytest

from .sources import source_trees

DOCUMENTED = {
    "_asdict",
    "_exit",
    "_field_defaults",
    "_fields",
    "_make",
    "_replace",
    "_unregister_task",
}
"""Of `namedtuple`, `os` and `asyncio`: public by their documentation."""
HOOKS = {"_load_scenario", "_make_status_error"}
"""Called or replaced from outside by design: the leaderboard's checker loads the state of its APIs
by the first, and every client class of openai and anthropic brings the second, which has no public
name; without it a refused call could not be told from any other status."""


def is_private(name: str) -> bool:
    """Tell whether a name is meant for its own package only; those of `enum` end as they begin."""
    return (
        name[:1] == "_" and name[:2] != "__" and name[-1] != "_" and name not in DOCUMENTED | HOOKS
    )


def defined_names(tree: ast.AST) -> Iterator[str]:
    """Return the private names that a file defines, wherever in it."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case ast.Attribute(ctx=ast.Store(), value=ast.Name(id="self" | "cls")):
                yield node.attr
            case ast.Constant(value=str(text)):  # of `__slots__`
                yield text
            case _:
                pass


def foreign_names(tree: ast.AST) -> Iterator[str]:
    """Return the names that a file binds to other packages."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for item in node.names:
                if item.name.partition(".")[0] != "surecall":
                    yield item.asname or item.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and is_foreign(node):
            yield from (item.asname or item.name for item in node.names)


def is_foreign(node: ast.ImportFrom) -> bool:
    """Tell whether an import leads out of the package."""
    return node.level == 0 and (node.module or "").partition(".")[0] != "surecall"


def root_of(node: ast.expr) -> str:
    """Return the name that an expression with attributes and calls begins with."""
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def private_uses(tree: ast.AST, own: set[str]) -> Iterator[str]:
    """Return every use of a private name that is not ours."""
    foreign = set(foreign_names(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and is_foreign(node):
            parts = [*(node.module or "").split("."), *(item.name for item in node.names)]
            yield from (f"import of {name}" for name in parts if is_private(name))
        elif isinstance(node, ast.Import):
            parts = [part for item in node.names for part in item.name.split(".")]
            yield from (f"import of {name}" for name in parts if is_private(name))
        elif isinstance(node, ast.Attribute) and is_private(node.attr):
            if node.attr not in own or root_of(node.value) in foreign:
                yield f"line {node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.Call) and root_of(node.func) in {"getattr", "setattr", "hasattr"}:
            for argument in node.args[1:2]:
                if isinstance(argument, ast.Constant) and is_private(str(argument.value)):
                    yield f"line {node.lineno}: {ast.unparse(node)}"


@cache
def own_names() -> set[str]:
    """Return all private names that the package defines."""
    found: set[str] = set()
    for tree in source_trees().values():
        found.update(filter(is_private, defined_names(tree)))
    return found


def test_no_private_name_of_another_package_is_used() -> None:
    """Neither imported, nor reached by an attribute, nor by a text."""
    found = {file: list(private_uses(tree, own_names())) for file, tree in source_trees().items()}
    assert {file: uses for file, uses in found.items() if uses} == {}


@pytest.mark.parametrize(
    "text",
    [
        "from uvicorn._types import Scope",
        "import concurrent.futures._base",
        "from asyncio import _get_running_loop",
        "import asyncio\nasyncio.tasks._all",
        "def f(loop):\n    return loop._ready_of_others",
        "class A(Other):\n    def f(self):\n        return self._not_set_here",
        "import x\ngetattr(x, '_y')",
    ],
)
def test_the_walk_sees_what_it_is_for(text: str) -> None:
    """Each way to reach such a name."""
    assert list(private_uses(ast.parse(text), own_names()))
