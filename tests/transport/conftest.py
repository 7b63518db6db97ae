import pytest

from surecall.base.records import WireRequest
from surecall.models.transport import Deadlines, RetryPolicy


@pytest.fixture
def request_of_chat() -> WireRequest:
    """A small request."""
    return WireRequest(path="/chat/completions", body={"model": "m", "messages": []})


@pytest.fixture
def quick() -> RetryPolicy:
    """The shipped number of retries, without the wait."""
    return RetryPolicy(base_delay_s=0.01)


@pytest.fixture
def short() -> Deadlines:
    """Deadlines that pass within a test."""
    return Deadlines(connect_s=2, first_byte_s=0.25, idle_s=0.25, total_s=0.7)
