"""MiniMax-M3: a token before each tag, values as nested tags."""

import pytest

from support.format_cases import FormatCase, check_accepted, check_cut, check_refused
from support.read_text import read
from surecall.base.records import ToolSpec
from surecall.calls.families.nested_tags import MINIMAX_M3

FORMATS = (MINIMAX_M3,)
T = "]<]minimax[>["
HALL = ("dim_lamp", {"room": "hall"})


def _call(body: str, name: str = "dim_lamp") -> str:
    return f'{T}<tool_call>{T}<invoke name="{name}">{body}{T}</invoke>{T}</tool_call>'


ROOM = f"{T}<room>hall{T}</room>"

ACCEPTED = (
    FormatCase("text_before", f"On it.\n{_call(ROOM)}", (HALL,), content="On it."),
    FormatCase("no_arguments", _call("", "ping"), (("ping", {}),)),
    FormatCase(
        "typed_by_schema",
        _call(f"{T}<room>7{T}</room>{T}<level>7{T}</level>{T}<fade>true{T}</fade>"),
        (("dim_lamp", {"room": "7", "level": 7, "fade": True}),),
    ),
    FormatCase(
        "items",
        _call(f"{T}<tags>{T}<item>1{T}</item>{T}<item>b{T}</item>{T}</tags>", "save_note"),
        (("save_note", {"tags": ["1", "b"]}),),
    ),
    FormatCase(
        "no_items", _call(f"{T}<tags>{T}</tags>", "save_note"), (("save_note", {"tags": []}),)
    ),
    FormatCase(
        "objects_without_a_schema",
        _call(f"{T}<to>{T}<x>1{T}</x>{T}<y>{T}<z>b{T}</z>{T}</y>{T}</to>", "fly"),
        (("fly", {"to": {"x": 1, "y": {"z": "b"}}}),),
    ),
    FormatCase(
        "tags_in_a_value",
        _call(f"{T}<room></room> <b>{T}</room>"),
        (("dim_lamp", {"room": "</room> <b>"}),),
    ),
    FormatCase(
        "space_after_the_token", _call(ROOM).replace(T, T + "\n"), (("dim_lamp", {"room": "hall"}),)
    ),
    FormatCase(
        "closing_token_missing",
        _call(f"{T}<room>hall</room>{T}<level>3{T}</level>"),
        (("dim_lamp", {"room": "hall", "level": 3}),),
        ("missing_token",),
    ),
    FormatCase(
        "inner_tokens_missing",
        _call("<room>hall</room>\n<level>3</level>"),
        (("dim_lamp", {"room": "hall", "level": 3}),),
        ("missing_token",),
    ),
    FormatCase(
        "wrong_closing_tag",
        _call(f"{T}<room>hall{T}</level>"),
        (HALL,),
        ("wrong_closing_tag",),
    ),
    FormatCase("outer_tag_left_open", _call(ROOM).removesuffix(f"{T}</tool_call>"), (HALL,)),
    FormatCase(
        "outer_tag_missing",
        _call(ROOM).removesuffix(f"{T}</tool_call>").removeprefix(f"{T}<tool_call>"),
        (HALL,),
    ),
)


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
def test_calls_are_read_in_every_split(case: FormatCase) -> None:
    """What the damage can only mean is read, and noted."""
    check_accepted(case, FORMATS)


@pytest.mark.parametrize("rest", ["", f"{T}<room>ha", ROOM, f"{ROOM}{T}</inv", f"{ROOM}]<]mini"])
def test_a_call_without_its_end_is_cut(rest: str) -> None:
    """Values that may lack something do not run."""
    check_cut(f'{T}<tool_call>{T}<invoke name="dim_lamp">{rest}', "dim_lamp", FORMATS)


@pytest.mark.parametrize("text", [f"The token {T} comes first.", f"`{_call(ROOM)}`", "a]<]b"])
def test_text_that_only_looks_like_a_call_stays_text(text: str) -> None:
    """Prose and documentation are shown as they are."""
    check_refused(text, FORMATS)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"{T}<room>hall", id="value_left_open"),
        pytest.param(f"stray {ROOM}", id="stray_text"),
        pytest.param(f"{T}<a>" * 40 + f"{T}</a>" * 40, id="too_deep"),
    ],
)
def test_what_cannot_be_read_is_left_for_the_check_to_refuse(body: str) -> None:
    """A tree that is not well formed becomes no arguments."""
    (call,) = read(_call(body), FORMATS).calls
    assert isinstance(call.arguments, str)


def test_schemas_type_values_at_every_depth() -> None:
    """The schema of a part types the text of that part."""
    inner = {"type": "object", "properties": {"code": {"type": "string"}}}
    schema = {"type": "object", "properties": {"rows": {"type": "array", "items": inner}}}
    tool = ToolSpec(name="fill", parameters=schema)
    body = f"{T}<rows>{T}<item>{T}<code>007{T}</code>{T}</item>{T}</rows>"
    (call,) = read(_call(body, "fill"), FORMATS, [tool]).calls
    assert call.arguments == {"rows": [{"code": "007"}]}
