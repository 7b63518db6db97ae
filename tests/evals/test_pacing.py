"""An endpoint that refuses for a while is waited out, and no trial is lost."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest

from surecall.base.errors import ProviderStatusError
from surecall.evals.executors import LocalExecutor
from surecall.evals.experiments import plan
from surecall.evals.records import TrialRow
from surecall.evals.runner import run_experiment
from surecall.evals.store import RunStore
from surecall.evals.transports import Pace


class LimitedServer:
    """A server on the loopback that takes so many requests a second and refuses the rest."""

    def __init__(self, per_second: float, status: int = 429, headers: str = "") -> None:
        self._interval_s = 1 / per_second if per_second else 1e9
        self._free_at = 0.0
        self._status = status
        self._headers = headers
        self.answered = self.refused = 0

    async def __aenter__(self) -> str:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/v1"

    async def __aexit__(self, *_: object) -> None:
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
                sent = json.loads(await reader.readexactly(length))
                writer.write(self._answer(sent))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _answer(self, sent: dict[str, Any]) -> bytes:
        now = time.monotonic()
        if now < self._free_at:
            self.refused += 1
            body = b'{"error": {"message": "slow down"}}'
            head = f"HTTP/1.1 {self._status} X\r\n{self._headers}content-length: {len(body)}"
            return f"{head}\r\n\r\n".encode() + body
        self._free_at = now + self._interval_s
        self.answered += 1
        done = sum(message["role"] == "tool" for message in sent["messages"])
        user = next(m["content"] for m in sent["messages"] if m["role"] == "user")
        workspace = user.partition("=")[2].split()[0]
        patch = {"request_id": "r", "ops": [{"op": "set", "path": "/draft/foo", "value": "bar"}]}
        steps = [("state_get", {}), ("state_patch", patch)]
        message: dict[str, Any] = {"role": "assistant", "content": "Done."}
        if done < len(steps):
            name, arguments = steps[done]
            arguments = json.dumps({"workspace_id": workspace, **arguments})
            function = {"name": name, "arguments": arguments}
            call = {"id": f"c{done}", "type": "function", "function": function}
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        body = json.dumps({"choices": [{"index": 0, "message": message}]}).encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
        return f"{head}\r\n\r\n".encode() + body


async def run_trials(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, trials: int, **wanted: Any
) -> list[TrialRow]:
    """Run the scenario `happy_path` at an endpoint."""
    monkeypatch.setenv("SURECALL_API_KEY", "sk-test")
    experiment = plan(f"m@{url}", scenarios="happy_path", trials=trials, **wanted)
    with RunStore(tmp_path / "evals.db") as store:
        executor = LocalExecutor(experiment.job, concurrency=32)
        info = await run_experiment(
            experiment.matrix, experiment.manifest, store, executor=executor
        )
        return list(store.rows(info.id))


@pytest.mark.parametrize(("status", "headers"), [(429, ""), (503, "retry-after: 1\r\n")])
async def test_a_limit_of_the_endpoint_loses_no_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, headers: str
) -> None:
    """Three requests each at a concurrency of 32; waiting is not the trial's own time."""
    server = LimitedServer(40, status, headers)
    async with server as url:
        rows = await run_trials(url, tmp_path, monkeypatch, trials=40, timeout_s=2.5)
    assert [row.code for row in rows] == [None] * 40
    assert all(row.strict_ok for row in rows)
    assert server.answered == 120
    assert server.refused
    assert sum(row.attempts for row in rows) == server.answered + server.refused


async def test_waiting_ends_with_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint that refuses everything is given up once, and not once for each trial."""
    started = time.monotonic()
    async with LimitedServer(0) as url:
        await asyncio.sleep(0)
        rows = await run_trials(url, tmp_path, monkeypatch, trials=40, max_wait_s=1.0)
    lost = [row for row in rows if row.code == "RATE_LIMIT"]
    assert len(lost) >= 39
    assert all("--max-wait allows 1 s" in (row.error or "") for row in lost)
    assert time.monotonic() - started < 15


async def test_a_wait_that_is_too_long_is_not_begun() -> None:
    """A provider that names a longer time than anybody waits is left at once."""
    pace = Pace(max_wait_s=10)

    async def refuse() -> None:
        raise ProviderStatusError(
            "RATE_LIMIT", "x", status=429, retryable=True, retry_after_s=3600.0
        )

    with pytest.raises(ProviderStatusError) as caught:
        await pace.ask(refuse)
    assert "asks to wait 3600 s; --max-wait allows 10 s" in (caught.value.hint or "")
