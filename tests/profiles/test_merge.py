"""Merging sets of options, with provenance."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from surecall.base.errors import ConfigError
from surecall.models.profiles import Catalog, deep_merge, merge_presets


@dataclass(frozen=True)
class Case:
    id: str
    layers: tuple[dict[str, Any], ...]
    values: dict[str, Any]
    origins: dict[str, str]
    """Layers are called a, b, c."""


CASES = (
    Case("nothing", (), {}, {}),
    Case(
        "last-writer-wins",
        ({"tool_use_mode": "relaxed", "max_turns": 3}, {"tool_use_mode": "enforced"}),
        {"tool_use_mode": "enforced", "max_turns": 3},
        {"tool_use_mode": "b", "max_turns": "a"},
    ),
    Case(
        "union-in-order",
        ({"tool_denylist": ["x", "y"]}, {"tool_denylist": ["z", "x"]}),
        {"tool_denylist": ["x", "y", "z"]},
        {
            "tool_denylist": "b",
            "tool_denylist.x": "a",
            "tool_denylist.y": "a",
            "tool_denylist.z": "b",
        },
    ),
    Case(
        "empty-list-clears",
        ({"tool_allowlist": ["x"]}, {"tool_allowlist": []}),
        {"tool_allowlist": []},
        {"tool_allowlist": "b"},
    ),
    Case(
        "union-after-clearing",
        ({"tool_allowlist": ["x"]}, {"tool_allowlist": []}, {"tool_allowlist": ["y"]}),
        {"tool_allowlist": ["y"]},
        {"tool_allowlist": "c", "tool_allowlist.y": "c"},
    ),
    Case(
        "null-sets-null",
        (
            {"tool_allowlist": ["x"], "max_tool_calls_per_turn": 2, "request_overrides": {"a": 1}},
            {"tool_allowlist": None, "max_tool_calls_per_turn": None, "request_overrides": None},
        ),
        {"tool_allowlist": None, "max_tool_calls_per_turn": None, "request_overrides": None},
        {"tool_allowlist": "b", "max_tool_calls_per_turn": "b", "request_overrides": "b"},
    ),
    Case(
        "after-null",
        (
            {"tool_denylist": None, "request_overrides": None},
            {"tool_denylist": ["x"], "request_overrides": {"a": 1}},
        ),
        {"tool_denylist": ["x"], "request_overrides": {"a": 1}},
        {"tool_denylist": "b", "tool_denylist.x": "b", "request_overrides.a": "b"},
    ),
    Case(
        "one-item-removed",
        ({"message_transforms": ["one", "two", "three"]}, {"message_transforms": ["!two"]}),
        {"message_transforms": ["one", "three"]},
        {
            "message_transforms": "b",
            "message_transforms.one": "a",
            "message_transforms.three": "a",
        },
    ),
    Case(
        "removed-and-added-at-the-end",
        ({"message_transforms": ["one", "two"]}, {"message_transforms": ["!one", "one"]}),
        {"message_transforms": ["two", "one"]},
        {
            "message_transforms": "b",
            "message_transforms.two": "a",
            "message_transforms.one": "b",
        },
    ),
    Case(
        "removing-what-is-not-there",
        ({"tool_denylist": ["x"]}, {"tool_denylist": ["!y"], "tool_allowlist": ["!y"]}),
        {"tool_denylist": ["x"]},
        {"tool_denylist": "b", "tool_denylist.x": "a"},
    ),
    Case(
        "transform-names-are-canonical",
        ({"tool_transforms": ["My-Own"]}, {"tool_transforms": [" my_own ", "Other"]}),
        {"tool_transforms": ["my_own", "other"]},
        {"tool_transforms": "b", "tool_transforms.my_own": "a", "tool_transforms.other": "b"},
    ),
    Case(
        "tool-names-keep-their-case",
        ({"tool_denylist": "readFile, x-y"},),
        {"tool_denylist": ["readFile", "x-y"]},
        {"tool_denylist": "a", "tool_denylist.readFile": "a", "tool_denylist.x-y": "a"},
    ),
    Case(
        "objects-are-merged-deep",
        (
            {"request_overrides": {"provider": {"order": ["a", "b"], "only": ["c"]}, "route": "x"}},
            {"request_overrides": {"provider": {"order": ["d"]}, "route": None}},
        ),
        {"request_overrides": {"provider": {"order": ["d"], "only": ["c"]}, "route": None}},
        {
            "request_overrides.provider.order": "b",
            "request_overrides.provider.only": "a",
            "request_overrides.route": "b",
        },
    ),
    Case(
        "object-replaced-by-scalar",
        ({"request_overrides": {"a": {"b": 1, "c": 2}, "ab": 3}}, {"request_overrides": {"a": 4}}),
        {"request_overrides": {"a": 4, "ab": 3}},
        {"request_overrides.a": "b", "request_overrides.ab": "a"},
    ),
    Case(
        "scalar-replaced-by-object",
        ({"request_overrides": {"a": 1}}, {"request_overrides": {"a": {"b": 2}}}),
        {"request_overrides": {"a": {"b": 2}}},
        {"request_overrides.a.b": "b"},
    ),
    Case(
        "empty-objects",
        ({"request_overrides": {}}, {"request_overrides": {"a": {}}}, {"request_overrides": {}}),
        {"request_overrides": {"a": {}}},
        {"request_overrides.a": "b"},
    ),
    Case(
        "keys-with-dots",
        ({"request_overrides": {"a.b": 1, "a": {"b": 2}}},),
        {"request_overrides": {"a.b": 1, "a": {"b": 2}}},
        {'request_overrides."a.b"': "a", "request_overrides.a.b": "a"},
    ),
    Case(
        "sampling-parameters-are-merged-too",
        (
            {"request_defaults": {"temperature": 1, "top_p": 1}},
            {"request_defaults": {"temperature": 0}},
        ),
        {"request_defaults": {"temperature": 0, "top_p": 1}},
        {"request_defaults.temperature": "b", "request_defaults.top_p": "a"},
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_merging(case: Case) -> None:
    """Values and the origin of each field, item and key; the layers stay as they were."""
    before = deepcopy(case.layers)
    merged = merge_presets(zip("abc", case.layers, strict=False))
    assert merged.values == case.values
    assert merged.origins == case.origins
    assert case.layers == before


def test_merged_values_share_nothing_with_the_catalog() -> None:
    """Changing a merged value cannot change a preset."""
    preset = Catalog.builtin().preset("openrouter")
    before = deepcopy(preset.fields)
    merged = merge_presets([preset.layer])
    merged.values["response_transforms"].clear()
    merged.values["structured_request_overrides"]["provider"]["x"] = 1
    assert preset.fields == before


@pytest.mark.parametrize(
    ("layer", "code", "says"),
    [
        ({"tool_use_mod": "x"}, "UNKNOWN_OPTION", "Did you mean 'tool_use_mode'"),
        ({"tool_denylist": {"x": 1}}, "INVALID_CONFIG", "a list of names"),
        ({"tool_denylist": [1]}, "INVALID_CONFIG", "a list of names"),
        ({"tool_denylist": ["!"]}, "INVALID_CONFIG", "a list of names"),
        ({"tool_denylist": ""}, "INVALID_CONFIG", "a list of names"),
        ({"request_overrides": [1]}, "INVALID_CONFIG", "an object"),
    ],
)
def test_what_cannot_be_merged_is_refused(layer: dict[str, Any], code: str, says: str) -> None:
    """The error says what was expected and which layer is wrong."""
    with pytest.raises(ConfigError) as caught:
        merge_presets([("my file", layer)])
    assert caught.value.code == code
    assert says in str(caught.value)
    assert "my file" in str(caught.value)


def test_taking_the_last_tool_out_of_an_allowlist_is_refused() -> None:
    """An empty allowlist would allow every tool, which nobody asked for."""
    layers = [("a", {"tool_allowlist": ["x"]}), ("b", {"tool_allowlist": ["!x"]})]
    with pytest.raises(ConfigError, match="every tool would be allowed"):
        merge_presets(layers)


def test_a_caller_may_name_further_fields() -> None:
    """Fields that are known to the caller are last-writer-wins."""
    merged = merge_presets([("a", {"own": 1}), ("b", {"own": 2})], fields={"own"})
    assert merged.values == {"own": 2}


def test_deep_merge_copies() -> None:
    """Neither side is changed, and the result is a new object."""
    base = {"a": {"b": [1]}}
    result = deep_merge(base, {"a": {"c": 2}})
    assert result == {"a": {"b": [1], "c": 2}}
    result["a"]["b"].append(2)
    assert base == {"a": {"b": [1]}}


NAMES = st.sampled_from(["one", "two", "three", "four"])
# Lists are never empty and a key is always an object or never: clearing and replacing an object by
# a scalar depend on what came before, so they cannot be associative.
LAYERS = st.fixed_dictionaries(
    {},
    optional={
        "tool_use_mode": st.sampled_from(["relaxed", "enforced"]),
        "max_turns": st.integers(1, 3),
        "tool_denylist": st.lists(NAMES, min_size=1, unique=True),
        "message_transforms": st.lists(NAMES, min_size=1),
        "request_overrides": st.dictionaries(
            st.sampled_from(["provider", "options"]),
            st.dictionaries(NAMES, st.integers() | st.lists(NAMES, max_size=2), max_size=3),
            max_size=2,
        ),
    },
)


def values(*layers: dict[str, Any]) -> dict[str, Any]:
    """Merge layers of no interesting origin."""
    return merge_presets([("layer", layer) for layer in layers]).values


@settings(max_examples=150, deadline=None)
@given(LAYERS, LAYERS, LAYERS)
def test_merging_is_associative(a: dict[str, Any], b: dict[str, Any], c: dict[str, Any]) -> None:
    """How layers are grouped does not matter."""
    assert values(values(a, b), c) == values(a, values(b, c)) == values(a, b, c)


@settings(max_examples=150, deadline=None)
@given(LAYERS, LAYERS)
def test_merging_is_idempotent(a: dict[str, Any], b: dict[str, Any]) -> None:
    """Laying the same layer on twice changes nothing more."""
    once = values(a, b)
    assert values(a, b, b) == once
    assert values(once, once) == once


@settings(max_examples=100, deadline=None)
@given(st.lists(LAYERS, max_size=4))
def test_every_value_has_an_origin(layers: list[dict[str, Any]]) -> None:
    """Each field in the result is accounted for, and nothing else is."""
    merged = merge_presets([(str(index), layer) for index, layer in enumerate(layers)])
    fields = {name.partition(".")[0] for name in merged.origins}
    assert fields == set(merged.values)
