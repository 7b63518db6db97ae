"""Stores of workspaces for tests."""

from surecall.store import PostgresStore

__all__ = ["empty_postgres"]

_TABLES = ("revisions", "parts", "approvals", "paused_runs", "workspace_layout")


async def empty_postgres(url: str) -> PostgresStore:
    """Return a store on a database without our tables."""
    import asyncpg

    connection = await asyncpg.connect(url)
    for name in _TABLES:
        await connection.execute(f"DROP TABLE IF EXISTS surecall_{name}")
    await connection.close()
    return PostgresStore(url)
