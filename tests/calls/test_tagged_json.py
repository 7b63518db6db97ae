"""JSON between tags: damage, aliases, code, YAML, and what is no call."""

from typing import Any

import pytest

from support.format_cases import FormatCase, check_accepted, check_cut, check_refused
from support.read_text import check_splits, read
from surecall.calls.families.marked_json import TAGGED_JSON

FORMATS = (TAGGED_JSON,)
PING = '{"name": "ping", "arguments": {}}'
LAMP = '{"name": "dim_lamp", "arguments": {"room": "hall", "level": 3}}'
PINGED: tuple[str, Any] = ("ping", {})
DIMMED: tuple[str, Any] = ("dim_lamp", {"room": "hall", "level": 3})

ACCEPTED = (
    FormatCase("no closer at the end", f"<tool_call>{LAMP}", (DIMMED,), ("missing_closer",)),
    FormatCase(
        "no closer before the next",
        f"<tool_call>{LAMP}\n<tool_call>{PING}</tool_call>",
        (DIMMED, PINGED),
        ("missing_closer",),
    ),
    FormatCase("half a closer", f"<tool_call>{LAMP}</tool_c", (DIMMED,), ("missing_closer",)),
    FormatCase(
        "opener for a closer",
        f"<tool_call>{LAMP}<tool_call>\n<tool_call>{PING}<tool_call>",
        (DIMMED, PINGED),
        ("repeated_opener", "repeated_opener"),
    ),
    FormatCase(
        "closed twice",
        f"<tool_call>{LAMP}</tool_call>\n</tool_call> So.",
        (DIMMED,),
        ("stray_closing_tag",),
        content=" So.",
    ),
    FormatCase(
        "one brace too many",
        f"<tool_call>{LAMP}}}\n</tool_call>",
        (DIMMED,),
        ("drop_extra_brackets",),
    ),
    FormatCase(
        "one brace too few",
        f"<tool_call>{LAMP[:-1]}</tool_call>",
        (DIMMED,),
        ("close_missing_brackets",),
    ),
    FormatCase(
        "fence inside",
        f"<tool_call>\n```json\n{LAMP}\n```\n</tool_call>",
        (DIMMED,),
        ("strip_code_fence",),
    ),
    FormatCase("array", f"<tool_call>[{PING}, {LAMP}]</tool_call>", (PINGED, DIMMED)),
    FormatCase("objects in a row", f"<tool_call>{PING}\n{LAMP}</tool_call>", (PINGED, DIMMED)),
    FormatCase(
        "commas without an array", f"<tool_calls>{PING},{LAMP}</tool_calls>", (PINGED, DIMMED)
    ),
    FormatCase(
        "raw newline",
        '<tool_call>{"name": "dim_lamp", "arguments": {"room": "a\nb"}}</tool_call>',
        (("dim_lamp", {"room": "a\nb"}),),
        ("escape_control_characters",),
    ),
    FormatCase(
        "a quote too many, and a call after it",
        '<tool_call>{"name": "dim_lamp", "arguments": {"room": "a "b"}}</tool_call>'
        f"<tool_call>{PING}</tool_call>",
        (("dim_lamp", {"room": 'a "b'}), PINGED),
        ("escape_inner_quotes",),
    ),
    FormatCase(
        "arguments beside the name",
        '<tool_call>{"name": "dim_lamp", "room": "hall"}</tool_call>',
        (("dim_lamp", {"room": "hall"}),),
        ("nest_flat_arguments",),
    ),
    FormatCase(
        "arguments as text",
        '<tool_call>{"name": "dim_lamp", "arguments": "{\\"room\\": \\"x\\"}"}</tool_call>',
        (("dim_lamp", '{"room": "x"}'),),
    ),
    FormatCase("no arguments", '<tool_call>{"name": "ping"}</tool_call>', (("ping", None),)),
    FormatCase(
        "a tag for the section and one for each call",
        f"<tool_calls>\n<tool_call>{PING}</tool_call>\n<tool_call>{LAMP}</tool_call>\n</tool_calls>",
        (PINGED, DIMMED),
    ),
    FormatCase(
        "in an answer", f"<answer>\n<tool_calls>[{PING}]</tool_calls>\n</answer>", (PINGED,)
    ),
    FormatCase(
        "doubled braces",
        '<TOOLCALL>[{{"name": "ping", "arguments": {{}}}}]</TOOLCALL>',
        (PINGED,),
        ("collapse_doubled_braces",) * 4,
    ),
    FormatCase(
        "a result made up",
        f'<tool_call>{PING}</tool_call>\n<tool_response>{{"ok": true}}</tool_response>\nDone.',
        (PINGED,),
    ),
    FormatCase(
        "arguments in single quotes, as Glaive's",
        """<functioncall> {"name": "dim_lamp", "arguments": '{"room": "hall", "level": 3}'}""",
        (("dim_lamp", '{"room": "hall", "level": 3}'),),
        ("replace_quotes",),
    ),
    FormatCase("in one word", f"<functioncall>{LAMP}</functioncall>", (DIMMED,)),
    FormatCase("an empty array", "Fine.<tool_calls>[]</tool_calls>", (), content="Fine."),
    *(
        FormatCase(f"<{tag}>", f"Now:\n<{tag}>\n{LAMP}\n</{tag}>", (DIMMED,), content="Now:")
        for tag in ("tools", "tool", "function", "response", "json", "JSON", "xml", "tool_use")
    ),
)

REFUSED = (
    "Wrap it in <tool_call> tags, please.",
    "Everything between <tool_call> and </tool_call> is JSON.",
    "<tool_call>not JSON</tool_call>",
    '<tool_call>{"name": "<function-name>", "arguments": <args-json-object>}</tool_call>',
    '<tool_call>{"colour": "red"}</tool_call>',
    '<json>{"name": "Ada", "age": 3}</json>',
    '<json>{"name": "Ada"',
    f"<tool>{PING} is what I would send</tool>",
    '<tools>{"name": "no_such_tool", "arguments": {}}</tools>',
    '<tools>[{"name": "ping", "description": "p", "parameters": {"type": "object"}}]</tools>',
    "<answer>It is 4.</answer>",
    "</tool_call>",
)


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
def test_damage_that_leaves_one_meaning_is_read(case: FormatCase) -> None:
    """Calls that a person would read without doubt are read, with a receipt for what was wrong."""
    if case.calls:
        check_accepted(case, FORMATS)
    else:
        found = check_splits(case.text, FORMATS)
        assert (found.content, found.calls) == (case.content, [])


@pytest.mark.parametrize("text", REFUSED)
def test_text_that_only_looks_like_a_call_is_shown(text: str) -> None:
    """Prose, templates, data and definitions are no calls."""
    check_refused(text, FORMATS)


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>{"name": "dim_lamp", "arguments": {"room": "ha',
        '<tool_call>{"name": "dim_lamp", "arguments": {"room": "hall"}',
        '<tool_call>[{"name": "dim_lamp", "arguments"',
        '<tool_calls>{"tool_calls": [{"name": "dim_lamp", "arguments": {',
        '<tool_call>{"name": "dim_lamp", "arguments": {"room": "say </tool_call> to',
        "<tool_calls>\n- name: dim_lamp\n  arguments:\n    room: ha",
        '<tools>{"name": "dim_lamp", "arguments": {"room": "ha',
    ],
)
def test_a_call_that_ends_too_soon_is_cut(text: str) -> None:
    """A call without its end is reported, and never as whole."""
    check_cut(text, "dim_lamp", FORMATS)


def test_a_cut_call_keeps_the_text_of_its_arguments() -> None:
    """What there is of the arguments can be shown."""
    text = '<tool_call>[{"name": "ping", "arguments": {}}, {"name": "dim_lamp", "args": {"room": "h'
    calls = read(text, FORMATS).calls
    assert [(call.name, call.arguments, call.state) for call in calls] == [
        ("ping", {}, "whole"),
        ("dim_lamp", '{"room": "h', "cut"),
    ]
    assert [receipt.rule for receipt in calls[0].receipts] == ["missing_brackets"]


@pytest.mark.parametrize("text", ["<tool_call>", "<tool_call>\n{", '<tool_call>{"name": "dim_l'])
def test_a_name_that_is_cut_is_no_call(text: str) -> None:
    """Without a complete name there is no call, and nothing of it is shown."""
    found = check_splits("Wait." + text, FORMATS)
    assert (found.content, found.calls) == ("Wait.", [])


def test_an_unknown_tool_in_its_own_tag_is_reported() -> None:
    """The markers prove that a call was meant, so that the model can be told."""
    found = check_splits(
        '<tool_call>{"name": "no_such_tool", "arguments": {}}</tool_call>', FORMATS
    )
    assert [call.name for call in found.calls] == ["no_such_tool"]


def test_code_after_the_json_fills_the_empty_argument() -> None:
    """Raw code in its own tag is the code, whatever it holds."""
    text = (
        '<tool_call>\n{"name": "run", "arguments": {"code": ""}}\n'
        "<code>\nprint('</code>')\nx = 1\n</code>\n</tool_call>"
    )
    (call,) = check_splits(text, FORMATS).calls
    assert call.arguments == {"code": "print('</code>')\nx = 1"}
    assert [receipt.rule for receipt in call.receipts] == ["fill_code_argument"]


def test_code_that_is_cut_makes_the_call_cut() -> None:
    """Half of the code is not run."""
    text = '<tool_call>{"name": "run", "arguments": {"code": ""}}<code>\nrm -rf /tmp'
    check_cut(text, "run", FORMATS)


def test_ids_in_the_objects_are_kept() -> None:
    """An id that the model wrote stays with its call."""
    text = '<tool_calls>[{"name": "ping", "arguments": {}, "id": "k7"}]</tool_calls>'
    (call,) = check_splits(text, FORMATS).calls
    assert call.id == "k7"


def test_yaml_is_read_by_the_schema() -> None:
    """Scalars, quoted text, JSON, lists and block text become what they mean."""
    text = """Fine.
<tool_calls>
- name: dim_lamp
  arguments:
    room: 12
    level: 3
    fade: true
- name: save_note
  arguments:
    title: "a: b"
    body: |
      one

        two
    tags:
      - x
      - 'it''s'
- name: ping
- name: ferry_times
  arguments: {"origin": "Pier 4"}
</tool_calls>"""
    found = check_splits(text, FORMATS)
    assert [(call.name, call.arguments) for call in found.calls] == [
        ("dim_lamp", {"room": "12", "level": 3, "fade": True}),
        ("save_note", {"title": "a: b", "body": "one\n\n  two\n", "tags": ["x", "it's"]}),
        ("ping", None),
        ("ferry_times", '{"origin": "Pier 4"}'),
    ]
    assert found.content == "Fine."


@pytest.mark.parametrize(
    "body",
    [
        "    room: &a hall",
        "    room:\n      deep: 1",
        "    room: hall\n   level: 3",
        '    room: "hall',
        "    room",
    ],
)
def test_yaml_beyond_what_calls_need_is_unreadable(body: str) -> None:
    """Such a call is refused as a whole rather than read in part."""
    text = f"<tool_calls>\n- name: dim_lamp\n  arguments:\n{body}\n</tool_calls>"
    (call,) = check_splits(text, FORMATS).calls
    assert (call.name, call.state) == ("dim_lamp", "unreadable")
