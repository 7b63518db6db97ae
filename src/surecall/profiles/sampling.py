"""Choosing sampling profiles for a model."""

from collections.abc import Sequence

from surecall.errors import Code, ConfigError

from .catalog import Catalog
from .entries import SamplingProfile
from .filters import matches_glob, select

__all__ = ["DEFAULT_PROFILE", "applicable", "select_profiles"]

DEFAULT_PROFILE = "default"


def applicable(profiles: Sequence[SamplingProfile], model: str) -> tuple[SamplingProfile, ...]:
    """Return the profiles that are meant for a model, in order."""
    name = model.strip().lower()
    return tuple(
        profile
        for profile in profiles
        if any(matches_glob(glob.lower(), name) for glob in profile.applies_to)
    )


def select_profiles(
    expression: str,
    model: str,
    *,
    enforce_applicability: bool = True,
    catalog: Catalog | None = None,
) -> tuple[SamplingProfile, ...]:
    """Return the profiles the filter chooses for a model, or `default` when none is meant for it.

    With `enforce_applicability=False` everything the filter chooses is returned.
    """
    known = (catalog or Catalog.builtin()).sampling
    chosen = select(known, expression)
    if not enforce_applicability:
        return chosen
    fitting = applicable(chosen, model)
    if fitting:
        return fitting
    default = tuple(profile for profile in known if profile.id == DEFAULT_PROFILE)
    if not default:
        raise ConfigError(
            Code.NOTHING_SELECTED,
            f"no profile chosen by {expression!r} is meant for {model!r}.",
            hint="Add a profile called 'default', or switch applicability off.",
        )
    return default
