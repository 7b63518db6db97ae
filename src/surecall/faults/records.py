"""What a fault is, as data."""

from collections.abc import Callable
from typing import Any, Final, Literal, get_args

from msgspec import Struct

from surecall.errors import Code
from surecall.protocols import PROTOCOLS
from surecall.records import ModelRequest

from .answers import Answer
from .drafts import Draft, Occasion

__all__ = ["CHAT_ONLY", "GROUPS", "Fault", "FaultGroup", "Reach"]

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
GROUPS: tuple[FaultGroup, ...] = get_args(FaultGroup)

CHAT_ONLY: Final = ("chat_completions",)

Reach = Literal["both", "whole", "stream"]
"""Which answers a fault can touch."""


class Fault(Struct, frozen=True, kw_only=True):
    """One way of going wrong: what it does, where it is seen, and what must come of it.

    A fault acts at one or more of four places: how the request is seen, the message, the chunks of
    a streamed chat completion, and the answer on the wire.
    """

    name: str
    group: FaultGroup
    does: str
    """One sentence."""
    seen: str
    """Where it is met, or what is known of it."""
    repairable: bool = True
    """Whether a run still does the right thing when every reply has it."""
    code: Code | None = None
    """The code a run ends with, when it is not repairable."""
    told: Code | None = None
    """The code the model reads in the result of its call, when that is refused."""
    codes: dict[str, Code] = {}
    """Other codes a run ends with, by wire format, where a format says less or more."""
    reach: Reach = "both"
    protocols: tuple[str, ...] = tuple(PROTOCOLS)
    """The wire formats in which it means something."""
    needs: str = ""
    """What must be set for the outcome, in words."""
    options: dict[str, Any] = {}
    """The same as options of a run."""
    truth: dict[str, Any] = {}
    """What an honest probe must find out about a provider with this fault."""
    every: int = 1
    """Touches each n-th request, beginning with the first."""
    see: Callable[[ModelRequest], ModelRequest] | None = None
    draft: Callable[[Draft, Occasion], Draft] | None = None
    chunks: Callable[[list[Any], Occasion], list[Any]] | None = None
    wire: Callable[[Answer, Occasion], Answer] | None = None

    def touches(self, number: int, *, stream: bool) -> bool:
        """Tell whether the request of this number is answered with the fault."""
        return self.reaches(stream=stream) and (number - 1) % self.every == 0

    def code_in(self, protocol: str) -> Code | None:
        """Return the code that a run over a wire format ends with."""
        return self.codes.get(protocol, self.code)

    def reaches(self, *, stream: bool) -> bool:
        """Tell whether it can touch such an answer at all."""
        return self.reach in {"both", "stream" if stream else "whole"}
