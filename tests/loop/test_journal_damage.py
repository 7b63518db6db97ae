"""Journals that were damaged, are something else, or were written by an earlier version."""

import asyncio
import os
import random
import resource
import socket
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import surecall
from surecall.base.errors import Code, JournalError, SurecallError
from surecall.loop import FileJournal
from surecall.loop.journal import RunHeader
from surecall.models.transport import ScriptedTransport, assistant, tool_call
from surecall.text import decode

REFUSED = (Code.JOURNAL_CORRUPT, Code.NOT_A_JOURNAL)

sent: list[str] = []
"""What the tool `send` did, over all runs of a test."""


@surecall.tool(effect="external")
def send(to: str) -> dict[str, Any]:
    """Send a letter."""
    sent.append(to)
    return {"number": len(sent)}


@surecall.tool(effect="read")
def look(where: str) -> dict[str, Any]:
    """Look into a box."""
    return {"letters": 2}


FIRST = assistant(
    None,
    tool_call("look", {"where": "Ädas box"}, "c0"),
    tool_call("send", {"to": "Ada"}, "c1"),
)
SECOND = assistant(None, tool_call("send", {"to": "Bob"}, "c2"))
SCRIPT = [FIRST, SECOND, "Both are sent."]


def answer(request: Any) -> Any:
    """Answer whichever turn is asked for."""
    return SCRIPT[sum(message["role"] == "assistant" for message in request.body["messages"])]


async def run(path: Path, **options: Any) -> surecall.RunResult:
    """Run, or resume, the same request with a journal."""
    options.setdefault("transport", ScriptedTransport(answer))
    return await surecall.run(
        "Write to Ada and Bob.",
        model="m",
        preset=(),
        tools=[send, look],
        journal=str(path),
        **options,
    )


@pytest.fixture(autouse=True)
def _nothing_sent() -> None:
    sent.clear()


@pytest.fixture
async def journal(tmp_path: Path) -> Path:
    """The journal of a run with two effects that lacks its last answer."""
    path = tmp_path / "run.jsonl"
    await run(path)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    assert sent == ["Ada", "Bob"]
    return path


async def resume(path: Path) -> str:
    """Resume a run and return the code it was refused with, if it was."""
    try:
        await run(path)
    except JournalError as error:
        return error.code
    return ""


# damage


async def test_no_flipped_bit_repeats_an_effect(journal: Path) -> None:
    """Three thousand of them: each is refused, and what was sent is not sent again."""
    chance = random.Random(7)
    whole = journal.read_bytes()
    # Journals that end with an answer, an intent without its result, and a result.
    lines = whole.splitlines(keepends=True)
    wholes = [whole, b"".join(lines[:-1]), b"".join(lines[:-2])]
    assert [b'"kind":"intent"' in whole.splitlines()[-1] for whole in wholes] == [
        False,
        True,
        False,
    ]
    for number in range(3000):
        content = bytearray(wholes[number % 3])
        at = chance.randrange(len(content))
        content[at] ^= 1 << chance.randrange(8)
        journal.write_bytes(content)
        assert (number, at, await resume(journal)) in [(number, at, code) for code in REFUSED]
        assert journal.read_bytes() == content
    assert sent == ["Ada", "Bob"]


async def test_every_bit_of_a_line_end_counts(journal: Path) -> None:
    """The end of each line, also of the last, turned into anything else, is damage."""
    whole = journal.read_bytes()
    for at in [index for index, byte in enumerate(whole) if byte == ord("\n")]:
        for byte in (*(ord("\n") ^ 1 << bit for bit in range(8)), 0, 0xFF, *b"\r ,{}"):
            journal.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
            with pytest.raises(JournalError) as caught:
                FileJournal(journal).load()
            assert caught.value.code == Code.JOURNAL_CORRUPT


async def test_lines_that_are_missing_repeated_or_swapped_are_damage(journal: Path) -> None:
    """Each line is whole; their order is not what was written."""
    lines = journal.read_bytes().splitlines(keepends=True)
    changed = [
        *(lines[:at] + lines[at + 1 :] for at in range(len(lines) - 1)),
        *(lines[: at + 1] + lines[at:] for at in range(len(lines))),
        *(
            [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]]
            for at in range(len(lines) - 1)
        ),
    ]
    for content in changed:
        journal.write_bytes(b"".join(content))
        assert await resume(journal) == Code.JOURNAL_CORRUPT
    assert sent == ["Ada", "Bob"]


async def test_damage_names_its_line(journal: Path) -> None:
    """Whoever wants to look at the file knows where."""
    lines = journal.read_bytes().splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        broken = line.replace(b'"turn"', b'"tune"').replace(b"cddd", b"cdde").replace(b"r", b"R", 1)
        journal.write_bytes(b"".join((*lines[: number - 1], broken, *lines[number:])))
        with pytest.raises(JournalError) as caught:
            FileJournal(journal).load()
        assert caught.value.code == Code.JOURNAL_CORRUPT
        assert caught.value.message.startswith(f"Line {number} of {journal} is damaged: ")


async def test_a_whole_last_line_that_is_damaged_is_not_dropped(journal: Path) -> None:
    """Only what lacks its end was not acknowledged."""
    content = journal.read_bytes()
    for tail in (b"garbage\n", b'{"kind":"intent"\n', b"{}\n", b"\n", b"x\0\n"):
        journal.write_bytes(content + tail)
        with pytest.raises(JournalError, match="JOURNAL_CORRUPT"):
            FileJournal(journal).load()
        assert journal.read_bytes() == content + tail


async def test_a_line_is_json_with_its_checksum_last(journal: Path) -> None:
    """Other programs can read a journal line by line."""
    for line in journal.read_bytes().splitlines():
        fields = list(decode(line))
        assert (fields[0], fields[-1]) == ("kind", "check")


async def test_a_torn_header_begins_anew(tmp_path: Path) -> None:
    """Nothing can have run before the first line was whole."""
    path = tmp_path / "j"
    await run(path)
    header = path.read_bytes().partition(b"\n")[0]
    for end in range(24, len(header) + 1):
        path.write_bytes(header[:end])
        journal = FileJournal(path)
        assert journal.load() == ()
        journal.close()
        assert path.read_bytes() == b""


# what is not a journal


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"sk-12345", id="a key"),
        pytest.param(b"sk-12345\n", id="a key and a line end"),
        pytest.param(b'model = "m"', id="settings"),
        pytest.param(b'{"model": "m"}', id="JSON"),
        pytest.param(b'{"model": "m"}\n{"model": "n"}\n', id="JSON lines"),
        pytest.param(b'{"kind":"dog"}\n', id="another kind"),
        pytest.param(b"{", id="a brace"),
        pytest.param(b" ", id="a blank"),
        pytest.param(b"\n", id="a line end"),
        pytest.param(b"\0" * 100, id="zeroes"),
        pytest.param(b"\x7fELF\x02\x01", id="a program"),
        pytest.param("{…".encode("utf-16"), id="UTF-16"),
    ],
)
async def test_a_file_that_is_not_a_journal_is_left_as_it_is(
    content: bytes, tmp_path: Path
) -> None:
    """Nothing is sent, and not a byte of the file changes."""
    path = tmp_path / "api.key"
    path.write_bytes(content)
    transport = ScriptedTransport(answer)
    for _ in range(2):
        with pytest.raises(JournalError) as caught:
            await run(path, transport=transport)
        assert caught.value.code in REFUSED
    assert path.read_bytes() == content
    assert (transport.requests, sent) == ([], [])


async def test_an_empty_file_becomes_a_journal(tmp_path: Path) -> None:
    """Somebody may have made it with the rights they want."""
    path = tmp_path / "j"
    path.touch(mode=0o640)
    assert await resume(path) == ""
    assert path.stat().st_mode & 0o777 == 0o640
    assert FileJournal(path).load()[0] == RunHeader(*_id_of(path))


def _id_of(path: Path) -> tuple[str, str]:
    header = decode(path.read_bytes().partition(b"\n")[0])
    return header["run_id"], header["fingerprint"]


@contextmanager
def special_file(kind: str, folder: Path) -> Generator[Path]:
    """Make something that is not a regular file."""
    path = folder / "special"
    target = folder / "target"
    if kind == "link to a file":
        target.write_bytes(b"")
        path.symlink_to(target)
    elif kind == "link to nothing":
        path.symlink_to(target)
    elif kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            yield path
        return
    else:
        path = Path(kind)
    yield path
    assert not target.exists() or target.read_bytes() == b""


@pytest.mark.parametrize(
    "kind",
    [
        "link to a file",
        "link to nothing",
        "folder",
        "pipe",
        "socket",
        "/dev/full",
        "/dev/zero",
        "/dev/null",
    ],
)
async def test_only_regular_files_are_journals(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links are not followed, and devices are neither read nor written."""
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    with special_file(kind, Path()) as path:
        assert await resume(path) == Code.NOT_A_JOURNAL
    assert not (tmp_path / "target").exists() or kind == "link to a file"


async def test_the_journal_is_private_and_not_inherited(tmp_path: Path) -> None:
    """It is for its owner, whatever the umask, and not for programs that a tool starts."""
    before = os.umask(0)
    try:
        journal = FileJournal(tmp_path / "new" / "j")
        journal.append(RunHeader("r", "f"), durable=True)
    finally:
        os.umask(before)
    assert (tmp_path / "new" / "j").stat().st_mode & 0o777 == 0o600
    listed = subprocess.run(
        ["ls", "-l", "/proc/self/fd"], capture_output=True, text=True, check=True, close_fds=False
    )
    journal.close()
    assert str(tmp_path / "new" / "j") not in listed.stdout


async def test_a_file_that_may_not_grow_is_a_full_disk(tmp_path: Path) -> None:
    """At every limit: the code says so, nothing is repeated, and the run goes on with more room."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for limit in range(0, 3000, 150):
        sent.clear()
        path = tmp_path / str(limit)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            code = await resume(path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert code in ("", Code.DISK_FULL)
        assert await resume(path) == ""
        assert len(sent) == len(set(sent))


def test_resuming_is_refused_outside_a_loop_too(tmp_path: Path) -> None:
    """The synchronous door has the same errors."""
    (tmp_path / "notes.txt").write_text("one line")
    with pytest.raises(SurecallError, match="NOT_A_JOURNAL"):
        asyncio.run(run(tmp_path / "notes.txt"))
