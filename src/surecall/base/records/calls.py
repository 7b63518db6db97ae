"""A tool, a call of it, and its result: as data, from what arrived to what the model is shown."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from .receipts import ErrorDetail, Receipt, clip

Effect = Literal["read", "write", "external"]
"""The effect of a tool on the world."""
CoerceMode = Literal["on", "off"]
"""Whether arguments may be adapted to the schema of a tool."""


class ToolSpec(Struct, frozen=True, kw_only=True, weakref=True):
    """A tool as data: its description for the model, and how its calls may be run."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = {}
    """JSON Schema of the arguments."""
    effect: Effect = "write"
    """`read` runs at the same time as other reads; `write` and `external` run alone, in order."""
    exposed: bool = True
    """Whether a model may see and call it."""
    idempotent: bool = False
    """Whether running the same call twice does no more than running it once."""
    polling: bool = False
    """Whether repeating the same call is expected (exempt from the repeated-call limit)."""
    timeout_s: float | None = None
    coerce: CoerceMode = "on"
    """Whether arguments may be adapted to the schema; `off` takes them as they are."""
    requires: tuple[str, ...] = ()
    """Tools that must have succeeded in the run before this one is shown and may be called."""
    extra: dict[str, Any] = {}
    """Fields to send along with the tool, such as `cache_control`, where the format knows them."""


CHANGED: Final = " changed the call"
"""How the reason of a receipt ends that begins with who put other arguments into a call."""
CHANGED_BY_TRANSFORM: Final = "change_by_transform"
"""The rule in the receipt of arguments that a transform changed."""

CallState = Literal["whole", "cut", "unreadable"]
"""Whether a call is whole, cut or unreadable."""
Certainty = Literal["certain", "likely"]
"""Whether a call is certain, or only likely because a part of it may be missing."""


class RawCall(Struct, frozen=True):
    """A call as a protocol found it: nothing interpreted yet."""

    id: Any
    name: Any
    arguments: Any
    """Text, object, null or anything else that arrived."""
    format: str = "tool_calls"
    """Where it was seen: `tool_calls`, `function_call`, or the name of a text format."""
    extra: dict[str, Any] = {}
    """Other fields that the provider may want echoed, such as a signature."""
    receipts: tuple[Receipt, ...] = ()
    """Changes made to find it, such as reading it without its wrapper."""
    beside: tuple[str, ...] = ()
    """Names of fields next to the arguments that the wire format does not have there."""


class ToolCall(Struct, frozen=True, kw_only=True):
    """A call as it was read: ready to be checked and run, or refused with reasons.

    For example:

        reply = '<tool_call>{"name": "ping", "arguments": {"host": "a"}}</tool_call>'
        call = surecall.read_reply(reply).calls[0]
        isinstance(call, surecall.ToolCall), call.arguments  # (True, {'host': 'a'})
    """

    id: str
    name: str
    arguments: dict[str, Any] | None
    """The arguments to use; `None` when they could not be read."""
    raw: Any = None
    """Exactly what arrived as arguments."""
    state: CallState = "whole"
    receipts: tuple[Receipt, ...] = ()
    errors: tuple[ErrorDetail, ...] = ()
    format: str = "tool_calls"
    extra: dict[str, Any] = {}
    arguments_bytes: int = 0
    """Size of what arrived as arguments."""
    certainty: Certainty = "certain"
    """`likely` when a part of the call may be missing: it runs only on a tool that just reads."""
    doubt: str = ""
    """Why it is only likely: one sentence that a model can read."""

    @property
    def sent(self) -> Any:
        """The arguments as the model sent them, before the application changed them."""
        made = (item.before for item in self.receipts if item.rule == CHANGED_BY_TRANSFORM)
        return next(made, self.raw)

    @property
    def changed_by(self) -> tuple[str, ...]:
        """The people, transforms and rules of reading that changed the call."""
        return tuple(_count_changers(self.receipts))

    def edited(self, arguments: dict[str, Any], receipts: tuple[Receipt, ...]) -> "ToolCall":
        """Return the call with arguments that somebody changed."""
        return replace(self, arguments=arguments, receipts=self.receipts + receipts)


class Envelope(Struct, frozen=True):
    """The one shape in which every tool answers."""

    ok: bool
    tool_name: str
    data: dict[str, Any] = {}
    warnings: tuple[Any, ...] = ()
    errors: tuple[ErrorDetail, ...] = ()

    @classmethod
    def failure(
        cls,
        tool_name: str,
        code: str,
        message: str,
        *,
        hint: str | None = None,
        data: Mapping[str, Any] | None = None,
    ) -> "Envelope":
        """Build the envelope of a call that failed for one reason."""
        error = ErrorDetail(str(code), message, hint)
        return cls(ok=False, tool_name=tool_name, data=dict(data or {}), errors=(error,))

    @property
    def error_codes(self) -> tuple[str, ...]:
        """The codes of all errors, in order."""
        return tuple(error.code for error in self.errors)


class ToolResult(Struct, frozen=True, kw_only=True):
    """The outcome of one call: the envelope, and the text that the model reads."""

    call_id: str
    name: str
    envelope: Envelope
    text: str
    """The envelope as JSON text, after transforms and limits."""
    elapsed_ms: float = 0.0
    executed: bool = False
    """Whether the tool's code started."""
    replaced: bool = False
    """Whether the tool's own answer was replaced because of a limit."""
    arguments: dict[str, Any] | None = None
    """The arguments that ran, if a person changed them; `None` otherwise."""
    receipts: tuple[Receipt, ...] = ()
    """The changes that a person made to the call."""
    problem: ErrorDetail | None = None
    """A problem for a developer that no model reads, such as an approver that failed."""
    traceback: str = ""
    """Where the tool's own code raised; no model reads it."""

    @property
    def ok(self) -> bool:
        """Whether the tool succeeded."""
        return self.envelope.ok

    def __repr__(self) -> str:
        how = "ok" if self.ok else " ".join(self.envelope.error_codes) or "failed"
        return f"<ToolResult {self.name}: {how}, {clip(self.text, 120)}>"


def name_changes(receipts: Iterable[Receipt]) -> str:
    """Say who changed something, and how often: `replace_quotes ×15, Ann`."""
    counts = _count_changers(receipts)
    return ", ".join(name if n == 1 else f"{name} ×{n}" for name, n in counts.items())


def _count_changers(receipts: Iterable[Receipt]) -> Counter[str]:
    return Counter(
        item.why.removesuffix(CHANGED) if item.why.endswith(CHANGED) else item.rule
        for item in receipts
    )


def as_run(calls: Iterable[ToolCall], results: Iterable[ToolResult]) -> tuple[ToolCall, ...]:
    """Return calls with the arguments that they ran with, as everything shows them.

    A call that nobody changed stays as it was read; so does one that was changed here before.
    """
    edits = {result.call_id: result for result in results if result.arguments is not None}
    if not edits:
        return tuple(calls)
    return tuple(_apply_edit(call, edits.get(call.id)) for call in calls)


def _apply_edit(call: ToolCall, edit: ToolResult | None) -> ToolCall:
    if edit is None or edit.arguments is None:
        return call
    receipts = tuple(receipt for receipt in edit.receipts if receipt not in call.receipts)
    return call.edited(edit.arguments, receipts)
