"""Strategies: how much surecall helps, what can be switched off alone, and the naive rescue."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Literal, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code, ConfigError, JSONTextError, did_you_mean
from surecall.base.json_values import as_fields
from surecall.base.records import RawCall, Reply
from surecall.evals.cases import Contender
from surecall.loop import resolve_options
from surecall.models.profiles import (
    STRATEGIES,
    Catalog,
    find_preset,
    join_capabilities,
    merge_presets,
    presets_for,
    resolve_capabilities,
    split_capabilities,
)
from surecall.models.profiles.catalog import canonical_name
from surecall.reading import ALL_RULES, READING_RULES, TRANSFORM_RULES
from surecall.reading.rules import OBJECT_TO_ARGUMENTS
from surecall.reading.transforms import Family, TransformRegistry, canonical_transform_name
from surecall.text import decode, decode_own, encode, encode_text
from surecall.wire import DEFAULT_PROTOCOL, RawReply, WireProtocol, find_protocol

from .transcript import without_secrets

NAIVE_FORMAT: Final = "outermost_braces"
"""The format of a call that was found this way."""
_NAMES: Final = ("name", "function")
_ARGUMENTS: Final = ("arguments", "parameters")


def find_naive_call(text: str, offered: Collection[str]) -> RawCall | None:
    """Return the call that the outermost braces of a text hold, if it names an offered tool."""
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start:
        return None
    try:
        fields = as_fields(decode(text[start : end + 1]))
        name = next((fields[key] for key in _NAMES if key in fields), None)
        arguments = next((fields[key] for key in _ARGUMENTS if key in fields), None)
        written = arguments if isinstance(arguments, str) else encode_text(arguments)
    except JSONTextError:
        return None
    if arguments is None or not isinstance(name, str) or name not in offered:
        return None
    return RawCall(None, name, written, NAIVE_FORMAT)


class NaiveRescue:
    """A wire format that also reads a text without calls for one call."""

    def __init__(self, protocol: WireProtocol, offered: Collection[str]) -> None:
        self._protocol = protocol
        self._offered = frozenset(offered)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._protocol, name)

    def parse_message(self, raw: RawReply) -> Reply:
        """Understand the assistant message, and take its text for a call if it has no other."""
        reply = self._protocol.parse_message(raw)
        if reply.calls or not reply.content:
            return reply
        call = find_naive_call(reply.content, self._offered)
        return reply if call is None else replace(reply, calls=(call,), content=None)


def rescue_naively(protocol: WireProtocol, offered: Collection[str]) -> WireProtocol:
    """Return a wire format with the naive rescue added to it."""
    return cast("WireProtocol", NaiveRescue(protocol, offered))


AblationKind = Literal["option", "preset", "transform", "rule"]

OPTIONS_OFF: Final[Mapping[str, Any]] = {
    "check_output": False,
    "fallback_retry_count": 0,
    "fit_gate": "off",
    "fix_empty_final": False,
    "likely_calls": "never",
    "max_escalations": 0,
    "max_output_retries": 0,
    "max_parse_retries": 0,
    "max_step_nudges": 0,
    "text_formats": "off",
    "tool_prompting": "native",
}
"""Options that help a run, with the value that switches each off."""

TRANSFORM_FIELDS: Final[Mapping[Family, str]] = {
    "messages": "message_transforms",
    "tools": "tool_transforms",
    "replies": "response_transforms",
    "calls": "tool_call_transforms",
    "results": "tool_result_transforms",
    "answers": "answer_transforms",
}
"""The option that lists the transforms of each family."""


class Ablation(Struct, frozen=True):
    """One thing that a strategy `ablate:NAME` does without."""

    name: str
    kind: AblationKind
    field: str = ""
    """The option that it is switched off with."""

    @property
    def id(self) -> str:
        """The name of the strategy."""
        return f"ablate:{self.name}"

    @property
    def layer(self) -> dict[str, Any]:
        """The options that switch it off; none for a preset, which is left out."""
        match self.kind:
            case "option":
                return {self.name: OPTIONS_OFF[self.name]}
            case "transform":
                return {self.field: [f"!{self.name}"]}
            case "rule":
                return {self.field: [self.name]}
            case "preset":
                return {}


def list_ablations(catalog: Catalog | None = None) -> tuple[Ablation, ...]:
    """Return all that can be switched off: options, presets, transforms, rules."""
    catalog = catalog or Catalog.builtin()
    transforms = TransformRegistry.builtin()
    return (
        *(Ablation(name, "option", name) for name in OPTIONS_OFF),
        *(Ablation(preset.name, "preset") for preset in catalog.presets),
        *(
            Ablation(name, "transform", field)
            for family, field in TRANSFORM_FIELDS.items()
            for name in transforms.names(family)
        ),
        *(Ablation(name, "rule", "disabled_rules") for name in READING_RULES),
    )


def find_ablation(name: str, catalog: Catalog | None = None) -> Ablation:
    """Return what a name stands for."""
    catalog = catalog or Catalog.builtin()
    known = {ablation.name: ablation for ablation in list_ablations(catalog)}
    wanted = canonical_name(name)
    for preset in catalog.presets:
        if wanted in map(canonical_name, preset.aliases):
            wanted = preset.name
    if wanted not in known:
        raise ConfigError(
            Code.INVALID_OPTION,
            f"there is nothing called {name!r} that could be switched off.",
            hint=did_you_mean(wanted, known),
        )
    return known[wanted]


ABLATE: Final = "ablate:"
"""What the name of a strategy begins with that leaves one thing out."""

Fallback = Literal["best_effort", "fallback_off", "fallback_on"]
"""Whether calls in text are looked for: as the strategy has it, never, or always."""
FALLBACKS: Final[tuple[Fallback, ...]] = ("best_effort", "fallback_off", "fallback_on")

_TAGS_TRANSFORM: Final = "assistant_content_tool_call_tags_to_tool_calls"
_PRODUCTION: Final = {"text_formats": "all", "max_escalations": 2, "fit_gate": "auto"}
GUIDED: Final = "guided"
"""The strategy that uses what scenarios declare for the application."""
NAIVE: Final = "naive"
"""The strategy that is `raw` with a one-line rescue of calls in text."""
UNAIDED: Final = frozenset({"raw", NAIVE})
"""Strategies under which nothing of surecall helps."""
_BASELINE: Final = {
    "check_output": False,
    "text_formats": "off",
    "likely_calls": "never",
    "tool_prompting": "native",
    "max_escalations": 0,
}
_OWN_OPTIONS: Final[Mapping[str, Mapping[str, Any]]] = {
    "baseline": _BASELINE,
    "production": _PRODUCTION,
    "gated": {**_PRODUCTION, "fit_gate": "on"},
    GUIDED: _PRODUCTION,
}
_UNAIDED: Final[Mapping[str, Any]] = {
    **OPTIONS_OFF,
    **dict.fromkeys(TRANSFORM_FIELDS.values(), ()),
    "disabled_rules": (ALL_RULES, OBJECT_TO_ARGUMENTS),
}
_SHAPED: Final = ("message_transforms", "response_transforms", "tool_transforms")

Layer = tuple[str, Mapping[str, Any]]


class Settled(Struct, frozen=True, kw_only=True):
    """What is in force in a cell."""

    strategy: str
    presets: tuple[str, ...]
    """Names of the presets that went into the options, in order."""
    options: dict[str, Any]
    """Every option that is not at its default."""
    origins: dict[str, str]
    capabilities: dict[str, Any]
    """What is known; what is not named here is not known."""
    capability_origins: dict[str, str]
    protocol: str
    record: dict[str, Any]
    """All of it, field by field, with the origin of each value."""
    case_options: dict[str, Any] = {}
    """The part of the options that the scenario asked for."""
    with_cases: dict[str, "Settled"] = {}
    """What `with_case` has returned before, by the options it was given."""

    def with_case(
        self, options: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
    ) -> "Settled":
        """Return this with the options of a scenario, which win over everything.

        Args:
            options: Those that the scenario needs.
            defaults: Those that it has where the experiment sets none.
        """
        if defaults:
            unset = {
                name: value
                for name, value in defaults.items()
                if self.origins.get(name) != "experiment"
            }
            options = {**unset, **options}
        if options == self.case_options:
            return self
        key = encode_text(options)
        if key not in self.with_cases:
            self.with_cases[key] = self._merge(options)
        return self.with_cases[key]

    def _merge(self, options: Mapping[str, Any]) -> "Settled":
        layers = [("strategy", self.options), ("scenario", options)]
        merged = merge_presets(layers)
        origins = {
            name: self.origins.get(name, origin) if origin == "strategy" else origin
            for name, origin in merged.origins.items()
        }
        settled = replace(
            self,
            options=merged.values,
            origins=origins,
            case_options=dict(options),
            with_cases={},
            record={},
        )
        return replace(settled, record=_record(settled, self.record))


def settle(
    strategy: str,
    contender: Contender,
    fallback: str = "best_effort",
    profile: str = "default",
    case_options: Mapping[str, Any] | None = None,
    catalog: Catalog | None = None,
    *,
    overrides: Mapping[str, Any] | None = None,
) -> Settled:
    """Return the settings of a contender under a strategy.

    From weakest to strongest: presets, the strategy's own options, the sampling profile, the
    experiment's `overrides`, the fallback, what the strategy does without, the scenario. So no
    option of the experiment can switch on again what `raw`, `naive` or an ablation switches off.

    Args:
        strategy: `raw`, `naive`, `baseline`, `production`, `gated`, `guided` or `ablate:NAME`.
        contender: The model, and where it is.
        fallback: `best_effort`, `fallback_off` or `fallback_on`.
        profile: The id of a sampling profile.
        case_options: Options that the scenario needs.
        catalog: What is known of models; the built-in catalog by default.
        overrides: Options for the whole experiment; `preset` names presets that strategies which
            have any use besides theirs, such as `original`.
    """
    catalog = catalog or Catalog.builtin()
    overrides = dict(overrides or {})
    named = overrides.pop("preset", ())
    name, ablation = _parse_strategy(strategy, catalog)
    presets = presets_for(contender.provider, contender.model, catalog, strategy=name)
    if presets:
        presets += tuple(find_preset(preset, catalog) for preset in named)
    if ablation is not None:
        presets = tuple(preset for preset in presets if preset.name != ablation.name)
    protocol = _protocol_of(contender, catalog)
    layers: list[Layer] = [preset.layer for preset in presets]
    layers += _strategy_layers(name)
    layers += _profile_layers(profile, catalog)
    layers += [("experiment", overrides)]
    layers += _fallback_layers(fallback)
    layers += _pins(name, ablation)
    layers += _drop_shaped(protocol, layers)
    merged = merge_presets(layers)
    known, known_origins = _settle_capabilities(name, contender, ablation, catalog)
    settled = Settled(
        strategy=strategy,
        presets=tuple(preset.name for preset in presets),
        options=merged.values,
        origins=merged.origins,
        capabilities=known,
        capability_origins=known_origins,
        protocol=protocol,
        record={},
    )
    about = {"strategy": strategy, "fallback": fallback, "profile": profile}
    settled = replace(settled, record=_record(settled, about))
    return settled.with_case(case_options or {})


def _parse_strategy(text: str, catalog: Catalog) -> tuple[str, Ablation | None]:
    name = text.strip().lower()
    if name.startswith(ABLATE):
        return "production", find_ablation(name.removeprefix(ABLATE), catalog)
    known = [strategy.id for strategy in STRATEGIES]
    if name not in known:
        raise ConfigError(
            Code.INVALID_OPTION,
            f"there is no strategy {text!r}.",
            hint=did_you_mean(name, [*known, f"{ABLATE}NAME"]),
        )
    return name, None


def _strategy_layers(name: str) -> list[Layer]:
    return [(f"strategy:{name}", _OWN_OPTIONS[name])] if name in _OWN_OPTIONS else []


def _profile_layers(profile: str, catalog: Catalog) -> list[Layer]:
    wanted = canonical_name(profile)
    for known in catalog.sampling:
        if canonical_name(known.id) == wanted:
            defaults = {"request_defaults": known.params} if known.params else {}
            return [(f"profile:{known.id}", defaults)]
    raise ConfigError(
        Code.INVALID_OPTION,
        f"there is no sampling profile {profile!r}.",
        hint=did_you_mean(wanted, (known.id for known in catalog.sampling)),
    )


def _fallback_layers(fallback: str) -> list[Layer]:
    """Return what the fallback sets; on and off differ in one option only."""
    if fallback not in FALLBACKS:
        raise ConfigError(
            Code.INVALID_OPTION,
            f"there is no fallback {fallback!r}.",
            hint=did_you_mean(fallback, FALLBACKS),
        )
    if fallback == "best_effort":
        return []
    options = {
        "text_formats": "all" if fallback == "fallback_on" else "off",
        "response_transforms": [f"!{_TAGS_TRANSFORM}"],
    }
    return [(fallback, options)]


def _pins(name: str, ablation: Ablation | None) -> list[Layer]:
    if ablation is not None:
        return [(ablation.id, ablation.layer)]
    return [(f"strategy:{name}", _UNAIDED)] if name in UNAIDED else []


def _drop_shaped(protocol: str, layers: Sequence[Layer]) -> list[Layer]:
    """Take out transforms that edit chat completions, for a wire format with another shape."""
    if find_protocol(protocol).takes_transforms:
        return []
    values = merge_presets(layers).values
    dropped = {
        field: [
            f"!{name}"
            for name in values.get(field) or ()
            if canonical_transform_name(name) not in TRANSFORM_RULES
        ]
        for field in _SHAPED
    }
    return [(f"protocol:{protocol}", {field: names for field, names in dropped.items() if names})]


def _protocol_of(contender: Contender, catalog: Catalog) -> str:
    if contender.protocol:
        return contender.protocol
    entry = catalog.find_provider(contender.provider) if contender.provider else None
    return (entry.protocol if entry else None) or DEFAULT_PROTOCOL


def _settle_capabilities(
    name: str, contender: Contender, ablation: Ablation | None, catalog: Catalog
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what a strategy knows: nothing, the provider, or the model as well."""
    if name in UNAIDED:
        return {}, {}
    knows_model = name != "baseline"
    resolved = resolve_capabilities(
        contender.provider,
        contender.model if knows_model else None,
        overrides=contender.capabilities if knows_model else None,
        catalog=catalog,
    )
    values: dict[str, Any] = msgspec.to_builtins(
        join_capabilities(resolved.capabilities, resolved.findings)
    )
    origins = {field: origin for field, origin in resolved.origins.items() if origin != "default"}
    if ablation is not None and ablation.name == "tool_prompting":
        # Tools that are not put in another way are sent, whatever is known of the model.
        values["supports_tool_use"] = True
        origins["supports_tool_use"] = ablation.id
    return {field: values[field] for field in origins}, origins


def _record(settled: Settled, about: Mapping[str, Any]) -> dict[str, Any]:
    resolved = resolve_options(settled.options, settled.origins)
    capabilities = join_capabilities(*split_capabilities(settled.capabilities))
    unknown = dict.fromkeys(capabilities, "default")
    record = {
        **{name: about[name] for name in ("strategy", "fallback", "profile")},
        "presets": list(settled.presets),
        "protocol": settled.protocol,
        "options": resolved.options,
        "origins": resolved.origins,
        "capabilities": capabilities,
        "capability_origins": unknown | settled.capability_origins,
    }
    return without_secrets(decode_own(encode(record)))  # as it is after being stored
