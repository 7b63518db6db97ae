"""A process that runs a script with a journal and kills itself at a chosen moment.

Run as a program, it reads one order a line and forks for each, so that a kill costs a fork and
not the start of an interpreter. What a run came to is written to the file the order names.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import surecall
from surecall import FileJournal, ToolContext
from surecall.errors import SurecallError
from surecall.loop.journal import JournalRecord
from surecall.transport import ScriptedReply, ScriptedTransport, assistant, tool_call

__all__ = ["play"]


class DyingJournal(FileJournal):
    """A journal that kills its process before or after writing a record."""

    def __init__(self, path: str, moment: str, number: int) -> None:
        super().__init__(path)
        self._moment, self._left = moment, number

    def append(self, record: JournalRecord, *, durable: bool) -> None:
        """Write the record, unless this is the moment to die."""
        kind = type(record).__name__
        self._die_at(f"before {kind}")
        self._die_at("before any")
        super().append(record, durable=durable)
        self._die_at(f"after {kind}")
        self._die_at("after any")

    def _die_at(self, moment: str) -> None:
        if moment == self._moment:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def tools_of(order: dict[str, Any]) -> list[Any]:
    """Return tools that leave a line in a file for each time they act."""

    def act(name: str, text: str, context: ToolContext) -> dict[str, Any]:
        with Path(order["effects"]).open("a") as file:
            file.write(f"{name} {text} {context.idempotency_key}\n")
        if order["moment"] == f"during {name}":
            os.kill(os.getpid(), signal.SIGKILL)
        return {"done": text}

    @surecall.tool(effect="write")
    def write(text: str, context: ToolContext) -> dict[str, Any]:
        """Act once."""
        return act("write", text, context)

    @surecall.tool(effect="external", idempotent=True)
    def put(text: str, context: ToolContext) -> dict[str, Any]:
        """Act; doing it again does no more."""
        return act("put", text, context)

    @surecall.tool(effect="read")
    async def read(text: str, context: ToolContext) -> dict[str, Any]:
        """Only look."""
        return act("read", text, context)

    return [write, put, read]


def answer_of(order: dict[str, Any]) -> Any:
    """Return a model that calls the tools of the order turn by turn and then answers."""

    def answer(request: Any) -> Any:
        body = request.body
        if order.get("refuses_tools") and "tools" in body:
            return ScriptedReply(status=400, message="no tools")
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        if order.get("refuses_tools") or turn >= len(order["turns"]):
            return "the end"
        entries = [
            tool_call(name, {"text": f"{turn}.{at}"}, f"c{at}")
            for at, name in enumerate(order["turns"][turn])
        ]
        return assistant(None, *entries)

    return answer


def play(order: dict[str, Any]) -> dict[str, Any]:
    """Run or resume what the order says, and return what it came to."""
    transport = ScriptedTransport(answer_of(order))
    journal = DyingJournal(order["journal"], order["moment"], order.get("number", 1))
    given: dict[str, Any] = {"fallback_retry_count": 1, "max_turns": 9, **order.get("options", {})}
    try:
        result = asyncio.run(
            surecall.run(
                "go",
                model="m",
                preset=(),
                tools=tools_of(order),
                transport=transport,
                journal=journal,
                **given,
            )
        )
    except SurecallError as error:
        return {"code": error.code, "requests": len(transport.requests)}
    return {
        "code": "",
        "text": result.text,
        "run_id": result.run_id,
        "requests": len(transport.requests),
        "told": [message.text for message in result.history if message.role == "tool"],
    }


def main() -> None:
    """Take orders until there are no more."""
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            Path(order["report"]).write_text(json.dumps(play(order)))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
