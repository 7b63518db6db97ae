from collections.abc import Awaitable, Callable

import pytest

from surecall.base.errors import (
    Code,
    ProviderConnectionError,
    ProviderError,
    ProviderStatusError,
    ProviderTimeoutError,
)
from surecall.models.transport import RetryPolicy, parse_retry_after
from surecall.models.transport.retry import plan_wait, run_attempts

NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        pytest.param({}, None, id="absent"),
        pytest.param({"retry-after": "7"}, 7.0, id="seconds"),
        pytest.param({"retry-after": " 7 "}, 7.0, id="spaces"),
        pytest.param({"retry-after": "0"}, 0.0, id="zero"),
        pytest.param({"retry-after": "1.5"}, 1.5, id="float"),
        pytest.param({"retry-after": "2."}, 2.0, id="bare point"),
        pytest.param({"retry-after": "86400"}, 86_400.0, id="a day"),
        pytest.param({"retry-after": "-5"}, None, id="negative"),
        pytest.param({"retry-after": "inf"}, None, id="infinity"),
        pytest.param({"retry-after": "nan"}, None, id="not a number"),
        pytest.param({"retry-after": "1e309"}, None, id="overflow"),
        pytest.param({"retry-after": "9" * 400}, None, id="endless digits"),
        pytest.param({"retry-after": "soon"}, None, id="garbage"),
        pytest.param({"retry-after": ""}, None, id="empty"),
        pytest.param({"retry-after": "٣"}, None, id="digits of another script"),
        pytest.param({"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT"}, 30.0, id="date"),
        pytest.param({"retry-after": "Tue, 14 Nov 2023 22:13:50 -0000"}, 30.0, id="naive date"),
        pytest.param({"retry-after": "Tue, 14 Nov 2023 22:13:00 GMT"}, 0.0, id="date in the past"),
        pytest.param({"retry-after": "Tue, 99 Nov 2023 22:13:00 GMT"}, None, id="no such day"),
        pytest.param({"retry-after-ms": "250"}, 0.25, id="milliseconds"),
        pytest.param({"x-ms-retry-after-ms": "250"}, 0.25, id="azure milliseconds"),
        pytest.param({"retry-after-ms": "250", "retry-after": "9"}, 0.25, id="finer one wins"),
        pytest.param({"retry-after-ms": "x", "retry-after": "9"}, 9.0, id="garbage is passed over"),
    ],
)
def test_every_form_of_retry_after(headers: dict[str, str], expected: float | None) -> None:
    """What names a time is read; anything else is no wish at all."""
    assert parse_retry_after(headers, NOW) == expected


def status_error(*, retryable: bool = True, retry_after_s: float | None = None) -> ProviderError:
    """Return an error as a status would give it."""
    return ProviderStatusError(
        Code.RATE_LIMIT, "slow down", retryable=retryable, retry_after_s=retry_after_s
    )


def wait(error: ProviderError, *, retries: int = 0, waited_s: float = 0.0) -> float | None:
    """Plan with a policy of three retries and no luck either way."""
    policy = RetryPolicy(max_retries=3)
    return plan_wait(policy, error, retries=retries, waited_s=waited_s, random=lambda: 0.5)


def test_the_wait_the_provider_asks_for_is_kept() -> None:
    """A wish inside the budget is followed to the letter."""
    assert wait(status_error(retry_after_s=7.25)) == 7.25


def test_without_a_wish_the_wait_doubles_up_to_its_cap() -> None:
    """Our own waits grow and stop growing."""
    assert [wait(status_error(), retries=n) for n in range(3)] == [0.5, 1.0, 2.0]
    policy = RetryPolicy(max_retries=99)
    assert plan_wait(policy, status_error(), retries=80, waited_s=0, random=lambda: 0.5) == 8.0


def test_a_wish_for_no_wait_gets_our_own() -> None:
    """Zero seconds would be hammering."""
    assert wait(status_error(retry_after_s=0.0)) == 0.5


@pytest.mark.parametrize(("luck", "expected"), [(0.0, 0.375), (1.0, 0.625)])
def test_our_own_wait_is_spread(luck: float, expected: float) -> None:
    """Jitter moves the wait by a quarter at most."""
    found = plan_wait(RetryPolicy(), status_error(), retries=0, waited_s=0, random=lambda: luck)
    assert found == expected


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(status_error(retryable=False), id="not retryable"),
        pytest.param(status_error(retry_after_s=20.5), id="above the budget"),
        pytest.param(
            ProviderTimeoutError(Code.FIRST_BYTE_TIMEOUT, "late", retryable=True), id="deadline"
        ),
    ],
)
def test_a_final_error_gets_no_wait(error: ProviderError) -> None:
    """What cannot be helped, takes too long, or used its time already is not tried again."""
    assert wait(error) is None


def test_the_budget_is_shared_by_all_waits() -> None:
    """What earlier waits used is gone."""
    assert wait(status_error(retry_after_s=6), waited_s=14) == 6
    assert wait(status_error(retry_after_s=6), waited_s=14.1) is None


class Attempts:
    """Fails with these errors in turn, then succeeds."""

    def __init__(self, *errors: ProviderError) -> None:
        self.errors = list(errors)
        self.numbers: list[int] = []
        self.slept: list[float] = []

    async def __call__(self, number: int) -> str:
        """Make one attempt."""
        self.numbers.append(number)
        if self.errors:
            raise self.errors.pop(0)
        return "answer"

    async def sleep(self, seconds: float) -> None:
        """Note the wait instead of waiting."""
        self.slept.append(seconds)

    def run(self, policy: RetryPolicy) -> Awaitable[str]:
        """Run under a policy."""
        luck: Callable[[], float] = lambda: 0.5  # noqa: E731
        return run_attempts(policy, self, sleep=self.sleep, random=luck)


async def test_one_retry_is_the_default() -> None:
    """Two failures are final: at most two upstream calls."""
    attempts = Attempts(status_error(), status_error(), status_error())
    with pytest.raises(ProviderStatusError) as caught:
        await attempts.run(RetryPolicy())
    assert attempts.numbers == [1, 2]
    assert attempts.slept == [0.5]
    assert caught.value.attempts == 2


async def test_a_retry_that_succeeds_returns_its_answer() -> None:
    """One failed attempt is forgotten when the next one works."""
    attempts = Attempts(ProviderConnectionError(Code.CONNECTION_RESET, "gone", retryable=True))
    assert await attempts.run(RetryPolicy()) == "answer"
    assert attempts.numbers == [1, 2]


async def test_a_wait_above_the_budget_is_refused_at_once_and_told() -> None:
    """The caller learns how long the provider wanted, without having waited."""
    attempts = Attempts(status_error(retry_after_s=86_400))
    with pytest.raises(ProviderStatusError) as caught:
        await attempts.run(RetryPolicy())
    assert attempts.slept == []
    assert caught.value.retry_after_s == 86_400
    assert "asks to wait 86400 s" in str(caught.value)


async def test_an_error_that_is_not_the_providers_is_never_retried() -> None:
    """Only provider errors are tried again."""
    calls: list[int] = []

    async def attempt(number: int) -> str:
        calls.append(number)
        raise ValueError("bug")

    with pytest.raises(ValueError, match="bug"):
        await run_attempts(RetryPolicy(), attempt)
    assert calls == [1]
