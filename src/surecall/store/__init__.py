"""Workspaces, approvals and paused runs in a database, so that they outlive a process."""

from pathlib import Path

from .workspaces import DatabaseStore, PostgresStore, SqliteStore

__all__ = ["DatabaseStore", "PostgresStore", "SqliteStore", "open_store"]


def open_store(place: str | Path) -> DatabaseStore:
    """Open the store at a place: a file, or the address of a PostgreSQL server."""
    text = str(place)
    if text.startswith(("postgresql://", "postgres://")):
        return PostgresStore(text)
    return SqliteStore(text)
