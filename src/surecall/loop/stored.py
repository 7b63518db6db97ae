"""Records of a run as JSON text, whatever its tools returned, and lines that carry a checksum."""

from hashlib import blake2b
from typing import Any, Final

from surecall.errors import Code, JSONTextError
from surecall.jsontext import encode
from surecall.redaction import mask_known
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
