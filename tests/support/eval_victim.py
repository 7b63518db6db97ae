"""A process that runs an experiment and may be killed at any moment.

Run as a program, it reads one order a line and forks for each, so that a kill costs a fork and
not the start of an interpreter. It prints the number of the process, and later how that ended.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.eval_fakes import FakeMatrix, fake_job, fake_manifest, fake_row, fake_units
from surecall.evals.executors import LocalExecutor, ProcessExecutor
from surecall.evals.runner import ProgressEvent, TrialFinished, run_experiment
from surecall.evals.store import RunStore

__all__ = ["Scene", "Victims"]


class Victims:
    """Starts victims in a folder and kills them."""

    def __init__(self) -> None:
        self._zygote = subprocess.Popen(
            [sys.executable, "-m", "support.eval_victim"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[1],
        )
        self._line()  # it has imported everything

    def start(self, order: dict[str, Any]) -> int:
        """Start a victim and return the number of its process."""
        assert self._zygote.stdin is not None
        self._zygote.stdin.write(json.dumps(order) + "\n")
        self._zygote.stdin.flush()
        return int(self._line())

    def wait(self) -> int:
        """Return how the victim ended."""
        return int(self._line())

    def kill(self, pid: int) -> int:
        """Kill the victim, unless it is over, and return how it ended."""
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        return self.wait()

    def close(self) -> None:
        """Send everybody home."""
        self._zygote.communicate()

    def _line(self) -> str:
        assert self._zygote.stdout is not None
        return self._zygote.stdout.readline()


class Scene:
    """One store in which experiments are run, killed and resumed."""

    def __init__(self, folder: Path, *, trials: int = 60, engine: str = "local") -> None:
        self.order = {
            "store": str(folder / "evals.db"),
            "acks": str(folder / "acks"),
            "trials": trials,
            "engine": engine,
        }
        self.units = fake_units(trials=trials)
        (folder / "acks").touch()

    def check(self) -> int:
        """Check every promise of the store and return how many trials it has."""
        counted: dict[str, list[int]] = {}
        for line in Path(self.order["acks"]).read_text().splitlines():
            run, index = line.split()
            counted.setdefault(run, []).append(int(index))
        kept = 0
        with RunStore(self.order["store"]) as store:
            for info in store.runs():
                indexes = counted.pop(info.id, [])
                rows = list(store.rows(info.id))
                done = {row.index for row in rows}
                assert len(indexes) == len(set(indexes)), "a trial was counted twice"
                assert set(indexes) <= done, "a trial that was counted is lost"
                assert len(rows) == len(done) == info.done, "a trial is there twice"
                assert rows == [fake_row(self.units[row.index]) for row in rows]
                assert info.strict_ok == sum(row.strict_ok for row in rows)
                assert all(store.body(info.id, row.index).index == row.index for row in rows[:3])
                kept += len(rows)
        assert counted == {}, "a run that was begun is lost"
        return kept

    @property
    def unfinished(self) -> int:
        """How many runs are not complete."""
        with RunStore(self.order["store"]) as store:
            return sum(not info.is_complete for info in store.runs())


def _play(order: dict[str, Any]) -> None:
    units = fake_units(trials=order["trials"])
    manifest = fake_manifest(units)
    acks = os.open(order["acks"], os.O_WRONLY | os.O_APPEND)

    def count(event: ProgressEvent) -> None:
        if isinstance(event, TrialFinished):
            os.write(acks, f"{event.run_id} {event.row.index}\n".encode())

    job = fake_job(delay_s=0.001)
    executor = (
        LocalExecutor(job, concurrency=6)
        if order["engine"] == "local"
        else ProcessExecutor(job, workers=2, concurrency=6)
    )
    with RunStore(order["store"]) as store:
        run_id = store.find_unfinished(manifest.hash)
        asyncio.run(
            run_experiment(
                FakeMatrix(units),
                manifest,
                store,
                executor=executor,
                run_id=run_id,
                on_progress=count,
            )
        )


def main() -> None:
    """Take orders until there are no more."""
    print("ready", flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            _play(order)
            os._exit(0)
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
