"""What is asked next when a call cannot be used: one ladder for `run`, the gateway and `wrap`.

Repair and coercion come first, on every reply, and ask nobody. Each request after that goes one
rung up, as far as the model is known to take it and the budget of its caller goes:

1. `errors`: the model reads its own call and exactly what is wrong with it;
2. `strict_tool`: the arguments of that tool are held to its schema;
3. `forced_choice`: that tool alone may be called, where its arguments cannot be held;
4. `schema`: the whole reply is held to a schema; where only a field of the server's own takes
   one, such as vLLM's `structured_outputs`, it holds the arguments of that tool alone;
5. `taught`: the tool is explained in the prompt, and called in text.

    rungs = list_rungs(Standing("native", "save"), capabilities)

One rung is not for calls that are wrong, but for one that may not be all: `list` has a model that
wrote one call as text list every call of that tool, and holds it to the list.

A client's own choice of a tool changes the rungs in the middle. Everything here is decided without
I/O; what a rung sends is written by whoever climbs it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from surecall.base.errors import Code
from surecall.base.records import ToolCall, ToolResult
from surecall.models.profiles import Capabilities
from surecall.reading.rules import was_text
from surecall.reading.truncation import cut_cause
from surecall.text import canonical_hash

from .prompting import PromptMode

RungName = Literal[
    "errors", "strict_tool", "forced_choice", "free_choice", "no_tools", "schema", "list", "taught"
]
Demand = Literal["nothing", "call", "tool", "no_call"]
"""What a client demands of a reply: nothing, any call, a call of one tool, or none."""
Hold = Literal["schema", "forced_choice", "words"]
"""How a model is made to call a tool: a schema for its reply, a forced choice, or words alone."""

_IN_PLACE: Final = ("native", "strict")
_STUCK_AFTER: Final = 2
_REFUSED: Final = frozenset(
    {
        Code.ARGUMENTS_INVALID,
        Code.ARGUMENTS_JSON_PARSE_ERROR,
        Code.ARGUMENTS_TOO_DEEP,
        Code.ARGUMENTS_TOO_LARGE,
        Code.ARGUMENTS_TRUNCATED,
        Code.CALL_NOT_CERTAIN,
    }
)


class Standing(NamedTuple):
    """Where a conversation stands whose last reply cannot be used."""

    mode: PromptMode
    """How the tools were presented to the model."""
    tool: str | None = None
    """The tool whose call cannot be used, if it is one."""
    demand: Demand = "nothing"
    is_silent: bool = False
    """Whether the reply says nothing at all: there is no call to get right."""


class Rung(NamedTuple):
    """One way to ask again."""

    name: RungName
    mode: PromptMode
    tool: str | None = None
    """The one tool that is asked for."""


def list_rungs(standing: Standing, capabilities: Capabilities) -> tuple[Rung, ...]:
    """Return the rungs that there are from here, the lowest first."""
    mode, tool, demand, is_silent = standing
    rungs = [Rung("errors", mode)]
    if is_silent:
        return tuple(rungs)
    is_native = mode in _IN_PLACE
    if demand == "no_call":
        return (*rungs, Rung("no_tools", "native")) if is_native else tuple(rungs)
    # A choice of the client that was not followed is left out: what comes is checked all the same.
    is_ignored = is_native and (demand == "tool" or (demand == "call" and tool is None))
    if is_ignored and demand == "call":
        rungs.append(Rung("free_choice", "native"))
    if is_native and tool is not None and demand != "tool":
        if capabilities.strict_tools:
            rungs.append(Rung("strict_tool", "strict", tool))
        elif "named" in capabilities.tool_choices:
            rungs.append(Rung("forced_choice", "native", tool))
    can_hold = capabilities.json_schema or (tool is not None and capabilities.schema_field)
    if can_hold and mode != "constrained":
        rungs.append(Rung("schema", "constrained", tool))
    if is_ignored and demand == "tool":
        rungs.append(Rung("free_choice", "native"))
    if is_native:
        rungs.append(Rung("taught", "taught"))
    return tuple(rungs)


def next_rung(
    standing: Standing, capabilities: Capabilities, *, climbed: int, budget: int
) -> Rung | None:
    """Return the next rung above the errors that a run may climb; `None` when there is none."""
    _, *rungs = list_rungs(standing, capabilities)
    return rungs[climbed] if climbed < min(budget, len(rungs)) else None


def find_list_rung(
    calls: Sequence[ToolCall], mode: PromptMode, capabilities: Capabilities
) -> Rung | None:
    """Return the rung on which a model lists all calls of the tool that it called, if it may help.

    A small model that writes calls as text writes one and waits, however many things it was asked
    for, or puts all of them into one argument. It is asked only where it can be held to the list,
    and is not known to make several calls.
    """
    writes_text = capabilities.text_formats or mode == "taught"
    if not (capabilities.json_schema and writes_text) or mode == "constrained":
        return None
    if capabilities.supports_parallel_tools:
        return None
    if len(calls) != 1 or not was_text(calls[0]) or not is_whole(calls[0]):
        return None
    return Rung("list", "constrained", calls[0].name)


def takes_list(calls: Sequence[ToolCall], tool: str, finish_reason: str | None) -> bool:
    """Tell whether a list of calls is whole, of that tool alone, and without repetitions."""
    written = {canonical_hash(call.arguments, finite=True) for call in calls}
    return (
        0 < len(calls) == len(written)
        and cut_cause(finish_reason) is None
        and all(call.name == tool and call.format == "object" for call in calls)
        and all(is_whole(call) and not call.errors for call in calls)
    )


def is_whole(call: ToolCall) -> bool:
    """Tell whether nothing of a call is missing, whatever is wrong with it."""
    return (
        bool(call.name)
        and call.arguments is not None
        and (call.state, call.certainty) == ("whole", "certain")
        and all(error.code == Code.ARGUMENTS_INVALID for error in call.errors)
    )


def choose_hold(capabilities: Capabilities, mode: PromptMode, *, can_name: bool) -> Hold:
    """Return how a model is made to call a tool that it leaves out.

    Args:
        capabilities: What the model can do.
        mode: How its tools are presented to it.
        can_name: Whether one tool may be named that the provider then has it call.
    """
    if capabilities.json_schema:
        return "schema"
    can_force = can_name or "required" in capabilities.tool_choices
    return "forced_choice" if can_force and mode in _IN_PLACE else "words"


# Counting


def count_refusals(refusals: Mapping[str, int], results: Iterable[ToolResult]) -> dict[str, int]:
    """Count per tool how many replies in a row had no call of it that could be used.

    Calls of one reply were made at once: several that are refused are one mistake.
    """
    was_refused: dict[str, bool] = {}
    for result in results:
        refused = not result.executed and any(
            code in _REFUSED for code in result.envelope.error_codes
        )
        was_refused[result.name] = was_refused.get(result.name, True) and refused
    counted = dict(refusals)
    for name, refused in was_refused.items():
        if refused:
            counted[name] = counted.get(name, 0) + 1
        else:
            counted.pop(name, None)
    return counted


def stuck_tool(refusals: Mapping[str, int]) -> str | None:
    """Return the tool whose call was refused although the model knows why."""
    return next((name for name, count in refusals.items() if count >= _STUCK_AFTER), None)


# Answers of a given form


class Place(NamedTuple):
    """How far asking for a value has come."""

    way: int = 0
    """The place of the way of asking among those that there are."""
    retries: int = 0
    """How often the model was asked again in this way."""
    asked: int = 1
    """How often it was asked in all."""

    def next(self, ways: int, retries: int) -> "Place | None":
        """Return where to ask next: with the errors as often as may be, then in the next way."""
        if self.retries < retries:
            return Place(self.way, self.retries + 1, self.asked + 1)
        return self.next_way(ways)

    def next_way(self, ways: int) -> "Place | None":
        """Return the first request in the next way, if there is one."""
        return Place(self.way + 1, 0, self.asked + 1) if self.way + 1 < ways else None
