"""A call that a sentence quotes, names or asks about is never certain, whatever its format."""

import pytest

from support.cut_calls import RENDERERS, TARGET
from surecall import read_reply
from surecall.calls import ToolNames

NAMES = ToolNames([TARGET])
CALLS = {
    family: write([("clean", {"path": "/tmp/a", "count": 5, "dry_run": False})], "", "")
    for family, write in RENDERERS.items()
}
MENTIONS = (
    "For example, {} would work.",
    "Something like {} would do the trick, but please do not run it yet.",
    "The syntax is {}, where path is the folder.",
    "Never send {} without asking.",
    "The model answered {} and then stopped.",
    "1. {} cleans the folder.\n2. Nothing else does.",
    "Instead of {} write the path alone.",
    "Should I run {} now?",
    "Did you mean {}?",
    "The call ({}) is not allowed here.",
    "Par exemple, {} fonctionnerait.",
    "Zum Beispiel würde {} funktionieren.",
    "Por ejemplo, {} funcionaría bien.",
    "Например, {} сработает.",
    "例如，{} 就可以了。",
    "たとえば、{} のように書きます。",
    "예를 들어 {} 라고 쓰면 됩니다.",
    "Il a écrit « {} » hier.",
    "Er schrieb „{}“ gestern.",
    'He wrote "{}" yesterday.',
    'It said "{} and so on.',
    "He wrote “{}” yesterday.",
    "「{}」と書きました。",
    "Use `{}` to clean.",
    "Use ``{}`` to clean.",
    "They said:\n\n> {}\n\nI disagree.",
    "| call | meaning |\n|---|---|\n| {} | cleans |",
    "# {}",
    "<!-- {} -->",
    "2026-01-02 10:00:00 INFO {}",
    "-{}\n+nothing",
    "It looks like this:\n\n    {}\n\nand nothing else.",
    "```markdown\n{}\n```",
    "<example>{}</example>",
    "Text <example> {} </example> more.",
    "<tool_result>\n{}\n</tool_result>\nSo it said.",
    "User: {}\nAssistant: I cannot.",
    "Human: {}\n\nAssistant: I cannot.",
)
IS_ABOUT_IT = (
    "{} means that the folder is cleaned.",
    "{} is what the old version wrote.",
    "{} bedeutet, dass aufgeräumt wird.",
    "{} 是旧版本的写法。",
)
LINES = frozenset({"florette", "react", "react_call"})
"""Formats whose calls end with their line: what follows stands below it."""
MADE = (
    "{}",
    "I will clean up. {}",
    "I will clean up: {}",
    "I clean up now {}",
    "{}\n\nThat is all.",
    "I will clean up.\n\n{}\n\nThat is all.",
)


@pytest.mark.parametrize("text", [*MENTIONS, *IS_ABOUT_IT])
def test_no_mentioned_call_is_certain(text: str) -> None:
    """It may be likely at most."""
    certain = {
        family
        for family, call in CALLS.items()
        if any(
            read.state == "whole" and read.certainty == "certain"
            for read in read_reply(text.format(call), tools=NAMES).calls
        )
    }
    assert certain <= (LINES if text in IS_ABOUT_IT else {"florette"})


@pytest.mark.parametrize("text", MADE)
@pytest.mark.parametrize("family", ["hermes", "qwen_xml", "mistral_compact", "kimi", "gemma"])
def test_a_call_behind_a_sentence_is_made(family: str, text: str) -> None:
    """Also behind one that lacks its end, where nothing follows."""
    (call,) = read_reply(text.format(CALLS[family]), tools=NAMES).calls
    assert (call.state, call.certainty) == ("whole", "certain")
