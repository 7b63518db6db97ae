"""Measure the house: files, code lines, one-importer modules, longest functions, per package.

    python scripts/measure_code.py [--packages] [--slivers] [--functions]

A code line is a line that holds code: no docstring, no comment, no blank. Figures for people to
look at, never asserted by a test.
"""

import argparse
import ast
import io
import statistics
import tokenize
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).resolve().parents[1] / "src"
SKIPPED = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


class Measured(NamedTuple):
    """One module: its name, lines, code lines, what it imports, and its functions."""

    name: str
    lines: int
    code_lines: int
    imports: frozenset[str]
    functions: tuple[tuple[int, str], ...]


def measure(path: Path) -> Measured:
    """Measure one file."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    code = _code_lines(text) - _docstring_lines(tree)
    functions = tuple(
        ((node.end_lineno or node.lineno) - node.lineno + 1, node.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    name = _module_name(path)
    return Measured(name, text.count("\n"), len(code), _imports(tree, path, name), functions)


def _code_lines(text: str) -> set[int]:
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SKIPPED:
            lines.update(range(token.start[0], token.end[0] + 1))
    return lines


def _docstring_lines(tree: ast.AST) -> set[int]:
    """Return the lines of bare strings: docstrings of modules, classes, functions and fields."""
    lines: set[int] = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def _module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(tree: ast.AST, path: Path, name: str) -> frozenset[str]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = package.split(".")
                parts = parts[: len(parts) - node.level + 1]
                base = ".".join([*parts, *([node.module] if node.module else [])])
            found.add(base)
            found.update(f"{base}.{alias.name}" for alias in node.names)
    return frozenset(found)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--packages", action="store_true", help="figures for each folder")
    parser.add_argument("--slivers", action="store_true", help="small modules with one importer")
    parser.add_argument("--functions", action="store_true", help="the longest functions")
    asked = parser.parse_args()
    modules = [measure(path) for path in sorted(SOURCE.rglob("*.py"))]
    names = {module.name for module in modules}
    importers: defaultdict[str, set[str]] = defaultdict(set)
    for module in modules:
        for target in module.imports & names:
            importers[target].add(module.name)
    lines = sorted(module.lines for module in modules)
    functions = sorted((size for module in modules for size, _ in module.functions), reverse=True)
    single = [m for m in modules if len(importers[m.name]) == 1]
    print(f"files                    {len(modules):>7,}")
    print(f"code lines               {sum(m.code_lines for m in modules):>7,}")
    print(f"file lines, median       {int(statistics.median(lines)):>7,}")
    print(f"file lines, p90          {lines[int(len(lines) * 0.9)]:>7,}")
    print(f"file lines, longest      {lines[-1]:>7,}")
    print(f"function lines, median   {int(statistics.median(functions)):>7,}")
    print(f"function lines, longest  {functions[0]:>7,}")
    print(f"modules, one importer    {len(single):>7,}")
    print(f"modules, under 40 lines  {sum(m.code_lines < 40 for m in modules):>7,}")
    if asked.packages:
        _print_packages(modules)
    if asked.slivers:
        for module in sorted(single, key=lambda m: m.code_lines):
            print(f"{module.code_lines:>5} {module.name}  <- {next(iter(importers[module.name]))}")
    if asked.functions:
        found = sorted(
            pair for m in modules for pair in ((s, f"{m.name}.{n}") for s, n in m.functions)
        )
        for size, function in found[-15:]:
            print(f"{size:>5} {function}")


def _print_packages(modules: list[Measured]) -> None:
    files: Counter[str] = Counter()
    code: Counter[str] = Counter()
    for module in modules:
        package = ".".join(module.name.split(".")[:2])
        files[package] += 1
        code[package] += module.code_lines
    for package in sorted(files):
        print(f"{package:<28} {files[package]:>4} files {code[package]:>7,} code lines")


if __name__ == "__main__":
    main()
