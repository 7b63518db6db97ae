"""The options a preset may set, and how each is merged."""

from typing import Final

__all__ = ["LIST_FIELDS", "OBJECT_FIELDS", "PRESET_FIELDS", "RESERVED_REQUEST_KEYS"]

LIST_FIELDS: Final = frozenset(
    {
        "disabled_rules",
        "message_transforms",
        "response_transforms",
        "tool_allowlist",
        "tool_call_transforms",
        "tool_denylist",
        "tool_result_transforms",
        "tool_transforms",
    }
)
"""Merged as ordered unions."""

OBJECT_FIELDS: Final = frozenset({"overrides_after_cut", "request_defaults", "request_overrides"})
"""Body fields of a request, merged key by key."""

PRESET_FIELDS: Final = (
    LIST_FIELDS
    | OBJECT_FIELDS
    | {
        "deadline_s",
        "fallback_retry_count",
        "fix_empty_final",
        "fix_empty_final_disable_tools",
        "fix_empty_final_user_text",
        "keep_content_with_calls",
        "max_concurrent_calls",
        "max_escalations",
        "max_identical_calls",
        "max_parse_retries",
        "max_run_tokens",
        "max_tool_args_bytes",
        "max_tool_calls",
        "max_tool_calls_per_turn",
        "max_tool_output_bytes",
        "max_turn_args_bytes",
        "max_turns",
        "skip_bad_events",
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
