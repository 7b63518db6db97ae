"""What stands in a history for parts of a call that no provider would take back."""

from typing import Any

import pytest

from surecall.wire.substitutes import UNREADABLE_KEY, stand_in_arguments, stand_in_name


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ('{"a": 1', '{"a": 1'),
        ("x" * 5000, "x" * 200),
        ([1, {"a": "b"}], '[1,{"a":"b"}]'),
        (None, "null"),
        (float("nan"), "(float)"),
    ],
)
def test_unreadable_arguments_get_a_bounded_object(raw: Any, shown: str) -> None:
    """It shows the start of what arrived, whatever that was."""
    assert stand_in_arguments(raw) == {UNREADABLE_KEY: shown}


@pytest.mark.parametrize(
    ("name", "max_chars", "sent"),
    [
        ("look_up", 64, "look_up"),
        ("n" * 100, 64, "n" * 64),
        ("n" * 100, 128, "n" * 100),
        ("a b/c", 64, "a_b_c"),
        ("", 64, "unnamed"),
    ],
)
def test_a_name_has_allowed_characters_and_length(name: str, max_chars: int, sent: str) -> None:
    """Formats differ in how long a name may be."""
    assert stand_in_name(name, max_chars) == sent
