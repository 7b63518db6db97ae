"""Where settings are read: a file, tables and variables, and what an address stands for."""

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, cast
from urllib.parse import urlsplit

from surecall.base.errors import Code, ConfigError, did_you_mean, invalid_config
from surecall.base.json_values import as_fields
from surecall.models.profiles import Catalog, ProviderEntry, embedded_name

from .settings import PREFIX, SETTINGS, TABLES, Found, Text, put_setting, unknown_key

FILE_NAME: Final = "surecall.toml"
KEY_VARIABLE: Final = "SURECALL_API_KEY"

_MAX_VARIABLE_PARTS = 8


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
