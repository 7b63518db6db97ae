"""Every option of a run, its default, and where its value came from."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypedDict, cast, get_args

import msgspec
from msgspec import Struct

from surecall.base.errors import Code, ConfigError, did_you_mean
from surecall.base.limits import (
    APPROVAL_LIFETIME_S,
    MAX_ARGUMENTS_BYTES,
    MAX_OUTPUT_BYTES,
    MAX_TURN_ARGUMENTS_BYTES,
)
from surecall.base.redaction import excerpt
from surecall.exchange.wording import EMPTY_ANSWER
from surecall.reading import ALL_RULES, FIXED_RULES, RULES, TRANSFORM_RULES

from .output import OutputMode

ToolUseMode = Literal["enforced", "relaxed", "disabled"]
ToolFailurePolicy = Literal["fatal", "tolerated"]
ToolPrompting = Literal["auto", "native", "strict", "taught", "constrained"]
AfterRequired = Literal["answer", "go_on"]
FitGate = Literal["off", "auto", "on"]
LikelyCalls = Literal["by_effect", "run", "approve", "never"]
TextFormats = Literal["auto", "off", "all"]

DEFAULT_EMPTY_FINAL_TEXT: Final = EMPTY_ANSWER


class Options(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a run behaves. Every field can be set by a preset, the configuration or the caller.

    For example:

        surecall.Options(max_turns=3).max_turns  # 3
    """

    tool_use_mode: ToolUseMode = "relaxed"
    """`enforced` demands tool use, `relaxed` allows it, `disabled` sends no tools."""
    tool_failure_policy: ToolFailurePolicy = "fatal"
    """In enforced mode: `fatal` fails when the last result of any tool failed, `tolerated` only
    when no call ever succeeded."""
    tool_allowlist: tuple[str, ...] = ()
    """Only these tools are sent and executed; empty means all."""
    tool_denylist: tuple[str, ...] = ()
    """These tools are neither sent nor executed; wins over the allowlist."""
    tool_choice: str | dict[str, Any] = "auto"
    """Sent with the tools: `auto`, `none`, `required`, a tool's name or the wire object. A choice
    that forces a call holds until one was made."""
    max_turns: int = 12
    """Requests to the model before the run is stopped with `MAX_TURNS_REACHED`."""
    max_tool_calls_per_turn: int | None = 128
    """Calls accepted from one reply; the rest are ignored and recorded, and the model reads that.
    `None` means no limit. Unless a number is given, it is one when `parallel_tool_calls` is
    false."""
    max_tool_calls: int | None = None
    """Calls in the whole run before it is stopped with `CALL_BUDGET_EXCEEDED`."""
    max_run_tokens: int | None = None
    """Tokens in the whole run, as the provider counts them, before `TOKEN_BUDGET_EXCEEDED`."""
    max_identical_calls: int | None = 3
    """The same call with the same arguments: at this count the model is warned, one more stops
    the run with `REPEATED_CALL`. A success of a tool with effects resets the count."""
    deadline_s: float | None = None
    """Seconds for the whole run before `DEADLINE_EXCEEDED`."""
    max_tool_args_bytes: int = MAX_ARGUMENTS_BYTES
    """Arguments of one call larger than this are refused with `ARGUMENTS_TOO_LARGE`."""
    max_turn_args_bytes: int = MAX_TURN_ARGUMENTS_BYTES
    """Arguments of all calls of one reply together."""
    max_tool_output_bytes: int = MAX_OUTPUT_BYTES
    """A result larger than this is replaced by `TOOL_OUTPUT_TOO_LARGE`."""
    max_concurrent_calls: int = 8
    """Calls of read-only tools that run at the same time."""
    tool_timeout_s: float | None = None
    """Seconds a tool may take, unless it sets its own `timeout_s`."""
    fix_empty_final: bool = True
    """Ask once more when the final answer is empty after tools were used."""
    fix_empty_final_user_text: str = DEFAULT_EMPTY_FINAL_TEXT
    """The text that asks once more for a final answer."""
    fix_empty_final_disable_tools: bool = True
    """Send no tools when asking once more."""
    fallback_retry_count: int = 0
    """In relaxed mode: how often a request refused with an HTTP error is sent again without
    tools, per turn."""
    keep_content_with_calls: bool = False
    """Keep text that came next to tool calls in the history; it is always in the trace."""
    stream: bool = False
    """Stream every turn; the result is the same."""
    skip_bad_events: bool = False
    """Go on when one event of a stream cannot be read, instead of stopping with
    `UPSTREAM_BAD_EVENT`; what was skipped is a defect in the trace."""
    tool_prompting: ToolPrompting = "auto"
    """How tools are presented to the model. `native` sends them as the provider defines it;
    `strict` also asks it to hold arguments to their schemas; `taught` explains them in the prompt,
    for a model that is not shown tools; `constrained` also holds the whole reply to a schema.
    `auto` is `taught` for a model that is known not to support tools, `native` for any other."""
    max_parse_retries: int = 1
    """How often in a row surecall asks again for a call that cannot be read, in text or native.
    After that, the answer ends with a note that no tool ran. Unless a number is given, native calls
    have three retries. Arguments that can be read and do not fit their tool do not count here: the
    model reads what is wrong with them until `max_turns` or `max_identical_calls` ends the run."""
    max_escalations: int = 0
    """How many times requests may escalate after one tool's arguments are refused twice in a row:
    first a forced choice, then a schema for the reply, then a form taught in the prompt. A small
    model is also asked once for a list of all its first calls."""
    text_formats: TextFormats = "auto"
    """Whether calls and thoughts that the model wrote as text are read: `auto` does so for every
    model in the turns in which tools are offered, `all` in every turn, `off` never."""
    likely_calls: LikelyCalls = "by_effect"
    """How to treat a call that is only likely: `by_effect` runs it on a tool that only reads,
    and tells the model otherwise that it was not executed; `run` runs it, `approve` has the
    approver decide, and `never` leaves it in the text it is part of."""
    approval_lifetime_s: float = APPROVAL_LIFETIME_S
    """Seconds that an approval can be decided and used, when a run waits for one."""
    required_tools: tuple[str, ...] = ()
    """Tools that must have succeeded in this run before an answer is accepted; without them it ends
    with `REQUIRED_TOOL_MISSING`. Given to a run, never to a session."""
    after_required: AfterRequired | None = None
    """After all required tools have succeeded: `answer` offers no more tools, `go_on`
    does. Unset means `answer` where replies are held to a schema, and `go_on` elsewhere. The only
    tool of a run counts as required when `tool_choice` names it."""
    stop_after_calls: bool = False
    """End the run, with an empty text, as soon as calls of a reply have run and no required tool
    is missing: for applications that want the results of tools and no answer."""
    max_step_nudges: int = 2
    """How often a model that answers too early is asked to go on, while a required tool is missing.
    Its reply is then held to a call where the provider can do that. In enforced mode it is also
    tried once before `NO_TOOL_CALLS`, where the reply can be held to a call."""
    fit_gate: FitGate = "off"
    """Whether the model is asked, before an optional tool runs, if that tool fits the request:
    `on` always, `auto` only where a probe found that this helps, `off` never."""
    disabled_rules: tuple[str, ...] = ()
    """Rules of reading that are switched off, by the names their receipts carry; `*` is all of
    them. A call that needs such a rule is refused, which shows what the rule is worth."""
    request_defaults: dict[str, Any] = {}
    """Body fields sent with every request, such as a sampling profile's parameters."""
    request_overrides: dict[str, Any] = {}
    """Body fields that win over the defaults. Reserved keys are ignored and reported."""
    overrides_after_cut: dict[str, Any] = {}
    """Body fields that win over all others in the request that follows a cut call, such as a
    higher `max_tokens`, or a `temperature` that gets a small model out of its loop."""
    output_modes: tuple[OutputMode, ...] = ()
    """In a run that ends with a value, the ways of asking for it, in order: `json_schema` holds
    the reply to the schema, `json_object` to some JSON object, `prompt_only` to nothing. Empty
    means all three. Ways that the model is known not to support are left out."""
    max_output_retries: int = 1
    """How often surecall asks again for an unusable value, with its errors, before it takes the
    next way of asking."""
    check_output: bool = True
    """Whether the application's own check runs before a value is accepted."""
    structured_request_overrides: dict[str, Any] = {}
    """Body fields that win over all others in requests held to a schema or to a JSON object."""
    prompt_only_request_overrides: dict[str, Any] = {}
    """The same, in requests for a value that are held to nothing."""
    message_transforms: tuple[str, ...] = ()
    """Names of transforms applied to outbound messages."""
    tool_transforms: tuple[str, ...] = ()
    """Names of transforms applied to outbound tools."""
    response_transforms: tuple[str, ...] = ()
    """Names of transforms applied to the assistant message as it arrived."""
    tool_call_transforms: tuple[str, ...] = ()
    """Names of transforms applied to parsed calls."""
    tool_result_transforms: tuple[str, ...] = ()
    """Names of transforms applied to result envelopes."""
    answer_transforms: tuple[str, ...] = ()
    """Names of transforms applied to the text that a run ends with; history and trace keep what
    the model wrote."""

    def __post_init__(self) -> None:
        for name in _POSITIVE:
            value = getattr(self, name)
            # Written so that NaN, which compares to nothing, is refused too.
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be greater than 0, not {value}")
        for name in _NOT_NEGATIVE:
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be 0 or more")
        if not self.fix_empty_final_user_text.strip():
            raise ValueError("fix_empty_final_user_text must not be blank")


class OptionArguments(TypedDict, total=False):
    """The options as keyword arguments; `Options` says what each of them does."""

    tool_use_mode: ToolUseMode
    tool_failure_policy: ToolFailurePolicy
    tool_allowlist: Sequence[str]
    tool_denylist: Sequence[str]
    tool_choice: str | dict[str, Any]
    max_turns: int
    max_tool_calls_per_turn: int | None
    max_tool_calls: int | None
    max_run_tokens: int | None
    max_identical_calls: int | None
    deadline_s: float | None
    max_tool_args_bytes: int
    max_turn_args_bytes: int
    max_tool_output_bytes: int
    max_concurrent_calls: int
    tool_timeout_s: float | None
    fix_empty_final: bool
    fix_empty_final_user_text: str
    fix_empty_final_disable_tools: bool
    fallback_retry_count: int
    keep_content_with_calls: bool
    stream: bool
    skip_bad_events: bool
    tool_prompting: ToolPrompting
    max_parse_retries: int
    max_escalations: int
    text_formats: TextFormats
    likely_calls: LikelyCalls
    approval_lifetime_s: float
    required_tools: Sequence[str]
    after_required: AfterRequired | None
    stop_after_calls: bool
    max_step_nudges: int
    fit_gate: FitGate
    disabled_rules: Sequence[str]
    request_defaults: dict[str, Any]
    request_overrides: dict[str, Any]
    overrides_after_cut: dict[str, Any]
    output_modes: Sequence[OutputMode]
    max_output_retries: int
    check_output: bool
    structured_request_overrides: dict[str, Any]
    prompt_only_request_overrides: dict[str, Any]
    message_transforms: Sequence[str]
    tool_transforms: Sequence[str]
    response_transforms: Sequence[str]
    tool_call_transforms: Sequence[str]
    tool_result_transforms: Sequence[str]
    answer_transforms: Sequence[str]


class CallerArguments(OptionArguments, total=False):
    """The options, and parameters of requests that are common enough to have a name of their own.

    They are the same as keys of `request_overrides`.
    """

    temperature: float | None
    """How varied replies may be."""
    max_tokens: int | None
    """How long one reply may be, in tokens."""
    seed: int | None
    """For replies that can be repeated, where the provider can."""
    stop: str | Sequence[str] | None
    """Text at which a reply ends, or several of them."""


_PARAMETER_TYPES: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "max_tokens": ((int,), "a whole number"),
    "seed": ((int,), "a whole number"),
    "stop": ((str, list, tuple), "a text or a list of texts"),
    "temperature": ((int, float), "a number"),
}
PARAMETERS: Final = tuple(_PARAMETER_TYPES)


def fold_parameters(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a caller gave, with named parameters among the overrides of its requests."""
    if not any(name in given for name in PARAMETERS):
        return given
    named = {name: given[name] for name in PARAMETERS if given.get(name) is not None}
    for name, value in named.items():
        kinds, words = _PARAMETER_TYPES[name]
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise ConfigError(
                Code.INVALID_OPTION, f"{name} must be {words}, not {excerpt(repr(value), 60)}."
            )
    rest = {name: value for name, value in given.items() if name not in PARAMETERS}
    return {**rest, "request_overrides": {**(rest.get("request_overrides") or {}), **named}}


_POSITIVE: Final = (
    "approval_lifetime_s",
    "deadline_s",
    "max_concurrent_calls",
    "max_identical_calls",
    "max_run_tokens",
    "max_tool_args_bytes",
    "max_tool_calls",
    "max_tool_calls_per_turn",
    "max_tool_output_bytes",
    "max_turn_args_bytes",
    "max_turns",
    "tool_timeout_s",
)

_NOT_NEGATIVE: Final = (
    "fallback_retry_count",
    "max_escalations",
    "max_output_retries",
    "max_parse_retries",
    "max_step_nudges",
)

_OPTION_LIST: Final = "surecall docs explain --list --kind option"
_RULE_LIST: Final = "surecall docs explain --list --kind rule"
_RULES: Final = frozenset({ALL_RULES, *TRANSFORM_RULES, *RULES}) - FIXED_RULES
_FIELDS: Final = frozenset(Options.__struct_fields__)
_ALL_DEFAULT: Final = dict.fromkeys(sorted(_FIELDS), "default")
_TYPES: Final = {field.name: field.type for field in msgspec.structs.fields(Options)}
_NULLABLE: Final = frozenset(
    field.name for field in msgspec.structs.fields(Options) if type(None) in get_args(field.type)
)


class ResolvedOptions(NamedTuple):
    """Options in force, and where each value came from."""

    options: Options
    origins: dict[str, str]
    """One for each option; objects also have one for each key, such as
    `request_overrides.temperature`, and name every origin of these."""


def resolve_options(
    values: Mapping[str, Any], origins: Mapping[str, str] | None = None
) -> ResolvedOptions:
    """Turn merged values into options; anything unknown or of a wrong type is an error.

    A null for a field that cannot be null means its default.
    """
    origins = origins or {}
    known: dict[str, Any] = {}
    for name, value in values.items():
        if name not in _FIELDS:
            raise ConfigError(
                Code.UNKNOWN_OPTION,
                f"there is no option {name!r} (from {origins.get(name, 'the caller')}).",
                hint=did_you_mean(name, _FIELDS, listed_by=_OPTION_LIST),
            )
        if value is not None or name in _NULLABLE:
            known[name] = value
    try:
        options = msgspec.convert(known, Options)
    except (msgspec.ValidationError, ValueError, TypeError) as error:
        raise _explain_misfit(known, origins, error) from error
    _check_rules(options.disabled_rules, origins)
    _check_numbers(known, origins)
    return ResolvedOptions(options, _with_defaults(origins, known))


def _explain_misfit(
    known: Mapping[str, Any], origins: Mapping[str, str], error: Exception
) -> ConfigError:
    """Name the option that has a value of a wrong type, with what it takes."""
    words = str(error)
    name = words.partition(" ")[0]
    for field in cast("Any", msgspec.inspect.type_info(Options)).fields:
        if field.name not in known:
            continue
        value, origin = known[field.name], origins.get(field.name, "caller")
        try:
            msgspec.convert(value, _TYPES[field.name])
        except (msgspec.ValidationError, TypeError):
            place = "" if origin in {"caller", "flag"} else f" (from {origin})"
            given = excerpt(repr(value), 60)
            words = f"{field.name}{place} must be {_expected(field.type)}, not {given}"
            name = field.name
            break
    hint = f"`surecall docs {name}` says what it does." if name in _FIELDS else None
    return ConfigError(Code.INVALID_OPTION, f"{words}.", hint=hint)


_WORDS: Final[Mapping[type, str]] = {
    msgspec.inspect.BoolType: "true or false",
    msgspec.inspect.DictType: "a table of names and values",
    msgspec.inspect.FloatType: "a number",
    msgspec.inspect.IntType: "a whole number",
    msgspec.inspect.StrType: "text",
    msgspec.inspect.VarTupleType: "a list of texts",
}


def _expected(kind: Any) -> str:
    if isinstance(kind, msgspec.inspect.UnionType):
        kinds = (item for item in kind.types if not isinstance(item, msgspec.inspect.NoneType))
        return " or ".join(map(_expected, kinds))
    if isinstance(kind, msgspec.inspect.LiteralType):
        return " or ".join(map(repr, kind.values))
    return next((words for known, words in _WORDS.items() if isinstance(kind, known)), "other")


def _check_numbers(known: Mapping[str, Any], origins: Mapping[str, str]) -> None:
    """Refuse what no request can carry: JSON has no number that is infinite, and no `nan`."""
    for name, value in known.items():
        if not isinstance(value, dict):
            continue
        for field, item in cast("dict[str, Any]", value).items():
            if isinstance(item, float) and not math.isfinite(item):
                origin = origins.get(f"{name}.{field}", "the caller")
                raise ConfigError(
                    Code.INVALID_OPTION,
                    f"{field} (from {origin}) is {item}, which no request can carry.",
                    hint="Give a number that is finite.",
                )


def _check_rules(names: Iterable[str], origins: Mapping[str, str]) -> None:
    for name in names:
        if name not in _RULES:
            origin = origins.get(f"disabled_rules.{name}") or origins.get("disabled_rules")
            raise ConfigError(
                Code.INVALID_OPTION,
                f"disabled_rules names {name!r} (from {origin or 'the caller'}), which is not a "
                "rule of reading that can be switched off.",
                hint=f"{did_you_mean(name, _RULES, listed_by=_RULE_LIST)} "
                f"{ALL_RULES!r} stands for all of them.",
            )


def _with_defaults(origins: Mapping[str, str], known: Iterable[str]) -> dict[str, str]:
    below: dict[str, dict[str, None]] = {}
    for key, origin in origins.items():
        name, dot, _ = key.partition(".")
        if dot:
            below.setdefault(name, {})[origin] = None
    merged = dict(_ALL_DEFAULT)
    for name in known:
        merged[name] = ", ".join(below.get(name, ())) or "caller"
    return merged | dict(origins)
