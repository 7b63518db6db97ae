"""gpt-oss harmony after a server took its tokens out: `analysis...assistantfinal...`."""

from typing import Final

from surecall.records import Receipt, clip

from .base import CallFormat, Found, TextCall
from .source import Source

__all__ = ["StrippedHarmony", "StrippedHarmonyStart"]

_ANALYSIS: Final = "analysis"
_ROLE: Final = "assistant"
_RECIPIENT: Final = "to=functions."
_CALL: Final = f"commentary {_RECIPIENT}"
_ANSWER: Final = "assistantfinal"


class StrippedHarmony(CallFormat):
    """A call behind what is left of its header, in the middle of a text."""

    name = "harmony"
    literals = (f"{_ROLE}commentary",)

    def read(self, source: Source, at: int) -> Found | None:
        """Read one call; its name must be known."""
        call = at + len(_ROLE)
        return _read_call(source, call) if source.starts(_CALL, call) else None


class StrippedHarmonyStart(CallFormat):
    """Reasoning at the start of a text, up to the first call or the answer."""

    name = "harmony"
    line_start = True
    literals = (_ANALYSIS, "commentary", _RECIPIENT)

    def read(self, source: Source, at: int) -> Found | None:
        """Read reasoning when the word for it is glued to it and a later header proves it."""
        if source.starts(_RECIPIENT, at):
            return _read_call(source, at, _RECIPIENT)
        if not source.starts(_ANALYSIS, at):
            return _read_call(source, at) if source.starts(_CALL, at) else None
        begun = at + len(_ANALYSIS)
        first = source.char(begun)
        if not (first.isalnum() or first in ('"', "*", "<", "{", "(")):
            return None
        # A second start without a header between them proves that the word is no header.
        stop, word = source.find_any((_ANSWER, _ROLE + _CALL, f"\n{_ANALYSIS}"), begun)
        if stop < 0 or word[0] == "\n":
            return None
        reasoning = source.text[begun:stop]
        if word == _ANSWER:
            return Found(end=stop + len(word), reasoning=reasoning, grade="damaged")
        found = _read_call(source, stop + len(_ROLE))
        if found is None:
            return None
        return Found(end=found.end, calls=found.calls, reasoning=reasoning, grade="damaged")


def _read_call(source: Source, at: int, head: str = _CALL) -> Found | None:
    name, end = source.read_name(at + len(head))
    here = source.skip_space(end)
    if source.at_end(here):
        return None
    for word in ("commentary", "json"):
        if source.starts(word, here):
            here = source.skip_space(here + len(word))
    if not name or source.char(here) != "{" or source.tools.resolve(name) is None:
        return None
    receipt = Receipt(
        "restore_header",
        "text",
        clip(source.text[at:here]),
        name,
        why="the tokens of the header were missing",
    )
    stop = source.value_end(here)
    if stop is None:
        call = TextCall(name=name, arguments=source.text[here:], state="cut", receipts=(receipt,))
        return Found(end=len(source.text), calls=(call,), grade="damaged")
    call = TextCall(name=name, arguments=source.text[here:stop], receipts=(receipt,))
    after = source.skip_space(stop)
    if not source.at_end(after) and source.starts(_ANSWER, after):
        stop = after + len(_ANSWER)
    return Found(end=stop, calls=(call,), grade="damaged")
