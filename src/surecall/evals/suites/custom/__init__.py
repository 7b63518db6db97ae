"""A user's own cases, from a TOML or Python file."""

from .suite import CustomCase, CustomRun, CustomSuite, load_custom

__all__ = ["CustomCase", "CustomRun", "CustomSuite", "load_custom"]
