"""Outbound messages."""

from copy import deepcopy
from typing import Any

import pytest

from surecall.reading.transforms import TransformRegistry

NULL = "assistant_tool_calls_content_null_if_blank"
REASONING = "assistant_tool_calls_reasoning_content_empty_if_missing"
SIGNATURE = "assistant_tool_calls_signature_skip_validator_if_missing"


def apply(name: str, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Run one transform and check that its input stays as it was."""
    before = deepcopy(messages)
    ((_, function),) = TransformRegistry.builtin().resolve("messages", [name])
    result = function(messages)
    assert messages == before
    return result


def calling(**fields: Any) -> dict[str, Any]:
    """Build an assistant message with one call."""
    call = {"id": "c1", "type": "function", "function": {"name": "a", "arguments": "{}"}}
    return {"role": "assistant", "tool_calls": [call], **fields}


@pytest.mark.parametrize("blank", ["", "  ", "\n\t"])
def test_blank_content_beside_calls_becomes_null(blank: str) -> None:
    """Only the message with calls is changed."""
    other = {"role": "assistant", "content": ""}
    result = apply(NULL, [other, calling(content=blank)])
    assert result == [other, calling(content=None)]


def test_missing_reasoning_content_becomes_empty() -> None:
    """A message with calls and without the key gets it."""
    assert apply(REASONING, [calling(content="x")]) == [calling(content="x", reasoning_content="")]


def test_only_unsigned_calls_are_given_a_signature() -> None:
    """A signature that is there stays; the others are filled in."""
    message = {"role": "assistant", "tool_calls": [{"id": "1", "signature": "s"}, {"id": "2"}, 3]}
    (result,) = apply(SIGNATURE, [message])
    assert result["tool_calls"] == [
        {"id": "1", "signature": "s"},
        {"id": "2", "signature": "skip_thought_signature_validator"},
        3,
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param(NULL, calling(content="text"), id="content-not-blank"),
        pytest.param(NULL, calling(content=None), id="content-null"),
        pytest.param(NULL, calling(content=[]), id="content-parts"),
        pytest.param(REASONING, calling(reasoning_content="why"), id="reasoning-there"),
        pytest.param(REASONING, calling(reasoning_content=None), id="reasoning-key-there"),
        pytest.param(SIGNATURE, {"role": "assistant", "tool_calls": []}, id="no-calls"),
        pytest.param(SIGNATURE, {"role": "user", "tool_calls": [{}]}, id="not-assistant"),
        pytest.param(REASONING, {"role": "assistant", "tool_calls": {"id": 1}}, id="not-a-list"),
    ],
)
def test_nothing_to_change_returns_the_same_list(name: str, message: dict[str, Any]) -> None:
    """The common case costs no copy."""
    messages = [message]
    assert apply(name, messages) is messages
