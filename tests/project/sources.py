"""Where the project's own files are, for tests about the project."""

import ast
import importlib.util
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import ModuleType

import surecall

__all__ = [
    "ROOT",
    "SOURCE",
    "doc_pages",
    "load_script",
    "module_names",
    "source_files",
    "source_trees",
]

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "surecall"


def source_files() -> list[Path]:
    """List every Python file of the package."""
    return sorted(SOURCE.rglob("*.py"))


@cache
def source_trees() -> Mapping[Path, ast.Module]:
    """Parse every file of the package, once for all tests of a process."""
    return {path: ast.parse(path.read_text("utf-8")) for path in source_files()}


def module_names() -> list[str]:
    """List every module of the package by its dotted name, without `__main__`."""
    return ["surecall", *_walk()]


def _walk() -> Iterator[str]:
    for module in pkgutil.walk_packages(surecall.__path__, "surecall."):
        if not module.name.endswith("__main__"):
            yield module.name


def doc_pages() -> list[Path]:
    """List every page of the documentation, those at the top of the project too."""
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def load_script(name: str, folder: Path = ROOT / "scripts") -> ModuleType:
    """Load a script of the project as a module; it finds its neighbours as when it is run."""
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(folder))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(folder))
    return module
