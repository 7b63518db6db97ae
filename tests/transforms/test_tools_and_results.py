"""Outbound tools and result envelopes."""

from copy import deepcopy
from typing import Any

import pytest

from surecall.reading.transforms import (
    ResultContext,
    TransformChain,
    TransformRegistry,
    tool_result_compact_envelope,
)

_CHAIN = TransformChain.resolve(
    TransformRegistry.builtin(), tools=["openai_tools_strip_function_descriptions"]
)

CONTEXT = ResultContext("search", "c1")


def test_function_descriptions_go_and_parameter_descriptions_stay() -> None:
    """Only function tools lose their own description."""
    parameters = {"type": "object", "properties": {"q": {"description": "what"}}}
    tools = [
        {
            "type": "function",
            "function": {"name": "a", "description": "A", "parameters": parameters},
        },
        {"type": "web_search", "description": "kept"},
    ]
    before = deepcopy(tools)
    assert _CHAIN.apply_tools(tools) == [
        {"type": "function", "function": {"name": "a", "parameters": parameters}},
        {"type": "web_search", "description": "kept"},
    ]
    assert tools == before


@pytest.mark.parametrize(
    "tools", [[], [{"type": "function", "function": {"name": "a"}}], [{"type": "function"}]]
)
def test_tools_without_descriptions_are_returned_as_they_are(tools: list[dict[str, Any]]) -> None:
    """Nothing to strip means the same list."""
    assert _CHAIN.apply_tools(tools) is tools


def test_a_compact_envelope_has_no_empty_parts() -> None:
    """Empty warnings, errors and data are dropped; ok and the name stay."""
    envelope = {"ok": True, "tool_name": "search", "data": {}, "warnings": [], "errors": ()}
    assert tool_result_compact_envelope(envelope, CONTEXT) == {"ok": True, "tool_name": "search"}
    assert len(envelope) == 5


def test_filled_parts_of_an_envelope_stay() -> None:
    """Data that is there is never dropped, not even a false value inside it."""
    envelope = {"ok": False, "tool_name": "s", "data": {"n": 0}, "errors": [{"code": "X"}]}
    assert tool_result_compact_envelope(envelope, CONTEXT) is envelope
