"""Workspaces, approvals and paused runs, as a store keeps them in either database.

A revision of a workspace is one row with the versions of the four parts; the content of a part is
stored once for each of its versions. Rows of both are only ever added.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar, cast

import msgspec
from msgspec.structs import replace

from surecall.base.errors import JSONTextError
from surecall.base.postgres_server import place_of
from surecall.base.records.receipts import clip
from surecall.base.sqlite_files import Layout
from surecall.text import decode_own, decoder_of, encode
from surecall.tools.approvals import (
    Approval,
    ApprovalStatus,
    ApprovalSubject,
    Decision,
    PausedRun,
    decide,
    not_found,
    use,
)
from surecall.workspace import ApprovalUse, Change, Part, WorkspaceState
from surecall.workspace.state import PARTS

from .databases import (
    DamagedRow,
    Database,
    PostgresDatabase,
    Query,
    SqliteDatabase,
    Steps,
    reads,
    writes,
)

_MAX_ROWS: Final = 1_000
_PART_COLUMNS: Final = "facts_version, draft_version, locks_version, ui_state_version"

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

_NUMBER: Final = 0x53_43_57_53  # "SCWS"

SQLITE_LAYOUT: Final = Layout(
    _NUMBER, (_TABLES.format(bytes="BLOB", number="INTEGER PRIMARY KEY AUTOINCREMENT"),)
)
POSTGRES_LAYOUT: Final = Layout(
    _NUMBER,
    (_TABLES.format(bytes="BYTEA", number="BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),),
    table="surecall_workspace_layout",
)


class DatabaseStore:
    """Workspaces, approvals and paused runs in one database; each method is one transaction."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the database; what was stored stays."""
        await self.database.close()

    # workspaces

    @reads
    def load_state(
        self, workspace_id: str, revision: int | None = None
    ) -> Steps[WorkspaceState | None]:
        """Return the newest state of a workspace, or that of a revision, if there is one."""
        values = (workspace_id,) if revision is None else (workspace_id, revision)
        at = "" if revision is None else " AND revision = $2"
        found = yield Query(
            f"SELECT revision, {_PART_COLUMNS} FROM surecall_revisions "  # noqa: S608 - our own names
            f"WHERE workspace_id = $1{at} ORDER BY revision DESC LIMIT 1",
            values,
        )
        if not found:
            return None
        # Content never changes once it is there: these rows belong together whoever writes now.
        which = " OR ".join(
            f"(part = '{part}' AND version = ${at})" for at, part in enumerate(PARTS, 2)
        )
        contents = yield Query(
            f"SELECT part, content FROM surecall_parts WHERE workspace_id = $1 AND ({which})",  # noqa: S608
            (workspace_id, *found[0][1:]),
        )
        return decode_state(workspace_id, found[0], {row[0]: row[1] for row in contents})

    @writes
    def save_state(
        self,
        state: WorkspaceState,
        change: Change,
        *,
        asks: Approval | None = None,
        uses: ApprovalUse | None = None,
    ) -> Steps[bool]:
        """Store a state if it follows the stored one, and tell whether it did."""
        previous = yield Query(
            f"SELECT {_PART_COLUMNS} FROM surecall_revisions "  # noqa: S608
            "WHERE workspace_id = $1 AND revision = $2",
            (state.id, state.revision - 1),
        )
        if state.revision and not previous:
            return False
        versions = [state.version(part) for part in PARTS]
        inserted = yield Query(
            f"INSERT INTO surecall_revisions (workspace_id, revision, {_PART_COLUMNS}, "  # noqa: S608
            "request_id, change) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) "
            "ON CONFLICT DO NOTHING RETURNING revision",
            (state.id, state.revision, *versions, change.request_id or None, encode_change(change)),
        )
        if not inserted:
            return False
        before = list(previous[0]) if previous else [None] * len(PARTS)
        for part, old, new in zip(PARTS, before, versions, strict=True):
            if old != new:
                yield Query(
                    "INSERT INTO surecall_parts (workspace_id, part, version, content) "
                    "VALUES ($1, $2, $3, $4)",
                    (state.id, part, new, encode(getattr(state, part))),
                )
        if asks is not None:
            yield _insert(asks)
        if uses is not None:
            yield from _use_approval(uses.approval_id, uses.digest)
        return True

    @reads
    def load_part(self, workspace_id: str, part: Part, version: int) -> Steps[Any]:
        """Return the content that a part had at a version, or `None`."""
        found = yield Query(
            "SELECT content FROM surecall_parts "
            "WHERE workspace_id = $1 AND part = $2 AND version = $3",
            (workspace_id, part, version),
        )
        return decode_part(part, found[0][0]) if found else None

    @reads
    def find_request(self, workspace_id: str, request_id: str) -> Steps[Change | None]:
        """Return the change that claimed a request id."""
        found = yield Query(
            "SELECT revision, change FROM surecall_revisions "
            "WHERE workspace_id = $1 AND request_id = $2",
            (workspace_id, request_id),
        )
        return decode_change(found[0]) if found else None

    @reads
    def list_changes(
        self, workspace_id: str, *, before: int | None = None, limit: int = 100
    ) -> Steps[Sequence[Change]]:
        """Return the log of a workspace, newest first."""
        values = (workspace_id,) if before is None else (workspace_id, before)
        below = "" if before is None else " AND revision < $2"
        found = yield Query(
            "SELECT revision, change FROM surecall_revisions "  # noqa: S608
            f"WHERE workspace_id = $1{below} ORDER BY revision DESC LIMIT {_bound(limit)}",
            values,
        )
        return [decode_change(row) for row in found]

    # approvals

    @writes
    def add(self, approvals: Sequence[Approval], run: PausedRun | None = None) -> Steps[None]:
        """Store new approvals, and the run that waits for them; one that is there stays."""
        for each in approvals:
            yield _insert(each)
        if run is not None:
            yield Query(
                "INSERT INTO surecall_paused_runs (run_id, record) VALUES ($1, $2) "
                "ON CONFLICT (run_id) DO UPDATE SET record = excluded.record",
                (run.run_id, encode(run)),
            )

    @reads
    def get(self, approval_id: str) -> Steps[Approval]:
        """Return an approval as it is now, or raise `APPROVAL_NOT_FOUND`."""
        found = yield from _find_approval(approval_id)
        return found.at(datetime.now(UTC))

    @reads
    def list(
        self,
        *,
        status: ApprovalStatus | None = None,
        run_id: str | None = None,
        subject: ApprovalSubject | None = None,
        name: str | None = None,
        limit: int = 100,
    ) -> Steps[list[Approval]]:
        """Return approvals as they are now, newest first."""
        now = datetime.now(UTC)
        equal = {"run_id": run_id, "subject": subject, "name": name}
        columns = {name: value for name, value in equal.items() if value is not None}
        if not all(value.isprintable() for value in columns.values()):
            return []
        conditions = [f"{name} = ${at}" for at, name in enumerate(columns, 1)]
        values: list[Any] = [*columns.values()]
        place = len(values) + 1
        if status == "expired":
            conditions.append(f"status IN ('pending', 'approved') AND expires_at <= ${place}")
            values.append(instant(now))
        elif status in ("pending", "approved"):
            conditions.append(f"status = ${place} AND expires_at > ${place + 1}")
            values += [status, instant(now)]
        elif status is not None:
            conditions.append(f"status = ${place}")
            values.append(status)
        where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
        found = yield Query(
            f"SELECT id, status, record FROM surecall_approvals {where}"  # noqa: S608
            f"ORDER BY number DESC LIMIT {_bound(limit)}",
            tuple(values),
        )
        return [decode_approval(row).at(now) for row in found]

    @writes
    def decide(self, approval_id: str, decision: Decision) -> Steps[Approval]:
        """Record the one decision about a pending approval, or raise why it cannot be made."""
        return _change_approval(
            approval_id, lambda found: decide(found, decision, datetime.now(UTC))
        )

    @writes
    def use(self, approval_id: str, digest: str) -> Steps[Approval]:
        """Use an approval for exactly what it binds, once; raise when that is not possible."""
        return _use_approval(approval_id, digest)

    @reads
    def load_run(self, run_id: str) -> Steps[PausedRun]:
        """Return the run that waits, or raise `APPROVAL_NOT_FOUND`."""
        _check("paused run", run_id)
        found = yield Query("SELECT record FROM surecall_paused_runs WHERE run_id = $1", (run_id,))
        if not found:
            raise not_found("paused run", run_id)
        return decode_run(found[0][0])

    @writes
    def replace_run(self, before: PausedRun, after: PausedRun) -> Steps[bool]:
        """Store another state of a run if it still has the one before, and tell whether it had."""
        written = yield Query(
            "UPDATE surecall_paused_runs SET record = $1 WHERE run_id = $2 AND record = $3 "
            "RETURNING run_id",
            (encode(after), before.run_id, encode(before)),
        )
        return bool(written)

    @writes
    def drop_run(self, run_id: str) -> Steps[None]:
        """Forget a run that no longer waits."""
        if run_id.isprintable():
            yield Query("DELETE FROM surecall_paused_runs WHERE run_id = $1", (run_id,))


class SqliteStore(DatabaseStore):
    """Workspaces, approvals and paused runs in one file, readable by its owner alone.

        await surecall.SqliteStore("approvals.db").list()  # []

    Args:
        path: The file; it is made, with its folder, when it is not there.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        super().__init__(SqliteDatabase(self.path, SQLITE_LAYOUT))

    def __repr__(self) -> str:
        return f"SqliteStore({str(self.path)!r})"


class PostgresStore(DatabaseStore):
    """Workspaces, approvals and paused runs on a server; used within one event loop.

    Args:
        url: Such as `postgresql://user@host/database`; a password may be in `PGPASSWORD` or in
            the password file, where the driver looks by itself.
    """

    def __init__(self, url: str) -> None:
        self._place = place_of(url)
        super().__init__(PostgresDatabase(url, POSTGRES_LAYOUT))

    def __repr__(self) -> str:
        return f"PostgresStore({self._place!r})"


def _find_approval(approval_id: str) -> Steps[Approval]:
    _check("approval", approval_id)
    found = yield Query(
        "SELECT id, status, record FROM surecall_approvals WHERE id = $1", (approval_id,)
    )
    if not found:
        raise not_found("approval", approval_id)
    return decode_approval(found[0])


def _change_approval(approval_id: str, change: Callable[[Approval], Approval]) -> Steps[Approval]:
    """Store what a change makes of an approval, unless it raises.

    A status only moves forward, so it tells whether somebody else was faster; the change is then
    made on what they left.
    """
    while True:
        before = yield from _find_approval(approval_id)
        after = change(before)
        written = yield Query(
            "UPDATE surecall_approvals SET status = $1, record = $2 "
            "WHERE id = $3 AND status = $4 RETURNING id",
            (after.status, encode(after), approval_id, before.status),
        )
        if written:
            return after


def _use_approval(approval_id: str, digest: str) -> Steps[Approval]:
    return _change_approval(approval_id, lambda found: use(found, digest, datetime.now(UTC)))


def _insert(approval: Approval) -> Query:
    return Query(
        "INSERT INTO surecall_approvals (id, subject, name, run_id, status, expires_at, record) "
        "VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING",
        (
            approval.id,
            approval.subject,
            approval.name,
            approval.run_id,
            approval.status,
            instant(approval.expires_at),
            encode(approval),
        ),
    )


def _check(what: str, identity: str) -> None:
    """Raise that nothing has an id which not every database could look for."""
    if not identity.isprintable():
        raise not_found(what, identity)


def _bound(limit: int) -> int:
    return max(0, min(limit, _MAX_ROWS))


# rows

T = TypeVar("T")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

_decode_approval: Final = decoder_of(Approval)
_decode_run: Final = decoder_of(PausedRun)
_decode_change: Final = decoder_of(Change)


def instant(moment: datetime) -> int:
    """Return a moment as microseconds, to be compared by a database."""
    return (moment - _EPOCH) // _MICROSECOND


def encode_change(change: Change) -> bytes:
    """Return a change as bytes; what a receipt quotes need not be JSON and is described then."""
    try:
        return encode(change)
    except JSONTextError:
        receipts = tuple(
            replace(each, before=clip(ascii(each.before)), after=clip(ascii(each.after)))
            for each in change.author.receipts
        )
        return encode(replace(change, author=replace(change.author, receipts=receipts)))


def decode_change(row: Sequence[Any]) -> Change:
    """Return the change of a row with the revision and the content."""
    change = _decode(_decode_change, row[1])
    if change.revision != row[0]:
        raise DamagedRow(f"revision {row[0]} has the change of revision {change.revision}")
    return change


def decode_approval(row: Sequence[Any]) -> Approval:
    """Return the approval of a row with the id, the status and the content."""
    approval = _decode(_decode_approval, row[2])
    if approval.id != row[0] or approval.status != row[1]:
        raise DamagedRow(f"approval {row[0]} is not what its row says")
    return approval


def decode_run(data: Any) -> PausedRun:
    """Return the paused run of a row."""
    return _decode(_decode_run, data)


def decode_state(
    workspace_id: str, row: Sequence[Any], contents: Mapping[str, Any]
) -> WorkspaceState:
    """Return a state from its revision, its versions, and the content of its parts."""
    if not all(isinstance(number, int) for number in row):
        raise DamagedRow("a version is not a number")
    revision, *versions = row
    members: dict[str, Any] = {}
    for part, version in zip(PARTS, versions, strict=True):
        if part not in contents:
            raise DamagedRow(f"{part}:{version} of a workspace is missing")
        members[part] = decode_part(part, contents[part])
        members[f"{part}_version"] = version
    return WorkspaceState(id=workspace_id, revision=revision, **members)


def decode_part(part: Part, data: Any) -> Any:
    """Return the content of a part."""
    found = _decode(decode_own, data)
    if part != "locks":
        if not isinstance(found, dict):
            raise DamagedRow(f"the {part} of a workspace is not an object")
        return cast("dict[str, Any]", found)
    try:
        return msgspec.convert(found, tuple[str, ...])
    except msgspec.ValidationError:
        raise DamagedRow("the locks of a workspace are not a list of paths") from None


def _decode(decode: Callable[[bytes], T], data: Any) -> T:
    try:
        return decode(bytes(data))
    except (ValueError, TypeError, JSONTextError) as error:
        raise DamagedRow(str(error)) from None
