"""Every code has its explanation."""

from dataclasses import fields

import pytest

from surecall.base.codes import CodeText, all_codes, explain_code
from surecall.base.errors import Code, ConfigError


def test_codes_and_explanations_are_the_same_set() -> None:
    """No code without a text, no text without a code."""
    texts = [text.code for text in all_codes()]
    assert sorted(texts) == sorted(Code)


def test_every_field_of_an_explanation_is_a_sentence() -> None:
    """Title, place, cause, remedy and reaction are there and end as sentences do."""
    wrong = [
        (text.code, field.name, value)
        for text in all_codes()
        for field in fields(CodeText)[1:-1]
        if (value := getattr(text, field.name)) != value.strip()
        or not value.endswith(".")
        or len(value) <= 8
    ]
    assert wrong == []


def test_every_title_is_one_short_sentence() -> None:
    """A title fits on one line and has one full stop."""
    titles = [text.title for text in all_codes()]
    assert [title for title in titles if len(title) > 90 or ". " in title] == []


@pytest.mark.parametrize("written", ["RATE_LIMIT", "rate_limit", " rate-limit "])
def test_a_code_is_found_however_it_is_typed(written: str) -> None:
    """Case, dashes and blanks around do not matter."""
    assert explain_code(written).code == "RATE_LIMIT"


def test_an_unknown_code_is_answered_with_the_closest() -> None:
    """A misspelt code is refused, with the code that was probably meant."""
    with pytest.raises(ConfigError, match="Did you mean ARGUMENTS_TRUNCATED") as caught:
        explain_code("ARGUMENT_TRUNCATED")
    assert caught.value.code == "UNKNOWN_CODE"


def test_a_code_like_no_other_is_answered_with_where_to_look() -> None:
    """Without anything close, the command that lists all codes is named."""
    with pytest.raises(ConfigError, match="surecall docs explain --list"):
        explain_code("xyzzy")
