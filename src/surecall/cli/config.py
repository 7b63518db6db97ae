"""`surecall config`: writes, shows and checks the settings, each with its origin."""

import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import wrap
from typing import Any, Final, Literal, cast

import click
from msgspec import Struct
from msgspec.structs import asdict

from surecall.base.errors import Code, ConfigError, SurecallError, did_you_mean
from surecall.base.files import explain_write_errors, write_whole
from surecall.loop import Options, resolve_options
from surecall.models.config import SETTINGS, Config, find_keys, load_config
from surecall.models.config.load import FILE_NAME
from surecall.models.profiles import Catalog, ProviderEntry, embedded_name
from surecall.models.transport import Deadlines, RetryPolicy
from surecall.text import encode_text

from .console import ExitCode, Output, select_fields
from .flags import flag, invalid_option, output_flags, pass_output, settings_flags
from .groups import CommandEntry, LazyGroup
from .reach import reach_provider, resolve_configured
from .terminal import line_of, make_table, shown_value, styled

_COMMANDS: Final = {
    "init": CommandEntry("config", "init", "Write a commented configuration to begin with."),
    "doctor": CommandEntry("config", "doctor", "Check settings, provider, disk and versions."),
    "keys": CommandEntry("serve", "keys", "Make virtual keys of a gateway."),
}


@click.group(cls=LazyGroup, entries=_COMMANDS)
@output_flags
def config() -> None:
    """Write, show and check the configuration."""


@config.command("show")
@flag("--origin", "Show where each value came from.", to="with_origin")
@flag("--all", "Show what is not set, too.", to="show_all")
@pass_output
def show_config(output: Output, with_origin: bool, show_all: bool) -> None:
    """Show the settings in force; keys and secrets are never shown."""
    settings = load_config()
    rows = [row for row in settings.render() if show_all or row.origin != "default"]
    found = [select_fields(row, "key", "value", "origin") for row in rows]
    path = str(settings.path) if settings.path else None
    columns = {"key": "whole", "value": ""} | ({"origin": "dim"} if with_origin else {})
    shown = ([line_of(row[name]) for name in columns] for row in found)
    data = {"type": "config", "file": path, "settings": found}
    output.listing(data, columns, shown, headings=False)
    if not rows and not output.json:
        output.note("nothing is set; `surecall config init` writes a file to begin with")


@config.command("check", short_help="Check a file, or the configuration in force.")
@click.argument("file", required=False, type=click.Path(path_type=Path, readable=False))
@pass_output
def check_config(output: Output, file: Path | None) -> ExitCode:
    """Check FILE, or the configuration in force; options and presets are resolved as for a run."""
    try:
        settings = load_config(path=file)
        resolve_configured(settings, Catalog.builtin())
    except SurecallError as error:
        output.problem(error.code, error.message, error.hint)
        return ExitCode.USAGE
    path = str(settings.path) if settings.path else None
    where = path or "there is no file, and the environment"
    output.answer({"type": "config_check", "ok": True, "file": path}, f"✓ {where} is right")
    return ExitCode.OK


@config.command("schema")
@pass_output
def print_schema(output: Output) -> None:
    """Print the JSON Schema of surecall.toml, for editors."""
    from .topics import describe_config

    indent = None if output.json else 2
    output.stdout.write(encode_text(describe_config(), indent=indent) + "\n")


_SERVER: Final = "http://127.0.0.1:8000/v1"
_EXAMPLES: Final[Mapping[str, Any]] = {
    "model": "gpt-5",
    "base_url": "https://host.example/v1",
    "api_prefix": "/openai",
    "api_key_env": "MY_PROVIDER_KEY",
    "protocol": "responses",
    "provider": "openrouter",
    "preset": ["auto"],
    "profile": "default",
    "stream": True,
    "journal_dir": "journals",
    "trace_dir": "traces",
    "cache_dir": "cache",
    "evals_dir": "evals",
    "ca_file": "company.pem",
    "client_cert_file": "client.pem",
    "client_key_file": "client-key.pem",
    "probe": "auto",
    "max_probe_age_s": 604_800,
    "deadlines.connect_s": 10,
    "deadlines.first_byte_s": 60,
    "deadlines.idle_s": 60,
    "deadlines.total_s": 300,
    "retry.max_retries": 2,
    "retry.max_wait_s": 60,
    "local.n_ctx": 4096,
    "local.threads": 4,
    "local.passive_wait": True,
    "options.max_turns": 12,
    "capabilities.supports_parallel_tools": True,
    "headers.X-Title": "my application",
}
"""The example in each commented line; tables come last, as TOML has it."""


@click.command
@settings_flags("model", "base_url", "provider")
@flag("--force", "Replace a file that is there.")
@flag("--probe", "Ask the provider for its models afterwards.", to="ask")
@pass_output
def init(output: Output, *, force: bool, ask: bool, **settings: str | None) -> ExitCode:
    """Write surecall.toml here: every setting with its meaning, and those that are known.

    Keys are looked for by the names of their variables, and only the names are written.
    """
    place = Path(FILE_NAME)
    if place.exists() and not force:
        raise invalid_option(f"The file {place} is already there.", "Use --force to replace it.")
    keys = find_keys()
    values = _choose_values(settings, keys)
    # refuses what could not be used later; a file that is replaced has no say
    config = load_config(overrides=values, search=False)
    with explain_write_errors(place), write_whole(place) as file:
        file.write("\n".join(_lines(values, keys)).encode())
    variables = [name for _, name in keys]
    words = f"wrote {place}; keys found: {', '.join(variables) or 'none'}"
    output.answer({"type": "init", "file": str(place), "keys": variables, **values}, words)
    output.note(f"next: {_next_command(config)}")
    return _ask_provider(output) if ask else ExitCode.OK


def _choose_values(
    settings: Mapping[str, str | None], keys: list[tuple[ProviderEntry, str]]
) -> dict[str, str]:
    values = {key: value for key, value in settings.items() if value is not None}
    if not values and keys:
        values["provider"] = keys[0][0].id
    return values


def _next_command(config: Config) -> str:
    """Return the command that shows whether the settings work."""
    has_place = config.base_url is not None or embedded_name(config.model) is not None
    if config.model is None:
        model = "MODEL" if has_place else f"MODEL@{_SERVER}"
        return f'surecall run "hi" --model {model}'
    return 'surecall run "hi"' + ("" if has_place else f" --base-url {_SERVER}")


def _lines(values: Mapping[str, str], keys: list[tuple[ProviderEntry, str]]) -> Iterator[str]:
    yield "# Settings of surecall. Variables such as SURECALL_MODEL win over this file, flags over"
    yield "# both. `surecall config show --origin` shows what is in force."
    yield "# Keys stay in the environment; found here:"
    for entry, variable in keys:
        yield f"#   {variable} ({entry.id})"
    if not keys:
        yield "#   none; a local server may need none"
    table = ""
    for key, example in _EXAMPLES.items():
        place, _, name = key.rpartition(".")
        if place != table:
            table = place
            yield from ("", f"# [{table}]")
        setting = SETTINGS.get(key) or SETTINGS[f"{table}.*"]
        value = values.get(key)
        yield from () if table else ("",)
        yield from wrap(setting.plain_doc, 88, initial_indent="# ", subsequent_indent="# ")
        yield f"{'# ' if value is None else ''}{name} = {encode_text(value or example)}"
    yield ""


def _ask_provider(output: Output) -> ExitCode:
    config = load_config()
    if not config.base_url:
        raise invalid_option(
            "there is no provider to ask.",
            "Name one with --provider or --base-url, or write --model PROVIDER:MODEL.",
        )
    with output.waiting("asking the provider"):
        reached = asyncio.run(reach_provider(config))
    if reached.code:
        output.problem(reached.code, f"{config.base_url}: {reached.message}", reached.fix)
        return ExitCode.PROVIDER
    listed = list(reached.models)
    output.answer(
        {"type": "provider", "address": config.base_url, "models": listed},
        f"{config.base_url} {reached.message}",
    )
    if config.model:
        output.note(f"find out what the model really does: surecall probe {config.model}")
    return ExitCode.OK


Status = Literal["ok", "warn", "fail"]

_PACKAGES: Final = ("surecall", "click", "httptools", "jsonschema-rs", "msgspec", "rich")
_LIMITS: Final = (
    "max_turns",
    "max_tool_calls",
    "max_run_tokens",
    "deadline_s",
    "tool_timeout_s",
    "max_tool_args_bytes",
    "max_tool_output_bytes",
)
_MIN_FREE_BYTES: Final = 100 * 1024 * 1024
_FIRST_RELEASE_S: Final = 1_735_689_600  # 2025-01-01; a clock before it is wrong
_MAX_SKEW_S: Final = 300


class Check(Struct, frozen=True):
    """One thing that was looked at."""

    group: str
    name: str
    value: str
    status: Status = "ok"
    fix: str = ""
    code: str = ""
    origin: str = ""
    """Where the value came from, for settings."""


def check_settings(config: Config) -> Iterator[Check]:
    """Check what is set, and where it came from."""
    file = str(config.path) if config.path else "none found"
    yield Check("settings", "file", file)
    missing = {
        "model": "Pass --model, set SURECALL_MODEL, or put `model` into surecall.toml.",
        "base_url": "Pass --base-url or --provider, or set base_url or provider in surecall.toml.",
    }
    if embedded_name(config.model or "") is not None:
        missing = {}  # a model inside the process has no address and needs no key
    for row in config.render():
        if row.key == "api_key" and config.missing_keys:
            names = " or ".join(config.missing_keys)
            yield Check("settings", row.key, f"{names} not set", "fail", config.describe_key())
        elif row.key == "api_key" and row.value == "-" and missing:
            yield Check("settings", row.key, "not set, and none is known to be needed")
        elif row.key in missing and row.value == "-":
            origin = "" if row.origin == "default" else row.origin
            yield Check("settings", row.key, "not set", "warn", missing[row.key], origin=origin)
        elif row.origin != "default":
            yield Check("settings", row.key, row.value, origin=row.origin)


def check_options(config: Config) -> Iterator[Check]:
    """Check the options in force, and the limits that follow from them."""
    try:
        resolved = resolve_configured(config, Catalog.builtin())
    except SurecallError as error:
        yield Check("options", "options", error.message, "fail", error.hint or "", error.code)
        resolved = resolve_options({})
    default = Options()
    for name, value in asdict(resolved.options).items():
        if value != getattr(default, name):
            origin = _origins_of(name, resolved.origins)
            names = cast("tuple[str, ...]", value) if isinstance(value, tuple) else ()
            shown = ", ".join(names) or shown_value(value)
            yield Check("options", name, shown, origin=origin)
    for name in _LIMITS:
        value = getattr(resolved.options, name)
        yield Check("limits", name, "no limit" if value is None else str(value))
    yield Check("limits", "deadlines", _pairs(Deadlines(**config.deadlines)))
    yield Check("limits", "retry", _pairs(RetryPolicy(**config.retry)))


def check_provider(config: Config) -> Iterator[Check]:
    """Check whether the provider answers; nothing is sent when none is set."""
    if not config.base_url or embedded_name(config.model or "") is not None:
        return
    if config.missing_keys:
        yield Check("provider", config.base_url, "not asked: there is no key for it", "warn")
        return
    reached = asyncio.run(reach_provider(config))
    status: Status = "fail" if reached.code else "ok"
    yield Check("provider", config.base_url, reached.message, status, reached.fix, reached.code)
    if config.model in reached.models:
        yield Check("provider", "model", f"{config.model} is in its list")
    elif config.model and reached.models:
        close = did_you_mean(config.model, reached.models)
        yield Check("provider", "model", f"{config.model} is not in its list", "warn", close)
    if reached.clock_skew_s is not None and abs(reached.clock_skew_s) > _MAX_SKEW_S:
        differs = f"differs from the provider's by {reached.clock_skew_s:.0f} s"
        yield Check("provider", "clock", differs, "warn", "Set the clock of this machine.")


def check_disk(config: Config | None) -> Iterator[Check]:
    """Check that files can be written where runs leave them."""
    places: list[tuple[str, Path]] = []
    try:
        places.append(("current folder", Path.cwd()))
    except OSError as error:
        yield Check("disk", "current folder", str(error), "fail", "Change to another folder.")
    if config is not None:
        named = (("journal_dir", config.journal_dir), ("trace_dir", config.trace_dir))
        places += [(name, place) for name, place in named if place is not None]
    for name, place in places:
        yield _check_folder(name, place)


def _check_folder(name: str, place: Path) -> Check:
    existing = next(folder for folder in (place, *place.absolute().parents) if folder.exists())
    try:
        with tempfile.NamedTemporaryFile(dir=existing, prefix=".surecall-") as file:
            file.write(b"surecall")
            file.flush()
            os.fsync(file.fileno())
        free = shutil.disk_usage(existing).free
    except OSError as error:
        problem, fix = f"{place}: {error.strerror or error}", "Choose a folder that can be written."
        return Check("disk", name, problem, "fail", fix, Code.JOURNAL_WRITE_FAILED)
    found = f"{place}: can be written, {free / 1e9:.1f} GB free"
    if free < _MIN_FREE_BYTES:
        return Check("disk", name, found, "warn", "Free some space.")
    return Check("disk", name, found)


def check_system() -> Iterator[Check]:
    """Check Python, the packages and the clock."""
    from importlib.metadata import PackageNotFoundError, version

    yield Check("system", "python", sys.version.split()[0])
    for package in _PACKAGES:
        try:
            yield Check("system", package, version(package))
        except PackageNotFoundError:
            yield Check("system", package, "not installed", "fail", "Install surecall again.")
    now = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    if time.time() > _FIRST_RELEASE_S:
        yield Check("system", "clock", now)
    else:
        fix = "Set the clock; certificates cannot be checked with a wrong one."
        yield Check("system", "clock", now, "fail", fix)


def _pairs(settings: Struct) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in asdict(settings).items())


def _origins_of(name: str, origins: dict[str, str]) -> str:
    below = [origin for key, origin in origins.items() if key.startswith(f"{name}.")]
    found = dict.fromkeys(below or [origins[name]])
    return ", ".join(origin for origin in found if origin not in {"default", "caller"})


_MARKS: Final = {"ok": ("✓ ok", "green"), "warn": ("! warn", "yellow"), "fail": ("✗ fail", "red")}


@click.command
@settings_flags("model", "base_url", "provider", "protocol")
@flag("--offline", "Do not ask the provider.")
@pass_output
def doctor(output: Output, offline: bool, **settings: str | None) -> ExitCode:
    """Check settings, provider, disk and versions.

    Every value is shown with its origin; a key is never shown, only the variable that holds it.
    The provider, if one is set, is asked for its list of models.
    """
    checks: list[Check] = []
    config = _load(checks, settings)
    if config is not None:
        checks += [*check_settings(config), *check_options(config)]
        if not offline:
            with output.waiting("asking the provider"):
                checks += check_provider(config)
    checks += [*check_disk(config), *check_system()]
    code = _verdict(checks)
    if output.json:
        output.data({"type": "doctor", "ok": code == 0, "checks": checks})
    else:
        _show(output, checks)
    return code


def _load(checks: list[Check], overrides: dict[str, str | None]) -> Config | None:
    try:
        return load_config(overrides=overrides)
    except ConfigError as error:
        fix = error.hint or f"surecall docs {error.code}"
        checks.append(Check("settings", "settings", error.message, "fail", fix, error.code))
        return None


def _verdict(checks: list[Check]) -> ExitCode:
    failed = {check.group for check in checks if check.status == "fail"}
    if not failed:
        return ExitCode.OK
    return ExitCode.PROVIDER if failed == {"provider"} else ExitCode.USAGE


def _show(output: Output, checks: list[Check]) -> None:
    console = output.page()
    for group in dict.fromkeys(check.group for check in checks):
        console.print(group, style="bold")
        table = make_table({"mark": "whole", "name": "whole", "value": ""}, headings=False)
        table.columns[0].width = 8
        for check in checks:
            if check.group != group:
                continue
            mark, style = _MARKS[check.status]
            value = line_of(f"{check.code}  {check.value}" if check.code else check.value)
            origin = f"  {line_of(check.origin)}" if check.origin else ""
            name = line_of(check.name)
            table.add_row(styled((f"  {mark}", style)), name, styled(value, (origin, "dim")))
            if check.fix:
                table.add_row("", styled(("fix", "dim")), line_of(check.fix))
        console.print(table)
    failed = sum(check.status == "fail" for check in checks)
    warned = sum(check.status == "warn" for check in checks)
    console.print()
    mark, style = _MARKS["fail" if failed else "warn" if warned else "ok"]
    counts = f"  {failed} failed, {warned} warnings, {len(checks)} checked"
    console.print(styled((mark, style), counts))
