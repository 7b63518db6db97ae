"""Tables fit the terminal, and cut nothing that somebody may want to copy."""

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from surecall.cli.terminal import make_table

from .harness import invoke

COLUMNS = {"id": "whole", "state": "whole", "words": "", "ms": "right whole"}
ROW = ("0tax1cdw-0001", "complete", "what a model said of itself", "1250")


def draw(width: int, *rows: tuple[str, ...], **settings: object) -> list[str]:
    """Return the lines of a table on a terminal of this width."""
    file = io.StringIO()
    table = make_table(COLUMNS, rows, **settings)  # pyright: ignore[reportArgumentType]
    Console(file=file, width=width, markup=False, emoji=False).print(table)
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_a_wide_terminal_shows_everything_on_one_line() -> None:
    """A column is as wide as what is in it."""
    assert draw(100, ROW, optional=("ms",)) == [
        "id             state     words                          ms",
        "0tax1cdw-0001  complete  what a model said of itself  1250",
    ]


def test_words_are_folded_before_a_column_is_left_out() -> None:
    """Down to a width at which they can be read."""
    assert draw(48, ROW, optional=("ms", "state")) == [
        "id             state     words                ms",
        "0tax1cdw-0001  complete  what a model said  1250",
        "                         of itself",
    ]


def test_the_least_important_column_goes_first() -> None:
    """And the order of the others stays."""
    assert draw(42, ROW, optional=("ms", "state")) == [
        "id             state     words",
        "0tax1cdw-0001  complete  what a model said",
        "                         of itself",
    ]
    assert draw(32, ROW, optional=("ms", "state"))[1].split()[:2] == ["0tax1cdw-0001", "what"]


def test_without_room_everything_is_folded() -> None:
    """On the narrowest terminal an identifier has several lines, but all of it."""
    lines = draw(9, ROW, optional=("ms", "state"), headings=False)
    assert "".join(line[:4] for line in lines).replace(" ", "") == ROW[0]


def test_a_line_may_be_cut() -> None:
    """Where a column says so, it has one line."""
    table = make_table({"id": "whole", "command": "cut"}, [("1", "surecall eval --seed 1")])
    file = io.StringIO()
    Console(file=file, width=20).print(table)
    assert file.getvalue().splitlines()[1].rstrip() == "1   surecall eval -…"


@settings(max_examples=60)
@given(
    st.lists(st.tuples(*[st.text("abc ", max_size=30).map(str.strip)] * 4), min_size=1, max_size=4),
    st.integers(10, 120),
)
def test_nothing_that_is_shown_is_cut(rows: list[tuple[str, ...]], width: int) -> None:
    """Every line fits, and all letters of the columns that stay are there."""
    lines = draw(width, *rows)
    assert all(len(line) <= width for line in lines)
    shown = "".join(lines)
    wanted = "".join("".join(row) for row in (tuple(COLUMNS), *rows))
    assert sorted(shown.replace(" ", "")) == sorted(wanted.replace(" ", ""))


@pytest.mark.parametrize("width", [60, 80, 100])
def test_catalogs_can_be_read_on_any_terminal(width: int) -> None:
    """Names stay whole, and no cell is a few letters wide."""
    models = invoke("models", COLUMNS=str(width)).stdout
    assert "\nqwen/qwen3-next-80b-a3b-instruct:nitro " in models
    faults = invoke("faults", "list", COLUMNS=str(width)).stdout.splitlines()
    (line,) = (line for line in faults if line.startswith("call_without_type "))
    assert "Leaves `type` out of" in line
