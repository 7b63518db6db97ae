"""Faults as data, and how they are declared.

A fault is declared by the function that makes it; the name of the function and its docstring are
the name of the fault and what it does:

    @SHAPE.on_calls(seen="most models, sometimes")
    def content_beside_calls(reply: PlannedReply, _: Occasion) -> PlannedReply:
        '''Says something for people next to the call.'''
        return reply.with_message(content="Let me do that for you.")

Faults that differ in a value only are added by name.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, Literal, get_args

from msgspec import Struct

from surecall.base.errors import Code
from surecall.base.records import ModelRequest
from surecall.faults.answers import Answer
from surecall.faults.replies import Occasion, PlannedReply
from surecall.text import decode, encode_text
from surecall.wire import PROTOCOLS

FaultGroup = Literal[
    "shape",
    "arguments",
    "ids",
    "multi_call",
    "empty_final",
    "size",
    "text_format",
    "reasoning",
    "tool_choice",
    "transport",
    "stream",
    "body",
    "capability",
]
"""Which part of an exchange a fault is about."""
GROUPS: tuple[FaultGroup, ...] = get_args(FaultGroup)
"""The groups that faults are listed in."""

CHAT_ONLY: Final = ("chat_completions",)

READS_TEXT: Final[dict[str, Any]] = {
    "needs": "text_formats = auto",
    "options": {"text_formats": "auto"},
}
ENFORCED: Final[dict[str, Any]] = {
    "needs": "tool_use_mode = enforced",
    "options": {"tool_use_mode": "enforced"},
}
ONE_CALL: Final[dict[str, Any]] = {
    "needs": "parallel_tool_calls = false",
    "options": {"request_overrides": {"parallel_tool_calls": False}},
}

Reach = Literal["both", "whole", "stream"]
"""Which answers a fault can touch."""

RequestView = Callable[[ModelRequest], ModelRequest]
ReplyEdit = Callable[[PlannedReply, Occasion], PlannedReply]
ChunksEdit = Callable[[list[Any], Occasion], list[Any]]
WireEdit = Callable[[Answer, Occasion], Answer]


class Fault(Struct, frozen=True, kw_only=True):
    """One way of going wrong: its effect, where it is seen, and the outcome that is due.

    A fault acts at one or more of four places: how the request is seen, the message, the chunks of
    a streamed chat completion, and the answer on the wire.
    """

    name: str
    group: FaultGroup
    does: str
    """One sentence."""
    seen: str
    """Where it is met, or what is known of it."""
    code: Code | None = None
    """The code a run ends with; a run that keeps meeting a refusal may end without one, with the
    note that the call was not executed."""
    refusal: Code | None = None
    """The code the model reads in the result of its call, when that is refused."""
    codes: dict[str, Code] = {}
    """Other codes a run ends with, by wire format, where a format says less or more."""
    reach: Reach = "both"
    protocols: tuple[str, ...] = tuple(PROTOCOLS)
    """The wire formats in which it means something."""
    needs: str = ""
    """The settings that the outcome needs, in words."""
    options: dict[str, Any] = {}
    """The same as options of a run."""
    truth: dict[str, Any] = {}
    """Facts that an honest probe must find about a provider with this fault."""
    every: int = 1
    """Touches each n-th request, beginning with the first."""
    see: RequestView | None = None
    reply: ReplyEdit | None = None
    chunks: ChunksEdit | None = None
    wire: WireEdit | None = None

    @property
    def repairable(self) -> bool:
        """Whether a run still does the right thing when every reply has it."""
        return self.code is None and self.refusal is None

    def touches(self, number: int, *, stream: bool) -> bool:
        """Tell whether the request of this number is answered with the fault."""
        return self.reaches(stream=stream) and (number - 1) % self.every == 0

    def code_in(self, protocol: str) -> Code | None:
        """Return the code that a run over a wire format ends with."""
        return self.codes.get(protocol, self.code)

    def reaches(self, *, stream: bool, protocol: str | None = None) -> bool:
        """Tell whether it can touch such an answer at all, in a wire format or in any."""
        return self.reach in {"both", "stream" if stream else "whole"} and (
            protocol is None or protocol in self.protocols
        )


class FaultTable:
    """The faults of one group, in the order in which they are declared."""

    def __init__(self, group: FaultGroup, **defaults: Any) -> None:
        self._group: FaultGroup = group
        self._defaults = defaults
        self._faults: list[Fault] = []

    def __iter__(self) -> Iterator[Fault]:
        return iter(self._faults)

    def add(self, name: str, does: str, **fields: Any) -> Fault:
        """Add a fault; a call of a tool that is not there is repeated, which ends the run."""
        given = {**self._defaults, **fields}
        if given.get("refusal") == Code.TOOL_NOT_ALLOWED:
            given["code"] = Code.REPEATED_CALL
        fault = Fault(name=name, group=self._group, does=does, **given)
        self._faults.append(fault)
        return fault

    def on_request(self, **fields: Any) -> Callable[[RequestView], Fault]:
        """Declare a fault in how the request is seen."""
        return lambda view: self._declare(view, see=view, **fields)

    def on_reply(self, **fields: Any) -> Callable[[ReplyEdit], Fault]:
        """Declare a fault of any reply."""
        return lambda edit: self._declare(edit, reply=edit, **fields)

    def on_calls(self, **fields: Any) -> Callable[[ReplyEdit], Fault]:
        """Declare a fault of replies that have calls."""
        return lambda edit: self._declare(edit, reply=edit_calls(edit), **fields)

    def on_names(self, **fields: Any) -> Callable[[Callable[[str], str]], Fault]:
        """Declare a fault in the name of every call."""
        return lambda edit: self._declare(edit, reply=edit_function("name", edit), **fields)

    def on_arguments(self, **fields: Any) -> Callable[[Callable[[str], Any]], Fault]:
        """Declare a fault in the arguments of every call, given as their text."""
        return lambda edit: self._declare(edit, reply=edit_arguments(edit), **fields)

    def on_values(self, **fields: Any) -> Callable[[Callable[[dict[str, Any]], Any]], Fault]:
        """Declare a fault in the arguments of every call, given as an object."""
        return lambda edit: self._declare(
            edit, reply=edit_arguments(lambda text: encode_text(edit(decode(text)))), **fields
        )

    def on_chunks(self, **fields: Any) -> Callable[[ChunksEdit], Fault]:
        """Declare a fault in the chunks of a streamed chat completion."""
        return lambda edit: self._declare(edit, chunks=edit, **fields)

    def on_wire(self, **fields: Any) -> Callable[[WireEdit], Fault]:
        """Declare a fault of the answer on the wire."""
        return lambda edit: self._declare(edit, wire=edit, **fields)

    def _declare(self, edit: Any, **fields: Any) -> Fault:
        return self.add(edit.__name__, edit.__doc__ or "", **fields)


def edit_calls(edit: ReplyEdit) -> ReplyEdit:
    """Return an edit of replies that have calls; any other stays as it is."""
    return lambda reply, occasion: edit(reply, occasion) if reply.calls else reply


def edit_function(member: str, edit: Callable[[str], Any]) -> ReplyEdit:
    """Return an edit of one member of the function in every call."""

    def apply(reply: PlannedReply, _: Occasion) -> PlannedReply:
        functions = [call["function"] for call in reply.calls]
        edited = [{**function, member: edit(function[member])} for function in functions]
        return reply.with_calls(
            {**call, "function": function}
            for call, function in zip(reply.calls, edited, strict=True)
        )

    return edit_calls(apply)


def edit_arguments(edit: Callable[[str], Any]) -> ReplyEdit:
    """Return an edit of the arguments of every call, given as their text."""
    return edit_function("arguments", edit)
