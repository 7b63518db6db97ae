"""What can be switched off by itself, to see what it is worth."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from surecall.errors import Code, ConfigError, did_you_mean
from surecall.profiles import Catalog
from surecall.profiles.entries import canonical_name
from surecall.transforms import TransformRegistry
from surecall.transforms.registry import Family

__all__ = [
    "IDENTITY_RULES",
    "OPTIONS_OFF",
    "RULES",
    "TRANSFORM_FIELDS",
    "Ablation",
    "find_ablation",
    "list_ablations",
]

AblationKind = Literal["option", "preset", "transform", "rule"]

OPTIONS_OFF: Final[Mapping[str, Any]] = {
    "fallback_retry_count": 0,
    "fix_empty_final": False,
    "max_escalations": 0,
    "max_parse_retries": 0,
    "text_formats": False,
    "tool_prompting": "native",
}
"""Options that help a run, with the value that switches each off."""

TRANSFORM_FIELDS: Final[Mapping[Family, str]] = {
    "messages": "message_transforms",
    "tools": "tool_transforms",
    "replies": "response_transforms",
    "calls": "tool_call_transforms",
    "results": "tool_result_transforms",
}
"""The option that lists the transforms of each family."""

IDENTITY_RULES: Final = frozenset({"assign_call_id", "clean_call_id", "rename_repeated_id"})
"""Rules about ids: they never change what is called, and no result could be sent back without."""

_REPAIR: Final = """
    add_missing_closing_quote add_missing_colon add_missing_comma add_missing_opening_quote
    blank_to_empty_object close_missing_brackets collapse_doubled_braces decode_nested_text
    drop_comment drop_extra_colon drop_extra_comma drop_parentheses drop_stray_closer
    drop_string_prefix drop_trailing_comma escape_control_characters escape_inner_quotes
    extra_values fix_escapes fix_mismatched_closer join_strings quote_bare_text quote_key
    replace_colon replace_comma replace_literal replace_non_finite replace_quotes rewrite_number
    strip_code_fence strip_invisible strip_prose tuple_to_array
"""
_COERCION: Final = """
    decode_json_text drop_null drop_zero_fraction match_enum name_positional_values
    name_single_value parse_boolean_text parse_null_text parse_number_text rename_key
    unwrap_arguments unwrap_list wrap_in_array write_as_text
"""
_NAMES: Final = "infer_tool_name resolve_tool_name strip_name"
_TEXT: Final = """
    add_closer add_namespace close_list close_object close_string delimit_string drop_echo
    drop_extra_brackets fill_code_argument json_body json_word keep_damaged key_without_value
    leading_zeros look_alike_markers mcp_form missing_arguments missing_bracket missing_brackets
    missing_closer missing_closing_tag missing_markers missing_opener missing_token name_as_text
    name_positional_arguments nest_flat_arguments nested_quotes only_parameter property_tag
    quote_bare_words raw_newline read_call_from_text repeated_opener restore_header restore_token
    split_action stray_bracket stray_closing_tag string_by_schema strip_value_padding text_for_json
    unescape_entities unescape_tags unwrap_argument_list wrong_closing_tag yaml_body
"""

RULES: Final = tuple(
    name for group in (_NAMES, _REPAIR, _COERCION, _TEXT) for name in sorted(group.split())
)
"""Rules of reading, by the names their receipts carry."""


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
        *(Ablation(name, "rule", "disabled_rules") for name in RULES),
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
