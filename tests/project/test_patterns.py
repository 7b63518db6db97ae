"""The regular expressions that run over what a model wrote."""

import importlib
import pkgutil
import re
from collections.abc import Iterator
from re import _constants as codes  # pyright: ignore[reportAttributeAccessIssue]
from re import _parser as parser  # pyright: ignore[reportAttributeAccessIssue]
from typing import Any

PACKAGES = ("text", "calls", "schema", "reading", "base.redaction")


def modules() -> Iterator[Any]:
    """Yield the modules that read text of models."""
    for name in PACKAGES:
        package = importlib.import_module(f"surecall.{name}")
        yield package
        for found in pkgutil.walk_packages(getattr(package, "__path__", ()), f"surecall.{name}."):
            yield importlib.import_module(found.name)


def patterns_in(value: Any) -> Iterator[re.Pattern[str]]:
    """Yield the patterns that a module keeps under one name."""
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from patterns_in(item)
    elif isinstance(value, tuple):
        for item in value:
            yield from patterns_in(item)


def may_backtrack(tree: Any) -> bool:
    """Tell whether a repetition without end gives back what it took."""
    for code, argument in tree:
        if code in {codes.MAX_REPEAT, codes.MIN_REPEAT}:
            if argument[1] == codes.MAXREPEAT or may_backtrack(argument[2]):
                return True
        elif code is codes.BRANCH:
            if any(may_backtrack(branch) for branch in argument[1]):
                return True
        else:
            nested = {
                codes.POSSESSIVE_REPEAT: 2,
                codes.SUBPATTERN: 3,
                codes.ASSERT: 1,
                codes.ASSERT_NOT: 1,
            }
            inner = argument if code is codes.ATOMIC_GROUP else None
            inner = argument[nested[code]] if code in nested else inner
            if inner is not None and may_backtrack(inner):
                return True
    return False


def test_no_repetition_without_end_backtracks() -> None:
    """Each is possessive, so that a pattern passes over a text once from where it begins."""
    found = {
        (module.__name__, name): pattern
        for module in modules()
        for name, value in vars(module).items()
        for pattern in patterns_in(value)
    }
    assert len(found) > 150
    slow = [
        place
        for place, pattern in found.items()
        if may_backtrack(parser.parse(pattern.pattern, pattern.flags))
    ]
    assert slow == []


def test_a_repetition_that_backtracks_is_noticed() -> None:
    """The check itself can fail, at any depth."""
    for pattern in ("a*", "(?:ab+)?x", "(?=a*)b", "(?>a*)", "a|b*", "(?:a*)*+", "a*?"):
        assert may_backtrack(parser.parse(pattern)), pattern
    for pattern in ("a*+", "a{0,4}", "(?:a++|b)*+", "a?"):
        assert not may_backtrack(parser.parse(pattern)), pattern
