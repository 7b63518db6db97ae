"""The shapes of keys that many providers use: the second net, for keys that nobody named."""

import re
from typing import Final

__all__ = ["MASK", "SHAPE_START_CHARS", "looks_like_key", "mask_shapes"]

MASK: Final = "[redacted]"
SHAPE_START_CHARS: Final = 512
"""What begins like a key is recognized by this much of it."""
_PREFIXES: Final = (
    *("csk", "fw", "ghp", "gho", "ghr", "ghs", "ghu", "glpat", "gsk", "hf", "jina", "key", "npm"),
    *("nvapi", "pk", "pplx", "pypi", "r8", "rk", "sk", "tgp", "xai", "xoxa", "xoxb", "xoxp"),
)
_JOINED: Final = re.compile(rf"(?:{'|'.join((*_PREFIXES, 'pat'))})[-_]")
_CASED_SIGNS: Final = ("AIza", "AKIA", "ASIA", "dapi", "eyJ", "ya29.")
_LABEL_SIGNS: Final = ("bearer", "key", "token", "sig=", "signature=")

# Bounded, possessive repetitions over one character class each: these cannot backtrack.
_KEY_SHAPES: Final = re.compile(
    r"(?<![A-Za-z0-9])(?P<sure>"
    r"sk-[A-Za-z0-9_-]{12,400}+"
    r"|AIza[A-Za-z0-9_-]{30,60}+"
    r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])"
    r"|dapi[a-f0-9]{32}(?:-[0-9])?"
    r"|eyJ[A-Za-z0-9_-]{8,4000}+\.[A-Za-z0-9_-]{4,4000}+(?:\.[A-Za-z0-9_-]{0,1000}+)?"
    r"|ya29\.[A-Za-z0-9_-]{16,1000}+"
    r")"
    rf"|(?<![A-Za-z0-9])(?:github_pat|{'|'.join(_PREFIXES)})[-_][A-Za-z0-9_-]{{12,400}}+"
    r"|(?P<label>(?i:\bbearer[ ]{1,3}|(?:[?&]|\b)(?:(?:api|access|auth|secret)[-_ ]?(?:key|token)"
    r"|(?<=[?&])(?:key|token|sig|signature))[\"']?[ ]{0,2}[:=][ ]{0,2}[\"']?(?:bearer[ ])?))"
    r"(?P<value>[A-Za-z0-9._~+/=%-]{8,4000}+)"
)


def _may_hold_shape(text: str) -> bool:
    """Look for the beginnings of keys, several times as fast as for whole ones: most have none."""
    if ("-" in text or "_" in text) and _JOINED.search(text):
        return True
    if any(map(text.__contains__, _CASED_SIGNS)):
        return True
    return any(map(text.lower().__contains__, _LABEL_SIGNS))


def _mask_shape(match: re.Match[str]) -> str:
    if match["sure"]:
        return MASK
    label, value = match["label"] or "", match["value"] or match[0]
    # A word such as `key_value_store` or `Bearer authentication` is not a key.
    if any(map(str.isdigit, value)) or (label and len(value) >= 20):
        return label + MASK
    return match[0]


def mask_shapes(text: str) -> str:
    """Return the text without anything that is shaped like a key."""
    return _KEY_SHAPES.sub(_mask_shape, text) if _may_hold_shape(text) else text


def looks_like_key(text: str) -> bool:
    """Tell whether a text has the shape of a key."""
    return any(_mask_shape(match) != match[0] for match in _KEY_SHAPES.finditer(text))
