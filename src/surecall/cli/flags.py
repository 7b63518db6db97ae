"""The flags every command has, before or after its name."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from .output import Output

__all__ = ["output_flags"]

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def output_flags(command: Decorated) -> Decorated:
    """Add `--json`, `--quiet`, `--color` and `--debug` to a command or group."""
    flags = (
        _flag("--debug", help="Show tracebacks of internal errors."),
        _flag(
            "--color",
            is_flag=False,
            type=click.Choice(["auto", "always", "never"]),
            help="Colours; auto honours NO_COLOR, FORCE_COLOR and TERM.",
        ),
        _flag("-q", "--quiet", help="No progress on standard error."),
        _flag("--json", help="Write JSON to standard output, one document a line."),
    )
    for flag in flags:
        command = flag(command)
    return command


def _flag(*names: str, is_flag: bool = True, **settings: Any) -> Callable[[Decorated], Decorated]:
    return click.option(
        *names,
        is_flag=is_flag,
        default=None,
        expose_value=False,
        is_eager=True,
        callback=_note,
        **settings,
    )


def _note(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    output = context.find_root().obj
    if value is not None and isinstance(output, Output) and parameter.name is not None:
        setattr(output, parameter.name, value)
