"""`--option KEY=VALUE` as typed values."""

from typing import Any

import pytest

from surecall.base.errors import ConfigError
from surecall.cli.flags import parse_options


@pytest.mark.parametrize(
    ("items", "options"),
    [
        (["max_turns=4"], {"max_turns": 4}),
        (["fix_empty_final=false"], {"fix_empty_final": False}),
        (["deadline_s=1.5"], {"deadline_s": 1.5}),
        (["tool_choice=required"], {"tool_choice": "required"}),
        (['tool_denylist=["a", "b"]'], {"tool_denylist": ["a", "b"]}),
        (["text=a=b"], {"text": "a=b"}),
        (["text="], {"text": ""}),
        (["day=2026-01-01"], {"day": "2026-01-01"}),
        (["text=1\nmore = 2"], {"text": "1\nmore = 2"}),
        (
            ["request_overrides.temperature=0", "request_overrides.provider.order=[]"],
            {"request_overrides": {"temperature": 0, "provider": {"order": []}}},
        ),
    ],
)
def test_values_are_toml_or_text(items: list[str], options: dict[str, Any]) -> None:
    """A TOML value keeps its type, anything else is text, dots lead inside."""
    assert parse_options(items) == options


@pytest.mark.parametrize("items", [["max_turns"], ["=3"], ["a..b=1"], ["a=1", "a.b=2"]])
def test_what_cannot_be_meant_is_refused(items: list[str]) -> None:
    """An item without a key, without a value, or against another is an error."""
    with pytest.raises(ConfigError) as caught:
        parse_options(items)
    assert caught.value.code == "INVALID_OPTION"
