"""Tests of a plugin run pytest inside pytest."""

pytest_plugins = ["pytester"]
