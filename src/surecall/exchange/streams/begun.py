"""A call that is long or comes slowly: its beginning goes on before the end of the reply."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Final

from surecall.base.json_values import as_fields, as_list
from surecall.base.records import ToolCall
from surecall.exchange.request import ClientRequest
from surecall.text import ObjectPrefix, continue_json
from surecall.wire.events import fields_or_none, may_have_halves
from surecall.wire.rewriting import Begun, CallPiece, EventRewriter

_STARTS: Final = {
    "array": "[",
    "boolean": "tf",
    "integer": "-0123456789",
    "null": "n",
    "number": "-0123456789",
    "object": "{",
    "string": '"',
}
"""What values of a type begin with."""


class BegunCall:
    """The first call of a stream, looked at as it comes; the first doubt ends that.

    Args:
        request: What the client asked.
        writer: Knows what the events of the format bring.
        used_ids: Returns the ids of the calls of the conversation.
    """

    def __init__(
        self,
        request: ClientRequest,
        writer: EventRewriter[Any],
        used_ids: Callable[[], Collection[str]],
    ) -> None:
        self._request = request
        self._writer = writer
        self._used_ids = used_ids
        self._first: CallPiece | None = None
        self._prefix = ObjectPrefix(_takes_any)
        self._pieces: list[str] = []
        self.size = 0
        """How many bytes of arguments there are without a doubt."""
        self.is_sound = True

    def take(self, data: bytes) -> bool:
        """Take the data of the next event; tell whether it may go on."""
        piece = None
        if self.is_sound and not may_have_halves(data):
            piece = self._writer.read_piece(fields_or_none(data))
        self.is_sound = piece is not None and self._fits(piece) and self._prefix.feed(piece.text)
        if piece is not None and self.is_sound:
            self._pieces.append(piece.text)
            self.size += len(piece.text.encode())
        return self.is_sound

    def go_on(self, calls: Sequence[ToolCall]) -> Begun | None:
        """Return how the call goes on to be the first of these; nothing if it cannot."""
        first, call = self._first, calls[0] if calls else None
        if first is None or call is None or first.item is None:
            return None
        if call.name != first.name:
            return None
        begun = "".join(self._pieces)
        rest = continue_json(begun, call.arguments)
        return None if rest is None else Begun(first.place, first.item, begun + rest, rest)

    def _fits(self, piece: CallPiece) -> bool:
        first = self._first
        if first is not None:
            return piece.place == first.place and not (piece.name or piece.call_id)
        request, tools = self._request, self._request.tools
        call_id = piece.call_id
        is_new = call_id == call_id.strip() != "" and call_id not in self._used_ids()
        is_offered = piece.name in tools.names and request.choice.takes(piece.name)
        if not (is_new and is_offered) or piece.item is None:
            return False
        if tools.is_other(piece.name, piece.item):
            return False
        schema = tools.names.parameters(piece.name) or {}
        if properties := as_fields(schema.get("properties")):
            self._prefix = ObjectPrefix(partial(_takes, properties))
        self._first = piece
        return True


def _takes(properties: dict[str, Any], name: str, start: str) -> bool:
    """Tell whether an argument of this name, whose value begins so, needs no repair."""
    if name not in properties:
        return False
    stated: Any = as_fields(properties[name]).get("type")
    kinds = [stated] if isinstance(stated, str) else as_list(stated)
    return not kinds or any(start in _STARTS.get(str(kind), start) for kind in kinds)


def _takes_any(_name: str, _start: str) -> bool:
    return True
