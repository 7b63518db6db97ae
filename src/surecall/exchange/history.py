"""Conversations that a provider would refuse, repaired without loss before they are sent.

Every call has one result behind it, no two calls share an id, and arguments can be read. A history
that needs nothing keeps its bytes; one that is repaired gives the same bytes next time, since
each change depends only on what it repairs.
"""

from collections import Counter
from typing import Any, Final

from msgspec import Raw

from surecall.base.errors import Code, JSONTextError
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Defect, Receipt
from surecall.reading import read_arguments
from surecall.text import decode, decoder_of, encode, encode_text
from surecall.wire import find_protocol
from surecall.wire.conversation import MENDING_RULES, Conversation
from surecall.wire.substitutes import stand_in_arguments

from .signatures import RESTORE_ECHO, EchoCache
from .wording import missing_result, tell_repeated

__all__ = ["HISTORY_RULES", "repair_body", "repair_history"]

REPEAT_RULE: Final = "tell_repeated_call"
HISTORY_RULES: Final = (*MENDING_RULES, REPEAT_RULE, RESTORE_ECHO)
"""The rules of receipts for conversations."""

_REPEATED: Final = 3
"""From how many equal calls with equal results on they are noted."""
_decode_members: Final = decoder_of(dict[str, Raw])
_decode_items: Final = decoder_of(list[Raw])


def repair_history(
    document: dict[str, Any],
    protocol: str,
    *,
    echoes: EchoCache | None = None,
    scope: str = "",
    with_reasoning: bool = True,
    repeats: "Repeats | None" = None,
) -> tuple[dict[str, Any], tuple[Receipt, ...]]:
    """Return a request whose conversation can be sent, and what was changed; the same if nothing.

    Args:
        document: The request; it is not changed.
        protocol: The name of its wire format.
        echoes: What clients should have sent back and may have left out.
        scope: Whose conversation it is.
        with_reasoning: Whether reasoning is put back, and not only signatures of calls.
        repeats: Notes calls that were made again and again.
    """
    conversation = find_protocol(protocol).open_conversation(document)
    key = conversation.key
    if not isinstance(document.get(key), list):
        return document, ()
    mended = conversation.repair(_read_object, missing_result)
    if echoes is not None:
        mended = echoes.restore(mended, conversation, scope, with_reasoning)
    told: tuple[Receipt, ...] = ()
    if repeats is not None:
        mended, told = repeats.find(conversation, mended)
    if not (conversation.receipts or told):
        return document, ()
    return {**document, key: mended}, (*conversation.receipts, *told)


class Repeats:
    """Calls that had the same result again and again in one conversation.

    Args:
        tells: Whether the model reads so behind each of these results.
    """

    def __init__(self, *, tells: bool) -> None:
        self._tells = tells
        self.defects: tuple[Defect, ...] = ()
        """What is odd about the last turn."""

    def find(
        self, conversation: Conversation, items: list[Any]
    ) -> tuple[list[Any], tuple[Receipt, ...]]:
        """Return the items as the model reads them, and what was changed."""
        results = [
            (at, key, _as_text(fields.get(conversation.said_key)))
            for at, item in enumerate(items)
            for key, fields in conversation.results_in(as_fields(item))
        ]
        texts = Counter([text for _, _, text in results])
        if not texts or max(texts.values()) < _REPEATED:
            return items, ()
        made: dict[Any, tuple[str, str]] = {}
        counts: Counter[tuple[str, ...]] = Counter()
        told: list[Receipt] = []
        start = 0
        shown = list(items)
        for at, key, text in results:
            for item in items[start:at]:
                for call in conversation.calls_in(as_fields(item)):
                    self.defects = ()  # of an earlier turn
                    inner = as_fields(call.get("function")) or call
                    given = inner.get("arguments", inner.get("input", inner.get("args")))
                    name = str(inner.get("name"))
                    made[call.get(conversation.id_key) or name] = (name, _as_text(given))
            start = at
            signature = (*made.get(key, ()), text)
            counts[signature] += 1
            if key not in made or counts[signature] < _REPEATED:
                continue
            note = tell_repeated(made[key][0], counts[signature])
            self.defects += (Defect(Code.REPEATED_CALL, note, f"/{at}"),)
            if self._tells:
                shown[at] = _add_note(conversation, shown[at], key, note)
                told.append(Receipt(REPEAT_RULE, f"/{at}", None, note))
        return shown, tuple(told)


def _add_note(conversation: Conversation, item: Any, key: Any, note: str) -> Any:
    """Return an item with a note behind what one of its results says."""
    item = decode(encode(item), surrogates="replace")
    place = conversation.said_key
    for named, fields in conversation.results_in(as_fields(item)):
        said = fields.get(place)
        if named != key:
            continue
        if isinstance(said, dict):
            fields[place] = {**as_fields(said), "note": note}
        elif isinstance(said, list):
            kind = "input_text" if place == "output" else "text"
            fields[place] = [*as_list(said), {"type": kind, "text": note}]
        else:
            fields[place] = f"{_as_text(said)}\n\n{note}"
    return item


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else encode_text(value)


def repair_body(
    body: bytes,
    protocol: str,
    *,
    echoes: EchoCache | None = None,
    scope: str = "",
    with_reasoning: bool = True,
    repeats: Repeats | None = None,
) -> tuple[bytes, tuple[Receipt, ...]]:
    """Do the same to the bytes of a request: only those of messages that change are written anew.

    What cannot be read is left as it is: the endpoint will say so.
    """
    key = find_protocol(protocol).open_conversation({}).key
    try:
        members = _decode_members(body)
        written = members.get(key, b"")
        raws = _decode_items(written)
        items = [decode(bytes(raw), surrogates="replace") for raw in raws]
        context = {name: True for name in members if name != key}
    except (ValueError, RecursionError, JSONTextError):
        return body, ()
    document, receipts = repair_history(
        {**context, key: items},
        protocol,
        echoes=echoes,
        scope=scope,
        with_reasoning=with_reasoning,
        repeats=repeats,
    )
    if not receipts:
        return body, ()
    known = {id(item): bytes(raw) for item, raw in zip(items, raws, strict=True)}
    parts = [known.get(id(item)) or encode(item) for item in as_list(document[key])]
    mended = b"[" + b",".join(parts) + b"]"
    before = bytes(written)
    if body.count(before) == 1:
        return body.replace(before, mended), receipts
    others = [
        encode(name) + b":" + (mended if name == key else bytes(raw))
        for name, raw in members.items()
    ]
    return b"{" + b",".join(others) + b"}", receipts


def _read_object(given: Any) -> dict[str, Any]:
    """Return what arguments mean, or a small object that shows what could not be read."""
    if given is None or (isinstance(given, str) and not given.strip()):
        return {}
    found = read_arguments(given, ended=True)
    if found.value is None or any(not receipt.lossless for receipt in found.receipts):
        return stand_in_arguments(given)
    return found.value
