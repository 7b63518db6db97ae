"""Arguments adapted to their schema where it decides what is meant, with a receipt each time.

What fits is returned as it is. What could mean two things is an error that names both. The result
either fits the schema or comes with errors.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple, cast

from msgspec import Struct

from surecall.base.limits import MAX_JSON_DEPTH
from surecall.base.records import ErrorDetail, Receipt
from surecall.schema.check import SchemaChecker
from surecall.schema.explain import (
    NOT_AN_OBJECT,
    TOO_DEEP,
    TOO_MANY_FORMS,
    detail_at,
    explain_order,
    explain_shape,
)
from surecall.schema.narrow import MAX_ERRORS, nests_deeper

from .parts import SchemaParts
from .strays import StrayKeys
from .text import property_schema, takes_text, type_text_value
from .values import NULL_TEXTS, decode_text, is_schema_echo
from .walk import Log, TooMuchWorkError, Walk, same_json

__all__ = ["Coerced", "coerce_arguments", "property_schema", "takes_text", "type_text_value"]

_WRAPPERS: Final = frozenset(
    {
        "action_input", "args", "arguments", "function", "input", "kwargs", "parameters", "params",
        "properties", "tool_input",
    }
)  # fmt: skip
# What a whole call has beside its arguments, and says nothing that is not known.
_NAME_LABELS: Final = frozenset(
    {"action", "function", "function_name", "name", "tool", "tool_name"}
)
_KINDS_OF_CALLS: Final = frozenset({"function", "function_call", "tool_call", "tool_use"})
_MAX_WRAPPERS: Final = 3
_MAX_POSITIONS: Final = 12


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
    if value.__class__ is dict and checker.is_exact(value):
        return Coerced(value)
    if value.__class__ is dict and checker.is_valid(value):
        return _name_strays(value, (), schema, checker)
    checker.compile()
    found, log = value, Log()
    if nests_deeper(value, MAX_JSON_DEPTH):
        log.note((), TOO_DEEP)
    else:
        try:
            found, log = _Shapes(schema, checker, tool_name).run(value)
        except TooMuchWorkError:
            log.note((), TOO_MANY_FORMS)
    receipts = tuple(log.receipts)
    if isinstance(found, dict) and checker.is_valid(found):
        return _name_strays(cast("dict[str, Any]", found), receipts, schema, checker)
    errors = [*log.notes, *(checker.check(found) or (detail_at((), NOT_AN_OBJECT),))]
    return Coerced(found, receipts, tuple(dict.fromkeys(errors))[:MAX_ERRORS])


def _name_strays(
    value: dict[str, Any],
    receipts: tuple[Receipt, ...],
    schema: dict[str, Any],
    checker: SchemaChecker,
) -> Coerced:
    """Return arguments that fit, with the names that their stray keys mean."""
    if checker.is_exact(value):
        return Coerced(value, receipts)
    log = Log()
    named = StrayKeys(SchemaParts(schema, checker), log).name(value, schema)
    if log.receipts and checker.is_valid(named):
        return Coerced(named, (*receipts, *log.receipts))
    return Coerced(value, receipts)


class _Shaped(NamedTuple):
    value: Any
    log: Log


class _Shapes:
    """Brings whole arguments into the shape their schema asks for."""

    __slots__ = (
        "_checker",
        "_parts",
        "_properties",
        "_root",
        "_tool_name",
        "_view",
        "_walk",
        "_wrappers",
    )

    def __init__(self, root: dict[str, Any], checker: SchemaChecker, tool_name: str) -> None:
        self._root = root
        self._checker = checker
        self._parts = SchemaParts(root, checker)
        self._walk = Walk(self._parts)
        self._tool_name = tool_name
        self._view = self._parts.view(root)
        self._properties = self._view.properties.keys()
        names = _WRAPPERS | {tool_name} if tool_name else _WRAPPERS
        self._wrappers = names - self._properties

    def run(self, value: Any) -> tuple[Any, Log]:
        """Return the arguments, changed where that is clear, and what was changed.

        Raises:
            TooMuchWorkError: the branches of the schema multiply.
        """
        log = Log()
        if isinstance(value, str) and (decoded := decode_text(value)) is not None:
            log.decode((), value, decoded)
            value = decoded.value
        first = self._shape(value, log)
        shaped = first
        for _ in range(_MAX_WRAPPERS):
            if self._is_good(shaped.value):
                return shaped.value, shaped.log
            inner = self._unwrap(value, log)
            if inner is None:
                break
            value, log = inner
            shaped = self._shape(value, log)
        best = shaped if self._is_good(shaped.value) else first
        return best.value, best.log

    def _is_good(self, value: Any) -> bool:
        return isinstance(value, dict) and self._checker.is_valid(value)

    def _unwrap(self, value: Any, log: Log) -> _Shaped | None:
        """Take off one wrapper; the log that is returned goes on from the one that is given."""
        if not isinstance(value, dict):
            return None
        members = cast("dict[str, Any]", value).items()
        held = [item for item in members if not self._is_label(*item)]
        if len(held) != 1 or held[0][0] not in self._wrappers:
            return None
        inner = held[0][1]
        further = Log(log)
        further.change("unwrap_arguments", (), value, inner)
        if isinstance(inner, str):
            decoded = decode_text(inner)
            if decoded is None:
                return None
            further.decode((), inner, decoded)
            inner = decoded.value
        return _Shaped(inner, further) if isinstance(inner, dict | list) else None

    def _is_label(self, key: str, item: Any) -> bool:
        """Tell whether a member names the call that the arguments are of."""
        if not isinstance(item, str) or key in self._properties:
            return False
        if key == "type":
            return item in _KINDS_OF_CALLS
        return key in _NAME_LABELS and item == self._tool_name

    def _shape(self, value: Any, log: Log) -> _Shaped:
        """Shape a value without taking off a wrapper object."""
        shaped = _Shaped(value, Log(log))
        if self._is_good(value):
            return shaped
        if isinstance(value, dict):
            return shaped._replace(value=self._walk.run(value, self._root, shaped.log))  # pyright: ignore[reportUnknownArgumentType] - any JSON
        forms: list[_Shaped] = []
        for form in self._list_forms(value, shaped.log):
            if self._is_good(form.value) and not any(
                same_json(form.value, other.value) for other in forms
            ):
                forms.append(form)
        if len(forms) == 1:
            return forms[0]
        if forms:
            shaped.log.note((), explain_shape([form.value for form in forms]))
        return shaped

    def _list_forms(self, value: Any, log: Log) -> Iterator[_Shaped]:
        """Yield the objects that a value may stand for, each with its own log."""
        if value is None or (isinstance(value, str) and not value.strip()):
            rule = "null_to_empty_object" if value is None else "blank_to_empty_object"
            yield self._make_form(rule, value, {}, log)
        elif isinstance(value, list):
            items = cast("list[Any]", value)
            if len(items) == 1 and isinstance(items[0], dict) and not is_schema_echo(items[0]):
                yield self._make_form("unwrap_list", items, cast("Any", items[0]), log)
            yield from self._name_positions(items, log)
            for name in self._only_name():
                named = {name: items}
                if self._checker.is_valid(named):
                    yield self._make_form("name_single_value", items, named, log)
        elif isinstance(value, str | int | float) and not _looks_structured(value):
            for name in self._only_name():
                yield self._make_form("name_single_value", value, {name: value}, log)

    def _make_form(self, rule: str, before: Any, after: Any, log: Log) -> _Shaped:
        shaped = _Shaped(after, Log(log))
        shaped.log.change(rule, (), before, after)
        if self._is_good(after):
            return shaped
        return shaped._replace(value=self._walk.run(after, self._root, shaped.log))

    def _only_name(self) -> list[str]:
        """Return the one required property, or the one there is."""
        view = self._view
        required = [name for name in view.properties if name in view.required]
        names = required or list(view.properties)
        return names if len(names) == 1 else []

    def _name_positions(self, items: list[Any], log: Log) -> Iterator[_Shaped]:
        """Give positional values the names of the properties, when no other order would fit."""
        view = self._view
        names = list(view.properties)
        if len(items) != len(names):
            names = [name for name in names if name in view.required]
        if len(items) != len(names) or not 0 < len(items) <= _MAX_POSITIONS:
            return
        schemas = [view.properties[name] for name in names]
        fitting = [
            {at for at, schema in enumerate(schemas) if self._parts.fits(schema, item)}
            for item in items
        ]
        if any(at not in places for at, places in enumerate(fitting)):
            return
        if _has_other_order(fitting):
            log.note((), explain_order(names))
            return
        yield self._make_form(
            "name_positional_values", items, dict(zip(names, items, strict=True)), log
        )


def _has_other_order(fitting: list[set[int]]) -> bool:
    """Tell whether items could also change places: whether some fit around in a circle."""
    left = {at: places - {at} for at, places in enumerate(fitting)}
    while left:
        free = [at for at, places in left.items() if not places & left.keys()]
        if not free:
            return True
        for at in free:
            del left[at]
    return False


def _looks_structured(value: Any) -> bool:
    return isinstance(value, str) and (value.strip()[:1] in ("{", "[") or value in NULL_TEXTS)
