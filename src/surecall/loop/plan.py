"""Everything that is settled before the first request, with one fingerprint over all of it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code, ConfigError, RequestError, did_you_mean
from surecall.base.records import Message, ModelRequest, ToolCall, ToolSpec
from surecall.exchange.prompting import PromptMode, choose_mode, name_choice, taught_way
from surecall.exchange.provider_rules import HistoryRules
from surecall.exchange.wording import NO_RESULT
from surecall.models.profiles import (
    RESERVED_REQUEST_KEYS,
    Capabilities,
    Findings,
    deep_merge,
    join_capabilities,
)
from surecall.reading import ReadingLimits, was_judged
from surecall.text import canonical_bytes, canonical_hash, encode_text
from surecall.tools import check_required
from surecall.tools.feedback import CHECK_STATE
from surecall.wire import DEFAULT_PROTOCOL
from surecall.wire.call_ids import find_id_shape
from surecall.wire.chat_completions import parse_history_message

from .options import Options
from .output import OutputMode, OutputSpec, choose_modes

_TOOL_CHOICES = frozenset({"auto", "none", "required"})
_DEFAULT_LIMIT = Options().max_tool_calls_per_turn
_DEFAULT_OPTIONS = msgspec.structs.asdict(Options())

_OUTPUT_OPTIONS = (
    "check_output",
    "max_output_retries",
    "output_modes",
    "prompt_only_request_overrides",
    "structured_request_overrides",
)
_SPELLINGS = (
    "max_tokens_field",
    "request_fields",
    "schema_field",
    "takes_developer",
    "takes_repeated_roles",
    "takes_user_after_result",
    "unsupported_fields",
)
"""Capabilities that only decide how something is written on the wire: the run is the same."""
_NATIVE_RETRIES = 3
_OWN_ORIGINS = ("default", "preset:", "profile:")
"""What the origin of a value begins with that nobody asked for field by field."""
_MAX_FRAMES: Final = 64


class Plan(Struct, frozen=True, kw_only=True):
    """What a run will do: the model, the tools it may see, the options and their origins."""

    model: str
    system: str | None
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]
    """The tools the model may see, after masking."""
    options: Options
    origins: dict[str, str]
    """Where the value of each option came from."""
    capabilities: Capabilities
    capability_origins: dict[str, str]
    protocol: str
    """Name of the wire format."""
    tool_choice: str | dict[str, Any] = ""
    params: dict[str, Any] = {}
    """Body fields sent with every request."""
    parallel_tool_calls: bool | None = None
    send_parallel_flag: bool = False
    own_fields: frozenset[str] = frozenset()
    """Fields of the request that a default, a preset or a profile added, and not the caller."""
    ignored_overrides: tuple[str, ...] = ()
    """Reserved keys that were found in `request_overrides`."""
    declares_steps: bool = False
    """Whether some tool is required, or needs another one first."""
    polling_tools: frozenset[str] = frozenset()
    effect_tools: frozenset[str] = frozenset()
    mode: PromptMode = "native"
    """How tools are presented to the model."""
    mode_reason: str = ""
    fingerprint: str = ""
    probe: dict[str, Any] | None = None
    """What the provider was asked before the run, and what came of it."""
    findings: Findings = Findings()
    """What else is known of the model; nothing is decided by it."""
    native_history: HistoryRules = HistoryRules()
    """What the provider demands of a history with calls in the fields made for them."""
    taught_history: HistoryRules = HistoryRules()
    """The same, for calls that are text."""
    output: OutputSpec | None = None
    """The value that the run is to end with; unset when it ends with a text."""
    output_modes: tuple[OutputMode, ...] = ()
    """The ways of asking for it, in order."""

    @property
    def tools_allowed(self) -> bool:
        """Whether tools may be sent at all."""
        return self.options.tool_use_mode != "disabled" and bool(self.tools)

    @property
    def asks_fit(self) -> bool:
        """Whether the model is asked if an optional tool fits the request before it runs."""
        if self.options.fit_gate == "auto":
            return self.capabilities.fit_threshold is not None
        return self.options.fit_gate == "on"

    @property
    def request_text(self) -> str:
        """What the user asks for: the text of their last message."""
        texts = (message.text for message in reversed(self.messages) if message.role == "user")
        return next(texts, "")

    @property
    def retries_per_turn(self) -> int:
        """How often a refused request is sent again without tools."""
        return self.options.fallback_retry_count if self.options.tool_use_mode == "relaxed" else 0

    @property
    def max_calls_per_turn(self) -> int | None:
        """How many calls of one reply are accepted; `None` means all."""
        return 1 if self._takes_one_call else self.options.max_tool_calls_per_turn

    @property
    def _takes_one_call(self) -> bool:
        limit = self.options.max_tool_calls_per_turn
        return self.parallel_tool_calls is False and (limit is None or _has_default_limit(self))

    @property
    def calls_limit(self) -> str:
        """Say which setting limits the calls of a reply, and who set it."""
        name, value = "max_tool_calls_per_turn", str(self.options.max_tool_calls_per_turn)
        if self._takes_one_call:
            name, value = "request_overrides.parallel_tool_calls", "false"
            if name not in self.origins:
                name = "request_defaults.parallel_tool_calls"
        return f"{name} is {value} (from {self.origins.get(name, 'default')})"

    def parse_retries(self, *, native: bool) -> int:
        """How often in a row a model may make a call again that could not be read.

        Without a number of the caller's own, a call in the place that is made for it may be made
        again three times: it is surely meant. What switches all rules off sets no limit either.
        """
        if not native:
            return self.options.max_parse_retries
        if "*" in self.options.disabled_rules:
            return self.options.max_turns
        if _is_known("max_parse_retries", self.origins):
            return self.options.max_parse_retries
        return max(self.options.max_parse_retries, _NATIVE_RETRIES)

    def reads_text(self, *, tools_offered: bool) -> bool:
        """Tell whether calls written as text are read in a turn."""
        if self.options.text_formats != "auto":
            return self.options.text_formats == "all"
        return tools_offered or self.capabilities.text_formats

    def holds_back(self, call: ToolCall) -> bool:
        """Tell whether a call that a text probably makes does not run, because of its effects."""
        if self.options.likely_calls != "by_effect" or not was_judged(call):
            return False
        return call.arguments is not None and self.has_effects(call.name)

    @property
    def max_concurrent_calls(self) -> int:
        """How many calls may run at the same time.

        Those of a taught model, and of one that is known not to make several calls at once, run
        one after the other.
        """
        one_by_one = taught_way(self.mode) is not None or self.native_history.one_call_each
        return 1 if one_by_one else self.options.max_concurrent_calls

    def history_rules(self, mode: PromptMode) -> HistoryRules:
        """Return what the provider is known to demand of a history; taught calls are text."""
        return self.native_history if taught_way(mode) is None else self.taught_history

    def may_stream(self, *, tools_enabled: bool) -> bool:
        """Tell whether a turn may be streamed: not where calls get lost on the way."""
        return not tools_enabled or self.capabilities.stream_equals_whole is not False

    @property
    def reading_limits(self) -> ReadingLimits:
        """How large arguments may be."""
        return ReadingLimits(
            max_arguments_bytes=self.options.max_tool_args_bytes,
            max_total_arguments_bytes=self.options.max_turn_args_bytes,
        )

    def has_effects(self, tool_name: str) -> bool:
        """Tell whether running this tool may change something."""
        return tool_name in self.effect_tools

    def turn_mode(self, base_mode: PromptMode, calls_seen: int) -> PromptMode:
        """Return how tools are presented to the model in a turn.

        A choice that forces a call, and that the provider is known to ignore, is made by a schema.
        """
        if base_mode != "native" or calls_seen or self.options.tool_prompting != "auto":
            return base_mode
        if self.tool_choice in ("auto", "none") or not self.tools_allowed:
            return base_mode
        kind = "required" if self.tool_choice == "required" else "named"
        known = _is_known("tool_choices", self.capability_origins)
        ignored = known and kind not in self.capabilities.tool_choices
        return "constrained" if ignored and self.capabilities.json_schema else base_mode

    def request(
        self,
        history: tuple[Message, ...],
        *,
        tools_enabled: bool,
        stream: bool,
        calls_seen: int = 0,
        after_cut: bool = False,
    ) -> ModelRequest:
        """Build the request for one turn.

        A choice that forces a call holds until one was made; the model could never answer else.
        """
        params = self.params
        if after_cut and self.options.overrides_after_cut:
            params = deep_merge(params, self.options.overrides_after_cut)
        tool_choice = self.tool_choice
        if calls_seen and tool_choice not in ("auto", "none"):
            tool_choice = "auto"
        messages = history
        if self.system:
            messages = (Message("system", self.system), *history)
        return ModelRequest(
            model=self.model,
            messages=messages,
            tools=self.tools if tools_enabled else (),
            tool_choice=tool_choice if tools_enabled else None,
            parallel_tool_calls=self.parallel_tool_calls if self.send_parallel_flag else None,
            params=params,
            stream=stream,
        )


def make_plan(
    *,
    model: str,
    messages: tuple[Message, ...],
    tools: tuple[ToolSpec, ...],
    options: Options,
    origins: Mapping[str, str],
    capabilities: Capabilities,
    capability_origins: Mapping[str, str],
    system: str | None = None,
    protocol: str = DEFAULT_PROTOCOL,
    probe: dict[str, Any] | None = None,
    findings: Findings = Findings(),  # noqa: B008 - frozen
    output: OutputSpec | None = None,
) -> Plan:
    """Settle a run; raise when it cannot be right.

    Runs that differ in nothing but what is said share all that is settled without it.
    """
    given = (options, origins, capabilities, capability_origins, findings)
    key = None
    if probe is None and output is None:
        key = (model, system, protocol, canonical_bytes(tools, finite=True), *map(id, given))
    frame = None if key is None else _frames.get(key)
    if frame is None:
        plan = _complete(
            Plan(
                model=model,
                system=system,
                messages=(),
                tools=tools,
                options=options,
                origins=dict(origins),
                capabilities=capabilities,
                capability_origins=dict(capability_origins),
                protocol=protocol,
                probe=probe,
                findings=findings,
                output=output,
            )
        )
        frame = _Frame(plan, _digest_plan(plan), given)
        if key is not None:
            if len(_frames) >= _MAX_FRAMES:
                _frames.clear()
            _frames[key] = frame
    plan = frame.plan
    messages = complete_history(messages)
    return replace(
        plan,
        messages=messages,
        tools=tools if plan.tools else (),
        origins=dict(plan.origins),
        capability_origins=dict(plan.capability_origins),
        params=deep_merge(plan.params, {}) if plan.params else {},
        # What is not finite is refused when the request is rendered.
        fingerprint=canonical_hash((frame.surface, messages), finite=True),
    )


class _Frame(NamedTuple):
    """What is settled of a run before anything is said."""

    plan: Plan
    surface: str
    """A digest of what it is, for its fingerprint."""
    given: tuple[Any, ...]
    """What it was made of: kept, so that nothing else gets the identity of these."""


_frames: Final[dict[tuple[Any, ...], _Frame]] = {}


def _complete(plan: Plan) -> Plan:
    """Return a plan with what follows from its model, its tools and its options."""
    model, tools, options = plan.model, plan.tools, plan.options
    capabilities, capability_origins = plan.capabilities, plan.capability_origins
    if not model.strip():
        raise RequestError(
            Code.INVALID_OPTION,
            "no model was named.",
            hint="Pass --model or model=..., or set SURECALL_MODEL or `model` in surecall.toml.",
        )
    if options.tool_use_mode == "enforced" and not tools:
        raise RequestError(
            Code.INVALID_OPTION,
            "tool use is enforced but no tool may be sent.",
            hint="Pass tools, widen tool_allowlist, or use tool_use_mode='relaxed'.",
        )
    if options.required_tools:
        check_required(options.required_tools, tools)
        if options.tool_use_mode == "disabled" or options.tool_choice == "none":
            raise RequestError(
                Code.INVALID_OPTION,
                "tools are required, but none may be called.",
                hint="Leave out required_tools, or let the model use tools.",
            )
    if capabilities.tool_id_pattern is not None:
        find_id_shape(capabilities.tool_id_pattern)  # raises when no id can be made
    tools = () if options.tool_use_mode == "disabled" else tools
    params, parallel, ignored = _split_params(options)
    mode = choose_mode(
        capabilities,
        capability_origins,
        wanted=options.tool_prompting,
        has_required=bool(options.required_tools),
    )
    system_first = _lacks("allows_midturn_system", capabilities, capability_origins)
    return replace(
        plan,
        tools=tools,
        tool_choice=_wire_tool_choice(options.tool_choice, tools),
        params=params,
        parallel_tool_calls=parallel,
        send_parallel_flag=capabilities.supports_parallel_tools
        or not _is_known("supports_parallel_tools", capability_origins),
        own_fields=_find_own_fields(options, plan.origins),
        ignored_overrides=ignored,
        declares_steps=bool(options.required_tools) or any(tool.requires for tool in tools),
        polling_tools=frozenset(tool.name for tool in tools if tool.polling),
        effect_tools=frozenset(tool.name for tool in tools if tool.effect != "read"),
        mode=mode.mode,
        mode_reason=mode.reason,
        native_history=HistoryRules(
            one_call_each=_lacks("supports_parallel_tools", capabilities, capability_origins),
            system_first=system_first,
            echo_reasoning=capabilities.needs_reasoning_echo is True,
            id_pattern=capabilities.tool_id_pattern,
            ids_as_sent="*" in options.disabled_rules,
        ),
        taught_history=HistoryRules(system_first=system_first),
        output_modes=()
        if plan.output is None
        else choose_modes(options.output_modes, capabilities),
    )


def _lacks(field: str, capabilities: Capabilities, origins: Mapping[str, str]) -> bool:
    """Tell whether somebody said that the model cannot do this; the default says nothing."""
    return _is_known(field, origins) and not getattr(capabilities, field)


def _is_known(field: str, origins: Mapping[str, str]) -> bool:
    return origins.get(field, "default") != "default"


def _digest_plan(plan: Plan) -> str:
    """Return a digest of what a run is, without what is said in it."""
    options, origins = msgspec.structs.asdict(plan.options), plan.origins
    if plan.output is None:  # what is asked for a value with says nothing about this run
        options |= {name: _DEFAULT_OPTIONS[name] for name in _OUTPUT_OPTIONS}
        origins = {
            name: origin
            for name, origin in origins.items()
            if name.partition(".")[0] not in _OUTPUT_OPTIONS
        }
    capability_origins = {
        # A run may be resumed after the same was found out anew.
        name: "probe" if origin.startswith("probe:") else origin
        for name, origin in plan.capability_origins.items()
        if name not in _SPELLINGS
    }
    capabilities = join_capabilities(plan.capabilities, plan.findings)
    for name in _SPELLINGS:
        del capabilities[name]
    surface: dict[str, Any] = {
        "model": plan.model,
        "system": plan.system,
        "protocol": plan.protocol,
        "tools": plan.tools,
        "options": options,
        "origins": origins,
        "output": plan.output,
        "capabilities": capabilities,
        "capability_origins": capability_origins,
    }
    return canonical_hash(surface, finite=True)


def _has_default_limit(plan: Plan) -> bool:
    is_default = plan.options.max_tool_calls_per_turn == _DEFAULT_LIMIT
    return is_default and plan.origins.get("max_tool_calls_per_turn", "default") == "default"


def _split_params(options: Options) -> tuple[dict[str, Any], bool | None, tuple[str, ...]]:
    for field in (
        "request_defaults",
        "overrides_after_cut",
        "structured_request_overrides",
        "prompt_only_request_overrides",
    ):
        reserved = sorted(RESERVED_REQUEST_KEYS & getattr(options, field).keys())
        if reserved:
            raise ConfigError(
                Code.RESERVED_KEY,
                f"{field} may not set {', '.join(reserved)}.",
                hint="surecall sets these itself; use the matching argument or option.",
            )
    ignored = tuple(sorted(RESERVED_REQUEST_KEYS & options.request_overrides.keys()))
    params = deep_merge(options.request_defaults, options.request_overrides)
    for name in ignored:
        params.pop(name, None)
    parallel = params.pop("parallel_tool_calls", None)
    if parallel is not None and not isinstance(parallel, bool):
        raise ConfigError(
            Code.INVALID_OPTION,
            f"parallel_tool_calls must be true or false, not {parallel!r}.",
            hint="Leave it out to let the provider decide.",
        )
    return params, parallel, ignored


def _find_own_fields(options: Options, origins: Mapping[str, str]) -> frozenset[str]:
    """Name the fields of the body that nobody asked for by name."""
    said: dict[str, set[str]] = {"tool_choice": {origins.get("tool_choice", "default")}}
    for option in ("request_defaults", "request_overrides"):
        for field in getattr(options, option):
            inside = f"{option}.{field}"
            found = {
                origin
                for key, origin in origins.items()
                if key == inside or key.startswith(f"{inside}.")
            }
            said.setdefault(field, set()).update(found or {origins.get(option, "caller")})
    return frozenset(
        field
        for field, names in said.items()
        if all(name.startswith(_OWN_ORIGINS) for name in names)
    )


def _wire_tool_choice(
    choice: str | dict[str, Any], tools: tuple[ToolSpec, ...]
) -> str | dict[str, Any]:
    if isinstance(choice, dict):
        return choice
    choice = choice.strip() or "auto"
    if choice in _TOOL_CHOICES or not tools:
        return choice
    names = [tool.name for tool in tools]
    if choice not in names:
        raise ConfigError(
            Code.INVALID_OPTION,
            f"tool_choice {choice!r} is neither auto, none, required nor a tool of this run.",
            hint=did_you_mean(choice, [*names, *_TOOL_CHOICES]),
        )
    return name_choice(choice)


def parse_history(items: Iterable[Any]) -> tuple[Message, ...]:
    """Turn whatever an application keeps as history into messages."""
    return tuple(parse_history_message(item) for item in items)


def complete_history(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Give every call that has no result one that says so; refuse results without a call."""
    if not any(message.tool_calls or message.role == "tool" for message in messages):
        return tuple(messages)
    complete: list[Message] = []
    waiting: dict[str, str] = {}
    for index, message in enumerate(messages):
        if message.role == "tool":
            if waiting.pop(message.tool_call_id or "", None) is None:
                raise RequestError(
                    Code.INVALID_MESSAGE,
                    f"Message {index} answers the call {message.tool_call_id!r}, "
                    "which was not made just before it or is answered already.",
                    hint="Put each tool message directly after the assistant message "
                    "whose call it answers.",
                )
        else:
            complete.extend(_missing_results(waiting))
            waiting = {call.id: call.name for call in message.tool_calls}
            if len(waiting) < len(message.tool_calls):
                raise RequestError(
                    Code.INVALID_MESSAGE,
                    f"two calls of message {index} have the same id.",
                    hint="Give every call its own id.",
                )
        complete.append(message)
    complete.extend(_missing_results(waiting))
    return tuple(complete)


def _missing_results(waiting: dict[str, str]) -> Iterator[Message]:
    error = {"code": str(Code.OUTCOME_UNKNOWN), "message": NO_RESULT, "hint": CHECK_STATE}
    for call_id, name in waiting.items():
        envelope = {"ok": False, "tool_name": name, "errors": [error]}
        yield Message("tool", encode_text(envelope), tool_call_id=call_id)
