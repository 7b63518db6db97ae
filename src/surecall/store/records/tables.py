"""The tables of requests in SQLite and PostgreSQL, and how they are asked."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from surecall.base.sqlite_files import Layout
from surecall.store.databases import Query

from .record import COLUMNS, first_id_at

NOT_CLEAN: Final = "not-clean"
"""Stands for every outcome in which something was wrong."""

_NUMBER: Final = 0x53_43_52_51  # "SCRQ"
_NAMES: Final = ", ".join(f"r.{name}" for name in COLUMNS)


class RecordFilter(Struct, frozen=True, kw_only=True):
    """Which records are wanted; what is unset does not matter."""

    since: float | None = None
    """Seconds since 1970; from this moment on."""
    until: float | None = None
    """Seconds since 1970; before this moment."""
    model: str | None = None
    """The model asked for, or the one that answered."""
    upstream: str | None = None
    outcome: str | None = None
    """An outcome, or `not-clean` for all that a reply was changed, asked for again or missed."""
    code: str | None = None
    """The code of a defect, or of the error that ended the request."""
    status: str | None = None
    """An HTTP status such as `429`, or all that begin like it: `4xx`."""
    key_id: str | None = None


class Selection(Struct, frozen=True, kw_only=True):
    """Figures that are asked of a store."""

    columns: tuple[str, ...]
    """Expressions over the table `r`; in braces, what a `Dialect` writes in its own way."""
    group_by: int = 0
    """How many of the columns, from the first on, make a group; 0 means none."""
    order_by: str = ""
    limit: int = 1000
    """The most rows that each file of a store gives."""


Figures = list[tuple[Any, ...]]
"""Rows of figures, in the order of the columns that were asked for."""


class Dialect(Struct, frozen=True, kw_only=True):
    """How a database writes what others write differently."""

    prefix: str
    """What the names of tables begin with."""
    find: str
    """The function that finds a text inside another."""
    floor: str
    """What begins the whole part of a number; `end_floor` ends it."""
    end_floor: str
    has_receipts: str
    """1 where the details of a request hold receipts, else 0."""
    has_parse_error: str

    def page(
        self,
        wanted: RecordFilter,
        limit: int,
        *,
        before: str | None = None,
        after: str | None = None,
        bodies: bool = False,
    ) -> Query:
        """Return the query for some records: the latest first, or the earliest after an id."""
        where, values = self.where(wanted, before=before, after=after)
        order = "r.id DESC" if after is None else "r.id"
        return Query(f"{self.rows(bodies)} WHERE {where} ORDER BY {order} LIMIT {limit}", values)

    def rows(self, bodies: bool) -> str:
        """Return what selects whole rows, with or without their bodies."""
        table = f"{self.prefix}requests r"
        if not bodies:
            return f"SELECT {_NAMES}, NULL, NULL FROM {table}"  # noqa: S608 - names of our own
        joined = f"{table} LEFT JOIN {self.prefix}bodies b ON b.id = r.id"
        return f"SELECT {_NAMES}, b.request, b.reply FROM {joined}"  # noqa: S608

    def figures(self, selection: Selection, wanted: RecordFilter) -> Query:
        """Return the query for some figures."""
        where, values = self.where(wanted)
        names = ", ".join(selection.columns).format(**asdict(self))
        text = f"SELECT {names} FROM {self.prefix}requests r WHERE {where}"  # noqa: S608
        if selection.group_by:
            text += f" GROUP BY {', '.join(str(n + 1) for n in range(selection.group_by))}"
        if selection.order_by:
            text += f" ORDER BY {selection.order_by}"
        return Query(f"{text} LIMIT {selection.limit}", values)

    def where(
        self, wanted: RecordFilter, *, before: str | None = None, after: str | None = None
    ) -> tuple[str, tuple[str, ...]]:
        """Return a filter as a condition on the table `r`, and its values."""
        conditions: list[str] = []
        values: list[str] = []
        for condition, value in self._conditions(wanted, before, after):
            if value is not None:
                values.append(value.replace("\0", "\N{REPLACEMENT CHARACTER}"))
                condition = condition.replace("?", f"${len(values)}")
            conditions.append(condition)
        return " AND ".join(conditions) or "1 = 1", tuple(values)

    def _conditions(
        self, wanted: RecordFilter, before: str | None, after: str | None
    ) -> Iterator[tuple[str, str | None]]:
        if wanted.since is not None:
            yield "r.id >= ?", first_id_at(wanted.since)
        if wanted.until is not None:
            yield "r.id < ?", first_id_at(wanted.until)
        if before is not None:
            yield "r.id < ?", before
        if after is not None:
            yield "r.id > ?", after
        if wanted.model is not None:
            yield "(r.model_asked = ? OR r.model_answered = ?)", wanted.model
        if wanted.upstream is not None:
            yield "r.upstream = ?", wanted.upstream
        if wanted.outcome == NOT_CLEAN:
            yield "r.outcome <> 'clean' AND r.outcome <> 'relayed'", None
        elif wanted.outcome is not None:
            # Said twice, so that the index of what is not clean can be used.
            also = "" if wanted.outcome == "clean" else " AND r.outcome <> 'clean'"
            yield f"r.outcome = ?{also}", wanted.outcome
        if wanted.status is not None:
            begins = "substr(CAST(r.status AS TEXT), 1, length(?)) = ?"
            yield begins, wanted.status.rstrip("x") or "-"
        if wanted.key_id is not None:
            yield "r.key_id = ?", wanted.key_id
        if wanted.code is not None:
            yield f"r.findings IS NOT NULL AND {self.find}(r.findings, ?) > 0", f"|{wanted.code}|"


SQLITE: Final = Dialect(
    prefix="",
    find="instr",
    floor="CAST(",
    end_floor=" AS INTEGER)",
    has_receipts="(coalesce(instr(r.details, CAST('\"receipts\":[' AS BLOB)), 0) > 0)",
    has_parse_error='(coalesce(instr(r.details, CAST(\'"parse_error":{"mode":\' AS BLOB)), 0) > 0)',
)
POSTGRES: Final = Dialect(
    prefix="surecall_",
    find="strpos",
    floor="floor(",
    end_floor=")::bigint",
    has_receipts="""(coalesce(position('"receipts":['::bytea in r.details), 0) > 0)::int""",
    has_parse_error=(
        """(coalesce(position('"parse_error":{"mode":'::bytea in r.details), 0) > 0)::int"""
    ),
)


_ADDED: Final = ("cached_tokens", "cost")
"""Columns that files of before did not have."""


def _declare(kinds: Sequence[str], key: str) -> str:
    return ", ".join(
        f"{name} {kind}{key if name == 'id' else '' if column.nullable else ' NOT NULL'}"
        for (name, column), kind in zip(COLUMNS.items(), kinds, strict=True)
        if name not in _ADDED
    )


def _add(table: str, kinds: Sequence[str]) -> str:
    """Return what adds the later columns to a table."""
    return "\n".join(
        f"ALTER TABLE {table} ADD COLUMN {name} {kind} NOT NULL DEFAULT 0;"
        for name, kind in zip(COLUMNS, kinds, strict=True)
        if name in _ADDED
    )


_SQLITE_KINDS: Final = [column.sqlite for column in COLUMNS.values()]
_POSTGRES_KINDS: Final = [column.postgres for column in COLUMNS.values()]


def _index(table: str, name: str, condition: str) -> str:
    return f"CREATE INDEX {table}_{name} ON {table} (id) WHERE {condition};"


def _indexes(table: str) -> str:
    wanted = {"with_findings": "findings IS NOT NULL", "not_clean": "outcome <> 'clean'"}
    return "\n".join(_index(table, *one) for one in wanted.items())


SQLITE_LAYOUT: Final = Layout(
    _NUMBER,
    (
        f"""
        CREATE TABLE requests (
            {_declare(_SQLITE_KINDS, " PRIMARY KEY")}
        ) WITHOUT ROWID;
        {_indexes("requests")}
        CREATE TABLE bodies (id TEXT PRIMARY KEY, request BLOB, reply BLOB) WITHOUT ROWID;
        """,
        _add("requests", _SQLITE_KINDS),
    ),
)
POSTGRES_LAYOUT: Final = Layout(
    _NUMBER,
    (
        f"""
        CREATE TABLE surecall_requests (
            {_declare(_POSTGRES_KINDS, ' COLLATE "C" PRIMARY KEY')}
        );
        {_indexes("surecall_requests")}
        CREATE TABLE surecall_bodies (
            id TEXT COLLATE "C" PRIMARY KEY, request BYTEA, reply BYTEA
        );
        """,
        """
        CREATE TABLE surecall_budgets (
            key TEXT NOT NULL,
            resource TEXT NOT NULL,
            length BIGINT NOT NULL,
            number BIGINT NOT NULL,
            used BIGINT NOT NULL,
            PRIMARY KEY (key, resource, length, number)
        );
        """,
        _add("surecall_requests", _POSTGRES_KINDS),
    ),
    table="surecall_layout",
)
