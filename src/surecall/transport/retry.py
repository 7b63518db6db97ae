"""When a failed attempt is made again, and how long to wait before it.

Only failures before the first byte of an answer come here. All waits of one request share
one budget; a provider that asks for a longer wait gets none, and the caller learns of it at once.
"""

import asyncio
import random as random_module
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Final, TypeVar

from msgspec import Struct

from surecall.errors import ProviderError, ProviderTimeoutError, invalid_config

T = TypeVar("T")

# Fractions are common in practice; signs, exponents and "inf" are not waits.
_SECONDS: Final = re.compile(r"[0-9]{1,15}(?:\.[0-9]{0,15})?")


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """How often to try again, and how long to wait in all."""

    max_retries: int = 1
    max_wait_s: float = 20.0
    """All waits of one request together."""
    base_delay_s: float = 0.5
    """The first wait when the provider names none; it doubles each time."""
    max_delay_s: float = 8.0
    jitter: float = 0.25
    """Share by which a wait of our own choosing is randomly shortened or lengthened."""

    def __post_init__(self) -> None:
        numbers = (self.max_retries, self.max_wait_s, self.base_delay_s, self.max_delay_s)
        if not all(isfinite(number) and number >= 0 for number in (*numbers, self.jitter)):
            raise invalid_config(
                "A RetryPolicy has a negative or infinite number.",
                "Give finite numbers, zero or more.",
            )


def parse_retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds a provider asks to wait, or `None` when it names no usable time.

    Args:
        headers: Response headers, names in lower case.
        now: Seconds since the epoch, against which an HTTP date is read.
    """
    for name in ("retry-after-ms", "x-ms-retry-after-ms"):
        milliseconds = _parse_number(headers.get(name))
        if milliseconds is not None:
            return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _parse_number(value)
    if seconds is not None or value is None or len(value) > 64:
        return seconds
    try:
        moment = parsedate_to_datetime(value.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, moment.timestamp() - now)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def plan_wait(
    policy: RetryPolicy,
    error: ProviderError,
    *,
    retries: int,
    waited_s: float,
    random: Callable[[], float],
) -> float | None:
    """Return how long to wait before trying again, or `None` when the error is final.

    A deadline that passed is final: its time was the most the caller wanted to spend.
    """
    if not error.retryable or isinstance(error, ProviderTimeoutError):
        return None
    if retries >= policy.max_retries:
        return None
    wait_s = error.retry_after_s
    if not wait_s:
        delay_s = min(policy.max_delay_s, policy.base_delay_s * 2.0 ** min(retries, 60))
        wait_s = delay_s * (1 + policy.jitter * (2 * random() - 1))
    return wait_s if waited_s + wait_s <= policy.max_wait_s else None


async def run_attempts(
    policy: RetryPolicy,
    attempt: Callable[[int], Awaitable[T]],
    *,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    random: Callable[[], float] = random_module.random,
) -> T:
    """Make attempts until one succeeds or fails for good; `attempt` gets its number, from 1."""
    waited_s = 0.0
    number = 1
    while True:
        try:
            return await attempt(number)
        except ProviderError as error:
            error.attempts = number
            wait_s = plan_wait(policy, error, retries=number - 1, waited_s=waited_s, random=random)
            if wait_s is None:
                _explain_refused_wait(policy, error, waited_s)
                raise
        await sleep(wait_s)
        waited_s += wait_s
        number += 1


def _explain_refused_wait(policy: RetryPolicy, error: ProviderError, waited_s: float) -> None:
    asked_s = error.retry_after_s
    left_s = max(0.0, policy.max_wait_s - waited_s)
    if error.retryable and asked_s and asked_s > left_s:
        refusal = (
            f"The provider asks to wait {asked_s:g} s, but only {left_s:g} s of the waiting "
            "budget are left; try again later, or raise max_wait_s."
        )
        error.hint = f"{error.hint} {refusal}" if error.hint else refusal


def _parse_number(text: str | None) -> float | None:
    if text is None or not _SECONDS.fullmatch(text := text.strip()):
        return None
    return float(text)
