"""What all tests may use: those of the plugin run pytest inside pytest."""

import pytest
from hypothesis import settings

pytest_plugins = ["pytester"]

settings.register_profile("surecall", settings.default, deadline=None)  # no test asserts a time
settings.load_profile("surecall")

_SLOW = (
    "/browser/",
    "/plugin/",
    "/tool_servers/",
    "/stores/",
    "/cheats/",
    "test_executors",
    "test_hidden_tools",
    "test_kill",
    "_kill",
    "/properties/",
    "/gateway/",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run slow files first: begun last, one of them would keep one process busy alone."""
    items.sort(key=lambda item: not any(part in item.path.as_posix() for part in _SLOW))
