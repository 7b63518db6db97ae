"""The command line: data on standard output, words for people on standard error."""

from .main import cli
from .output import SCHEMA_VERSION, ExitCode

__all__ = ["SCHEMA_VERSION", "ExitCode", "cli"]
