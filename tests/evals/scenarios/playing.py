"""Scenarios played through the real loop, by a perfect model or by a script."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from surecall.base.errors import SurecallError
from surecall.base.records import WireRequest
from surecall.evals.cases import Attempt, Grades, Ideal, Prepared
from surecall.evals.scenarios import Scenario
from surecall.loop import Session
from surecall.models.config import Config
from surecall.models.transport import ScriptedReply, ScriptedTransport, assistant, tool_call
from surecall.wire import ChatCompletions

__all__ = ["Played", "cut", "patch", "perfect", "play", "read", "rendered"]

Model = Callable[[WireRequest], Any]


class Played(NamedTuple):
    """A trial that is over."""

    prepared: Prepared
    attempt: Attempt
    grades: Grades

    @property
    def original_codes(self) -> list[str]:
        """Why the loose verdict is no."""
        return [reason.code for reason in self.grades.original.reasons]

    @property
    def strict_codes(self) -> list[str]:
        """Why the strict verdict is no."""
        return [reason.code for reason in self.grades.strict.reasons]

    @property
    def answer_codes(self) -> list[str]:
        """Why the final text is not right."""
        parts = self.grades.parts
        answer = None if parts is None else parts.answer
        return [] if answer is None else [reason.code for reason in answer.reasons]


def perfect(scenario: Scenario) -> Model:
    """Return a model that always does what the scenario calls ideal."""
    protocol = ChatCompletions()

    def answer(wire: WireRequest) -> Any:
        return rendered(scenario.ideal(protocol.parse_request(wire)), len(wire.body["messages"]))

    return answer


def rendered(ideal: Ideal, number: int) -> dict[str, Any]:
    """Return the assistant message that does what is ideal."""
    calls = [
        tool_call(call.name, call.arguments, f"call_{number}_{place}")
        for place, call in enumerate(ideal.calls)
    ]
    return assistant(None, *calls) if calls else assistant(ideal.text)


async def play(
    scenario: Scenario, model: Model | Sequence[Any], *, seed: int = 7, **options: Any
) -> Played:
    """Run one trial and have it judged."""
    prepared = scenario.prepare(seed)
    session = Session(
        model="scripted",
        config=Config(),
        tools=prepared.tools,
        system=prepared.system,
        transport=ScriptedTransport(model if callable(model) else list(model)),
        preset=(),
        **{**prepared.defaults, **prepared.options, **options},
    )
    result, error = None, None
    form: dict[str, Any] = {} if prepared.output is None else {"output": prepared.output}
    try:
        result = await session.run(prepared.messages, **form)
    except SurecallError as caught:
        error = caught
    attempt = Attempt(
        prepared=prepared,
        result=result,
        error=error,
        trace=result.trace if result else getattr(error, "trace", None),
        text=result.text if result else "",
        history=result.history if result else getattr(error, "history", ()),
    )
    return Played(prepared, attempt, scenario.grade(attempt))


def read(call_id: str = "c1", **arguments: Any) -> dict[str, Any]:
    """Return a reply that reads the workspace."""
    return assistant(None, tool_call("state_get", arguments, call_id))


def patch(
    value: Any = "bar", path: str = "/draft/foo", call_id: str = "c2", **arguments: Any
) -> dict[str, Any]:
    """Return a reply that sets one path."""
    operations = [{"op": "set", "path": path, "value": value}]
    given = {"request_id": "r1", "ops": operations, **arguments}
    return assistant(None, tool_call("state_patch", given, call_id))


def cut(message: dict[str, Any]) -> ScriptedReply:
    """Return a reply that stopped at its token limit."""
    return ScriptedReply(message=message, finish_reason="length")
