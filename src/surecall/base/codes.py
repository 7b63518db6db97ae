"""The meaning of each code in words: the texts of `codes.toml`."""

import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.resources import files

from surecall.base.errors import Code, ConfigError

__all__ = ["CodeText", "all_codes", "explain_code"]


@dataclass(frozen=True, slots=True)
class CodeText:
    """Everything there is to say about one code."""

    code: str
    title: str
    """One short sentence."""
    seen: str
    """Where and when it is met."""
    why: str
    """The cause."""
    fix: str
    """The remedy."""
    reaction: str
    """The reaction of surecall itself."""
    page: str = ""
    """The page to read on: `surecall docs PAGE`."""


def explain_code(code: str) -> CodeText:
    """Return the explanation of a code, in any case and with `-` or `_`."""
    texts = _texts()
    name = code.strip().upper().replace("-", "_")
    if name in texts:
        return texts[name]
    close = get_close_matches(name, texts, n=3)
    hint = (
        f"Did you mean {' or '.join(close)}?"
        if close
        else "List them all with: surecall docs explain --list"
    )
    raise ConfigError(Code.UNKNOWN_CODE, f"{code!r} is not a code of surecall.", hint=hint)


def all_codes() -> tuple[CodeText, ...]:
    """Return the texts of all codes, in the order of `codes.toml`."""
    return tuple(_texts().values())


@cache
def _texts() -> dict[str, CodeText]:
    raw = tomllib.loads(files("surecall.base").joinpath("codes.toml").read_text("utf-8"))
    return {code: CodeText(code=code, **fields) for code, fields in raw.items()}
