"""Arguments adapted to their schema where it decides what is meant, with a receipt each time.

What fits is returned as it is. What could mean two things is an error that names both. The result
either fits the schema or comes with errors.
"""

from typing import Any, Final

from msgspec import Struct

from surecall.records import ErrorDetail, Receipt

from .check import MAX_ERRORS, SchemaChecker
from .coerce_parts import SchemaParts
from .coerce_root import RootShapes
from .coerce_walk import Log, TooMuchWorkError, error_at
from .narrow import nests_deeper

__all__ = ["ArgumentCoercer", "Coerced", "coerce_arguments"]

_MAX_DEPTH: Final = 128


class Coerced(Struct, frozen=True):
    """Arguments after coercion."""

    value: Any
    """An object that fits, when there are no errors; otherwise what it was possible to make."""
    receipts: tuple[Receipt, ...] = ()
    """Every change, in order; a place is a pointer into the value as it was before the change.

    A repair inside a text that was decoded has the pointer, `@`, and the span of the text.
    """
    errors: tuple[ErrorDetail, ...] = ()
    """What is still wrong."""


class ArgumentCoercer:
    """Adapts arguments to one schema; made once, used for every call."""

    __slots__ = ("_checker", "_parts", "_schema", "_tool_name")

    def __init__(
        self,
        schema: dict[str, Any],
        checker: SchemaChecker | None = None,
        *,
        tool_name: str = "",
    ) -> None:
        self._schema = schema
        self._checker = SchemaChecker(schema) if checker is None else checker
        self._parts = SchemaParts(schema, self._checker)
        self._tool_name = tool_name

    def __call__(self, value: Any) -> Coerced:
        """Return the arguments as their schema asks for them; the same object when they fit.

        Raises:
            ToolDefinitionError: the schema cannot be used.
        """
        checker = self._checker
        if value.__class__ is dict and checker.is_valid(value):
            return Coerced(value)
        checker.compile()
        found, log = self._shaped(value)
        receipts = tuple(log.receipts)
        if isinstance(found, dict) and checker.is_valid(found):
            return Coerced(found, receipts)
        errors = list(checker.check(found))
        if not errors:
            errors.append(error_at((), "must be an object with the arguments by name"))
        return Coerced(found, receipts, tuple(dict.fromkeys([*log.notes, *errors]))[:MAX_ERRORS])

    def _shaped(self, value: Any) -> tuple[Any, Log]:
        try:
            if not nests_deeper(value, _MAX_DEPTH):
                return RootShapes(self._schema, self._parts, self._checker, self._tool_name).run(
                    value
                )
            sentence = f"nests deeper than {_MAX_DEPTH} levels; send a flatter object"
        except TooMuchWorkError:
            sentence = "has more possible forms than can be tried; send it exactly as specified"
        log = Log()
        log.note((), sentence)
        return value, log


def coerce_arguments(
    value: Any,
    schema: dict[str, Any],
    checker: SchemaChecker | None = None,
    *,
    tool_name: str = "",
) -> Coerced:
    """Return arguments as their schema asks for them, with a receipt for every change.

    Args:
        value: What was sent: an object, or anything else that JSON can say.
        schema: The schema of the arguments.
        checker: The compiled schema, when there is one already.
        tool_name: Name of the tool, which may be found wrapped around its arguments.

    Raises:
        ToolDefinitionError: the schema cannot be used.
    """
    if checker is None:
        checker = SchemaChecker(schema)
    if value.__class__ is dict and checker.is_valid(value):
        return Coerced(value)
    return ArgumentCoercer(schema, checker, tool_name=tool_name)(value)
