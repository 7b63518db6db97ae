"""All sources put together."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surecall.redaction import Secret

from .checks import Found, put_setting
from .record import KEY_VARIABLES, Config, key_variables, parse_key
from .sources import find_file, read_file, read_table, read_variables

__all__ = ["know_keys", "list_variables", "load_config"]

_environment_keys: dict[str, Secret] = {}
"""Held, so that they are taken out of everything that is shown or kept."""


def know_keys(environ: Mapping[str, str] | None = None) -> None:
    """Make the keys of providers that stand in the environment known as secrets."""
    variables = os.environ if environ is None else environ
    for name in KEY_VARIABLES:
        value = variables.get(name, "").strip()
        if value and (name not in _environment_keys or _environment_keys[name].reveal() != value):
            _environment_keys[name] = Secret(value)


def load_config(
    *,
    cwd: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
    path: str | os.PathLike[str] | None = None,
    search: bool = True,
) -> Config:
    """Read all sources and return the settings in force.

    Args:
        cwd: Folder where the search for a file begins; the current one by default.
        environ: Variables to read; those of the process by default.
        overrides: Values that win, by dotted key or as tables; `None` means not given.
        path: The file to read, instead of searching for one.
        search: Whether to search for a file when no path is given.

    Raises:
        ConfigError: `UNKNOWN_CONFIG_KEY` or `INVALID_CONFIG`, naming key and origin.
    """
    folder = Path(cwd) if cwd is not None else Path.cwd()
    variables = os.environ if environ is None else environ
    found: dict[str, Found] = {}
    source = read_file(folder / Path(path)) if path is not None else None
    if source is None and search:
        source = find_file(folder)
    if source:
        read_table(found, source.table, source.origins_from(folder), base=source.path.parent)
    read_variables(found, variables, folder)
    given = dict(overrides or {})
    key_given = given.pop("api_key", None)
    read_table(found, given, lambda _key: "flag", base=folder)
    if "base_url" not in found and variables.get("OPENAI_BASE_URL", "").strip():
        url = variables["OPENAI_BASE_URL"].strip()
        put_setting(found, "base_url", url, "OPENAI_BASE_URL", folder)
    if "cache_dir" not in found and Path(variables.get("XDG_CACHE_HOME", "").strip()).is_absolute():
        place = str(Path(variables["XDG_CACHE_HOME"].strip()) / "surecall")
        put_setting(found, "cache_dir", place, "XDG_CACHE_HOME", folder)
    if "local.passive_wait" not in found and variables.get("OMP_WAIT_POLICY", "").strip():
        put_setting(found, "local.passive_wait", False, "OMP_WAIT_POLICY", folder)  # noqa: FBT003
    key, key_origin = _find_key(found, variables, key_given)
    return Config.of(
        found,
        api_key=key,
        api_key_origin=key_origin,
        path=source.path if source else None,
    )


def _find_key(
    found: Mapping[str, Found], variables: Mapping[str, str], given: Any
) -> tuple[Secret | None, str]:
    if given is not None:
        return parse_key(given, "flag"), "flag"
    if "api_key_env" in found:
        name = str(found["api_key_env"].value)
        key = parse_key(variables.get(name, ""), name)
        return key, name if key else f"{name} (not set)"
    for name in key_variables(found.get("base_url")):
        if key := parse_key(variables.get(name, ""), name):
            return key, name
    return None, "default"


def list_variables(prefix: str, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables that begin with a prefix, without it; blank ones are left out.

    Args:
        prefix: What their names begin with.
        environ: Variables to read; those of the process by default.
    """
    return {
        name.removeprefix(prefix): value.strip()
        for name, value in (os.environ if environ is None else environ).items()
        if name.startswith(prefix) and value.strip()
    }
