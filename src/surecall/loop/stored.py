"""Records of a run as JSON text, whatever its tools returned."""

from typing import Any

from surecall.errors import Code, JSONTextError
from surecall.jsontext import encode
from surecall.redaction import mask_known
from surecall.tools.envelopes import plain_data

__all__ = ["encode_stored"]


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
