"""`surecall read`: from bytes to what a run would do, without running anything."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from surecall.base.records import Reading, Receipt
from surecall.cli.read import ReadingPage, indent_json

from .harness import document, invoke
from .replies_to_read import (
    CASES,
    CUT,
    FENCED,
    GOOD,
    PROSE,
    TAGGED,
    TOOLS,
    WRONG,
    Case,
    body,
    call,
    message,
    pieces,
    stream,
)


@pytest.fixture
def tools() -> str:
    """Write the tools as JSON."""
    Path("tools.json").write_text(json.dumps(TOOLS), "utf-8")
    return "tools.json"


def read(given: Any, *words: str, **variables: str) -> Result:
    """Read a reply from standard input; what is not text is written as JSON."""
    text = given if isinstance(given, str) else json.dumps(given)
    return invoke("read", "-", *words, stdin=text, **variables)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_every_kind_of_document_is_judged(case: Case, tools: str) -> None:
    """The kind is seen, the formats are named, and the verdict and the exit code agree."""
    result = read(case.given, "--tools", tools, "--json", *case.words)
    found = document(result)
    assert found["arrived"]["kind"] == case.kind
    assert tuple(found["format"]["names"]) == case.formats
    assert found["verdict"]["summary"] == case.summary
    assert found["verdict"]["ok"] is (case.exit_code == 0)
    assert result.exit_code == case.exit_code
    page = read(case.given, "--tools", tools, *case.words)
    assert page.exit_code == case.exit_code
    assert case.summary in page.stdout


def test_the_page_goes_from_bytes_to_execution(tools: str) -> None:
    """Every step stands in its place, each change with rule, place, before, after and why."""
    result = read(TAGGED, "--tools", tools, "--generation-prompt", "<think>")
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    heads = [line.split()[0] for line in lines if line and not line.startswith(" ")]
    assert heads == ["surecall", "arrived", "format", "call", "content", "✓"]
    for words in (
        f"plain text  {len(TAGGED)} bytes · 7 lines · no finish_reason",
        "← text      <think>",
        "tagged_json  written as text",
        "· prompt    <think>",
        "· reasoning Oslo, then.",
        "call 1   get_weather  tc_1",
        "~ lossless  quote_key  ",
        'days → "days"',
        "~ lossless  parse_number_text    /days",
        '"3" → 3',
        '= arguments {"city": "Oslo", "days": 3}',
        "✓ would run complete, and the arguments fit the tool",
        "· text      Let me look.",
    ):
        assert any(words in line for line in lines), words


def test_a_refusal_shows_what_the_model_would_be_told(tools: str) -> None:
    """The code, the reason, the words for the model and the way to an explanation are there."""
    shown = read(message(WRONG), "--tools", tools).stdout
    assert "✗ refused   ARGUMENTS_INVALID  complete, but it does not fit the tool" in shown
    assert '  to model  /cents must be an integer, got the string "all of it"' in shown
    assert "! defect    ARGUMENTS_AS_OBJECT  The arguments are an object" in shown
    assert "surecall docs ARGUMENTS_INVALID" in shown
    (found,) = document(read(message(WRONG), "--tools", tools, "--json"))["calls"]
    told = json.loads(found["told"])
    assert (found["outcome"], told["ok"], told["tool_name"]) == ("refused", False, "refund")
    assert [error["code"] for error in told["errors"]] == ["ARGUMENTS_INVALID"]


def test_a_cut_call_is_shown_as_it_arrived(tools: str) -> None:
    """What arrived stands in place of arguments, and the reason is plain."""
    shown = read(body("length", CUT), "--tools", tools).stdout
    assert '? arguments {"number": "A-17", "cents": 45' in shown
    assert "ARGUMENTS_TRUNCATED  the call was cut off, and a cut call never runs" in shown
    assert "= arguments" not in shown


def test_without_tools_fields_are_read_but_not_checked() -> None:
    """A structured call is readable, its name and schema are open, and the page says so."""
    result = read(message(WRONG))
    assert result.exit_code == 0
    assert "· readable  complete; name and arguments are only checked with --tools" in result.stdout
    assert "! 1 call: readable, not checked against tools; 1 change, lossless" in result.stdout
    (found,) = document(read(message(WRONG), "--json"))["calls"]
    assert (found["outcome"], found["told"]) == ("not_checked", None)
    assert read(message(CUT), "--finish-reason", "length").exit_code == 1


def test_without_tools_only_markup_is_read() -> None:
    """Nobody knows the tools then, so calls in markup are found and no others."""
    found = document(read(TAGGED, "--json"))
    assert [call["outcome"] for call in found["calls"]] == ["not_checked"]
    assert found["verdict"]["is_checked"] is False
    result = read("ping()")
    assert result.exit_code == 0
    assert "none  without --tools, only calls in markup are found" in result.stdout


def test_the_document_has_everything(tools: str) -> None:
    """One document holds what arrived, the format, the calls with receipts, and the verdict."""
    found = document(read(TAGGED, "--tools", tools, "--json"))
    assert found["type"] == "reading"
    assert found["arrived"] == {
        "kind": "text",
        "protocol": None,
        "bytes": len(TAGGED),
        "excerpt": TAGGED,
        "finish_reason": None,
    }
    assert found["format"] == {"names": ["tagged_json"], "in_text": True, "generation_prompt": None}
    (only,) = found["calls"]
    assert (only["state"], only["arguments"]) == ("whole", {"city": "Oslo", "days": 3})
    assert [receipt["rule"] for receipt in only["receipts"]] == [
        "read_call_from_text",
        "quote_key",
        "parse_number_text",
    ]
    assert (found["content"], found["reasoning"]) == ("Let me look.", "Oslo, then.")
    assert (found["defects"], found["receipts"]) == ([], [])
    assert found["verdict"] == {
        "ok": True,
        "is_checked": True,
        "summary": "1 call: would run; 3 changes, all lossless",
        "calls": 1,
        "would_run": 1,
        "refused": 0,
        "not_checked": 0,
        "codes": [],
        "changes": 3,
        "lossy_changes": 0,
        "error": None,
    }


def test_no_reply_is_explained(tools: str) -> None:
    """A stream that broke off is refused as a whole, with its reason."""
    broken = stream(*pieces('{"number":'), finish_reason=None)
    shown = read(broken, "--tools", tools).stdout
    assert "✗ refused   STREAM_TRUNCATED  nothing in it would be used" in shown
    assert "call 1" not in shown
    error = document(read(broken, "--tools", tools, "--json"))["verdict"]["error"]
    assert error["code"] == "STREAM_TRUNCATED"
    assert "finish reason" in error["message"]


def test_the_tools_may_be_a_request_or_python(tools: str) -> None:
    """A recorded request and a Python file both say which tools there are; none is run."""
    Path("request.json").write_text(json.dumps({"model": "m", "tools": TOOLS}), "utf-8")
    Path("mine.py").write_text(
        "import surecall\n@surecall.tool(effect='external')\n"
        "def refund(number: str, cents: int):\n    raise SystemExit(99)\n",
        "utf-8",
    )
    for file in ("request.json", "mine.py"):
        found = document(read(message(GOOD), "--tools", file, "--json"))
        assert found["verdict"]["summary"] == "1 call: would run; no changes"
    both = read(message(GOOD), "--tools", "mine.py", "--tools", tools, "--json")
    assert (both.exit_code, document(both)["code"]) == (4, "DUPLICATE_TOOL")


@pytest.mark.parametrize(
    ("given", "words", "expected"),
    [
        pytest.param(TAGGED, (), "tagged_json\n", id="text"),
        pytest.param(message(GOOD), (), "tool_calls\n", id="structured"),
        pytest.param(message(CUT), ("--finish-reason", "length"), "tool_calls\n", id="refused"),
        pytest.param(PROSE, (), "none\n", id="none"),
    ],
)
def test_the_format_alone(given: Any, words: tuple[str, ...], expected: str, tools: str) -> None:
    """`--format-only` prints a name for scripts, and succeeds."""
    result = read(given, "--tools", tools, "--format-only", *words)
    assert (result.exit_code, result.stdout, result.stderr) == (0, expected, "")
    names = document(read(given, "--tools", tools, "--format-only", "--json", *words))["names"]
    assert names == [name for name in expected.split() if name != "none"]


def test_the_format_alone_without_tools_warns() -> None:
    """`none` without tools comes with the reason, on standard error."""
    result = read("ping()", "--format-only")
    assert result.stdout == "none\n"
    assert "only calls in markup are found" in result.stderr


@dataclass(frozen=True)
class Misuse:
    id: str
    code: str
    says: str
    data: bytes = b"hello"
    tools: str | None = None
    words: tuple[str, ...] = ()
    name: str = "reply.txt"


MISUSES = [
    Misuse("missing", "INVALID_OPTION", "cannot be read", name="nothing.txt"),
    Misuse("folder", "INVALID_OPTION", "cannot be read", name="."),
    Misuse("empty", "INVALID_OPTION", "reply.txt is empty", b" \n"),
    Misuse("too large", "INVALID_OPTION", "larger than 10 MiB", b"x" * (10 * 1024 * 1024 + 1)),
    Misuse("not UTF-8", "INVALID_UTF8", "at byte 2", b"ab\xff"),
    Misuse("user message", "INVALID_MESSAGE", "'user'", b'{"role": "user", "content": "hi"}'),
    Misuse("no wire format", "UNKNOWN_PROTOCOL", "'chat'", words=("--protocol", "chat")),
    Misuse(
        "no such choice",
        "INVALID_OPTION",
        "no choice 1",
        b'{"role": "assistant", "content": "hi"}',
        words=("--choice", "1"),
    ),
    Misuse("no choice of a text", "INVALID_OPTION", "no choice 4", words=("--choice", "4")),
    Misuse("no JSON tools", "INVALID_TOOL", "tools.json: ", tools="nothing"),
    Misuse("no list", "INVALID_TOOL", "no list of tools", tools='{"name": "x"}'),
    Misuse("no tools in the list", "INVALID_TOOL", "no list of tools", tools="[]"),
    Misuse("not a tool", "INVALID_TOOL", "tools.json: int is not a tool", tools="[1]"),
    Misuse("bad name", "INVALID_TOOL_NAME", "'a b'", tools='[{"name": "a b"}]'),
    Misuse(
        "bad schema",
        "INVALID_SCHEMA",
        "",
        tools='[{"name": "x", "parameters": {"type": "objekt"}}]',
    ),
    Misuse("tools missing", "INVALID_TOOL", "other.json", words=("--tools", "other.json")),
    Misuse("picture of JSON", "INVALID_OPTION", "--svg", words=("--svg", "x.svg")),
]


@pytest.mark.parametrize("case", MISUSES, ids=lambda case: case.id)
def test_misuse_is_told(case: Misuse) -> None:
    """What cannot be used is refused with exit code 4, a code and a reason."""
    Path("reply.txt").write_bytes(case.data)
    words = list(case.words)
    if case.tools is not None:
        Path("tools.json").write_text(case.tools, "utf-8")
        words += ["--tools", "tools.json"]
    result = invoke("read", case.name, "--json", *words)
    found = document(result)
    assert (result.exit_code, found["type"], found["code"]) == (4, "error", case.code)
    assert case.says in found["message"]
    assert found["hint"]


def test_a_picture_that_cannot_be_written_is_told() -> None:
    """A place that cannot be written is a mistake in the command."""
    result = read(PROSE, "--svg", "no/such/folder/x.svg")
    assert result.exit_code == 4
    assert "cannot be written" in result.stderr


def test_nothing_can_control_the_terminal(tools: str) -> None:
    """Escape sequences and marks that reorder text are shown by their number everywhere."""
    evil = "\x1b[31m\u202e\x07"
    calls = call(f"refund{evil}", json.dumps({"number": evil, "cents": evil}), f"id{evil}")
    given = message(calls, content=f"see {evil}") | {"reasoning_content": evil}
    for words in ((), ("--json",), ("--color", "never")):
        shown = read(given, "--tools", tools, *words).stdout
        assert not {"\x1b", "\u202e", "\x07"} & set(shown)
    page = read(f"see {evil}", "--tools", tools).stdout
    assert "← text      see \\x1b[31m\\u202e\\x07" in page


def test_long_replies_are_bounded(tools: str) -> None:
    """A page stays short, whatever arrives: text, arguments and calls are cut with a note."""
    many = {f"key{number}": "x" * 200 for number in range(100)}
    given = message(call("refund", json.dumps(many)), content="line\n" * 10_000)
    lines = read(given, "--tools", tools).stdout.splitlines()
    assert len(lines) < 120
    assert any("more lines" in line for line in lines)
    assert any(line.strip() == "…" for line in lines)


@pytest.mark.parametrize("columns", ["60", "80", "100", "200"])
@pytest.mark.parametrize("given", [TAGGED, message(FENCED, WRONG)], ids=["text", "message"])
def test_the_page_fits_the_terminal(columns: str, given: Any, tools: str) -> None:
    """No line is longer than the terminal, nor longer than reads well."""
    lines = read(given, "--tools", tools, COLUMNS=columns).stdout.splitlines()
    assert max(map(len, lines)) <= min(int(columns), 100)


def test_the_picture_is_one_file_that_loads_nothing(tools: str) -> None:
    """The SVG is well formed, holds the text, and names no address to load from."""
    assert read(message(WRONG), "--tools", tools, "--svg", "read.svg").exit_code == 1
    svg = Path("read.svg").read_text("utf-8")
    assert ElementTree.fromstring(svg).tag.endswith("svg")
    assert "ARGUMENTS_INVALID" in svg
    assert "@font-face" not in svg


def test_a_lossy_change_is_marked() -> None:
    """A change that may lose meaning does not look like the others."""
    console = Console(width=100)
    receipts = (
        Receipt("keep_last_key", "/a", 1, 2, lossless=False, why="two values were given"),
        Receipt("strip_space", "", " ", ""),
    )
    with console.capture() as captured:
        ReadingPage(console).show_format(Reading(receipts=receipts), ("t",), None)
    shown = captured.get()
    assert "~ lossy     keep_last_key  /a  1 → 2" in shown
    assert "two values were given" in shown
    assert '~ lossless  strip_space        " " → (nothing)' in shown


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(JSON_VALUES, st.sampled_from([1, 40, 10_000]))
def test_indented_json_is_the_same_value(value: Any, room: int) -> None:
    """However it is laid out, it parses to what it was."""
    rows = indent_json(value, room)
    assert json.loads("\n".join(rows)) == value
    (line,) = indent_json(value, 10**9)
    assert rows == [line] if len(line) <= room else rows[0] in {"{", "[", line}


def test_indented_json_reads_well() -> None:
    """Objects are indented by two, and empty ones stay on their line."""
    value = {"a": {"b": [1, {"c": "x, y: {z}"}], "d": {}}, "e": []}
    assert indent_json(value, 10) == [
        "{",
        '  "a": {',
        '    "b": [',
        "      1,",
        "      {",
        '        "c": "x, y: {z}"',
        "      }",
        "    ],",
        '    "d": {}',
        "  },",
        '  "e": []',
        "}",
    ]
