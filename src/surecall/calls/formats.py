"""What a family of text formats is: a row with its openers, and a reader for what follows one.

A reader is written as if the whole text were there. It looks at the text only through `Source`,
which raises `NeedMore` whenever the answer could still change with text that has not arrived.
So one reader serves whole texts and streams alike, and every split gives the same reading.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import JSONTextError
from surecall.base.records import CallState, Receipt, clip
from surecall.text import decode_noting

from .names import ToolNames
from .source import Source

Grade = Literal["marked", "damaged", "bare"]
"""How strong the evidence is: `marked` by the format's own markers, `damaged` markers or line
prefixes, or `bare` text. All but `marked` need the name of a tool that exists."""


class Thinking(Struct, frozen=True):
    """Reasoning that is open, or another part of a reply that holds no calls: what ends it."""

    closers: tuple[str, ...]
    kept: frozenset[str] = frozenset()
    """Closers that are not part of the reasoning block but begin what comes next."""
    ends_at_call: bool = True
    """Whether a call ends it too, when no closer follows."""
    shown: bool = False
    """Whether it is no reasoning but text for a person, in which nothing is a call."""
    holds: frozenset[str] = frozenset()
    """Openers of calls that are real inside it, and do not end it."""
    in_words: bool = False
    """Whether plain words open it: only as the beginning of a message, and if a closer follows."""


class TextCall(Struct, frozen=True, kw_only=True):
    """A call found in text, not yet checked against the tools."""

    name: str
    """As it was written."""
    arguments: Any
    """JSON text to be read, or an object whose values are typed already; `None` when absent."""
    id: str | None = None
    state: CallState = "whole"
    """`cut` when the text ended inside the call, `unreadable` when it has two readings: then what
    was written are no arguments, whatever stands in it."""
    unclosed: Any = None
    """The arguments of a cut call, where they are complete and only what closes the call is not
    there: they count if the model came to its own end."""
    may_go_on: bool = False
    """Whether text behind it could change it still: its last value, or a quotation, is open."""
    doubt: str = ""
    """Why the call is only likely, if it is: not all that was written became part of it."""
    receipts: tuple[Receipt, ...] = ()


class Found(Struct, frozen=True, kw_only=True):
    """What a reader made of the text from an opener on."""

    end: int
    """Where the text after it begins."""
    calls: tuple[TextCall, ...] = ()
    content: str = ""
    """Text inside the span that a person should see."""
    reasoning: str = ""
    """Text inside the span that is reasoning."""
    grade: Grade = "marked"
    ends_message: bool = False
    """Whether what follows is made up by the model (an invented result) and is dropped."""
    opens: "Thinking | None" = None
    """Set when the text after `end` is reasoning."""


class CallFormat(Struct, frozen=True, eq=False):
    """One notation of calls: a row for an engine, or for a reader of its own."""

    name: str
    """The name of the family, as shown in `ToolCall.format`."""
    about: str
    """What it is, in one sentence."""
    origin: str
    """Who writes it, and since when."""
    literals: tuple[str, ...] = ()
    """The texts that may begin a call of this family, whatever tools there are."""
    named: tuple[str, ...] = ()
    """More of them, with `{}` for the name of each tool."""
    line_start: bool = False
    """Whether an opener counts only as the first thing on its line."""
    trims: bool = True
    """Whether white space before a call belongs to the format, not to the text."""
    never_json: bool = False
    """Whether an object right behind an opener shows that it is another family's."""
    is_plain: bool = False
    """Whether its tags are names of tools, so that a text may also speak of them."""

    def openers(self, tools: ToolNames) -> Sequence[str]:
        """Return the literal texts that may begin a call of this family."""
        named = (mould.replace("{}", name) for mould in self.named for name in tools.names)
        return (*self.literals, *named)

    def read(self, source: Source, at: int) -> Found | None:
        """Read from the opener at `at`; `None` when it is not a call of this family after all."""
        return None


class OwnFormat(CallFormat, frozen=True, eq=False, kw_only=True):
    """A notation that only its own reader reads."""

    reads: Callable[[Source, int], Found | None]
    """Reads from an opener on."""

    def read(self, source: Source, at: int) -> Found | None:
        """Read from the opener at `at`."""
        return self.reads(source, at)


def as_object(arguments: Any) -> dict[str, Any] | None:
    """Return arguments as an object: one, or the JSON text of one in which no key is repeated."""
    if isinstance(arguments, str) and arguments.lstrip()[:1] == "{":
        try:
            arguments, repeated = decode_noting(arguments)
        except JSONTextError:
            return None
        arguments = None if repeated else arguments
    return cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else None


def text_receipt(
    rule: str, before: str, after: Any, why: str = "", *, lossless: bool = True
) -> Receipt:
    """Return the receipt of something that was read from the text around or in a call."""
    after = clip(after) if isinstance(after, str) else after
    return Receipt(rule, "text", clip(before), after, lossless=lossless, why=why)


def add_receipts(calls: Iterable[TextCall], *receipts: Receipt) -> tuple[TextCall, ...]:
    """Return calls that carry more receipts."""
    if not receipts:
        return tuple(calls)
    return tuple(replace(call, receipts=(*call.receipts, *receipts)) for call in calls)


MAX_CANDIDATES: Final = 256
"""Places in one text that are read as calls."""


class Candidate(Struct, frozen=True, kw_only=True):
    """Calls that a piece of text may stand for."""

    start: int
    end: int
    calls: tuple[TextCall, ...]
    format: str
    names: frozenset[str] = frozenset()
    """Words in it that may be the names of variables."""
    is_marked: bool = False
    """Whether a family read it by its markers."""


class Budget:
    """How much of a text may still be looked at in vain."""

    def __init__(self, characters: int) -> None:
        self._left = characters

    @property
    def is_spent(self) -> bool:
        """Whether nothing more is looked at."""
        return self._left <= 0

    def spend(self, characters: int) -> None:
        """Note what was looked at."""
        self._left -= characters
