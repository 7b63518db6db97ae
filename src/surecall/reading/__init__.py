"""Any reply becomes calls: ready to be checked and run, or refused with reasons."""

from .arguments import ArgumentsReading, read_arguments
from .reply import read_reply

__all__ = ["ArgumentsReading", "read_arguments", "read_reply"]
