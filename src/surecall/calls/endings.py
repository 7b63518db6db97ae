"""Tokens that end a turn, and what may stand between a bare call and the end of the message."""

from typing import Final

from msgspec import structs

from surecall.base.records import Receipt, clip

from .formats import TextCall, add_receipts
from .shapes import FLAT_ARGUMENTS
from .source import Source

RESIDUE: Final = frozenset((
    "</longcat_s>", "<SPECIAL_11>Assistant", "<SPECIAL_11>User", "<SPECIAL_12>", "</s>",
    "<end_code>", "<end_of_sentence>", "<end_of_turn>", "<eop>", "<eos>", "<seed:eos>", "<turn|>",
    "<|END_OF_TURN_TOKEN|>", "<|END_RESPONSE|>", "<|END_TEXT|>", "<|START_RESPONSE|>",
    "<|START_TEXT|>", "<|begin_of_text|>", "<|call|>", "<|close|>message<|sep|>",
    "<|content_model_end_sampling|>", "<|end_message|>", "<|end_of_msg|>", "<|end_of_text|>",
    "<|endoftext|>", "<|end|>", "<|eom_id|>", "<|eom|>", "<|eos|>", "<|eot_id|>", "<|eot|>",
    "<|im_end|>", "<|im_start|>assistant", "<|message_sep|>", "<|observation|>", "<|return|>",
    "<|role_sep|>", "<|start_header_id|>assistant<|end_header_id|>", "<|start|>assistant",
    "<|stop|>", "<|tool_response>", "<|turn>model", "<|user|>", "<｜Assistant｜>",
    "<｜end▁of▁sentence｜>", "<｜hy_eos:opensource｜>", "<｜hy_eos｜>", "[EOS]",
    "[END FINAL RESPONSE]", "[EOT]", "[e~[",
))  # fmt: skip
"""Stripped where only more of them and white space stand between them and an end of the text."""

_LEFTOVERS: Final = (";", "}", "]")


def skip_residue(source: Source, at: int) -> int:
    """Return where white space and tokens that end a turn are over."""
    at = source.skip_space(at)
    while literal := source.starts_any(RESIDUE, at):
        at = source.skip_space(at + len(literal))
    return at


def note_missing(calls: tuple[TextCall, ...], closer: str) -> tuple[TextCall, ...]:
    """Return whole calls with a receipt that says that their closer was missing."""
    receipt = Receipt("add_closer", "text", "", closer, why="the closer was missing")
    return tuple(
        structs.replace(call, receipts=(*call.receipts, receipt)) if call.state == "whole" else call
        for call in calls
    )


def skip_to_end(source: Source, at: int, also: str = "") -> int | None:
    """Return the end of the text when nothing that matters follows, else `None`.

    Args:
        source: The text.
        at: Where to look from.
        also: Characters that do not matter either.
    """
    at = source.skip_space(at)
    while not source.at_end(at) and source.text[at] in also:
        at = source.skip_space(at + 1)
    at = skip_residue(source, at)
    return at if source.at_end(at) else None


def skip_leftovers(source: Source, at: int) -> int:
    """Return where semicolons and brackets that nothing opened are over, behind JSON."""
    here = source.skip_space(at)
    while source.char(here) in _LEFTOVERS:
        at = here + 1
        here = source.skip_space(at)
    return at


def note_leftovers(
    calls: tuple[TextCall, ...], written: str, leftovers: str
) -> tuple[TextCall, ...]:
    """Return calls with a receipt for the brackets behind them that nothing opened, if any.

    Where another one of their kind closed something before, that one may be the one too many, and
    where nothing is nested, what should have been may be lost.
    """
    if not leftovers:
        return calls
    inner = written.rstrip("}] \t\r\n")
    run = "".join(written[len(inner) :].split())
    is_last = len(run) > 1 and all(bracket not in inner for bracket in "}]" if bracket in leftovers)
    is_flat = any(one.rule == FLAT_ARGUMENTS for call in calls for one in call.receipts)
    is_lossless = is_last and not is_flat
    why = "nothing opened them"
    note = Receipt(
        "drop_extra_brackets", "text", clip(leftovers), "", lossless=is_lossless, why=why
    )
    return add_receipts(calls, note)
