"""What surecall does with replies that are broken: no key, no network, nothing to install.

python examples/broken_reply.py
"""

from dataclasses import dataclass
from typing import Any

import surecall
from surecall import assistant, tool_call
from surecall.models.transport import ScriptedReply

deleted: list[str] = []


@surecall.tool(effect="read")
def weather(city: str, days: int = 1) -> dict[str, Any]:
    """Tell the weather of a city."""
    return {"city": city, "sky": ["clear"] * days}


@surecall.tool(effect="write")
def delete(path: str) -> str:
    """Delete a file."""
    deleted.append(path)
    return "deleted"


@dataclass(frozen=True)
class Case:
    """A reply, and what it is an example of."""

    title: str
    reply: Any
    stream: bool = False


CASES = [
    Case("a clean call", assistant(None, tool_call("weather", {"city": "Oslo"}))),
    Case(
        "arguments in a code fence",
        assistant(None, tool_call("weather", '```json\n{"city": "Oslo"}\n```')),
    ),
    Case(
        "JSON inside JSON text",
        assistant(None, tool_call("weather", '"{\\"city\\": \\"Oslo\\"}"')),
    ),
    Case(
        "two calls with one id",
        assistant(
            None, tool_call("weather", {"city": "Oslo"}), tool_call("weather", {"city": "Rome"})
        ),
    ),
    Case("a wrong type", assistant(None, tool_call("weather", {"city": "Oslo", "days": "many"}))),
    Case("broken JSON", assistant(None, tool_call("weather", "{city: Oslo}"))),
    Case("a tool that is not there", assistant(None, tool_call("wether", {"city": "Oslo"}))),
    Case(
        "a call cut by the token limit",
        ScriptedReply(
            message=assistant(None, tool_call("delete", '{"path": "/tmp/a"}')),
            finish_reason="length",
        ),
    ),
    Case(
        "a stream that stops half-way",
        ScriptedReply(
            message=assistant(None, tool_call("delete", '{"path": "/tmp/a"}')), cut_at_bytes=250
        ),
        stream=True,
    ),
    Case(
        "a web page in place of a reply", ScriptedReply(body=b"<html><title>Login</title></html>")
    ),
    Case("an error inside a success", {"error": {"message": "Rate limit exceeded", "code": 429}}),
]


def show(case: Case) -> None:
    """Run one case and print what became of it."""
    print(f"\n{case.title}")
    script = surecall.ScriptedTransport([case.reply, "All done."])
    try:
        result = surecall.run_sync(
            "Go.", model="demo", tools=[weather, delete], transport=script, stream=case.stream
        )
    except surecall.ProviderError as error:
        print(f"  refused   {error.code}: {error.message}")
        return
    for call, answer in zip(result.calls, result.results, strict=True):
        for receipt in call.receipts:
            print(f"  receipt   {receipt.rule}: {receipt.before!r} -> {receipt.after!r}")
        if answer.executed:
            print(f"  ran       {call.name}({call.arguments})")
        for error in answer.envelope.errors:
            print(f"  refused   {error.code}: {error.message}")
            print(f"            the model reads: {error.hint}")


if __name__ == "__main__":
    for each in CASES:
        show(each)
    print(f"\n{len(CASES)} replies, {len(deleted)} files deleted.")
