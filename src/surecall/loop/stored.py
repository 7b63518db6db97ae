"""Records of a run as JSON text, whatever its tools returned, and lines that carry a checksum."""

import math
from hashlib import blake2b
from typing import Any, Final, cast

import msgspec

from surecall.base.errors import Code, JSONTextError
from surecall.base.redaction import mask_known
from surecall.text import encode, repair_surrogates
from surecall.tools.outputs import plain_data

_MARK: Final = b',"check":"'
_END: Final = b'"}'
_DIGEST_BYTES: Final = 8
_SEAL_BYTES: Final = len(_MARK) + 2 * _DIGEST_BYTES + len(_END)


def encode_stored(record: Any) -> bytes:
    """Encode a record without known secrets.

    A result in it may hold models and dates that its tool returned.
    """
    try:
        return mask_known(encode(record))
    except JSONTextError as error:
        if error.code != Code.NOT_SERIALIZABLE:
            raise
    return mask_known(encode(plain_data(record)))


def encode_kept(value: Any) -> bytes:
    """Encode anything that was observed: what JSON cannot carry is replaced, never refused."""
    try:
        return encode(value)
    except JSONTextError:
        return encode(_writable(value))


def _writable(value: Any) -> Any:
    """Return plain data: halves of characters and numbers without end are replaced."""
    try:
        return _repair(plain_data(value))
    except TypeError:
        return _repair(msgspec.to_builtins(value, str_keys=True, enc_hook=repr))


def _repair(value: Any) -> Any:
    if isinstance(value, str):
        return repair_surrogates(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        return {_repair(k): _repair(v) for k, v in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_repair(item) for item in cast("list[Any]", value)]
    return value


def checksum(before: bytes, text: bytes) -> bytes:
    """Return the checksum of a line; the one before it is part of it, so their order is, too."""
    return blake2b(before + text, digest_size=_DIGEST_BYTES).hexdigest().encode()


def seal_line(text: bytes, check: bytes) -> bytes:
    """Return an object with its checksum as its last field."""
    return text[:-1] + _MARK + check + _END


def split_sealed(line: bytes) -> tuple[bytes, bytes | None]:
    """Return the object as it was before its checksum was added, and the checksum if it has one."""
    seal = line[-_SEAL_BYTES:]
    if seal.startswith(_MARK) and seal.endswith(_END):
        return line[:-_SEAL_BYTES] + b"}", seal[len(_MARK) : -len(_END)]
    return line, None
