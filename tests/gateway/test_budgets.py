"""What keys have used, counted in one process and shared among several."""

import time
from pathlib import Path

from surecall.gateway.keys import DAY_S, MINUTE_S, Caller, Counts, SharedCounts
from surecall.gateway.settings import KeySettings

NOW = 1_800_000_030.0


def test_windows_begin_anew() -> None:
    """A minute later a key may ask again; a day's budget is still spent."""
    counts = Counts()
    settings = KeySettings(id="a", requests_per_minute=2, tokens_per_day=100)
    caller = Caller(settings, counts)
    assert caller.begin(NOW) is None
    assert caller.begin(NOW) is None
    refusal = caller.begin(NOW)
    assert refusal is not None
    assert refusal.code == "RATE_LIMIT"
    assert refusal.retry_after_s is not None
    assert 0 < refusal.retry_after_s <= MINUTE_S
    assert caller.begin(NOW + MINUTE_S) is None
    caller.charge(NOW, 100)
    refusal = caller.begin(NOW + 2 * MINUTE_S)
    assert refusal is not None
    assert refusal.code == "QUOTA_EXCEEDED"
    assert caller.begin(NOW + DAY_S) is None


def test_old_windows_are_forgotten() -> None:
    """What is over takes no memory."""
    counts = Counts()
    counts.add(("a", MINUTE_S, 1), 1, 1)
    counts.add(("a", MINUTE_S, 10**9), 1, 1)
    counts.forget(NOW)
    assert counts.read(("a", MINUTE_S, 1)) == (0, 0)
    assert counts.read(("a", MINUTE_S, 10**9)) == (1, 1)


async def test_workers_see_what_others_used(tmp_path: Path) -> None:
    """Two processes add up, nothing is counted twice, and a restart forgets nothing."""
    path = tmp_path / "budgets.db"
    window = ("a", DAY_S, int(time.time() // DAY_S))
    first, second = Counts(), Counts()
    one, two = SharedCounts(path, first), SharedCounts(path, second)
    await one.open()
    await two.open()
    first.add(window, 1, 10)
    second.add(window, 2, 20)
    await one._share()
    first.add(window, 1, 1)
    await two._share()
    await one._share()
    await two._share()
    assert first.read(window) == second.read(window) == (4, 31)
    await one.close()
    await two.close()
    third = Counts()
    again = SharedCounts(path, third)
    await again.open()
    assert third.read(window) == (4, 31)
    await again.close()
