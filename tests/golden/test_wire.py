"""What became of every stream and body yesterday becomes of it today, in every split."""

import json
from typing import Any

import pytest

from .wire import CORPUS, Source, bodies, follow_body, follow_stream, streams

LINES: dict[str, Any] = {
    line.pop("id"): line for line in map(json.loads, CORPUS.read_text("utf-8").splitlines())
}
STREAMS, BODIES = list(streams()), list(bodies())
_EACH = 50


def _chunks(sources: list[Source]) -> list[list[Source]]:
    return [sources[at : at + _EACH] for at in range(0, len(sources), _EACH)]


@pytest.mark.parametrize("chunk", _chunks(STREAMS), ids=lambda chunk: chunk[0].id)
def test_every_stream_is_passed_folded_and_translated_as_before(chunk: list[Source]) -> None:
    """Bytes and meaning are those of the corpus, whole, by event, in small pieces, with pulses."""
    now = {source.id: follow_stream(source) for source in chunk}
    assert now == {source.id: LINES.get(source.id) for source in chunk}


@pytest.mark.parametrize("chunk", _chunks(BODIES), ids=lambda chunk: chunk[0].id)
async def test_every_body_is_answered_as_before(chunk: list[Source]) -> None:
    """Bytes and meaning are those of the corpus, left as they are, repaired and translated."""
    now = {source.id: await follow_body(source) for source in chunk}
    assert now == {source.id: LINES.get(source.id) for source in chunk}


def test_the_corpus_has_no_others() -> None:
    """Every line of the corpus belongs to a source, and every outcome is in it."""
    assert LINES.keys() == {source.id for source in (*STREAMS, *BODIES)}
    outcomes = {told.get("outcome") for line in LINES.values() for told in _told(line)}
    assert outcomes >= {"clean", "repaired", "reasked", "failed", "unrepaired"}


def _told(line: dict[str, Any]) -> list[dict[str, Any]]:
    firsts = [value[0] if isinstance(value, list) else value for value in line.values()]
    return [value for value in firsts if isinstance(value, dict)]
