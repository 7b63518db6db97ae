"""What a shell suggests, and the script that lets it ask."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import surecall
from surecall.cli import cli

from .harness import STEADY, document, invoke


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def complete(words: str, typed: str) -> list[str]:
    """Return what bash would be given for a command line."""
    variables = {
        "_SURECALL_COMPLETE": "bash_complete",
        "COMP_WORDS": f"surecall {words} {typed}",
        "COMP_CWORD": str(len(words.split()) + 1),
    }
    result = CliRunner().invoke(cli, [], env=variables, prog_name="surecall")
    return [line.partition(",")[2] for line in result.stdout.splitlines()]


def test_a_shell_completes_commands_models_runs_and_names() -> None:
    """Whatever is known on this machine is suggested."""
    assert "config" in complete("", "conf")
    assert "zoo:steady" in complete("run --model", "zoo:st")
    assert complete("docs explain", "ARGUMENTS_TRUNC") == ["ARGUMENTS_TRUNCATED"]
    assert complete("eval runs show", "") == ["@latest"]
    run = document_of_run()
    assert run in complete("eval runs show", run[:3])


@pytest.mark.parametrize(
    ("words", "typed", "suggested"),
    [
        ("docs", "gate-a", ["gate-a-build"]),
        ("probe", "zoo:stea", ["zoo:steady"]),
        ("probe --question", "grammar", ["grammar"]),
        ("eval recommend --strategy", "gat", ["gated"]),
        ("eval regrade", "@la", ["@latest"]),
        ("eval recommend", "@la", ["@latest"]),
        ("eval runs trend", "@la", ["@latest"]),
        ("eval runs case", "@la", ["@latest"]),
        ("eval --resume", "@la", ["@latest"]),
        ("eval vendors --run", "@la", ["@latest"]),
        ("eval vendors --reference", "zoo:stea", ["zoo:steady"]),
        ("models fetch", "smol", ["smollm2-135m"]),
        ("models serve", "smol", ["smollm2-135m"]),
        ("faults show", "arguments_bl", ["arguments_blank"]),
        ("faults list --group", "transp", ["transport"]),
        ("faults serve --model", "zoo:stea", ["zoo:steady"]),
        ("run --preset", "text_", ["text_tool_calls"]),
        ("run --provider", "openr", ["openrouter"]),
        ("run --protocol", "chat", ["chat_completions"]),
        ("run --profile", "kimi", ["kimi_k2_5_instant"]),
        ("eval --strategies", "raw,gat", ["raw,gated"]),
        ("eval --suite", "state,erran", ["state,errands"]),
        ("eval --models", "zoo:cat", ["zoo:catalog"]),
        ("eval --models", "zoo:stubborn,zoo:stea", ["zoo:stubborn,zoo:steady"]),
        ("eval report --format", "html,jun", ["html,junit"]),
        ("run --provider", "zzz", [""]),
    ],
)
def test_a_shell_completes_what_a_flag_takes(words: str, typed: str, suggested: list[str]) -> None:
    """Also the last name of a list with commas."""
    assert complete(words, typed) == suggested


def _list_parameters(
    command: click.Command = cli, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Parameter]]:
    """Return every parameter of every command, with the words that lead to it."""
    yield from ((path, parameter) for parameter in command.params)
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from _list_parameters(inner, (*path, name))


def test_a_shell_completes_files_wherever_one_is_taken() -> None:
    """Options and arguments that are called so in the help let the shell list files or folders."""
    kinds = {"FILE": "file", "FILE.py": "file", "FILE|URL": "file", "TRACE": "file"}
    kinds |= {"PATH": "file", "DIR": "dir", "DIR|off": "dir"}
    found = 0
    for path, parameter in _list_parameters():
        shown = parameter.make_metavar(click.Context(cli)).strip("[]")
        if shown in kinds:
            (item,) = parameter.shell_complete(click.Context(cli), "x")
            assert (item.type, item.value) == (kinds[shown], "x"), (path, parameter.name)
            found += 1
    assert found > 30


def document_of_run() -> str:
    """Make a small run and return its id."""
    invoke("eval", *STEADY, "--trials", "1", "--quiet")
    return document(invoke("eval", "runs", "list", "--json"))["runs"][0]["run"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not here")
@pytest.mark.parametrize(
    ("line", "breaks", "reply"),
    [
        ("surecall completion ", "@:=", "bash zsh fish"),
        ("surecall eval runs show @lat", "@:=", "@latest"),
        ("surecall run --model zoo:stea", "@:=", "steady"),
        ("surecall run --model zoo:stea", "", "zoo:steady"),
        ("surecall run --model=zoo:stea", "@:=", "steady"),
    ],
)
def test_bash_is_given_what_follows_the_last_end_of_a_word(
    line: str, breaks: str, reply: str, tmp_path: Path
) -> None:
    """The printed script itself is run; bash ends words at a colon and keeps what is before it."""
    command = tmp_path / "surecall"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m surecall "$@"\n')
    command.chmod(0o755)
    script = f"""{invoke("completion", "bash").stdout.partition("_surecall_completion_setup()")[0]}
        COMP_LINE={shlex.quote(line)} COMP_POINT={len(line)} COMP_WORDBREAKS={shlex.quote(breaks)}
        COMP_WORDS=() COMP_CWORD=0
        _surecall_completion {shlex.quote(str(command))}
        printf '%s\n' "${{COMPREPLY[@]}}"
    """
    sources = str(Path(surecall.__file__).parents[1])
    found = subprocess.run(
        ["bash", "--norc", "-c", script],
        env={**os.environ, "PYTHONPATH": sources},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == reply.split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_of_a_shell_is_printed(shell: str) -> None:
    """The script calls the command with the variable that it listens to."""
    assert "_SURECALL_COMPLETE" in invoke("completion", shell).stdout
