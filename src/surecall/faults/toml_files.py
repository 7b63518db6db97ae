"""Input from outside, read safely: JSON of an unknown shape, and TOML that users write."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from surecall.base.errors import ConfigError, JSONTextError, invalid_config
from surecall.models.config.load import read_toml
from surecall.text import decode

T = TypeVar("T")


def parse_fields(text: str | bytes) -> dict[str, Any] | None:
    """Return the object that JSON text holds, or `None` when it holds anything else."""
    try:
        value = decode(text)
    except JSONTextError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def load_table(path: str | Path, kind: type[T], where: str, hint: str) -> T:
    """Read a TOML file as a record."""
    return parse_table(read_toml(Path(path), f"the file {path}"), kind, where, hint)


def parse_table(table: Mapping[str, Any], kind: type[T], where: str, hint: str) -> T:
    """Read a table of a TOML file as a record; anything unknown in it is an error.

    Args:
        table: The table as it was read.
        kind: The record.
        where: A name of the table, for the error.
        hint: Help for the error.
    """
    try:
        return msgspec.convert(dict(table), kind)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, ConfigError):
            raise error.__cause__ from None
        raise invalid_config(f"{where} cannot be used: {error}.", hint) from error
