"""Lines of a file that each carry a checksum, which also says which line came before."""

from hashlib import blake2b
from typing import Final

_MARK: Final = b',"check":"'
_END: Final = b'"}'
_DIGEST_BYTES: Final = 8
_SEAL_BYTES: Final = len(_MARK) + 2 * _DIGEST_BYTES + len(_END)


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
