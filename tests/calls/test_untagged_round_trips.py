"""What models write is what is read, for families without tags of their own around JSON."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from support import render_formats_untagged as render
from support.read_text import TOOLS, check_cuts, check_splits, read
from support.text_cases import EVERY, arguments_of
from surecall.calls.formats import CallFormat, TextCall
from surecall.calls.names import ToolNames
from surecall.calls.unmarked_json import has_placeholder


@dataclass(frozen=True)
class Family:
    """A way to write calls, and what of a text around them can be told from them."""

    id: str
    render: Callable[..., str]
    max_calls: int = 3
    keeps_after: bool = True
    avoids: str = ""
    is_bare: bool = False
    """Whether its calls are certain only where there is nothing but them."""


FAMILIES = (
    Family("harmony", render.render_harmony),
    Family("harmony_in_channel", render.render_harmony_in_channel),
    Family("stripped_harmony", render.render_stripped_harmony),
    Family("gemma", render.render_gemma, avoids="<"),
    Family("function_gemma", render.render_function_gemma, avoids="<"),
    Family("pythonic", render.render_pythonic, keeps_after=False, is_bare=True),
    Family("llama4", render.render_llama4),
    Family("lfm2", render.render_lfm2),
    Family("minicpm", render.render_minicpm),
    Family("olmo", render.render_olmo),
    Family("tool_code", render.render_tool_code),
    Family("code_tag", render.render_code_tag),
    Family("gorilla", render.render_gorilla, keeps_after=False),
    Family("raven", render.render_raven),
    Family("llama_json", render.render_llama_json, keeps_after=False),
    Family("built_in", render.render_built_in, max_calls=1, keeps_after=False),
    Family("bare_objects", render.render_bare_objects, keeps_after=False, is_bare=True),
    Family("bare_array", render.render_bare_array, keeps_after=False, is_bare=True),
    Family("json_fence", render.render_json_fence, keeps_after=False, is_bare=True),
    Family("react", render.render_react, max_calls=1, keeps_after=False),
    Family("command_r", render.render_command_r),
    Family("florette", render.render_florette, keeps_after=False),
    Family("functionary_tokens", render.render_functionary_tokens, keeps_after=False),
    Family("functionary_words", render.render_functionary_words, keeps_after=False),
    Family("chatglm", render.render_chatglm, keeps_after=False, is_bare=True),
)
families = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.id)

NASTY = (
    "plain",
    "",
    'it\'s "quoted" and `ticked`',
    "{braces} [brackets] (round), a=1",
    "line one\nline two\ttab \\ backslash\\",
    "```json\n{}\n```",
    "</function_calls> <|call|> <|end|><|start|>assistant <tool_call|>",
    "ping()\n[ping()]",
    '{"name": "ping", "arguments": {}}',
    "emoji 🌧️ 漢字 \u0007",
    "Observation: none",
)
_texts = st.sampled_from(NASTY) | st.text(st.characters(exclude_categories=("Cs",)), max_size=12)
_notes = st.fixed_dictionaries(
    {"title": _texts, "body": _texts, "tags": st.lists(_texts, max_size=2)}
)
_lamps = st.fixed_dictionaries(
    {"room": _texts, "level": st.integers(-(10**12), 10**12), "fade": st.booleans()}
)
_calls = st.one_of(
    st.tuples(st.just("save_note"), _notes),
    st.tuples(st.just("dim_lamp"), _lamps),
    st.just(("ping", {})),
)

SAMPLE = (
    ("save_note", {"title": "it's", "body": 'say "{hi}"\n[x]', "tags": ["a,b", "c)"]}),
    ("dim_lamp", {"room": "漢字 🌧️", "level": -12, "fade": True}),
    ("ping", {}),
)


def written(calls: list[TextCall]) -> list[tuple[str, Any]]:
    """Return calls as they were rendered."""
    assert all(call.state == "whole" for call in calls)
    prefix = "default_api."
    return [(call.name.removeprefix(prefix), arguments_of(call)) for call in calls]


def without(value: Any, avoided: str) -> Any:
    """Return a value without characters that its notation cannot carry."""
    if isinstance(value, str):
        return "".join(char for char in value if char not in avoided)
    if isinstance(value, list):
        return [without(item, avoided) for item in value]
    if isinstance(value, dict):
        return {key: without(item, avoided) for key, item in value.items()}
    return value


@families
@given(calls=st.lists(_calls, min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_rendered_calls_are_read_as_they_were_meant(
    family: Family, calls: list[tuple[str, dict[str, Any]]]
) -> None:
    """Every call comes back with its name and arguments, and no text is left over."""
    calls = [(name, without(args, family.avoids)) for name, args in calls[: family.max_calls]]
    # Without markup of its own, what has a placeholder for a value is an example of a call.
    assume(not (family.is_bare and any(has_placeholder(args) for _, args in calls)))
    found = read(family.render(calls), EVERY)
    assert written(found.calls) == calls
    assert found.content.strip() == ""
    assert found.reasoning == ""


@families
def test_text_around_calls_stays_text(family: Family) -> None:
    """The text before the calls is shown, and that after them where the family has such.

    Calls without any markup are not certain next to it, and stay where they are.
    """
    calls = SAMPLE[: family.max_calls]
    after = "All set." if family.keeps_after else ""
    text = family.render(calls, "One moment.", after)
    found = read(text, EVERY)
    if family.is_bare:
        assert (found.calls, found.content) == ([], text)
        return
    assert written(found.calls) == list(calls)
    assert "".join(found.content.split()) == "Onemoment." + "".join(after.split())


@families
def test_every_split_reads_the_same(family: Family) -> None:
    """A stream cut anywhere gives the same text and the same calls."""
    calls = SAMPLE[1 : 1 + family.max_calls]
    before = "" if family.is_bare else "One moment."
    found = check_splits(family.render(calls, before), EVERY)
    assert written(found.calls) == list(calls)


@families
@pytest.mark.parametrize("first", [0, 1], ids=["note", "lamp"])
def test_a_cut_call_is_never_another_whole_call(family: Family, first: int) -> None:
    """Wherever the text ends too soon, no call is whole that was not written so."""
    text = family.render(SAMPLE[first : first + family.max_calls], "One moment.")
    check_cuts(text, EVERY)


@families
def test_repeated_beginnings_are_read_in_linear_time(family: Family) -> None:
    """A long text of beginnings without ends is read to its end."""
    text = family.render([("save_note", {"title": "x", "body": "y"})])
    beginning = text[: text.index("x")]
    for unit in (beginning, f"{beginning}\n", text[: text.index("y") + 2] + "\n", f"{text} x\n"):
        read(unit * (40_000 // len(unit)), EVERY, generation_prompt="")


@pytest.mark.parametrize("form", EVERY, ids=lambda form: form.about)
def test_repeated_openers_are_read_in_linear_time(form: CallFormat) -> None:
    """A long text of openers is read to its end, on one line and on many."""
    for opener in form.openers(ToolNames(TOOLS)):
        for unit in (opener, f"{opener}\n"):
            read(unit * (40_000 // len(unit)), EVERY, generation_prompt="")
