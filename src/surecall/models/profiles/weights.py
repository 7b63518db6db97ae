"""The weights the catalog knows: models that run in this process, without a provider."""

import tomllib
from functools import cache
from importlib import resources
from typing import Any, Final

import msgspec

from surecall.base.errors import Code, ConfigError, did_you_mean, invalid_config
from surecall.base.records import Weights

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
