import pytest

from . import toolbox


@pytest.fixture(autouse=True)
def nothing_saved() -> None:
    """Every test begins with nothing saved."""
    toolbox.saved.clear()
