"""What comes from outside, read safely: JSON of an unknown shape, and TOML that users write."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec

from surecall.errors import Code, ConfigError, JSONTextError
from surecall.jsontext import decode

T = TypeVar("T")


def parse_fields(text: str | bytes) -> dict[str, Any] | None:
    """Return the object that JSON text holds, or `None` when it holds anything else."""
    try:
        value = decode(text)
    except JSONTextError:
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file, or say what is wrong with it."""
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise ConfigError(
            Code.INVALID_CONFIG, f"the file {path} cannot be read: {error.strerror or error}."
        ) from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            Code.INVALID_CONFIG, f"the file {path} is not valid TOML: {error}."
        ) from error


def parse_table(table: Mapping[str, Any], kind: type[T], where: str, hint: str) -> T:
    """Read a table of a TOML file as a record; anything unknown in it is an error.

    Args:
        table: What was read.
        kind: The record.
        where: What the table is, for the error.
        hint: What the record may hold, for the error.
    """
    try:
        return msgspec.convert(dict(table), kind)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, ConfigError):
            raise error.__cause__ from None
        raise ConfigError(
            Code.INVALID_CONFIG,
            f"{where} cannot be used: {error}.",
            hint=hint,
        ) from error
