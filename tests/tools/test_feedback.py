"""The words a model reads when a call fails."""

import pytest

from surecall.tools.feedback import closest_names, explain_not_allowed

NAMES = ["read_file", "write_file", "list_files", "search", "delete"]


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("readfile", "read_file"),
        ("READ_FILE", "read_file"),
        ("file_write", "write_file"),
        ("lst_files", "list_files"),
        ("Search", "search"),
        ("remove_delete", "delete"),
        ("", "read_file"),
        ("zzz", "read_file"),
    ],
)
def test_the_closest_name_comes_first(name: str, first: str) -> None:
    """All names stay; those equally far keep their order."""
    found = closest_names(name, NAMES)
    assert found[0] == first
    assert sorted(found) == sorted(NAMES)


def test_no_more_than_twenty_names_are_listed() -> None:
    """The rest is a number."""
    names = [f"tool_{index}" for index in range(30)]
    envelope = explain_not_allowed("tool_29x", names)
    hint = envelope.errors[0].hint
    assert hint is not None
    assert hint.startswith("Call one of these, spelled exactly: tool_29, ")
    assert hint.count("tool_") == 20
    assert hint.endswith(" (and 10 more).")
