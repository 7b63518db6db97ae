"""Loading the catalog: TOML files of dated facts, turned into frozen records once."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar, cast

import msgspec
from msgspec import Struct

from surecall.base.errors import Code, ConfigError, did_you_mean, invalid_config
from surecall.base.json_values import as_list
from surecall.base.records import Weights

from .entries import (
    Fact,
    ModelEntry,
    ModelRule,
    Preset,
    ProviderEntry,
    SamplingProfile,
)

_BUILTIN_FILES: Final = ("providers.toml", "models.toml", "sampling.toml", "presets.toml")

_TABLES: Final[Mapping[str, type[Fact]]] = {
    "models": ModelEntry,
    "presets": Preset,
    "providers": ProviderEntry,
    "rules": ModelRule,
    "sampling": SamplingProfile,
}


def canonical_name(name: str) -> str:
    """Return a preset's or provider's name stripped, in lower case, with underscores."""
    return name.strip().lower().replace("-", "_")


class Catalog(Struct, frozen=True, kw_only=True, dict=True, eq=False):
    """What is known about models and providers, and the presets that rest on it."""

    models: tuple[ModelEntry, ...] = ()
    rules: tuple[ModelRule, ...] = ()
    providers: tuple[ProviderEntry, ...] = ()
    sampling: tuple[SamplingProfile, ...] = ()
    presets: tuple[Preset, ...] = ()

    @staticmethod
    @cache
    def builtin() -> "Catalog":
        """Return the catalog that comes with the package; read once, then kept."""
        folder = resources.files(__package__ or "surecall.models.profiles").joinpath("catalog")
        tables: dict[str, Any] = {}
        for name in _BUILTIN_FILES:
            tables |= tomllib.loads(folder.joinpath(name).read_text("utf-8"))
        return Catalog().extended(tables, "the built-in catalog")

    @classmethod
    def load(cls, paths: Iterable[str | Path]) -> "Catalog":
        """Return the built-in catalog with the entries of further files.

        An entry with the id of an earlier one replaces it in its place.
        """
        catalog = cls.builtin()
        for path in paths:
            catalog = catalog.extended(_read_file(Path(path)), str(path))
        return catalog

    def extended(self, tables: Mapping[str, Any], where: str) -> "Catalog":
        """Return a catalog with the entries of the given tables added."""
        for name in tables:
            if name not in _TABLES:
                raise ConfigError(
                    Code.UNKNOWN_CONFIG_KEY,
                    f"{where} has a table {name!r} that no catalog has.",
                    hint=did_you_mean(name, _TABLES),
                )
        joined: dict[str, Any] = {}
        for name, kind in _TABLES.items():
            entries = (*getattr(self, name), *_entries(tables, name, kind, where))
            joined[name] = tuple({_key(entry): entry for entry in entries}.values())
        catalog = Catalog(**joined)
        catalog._require_consistent()
        return catalog

    def find(self, model: str) -> ModelEntry | None:
        """Return the entry of a model; one that differs after the colon will do.

        Behind `embedded:` stands the model itself, so there only the same name will do.
        """
        name = model.strip().lower()
        base = name.partition(":")[0] if embedded_name(name) is None else None
        same_base: ModelEntry | None = None
        for entry in self.models:
            entry_id = entry.id.lower()
            if entry_id == name:
                return entry
            if same_base is None and entry_id.partition(":")[0] == base:
                same_base = entry
        return same_base

    def find_provider(self, provider: str) -> ProviderEntry | None:
        """Return the entry of a provider, by its id or an alias."""
        return self._providers_by_name.get(canonical_name(provider))

    def provider_at(self, host: str) -> str | None:
        """Return the id of the provider whose API is at a host."""
        name = host.strip().rstrip(".").lower()
        while name and name not in self._providers_by_host:
            name = name.partition(".")[2]
        return self._providers_by_host.get(name)

    def provider_of(self, model: str) -> ProviderEntry | None:
        """Return the provider that a bare name of a model belongs to, such as `gpt-5`."""
        name = model.strip().lower()
        for entry in self.providers:
            if any(matches_glob(pattern, name) for pattern in entry.models):
                return entry
        return None

    def matching_rules(self, provider: str | None, model: str) -> tuple[ModelRule, ...]:
        """Return the rules that hold for a model at a provider, in order."""
        name = model.strip().lower()
        known = self.find_provider(provider) if provider else None
        names = {canonical_name(known.id if known else provider)} if provider else set[str]()
        return tuple(
            rule
            for rule in self.rules
            if (rule.provider is None or canonical_name(rule.provider) in names)
            and any(matches_glob(rule.match.lower(), key) for key in (name, name.split(":")[0]))
        )

    def preset(self, name: str) -> Preset:
        """Return a preset by its name or an alias."""
        wanted = canonical_name(name)
        for preset in self.presets:
            if wanted in map(canonical_name, (preset.name, *preset.aliases)):
                return preset
        raise ConfigError(
            Code.UNKNOWN_PRESET,
            f"there is no preset {name!r}.",
            hint=did_you_mean(
                wanted,
                ("auto", *(preset.name for preset in self.presets)),
                listed_by="surecall models presets list",
            ),
        )

    @cached_property
    def _providers_by_name(self) -> dict[str, ProviderEntry]:
        return {
            canonical_name(name): entry
            for entry in self.providers
            for name in (entry.id, *entry.aliases)
        }

    @cached_property
    def _providers_by_host(self) -> dict[str, str]:
        return {
            host.lower(): entry.id for entry in reversed(self.providers) for host in entry.hosts
        }

    def _require_consistent(self) -> None:
        """Refuse names that mean two things, and presets that do not exist."""
        _refuse_repeated("preset", [(p.name, *p.aliases) for p in self.presets])
        _refuse_repeated("provider", [(p.id, *p.aliases) for p in self.providers])
        for entry in (*self.models, *self.rules):
            for workaround in entry.workarounds:
                self.preset(workaround)
        for provider in self.providers:
            if provider.preset is not None:
                self.preset(provider.preset)


def _read_file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        message = f"the catalog file {path} cannot be read: {error}."
        raise invalid_config(message, "It must be a TOML file in UTF-8.") from error


def _entries(tables: Mapping[str, Any], table: str, kind: type[Fact], where: str) -> list[Fact]:
    rows = tables.get(table, [])
    if not isinstance(rows, list):
        hint = f"Start each entry with [[{table}]]."
        raise invalid_config(f"{table!r} in {where} is not a list of entries.", hint)
    numbered = enumerate(as_list(rows))
    entries = [_entry(row, kind, f"{where}, {table}[{index}]") for index, row in numbered]
    ids = [_key(entry) for entry in entries]
    for repeated in {key for key in ids if ids.count(key) > 1}:
        raise invalid_config(f"{where} has {repeated!r} twice in {table}.")
    return entries


def _entry(row: Any, kind: type[Fact], where: str) -> Fact:
    if not isinstance(row, dict):
        raise invalid_config(f"{where} is not a table.")
    row = cast("dict[str, Any]", row)
    where = f"{where} ({row.get('id', row.get('name', 'unnamed'))})"
    known = kind.__struct_fields__
    for name in row:
        if name not in known:
            raise ConfigError(
                Code.UNKNOWN_CONFIG_KEY,
                f"{where} has the key {name!r}, which is not known.",
                hint=did_you_mean(name, known),
            )
    for name in Fact.__struct_fields__:
        if name not in row:
            hint = "Every claim needs date (YYYY-MM-DD), source and evidence."
            raise invalid_config(f"{where} has no {name}.", hint)
    try:
        return msgspec.convert(row, kind)
    except msgspec.ValidationError as error:
        raise invalid_config(f"{where} is not valid: {error}.") from error


def _key(entry: Any) -> str:
    return (entry.name if isinstance(entry, Preset) else entry.id).strip().lower()


def _refuse_repeated(kind: str, groups: Sequence[Sequence[str]]) -> None:
    names = Counter(name for group in groups for name in {*map(canonical_name, group)})
    for name, count in names.items():
        if count > 1:
            raise invalid_config(f"two {kind}s are called {name!r}; a name means one.")


EMBEDDED_PREFIX: Final = "embedded:"
"""What the name of a model begins with that runs in this process."""


def embedded_name(model: str | None) -> str | None:
    """Return what follows `embedded:`, or `None` for a model of a provider."""
    text = (model or "").strip()
    if not text.lower().startswith(EMBEDDED_PREFIX):
        return None
    return text[len(EMBEDDED_PREFIX) :].strip()


@cache
def known_weights() -> tuple[Weights, ...]:
    """Return the weights that come with the catalog; read once, then kept."""
    folder = resources.files(__package__ or "surecall.models.profiles").joinpath("catalog")
    return parse_weights(tomllib.loads(folder.joinpath("weights.toml").read_text("utf-8")))


def parse_weights(document: dict[str, Any]) -> tuple[Weights, ...]:
    """Return the entries of a document with a table `weights`."""
    try:
        return msgspec.convert(document.get("weights", []), tuple[Weights, ...])
    except msgspec.ValidationError as error:
        raise invalid_config(f"the catalog of weights is not valid: {error}.") from error


def is_weights_path(name: str) -> bool:
    """Tell whether an embedded model is named by its file, not by its name in the catalog."""
    return name.lower().endswith(".gguf") or "/" in name


def find_weights(name: str) -> Weights:
    """Return the weights of a model by its name, with or without `embedded:` before it."""
    wanted = (embedded_name(name) or name).strip().lower()
    for weights in known_weights():
        if weights.name == wanted:
            return weights
    hint = did_you_mean(wanted, (weights.name for weights in known_weights()))
    raise ConfigError(
        Code.UNKNOWN_MODEL,
        f"there are no weights called {name!r}.",
        hint=f"{hint} Write your own file as embedded:PATH.gguf.",
    )


_EVERYTHING: Final = frozenset({"*", "all", "full"})
_HINT: Final = "Write tokens such as 'stable', 'qwen*' or '!openai', separated by commas."


class Selectable(Protocol):
    """Anything with an id and tags."""

    @property
    def id(self) -> str:
        """What the item is called."""
        ...

    @property
    def tags(self) -> tuple[str, ...]:
        """Words it can be found by."""
        ...


Item = TypeVar("Item", bound=Selectable)


def select(items: Sequence[Item], expression: str) -> tuple[Item, ...]:
    """Return the items the expression chooses, in their own order; at least one.

    In an expression such as `stable,qwen*,!qwen/qwen3-30b*`, tokens are separated by commas and
    compared, in lower case, with an item's id, its id before the first colon, its provider (the
    part before the first slash) and its tags. `*` stands for any characters, slashes included; `!`
    excludes. With excludes alone everything else is chosen. Nothing, `all`, `full` and `*` choose
    everything.
    """
    includes, excludes = _parse_filter(expression)
    chosen = tuple(
        item
        for item in items
        if (not includes or _matches_any(includes, item)) and not _matches_any(excludes, item)
    )
    if not chosen:
        raise ConfigError(
            Code.NOTHING_SELECTED,
            f"nothing matches {expression!r}.",
            hint="Known: " + ", ".join(item.id for item in items) + ".",
        )
    return chosen


def matches_glob(pattern: str, text: str) -> bool:
    """Return whether the whole text fits the pattern, where `*` stands for any characters."""
    return _compile_glob(pattern).fullmatch(text) is not None


@lru_cache(maxsize=1024)
def _compile_glob(pattern: str) -> re.Pattern[str]:
    first, *middle = map(re.escape, pattern.split("*"))
    if not middle:
        return re.compile(first)
    last = middle.pop()
    # The leftmost place leaves the most room for what follows, so no other need be tried.
    parts = (f"(?>.*?{part})" for part in middle)
    return re.compile(f"{first}{''.join(parts)}.*{last}", re.DOTALL)


def _parse_filter(expression: str) -> tuple[list[str], list[str]]:
    """Return the tokens that include and those that exclude."""
    includes: list[str] = []
    excludes: list[str] = []
    for raw in expression.split(","):
        token = raw.strip().lower()
        if not token:
            continue
        excluded = token.startswith("!")
        name = token[1:].lstrip() if excluded else token
        if not name or "!" in name or len(name.split()) > 1:
            raise ConfigError(
                Code.INVALID_FILTER, f"{raw.strip()!r} is not a token of a filter.", hint=_HINT
            )
        (excludes if excluded else includes).append(name)
    return includes, excludes


def _matches_any(tokens: list[str], item: Selectable) -> bool:
    name = item.id.lower()
    keys = {name, name.partition(":")[0], *(tag.lower() for tag in item.tags)}
    if "/" in name:
        keys.add(name.partition("/")[0])
    return any(
        token in _EVERYTHING or any(matches_glob(token, key) for key in keys) for token in tokens
    )
