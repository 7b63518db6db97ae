"""Checking values against a schema: every error, in words a model can act on."""

from typing import TYPE_CHECKING, Any

from surecall.errors import Code
from surecall.jsontext import encode
from surecall.records import ErrorDetail

from .narrow import MAX_ERRORS, nests_deeper

if TYPE_CHECKING:
    from .compiled import CompiledSchema

__all__ = ["MAX_ERRORS", "SchemaChecker"]

_MAX_LISTED_DEPTH = 5
_NOT_LISTED = ErrorDetail(
    Code.ARGUMENTS_INVALID,
    "/ does not fit the schema, and nests too deep for every error to be listed",
    "Send a flatter value, or build it up from small ones that fit.",
)


class SchemaChecker:
    """Checks values against one schema; compiled when first used.

    The formats `date-time`, `date`, `time`, `uuid`, `email`, `uri`, `ipv4` and `ipv6` are
    asserted, a `date-time` or `time` with or without an offset; other formats are notes to the
    reader. Patterns run on an engine whose cost is linear in the text, so look-around and
    back-references are refused when the schema is compiled.
    """

    __slots__ = ("_compiled", "schema")

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema
        self._compiled: CompiledSchema | None = None

    def compile(self) -> None:
        """Compile now, so that a schema that cannot be used is refused here and not later.

        Raises:
            ToolDefinitionError: it is no schema, too large, or refers to something outside.
        """
        if self._compiled is None:
            from .compiled import CompiledSchema

            self._compiled = CompiledSchema(self.schema)

    def is_valid(self, value: Any) -> bool:
        """Tell whether a JSON value fits the schema."""
        if self._compiled is None:
            self.compile()
        assert self._compiled is not None
        return self._compiled.is_valid(value)

    def check(self, value: Any) -> tuple[ErrorDetail, ...]:
        """Return every error of a JSON value, at most `MAX_ERRORS`; nothing when it fits."""
        if self._compiled is None:
            self.compile()
        assert self._compiled is not None
        if self._compiled.is_valid(value):
            return ()
        if self._has_recursive_union and nests_deeper(value, _MAX_LISTED_DEPTH):
            return (_NOT_LISTED,)
        return self._compiled.list_errors(value)

    @property
    def _has_recursive_union(self) -> bool:
        """Whether listing errors may cost a multiple with every level of the value."""
        text = encode(self.schema)
        return b'"$ref"' in text and (b'"anyOf"' in text or b'"oneOf"' in text)
