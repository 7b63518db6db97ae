"""The settings in force: read from a file, variables and arguments, changed, and shown."""

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from os.path import expanduser
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, cast
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import replace

from surecall.base.errors import Code, ConfigError, did_you_mean, invalid_config
from surecall.base.json_values import as_fields
from surecall.base.redaction import Secret, redact
from surecall.models.client.network import Network, is_loopback
from surecall.models.profiles import Catalog, ProviderEntry, embedded_name
from surecall.text import encode_text

from .settings import (
    FREE_TABLES,
    PLAIN_KEYS,
    PREFIX,
    SECRET_KEYS,
    SETTINGS,
    TABLES,
    Found,
    Text,
    names_a_secret,
    put_setting,
    unknown_key,
    variable_of,
)

FILE_NAME: Final = "surecall.toml"
KEY_VARIABLE: Final = "SURECALL_API_KEY"
_MAX_VARIABLE_PARTS: Final = 8
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


class Setting(NamedTuple):
    """One setting as it is shown: key, value as text, and where it came from."""

    key: str
    value: str
    origin: str


class FileSource(NamedTuple):
    """A file that was read, and our part of it."""

    path: Path
    table: dict[str, Any]
    prefix: str
    """What is before our keys: nothing, or `tool.surecall.`."""

    def origins_from(self, folder: Path) -> Callable[[str], str]:
        """Return how to name the origin of a key, as seen from a folder."""
        try:
            name = os.path.relpath(self.path, folder)
        except ValueError:  # another drive
            name = str(self.path)
        return lambda key: f"{name}: {self.prefix}{key}"


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
    local: dict[str, Any] = {}
    """How embedded models are loaded; what is not there has the transport's default."""
    deadlines: dict[str, float] = {}
    """How long to wait for a provider, likewise."""
    retry: dict[str, Any] = {}
    """How often a request may be sent again, likewise."""
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
        for key, item in found.items():
            table, _, name = key.partition(".")
            if name:
                fields.setdefault(table, {})[name] = item.value
            else:
                fields[key] = item.value
        origins = dict.fromkeys(PLAIN_KEYS, "default")
        origins |= {name: item.origin for name, item in found.items()}
        return cls(**fields, origins=origins, path=path, environment=environment)

    def _value(self, key: str) -> Any:
        table, _, name = key.partition(".")
        value = getattr(self, table)
        return value.get(name) if name else value

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
            f"{'api_key' if origin == 'flag' else f'The key from {origin}'} must be a string, "
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
    key = (given.get("api_key_env") or variables.get(f"{PREFIX}API_KEY_ENV", "")).strip()
    read = _read_variables()
    names = [name for name in variables if name in read or name.startswith(PREFIX) or name == key]
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


def find_file(folder: Path) -> FileSource | None:
    """Read the configuration of the folder or of its nearest parent that has one."""
    start = folder.absolute()
    for place in (start, *start.parents):
        # os.path: what may not be looked at is not there
        if os.path.isfile(place / FILE_NAME):
            return read_file(place / FILE_NAME)
        if os.path.isfile(place / "pyproject.toml"):
            source = read_file(place / "pyproject.toml")
            if source.table:
                return source
    return None


def read_toml(path: Path, shown: str) -> dict[str, Any]:
    """Read a TOML file, or raise what is wrong with it; `shown` is what the error calls it."""
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise invalid_config(
            f"{shown} cannot be read: {error.strerror or error}.", "Name a file that you may read."
        ) from error
    except UnicodeDecodeError as error:
        raise invalid_config(
            f"{shown} is not UTF-8 at byte {error.start}.", "Save it as text in UTF-8."
        ) from error
    except (ValueError, RecursionError) as error:
        raise invalid_config(
            f"{shown} is not valid TOML: {error}.",
            'Write KEY = VALUE with text in quotes, as in model = "gpt-5", and [TABLE] above keys.',
        ) from error


def read_file(path: Path) -> FileSource:
    """Read a TOML file; of a `pyproject.toml` only the table `tool.surecall`."""
    table = read_toml(path, str(path))
    if path.name != "pyproject.toml":
        return FileSource(path, table, "")
    ours = as_fields(table.get("tool")).get("surecall", {})
    if not isinstance(ours, dict):
        raise invalid_config(f"{path}: tool.surecall must be a table.")
    return FileSource(path, as_fields(ours), "tool.surecall.")


def read_table(
    found: dict[str, Found],
    table: Mapping[str, Any],
    origin: Callable[[str], str],
    *,
    base: Path,
) -> None:
    """Keep every value of a table; `None` means not given."""
    for key, value in _flatten(table):
        if value is not None:
            put_setting(found, key, value, origin(key), base)


def _flatten(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if key in TABLES and isinstance(value, Mapping):
            for name, item in cast("Mapping[str, Any]", value).items():
                yield f"{key}.{name}", item
        else:
            yield key, value


def read_variables(found: dict[str, Found], variables: Mapping[str, str], folder: Path) -> None:
    """Keep the value of every variable of ours; a blank one is as good as none."""
    for variable in sorted(name for name in variables if name.startswith(PREFIX)):
        raw = variables[variable].strip()
        if variable == KEY_VARIABLE or not raw:
            continue
        parts = variable.removeprefix(PREFIX).lower().split("__")
        if not all(parts) or len(parts) > _MAX_VARIABLE_PARTS:
            raise unknown_key(".".join(parts), variable)
        if parts[0] == "headers":
            parts = ["headers", "__".join(parts[1:]).replace("_", "-")]
        key = ".".join(parts[:2])
        if len(parts) > 2 and parts[0] in {"options", "capabilities"}:
            value = _set_inside(found.get(key), parts[2:], parse_literal(raw))
        else:
            key = ".".join(parts)
            known = SETTINGS.get(key) or SETTINGS.get(f"{parts[0]}.*")
            takes_text = known is not None and known.type in {str, Text}
            value = raw if takes_text else parse_literal(raw)
        put_setting(found, key, value, variable, folder)


def _set_inside(earlier: Found | None, parts: list[str], value: Any) -> dict[str, Any]:
    whole = dict(as_fields(earlier.value)) if earlier else {}
    place = whole
    for part in parts[:-1]:
        place[part] = dict(as_fields(place.get(part)))
        place = place[part]
    place[parts[-1]] = value
    return whole


def parse_literal(raw: str) -> Any:
    """Read the text as one TOML value; text that is not one, or is a date, stays text."""
    try:
        parsed = tomllib.loads(f"value = {raw}")
    except (ValueError, RecursionError):
        return raw
    value: Any = parsed.get("value")
    if len(parsed) == 1 and isinstance(value, bool | int | float | str | list | dict):
        return cast("Any", value)
    return raw


_VARIABLES: Final = (PREFIX, "OPENAI_BASE_URL")


def place_model(found: dict[str, Found]) -> None:
    """Fill in provider and address as far as the model or the provider says where it is.

    Raises:
        ConfigError: `UNKNOWN_PROVIDER`: no provider has the name that was given.
    """
    model = found.get("model")
    if model is not None and embedded_name(str(model.value)) is not None:
        return
    if model is not None:
        model = _split_model(found, model)
    provider = found.get("provider")
    entry = None if provider is None else _require_provider(str(provider.value))
    if "base_url" in found:
        return
    if entry is None and model is not None:
        entry = Catalog.builtin().provider_of(str(model.value))
    if entry is not None and entry.base_url is not None:
        found["base_url"] = Found(entry.base_url, f"provider:{entry.id}")


def _split_model(found: dict[str, Found], model: Found) -> Found:
    """Take provider or address out of the name of a model, and return what is left."""
    text = str(model.value).strip()
    name, _, url = text.rpartition("@")
    if name and url.lower().startswith(("http://", "https://")):
        found["base_url"] = Found(url, model.origin)
    else:
        prefix, _, name = text.partition(":")
        entry = Catalog.builtin().find_provider(prefix) if name else None
        if entry is None or _is_placed(found, model):
            return model
        found.pop("base_url", None)
        found["provider"] = Found(entry.id, model.origin)
    found["model"] = Found(name, model.origin)
    return found["model"]


def _is_placed(found: dict[str, Found], model: Found) -> bool:
    """Tell whether something at least as strong as the model says where it is."""
    given = (found.get("base_url"), found.get("provider"))
    strength = _strength(model)
    return any(item is not None and _strength(item) >= strength for item in given)


def _strength(item: Found) -> int:
    if item.origin == "flag":
        return 2
    return 1 if item.origin.startswith(_VARIABLES) else 0


def _require_provider(name: str) -> ProviderEntry:
    entry = Catalog.builtin().find_provider(name)
    if entry is None:
        known = [known.id for known in Catalog.builtin().providers]
        raise ConfigError(
            Code.UNKNOWN_PROVIDER,
            f"there is no provider {name!r}.",
            hint=did_you_mean(name, known, listed_by="surecall docs providers"),
        )
    return entry


@cache
def provider_keys(provider: str | None = None) -> tuple[str, ...]:
    """Return the variables that hold keys of a provider, or of any."""
    entries = Catalog.builtin().providers
    return tuple(
        dict.fromkeys(
            name for entry in entries if provider in (None, entry.id) for name in entry.key_env
        )
    )


def find_keys(environ: Mapping[str, str] | None = None) -> list[tuple[ProviderEntry, str]]:
    """Return the providers whose key is set, with the variable that holds it."""
    variables = os.environ if environ is None else environ
    found: list[tuple[ProviderEntry, str]] = []
    for entry in Catalog.builtin().providers:
        name = next((name for name in entry.key_env if variables.get(name, "").strip()), None)
        if name is not None:
            found.append((entry, name))
    return found


def keys_at(url: str) -> tuple[str, ...]:
    """Return the variables that hold keys for an address."""
    host = urlsplit(url).hostname
    return provider_keys(Catalog.builtin().provider_at(host) or "") if host else ()
