"""Secrets that cannot be printed, and their values found in any text while they live."""

import base64
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar, cast

from msgspec import Struct, msgpack
from msgspec.structs import replace

MASK: Final = "[redacted]"
"""The text shown in place of a secret."""

_MIN_SECRET_LENGTH: Final = 6
_PLACEHOLDERS: Final = frozenset(
    {
        *("api-key", "api_key", "apikey", "changeme", "default", "llama.cpp", "lm-studio"),
        *("no-key", "no-key-required", "not-needed", "not-required", "not_needed", "ollama"),
        *("openai", "password", "placeholder", "required", "secret", "sk-no-key-required"),
        *("unused", "your-api-key"),
    }
)
"""Words that people give to a local server which wants a key and ignores it."""
_ESCAPED: Final = re.compile(
    r"\\{1,8}(?:u00|x)([0-9a-f]{2})|%(?:25){0,3}([0-9a-f]{2})"
    r"|&#x0{0,6}([0-9a-f]{2});|&#0{0,6}([0-9]{2,3});|&(amp|apos|gt|lt|quot);|\\{1,8}",
    re.IGNORECASE,
)
_ENTITY: Final = re.compile(r"&(?:#|amp;|apos;|gt;|lt;|quot;)")
_NAMED: Final = {"amp": "&", "apos": "'", "gt": ">", "lt": "<", "quot": '"'}
_LOWER: Final = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}
"""Unlike `lower()`, this never changes the length of a text."""

_MAX_ESCAPED_CHARS: Final = 16
MIN_EDGE_CHARS: Final = 4
"""So much of a secret at the edge of a text counts as one that was cut there."""
_MIN_PART_CHARS: Final = 6
"""So much of a secret counts as one anywhere, where text was in pieces."""
_MIN_WORDS_CHARS: Final = 12
"""The same for parts that are words, as in `my-api-key`, at an edge."""
_WORDS: Final = re.compile(r"(?<![a-z0-9])[a-z]{1,15}+(?![a-z0-9])")
"""More letters in a row are no word."""
PART_CHARS: Final = _MIN_PART_CHARS * _MAX_ESCAPED_CHARS
"""How long such a part is at most, however it is escaped."""
_BEFORE_SECRET: Final = re.compile(r"\A[^a-z0-9]{0,8}+")
_BEHIND_SECRET: Final = re.compile(r"[^a-z0-9]{1,8}\Z")
"""Marks that may stand between a secret and the edge that cuts it, in lower case."""
_HALF_ESCAPE: Final = re.compile(
    r"(?:\\{1,8}(?:u[0-9a-f]{0,3}|x[0-9a-f]?)?|%(?:25){0,3}[0-9a-f]?|&[#0-9a-z]{0,10})\Z",
    re.IGNORECASE,
)

_T = TypeVar("_T")
_pack: Final = msgpack.Encoder().encode


class _Known(NamedTuple):
    """The secrets of one moment."""

    generation: object
    forms: tuple[str, ...] = ()
    """In lower case: the values, and what they are in base64 and hexadecimal."""
    bare_forms: tuple[str, ...] = ()
    """The same without backslashes, which unescaping takes away."""
    longest: int = 0
    escapable: tuple[str, ...] = ()
    """How characters of the values may be escaped, apart from their numbers."""
    is_ascii: bool = True

    def is_in(self, text: str) -> bool:
        lowered = text.lower()
        if any(map(lowered.__contains__, self.forms)):
            return True
        if not self._may_be_escaped(lowered):
            return False
        plain = _ESCAPED.sub(_unescape, lowered).lower()
        return any(map(plain.__contains__, self.bare_forms))

    def may_be_in_packed(self, packed: bytes) -> bool:
        """Tell quickly whether a packed value may hold a secret; most cannot."""
        lowered = packed.lower().decode("latin-1")  # which leaves ASCII as it is
        if any(map(lowered.__contains__, self.forms)) or not self.is_ascii:
            return True
        return "%" in lowered or "&" in lowered or "\\" in lowered

    def _may_be_escaped(self, lowered: str) -> bool:
        # Looking for one character is a hundred times as fast as looking for two.
        if "%" in lowered or ("&" in lowered and _ENTITY.search(lowered) is not None):
            return True
        return "\\" in lowered and any(map(lowered.__contains__, ("\\u00", "\\x", *self.escapable)))


class _Registry:
    """The values of all living secrets; any thread may come at any time, also to drop one."""

    def __init__(self) -> None:
        self._values: dict[int, str] = {}
        self._generation = object()
        self._known = _Known(self._generation)

    def add(self, identity: int, value: str) -> None:
        is_new = value not in self._values.copy().values()
        self._values[identity] = value
        if is_new:
            self._generation = object()

    def drop(self, identity: int) -> None:
        value = self._values.pop(identity, None)
        if value is not None and value not in self._values.copy().values():
            self._generation = object()

    def known(self) -> _Known:
        known, generation = self._known, self._generation
        if known.generation is not generation:
            # Longest first: a key that begins with another one is taken out whole.
            values = tuple(sorted(set(self._values.copy().values()), key=len, reverse=True))
            forms = tuple(form for value in values for form in _forms(value))
            marks = (f"\\{char}" for char in "/'\"\\" if any(char in form for form in forms))
            self._known = known = _Known(
                generation,
                forms,
                bare_forms=tuple(form.replace("\\", "") for form in forms),
                longest=_MAX_ESCAPED_CHARS * max(map(len, values), default=0),
                escapable=tuple(marks),
                is_ascii=all(map(str.isascii, forms)),
            )
        return known


_registry: Final = _Registry()


class Secret:
    """A value that never shows itself; call `reveal()` at the one place that sends it.

    While it lives, the value is taken out of every error, log line and stored record, unless it
    is shorter than six characters or a well-known placeholder such as `not-needed`.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value
        if len(value) >= _MIN_SECRET_LENGTH and value.lower() not in _PLACEHOLDERS:
            _registry.add(id(self), value)

    # Bound here: at the end of the process, the module may be gone before its last secret.
    def __del__(self, _drop: Callable[[int], None] = _registry.drop) -> None:
        _drop(id(self))

    def reveal(self) -> str:
        """Return the value."""
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return "Secret('***')"

    def __str__(self) -> str:
        return "***"

    def __reduce__(self) -> Any:
        raise TypeError("a Secret is never pickled")


def mask_known(value: _T) -> _T:
    """Return text, plain data or records without known secrets; the same object if it has none."""
    known = known_secrets()
    if not known.forms:
        return value
    if isinstance(value, str):
        return cast("_T", mask_text(value))
    if isinstance(value, bytes):
        return cast(
            "_T",
            mask_text(value.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape"),
        )
    try:  # packed, every text in a value is there as it is, and that is the quickest way to all
        if not known.may_be_in_packed(_pack(value)):
            return value
    except (TypeError, ValueError, OverflowError, RecursionError):
        pass  # it cannot be packed, but it can be shown
    return cast("_T", _mask_value(value)) if known.is_in(repr(value)) else value


def known_secrets() -> _Known:
    """Return the secrets that live now."""
    return _registry.known()


def known_spans(text: str, *, starts: bool = False, ends: bool = False) -> list[tuple[int, int]]:
    """Return where known secrets are in a text, also in parts.

    Args:
        text: The text.
        starts: Whether the text may begin inside a secret: then a shorter part counts there.
        ends: Whether the text may end inside a secret: then a shorter part counts there.
    """
    known = known_secrets()
    if not known.forms:
        return []
    spans = list(_find_spans(_Source(text), known.forms, starts=starts, ends=ends))
    if any(map(text.__contains__, "\\%&")):
        whole = _HALF_ESCAPE.sub("", text) if ends else text
        source = _Source(whole, unescaped=True)
        spans += _find_spans(source, known.bare_forms, starts=starts, ends=ends)
    return spans


def find_begun(text: str) -> int:
    """Return where the end of a text begins to be a known secret, or the length of the text."""
    known = known_secrets()
    first = _find_begun(text.translate(_LOWER), known.forms)
    if any(map(text.__contains__, "\\%&")):
        whole = _HALF_ESCAPE.sub("", text)
        source = _Source(whole, unescaped=True)
        begun = _find_begun(source.plain, known.bare_forms)
        first = min(first, source.start(begun) if begun < len(source.plain) else len(whole))
    return first


def _find_begun(lowered: str, forms: tuple[str, ...]) -> int:
    first = len(lowered)
    for form in forms:
        start = lowered.find(form[0], max(0, len(lowered) - len(form) + 1))
        while 0 <= start < first:
            if form.startswith(lowered[start:]):
                first = start
                break
            start = lowered.find(form[0], start + 1)
    return first


def _find_spans(
    source: "_Source", forms: tuple[str, ...], *, starts: bool, ends: bool
) -> Iterator[tuple[int, int]]:
    plain = source.plain
    parts = _parts_of(forms)
    for at in range(len(plain) - _MIN_PART_CHARS + 1):
        if plain[at : at + _MIN_PART_CHARS] in parts:
            yield source.start(at), source.end(at + _MIN_PART_CHARS - 1)
    before, behind = _BEFORE_SECRET.search(plain), _BEHIND_SECRET.search(plain)
    begin = before.end() if before else 0
    end = behind.start() if behind else len(plain)
    for form in forms:
        at = plain.find(form)
        while at >= 0:
            yield source.start(at), source.end(at + len(form) - 1)
            at = plain.find(form, at + len(form))
        if starts and (size := _part_size(plain[begin : begin + len(form)], form)):
            yield source.start(begin), source.end(begin + size - 1)
        if ends and (size := _part_size(plain[max(begin, end - len(form)) : end], form, back=True)):
            yield source.start(end - size), source.end(end - 1)


@lru_cache(maxsize=4)
def _parts_of(forms: tuple[str, ...]) -> frozenset[str]:
    """Return every part of secrets of the length that counts as one anywhere."""
    return frozenset(
        form[at : at + _MIN_PART_CHARS]
        for form in forms
        for at in range(len(form) - _MIN_PART_CHARS + 1)
        if 1 in _letters_of(form)[at : at + _MIN_PART_CHARS]
    )


@lru_cache(maxsize=256)
def _letters_of(form: str) -> bytes:
    """Return a 1 for each character of a secret that is in none of the words it is made of."""
    found = bytearray(map(str.isalnum, form))
    for match in _WORDS.finditer(form) if not form.isalnum() else ():
        found[slice(*match.span())] = bytes(len(match[0]))
    return bytes(found)


def _part_size(text: str, form: str, *, back: bool = False) -> int:
    """Return how long the part of a secret is that a text begins with, or ends with."""
    size = MIN_EDGE_CHARS
    while size <= len(text) and (text[-size:] if back else text[:size]) in form:
        size += 1
    size -= 1
    if size < MIN_EDGE_CHARS:
        return 0
    at = form.find(text[-size:] if back else text[:size])
    return size if 1 in _letters_of(form)[at : at + size] or size >= _MIN_WORDS_CHARS else 0


def mask_text(text: str) -> str:
    """Return the text without known secrets."""
    known = known_secrets()
    if not known.forms or not known.is_in(text):
        return text
    text = _mask_spans(text, _Source(text, unescaped=True), known.bare_forms)
    return _mask_spans(text, _Source(text), known.forms)  # one that only looks escaped


class _Source:
    """A text to be searched, and where its characters were before it was unescaped."""

    def __init__(self, text: str, *, unescaped: bool = False) -> None:
        self._starts = [0]
        """Where each part begins in the plain text; what is escaped is a separate part."""
        self._origins = [0]
        """Where each part begins in the text as it was."""
        parts: list[str] = []
        size = last = 0
        for match in _ESCAPED.finditer(text) if unescaped else ():
            for part, origin in (
                (text[last : match.start()], match.start()),
                (_unescape(match), match.end()),
            ):
                parts.append(part)
                size += len(part)
                self._starts.append(size)
                self._origins.append(origin)
            last = match.end()
        parts.append(text[last:])
        self.plain = "".join(parts).translate(_LOWER)

    def start(self, place: int) -> int:
        """Return where a character began; backslashes before it belong to it."""
        part = bisect_left(self._starts, place)
        if part == len(self._starts) or self._starts[part] != place:
            part -= 1
        return self._origins[part] + place - self._starts[part]

    def end(self, place: int) -> int:
        """Return where a character ended."""
        part = bisect_right(self._starts, place) - 1
        if part % 2:  # an escaped one
            return self._origins[part + 1]
        return self._origins[part] + place - self._starts[part] + 1


def _mask_spans(text: str, source: _Source, forms: tuple[str, ...]) -> str:
    spans: list[tuple[int, int]] = []
    for form in forms:
        place = source.plain.find(form)
        while place >= 0:
            spans.append((source.start(place), source.end(place + len(form) - 1)))
            place = source.plain.find(form, place + len(form))
    pieces: list[str] = []
    last = 0
    for start, end in sorted(spans):
        if start >= last:
            pieces += (text[last:start], MASK)
        last = max(last, end)
    return "".join((*pieces, text[last:]))


@lru_cache(maxsize=256)
def _forms(value: str) -> tuple[str, ...]:
    raw = value.encode("utf-8", "surrogatepass")
    cores = [core for shift in range(3) if len(core := _base64_core(raw, shift)) >= 8]
    urlsafe = [core.replace("+", "-").replace("/", "_") for core in cores]
    return tuple(dict.fromkeys(form.lower() for form in (value, *cores, *urlsafe, raw.hex())))


def _base64_core(raw: bytes, shift: int) -> str:
    """Return the characters that stand for these bytes alone, wherever they begin in base64."""
    encoded = base64.b64encode(bytes(shift) + raw).decode("ascii")
    return encoded[-(-shift * 8 // 6) : (shift + len(raw)) * 8 // 6]


def _unescape(match: re.Match[str]) -> str:
    """Return the character that is meant; a backslash may be one of several, so none is kept."""
    if match[5]:
        return _NAMED[match[5].lower()]
    digits = match[1] or match[2] or match[3]
    char = chr(int(digits, 16)) if digits else chr(int(match[4])) if match[4] else ""
    return "" if char == "\\" else char


def _mask_value(value: Any) -> Any:
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {_mask_value(key): _mask_value(item) for key, item in items}
    if isinstance(value, list):
        return [_mask_value(item) for item in cast("list[Any]", value)]
    if isinstance(value, tuple):
        return tuple(_mask_value(item) for item in cast("tuple[Any, ...]", value))
    if isinstance(value, Struct):
        fields = {name: _mask_value(getattr(value, name)) for name in value.__struct_fields__}
        return replace(value, **fields)
    return value
