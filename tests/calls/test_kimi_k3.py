"""Kimi K3's channels and calls."""

import pytest

from support.format_cases import FormatCase, check_accepted, check_cut
from support.read_text import check_splits
from surecall.calls.families.channels import KIMI_K3

FORMATS = (KIMI_K3,)
CALL = '<|open|>call tool="dim_lamp" index="1"<|sep|>'
ROOM = '<|open|>argument key="room" type="string"<|sep|>hall<|close|>argument<|sep|>'
END = "<|close|>call<|sep|>"
HALL = ("dim_lamp", {"room": "hall"})


def _argument(key: str, kind: str, value: str) -> str:
    return f'<|open|>argument key="{key}" type="{kind}"<|sep|>{value}<|close|>argument<|sep|>'


def _tools(*arguments: str) -> str:
    return f"<|open|>tools<|sep|>{CALL}{''.join(arguments)}{END}<|close|>tools<|sep|>"


ACCEPTED = (
    FormatCase(
        "response_channel",
        f"<|open|>response<|sep|>One moment.<|close|>response<|sep|>{_tools(ROOM)}",
        (HALL,),
        content="One moment.",
    ),
    FormatCase("message_end", f"{_tools(ROOM)}<|close|>message<|sep|><|end_of_msg|>", (HALL,)),
    FormatCase(
        "stated_types",
        _tools(
            _argument("room", "string", "7"),
            _argument("level", "number", "2.5"),
            _argument("fade", "null", "null"),
            _argument("x", "array", "[1, 2]"),
        ),
        (("dim_lamp", {"room": "7", "level": 2.5, "fade": None, "x": [1, 2]}),),
    ),
    FormatCase(
        "escaped_keys",
        _tools(_argument("q&amp;a &quot;b&quot;", "string", "x &amp; y")),
        (("dim_lamp", {'q&a "b"': "x &amp; y"}),),
    ),
    FormatCase(
        "spaces_between_tokens",
        '<|open|> tools <|sep|><|open|> call tool="dim_lamp" index="1" <|sep|>'
        '<|open|> argument key="room" type="string" <|sep|>hall<|close|> argument <|sep|>'
        "<|close|> call <|sep|><|close|> tools <|sep|>",
        (HALL,),
    ),
    FormatCase("stop_after_the_word", _tools(ROOM).removesuffix("<|sep|>"), (HALL,)),
    FormatCase("section_left_open", f"<|open|>tools<|sep|>{CALL}{ROOM}{END}", (HALL,)),
    FormatCase("section_missing", f"{CALL}{ROOM}{END}", (HALL,)),
    FormatCase(
        "closing_marker_in_a_value",
        _tools(_argument("room", "string", "<|close|>argument<|sep|> ends it")),
        (("dim_lamp", {"room": "<|close|>argument<|sep|> ends it"}),),
    ),
    FormatCase(
        "no_json_where_it_is_stated",
        _tools(_argument("room", "object", "hall")),
        (HALL,),
        ("text_for_json",),
    ),
)


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
def test_calls_are_read_in_every_split(case: FormatCase) -> None:
    """Calls, stated types and channels are read wherever a stream is split."""
    check_accepted(case, FORMATS)


def test_the_index_is_kept_as_the_id() -> None:
    """Calls of one message are told apart by their index."""
    text = f'<|open|>tools<|sep|>{CALL}{END}<|open|>call tool="ping" index="2"<|sep|>{END}'
    assert [call.id for call in check_splits(text, FORMATS).calls] == ["1", "2"]


@pytest.mark.parametrize(
    "rest",
    ["", ROOM, "<|open|>arg", '<|open|>argument key="room" type="string"<|sep|>ha', "<|clo"],
)
def test_a_call_without_its_end_is_cut(rest: str) -> None:
    """Values that may lack something do not run."""
    check_cut(f"<|open|>tools<|sep|>{CALL}{rest}", "dim_lamp", FORMATS)


def test_reasoning_with_spaces_in_its_marker_is_reasoning() -> None:
    """Some servers put spaces between special tokens."""
    text = "<|open|> think <|sep|>Hm.<|close|>think<|sep|><|open|>response<|sep|>Yes."
    found = check_splits(text, FORMATS)
    assert (found.reasoning, found.content) == ("Hm.", "Yes.")


def test_other_text_with_the_tokens_stays_text() -> None:
    """A tag nobody knows is shown."""
    text = "Say <|open|>sesame<|sep|> to enter."
    found = check_splits(text, FORMATS)
    assert (found.content, found.calls) == (text, [])
