"""Measure the package by room, beside what each room may hold.

    python scripts/budget.py [--check] [--single] [--functions] [--names]

A code line is a line that holds code: no docstring, no comment, no blank. With `--check` it fails
where a room or a figure is above its budget.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

SOURCE = Path(__file__).resolve().parents[1] / "src"
ROOMS: Final[dict[str, tuple[int, int]]] = {
    "surecall": (600, 600),
    "base": (2_600, 2_600),
    "text": (3_500, 4_062),
    "schema": (5_400, 5_537),
    "calls": (6_000, 8_947),
    "wire": (8_000, 9_846),
    "reading": (3_000, 3_463),
    "models": (5_200, 6_530),
    "tools": (4_600, 4_600),
    "exchange": (2_600, 5_057),
    "loop": (5_400, 6_627),
    "store": (2_000, 2_162),
    "workspace": (1_300, 1_340),
    "serving": (900, 900),
    "clients": (700, 700),
    "gateway": (6_000, 7_079),
    "faults": (2_800, 3_140),
    "evals": (11_000, 15_505),
    "cli": (7_000, 7_156),
}
"""The rooms with their budgets in code lines, and what they may not pass until they meet them."""
FIGURES: Final[dict[str, tuple[int, int]]] = {
    "files": (420, 460),
    "code lines": (74_000, 95_000),
    "names at the top": (19, 19),
    "layers": (8, 8),
    "modules with one importer": (90, 111),
    "file names used more than once": (30, 35),
    "pairs of names with one stem": (0, 0),
    "files called base": (0, 0),
    "outside constants in two files": (0, 24),
    "names with words of our own": (0, 14),
    "longest function": (90, 93),
    "file lines, p90": (420, 460),
}
_OUTSIDE: Final = re.compile(
    r"x-[a-z0-9]+(?:-[a-z0-9]+)*"  # headers
    r"|(?:response|content_block|message)[._](?:[a-z_]+\.)*(?:start|delta|stop|added|done|created"
    r"|completed|failed|incomplete|in_progress)"  # types of events
    r"|end_turn|stop_sequence|pause_turn|content_filter|model_context_window_exceeded"
    r"|max_output_tokens|MAX_TOKENS|SAFETY|RECITATION|MALFORMED_FUNCTION_CALL"  # finish reasons
)
"""Constants of the outside world, each of which belongs in one file."""
_OUR_WORDS: Final = {
    *("aside", "apart", "cells", "contender", "judge", "judges", "mend", "mends", "narrow"),
    *("settle", "settles", "strangers", "weigh", "weighs"),
}
"""Our own words for things that have a known name: validate, grade, repair, background, column."""
_NOT_ROOMS: Final = {"__init__.py", "__main__.py", "__pycache__", "py.typed"}
_ENDING: Final = re.compile("(?:ings?|ers?|ed|s)$")
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
    is_package: bool
    outside: frozenset[str]
    our_words: tuple[str, ...]


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
    imports, is_package = _imports(tree, path, name), path.name == "__init__.py"
    outside, words = frozenset(_find_outside(tree)), tuple(_find_our_words(tree, name))
    lines = text.count("\n")
    return Measured(name, lines, len(code), imports, functions, is_package, outside, words)


def _find_outside(tree: ast.AST) -> Iterator[str]:
    """Yield the texts of a file that are constants of the outside world."""
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) else None
        if isinstance(text, str) and _OUTSIDE.fullmatch(text):
            yield text


def _find_our_words(tree: ast.AST, module: str) -> Iterator[str]:
    """Yield the names of a file, of its classes and of its functions that hold our own words."""
    named = [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    for name in (module.rpartition(".")[2], *named):
        name = re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower()
        if not _OUR_WORDS.isdisjoint(name.split("_")):
            yield f"{module}.{name}"


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


def count_shared_names(modules: list[Measured]) -> list[str]:
    """Return the names that more than one file has."""
    names = Counter(module.name.rpartition(".")[2] for module in modules if not module.is_package)
    return sorted(name for name, count in names.items() if count > 1)


def find_shared_stems(modules: list[Measured]) -> list[str]:
    """Return pairs of files in one folder whose names are forms of one word."""
    stems: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for module in modules:
        folder, _, name = module.name.rpartition(".")
        stems[folder, _ENDING.sub("", name)].append(module.name)
    return sorted(" ~ ".join(names) for names in stems.values() if len(names) > 1)


def find_repeated_outside(modules: list[Measured]) -> list[str]:
    """Return the constants of the outside world that more than one file holds, with the files."""
    files: defaultdict[str, list[str]] = defaultdict(list)
    for module in modules:
        for text in module.outside:
            files[text].append(module.name.removeprefix("surecall."))
    return sorted(f"{text}: {', '.join(names)}" for text, names in files.items() if len(names) > 1)


def count_layers() -> int:
    """Return how many layers the import contracts have."""
    contracts = tomllib.loads((SOURCE.parent / "pyproject.toml").read_text("utf-8"))
    found = contracts["tool"]["importlinter"]["contracts"]
    return len(next(one for one in found if one["id"] == "layers")["layers"])


def find_single(modules: list[Measured]) -> dict[str, str]:
    """Return the modules that only one other imports, each with that one."""
    names = {module.name for module in modules}
    importers: defaultdict[str, set[str]] = defaultdict(set)
    for module in modules:
        for target in module.imports & names:
            importers[target].add(module.name)
    return {name: next(iter(who)) for name, who in importers.items() if len(who) == 1}


def main() -> int:
    """Print the figures, and tell whether they are within their budgets."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail above a budget")
    parser.add_argument("--single", action="store_true", help="modules with one importer")
    parser.add_argument("--functions", action="store_true", help="the longest functions")
    parser.add_argument("--names", action="store_true", help="names against the seven rules")
    asked = parser.parse_args()
    modules = [measure(path) for path in sorted(SOURCE.rglob("*.py"))]
    single = find_single(modules)
    over = print_rooms(modules)
    lines = sorted(module.lines for module in modules)
    repeated, shared = find_repeated_outside(modules), count_shared_names(modules)
    stems, words = find_shared_stems(modules), [word for one in modules for word in one.our_words]
    entries = {path.name for path in (SOURCE / "surecall").iterdir()}
    figures = {
        "files": len(modules),
        "code lines": sum(module.code_lines for module in modules),
        "names at the top": len(entries - _NOT_ROOMS),
        "layers": count_layers(),
        "modules with one importer": len(single),
        "file names used more than once": len(shared),
        "pairs of names with one stem": len(stems),
        "files called base": sum(m.name.endswith(".base") and not m.is_package for m in modules),
        "outside constants in two files": len(repeated),
        "names with words of our own": len(words),
        "longest function": max(size for module in modules for size, _ in module.functions),
        "file lines, p90": lines[int(len(lines) * 0.9)],
    }
    print()
    for name, figure in figures.items():
        budget, limit = FIGURES[name]
        over += [name] if figure > limit else []
        print(f"{name:<32}{figure:>8,}{budget:>9,}{mark(figure, budget, limit)}")
    if asked.single:
        sizes = {module.name: module.code_lines for module in modules}
        for name in sorted(single, key=sizes.__getitem__):
            print(f"{sizes[name]:>5} {name}  <- {single[name]}")
    if asked.functions:
        found = sorted((size, f"{m.name}.{name}") for m in modules for size, name in m.functions)
        for size, function in found[-15:]:
            print(f"{size:>5} {function}")
    if asked.names:
        print("\n".join(["", f"More than once: {', '.join(shared)}", *stems, *repeated, *words]))
    if over and asked.check:
        print(f"\nAbove the limit: {', '.join(over)}. Merge or delete before you add.")
        return 1
    return 0


def print_rooms(modules: list[Measured]) -> list[str]:
    """Print what each room holds, and return those above their limit."""
    files: Counter[str] = Counter()
    code: Counter[str] = Counter()
    for module in modules:
        parts = module.name.split(".")
        room = parts[1] if len(parts) > 1 and parts[1] in ROOMS else "surecall"
        files[room] += 1
        code[room] += module.code_lines
    over: list[str] = []
    print(f"{'room':<24}{'files':>8}{'lines':>8}{'budget':>9}")
    for room, (budget, limit) in ROOMS.items():
        over += [room] if code[room] > limit else []
        sizes = f"{files[room]:>8,}{code[room]:>8,}{budget:>9,}"
        print(f"{room:<24}{sizes}{mark(code[room], budget, limit)}")
    return over


def mark(figure: int, budget: int, limit: int) -> str:
    """Return what is to be said of a figure: nothing within its budget."""
    if figure > limit:
        return f"  ABOVE ITS LIMIT of {limit:,}"
    return f"  above, at most {limit:,}" if figure > budget else ""


if __name__ == "__main__":
    sys.exit(main())
