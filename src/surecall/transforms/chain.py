"""Running resolved transforms, in order, and holding them to their signature."""

from collections.abc import Iterable
from operator import is_
from typing import Any, cast

from msgspec import Struct

from surecall.errors import Code, ConfigError
from surecall.records import RawCall, Receipt

from .registry import NamedTransforms, TransformRegistry
from .results import ResultContext

__all__ = ["TransformChain"]


class TransformChain(Struct, frozen=True, kw_only=True):
    """The transforms in force, by family; an empty family returns what it is given."""

    messages: NamedTransforms = ()
    tools: NamedTransforms = ()
    replies: NamedTransforms = ()
    calls: NamedTransforms = ()
    results: NamedTransforms = ()

    @classmethod
    def resolve(
        cls,
        registry: TransformRegistry,
        *,
        messages: Iterable[str] = (),
        tools: Iterable[str] = (),
        replies: Iterable[str] = (),
        calls: Iterable[str] = (),
        results: Iterable[str] = (),
    ) -> "TransformChain":
        """Return the named transforms of all families; an unknown name is an error."""
        return cls(
            messages=registry.resolve_named("messages", messages),
            tools=registry.resolve_named("tools", tools),
            replies=registry.resolve_named("replies", replies),
            calls=registry.resolve_named("calls", calls),
            results=registry.resolve_named("results", results),
        )

    def apply_messages(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Run the transforms of outbound messages."""
        for name, function in self.messages:
            messages = _expect(name, function(messages), list)
        return messages

    def apply_tools(self, tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Run the transforms of the outbound tools list."""
        for name, function in self.tools:
            tools = _expect(name, function(tools), list)
        return tools

    def apply_reply(self, message: dict[str, Any]) -> tuple[dict[str, Any], tuple[Receipt, ...]]:
        """Run the transforms of an assistant message as it arrived."""
        receipts: tuple[Receipt, ...] = ()
        for name, function in self.replies:
            message, made = _expect_pair(name, function(message), dict)
            receipts += made
        return message, receipts

    def apply_calls(
        self, calls: tuple[RawCall, ...]
    ) -> tuple[tuple[RawCall, ...], tuple[Receipt, ...]]:
        """Run the transforms of parsed calls."""
        if not self.calls or not calls:
            return calls, ()
        receipts: tuple[Receipt, ...] = ()
        current = list(calls)
        for name, function in self.calls:
            current, made = _expect_pair(name, function(current), list)
            receipts += made
        unchanged = len(current) == len(calls) and all(map(is_, current, calls))
        return (calls if unchanged else tuple(current)), receipts

    def apply_result(
        self, envelope: dict[str, Any], tool_name: str, call_id: str
    ) -> dict[str, Any]:
        """Run the transforms of a result's envelope."""
        if not self.results:
            return envelope
        context = ResultContext(tool_name, call_id)
        for name, function in self.results:
            envelope = _expect(name, function(envelope, context), dict)
        return envelope


def _expect(name: str, value: Any, kind: type) -> Any:
    if isinstance(value, kind):
        return value
    raise _wrong_return(name, value, f"a {kind.__name__}")


def _expect_pair(name: str, value: Any, kind: type) -> tuple[Any, tuple[Receipt, ...]]:
    if isinstance(value, tuple) and len(pair := cast("tuple[Any, ...]", value)) == 2:
        changed, receipts = pair
        if isinstance(changed, kind) and isinstance(receipts, tuple):
            return changed, cast("tuple[Receipt, ...]", receipts)
    raise _wrong_return(name, value, f"a {kind.__name__} and a tuple of receipts")


def _wrong_return(name: str, value: Any, expected: str) -> ConfigError:
    return ConfigError(
        Code.INVALID_CONFIG,
        f"transform {name!r} returned {type(value).__name__} instead of {expected}.",
        hint="A transform returns the new value, or the one it was given.",
    )
