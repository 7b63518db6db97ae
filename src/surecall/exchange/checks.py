"""What calls and text have to meet to be delivered as they came."""

import re
from typing import Final

from surecall.base.records import RawCall, Reply
from surecall.calls import FORMATS, ToolNames, finds_opener
from surecall.reading import ReadingLimits
from surecall.text import decode_plain, encode
from surecall.wire.rewriting import Clean
from surecall.wire.substitutes import UNREADABLE_KEY

from .request import FREE, ClientRequest
from .signatures import has_own_id
from .thoughts import begins_thought

_CALL_SIGNS: Final = re.compile("[{<\\[(:：`~✿◁>\n]")
"""A call in text has one of these, whatever its format."""


def may_hold_call(text: str, names: ToolNames) -> bool:
    """Tell whether text has anything that a call in text begins with."""
    return _CALL_SIGNS.search(text) is not None and finds_opener(text, names, FORMATS)


class Checks:
    """What the calls and the text of a reply have to meet."""

    __slots__ = (
        "_body",
        "_choice",
        "_has_history",
        "_has_ids",
        "_limits",
        "_looks_in_text",
        "_names",
        "_room_bytes",
        "_takes_strays",
        "_used",
        "calls",
        "is_legacy",
        "is_named",
    )

    def __init__(
        self,
        request: ClientRequest,
        limits: ReadingLimits,
        looks_in_text: bool,
        takes_strays: bool,
    ) -> None:
        self._names = request.tools.names
        self._choice = None if request.choice is FREE else request.choice
        self._body = request.body
        self._has_history = request.has_calls
        self._has_ids = request.protocol.traits.has_call_ids
        self.is_legacy = request.is_legacy
        self.is_named = request.choice.only_tool is not None
        self._limits = limits
        self._looks_in_text = looks_in_text
        self._takes_strays = takes_strays
        self._room_bytes = limits.max_total_arguments_bytes
        self._used: set[str] = set()
        self.calls = 0

    def takes_call(self, call_id: str, name: str, arguments: str | bytes) -> bool:
        """Tell whether a call can be used as it is."""
        if not call_id or call_id in self._used or call_id.strip() != call_id:
            return False
        self._used.add(call_id)
        # An id that the conversation has already may be that of an earlier call.
        is_new = not self._has_history or call_id.encode() not in self._body
        return is_new and self.takes_unnamed(name, arguments)

    def takes_raw(self, call: RawCall) -> bool:
        """Tell the same of a call as its format found it."""
        call_id, name, arguments = call.id, call.name, call.arguments
        if call.extra or call.beside or call.receipts or name.__class__ is not str:
            return False
        if arguments.__class__ is dict:
            arguments = encode(arguments)
        elif arguments.__class__ is not str:
            return False
        if call_id is None and (self.is_legacy or not self._has_ids):
            return self.takes_unnamed(name, arguments)
        return isinstance(call_id, str) and self.takes_call(call_id, name, arguments)

    def takes_unnamed(self, name: str, arguments: str | bytes) -> bool:
        """Tell the same of a call in a format that has no ids."""
        self.calls += 1
        size = len(arguments)
        if isinstance(arguments, str) and not arguments.isascii():
            size = len(arguments.encode())
        self._room_bytes -= size
        if self._room_bytes < 0 or size > self._limits.max_arguments_bytes:
            return False
        value = decode_plain(arguments)
        if value.__class__ is not dict or (len(value) == 1 and UNREADABLE_KEY in value):
            return False
        names = self._names
        if not names.names:
            return True
        if name not in names:
            return False
        if self._choice is not None and not self._choice.takes(name):
            return False
        checker = names.checker_of(name)
        return (
            checker is None
            or checker.is_exact(value)
            or (self._takes_strays and checker.is_valid(value))
        )

    def has_own_id(self, call_id: str, name: str) -> bool:
        """Tell whether a call has an id that calls of other conversations do not have."""
        return has_own_id(call_id, name)

    def takes_words(self, text: str | None) -> bool:
        """Tell whether text beside calls surely does not begin with reasoning in tags."""
        return not (text and self._looks_in_text and begins_thought(text))

    def takes_text(self, text: str) -> bool:
        """Tell whether text, which came without calls, says something and is surely no call."""
        if not text or text.isspace():
            return False
        if self._choice is not None and self._choice.wanted == "call":
            return False
        return not (self._looks_in_text and may_hold_call(text, self._names))


def takes_calls(
    request: ClientRequest, reply: Reply, limits: ReadingLimits, *, one_call: bool
) -> bool:
    """Tell whether a reply in the client's format surely has calls to be used as they are."""
    calls = reply.calls
    if reply.defects or reply.malformed or reply.receipts or not calls:
        return False
    if not request.offers_tools or (one_call and len(calls) > 1):
        return False
    checks = Checks(request, limits, looks_in_text=True, takes_strays=False)
    return checks.takes_words(reply.content) and all(map(checks.takes_raw, calls))


def read_clean(
    request: ClientRequest,
    body: bytes,
    limits: ReadingLimits = ReadingLimits(),  # noqa: B008 - frozen
    *,
    text_formats: bool = True,
    takes_strays: bool = False,
) -> Clean | None:
    """Return what a whole reply in the client's format has, or `None` if it is not surely clean.

    Args:
        request: What the client asked.
        body: The reply.
        limits: How large arguments may be.
        text_formats: Whether text is looked through for calls.
        takes_strays: Whether arguments may have keys that their schema is silent about, and that
            may mean others.
    """
    looks = text_formats and request.offers_tools and not request.demands_form
    checks = Checks(request, limits, looks, takes_strays)
    try:
        return request.protocol.read_clean(body, checks)
    except (ValueError, RecursionError):  # of msgspec and of text that is not UTF-8
        return None
