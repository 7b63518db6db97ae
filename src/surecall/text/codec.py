"""The only place that encodes and decodes JSON.

Reading is strict RFC 8259 with one policy for what the standard leaves open:

- a byte order mark at the start is dropped;
- numbers are finite, integers are exact up to 4,300 digits;
- at most 128 containers are nested in one another;
- the last of repeated keys wins, and `decode_noting` reports which keys had differing values;
- half of a surrogate pair is refused, replaced or kept, as the caller asks.

An error's `position` counts bytes when bytes were given, and characters when text was.

Writing is compact UTF-8. What msgspec can encode by itself may be written (structs, dataclasses,
datetimes, UUIDs, enums, bytes as base64, sets as arrays), and number keys become their text.
Depth is limited only by the stack.

The canonical form, for approval, idempotency and fingerprints, has its keys sorted by code point
and nothing that need not be written; floats have their shortest text. An integer and a float stay
apart as they were decoded: `1` and `1.0` hash differently, and so do `0.0` and `-0.0`. Keys must
be text.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from itertools import islice
from math import isfinite
from typing import Any, Final, Literal, NamedTuple, NoReturn, TypeAlias, TypeVar, cast

import msgspec

from surecall.base.errors import Code, JSONTextError
from surecall.base.limits import MAX_JSON_DEPTH

from .diagnosis import WRITE_FAILURES, Source, explain_unwritable, find_non_finite
from .pointer import render_pointer
from .surrogates import repair_surrogates_in, replace_halves, replace_lone_surrogates

_T = TypeVar("_T")

SurrogatePolicy: TypeAlias = Literal["refuse", "replace", "keep"]
"""What becomes of half a surrogate pair: an error, U+FFFD, or a Python surrogate."""

_MAX_NAMED: Final = 100
_encode_sorted: Final = msgspec.json.Encoder(order="sorted").encode
_MAX_DIGITS: Final = 4300
_MARK: Final = "\ufeff"
_UNSURE: Final = object()
_BACKSLASH: Final = 0x5C
_NUMBERS_AND_TEXTS: Final = re.compile(
    r'"(?:[^"\\]|\\.)*+"|-?(?:NaN|Infinity|[0-9][0-9.eE+-]*+)', re.DOTALL
)

_Scalar: TypeAlias = str | int | float | bool | None


def _make_shallow_decoder(depth: int) -> msgspec.json.Decoder[Any]:
    """Return a decoder that refuses what nests deeper, and reads the rest as fast as any does.

    Making it takes twice as long for each level; seven, which the body of a reply with calls has,
    take a millisecond.
    """
    kind: Any = _Scalar
    for _ in range(depth):
        kind = _Scalar | list[kind] | dict[str, kind]
    return msgspec.json.Decoder(kind)


_decoder: Final = msgspec.json.Decoder()
# Reads what it can exactly as the decoder above does, and refuses objects inside the object and
# arrays inside arrays: that no key is repeated then shows in two numbers.
_decode_flat: Final = msgspec.json.Decoder(dict[str, _Scalar | list[_Scalar]]).decode
_decode_shallow: Final = _make_shallow_decoder(7).decode
_encoder: Final = msgspec.json.Encoder()
_sorted_encoder: Final = msgspec.json.Encoder(order="sorted")


class Decoded(NamedTuple):
    """A value, and what its text said twice."""

    value: Any
    duplicates: tuple[str, ...]
    """Pointers of keys that occurred more than once in their object with differing values.

    Of very many, the first are named.
    """


def decode(
    data: bytes | str, *, max_bytes: int | None = None, surrogates: SurrogatePolicy = "refuse"
) -> Any:
    """Return the value of JSON text, or raise `JSONTextError`; of repeated keys the last wins."""
    if max_bytes is None and isinstance(data, (bytes, str)):
        try:
            return _decode_shallow(data)
        except (ValueError, RecursionError):
            pass
    return _load(data, max_bytes, surrogates)[0]


def decode_own(data: bytes) -> Any:
    """Return the value of JSON that surecall wrote: it may nest deeper than what it was given."""
    try:
        return _decoder.decode(data)
    except (ValueError, RecursionError):
        return decode(data)


def decoder_of(kind: type[_T]) -> Callable[[bytes], _T]:
    """Return what decodes only that part of a document which a type names, at the least cost.

    What it returns raises `ValueError` for text that is not JSON or does not fit the type. It does
    not notice repeated keys, and what it passes over need not be text.
    """
    return msgspec.json.Decoder(kind).decode


def decode_plain(data: bytes | str, unsure: Any = None) -> Any:
    """Return the value of JSON text when nothing about it is in doubt, or else `unsure`.

    This is the quick way for text that is almost always right. `unsure` is not a verdict: the
    text may be invalid, too deep, or repeat a key, and `decode_noting` finds out.
    """
    try:
        raw = data.encode() if type(data) is str else _as_bytes(data)
        value = _decode_flat(raw)
    except msgspec.ValidationError:
        return _decode_nested(_as_bytes(data), unsure)
    except (ValueError, RecursionError):
        return unsure
    more = len(raw) - len(raw.replace(b":", b"")) - len(value)
    if more == 0:  # a colon for every key: none was overwritten
        return value
    if _BACKSLASH not in raw or not _has_escaped_colon(raw):
        for text in value.values():
            if type(text) is str and ":" in text:
                part = text.encode()
                more -= len(part) - len(part.replace(b":", b""))
                if more == 0:  # all others are in values
                    return value
    return value if _has_no_repeated_key(value, raw) else unsure


def null_non_finite(data: bytes, inside: Callable[[tuple[str, ...]], bool]) -> bytes | None:
    """Return JSON text with null for every number that is not finite.

    Args:
        data: JSON text whose only fault may be such numbers: `NaN`, `Infinity`, `1e400`.
        inside: Whether such a number may not be replaced here, by the keys that lead to it.

    Returns:
        The text; None where it has no such number, another fault, or one that has to stay.
    """
    try:
        text = data.decode("utf-8").removeprefix(_MARK)
        value = json.loads(text)
        parts: list[str] = []
        end = 0
        for found in _NUMBERS_AND_TEXTS.finditer(text):
            word = found.group()
            if word[0] != '"' and not isfinite(float(word)):
                parts += (text[end : found.start()], "null")
                end = found.end()
        if not parts:
            return None
        mended = "".join((*parts, text[end:])).encode()
        decode(mended, surrogates="replace")
    except (ValueError, RecursionError, JSONTextError):
        return None
    stack: list[tuple[Any, tuple[str, ...]]] = [(value, ())]
    while stack:
        node, way = stack.pop()
        if isinstance(node, dict):
            members = cast("dict[str, Any]", node).items()
            stack.extend((child, (*way, key)) for key, child in members)
        elif isinstance(node, list):
            stack.extend((child, way) for child in cast("list[Any]", node))
        elif isinstance(node, float) and not isfinite(node) and inside(way):
            return None
    return mended


class NotJSONError(Exception):
    """Text that is not JSON, where nobody asks why."""


def decode_noting(
    data: bytes | str,
    *,
    max_bytes: int | None = None,
    surrogates: SurrogatePolicy = "refuse",
    explains: bool = True,
) -> Decoded:
    """Return the value of JSON text and the keys that were given differing values.

    Without `explains`, text that is no JSON at all raises `NotJSONError`: that costs much less.
    """
    if max_bytes is None:
        plain = decode_plain(data, _UNSURE)
        if plain is not _UNSURE:
            return Decoded(plain, ())
    return decode_doubtful(data, max_bytes=max_bytes, surrogates=surrogates, explains=explains)


def decode_doubtful(
    data: bytes | str,
    *,
    max_bytes: int | None = None,
    surrogates: SurrogatePolicy = "refuse",
    explains: bool = True,
) -> Decoded:
    """Do what `decode_noting` does, for text of which `decode_plain` is not sure."""
    value, source = _load(data, max_bytes, surrogates, explains=explains)
    if _has_no_repeated_key(value, source):
        return Decoded(value, ())
    text = source if isinstance(source, str) else source.decode("utf-8")
    if surrogates == "replace":
        text = replace_lone_surrogates(text)
    try:
        conflicts = _find_conflicts(text)
    except RecursionError:
        raise _make_source(data).explain_depth() from None
    return Decoded(value, conflicts)


def is_start_of_json(text: str) -> bool:
    """Tell whether the only thing wrong with JSON text is that it ends too soon."""
    try:
        _decoder.decode(text)
    except msgspec.DecodeError as error:
        return "truncated" in str(error)
    except (ValueError, RecursionError):
        pass
    return False


def encode(value: Any) -> bytes:
    """Return the value as compact JSON, or raise `JSONTextError`."""
    return _write(value, _encoder)


def encode_text(value: Any, *, indent: int | None = None) -> str:
    """Return the value as JSON in a `str`, or raise `JSONTextError`.

    It is compact; with `indent` 0 it is one line with spaces, and with more it is indented lines.
    """
    data = _write(value, _encoder)
    return (data if indent is None else msgspec.json.format(data, indent=indent)).decode("utf-8")


def canonical_bytes(value: Any, *, finite: bool = False) -> bytes:
    """Return the same bytes for the same value, however its keys are ordered.

    `finite` says that the value is known to hold no NaN and no infinity, which saves a walk.
    """
    return _write(value, _sorted_encoder, finite=finite)


def canonical_hash(value: Any, *, finite: bool = False) -> str:
    """Return the SHA-256 of the canonical bytes, in hexadecimal."""
    return sha256(canonical_bytes(value, finite=finite)).hexdigest()


def _write(value: Any, encoder: msgspec.json.Encoder, *, finite: bool = False) -> bytes:
    try:
        data = encoder.encode(value)
    except WRITE_FAILURES as error:
        raise explain_unwritable(value, error, encoder.encode) from None
    # msgspec writes NaN and infinities as null.
    if not finite and b"null" in data:
        refusal = find_non_finite(value)
        if refusal:
            raise refusal
    return data


def _load(
    data: bytes | str,
    max_bytes: int | None,
    surrogates: SurrogatePolicy,
    *,
    explains: bool = True,
) -> tuple[Any, bytes | str]:
    """Return the value and the text it was read from."""
    if not isinstance(data, (bytes, str)):
        raise TypeError(f"JSON text must be bytes or str, not {type(data).__name__}")
    if max_bytes is not None:
        _refuse_oversize(data, max_bytes)
    try:
        value, fits = _decode_at_once(data)
    except (ValueError, RecursionError):
        return _load_carefully(_make_source(data), surrogates, explains=explains)
    if not fits:
        raise _make_source(data).explain_depth()
    return value, data


def _load_carefully(
    source: Source, surrogates: SurrogatePolicy, *, explains: bool
) -> tuple[Any, str]:
    """Read what msgspec refused: say why, or accept what our policy allows."""
    text = source.text
    value: Any = None
    problem: JSONTextError | None = None
    try:
        value = _careful_decoder.decode(text)
    except json.JSONDecodeError as error:
        depth = source.find_depth(error.pos)
        if depth is None and not explains:
            raise NotJSONError from None
        problem = depth or source.explain_malformed(error.msg, error.pos)
    except _NumberError as error:
        problem = error.explain(source, error.literal)
    except RecursionError:
        problem = source.explain_depth()
    if problem is not None:  # raised here, it does not hold what was caught, which has the text
        raise problem
    if _nests_too_deep(value):
        raise source.explain_depth()
    try:
        _encoder.encode(value)
    except UnicodeEncodeError:
        if surrogates == "refuse":
            raise source.explain_lone_surrogate() from None
        if surrogates == "replace":
            if _is_unicode(text):  # then all of them were escaped, and pairs have been joined
                return repair_surrogates_in(value, replace_halves), text
            text = replace_lone_surrogates(text)
            value = _careful_decoder.decode(text)
    return value, text


def _is_unicode(text: str) -> bool:
    """Tell whether no half of a surrogate pair is in the text as it is."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _make_source(data: bytes | str) -> Source:
    if isinstance(data, str):
        return Source(data.removeprefix(_MARK), "character", data.startswith(_MARK))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        position = error.start
    else:
        return Source(text.removeprefix(_MARK), "byte", text.startswith(_MARK))
    message = f"byte {position} (0x{data[position]:02X}) is not valid UTF-8."
    hint = "JSON text must be encoded as UTF-8."
    raise JSONTextError(Code.INVALID_UTF8, message, position=position, hint=hint)


def _refuse_oversize(data: bytes | str, max_bytes: int) -> None:
    size = len(data)
    # A character takes at most four bytes: encode only when that decides.
    if isinstance(data, str) and size <= max_bytes < 4 * size and not data.isascii():
        size = len(data.encode("utf-8", "surrogatepass"))
    if size > max_bytes:
        message = f"the text is larger than {max_bytes} bytes."
        raise JSONTextError(Code.JSON_TOO_LARGE, message, hint="Send less.")


def _has_many_brackets(data: bytes | str) -> bool:
    # `count` looks at one byte after the other; `replace` skips to where the character is, which
    # is several times as fast for one that is rare.
    data = _as_bytes(data)
    return len(data) - len(data.replace(b"[", b"").replace(b"{", b"")) > MAX_JSON_DEPTH


def _as_bytes(data: bytes | str) -> bytes:
    if not isinstance(data, str):
        return data
    return data.encode() if data.isascii() else data.encode("utf-8", "surrogatepass")


def _nests_too_deep(value: Any) -> bool:
    level: list[Any] = [[value]]
    for _ in range(MAX_JSON_DEPTH + 1):
        level = [
            child
            for container in level
            for child in (container.values() if container.__class__ is dict else container)
            if child.__class__ is dict or child.__class__ is list
        ]
        if not level:
            return False
    return True


class _NumberError(Exception):
    """A number that is refused, and which error that is."""

    def __init__(self, explain: Callable[[Source, str], JSONTextError], literal: str) -> None:
        super().__init__()
        self.explain = explain
        self.literal = literal


def _parse_int(literal: str) -> int:
    if len(literal) > _MAX_DIGITS + (literal[0] == "-"):
        raise _NumberError(Source.explain_long_number, literal)
    try:
        return int(literal)
    except ValueError:  # the program lowered `sys.set_int_max_str_digits`
        raise _NumberError(Source.explain_long_number, literal) from None


def _parse_float(literal: str) -> float:
    value = float(literal)
    if value - value != 0:
        raise _NumberError(Source.explain_non_finite, literal)
    return value


def _refuse_constant(literal: str) -> NoReturn:
    raise _NumberError(Source.explain_non_finite, literal)


_careful_decoder: Final = json.JSONDecoder(
    parse_int=_parse_int, parse_float=_parse_float, parse_constant=_refuse_constant
)


def _decode_nested(raw: bytes, unsure: Any) -> Any:
    """Do the same for any value."""
    try:
        value, fits = _decode_at_once(raw)
    except (ValueError, RecursionError):
        return unsure
    return value if fits and _has_no_repeated_key(value, raw) else unsure


def _decode_at_once(data: bytes | str) -> tuple[Any, bool]:
    """Return the value, and whether it nests no deeper than it may."""
    try:
        return _decode_shallow(data), True
    except msgspec.ValidationError:
        value = _decoder.decode(data)
        return value, not (_has_many_brackets(data) and _nests_too_deep(value))


def _has_no_repeated_key(value: Any, source: bytes | str) -> bool:
    """Tell for certain that no key was repeated; False means that one may have been.

    Every member has one colon between key and value, and a colon inside a string is written as
    itself unless it was escaped. Encoding the value again therefore gives at most as many colons
    as the text had, and exactly as many only when no member was overwritten.
    """
    raw = _as_bytes(source)
    if _has_escaped_colon(raw):
        return False
    colons = len(raw) - len(raw.replace(b":", b""))
    if colons < 2:
        return True
    try:
        written = _encoder.encode(value)
    except UnicodeEncodeError:  # a kept surrogate
        return False
    return len(written) - len(written.replace(b":", b"")) == colons


def _has_escaped_colon(raw: bytes) -> bool:
    # Looking for one byte, as a number, is many times as fast, and most texts escape nothing.
    if _BACKSLASH not in raw or raw.find(b"\\u003") < 0:
        return False
    return b"\\u003a" in raw or b"\\u003A" in raw


def _find_conflicts(text: str) -> tuple[str, ...]:
    """Return the pointers of keys with differing values, in the order of the text.

    Of very many, the first are named.
    """
    left = _MAX_NAMED

    def keep_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal left
        members = dict(pairs)
        if len(members) == len(pairs):
            return members
        # What was said twice in the same words may be forgotten, unless more is inside it.
        has_more = any(value and value.__class__ in _CONTAINERS for _, value in pairs)
        is_differing = left > 0 and bool(_find_differing(pairs))
        left -= is_differing
        return _Repeated(pairs) if is_differing or has_more else members

    tree = json.JSONDecoder(object_pairs_hook=keep_pairs).decode(text)
    found = islice(_walk(tree), _MAX_NAMED) if left < _MAX_NAMED else ()
    return tuple(dict.fromkeys(found))


class _Repeated(dict[str, Any]):
    """An object in which a key was repeated; keeps all that was said."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        self.pairs = pairs


_CONTAINERS: Final = frozenset({dict, list, _Repeated})


def _walk(tree: Any) -> Iterator[str]:
    stack: list[tuple[Any, tuple[str | int, ...]]] = [(tree, ())]
    members: Iterable[tuple[Any, Any]]
    while stack:
        node, parts = stack.pop()
        if node.__class__ is list:
            members = enumerate(cast("list[Any]", node))
        elif node.__class__ is _Repeated:
            members = cast("_Repeated", node).pairs
            for key in _find_differing(members):
                yield render_pointer((*parts, key))
        elif node.__class__ is dict:
            members = cast("dict[str, Any]", node).items()
        else:
            continue
        inner = [
            (child, (*parts, key))
            for key, child in members
            if child and child.__class__ in _CONTAINERS
        ]
        if inner:
            stack += inner[::-1]


def _find_differing(pairs: list[tuple[str, Any]]) -> list[str]:
    """Return the keys that were given differing values, in the order of the text."""
    first: dict[str, Any] = {}
    differing: set[str] = set()
    for key, value in pairs:
        known = first.setdefault(key, value)
        if known is not value and key not in differing and not _is_same(known, value):
            differing.add(key)
    return [key for key in first if key in differing] if differing else []


def _is_same(one: Any, other: Any) -> bool:
    """Tell whether two values are written alike, so that `1`, `1.0` and `true` differ.

    What is unlike is told by the first difference: that takes no longer than the smaller is long.
    """
    kind = one.__class__
    if one != other:
        return False
    if kind is float:
        return repr(one) == repr(other)
    if kind not in _CONTAINERS or not one:
        return kind is other.__class__
    try:
        return _encode_sorted(one) == _encode_sorted(other)
    except UnicodeEncodeError:  # a kept surrogate
        return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
