"""Records of requests as stores keep them: redacted, bounded, in columns, and found by their id.

An id is the moment of the request and chance, so that ids sort by time; it never changes and is
never given twice.
"""

import os
import time
import zlib
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final, NamedTuple, cast

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, astuple, fields, replace

from surecall.base.errors import JSONTextError, row_refused
from surecall.base.records import Defect, Receipt
from surecall.base.redaction import drop_begun, redact, redact_name, redact_start
from surecall.gateway.telemetry.record import (
    AttemptNote,
    ParseError,
    ProbeNote,
    RequestRecord,
    StepNote,
)
from surecall.loop.stored import encode_kept
from surecall.text import decode_own

MAX_BODY_BYTES: Final = 64 * 1024
"""How much of a request or a reply is kept; the rest is counted."""
MAX_TEXT_CHARS: Final = 2000
"""How much of a text is kept inside a receipt or a defect."""
MAX_FINDINGS: Final = 200
"""How many receipts, and how many defects, of one request are kept."""

_MAX_NAME_CHARS: Final = 200
_PLAIN_ROW_BYTES: Final = 400
_TIME_DIGITS: Final = 11
_RANDOM_BITS: Final = 56
_MAX_MS: Final = 16**_TIME_DIGITS - 1
_COMPRESSION: Final = 1
_SMALL_BODY_BYTES: Final = 4096
_AS_IT_IS: Final = b"\0"
_PACKED: Final = b"\1"

_chance: Final = Random()  # noqa: S311 - ids are not secret
if hasattr(os, "register_at_fork"):  # two workers must not go on with the same numbers
    os.register_at_fork(after_in_child=_chance.seed)

_PLAIN: Final = RequestRecord.__struct_fields__.index("probe")
"""How many fields have a column of their own."""
_FLAGS: Final = RequestRecord.__struct_fields__.index("stream")
"""Where the two flags are, which databases keep as numbers."""


class Column(NamedTuple):
    """What a column of a request is in SQLite and in PostgreSQL."""

    sqlite: str
    postgres: str
    nullable: bool = False


_KINDS: Final = {
    int: Column("INTEGER", "bigint"),
    bool: Column("INTEGER", "bigint"),
    float: Column("REAL", "double precision"),
    float | None: Column("REAL", "double precision", nullable=True),
}

COLUMNS: Final[Mapping[str, Column]] = {
    **{
        field.name: _KINDS.get(field.type, Column("TEXT", "text"))
        for field in fields(RequestRecord)[:_PLAIN]
    },
    "findings": Column("TEXT", "text", nullable=True),
    "details": Column("BLOB", "bytea", nullable=True),
}
"""The columns of a request: its fields, and two more.

`findings` has the codes of defects and of the error, each between bars, and is null when there are
none; `details` is what has no column of its own, as JSON.
"""


class _Details(Struct, omit_defaults=True):
    probe: ProbeNote | None = None
    steps: tuple[StepNote, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    defects: tuple[Defect, ...] = ()
    parse_error: ParseError | None = None
    attempts: tuple[AttemptNote, ...] = ()


_NO_DETAILS: Final = (*astuple(_Details()), None, None)
"""What follows the columns of a record in most cases."""


def new_request_id(now_s: float | None = None) -> str:
    """Return an id that sorts by time: 11 digits of milliseconds and 14 of chance, hexadecimal."""
    now = time.time() if now_s is None else now_s
    return f"{int(now * 1000) << _RANDOM_BITS | _chance.getrandbits(_RANDOM_BITS):025x}"


def first_id_at(moment_s: float) -> str:
    """Return what every id of this moment or later is not below."""
    return f"{min(max(int(moment_s * 1000), 0), _MAX_MS):011x}"


class StoredRow(NamedTuple):
    """A record as stores keep it."""

    columns: tuple[Any, ...]
    """Its values, in the order of `COLUMNS`."""
    bodies: tuple[str, bytes | None, bytes | None] | None
    """Its id and its bodies, when there are any."""

    @property
    def size(self) -> int:
        """About how many bytes it takes in a store."""
        size = _PLAIN_ROW_BYTES + len(self.columns[-1] or b"")
        if self.bodies is None:
            return size
        return size + sum(len(body or b"") for body in self.bodies[1:])


def encode_row(record: RequestRecord) -> StoredRow:
    """Return a record as it is kept: redacted, bounded, and valid whatever it was given.

    Raises:
        RowRefusedError: It holds something that cannot be written down.
    """
    try:
        if not _is_plain(record):
            record = _clean_names(record)
        values = astuple(record)
        if values[_PLAIN:] == _NO_DETAILS and not record.error_code:
            return StoredRow(_columns(values, None, None), None)
        return _encode_findings(record)
    except Exception as error:  # a request that was answered never fails for its record
        raise row_refused("The store", error) from error


def _encode_findings(record: RequestRecord) -> StoredRow:
    bodies = details = findings = None
    if record.request_body is not None or record.reply_body is not None:
        record = _redact_bodies(record)
        bodies = (record.id, _pack(record.request_body), _pack(record.reply_body))
    if any(astuple(record)[_PLAIN:-2]):
        record = _redact_findings(record)
        details = encode_kept(_Details(*astuple(record)[_PLAIN:-2]))
    if record.defects or record.error_code:
        codes = dict.fromkeys((*(item.code for item in record.defects), record.error_code))
        findings = _column(f"|{'|'.join(filter(None, codes))}|")
    return StoredRow(_columns(astuple(record), findings, details), bodies)


def _columns(
    values: tuple[Any, ...], findings: str | None, details: bytes | None
) -> tuple[Any, ...]:
    flags = (1 if values[_FLAGS] else 0, 1 if values[_FLAGS + 1] else 0)
    return values[:_FLAGS] + flags + values[_FLAGS + 2 : _PLAIN] + (findings, details)


def _is_plain(record: RequestRecord) -> bool:
    """Tell whether the names can be kept as they are, which almost all can."""
    names = f"{record.model_asked}\n{record.model_answered}\n{record.upstream}\n{record.key_id}"
    return (
        names.isascii()
        and len(names) <= _MAX_NAME_CHARS
        and "\0" not in names
        and redact_name(names) == names
    )


def _clean_names(record: RequestRecord) -> RequestRecord:
    """Return the record with names that hold no secret and that every database takes."""
    return replace(
        record,
        model_asked=_column(_name(record.model_asked)),
        model_answered=_column(_name(record.model_answered)),
        upstream=_column(record.upstream),
        key_id=_column(record.key_id),
    )


def decode_row(
    columns: Sequence[Any], request: bytes | None = None, reply: bytes | None = None
) -> RequestRecord:
    """Return the record of a stored row.

    Raises:
        ValueError: The row is not what was kept.
    """
    found = dict(zip(COLUMNS, columns, strict=True))
    details = found.pop("details")
    del found["findings"]
    for name in ("stream", "client_closed"):
        found[name] = bool(found[name])
    try:
        if details is not None:
            found |= asdict(msgspec.convert(decode_own(details), _Details))
        record = msgspec.convert(found, RequestRecord)
        if request is None and reply is None:
            return record
        return replace(record, request_body=_unpack(request), reply_body=_unpack(reply))
    except JSONTextError as error:
        raise ValueError(error.message.rstrip(".")) from error
    except (TypeError, zlib.error) as error:
        raise ValueError(f"a request cannot be unpacked: {error}") from error


def encode_line(record: RequestRecord) -> bytes:
    """Return a record on one line, bodies included, as a spool keeps it."""
    return encode_kept(_redact_bodies(_redact_findings(_clean_names(record))))


def decode_line(line: bytes) -> RequestRecord:
    """Return the record of a line, or raise `ValueError`."""
    try:
        return msgspec.convert(decode_own(line), RequestRecord)
    except JSONTextError as error:
        raise ValueError(error.message.rstrip(".")) from error


def _redact_bodies(record: RequestRecord) -> RequestRecord:
    request, reply = record.request_body, record.reply_body
    return replace(
        record,
        request_body=clip_body(request),
        reply_body=clip_body(reply),
        request_bytes=max(record.request_bytes, len(request or b"")),
        reply_bytes=max(record.reply_bytes, len(reply or b"")),
    )


def clip_body(body: bytes | None) -> bytes | None:
    """Return the start of a body without secrets; one that the limit would cut in two is out."""
    if body is None:
        return None
    text = drop_begun(body.decode("utf-8", "surrogateescape"))
    kept = redact_start(text, MAX_BODY_BYTES) if len(text) > MAX_BODY_BYTES else redact(text)
    return kept.encode("utf-8", "surrogateescape")[:MAX_BODY_BYTES]


def _redact_findings(record: RequestRecord) -> RequestRecord:
    probe, parse_error = record.probe, record.parse_error
    if parse_error is not None:
        snippet = redact_start(parse_error.snippet, _MAX_NAME_CHARS)
        parse_error = ParseError(parse_error.mode, _text(parse_error.error), snippet)
    if probe is not None and probe.error:
        probe = ProbeNote(probe.ok, _text(probe.error))
    receipts = tuple(
        replace(
            item,
            place=_text(item.place),
            before=_plain(item.before),
            after=_plain(item.after),
            why=_text(item.why),
        )
        for item in record.receipts[:MAX_FINDINGS]
    )
    defects = tuple(
        replace(item, message=_text(item.message), place=_text(item.place))
        for item in record.defects[:MAX_FINDINGS]
    )
    attempts = tuple(
        replace(item, model=_column(_name(item.model))) for item in record.attempts[:MAX_FINDINGS]
    )
    return replace(
        record,
        probe=probe,
        parse_error=parse_error,
        receipts=receipts,
        defects=defects,
        attempts=attempts,
    )


def _text(text: str) -> str:
    return redact(text) if len(text) <= MAX_TEXT_CHARS else redact_start(text, MAX_TEXT_CHARS) + "…"


def _name(text: str) -> str:
    """Return the name of a model, which comes from strangers and may hold a key as any text."""
    return (
        redact_name(text) if len(text) <= _MAX_NAME_CHARS else redact_start(text, _MAX_NAME_CHARS)
    )


def _plain(value: Any) -> Any:
    """Return a value of a receipt as it may be kept: of a large one the start of its text."""
    if isinstance(value, str):
        return _text(value)
    if value is None or isinstance(value, bool):
        return value
    try:
        text = encode_kept(value)
        if len(text) > MAX_TEXT_CHARS:
            return _text(text.decode("utf-8"))
        return _redact_values(decode_own(text))
    except Exception:  # it nests too deep, has no end or cannot be shown: a record never fails
        return f"a value of type {type(value).__name__} that cannot be written down"


def _redact_values(value: Any) -> Any:
    """Redact every text in a JSON value; it is small, so it cannot nest too deep."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {redact(key): _redact_values(item) for key, item in items}
    if isinstance(value, list):
        return [_redact_values(item) for item in cast("list[Any]", value)]
    return value


def _column(text: str) -> str:
    """Return text that every database takes: without NUL and halves of characters."""
    if text.isascii() and "\0" not in text:
        return text
    mended = text.encode("utf-8", "replace").decode("utf-8")
    return mended.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _pack(body: bytes | None) -> bytes | None:
    """Return a body as it is kept: packing a small one costs more than it saves."""
    if body is None:
        return None
    if len(body) <= _SMALL_BODY_BYTES:
        return _AS_IT_IS + body
    return _PACKED + zlib.compress(body, _COMPRESSION)


def _unpack(body: bytes | None) -> bytes | None:
    if body is None:
        return None
    return body[1:] if body[:1] == _AS_IT_IS else zlib.decompress(body[1:])
