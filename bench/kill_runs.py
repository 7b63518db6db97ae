"""Kills a journaled run again and again, and checks that no effect happens twice.

    python bench/kill_runs.py [--kills 200] [--seed 1]

Every kill is a SIGKILL at a random moment of a real process, from outside; the next process
resumes what was left behind. A run that comes to its end is followed by a new one. What the tools
did is counted in a file of their own. The tests do the same forty times, and kill at each record.
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from loop.victim import Scene, Zygote

TURNS = [["write", "read", "write"], ["put", "write"], ["write"], ["read", "write"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    started, killed, runs, effects, unknown = time.perf_counter(), 0, 0, 0, 0
    zygote = Zygote()
    with tempfile.TemporaryDirectory() as folder:
        while killed < options.kills:
            runs += 1
            place = Path(folder) / str(runs)
            place.mkdir()
            scene = Scene(zygote, place, TURNS)
            result = None
            while result is None:
                again = killed < options.kills
                moment = {"kill_after_s": chance.uniform(0.0, 0.1)} if again else {}
                result = scene.play(**moment)
                killed += result is None
            assert (result["code"], result["text"]) == ("", "the end"), result
            assert len(scene.writes) == len(set(scene.writes)), "an effect happened twice"
            lost = sum("OUTCOME_UNKNOWN" in told for told in result["told"])
            # An unknown effect may have happened; all others have.
            assert 5 - lost <= len(scene.writes) <= 5
            effects, unknown = effects + len(scene.writes), unknown + lost
    zygote.close()
    print(
        f"{killed} kills in {runs} runs; {effects} effects, 0 repeated, {unknown} reported as "
        f"unknown ({time.perf_counter() - started:.0f} s, seed {options.seed})"
    )


if __name__ == "__main__":
    main()
