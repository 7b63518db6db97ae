"""Prompts by name, and how stable the beginnings of conversations are; only hashes are recorded."""

from collections import OrderedDict
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from msgspec import Raw, Struct

from surecall.exchange.request import Members
from surecall.text import decoder_of

_SYSTEM_ROLES: Final = frozenset({"developer", "system"})
_EMPTY: Final = (b"", b"[]", b"null")
_HASH_BYTES: Final = 4
_MAX_CONVERSATIONS: Final = 1000
_MAX_PARTS: Final = 500
_MAX_REMEMBERED_BYTES: Final = 64 * 1024


class _Message(Struct, gc=False):
    role: Any = None
    content: Raw = Raw()


_decode_items: Final = decoder_of(list[Raw])
_decode_message: Final = decoder_of(_Message)


class Prompt(NamedTuple):
    """The hashed beginnings of a request."""

    name: str = ""
    """Stands for system text and tools; empty when there are none."""
    parts: tuple[tuple[int, int], ...] = ()
    """System text and tools together, then each message: hashes of this process, and sizes."""


def read_prompt(asked: Members) -> Prompt:
    """Return the hashes of a request.

    >>> from surecall.exchange.request import decode_members
    >>> read_prompt(decode_members(b'{"messages": [{"role": "user", "content": "Hello"}]}')).name
    ''
    >>> body = b'{"messages": [{"role": "system", "content": "Be brief."}]}'
    >>> read_prompt(decode_members(body)).name
    '112b04fc'
    """
    fixed: list[Any] = [asked.system, asked.systemInstruction, asked.system_instruction]
    fixed += (asked.instructions, asked.tools, asked.functions)
    written = bytes(asked.messages) or bytes(asked.input) or bytes(asked.contents)
    turns: list[bytes] = []
    try:
        items = _decode_items(written)[:_MAX_PARTS] if written[:1] == b"[" else []
        for item in items:
            if not turns and (message := _decode_message(item)).role in _SYSTEM_ROLES:
                fixed.append(message.content)
            else:
                turns.append(bytes(item))
    except (ValueError, TypeError):  # whoever reads the whole of it says what is wrong
        return Prompt()
    head = b"\0".join(fixed)
    name = _name(head) if len(head) <= _MAX_REMEMBERED_BYTES else _name.__wrapped__(head)
    return Prompt(name, tuple([(hash(part), len(part)) for part in (head, *turns)]))


@lru_cache(maxsize=64)
def _name(head: bytes) -> str:
    if all(part in _EMPTY for part in head.split(b"\0")):
        return ""
    return blake2b(head, digest_size=_HASH_BYTES).hexdigest()


class Prefixes:
    """How much of its last request the next request of a conversation begins with.

    Providers cache beginnings, so what changes there costs money. A conversation is known by its
    first message that is not the system's.

    >>> prefixes = Prefixes()
    >>> from surecall.exchange.request import decode_members
    >>> first = b'{"messages": [{"role": "user", "content": "a"}]}'
    >>> more = first[:-2] + b', {"role": "assistant", "content": "b"}]}'
    >>> [prefixes.note("key", read_prompt(decode_members(body))) for body in (first, more)]
    [None, 1.0]
    """

    def __init__(self) -> None:
        self._last: OrderedDict[tuple[str, int], tuple[tuple[int, int], ...]] = OrderedDict()

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
