"""Mistral: damage, ids, results, and what is no call."""

import pytest

from support.format_cases import FormatCase, check_accepted, check_cut, check_refused
from support.read_text import check_splits
from surecall.calls.families.named_json import MISTRAL, MISTRAL_STRIPPED

FORMATS = (MISTRAL, MISTRAL_STRIPPED)
PING = '{"name": "ping", "arguments": {}}'

ACCEPTED = (
    FormatCase("array without a space", f"[TOOL_CALLS][{PING}]", (("ping", {}),)),
    FormatCase(
        "text after the array", f"Hi[TOOL_CALLS] [{PING}]\nok", (("ping", {}),), content="Hi\nok"
    ),
    FormatCase("no token before the arguments", "[TOOL_CALLS]ping{}", (("ping", "{}"),)),
    FormatCase(
        "opener without a bracket",
        "[TOOL_CALLSping[ARGS]{}",
        (("ping", "{}"),),
        ("missing_bracket",),
    ),
    FormatCase(
        "arguments without a bracket",
        "[TOOL_CALLS]ping[ARGS{}",
        (("ping", "{}"),),
        ("missing_bracket",),
    ),
    FormatCase("opener twice", "[TOOL_CALLS][TOOL_CALLS]ping[ARGS]{}", (("ping", "{}"),)),
    FormatCase(
        "opener stripped", "Sure.\nping[ARGS]{}", (("ping", "{}"),), ("missing_opener",), "Sure."
    ),
    FormatCase(
        "closer and a result",
        f"[TOOL_CALLS][{PING}][/TOOL_CALLS][TOOL_RESULTS]4[/TOOL_RESULTS] It is 4.",
        (("ping", {}),),
    ),
    FormatCase("a wrapper object", f'[TOOL_CALLS]{{"tool_calls": [{PING}]}}', (("ping", {}),)),
    FormatCase("no name", "[TOOL_CALLS][ARGS]{}", (("", "{}"),)),
)


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
def test_calls_are_read_with_a_receipt_for_damage(case: FormatCase) -> None:
    """Each form of the family is read."""
    check_accepted(case, FORMATS)


@pytest.mark.parametrize(
    "text",
    [
        "[TOOL_CALLS] not JSON at all",
        "The [TOOL_CALLS] token",
        "Write [TOOL_CALLS] and then [ARGS] please.",
        "unping[ARGS]{}",
        "Then ping[ARGS]{} follows.",
        "[TOOL_CALLS]ping[ARGS] nothing",
    ],
)
def test_prose_about_the_tokens_is_shown(text: str) -> None:
    """Tokens that no call follows are text, and so is a name inside a word."""
    check_refused(text, FORMATS)


@pytest.mark.parametrize(
    "text",
    [
        "[TOOL_CALLS]dim_lamp[AR",
        "[TOOL_CALLS]dim_lamp[ARGS]",
        '[TOOL_CALLS]dim_lamp[ARGS]{"room": "ha',
        "[TOOL_CALLS]dim_lamp[CALL_ID]abc",
        '[TOOL_CALLS] [{"name": "dim_lamp", "arguments": {"room',
    ],
)
def test_a_call_that_ends_too_soon_is_cut(text: str) -> None:
    """A call without its end is reported, and never as whole."""
    check_cut(text, "dim_lamp", FORMATS)


@pytest.mark.parametrize("text", ["[TOOL_CALLS]", "[TOOL_CALLS]dim_l", "[TOOL_CALLS] ["])
def test_what_is_cut_before_the_name_is_dropped(text: str) -> None:
    """Without a complete name there is no call, and nothing of it is shown."""
    found = check_splits("Wait." + text, FORMATS)
    assert (found.content, found.calls) == ("Wait.", [])


def test_ids_are_kept() -> None:
    """The nine characters after the id token are the id of the call."""
    text = '[TOOL_CALLS]ping[CALL_ID]abc123XYZ[ARGS]{}[TOOL_CALLS][{"name": "ping", "id": "b"}]'
    assert [call.id for call in check_splits(text, FORMATS).calls] == ["abc123XYZ", "b"]
