"""A final text is compared with what a case declares, and its meaning is nowhere guessed."""

import pytest

from surecall.evals.made_calls import is_word, list_numbers, says_nothing, states_all


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("7", [7]),
        ("1,250 of ７", [1250, 7]),
        ("2,5 kg", [2.5]),
        ("-7 or −7", [-7, -7]),
        (".7", [0.7]),
        ("1.2.3", [123]),
        ("七", [7]),
        ("一周有7天", [7]),
        ("seven", []),
        ("", []),
    ],
)
def test_numbers_are_read_from_digits(text: str, numbers: list[float]) -> None:
    """Signs of one number count where there are no digits, and words never do."""
    assert list_numbers(text) == numbers


@pytest.mark.parametrize("text", ["Done.", "done", "**Done.**", '"Done!"', "(done)"])
def test_one_word_may_be_set_off(text: str) -> None:
    """Emphasis, quotes and stops are no words."""
    assert is_word(text, "done")


@pytest.mark.parametrize("text", ["All done.", "Done. I did it.", "", "Not done"])
def test_more_than_the_word_is_not_the_word(text: str) -> None:
    """A second word makes another text of it."""
    assert not is_word(text, "done")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Two live in Oslo: 2", True),
        ("3 live in Oslo", False),
        ("2 live in Bergen", False),
        ("Two live in Oslo", None),
    ],
)
def test_a_number_in_words_is_not_checked(text: str, said: bool | None) -> None:
    """What cannot be compared is neither right nor wrong."""
    assert states_all(text, ["oslo", 2]) is said


@pytest.mark.parametrize("text", ["", " \n", "\u200b", "...", "?"])
def test_what_nobody_can_read_says_nothing(text: str) -> None:
    """Space and stops alone are no answer."""
    assert says_nothing(text)
