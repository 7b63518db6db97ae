"""How runs are named: short ids that sort by time, tags, and `@latest`."""

import re
import secrets
from typing import Final

from surecall.errors import Code, ConfigError, StoreError, did_you_mean

__all__ = ["LATEST", "check_tag", "new_run_id", "parse_latest", "unknown_run"]

LATEST: Final = "@latest"

_DIGITS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
"""No letters that look like digits, none that need a second look."""
_FIRST_S: Final = 1_767_225_600  # 2026-01-01
_TIME_CHARS: Final = 6
_RANDOM_CHARS: Final = 2
_TAG: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def new_run_id(now_s: float) -> str:
    """Return eight characters: six of time, so that ids sort, and two of chance."""
    seconds = max(int(now_s) - _FIRST_S, 0)
    text = ""
    for _ in range(_TIME_CHARS):
        seconds, digit = divmod(seconds, len(_DIGITS))
        text = _DIGITS[digit] + text
    return text + "".join(secrets.choice(_DIGITS) for _ in range(_RANDOM_CHARS))


def parse_latest(reference: str) -> int | None:
    """Return how many runs to go back from the latest, or None for any other reference."""
    name, separator, count = reference.partition("~")
    if name != LATEST:
        return None
    if not separator:
        return 0
    if not count.isascii() or not count.isdigit() or len(count) > 9:
        raise StoreError(
            Code.RUN_NOT_FOUND,
            f"{reference!r} names no run.",
            hint="@latest is the last run, @latest~1 the one before.",
        )
    return int(count)


def check_tag(name: str) -> str:
    """Return the tag without its `@`, or raise `ConfigError`."""
    bare = name.removeprefix("@")
    if not _TAG.fullmatch(bare) or bare == LATEST[1:]:
        raise ConfigError(
            Code.INVALID_OPTION,
            f"{name!r} cannot be a tag.",
            hint="Use letters, digits, dots, dashes and underscores, such as baseline.",
        )
    return bare


def unknown_run(reference: str, matches: list[str], known: list[str]) -> StoreError:
    """Build the error for a reference that names no run, or several."""
    if matches:
        listed = ", ".join(matches[:6]) + (", …" if len(matches) > 6 else "")
        return StoreError(
            Code.RUN_NOT_FOUND,
            f"{reference!r} is the beginning of {len(matches)} runs.",
            hint=f"Type more of it: {listed}.",
        )
    hint = did_you_mean(reference, known) if known else "There are no runs yet: surecall eval."
    return StoreError(Code.RUN_NOT_FOUND, f"There is no run {reference!r}.", hint=hint)
