"""How figures are asked of a database: one selection, written as each database wants it."""

from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from .store import RecordFilter, Selection, render_filter


class Dialect(Struct, frozen=True, kw_only=True):
    """How a database writes what others write differently."""

    sign: str
    """What numbered values begin with, such as `$`."""
    find: str
    """The function that finds a text inside another."""
    table: str
    floor: str
    """What begins the whole part of a number; `end_floor` ends it."""
    end_floor: str
    has_receipts: str
    """1 where the details of a request hold receipts, else 0."""
    has_parse_error: str


SQLITE: Final = Dialect(
    sign=":v",  # Python 3.12 warns of `?1`
    find="instr",
    table="requests",
    floor="CAST(",
    end_floor=" AS INTEGER)",
    has_receipts="(coalesce(instr(r.details, CAST('\"receipts\":[' AS BLOB)), 0) > 0)",
    has_parse_error='(coalesce(instr(r.details, CAST(\'"parse_error":{"mode":\' AS BLOB)), 0) > 0)',
)
POSTGRES: Final = Dialect(
    sign="$",
    find="strpos",
    table="surecall_requests",
    floor="floor(",
    end_floor=")::bigint",
    has_receipts="""(coalesce(position('"receipts":['::bytea in r.details), 0) > 0)::int""",
    has_parse_error=(
        """(coalesce(position('"parse_error":{"mode":'::bytea in r.details), 0) > 0)::int"""
    ),
)


def render_selection(
    selection: Selection, wanted: RecordFilter, dialect: Dialect
) -> tuple[str, list[str]]:
    """Return the query for some figures, and its values."""
    where, values = render_filter(wanted, dialect.sign, dialect.find)
    names = ", ".join(selection.columns).format(**asdict(dialect))
    query = f"SELECT {names} FROM {dialect.table} r WHERE {where}"  # noqa: S608 - our own names
    if selection.group_by:
        query += f" GROUP BY {', '.join(str(n + 1) for n in range(selection.group_by))}"
    if selection.order_by:
        query += f" ORDER BY {selection.order_by}"
    return f"{query} LIMIT {selection.limit}", values
