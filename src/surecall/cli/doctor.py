"""`surecall config doctor`: what is looked at, and what to do about each finding."""

import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, cast

import click
from msgspec import Struct
from msgspec.structs import asdict

from surecall.base.errors import Code, ConfigError, SurecallError, did_you_mean
from surecall.loop import Options, resolve_options
from surecall.models.config import Config, load_config
from surecall.models.profiles import Catalog, embedded_name
from surecall.models.transport import Deadlines, RetryPolicy

from .flags import pass_output, settings_flags
from .output import ExitCode, Output
from .reach import reach_provider, resolve_configured
from .terminal import line_of, make_table, shown_value, styled

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
@click.option("--offline", is_flag=True, help="Do not ask the provider.")
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
