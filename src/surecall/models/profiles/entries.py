"""Entries of the catalog, and how the options that a preset may set are merged."""

import datetime
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final, Literal

import msgspec
from msgspec import Struct

from surecall.base.errors import Code, ConfigError, did_you_mean, invalid_config

LIST_FIELDS: Final = frozenset(
    {
        "answer_transforms",
        "disabled_rules",
        "message_transforms",
        "required_tools",
        "response_transforms",
        "tool_allowlist",
        "tool_call_transforms",
        "tool_denylist",
        "tool_result_transforms",
        "tool_transforms",
    }
)
"""Merged as ordered unions."""

OBJECT_FIELDS: Final = frozenset(
    {
        "overrides_after_cut",
        "prompt_only_request_overrides",
        "request_defaults",
        "request_overrides",
        "structured_request_overrides",
    }
)
"""Body fields of a request, merged key by key."""

PRESET_FIELDS: Final = (
    LIST_FIELDS
    | OBJECT_FIELDS
    | {
        "after_required",
        "approval_lifetime_s",
        "check_output",
        "deadline_s",
        "fallback_retry_count",
        "fit_gate",
        "fix_empty_final",
        "fix_empty_final_disable_tools",
        "fix_empty_final_user_text",
        "keep_content_with_calls",
        "likely_calls",
        "max_concurrent_calls",
        "max_escalations",
        "max_identical_calls",
        "max_output_retries",
        "max_parse_retries",
        "max_run_tokens",
        "max_step_nudges",
        "max_tool_args_bytes",
        "max_tool_calls",
        "max_tool_calls_per_turn",
        "max_tool_output_bytes",
        "max_turn_args_bytes",
        "max_turns",
        "output_modes",
        "skip_bad_events",
        "stop_after_calls",
        "stream",
        "text_formats",
        "tool_choice",
        "tool_failure_policy",
        "tool_prompting",
        "tool_timeout_s",
        "tool_use_mode",
    }
)
"""Every field a preset may set; those in neither group above are replaced whole."""

RESERVED_REQUEST_KEYS: Final = frozenset(
    {
        "messages",
        "model",
        "response_format",
        "stream",
        "stream_options",
        "tool_choice",
        "tools",
    }
)
"""Keys of a request body that no preset and no sampling profile may carry."""

JSONStability = Literal["unknown", "low", "medium", "high"]
"""How reliably a model writes valid JSON."""


ToolChoiceKind = Literal["auto", "none", "required", "named"]
SchemaField = Literal["response_format", "structured_outputs", "guided_json", "json_schema"]
EmptyArguments = Literal["object", "blank", "null", "missing", "unknown"]


class Capabilities(Struct, frozen=True, kw_only=True):
    """What a model at a provider can do; the defaults are what is safe to assume.

    Every field decides something about a run, or about the requests of other clients. What is only
    worth knowing is in `Findings`.
    """

    supports_tool_use: bool = True
    """Whether tools may be sent at all."""
    supports_parallel_tools: bool = False
    """Whether one message may carry several calls. Where this is known to be false, the
    `parallel_tool_calls` field is not sent, the calls of one reply run one after the other, and
    each goes back in a message of its own, with its result behind it."""
    tool_id_pattern: str | None = None
    """Regular expression that call ids must match as a whole, when the provider demands one."""
    allows_midturn_system: bool = False
    """Whether a system message may stand behind other messages. Where this is known to be false,
    such a message is sent in the same place as one of the user; for other clients, to chat
    completions, wherever it is not known to be true."""
    json_object: bool = True
    """Whether `response_format` may ask for a JSON object."""
    json_schema: bool = False
    """Whether `response_format` may carry a JSON schema."""
    streaming: bool = True
    """Whether replies may be streamed."""
    context_window_tokens: int | None = None
    """Size of the context window, when known; a prompt that is surely larger is not sent."""
    reserved_response_tokens: int = 0
    """How much of the window is kept free for the answer."""
    text_formats: bool = False
    """Whether replies should be scanned for calls written as text."""
    strict_tools: bool = False
    """Whether tools may be sent with `strict`, so that arguments are held to their schema."""
    grammar: bool = False
    """Whether a llama.cpp `grammar` may be sent."""
    schema_field: SchemaField | None = None
    """Which field of chat completions holds a reply to a JSON schema, where the server is known to
    take one and `json_schema` is not declared. Used only to ask again for the arguments of one
    tool that the model has called: `structured_outputs` (vLLM; `guided_json` in its older
    releases), `json_schema` (llama.cpp) or `response_format`."""
    tool_choices: tuple[ToolChoiceKind, ...] = ("auto",)
    """Which kinds of `tool_choice` are honoured, not only accepted."""
    stream_equals_whole: bool | None = None
    """Whether a streamed reply carries what a whole one does; if not, a turn with tools is asked
    for as a whole. Unset means not known."""
    needs_reasoning_echo: bool | None = None
    """Whether a turn with calls is refused when its reasoning is not sent back; if so, one that
    came without any is sent with an empty one. Unset means not known."""
    fit_threshold: float | None = None
    """The score from which a tool fits a request, where asking the model about it was found to
    help; `fit_gate="auto"` asks only then."""
    decision_model: str | None = None
    """The model of an endpoint for decisions, where the provider is known to have one. The fit gate
    asks it instead of the model of the run, and a tool fits from a probability of one half."""
    decision_path: Literal["/decisions", "/systemone"] = "/decisions"
    """Where decisions are asked for, below the provider's prefix."""
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """What the limit of a reply is called in chat completions."""
    takes_developer: bool = False
    """Whether chat completions may have the role `developer`; if not, it is sent as `system`. Who
    takes it takes system messages behind others as well."""
    takes_repeated_roles: bool = False
    """Whether messages of one role may follow each other in chat completions; if not, they are
    joined."""
    takes_user_after_result: bool = False
    """Whether a message of the user may follow a result in chat completions. Where this is known
    to be false, a short message of the assistant goes between them."""
    request_fields: tuple[str, ...] = (
        "reasoning",
        "reasoning_content",
        "reasoning_details",
        "reasoning_effort",
        "top_k",
        "user",
    )
    """Which members of chat completions are taken of those that only some providers know; `*`
    means all. Members that belong to no provider in particular are always sent."""
    unsupported_fields: tuple[str, ...] = ()
    """Fields of a request that are refused; surecall leaves them out where it had added them
    itself. A run that meets such a refusal remembers it here."""


class Findings(Struct, frozen=True, kw_only=True):
    """What probes find out and no run needs: surecall does the safe thing whatever they say."""

    json_stability: JSONStability = "unknown"
    """How often JSON written as plain text comes out whole."""
    honours_parallel_false: bool | None = None
    """Whether `parallel_tool_calls=false` really gives one call; unset means not known."""
    unique_call_ids: bool | None = None
    """Whether no two calls get the same id; unset means not known."""
    empty_arguments: EmptyArguments = "unknown"
    """How a call without arguments is written."""
    false_call_rate: float | None = None
    """How often a tool is called for a request that it does not fit; unset means not known."""
    fit_separation: float | None = None
    """How often, when the model is asked about it, a tool that fits scores above one that does
    not; unset means not known."""


_CAPABILITY_LIST: Final = "surecall docs capabilities"
_NAMES: Final = frozenset((*Capabilities.__struct_fields__, *Findings.__struct_fields__))


class Fact(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something claimed: when, by whom, and on what grounds."""

    date: datetime.date
    source: str
    evidence: str

    def __post_init__(self) -> None:
        for name in ("source", "evidence"):
            if not getattr(self, name).strip():
                hint = "Say where the claim comes from and what it rests on."
                raise invalid_config(f"a catalog entry has a blank {name}.", hint)


class _Able(Fact, frozen=True, kw_only=True):
    """Something that has capabilities."""

    id: str
    capabilities: dict[str, Any] = {}
    """What is known to differ from what holds otherwise."""
    called: ClassVar[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        require_capabilities(self.capabilities, f"{self.called} {self.id!r}", Code.INVALID_CONFIG)


class ModelEntry(_Able, frozen=True, kw_only=True):
    """One model: how to find it, and what it needs."""

    called = "model"
    tags: tuple[str, ...] = ()
    workarounds: tuple[str, ...] = ()
    """Names of presets that this model needs."""


class ModelRule(_Able, frozen=True, kw_only=True):
    """What applies to every model whose name matches, including those not in the catalog."""

    called = "rule"
    match: str
    """Glob, compared with the whole name and with the name before the first colon."""
    provider: str | None = None
    """Provider the rule is limited to."""
    workarounds: tuple[str, ...] = ()


class ProviderEntry(_Able, frozen=True, kw_only=True):
    """One provider: its names, its preset and its capabilities."""

    called = "provider"
    aliases: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    """Hosts of its API, by which it is recognised from an address; so are names below them."""
    base_url: str | None = None
    """Where its API is, when that is the same for everybody."""
    key_env: tuple[str, ...] = ()
    """Variables that may hold its key, strongest first."""
    models: tuple[str, ...] = ()
    """Globs on bare names of models that are asked here when nothing else says where."""
    protocol: str | None = None
    """Wire format it speaks, when that is not chat completions."""
    preset: str | None = None


class SamplingProfile(Fact, frozen=True, kw_only=True):
    """A named set of sampling parameters, and the models it is meant for."""

    id: str
    applies_to: tuple[str, ...]
    """Globs on the whole model name; one must match."""
    params: dict[str, Any] = {}
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        _refuse_reserved(self.params, f"sampling profile {self.id!r}")


class Preset(Fact, frozen=True, kw_only=True):
    """A named, sparse set of options: it sets what it names and nothing else."""

    name: str
    fields: dict[str, Any]
    aliases: tuple[str, ...] = ()
    purpose: str = ""
    """One sentence: what it is for."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in self.fields:
            if field not in PRESET_FIELDS:
                problem = f"preset {self.name!r} sets {field!r}, which is not an option."
                raise invalid_config(problem, did_you_mean(field, PRESET_FIELDS))
        for field in OBJECT_FIELDS:
            _refuse_reserved(self.fields.get(field) or {}, f"{field} of preset {self.name!r}")

    @property
    def layer(self) -> tuple[str, dict[str, Any]]:
        """The preset as a layer for `merge_presets`, with its name as the origin."""
        return f"preset:{self.name}", self.fields


def require_capabilities(values: Mapping[str, Any], where: str, code: str) -> None:
    """Raise when a capability or finding is named that does not exist, or cannot be so."""
    for name in values:
        if name not in _NAMES:
            raise ConfigError(
                code,
                f"{where} names {name!r}, which is not a capability.",
                hint=did_you_mean(name, _NAMES, listed_by=_CAPABILITY_LIST),
            )
    try:
        split_capabilities(values)
    except msgspec.ValidationError as error:
        raise invalid_config(
            f"{where} has a capability of a wrong type: {error}.",
            f"`{_CAPABILITY_LIST}` has the types.",
        ) from error


def split_capabilities(values: Mapping[str, Any]) -> tuple[Capabilities, Findings]:
    """Sort values by name into what decides about runs and what is only known."""
    given = dict(values)
    return msgspec.convert(given, Capabilities), msgspec.convert(given, Findings)


def join_capabilities(capabilities: Capabilities, findings: Findings) -> dict[str, Any]:
    """Return both as one object, as traces and fingerprints keep them."""
    return msgspec.structs.asdict(capabilities) | msgspec.structs.asdict(findings)


def _refuse_reserved(keys: Iterable[str], where: str) -> None:
    reserved = sorted(RESERVED_REQUEST_KEYS.intersection(keys))
    if reserved:
        raise ConfigError(
            Code.RESERVED_KEY,
            f"{where} sets {', '.join(reserved)}.",
            hint="Those belong to the request itself; set other parameters only.",
        )
