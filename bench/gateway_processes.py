"""Processes of the gateway benches: the stub, what stands in front of it, and what they use."""

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

BENCH = Path(__file__).resolve().parent
SOURCES = BENCH.parent / "src"
PATH = "/v1/chat/completions"
_TICK = os.sysconf("SC_CLK_TCK")

TOOL = {
    "type": "function",
    "function": {
        "name": "create_ticket",
        "description": "File a ticket in the tracker.",
        "parameters": {
            "type": "object",
            "properties": {
                "title": {"type": "string", "minLength": 1, "maxLength": 120},
                "body": {"type": "string"},
                "priority": {"type": "string", "enum": ["low", "normal", "high"]},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 8},
                "due_days": {"type": "integer", "minimum": 0, "maximum": 30},
            },
            "required": ["title", "body", "priority"],
            "additionalProperties": False,
        },
    },
}


def make_request(model: str = "stub", *, stream: bool = False) -> bytes:
    """Return the body of a request, 0.9 KB."""
    asked = (
        "Large exports end after forty seconds with half a file since the release of this "
        "morning. File a ticket with high priority and what we know."
    )
    messages = [
        {"role": "system", "content": "You are a support engineer. Use the tools you are given."},
        {"role": "user", "content": asked},
    ]
    body = {"model": model, "messages": messages, "tools": [TOOL], "stream": stream}
    return json.dumps(body, separators=(",", ":")).encode()


def large_requests(size: int) -> Iterator[tuple[str, str, dict]]:
    """Yield requests of about this size: what they consist of, where they go, and their body."""
    plain = json.loads(make_request())
    said = plain["messages"]
    text = {**plain, "messages": [*said, {"role": "user", "content": "words " * (size // 6)}]}
    yield "one text", PATH, text
    yield "one text, streamed", PATH, {**text, "stream": True}
    turns = [turn for number in range(size // 360) for turn in make_turn(number)]
    calls = {**plain, "messages": [*said, *turns, {"role": "user", "content": "Go on."}]}
    yield "many calls", PATH, calls
    yield "many calls, streamed", PATH, {**calls, "stream": True}
    parts = [{"type": "text", "text": "a few words " * 4}] * (size // 80)
    other = {"model": "stub", "max_tokens": 9, "messages": [{"role": "user", "content": parts}]}
    yield "another format", "/v1/messages", other
    yield "a path that is relayed", "/v1/embeddings", {"model": "stub", "input": "a " * (size // 2)}
    function = plain["tools"][0]["function"]
    tools = [
        {"type": "function", "function": {**function, "name": f"create_ticket_{number}"}}
        for number in range(min(size, 1024 * 1024) // 600)
    ]
    yield "many tools", PATH, {**text, "tools": [*plain["tools"], *tools]}


def make_turn(number: int) -> list[dict]:
    """Return a call and its result."""
    function = {"name": "create_ticket", "arguments": '{"title":"a","body":"b","priority":"low"}'}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": "done " * 20},
    ]


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def start(
    command: Sequence[str], *, core: int | None = None, log: Path | None = None, **options: Any
) -> subprocess.Popen:
    """Start a process, on one core if one is named."""
    if core is not None:
        command = ["taskset", "-c", str(core), *command]
    out = log.open("ab") if log is not None else subprocess.DEVNULL
    try:
        return subprocess.Popen(command, stdout=out, stderr=out, **options)
    finally:
        if log is not None:
            out.close()


def stop(process: subprocess.Popen) -> None:
    """End a process that was started here, and its children."""
    family = list_family(process.pid)
    for pid in family:
        _signal(pid, signal.SIGTERM)
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        pass
    for pid in family:
        _signal(pid, signal.SIGKILL)
    process.wait()


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def build_stub(folder: Path) -> Path:
    """Compile the stub."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        sys.exit("A C compiler is needed for the stub: install gcc.")
    program = folder / "stub"
    subprocess.run([compiler, "-O2", "-o", program, BENCH / "gateway_stub.c"], check=True)
    return program


def start_stub(program: Path, port: int, *, core: int | None = None) -> subprocess.Popen:
    process = start([str(program), str(port)], core=core)
    wait_for_port(port, process)
    return process


def wait_for_port(port: int, process: subprocess.Popen, wait_s: float = 20.0) -> None:
    ends = time.monotonic() + wait_s
    while time.monotonic() < ends:
        if process.poll() is not None:
            sys.exit(f"A process ended with code {process.returncode}.")
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
        except OSError:
            time.sleep(0.005)
        else:
            return
    sys.exit(f"Nothing listens on port {port}.")


def gateway_command(
    port: int, upstream_port: int, store: str | Path, python: str = sys.executable
) -> list[str]:
    """Return the command for surecall's gateway, with records and metrics on."""
    upstream = f"http://127.0.0.1:{upstream_port}/v1"
    return [
        *(python, "-m", "surecall", "-q", "serve", "--port", str(port)),
        *("--upstream", upstream, "--store", str(store)),
    ]


def gateway_environment(cache: Path | None = None) -> dict[str, str]:
    """Return the environment in which these very sources are served.

    Args:
        cache: Where compiled modules are kept, as they are for whoever installs the package.
    """
    found = os.environ | {"PYTHONPATH": str(SOURCES), "NO_PROXY": "127.0.0.1,localhost"}
    if cache is not None:
        found.pop("PYTHONDONTWRITEBYTECODE", None)
        found["PYTHONPYCACHEPREFIX"] = str(cache)
    return found


def peer_environment() -> dict[str, str]:
    """Return the environment of a peer, which has its own packages and keeps them compiled."""
    left_out = ("PYTHONDONTWRITEBYTECODE", "PYTHONPATH")
    found = {name: value for name, value in os.environ.items() if name not in left_out}
    return found | {"NO_PROXY": "127.0.0.1,localhost"}


def ask(
    port: int, body: bytes | None = None, path: str = PATH, wait_s: float = 60.0
) -> tuple[int, bytes]:
    """Send one request on a connection of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=wait_s)
    try:
        method = "GET" if body is None else "POST"
        headers = {"content-type": "application/json", "authorization": "Bearer sk-none"}
        connection.request(method, path, body, headers if body is not None else {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def read_stats(port: int) -> dict[str, int]:
    """Return what the stub has counted."""
    return json.loads(ask(port, path="/stats")[1])


# What processes use


def list_family(pid: int) -> list[int]:
    """Return a process and everything it started."""
    found, waiting = [], [pid]
    while waiting:
        found.append(one := waiting.pop())
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            try:
                waiting += [int(child) for child in task.read_text().split()]
            except OSError:
                continue
    return found


def cpu_s(pid: int) -> float:
    """Return the CPU seconds, of user and system, of a process and everything it started."""
    total = 0
    for one in list_family(pid):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total / _TICK


def memory_mb(pid: int, field: str = "VmRSS") -> float:
    total = 0
    for one in list_family(pid):
        try:
            lines = Path(f"/proc/{one}/status").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))
    return total / 1024


def machine_s() -> float:
    """Return the CPU seconds that the whole machine has worked since it was started."""
    fields = [int(item) for item in Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    return sum(fields[at] for at in (0, 1, 2, 5, 6)) / _TICK
