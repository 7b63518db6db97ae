"""What one request of a client leaves behind, and how stores keep it: redacted, in columns.

An id is the moment of the request and chance, so that ids sort by time; it never changes and is
never given twice.
"""

import math
import os
import time
import zlib
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Final, Literal, NamedTuple, cast

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, astuple, fields, force_setattr, replace

from surecall.base.errors import JSONTextError, row_refused
from surecall.base.records import Defect, Receipt
from surecall.base.redaction import drop_begun, redact, redact_name, redact_start
from surecall.text import decode_own
from surecall.tools.outputs import encode_kept

MAX_COUNT: Final = 2**53 - 1
"""The largest count or time of a record: every database, JSON reader and sum takes it."""

Outcome = Literal["clean", "repaired", "reasked", "unrepaired", "refused", "relayed", "failed"]
"""What became of a request: `unrepaired` was delivered though a call could not be made right,
`relayed` was not looked at, `failed` got no reply."""


class ProbeNote(Struct, frozen=True, omit_defaults=True):
    """What was known from probing when the request came."""

    ok: bool
    error: str | None = None


class ParseError(Struct, frozen=True):
    """Why a reply could not be read as calls."""

    mode: str
    """How tools were presented: `native` or `taught`."""
    error: str
    snippet: str = ""


class StepNote(Struct, frozen=True):
    """One step of the escalation, and what it came to."""

    name: str
    outcome: str
    """`rescued` when it gave what is delivered; anything else did not help."""
    requests: int = 0


class AttemptNote(Struct, frozen=True, omit_defaults=True):
    """One attempt to have a request answered by an upstream."""

    upstream: str
    model: str
    outcome: Literal["answered", "failed", "skipped"] = "answered"
    """`skipped` was not asked: it only fails at the moment, or has no room."""
    error: str = ""
    """The code of what went wrong."""
    ms: float = 0.0


class RequestRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One request of a client, from its arrival to its last byte.

    Whatever an upstream reported, the numbers are between 0 and `MAX_COUNT`:

        RequestRecord(id="a", time=0.0, prompt_tokens=-5).prompt_tokens  # 0
    """

    id: str
    time: float
    """Seconds since 1970 when it arrived."""
    key_id: str = ""
    """Which virtual key it came with; never the key itself."""
    client_protocol: str = ""
    upstream: str = ""
    upstream_protocol: str = ""
    model_asked: str = ""
    model_answered: str = ""
    strategy: str = ""
    """`native` or `taught`."""
    prompt: str = ""
    """The name that the client gave its prompt, or a short hash of system text and tools."""
    observed: str = ""
    """What would have become of a reply that was passed on untouched and only looked at."""
    outcome: Outcome = "clean"
    error_code: str = ""
    stream: bool = False
    client_closed: bool = False
    """Whether the client left before its last byte."""
    status: int = 0
    """The HTTP status that the client got."""
    tools: int = 0
    """How many tools the model could call."""
    calls: int = 0
    """How many calls were delivered."""
    retries: int = 0
    upstream_requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    """How many of the prompt's the provider read from its cache."""
    request_bytes: int = 0
    """How large the whole body was; what is kept may be less."""
    reply_bytes: int = 0
    upstream_ms: float = 0.0
    added_ms: float = 0.0
    cost: float = 0.0
    """What it cost at the prices of the settings, in their currency."""
    first_byte_ms: float | None = None
    # Up to here, every field is a column of a store, in this order.
    probe: ProbeNote | None = None
    steps: tuple[StepNote, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    defects: tuple[Defect, ...] = ()
    parse_error: ParseError | None = None
    attempts: tuple[AttemptNote, ...] = ()
    """Every attempt in order; none where the only one was answered."""
    request_body: bytes | None = None
    reply_body: bytes | None = None

    def __post_init__(self) -> None:
        asked, given = self.prompt_tokens, self.completion_tokens
        try:
            counts = asked | given | self.cached_tokens | self.calls | self.status | self.retries
            counts |= (
                self.cached_tokens
                | self.upstream_requests
                | self.request_bytes
                | self.reply_bytes
                | self.tools
            )
            if (
                0 <= counts <= MAX_COUNT
                and type(asked) is type(given) is type(self.cached_tokens) is int
                and 0.0 <= self.time <= MAX_COUNT
                and 0.0 <= self.upstream_ms <= MAX_COUNT
                and 0.0 <= self.added_ms <= MAX_COUNT
                and 0.0 <= self.cost <= MAX_COUNT
                and (self.first_byte_ms is None or 0.0 <= self.first_byte_ms <= MAX_COUNT)
            ):
                return
        except TypeError:  # not even numbers
            pass
        for name in (*_COUNTS, *_TIMES):
            if (value := getattr(self, name)) is not None or name != "first_byte_ms":
                force_setattr(self, name, (float if name in _TIMES else int)(_bound(value)))


_COUNTS: Final = (
    *("status", "tools", "calls", "retries", "upstream_requests"),
    *("prompt_tokens", "completion_tokens", "cached_tokens", "request_bytes", "reply_bytes"),
)
_TIMES: Final = ("time", "upstream_ms", "added_ms", "cost", "first_byte_ms")


def _bound(value: Any) -> int | float:
    """Return a number within bounds; whatever is no number counts as nothing."""
    if type(value) not in (int, float) or (isinstance(value, float) and not math.isfinite(value)):
        return 0
    return min(max(value, 0), MAX_COUNT)


MAX_BODY_BYTES: Final = 64 * 1024
"""How much of a request or a reply is kept; the rest is counted."""
MAX_TEXT_CHARS: Final = 2000
"""How much of a text is kept inside a receipt or a defect."""
MAX_FINDINGS: Final = 200
"""How many receipts, and how many defects, of one request are kept."""

_NAME_CHARS: Final = 200
_PLAIN_ROW_BYTES: Final = 400
_TIME_DIGITS: Final = 11
_RANDOM_BITS: Final = 56
_SMALL_BODY_BYTES: Final = 4096
_AS_IT_IS: Final = b"\0"
_PACKED: Final = b"\1"

_FREE_NAMES: Final = ("model_asked", "model_answered", "upstream", "key_id")

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
    return f"{min(max(int(moment_s * 1000), 0), 16**_TIME_DIGITS - 1):011x}"


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
    is_short = len(names) <= _NAME_CHARS and "\0" not in names
    return names.isascii() and is_short and redact_name(names) == names


def _clean_names(record: RequestRecord) -> RequestRecord:
    """Return the record with names that hold no secret and that every database takes."""
    cleaned = {name: _column(_name(getattr(record, name))) for name in _FREE_NAMES}
    return replace(record, **cleaned)


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
        snippet = redact_start(parse_error.snippet, _NAME_CHARS)
        parse_error = ParseError(parse_error.mode, _text(parse_error.error), snippet)
    if probe is not None and probe.error:
        probe = ProbeNote(probe.ok, _text(probe.error))
    receipts = tuple(map(_redact_receipt, record.receipts[:MAX_FINDINGS]))
    defects = tuple(
        replace(item, message=_text(item.message), place=_text(item.place))
        for item in record.defects[:MAX_FINDINGS]
    )
    attempts = tuple(
        replace(item, model=_column(_name(item.model))) for item in record.attempts[:MAX_FINDINGS]
    )
    found = {"probe": probe, "parse_error": parse_error, "receipts": receipts}
    return replace(record, **found, defects=defects, attempts=attempts)


def _redact_receipt(item: Receipt) -> Receipt:
    before, after = _plain(item.before), _plain(item.after)
    return replace(item, place=_text(item.place), before=before, after=after, why=_text(item.why))


def _text(text: str) -> str:
    return redact(text) if len(text) <= MAX_TEXT_CHARS else redact_start(text, MAX_TEXT_CHARS) + "…"


def _name(text: str) -> str:
    """Return the name of a model, which comes from strangers and may hold a key as any text."""
    return redact_name(text) if len(text) <= _NAME_CHARS else redact_start(text, _NAME_CHARS)


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
    return _PACKED + zlib.compress(body, level=1)


def _unpack(body: bytes | None) -> bytes | None:
    if body is None:
        return None
    return body[1:] if body[:1] == _AS_IT_IS else zlib.decompress(body[1:])
