"""A sample of the faults that official clients meet through the gateway.

`python scripts/faults_through_gateway.py` meets all of them, and shows what happens without it.
"""

import pytest

from support.fault_trials import Seen, find_failures, list_trials, open_stand

pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")

_SLOW = {"transport"}


async def test_a_sample_of_faults_is_right_or_refused() -> None:
    """Every 31st trial is as it must be, and one without the gateway is not."""
    trials = [trial for trial in list_trials(31, 3) if trial.fault.group not in _SLOW]
    async with open_stand() as stand:
        found = [(trial, await stand.meet_gateway(trial)) for trial in trials]
        broken = next(item for item in list_trials() if item.fault.name == "arguments_python")
        direct = await stand.meet_direct(broken)
    assert len(found) > 20
    assert not [text for trial, seen in found if (text := find_failures(trial, seen))]
    assert direct.kind == "unreadable call"


def test_what_must_not_happen_is_found() -> None:
    """A wrong call fails any fault, and an error one that can be repaired."""
    trial = next(item for item in list_trials() if item.fault.repairable)
    assert find_failures(trial, Seen("right")) is None
    assert find_failures(trial, Seen("wrong call")) is not None
    assert find_failures(trial, Seen("error")) is not None
    fatal = next(item for item in list_trials() if not item.fault.repairable)
    assert find_failures(fatal, Seen("error")) is None
    assert find_failures(fatal, Seen("cut call")) is not None
    assert find_failures(fatal, Seen("no call")) is not None
