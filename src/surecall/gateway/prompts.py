"""Prompts by name: a short hash of system text and tools, by which figures are told apart."""

from hashlib import blake2b
from typing import Any, Final

from msgspec import Raw, Struct

from surecall.text import decoder_of

_SYSTEM_ROLES: Final = frozenset({"developer", "system"})
_EMPTY: Final = (b"", b"[]", b"null")
_HASH_BYTES: Final = 4


class _Asked(Struct, gc=False):
    """The members of a request, in any format, that a program sends again and again."""

    system: Raw = Raw()
    systemInstruction: Raw = Raw()  # noqa: N815 - the name on the wire
    system_instruction: Raw = Raw()
    instructions: Raw = Raw()
    tools: Raw = Raw()
    functions: Raw = Raw()
    messages: Raw = Raw()
    input: Raw = Raw()


class _Message(Struct, gc=False):
    role: Any = None
    content: Raw = Raw()


_decode: Final = decoder_of(_Asked)
_decode_items: Final = decoder_of(list[Raw])
_decode_message: Final = decoder_of(_Message)


def name_prompt(body: bytes) -> str:
    """Return a short hash of the system text and the tools of a request; empty when it has none.

    >>> name_prompt(b'{"messages": [{"role": "user", "content": "Hello"}]}')
    ''
    >>> name_prompt(b'{"messages": [{"role": "system", "content": "Be brief."}]}')
    '112b04fc'
    """
    try:
        asked = _decode(body)
        parts = [bytes(getattr(asked, name)) for name in _Asked.__struct_fields__]
        messages = parts.pop() or parts.pop()
        for item in _decode_items(messages) if messages[:1] == b"[" else ():
            message = _decode_message(item)
            if message.role not in _SYSTEM_ROLES:
                break
            parts.append(bytes(message.content))
    except (ValueError, TypeError):  # whoever reads the whole of it says what is wrong
        return ""
    if all(part in _EMPTY for part in parts):
        return ""
    return blake2b(b"\0".join(parts), digest_size=_HASH_BYTES).hexdigest()
