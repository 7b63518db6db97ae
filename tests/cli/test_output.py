"""Exit codes, colours, and errors as people and programs read them."""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from surecall.base.codes import CodeText
from surecall.base.errors import (
    Code,
    ConfigError,
    JournalError,
    JSONTextError,
    ProviderTimeoutError,
    RunLimitError,
    ToolDefinitionError,
)
from surecall.cli import ExitCode, cli
from surecall.cli.console import Output, exit_code_of
from surecall.cli.main import COMMANDS
from surecall.evals.gates.text import MEASURES
from surecall.evals.suites import SUITES

from .harness import document, invoke

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"


def test_exit_codes_page_states_every_code() -> None:
    """The table of the page has number, name and meaning of each code, in order."""
    page = (REFERENCE / "exit-codes.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \| (.+) \|$", page, re.MULTILINE)
    assert rows == [(str(int(code)), code.name, code.meaning) for code in ExitCode]


@pytest.mark.parametrize("name", COMMANDS)
def test_cli_page_has_every_command_and_option(name: str) -> None:
    """Each command has a section that names each of its options."""
    page = (REFERENCE / "cli.md").read_text("utf-8")
    section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    command = cli.get_command(cli.make_context("surecall", []), name)
    assert command is not None
    nested = list(_commands_below(command))
    options = [
        flag
        for each in (command, *nested)
        for parameter in each.params
        for flag in parameter.opts
        if flag.startswith("--") and parameter.expose_value
    ]
    assert section
    assert [flag for flag in options if f"`{flag}" not in section] == []
    names = [each.name for each in nested if not each.hidden]
    assert [name for name in names if name and name not in section] == []


def test_pages_name_every_suite_and_every_metric_of_a_gate() -> None:
    """What can be typed is what a reader finds."""
    option = (REFERENCE / "cli.md").read_text("utf-8").partition("- `--suite LIST`:")[2]
    row = option.partition("\n")[0]
    assert [name for name in SUITES if f"`{name}`" not in row] == []
    gates = (REFERENCE.parent / "how-to" / "gate-a-build.md").read_text("utf-8")
    assert [name for name in MEASURES if f"`{name}`" not in gates] == []


@dataclass(frozen=True)
class Ending:
    id: str
    error: BaseException
    code: int


ENDINGS = [
    Ending("run", RunLimitError(Code.MAX_TURNS_REACHED, "m"), 1),
    Ending("provider", ProviderTimeoutError(Code.IDLE_TIMEOUT, "m"), 6),
    Ending("setup", ConfigError(Code.INVALID_CONFIG, "m"), 4),
    Ending("tool", ToolDefinitionError(Code.INVALID_TOOL, "m"), 4),
    Ending("journal", JournalError(Code.JOURNAL_IN_USE, "m"), 4),
    Ending("nothing", ConfigError(Code.NOTHING_SELECTED, "m"), 5),
    Ending("text", JSONTextError(Code.NOT_SERIALIZABLE, "m"), 3),
    Ending("unexpected", ZeroDivisionError("m"), 3),
]


@pytest.mark.parametrize("case", ENDINGS, ids=lambda case: case.id)
def test_every_kind_of_error_has_its_exit_code(case: Ending) -> None:
    """The class of an error, not its text, decides how the command ends."""
    assert exit_code_of(case.error) == case.code


def test_error_for_people_has_code_hint_and_next_command() -> None:
    """A wrong code is told in three lines on standard error, and nothing on standard output."""
    result = invoke("docs", "explain", "argument_errors")
    assert result.exit_code == ExitCode.USAGE
    assert result.stdout == ""
    first, fix, more = result.stderr.splitlines()
    assert first.startswith("✗ UNKNOWN_CODE  ")
    assert "ARGUMENT_ERROR" in fix
    assert more.strip() == "more  surecall docs UNKNOWN_CODE"


def test_a_message_that_begins_with_a_name_keeps_it() -> None:
    """Only an ordinary word gets a capital letter: a setting must stay one that can be copied."""
    result = invoke("probe", "m", "--base-url", "nowhere")
    assert result.stderr.startswith("✗ INVALID_CONFIG  base_url must be")


@pytest.mark.parametrize("place", ["before", "after"])
def test_error_as_json_goes_to_standard_output(place: str) -> None:
    """`--json` works before and after the command, and the document has code, message and hint."""
    words = (
        ("--json", "docs", "explain", "NOPE")
        if place == "before"
        else ("docs", "explain", "NOPE", "--json")
    )
    result = invoke(*words)
    found = document(result)
    assert (found["type"], found["code"]) == ("error", "UNKNOWN_CODE")
    assert found["message"].startswith("'NOPE' is not a name of surecall.")
    assert found["hint"]
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("words", "code", "suggestion"),
    [
        (("rnu", "hello"), "INVALID_OPTION", "Did you mean 'run'?"),
        (("run", "--modle", "x", "hello"), "UNKNOWN_OPTION", "--model"),
        (("replay",), "INVALID_OPTION", "TRACE"),
        (("docs", "explain"), "INVALID_OPTION", "--list"),
        (("--color", "pink", "models"), "INVALID_OPTION", "never"),
    ],
    ids=["command", "option", "argument", "nothing", "choice"],
)
def test_misuse_is_exit_code_4_with_a_suggestion(
    words: tuple[str, ...], code: str, suggestion: str
) -> None:
    """What click refuses reads like every other error, as words and as JSON."""
    result = invoke(*words)
    assert result.exit_code == ExitCode.USAGE
    assert code in result.stderr
    assert suggestion in result.stderr
    as_json = document(invoke(*words, "--json"))
    assert as_json["code"] == code
    assert suggestion in as_json["message"]


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (("run", "--model"), "run"),
        (("eval", "runs", "--store"), "eval runs"),
        (("faults", "serve", "--port"), "faults serve"),
        (("eval", "--models"), "eval"),
        (("eval", "--modles", "x"), "eval"),
        (("eval", "--trials", "many"), "eval"),
        (("--color",), ""),
    ],
)
def test_misuse_names_the_help_of_the_command_that_was_typed(
    words: tuple[str, ...], command: str
) -> None:
    """Also where an option has no value, and where a group runs a command by itself."""
    hint = document(invoke("--json", *words))["hint"]
    assert hint == f"See `{f'surecall {command}'.strip()} --help`."


def test_words_that_belong_together_are_advised_to_be_in_quotes() -> None:
    """A question without quotes is more than one argument."""
    assert "in quotes" in document(invoke("run", "is", "it", "raining", "--json"))["hint"]


def _fail(*_: object) -> CodeText:
    raise ZeroDivisionError("the key is sk-abcdefghijklmnop123456")


def test_internal_error_is_one_line_without_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected exception names itself and `--debug`, and shows no secret."""
    monkeypatch.setattr("surecall.cli.docs._find", _fail)
    result = invoke("docs", "explain", "AUTH")
    assert result.exit_code == ExitCode.INTERNAL
    assert "INTERNAL_ERROR  ZeroDivisionError: the key is [redacted]" in result.stderr
    assert "--debug" in result.stderr
    assert "Traceback" not in result.stderr


def test_debug_shows_the_traceback_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """`--debug` adds the traceback, redacted."""
    monkeypatch.setattr("surecall.cli.docs._find", _fail)
    result = invoke("--debug", "docs", "explain", "AUTH")
    assert "Traceback (most recent call last)" in result.stderr
    assert "sk-abc" not in result.stderr


@dataclass(frozen=True)
class Colour:
    id: str
    words: tuple[str, ...]
    variables: dict[str, str]
    coloured: bool


COLOURS = [
    Colour("pipe", (), {}, coloured=False),
    Colour("always", ("--color", "always"), {}, coloured=True),
    Colour("never", ("--color", "never"), {"FORCE_COLOR": "1"}, coloured=False),
    Colour("FORCE_COLOR", (), {"FORCE_COLOR": "1", "TERM": "xterm-256color"}, coloured=True),
    Colour("NO_COLOR", (), {"NO_COLOR": "1"}, coloured=False),
    Colour("both", (), {"NO_COLOR": "1", "FORCE_COLOR": "1", "TERM": "xterm"}, coloured=False),
    Colour("dumb", (), {"FORCE_COLOR": "1", "TERM": "dumb"}, coloured=False),
]


@pytest.mark.parametrize("case", COLOURS, ids=lambda case: case.id)
def test_colour_follows_flag_and_variables(case: Colour) -> None:
    """Escape sequences are written only where they are wanted; the words are always there."""
    result = invoke("docs", "explain", "AUTH", *case.words, **case.variables)
    assert result.exit_code == 0
    assert ("\x1b[" in result.stdout) is case.coloured
    assert "AUTH" in result.stdout


def _commands_below(command: click.Command) -> Iterator[click.Command]:
    """Yield every command of a group, and of the groups in it."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield inner
            yield from _commands_below(inner)


def _groups(group: click.Group, *path: str) -> Iterator[tuple[str, ...]]:
    """Yield the path of every group of commands."""
    yield path
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from _groups(command, *path, name)


@pytest.mark.parametrize("path", list(_groups(cli)), ids=" ".join)
def test_no_help_is_cut_at_80_columns(path: tuple[str, ...]) -> None:
    """Every command is described by a whole sentence in the list of its group."""
    found = CliRunner().invoke(cli, [*path, "--help"], terminal_width=80)
    commands = found.stdout.partition("Commands:")[2]
    assert commands.strip()
    assert "..." not in commands


def test_no_command_shows_help() -> None:
    """`surecall` alone lists the commands."""
    result = invoke()
    assert result.exit_code == 0
    assert all(f"\n  {name} " in result.stdout for name in COMMANDS)


def test_version_as_json() -> None:
    """The version is a document too."""
    told = {"schema_version": 1, "type": "version", "version": "0.1.0"}
    assert document(invoke("--json", "--version")) == told


@pytest.mark.parametrize(
    "words",
    [
        ("completion", "bash"),
        ("docs",),
        ("docs", "codes"),
        ("connect",),
        ("connect", "shell"),
        ("docs", "explain", "--list"),
        ("docs", "explain", "--list", "--kind", "rule"),
        ("docs", "explain", "AUTH"),
        ("docs", "explain", "strip_code_fence"),
        ("faults", "list"),
        ("faults", "models"),
        ("faults", "show", "reset"),
        ("models",),
        ("models", "local"),
        ("models", "presets", "list"),
        ("models", "presets", "show", "gpt-5"),
        ("probe", "--facts"),
        ("probe", "--list"),
    ],
    ids=" ".join,
)
def test_every_document_says_what_it_is(words: tuple[str, ...]) -> None:
    """A program tells by its type what it reads, and never takes it for an error."""
    assert document(invoke(*words, "--json"))["type"] != "error"


class _Terminal(io.StringIO):
    """Standard error at a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("settings", "is_shown"), [({}, True), ({"quiet": True}, False), ({"json": True}, False)]
)
def test_a_wait_is_shown_at_a_terminal(settings: dict[str, bool], is_shown: bool) -> None:
    """Whoever waits sees for what; programs and those who asked for silence do not."""
    terminal = _Terminal()
    output = Output(**settings, color="always", stderr=terminal)
    with output.waiting("asking the provider"):
        pass
    assert ("asking the provider" in terminal.getvalue()) is is_shown


def test_nobody_is_told_about_a_wait_where_nobody_watches() -> None:
    """Nothing of it is in a log."""
    log = io.StringIO()
    with Output(stderr=log).waiting("asking the provider"):
        pass
    assert log.getvalue() == ""
