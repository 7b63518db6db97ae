"""One value at a time: is the key known, and can the value be used?"""

import math
import os
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NamedTuple, cast
from urllib.parse import urlsplit

import msgspec

from surecall.errors import Code, ConfigError, did_you_mean
from surecall.protocols import PROTOCOLS
from surecall.redaction import redact

from .settings import FREE_TABLES, PLAIN_KEYS, SECRET_KEYS, SETTINGS, TABLES, names_a_secret

__all__ = ["PREFIX", "Found", "invalid_config", "put_setting", "unknown_key"]

PREFIX: Final = "SURECALL_"

_ALL_SETTINGS = "docs/reference/settings.md has them all."
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")


class Found(NamedTuple):
    """A value and where it came from."""

    value: Any
    origin: str


def put_setting(found: dict[str, Found], key: str, value: Any, origin: str, base: Path) -> None:
    """Check one value and keep it, replacing a weaker one; `base` is what paths are relative to."""
    table, _, name = key.partition(".")
    if _holds_a_secret(table, name, origin):
        raise invalid_config(
            f"{key} (from {origin}) would put a secret into the configuration.",
            "Keep the key in a variable and name that variable with api_key_env.",
        )
    if isinstance(value, os.PathLike):
        value = os.fspath(cast("os.PathLike[str]", value))
    known = SETTINGS.get(f"{table}.*" if name and table in FREE_TABLES else key)
    if key in TABLES:
        raise invalid_config(f"{key} (from {origin}) must be a table.")
    if known is None:
        raise unknown_key(key, origin)
    try:
        value = msgspec.convert(value, known.type)
    except msgspec.ValidationError as error:
        raise invalid_config(f"{key} (from {origin}) must be {known.expected}: {error}.") from error
    if isinstance(value, float) and not math.isfinite(value):
        raise invalid_config(f"{key} (from {origin}) must be {known.expected}, and finite.")
    check = _CHECKS.get(table if table == "headers" else key)
    found[key] = Found(check(key, value, origin, base) if check else value, origin)


def _holds_a_secret(table: str, name: str, origin: str) -> bool:
    if table == "headers" or (not name and origin.startswith(PREFIX)):
        return False
    leaf = (name or table).rpartition(".")[2]
    return leaf.lower().replace("-", "_") in SECRET_KEYS


def _check_url(key: str, value: str, origin: str, _base: Path) -> str:
    try:
        parts = urlsplit(value)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise invalid_config(f"{key} (from {origin}) is not an address.") from None
    if not usable or not value.isprintable() or " " in value:
        raise invalid_config(f"{key} (from {origin}) must be an address such as https://host/v1.")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise invalid_config(
            f"{key} (from {origin}) must have no user, password, query or fragment.",
            "Keep the key in a variable and name that variable with api_key_env.",
        )
    return value


def _check_variable(key: str, value: str, origin: str, _base: Path) -> str:
    if not _VARIABLE_NAME.fullmatch(value) or redact(value) != value:
        raise invalid_config(
            f"{key} (from {origin}) must be the name of a variable, not a key itself.",
            "For example: api_key_env = 'MY_PROVIDER_KEY'.",
        )
    return value


def _check_protocol(key: str, value: str, origin: str, _base: Path) -> str:
    if value not in PROTOCOLS:
        raise invalid_config(
            f"{key} (from {origin}) is {value!r}, which is no wire format.",
            did_you_mean(value, PROTOCOLS),
        )
    return value


def _check_preset(_key: str, value: str | list[str], _origin: str, _base: Path) -> tuple[str, ...]:
    names = value.split(",") if isinstance(value, str) else value
    return tuple(name.strip() for name in names if name.strip())


def _check_folder(_key: str, value: str, _origin: str, base: Path) -> Path:
    return base.absolute() / Path(value).expanduser()


def _check_header(key: str, value: str, origin: str, _base: Path) -> str:
    name = key.partition(".")[2]
    if not _HEADER_NAME.fullmatch(name) or not value.isprintable() or not value.isascii():
        raise invalid_config(f"{key} (from {origin}) is not a usable header.")
    if names_a_secret(name) and not origin.startswith(PREFIX) and origin != "flag":
        raise invalid_config(
            f"{key} (from {origin}) would put a secret into the configuration.",
            f"Use api_key_env, or the variable {PREFIX}HEADERS__{name.upper().replace('-', '_')}.",
        )
    return value


_CHECKS: Final[Mapping[str, Callable[[str, Any, str, Path], Any]]] = {
    "base_url": _check_url,
    "api_key_env": _check_variable,
    "preset": _check_preset,
    "protocol": _check_protocol,
    "cache_dir": _check_folder,
    "evals_dir": _check_folder,
    "journal_dir": _check_folder,
    "trace_dir": _check_folder,
    "headers": _check_header,
}


def invalid_config(message: str, hint: str | None = None) -> ConfigError:
    """Build the error for a value that cannot be used."""
    return ConfigError(Code.INVALID_CONFIG, message, hint=hint)


def unknown_key(key: str, origin: str) -> ConfigError:
    """Build the error for a key there is not, with the closest one there is."""
    table, _, name = key.partition(".")
    if origin.startswith(PREFIX):
        known = [PREFIX + item.upper().replace(".", "__") for item in (*PLAIN_KEYS, "api_key")]
        close = get_close_matches(origin, known, n=2)
        hint = f"Did you mean {' or '.join(close)}?" if close else _ALL_SETTINGS
    elif name and table in TABLES:
        names = [item.partition(".")[2] for item in PLAIN_KEYS if item.startswith(f"{table}.")]
        hint = did_you_mean(name, names)
    else:
        hint = did_you_mean(key, [*(k for k in PLAIN_KEYS if "." not in k), *TABLES])
    return ConfigError(
        Code.UNKNOWN_CONFIG_KEY, f"There is no setting {key!r} (from {origin}).", hint=hint
    )
