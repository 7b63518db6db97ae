"""Which tools a run may see and use."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from surecall.base.errors import Code, ConfigError
from surecall.tools import MaskedRegistry, Tool, ToolRegistry, tool


def _named(name: str, **options: Any) -> Tool[..., Any]:
    def function() -> str:
        return name

    return tool(name=name, **options)(function)


def _registry() -> ToolRegistry:
    return ToolRegistry(
        [_named("read"), _named("write"), _named("commit", exposed=False), _named("list")]
    )


@dataclass(frozen=True)
class Case:
    id: str
    allow: Iterable[str] | str
    deny: Iterable[str] | str
    visible: tuple[str, ...]


CASES = [
    Case("no filter", (), (), ("read", "write", "list")),
    Case("allow", ["list", "read"], (), ("read", "list")),
    Case("allow one name", "read", (), ("read",)),
    Case("deny", (), ["write"], ("read", "list")),
    Case("deny one name", (), "write", ("read", "list")),
    Case("deny wins", ["read", "write"], ["write"], ("read",)),
    Case("nothing left", ["read"], ["read"], ()),
    Case("hidden stays hidden", ["read", "commit"], (), ("read",)),
    Case("only hidden allowed", ["commit"], (), ()),
    Case("generator", (name for name in ["read"]), (), ("read",)),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_visible_tools(case: Case) -> None:
    """Allow, then deny, never the hidden; every way of looking agrees."""
    view = MaskedRegistry(_registry(), case.allow, case.deny)
    assert view.names == case.visible
    assert tuple(spec.name for spec in view.specs()) == case.visible
    assert tuple(item.name for item in view) == case.visible
    assert len(view) == len(case.visible)
    for name in ("read", "write", "commit", "list"):
        assert (name in view) is (name in case.visible)
        assert (view.find(name) is not None) is (name in case.visible)


@dataclass(frozen=True)
class Wrong:
    id: str
    names: Any
    words: str


WRONG = [
    Wrong("comma string", "read,write", "one name in each place"),
    Wrong("comma in a list", ["read, write"], "one name in each place"),
    Wrong("unknown", ["reed"], "Did you mean 'read'"),
    Wrong("other case", ["READ"], "Did you mean 'read'"),
    Wrong("space", ["read "], "Did you mean 'read'"),
    Wrong("empty string", "", "not a registered tool"),
    Wrong("number", [3], "list of tool names"),
]


@pytest.mark.parametrize("option", ["allow", "deny"])
@pytest.mark.parametrize("case", WRONG, ids=lambda case: case.id)
def test_wrong_names_are_refused(case: Wrong, option: str) -> None:
    """A filter that names no tool is a mistake, in `deny` most of all."""
    with pytest.raises(ConfigError) as caught:
        MaskedRegistry(_registry(), **{option: case.names})
    assert caught.value.code == Code.INVALID_OPTION
    assert case.words in str(caught.value)
    assert option in caught.value.message


def test_the_view_is_fixed_when_it_is_made() -> None:
    """What was sent stays what can run, also when tools are registered later."""
    registry = _registry()
    view = MaskedRegistry(registry)
    registry.add(_named("late"))
    assert "late" not in view
    assert "late" in MaskedRegistry(registry)


def test_a_view_can_be_narrowed_further() -> None:
    """A mask over a mask only takes away."""
    view = MaskedRegistry(MaskedRegistry(_registry(), deny=["write"]), allow=["read"])
    assert view.names == ("read",)
    with pytest.raises(ConfigError):
        MaskedRegistry(MaskedRegistry(_registry(), deny=["write"]), allow=["write"])
