import math
from typing import Any

import pytest

from surecall.base.errors import ConfigError
from surecall.models.transport import Deadlines, RetryPolicy, WireLimits


def test_the_shipped_limits() -> None:
    """The defaults are the documented ones."""
    assert Deadlines() == Deadlines(connect_s=5, first_byte_s=60, idle_s=60, total_s=600)
    limits = WireLimits()
    assert limits.max_body_bytes == 33_554_432
    assert limits.max_stream_bytes == 134_217_728
    assert limits.max_error_body_bytes == 524_288
    assert (limits.max_ratio, limits.ratio_free_bytes) == (100, 1_048_576)


@pytest.mark.parametrize("value", [0, -1, math.inf, math.nan, True, "5", None])
def test_a_limit_that_is_no_positive_number_is_refused(value: Any) -> None:
    """Neither zero, nor infinity, nor text is a limit."""
    with pytest.raises(ConfigError, match=r"Deadlines\.idle_s is"):
        Deadlines(idle_s=value)
    with pytest.raises(ConfigError, match=r"WireLimits\.max_ratio is"):
        WireLimits(max_ratio=value)


@pytest.mark.parametrize("field", ["max_retries", "max_wait_s", "base_delay_s", "jitter"])
def test_a_retry_policy_has_no_negative_numbers(field: str) -> None:
    """A negative wait or count is refused."""
    with pytest.raises(ConfigError, match="negative"):
        RetryPolicy(**{field: -1})
