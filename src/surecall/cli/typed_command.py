"""A command as it was typed, to be kept with what it made."""

import shlex
from collections.abc import Collection
from typing import Any

import click
from click.core import ParameterSource

__all__ = ["command_text", "split_names"]


def command_text(context: click.Context, name: str, *, leave_out: Collection[str]) -> str:
    """Return the command as it was typed, without what is about this time only."""
    words = ["surecall", *name.split()]
    for parameter in context.command.params:
        field = parameter.name or ""
        source = context.get_parameter_source(field)
        value: Any = context.params.get(field)
        if source is not ParameterSource.COMMANDLINE or field in leave_out or not value:
            continue
        flag = [] if isinstance(parameter, click.Argument) else [max(parameter.opts, key=len)]
        for item in value if isinstance(value, tuple) else (value,):  # pyright: ignore[reportUnknownVariableType] - whatever click read
            words += [*flag, str(item)]  # pyright: ignore[reportUnknownArgumentType]
    return shlex.join(words)


def split_names(text: str | None) -> tuple[str, ...] | None:
    """Return the names of a list with commas, each once; None when there are none."""
    names = [name.strip() for name in (text or "").split(",") if name.strip()]
    return tuple(dict.fromkeys(names)) or None
