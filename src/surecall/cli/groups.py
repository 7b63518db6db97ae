"""Groups that list their commands without importing them."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from surecall.base.errors import did_you_mean


class CommandEntry(NamedTuple):
    """Where a command is, and what the list of commands says about it."""

    module: str
    """Its module in `surecall.cli`."""
    name: str
    help: str


class LazyGroup(click.Group):
    """A group that imports a command when it is asked for."""

    def __init__(
        self,
        *args: Any,
        entries: Mapping[str, CommandEntry],
        default: str | None = None,
        **settings: Any,
    ) -> None:
        """Keep what is known of the commands.

        Args:
            *args: Arguments of a group.
            entries: The commands by name, in the order in which help lists them.
            default: The command that takes all words that are not a command; help leaves it out.
            **settings: Further arguments of a group.
        """
        super().__init__(*args, **settings)
        self.entries = entries
        self.default = default

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the commands, in the order of the help."""
        return [*self.entries, *self.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command and nothing else."""
        entry = self.entries.get(cmd_name)
        if entry is None:
            return self.commands.get(cmd_name)
        return getattr(import_module(f"surecall.cli.{entry.module}"), entry.name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or suggest one."""
        name = args[0]
        known = self.list_commands(ctx)
        if name not in known and not name.startswith("-"):
            if self.default is None:
                raise click.UsageError(
                    f"There is no command {name!r}. {self.suggest(ctx, name)}", ctx
                )
            args = [self.default, *args]
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Suggest commands, and what the default command takes."""
        found = super().shell_complete(ctx, incomplete)
        command = self.default and self.get_command(ctx, self.default)
        for parameter in command.params if command else ():
            if isinstance(parameter, click.Argument):
                found += parameter.shell_complete(ctx, incomplete)
        return found

    def suggest(self, ctx: click.Context, name: str) -> str:
        """Return where a command of this name is, or the names that are most like it."""
        for group in self.entries:
            command = self.get_command(ctx, group)
            if isinstance(command, click.Group) and name in command.list_commands(ctx):
                return f"It is `{ctx.command_path} {group} {name}`."
        return did_you_mean(name, self.list_commands(ctx))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        rows = [(name, entry.help) for name, entry in self.entries.items()]
        rows += [
            (name, command.get_short_help_str(limit=formatter.width))
            for name, command in self.commands.items()
            if not command.hidden and name != self.default
        ]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
