from collections.abc import Iterator

import pytest

from surecall.redaction import known


@pytest.fixture(autouse=True)
def secrets_of_this_test_alone() -> Iterator[None]:
    """Forget the secrets a test leaves alive in a frame: they would change what others see."""
    yield
    registry = known._registry
    for identity in list(registry._values):
        registry.drop(identity)
