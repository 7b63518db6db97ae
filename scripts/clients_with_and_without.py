"""Count the calls that clients deliver from a faulty provider, without surecall and with it.

python scripts/clients_with_and_without.py [--install] [--only CLIENT ...] [--fault FAULT ...]
                                           [--details] [--write]

Every client asks for one and the same call. Faults that can be repaired must end in the right
call; all others must end without one. `--write` puts the tables into the documentation; rows of
clients that were not asked, such as those of another environment, stay as they are.
"""

import argparse
import asyncio
import logging
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

import clients_under_test as clients
from clients_under_test import RIGHT, Ask, UnreadableError

from surecall.faults import FAULTS, Fault, FaultServer, FaultyProvider

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 8.0
"""How long one request may take."""
AT_A_TIME = 4
BY_NAME = {fault.name: fault for fault in FAULTS}

_GROUPS = (
    "shape",
    "arguments",
    "ids",
    "size",
    "text_format",
    "reasoning",
    "transport",
    "stream",
    "body",
)
"""Groups that one request can show; the others need a second turn or a demanded choice."""
_NEED_MORE = frozenset({"id_reused", "id_repeated", "arguments_too_large"})
"""Faults of these groups that need a second turn, a second call or a limit that is set."""
_NEVER_END = frozenset(
    {"stall", "stall_in_body", "bytes_forever", "stream_stall", "stream_comments_forever"}
)
_COSTLY = frozenset({"gzip_bomb", "gzip_bomb_stream", "stream_flood", "rate_limit_long"})
_CUT = frozenset(
    {
        "cut_at_limit",
        "cut_after_arguments",
        "cut_unmarked",
        "cut_by_filter",
        "text_cut",
        "stream_cut",
        "stream_no_finish",
        "stream_done_without_finish",
        "arguments_missing_brace",
        "body_cut",
        "gzip_cut",
        "reset_in_body",
    }
)
"""Faults after which a part of the reply may be missing."""

Outcome = Literal["right", "wrong", "cut", "none"]


class Answered(NamedTuple):
    """What came of one request of a client."""

    outcome: Outcome
    why: str
    requests: int
    """How many requests the provider had for it."""


Done = dict["Cell", Answered]


class Cell(NamedTuple):
    """One request: who asks, how, and what goes wrong."""

    client: str
    reliable: bool
    stream: bool
    fault: str


def choose_faults(protocol: str, *, stream: bool) -> Iterator[Fault]:
    """Yield the faults that one request in a wire format can show in bounded time."""
    skipped = _NEED_MORE | _NEVER_END | _COSTLY
    for fault in FAULTS:
        in_question = fault.group in _GROUPS and fault.name not in skipped
        if in_question and fault.reaches(stream=stream, protocol=protocol):
            yield fault


def judge(fault: Fault, calls: list[tuple[str, Any]]) -> Outcome:
    """Say what a client delivered: one right call, a wrong one, one of a cut reply, or none."""
    if not calls:
        return "none"
    if fault.name in _CUT:
        return "cut"
    return "right" if calls == [RIGHT] else "wrong"


async def measure(ask: Ask, fault: Fault, *, stream: bool) -> tuple[Outcome, str]:
    """Ask once, and judge what came of it."""
    try:
        async with asyncio.timeout(SECONDS):
            calls = await ask(fault.name, stream)
    except UnreadableError as error:
        return "none", f"unreadable: {error}"
    except Exception as error:
        return "none", f"{type(error).__name__}: {error}"
    return judge(fault, calls), str(calls)


async def measure_all(chosen: list[str], faults: list[str]) -> Done:
    """Ask everything: one request after the other, but several clients at a time."""
    done: Done = {}
    places = asyncio.Semaphore(AT_A_TIME)

    async def ask_all(name: str, reliable: bool, stream: bool) -> None:
        entry = clients.CLIENTS[name]
        provider = FaultyProvider()
        async with (
            places,
            FaultServer(provider) as server,
            entry.open(server.url, reliable) as ask,
        ):
            for fault in choose_faults(entry.protocol, stream=stream):
                if faults and fault.name not in faults:
                    continue
                cell, before = Cell(name, reliable, stream, fault.name), provider.requests
                outcome, why = await measure(ask, fault, stream=stream)
                done[cell] = Answered(outcome, why, provider.requests - before)

    await asyncio.gather(
        *(
            ask_all(name, reliable, stream)
            for name in chosen
            for reliable in (False, True)
            for stream in (False, True)
        )
    )
    return done


# ---------------------------------------------------------------- tables


Table = tuple[str, list[str]]
"""The names of the columns, and the rows, each of which begins with a client."""


class Row(NamedTuple):
    """What one client delivered, without surecall or with it."""

    right: int
    repairable: int
    wrong: int
    cut: int
    asked: int
    requests: int


def count(done: Done, name: str, *, reliable: bool, stream: bool | None = None) -> Row:
    """Add up what a client delivered."""
    chosen = [
        (BY_NAME[cell.fault], answered)
        for cell, answered in done.items()
        if (cell.client, cell.reliable) == (name, reliable) and stream in (None, cell.stream)
    ]
    outcomes = Counter(answered.outcome for _, answered in chosen)
    repairable = [answered.outcome for fault, answered in chosen if fault.repairable]
    return Row(
        repairable.count("right"),
        len(repairable),
        outcomes["wrong"],
        outcomes["cut"],
        len(chosen),
        sum(answered.requests for _, answered in chosen),
    )


def asked_clients(done: Done) -> dict[str, clients.ClientUnderTest]:
    """Return the clients that were asked, in the order of the table."""
    names = {cell.client for cell in done}
    return {name: entry for name, entry in clients.CLIENTS.items() if name in names}


def short_table(done: Done) -> Table:
    """Return the table of the README."""
    lines: list[str] = []
    for name, entry in asked_clients(done).items():
        if entry.needs:
            continue
        alone, helped = (count(done, name, reliable=reliable) for reliable in (False, True))
        lines.append(
            f"| {entry.title} | {alone.right} of {alone.repairable} "
            f"| {helped.right} of {helped.repairable} "
            f"| {alone.wrong + alone.cut} | {helped.wrong + helped.cut} |"
        )
    return "| client | right, alone | with surecall | wrong or cut, alone | with surecall |", lines


def full_table(done: Done) -> Table:
    """Return the table of the explanation page, each figure alone and then with surecall."""
    lines: list[str] = []
    for name, entry in asked_clients(done).items():
        for stream in (False, True):
            alone, helped = (
                count(done, name, reliable=reliable, stream=stream) for reliable in (False, True)
            )
            cells = (
                entry.title,
                entry.version or "",
                "streamed" if stream else "whole",
                f"{alone.right} → {helped.right} of {helped.repairable}",
                f"{alone.wrong} → {helped.wrong}",
                f"{alone.cut} → {helped.cut}",
                str(helped.asked),
                f"{alone.requests} → {helped.requests}",
            )
            lines.append(f"| {' | '.join(cells)} |")
    return "| client | version | reply | right | wrong | cut | of | requests |", lines


def list_misses(done: Done) -> Table:
    """List every fault that did not end as it must with surecall."""
    lines: list[str] = []
    for cell, (outcome, _, _) in sorted(done.items()):
        if is_miss(cell, outcome):
            how = "streamed" if cell.stream else "whole"
            title = clients.CLIENTS[cell.client].title
            lines.append(f"| {title} | {how} | `{cell.fault}` | {outcome} |")
    return "| client | reply | fault | delivered |", lines


def is_miss(cell: Cell, outcome: Outcome) -> bool:
    """Tell whether a request with surecall did not end as it must."""
    must = "right" if BY_NAME[cell.fault].repairable else "none"
    return cell.reliable and outcome not in (must, "right")


def client_of(row: str) -> str:
    """Return the client that a row of a table is about."""
    return row.split("|")[1].strip()


def write(path: Path, mark: str, made: Table, done: Done) -> None:
    """Replace the rows between two marks of a page that are about the clients asked."""
    head, rows = made
    page = path.read_text("utf-8")
    begin, end = f"<!-- {mark}: made by {Path(__file__).name} -->", f"<!-- end of {mark} -->"
    before, _, rest = page.partition(begin)
    old, _, after = rest.partition(end)
    asked = {entry.title for entry in asked_clients(done).values()}
    titles = [entry.title for entry in clients.CLIENTS.values()]
    stay = (row for row in old.splitlines() if row.startswith("| ") and client_of(row) in titles)
    rows = [*rows, *(row for row in stay if client_of(row) not in asked)]
    rows.sort(key=lambda row: titles.index(client_of(row)))
    lines = [head, "|" + "---|" * (head.count("|") - 1), *rows]
    text = "\n".join(lines) if rows else "With surecall, none."
    path.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", "utf-8")


def main() -> int:
    """Measure, and print or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=clients.CLIENTS, nargs="+", help="ask with these clients")
    parser.add_argument("--fault", nargs="+", default=[], help="meet only these faults")
    parser.add_argument("--install", action="store_true", help="bring the clients for Node")
    parser.add_argument("--details", action="store_true", help="print what was not as it must be")
    parser.add_argument("--write", action="store_true", help="put the tables into the pages")
    chosen = parser.parse_args()
    logging.disable(logging.CRITICAL)
    began = time.monotonic()
    if chosen.install:
        clients.install_for_node()
    names = chosen.only or [name for name, entry in clients.CLIENTS.items() if entry.version]
    done = asyncio.run(measure_all(names, chosen.fault))
    if chosen.details:
        for cell, (outcome, why, requests) in sorted(done.items()):
            alone = done[cell._replace(reliable=False)]
            if is_miss(cell, outcome) or (cell.reliable and requests > max(alone.requests, 4)):
                print(*cell, outcome, f"{requests} requests, alone {alone.requests};", why[:200])
    if chosen.write:
        page = ROOT / "docs" / "explanation" / "clients-with-and-without.md"
        write(ROOT / "README.md", "clients", short_table(done), done)
        write(page, "table", full_table(done), done)
        write(page, "misses", list_misses(done), done)
    for head, rows in (short_table(done), full_table(done)):
        print(head, *rows, "", sep="\n")
    print(f"{len(done)} requests in {time.monotonic() - began:.0f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
