"""Whether a call that ran says only what the model said.

This is checked apart from the code that reads replies. First, what ran must follow from what
arrived: equal to it when no receipt says otherwise, else the same when it is read again. Then
every key and every value must be in the reply, or in a receipt of a rule that loses nothing.
"""

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, cast

from surecall.base.errors import JSONTextError
from surecall.base.records import Receipt, ToolCall, ToolSpec
from surecall.reading import read_arguments
from surecall.schema import SchemaChecker
from surecall.text import decode_noting

_NUMBER: Final = re.compile(r"\d[\d_,]*\.?\d*(?:[eE][+-]?\d+)?")
_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_MAX_ENCODINGS: Final = 4


def strict_object(raw: Any, *, may_repeat: bool = False) -> dict[str, Any] | None:
    """Return the object that arrived as arguments, if it is one without any help.

    Args:
        raw: The arguments.
        may_repeat: Whether a key may stand in it twice, of which JSON takes the last.
    """
    if isinstance(raw, dict):
        return cast("dict[str, Any]", raw)
    if not isinstance(raw, str):
        return None
    try:
        value, repeated = decode_noting(raw)
    except JSONTextError:
        return None
    is_object = isinstance(value, dict) and (may_repeat or not repeated)
    return cast("dict[str, Any]", value) if is_object else None


def is_faithful(
    call: ToolCall,
    receipts: Sequence[Receipt],
    reply: dict[str, Any],
    spec: ToolSpec,
    checker: SchemaChecker,
    *,
    max_bytes: int,
    allows_loss: bool = False,
) -> bool:
    """Tell whether a call that ran has nothing in it that the model did not send.

    Args:
        call: The call.
        receipts: Every change that led to it, also of the whole reply.
        reply: The assistant message as it arrived.
        spec: The tool.
        checker: Its compiled schema.
        max_bytes: How large arguments might be.
        allows_loss: Whether a rule that may lose something was welcome.
    """
    if not allows_loss and any(not receipt.lossless for receipt in receipts):
        return False
    if not _follows(call, receipts, spec, checker, max_bytes):
        return False
    if not receipts:
        return True
    said = SaidWords([reply, *(receipt.after for receipt in receipts)])
    return all(map(said.has, (call.name, *_words(call.arguments))))


def _follows(
    call: ToolCall,
    receipts: Sequence[Receipt],
    spec: ToolSpec,
    checker: SchemaChecker,
    max_bytes: int,
) -> bool:
    if call.raw is None:
        return not call.arguments
    if strict_object(call.raw, may_repeat=not receipts) == call.arguments:
        return True
    if not receipts:
        return False
    schema = spec.parameters if spec.coerce == "on" else None
    readings = (
        read_arguments(
            call.raw,
            schema,
            max_bytes=max_bytes,
            ended=ended,
            checker=checker if schema is not None else None,
            tool_name=call.name,
        )
        for ended in (False, True)
    )
    return any(reading.value == call.arguments for reading in readings)


class SaidWords:
    """All that was said, so that it can be asked whether something is part of it.

    Only letters and digits count, so that it does not matter how a text was quoted or escaped.
    """

    def __init__(self, sources: Iterable[Any]) -> None:
        text = "\n".join(str(word) for source in sources for word in _words(source))
        forms = [text]
        while len(forms) < _MAX_ENCODINGS and "\\" in forms[-1]:
            forms.append(_ESCAPE.sub(_unescape, forms[-1]))
        if "&" in text:
            forms.append(html.unescape(forms[-1]))
        self._text = text
        self._plain = [_letters(form) for form in forms]
        self._found: set[float] | None = None

    def has(self, word: Any) -> bool:
        """Tell whether a key or a value was said."""
        if isinstance(word, float) or (isinstance(word, int) and not isinstance(word, bool)):
            word = abs(word)
            if word in self._numbers():
                return True
        return self._has_text(str(word))

    def _has_text(self, text: str) -> bool:
        plain = _letters(text)
        return any(plain in said for said in self._plain)

    def _numbers(self) -> set[float]:
        if self._found is None:
            self._found = set()
            for match in _NUMBER.finditer(self._text):
                written = match[0].replace("_", "").strip(",")
                parts = [written.replace(",", ""), *written.split(",")]
                self._found.update(float(part) for part in parts if part)
        return self._found


def _words(value: Any) -> Iterator[Any]:
    """Yield every key and every value, without recursion; null says nothing."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            fields = cast("dict[str, Any]", item)
            yield from fields
            stack.extend(fields.values())
        elif isinstance(item, list | tuple):
            stack.extend(cast("Sequence[Any]", item))
        elif item is not None:
            yield item


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 5:
        return chr(int(code[1:], 16))
    return "" if code in "nrtbf" else code
