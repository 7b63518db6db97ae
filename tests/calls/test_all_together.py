"""What models write is read the same when every family is looked for at once."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import render_formats_json, render_formats_untagged
from support.read_text import TOOLS
from support.render_formats_tags import RENDERERS
from surecall.base.records import Reading
from surecall.calls import ToolNames
from surecall.reading import ReplyReader, read_reply

Call = tuple[str, dict[str, Any]]

NAMES = ToolNames(TOOLS)
ONE_CALL = {"built_in", "react"}
TEXT_ENDS_WITH_CALLS = {
    "bare_array",
    "bare_objects",
    "built_in",
    "chatglm",
    "florette",
    "functionary_tokens",
    "functionary_words",
    "gorilla",
    "json_fence",
    "llama_json",
    "pythonic",
    "react",
}
BARE_FAMILIES = {"bare_array", "bare_objects", "chatglm", "json_fence", "pythonic"}
"""Their calls are certain only where there is nothing but them."""
SHIFTS_SPACE = {"code_tag", "tool_code"}
TRIMMED = {"dots": None, "name_tag": "\n"}
WITHOUT_ANGLES = {"gemma", "function_gemma"}


@dataclass(frozen=True)
class Family:
    """A way to write calls, and what its notation cannot carry."""

    id: str
    render: Callable[..., str]
    is_text_valued: bool = False

    def fitted(self, calls: list[Call]) -> list[Call]:
        """Return the calls as the notation of the family can carry them."""
        calls = calls[:1] if self.id in ONE_CALL else calls
        return [(name, {k: self._fitted(v) for k, v in args.items()}) for name, args in calls]

    def _fitted(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._without_angles(item) for item in value]
        if not isinstance(value, str):
            return value
        value = self._without_angles(value)
        return value.strip(TRIMMED[self.id]) if self.id in TRIMMED else value

    def _without_angles(self, value: str) -> str:
        return value.replace("<", "") if self.id in WITHOUT_ANGLES else value


def _renderers(module: Any) -> list[Family]:
    names = [name for name in module.__all__ if name.startswith("render_")]
    return [Family(name.removeprefix("render_"), getattr(module, name)) for name in names]


FAMILIES = (
    *_renderers(render_formats_json),
    *(Family(name, render, is_text_valued=True) for name, render in RENDERERS.items()),
    *_renderers(render_formats_untagged),
)
families = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.id)
prompts = pytest.mark.parametrize("prompt", [None, ""], ids=["prompt unknown", "prompt empty"])

PLAIN = (
    "a",
    " ",
    "\n",
    "\t",
    '"',
    "'",
    "`",
    "{",
    "}",
    "[1]",
    "ping()",
    "\\",
    "é",
    "格",
    "👩‍💻",
    "<b>",
    "</div>\n",
    "x < y && z > w",
    "</",
    "<",
    "null",
    "12",
    "Observation: none",
    "Action: ping\n",
    '{"name": "ping", "arguments": {}}',
)
MARKERS = (
    "<tool_call>",
    "</tool_call>",
    "<function=ping>",
    "</function>",
    '<invoke name="ping">',
    "</invoke>",
    "</function_calls>",
    "[TOOL_CALLS]",
    "[ARGS]",
    "<｜tool▁call▁end｜>",
    "<|tool_call_end|>",
    "<|END_ACTION|>",
    "<|end_message|>",
    "<|tools_suffix|>",
    "<|call|>",
    "<|end|><|start|>assistant",
    "<tool_call|>",
    "<think>",
    "</think>",
    "[/THINK]",
    "```",
    "```json\n{}\n```",
    "</code>",
    '"}}',
    "</s>",
)


def _calls_with(texts: st.SearchStrategy[str]) -> st.SearchStrategy[list[Call]]:
    notes = st.fixed_dictionaries(
        {"title": texts, "body": texts, "tags": st.lists(texts, max_size=2)}
    )
    lamps = st.fixed_dictionaries(
        {"room": texts, "level": st.integers(-(10**12), 10**12), "fade": st.booleans()}
    )
    call = st.one_of(
        st.tuples(st.just("save_note"), notes),
        st.tuples(st.just("dim_lamp"), lamps),
        st.just(("ping", {})),
    )
    return st.lists(call, min_size=1, max_size=3)


_plain = st.lists(st.sampled_from(PLAIN), max_size=5).map("".join)
_any_text = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
_nasty = st.lists(st.sampled_from(PLAIN + MARKERS) | _any_text, max_size=5).map("".join)
PLAIN_CALLS, NASTY_CALLS = _calls_with(_plain), _calls_with(_nasty)

SAMPLE: list[Call] = [
    ("save_note", {"title": "it's", "body": 'say "{hi}"\n[x] < y', "tags": ["a,b", "c)"]}),
    ("dim_lamp", {"room": "漢字 🌧️", "level": -125, "fade": True}),
    ("ping", {}),
]
LAMP_FIRST: list[Call] = [SAMPLE[1], SAMPLE[2]]


def written(reading: Reading) -> list[tuple[str, Any]]:
    """Return the calls of a reading, all of which must be whole."""
    assert [(call.state, call.errors) for call in reading.calls] == [("whole", ())] * len(
        reading.calls
    )
    return [(call.name, call.arguments) for call in reading.calls]


@families
@prompts
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_rendered_calls_are_read_as_they_were_meant(
    family: Family, prompt: str | None, data: st.DataObject
) -> None:
    """No other family takes them, and nothing of them is shown."""
    calls = family.fitted(data.draw(PLAIN_CALLS if family.is_text_valued else NASTY_CALLS))
    text = family.render(calls, "", "")
    reading = read_reply(text, tools=NAMES, finish_reason="stop", generation_prompt=prompt)
    assert written(reading) == calls
    assert reading.content.strip() == ""
    assert reading.reasoning is None


@families
@prompts
def test_text_around_calls_is_shown(family: Family, prompt: str | None) -> None:
    """The text before the calls stays, and that after them where the family has such."""
    calls = family.fitted(SAMPLE)
    # A tag without arguments in front of prose is rather markup than a call.
    ends = TEXT_ENDS_WITH_CALLS | {"name_tag"}
    after = "" if family.id in ends else "All set."
    text = family.render(calls, "One moment.", after)
    is_judged = family.id in BARE_FAMILIES | {"name_tag"}
    reading = read_reply(
        text,
        tools=NAMES,
        finish_reason="stop",
        generation_prompt=prompt,
        accept="likely" if is_judged else "certain",
    )
    assert written(reading) == calls
    assert "".join(reading.content.split()) == "Onemoment." + "".join(after.split())
    assert reading.reasoning is None


@families
@pytest.mark.parametrize(
    ("finish_reason", "sample"), [("length", SAMPLE), (None, LAMP_FIRST)], ids=["note", "lamp"]
)
def test_a_cut_reply_never_gives_another_call(
    family: Family, finish_reason: str | None, sample: list[Call]
) -> None:
    """Wherever the text ends too soon, every whole call is one of the full text.

    Each family is cut at every third character; every character is cut in test_cut_properties.
    """
    calls = family.fitted(sample)
    text = family.render(calls, "One moment.", "")
    for at in range(len(sample) % 3, len(text), 3):
        reading = read_reply(text[:at], tools=NAMES, finish_reason=finish_reason)
        whole = [(call.name, call.arguments) for call in reading.calls if call.state == "whole"]
        assert whole == calls[: len(whole)], text[:at]
        assert len(reading.calls) <= len(calls), text[:at]
        assert {call.name for call in reading.calls} <= {name for name, _ in calls}, text[:at]


@families
@prompts
def test_single_characters_read_as_the_whole(family: Family, prompt: str | None) -> None:
    """A reply that arrives character by character gives the same reading."""
    sample = SAMPLE if prompt is None else LAMP_FIRST
    text = family.render(family.fitted(sample), "One moment.", "")
    for end in (len(text), len(text) - 3, len(text) // 2):
        reader = ReplyReader(NAMES, prompt)
        for character in text[:end]:
            reader.feed(character)
        whole = read_reply(text[:end], tools=NAMES, finish_reason="stop", generation_prompt=prompt)
        assert without_ids(reader.close("stop")) == without_ids(whole)


def without_ids(reading: Reading) -> dict[str, Any]:
    """Return a reading without the ids that were made up for its calls."""
    calls = [
        (
            (call.name, call.arguments, call.raw, call.state, call.format, call.errors),
            [receipt for receipt in call.receipts if not receipt.place.endswith("/id")],
        )
        for call in reading.calls
    ]
    return {
        "calls": calls,
        "content": reading.content,
        "reasoning": reading.reasoning,
        "defects": reading.defects,
    }


AT_THE_END = {
    "text": "Action: ferry_times\nAction Input: Pier",
    "no input yet": "Action: ping\n",
    "a bare row": '{"name": "ping", "arguments": {}}\n{"name": "ping", "arguments": {}}',
    "a last fence": '```json\n{"name": "ping", "arguments": {}}\n```',
}


@pytest.mark.parametrize("text", AT_THE_END.values(), ids=list(AT_THE_END))
def test_calls_that_only_the_end_of_the_message_makes_whole_are_cut_by_a_limit(text: str) -> None:
    """What would be a whole call at the model's own end is cut when the reply hit its limit."""
    ended = read_reply(text, tools=NAMES, finish_reason="stop")
    limited = read_reply(text, tools=NAMES, finish_reason="length")
    assert {call.state for call in ended.calls} == {"whole"}
    assert {call.state for call in limited.calls} == {"cut"}
    assert len(limited.calls) == len(ended.calls)


def test_a_made_up_observation_proves_that_the_call_had_ended() -> None:
    """A limit that is hit behind the call does not hurt it."""
    text = 'Action: ferry_times\nAction Input: {"origin": "Pier 4"}\nObservation: ["9'
    reading = read_reply(text, tools=NAMES, finish_reason="length")
    assert written(reading) == [("ferry_times", {"origin": "Pier 4"})]
