"""Command R: an array in the fence after `Action:`."""

import pytest

from support.text_cases import TextCase, check_case, check_no_call

CASES = (
    TextCase(
        "a plan and two calls",
        'Plan: look\nAction:\n```json\n[\n  {"tool_name": "ping", "parameters": {}},\n'
        '  {"tool_name": "ferry_times", "parameters": {"origin": "North"}}\n]\n```',
        (("ping", {}), ("ferry_times", {"origin": "North"})),
        "Plan: look",
    ),
    TextCase(
        "an answer instead of a call",
        'Action: ```json\n[{"tool_name": "directly-answer", "parameters": {}}]\n```',
    ),
    TextCase(
        "cut",
        'Action:\n```json\n[{"tool_name": "ferry_times", "parameters": {"origin": "No',
        (("ferry_times", '{"origin": "No'),),
        states=("cut",),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_array_behind_the_label_is_read(case: TextCase) -> None:
    """Each object of the array is a call."""
    check_case(case)


def test_unknown_names_are_shown() -> None:
    """A fence with an unknown tool is text."""
    check_no_call('Action:\n```json\n[{"tool_name": "other", "parameters": {}}]\n```')
