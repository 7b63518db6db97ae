"""What each method of a store asks its database, without knowing which database that is.

A method is a generator: it yields queries and is sent their rows. Whoever drives it runs all of
them in one transaction, so whatever a generator raises leaves nothing behind.
"""

from collections.abc import Callable, Generator, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeVar

from surecall.text import encode
from surecall.tools.approvals import (
    Approval,
    ApprovalStatus,
    PausedRun,
    not_found,
    use,
)
from surecall.workspace import ApprovalUse, Change, Part, WorkspaceState
from surecall.workspace.state import PARTS

from .rows import (
    decode_approval,
    decode_change,
    decode_part,
    decode_run,
    decode_state,
    encode_change,
    instant,
)
from .tables import PART_COLUMNS

T = TypeVar("T")

_MAX_ROWS: Final = 1_000


class Query(NamedTuple):
    """One statement; `$1` stands for the first value, as often as it is needed."""

    text: str
    values: tuple[Any, ...] = ()


Rows = Sequence[Sequence[Any]]
Steps = Generator[Query, Rows, T]

# workspaces


def load_state(workspace_id: str, revision: int | None) -> Steps[WorkspaceState | None]:
    """Return a state, the newest one without a revision."""
    values = (workspace_id,) if revision is None else (workspace_id, revision)
    at = "" if revision is None else " AND revision = $2"
    found = yield Query(
        f"SELECT revision, {PART_COLUMNS} FROM surecall_revisions "  # noqa: S608 - our own names
        f"WHERE workspace_id = $1{at} ORDER BY revision DESC LIMIT 1",
        values,
    )
    if not found:
        return None
    # Content never changes once it is there: these rows belong together whoever writes meanwhile.
    which = " OR ".join(
        f"(part = '{part}' AND version = ${at})" for at, part in enumerate(PARTS, 2)
    )
    contents = yield Query(
        f"SELECT part, content FROM surecall_parts WHERE workspace_id = $1 AND ({which})",  # noqa: S608
        (workspace_id, *found[0][1:]),
    )
    return decode_state(workspace_id, found[0], {row[0]: row[1] for row in contents})


def save_state(
    state: WorkspaceState, change: Change, asks: Approval | None, uses: ApprovalUse | None
) -> Steps[bool]:
    """Store a state that follows, with what its change asks for and uses up."""
    previous = yield Query(
        f"SELECT {PART_COLUMNS} FROM surecall_revisions "  # noqa: S608
        "WHERE workspace_id = $1 AND revision = $2",
        (state.id, state.revision - 1),
    )
    if state.revision and not previous:
        return False
    versions = [state.version(part) for part in PARTS]
    inserted = yield Query(
        f"INSERT INTO surecall_revisions (workspace_id, revision, {PART_COLUMNS}, "  # noqa: S608
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
        yield from use_approval(uses.approval_id, uses.digest)
    return True


def load_part(workspace_id: str, part: Part, version: int) -> Steps[Any]:
    """Return the content that a part had at a version."""
    found = yield Query(
        "SELECT content FROM surecall_parts WHERE workspace_id = $1 AND part = $2 AND version = $3",
        (workspace_id, part, version),
    )
    return decode_part(part, found[0][0]) if found else None


def find_request(workspace_id: str, request_id: str) -> Steps[Change | None]:
    """Return the change that claimed a request id."""
    found = yield Query(
        "SELECT revision, change FROM surecall_revisions "
        "WHERE workspace_id = $1 AND request_id = $2",
        (workspace_id, request_id),
    )
    return decode_change(found[0]) if found else None


def list_changes(workspace_id: str, before: int | None, limit: int) -> Steps[list[Change]]:
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


def add_approvals(approvals: Sequence[Approval], run: PausedRun | None) -> Steps[None]:
    """Store new approvals, and the run that waits for them."""
    for each in approvals:
        yield _insert(each)
    if run is not None:
        yield Query(
            "INSERT INTO surecall_paused_runs (run_id, record) VALUES ($1, $2) "
            "ON CONFLICT (run_id) DO UPDATE SET record = excluded.record",
            (run.run_id, encode(run)),
        )


def find_approval(approval_id: str) -> Steps[Approval]:
    """Return an approval as it was stored, or raise that there is none."""
    found = yield Query(
        "SELECT id, status, record FROM surecall_approvals WHERE id = $1", (approval_id,)
    )
    if not found:
        raise not_found("approval", approval_id)
    return decode_approval(found[0])


def list_approvals(
    status: ApprovalStatus | None, equal: dict[str, str | None], limit: int
) -> Steps[list[Approval]]:
    """Return approvals as they are now, newest first; `equal` holds columns and their values."""
    now = datetime.now(UTC)
    columns = {name: value for name, value in equal.items() if value is not None}
    conditions = [f"{name} = ${at}" for at, name in enumerate(columns, 1)]
    values: list[Any] = list(columns.values())
    if status is not None:
        place = len(values) + 1
        if status == "expired":
            conditions.append(f"status IN ('pending', 'approved') AND expires_at <= ${place}")
            values.append(instant(now))
        elif status in ("pending", "approved"):
            conditions.append(f"status = ${place} AND expires_at > ${place + 1}")
            values += [status, instant(now)]
        else:
            conditions.append(f"status = ${place}")
            values.append(status)
    where = f"WHERE {' AND '.join(conditions)} " if conditions else ""
    found = yield Query(
        f"SELECT id, status, record FROM surecall_approvals {where}"  # noqa: S608
        f"ORDER BY number DESC LIMIT {_bound(limit)}",
        tuple(values),
    )
    return [decode_approval(row).at(now) for row in found]


def change_approval(approval_id: str, change: Callable[[Approval], Approval]) -> Steps[Approval]:
    """Store what a change makes of an approval, unless it raises.

    A status only moves forward, so it tells whether somebody else was faster; the change is then
    made on what they left.
    """
    while True:
        before = yield from find_approval(approval_id)
        after = change(before)
        written = yield Query(
            "UPDATE surecall_approvals SET status = $1, record = $2 "
            "WHERE id = $3 AND status = $4 RETURNING id",
            (after.status, encode(after), approval_id, before.status),
        )
        if written:
            return after


def use_approval(approval_id: str, digest: str) -> Steps[Approval]:
    """Use an approval for exactly what it binds, once."""
    return change_approval(approval_id, lambda found: use(found, digest, datetime.now(UTC)))


def load_run(run_id: str) -> Steps[PausedRun]:
    """Return the run that waits, or raise that there is none."""
    found = yield Query("SELECT record FROM surecall_paused_runs WHERE run_id = $1", (run_id,))
    if not found:
        raise not_found("paused run", run_id)
    return decode_run(found[0][0])


def replace_run(before: PausedRun, after: PausedRun) -> Steps[bool]:
    """Store another state of a run if it still has the one before, and tell whether it had."""
    written = yield Query(
        "UPDATE surecall_paused_runs SET record = $1 WHERE run_id = $2 AND record = $3 "
        "RETURNING run_id",
        (encode(after), before.run_id, encode(before)),
    )
    return bool(written)


def drop_run(run_id: str) -> Steps[None]:
    """Forget a run that no longer waits."""
    yield Query("DELETE FROM surecall_paused_runs WHERE run_id = $1", (run_id,))


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


def _bound(limit: int) -> int:
    return max(0, min(limit, _MAX_ROWS))
