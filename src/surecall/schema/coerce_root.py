"""Arguments in another shape than one object of named values: wrapped, listed, positional, bare."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple, cast

from .check import SchemaChecker
from .coerce_parts import SchemaParts
from .coerce_values import NULL_TEXTS, decode_text, is_schema_echo
from .coerce_walk import Log, Walk, same_json, show

__all__ = ["RootShapes"]

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


class _Shaped(NamedTuple):
    value: Any
    log: Log


class RootShapes:
    """Brings whole arguments into the shape their schema asks for."""

    __slots__ = ("_checker", "_parts", "_properties", "_root", "_tool_name", "_walk", "_wrappers")

    def __init__(
        self, root: dict[str, Any], parts: SchemaParts, checker: SchemaChecker, tool_name: str
    ) -> None:
        self._root = root
        self._parts = parts
        self._checker = checker
        self._walk = Walk(parts)
        self._tool_name = tool_name
        self._properties = parts.view(root).properties.keys()
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
        first = self._straight(value, log)
        shaped = first
        for _ in range(_MAX_WRAPPERS):
            if self._is_good(shaped.value):
                return shaped.value, shaped.log
            inner = self._unwrapped(value, log)
            if inner is None:
                break
            value, log = inner
            shaped = self._straight(value, log)
        best = shaped if self._is_good(shaped.value) else first
        return best.value, best.log

    def _is_good(self, value: Any) -> bool:
        return isinstance(value, dict) and self._checker.is_valid(value)

    def _unwrapped(self, value: Any, log: Log) -> _Shaped | None:
        """Take off one wrapper; the log that is returned goes on from the one that is given."""
        if not isinstance(value, dict):
            return None
        members = cast("dict[str, Any]", value).items()
        held = [item for item in members if not self._is_label(*item)]
        if len(held) != 1 or held[0][0] not in self._wrappers:
            return None
        inner = held[0][1]
        further = Log()
        further.extend(log)
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

    def _straight(self, value: Any, log: Log) -> _Shaped:
        """Shape a value without taking off a wrapper object."""
        shaped = _Shaped(value, Log())
        shaped.log.extend(log)
        if self._is_good(value):
            return shaped
        if isinstance(value, dict):
            return shaped._replace(value=self._walk.run(value, self._root, shaped.log))  # pyright: ignore[reportUnknownArgumentType] - any JSON
        forms: list[_Shaped] = []
        for form in self._forms(value, shaped.log):
            if self._is_good(form.value) and not any(
                same_json(form.value, other.value) for other in forms
            ):
                forms.append(form)
        if len(forms) == 1:
            return forms[0]
        if forms:
            shown = " or ".join(show(form.value) for form in forms[:4])
            shaped.log.note((), f"must be an object; the value given could mean {shown}")
        return shaped

    def _forms(self, value: Any, log: Log) -> Iterator[_Shaped]:
        """Yield the objects that a value may stand for, each with its own log."""
        if value is None or (isinstance(value, str) and not value.strip()):
            rule = "null_to_empty_object" if value is None else "blank_to_empty_object"
            yield self._form(rule, value, {}, log)
        elif isinstance(value, list):
            items = cast("list[Any]", value)
            if len(items) == 1 and isinstance(items[0], dict) and not is_schema_echo(items[0]):
                yield self._form("unwrap_list", items, cast("Any", items[0]), log)
            yield from self._named(items, log)
            for name in self._only_name():
                named = {name: items}
                if self._checker.is_valid(named):
                    yield self._form("name_single_value", items, named, log)
        elif isinstance(value, str | int | float) and not _looks_structured(value):
            for name in self._only_name():
                yield self._form("name_single_value", value, {name: value}, log)

    def _form(self, rule: str, before: Any, after: Any, log: Log) -> _Shaped:
        shaped = _Shaped(after, Log())
        shaped.log.extend(log)
        shaped.log.change(rule, (), before, after)
        if self._is_good(after):
            return shaped
        return shaped._replace(value=self._walk.run(after, self._root, shaped.log))

    def _only_name(self) -> list[str]:
        """Return the one required property, or the one there is."""
        view = self._parts.view(self._root)
        required = [name for name in view.properties if name in view.required]
        names = required or list(view.properties)
        return names if len(names) == 1 else []

    def _named(self, items: list[Any], log: Log) -> Iterator[_Shaped]:
        """Give positional values the names of the properties, when no other order would fit."""
        view = self._parts.view(self._root)
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
            listed = ", ".join(names)
            hint = f"its items could be {listed} in more than one order; name each of them"
            log.note((), f"must be an object, not an array: {hint}")
            return
        yield self._form("name_positional_values", items, dict(zip(names, items, strict=True)), log)


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
