"""Public names: declared, sorted, there, and documented."""

import ast
import asyncio
import importlib
import inspect
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

import surecall

from .sources import ROOT, module_names

IMPORT = re.compile(r"^from (surecall\.[\w.]+) import \(?([\w, \n]+?)(?:\)|$)", re.MULTILINE)


EXAMPLE = re.compile(r"(?m)^(?:    .*\n|\n(?=    ))+")
GO_ON = {"approve": "PausedResult", "deny": "PausedResult", "resume": "PausedResult"}
"""Examples that go on where another one ends."""


def rank(name: str) -> tuple[int, list[int | str]]:
    """Sort constants first, then classes, then the rest, as the linter does; numbers by value."""
    group = 0 if name.isupper() else 1 if name[:1].isupper() else 2
    parts = [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
    return group, parts


def is_entrance(module: str) -> bool:
    """Return whether users import from this module: a package, or a module at the top."""
    loaded = importlib.import_module(module)
    return hasattr(loaded, "__path__") or module.count(".") == 1


def test_every_entrance_declares_its_public_names() -> None:
    """`__all__` exists, is sorted, has no name twice, and names only what is there."""
    for module in filter(is_entrance, module_names()):
        loaded = importlib.import_module(module)
        names = list(getattr(loaded, "__all__", ["(no __all__)"]))
        assert names == sorted(set(names), key=rank), module
        assert [name for name in names if not hasattr(loaded, name)] == [], module


def test_every_top_level_name_is_documented() -> None:
    """The API page has a heading or a table row for each name."""
    page = (ROOT / "docs" / "reference" / "api.md").read_text("utf-8")
    documented = set(re.findall(r"^(?:#+ |\| )`(\w+)[`(]", page, re.MULTILINE))
    assert set(surecall.__all__) <= documented


def find_example(name: str) -> str:
    """Return the indented block of a docstring, which shows a first use."""
    documented = inspect.cleandoc(getattr(surecall, name).__doc__ or "").partition("\nArgs:")[0]
    found = EXAMPLE.search(f"{documented}\n")
    return textwrap.dedent(found[0]) if found else ""


@pytest.mark.parametrize("name", surecall.__all__)
def test_every_public_name_shows_what_it_does(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its example runs from top to bottom; a comment behind a line is what the line gives."""
    monkeypatch.chdir(tmp_path)
    code = "\n".join(find_example(each) for each in (GO_ON.get(name), name) if each)
    names: dict[str, Any] = {"surecall": surecall}
    for node in ast.parse(code).body:
        text = ast.unparse(node)
        shown = re.search(r"  # (.*)$", code.splitlines()[(node.end_lineno or 0) - 1])
        mode = "eval" if isinstance(node, ast.Expr) else "exec"
        made = eval(compile(text, name, mode, ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
        if inspect.iscoroutine(made):
            made = asyncio.run(made)
        assert shown is None or repr(made) == shown[1]
    assert name in code


def test_every_name_that_the_guides_import_is_in_the_reference() -> None:
    """The page of names has a row with words for each name that comes from a part."""
    page = (ROOT / "docs" / "reference" / "api.md").read_text("utf-8")
    rows = re.findall(r"^\| `(surecall\.[\w.]+)` \| \S", page, re.MULTILINE)
    imported = {
        f"{module}.{name.strip()}"
        for guide in (ROOT / "docs" / "how-to").glob("*.md")
        for module, names in IMPORT.findall(guide.read_text("utf-8"))
        for name in names.split(",")
        if name.strip() not in ("", *surecall.__all__)
    }
    assert sorted(imported - set(rows)) == []
