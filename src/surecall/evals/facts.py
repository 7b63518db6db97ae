"""Which kinds of schema errors a value has, for counting."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NoReturn, cast

from msgspec import Struct

from surecall.base.errors import Code, JSONTextError
from surecall.base.records import Receipt, ToolCall, ToolSpec, Usage
from surecall.calls import ToolNames
from surecall.loop import Trace, TurnTrace
from surecall.reading import (
    IDENTITY_RULES,
    MOVING_RULES,
    find_broken_attempt,
    read_arguments,
    read_reply,
)
from surecall.schema import SchemaChecker
from surecall.text import decode_noting
from surecall.wire import find_protocol

from .records import CallFact, Outcome
from .strategies import NAIVE_FORMAT

_KEYWORDS: Final = {
    "missing": ("dependentRequired", "required"),
    "enum": ("const", "enum"),
    "type": ("type",),
    "range": (
        *("additionalItems", "exclusiveMaximum", "exclusiveMinimum", "maxItems", "maxLength"),
        *("maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum"),
        *("multipleOf", "uniqueItems"),
    ),
    "unknown_key": ("additionalProperties", "propertyNames", "unevaluatedProperties"),
    "format": ("format", "pattern"),
}
_KIND_OF: Final = {word: kind for kind, words in _KEYWORDS.items() for word in words}
UNKNOWN_VALUE: Final = "unknown_value"
"""The schema takes it, and the tool does not know it, such as a table that does not exist."""
KINDS: Final = (*_KEYWORDS, UNKNOWN_VALUE, "other")
"""Every kind, in the order in which they are reported."""
_MAX_UNION_DEPTH: Final = 4


def list_error_kinds(schema: dict[str, Any], value: Any) -> tuple[str, ...]:
    """Return the kinds of errors that a value has under a schema, each once."""
    import jsonschema_rs

    try:
        validator = jsonschema_rs.validator_for(schema, retriever=_refuse)
        found = set(_kinds(validator.iter_errors(value), _MAX_UNION_DEPTH))
    except ValueError:  # not JSON, or a schema that cannot be used
        return ("other",)
    return tuple(kind for kind in KINDS if kind in found)


def _kinds(errors: Iterable[Any], depth: int) -> Iterator[str]:
    for error in errors:
        branches: list[list[Any]] | None = getattr(error.kind, "context", None)
        if branches and depth:
            yield from _union_kinds(branches, depth)
        else:
            yield _KIND_OF.get(error.kind.name, "other")


def _union_kinds(branches: list[list[Any]], depth: int) -> set[str]:
    """Return what is wrong with the branch that was meant: one that is not of another type."""
    found = [set(_kinds(branch, depth - 1)) for branch in branches]
    near = [kinds for kinds in found if "type" not in kinds]
    return set[str]().union(*(near or found))


def _refuse(_uri: str) -> NoReturn:
    raise ValueError("schemas are never fetched")


_READ_TEXT: Final = "read_call_from_text"
_NAMES: Final = frozenset({"infer_tool_name", "resolve_tool_name", "strip_name"})
_RESCUE: Final = "rescue_from_error_body"
_CUT: Final = frozenset({"length", "max_tokens", "model_length"})
_TRIED: Final = frozenset({Code.MALFORMED_FUNCTION_CALL, Code.TOOL_NOT_EXECUTED})
_MAX_EXPLAINED_BYTES: Final = 50_000


class RunFacts(Struct, frozen=True, kw_only=True):
    """A run in facts."""

    calls: tuple[CallFact, ...] = ()
    outcome: Outcome = "abstained"
    rules: tuple[str, ...] = ()
    """Every rule that changed something, each once."""
    needed: tuple[str, ...] = ()
    """Rules without which a call that ran could not have been used, or a turn not been taken."""
    fabrications: int = 0
    turns: int = 0
    requests: int = 0
    attempts: int = 0
    usage: Usage = Usage()
    cut: bool = False
    """Whether any reply stopped at its token limit."""


def collect_facts(
    trace: Trace,
    *,
    exact: Sequence[bool | None] = (),
    stages: Iterable[str] = (),
    checkers: Mapping[str, SchemaChecker] | None = None,
) -> RunFacts:
    """Collect the facts of a run.

    Args:
        trace: What happened.
        exact: Per call, whether its arguments are what was expected.
        stages: Options that the run made use of, such as `fix_empty_final`.
        checkers: The compiled schemas of the tools, when there are any already.
    """
    tools = _Tools(trace, checkers or {})
    seen = [
        _Seen(turn, position, call, tools)
        for turn in trace.turns
        for position, call in enumerate(turn.calls)
    ]
    calls = tuple(
        item.fact(exact[number] if number < len(exact) else None)
        for number, item in enumerate(seen)
    )
    stages = tuple(stages)
    needed = [rule for item in seen for rule in item.needed]
    if any(item.was_taught and item.executed for item in seen):
        needed.append("tool_prompting")
    receipts = trace.receipts
    return RunFacts(
        calls=calls,
        outcome=_outcome(trace, calls),
        rules=tuple(dict.fromkeys((*(receipt.rule for receipt in receipts), *stages))),
        needed=tuple(dict.fromkeys((*needed, *stages))),
        fabrications=sum(item.executed and not item.is_faithful() for item in seen),
        turns=len(trace.turns),
        requests=sum(map(_count_requests, trace.turns)),
        attempts=sum(
            (turn.attempts if turn.raw is not None else 0) + len(turn.failures)
            for turn in trace.turns
        ),
        usage=_usage(trace.turns),
        cut=any(_finish_reason(turn) in _CUT for turn in trace.turns),
    )


class _Tools:
    """The tools of a run, and their compiled schemas."""

    def __init__(self, trace: Trace, checkers: Mapping[str, SchemaChecker]) -> None:
        self.max_bytes = trace.options.max_tool_args_bytes
        self.reads_text = trace.options.text_formats != "off"
        self._specs = {tool.name: tool for tool in trace.tools}
        self._checkers = dict(checkers)

    def spec(self, name: str) -> ToolSpec | None:
        return self._specs.get(name)

    def checker(self, spec: ToolSpec) -> SchemaChecker:
        if spec.name not in self._checkers:
            self._checkers[spec.name] = SchemaChecker(spec.parameters)
        return self._checkers[spec.name]


class _Seen:
    """One call, with all that was done to it."""

    def __init__(self, turn: TurnTrace, position: int, call: ToolCall, tools: _Tools) -> None:
        self._turn = turn
        self._call = call
        self._tools = tools
        self._spec = tools.spec(call.name)
        self._receipts = _receipts_of(turn, position, call)
        self._rules = tuple(dict.fromkeys(receipt.rule for receipt in self._receipts))
        self._result = next((one for one in turn.results if one.call_id == call.id), None)
        self.executed = self._result is not None and self._result.executed
        self.was_taught = turn.request.prompt_mode in ("taught", "constrained")
        self._object = None if turn.raw is None else strict_object(call.raw)
        self._valid_before = self._is_valid_before()

    @property
    def needed(self) -> tuple[str, ...]:
        """The rules without which the call could not have run."""
        is_usable = self._valid_before and self._is_structured()
        return self._rules if self.executed and not is_usable else ()

    def is_faithful(self) -> bool:
        """Tell whether the call says only what the model said: what arrived, as rules read it."""
        spec, call, receipts = self._spec, self._call, self._receipts
        if spec is None or call.arguments is None or self._turn.raw is None:
            return False
        # Only formats in text have rules that may lose something and still run a call.
        allows_loss = spec.effect == "read" and self._tools.reads_text
        if not allows_loss and any(not receipt.lossless for receipt in receipts):
            return False
        if call.raw is None:
            return not call.arguments
        if strict_object(call.raw, may_repeat=not receipts) == call.arguments:
            return True
        if not receipts:
            return False
        coerces = spec.coerce == "on"
        readings = (
            read_arguments(
                call.raw,
                spec.parameters if coerces else None,
                max_bytes=self._tools.max_bytes,
                ended=ended,
                checker=self._tools.checker(spec) if coerces else None,
                tool_name=call.name,
            )
            for ended in (False, True)
        )
        return any(reading.value == call.arguments for reading in readings)

    def fact(self, exact: bool | None) -> CallFact:
        """Return what is counted."""
        call, result, rules = self._call, self._result, self._rules
        codes = [error.code for error in call.errors]
        if result is not None:
            codes = [] if result.ok else list(result.envelope.error_codes)
        return CallFact(
            turn=self._turn.turn,
            name=call.name,
            format=call.format,
            structured=self._is_structured(),
            state=call.state,
            valid_before=self._valid_before,
            valid_after=self._valid_before or self._is_valid_after(),
            changed=any(rule not in MOVING_RULES for rule in rules),
            exact=exact,
            executed=self.executed,
            ok=result is not None and result.ok,
            rules=rules,
            lossy=any(not receipt.lossless for receipt in self._receipts),
            error_codes=tuple(dict.fromkeys(codes)),
            error_kinds=self._error_kinds(),
            arguments_bytes=call.arguments_bytes,
        )

    def _is_structured(self) -> bool:
        return _READ_TEXT not in self._rules and self._call.format != NAIVE_FORMAT

    def _is_valid_before(self) -> bool:
        """Tell whether name and arguments fit exactly as they arrived, in whatever place."""
        if self._spec is None or self._object is None or self._call.state == "cut":
            return False
        if any(rule in _NAMES for rule in self._rules):
            return False
        if any(defect.code == Code.DUPLICATE_KEY for defect in self._turn.defects):
            return False
        return self._tools.checker(self._spec).is_valid(self._object)

    def _is_valid_after(self) -> bool:
        call = self._call
        if self._spec is None or call.arguments is None or call.state != "whole":
            return False
        return self._tools.checker(self._spec).is_valid(call.arguments)

    def _error_kinds(self) -> tuple[str, ...]:
        """Return what the schema says against the arguments as they arrived."""
        value = self._call.arguments if self._object is None else self._object
        result = self._result
        if self._spec is None or value is None:
            return ()
        if self._valid_before:
            refused = result is not None and Code.ARGUMENT_ERROR in result.envelope.error_codes
            return (UNKNOWN_VALUE,) if refused else ()
        if self._tools.checker(self._spec).is_valid(value):
            return ()
        if self._call.arguments_bytes > _MAX_EXPLAINED_BYTES:
            return ("other",)
        return list_error_kinds(self._spec.parameters, value)


def _receipts_of(turn: TurnTrace, position: int, call: ToolCall) -> tuple[Receipt, ...]:
    """Return every change that led to a call, also those made to the reply as a whole."""
    if not turn.receipts and not call.receipts:
        return ()
    places = (f"/tool_calls/{position}/", f"/calls/{position}/")
    is_object = turn.request.prompt_mode == "constrained"
    found = [
        receipt
        for receipt in turn.receipts
        if is_object or receipt.rule == _RESCUE or receipt.place.startswith(places)
    ]
    found += call.receipts
    return tuple(receipt for receipt in found if receipt.rule not in IDENTITY_RULES)


def _outcome(trace: Trace, calls: tuple[CallFact, ...]) -> Outcome:
    if any(call.executed for call in calls):
        return "called"
    if calls or any(turn.ignored_calls for turn in trace.turns):
        return "broke"
    return "broke" if was_call_tried(trace) else "abstained"


def was_call_tried(trace: Trace) -> bool:
    """Tell whether the model meant to call something, though nothing was read as a call."""
    names = ToolNames(trace.tools)
    if not names:
        return False
    protocol = find_protocol(trace.protocol)
    for turn in trace.turns:
        if any(defect.code in _TRIED for defect in turn.defects):
            return True
        if turn.raw is None:
            continue
        reply = protocol.parse_message(turn.raw)
        if read_reply(reply, tools=names, taught=True).calls:
            return True
        if find_broken_attempt(reply.content or "", names) is not None:
            return True
    return False


def _count_requests(turn: TurnTrace) -> int:
    return (turn.raw is not None) + len(turn.failures) + sum(c.requests for c in turn.fit_checks)


def _usage(turns: Iterable[TurnTrace]) -> Usage:
    whole = Usage()
    for turn in turns:
        summary = turn.response_summary
        if summary is not None and summary.usage is not None:
            whole += summary.usage
        for check in turn.fit_checks:
            whole += check.usage or Usage()
    return whole


def _finish_reason(turn: TurnTrace) -> str | None:
    return None if turn.response_summary is None else turn.response_summary.finish_reason


def strict_object(raw: Any, *, may_repeat: bool = False) -> dict[str, Any] | None:
    """Return the object that arrived as arguments, if it is one without any help.

    Args:
        raw: The arguments.
        may_repeat: Whether a key may stand in it twice, of which JSON takes the last.
    """
    if isinstance(raw, dict):
        return cast("dict[str, Any]", raw)
    if not isinstance(raw, str):
        return None
    try:
        value, repeated = decode_noting(raw)
    except JSONTextError:
        return None
    is_object = isinstance(value, dict) and (may_repeat or not repeated)
    return cast("dict[str, Any]", value) if is_object else None
