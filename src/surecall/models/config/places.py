"""Where a model is asked: what its name, the name of a provider or the catalog says about it.

`openrouter:vendor/model` names the provider, `model@https://host/v1` the address, and `gpt-5` is
known to be OpenAI's. An address that was given at the same place as the model, or at a stronger
one, decides: then the name is the provider's own, whatever colons it has.
"""

import os
from collections.abc import Mapping
from functools import cache
from typing import Final
from urllib.parse import urlsplit

from surecall.base.errors import Code, ConfigError, did_you_mean
from surecall.models.profiles import Catalog, ProviderEntry, embedded_name

from .settings import PREFIX, Found

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
