"""A process that runs a script with a journal and kills itself at a chosen moment.

Run as a program, it reads one order a line and forks for each, so that a kill costs a fork and
not the start of an interpreter. What a run came to is written to the file the order names. An
order may also say after how many seconds the victim is killed, wherever it is by then.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import surecall
from surecall import FileJournal, ToolContext
from surecall.base.errors import SurecallError
from surecall.loop.journal import JournalRecord
from surecall.models.transport import ScriptedReply, ScriptedTransport, assistant, tool_call

__all__ = ["Scene", "Zygote", "approve_all", "check_race", "play"]


KILLED = -9


class Zygote:
    """The process that forks a victim for each order."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def order(self, order: dict[str, Any]) -> int:
        """Have an order carried out and return how the victim ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """Send it home."""
        self._process.communicate()


@dataclass
class Scene:
    """One journal, one file of side effects, and as many processes as it takes."""

    zygote: Zygote
    folder: Path
    turns: list[list[str]] = field(default_factory=lambda: [["write"]])
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    resumes: bool = False
    """Whether the calls that the run waits for were decided."""

    def play(self, moment: str = "never", number: int = 1, **extra: Any) -> dict[str, Any] | None:
        """Run or resume in a new process; return `None` when it was killed."""
        report = self.folder / "report"
        order = {
            "journal": str(self.folder / "journal"),
            "effects": str(self.folder / "effects"),
            "report": str(report),
            "turns": self.turns,
            "moment": moment,
            "number": number,
            **self.extra,
            **extra,
        }
        status = self.zygote.order(order)
        if status == KILLED:
            return None
        assert status == 0
        return json.loads(report.read_text())

    def pause_and_resume(self, store: str, **moment: Any) -> dict[str, Any] | None:
        """Start the run, or resume it when its calls were decided; return `None` when killed."""
        report = self.play(store=store, resumes=self.resumes, **moment)
        if report is not None and report["code"] == "APPROVAL_PENDING":
            approve_all(store)
            self.resumes = True
        return report

    def race(self, rivals: Sequence[Zygote], store: str, **extra: Any) -> list[dict[str, Any]]:
        """Resume the run in one process of each rival at once, and return what each came to."""

        def resume(number: int) -> dict[str, Any]:
            scene = Scene(rivals[number], self.folder / f"rival{number}", self.turns, self.extra)
            scene.folder.mkdir(exist_ok=True)
            effects = str(self.folder / "effects")
            report = scene.play(store=store, resumes=True, effects=effects, **extra)
            assert report is not None
            return report

        with ThreadPoolExecutor(len(rivals)) as threads:
            return list(threads.map(resume, range(len(rivals))))

    @property
    def effects(self) -> list[str]:
        """What the tools did, each with its idempotency key."""
        path = self.folder / "effects"
        return path.read_text().splitlines() if path.exists() else []

    @property
    def writes(self) -> list[str]:
        """What the tools did that must not act twice; each has another argument."""
        return [line for line in self.effects if line.startswith(("write", "pay"))]

    @property
    def records(self) -> tuple[JournalRecord, ...]:
        """What is in the journal."""
        journal = FileJournal(self.folder / "journal")
        try:
            return journal.load()
        finally:
            journal.close()


class DyingJournal(FileJournal):
    """A journal that kills its process before, while or after writing a record."""

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

    def _write(self, line: bytes, *, durable: bool) -> None:
        if self._moment == "inside any" and self._left == 1:
            super()._write(line[: len(line) // 2], durable=True)
        self._die_at("inside any")
        super()._write(line, durable=durable)

    def _die_at(self, moment: str) -> None:
        if moment == self._moment:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


class DyingStore:
    """A store for approvals that kills its process before or after one of its steps."""

    def __init__(self, store: Any, moment: str, number: int) -> None:
        self._store, self._moment, self._left = store, moment, number

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        async def step(*args: Any, **options: Any) -> Any:
            self._die_at(f"before {name}")
            self._die_at("before any step")
            done = await method(*args, **options)
            self._die_at(f"after {name}")
            self._die_at("after any step")
            return done

        return step

    def _die_at(self, moment: str) -> None:
        if moment == self._moment:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def approve_all(store: str) -> None:
    """Approve everything that waits, from this process."""

    async def approve() -> None:
        async with import_module("surecall.store").open_store(store) as opened:
            for approval in await opened.list(status="pending"):
                await surecall.approve(opened, approval.id, by="ada")

    asyncio.run(approve())


def check_race(reports: Sequence[dict[str, Any]]) -> None:
    """Check that one process went on, and that any other was told with a code why it did not."""
    ended = [report for report in reports if report["code"] in ("", "APPROVAL_PENDING")]
    lost = [report["code"] for report in reports if report not in ended]
    assert ended, reports
    assert set(lost) <= {"JOURNAL_IN_USE", "APPROVAL_NOT_FOUND"}, reports
    assert not any("OUTCOME_UNKNOWN" in told for each in ended for told in each["told"]), reports


def tools_of(order: dict[str, Any]) -> list[Any]:
    """Return tools that leave a line in a file for each time they act."""

    def act(name: str, text: str, context: ToolContext) -> dict[str, Any]:
        time.sleep(order.get("takes_s", 0.0))
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

    @surecall.tool(effect="external", approval="required")
    def pay(text: str, context: ToolContext) -> dict[str, Any]:
        """Act once, when somebody has approved it."""
        return act("pay", text, context)

    return [write, put, read, pay]


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
    given |= {"preset": (), "tools": tools_of(order), "transport": transport}

    async def run() -> surecall.RunResult:
        async with AsyncExitStack() as stack:
            if "store" in order:
                opened = import_module("surecall.store").open_store(order["store"])
                store = await stack.enter_async_context(opened)
                given["approvals"] = DyingStore(store, order["moment"], order.get("number", 1))
            if order.get("resumes"):
                return await surecall.resume(order["run_id"], **given)
            run_id = order.get("run_id")
            return await surecall.run("go", model="m", journal=journal, run_id=run_id, **given)

    try:
        result = asyncio.run(run())
    except SurecallError as error:
        return {"code": error.code, "requests": len(transport.requests)}
    return {
        "code": result.code,
        "text": result.text,
        "run_id": result.run_id,
        "requests": len(transport.requests),
        "told": [message.text for message in result.history if message.role == "tool"],
    }


def preload() -> None:
    """Load what every victim needs, so that a fork has it."""
    assert callable(surecall.resume)
    with suppress(ImportError):
        import_module("surecall.store")


def main() -> None:
    """Take orders until there are no more."""
    preload()
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            Path(order["report"]).write_text(json.dumps(play(order)))
            os._exit(0)
        if "kill_after_s" in order:
            time.sleep(order["kill_after_s"])
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
