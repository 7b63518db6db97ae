"""Run agent programs on a small task under faults, alone and through surecall.

python scripts/agent_programs.py [--install] [--only PROGRAM ...] [--fault FAULT ...] [--write]
python scripts/agent_programs.py --only codex claude --fault clean --slow 330 [--speaks messages]

A scripted model on loopback reads a file, edits it, runs it and answers; it makes one mistake of a
kind in every reply, or in every second one where the mistake cannot be repaired. A task is finished
when the file is changed and the program ends with the model's answer. Programs are installed from
npm and PyPI into a cache folder; nothing else is fetched. `--write` puts the table into the
documentation; `--requests` keeps what the gateway asks for chat templates to render, one body a
line. With `--slow` the edit writes the file as a whole, in pieces half a second apart.
"""

import argparse
import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from surecall.base.json_values import as_fields
from surecall.base.records import ModelRequest, ToolSpec, WireRequest
from surecall.exchange.request import ClientRequest
from surecall.faults import Answer, FaultServer, FaultyProvider
from surecall.faults.answers import Pause
from surecall.faults.conversation import Action, CallTools, PlannedCall, Say
from surecall.faults.schedule import FaultPlan, PlanStep
from surecall.gateway import Gateway
from surecall.gateway.programs import PLACEHOLDER_KEY, GatewayAddress, find_program
from surecall.gateway.server import GatewayServer, bind_socket
from surecall.gateway.settings.load import load_settings
from surecall.wire import WireProtocol

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = ROOT / "docs/explanation/clients-with-and-without.md"
START: Final = "<!-- agents: made by agent_programs.py -->"
END: Final = "<!-- end of agents -->"
CACHE: Final = Path.home() / ".cache" / "surecall" / "agent-programs"
TASK: Final = (
    "Read app.py, change the word Hello in it to Goodbye, run it with python3, and say what it "
    "prints."
)
ANSWER: Final = "It prints: Goodbye, world. That is TASK-DONE."
FILLER: Final = "a line of 24 characters"
SECONDS: Final = 60.0
MAX_REQUESTS: Final = 30

ALWAYS: Final = (
    "clean",
    "arguments_trailing_comma",
    "arguments_python",
    "arguments_double_encoded",
    "name_in_capitals",
    "id_reused",
    "finish_stop_with_calls",
    "text_hermes",
    "text_json_fence",
    "text_mistral",
    "final_empty",
)
"""Faults of every reply."""
SOMETIMES: Final = (
    "arguments_missing_field",
    "arguments_wrong_type",
    "name_unknown",
    "cut_at_limit",
    "stream_cut",
)
"""Faults of every second reply, which nobody can repair."""


class Command(NamedTuple):
    """How a program is installed, and how it is run without anybody in front of it."""

    package: str
    words: tuple[str, ...]
    variables: Mapping[str, str] = MappingProxyType({})
    model: str = "weak"
    is_python: bool = False


PROGRAMS: Final[dict[str, Command]] = {
    "codex": Command(
        "@openai/codex",
        ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", TASK),
    ),
    "claude": Command(
        "@anthropic-ai/claude-code",
        ("-p", TASK, "--allowedTools", "Read,Edit,Write,Bash"),
        {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"},
    ),
    "opencode": Command(
        "opencode-ai",
        ("run", TASK),
        {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"},
    ),
    "qwen": Command(
        "@qwen-code/qwen-code", ("--yolo", "--auth-type", "openai", "-p", TASK), {"NO_COLOR": "1"}
    ),
    "gemini": Command(
        "@google/gemini-cli", ("--yolo", "--skip-trust", "-p", TASK), {"NO_COLOR": "1"}
    ),
    "mini": Command(
        "mini-swe-agent",
        ("--yolo", "--exit-immediately", "--cost-limit", "0", "-m", "openai/weak", "-t", TASK),
        {"MSWEA_COST_TRACKING": "ignore_errors", "MSWEA_CONFIGURED": "true"},
        is_python=True,
    ),
}
_FILE_KEYS: Final = ("file_path", "filePath", "absolute_path", "path")
_SHELLS: Final = ("bash", "Bash", "run_shell_command", "exec_command", "shell", "shell_command")
_SUBMIT: Final = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


class WeakModel:
    """Knows what comes next in the task, from the conversation and the folder."""

    def __init__(self, folder: Path, slow_s: float = 0.0) -> None:
        self._file = folder / "app.py"
        self._filler = f"# {FILLER}\n" * round(slow_s)
        self.requests = 0

    @property
    def is_edited(self) -> bool:
        """Whether the file is as the task wants it."""
        return "Goodbye" in self._file.read_text(encoding="utf-8")

    def next_action(self, request: ModelRequest) -> Action:
        """Return the next step."""
        tools = {tool.name: tool for tool in request.tools}
        shell = next((tools[name] for name in _SHELLS if name in tools), None)
        if shell is None:
            return Say("A task")  # what asks for a title or a summary offers none
        self.requests += 1
        if self.requests > MAX_REQUESTS:
            return Say("I give up.")
        results = [message.text for message in request.messages if message.role == "tool"]
        seen = "\n".join(results)
        if not self.is_edited and "Hello" not in seen:
            return CallTools((self._read(tools, shell),))
        if not self.is_edited:
            return CallTools((self._edit(tools, shell),))
        if "Goodbye, world" not in seen:
            return CallTools((_run(shell, f"python3 {self._file}"),))
        if "mini-swe" in self._said(request) and _SUBMIT not in seen:
            return CallTools((_run(shell, f"{_SUBMIT}; echo '{ANSWER}'"),))
        return Say(ANSWER)

    def _said(self, request: ModelRequest) -> str:
        has_marker = any("COMPLETE_TASK_AND_SUBMIT" in item.text for item in request.messages)
        return "mini-swe" if has_marker else ""

    def _read(self, tools: dict[str, ToolSpec], shell: ToolSpec) -> PlannedCall:
        for name in ("Read", "read", "read_file"):
            if name in tools:
                return PlannedCall(name, {_key(tools[name], *_FILE_KEYS): str(self._file)})
        return _run(shell, f"cat {self._file}")

    def _edit(self, tools: dict[str, ToolSpec], shell: ToolSpec) -> PlannedCall:
        if self._filler:
            text = f'print("Goodbye, world")\n{self._filler}'
            if "Write" in tools:
                return PlannedCall("Write", {"file_path": str(self._file), "content": text})
            return _run(shell, f"cat > {self._file} <<'END'\n{text}END")
        for name in ("Edit", "edit", "replace"):
            if name in tools:
                spec = tools[name]
                given = {
                    _key(spec, *_FILE_KEYS): str(self._file),
                    _key(spec, "old_string", "oldString"): "Hello",
                    _key(spec, "new_string", "newString"): "Goodbye",
                }
                return PlannedCall(name, _with_required(spec, given))
        return _run(shell, f"sed -i s/Hello/Goodbye/ {self._file}")


def _properties(spec: ToolSpec) -> dict[str, Any]:
    return as_fields(spec.parameters.get("properties"))


def _key(spec: ToolSpec, *names: str) -> str:
    known = _properties(spec)
    return next((name for name in names if name in known), names[0])


def _with_required(spec: ToolSpec, given: dict[str, Any]) -> dict[str, Any]:
    """Add what else the tool demands, all of which are words for people."""
    required = [name for name in spec.parameters.get("required", ()) if name not in given]
    kinds = _properties(spec)
    plain = {"boolean": False, "integer": 60000, "number": 60000}
    words = {
        name: plain.get(str(as_fields(kinds.get(name)).get("type")), "The task.")
        for name in required
    }
    return {**given, **words}


def _run(shell: ToolSpec, line: str) -> PlannedCall:
    name = _key(shell, "command", "cmd")
    is_list = as_fields(_properties(shell).get(name)).get("type") == "array"
    command = ["bash", "-lc", line] if is_list else line
    return PlannedCall(shell.name, _with_required(shell, {name: command}))


class WeakProvider(FaultyProvider):
    """A provider whose model follows the task; tools that are no functions are left out."""

    slow_s = 0.0
    """How long a call takes that writes a whole file."""
    seen: Path | None = None
    """Where to write down what is asked."""

    def answer(self, protocol: WireProtocol, wire: WireRequest) -> Answer:
        """Return the answer to a request of a wire format."""
        body = json.dumps(wire.body).encode()
        if self.seen is not None:
            with self.seen.open("ab") as file:
                file.write(body + b"\n")
        model = as_fields(wire.body).get("model") or "weak"
        request = ClientRequest.parse(protocol, body, model=str(model), stream=wire.stream)
        plain = request.as_functions()
        own = WireRequest(path=wire.path, body=plain.document, stream=wire.stream)
        answer = super().answer(protocol, own)
        if not (wire.stream and self.slow_s and len(answer.pieces) > self.slow_s):
            return answer
        wait = Pause(self.slow_s / len(answer.pieces))
        pieces = tuple(piece for event in answer.pieces for piece in (wait, event))
        return replace(answer, pieces=pieces, framing="chunked")


def plan_for(fault: str) -> FaultPlan:
    """Return when the model makes its mistake."""
    if fault in SOMETIMES:
        steps = (PlanStep(fault=fault), PlanStep(fault="clean"))
        return FaultPlan(steps=steps, after="repeat")
    return FaultPlan.of(fault)


class Run(NamedTuple):
    """One task."""

    program: str
    fault: str
    is_direct: bool
    finished: bool
    requests: int
    seconds: float
    tail: str


@asynccontextmanager
async def serve_gateway(upstream: str, speaks: str, folder: Path) -> AsyncIterator[str]:
    """Serve a gateway in front of the model, which speaks one wire format."""
    settings = folder / "gateway.toml"
    entry = f'url = "{upstream}"\nkey = "none"\nprobe = "off"\nprotocol = "{speaks}"\n'
    settings.write_text(f"[upstreams.weak]\n{entry}")
    loaded = load_settings(settings, server={"port": 0}, store="off")
    gateway = Gateway(loaded, facts=folder / "facts.sqlite3")
    await gateway.open()
    server, bound = GatewayServer(gateway), bind_socket("127.0.0.1", 0)
    await server.startup(bound)
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    finally:
        gateway.cut_all()
        server.http.close_listener()
        await asyncio.gather(*server.http.tasks, return_exceptions=True)
        server.http.cut()
        bound.close()
        await gateway.close()


async def run_task(args: argparse.Namespace, name: str, fault: str, *, is_direct: bool) -> Run:
    """Let a program do the task once."""
    with tempfile.TemporaryDirectory(prefix="surecall-agent-") as place:
        home, folder = Path(place) / "home", Path(place) / "work"
        home.mkdir()
        folder.mkdir()
        (folder / "app.py").write_text('print("Hello, world")\n')
        cache, slow_s = args.cache, args.slow
        model = WeakModel(folder, slow_s)
        provider = WeakProvider(plan=plan_for(fault), oracles=(model,))
        provider.slow_s = slow_s
        provider.seen = None if is_direct else args.requests
        seconds = SECONDS + 1.3 * slow_s  # pauses are never shorter than they should be
        async with FaultServer(provider) as server:
            base = server.url.removesuffix("/v1")
            began_s = time.monotonic()
            if is_direct:
                output = await start(cache, name, base, home, folder, seconds)
            else:
                async with serve_gateway(server.url, args.speaks, Path(place)) as url:
                    output = await start(cache, name, url, home, folder, seconds)
        took_s = time.monotonic() - began_s
        finished = model.is_edited and "TASK-DONE" in output
        return Run(name, fault, is_direct, finished, provider.requests, took_s, output[-400:])


async def start(cache: Path, name: str, url: str, home: Path, folder: Path, seconds: float) -> str:
    """Start a program with everything set for an address; return what it wrote."""
    command, row = PROGRAMS[name], find_program("shell" if name == "mini" else name)
    at = GatewayAddress(url, command.model, PLACEHOLDER_KEY)
    environ = {
        "PATH": f"{cache / 'node_modules/.bin'}:{cache / 'py/bin'}:{os.environ['PATH']}",
        "HOME": str(home),
        "TERM": "dumb",
        "CI": "1",
        **command.variables,
    }
    environ |= at.environment(row, environ)
    if row.needs_file:
        path = Path(row.file.replace("~", str(home)))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(at.fill(row.content))
    process = await asyncio.create_subprocess_exec(
        str(find_binary(cache, name)),
        *at.arguments(row),
        *command.words,
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    assert process.stdout is not None
    reading = asyncio.create_task(process.stdout.read())
    try:
        await asyncio.wait_for(asyncio.shield(reading), seconds)
    except TimeoutError:
        pass
    finally:
        if process.returncode is None:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        await process.wait()
    return (await reading).decode("utf-8", "replace")


def find_binary(cache: Path, name: str) -> Path:
    """Return where a program is installed."""
    folder = cache / ("py/bin" if PROGRAMS[name].is_python else "node_modules/.bin")
    return folder / name


def install(cache: Path, names: list[str]) -> None:
    """Install programs from npm and PyPI."""
    cache.mkdir(parents=True, exist_ok=True)
    node = [PROGRAMS[name].package for name in names if not PROGRAMS[name].is_python]
    python = [PROGRAMS[name].package for name in names if PROGRAMS[name].is_python]
    if node:
        (cache / "package.json").write_text('{"private": true}')
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", *node], cwd=cache, check=True)
    if python:
        subprocess.run([sys.executable, "-m", "venv", str(cache / "py")], check=True)
        subprocess.run([str(cache / "py/bin/pip"), "install", "-q", *python], check=True)


def find_version(cache: Path, name: str) -> str:
    """Return the version of an installed program."""
    command = PROGRAMS[name]
    if command.is_python:
        found = (cache / "py/lib").glob(f"*/site-packages/{command.package.replace('-', '_')}-*")
        return next((item.name.split("-")[1].removesuffix(".dist") for item in found), "?")
    file = cache / "node_modules" / command.package / "package.json"
    return str(json.loads(file.read_text())["version"])


def render(cache: Path, runs: list[Run]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| program | version | with | finished | requests | seconds | not finished |"
    yield "|---|---|---|---|---|---|---|"
    for name in PROGRAMS:
        for is_direct in (True, False):
            own = [run for run in runs if (run.program, run.is_direct) == (name, is_direct)]
            if not own:
                continue
            missed = [f"`{run.fault}`" for run in own if not run.finished]
            title = name if name == "mini" else find_program(name).title
            cells = (
                "mini-swe-agent" if name == "mini" else title,
                find_version(cache, name),
                "–" if is_direct else "`surecall serve`",
                f"{sum(run.finished for run in own)} of {len(own)}",
                str(sum(run.requests for run in own)),
                f"{sum(run.seconds for run in own):.0f}",
                ", ".join(missed) or "–",
            )
            yield f"| {' | '.join(cells)} |"


async def run_all(args: argparse.Namespace, names: list[str]) -> list[Run]:
    """Run every task; each program under one fault after the other."""
    places, faults = asyncio.Semaphore(args.at_once), args.fault

    async def run_one(name: str, fault: str, is_direct: bool) -> Run:
        async with places:
            run = await run_task(args, name, fault, is_direct=is_direct)
        way = "direct" if is_direct else "surecall"
        mark = "finished" if run.finished else "NOT finished"
        print(
            f"{name} {fault} {way}: {mark}, {run.requests} requests, {run.seconds:.1f} s",
            flush=True,
        )
        if not run.finished and not is_direct:
            print("   " + run.tail.replace("\n", "\n   "), flush=True)
        return run

    tasks = [run_one(n, f, direct) for n in names for f in faults for direct in (True, False)]
    return list(await asyncio.gather(*tasks))


def main() -> int:
    """Install, run, and say what came of it; 1 if surecall is anywhere worse than nothing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=list(PROGRAMS), default=list(PROGRAMS))
    parser.add_argument("--fault", nargs="*", default=[*ALWAYS, *SOMETIMES])
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--slow", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--speaks", default="chat_completions", metavar="FORMAT")
    parser.add_argument("--requests", type=Path, metavar="FILE")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    if args.install:
        install(args.cache, args.only)
    there = [name for name in args.only if find_binary(args.cache, name).exists()]
    if shutil.which("node") is None:
        there = [name for name in there if PROGRAMS[name].is_python]
    runs = asyncio.run(run_all(args, there))
    lines = list(render(args.cache, runs))
    print("\n".join(lines))
    if args.write:
        text = PAGE.read_text(encoding="utf-8")
        head, rest = text.split(START)
        before, tail = rest.split(END)
        asked = {line.split(" | ")[0] for line in lines}
        kept = [line for line in before.strip().splitlines() if line.split(" | ")[0] not in asked]
        table = "\n".join([*lines, *kept])
        PAGE.write_text(f"{head}{START}\n\n{table}\n\n{END}{tail}", encoding="utf-8")
    done = {(run.program, run.fault, run.is_direct): run.finished for run in runs}
    worse = [key for key in done if key[2] and done[key] and not done[(*key[:2], False)]]
    for program, fault, _ in worse:
        print(f"worse with surecall: {program} under {fault}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
