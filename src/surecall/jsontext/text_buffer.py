"""Text that arrives in pieces."""

__all__ = ["TextBuffer"]


class TextBuffer:
    """Text in one buffer of bytes: many short pieces weigh no more than one long text.

    `str()` gives the text, with halves of characters as they came.
    """

    __slots__ = ("_data",)

    def __init__(self) -> None:
        self._data = bytearray()

    def __bool__(self) -> bool:
        return bool(self._data)

    def __str__(self) -> str:
        return self._data.decode("utf-8", "surrogatepass")

    def append(self, piece: str) -> None:
        """Add the next piece."""
        self._data += piece.encode("utf-8", "surrogatepass")

    def clear(self) -> None:
        """Forget the text."""
        self._data = bytearray()
