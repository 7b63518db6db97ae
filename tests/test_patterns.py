"""Patterns that are compiled when they are first used."""

import re

import pytest

from surecall.base.patterns import lazy_pattern


def test_a_lazy_pattern_is_used_like_any_other() -> None:
    """Its methods, its text and its flags are those of the compiled one."""
    lazy, plain = (make(r"(a+)(\d)?", re.IGNORECASE) for make in (lazy_pattern, re.compile))
    assert lazy.pattern == plain.pattern
    assert lazy.flags == plain.flags
    assert lazy.groups == plain.groups
    for text in ("xAA1a", "", "bbb"):
        assert lazy.findall(text) == plain.findall(text)
        assert lazy.sub("-", text) == plain.sub("-", text)
        assert bool(lazy.search(text)) == bool(plain.search(text))
        assert [found.span() for found in lazy.finditer(text)] == [
            found.span() for found in plain.finditer(text)
        ]


def test_a_lazy_pattern_is_compiled_when_it_is_used() -> None:
    """A mistake in one that nobody uses is not even noticed, and its text can be read."""
    broken = lazy_pattern("(")
    assert broken.pattern == "("
    with pytest.raises(re.error):
        broken.search("x")
