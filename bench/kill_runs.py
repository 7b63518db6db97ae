"""Kills runs again and again, and checks that no effect happens twice.

    python bench/kill_runs.py [--kills 500] [--seed 1] [--stores journal,sqlite,postgres]
    python bench/kill_runs.py --races 200 [--stores sqlite,postgres]

Every kill is a SIGKILL at a random moment of a real process, from outside; the next process
resumes what was left behind. A run that comes to its end is followed by a new one. What the tools
did is counted in a file of their own. With `journal` a run is resumed from its journal; with
`sqlite` and `postgres` it also waits twice for an approval in such a store, is decided about here,
and is resumed from there. The tests do the same some forty times, and kill at each record and step.

With `--races`, two processes resume the same run at once after each decision, and nobody is killed:
each effect happens once, and no process is told that an outcome is not known.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from loop.victim import Scene, Zygote, approve_all, check_race
from support.request_records import run_postgres

TURNS = [["write", "read", "write"], ["put", "write"], ["write"], ["read", "write"]]
WAITING_TURNS = [["write", "pay", "read"], ["pay", "put"], ["write"], ["read", "write"]]
EFFECTS = 5
PLACES = ("journal", "sqlite", "postgres")


class Tally:
    """What came of the runs in one place."""

    def __init__(self) -> None:
        self.killed = self.runs = self.effects = self.unknown = 0

    def check(self, scene: Scene, report: dict[str, Any]) -> None:
        """Count a finished run, and fail when an effect happened twice or got lost silently."""
        self.runs += 1
        done = [tuple(line.split()[:2]) for line in scene.writes]
        assert len(done) == len(set(done)), f"an effect happened twice: {done}"
        self.effects += len(done)
        if report["code"] == "APPROVAL_NOT_FOUND":
            return  # it was killed when it had its answer, which nobody saw
        assert (report["code"], report["text"]) == ("", "the end"), report
        lost = sum("OUTCOME_UNKNOWN" in told for told in report["told"])
        # An unknown effect may have happened; all others have.
        assert EFFECTS - lost <= len(done) <= EFFECTS, (done, report)
        self.unknown += lost


def kill_runs(place: str, kills: int, chance: random.Random, zygote: Zygote, folder: Path) -> Tally:
    """Kill runs that keep what they need in one place."""
    tally = Tally()
    with open_place(place, folder) as store:

        def begin(name: str) -> Scene:
            home = folder / f"{place}{name}"
            home.mkdir()
            turns = WAITING_TURNS if store else TURNS
            return Scene(zygote, home, turns, {"run_id": home.name})

        def go_on(scene: Scene, **moment: Any) -> dict[str, Any] | None:
            return scene.pause_and_resume(store, **moment) if store else scene.play(**moment)

        measure_process(begin("first"), go_on)  # the interpreter starts meanwhile
        longest_s = measure_process(begin("second"), go_on)
        while tally.killed < kills:
            scene, report = begin(str(tally.runs)), None
            while report is None or report["code"] == "APPROVAL_PENDING":
                again = tally.killed < kills
                moment = {"kill_after_s": chance.uniform(0.0, longest_s)} if again else {}
                report = go_on(scene, **moment)
                tally.killed += report is None
            tally.check(scene, report)
    return tally


def race_runs(place: str, races: int, chance: random.Random, folder: Path) -> str:
    """Let two processes resume each run at once, and return what came of them."""
    rivals, lost, done = [Zygote(), Zygote()], Counter[str](), 0
    with open_place(place, folder) as store:
        while done < races:
            home = folder / f"race{place}{done}"
            home.mkdir()
            scene = Scene(rivals[0], home, WAITING_TURNS, {"run_id": home.name})
            report = scene.pause_and_resume(store)
            while report is not None and report["code"] == "APPROVAL_PENDING":
                reports = scene.race(rivals, store, takes_s=chance.choice((0.0, 0.005, 0.05)))
                check_race(reports)
                report = next(each for each in reports if each["code"] in ("", "APPROVAL_PENDING"))
                lost.update(each["code"] for each in reports if each is not report)
                approve_all(store)
                done += 1
            writes = [line.split()[1] for line in scene.writes]
            assert len(writes) == len(set(writes)) == EFFECTS, writes
    for rival in rivals:
        rival.close()
    losers = ", ".join(f"{count} {code or 'ended as well'}" for code, count in lost.items())
    return f"{place}: {done} races; each effect once, no outcome unknown; losers: {losers}"


def measure_process(scene: Scene, go_on: Callable[[Scene], dict[str, Any] | None]) -> float:
    """Play a run to its end, and return the seconds that its longest process took."""
    longest_s, report = 0.0, None
    while report is None or report["code"] == "APPROVAL_PENDING":
        started = time.perf_counter()
        report = go_on(scene)
        longest_s = max(longest_s, time.perf_counter() - started)
    return longest_s


@contextmanager
def open_place(place: str, folder: Path) -> Iterator[str]:
    """Yield the address of a store; empty when there is none."""
    if place == "postgres":
        with run_postgres() as server:
            yield server.get_uri()
    else:
        yield str(folder / "approvals.db") if place == "sqlite" else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--races", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stores", default=",".join(PLACES))
    options = parser.parse_args()
    places = options.stores.split(",")
    if options.races:
        with tempfile.TemporaryDirectory() as folder:
            for place in set(places) - {"journal"}:
                chance = random.Random(options.seed)
                print(race_runs(place, options.races, chance, Path(folder)), flush=True)
        return
    zygote = Zygote()
    with tempfile.TemporaryDirectory() as folder:
        for number, place in enumerate(places):
            started = time.perf_counter()
            kills = options.kills // len(places) + (number < options.kills % len(places))
            chance = random.Random(options.seed + number)
            tally = kill_runs(place, kills, chance, zygote, Path(folder))
            print(
                f"{place}: {tally.killed} kills in {tally.runs} runs; {tally.effects} effects, "
                f"0 repeated, {tally.unknown} reported as unknown "
                f"({time.perf_counter() - started:.0f} s, seed {options.seed})",
                flush=True,
            )
    zygote.close()


if __name__ == "__main__":
    main()
