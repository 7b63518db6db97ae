"""Calls of offered tools in the ways in which models damage them: read, or never certain.

The texts of each class were written before the rules that read them, for four tools: 984 of 1,128
were read then, and eight of 2,256 texts that only mention one were certain.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from surecall import read_reply

TEXTS = Path(__file__).parents[1] / "support" / "damage_with_tools.jsonl"
FORMS: tuple[dict[str, str], ...] = tuple(
    json.loads(line) for line in TEXTS.read_text("utf-8").splitlines()
)
CALLED: dict[str, dict[str, Any]] = {
    "set_lamp": {"room": "hall", "on": True},
    "find_files": {"query": "invoice 2026", "path": "/srv/docs", "limit": 5},
}
PLACES = {"alone": "{}", "behind a sentence": "I will do that now.\n\n{}"}
MENTIONS = {
    "sentence": "You could write {} to do it, but do not run it.",
    "quotation": "The assistant replied:\n\n> {}\n",
    "element": "<example>{}</example>",
    "example": "For example, {} is how it looks.",
}
UNREAD = frozenset(
    {
        "labels 6",  # the block below a heading may be a document's
        "tokens 7",  # an unknown word before the call makes it a part of a sentence
        "qwen closers 5",  # whether the last newline belongs to the value cannot be known
        "glm 5",
        "react 0",  # cut
        "json noise 3",  # two calls
    }
)


def _tool(name: str, required: list[str], **kinds: str) -> dict[str, Any]:
    properties = {key: {"type": kind} for key, kind in kinds.items()}
    parameters = {"type": "object", "properties": properties, "required": required}
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


TOOLS = [
    _tool("set_lamp", ["room", "on"], room="string", on="boolean", level="integer"),
    _tool("send_email", ["to", "subject"], to="string", subject="string", body="string"),
    _tool("find_files", ["query"], query="string", path="string", limit="integer"),
    _tool("translate", ["text", "target"], text="string", target="string"),
]


@pytest.mark.parametrize("place", PLACES)
def test_damaged_calls_of_offered_tools_are_read(place: str) -> None:
    """All but a few forms give the call that was meant, at least as a likely one."""
    for form in FORMS:
        text = PLACES[place].replace("{}", form["text"])
        reading = read_reply(text, tools=TOOLS, accept="likely", finish_reason="stop")
        assert reading.calls or reading.defects, text
        if form["form"] not in UNREAD:
            calls = [(call.name, call.arguments) for call in reading.calls]
            assert calls == [(form["call"], CALLED[form["call"]])], text


@pytest.mark.parametrize("place", MENTIONS)
def test_none_of_them_is_certain_where_it_is_mentioned(place: str) -> None:
    """It may be likely at most."""
    for form in FORMS:
        text = MENTIONS[place].replace("{}", form["text"])
        calls = read_reply(text, tools=TOOLS, finish_reason="stop").calls
        whole = [call for call in calls if call.state == "whole"]
        assert [call for call in whole if call.certainty == "certain"] == [], text
