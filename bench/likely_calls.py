"""What `likely_calls` costs and saves: the scenarios, by models that write their calls in text.

    python bench/likely_calls.py [--seeds 5]

The models do what each scenario calls ideal, but write every call among other words instead of
making it. One learns: when it reads that a call was not executed, it makes tool calls from then
on. The other never does. The replies are simulated, so the numbers are the same everywhere.
"""

import argparse
import asyncio
import json
from collections.abc import Callable
from typing import Any

from surecall.base.errors import SurecallError
from surecall.base.records import WireRequest
from surecall.evals.cases import Attempt, Ideal
from surecall.evals.scenarios import SCENARIOS, Scenario
from surecall.loop import Session
from surecall.models.config import Config
from surecall.models.transport import ScriptedTransport, assistant, tool_call
from surecall.wire import ChatCompletions

OPTIONS: dict[str, dict[str, Any]] = {
    "text_formats = off": {"text_formats": "off", "likely_calls": "never"},
    "never": {"likely_calls": "never"},
    "by_effect": {"likely_calls": "by_effect"},
    "run": {"likely_calls": "run"},
}
PROTOCOL = ChatCompletions()


def write(ideal: Ideal) -> str:
    """Write calls among other words."""
    calls = "\n".join(
        json.dumps({"name": call.name, "arguments": call.arguments}) for call in ideal.calls
    )
    return f"I will do that now.\n{calls}\nThat is all for this step."


def make_model(scenario: Scenario, *, learns: bool) -> Callable[[WireRequest], Any]:
    """Return a model that writes its calls in text, until it is told if it learns."""

    def answer(wire: WireRequest) -> Any:
        ideal = scenario.ideal(PROTOCOL.parse_request(wire))
        if not ideal.calls:
            return assistant(ideal.text)
        messages = wire.body["messages"]
        if learns and any("NOT EXECUTED" in str(message.get("content")) for message in messages):
            number = len(messages)
            calls = [
                tool_call(call.name, call.arguments, f"call_{number}_{place}")
                for place, call in enumerate(ideal.calls)
            ]
            return assistant(None, *calls)
        return assistant(write(ideal))

    return answer


async def play(
    scenario: Scenario, seed: int, *, learns: bool, **options: Any
) -> tuple[bool, int, int]:
    """Run one trial; return whether it was right, its requests and its compensating requests."""
    prepared = scenario.prepare(seed)
    transport = ScriptedTransport(make_model(scenario, learns=learns))
    session = Session(
        model="scripted",
        config=Config(),
        tools=prepared.tools,
        system=prepared.system,
        transport=transport,
        preset=(),
        **{**prepared.options, **options},
    )
    result, error = None, None
    try:
        result = await session.run(prepared.messages)
    except SurecallError as caught:
        error = caught
    trace = result.trace if result else getattr(error, "trace", None)
    attempt = Attempt(
        prepared=prepared,
        result=result,
        error=error,
        trace=trace,
        text=result.text if result else "",
        history=result.history if result else getattr(error, "history", ()),
    )
    right = scenario.grade(attempt).strict.ok
    return right, len(transport.requests), trace.compensating_requests if trace else 0


async def compare(seeds: int) -> None:
    """Play every scenario with every option, and print one line each."""
    print(f"{'model':14}{'option':20}{'right':>8}{'runs':>6}{'requests':>10}{'compensating':>14}")
    for learns in (True, False):
        for name, options in OPTIONS.items():
            played = [
                await play(scenario, seed, learns=learns, **options)
                for scenario in SCENARIOS
                for seed in range(seeds)
            ]
            right, requests, extra = (sum(column) for column in zip(*played, strict=True))
            model = "learns" if learns else "never learns"
            print(f"{model:14}{name:20}{right:>8}{len(played):>6}{requests:>10}{extra:>14}")


def main() -> None:
    """Read the flags and compare."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    asyncio.run(compare(parser.parse_args().seeds))


if __name__ == "__main__":
    main()
