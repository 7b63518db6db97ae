"""The suite `errands`: tasks of several dependent steps, each on tools of its own.

A task is data: facts that the user states, facts that only tools know, and steps that take some
and give others. An application that has such a task declares just that: every step is required, and
a step requires those that give what it takes.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from random import Random
from typing import Any, Final

from msgspec import Struct

from surecall.errors import Code, ConfigError, did_you_mean
from surecall.evals.cases import (
    Attempt,
    Case,
    Declarations,
    Grades,
    Ideal,
    IdealCall,
    Prepared,
    run_failed,
)
from surecall.evals.records import Reason, Verdict
from surecall.evals.scenarios.conversation import Conversation
from surecall.jsontext import canonical_hash
from surecall.records import Effect, Message, ModelRequest, ToolSpec, clip
from surecall.tools import Tool, ToolContext, ToolFailed, ToolRegistry

__all__ = ["ERRANDS", "Errand", "ErrandsSuite", "Step"]

_REVISION: Final = 1
_HASH_CHARS: Final = 12
_OPTIONS: Final[dict[str, Any]] = {
    "tool_use_mode": "enforced",
    "tool_failure_policy": "tolerated",
    "max_turns": 10,
}
_ANSWER: Final = "It is done."

Facts = dict[str, Any]
MakeFact = Callable[[Random], Any]


class Step(Struct, frozen=True, kw_only=True):
    """One call: the tool, the facts it takes, and those it gives."""

    tool: str
    description: str
    takes: tuple[str, ...]
    gives: tuple[str, ...] = ()
    effect: Effect = "read"


def _code(prefix: str) -> MakeFact:
    return lambda random: f"{prefix}{random.randrange(1000, 10_000)}"


def _number(low: int, high: int) -> MakeFact:
    return lambda random: random.randrange(low, high)


def _word(*words: str) -> MakeFact:
    return lambda random: random.choice(words)


class Errand(Struct, frozen=True, kw_only=True):
    """One task with its only case.

    The loose verdict asks whether every step was done rightly in the end. The strict one asks as
    well for their order, for an answer, and that no step with effects was tried with wrong
    arguments.
    """

    scenario: str
    request: str
    """What the user says, with the stated facts in braces."""
    stated: dict[str, tuple[Any, ...]]
    """The facts that the user states, each with the values it may have."""
    hidden: dict[str, MakeFact]
    """The facts that only tools know."""
    about: dict[str, str]
    """What each fact that a step takes is, as tools describe it."""
    steps: tuple[Step, ...]
    id: str = ""
    control: bool = False

    @property
    def declarations(self) -> Declarations:
        """What an application would declare: all steps, and which of them need which."""
        givers = {fact: step.tool for step in self.steps for fact in step.gives}
        needs = {
            step.tool: tuple(dict.fromkeys(givers[fact] for fact in step.takes if fact in givers))
            for step in self.steps
        }
        return Declarations(
            required_tools=tuple(step.tool for step in self.steps),
            requires={tool: needed for tool, needed in needs.items() if needed},
        )

    def prepare(self, seed: int) -> Prepared:
        """Set up one trial with facts of its own."""
        random = Random(seed)  # noqa: S311 - chance that can be repeated
        facts = {name: random.choice(values) for name, values in self.stated.items()}
        facts |= {name: make(random) for name, make in self.hidden.items()}
        return Prepared(
            tools=ToolRegistry(self._make_tool(step, facts) for step in self.steps),
            system=self._instruct(),
            messages=(Message("user", self.request.format(**facts)),),
            options=dict(_OPTIONS),
            state=facts,
            declarations=self.declarations,
        )

    def grade(self, attempt: Attempt) -> Grades:
        """Compare the calls that were made with the steps."""
        facts: Facts = attempt.prepared.state
        expected = [IdealCall(step.tool, _take(step, facts)) for step in self.steps]
        made = [
            (IdealCall(call.name, call.arguments or {}), result)
            for _, call, result in attempt.calls
        ]
        done = [call for call, result in made if result is not None and result.ok]
        reasons = [] if attempt.error is None else [run_failed(attempt.error)]
        reasons += [Reason("STEP_MISSING", step.name) for step in expected if step not in done]
        strict = [*reasons, *self._check_strictly(attempt, expected, done)]
        return Grades(
            original=Verdict.of(reasons),
            strict=Verdict.of(strict),
            exact=tuple(call in expected for call, _ in made),
            state={"facts": facts},
        )

    def ideal(self, request: ModelRequest) -> Ideal | None:
        """Make the first step that was not made yet, with what is known."""
        seen = Conversation(request)
        known = {
            name: value
            for name, values in self.stated.items()
            for value in values
            if str(value) in seen.user_text
        }
        for made in seen.calls:
            known |= made.data if made.ok else {}
        for step in self.steps:
            if any(made.ok for made in seen.calls_of(step.tool)):
                continue
            if step.tool not in seen.offered or not set(step.takes) <= known.keys():
                break
            return Ideal(calls=(IdealCall(step.tool, _take(step, known)),))
        return Ideal(text=_ANSWER)

    def _check_strictly(
        self, attempt: Attempt, expected: Sequence[IdealCall], done: Sequence[IdealCall]
    ) -> Iterable[Reason]:
        if attempt.error is None and not attempt.text.strip():
            yield Reason("EMPTY_FINAL")
        first = [done.index(step) for step in expected if step in done]
        if first != sorted(first):
            yield Reason("STEP_ORDER", "the steps were not taken in order")
        effects = {step.tool for step in self.steps if step.effect != "read"}
        for _, call, result in attempt.calls:
            wrong = IdealCall(call.name, call.arguments or {}) not in expected
            if wrong and call.name in effects and result is not None and result.executed:
                yield Reason("ARGUMENTS_WRONG", clip(f"{call.name} {call.arguments}", 120))
                return

    def _instruct(self) -> str:
        return (
            "Do what the user asks with the tools, one call in each reply. What you need for a "
            "later step is in the results of the earlier ones: never make anything up. "
            "When everything is done, say so in one short sentence."
        )

    def _make_tool(self, step: Step, facts: Facts) -> Tool[..., Any]:
        spec = ToolSpec(
            name=step.tool,
            description=step.description,
            parameters={
                "type": "object",
                "properties": {name: self._describe(name, facts) for name in step.takes},
                "required": list(step.takes),
                "additionalProperties": False,
            },
            effect=step.effect,
        )

        def run(arguments: dict[str, Any]) -> dict[str, Any]:
            for name in step.takes:
                if arguments[name] != facts[name]:
                    message = f"{name}={arguments[name]!r} is not known here."
                    raise ToolFailed(Code.ARGUMENT_ERROR, message, "Copy it exactly.")
            return {name: facts[name] for name in step.gives} or {"done": True}

        def bind(arguments: dict[str, Any], context: ToolContext) -> Callable[[], Any]:
            return partial(run, arguments)

        return Tool(spec, run, binder=bind)

    def _describe(self, name: str, facts: Facts) -> dict[str, Any]:
        kind = "integer" if isinstance(facts[name], int) else "string"
        return {"type": kind, "description": self.about[name]}


def _take(step: Step, facts: Facts) -> Facts:
    return {name: facts[name] for name in step.takes}


ERRANDS: Final = (
    Errand(
        scenario="refund_order",
        request="Please refund the last order of {customer} in full.",
        stated={"customer": ("Mira Holt", "Jon Park", "Ada Winter", "Leo Brand")},
        hidden={"order_id": _code("ord-"), "amount": _number(20, 400)},
        about={
            "customer": "The full name of the customer.",
            "order_id": "The id of the order.",
            "amount": "The amount to refund, in whole euros.",
        },
        steps=(
            Step(
                tool="find_last_order",
                description="Find the last order of a customer, with its id and amount.",
                takes=("customer",),
                gives=("order_id", "amount"),
            ),
            Step(
                tool="create_refund",
                description="Pay money back for an order.",
                takes=("order_id", "amount"),
                effect="external",
            ),
        ),
    ),
    Errand(
        scenario="book_room",
        request="Book a meeting room for {guests} people at {hour} o'clock.",
        stated={"guests": (5, 6, 7), "hour": (10, 11, 14, 15)},
        hidden={"room": _word("Birch", "Falcon", "Harbour", "Quartz")},
        about={
            "guests": "How many people need a seat.",
            "hour": "The hour of the day, from 8 to 18.",
            "room": "The name of the room.",
        },
        steps=(
            Step(
                tool="find_free_room",
                description="Find a free room with enough seats at an hour.",
                takes=("guests", "hour"),
                gives=("room",),
            ),
            Step(
                tool="reserve_room",
                description="Reserve a room at an hour.",
                takes=("room", "hour"),
                effect="write",
            ),
        ),
    ),
    Errand(
        scenario="move_meeting",
        request="Move the meeting {title!r} to the next free slot.",
        stated={"title": ("Budget review", "Design critique", "Weekly sync")},
        hidden={"meeting_id": _code("m"), "slot": _word("Tue 09:30", "Wed 13:00", "Fri 16:15")},
        about={
            "title": "The title of the meeting.",
            "meeting_id": "The id of the meeting.",
            "slot": "Day and time, as the calendar writes it.",
        },
        steps=(
            Step(
                tool="find_meeting",
                description="Find a meeting by its title.",
                takes=("title",),
                gives=("meeting_id",),
            ),
            Step(
                tool="next_free_slot",
                description="Find the next slot that everyone in a meeting has free.",
                takes=("meeting_id",),
                gives=("slot",),
            ),
            Step(
                tool="reschedule_meeting",
                description="Move a meeting to a slot.",
                takes=("meeting_id", "slot"),
                effect="write",
            ),
        ),
    ),
    Errand(
        scenario="pay_invoice",
        request="Pay invoice {invoice}.",
        stated={"invoice": ("INV-311", "INV-542", "INV-897")},
        hidden={
            "supplier": _word("Northwind", "Kestrel", "Lumen"),
            "total": _number(100, 3000),
            "account": _code("ACC-"),
        },
        about={
            "invoice": "The number of the invoice.",
            "supplier": "The name of the supplier.",
            "account": "The account that the money goes to.",
            "total": "The amount to pay, in whole euros.",
        },
        steps=(
            Step(
                tool="read_invoice",
                description="Read an invoice: who sent it, and its total.",
                takes=("invoice",),
                gives=("supplier", "total"),
            ),
            Step(
                tool="supplier_account",
                description="Look up the account of a supplier.",
                takes=("supplier",),
                gives=("account",),
            ),
            Step(
                tool="make_payment",
                description="Pay an amount to an account.",
                takes=("account", "total"),
                effect="external",
            ),
        ),
    ),
    Errand(
        scenario="ship_parcel",
        request="Ship order {order} today.",
        stated={"order": ("A-17", "B-42", "C-08")},
        hidden={"shelf": _code("S"), "label": _code("LBL")},
        about={
            "order": "The number of the order.",
            "shelf": "The shelf that the goods lie on.",
            "label": "The number of the shipping label.",
        },
        steps=(
            Step(
                tool="locate_goods",
                description="Find out on which shelf the goods of an order lie.",
                takes=("order",),
                gives=("shelf",),
            ),
            Step(
                tool="print_label",
                description="Print the shipping label of an order.",
                takes=("order",),
                gives=("label",),
                effect="write",
            ),
            Step(
                tool="request_pickup",
                description="Have a parcel picked up from a shelf, with its label.",
                takes=("shelf", "label"),
                effect="external",
            ),
        ),
    ),
    Errand(
        scenario="reset_access",
        request="{email} has lost the phone for signing in. Reset the second factor.",
        stated={"email": ("kim@example.org", "noor@example.org", "sam@example.org")},
        hidden={"user_id": _code("u"), "ticket": _code("T-")},
        about={
            "email": "The email address of the user.",
            "user_id": "The id of the user.",
            "ticket": "The ticket that allows the reset.",
        },
        steps=(
            Step(
                tool="look_up_user",
                description="Find the id of a user by email address.",
                takes=("email",),
                gives=("user_id",),
            ),
            Step(
                tool="open_ticket",
                description="Open a ticket for a user; a reset needs one.",
                takes=("user_id",),
                gives=("ticket",),
                effect="write",
            ),
            Step(
                tool="reset_second_factor",
                description="Reset the second factor of a user.",
                takes=("user_id", "ticket"),
                effect="external",
            ),
        ),
    ),
)

_BY_NAME: Final = {errand.scenario: errand for errand in ERRANDS}


class ErrandsSuite:
    """The tasks of several dependent steps, each with one case."""

    name: Final = "errands"

    @cached_property
    def version(self) -> str:
        """A number, and a hash over every text and tool that a model is given."""
        surface = [
            [errand.scenario, prepared.system, prepared.messages, prepared.tools.specs()]
            for errand in ERRANDS
            for prepared in [errand.prepare(0)]
        ]
        return f"{_REVISION}-{canonical_hash(surface)[:_HASH_CHARS]}"

    def scenarios(self) -> Sequence[str]:
        """Name the tasks, in order."""
        return tuple(_BY_NAME)

    def cases(self, scenario: str) -> Sequence[Case]:
        """Return the one case of a task."""
        if scenario not in _BY_NAME:
            raise ConfigError(
                Code.UNKNOWN_SCENARIO,
                f"there is no errand {scenario!r}.",
                hint=did_you_mean(scenario, _BY_NAME),
            )
        return (_BY_NAME[scenario],)
