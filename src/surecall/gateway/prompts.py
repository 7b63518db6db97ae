"""Prompts by name, and how stable the beginnings of conversations are; of both only hashes stay."""

from collections import OrderedDict
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from msgspec import Raw, Struct

from surecall.text import decoder_of

_SYSTEM_ROLES: Final = frozenset({"developer", "system"})
_EMPTY: Final = (b"", b"[]", b"null")
_HASH_BYTES: Final = 4
_PART_HASH_BYTES: Final = 8
_MAX_CONVERSATIONS: Final = 1000
_MAX_PARTS: Final = 500


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
    contents: Raw = Raw()


class _Message(Struct, gc=False):
    role: Any = None
    content: Raw = Raw()


_decode: Final = decoder_of(_Asked)
_decode_items: Final = decoder_of(list[Raw])
_decode_message: Final = decoder_of(_Message)


class Prompt(NamedTuple):
    """What the body of a request begins with, as hashes."""

    name: str = ""
    """Stands for system text and tools; empty when there are none."""
    parts: tuple[tuple[bytes, int], ...] = ()
    """System text and tools together, then each message: hashes and sizes."""


def read_prompt(body: bytes) -> Prompt:
    """Return the hashes of a request.

    >>> read_prompt(b'{"messages": [{"role": "user", "content": "Hello"}]}').name
    ''
    >>> read_prompt(b'{"messages": [{"role": "system", "content": "Be brief."}]}').name
    '112b04fc'
    """
    try:
        asked = _decode(body)
        fixed = [bytes(getattr(asked, name)) for name in _Asked.__struct_fields__[:-3]]
        messages = bytes(asked.messages) or bytes(asked.input) or bytes(asked.contents)
        items = _decode_items(messages)[:_MAX_PARTS] if messages[:1] == b"[" else []
        turns = list(map(bytes, items))
        for item in items:
            message = _decode_message(item)
            if message.role not in _SYSTEM_ROLES:
                break
            fixed.append(bytes(message.content))
            del turns[0]
    except (ValueError, TypeError):  # whoever reads the whole of it says what is wrong
        return Prompt()
    head = b"\0".join(fixed)
    parts = tuple((_hash(part, _PART_HASH_BYTES).digest(), len(part)) for part in (head, *turns))
    if all(part in _EMPTY for part in fixed):
        return Prompt("", parts)
    return Prompt(_hash(head, _HASH_BYTES).hexdigest(), parts)


def _hash(data: bytes, size: int) -> blake2b:
    return blake2b(data, digest_size=size)


class Prefixes:
    """How much of its last request the next request of a conversation begins with.

    Providers cache beginnings, so what changes there costs money. A conversation is known by its
    first message that is not the system's.

    >>> prefixes = Prefixes()
    >>> first = b'{"messages": [{"role": "user", "content": "a"}]}'
    >>> more = first[:-2] + b', {"role": "assistant", "content": "b"}]}'
    >>> prefixes.note("key", read_prompt(first)), prefixes.note("key", read_prompt(more))
    (None, 1.0)
    """

    def __init__(self) -> None:
        self._last: OrderedDict[tuple[str, bytes], tuple[tuple[bytes, int], ...]] = OrderedDict()

    def note(self, whose: str, prompt: Prompt) -> float | None:
        """Note a request; return the share of the last one, by bytes, if it goes on with that."""
        parts = prompt.parts
        if len(parts) < 2:
            return None
        key = (whose, parts[1][0])
        last = self._last.pop(key, ())
        self._last[key] = parts
        if len(self._last) > _MAX_CONVERSATIONS:
            self._last.popitem(last=False)
        if not last or len(parts) <= len(last):
            return None
        same = 0
        for one, other in zip(last, parts, strict=False):
            if one != other:
                break
            same += one[1]
        return same / max(sum(size for _, size in last), 1)
