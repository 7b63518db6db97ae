"""CanIToolCall's live probe, pointed at the gateway in front of a provider with faults."""

import asyncio
from pathlib import Path
from typing import Final

import pytest
from canitoolcall.probe import probe

from .harness import serve_faults

WHOLE, STREAM, SAME = "whole", "stream", "stream equals whole"
ONE_CALL: Final = {("parallel-calls", WHOLE), ("parallel-calls", STREAM)}
FOLLOW_UP: Final = {("tool-result-followup", row) for row in (WHOLE, STREAM, SAME)}
EXPECTED: Final = {
    # The text was sent before the model was asked again.
    "named_ignored": {("forced-tool-choice", SAME)},
    # The reasoning was sent before the model was asked again for an answer.
    "final_only_reasoning": {("tool-result-followup", SAME)},
    # The shape of the fault has room for one call only.
    "function_call_field": ONE_CALL,
    "text_react": ONE_CALL,
    "tool_calls_object": ONE_CALL,
    # The simulated model answers in words when it is asked again.
    "arguments_missing_bracket": {("nested-args", WHOLE), ("nested-args", STREAM)},
    # The probe makes up a history, and what the endpoint needs of one is not probed here.
    "ids_of_nine": FOLLOW_UP,
    "reasoning_echo_needed": FOLLOW_UP,
}
"""The rows that cannot pass, by the fault. All rows of all other faults do."""
SAMPLE: Final = (
    "clean",
    "reasoning_in_content",
    "reasoning_unclosed",
    "content_beside_calls",
    "arguments_single_quotes",
    "id_missing",
    "call_twice",
    "text_hermes",
    "stream_index_missing",
    "empty_arguments_blank",
    "final_only_reasoning",
    "named_ignored",
)


@pytest.mark.parametrize("fault", SAMPLE)
async def test_the_probe_passes_whatever_the_provider_does(tmp_path: Path, fault: str) -> None:
    """Every scenario passes, whole and streamed, and both give the same."""
    async with serve_faults(tmp_path) as (served, _provider):
        report = await asyncio.to_thread(probe, f"{served.url}/v1", f"faults:{fault}")
    failed: set[tuple[str, str]] = set()
    for outcome in report.outcomes:
        row = STREAM if outcome.stream else WHOLE
        row = SAME if outcome.check == "stream_equals_nonstream" else row
        if outcome.status != "pass":
            failed.add((outcome.scenario_id, row))
    assert len(report.outcomes) == 27
    assert failed == EXPECTED.get(fault, set()), report.render_text()
