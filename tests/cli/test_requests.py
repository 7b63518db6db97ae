"""`surecall requests`: what went through the gateway is listed, shown and exported."""

import asyncio
import csv
import io
import json
import stat
import time
from pathlib import Path

import pytest

from support.request_records import START, make_record
from surecall.base.records import Defect, Receipt
from surecall.store.records.record import (
    ParseError,
    ProbeNote,
    RequestRecord,
    StepNote,
    new_request_id,
)
from surecall.store.records.sqlite import SqliteRecords

from .harness import document, invoke

STORE = Path(".surecall/requests.db")


@pytest.fixture
def records(own_folder: Path) -> list[RequestRecord]:
    """A clean request, one with everything, one with a hostile name, and a recent one."""
    now = time.time() - 60
    made = [
        make_record(0),
        make_record(
            1,
            outcome="reasked",
            calls=1,
            probe=ProbeNote(ok=False, error="NO_TOOL_USE"),
            steps=(StepNote("reask", "rescued", 1),),
            receipts=(Receipt("drop_trailing_comma", "/a", "[1,]", [1]),),
            defects=(Defect("ID_REPEATED", "an id was there twice"),),
            parse_error=ParseError("native", "not JSON", "{half"),
            error_code="IDLE_TIMEOUT",
            client_closed=True,
            first_byte_ms=4.5,
            stream=True,
            request_body=b'{"messages": []}',
            reply_body=b"\xff\x1b[31m",
        ),
        make_record(2, model_asked='=cmd|"/c calc"!A1', upstream="spare", key_id="team-b"),
        RequestRecord(id=new_request_id(now), time=now),
    ]

    async def keep() -> None:
        store = SqliteRecords(STORE)
        await asyncio.gather(*map(store.add, made))
        await store.close()

    asyncio.run(keep())
    return made


def test_requests_are_listed_latest_first(records: list[RequestRecord]) -> None:
    """With model, outcome and what was found."""
    for words in (("requests",), ("requests", "list")):
        lines = invoke(*words, COLUMNS="200").stdout.splitlines()
        assert [line.split()[0] for line in lines[1:]] == [one.id for one in reversed(records)]
        assert "reasked (left)" in lines[3]
        assert "IDLE_TIMEOUT ID_REPEATED" in lines[3]


def test_a_page_below_an_unknown_request_is_refused(records: list[RequestRecord]) -> None:
    """Everything would look like the page that was asked for."""
    result = invoke("requests", "list", "--before", "nope", "--json")
    assert (document(result)["code"], result.exit_code) == ("RECORD_NOT_FOUND", 4)
    below = document(invoke("requests", "list", "--before", "@latest", "--json"))
    assert [item["id"] for item in below["requests"]] == [one.id for one in records[2::-1]]


@pytest.mark.parametrize(
    ("width", "headings"),
    [
        (50, ["request", "outcome"]),
        (80, ["request", "model", "outcome", "findings"]),
        (100, ["request", "time", "model", "outcome", "findings"]),
    ],
)
def test_a_narrow_terminal_shows_whole_ids(
    records: list[RequestRecord], width: int, headings: list[str]
) -> None:
    """Less important columns are left out; an id can always be given to `requests show`."""
    result = invoke("requests", "list", "--limit", "3", COLUMNS=str(width))
    lines = result.stdout.splitlines()
    assert lines[0].split() == headings
    ids = [line.split()[0] for line in lines[1:-1] if not line.startswith(" ")]
    assert ids == [one.id for one in records[:0:-1]]
    assert lines[-1] == f"… more: --before {records[1].id}"


def test_the_list_as_data_and_its_pages(records: list[RequestRecord]) -> None:
    """A page says how to get the next one."""
    first = document(invoke("requests", "list", "--limit", "3", "--json"))
    assert first["type"] == "requests"
    assert [item["id"] for item in first["requests"]] == [one.id for one in records[:0:-1]]
    second = document(invoke("requests", "list", "--before", first["next"], "--json"))
    assert [item["id"] for item in second["requests"]] == [records[0].id]
    assert second["next"] is None
    assert second["requests"][0]["at"] == "2026-09-21T14:13:20.000+00:00"
    assert f"more: --before {records[3].id}" in invoke("requests", "list", "--limit", "1").stdout


@pytest.mark.parametrize(
    ("flags", "numbers"),
    [
        (("--outcome", "reasked"), [1]),
        (("--model", "small"), [1, 0]),
        (("--model", "small-2026"), [2, 1, 0]),
        (("--upstream", "spare"), [2]),
        (("--key", "team-b"), [2]),
        (("--code", "ID_REPEATED"), [1]),
        (("--code", "IDLE_TIMEOUT"), [1]),
        (("--since", "2026-09-21T14:13:21"), [3, 2, 1]),
        (("--since", "2h"), [3]),
        (("--until", "2026-09-21T14:13:21+00:00"), [0]),
        (("--since", "2026-09-21", "--until", "2026-09-22", "--outcome", "clean"), [2, 0]),
    ],
)
def test_filters(flags: tuple[str, ...], numbers: list[int], records: list[RequestRecord]) -> None:
    """Time, model, upstream, outcome, code and key, for lists and exports."""
    found = document(invoke("requests", "list", *flags, "--json"))
    assert [item["id"] for item in found["requests"]] == [records[at].id for at in numbers]
    lines = invoke("requests", "export", *flags).stdout.splitlines()
    assert [json.loads(line)["id"] for line in lines] == [records[at].id for at in numbers[::-1]]


@pytest.mark.parametrize(
    "flags", [("--since", "yesterday"), ("--outcome", "fine"), ("--limit", "0")]
)
def test_wrong_values_are_refused(flags: tuple[str, ...], records: list[RequestRecord]) -> None:
    """With a code and an exit code."""
    result = invoke("requests", "list", *flags, "--json")
    assert (document(result)["code"], result.exit_code) == ("INVALID_OPTION", 4)


def test_a_request_is_shown(records: list[RequestRecord]) -> None:
    """By its id, or the latest; nothing in it acts on the terminal."""
    text = invoke("requests", "show", records[1].id, COLUMNS="140").stdout
    for words in ("reask", "drop_trailing_comma", "ID_REPEATED", "NO_TOOL_USE", "{half", "left"):
        assert words in text
    assert "\x1b" not in text
    assert '{"messages": []}' in text
    shown = document(invoke("requests", "show", records[1].id, "--json"))
    assert (shown["type"], shown["id"]) == ("request", records[1].id)
    assert shown["receipts"][0]["after"] == [1]
    assert shown["request_body"] == '{"messages": []}'
    assert document(invoke("requests", "show", "--json"))["id"] == records[3].id


def test_an_export_as_lines(records: list[RequestRecord]) -> None:
    """A document each, the earliest first, bodies only when asked for; the file is private."""
    result = invoke("requests", "export", "-o", "out.jsonl", "--json")
    assert document(result) == {
        "schema_version": 1,
        "type": "exported",
        "count": 4,
        "format": "jsonl",
        "file": "out.jsonl",
    }
    lines = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [line["id"] for line in lines] == [one.id for one in records]
    assert "request_body" not in lines[1]
    assert stat.S_IMODE(Path("out.jsonl").stat().st_mode) == 0o600
    with_bodies = invoke("requests", "export", "--bodies").stdout.splitlines()
    assert json.loads(with_bodies[1])["request_body"] == '{"messages": []}'


def test_an_export_as_a_table(records: list[RequestRecord]) -> None:
    """No cell is a formula, and numbers stay numbers."""
    text = invoke("requests", "export", "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["id"] for row in rows] == [one.id for one in records]
    assert rows[2]["model_asked"] == '\'=cmd|"/c calc"!A1'
    assert rows[1]["stream"] == "true"
    assert json.loads(rows[1]["receipts"])[0]["rule"] == "drop_trailing_comma"
    assert float(rows[0]["time"]) == START
    told = document(invoke("requests", "export", "--format", "csv", "--json"))
    assert (told["type"], "--out" in told["message"]) == ("error", True)
    nothing = invoke("requests", "export", "--format", "csv", "--key", "nobody").stdout
    assert nothing.startswith("id,time,key_id,")
    assert len(nothing.splitlines()) == 1


@pytest.mark.parametrize("words", [("list",), ("show",), ("export",)])
def test_without_a_store_there_are_no_requests(words: tuple[str, ...]) -> None:
    """Looking does not make one."""
    result = invoke("requests", *words, "--json")
    assert (document(result)["code"], result.exit_code) == ("RECORD_NOT_FOUND", 4)
    assert not STORE.exists()


def test_a_request_that_is_not_there(records: list[RequestRecord]) -> None:
    """It is said, and so is a store that is something else."""
    result = invoke("requests", "show", "nothing", "--json")
    assert (document(result)["code"], result.exit_code) == ("RECORD_NOT_FOUND", 4)
    Path("other.db").write_bytes(b"something else" * 1000)
    result = invoke("requests", "list", "--store", "other.db", "--json")
    assert (document(result)["code"], result.exit_code) == ("STORE_CORRUPT", 4)
