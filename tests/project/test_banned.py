"""What the package must not contain: unsafe calls, second codecs, and vague names."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from .sources import SOURCE, source_files

CALLS = {"eval", "exec", "compile", "__import__"}
MODULES = {"cPickle", "dill", "marshal", "pickle", "shelve", "yaml"}
CODEC_MODULES = {"json", "orjson", "simplejson", "ujson"}
FILES = {"common", "helpers", "misc", "utils"}
OVERRIDES = {  # named by click, httpx and importlib
    *("get_command", "get_completion_args", "get_source", "handle_async_request"),
    "handle_request",
}
PREFIXES = ("do_", "get_", "handle_", "process_", "serialize_", "to_wire_")
SUFFIXES = ("Helper", "Impl", "Manager", "Service")
MARKS = ("TODO", "FIXME", "XXX", "NotImplementedError")

each_file = pytest.mark.parametrize(
    "path", source_files(), ids=lambda path: str(path.relative_to(SOURCE))
)


def nodes(path: Path) -> Iterator[ast.AST]:
    """Walk the syntax tree of a file."""
    return ast.walk(ast.parse(path.read_text("utf-8")))


def imported(path: Path) -> set[str]:
    """List the top-level packages a file imports."""
    found: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add((node.module or "").partition(".")[0])
    return found


@each_file
def test_nothing_runs_text_as_code(path: Path) -> None:
    """No `eval` or its kin, no unpickling, no YAML, no shell."""
    for node in nodes(path):
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            assert name not in CALLS, f"{path}:{node.lineno}"
            shell = [word for word in node.keywords if word.arg == "shell"]
            assert not shell, f"{path}:{node.lineno}"
    assert imported(path) & MODULES == set()


@each_file
def test_json_has_one_codec(path: Path) -> None:
    """Only `text` encodes and decodes JSON."""
    if path.parent.name == "text":
        return
    assert imported(path) & CODEC_MODULES == set()
    uses = [
        node.lineno
        for node in nodes(path)
        if isinstance(node, ast.Attribute)
        and node.attr == "json"
        and isinstance(node.value, ast.Name)
        and node.value.id == "msgspec"
    ]
    assert uses == []


@each_file
def test_the_environment_is_read_in_one_place(path: Path) -> None:
    """Only `config` looks at variables."""
    if path.parent.name == "config":
        return
    reads = [
        node.lineno
        for node in nodes(path)
        if isinstance(node, ast.Attribute)
        and node.attr in {"environ", "getenv"}
        and isinstance(node.value, ast.Name)
        and node.value.id == "os"
    ]
    assert reads == []


@each_file
def test_names_say_what_they_mean(path: Path) -> None:
    """No vague module, function or class names, and nothing left to be done."""
    assert path.stem not in FILES
    assert path.parent.name not in FILES
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            own = not node.name.startswith("__") and node.name not in OVERRIDES
            name = node.name.lstrip("_") if own else ""
            assert not name.startswith(PREFIXES), f"{path}:{node.lineno}"
        if isinstance(node, ast.ClassDef):
            assert not node.name.endswith(SUFFIXES), f"{path}:{node.lineno}"
    text = path.read_text("utf-8")
    assert [mark for mark in MARKS if mark in text] == []
