"""Names for transforms, the functions behind them, and running these in order.

    messages    (messages) -> messages                     outbound
    tools       (tools) -> tools                           outbound
    replies     (message) -> (message, receipts)           inbound, before parsing
    calls       (calls) -> (calls, receipts)               inbound, after parsing
    results     (envelope, context) -> envelope            before the result becomes text
    answers     (text) -> (text, receipts)                 the text that a run ends with

A transform never changes what it is given: it returns a new value, or the same object. The
built-in transforms of replies and calls have no function: `surecall.reading` does what they say.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from operator import is_
from types import MappingProxyType
from typing import Any, Final, Literal, cast, get_args

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code, ConfigError, did_you_mean
from surecall.base.records import CHANGED, CHANGED_BY_TRANSFORM, RawCall, Receipt
from surecall.reading import TRANSFORM_RULES

from . import builtin
from .builtin import ResultContext

Family = Literal["messages", "tools", "replies", "calls", "results", "answers"]
"""What a transform changes."""
FAMILIES: Final[tuple[Family, ...]] = get_args(Family)
"""The six families of transforms."""

Transform = Callable[..., Any]
NamedTransforms = tuple[tuple[str, Transform], ...]


def _named(*functions: Transform) -> Mapping[str, Transform]:
    return MappingProxyType({function.__name__: function for function in functions})


def _leave_to_reading(value: Any) -> tuple[Any, tuple[Receipt, ...]]:
    """Change nothing: a rule of reading does it, in the one place where replies are read."""
    return value, ()


_OF_CALLS: Final = "assistant_tool_calls_arguments_blank_to_empty_object"
_BUILTIN: Final[Mapping[Family, Mapping[str, Transform]]] = MappingProxyType(
    {
        "messages": _named(
            builtin.assistant_tool_calls_content_null_if_blank,
            builtin.assistant_tool_calls_reasoning_content_empty_if_missing,
            builtin.assistant_tool_calls_signature_skip_validator_if_missing,
        ),
        "tools": _named(builtin.openai_tools_strip_function_descriptions),
        "replies": {name: _leave_to_reading for name in TRANSFORM_RULES if name != _OF_CALLS},
        "calls": {_OF_CALLS: _leave_to_reading},
        "results": _named(builtin.tool_result_compact_envelope),
        "answers": {},
    }
)


def canonical_transform_name(name: str) -> str:
    """Return a name as it is registered: stripped, lower case, underscores for hyphens."""
    return name.strip().lower().replace("-", "_")


class TransformRegistry:
    """Transforms by family and name; an object to pass on, never a global."""

    def __init__(self) -> None:
        self._families: dict[Family, dict[str, Transform]] = {family: {} for family in FAMILIES}

    @classmethod
    def builtin(cls) -> "TransformRegistry":
        """Return a new registry with every built-in transform."""
        registry = cls()
        for family, functions in _BUILTIN.items():
            registry._families[family].update(functions)
        return registry

    def names(self, family: Family) -> tuple[str, ...]:
        """Return the names of a family, in the order they were registered."""
        return tuple(self._family(family))

    def register(
        self, family: Family, name: str, function: Transform, *, replace: bool = False
    ) -> None:
        """Give a transform a name; a name in use is refused unless `replace` is set."""
        functions = self._family(family)
        canonical = canonical_transform_name(name)
        if not canonical.isidentifier():
            raise ConfigError(
                Code.INVALID_CONFIG,
                f"{name!r} cannot be the name of a transform.",
                hint="Use letters, digits and underscores.",
            )
        if not callable(function):
            raise ConfigError(Code.INVALID_CONFIG, f"Transform {name!r} is not callable.")
        if canonical in functions and not replace:
            raise ConfigError(
                Code.INVALID_CONFIG,
                f"there is a transform {canonical!r} for {family} already.",
                hint="Choose another name, or pass replace=True.",
            )
        functions[canonical] = function

    def resolve(self, family: Family, names: Iterable[str]) -> tuple[Transform, ...]:
        """Return the functions of the given names, in order, each once."""
        return tuple(function for _, function in self.resolve_named(family, names))

    def resolve_named(self, family: Family, names: Iterable[str]) -> NamedTransforms:
        """Return names in canonical form with their functions, in order, each once."""
        functions = self._family(family)
        found: dict[str, Transform] = {}
        for name in [names] if isinstance(names, str) else names:
            canonical = canonical_transform_name(name)
            if canonical not in functions:
                raise self._unknown(family, name, canonical)
            found[canonical] = functions[canonical]
        return tuple(found.items())

    def _family(self, family: Family) -> dict[str, Transform]:
        if family not in self._families:
            raise ConfigError(
                Code.INVALID_CONFIG,
                f"there is no family of transforms called {family!r}.",
                hint=did_you_mean(str(family), FAMILIES),
            )
        return self._families[family]

    def _unknown(self, family: Family, name: str, canonical: str) -> ConfigError:
        elsewhere = [other for other in FAMILIES if canonical in self._families[other]]
        if elsewhere:
            hint = f"It is a transform of {' and '.join(elsewhere)}: list it there."
        else:
            hint = did_you_mean(canonical, self._families[family])
        return ConfigError(
            Code.UNKNOWN_TRANSFORM, f"there is no transform {name!r} for {family}.", hint=hint
        )


def _has_function(pair: tuple[str, Transform]) -> bool:
    return pair[1] is not _leave_to_reading


class TransformChain(Struct, frozen=True, kw_only=True):
    """The transforms in force, by family; an empty family returns what it is given."""

    messages: NamedTransforms = ()
    tools: NamedTransforms = ()
    replies: NamedTransforms = ()
    calls: NamedTransforms = ()
    results: NamedTransforms = ()
    answers: NamedTransforms = ()
    reading: frozenset[str] = frozenset()
    """The names of those that reading does."""

    @classmethod
    def resolve(cls, registry: TransformRegistry, **names: Iterable[str]) -> "TransformChain":
        """Return the named transforms by family; an unknown name is an error."""
        found = {
            family: registry.resolve_named(cast("Family", family), given)
            for family, given in names.items()
        }
        named = [pair for pairs in found.values() for pair in pairs]
        return cls(
            **{family: tuple(filter(_has_function, pairs)) for family, pairs in found.items()},
            reading=frozenset(pair[0] for pair in named if not _has_function(pair)),
        )

    def apply_messages(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Run the transforms of outbound messages."""
        return _apply(self.messages, messages)

    def apply_tools(self, tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Run the transforms of the outbound tools list."""
        return _apply(self.tools, tools)

    def apply_reply(self, message: dict[str, Any]) -> tuple[dict[str, Any], tuple[Receipt, ...]]:
        """Run the transforms of an assistant message as it arrived."""
        return _apply_noting(self.replies, message)

    def apply_calls(
        self, calls: tuple[RawCall, ...]
    ) -> tuple[tuple[RawCall, ...], tuple[Receipt, ...]]:
        """Run the transforms of parsed calls."""
        if not self.calls or not calls:
            return calls, ()
        current = list(calls)
        receipts: tuple[Receipt, ...] = ()
        for name, function in self.calls:
            before = current
            current, made = _apply_noting(((name, function),), before)
            if current is not before and not made and len(current) == len(before):
                current = list(map(partial(_note_change, name), before, current))
            receipts += made
        unchanged = len(current) == len(calls) and all(map(is_, current, calls))
        return (calls if unchanged else tuple(current)), receipts

    def apply_result(
        self, envelope: dict[str, Any], tool_name: str, call_id: str
    ) -> dict[str, Any]:
        """Run the transforms of a result's envelope."""
        if not self.results:
            return envelope
        return _apply(self.results, envelope, ResultContext(tool_name, call_id))

    def apply_answer(self, text: str) -> tuple[str, tuple[Receipt, ...]]:
        """Run the transforms of the text that a run ends with."""
        return _apply_noting(self.answers, text)


def _note_change(name: str, before: RawCall, after: RawCall) -> RawCall:
    """Return a call with a receipt of what a transform that says nothing did to its arguments."""
    if after is before or after.arguments == before.arguments:
        return after
    why = f"the transform {name}{CHANGED}"
    receipt = Receipt(
        CHANGED_BY_TRANSFORM, "", before.arguments, after.arguments, lossless=False, why=why
    )
    return replace(after, receipts=(*after.receipts, receipt))


def _apply(transforms: NamedTransforms, value: Any, *context: Any) -> Any:
    """Run transforms that return a value like the one they are given."""
    kind: type = value.__class__
    for name, function in transforms:
        value = function(value, *context)
        if not isinstance(value, kind):
            raise _wrong_return(name, value, f"a {kind.__name__}")
    return value


def _apply_noting(transforms: NamedTransforms, value: Any) -> tuple[Any, tuple[Receipt, ...]]:
    """Run transforms that also return receipts of what they changed."""
    kind: type = value.__class__
    receipts: tuple[Receipt, ...] = ()
    for name, function in transforms:
        made: Any = function(value)
        pair = cast("tuple[Any, ...]", made) if isinstance(made, tuple) else ()
        if len(pair) != 2 or not (isinstance(pair[0], kind) and isinstance(pair[1], tuple)):
            raise _wrong_return(name, made, f"a {kind.__name__} and a tuple of receipts")
        value, receipts = pair[0], receipts + cast("tuple[Receipt, ...]", pair[1])
    return value, receipts


def _wrong_return(name: str, value: Any, expected: str) -> ConfigError:
    return ConfigError(
        Code.INVALID_CONFIG,
        f"Transform {name!r} returned {type(value).__name__} instead of {expected}.",
        hint="A transform returns the new value, or the one it was given.",
    )
