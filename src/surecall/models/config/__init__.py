"""The one place that reads the environment and the configuration file.

From weakest to strongest: defaults, `surecall.toml` in the current folder or the nearest parent
(or `[tool.surecall]` of its `pyproject.toml`), `SURECALL_*` variables, explicit overrides.
Unknown keys are errors wherever they are, and every value remembers where it came from.
"""

from .load import (
    Config,
    all_variables,
    find_keys,
    keys_at,
    know_keys,
    load_config,
    parse_key,
    read_key,
    read_network,
)
from .settings import SETTINGS, variable_of

__all__ = [
    "SETTINGS",
    "Config",
    "all_variables",
    "find_keys",
    "keys_at",
    "know_keys",
    "load_config",
    "parse_key",
    "read_key",
    "read_network",
    "variable_of",
]
