"""What all tests may use: those of the plugin run pytest inside pytest."""

import signal

import pytest
from hypothesis import settings

from support import patient_loop

pytest_plugins = ["pytester"]

settings.register_profile("surecall", settings.default, deadline=None)  # no test asserts a time
settings.load_profile("surecall")

patient_loop.install()

# A shell's background jobs ignore Ctrl-C, and so would the commands that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

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
