"""`surecall requests`: what went through the gateway, listed, shown and exported."""

import asyncio
import csv
import io
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, BinaryIO, Final, TypeVar

import click
import msgspec
from msgspec.structs import replace

from surecall.base.errors import Code, StoreError
from surecall.base.files import PRIVATE, explain_write_errors, write_whole
from surecall.base.redaction import mask_known
from surecall.base.spreadsheets import disarm_text
from surecall.gateway.report import ToolRow, describe, show_share, summarize
from surecall.gateway.telemetry.counters import OUTCOMES
from surecall.store.records import STORE_FILE, open_for_reading
from surecall.store.records.record import RequestRecord
from surecall.store.records.store import (
    ModelCount,
    RecordPage,
    RecordStore,
    count_by_model,
    sum_costs,
)
from surecall.store.records.tables import RecordFilter
from surecall.text import encode
from surecall.tools.outputs import encode_kept

from .console import Output
from .event_lines import count_of
from .flags import (
    Decorated,
    count_flag,
    flag,
    output_flags,
    parse_moment,
    pass_output,
    pass_to_commands,
    place_flag,
)
from .terminal import line_of, printable, shown_value

LATEST: Final = "@latest"

T = TypeVar("T")

_FIGURES: Final[Mapping[str, str]] = dict.fromkeys(("ms", "requests"), "right")
_SHOWN_BODY_CHARS: Final = 4000
_BODIES: Final = ("request_body", "reply_body")
_LESS_IMPORTANT: Final = (
    *("upstream ms", "added ms", "changes", "upstream", "calls", "time", "findings", "model"),
)

_store_flag: Final = place_flag("requests", STORE_FILE)


def _filter_flags(command: Decorated) -> Decorated:
    """Add the flags that say which requests are wanted."""
    flags = (
        flag("--key ID", "Only requests with this key.", to="key_id"),
        flag("--code CODE", "Only with this defect or error."),
        flag("--outcome", "Only with this outcome.", choices=OUTCOMES),
        flag("--upstream NAME", "Only to this upstream."),
        flag("--model NAME", "Only with this model asked or answering."),
        flag("--until TIME", "Before this time (UTC) or age.", callback=parse_moment),
        flag("--since TIME", "From this time (UTC) or age on.", callback=parse_moment),
    )
    for added in flags:
        command = added(command)
    return command


@click.group(invoke_without_command=True)
@_store_flag
@output_flags
@click.pass_context
def requests(context: click.Context, place: str) -> None:
    """List the requests that went through the gateway; the commands show and export them."""
    pass_to_commands(context, "place")
    if context.invoked_subcommand is None:
        context.invoke(list_requests, place=place, limit=20)


@requests.command("list", short_help="List the latest requests.")
@count_flag("--limit", "How many requests to list.", 20)
@flag("--before ID", "List what came before this request.")
@_filter_flags
@_store_flag
@pass_output
def list_requests(
    output: Output, *, place: str, limit: int, before: str | None = None, **wanted: Any
) -> None:
    """List the latest requests; `surecall requests` without a command does the same."""

    async def list_page(store: RecordStore) -> RecordPage:
        first = None if before is None else (await _find(store, before)).id
        return await store.list(RecordFilter(**wanted), before=first, limit=limit)

    page = _ask(place, list_page)
    if output.json:
        rows = [_record_data(record) for record in page.records]
        output.data({"type": "requests", "requests": rows, "next": page.next})
        return
    columns = {"request": "whole", "time": "whole", "model": "", "upstream": "", "outcome": "whole"}
    columns |= dict.fromkeys(("calls", "changes", "upstream ms", "added ms"), "right whole")
    rows = (
        (
            *(record.id, _time_text(record.time), line_of(record.model_asked, 60)),
            line_of(record.upstream, 40),
            record.outcome + (" (left)" if record.client_closed else ""),
            *(str(record.calls), str(len(record.receipts))),
            *(f"{record.upstream_ms:.0f}", f"{record.added_ms:.2f}"),
            line_of(" ".join(_codes(record)), 80),
        )
        for record in page.records
    )
    output.table(columns | {"findings": ""}, rows, optional=_LESS_IMPORTANT)
    if not page.records:
        output.note("no request is recorded here, or none matches")
    if page.next is not None:
        more = f"… more: --before {page.next}"
        output.page().print(more, style="dim", soft_wrap=True)


@requests.command("show", short_help="Show everything that is kept of a request.")
@click.argument("request", default=LATEST)
@_store_flag
@pass_output
def show_request(output: Output, request: str, place: str) -> None:
    """Show everything that is kept of a request; by default of the latest."""
    record = _ask(place, lambda store: _find(store, request))
    if output.json:
        output.data({"type": "request", **_record_data(record)})
        return
    console = output.page()
    output.facts((label, line_of(text)) for label, text in _facts(record))
    attempts = [
        (item.upstream, line_of(item.model, 60), item.outcome, item.error, f"{item.ms:.0f}")
        for item in record.attempts
    ]
    steps = [(step.name, step.outcome, str(step.requests)) for step in record.steps]
    changes = [
        (item.rule, line_of(item.place, 60), _short(item.before), _short(item.after))
        for item in record.receipts
    ]
    for names, rows in (
        (("attempt at", "model", "outcome", "error", "ms"), attempts),
        (("step", "outcome", "requests"), steps),
        (("change", "place", "before", "after"), changes),
    ):
        if rows:
            console.print()
            output.table({name: _FIGURES.get(name, "") for name in names}, rows)
    for defect in record.defects:
        console.print()
        console.print(f"{line_of(defect.code)}  {line_of(defect.message)}")
    for name in _BODIES:
        body: bytes | None = getattr(record, name)
        if body is not None:
            console.print(f"\n{name.replace('_', ' ')}:", style="bold")
            text = body.decode("utf-8", "backslashreplace")
            console.print(printable(mask_known(text[:_SHOWN_BODY_CHARS])))


@requests.command("report", short_help="Say how many tool calls were broken, and what helped.")
@_filter_flags
@_store_flag
@pass_output
def report_requests(output: Output, *, place: str, **wanted: Any) -> None:
    """Say how many replies to requests with tools were broken, and what was or would be done."""

    async def count(store: RecordStore) -> tuple[list[ModelCount], dict[tuple[str, str], float]]:
        found = RecordFilter(**wanted)
        return await count_by_model(store, found), await sum_costs(store, found)

    counts, costs = _ask(place, count)
    sides = {"upstream": summarize(counts, by=("model", "upstream"))}
    sides["prompt"] = summarize(counts, by=("model", "prompt"))
    said = describe(sides["upstream"])
    if output.json:
        tables = {
            name: [{**msgspec.structs.asdict(row), "broken": row.broken} for row in rows]
            for name, rows in sides.items()
        }
        tables["costs"] = [
            {"key": key, "model": name, "cost": c} for (key, name), c in costs.items()
        ]
        output.data({"type": "report", "said": said, **msgspec.to_builtins(tables)})
        return
    console = output.page()
    for line in said:
        console.print(line_of(line, 400), soft_wrap=True)
    for name, rows in sides.items() if any(sides.values()) else ():
        heads = ("replies", "broken", "95 %", "repaired", "asked again", "not right")
        columns = {"model": "", name: "", **dict.fromkeys(heads, "right whole"), "": ""}
        console.print()
        output.table(columns, map(_list_figures, rows))
    if costs:
        rows = (
            (line_of(key or "-", 60), line_of(name, 60), f"{cost:.6g}")
            for (key, name), cost in costs.items()
        )
        console.print()
        output.table({"key": "", "model": "", "cost": "right whole"}, rows)


def _list_figures(row: ToolRow) -> list[str]:
    share = show_share(row.broken).partition(", ")
    figures = (row.replies, share[0], share[2], row.repaired, row.reasked, row.unusable)
    names = (line_of(item or "-", 60) for item in row.names)
    return [*names, *map(str, figures), "observed" if row.is_observed else ""]


@requests.command("export")
@flag(
    "--format",
    "A line of JSON or a row for each request.",
    to="form",
    choices=("jsonl", "csv"),
    shown="jsonl",
)
@flag("-o --out FILE", "Where to; `-` is here.", shown="-")
@flag("--bodies", "With bodies, where they were kept.")
@_filter_flags
@_store_flag
@pass_output
def export_requests(
    output: Output, *, place: str, form: str, out: str, bodies: bool, **wanted: Any
) -> None:
    """Write requests to a file, the earliest first.

    In CSV, a text that a spreadsheet could run as a formula gets an apostrophe in front.
    """
    if output.json and form == "csv" and out == "-":
        raise click.UsageError("--json has no place for CSV here; name a file with --out.")
    write = _write_csv if form == "csv" else _write_lines

    async def export(store: RecordStore) -> int:
        records = store.export(RecordFilter(**wanted))
        with _open_output(out) as file:
            return await write(records, file, bodies)

    count = _ask(place, export)
    if out != "-":
        data = {"type": "exported", "count": count, "format": form, "file": out}
        output.answer(data, f"wrote {count_of(count, 'request')} to {out}")


@contextmanager
def _open_output(place: str) -> Generator[BinaryIO]:
    if place == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with explain_write_errors(place), write_whole(place, mode=PRIVATE) as file:
        yield file


async def _write_lines(records: AsyncIterator[RequestRecord], file: BinaryIO, bodies: bool) -> int:
    count = 0
    async for record in records:
        file.write(mask_known(encode_kept(_record_data(record, bodies=bodies))) + b"\n")
        count += 1
    return count


async def _write_csv(records: AsyncIterator[RequestRecord], file: BinaryIO, bodies: bool) -> int:
    names = [name for name in RequestRecord.__struct_fields__ if bodies or name not in _BODIES]
    buffer = io.StringIO(newline="")
    # Line ends as RFC 4180 has them; then the writer quotes text with either kind in it.
    writer = csv.writer(buffer, lineterminator="\r\n")
    writer.writerow(names)
    count = 0
    async for record in records:
        data = _record_data(record, bodies=bodies)
        writer.writerow([_cell(data.get(name)) for name in names])
        file.write(mask_known(buffer.getvalue().encode("utf-8", "backslashreplace")))
        buffer.seek(0)
        buffer.truncate()
        count += 1
    if not count:
        file.write(buffer.getvalue().encode())
    return count


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return disarm_text(value if isinstance(value, str) else encode(value).decode("utf-8"))


def _ask(place: str, question: Callable[[RecordStore], Awaitable[T]]) -> T:
    """Open a store, ask it something, and close it."""

    async def ask() -> T:
        store = open_for_reading(place)
        try:
            return await question(store)
        finally:
            await store.close()

    return asyncio.run(ask())


async def _find(store: RecordStore, request: str) -> RequestRecord:
    wanted = request
    if request == LATEST:
        page = await store.list(limit=1)
        wanted = page.records[0].id if page.records else ""
    record = await store.get(wanted) if wanted else None
    if record is None:
        raise StoreError(
            Code.RECORD_NOT_FOUND,
            f"there is no request {request!r}." if wanted else "there are no requests yet.",
            hint="surecall requests list shows what is there.",
        )
    return record


def _record_data(record: RequestRecord, *, bodies: bool = True) -> dict[str, Any]:
    """Return every field of a record, bodies as text and the time also as people write it."""
    kept = {name: getattr(record, name) for name in _BODIES if bodies}
    data = msgspec.structs.asdict(replace(record, request_body=None, reply_body=None))
    texts = {
        name: None if body is None else body.decode("utf-8", "backslashreplace")
        for name, body in kept.items()
    }
    for name in _BODIES:
        del data[name]
    plain = msgspec.to_builtins({**data, **texts}, enc_hook=repr)
    return {"id": plain.pop("id"), "at": _iso(record.time), **plain}


def _tokens(record: RequestRecord) -> str:
    cached = f" ({record.cached_tokens} of them from a cache)" if record.cached_tokens else ""
    return f"{record.prompt_tokens} in{cached}, {record.completion_tokens} out"


def _facts(record: RequestRecord) -> list[tuple[str, str]]:
    asked, answered = record.model_asked, record.model_answered
    way = record.client_protocol
    if record.upstream_protocol != record.client_protocol:
        way = f"{record.client_protocol} to {record.upstream_protocol}"
    rows = [
        ("request", record.id),
        ("time", f"{_time_text(record.time)} UTC"),
        ("key", record.key_id or "-"),
        ("upstream", f"{record.upstream} ({way})"),
        ("model", asked if answered in ("", asked) else f"{asked}, answered by {answered}"),
        ("strategy", record.strategy + (", streamed" if record.stream else "")),
        ("status", f"{record.status or '-'}{', the client left' if record.client_closed else ''}"),
        ("outcome", f"{record.outcome} {record.error_code}".rstrip()),
        ("calls", str(record.calls)),
        (
            "requests",
            f"{record.upstream_requests} to the upstream, {record.retries} of them retries",
        ),
        ("tokens", _tokens(record)),
        (
            "waiting",
            f"{record.upstream_ms:.1f} ms for the upstream, {record.added_ms:.2f} ms added",
        ),
    ]
    if record.cost:
        rows.append(("cost", f"{record.cost:.6g}"))
    if record.first_byte_ms is not None:
        rows.append(("first byte", f"{record.first_byte_ms:.1f} ms"))
    if record.probe is not None:
        rows.append(("probe", "ok" if record.probe.ok else record.probe.error or "failed"))
    if record.parse_error is not None:
        error = record.parse_error
        rows.append(("parse error", f"{error.mode}: {error.error}: {error.snippet}"))
    return rows


def _codes(record: RequestRecord) -> list[str]:
    return list(
        dict.fromkeys(filter(None, [record.error_code, *(item.code for item in record.defects)]))
    )


def _short(value: Any) -> str:
    return line_of(mask_known(shown_value(value)), 60)


def _time_text(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S}"


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
