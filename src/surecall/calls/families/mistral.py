"""Mistral: `[TOOL_CALLS]` with a JSON array, or with a name, perhaps an id, and arguments."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from surecall.base.records import Receipt
from surecall.calls.formats import CallFormat, Found, TextCall, add_receipts
from surecall.calls.json_block import close_block, read_block, read_payload, receipt
from surecall.calls.names import ToolNames
from surecall.calls.source import Source

_OPENER: Final = "[TOOL_CALLS"
_ARGS: Final = "[ARGS"
_CALL_ID: Final = "[CALL_ID]"
_CUT_TOKENS: Final = (_CALL_ID, _ARGS + "]")
_CLOSER: Final = "[/TOOL_CALLS]"
_RESULTS: Final = ("[TOOL_RESULTS]",)
_STOPS: Final = ("[TOOL_CALLS]", _CLOSER, *_RESULTS, "</s>")


class MistralCalls(CallFormat):
    """The array form of the older tokenizers and the compact form of the newer ones."""

    name = "mistral"
    trims = False
    literals = (_OPENER,)

    def read(self, source: Source, at: int) -> Found | None:
        """Read the array, or one call of the compact form."""
        here, start, notes = at, at, list[Receipt]()
        while source.starts(_OPENER, here):
            start, notes = _skip_token(source, here, _OPENER)
            here = source.skip_space(start)
        if source.at_end(here):
            return Found(end=here)
        if source.char(here) in ("[", "{") and not source.starts(_ARGS, here):
            return _read_json(source, here, notes)
        name, end = source.read_name(here)
        if source.at_end(end) and start < here and not _begins_name(source.tools, name):
            return None  # prose that names the token; a name follows it directly
        return _read_compact(source, here, notes)


class MistralStripped(CallFormat):
    """The compact form of a server that drops the first token: `name[ARGS]{...}`."""

    name = "mistral"
    line_start = True

    def openers(self, tools: ToolNames) -> Sequence[str]:
        """Return the name of each tool with the token that follows it."""
        return tuple(name + _ARGS for name in tools.names)

    def read(self, source: Source, at: int) -> Found | None:
        """Read one call."""
        why = "the name of a tool and its [ARGS] are there"
        lost = receipt("missing_opener", "", "[TOOL_CALLS]", why)
        found = _read_compact(source, at, [lost])
        return None if found is None else replace(found, grade="damaged")


def _begins_name(tools: ToolNames, text: str) -> bool:
    return any(name.startswith(text) for name in tools.names)


def _skip_token(source: Source, at: int, token: str) -> tuple[int, list[Receipt]]:
    """Return what follows a token that may have lost its bracket."""
    here = at + len(token)
    if source.starts("]", here):
        return here + 1, []
    return here, [receipt("missing_bracket", token, token + "]", "the rest of the token is there")]


def _read_json(source: Source, at: int, notes: list[Receipt]) -> Found | None:
    block = read_block(source, at, _STOPS)
    if block is None:
        return None
    return _found(source, block.end, add_receipts(block.calls, *notes), is_cut=block.cut)


def _read_compact(source: Source, at: int, notes: list[Receipt]) -> Found | None:
    name, here = source.read_name(at)
    if source.at_end(here):
        return Found(end=here)
    here = source.skip_space(here)
    call_id = None
    if source.starts(_CALL_ID, here):
        call_id, here = source.read_name(source.skip_space(here + len(_CALL_ID)))
        here = source.skip_space(here)
    if source.starts(_ARGS, here):
        here, more = _skip_token(source, here, _ARGS)
        here, notes = source.skip_space(here), [*notes, *more]
    elif not name or not (
        source.at_end(here) or source.begun_at_end(_CUT_TOKENS, here) or source.char(here) == "{"
    ):
        return None
    if source.at_end(here) or source.begun_at_end(_CUT_TOKENS, here):
        call = TextCall(name=name, arguments="", id=call_id, state="cut")
        return Found(end=len(source.text), calls=add_receipts((call,), *notes))
    payload = read_payload(source, here, _STOPS)
    if payload is None:
        return None
    call = TextCall(name=name, arguments=payload.text, id=call_id, state=payload.state)
    return _found(source, payload.end, add_receipts((call,), *notes), is_cut=payload.state == "cut")


def _found(source: Source, end: int, calls: tuple[TextCall, ...], *, is_cut: bool) -> Found:
    if is_cut:
        return Found(end=end, calls=calls)
    end, _ = close_block(source, end, (_CLOSER,))
    result = source.starts_any(_RESULTS, source.skip_space(end))
    return Found(end=end, calls=calls, ends_message=bool(result and calls))
