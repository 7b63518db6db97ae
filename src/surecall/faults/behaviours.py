"""Simulated models: which mistakes one makes, when, and what makes it correct them.

A behaviour never says how often a task succeeds. It says which mistakes are made with which
probability, and what the model must read before it stops making one.
"""

from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from random import Random
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code, ConfigError, did_you_mean
from surecall.base.records import ModelRequest
from surecall.models.config.load import read_toml

from .catalog import Fault, find_fault
from .conversation import Action, Answered, CallTools, Say, errors_in_a_row, last_results
from .replies import Occasion, PlannedReply
from .toml_files import parse_table

Moment = Literal["call", "final", "any", "first", "no_tools"]
"""When a lapse can happen: in a reply with calls, in one without, in any, in the first one of a
conversation, or when no tools were offered."""

Recovery = Literal["never", "told", "hint", "limit", "field", "asked", "forced"]
"""The end of a lapse: nothing; any error; an error with a hint; one that names the limit; one that
names the field; a question of the user after the results; a tool choice that forces a call."""

Habit = Literal["repeat_failed_call", "skip_call", "chatty_final", "starve"]
"""`repeat_failed_call` sends a failed call again as it was, `skip_call` answers in place of
calling, `chatty_final` adds friendly words to the answer, `starve` spends a small token limit on
reasoning and has nothing left for the answer."""


ZOO_PREFIX: Final = "zoo:"
"""The prefix that a simulated model's name may have."""
_HINT: Final = "`surecall docs test-against-a-faulty-provider` has what a simulated model has."


class Lapse(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One mistake a model makes: a fault of the catalog, or a habit."""

    fault: str | None = None
    habit: Habit | None = None
    probability: float = 1.0
    when: Moment = "call"
    tool: str | None = None
    """Only in replies that call this tool."""
    after: tuple[str, ...] = ()
    """Codes of errors that this mistake brings about; the code of the fault by default."""
    recovers: Recovery = "told"
    min_temperature: float | None = None
    """Only when the request is at least this hot."""
    params: dict[str, Any] = {}
    """Only when the request has these parameters."""
    below_tokens: int | None = None
    """Only when the request allows fewer tokens than this."""

    def __post_init__(self) -> None:
        if (self.fault is None) == (self.habit is None):
            raise ValueError("a lapse is either a fault or a habit")
        if not 0 <= self.probability <= 1:
            raise ValueError("a probability must be between 0 and 1")
        if self.fault is not None:
            find_fault(self.fault)

    @property
    def causes(self) -> frozenset[str]:
        """The codes of the errors that this mistake brings about."""
        if self.after or self.fault is None:
            return frozenset(self.after)
        refusal = find_fault(self.fault).refusal
        return frozenset() if refusal is None else frozenset({str(refusal)})


class Behaviour(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One simulated model."""

    name: str
    models: tuple[str, ...]
    """The models whose published description it follows."""
    describes: str
    """The published description, in one sentence."""
    source: str
    lapses: tuple[Lapse, ...] = ()
    gives_up_after_errors: int | None = None
    """So many failed results in a row, and it answers without having done the work."""
    traits: tuple[str, ...] = ()
    """Faults it has in every reply, such as a capability it lacks."""

    def __post_init__(self) -> None:
        for name in self.traits:
            find_fault(name)


class Situation:
    """One moment of a conversation, as a simulated model meets it."""

    def __init__(
        self, behaviour: Behaviour, request: ModelRequest, clean: Action, random: Random
    ) -> None:
        self._behaviour = behaviour
        self._request = request
        self._clean = clean
        self._failed = [item for item in last_results(request) if not item.ok]
        self._lapses = tuple(lapse for lapse in behaviour.lapses if self._happens(lapse, random))

    @property
    def gives_up(self) -> bool:
        """Whether it has met too many errors to go on."""
        limit = self._behaviour.gives_up_after_errors
        return limit is not None and errors_in_a_row(self._request) >= limit

    @property
    def habits(self) -> frozenset[Habit]:
        """The habits that show now."""
        return frozenset(lapse.habit for lapse in self._lapses if lapse.habit is not None)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The faults of the reply, traits first."""
        lapses = (
            _limit_to(find_fault(lapse.fault), lapse.tool)
            for lapse in self._lapses
            if lapse.fault is not None
        )
        return (*map(find_fault, self._behaviour.traits), *lapses)

    def request_before_last_calls(self) -> ModelRequest | None:
        """Return the request that the last reply with calls answered."""
        messages = self._request.messages
        for position in reversed(range(len(messages))):
            if messages[position].tool_calls:
                return replace(self._request, messages=messages[:position])
        return None

    def _happens(self, lapse: Lapse, random: Random) -> bool:
        drawn = random.random() < lapse.probability  # always drawn, so that lapses stay independent
        if not (self._is_moment(lapse) and self._has_params(lapse)):
            return False
        failed = self._failed_for(lapse)
        if lapse.habit == "repeat_failed_call":
            return bool(failed) and drawn and not self._recovers(lapse, failed)
        caused = [item for item in failed if item.codes & lapse.causes]
        if caused:
            return not self._recovers(lapse, caused)
        return drawn and not self._recovers(lapse, [])

    def _is_moment(self, lapse: Lapse) -> bool:
        calls = self._clean.calls if isinstance(self._clean, CallTools) else ()
        if lapse.tool is not None and all(call.name != lapse.tool for call in calls):
            return False
        match lapse.when:
            case "call":
                return bool(calls)
            case "final":
                return isinstance(self._clean, Say)
            case "first":
                return all(message.role != "assistant" for message in self._request.messages)
            case "no_tools":
                return not self._request.tools
            case "any":
                return True

    def _has_params(self, lapse: Lapse) -> bool:
        params = self._request.params
        temperature = params.get("temperature")
        if lapse.min_temperature is not None:
            is_number = isinstance(temperature, int | float)
            if not is_number or temperature < lapse.min_temperature:
                return False
        if lapse.below_tokens is not None:
            limit = params.get("max_completion_tokens", params.get("max_tokens"))
            if not isinstance(limit, int) or limit >= lapse.below_tokens:
                return False
        return all(params.get(name) == value for name, value in lapse.params.items())

    def _failed_for(self, lapse: Lapse) -> list[Answered]:
        found = [item for item in self._failed if lapse.tool in {None, item.call.name}]
        if lapse.habit == "repeat_failed_call" and lapse.after:
            return [item for item in found if item.codes & set(lapse.after) or not item.codes]
        return found

    def _recovers(self, lapse: Lapse, failed: list[Answered]) -> bool:
        match lapse.recovers:
            case "never":
                return False
            case "told":
                return bool(failed)
            case "hint":
                return any(error.get("hint") for item in failed for error in item.errors)
            case "limit":
                return any(_names_limit(item) for item in failed)
            case "field":
                return any(_names_field(item) for item in failed)
            case "asked":
                messages = self._request.messages
                roles = [message.role for message in messages]
                return bool(messages) and roles[-1] == "user" and "tool" in roles
            case "forced":
                choice = self._request.tool_choice
                return choice == "required" or isinstance(choice, dict)


def _limit_to(fault: Fault, tool: str | None) -> Fault:
    """Return the fault so that its edit of the message leaves calls of other tools alone."""
    edit = fault.reply
    if tool is None or edit is None:
        return fault

    def edit_meant(reply: PlannedReply, occasion: Occasion) -> PlannedReply:
        meant = [call["function"]["name"] == tool for call in reply.calls]
        chosen = [call for call, is_meant in zip(reply.calls, meant, strict=True) if is_meant]
        edited = edit(reply.with_message(tool_calls=chosen), occasion)
        if len(edited.calls) != len(chosen):
            return edited
        changed = iter(edited.calls)
        calls = [
            next(changed) if is_meant else call
            for call, is_meant in zip(reply.calls, meant, strict=True)
        ]
        return edited.with_message(tool_calls=calls)

    return replace(fault, reply=edit_meant)


def _names_limit(item: Answered) -> bool:
    text = item.text.lower()
    return "limit" in text and any(char.isdigit() for char in text)


def _names_field(item: Answered) -> bool:
    """Tell whether an error says which field is wrong."""
    if any(error.get("path") for error in item.errors):
        return True
    said = " ".join(str(error.get("message", "")) for error in item.errors)
    return any(repr(key) in said or f'"{key}"' in said for key in item.call.arguments or {})


@cache
def zoo() -> tuple[Behaviour, ...]:
    """Return all simulated models, by name."""
    folder = resources.files("surecall.faults").joinpath("zoo")
    with resources.as_file(folder) as path:
        return tuple(load_behaviour(file) for file in sorted(path.glob("*.toml")))


def find_behaviour(name: str) -> Behaviour:
    """Return the simulated model of this name, with or without `zoo:` before it."""
    wanted = name.strip().lower().replace("_", "-").removeprefix(ZOO_PREFIX)
    for behaviour in zoo():
        if behaviour.name == wanted:
            return behaviour
    raise ConfigError(
        Code.UNKNOWN_MODEL,
        f"there is no simulated model {name!r}.",
        hint=did_you_mean(
            wanted,
            [behaviour.name for behaviour in zoo()],
            listed_by="surecall faults models",
        ),
    )


def load_behaviour(path: str | Path) -> Behaviour:
    """Read a simulated model from a TOML file; its name is that of the file."""
    file, where = Path(path), f"the file {path}"
    return parse_behaviour({"name": file.stem, **read_toml(file, where)}, where)


def parse_behaviour(table: Mapping[str, Any], where: str = "a behaviour") -> Behaviour:
    """Read a simulated model from a table; anything unknown in it is an error."""
    return parse_table(table, Behaviour, where, _HINT)
