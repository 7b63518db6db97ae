"""Muse Glimmer: messages `<|start|>assistant to=R<|message|>` and ATEM blocks of calls."""

import re
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from .base import CallFormat, Found, Thinking
from .invoke import INVOKE_GRAMMAR, read_found
from .names import ToolNames
from .source import Source
from .tags import ends_within, run_end, skip_debris
from .token_json import read_after_token

__all__ = ["AtemBlock", "MuseMessages"]

_START: Final = "<|start|>assistant to="
_MESSAGE: Final = "<|message|>"
_ENDS: Final = ("<|eom|>", "<|eot|>")
_BLOCK: Final = "<atem:function_calls>"
_RECIPIENT: Final = re.compile(r"[^\s<>]{0,128}+")
_BLOCK_END: Final = "</atem:function_calls>"
_USER: Final = Thinking(
    closers=(*_ENDS, _START), kept=frozenset({_START}), ends_at_call=False, shown=True
)
_SELF: Final = Thinking(closers=(*_ENDS, _START), kept=frozenset({_START}), ends_at_call=False)


class MuseMessages(CallFormat):
    """Headers say who a message is for: `self` is reasoning, `user` the answer, else a tool."""

    name = "muse"

    def openers(self, tools: ToolNames) -> Sequence[str]:
        """Return headers; the first one of a reply lacks its beginning."""
        recipients = ("self", "user", *tools.names)
        first = (f"{space}to={who}{_MESSAGE}" for who in recipients for space in ("", " "))
        return (_START, *_ENDS, *first)

    def read(self, source: Source, at: int) -> Found | None:
        """Read a header, and the calls of a message that is for a tool."""
        ended = source.starts_any(_ENDS, at)
        here = source.skip_space(at + len(ended)) if ended else at
        if ended and (source.at_end(here) or not source.starts(_START, here)):
            return None
        if source.starts(_START, here):
            begin = here + len(_START)
        else:
            begin = source.skip_space(here) + len("to=")
        end = run_end(source, _RECIPIENT, begin)
        recipient = source.text[begin:end]
        if not recipient or not source.starts(_MESSAGE, end):
            return Found(end=len(source.text)) if ends_within(source, _MESSAGE, end) else None
        end += len(_MESSAGE)
        if recipient == "self":
            return Found(end=end, opens=_SELF)
        body = source.skip_space(end)
        opens = _USER if recipient == "user" else None
        if not source.starts(_BLOCK, body):
            if ends_within(source, _BLOCK, body):
                return Found(end=len(source.text))
            return Found(end=end, opens=opens)
        found = _read_block(source, body, alone=recipient == "user")
        return Found(end=end, opens=opens) if found is None else found


class AtemBlock(CallFormat):
    """A block of calls whose header is missing; nothing may follow it."""

    name = "muse"
    line_start = True
    literals = (_BLOCK,)

    def read(self, source: Source, at: int) -> Found | None:
        """Read a block that ends its message."""
        return _read_block(source, at, alone=True)


def _read_block(source: Source, at: int, *, alone: bool) -> Found | None:
    """Read a block; one that is not for a tool must be all of its message."""
    begin = at + len(_BLOCK)
    here = skip_debris(source, begin)
    if source.at_end(here):
        return Found(end=here)
    if source.char(here) in ("{", "["):  # what a grammar forces on the model
        found = read_after_token(source, here, _BLOCK, (_BLOCK_END,), closes=True)
        return found if found is None or not alone else _alone(source, found)
    head = INVOKE_GRAMMAR.tag(source, here)
    if head is None and INVOKE_GRAMMAR.is_begun(source, here):
        return Found(end=len(source.text))
    if head is None or head.kind != "open_call":
        return None
    if alone and source.tools.resolve(head.label) is None:
        return None
    found = read_found(source, INVOKE_GRAMMAR, begin, padding="none", marked=not alone)
    return found if found is None or not alone else _alone(source, found)


def _alone(source: Source, found: Found) -> Found | None:
    """Return what was found, as damaged, when nothing but the end of its message follows."""
    after = source.skip_space(found.end)
    ends = found.ends_message or source.at_end(after)
    if ends or source.starts_any((*_ENDS, _BLOCK), after):
        return replace(found, grade="damaged")
    return None
