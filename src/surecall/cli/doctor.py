"""`surecall doctor`: what is set, what works, and what to do about the rest."""

from typing import Final

import click
import msgspec

from surecall.config import Config, load_config
from surecall.errors import ConfigError

from .checks import (
    Check,
    check_disk,
    check_options,
    check_provider,
    check_settings,
    check_system,
)
from .flags import output_flags
from .output import ExitCode, Output
from .terminal import line_of

__all__ = ["doctor"]

_MARKS: Final = {"ok": ("✓ ok", "green"), "warn": ("! warn", "yellow"), "fail": ("✗ fail", "red")}


@click.command
@click.option("--model", help="Model to ask. [SURECALL_MODEL]")
@click.option("--base-url", help="Address of the provider. [SURECALL_BASE_URL]")
@click.option("--offline", is_flag=True, help="Do not ask the provider.")
@output_flags
@click.pass_obj
def doctor(output: Output, model: str | None, base_url: str | None, offline: bool) -> ExitCode:
    """Check settings, provider, disk and versions.

    Every value is shown with where it came from; keys are never shown, only which variable has
    one. The provider is asked for its list of models, if one is set.
    """
    checks: list[Check] = []
    config = _load(checks, {"model": model, "base_url": base_url})
    if config is not None:
        checks += [*check_settings(config), *check_options(config)]
        if not offline:
            checks += check_provider(config)
    checks += [*check_disk(config), *check_system()]
    code = _verdict(checks)
    if output.json:
        output.data(
            {"type": "doctor", "ok": code == 0, "checks": [msgspec.to_builtins(c) for c in checks]}
        )
    else:
        _show(output, checks)
    return code


def _load(checks: list[Check], overrides: dict[str, str | None]) -> Config | None:
    try:
        return load_config(overrides=overrides)
    except ConfigError as error:
        failed = Check(
            group="settings",
            name="settings",
            value=error.message,
            status="fail",
            code=error.code,
            fix=error.hint or f"surecall explain {error.code}",
        )
        checks.append(failed)
        return None


def _verdict(checks: list[Check]) -> ExitCode:
    failed = {check.group for check in checks if check.status == "fail"}
    if not failed:
        return ExitCode.OK
    return ExitCode.PROVIDER if failed == {"provider"} else ExitCode.USAGE


def _show(output: Output, checks: list[Check]) -> None:
    console = output.page()
    from rich.table import Table
    from rich.text import Text

    for group in dict.fromkeys(check.group for check in checks):
        console.print(Text(group, "bold"))
        table = Table.grid(padding=(0, 2))
        table.add_column(width=8, no_wrap=True)
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for check in checks:
            if check.group != group:
                continue
            mark, style = _MARKS[check.status]
            value = Text(line_of(f"{check.code}  {check.value}" if check.code else check.value))
            if check.origin:
                value.append(f"  {line_of(check.origin)}", "dim")
            table.add_row(Text(f"  {mark}", style), line_of(check.name), value)
            if check.fix:
                table.add_row("", Text("fix", "dim"), line_of(check.fix))
        console.print(table)
    failed = sum(check.status == "fail" for check in checks)
    warned = sum(check.status == "warn" for check in checks)
    console.print()
    mark, style = _MARKS["fail" if failed else "warn" if warned else "ok"]
    console.print(
        Text.assemble(
            (mark, style), f"  {failed} failed, {warned} to look at, {len(checks)} checked"
        )
    )
