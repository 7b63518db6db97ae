"""CanIToolCall's fixtures, chunkings and checks, put to `read_reply` and `ReplyReader`."""

import re
from collections.abc import Iterable
from functools import cache

from canitoolcall.checks import case_status, run_checks
from canitoolcall.chunking import DEFAULT_STRATEGIES, ChunkStrategy, split
from canitoolcall.fixtures import Family, Fixture, load_family, load_fixtures
from canitoolcall.results import Observation, ParsedToolCall, ParseResult, Status

from surecall.base.records import Reading
from surecall.reading import CallRead, ReplyReader, TextRead, TextWasReasoning, read_reply
from surecall.text import encode_text

# The suite cuts streams between tokens. Its tokenizers cannot be had offline, so words and
# markers stand in for tokens, and every stream is cut between characters as well.
_UNITS = re.compile(
    r"<[|｜][^<>]{1,40}[|｜]>|\[[A-Z_/]{2,20}\]|</?[a-z_:]+>|\s?\w{1,6}|.", re.DOTALL
)
STRATEGIES = (*DEFAULT_STRATEGIES, ChunkStrategy("char", seed=1))


@cache
def fixtures() -> tuple[Fixture, ...]:
    """Return all fixtures of the suite."""
    return tuple(load_fixtures())


@cache
def family_of(slug: str) -> Family:
    """Return the family a fixture belongs to."""
    return load_family(slug)


def finish_reason_of(fixture: Fixture) -> str:
    """Return how generation ended: a truncated fixture was cut by the token limit."""
    return "length" if fixture.truncated else "stop"


def parsed(reading: Reading) -> ParseResult:
    """Return a reading in the suite's terms; a call that is not whole is no call."""
    return ParseResult(
        content=reading.content or None,
        reasoning_content=reading.reasoning,
        tool_calls=tuple(
            ParsedToolCall(call.name, encode_text(call.arguments))
            for call in reading.calls
            if call.state == "whole"
        ),
    )


def read_whole(fixture: Fixture) -> Reading:
    """Read a fixture at once."""
    return read_reply(
        fixture.raw_output,
        tools=fixture.tools,
        finish_reason=finish_reason_of(fixture),
        generation_prompt=fixture.generation_prompt,
    )


def read_stream(fixture: Fixture, chunks: Iterable[str]) -> Reading:
    """Read a fixture piece by piece, and hold what was told on the way to the result."""
    reader = ReplyReader(fixture.tools, fixture.generation_prompt)
    shown, calls = "", []
    for chunk in chunks:
        for event in reader.feed(chunk):
            if isinstance(event, TextRead):
                shown += event.text
            elif isinstance(event, TextWasReasoning):
                shown = ""
            elif isinstance(event, CallRead):
                calls.append(event.call)
    reading = reader.close(finish_reason_of(fixture))
    assert reading.content.startswith(shown)
    assert list(reading.calls[: len(calls)]) == calls
    return reading


def chunks_of(fixture: Fixture, strategy: ChunkStrategy) -> list[str]:
    """Cut a fixture's text as a strategy says."""
    units = list(fixture.raw_output)
    special = None
    if strategy.kind != "char":
        units = _UNITS.findall(fixture.raw_output)
        special = {unit for unit in units if len(unit) > 2 and unit[0] in "<["}
    return ["".join(group) for group in split(units, strategy, special)]


def judge(fixture: Fixture) -> tuple[Status, list[str]]:
    """Return the suite's verdict on a fixture, over all chunkings, and what was wrong."""
    observation = Observation(
        nonstream=parsed(read_whole(fixture)),
        streams={
            strategy.id: parsed(read_stream(fixture, chunks_of(fixture, strategy)))
            for strategy in STRATEGIES
        },
    )
    rows = run_checks(fixture, family_of(fixture.family), observation)
    wrong = [
        f"{row.check} {row.strategy}: {row.detail}" for row in rows if row.status is not Status.PASS
    ]
    return case_status(rows), wrong
