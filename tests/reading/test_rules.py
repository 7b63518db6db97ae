"""The list of rules follows the code, and the page about receipts follows the list."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from surecall.reading import (
    FIXED_RULES,
    IDENTITY_RULES,
    READING_RULES,
    RULES,
    TRANSFORM_RULES,
)

ROOT = Path(__file__).parents[2]
FOLDERS = ("base", "calls", "exchange", "loop", "reading", "schema", "text", "tools", "wire")
NO_RECEIPTS = ("lint.py", "rules.py")
RULE = re.compile(r"[a-z]+(?:_[a-z]+)+")
KNOWN = set(RULES)


def modules() -> list[ast.Module]:
    """Return the modules that write receipts."""
    return [
        ast.parse(path.read_text("utf-8"))
        for folder in FOLDERS
        for path in sorted((ROOT / "src" / "surecall" / folder).rglob("*.py"))
        if path.name not in NO_RECEIPTS
    ]


def named(node: ast.AST) -> set[str]:
    """Return the texts in an expression that are written like a rule."""
    found = {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
    return {text for text in found if isinstance(text, str) and RULE.fullmatch(text)}


def called(call: ast.Call) -> str:
    """Return the name of what is called."""
    func = call.func
    return func.id if isinstance(func, ast.Name) else getattr(func, "attr", "")


def takers(nodes: list[ast.AST]) -> dict[str, set[int]]:
    """Return what takes a rule, with the place of that argument."""
    found: defaultdict[str, set[int]] = defaultdict(set)
    found["Receipt"].add(0)
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            names = [argument.arg for argument in node.args.args if argument.arg != "self"]
        elif isinstance(node, ast.ClassDef):
            fields = (item.target for item in node.body if isinstance(item, ast.AnnAssign))
            names = [field.id for field in fields if isinstance(field, ast.Name)]
        else:
            continue
        if "rule" in names:
            found[node.name].add(names.index("rule"))
    return found


def bound_to_rule(nodes: list[ast.AST]) -> Iterator[ast.Assign]:
    """Yield the assignments to something called `rule`."""
    for node in nodes:
        if isinstance(node, ast.Assign) and any(
            isinstance(part, ast.Name) and part.id == "rule"
            for target in node.targets
            for part in ast.walk(target)
        ):
            yield node


def rules_in_the_code() -> set[str]:
    """Return every rule that is given to a receipt, directly or by way of a function or record."""
    nodes = [node for module in modules() for node in ast.walk(module)]
    places, found, asked = takers(nodes), set[str](), set[str]()
    for node in nodes:
        if isinstance(node, ast.Call) and called(node) in places:
            given = [key.value for key in node.keywords if key.arg == "rule"]
            at = places[called(node)]
            given += [value for place, value in enumerate(node.args) if place in at]
            found.update(*map(named, given))
    for assignment in bound_to_rule(nodes):
        found |= named(assignment.value)
        asked |= {called(call) for call in ast.walk(assignment) if isinstance(call, ast.Call)}
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and node.name in asked:
            returned = (part for part in ast.walk(node) if isinstance(part, ast.Return))
            found.update(*(named(part) for part in returned))
    return found - {"over_limit"}


def test_every_rule_of_the_code_is_listed() -> None:
    """A rule that is not in the list could neither be switched off nor looked up."""
    found = rules_in_the_code()
    assert len(found) > 100
    assert found - KNOWN == set()


def test_every_listed_rule_is_one_of_the_code() -> None:
    """The list has no name that no receipt carries."""
    texts = set[str]()
    for module in modules():
        texts |= named(module)
    assert KNOWN - texts - TRANSFORM_RULES.keys() == set()  # those are constants of the list


def test_the_page_about_receipts_names_every_rule_once() -> None:
    """A reader of a receipt finds its rule there, in one item of a list."""
    page = (ROOT / "docs" / "explanation" / "receipts.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("- `")]
    documented = [rule for line in rows for rule in re.findall(r"`(\w+)`", line.split(":")[0])]
    assert sorted(documented) == sorted(KNOWN)


def test_no_rule_is_listed_twice() -> None:
    """The groups do not overlap."""
    assert len(READING_RULES) == len(set(READING_RULES))
    assert not IDENTITY_RULES.intersection(READING_RULES)
    assert not FIXED_RULES.intersection(READING_RULES)
