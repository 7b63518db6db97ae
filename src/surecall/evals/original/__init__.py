"""What surecall keeps for the sake of the experiment it grew out of.

`variables` reads its settings, `categories` sorts failures as it did, and here are names of before:
its verdict used to be called `seed`, which is now a random seed only. Gates and flags still
understand the old names, and exports still carry them next to the new ones.
"""

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["add_old_names", "find_current_name"]

_OLD_NAMES: Final[Mapping[str, str]] = {
    "original": "seed",
    "original_interval": "seed_interval",
    "original_ok": "seed_ok",
    "original_reason": "seed_reason",
    "original_reasons": "seed_reasons",
    "original_regression": "seed_regression",
}
_CURRENT_NAMES: Final = {old: name for name, old in _OLD_NAMES.items()}


def find_current_name(name: str) -> str:
    """Return what a gate, a verdict or a column is called now."""
    return _CURRENT_NAMES.get(name, name)


def add_old_names(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of an export, with those that were renamed under their old names too."""
    old = {_OLD_NAMES[name]: value for name, value in fields.items() if name in _OLD_NAMES}
    return {**fields, **old}
