"""Errors and codes, records, limits, secrets, files and small tools: what every room uses."""

__all__: list[str] = []
