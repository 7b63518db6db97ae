"""Names for transforms, and the functions behind them.

    messages    (messages) -> messages                     outbound
    tools       (tools) -> tools                           outbound
    replies     (message) -> (message, receipts)           inbound, before parsing
    calls       (calls) -> (calls, receipts)               inbound, after parsing
    results     (envelope, context) -> envelope            before the result becomes text

A transform never changes what it is given: it returns a new value, or the same object.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from surecall.errors import Code, ConfigError, did_you_mean

from . import calls, messages, replies, results, tools

__all__ = [
    "FAMILIES",
    "Family",
    "NamedTransforms",
    "Transform",
    "TransformRegistry",
    "canonical_transform_name",
]

Family = Literal["messages", "tools", "replies", "calls", "results"]
FAMILIES: Final[tuple[Family, ...]] = get_args(Family)

Transform = Callable[..., Any]
NamedTransforms = tuple[tuple[str, Transform], ...]


def _named(*functions: Transform) -> Mapping[str, Transform]:
    return MappingProxyType({function.__name__: function for function in functions})


_BUILTIN: Final[Mapping[Family, Mapping[str, Transform]]] = MappingProxyType(
    {
        "messages": _named(
            messages.assistant_tool_calls_content_null_if_blank,
            messages.assistant_tool_calls_reasoning_content_empty_if_missing,
            messages.assistant_tool_calls_signature_skip_validator_if_missing,
        ),
        "tools": _named(tools.openai_tools_strip_function_descriptions),
        "replies": _named(
            replies.assistant_function_call_to_tool_calls,
            replies.assistant_tool_calls_object_to_array,
            replies.assistant_tool_calls_arguments_json_string_if_hash,
            replies.assistant_content_tool_call_tags_to_tool_calls,
        ),
        "calls": _named(calls.assistant_tool_calls_arguments_blank_to_empty_object),
        "results": _named(results.tool_result_compact_envelope),
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
            raise ConfigError(Code.INVALID_CONFIG, f"transform {name!r} is not callable.")
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
