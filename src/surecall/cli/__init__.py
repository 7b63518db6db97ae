"""The command line: data on standard output, words for people on standard error."""

from .console import SCHEMA_VERSION, ExitCode
from .main import cli

__all__ = ["SCHEMA_VERSION", "ExitCode", "cli"]
