"""Which models have calls looked for in their text."""

import pytest

from surecall.models.profiles import Catalog, find_preset, resolve_capabilities


@pytest.mark.parametrize("entry", Catalog.builtin().models, ids=lambda entry: entry.id)
def test_models_known_to_write_tags_have_their_text_read(entry: object) -> None:
    """Exactly the models that needed the tag fallback, and one seen to write calls in fences."""
    known = resolve_capabilities("openrouter", entry.id).capabilities  # type: ignore[attr-defined]
    expected = "content_tag_tool_call_fallback" in entry.workarounds  # type: ignore[attr-defined]
    expected |= entry.id == "embedded:qwen2.5-coder-1.5b"  # type: ignore[attr-defined]
    assert known.text_formats is expected


def test_a_preset_switches_it_on_for_any_model() -> None:
    """For a model the catalog does not know."""
    assert find_preset("text_tool_calls").fields == {"text_formats": "all"}
