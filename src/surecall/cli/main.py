"""The command `surecall`: finds the command asked for and loads nothing else."""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

import click
from click.shell_completion import get_completion_class

from surecall.base.errors import Code
from surecall.base.version import VERSION

from .console import ExitCode, Output, exit_code_of
from .flags import flag, output_flags, pass_output
from .groups import CommandEntry, LazyGroup

COMMANDS: Final[Mapping[str, CommandEntry]] = {
    "demo": CommandEntry("demo", "demo", "Watch broken replies being repaired, offline."),
    "run": CommandEntry("run", "run", "Ask a model a question, with your tools."),
    "replay": CommandEntry("traces", "replay", "Replay a recorded run, or send a request again."),
    "read": CommandEntry("read", "read", "Explain one recorded reply, from bytes to execution."),
    "serve": CommandEntry("serve", "serve", "Make any client's tool calls reliable: a gateway."),
    "with": CommandEntry("connect", "with_program", "Run a program with a gateway of its own."),
    "connect": CommandEntry("connect", "connect", "Show how a program is pointed at a gateway."),
    "requests": CommandEntry("requests", "requests", "List, show and export gateway requests."),
    "approvals": CommandEntry("approvals", "approvals", "List, approve and deny waiting calls."),
    "eval": CommandEntry("eval", "evaluate", "Compare models and strategies; reports and gates."),
    "models": CommandEntry("models", "models", "List models; presets, and models that run here."),
    "probe": CommandEntry("probe", "probe", "Find out what a model really does at a provider."),
    "faults": CommandEntry("faults", "faults", "Serve a provider that misbehaves on purpose."),
    "mcp": CommandEntry("mcp", "mcp", "Serve coding agents over MCP, or look at MCP tools."),
    "config": CommandEntry("config", "config", "Write, show and check the configuration."),
    "docs": CommandEntry("docs", "docs", "Find a page, a code or a name; offline."),
    "completion": CommandEntry("main", "completion", "Print the completion of a shell."),
}
"""Every command, in the order in which help lists them."""


class _CommandLine(LazyGroup):
    """The whole command line, which turns errors into exit codes."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a reader that has gone away is not an error."""
        try:
            returned = super().invoke(ctx)
            sys.stdout.flush()
            return returned
        except BrokenPipeError:
            ctx.obj.drop_reader()
            return ExitCode.OK

    def main(self, args: Sequence[str] | None = None, *rest: Any, **settings: Any) -> NoReturn:
        """Run the command line and exit with its code."""
        _open_missing_streams()
        _accept_any_text()
        words = list(sys.argv[1:] if args is None else args)
        output = Output()
        try:
            returned = super().main(
                args, *rest, **{**settings, "standalone_mode": False, "obj": output}
            )
            code = returned if isinstance(returned, int) else ExitCode.OK
        except Exception as error:
            _read_json_flag(output, words)
            code = _report_end(error, output, words)
        sys.exit(int(code))


def _read_json_flag(output: Output, words: Sequence[str]) -> None:
    """Find the flag by hand: it may not have been read yet when the rest could not be."""
    own_words = words[: words.index("--")] if "--" in words else words
    output.json = output.json or "--json" in own_words


def _report_end(error: Exception, output: Output, words: Sequence[str]) -> ExitCode:
    """Tell why a command ended early, as far as anything can be written at all."""
    try:
        if isinstance(error, OSError) and output.is_lost_with(error):
            raise error
        if isinstance(error, click.Abort):
            return _report_interrupt(output)
        if isinstance(error, click.ClickException):
            return _report_misuse(error, output, words)
        output.error(error)
        return exit_code_of(error)
    except OSError as loss:
        output.report_loss(loss)
        return ExitCode.USAGE


def _report_misuse(error: click.ClickException, output: Output, words: Sequence[str]) -> ExitCode:
    unknown = isinstance(error, click.NoSuchOption)
    code = Code.UNKNOWN_OPTION if unknown else Code.INVALID_OPTION
    context = error.ctx if isinstance(error, click.UsageError) else None
    command = context.command_path if context else _named_command(words)
    message = error.format_message()
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        if not output.json:
            output.text(message)
            return ExitCode.USAGE
        message = "No command was given."
    message = message.replace("is not a valid float range", "is not a number")
    message = message.replace("is not a valid integer range", "is not a whole number")
    hint = f"See `{command} --help`."
    if message.startswith("Got unexpected extra argument"):
        hint = f"Put words that belong together in quotes. {hint}"
    output.problem(code, " ".join(message.split()), hint)
    return ExitCode.USAGE


def _named_command(words: Sequence[str]) -> str:
    """Return the command that the words name, for an error that does not know where it is from."""
    command: click.Command = cli
    context = click.Context(cli)
    path = "surecall"
    for word in words:
        found = command.get_command(context, word) if isinstance(command, click.Group) else None
        if found is not None:
            command, path = found, f"{path} {word}"
    return path


def _report_interrupt(output: Output) -> ExitCode:
    if output.json:
        output.data({"type": "interrupted"})
    else:
        output.stderr.write("interrupted\n")
    return ExitCode.INTERRUPTED


def _open_missing_streams() -> None:
    """Read and write nothing where a shell closed a stream, as with `>&-`.

    In this order each takes the place of the one that is missing, so that no file is opened there.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - kept


def _accept_any_text() -> None:
    """Never fail because a character is not in the encoding of the terminal."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def _show_version(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if not value or context.resilient_parsing:
        return
    output: Output = context.obj
    if output.json:
        output.data({"type": "version", "version": VERSION})
    else:
        click.echo(f"surecall {VERSION}")
    context.exit()


@click.group(
    cls=_CommandLine,
    entries=COMMANDS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@flag("--version", "Show the version.", expose_value=False, callback=_show_version)
@output_flags
@click.pass_context
def cli(context: click.Context) -> None:
    """Makes LLM tool calls reliable.

    A correct, validated call with a receipt for every change, or a clear refusal.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@click.command
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@pass_output
def completion(output: Output, shell: str) -> None:
    """Print the completion of a shell; with bash: eval "$(surecall completion bash)"."""
    made = get_completion_class(shell)
    assert made is not None
    script = made(cli, {}, "surecall", "_SURECALL_COMPLETE").source()
    if output.json:
        output.data({"type": "completion", "shell": shell, "script": script})
        return
    output.stdout.write(script + "\n")
