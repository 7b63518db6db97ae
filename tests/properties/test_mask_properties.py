"""Whatever the filters and whatever the name, only what is visible runs."""

import asyncio
import unicodedata
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.base.records import ToolCall
from surecall.tools import Dispatcher, MaskedRegistry, ToolContext, ToolRegistry, tool

NAMES = ("read_file", "write_file", "facts_commit", "a", "a_b", "a-b", "Search", "x" * 64)
HIDDEN = "facts_commit"
CONTEXT = ToolContext("run", 0, "tc_1")


def _build() -> tuple[ToolRegistry, list[str]]:
    ran: list[str] = []
    registry = ToolRegistry()
    for name in NAMES:

        async def run(name: str = name) -> str:
            ran.append(name)
            return name

        schema: dict[str, Any] = {"type": "object"}
        registry.add(tool(name=name, parameters=schema, exposed=name != HIDDEN)(run))
    return registry, ran


REGISTRY, RAN = _build()

some_names = st.lists(st.sampled_from(NAMES), unique=True)


def _run(view: ToolRegistry | MaskedRegistry, names: list[str]) -> list[str]:
    """Try to call every name and return what really ran."""
    RAN.clear()
    dispatcher = Dispatcher(view)

    async def attempt() -> None:
        for name in names:
            call = ToolCall(id="tc_1", name=name, arguments={})
            result = await dispatcher.dispatch(call, CONTEXT)
            assert result.executed is result.ok
            if not result.ok:
                assert result.envelope.error_codes == ("TOOL_NOT_ALLOWED",)

    asyncio.run(attempt())
    return list(RAN)


@settings(max_examples=100, deadline=None)
@given(allow=some_names, deny=some_names)
def test_what_is_sent_is_what_runs(allow: list[str], deny: list[str]) -> None:
    """The visible tools are the exposed ones that are allowed and not denied, in order."""
    view = MaskedRegistry(REGISTRY, allow, deny)
    expected = [
        name
        for name in NAMES
        if name != HIDDEN and (not allow or name in allow) and name not in deny
    ]
    assert [spec.name for spec in view.specs()] == expected
    assert _run(view, list(NAMES)) == expected


@settings(max_examples=100, deadline=None)
@given(allow=some_names.filter(bool), deny=some_names, data=st.data())
def test_allowing_less_or_denying_more_never_shows_more(
    allow: list[str], deny: list[str], data: st.DataObject
) -> None:
    """Both filters are monotone."""
    fewer = data.draw(st.lists(st.sampled_from(allow), unique=True, min_size=1))
    more = deny + data.draw(some_names)
    wide = set(MaskedRegistry(REGISTRY, allow, deny).names)
    assert set(MaskedRegistry(REGISTRY, fewer, deny).names) <= wide
    assert set(MaskedRegistry(REGISTRY, allow, more).names) <= wide


def _swap_look_alikes(name: str) -> str:
    return name.translate(str.maketrans("aceopsx", "асеорѕх"))


def _full_width(name: str) -> str:
    return "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in name)


odd_text = st.text(
    st.one_of(st.characters(), st.sampled_from("\x00 \t\n\r.\u200b\u00a0\ufeff\u202e/\\'\"{}<>|")),
    max_size=8,
)
tricks = st.sampled_from(
    [
        str,
        str.upper,
        str.title,
        str.swapcase,
        _swap_look_alikes,
        _full_width,
        lambda name: name.replace("_", "."),
        lambda name: name.replace("_", "-"),
        lambda name: name.replace("_", " "),
        lambda name: f"functions.{name}",
        lambda name: f"../{name}",
        lambda name: f"{name}\x00",
        lambda name: f" {name}\n",
        lambda name: name * 1000,
        lambda name: name + " " * 10_240,
        lambda name: unicodedata.normalize("NFD", f"{name}\u0301"),
    ]
)


@settings(max_examples=50, deadline=None)
@given(
    target=st.sampled_from([HIDDEN, "write_file"]),
    attempts=st.lists(st.tuples(tricks, odd_text, odd_text), min_size=20, max_size=20),
)
def test_no_name_reaches_a_hidden_or_denied_tool(
    target: str, attempts: list[tuple[Any, str, str]]
) -> None:
    """A thousand ways to write a name: case, look-alikes, dots, space, NUL, ten kilobytes."""
    view = MaskedRegistry(REGISTRY, deny=["write_file"])
    names = [before + trick(target) + after for trick, before, after in attempts]
    ran = _run(view, [*names, *(trick(target) for trick, _, _ in attempts)])
    assert target not in ran
    assert ran == []


@settings(max_examples=100, deadline=None)
@given(name=st.one_of(odd_text, st.text(max_size=40)))
def test_a_name_runs_only_the_tool_it_spells(name: str) -> None:
    """Outer space and dots for underscores are the only freedom."""
    ran = _run(REGISTRY, [name])
    plain = name.strip(" \t\r\n")
    expected = [
        tool_name
        for tool_name in NAMES
        if tool_name != HIDDEN and tool_name in (plain, plain.replace(".", "_"))
    ]
    assert ran == expected
