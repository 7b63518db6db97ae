"""What was read yesterday is read today, whole and in pieces."""

import json
from typing import Any

import pytest

from .reading import CORPUS, Entry, read_split, read_whole

LINES = [json.loads(line) for line in CORPUS.read_text("utf-8").splitlines()]
_EACH = 100
CHUNKS = [LINES[at : at + _EACH] for at in range(0, len(LINES), _EACH)]


def entry_of(line: dict[str, Any]) -> Entry:
    """Return the entry of a line."""
    return Entry(line["id"], line["tools"], line["reply"])


@pytest.mark.parametrize("chunk", CHUNKS, ids=lambda chunk: chunk[0]["id"])
def test_every_entry_is_read_as_before(chunk: list[dict[str, Any]]) -> None:
    """Calls, certainty, receipts, defects and text are those of the corpus."""
    now = {line["id"]: read_whole(entry_of(line)) for line in chunk}
    assert now == {line["id"]: line["reading"] for line in chunk}


@pytest.mark.parametrize("chunk", CHUNKS, ids=lambda chunk: chunk[0]["id"])
def test_every_text_is_read_the_same_in_pieces(chunk: list[dict[str, Any]]) -> None:
    """A text that arrives in small pieces gives the same calls and the same text."""
    texts = [line for line in chunk if isinstance(line["tools"], str)]
    now = {line["id"]: read_split(entry_of(line)) for line in texts}
    assert now == {line["id"]: line["reading"] for line in texts}


def test_the_corpus_has_every_kind_of_outcome() -> None:
    """Certain, likely, cut and refused calls, and texts without one, are all in it."""
    calls = [call for line in LINES for call in line["reading"].get("calls", ())]
    assert {call[2] for call in calls} == {"whole", "cut", "unreadable"}
    assert {call[3] for call in calls} == {"certain", "likely"}
    assert sum(not line["reading"].get("calls") for line in LINES) > len(LINES) // 20
