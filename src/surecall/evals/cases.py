"""The seam of an experiment: what is tried, who is compared, and what that costs."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Literal, Protocol
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import force_setattr

from surecall.base.errors import Code, ConfigError, did_you_mean
from surecall.base.records import Message, ModelRequest, ToolCall, ToolResult, Usage, clip
from surecall.evals.records import Parts, Reason, Unit, Verdict
from surecall.evals.taxonomy import sort_reasons
from surecall.loop import OutputForm, RunResult, Trace, TurnTrace
from surecall.models.transport import Transport
from surecall.text import canonical_hash
from surecall.tools import Guard, ToolRegistry

_MAX_ERROR_CHARS: Final = 400
_HASH_CHARS: Final = 12
ENFORCED: Final[dict[str, Any]] = {"tool_use_mode": "enforced"}
"""For cases that cannot be done without tools, unless the experiment says otherwise."""


class IdealCall(Struct, frozen=True):
    """A call that a good model would make."""

    name: str
    arguments: dict[str, Any]


class Ideal(Struct, frozen=True):
    """What a good model would do next: make calls, or answer."""

    calls: tuple[IdealCall, ...] = ()
    text: str = ""


class Declarations(Struct, frozen=True, kw_only=True):
    """What an application that has this task would declare; only the strategy `guided` uses it."""

    required_tools: tuple[str, ...] = ()
    requires: dict[str, tuple[str, ...]] = {}
    """The tools that each tool needs first."""
    available_when: dict[str, Guard] = {}
    """When each tool may be used."""

    def declare_tools(self, tools: ToolRegistry) -> ToolRegistry:
        """Return the tools with what is declared of them."""
        declared = self.requires.keys() | self.available_when.keys()
        return ToolRegistry(
            tool.guarded(
                requires=self.requires.get(tool.name, ()),
                available_when=self.available_when.get(tool.name),
            )
            if tool.name in declared
            else tool
            for tool in tools
        )

    def describe(self) -> dict[str, Any]:
        """Return what is declared, as it is kept with a trial."""
        return {
            "required_tools": list(self.required_tools),
            "requires": {tool: list(needed) for tool, needed in self.requires.items()},
            "available_when": sorted(self.available_when),
        }


class Prepared(Struct, kw_only=True):
    """One trial, ready to run: fresh tools on fresh state."""

    tools: ToolRegistry
    system: str | None = None
    messages: tuple[Message, ...]
    reply: Callable[[str], tuple[Message, ...]] | None = None
    """What the user says to an answer, nothing when the conversation is over; without it, the
    first answer ends it."""
    options: dict[str, Any] = {}
    """Options that the scenario itself needs, such as a limit; they win over everything."""
    defaults: dict[str, Any] = {}
    """Options that the scenario has where the experiment sets none."""
    output: OutputForm[Any] | None = None
    """The value to end with, when it is not a text."""
    state: Any = None
    """What the tools work on; `grade` looks at it."""
    declarations: Declarations = Declarations()


class Attempt(Struct, frozen=True, kw_only=True):
    """The outcome of a prepared trial."""

    prepared: Prepared
    result: RunResult | None
    error: Exception | None
    trace: Trace | None = None
    """The trace, also of a run that failed; None when the run never began."""
    text: str = ""
    history: tuple[Message, ...] = ()

    @property
    def turns(self) -> tuple[TurnTrace, ...]:
        """The turns of the run, as far as it came."""
        return () if self.trace is None else tuple(self.trace.turns)

    @property
    def calls(self) -> Iterator[tuple[TurnTrace, ToolCall, ToolResult | None]]:
        """Every accepted call, in order, with its turn and its result."""
        for turn in self.turns:
            results = {result.call_id: result for result in turn.results}
            for call in turn.calls:
                yield turn, call, results.get(call.id)


class Grades(Struct, frozen=True, kw_only=True):
    """The verdicts of one trial, and what its calls should have been."""

    original: Verdict
    strict: Verdict
    """State and process together."""
    parts: Parts | None = None
    """State, process and answer apart; `None` when the case does not tell them apart."""
    exact: tuple[bool | None, ...] = ()
    """Per call, in order, whether its arguments are what was expected."""
    state: dict[str, Any] = {}
    """What is kept of the state the run left behind."""


class Case(Protocol):
    """One thing to try.

    A case that is a sample of many, and not a named one that stands for itself, has `drawn = True`.
    """

    @property
    def scenario(self) -> str:
        """The scenario it belongs to."""
        ...

    @property
    def id(self) -> str:
        """Its name within the scenario; empty when it is the only one."""
        ...

    @property
    def control(self) -> bool:
        """Whether it is a control without tools."""
        ...

    def prepare(self, seed: int) -> Prepared:
        """Set up one trial with state of its own."""
        ...

    def grade(self, attempt: Attempt) -> Grades:
        """Judge what happened; nothing is raised."""
        ...

    def ideal(self, request: ModelRequest) -> Ideal | None:
        """Say what a good model would do with this request, for simulated models."""
        ...


class Suite(Protocol):
    """A family of scenarios."""

    @property
    def name(self) -> str:
        """Its name in filters and reports."""
        ...

    @property
    def version(self) -> str:
        """Changes when its cases change; part of what makes two experiments comparable."""
        ...

    def scenarios(self) -> Sequence[str]:
        """Name the scenarios, in order."""
        ...

    def cases(self, scenario: str) -> Sequence[Case]:
        """Return the cases of a scenario, in order."""
        ...


def make_grades(
    *,
    original: Verdict,
    state: Iterable[Reason] | None,
    process: Iterable[Reason],
    answer: Iterable[Reason] | None,
    exact: tuple[bool | None, ...] = (),
    kept: dict[str, Any] | None = None,
) -> Grades:
    """Put the grades together: strict is state and process, the gravest reason first.

    Args:
        original: The loose verdict.
        state: What is wrong with what was left behind; None when it could not be judged.
        process: What is wrong with what was called.
        answer: What is wrong with the final text; None when there is none to judge.
        exact: Per call, whether its arguments are what was expected.
        kept: What is kept of the state.
    """
    found = [None if reasons is None else sort_reasons(reasons) for reasons in (state, answer)]
    of_state, of_answer = (None if reasons is None else Verdict.of(reasons) for reasons in found)
    of_process = Verdict.of(sort_reasons(process))
    before = () if of_state is None else of_state.reasons
    return Grades(
        original=original,
        strict=Verdict.of(sort_reasons((*before, *of_process.reasons))),
        parts=Parts(state=of_state, process=of_process, answer=of_answer),
        exact=exact,
        state=kept or {},
    )


def refuse_scenario(suite: str, scenario: str, known: Iterable[str]) -> ConfigError:
    """Return the error for a scenario that a suite does not have, with the closest names."""
    return ConfigError(
        Code.NOTHING_SELECTED,
        f"the suite {suite} has no scenario {scenario!r}.",
        hint=did_you_mean(scenario, known),
    )


def number_version(revision: int, surface: Any) -> str:
    """Return the version of a suite: a number, and a hash over all that a model is given."""
    return f"{revision}-{canonical_hash(surface)[:_HASH_CHARS]}"


def failed(code: str, message: str = "") -> Verdict:
    """Return a verdict of no for one reason."""
    return Verdict.of([Reason(code, message)])


def run_failed(error: Exception) -> Reason:
    """Return the reason of a run that ended with an error in place of an answer."""
    return Reason("RUN_FAILED", clip(str(error) or type(error).__name__, _MAX_ERROR_CHARS))


def assign_calls(right: Sequence[Sequence[int]]) -> dict[int, int]:
    """Find a call for as many expected ones as possible; no call serves two.

    Args:
        right: For each expected call, the places of the calls that would do.

    Returns:
        For each expected call that got one, the place of its call.
    """
    owners: dict[int, int] = {}

    def assign(place: int, tried: set[int]) -> bool:
        for made in right[place]:
            if made in tried:
                continue
            tried.add(made)
            if made not in owners or assign(owners[made], tried):
                owners[made] = place
                return True
        return False

    for place in range(len(right)):
        assign(place, set())
    return {place: made for made, place in owners.items()}


_PER: float = 1_000_000
_HINT = "Write it like 0.25/2.00 or 0.25/2.00/0.025: input, output, and cached input."


class Price(Struct, frozen=True, kw_only=True):
    """Dollars for a million tokens."""

    input_usd: float
    output_usd: float
    cached_usd: float | None = None
    """For input that the provider had in its cache; unset means like any input."""


def parse_price(text: str) -> Price:
    """Read `INPUT/OUTPUT` or `INPUT/OUTPUT/CACHED`, in dollars for a million tokens."""
    try:
        numbers = [float(part) for part in text.split("/")]
    except ValueError:
        numbers = []
    usable = all(math.isfinite(number) and number >= 0 for number in numbers)
    if len(numbers) not in {2, 3} or not usable:
        raise ConfigError(Code.INVALID_OPTION, f"{text!r} is not a price.", hint=_HINT)
    return Price(
        input_usd=numbers[0],
        output_usd=numbers[1],
        cached_usd=numbers[2] if len(numbers) == 3 else None,
    )


def cost_of(usage: Usage, price: Price) -> float:
    """Return the dollars that these tokens cost; reasoning is part of the output."""
    cached = min(usage.cached_tokens, usage.input_tokens)
    cached_usd = price.input_usd if price.cached_usd is None else price.cached_usd
    fresh_usd = (usage.input_tokens - cached) * price.input_usd
    return (fresh_usd + cached * cached_usd + usage.output_tokens * price.output_usd) / _PER


Kind = Literal["live", "embedded", "simulated"]
"""A provider over the network, a model in this process, or a model that is made up."""


class Contender(Struct, frozen=True, kw_only=True):
    """One model at one place."""

    label: str
    """Its name in tables and reports."""
    model: str
    """What the provider calls it; sampling profiles and presets go by this."""
    provider: str | None = None
    """The provider's name in the catalog."""
    base_url: str | None = None
    kind: Kind = "live"
    simulated: bool = False
    """Whether its results say something about a made-up model only."""
    behaviour: str = ""
    """Which simulated model it is, when the name does not say."""
    capabilities: dict[str, Any] = {}
    """What it can do, where the catalog does not know or is wrong."""
    protocol: str | None = None
    """Wire format, when it is not the provider's own or chat completions."""
    tags: tuple[str, ...] = ()
    """Words it can be selected by."""
    price: Price | None = None

    def __post_init__(self) -> None:
        if self.kind == "simulated" and not self.simulated:
            force_setattr(self, "simulated", True)  # noqa: FBT003 - a value, not a flag

    @property
    def id(self) -> str:
        """The label, by which filters know it."""
        return self.label


def endpoint_of(contender: Contender) -> str:
    """Return what contenders share that draw on the same provider."""
    host = urlsplit(contender.base_url or "").netloc
    return host or contender.provider or contender.label


OpenTransport = Callable[[Contender, Unit, Case], AbstractAsyncContextManager[Transport]]
"""Opens a transport for one trial; leaving the context gives it back."""


async def close_transports(open_transport: OpenTransport) -> None:
    """Close what an opener kept open between trials, if it keeps anything."""
    close = getattr(open_transport, "aclose", None)
    if close is not None:
        await close()
