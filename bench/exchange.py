"""What a clean reply costs on its way through an exchange, in each wire format.

    python bench/exchange.py

Prints µs for the parts and the whole of the clean path (request parsed, reply judged, the very
bytes delivered), next to `json.loads` of the same reply and `read_reply` of it, and what a
repaired reply and one in another format cost. The lowest of several rounds counts: other work on
the machine only ever adds.
"""

import argparse
import json
from collections.abc import Callable
from time import perf_counter
from typing import Any

from surecall.base.records import Message, ModelRequest, RawCall, Reply, ToolSpec, Usage
from surecall.exchange.checks import read_clean
from surecall.exchange.mediation import mediate
from surecall.exchange.policy import Policy, Route, Sent
from surecall.exchange.request import ClientRequest
from surecall.reading import read_reply
from surecall.wire import find_protocol

FORMATS = ("chat_completions", "messages", "responses", "gemini")
PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "The city, in English."},
        "days": {"type": "integer", "minimum": 1},
        "units": {"type": "string", "enum": ["metric", "imperial"]},
    },
    "required": ["city"],
}
TOOL = ToolSpec(name="get_weather", description="Tells the weather.", parameters=PARAMETERS)
ARGUMENTS = {"city": "Paris", "days": 3, "units": "metric"}
SYSTEM = "You are a helpful assistant. Use the tools you are given, and answer in one sentence."
PADDING = "x" * 700


def measure(run: Callable[[], Any], rounds: int) -> float:
    """Return the µs of one call: the lowest of several rounds."""
    number = 200
    best = float("inf")
    for _ in range(rounds):
        began = perf_counter()
        for _ in range(number):
            run()
        best = min(best, perf_counter() - began)
    return best / number * 1e6


def write_request(name: str) -> bytes:
    messages = (Message("system", SYSTEM), Message("user", "What is the weather in Paris?"))
    asked = ModelRequest(model="m", messages=messages, tools=(TOOL,))
    return json.dumps(find_protocol(name).render_request(asked).body).encode()


def write_reply(name: str, arguments: str) -> bytes:
    reply = Reply(
        calls=(RawCall("call_abc123", "get_weather", arguments),),
        finish_reason="tool_calls",
        usage=Usage(120, 30, 150),
        model="m",
        id="r1",
    )
    document = find_protocol(name).render_reply(reply)
    return json.dumps({**document, "padding": PADDING}).encode()


def drive(coroutine: Any) -> Any:
    """Run a coroutine that never waits, without an event loop."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise RuntimeError("it waited")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=40)
    rounds = options.parse_args().rounds
    head = ("parse", "judge", "whole path", "json.loads", "read_reply", "repaired", "translated")
    print(f"{'µs':18}" + "".join(f"{title:>12}" for title in head))
    for at, name in enumerate(FORMATS):
        wire, other = find_protocol(name), FORMATS[(at + 1) % len(FORMATS)]
        body = write_request(name)
        reply = write_reply(name, json.dumps(ARGUMENTS))
        loose = write_reply(name, json.dumps({**ARGUMENTS, "days": "3"}))
        away = write_reply(other, json.dumps(ARGUMENTS))
        here = Route(protocol=wire, model="m")
        there = Route(protocol=find_protocol(other), model="m")
        request = ClientRequest.parse(wire, body, model="m")

        def run(answer: bytes, route: Route, wire: Any = wire, body: bytes = body) -> Any:
            async def send(_: bytes) -> Sent:
                return Sent(200, {}, answer)

            asked = ClientRequest.parse(wire, body, model="m")
            return drive(mediate(asked, route, Policy(), send))

        assert run(reply, here).outcome == "clean"
        assert run(loose, here).outcome == "repaired"
        assert run(away, there).outcome == "clean"

        def read(wire: Any = wire, reply: bytes = reply, request: Any = request) -> Any:
            return read_reply(wire.parse_message(wire.parse_body(reply)), tools=request.tools.names)

        figures = (
            measure(lambda: ClientRequest.parse(wire, body, model="m"), rounds),  # noqa: B023
            measure(lambda: read_clean(request, reply), rounds),  # noqa: B023
            measure(lambda: run(reply, here), rounds),  # noqa: B023
            measure(lambda: json.loads(reply), rounds),  # noqa: B023
            measure(read, rounds),
            measure(lambda: run(loose, here), max(3, rounds // 8)),  # noqa: B023
            measure(lambda: run(away, there), max(3, rounds // 8)),  # noqa: B023
        )
        print(f"{name:18}" + "".join(f"{figure:12.1f}" for figure in figures))
    print(f"request {len(body)} bytes, reply {len(reply)} bytes (the last format)")


if __name__ == "__main__":
    main()
