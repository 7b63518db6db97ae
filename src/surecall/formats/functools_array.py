"""`functools[{...}]`, an array of calls after a word, as FireFunction and Phi-4-mini write it."""

from typing import Final

from .base import CallFormat, Found
from .json_block import read_block
from .source import Source

__all__ = ["FunctoolsArray"]

_WORD: Final = "functools"
_OPENER: Final = _WORD + "["


class FunctoolsArray(CallFormat):
    """An array of calls directly after the word `functools`."""

    name = "functools"
    literals = (_OPENER,)

    def read(self, source: Source, at: int) -> Found | None:
        """Read the array; a subscript of the Python module is none."""
        inside = source.skip_space(at + len(_OPENER))
        if source.at_end(inside):
            return Found(end=inside)
        if source.char(inside) not in ("{", "]", '"'):
            return None
        block = read_block(source, at + len(_WORD), (_OPENER,))
        return None if block is None else Found(end=block.end, calls=block.calls)
