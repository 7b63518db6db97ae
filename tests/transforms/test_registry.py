"""Names of transforms, and chains of them."""

from typing import Any

import pytest
from msgspec.structs import replace

from surecall.base.errors import ConfigError
from surecall.base.records import RawCall, Receipt
from surecall.reading.transforms import FAMILIES, TransformChain, TransformRegistry

BUILTIN = {
    "messages": (
        "assistant_tool_calls_content_null_if_blank",
        "assistant_tool_calls_reasoning_content_empty_if_missing",
        "assistant_tool_calls_signature_skip_validator_if_missing",
    ),
    "tools": ("openai_tools_strip_function_descriptions",),
    "replies": (
        "assistant_function_call_to_tool_calls",
        "assistant_tool_calls_object_to_array",
        "assistant_tool_calls_arguments_json_string_if_hash",
        "assistant_content_tool_call_tags_to_tool_calls",
    ),
    "calls": ("assistant_tool_calls_arguments_blank_to_empty_object",),
    "results": ("tool_result_compact_envelope",),
    "answers": (),
}


def test_the_builtin_names() -> None:
    """Every family has its transforms under their names."""
    registry = TransformRegistry.builtin()
    assert {family: registry.names(family) for family in FAMILIES} == BUILTIN


def test_names_are_canonicalised_and_used_once_in_order() -> None:
    """Case, hyphens and spaces do not matter, and a repeated name runs once."""
    registry = TransformRegistry()
    registry.register("tools", " My-First ", list)
    registry.register("tools", "second", tuple)
    assert registry.resolve("tools", ["SECOND", "my_first", "My-First"]) == (
        ("second", tuple),
        ("my_first", list),
    )


def test_a_registry_is_not_shared() -> None:
    """What is registered in one is not in the next."""
    TransformRegistry.builtin().register("tools", "mine", list)
    assert "mine" not in TransformRegistry.builtin().names("tools")


def test_an_unknown_name_suggests_a_close_one() -> None:
    """The error has a code and a suggestion."""
    with pytest.raises(ConfigError) as caught:
        TransformRegistry.builtin().resolve("results", ["tool_result_compact_envelop"])
    assert caught.value.code == "UNKNOWN_TRANSFORM"
    assert "Did you mean 'tool_result_compact_envelope'?" in str(caught.value)


def test_a_name_of_another_family_is_pointed_out() -> None:
    """The error says where the name belongs."""
    with pytest.raises(ConfigError, match="It is a transform of results: list it there") as caught:
        TransformRegistry.builtin().resolve("messages", ["tool-result-compact-envelope"])
    assert caught.value.code == "UNKNOWN_TRANSFORM"


@pytest.mark.parametrize("name", ["", "  ", "!x", "a,b", "a b"])
def test_unusable_names_are_refused(name: str) -> None:
    """A name must be able to stand in a list of names."""
    with pytest.raises(ConfigError, match="cannot be the name"):
        TransformRegistry().register("tools", name, list)


def test_a_name_in_use_is_replaced_only_on_demand() -> None:
    """A built-in is never replaced by accident."""
    registry = TransformRegistry.builtin()
    name = "tool_result_compact_envelope"
    with pytest.raises(ConfigError, match="already"):
        registry.register("results", name, dict)
    registry.register("results", name, dict, replace=True)
    assert registry.resolve("results", [name]) == ((name, dict),)


def test_an_unknown_family_is_refused() -> None:
    """The error suggests the closest family."""
    family: Any = "message"
    with pytest.raises(ConfigError, match="Did you mean 'messages'"):
        TransformRegistry().names(family)


def test_something_that_cannot_be_called_is_refused() -> None:
    """A transform is a function."""
    function: Any = "text"
    with pytest.raises(ConfigError, match="not callable"):
        TransformRegistry().register("tools", "x", function)


def test_an_empty_chain_returns_what_it_is_given() -> None:
    """Every family passes the same object through."""
    chain = TransformChain()
    messages: list[dict[str, Any]] = [{"role": "user"}]
    reply: dict[str, Any] = {}
    calls = (RawCall("1", "a", ""),)
    assert chain.apply_messages(messages) is messages
    assert chain.apply_tools(messages) is messages
    assert chain.apply_reply(reply)[0] is reply
    assert chain.apply_calls(calls)[0] is calls
    assert chain.apply_result(reply, "a", "1") is reply


def test_a_chain_runs_in_order_and_collects_receipts() -> None:
    """Each transform sees what the one before it returned."""
    registry = TransformRegistry()
    receipts = [Receipt("one", "", None, 1), Receipt("two", "", 1, 2)]
    registry.register("replies", "one", lambda m: ({**m, "seen": ["one"]}, (receipts[0],)))
    registry.register("replies", "two", lambda m: ({"seen": [*m["seen"], "two"]}, (receipts[1],)))
    chain = TransformChain.resolve(registry, replies=["one", "two"])
    assert chain.apply_reply({}) == ({"seen": ["one", "two"]}, tuple(receipts))


def test_a_chain_of_calls_keeps_the_tuple_when_nothing_changes() -> None:
    """Calls go in and come out as a tuple."""
    registry = TransformRegistry()
    note = Receipt("fill", "", "", "{}")

    def fill(calls: list[RawCall]) -> tuple[list[RawCall], tuple[Receipt, ...]]:
        blank = [call for call in calls if not call.arguments]
        filled = [replace(call, arguments=call.arguments or "{}") for call in calls]
        return (filled, (note,)) if blank else (calls, ())

    registry.register("calls", "fill", fill)
    chain = TransformChain.resolve(registry, calls=["fill"])
    same = (RawCall("1", "a", "{}"),)
    assert chain.apply_calls(same)[0] is same
    changed, receipts = chain.apply_calls((RawCall("1", "a", ""),))
    assert changed == (RawCall("1", "a", "{}"),)
    assert len(receipts) == 1


def test_result_transforms_are_told_which_call_they_serve() -> None:
    """The context carries the tool's name and the call's id."""
    registry = TransformRegistry()
    registry.register("results", "note", lambda e, c: {**e, "for": [c.tool_name, c.call_id]})
    chain = TransformChain.resolve(registry, results=["note"])
    assert chain.apply_result({"ok": True}, "search", "c9") == {"ok": True, "for": ["search", "c9"]}


@pytest.mark.parametrize("returned", [None, {}, ({},), ({}, None), ([], ())])
def test_a_reply_transform_that_returns_something_else_is_an_error(returned: Any) -> None:
    """A transform that changes in place and returns nothing is caught at once."""
    registry = TransformRegistry()
    registry.register("replies", "odd", lambda _message: returned)
    with pytest.raises(ConfigError, match="Transform 'odd' returned"):
        TransformChain.resolve(registry, replies=["odd"]).apply_reply({})


def test_a_message_transform_that_returns_nothing_is_an_error() -> None:
    """The message says what was expected."""
    registry = TransformRegistry()
    registry.register("messages", "odd", lambda _messages: None)
    with pytest.raises(ConfigError, match="returned NoneType instead of a list"):
        TransformChain.resolve(registry, messages=["odd"]).apply_messages([])


def test_what_reading_does_is_named_and_not_run() -> None:
    """The built-in transforms of replies and calls are names for rules of reading."""
    name, blank = (
        "assistant_tool_calls_object_to_array",
        ("assistant_tool_calls_arguments_blank_to_empty_object"),
    )
    chain = TransformChain.resolve(TransformRegistry.builtin(), replies=[name], calls=[blank])
    assert chain.reading == {name, blank}
    assert (chain.replies, chain.calls) == ((), ())


def test_a_function_of_ones_own_replaces_what_reading_does() -> None:
    """Then the name stands for the function alone."""
    name = "assistant_tool_calls_object_to_array"
    registry = TransformRegistry.builtin()
    registry.register("replies", name, lambda message: (message, ()), replace=True)
    chain = TransformChain.resolve(registry, replies=[name])
    assert chain.reading == frozenset()
    assert [pair[0] for pair in chain.replies] == [name]
