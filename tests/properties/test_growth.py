"""The work that reading takes grows with the text and no faster, for shapes made by machine.

Work is counted, and not timed: the steps of the repairer, and the questions that the readers of
text formats ask. `python bench/growth.py` makes many more shapes in the same way and takes the
time of everything, also of what happens inside one regular expression.
"""

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from surecall.calls import ToolNames
from surecall.calls.families import FORMATS, TAUGHT_FORMATS
from surecall.calls.reader import TextReader
from surecall.reading.tools import parse_tools
from surecall.text.repair.repaired import Steps
from surecall.text.repair.search import Search

MAX_GROWTH = 2.6
SHAPES = 60
PIECE = 512
BENCH = Path(__file__).parents[2] / "bench" / "growth.py"


@cache
def bench() -> ModuleType:
    """Load the command that searches, for the shapes it makes."""
    spec = importlib.util.spec_from_file_location("growth_bench", BENCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shapes(seed: int) -> list[Any]:
    """Return some shapes, the same ones every time."""
    search = bench().Search(seed, 1, 1, "")
    return [search.new() for _ in range(SHAPES)]


def steps_of(text: str) -> int:
    """Return how many steps the repairer takes when nothing stops it."""
    steps = Steps(text)
    steps.left = 10**9
    Search(text, "close", "text", steps, ended=True, nested="decode").one()
    return 10**9 - steps.left


def questions_of(text: str, *, taught: bool, piece: int) -> int:
    """Return how many questions are asked about a text that arrives in pieces."""
    tools = ToolNames(parse_tools(bench().TOOLS))
    reader = TextReader(tools, TAUGHT_FORMATS if taught else FORMATS)
    for start in range(0, len(text), piece):
        reader.feed(text[start : start + piece])
    reader.close()
    return reader.questions


@pytest.mark.parametrize("seed", range(4))
def test_steps_of_a_repair_grow_with_the_text(seed: int) -> None:
    """Twice the text takes at most 2.6 times the steps."""
    for shape in shapes(seed):
        half, whole = steps_of(shape.text(8_192)), steps_of(shape.text(16_384))
        if whole > MAX_GROWTH * half:  # most of the shorter text may be the part that stays
            half, whole = steps_of(shape.text(65_536)), steps_of(shape.text(131_072))
        assert whole <= max(500, MAX_GROWTH * half), str(shape)


@pytest.mark.parametrize("taught", [False, True])
def test_questions_about_a_whole_text_grow_with_it(taught: bool) -> None:
    """Twice the text takes at most 2.6 times the questions."""
    for shape in shapes(11 + taught):
        half, whole = (
            questions_of(shape.text(size), taught=taught, piece=size) for size in (8_192, 16_384)
        )
        if whole > MAX_GROWTH * half:  # the part that stays may be most of the shorter text
            half, whole = (
                questions_of(shape.text(size), taught=taught, piece=size)
                for size in (65_536, 131_072)
            )
        assert whole <= max(2_000, MAX_GROWTH * half), str(shape)


def test_questions_about_a_stream_grow_with_it() -> None:
    """Text that is held back is looked at again only when there is so much more of it."""
    for shape in shapes(21):
        half, whole = (
            questions_of(shape.text(size), taught=False, piece=PIECE) for size in (16_384, 32_768)
        )
        assert whole <= max(8_000, MAX_GROWTH * half), str(shape)


def test_a_repair_gives_up_after_as_many_steps_as_its_text_may_take() -> None:
    """The limit grows with the text, and a caller can set a lower one."""
    assert Steps("").left == 10_000
    assert Steps("x" * 800_000).left == 110_000
    assert Steps("x" * 800_000, 5).left == 5
    assert Steps("", 10**9).left == 10_000
