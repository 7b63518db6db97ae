"""The settings in force: read from all sources, changed, and shown."""

import os
from collections.abc import Mapping
from functools import cache, lru_cache
from os.path import expanduser
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, cast
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from surecall.base.errors import invalid_config
from surecall.base.redaction import Secret, redact
from surecall.models.client.network import Network, is_loopback
from surecall.models.profiles import embedded_name
from surecall.text import encode_text

from .settings import (
    FREE_TABLES,
    PLAIN_KEYS,
    PREFIX,
    SECRET_KEYS,
    Found,
    names_a_secret,
    put_setting,
    variable_of,
)
from .sources import (
    KEY_VARIABLE,
    FileSource,
    find_file,
    keys_at,
    place_model,
    provider_keys,
    read_file,
    read_table,
    read_variables,
)

_DIRECT: Final = Network()
_NO_KEY: Final = Found(None, "default")
_OTHER_VARIABLES: Final = (
    *("HOME", "OMP_WAIT_POLICY", "OPENAI_BASE_URL", "USERPROFILE", "XDG_CACHE_HOME"),
)
_PROXIES: Final = ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY")
_NETWORK_VARIABLES: Final = (
    *_PROXIES,
    *(name.lower() for name in _PROXIES),
    *("REQUEST_METHOD", "SSL_CERT_DIR", "SSL_CERT_FILE"),
)
"""What is read besides variables of ours; the home is where the cache is by default."""


class Deadlines(Struct, frozen=True, kw_only=True):
    """How long to wait for a provider; unset means the transport's default."""

    connect_s: float | None = None
    first_byte_s: float | None = None
    idle_s: float | None = None
    total_s: float | None = None


class Retry(Struct, frozen=True, kw_only=True):
    """How often a request may be sent again; unset means the transport's default."""

    max_retries: int | None = None
    max_wait_s: float | None = None


class Local(Struct, frozen=True, kw_only=True):
    """How embedded models are loaded; unset means the transport's default."""

    n_ctx: int | None = None
    threads: int | None = None
    passive_wait: bool | None = None


class Setting(NamedTuple):
    """One setting as it is shown: key, value as text, and where it came from."""

    key: str
    value: str
    origin: str


class Config(Struct, frozen=True, kw_only=True):
    """Settings in force, and where each came from; secrets never show in its text forms."""

    model: str | None = None
    base_url: str | None = None
    api_prefix: str | None = None
    api_key_env: str | None = None
    api_key: Secret | None = None
    protocol: str | None = None
    provider: str | None = None
    preset: tuple[str, ...] = ()
    profile: str | None = None
    stream: bool = False
    journal_dir: Path | None = None
    trace_dir: Path | None = None
    evals_dir: Path | None = None
    ca_file: Path | None = None
    client_cert_file: Path | None = None
    client_key_file: Path | None = None
    cache_dir: Path = field(default_factory=lambda: Path(expanduser("~/.cache/surecall")))
    probe: Literal["off", "auto"] = "off"
    max_probe_age_s: float = 604800.0
    local: Local = Local()
    deadlines: Deadlines = Deadlines()
    retry: Retry = Retry()
    options: dict[str, Any] = {}
    capabilities: dict[str, Any] = {}
    headers: dict[str, str] = {}
    origins: dict[str, str] = {}
    """Where each key's value came from, by dotted key."""
    path: Path | None = None
    """The file that was read, if any."""
    environment: Network = Network()
    """The proxies and certificates that the environment names."""

    @property
    def network(self) -> Network:
        """How the provider is reached: as the environment says, with the files that are set."""
        names = ("ca_file", "client_cert_file", "client_key_file")
        files = {name: str(path) for name in names if (path := getattr(self, name)) is not None}
        return replace(self.environment, **files)

    @property
    def missing_keys(self) -> tuple[str, ...]:
        """Name the variables of which one must hold a key before anything can be sent.

        There are none where a key was found, where a header holds one, and at an address that is
        not known to need one.
        """
        is_given = self.api_key is not None or _find_secret_header(self.headers)
        if is_given or embedded_name(self.model) is not None:
            return ()
        host = urlsplit(self.base_url or "").hostname
        if not host or is_loopback(host):
            return ()
        return (self.api_key_env,) if self.api_key_env else keys_at(self.base_url or "")

    def require_key(self) -> None:
        """Refuse to go on without the key that the provider is known to need.

        Raises:
            ConfigError: `INVALID_CONFIG`, naming the variable that should hold the key.
        """
        names = self.missing_keys
        if not names:
            return
        host = urlsplit(self.base_url or "").hostname
        raise invalid_config(
            f"no API key for {host}: {' and '.join(names)} "
            f"{'is' if len(names) == 1 else 'are'} not set.",
            self.describe_key(),
        )

    def describe_key(self) -> str:
        """Say where the key came from, or where one can be put; the key itself is not shown."""
        origin = self.origins.get("api_key", "default")
        if self.api_key is not None:
            return f"The key came from {'api_key' if origin == 'flag' else origin}."
        if _find_secret_header(self.headers):
            return f"The key came from the header {_find_secret_header(self.headers)}."
        if names := self.missing_keys:
            return f"Set it, as in `export {names[0]}=...`, or pass api_key=... in Python."
        name = self.api_key_env or KEY_VARIABLE
        return f"No key was sent: set {name}, or pass api_key=... in Python."

    def render(self) -> list[Setting]:
        """List every setting with its value as text and its origin; secrets are masked."""
        free = [f"{table}.{name}" for table in FREE_TABLES for name in getattr(self, table)]
        return [self._render(key) for key in (*PLAIN_KEYS, "api_key", *free)]

    def _render(self, key: str) -> Setting:
        table, _, name = key.partition(".")
        is_secret = table == "headers" and names_a_secret(name)
        text = "***" if is_secret else _render_value(self._value(key))
        return Setting(key, text, self.origins.get(key, "default"))

    def with_values(self, overrides: Mapping[str, Any], *, cwd: Path | None = None) -> "Config":
        """Return a copy in which the given values win; they are checked like any other."""
        found = {
            key: Found(self._value(key), origin)
            for key, origin in self.origins.items()
            if origin != "default"
        }
        key = Found(self.api_key, self.origins.get("api_key", "default"))
        given = dict(overrides)
        key_given = given.pop("api_key", None)
        read_table(found, given, lambda _key: "flag", base=cwd or Path.cwd())
        place_model(found)
        if key_given is not None:
            key = Found(parse_key(key_given, "flag"), "flag")
        elif key.origin in provider_keys() and key.origin not in _key_variables(found):
            key = _NO_KEY  # a provider's key goes nowhere else
        return Config.of(found | {"api_key": key}, self.path, self.environment)

    @classmethod
    def of(
        cls, found: Mapping[str, Found], path: Path | None, environment: Network = _DIRECT
    ) -> "Config":
        """Build the record of checked values."""
        fields: dict[str, Any] = {}
        tables: dict[str, dict[str, Any]] = {}
        for key, item in found.items():
            table, _, name = key.partition(".")
            if name:
                tables.setdefault(table, {})[name] = item.value
            else:
                fields[key] = item.value
        fields |= {name: tables[name] for name in FREE_TABLES if name in tables}
        origins = dict.fromkeys(PLAIN_KEYS, "default")
        origins |= {name: item.origin for name, item in found.items()}
        return cls(
            **fields,
            deadlines=Deadlines(**tables.get("deadlines", {})),
            retry=Retry(**tables.get("retry", {})),
            local=Local(**tables.get("local", {})),
            origins=origins,
            path=path,
            environment=environment,
        )

    def _value(self, key: str) -> Any:
        table, _, name = key.partition(".")
        value = getattr(self, table)
        if not name:
            return value
        return value[name] if table in FREE_TABLES else getattr(value, name)

    def __repr__(self) -> str:
        rows = (f"{row.key}={row.value}" for row in self.render() if row.origin != "default")
        return f"Config({', '.join(rows)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [(row.key, row.value) for row in self.render()]


def _find_secret_header(headers: Mapping[str, str]) -> str | None:
    return next((name for name in headers if names_a_secret(name)), None)


def _render_value(value: Any) -> str:
    if value is None or value == ():
        return "-"
    if isinstance(value, Secret):
        return "set"
    if isinstance(value, tuple):
        return ", ".join(cast("tuple[str, ...]", value))
    text = str(value) if isinstance(value, str | Path) else encode_text(_mask_value(value))
    return redact(text)


def _mask_value(value: Any) -> Any:
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        return {k: "***" if k.lower() in SECRET_KEYS else _mask_value(v) for k, v in table.items()}
    if isinstance(value, list):
        return [_mask_value(item) for item in cast("list[Any]", value)]
    return value


def _key_variables(found: Mapping[str, Found]) -> tuple[str, ...]:
    """Return the variables whose key may be sent to the address, strongest first.

    The key of a provider goes to that provider only; `OPENAI_API_KEY` also goes where
    `OPENAI_BASE_URL` points.
    """
    url = found.get("base_url")
    if url is None:
        own = provider_keys("openai")
    else:
        own = keys_at(str(url.value))
        if url.origin == "OPENAI_BASE_URL":
            own = (*own, *provider_keys("openai"))
    return (KEY_VARIABLE, *own)


def parse_key(value: Any, origin: str) -> Secret | None:
    """Return the key, or `None` for a blank one; refuse what cannot be sent in a header."""
    text = value.reveal() if isinstance(value, Secret) else value
    if not isinstance(text, str):
        raise invalid_config(
            f"{'api_key' if origin == 'flag' else f'The key from {origin}'} must be text, "
            f"not {type(value).__name__}.",
            "Give the key as one text, or leave api_key out and set a variable.",
        )
    text = text.strip()
    if not text.isascii() or not text.isprintable() or " " in text:
        raise invalid_config(
            f"The key from {origin} has characters that no key has.", "Copy it again."
        )
    return Secret(text) if text else None


_environment_keys: dict[str, Secret] = {}
"""Held, so that they are taken out of everything that is shown or kept."""


def know_keys(environ: Mapping[str, str] | None = None) -> None:
    """Make the keys of providers in the environment known as secrets."""
    variables = os.environ if environ is None else environ
    for name in (KEY_VARIABLE, *provider_keys()):
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
        environ: Variables to read; by default `os.environ`.
        overrides: Values that win, by dotted key or as tables; `None` means not given.
        path: The file to read, instead of searching for one.
        search: Whether to search for a file when no path is given.

    Raises:
        ConfigError: `UNKNOWN_CONFIG_KEY` or `INVALID_CONFIG`, naming key and origin.
    """
    folder = _current_folder() if cwd is None else os.fspath(cwd)
    given = dict(overrides or {})
    variables = os.environ if environ is None else environ
    is_plain = "api_key" not in given and all(isinstance(item, str) for item in given.values())
    if path is None and not search and is_plain:
        return _merge_again(folder, _pick_variables(variables, given), tuple(given.items()))
    source = read_file(folder / Path(path)) if path is not None else None
    if source is None and search:
        source = find_file(Path(folder))
    return _merge_sources(source, variables, given, Path(folder))


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError as error:
        raise invalid_config(
            "the current folder is gone, or may not be entered.", "Change to another folder."
        ) from error


def _pick_variables(
    variables: Mapping[str, str], given: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """Return those of the variables that have a say in the settings when there is no file."""
    key_name = given.get("api_key_env") or variables.get(f"{PREFIX}API_KEY_ENV", "")
    read = _read_variables() | {key_name.strip()}
    names = [name for name in variables if name in read or name.startswith(PREFIX)]
    return tuple([(name, variables[name]) for name in names])


@cache
def _read_variables() -> frozenset[str]:
    return frozenset({*_OTHER_VARIABLES, *_NETWORK_VARIABLES, *provider_keys()})


@lru_cache(maxsize=1)
def _merge_again(
    folder: str, variables: tuple[tuple[str, str], ...], given: tuple[tuple[str, str], ...]
) -> Config:
    """Merge what most sessions of a process have in common: the last settings are used again."""
    return _merge_sources(None, dict(variables), dict(given), Path(folder))


def _merge_sources(
    source: FileSource | None,
    variables: Mapping[str, str],
    given: dict[str, Any],
    folder: Path,
) -> Config:
    found: dict[str, Found] = {}
    if source:
        read_table(found, source.table, source.origins_from(folder), base=source.path.parent)
    read_variables(found, variables, folder)
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
    place_model(found)
    found["api_key"] = _find_key(found, variables, key_given)
    return Config.of(found, source.path if source else None, _network_of(variables))


def _find_key(found: Mapping[str, Found], variables: Mapping[str, str], given: Any) -> Found:
    if given is not None:
        return Found(parse_key(given, "flag"), "flag")
    if "api_key_env" in found:
        name = str(found["api_key_env"].value)
        key = parse_key(variables.get(name, ""), name)
        return Found(key, name if key else f"{name} (not set)")
    for name in _key_variables(found):
        if key := parse_key(variables.get(name, ""), name):
            return Found(key, name)
    return _NO_KEY


def read_network(environ: Mapping[str, str] | None = None) -> Network:
    """Return the proxies and certificates that variables name.

    Args:
        environ: Variables to read; by default `os.environ`.
    """
    variables = os.environ if environ is None else environ
    files = {
        name: variables.get(variable_of(name), "").strip()
        for name in ("ca_file", "client_cert_file", "client_key_file")
    }
    return replace(_network_of(variables), **files)


def _network_of(variables: Mapping[str, str]) -> Network:
    """Read the variables that other programs know, too; of two spellings small letters win."""

    def read(name: str) -> str:
        return (variables.get(name.lower()) or variables.get(name) or "").strip()

    # Where a web server starts programs, HTTP_PROXY is a header of whoever asks it.
    is_served = "REQUEST_METHOD" in variables
    http_proxy = variables.get("http_proxy", "").strip() if is_served else read("HTTP_PROXY")
    return Network(
        http_proxy=http_proxy or read("ALL_PROXY"),
        https_proxy=read("HTTPS_PROXY") or read("ALL_PROXY"),
        no_proxy=read("NO_PROXY"),
        cert_file=variables.get("SSL_CERT_FILE", "").strip(),
        cert_dir=variables.get("SSL_CERT_DIR", "").strip(),
    )


def list_variables(prefix: str, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables that begin with a prefix, without it; blank ones are left out.

    Args:
        prefix: What their names begin with.
        environ: Variables to read; by default `os.environ`.
    """
    return {
        name.removeprefix(prefix): value.strip()
        for name, value in (os.environ if environ is None else environ).items()
        if name.startswith(prefix) and value.strip()
    }


def all_variables() -> dict[str, str]:
    """Return every variable as it is, for a program that is started with a few more."""
    return dict(os.environ)


def read_key(variable: str, environ: Mapping[str, str] | None = None) -> Secret | None:
    """Return the key that a variable holds, or `None` when it is unset or blank.

    Args:
        variable: The name of the variable.
        environ: Variables to read; by default `os.environ`.

    Raises:
        ConfigError: `INVALID_CONFIG`: it holds something that no key is.
    """
    variables = os.environ if environ is None else environ
    return parse_key(variables.get(variable, ""), variable)
