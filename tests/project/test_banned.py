"""What the package must not contain: unsafe calls, second codecs, and vague names."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from .sources import source_files, source_trees

CALLS = {"eval", "exec", "compile", "__import__"}
MODULES = {"cPickle", "dill", "marshal", "pickle", "shelve", "yaml"}
CODEC_MODULES = {"json", "orjson", "simplejson", "ujson"}
VAGUE = {"common", "helpers", "misc", "utils"}
OVERRIDES = {  # named by click, httpx and importlib
    *("get_command", "get_completion_args", "get_source", "handle_async_request"),
    "handle_request",
}
PREFIXES = ("do_", "get_", "handle_", "process_", "serialize_", "to_wire_")
SUFFIXES = ("Helper", "Impl", "Manager", "Service")
MARKS = ("TODO", "FIXME", "XXX", "NotImplementedError")

FILES = source_files()


@cache
def nodes_by_file() -> dict[Path, list[ast.AST]]:
    """List every node of every file."""
    return {path: list(ast.walk(tree)) for path, tree in source_trees().items()}


def imported(path: Path) -> set[str]:
    """List the top-level packages a file imports."""
    found: set[str] = set()
    for node in nodes_by_file()[path]:
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add((node.module or "").partition(".")[0])
    return found


def uses(names: set[str], of: str) -> Iterator[tuple[Path, int]]:
    """Yield where a file uses one of these names of a module."""
    for path, nodes in nodes_by_file().items():
        for node in nodes:
            match node:
                case ast.Attribute(value=ast.Name(id=module), attr=name) if module == of:
                    if name in names:
                        yield path, node.lineno
                case _:
                    pass


def test_nothing_runs_text_as_code() -> None:
    """No `eval` or its kin, no unpickling, no YAML, no shell."""
    calls = [
        (path, node.lineno)
        for path, nodes in nodes_by_file().items()
        for node in nodes
        if isinstance(node, ast.Call)
        and (
            (isinstance(node.func, ast.Name) and node.func.id in CALLS)
            or any(word.arg == "shell" for word in node.keywords)
        )
    ]
    assert calls == []
    assert [path for path in FILES if imported(path) & MODULES] == []


def test_json_has_one_codec() -> None:
    """Only `text` encodes and decodes JSON."""
    others = [path for path in FILES if path.parent.name != "text"]
    assert [path for path in others if imported(path) & CODEC_MODULES] == []
    assert [place for place in uses({"json"}, "msgspec") if place[0] in others] == []


def test_the_environment_is_read_in_one_place() -> None:
    """Only `config` looks at variables."""
    reads = uses({"environ", "getenv"}, "os")
    assert [place for place in reads if place[0].parent.name != "config"] == []


def test_names_say_what_they_mean() -> None:
    """No vague module, function or class names."""
    vague = [path for path in FILES if {path.stem, path.parent.name} & VAGUE]
    functions = [
        (path, node.lineno)
        for path, nodes in nodes_by_file().items()
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not node.name.startswith("__")
        and node.name not in OVERRIDES
        and node.name.lstrip("_").startswith(PREFIXES)
    ]
    classes = [
        (path, node.lineno)
        for path, nodes in nodes_by_file().items()
        for node in nodes
        if isinstance(node, ast.ClassDef) and node.name.endswith(SUFFIXES)
    ]
    assert (vague, functions, classes) == ([], [], [])


def test_nothing_is_left_to_be_done() -> None:
    """No mark of work that somebody meant to do later."""
    texts = {path: path.read_text("utf-8") for path in FILES}
    assert [(path, mark) for path, text in texts.items() for mark in MARKS if mark in text] == []
