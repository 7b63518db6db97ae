"""From what a user calls a model to who takes part in an experiment.

embedded:NAME, embedded:PATH.gguf   a model in this process
zoo:NAME, zoo:*                     simulated models
zoo:catalog                         every model of the catalog, simulated
faults:NAME                         a perfect model behind one fault
openrouter:ID                       a model at OpenRouter, or a filter on the catalog
ID@https://HOST/v1                  a model at any address
ID                                  a model at the configured address, or such a filter
"""

from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import urlsplit

from msgspec.structs import replace

from surecall.config import Config, load_config
from surecall.errors import Code, ConfigError, did_you_mean
from surecall.faults import (
    CLEAN,
    Behaviour,
    find_behaviour,
    find_fault,
    zoo,
)
from surecall.loop.resolve import EMBEDDED_PROVIDER, find_provider
from surecall.profiles import (
    EMBEDDED_PREFIX,
    Catalog,
    ModelEntry,
    embedded_name,
    find_weights,
    is_weights_path,
    matches_glob,
    select,
)

from .choosing import choose
from .contenders import Contender, Price
from .original.variables import read_original_settings

__all__ = [
    "OPENROUTER",
    "SIMULATED",
    "find_contenders",
    "simulate_catalog",
]

SIMULATED: Final = "simulated:"
"""What the label begins with of a catalog model that is simulated."""

OPENROUTER: Final = "openrouter"
_OPENROUTER_URL: Final = "https://openrouter.ai/api/v1"
_ZOO: Final = "zoo:"
_FAULTS: Final = "faults:"
_ZOO_CATALOG: Final = "catalog"


def find_contenders(
    expression: str,
    *,
    config: Config | None = None,
    catalog: Catalog | None = None,
    prices: Mapping[str, Price] | None = None,
) -> tuple[Contender, ...]:
    """Return who an expression such as `zoo:catalog,embedded:smollm2-135m,!*qwen*` names.

    Args:
        expression: References separated by commas; `!` excludes by label, glob or tag.
        config: Settings in force; those of the environment by default.
        catalog: What is known of models.
        prices: What models cost, by label or by the provider's name for them.

    Raises:
        ConfigError: Something does not exist, or nothing is left.
    """
    parser = _Parser(config or load_config(), catalog or Catalog.builtin())
    tokens = [token.strip() for token in expression.split(",") if token.strip()]
    found: dict[str, Contender] = {}
    for token in tokens:
        if not token.startswith("!"):
            found.update((item.label, item) for item in parser.parse(token))
    if not found:
        raise ConfigError(
            Code.NOTHING_SELECTED,
            "no model is named.",
            hint="For example zoo:catalog, embedded:smollm2-135m or openrouter:stable.",
        )
    excluded = [token for token in tokens if token.startswith("!")]
    left = list(found.values())
    if excluded:
        left = list(choose(left, ",".join(excluded), "model"))
    known = prices or {}
    _refuse_unused(known, left)
    return tuple(replace(item, price=known.get(item.label, known.get(item.model))) for item in left)


def simulate_catalog(catalog: Catalog | None = None) -> tuple[Contender, ...]:
    """Return every catalog model for which there is a simulated one, in the catalog's order."""
    return tuple(
        _simulated_entry(entry, behaviour)
        for entry in (catalog or Catalog.builtin()).models
        if (behaviour := _behaviour_for(entry.id)) is not None
    )


class _Parser:
    """Reads references under one configuration."""

    def __init__(self, config: Config, catalog: Catalog) -> None:
        self._config = config
        self._catalog = catalog

    def parse(self, token: str) -> Iterable[Contender]:
        lowered = token.lower()
        if lowered.startswith(EMBEDDED_PREFIX):
            return [self._embedded(token)]
        if lowered.startswith(_ZOO):
            return self._zoo(lowered.removeprefix(_ZOO))
        if lowered.startswith(SIMULATED):
            return [self._simulated(lowered)]
        if lowered.startswith(_FAULTS):
            return [_faulty(lowered.removeprefix(_FAULTS))]
        name, _, url = token.rpartition("@")
        if name and url.lower().startswith(("http://", "https://")):
            return [self._at(name, url, label=token)]
        prefix, _, name = token.partition(":")
        if prefix.lower() == OPENROUTER:
            url = read_original_settings().settings.get("base_url", _OPENROUTER_URL)
            return self._models_at(url, name, label=f"{OPENROUTER}:")
        if not self._config.base_url:
            raise ConfigError(
                Code.UNKNOWN_MODEL,
                f"nobody knows where {token!r} is.",
                hint="Write ID@https://HOST/v1, openrouter:ID, embedded:NAME or zoo:NAME, "
                "or set SURECALL_BASE_URL.",
            )
        if self._catalog.provider_at(urlsplit(self._config.base_url).hostname or "") == OPENROUTER:
            return self._models_at(self._config.base_url, token, label="")
        return [self._at(token, self._config.base_url, label=token)]

    def _embedded(self, token: str) -> Contender:
        name = embedded_name(token) or ""
        if not is_weights_path(name):
            find_weights(name)
        entry = self._catalog.find(token)
        return Contender(
            label=f"{EMBEDDED_PREFIX}{name}",
            model=f"{EMBEDDED_PREFIX}{name}",
            provider=EMBEDDED_PROVIDER,
            kind="embedded",
            tags=("embedded", *(entry.tags if entry else ())),
        )

    def _zoo(self, name: str) -> tuple[Contender, ...]:
        if name == _ZOO_CATALOG:
            return simulate_catalog(self._catalog)
        if "*" in name:
            matching = [item for item in zoo() if matches_glob(name, item.name)]
            if not matching:
                find_behaviour(name)
            return tuple(map(_simulated, matching))
        return (_simulated(find_behaviour(name)),)

    def _simulated(self, label: str) -> Contender:
        known = {item.label.lower(): item for item in simulate_catalog(self._catalog)}
        if label not in known:
            raise ConfigError(
                Code.UNKNOWN_MODEL,
                f"{label!r} is no simulated model.",
                hint=did_you_mean(label, known),
            )
        return known[label]

    def _models_at(self, url: str, name: str, *, label: str) -> list[Contender]:
        """Return the catalog models that a filter names, or the one model of this name."""
        served = [entry for entry in self._catalog.models if embedded_name(entry.id) is None]
        try:
            chosen = [entry.id for entry in select(served, name)]
        except ConfigError:
            if "/" not in name:  # a tag or a filter: all names of models there have a slash
                known = {word for entry in served for word in (entry.id, *entry.tags)}
                raise ConfigError(
                    Code.UNKNOWN_MODEL,
                    f"nothing at OpenRouter is called {name!r}.",
                    hint=did_you_mean(name, sorted(known)),
                ) from None
            chosen = [name]
        if "/" in name and "*" not in name:
            chosen = [name]  # a name, also when the catalog has it with another ending
        return [self._at(model, url, label=f"{label}{model}") for model in chosen]

    def _at(self, model: str, url: str, *, label: str) -> Contender:
        checked = self._config.with_values({"base_url": url, "model": model})
        provider = self._catalog.provider_at(urlsplit(checked.base_url or "").hostname or "")
        entry = self._catalog.find(model)
        contender = Contender(
            label=label,
            model=model,
            provider=provider,
            base_url=checked.base_url,
            tags=(model, *(entry.tags if entry else ()), *((provider,) if provider else ())),
        )
        if url != self._config.base_url:
            return contender
        return replace(
            contender,
            provider=find_provider(checked, self._catalog),
            protocol=checked.protocol,
            capabilities=checked.capabilities,
        )


def _refuse_unused(prices: Mapping[str, Price], contenders: Iterable[Contender]) -> None:
    named = {name: None for item in contenders for name in (item.label, item.model)}
    for name in prices:
        if name not in named:
            raise ConfigError(
                Code.UNKNOWN_MODEL,
                f"there is a price for {name!r}, which does not take part.",
                hint=did_you_mean(name, named),
            )


def _simulated(behaviour: Behaviour) -> Contender:
    name = f"{_ZOO}{behaviour.name}"
    return Contender(
        label=name,
        model=name,
        kind="simulated",
        behaviour=behaviour.name,
        tags=("simulated", "zoo", behaviour.name),
    )


def _simulated_entry(entry: ModelEntry, behaviour: Behaviour) -> Contender:
    vendor = entry.id.partition("/")[0]
    return Contender(
        label=f"{SIMULATED}{entry.id}",
        model=entry.id,
        provider=OPENROUTER,
        kind="simulated",
        behaviour=behaviour.name,
        tags=("simulated", entry.id, entry.id.partition(":")[0], vendor, *entry.tags),
    )


def _faulty(name: str) -> Contender:
    if name != CLEAN:
        find_fault(name)
    label = f"{_FAULTS}{name}"
    return Contender(label=label, model=label, kind="simulated", tags=("simulated", "faults", name))


def _behaviour_for(model: str) -> Behaviour | None:
    base = model.partition(":")[0]
    return next((item for item in zoo() if base in item.models), None)
