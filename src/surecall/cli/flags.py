"""Parts that commands share: flags, values of options, and the command as it was typed."""

import errno
import os
import re
import shlex
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import click
from click.core import ParameterSource

from surecall.base.errors import Code, ConfigError

from .console import Output
from .suggestions import (
    Completer,
    complete_files,
    complete_folders,
    complete_models,
    complete_profiles,
    complete_protocols,
    complete_providers,
    complete_runs,
)

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

_SETTINGS: Final = {
    "model": "Model to ask.",
    "base_url": "Address of the provider.",
    "provider": "Name of the provider in the catalog.",
    "protocol": "Wire format; by default that of the provider.",
    "profile": "Sampling profile.",
}

_COMPLETERS: Final[Mapping[str, Completer]] = {
    "model": complete_models,
    "provider": complete_providers,
    "protocol": complete_protocols,
    "profile": complete_profiles,
}

_COMPLETED: Final[Mapping[str, Completer]] = {
    **dict.fromkeys(("FILE", "FILE.py", "FILE|URL", "PATH"), complete_files),
    "DIR": complete_folders,
    "RUN": complete_runs,
}
"""Completers of options by the word that stands for their value."""


def flag(
    spec: str,
    words: str,
    *,
    to: str | None = None,
    choices: Sequence[str] = (),
    shown: Any = None,
    complete: Completer | None = None,
    **settings: Any,
) -> Callable[[Decorated], Decorated]:
    """Add an option, written as help shows it: `flag("-o --out DIR", "Folder to write to.")`.

    Args:
        spec: Its names, and the word that stands for its value; files, folders and runs are
            completed. Without that word and without any settings it is a switch.
        words: Its line in the help.
        to: The parameter of the command that gets the value, if it has another name.
        choices: The values that it takes.
        shown: Its default, which help shows.
        complete: The suggestions of a shell.
        **settings: Further arguments of `click.option`.
    """
    names = spec.split()
    metavar = None if names[-1].startswith("-") else names.pop()
    if choices:
        settings["type"] = click.Choice(choices)
    if shown is not None:
        settings |= {"default": shown, "show_default": True}
    if metavar is None and settings.keys().isdisjoint({"type", "default", "multiple"}):
        settings["is_flag"] = True
    else:
        completer = complete or _COMPLETED.get(metavar or "")
        settings |= {"metavar": metavar, "shell_complete": completer}
    return click.option(*names, *((to,) if to else ()), help=words, **settings)


store_flag: Final = flag("--store FILE", "File that holds the runs.", to="store_file")
undecided_flag: Final = flag(
    "--undecided",
    "Whether a gate that the trials cannot decide stops the build. [default: pass]",
    choices=("pass", "fail"),
)
max_errors_flag: Final = flag(
    "--max-errors N|SHARE",
    "Endpoint errors allowed: 3, 0.02 or 2%; with more, no gate passes and no model is "
    "named. [default: 2%]",
)


def place_flag(what: str, default: str) -> Callable[[Decorated], Decorated]:
    """Add `--store`: the file or server that holds what a gateway or a run recorded."""
    words = f"File or PostgreSQL address that holds the {what}."
    return flag("--store FILE|URL", words, to="place", shown=default)


_COLORS: Final = click.Choice(["auto", "always", "never"])


def pass_to_commands(context: click.Context, name: str) -> None:
    """Let what a group was given for a flag be the default of the same flag of its commands."""
    assert isinstance(context.command, click.Group)
    given = {name: context.params[name]}
    context.default_map = dict.fromkeys(context.command.commands, given)


def invalid_option(message: str, hint: str | None = None) -> ConfigError:
    """Build the error for a value that a command cannot use."""
    return ConfigError(Code.INVALID_OPTION, message, hint=hint)


def reason_of(error: OSError) -> str:
    """Return what the system says about an address; asyncio repeats the address, or says less."""
    number = error.errno or 0
    if number > 0:
        return os.strerror(number)
    return error.strerror or os.strerror(errno.EADDRNOTAVAIL)  # Python 3.13 drops the number


def count_flag(
    name: str, words: str, default: int | None = None
) -> Callable[[Decorated], Decorated]:
    """Add a flag that takes a whole number from 1 on; a default is shown."""
    shows = default is not None
    return flag(name, words, type=click.IntRange(min=1), default=default, show_default=shows)


def settings_flags(*names: str) -> Callable[[Decorated], Decorated]:
    """Add flags for settings; the command gets each value under the name of its setting."""

    def add(command: Decorated) -> Decorated:
        for name in reversed(names):
            words = f"{_SETTINGS[name]} [SURECALL_{name.upper()}]"
            option = f"--{name.replace('_', '-')}"
            added = flag(option, words, type=str, complete=_COMPLETERS.get(name))
            command = added(command)
        return command

    return add


def output_flags(command: Decorated) -> Decorated:
    """Add `--json`, `--quiet`, `--color` and `--debug` to a command or group."""
    for names, words, kind in (
        (("--debug",), "Show tracebacks of internal errors.", None),
        (("--color",), "Colours; auto honours NO_COLOR, FORCE_COLOR and TERM.", _COLORS),
        (("-q", "--quiet"), "Show no progress on standard error.", None),
        (("--json",), "Write JSON to standard output, one document per line.", None),
    ):
        command = click.option(
            *names,
            type=kind,
            is_flag=kind is None,
            default=None,
            expose_value=False,
            is_eager=True,
            callback=_note,
            help=words,
        )(command)
    return command


def pass_output(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the flags of `output_flags`, and give the command its output as the first argument."""
    return output_flags(click.pass_obj(command))


def _note(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    output = context.find_root().obj
    if value is not None and isinstance(output, Output) and parameter.name is not None:
        setattr(output, parameter.name, value)


def parse_options(items: Iterable[str]) -> dict[str, Any]:
    """Return the options; a dotted key such as `request_overrides.temperature` is a place inside.

    Raises:
        ConfigError: An item has no `=`, or two of them contradict each other.
    """
    from surecall.models.config.load import parse_literal

    options: dict[str, Any] = {}
    for item in items:
        key, equals, raw = item.partition("=")
        parts = key.strip().split(".")
        if not equals or not all(parts):
            raise invalid_option(
                f"{item!r} is not of the form KEY=VALUE.",
                "For example --option max_turns=4 or --option request_overrides.temperature=0.",
            )
        place: Any = options
        for part in parts[:-1]:
            if not isinstance(place.setdefault(part, {}), dict):
                raise invalid_option(f"{key} is given, but {part} already has a value.")
            place = place[part]
        place[parts[-1]] = parse_literal(raw.strip())
    return options


def check_options(options: Mapping[str, Any]) -> None:
    """Raise when an option, its value or a transform that it names cannot be used."""
    from surecall.loop import resolve_options
    from surecall.loop.resolve import make_chain
    from surecall.loop.session import refuse_unknown
    from surecall.models.profiles import merge_presets
    from surecall.reading.transforms import TransformRegistry

    _refuse_settings(options)
    refuse_unknown(options)
    merged = merge_presets([("flag", options)])
    resolved = resolve_options(merged.values, merged.origins)
    make_chain(TransformRegistry.builtin(), resolved.options)


def _refuse_settings(options: Mapping[str, Any]) -> None:
    """Refuse what is set in another way than by `--option`, and say how."""
    from surecall.loop.options import CallerArguments
    from surecall.loop.session import RunArguments, SessionArguments

    command = click.get_current_context().command
    flags = {flag for parameter in command.params for flag in parameter.opts}
    elsewhere = SessionArguments.__optional_keys__ | RunArguments.__optional_keys__
    for name in options.keys() & (elsewhere - CallerArguments.__optional_keys__):
        flag = f"--{name.replace('_', '-')}"
        fitting = [each for each in (flag, flag.removesuffix("s"), f"{flag}s") if each in flags]
        hint = f"Use {fitting[0]}." if fitting else "It cannot be set on the command line."
        if name == "api_key":
            hint = "Keep the key in the variable SURECALL_API_KEY, or in the one of api_key_env."
        raise ConfigError(Code.UNKNOWN_OPTION, f"{name} is not an option of a run.", hint=hint)


def command_text(name: str, *, leave_out: Collection[str]) -> str:
    """Return the command as it was typed, without the flags that concern this time only."""
    context = click.get_current_context()
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


_AGE: Final = re.compile(r"([0-9]{1,9})([smhdw])")
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def parse_moment(_context: Any, parameter: click.Parameter, text: str | None) -> float | None:
    """Return the moment that a date, a time or an age such as 2h names."""
    if text is None:
        return None
    age = _AGE.fullmatch(text)
    if age is not None:
        return time.time() - int(age[1]) * _UNITS[age[2]]
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=moment.tzinfo or UTC)
        return moment.timestamp()
    except (ValueError, OverflowError) as error:
        raise invalid_option(
            f"--{parameter.name} {text!r} is neither a time nor an age.",
            "For example 2026-11-15, 2026-11-15T12:30, 45m, 2h or 7d.",
        ) from error
