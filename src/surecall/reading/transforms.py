"""Transforms by name: what each does, which receipt it leaves, and running them in order.

    messages    (messages) -> messages                     outbound
    tools       (tools) -> tools                           outbound
    replies     (message) -> (message, receipts)           inbound, before parsing
    calls       (calls) -> (calls, receipts)               inbound, after parsing
    results     (envelope, context) -> envelope            before the result becomes text
    answers     (text) -> (text, receipts)                 the text that a run ends with

A transform never changes what it is given: it returns a new value, or the same object. The
built-in transforms of replies and calls have no function: reading does what they say.
"""

import re
from collections.abc import Callable, Iterable
from functools import partial
from operator import is_
from typing import Any, Final, Literal, NamedTuple, cast, get_args

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code, ConfigError, did_you_mean
from surecall.base.json_values import as_fields
from surecall.base.records import CHANGED, CHANGED_BY_TRANSFORM, RawCall, Receipt
from surecall.calls import FORMATS, CallFormat, Found, Source

from .rules import (
    BLANK_TRANSFORM,
    CALLS_OBJECT_TO_ARRAY,
    FUNCTION_CALL_TO_CALLS,
    OBJECT_TO_ARGUMENTS,
    RULES,
    TAGS_TO_CALLS,
    TRANSFORM_RULES,
)

Family = Literal["messages", "tools", "replies", "calls", "results", "answers"]
"""What a transform changes."""
FAMILIES: Final[tuple[Family, ...]] = get_args(Family)
"""The six families of transforms."""

Transform = Callable[..., Any]
NamedTransforms = tuple[tuple[str, Transform], ...]
Wire = list[dict[str, Any]]
"""Messages or tools as they are sent."""

SKIP_SIGNATURE_VALIDATOR: Final = "skip_thought_signature_validator"
"""What stands in for a signature that is not there."""


def _map(items: Wire, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Wire:
    """Change each item; the list is the same one when nothing changes."""
    changed = list(map(change, items))
    return items if all(map(is_, items, changed)) else changed


def _carries_calls(message: dict[str, Any]) -> bool:
    calls = message.get("tool_calls")
    return message.get("role") == "assistant" and isinstance(calls, list) and calls != []


def _without_blank_content(message: dict[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    is_blank = isinstance(content, str) and not content.strip()
    return {**message, "content": None} if is_blank and _carries_calls(message) else message


def _with_reasoning_content(message: dict[str, Any]) -> dict[str, Any]:
    lacks_it = "reasoning_content" not in message and _carries_calls(message)
    return {**message, "reasoning_content": ""} if lacks_it else message


def _with_signatures(message: dict[str, Any]) -> dict[str, Any]:
    if not _carries_calls(message):
        return message
    signed = _map(message["tool_calls"], _with_signature)
    return message if signed is message["tool_calls"] else {**message, "tool_calls": signed}


def _with_signature(call: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(call, dict) or call.get("signature"):  # pyright: ignore[reportUnnecessaryIsInstance]
        return call
    return {**call, "signature": SKIP_SIGNATURE_VALIDATOR}


def _without_description(tool: dict[str, Any]) -> dict[str, Any]:
    function = as_fields(tool.get("function"))
    if tool.get("type") != "function" or "description" not in function:
        return tool
    rest = {key: value for key, value in function.items() if key != "description"}
    return {**tool, "function": rest}


_DROPPED_WHEN_EMPTY: Final = frozenset({"warnings", "errors", "data"})
_EMPTY: Final[tuple[Any, ...]] = (None, [], (), {}, "")


class ResultContext(Struct, frozen=True):
    """Which call an envelope answers."""

    tool_name: str
    call_id: str


def tool_result_compact_envelope(
    envelope: dict[str, Any], context: ResultContext
) -> dict[str, Any]:
    """Drop `warnings`, `errors` and `data` where they are empty."""
    empty = [name for name in _DROPPED_WHEN_EMPTY & envelope.keys() if envelope[name] in _EMPTY]
    if not empty:
        return envelope
    return {key: value for key, value in envelope.items() if key not in empty}


# What comes with surecall


class BuiltIn(NamedTuple):
    """One transform that comes with surecall."""

    name: str
    family: Family
    does: str
    rule: str = ""
    """The rule of its receipts; transforms of what is sent leave none."""
    function: Transform | None = None
    """What does it; without one, reading does, whether the transform is named or not."""
    adds: str = ""
    """What naming it adds to what is read anyway."""


def _sent(
    name: str, family: Family, does: str, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> BuiltIn:
    return BuiltIn(name, family, does, function=partial(_map, change=change))


def _read(name: str, family: Family, adds: str = "Nothing.", does: str = "") -> BuiltIn:
    rule = TRANSFORM_RULES[name]
    return BuiltIn(name, family, does or RULES[rule].sentence, rule, adds=adds)


BUILTIN: Final = (
    _sent(
        "assistant_tool_calls_content_null_if_blank",
        "messages",
        "Makes blank text next to tool calls null.",
        _without_blank_content,
    ),
    _sent(
        "assistant_tool_calls_reasoning_content_empty_if_missing",
        "messages",
        "Gives messages with tool calls an empty `reasoning_content` when they have none.",
        _with_reasoning_content,
    ),
    _sent(
        "assistant_tool_calls_signature_skip_validator_if_missing",
        "messages",
        "Gives every tool call without a signature the value that skips its validation.",
        _with_signatures,
    ),
    _sent(
        "openai_tools_strip_function_descriptions",
        "tools",
        "Leaves out the description of every function tool; descriptions of parameters stay.",
        _without_description,
    ),
    _read(FUNCTION_CALL_TO_CALLS, "replies", "The call gets the id `call_1` instead of `tc_1`."),
    _read(CALLS_OBJECT_TO_ARRAY, "replies"),
    _read(OBJECT_TO_ARGUMENTS, "replies"),
    _read(
        TAGS_TO_CALLS,
        "replies",
        "They are read where text formats are off; ids are `tag_call_1` and so on.",
        "Reads calls in closed `<tool_call>` tags that are not quoted.",
    ),
    _read(BLANK_TRANSFORM, "calls", "The call is certain, even for a tool that takes arguments."),
    BuiltIn(
        "tool_result_compact_envelope",
        "results",
        "Drops `warnings`, `errors` and `data` from a result where they are empty.",
        function=tool_result_compact_envelope,
    ),
)
"""Every transform that comes with surecall."""


def _leave_to_reading(value: Any) -> tuple[Any, tuple[Receipt, ...]]:
    """Change nothing: a rule of reading does it, in the one place where replies are read."""
    return value, ()


# Names and chains


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
        for one in BUILTIN:
            registry._families[one.family][one.name] = one.function or _leave_to_reading
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

    def resolve(self, family: Family, names: Iterable[str]) -> NamedTransforms:
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
            family: registry.resolve(cast("Family", family), given)
            for family, given in names.items()
        }
        named = [pair for pairs in found.values() for pair in pairs]
        done = frozenset(name for name, function in named if function is _leave_to_reading)
        left = {
            family: tuple(pair for pair in pairs if pair[1] is not _leave_to_reading)
            for family, pairs in found.items()
        }
        return cls(**left, reading=done)

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


# Tags

TAG_OPENER: Final = "<tool_call>"
_CLOSER: Final = "</tool_call>"
_IN_TAGS: Final = frozenset({"glm", "tagged_json"})
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]++")
_QUOTES: Final = frozenset("\\`")
_TEMPLATES: Final = (("{{", "}}"), ("{%", "%}"))
_LOOKED_BACK_CHARS: Final = 2_000


class _ClosedTags(CallFormat, frozen=True, eq=False, kw_only=True):
    """What a format reads in closed tags that are not quoted."""

    inner: CallFormat

    def read(self, source: Source, at: int) -> Found | None:
        """Read the call in the tag at `at`."""
        if _is_quoted(source, at) or source.find(_CLOSER, at) < 0:
            return None
        found = self.inner.read(source, at)
        if found is None or not all(_NAME.fullmatch(call.name) for call in found.calls):
            return found
        # The tag was asked for, so that a bare name in it is a call, too.
        return replace(found, grade="marked")


def _is_quoted(source: Source, at: int) -> bool:
    before = source.text[max(0, at - _LOOKED_BACK_CHARS) : at]
    return before[-1:] in _QUOTES or any(
        before.rfind(opener) > before.rfind(closer) and source.find(closer, at) >= 0
        for opener, closer in _TEMPLATES
    )


TAG_FORMATS: Final[tuple[CallFormat, ...]] = tuple(
    _ClosedTags(
        name=form.name,
        about=form.about,
        origin=form.origin,
        literals=(TAG_OPENER,),
        inner=form,
    )
    for form in FORMATS
    if form.name in _IN_TAGS
)
