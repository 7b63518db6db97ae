"""What probes found out, kept with a date and for a time.

The store is a cache: whatever is in it can be asked again. A file that is damaged is put aside, a
file of a later version is left alone. Several processes may use it at once.
"""

import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, nullcontext, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from surecall.base.errors import Code, ConfigError, JSONTextError, StoreError
from surecall.base.records import ErrorDetail
from surecall.base.redaction import open_log, redact
from surecall.base.sqlite_files import Layout, connect, explain_database_errors, transaction
from surecall.base.version import VERSION
from surecall.models.profiles import join_capabilities, split_capabilities
from surecall.text import decode, encode_text

from .findings import Finding

T = TypeVar("T")

DEFAULT_MAX_AGE_S: Final = 7 * 24 * 3600.0
"""How long a probed fact is believed."""

_log = open_log("surecall.probe")

_BUSY_S: Final = 5.0
_MAX_REMEMBER_S: Final = 3600.0
_TABLES: Final = """
CREATE TABLE facts (
    address TEXT NOT NULL,
    protocol TEXT NOT NULL,
    model TEXT NOT NULL,
    field TEXT NOT NULL,
    value TEXT NOT NULL,
    question TEXT NOT NULL,
    evidence TEXT NOT NULL,
    asked_at REAL NOT NULL,
    expires_at REAL NOT NULL,
    version TEXT NOT NULL,
    requests INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    PRIMARY KEY (address, protocol, model, field)
) WITHOUT ROWID;
CREATE TABLE leases (
    address TEXT NOT NULL,
    protocol TEXT NOT NULL,
    model TEXT NOT NULL,
    holder TEXT NOT NULL,
    leased_until REAL NOT NULL,
    failed_until REAL NOT NULL,
    code TEXT NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (address, protocol, model)
) WITHOUT ROWID;
"""
LAYOUT: Final = Layout(0x53_43_46_41, (_TABLES,))  # "SCFA"
_LEASE_TYPES: Final = [str, float, float, str, str]
_OF_KEY: Final = "address = ? AND protocol = ? AND model = ?"


class FactKey(NamedTuple):
    """What a fact is about: a model, at an address, through a wire format."""

    address: str
    protocol: str
    model: str

    @classmethod
    def of(cls, address: str, protocol: str, model: str) -> "FactKey":
        """Build the key; an address loses everything that could be a secret."""
        return cls(_clean_address(address), protocol, model)


class ProbedFact(Struct, frozen=True, kw_only=True):
    """One capability as a probe found it, and until when that is believed."""

    field: str
    value: Any
    question: str = ""
    evidence: str = ""
    asked_at: float
    """Seconds since the epoch."""
    expires_at: float
    version: str = ""
    """The surecall that asked."""
    requests: int = 0
    tokens: int = 0


class Lease(NamedTuple):
    """Whether this process may probe now, and what an earlier try came to."""

    taken: bool
    failed: ErrorDetail | None = None
    """Why a probe failed not long ago."""


class FactStore:
    """Dated facts in one SQLite file.

    Args:
        path: The file; it and its folder are made when something is saved.
        max_age_s: How long a new fact is believed.
        clock: Tells the time, in seconds since the epoch.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        max_age_s: float = DEFAULT_MAX_AGE_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.path = Path(path)
        self.max_age_s = max_age_s
        self.clock = clock

    def fresh(self, key: FactKey) -> tuple[ProbedFact, ...]:
        """Return the facts about a model that are still believed."""
        if not self.path.exists():
            return ()
        now = self.clock()
        facts = [fact for _, fact in self._rows(f"WHERE {_OF_KEY}", key)]
        # A date in the future was written by a clock that was wrong; nobody knows how old it is.
        return tuple(fact for fact in facts if fact.asked_at <= now < fact.expires_at)

    def all(self) -> tuple[tuple[FactKey, ProbedFact], ...]:
        """Return every fact, also those that have expired."""
        return tuple(self._rows("", ())) if self.path.exists() else ()

    def save(self, key: FactKey, findings: Iterable[Finding]) -> None:
        """Keep what findings decide; what was known of the same fields before is replaced."""
        now = self.clock()
        rows = [
            (
                *key,
                field,
                encode_text(value),
                finding.question,
                redact(finding.evidence),
                now,
                now + self.max_age_s,
                VERSION,
                finding.cost.requests,
                finding.cost.tokens,
            )
            for finding in findings
            for field, value in finding.fields.items()
        ]
        insert = f"INSERT OR REPLACE INTO facts VALUES ({', '.join('?' * 12)})"  # noqa: S608 - only marks
        self._run(lambda database: database.executemany(insert, rows))

    def forget(self, model: str | None = None) -> int:
        """Delete what is known about a model, or everything; return how many facts it was."""
        if not self.path.exists():
            return 0
        where, values = ("WHERE model = ?", (model,)) if model is not None else ("", ())

        def delete(database: sqlite3.Connection) -> int:
            database.execute(f"DELETE FROM leases {where}", values)  # noqa: S608 - fixed text
            return database.execute(f"DELETE FROM facts {where}", values).rowcount  # noqa: S608 - fixed text

        return self._run(delete)

    def take_lease(self, key: FactKey, holder: str, lease_s: float) -> Lease:
        """Ask to be the one process that probes a model."""
        now = self.clock()

        def take(database: sqlite3.Connection) -> Lease:
            row = database.execute(
                f"SELECT holder, leased_until, failed_until, code, message FROM leases "  # noqa: S608 - fixed text
                f"WHERE {_OF_KEY}",
                key,
            ).fetchone()
            if row is not None and [type(item) for item in row] != _LEASE_TYPES:
                row = None  # damaged, and then as good as none
            # What lies further ahead than we ever set it was set by a clock that was wrong.
            if row is not None and now < row[2] <= now + _MAX_REMEMBER_S:
                return Lease(taken=False, failed=ErrorDetail(row[3], row[4]))
            if row is not None and row[0] != holder and now < row[1] <= now + lease_s:
                return Lease(taken=False)
            database.execute(
                "INSERT OR REPLACE INTO leases VALUES (?, ?, ?, ?, ?, 0, '', '')",
                (*key, holder, now + lease_s),
            )
            return Lease(taken=True)

        return self._run(take)

    def end_lease(
        self,
        key: FactKey,
        holder: str,
        *,
        failed: ErrorDetail | None = None,
        remember_s: float = 0.0,
    ) -> None:
        """Give the lease back; a failure is remembered for a short time."""
        until = self.clock() + min(remember_s, _MAX_REMEMBER_S) if failed else 0.0
        code, message = (failed.code, redact(failed.message)) if failed else ("", "")
        self._run(
            lambda database: database.execute(
                f"UPDATE leases SET leased_until = 0, failed_until = ?, code = ?, message = ? "  # noqa: S608 - fixed text
                f"WHERE {_OF_KEY} AND holder = ?",
                (until, code, message, *key, holder),
            )
        )

    def _rows(self, where: str, values: Sequence[str]) -> list[tuple[FactKey, ProbedFact]]:
        query = f"SELECT * FROM facts {where} ORDER BY address, protocol, model, field"  # noqa: S608 - fixed text
        rows = self._run(lambda file: file.execute(query, values).fetchall(), writes=False)
        return [(FactKey(*row[:3]), fact) for row in rows if (fact := _parse_row(row)) is not None]

    def _run(self, action: Callable[[sqlite3.Connection], T], *, writes: bool = True) -> T:
        """Do something with the file in one transaction; a damaged file is put aside first."""
        try:
            try:
                return self._transact(action, writes)
            except StoreError as error:
                if error.code != Code.STORE_CORRUPT:
                    raise
                self._move_away(error)
                return self._transact(action, writes)
        except (StoreError, OSError) as error:
            raise ConfigError(
                Code.FACTS_UNUSABLE,
                error.message if isinstance(error, StoreError) else str(error),
                hint="It is only a cache: move it away, or name another folder with cache_dir.",
            ) from error

    def _transact(self, action: Callable[[sqlite3.Connection], T], writes: bool) -> T:
        database = connect(self.path, LAYOUT, ("synchronous = NORMAL",), busy_s=_BUSY_S)
        whole = transaction(database) if writes else nullcontext()
        with explain_database_errors(self.path), closing(database), whole:
            return action(database)

    def _move_away(self, error: StoreError) -> None:
        aside = self.path.with_name(f"{self.path.name}.damaged-{int(self.clock())}")
        _log.warning("%s is damaged (%s); it is now %s", self.path, error, aside)
        with suppress(FileNotFoundError):  # another process was quicker
            self.path.replace(aside)
        for suffix in ("-wal", "-shm"):
            self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)


def _parse_row(row: Sequence[Any]) -> ProbedFact | None:
    """Return a stored fact, or nothing for one that is damaged: it can be asked again."""
    try:
        fields = dict(zip(ProbedFact.__struct_fields__, row[3:], strict=True))
        fact = msgspec.convert(fields, ProbedFact)
    except msgspec.ValidationError:
        return None
    is_text = all(isinstance(item, str) for item in (*row[:3], fact.value))
    value = _checked_value(fact.field, fact.value) if is_text else msgspec.UNSET
    return None if value is msgspec.UNSET else msgspec.structs.replace(fact, value=value)


def _checked_value(field: str, text: str) -> Any:
    """Return a stored value, or `UNSET` for one that another version of surecall wrote."""
    try:
        value = decode(text)
        known = join_capabilities(*split_capabilities({field: value}))
    except (JSONTextError, msgspec.ValidationError):
        return msgspec.UNSET
    return value if field in known else msgspec.UNSET


def _clean_address(address: str) -> str:
    """Return an address without user, password, query and fragment."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        return redact(address.partition("?")[0].rpartition("@")[2])
    if not parts.scheme or not host:
        return redact(address)
    host = f"[{host}]" if ":" in host else host
    place = f"{host}:{port}" if port else host
    return redact(f"{parts.scheme.lower()}://{place}{parts.path.rstrip('/')}")
