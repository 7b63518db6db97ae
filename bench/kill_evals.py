"""Kills an eval again and again, and checks that nothing that was counted is lost or doubled.

    python bench/kill_evals.py [--kills 200] [--seed 1] [--engine local|processes]

Every kill is a SIGKILL at a random moment of a real process; the next one goes on with the run
that was left behind. The tests do the same twenty times.
"""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support.eval_victim import Scene, Victims


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=["local", "processes"], default="local")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    # Processes need most of a second until they work.
    longest_s = 0.05 if options.engine == "local" else 2.0
    started, killed, kept = time.perf_counter(), 0, 0
    victims = Victims()
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene(Path(folder), engine=options.engine)
        for _ in range(options.kills):
            pid = victims.start(scene.order)
            time.sleep(chance.uniform(0.0, longest_s))
            killed += victims.kill(pid) == -9
            now = scene.check()
            assert now >= kept, "a trial that was there is gone"
            kept = now
        victims.start(scene.order)
        assert victims.wait() == 0
        kept = scene.check()
        assert scene.unfinished == 0
    victims.close()
    print(
        f"{options.kills} processes, {killed} killed before their end; {kept} trials kept, "
        f"0 lost, 0 counted twice ({time.perf_counter() - started:.0f} s, seed {options.seed})"
    )


if __name__ == "__main__":
    main()
