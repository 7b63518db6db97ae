"""The suite `errands`: tasks of several dependent steps, each on tools of its own.

A task is data: facts that the user states, facts that only tools know, and steps that take some
and give others. An application that has such a task declares just that: every step is required, and
a step requires those that give what it takes.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from functools import cached_property, partial
from random import Random
from typing import Any, Final

import msgspec
from msgspec import Struct

from surecall.base.errors import Code
from surecall.base.records import Effect, Message, ModelRequest, ToolResult, ToolSpec, clip
from surecall.evals.cases import (
    ENFORCED,
    Attempt,
    Case,
    Declarations,
    Grades,
    Ideal,
    IdealCall,
    Prepared,
    make_grades,
    number_version,
    refuse_scenario,
    run_failed,
)
from surecall.evals.made_calls import (
    MadeCall,
    check_one_by_one,
    check_plain_answer,
    check_written_calls,
    list_attempts,
    list_numbers,
    list_words,
    plain_name,
    says_nothing,
)
from surecall.evals.records import Reason, Verdict, read_data
from surecall.evals.scenarios.scene import Conversation
from surecall.tools import Tool, ToolContext, ToolFailed, ToolRegistry

_OPTIONS: Final[dict[str, Any]] = {
    "tool_failure_policy": "tolerated",
    "max_turns": 10,
}
_ANSWER: Final = "It is done."
_FULL_HOUR: Final = re.compile(r"(?<=\d)(?::00){1,2}\b")
_MIN_LIKENESS: Final = 0.6

Facts = dict[str, Any]


class HiddenFact(Struct, frozen=True, kw_only=True):
    """A fact that is drawn for each trial: a code, one of some words, or a number from a range."""

    code: str = ""
    words: tuple[str, ...] = ()
    range: tuple[int, int] = (1000, 10_000)

    def draw(self, random: Random) -> Any:
        """Return the fact of one trial."""
        if self.words:
            return random.choice(self.words)
        number = random.randrange(*self.range)
        return f"{self.code}{number}" if self.code else number


class Step(Struct, frozen=True, kw_only=True):
    """One call: the tool, the facts it takes, and those it gives."""

    tool: str
    description: str
    takes: tuple[str, ...]
    gives: tuple[str, ...] = ()
    effect: Effect = "read"


class Errand(Struct, frozen=True, kw_only=True):
    """One task with its only case.

    The loose verdict asks whether every step was done rightly in the end. The strict one asks as
    well for an answer, one call in each reply, and each step after those that give what it takes;
    that no fact was made up, no step with effects done twice or tried with other facts, and no
    tool tried that there is not.
    """

    scenario: str
    request: str
    """What the user says, with the stated facts in braces."""
    stated: dict[str, tuple[Any, ...]]
    """The facts that the user states, each with the values it may have."""
    hidden: dict[str, HiddenFact]
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
        facts |= {name: fact.draw(random) for name, fact in self.hidden.items()}
        return Prepared(
            tools=ToolRegistry(self._make_tool(step, facts) for step in self.steps),
            system=self._instruct(),
            messages=(Message("user", self.request.format(**facts)),),
            options=dict(_OPTIONS),
            defaults=ENFORCED,
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
        failed = [] if attempt.error is None else [run_failed(attempt.error)]
        missing = [Reason("STEP_MISSING", step.name) for step in expected if step not in done]
        return make_grades(
            original=Verdict.of([*failed, *missing]),
            state=[*missing, *self._check_effects(made)],
            process=[*failed, *self._check_process(attempt, expected, done)],
            answer=check_plain_answer(attempt),
            exact=tuple(call in expected for call, _ in made),
            kept={"facts": facts},
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

    @property
    def _effects(self) -> frozenset[str]:
        return frozenset(step.tool for step in self.steps if step.effect != "read")

    def _check_effects(
        self, made: Sequence[tuple[IdealCall, ToolResult | None]]
    ) -> Iterator[Reason]:
        """Look for steps with effects that were done more often than once."""
        done = [call.name for call, result in made if result is not None and result.ok]
        for tool in sorted(self._effects):
            if done.count(tool) > 1:
                yield Reason("EFFECT_REPEATED", f"{tool} was done {done.count(tool)} times")

    def _check_process(
        self, attempt: Attempt, expected: Sequence[IdealCall], done: Sequence[IdealCall]
    ) -> Iterator[Reason]:
        if attempt.error is None and says_nothing(attempt.text):
            yield Reason("EMPTY_FINAL")
        for tool, needed in self.declarations.requires.items():
            names = [call.name for call in done if call in expected]
            if tool in names and any(names.index(tool) < _find(names, each) for each in needed):
                yield Reason("STEP_ORDER", f"{tool} was done before what it needs")
        yield from check_one_by_one(attempt)
        yield from check_written_calls(attempt)
        attempts = list_attempts(attempt)
        yield from self._check_sources(attempt.prepared.state, attempts)
        for call in attempts:
            if self._is_astray(call, attempt.prepared.state):
                yield Reason("ARGUMENTS_WRONG", clip(f"{call.name} {call.arguments}", 120))
                return

    def _check_sources(self, facts: Facts, attempts: Sequence[MadeCall]) -> Iterator[Reason]:
        """Look for facts that a call has before any result gave them."""
        known = dict.fromkeys(self.stated, -1)
        steps = {step.tool: step for step in self.steps}
        for call in attempts:
            step = steps.get(call.name)
            if step is None:
                continue
            for name in step.takes:
                is_right = name in call.arguments and _means(call.arguments[name], facts[name])
                if is_right and known.get(name, call.turn) >= call.turn:
                    yield Reason("FACT_MADE_UP", f"{name} of {call.name}")
            if call.ok:
                known |= {name: call.turn for name in step.gives if name not in known}

    def _is_astray(self, call: MadeCall, facts: Facts) -> bool:
        """Tell whether a call was meant for something else than the task is about."""
        if call.name in self._effects:
            return self._has_other_facts(call, facts)
        return any(
            isinstance(facts[name], str) and not _is_like(str(call.arguments[name]), facts[name])
            for name in self.stated
            if name in call.arguments
        )

    def _has_other_facts(self, call: MadeCall, facts: Facts) -> bool:
        """Tell whether a call names other facts than the right ones, whatever became of it.

        An argument that only begins or ends with the name of a fact, such as `amount_eur`, is one.
        """
        return any(
            plain_name(name) in plain_name(key) and not _means(value, facts[name])
            for key, value in _list_sent(call)
            for name in self.about
        )

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


_SENT: Final = re.compile(r'"(\w{1,60})"\s{0,8}:\s{0,8}(?:"([^"]{0,200})"|(-?\d{1,15}))')


def _list_sent(call: MadeCall) -> list[tuple[str, Any]]:
    """Return what a call sends, also where its arguments cannot be read."""
    if call.arguments:
        return list(call.arguments.items())
    return [(key, text or number) for key, text, number in _SENT.findall(call.raw)]


def _means(value: Any, fact: Any) -> bool:
    """Tell whether a value means a fact: a number by its amount, a text by its letters."""
    if isinstance(fact, int):
        return list_numbers(_FULL_HOUR.sub("", str(value))) == [fact]
    return plain_name(str(value)) == plain_name(fact) or _spells_out(str(value), fact)


def _spells_out(value: str, fact: str) -> bool:
    """Tell whether a text is a fact with more around it, such as `Wednesday 13:00:00`."""
    mine, wanted = list_words(value), list_words(fact)
    for start in range(len(mine) - len(wanted) + 1):
        end = start + len(wanted)
        if all(map(_is_long_form, mine[start:end], wanted)):
            return not any(_has_number(word) for word in (*mine[:start], *mine[end:]))
    return False


def _is_long_form(word: str, short: str) -> bool:
    return word == short or (short.isalpha() and len(short) > 2 and word.startswith(short))


def _has_number(word: str) -> bool:
    return any(char.isdigit() and char != "0" for char in word)


def _is_like(value: str, fact: str) -> bool:
    """Tell whether a text may be a fact, shortened, with something around it or misspelled."""
    mine, wanted = plain_name(value), plain_name(fact)
    if mine in wanted or wanted in mine:
        return True
    return SequenceMatcher(None, mine, wanted, autojunk=False).ratio() >= _MIN_LIKENESS


def _find(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else len(names)


def _take(step: Step, facts: Facts) -> Facts:
    return {name: facts[name] for name in step.takes}


ERRANDS: Final = msgspec.convert(read_data("errands.toml")["errands"], tuple[Errand, ...])
"""Every task, in order."""
_REVISION: Final = 6
"""To be raised when verdicts change."""
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
        return number_version(_REVISION, surface)

    def scenarios(self) -> Sequence[str]:
        """Name the tasks, in order."""
        return tuple(_BY_NAME)

    def cases(self, scenario: str) -> Sequence[Case]:
        """Return the one case of a task."""
        if scenario not in _BY_NAME:
            raise refuse_scenario(self.name, scenario, _BY_NAME)
        return (_BY_NAME[scenario],)
