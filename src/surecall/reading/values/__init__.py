"""A value of any schema out of what a model answered: read, or refused with what it could be."""

from .reader import Schema, ValueCandidate, ValueReading, read_value

__all__ = ["Schema", "ValueCandidate", "ValueReading", "read_value"]
