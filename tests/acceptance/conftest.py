import pytest

from .doors import Door
from .sample_tools import Ledger


@pytest.fixture(params=["scripted", "http"])
def door(request: pytest.FixtureRequest) -> Door:
    """The same test against a script in the process and against a server on a socket."""
    return Door(request.param)


@pytest.fixture
def ledger() -> Ledger:
    """Tools that write down every call they run."""
    return Ledger()
