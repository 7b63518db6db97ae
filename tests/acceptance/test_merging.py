"""How options of several origins become one."""

from surecall.models.profiles import merge_presets

from .doors import ORIGINAL, Door
from .sample_tools import Ledger

A = "assistant_function_call_to_tool_calls"
B = "assistant_tool_calls_object_to_array"
C = "assistant_content_tool_call_tags_to_tool_calls"


def test_overrides_are_merged_deeply() -> None:
    """Objects are merged key by key; arrays and scalars are replaced."""
    merged = merge_presets(
        [
            ("first", {"request_overrides": {"provider": {"order": ["a"], "only": ["x"]}, "n": 1}}),
            ("second", {"request_overrides": {"provider": {"order": ["b", "c"]}, "n": 2}}),
        ]
    )

    assert merged.values == {
        "request_overrides": {"provider": {"order": ["b", "c"], "only": ["x"]}, "n": 2}
    }
    assert merged.origins["request_overrides.provider.order"] == "second"
    assert merged.origins["request_overrides.provider.only"] == "first"


def test_lists_become_an_ordered_union() -> None:
    """Each name stays once, where it first stood."""
    merged = merge_presets(
        [
            ("first", {"response_transforms": [A, B], "tool_denylist": ["x"]}),
            ("second", {"response_transforms": [B, C], "tool_denylist": ["y", "x"]}),
        ]
    )

    assert merged.values["response_transforms"] == [A, B, C]
    assert merged.values["tool_denylist"] == ["x", "y"]


def test_an_explicit_empty_list_clears() -> None:
    """An empty list takes away what came before, and later layers add to nothing."""
    layers = [("first", {"response_transforms": [A]}), ("second", {"response_transforms": []})]

    assert merge_presets(layers).values["response_transforms"] == []
    merged = merge_presets([*layers, ("third", {"response_transforms": [B]})])
    assert merged.values["response_transforms"] == [B]


def test_an_explicit_null_clears() -> None:
    """Null is a value too: it takes away what came before."""
    merged = merge_presets(
        [("first", {"response_transforms": [A]}), ("second", {"response_transforms": None})]
    )

    assert merged.values["response_transforms"] is None


def test_the_last_writer_wins_for_everything_else() -> None:
    """Scalars are replaced, and a layer that is silent changes nothing."""
    merged = merge_presets(
        [
            ("first", {"tool_use_mode": "enforced", "max_turns": 3}),
            ("second", {"tool_use_mode": "relaxed"}),
        ]
    )

    assert merged.values == {"tool_use_mode": "relaxed", "max_turns": 3}
    assert merged.origins == {"tool_use_mode": "second", "max_turns": "first"}


async def test_a_caller_clears_the_transforms_of_a_preset(door: Door, ledger: Ledger) -> None:
    """An empty list from the caller leaves none of the preset's transforms in force."""
    result = await door.run(["hello"], tools=ledger.tools, response_transforms=[])

    assert result.trace.options.response_transforms == ()
    assert result.trace.origins["response_transforms"] == "caller"


async def test_a_caller_adds_to_the_transforms_of_a_preset(door: Door, ledger: Ledger) -> None:
    """A list from the caller is added to the preset's, and the trace shows who set what."""
    result = await door.run(["hello"], tools=ledger.tools, response_transforms=[C])

    assert result.trace.options.response_transforms == (
        A,
        B,
        "assistant_tool_calls_arguments_json_string_if_hash",
        C,
    )
    assert result.trace.origins[f"response_transforms.{A}"] == "preset:default_tool_calling"
    assert result.trace.origins[f"response_transforms.{C}"] == "caller"


async def test_a_model_gets_its_workaround(door: Door, ledger: Ledger) -> None:
    """The catalog's workaround for a model is in force without being asked for."""
    result = await door.run(
        ["hello"], tools=ledger.tools, model="deepseek/deepseek-chat", provider="openrouter"
    )

    assert result.trace.options.message_transforms == (
        "assistant_tool_calls_reasoning_content_empty_if_missing",
    )
    assert result.trace.options.tool_use_mode == "relaxed"


async def test_without_presets_nothing_is_set(door: Door, ledger: Ledger) -> None:
    """An empty tuple of presets leaves every option at its default or with the caller."""
    result = await door.run(
        ["hello"],
        tools=ledger.tools,
        model="deepseek/deepseek-chat",
        provider="openrouter",
        preset=(),
    )

    origins = {name: where for name, where in result.trace.origins.items() if name not in ORIGINAL}
    assert set(origins.values()) == {"default"}
    assert "parallel_tool_calls" not in door.requests[0]
