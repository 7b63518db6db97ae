"""Docstrings of three styles give the same prose and argument texts."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.schema.docstrings import Docstring, parse_docstring

GOOGLE = """Create a task.

    The task is stored at once.

    Args:
        title: What it is called.
        due_days (int, optional): Days until it is due:
            at least one.
        *tags: Words to find it by.

    Returns:
        The id.
    """

NUMPY = """Create a task.

    The task is stored at once.

    Parameters
    ----------
    title : str
        What it is called.
    due_days : int, optional
        Days until it is due:
        at least one.
    *tags
        Words to find it by.

    Returns
    -------
    str
        The id.
    """

REST = """Create a task.

    The task is stored at once.

    :param str title: What it is called.
    :param due_days: Days until it is due:
        at least one.
    :type due_days: int
    :param tags: Words to find it by.
    :returns: The id.
    """

EXPECTED = Docstring(
    "Create a task.",
    "Create a task.\n\nThe task is stored at once.",
    {
        "title": "What it is called.",
        "due_days": "Days until it is due: at least one.",
        "tags": "Words to find it by.",
    },
)


@dataclass(frozen=True)
class Case:
    id: str
    doc: str | None
    expected: Docstring


CASES = [
    Case("google", GOOGLE, EXPECTED),
    Case("numpy", NUMPY, EXPECTED),
    Case("rest", REST, EXPECTED),
    Case("none", None, Docstring()),
    Case("blank", "   \n ", Docstring()),
    Case("one line", "Do it.", Docstring("Do it.", "Do it.")),
    Case(
        "wrapped summary", "Do it\nnow.\n\nMore.", Docstring("Do it now.", "Do it\nnow.\n\nMore.")
    ),
    Case(
        "several names",
        "S.\n\nParameters\n----------\nx, y : float\n    Where.",
        Docstring("S.", "S.", {"x": "Where.", "y": "Where."}),
    ),
    Case(
        "bracketed type with colon",
        "S.\n\nArgs:\n    a (dict[str, Literal['x: y']]): Text.",
        Docstring("S.", "S.", {"a": "Text."}),
    ),
    Case(
        "class attributes",
        "S.\n\nAttributes:\n    a: Text.\n\nAfter.",
        Docstring("S.", "S.\n\nAfter.", {"a": "Text."}),
    ),
    Case(
        "title in prose",
        "Args: none of them.",
        Docstring("Args: none of them.", "Args: none of them."),
    ),
    Case(
        "title without body",
        "S.\n\nArgs:\nnot indented",
        Docstring("S.", "S.\n\nArgs:\nnot indented"),
    ),
    Case(
        "unknown heading stays prose",
        "S.\n\nUsage\n-----\nx",
        Docstring("S.", "S.\n\nUsage\n-----\nx"),
    ),
    Case("colon line that is no field", "S.\n\n:see: there", Docstring("S.", "S.\n\n:see: there")),
    Case(
        "text in no form is not an argument",
        "S.\n\nArgs:\n    see the manual\n    a: Text.\n    goes on here",
        Docstring("S.", "S.", {"a": "Text. goes on here"}),
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_docstring_is_taken_apart(case: Case) -> None:
    """Prose and argument texts come out as a reader would see them."""
    assert case.expected == parse_docstring(case.doc)


@settings(max_examples=200)
@given(st.text(alphabet="ab:-= \n\t(*Args:Parameters", max_size=200))
def test_any_text_is_accepted(text: str) -> None:
    """No text makes the parser fail, and argument names are always words without blanks."""
    parsed = parse_docstring(text)
    assert all(len(name.split()) == 1 for name in parsed.arguments)
    assert "\n" not in parsed.summary
