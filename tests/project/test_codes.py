"""Every code has its explanation."""

from dataclasses import fields

import pytest

from surecall.base.codes import CodeText, all_codes, explain_code
from surecall.base.errors import Code, ConfigError


def test_codes_and_explanations_are_the_same_set() -> None:
    """No code without a text, no text without a code."""
    texts = [text.code for text in all_codes()]
    assert sorted(texts) == sorted(Code)


@pytest.mark.parametrize("code", Code)
def test_every_field_of_an_explanation_is_a_sentence(code: Code) -> None:
    """Title, place, cause, remedy and reaction are there and end as sentences do."""
    text = explain_code(code)
    for field in fields(CodeText)[1:-1]:
        value = getattr(text, field.name)
        assert value == value.strip()
        assert value.endswith("."), (field.name, value)
        assert len(value) > 8


@pytest.mark.parametrize("code", Code)
def test_every_title_is_one_short_sentence(code: Code) -> None:
    """A title fits on one line and has one full stop."""
    title = explain_code(code).title
    assert len(title) <= 90
    assert title.count(". ") == 0


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
