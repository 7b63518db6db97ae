"""The rules of reading, by the names their receipts carry."""

from typing import Final

__all__ = ["FIXED_RULES", "IDENTITY_RULES", "READING_RULES"]

IDENTITY_RULES: Final = frozenset({"assign_call_id", "clean_call_id", "rename_repeated_id"})
"""Rules about ids: they never change what is called, and no result could be sent back without."""

_NAMES: Final = "infer_tool_name resolve_tool_name strip_name"
_WIRE: Final = "wrap_bare_call"
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
    name_single_value null_to_empty_object parse_boolean_text parse_null_text parse_number_text
    rename_key unwrap_arguments unwrap_list wrap_in_array write_as_text
"""
_TEXT: Final = """
    add_closer add_namespace bare_label close_list close_object close_string collapsed_tag
    colon_after_label damaged_closing_tag delimit_string doubled_word drop_echo
    drop_extra_brackets equals_label fill_code_argument json_body json_word keep_damaged
    key_without_value label_attribute leading_zeros look_alike_markers mcp_form missing_arguments
    missing_bracket missing_brackets missing_closer missing_closing_tag missing_markers
    missing_opener missing_token name_as_text name_positional_arguments nest_flat_arguments
    nested_quotes only_parameter property_tag quote_bare_words quoted_label raw_newline
    read_call_from_text repeated_opener restore_header restore_token split_action stray_bracket
    stray_closing_tag string_by_schema strip_value_padding text_for_json unescape_entities
    unescape_tags unwrap_argument_list wrong_closing_tag yaml_body
"""

READING_RULES: Final = tuple(
    name for group in (_NAMES, _WIRE, _REPAIR, _COERCION, _TEXT) for name in sorted(group.split())
)
"""Rules that change what is called or with what; each can be switched off by itself."""

FIXED_RULES: Final = frozenset(
    {
        "close_cut_brackets",
        "close_cut_string",
        "complete_cut_literal",
        "drop_cut_comment",
        "drop_cut_member",
        "drop_legacy_call",
        "rescue_from_error_body",
        "unwrap_answer",
    }
)
"""Rules that change no call that is run: those of a cut value, which is refused, of an answer, of a
reply that came inside an error, and of a call in a field that another replaces. They cannot be
switched off."""
