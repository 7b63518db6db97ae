"""Text, exceptions and log records without secrets: known ones, and what is shaped like a key."""

import logging
import re
from collections.abc import Iterator, Mapping
from typing import Final

from .known import (
    MASK,
    MIN_EDGE_CHARS,
    PART_CHARS,
    Secret,
    find_begun,
    known_secrets,
    known_spans,
    mask_text,
)

_SHAPE_START_CHARS: Final = 512
"""Characters by which the beginning of a key is recognized."""
_MAX_ERROR_CHARS: Final = 16 * 1024
_PREFIXES: Final = (
    *("csk", "fw", "ghp", "gho", "ghr", "ghs", "ghu", "glpat", "gsk", "hf", "jina", "key", "npm"),
    *("nvapi", "pk", "pplx", "pypi", "r8", "rk", "sk", "tgp", "xai", "xoxa", "xoxb", "xoxp"),
)
_SHORTEST: Final = 8
"""The value of a key has at least so many characters, and none between words."""
_WORD_END: Final = re.compile(r"[A-Za-z0-9._~+/=%-]++\Z")
_WORD_START: Final = re.compile(r"[A-Za-z0-9._~+/=%-]++")
_LONG: Final = re.compile(r"[-_](?=[A-Za-z0-9_-]{12})")
_BEFORE_LONG: Final = (*_PREFIXES, "pat")
_CASED_SIGNS: Final = ("AIza", "AKIA", "ASIA", "dapi", "eyJ", "ya29.")
_LABEL_WORDS: Final = ("bearer", "key", "token", "sig")
_LABEL_STARTS: Final = (
    *("bearer ", "api", "access", "auth", "secret"),
    *(f"{mark}{word}" for mark in "?&" for word in ("key", "token", "sig")),
)
_LABEL: Final = re.compile(
    r"bearer |(?:api|access|auth|secret)[-_ ]?+(?:key|token)|[?&](?:key|token|sig)"
)

_SECRET_WORDS: Final = ("auth", "credential", "key", "passw", "secret", "token")
_SECRET_NAMES: Final = frozenset(
    {
        *("apikey", "auth", "authorization", "authtoken", "credential", "credentials"),
        *("key", "passwd", "password", "secret", "token"),
    }
)

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
    if any(text.endswith(_BEFORE_LONG, 0, joint.start()) for joint in _LONG.finditer(text)):
        return True
    if any(map(text.__contains__, _CASED_SIGNS)):
        return True
    text = text.casefold()
    # Records speak of tokens all the time, but seldom of those of a label.
    return (
        any(map(text.__contains__, _LABEL_STARTS))
        and any(map(text.__contains__, _LABEL_WORDS))
        and _LABEL.search(text) is not None
    )


def _mask_shape(match: re.Match[str]) -> str:
    if match["sure"]:
        return MASK
    label, value = match["label"] or "", match["value"] or match[0]
    # A word such as `key_value_store` or `Bearer authentication` is not a key.
    if any(map(str.isdigit, value)) or (label and len(value) >= 20):
        return label + MASK
    return match[0]


def _mask_shapes(text: str) -> str:
    """Return the text without anything that is shaped like a key."""
    return _KEY_SHAPES.sub(_mask_shape, text) if _may_hold_shape(text) else text


def _shape_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where something is that is shaped like a key."""
    if _may_hold_shape(text):
        for match in _KEY_SHAPES.finditer(text):
            if _mask_shape(match) != match[0]:
                yield match.span("value" if match["value"] else 0)


def _join(spans: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield spans in order, those that overlap or touch as one."""
    first = last = 0
    for start, stop in sorted(spans):
        if start > last and last:
            yield first, last
            first = start
        elif not last:
            first = start
        last = max(last, stop)
    if last:
        yield first, last


def excerpt(text: str | bytes, limit: int = 200, *, at: int | None = None) -> str:
    """Return a part of foreign text as errors, events, logs and records may show it.

    Secrets are taken out before anything is cut, also parts of known ones where the text, which
    may be a piece of what was sent, begins or ends inside them.

    Args:
        text: A text from a provider, server or client, or the piece of it that came.
        limit: How many characters are shown.
        at: The place around which they are; by default they are the first, with a note of how
            many were left out.
    """
    if isinstance(text, bytes):
        text = text.decode("utf-8", "replace")
    first = 0 if at is None else max(0, at - limit // 2)
    last = first + limit if at is None else at + limit // 2
    begin, end = max(0, first - _SHAPE_START_CHARS), last + _SHAPE_START_CHARS
    near = text[begin:end]
    # Parts are found as well, so what is beyond a few of them need not be looked at.
    low = max(0, first - begin - PART_CHARS)
    parts = near[low : last - begin + PART_CHARS]
    ends = begin + low + len(parts) == len(text)
    found = known_spans(parts, starts=begin + low == 0, ends=ends)
    spans = [*((low + start, low + stop) for start, stop in found), *_shape_spans(near)]
    pieces: list[str] = []
    place = first - begin
    for start, stop in _join(spans):
        if start >= last - begin:
            break
        if stop > place:
            pieces += (near[place : max(place, start)], MASK)
            place = stop
    pieces.append(near[place : last - begin])
    shown = "".join(pieces)
    if at is not None:
        return f"{'…' * (first > 0)}{shown}{'…' * (last < len(text))}"
    left_out = len(text) - max(place + begin, last)
    return f"{shown}… (+{left_out} characters)" if left_out > 0 else shown


def mask_error(body: bytes) -> bytes:
    """Return the body of an error without known secrets, nor parts of them that somebody cut.

    What is long is searched for whole ones only.
    """
    if not known_secrets().forms:
        return body
    text = mask_text(body.decode("utf-8", "surrogateescape"))
    pieces: list[str] = []
    place = 0
    for start, stop in _join(known_spans(text) if len(text) <= _MAX_ERROR_CHARS else []):
        pieces += (text[place:start], MASK)
        place = stop
    return "".join((*pieces, text[place:])).encode("utf-8", "surrogateescape")


def looks_like_key(text: str) -> bool:
    """Tell whether a text has the shape of a key."""
    return any(_mask_shape(match) != match[0] for match in _KEY_SHAPES.finditer(text))


def secrets_in_headers(headers: Mapping[str, str]) -> list[Secret]:
    """Return what is secret in headers: by their names, or because it looks like a key.

    Hold them for as long as the headers are in use.
    """
    found: list[Secret] = []
    for name, value in headers.items():
        if "cookie" in name.lower():
            values = (item.partition("=")[2] for item in value.split(";"))
            found += (Secret(part) for part in values if _looks_random(part))
        if _is_secret_name(name, value) or looks_like_key(value):
            found.append(Secret(value.rpartition(" ")[2]))  # without `Bearer`
    return found


def _is_secret_name(name: str, value: str) -> bool:
    """Tell a key from what is only about one, such as `X-Max-Tokens: 100000`."""
    name = name.lower()
    if not any(word in name for word in _SECRET_WORDS):
        return False
    if not _SECRET_NAMES.isdisjoint(name.replace("_", "-").split("-")):
        return True
    return _looks_random(value)


def _looks_random(value: str) -> bool:
    return len(value) >= 12 and any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def redact(text: str) -> str:
    """Return the text without known secrets and without anything shaped like a key."""
    return _mask_shapes(mask_text(text))


class _CleanNames:
    """Names without secrets, remembered for as long as the known secrets are the same."""

    __slots__ = ("_known", "_names")

    def __init__(self) -> None:
        self._known: object = None
        self._names: set[str] = set()

    def redact(self, name: str) -> str:
        """Redact a text that comes again and again, such as a name: quick the second time."""
        known = known_secrets()
        if known is self._known and name in self._names:
            return name
        clean = redact(name)
        if clean == name and len(name) <= _MAX_NAME_CHARS:
            if known is not self._known or len(self._names) >= _MAX_NAMES:
                self._known, self._names = known, set()
            self._names.add(name)
        return clean


_MAX_NAME_CHARS: Final = 200
_MAX_NAMES: Final = 1000

redact_name: Final = _CleanNames().redact


def redact_start(text: str, limit: int) -> str:
    """Return the first `limit` characters of a longer text, redacted as part of the whole.

    A secret that the limit would cut in two is taken out: half of it is still a secret.
    """
    known = known_secrets()
    if not known.forms:
        # Only what is cut in two has to be found here, and the shortest key is longer than a word.
        before = _WORD_END.search(text, max(0, limit - _SHORTEST), limit)
        behind = _WORD_START.match(text, limit, limit + _SHORTEST)
        if not before or not behind or len(before[0]) + len(behind[0]) < _SHORTEST:
            return text[:limit]
    edge = max(_SHAPE_START_CHARS, known.longest)
    near = text[: limit + edge]
    if redact(near) == near:
        return text[:limit]
    size = 8 * len(near)
    while size < len(text):
        # Only what comes from the last `edge` characters can be other than in the whole text, and
        # masks make it at most a few times as long.
        clean = redact(text[:size])
        if len(clean) >= limit + 4 * edge:
            return clean[:limit]
        size *= 4
    return redact(text)[:limit]


class StreamMask:
    """Takes known secrets out of text that comes in pieces; what may begin one waits."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = ""

    def feed(self, text: str) -> str:
        """Return what can be shown now."""
        known = known_secrets()
        if not known.forms:
            return text
        text = mask_text(self._held + text) if self._held else mask_text(text)
        start = find_begun(text)
        self._held = text[start:]
        return text[:start]

    def close(self, *, is_cut: bool = False) -> str:
        """Return what was held back; of text that was cut, it is taken for part of a secret."""
        held, self._held = self._held, ""
        return excerpt(held, len(held)) if is_cut else held


def drop_begun(text: str) -> str:
    """Return a text that may be cut without the part of a known secret that it ends with."""
    known = known_secrets()
    if not known.forms:
        return text
    tail = text[-known.longest :]
    left_out = len(tail) - find_begun(tail)
    return text[: len(text) - left_out] if left_out >= MIN_EDGE_CHARS else text


def cut_secret_causes(error: BaseException) -> None:
    """Unlink the exceptions behind an error that show a secret, such as a body not in UTF-8."""
    for later, earlier in list(_causes(error)):
        shown = f"{earlier!r} {earlier} {getattr(earlier, '__dict__', '')}"
        if redact(shown) != shown:
            later.__cause__ = later.__context__ = None


def _causes(error: BaseException) -> Iterator[tuple[BaseException, BaseException]]:
    seen = {id(error)}
    waiting = [error]
    while waiting:
        later = waiting.pop()
        for earlier in (later.__cause__, later.__context__):
            if earlier is not None and id(earlier) not in seen:
                seen.add(id(earlier))
                waiting.append(earlier)
                yield later, earlier


def open_log(name: str) -> logging.Logger:
    """Return a logger whose records hold no secrets, whichever handler takes them."""
    logger = logging.getLogger(name)
    if not any(isinstance(item, _SecretFilter) for item in logger.filters):
        logger.addFilter(_SecretFilter())
    return logger


class _SecretFilter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        clean = redact(message)
        if clean != message:
            record.msg, record.args = clean, ()
        if record.exc_info:
            text = _FORMATTER.formatException(record.exc_info)
            shown = f"{text} {record.exc_info[1]!r}"
            if redact(shown) != shown:
                record.exc_info, record.exc_text = None, redact(text)
        return True


_FORMATTER: Final = logging.Formatter()
