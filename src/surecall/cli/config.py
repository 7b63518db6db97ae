"""`surecall config`: what is set and where it came from, whether it is right, and what could be."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, get_type_hints

import click

from surecall.base.errors import SurecallError
from surecall.models.config import SETTINGS, load_config

from .flags import output_flags, pass_output
from .groups import CommandEntry, LazyGroup
from .output import ExitCode, Output, select_fields
from .terminal import line_of, make_table

_FREE: Final = ".*"


_COMMANDS: Final = {
    "init": CommandEntry("init", "init", "Write a commented configuration to begin with."),
    "doctor": CommandEntry("doctor", "doctor", "Check settings, provider, disk and versions."),
    "keys": CommandEntry("serve", "keys", "Make virtual keys of a gateway."),
}


@click.group(cls=LazyGroup, entries=_COMMANDS)
@output_flags
def config() -> None:
    """Write, show and check the configuration."""


@config.command("show")
@click.option("--origin", "with_origin", is_flag=True, help="Show where each value came from.")
@click.option("--all", "show_all", is_flag=True, help="Show what is not set, too.")
@pass_output
def show_config(output: Output, with_origin: bool, show_all: bool) -> None:
    """Show the settings in force; keys and secrets are never shown."""
    settings = load_config()
    rows = [row for row in settings.render() if show_all or row.origin != "default"]
    if output.json:
        found = [select_fields(row, "key", "value", "origin") for row in rows]
        path = str(settings.path) if settings.path else None
        output.data({"type": "config", "file": path, "settings": found})
        return
    columns = {"key": "whole", "value": ""} | ({"origin": "dim"} if with_origin else {})
    table = make_table(columns, headings=False)
    for row in rows:
        origin = (line_of(row.origin),) if with_origin else ()
        table.add_row(line_of(row.key), line_of(row.value), *origin)
    output.page().print(table)
    if not rows:
        output.note("nothing is set; `surecall config init` writes a file to begin with")


@config.command("check", short_help="Check a file, or the configuration in force.")
@click.argument("file", required=False, type=click.Path(path_type=Path, readable=False))
@pass_output
def check_config(output: Output, file: Path | None) -> ExitCode:
    """Check FILE, or the configuration in force; options and presets are resolved as for a run."""
    from surecall.models.profiles import Catalog

    from .reach import resolve_configured

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
    from surecall.text import encode_text

    indent = None if output.json else 2
    output.stdout.write(encode_text(describe_config(), indent=indent) + "\n")


def describe_config() -> dict[str, Any]:
    """Return the JSON Schema of a configuration file."""
    root: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "surecall.toml",
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }
    for key, setting in SETTINGS.items():
        table, _, name = key.partition(".")
        described = _describe_type(setting.type) | {"description": setting.doc}
        if setting.default is not None:
            described["default"] = setting.default
        if not name:
            root["properties"][key] = described
        elif key.endswith(_FREE):
            root["properties"][table] = _describe_free_table(table, described)
        else:
            inner = root["properties"].setdefault(
                table, {"type": "object", "properties": {}, "additionalProperties": False}
            )
            inner["properties"][name] = described
    return root


def _describe_free_table(table: str, described: Mapping[str, Any]) -> dict[str, Any]:
    if table == "headers":
        return {"type": "object", "additionalProperties": dict(described)}
    from surecall.cli.topics import describe_fields
    from surecall.loop import Options
    from surecall.loop.options import CallerArguments
    from surecall.models.profiles import Capabilities, Findings

    records = (Options, CallerArguments) if table == "options" else (Capabilities, Findings)
    fields: dict[str, Any] = {}
    for record in records:
        kinds = get_type_hints(record)
        for name, words in describe_fields(record).items():
            fields[name] = _describe_type(kinds[name]) | {"description": words}
    return {"type": "object", "properties": fields, "additionalProperties": False}


def _describe_type(kind: Any) -> dict[str, Any]:
    from surecall.schema import infer_schema

    return {} if kind is Any else infer_schema(kind)
