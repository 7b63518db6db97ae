"""Whether a call is whole, and whether that is certain: decided here and nowhere else.

A call is cut when its reply was broken off, whatever its arguments look like, or when its JSON
ended in the middle of a value. A cut call never runs. A call is only likely when it can be read,
but a part of it may be missing: it runs on tools that only read.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pkgutil import get_data
from typing import Any, Final, cast

from msgspec.structs import replace

from surecall.base.errors import Code
from surecall.base.records import CallState, Defect, ErrorDetail, Receipt, ToolCall

from .wording import DAMAGED, NO_ARGUMENTS, doubt_end, doubt_missing_closer

_LIMIT: Final = "the reply reached its token limit"
_OWN_END: Final = "its own end"
_PREFIX: Final = "finishreason"
_OTHER_CHARACTERS: Final = re.compile(r"[\W_]++")


@lru_cache(maxsize=256)
def _squash(word: str) -> str:
    """Return a word without what providers spell differently: `MAX_TOKENS`, `maxTokens`."""
    return _OTHER_CHARACTERS.sub("", word).lower().removeprefix(_PREFIX)


def _read_finishes() -> Iterator[tuple[str, str]]:
    """Yield every finish reason of `finishes.txt` with what it says of a reply."""
    text = (get_data(__package__ or "", "finishes.txt") or b"").decode()
    for section in text.split("\n# ")[1:]:
        why, _, words = section.partition("\n")
        yield from ((_squash(word), why) for word in words.split())


_FINISHES: Final = dict(_read_finishes())

_MALFORMED: Final = frozenset(
    {"malformedfunctioncall", "malformedtoolcall", "malformedtooluse", "invalidtoolcall"}
)
_PAUSED: Final = "pauseturn"

# Finish reasons


def cut_cause(finish_reason: str | None, defects: Collection[Defect] = ()) -> str | None:
    """Return why no call of a reply can be trusted to be whole, or None."""
    if defects and any(defect.code == Code.UPSTREAM_BAD_EVENT for defect in defects):
        return "a part of the reply was lost on the way"
    why = _FINISHES.get(_squash(finish_reason)) if finish_reason else None
    return None if why == _OWN_END else why


def stopped_at_limit(finish_reason: str | None) -> bool:
    """Tell whether the provider says that the reply reached its token limit."""
    return finish_reason is not None and _FINISHES.get(_squash(finish_reason)) == _LIMIT


def came_to_its_end(finish_reason: str | None) -> bool:
    """Tell whether the provider says that the model stopped by itself."""
    return finish_reason is not None and _FINISHES.get(_squash(finish_reason)) == _OWN_END


def doubt_finish(finish_reason: str | None) -> str:
    """Return the doubt about the calls of a reply with a finish reason that nobody knows."""
    if not finish_reason or came_to_its_end(finish_reason) or cut_cause(finish_reason):
        return ""
    return doubt_end(finish_reason)


def says_malformed(finish_reason: str | None) -> bool:
    """Tell whether the provider says that it could not read the call that the model wrote."""
    return finish_reason is not None and _squash(finish_reason) in _MALFORMED


def says_paused(finish_reason: str | None) -> bool:
    """Tell whether the provider says that the model goes on when its turn is sent back."""
    return finish_reason is not None and _squash(finish_reason) == _PAUSED


def refused(call: ToolCall, state: CallState, error: ErrorDetail) -> ToolCall:
    """Return a call without its arguments, because it is cut or cannot be read."""
    return replace(
        call, arguments=None, state=state, errors=(error,), certainty="certain", doubt=""
    )


# Closers

_MISSING_CLOSERS: Final = frozenset(
    {
        "close_missing_brackets",
        "close_object",
        "close_string",
        "fix_mismatched_closer",
        "key_without_value",
        "missing_arguments",
        "missing_closer",
        "missing_closing_tag",
    }
)
_LAST_BRACE: Final = "}"
_LAST_BRACES: Final = ("}", "}]")
_CLOSED: Final = frozenset(']"')
_CLOSING: Final = re.compile(
    r"</([^\s<>/][^<>/\n]{0,60}+)>|<\|[^<>|\n]{1,40}+\|>|\[/[A-Z_]{2,40}+\]"
)
_CDATA: Final = "<![CDATA["
_ENDS_VALUE: Final = r"[ \t]*+(?:[\n<]|\Z)"
_TOKENS: Final = ("<|open|>", "<|close|>")
_OPENING_QUOTES: Final = ('"', "'", "`", _CDATA)
_PLAIN_START: Final = re.compile(r"[ !#-&(-\[\]-_a-~]{1,30}+")
_MAX_HELD: Final = 32
"""So many texts with markup, and so many kinds of it, are looked at in one call."""
_OPEN_SCHEMA: Final = ("$ref", "allOf", "anyOf", "oneOf", "patternProperties")


def is_missing_closer(receipt: Receipt) -> bool:
    """Tell whether a receipt is about something that closes arguments and was not there."""
    return not receipt.lossless and receipt.rule in _MISSING_CLOSERS


def doubt_closers(receipts: Iterable[Receipt]) -> str:
    """Return the doubt about arguments some of whose closers are missing."""
    missing = next(filter(is_missing_closer, receipts), None)
    return "" if missing is None else doubt_missing_closer(missing)


def doubt_receipts(receipts: Collection[Receipt]) -> str:
    """Return the doubt about a call in text of which something was lost or guessed."""
    if all(receipt.lossless for receipt in receipts):
        return ""
    return doubt_closers(receipts) or DAMAGED


def lacks_only_end(receipts: Collection[Receipt]) -> bool:
    """Tell whether a call in text lost nothing but what ends it, behind its last bracket."""
    lossy = [receipt for receipt in receipts if not receipt.lossless]
    return len(lossy) == 1 and (
        lossy[0].rule == "missing_closer"
        or (lossy[0].rule == "close_missing_brackets" and lossy[0].after in _LAST_BRACES)
    )


def may_lack_members_only(text: str, receipts: Collection[Receipt]) -> bool:
    """Tell whether members of the whole object are all that may be lost with what was repaired.

    Nothing but the last brace is missing, behind a value that ends the text as it was: behind a
    brace, something may be lost before that. Or nothing but the brace follows a comma.
    """
    lost = [receipt for receipt in receipts if not receipt.lossless]
    if len(lost) != 1:
        return False
    at = int(lost[0].place.partition(":")[0])
    if lost[0].rule == "close_missing_brackets":
        is_only = text.count("{") == text.count("}") + 1
        return lost[0].after == _LAST_BRACE and is_only and text[:at].rstrip()[-1:] in _CLOSED
    is_last = text[at + 1 :].strip() == _LAST_BRACE and not text[:at][-1:].isspace()
    return is_last and lost[0].rule == "drop_trailing_comma"


def is_complete(value: Any, schema: dict[str, Any] | None) -> bool:
    """Tell whether arguments have every property that their schema declares, so that none is lost.

    A schema that leaves open which properties there are can vouch for nothing.
    """
    if schema is None or not isinstance(value, dict):
        return False
    declared = schema.get("properties")
    if not isinstance(declared, dict) or schema.get("additionalProperties"):
        return False
    return not any(word in schema for word in _OPEN_SCHEMA) and (
        cast("dict[str, Any]", value).keys() >= cast("dict[str, Any]", declared).keys()
    )


def vouch_for_members(receipts: Iterable[Receipt]) -> tuple[Receipt, ...]:
    """Return receipts that say that no member was lost."""
    return tuple(
        receipt
        if receipt.lossless
        else replace(receipt, lossless=True, why="every declared property is there")
        for receipt in receipts
    )


def takes_nothing(schema: dict[str, Any]) -> bool:
    """Tell whether a tool is known to have no parameters."""
    return schema.keys() <= {"type"} or is_complete({}, schema)


def doubt_blank(schema: dict[str, Any] | None) -> str:
    """Return the doubt about arguments that are blank, for a tool that has any."""
    return "" if not schema or takes_nothing(schema) else NO_ARGUMENTS


def holds_markup(value: Any, written: str) -> bool:
    """Tell whether a text in arguments holds what closes a part of the call around it.

    A value that swallowed its closing tag goes on with what follows. Quoted or escaped it is text.
    """
    waiting, held = [value], list[str]()
    while waiting and len(held) < _MAX_HELD:
        item: Any = waiting.pop()
        if isinstance(item, str):
            held += [item] if ("<" in item or "[/" in item) and _CLOSING.search(item) else []
        elif isinstance(item, dict):
            waiting += cast("dict[str, Any]", item).values()
        elif isinstance(item, list):
            waiting += cast("list[Any]", item)
    return any(
        _holds_its_end(text, written)
        for text in held
        if text in written and not _is_quoted(text, written)
    )


def _holds_its_end(text: str, written: str) -> bool:
    """Tell whether a text holds what closes a part of the call around it.

    Where each tag around it has a closer of its own, a tag among words is text.
    """
    outside = written.replace(text, "", 1)
    opened, closed = _TOKENS
    are_paired = opened not in text and outside.count(opened) == outside.count(closed) > 0
    ends = dict.fromkeys((found[1], found[0]) for found in _CLOSING.finditer(text))
    for name, end in islice(ends, _MAX_HELD):
        if name is None:
            if end in outside and not are_paired:
                return True
        elif openers := _count(f"<{name}", outside):
            ends_line = re.search(re.escape(end) + _ENDS_VALUE, text)
            if openers != outside.count(end) or ends_line:
                return True
    return False


def _count(opener: str, text: str) -> int:
    """Count an opener, but not one of a longer name."""
    return len(re.findall(re.escape(opener) + r"(?![\w:.-])", text))


def _is_quoted(text: str, written: str) -> bool:
    """Tell whether a text was written between quotes, by how it begins there."""
    if _CDATA in text:  # it goes on into the next value
        return False
    start = _PLAIN_START.match(text)
    plain = start[0] if start else ""
    return not plain or any(quote + plain in written for quote in _OPENING_QUOTES)
