"""Every character of a call belongs to something: what is left over makes the call doubtful."""

from typing import Any

import pytest

from surecall.base.records import Reading
from surecall.reading import ReplyReader, read_reply

SEND = {
    "name": "send",
    "parameters": {
        "type": "object",
        "properties": {
            "to": {"type": "string"},
            "amount": {"type": "integer"},
            "note": {"type": "string"},
            "dry_run": {"type": "boolean"},
        },
        "required": ["to", "amount"],
    },
}
BOOK = {
    "name": "book",
    "parameters": {
        "type": "object",
        "properties": {"cabin": {"type": "string"}, "dry_run": {"type": "boolean"}},
    },
}
DELETE = {
    "name": "delete_note",
    "parameters": {
        "type": "object",
        "properties": {"title": {"type": "string"}},
        "required": ["title"],
    },
}
TOOLS: list[Any] = [SEND, BOOK, DELETE]
HEAD = '{"to": "bob", "amount": 5}'
REST = ', "note": "hello", "dry_run": true}'
ALL = {"to": "bob", "amount": 5, "note": "hello", "dry_run": True}


def _read(text: str) -> Reading:
    """Read a text whole and in pieces, which must be the same."""
    whole = read_reply(text, tools=TOOLS, finish_reason="stop")
    for size in (1, 3, 11):
        reader = ReplyReader(TOOLS)
        for start in range(0, len(text), size):
            reader.feed(text[start : start + size])
        assert reader.close("stop") == whole
    return whole


@pytest.mark.parametrize(
    "text",
    [
        f"[TOOL_CALLS]send[ARGS]{HEAD}{REST}",
        f'<tool_call>{{"name": "send", "arguments": {HEAD}{REST}</tool_call>',
        f'<|python_tag|>{{"name": "send", "parameters": {HEAD}{REST}',
        f"Action: send\nAction Input: {HEAD}{REST}\nObservation:",
        (
            "<|tool_calls_section_begin|><|tool_call_begin|>functions.send:0"
            f"<|tool_call_argument_begin|>{HEAD}{REST}<|tool_call_end|><|tool_calls_section_end|>"
        ),
        (
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>send<｜tool▁sep｜>"
            f"{HEAD}{REST}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
        ),
        f"<function=send>{HEAD}{REST}</function>",
        f"<|from|>assistant\n<|recipient|>send\n<|content|>{HEAD}{REST}<|stop|>",
        f"[TOOL_CALLS]send[ARGS]{HEAD},\n  {REST[2:]}",
        (
            '<tool_call>{"name":"send","arguments":{"to":"bob","amount":5},"note":"hello",'
            '"dry_run":true}</tool_call>'
        ),
        (
            '<tool_call>{"tool_calls": [{"name":"send","arguments":{"to":"bob","amount":5}}],'
            '"note":"hello","dry_run":true}</tool_call>'
        ),
        (
            '<tool_call>{"function":{"name":"send","arguments":{"to":"bob","amount":5}},'
            '"note":"hello","dry_run":true}</tool_call>'
        ),
    ],
)
def test_members_outside_the_arguments_are_put_back(text: str) -> None:
    """The call has all that was written, and is only likely."""
    (call,) = _read(text).calls
    assert (call.name, call.arguments, call.certainty) == ("send", ALL, "likely")
    assert any(one.rule == "return_members" and not one.lossless for one in call.receipts)
    assert "CALL_ENTRY_DROPPED" in [defect.code for defect in _read(text).defects]


@pytest.mark.parametrize(
    "text",
    [
        f"[TOOL_CALLS]send[ARGS]{HEAD}, no more}}",
        f'[TOOL_CALLS]send[ARGS]{HEAD}, {{"note": "x"}}',
        '<tool_call>{"name":"send","arguments":{"to":"bob","amount":5},"urgent":true}</tool_call>',
        '<tool_call>{"name":"send","arguments":{"to":"bob","amount":5},"to":"eve"}</tool_call>',
        '<tool_call>{"name":"send","arguments":{"to":"bob","amount":5},{"note":"x"}}</tool_call>',
        f'<tool_call>{{"name": "send", "arguments": {HEAD}}} note </tool_call>',
        f'<tool_call>{{"name": "send", "arguments": {HEAD}}}</tol_call> and more',
        f"[TOOL_CALLS]send[ARGS]{HEAD}x",
        '<|tool_call>call:send{to:<|"|>bob<|"|>,amount:5} note:<|"|>x<|"|>}<tool_call|>',
        '<|tool_call_start|>[send(to="bob", amount=5)], note="x")]<|tool_call_end|>',
    ],
)
def test_what_is_left_over_makes_a_call_likely(text: str) -> None:
    """It is neither an argument nor dropped in silence."""
    (call,) = _read(text).calls
    assert (call.name, call.certainty) == ("send", "likely")
    assert call.doubt
    assert any(not receipt.lossless for receipt in call.receipts)


@pytest.mark.parametrize(
    "text",
    [
        f"[TOOL_CALLS]send[ARGS]{HEAD}",
        f"[TOOL_CALLS]send[ARGS]{HEAD} Done.",
        f"[TOOL_CALLS]send[ARGS]{HEAD}\n\nDone: it is on its way.",
        f'<tool_call>{{"name": "send", "arguments": {HEAD}}}</tool_call></tool_call>',
        f'<tool_call>{{"name": "send", "arguments": {HEAD}}}</tool_call> Done.',
        (
            f'<tool_call>{{"id": "c1", "type": "function", "name": "send", "arguments": {HEAD}}}'
            "</tool_call>"
        ),
        "<tool_call>{'name': 'send', 'arguments': {'to': 'bob', 'amount': 5}}</tool_call>",
    ],
)
def test_a_call_with_nothing_left_over_is_certain(text: str) -> None:
    """Prose behind it, a closer written twice and another notation leave no doubt."""
    (call,) = _read(text).calls
    assert (call.arguments, call.certainty) == ({"to": "bob", "amount": 5}, "certain")


@pytest.mark.parametrize(
    "text",
    [
        "<function=book><parameter=cabin>economy</par<parameter=dry_run>true</parameter></function>",
        "<function=book><parameter=cabin>economy</parameter></function></parameter>",
        "<function=book><parameter=cabin>economy</parametr>\n</parameter></function>",
        (
            '<function_calls><invoke name="book"><parameter name="cabin">economy'
            '<parameter name="x"></parameter></invoke></function_calls>'
        ),
        (
            "<tool_call>book<arg_key>cabin</arg_key><arg_value>economy</arg_valu>"
            "<arg_key>dry_run</arg_key><arg_value>true</arg_value></tool_call>"
        ),
    ],
)
def test_a_value_that_holds_tags_of_its_call_is_doubtful(text: str) -> None:
    """One of them may be damaged, and then the value swallowed what followed."""
    for call in _read(text).calls:
        assert call.state == "unreadable" or call.certainty == "likely"


@pytest.mark.parametrize(
    "text",
    [
        '{"name":"delete_note","arguments": title}',
        '{"name":"delete_note","arguments": "title"}',
        '{"name":"delete_note","arguments": "请把 foo 设为 bar"}',
        '```json\n{"name":"delete_note","arguments": title}\n```',
        '<tool_call>{"name":"delete_note","arguments": "title"}</tool_call>',
        "Action: delete_note\nAction Input: the title\nObservation:",
        "<tool>delete_note</tool><tool_input>title</tool_input>",
    ],
)
def test_bare_text_is_never_a_certain_value(text: str) -> None:
    """Not even for a tool with one parameter."""
    for call in _read(text).calls:
        assert call.arguments is None or call.certainty == "likely"


def test_the_counter_of_an_id_is_no_part_of_a_name() -> None:
    """Whatever sign stands before it."""
    text = (
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.book!166"
        '<|tool_call_argument_begin|>{"cabin": "x"}<|tool_call_end|><|tool_calls_section_end|>'
    )
    for tools in (TOOLS, None):
        assert read_reply(text, tools=tools, finish_reason="stop").calls[0].name == "book"


CALLS = (
    '<tool_call>{"name": "book", "arguments": {"cabin": "x"}}</tool_call>',
    '[TOOL_CALLS]book[ARGS]{"cabin": "x"}',
    "<function=book><parameter=cabin>x</parameter></function>",
)


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "around",
    [
        *("<example>{}</example>", "User: {}\nAssistant: I cannot.", "« {} »", "„ {} “", "“ {} ”"),
        *("‹ {} ›", "「{}」", "『{}』", "写法是《{}》。"),
    ],
)
def test_a_quoted_call_is_no_call(call: str, around: str) -> None:
    """On one line, in another turn, and with blanks inside the quotation marks."""
    text = around.format(call)
    reading = _read(text)
    assert (reading.calls, reading.content) == ((), text)


@pytest.mark.parametrize(
    "text",
    [
        "before <function=book><parameter=cabin>x</parameter></function> after",
        'Here is the result: {"name": "book", "arguments": {"cabin": "x"}}',
        '[TOOL_CALL] {tool => "book", args => { --cabin "x" }} [/TOOL_CALL]',
        "<ifm|tool_call|>book<ifm|arg|>cabin: x<ifm|/tool_call|>",
        '<｜GCML｜invoke name="book">\n<｜GCML｜parameter name="cabin">x</｜GCML｜parameter>',
        "<funtion=book><parameter=cabin>x</parameter></function>",
        '[TOL_CALLS] [{"name": "book", "arguments": {"cabin": "x"}}]',
    ],
)
def test_what_looks_like_a_call_is_never_lost_in_silence(text: str) -> None:
    """It is read, or a defect says that it was seen."""
    reading = _read(text)
    assert reading.calls or reading.seen or reading.defects


@pytest.mark.parametrize(
    "text",
    [
        "You can use `book` for the cabin: it is quick.",
        'The tool `book` takes "cabin" (a string) and `dry_run`.',
        "def book(cabin: str) -> None: ...",
        (
            '{"name": "book", "description": "Books.", "parameters": {"type": "object", '
            '"properties": {"cabin": {"type": "string"}}}}'
        ),
    ],
)
def test_talk_about_a_tool_is_quiet(text: str) -> None:
    """A name without arguments that are given leaves nothing."""
    reading = _read(text)
    assert (reading.calls, reading.seen, reading.defects) == ((), (), ())


@pytest.mark.parametrize(
    "text",
    [
        'T[OOL_CALLS] [{"name": "send", "arguments": {"to": "bob", "amount": 5}}]',
        '>>send\n{"to": "bob", "amount": 5}',
        '``json\n{"name": "send", "arguments": {"to": "bob", "amount": 5}}\n```',
        "```tol_code\nsend(to='bob', amount=5)\n```",
        "/code>\nsend(to='bob', amount=5)\n</code>",
        "Calll: send(to='bob', amount=5)<bot_end>",
        "<>send(to='bob', amount=5)",
        '{"name": "send", "arguments": {"to": "bob", "amount": 5}}x',
        "<|tool_call>call:sendto:bob,amount:5}<tool_call|>",
        "<tool_cal>lsend<arg_key>to</arg_key><arg_value>bob</arg_value></tool_call>",
        '[TOOL_CALLS]send[ARGS]o": "bob", "amount": 5}',
    ],
)
def test_a_call_that_cannot_be_read_leaves_a_defect(text: str) -> None:
    """One slip in its markup makes it text, which is never left without a word."""
    reading = _read(text)
    assert reading.calls == ()
    assert "CALL_IN_TEXT_NOT_READ" in {defect.code for defect in reading.defects}


def test_a_call_with_several_slips_in_its_json_is_likely_at_most() -> None:
    """A quote, a bracket and the end: each slip may have taken something with it."""
    text = '{"name": "send", "to": "bob, "amount": 5, "note": [}'
    (call,) = _read(text).calls
    assert call.arguments == {"to": "bob", "amount": 5, "note": []}
    assert (call.state, call.certainty) == ("whole", "likely")
    assert read_reply(text, tools=TOOLS).calls[0].state == "cut"


@pytest.mark.parametrize(
    "left",
    [
        'a<ntml:invoke name="book"><parameter name="cabin">x</parameter></invoke>',
        '<tool_call>\n{}"name": "book", "arguments": {"cabin": "x"}}\n</tool_call>',
        '{"cabin": "x"}</function>',
    ],
)
def test_a_call_left_beside_others_leaves_a_defect(left: str) -> None:
    """A message that calls in markup speaks of no other calls."""
    call = f'<tool_call>{{"name": "send", "arguments": {HEAD}}}</tool_call>'
    reading = _read(f"{call}\n{left}")
    assert [call.name for call in reading.calls] == ["send"]
    assert "CALL_IN_TEXT_NOT_READ" in {defect.code for defect in reading.defects}


def test_an_extra_bracket_behind_flat_arguments_is_doubtful() -> None:
    """It may have closed what held them, and more."""
    (call,) = _read('{"name": "send", "to": "bob", "amount": 5}}').calls
    assert (call.certainty, call.state) == ("likely", "whole")


def test_the_rest_of_a_number_behind_the_arguments_is_doubtful() -> None:
    """The bracket before it may have moved up."""
    for char in ("", "}"):
        text = f'[TOOL_CALLS]send[ARGS]{{"to": "bob", "amount": 5}}{char}.2'
        calls = _read(text).calls
        assert all(call.certainty == "likely" or call.arguments is None for call in calls)


@pytest.mark.parametrize("value", ["economy<", ">economy"])
def test_half_a_bracket_at_the_edge_of_a_value_is_doubtful(value: str) -> None:
    """It may be the rest of a tag."""
    text = f"<tool_call><function=book><parameter=cabin>{value}</parameter></function></tool_call>"
    (call,) = _read(text).calls
    assert (call.arguments, call.certainty) == ({"cabin": value}, "likely")


def test_a_broken_entry_of_an_array_of_keyed_calls_is_refused() -> None:
    """It is told beside the calls around it, and its members are not dropped."""
    text = (
        '<|tools_prefix|>[{"book": {"cabin": "a"}, "dry_run": true}, '
        '{"book": {"cabin": "b"}}]<|tools_suffix|>'
    )
    first, second = _read(text).calls
    assert (first.state, first.arguments) == ("unreadable", None)
    assert (second.arguments, second.certainty) == ({"cabin": "b"}, "certain")


def test_half_a_character_makes_the_calls_of_a_stream_likely() -> None:
    """A pair whose halves come in two pieces is whole; a half alone is shown as a mark."""
    texts = {"\ud83d\ude00": ("\U0001f600", "certain"), "a\ud83d": ("a\ufffd", "likely")}
    for written, expected in texts.items():
        reader = ReplyReader(TOOLS)
        for char in f"<function=book><parameter=cabin>{written}</parameter></function>":
            reader.feed(char)
        (call,) = reader.close("stop").calls
        assert ((call.arguments or {})["cabin"], call.certainty) == expected
