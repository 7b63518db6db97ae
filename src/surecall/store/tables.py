"""The tables of a store, the same in every database.

A revision is one row with the versions of the four parts; the content of a part is stored once
for each of its versions. Rows of both are only ever added.
"""

from typing import Final

PART_COLUMNS: Final = "facts_version, draft_version, locks_version, ui_state_version"

_TABLES: Final = """
CREATE TABLE surecall_revisions (
    workspace_id TEXT NOT NULL,
    revision BIGINT NOT NULL,
    facts_version BIGINT NOT NULL,
    draft_version BIGINT NOT NULL,
    locks_version BIGINT NOT NULL,
    ui_state_version BIGINT NOT NULL,
    request_id TEXT,
    change {bytes} NOT NULL,
    PRIMARY KEY (workspace_id, revision)
);
CREATE UNIQUE INDEX surecall_revisions_by_request
    ON surecall_revisions (workspace_id, request_id) WHERE request_id IS NOT NULL;
CREATE TABLE surecall_parts (
    workspace_id TEXT NOT NULL,
    part TEXT NOT NULL,
    version BIGINT NOT NULL,
    content {bytes} NOT NULL,
    PRIMARY KEY (workspace_id, part, version)
);
CREATE TABLE surecall_approvals (
    number {number},
    id TEXT NOT NULL UNIQUE,
    subject TEXT NOT NULL,
    name TEXT NOT NULL,
    run_id TEXT NOT NULL,
    status TEXT NOT NULL,
    expires_at BIGINT NOT NULL,
    record {bytes} NOT NULL
);
CREATE INDEX surecall_approvals_by_name ON surecall_approvals (subject, name, number);
CREATE INDEX surecall_approvals_by_run ON surecall_approvals (run_id, number);
CREATE TABLE surecall_paused_runs (
    run_id TEXT PRIMARY KEY,
    record {bytes} NOT NULL
)
"""

SQLITE_MIGRATIONS: Final[tuple[str, ...]] = (
    _TABLES.format(bytes="BLOB", number="INTEGER PRIMARY KEY AUTOINCREMENT"),
)
"""What leads from each layout of a file to the next."""

POSTGRES_MIGRATIONS: Final[tuple[str, ...]] = (
    _TABLES.format(bytes="BYTEA", number="BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
)
"""What leads from each layout of the tables on a server to the next."""
