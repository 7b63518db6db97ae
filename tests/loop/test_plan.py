"""What is settled before the first request, and the fingerprint over all of it."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from surecall.base.errors import Code, ConfigError, RequestError, SetupError
from surecall.base.records import Message, ToolCall, ToolSpec
from surecall.loop import Options, Plan, Session, make_plan
from surecall.models.profiles import Capabilities
from surecall.models.transport import ScriptedTransport

LOOK = ToolSpec(name="look", effect="read", parameters={"type": "object"})
SAVE = ToolSpec(name="save")
POLL = ToolSpec(name="wait", effect="external", polling=True)
SURFACE: dict[str, Any] = {
    "model": "m",
    "messages": (Message("user", "hi"),),
    "tools": (LOOK, SAVE),
    "options": Options(),
    "origins": {"max_turns": "default"},
    "capabilities": Capabilities(),
    "capability_origins": {},
    "system": "be brief",
}


def plan_with(**changes: Any) -> Plan:
    """Return a plan that differs from the usual one in these parts."""
    return make_plan(**{**SURFACE, **changes})


@dataclass(frozen=True)
class Change:
    """A change of the surface that must change the fingerprint."""

    id: str
    changes: dict[str, Any]


CHANGES = [
    Change("model", {"model": "n"}),
    Change("system", {"system": "be long"}),
    Change("no system", {"system": None}),
    Change("message text", {"messages": (Message("user", "ho"),)}),
    Change("message role", {"messages": (Message("developer", "hi"),)}),
    Change("message extra", {"messages": (Message("user", "hi", extra={"a": 1}),)}),
    Change("one message more", {"messages": (Message("user", "hi"), Message("user", "hi"))}),
    Change("one tool less", {"tools": (LOOK,)}),
    Change("order of tools", {"tools": (SAVE, LOOK)}),
    Change("tool description", {"tools": (ToolSpec(name="look", description="d"), SAVE)}),
    Change("tool effect", {"tools": (LOOK, ToolSpec(name="save", effect="external"))}),
    Change("tool schema", {"tools": (LOOK, ToolSpec(name="save", parameters={"x": 1}))}),
    Change("turns", {"options": Options(max_turns=3)}),
    Change("request field", {"options": Options(request_overrides={"temperature": 0.1})}),
    Change("transforms", {"options": Options(message_transforms=("a",))}),
    Change("origin of an option", {"origins": {"max_turns": "preset:x"}}),
    Change("capability", {"capabilities": Capabilities(supports_parallel_tools=True)}),
    Change(
        "origin of a capability",
        {"capability_origins": {"supports_parallel_tools": "provider:p"}},
    ),
]


@pytest.mark.parametrize("case", CHANGES, ids=lambda case: case.id)
def test_the_fingerprint_changes_with_every_part_of_the_surface(case: Change) -> None:
    """Nothing that shapes the requests can change unseen."""
    assert plan_with(**case.changes).fingerprint != plan_with().fingerprint


@pytest.mark.parametrize(
    ("options", "origin", "parallel", "limit"),
    [
        (Options(), "default", None, 128),
        (Options(), "default", False, 1),
        (Options(), "caller", False, 128),
        (Options(max_tool_calls_per_turn=None), "caller", None, None),
        (Options(max_tool_calls_per_turn=None), "default", None, None),
        (Options(max_tool_calls_per_turn=None), "caller", False, 1),
        (Options(max_tool_calls_per_turn=5), "caller", False, 5),
    ],
)
def test_the_limit_of_calls_follows_what_was_given(
    options: Options, origin: str, parallel: bool | None, limit: int | None
) -> None:
    """A number that somebody gave wins; without one, a run without parallel calls takes one."""
    if parallel is not None:
        options = replace(options, request_overrides={"parallel_tool_calls": parallel})
    plan = plan_with(options=options, origins={"max_tool_calls_per_turn": origin})
    assert plan.max_calls_per_turn == limit


def test_no_two_changes_share_a_fingerprint() -> None:
    """Different surfaces are told apart from each other too."""
    prints = {plan_with(**case.changes).fingerprint for case in CHANGES}
    assert len(prints) == len(CHANGES)


def test_the_fingerprint_is_stable() -> None:
    """Equal surfaces have equal fingerprints, whatever the order of keys in objects."""
    one = plan_with(options=Options(request_overrides={"a": 1, "b": {"c": 1, "d": 2}}))
    two = plan_with(options=Options(request_overrides={"b": {"d": 2, "c": 1}, "a": 1}))
    assert one.fingerprint == two.fingerprint
    assert len(plan_with().fingerprint) == 64


def test_the_provenance_of_presets_is_part_of_the_fingerprint() -> None:
    """The same value from a preset and from the caller are two different requests."""
    options: dict[str, Any] = {"preset": (), "transport": ScriptedTransport([]), "model": "m"}
    plain = Session(**options, fix_empty_final=True).plan("hi")
    default = Session(**options).plan("hi")
    assert plain.options == default.options
    assert plain.fingerprint != default.fingerprint


@dataclass(frozen=True)
class Refused:
    """A plan that cannot be right."""

    id: str
    changes: dict[str, Any]
    code: str
    kind: type[SetupError]
    says: str = ""


REFUSED = [
    Refused("no model", {"model": " "}, Code.INVALID_OPTION, RequestError, "SURECALL_MODEL"),
    Refused(
        "enforced without tools",
        {"tools": (), "options": Options(tool_use_mode="enforced")},
        Code.INVALID_OPTION,
        RequestError,
        "relaxed",
    ),
    Refused(
        "reserved default",
        {"options": Options(request_defaults={"messages": [], "model": "x"})},
        Code.RESERVED_KEY,
        ConfigError,
        "messages, model",
    ),
    Refused(
        "parallel flag as text",
        {"options": Options(request_overrides={"parallel_tool_calls": "no"})},
        Code.INVALID_OPTION,
        ConfigError,
        "'no'",
    ),
    Refused(
        "unknown tool chosen",
        {"options": Options(tool_choice="loook")},
        Code.INVALID_OPTION,
        ConfigError,
        "'look'",
    ),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_a_plan_that_cannot_be_right_is_refused(case: Refused) -> None:
    """The error has a code and says what to do."""
    with pytest.raises(case.kind) as caught:
        plan_with(**case.changes)
    assert caught.value.code == case.code
    assert case.says in str(caught.value)


@dataclass(frozen=True)
class Choice:
    """What is asked for as `tool_choice`, and what goes onto the wire."""

    id: str
    given: Any
    wire: Any
    tools: tuple[ToolSpec, ...] = (LOOK, SAVE)


CHOICES = [
    Choice("auto", "auto", "auto"),
    Choice("blank", " ", "auto"),
    Choice("required", "required", "required"),
    Choice("none", "none", "none"),
    Choice("a name", "look", {"type": "function", "function": {"name": "look"}}),
    Choice("an object", {"any": "thing"}, {"any": "thing"}),
    Choice("a name without tools", "look", "look", ()),
]


@pytest.mark.parametrize("case", CHOICES, ids=lambda case: case.id)
def test_tool_choice_is_put_into_its_wire_form(case: Choice) -> None:
    """Words stay, the name of a tool becomes the object that providers expect."""
    plan = plan_with(options=Options(tool_choice=case.given), tools=case.tools)
    assert plan.tool_choice == case.wire


@dataclass(frozen=True)
class Params:
    """Options about the body, and what is sent."""

    id: str
    options: dict[str, Any]
    params: dict[str, Any]
    parallel: bool | None = None
    ignored: tuple[str, ...] = field(default=())


PARAMS = [
    Params("none", {}, {}),
    Params("defaults", {"request_defaults": {"seed": 1}}, {"seed": 1}),
    Params(
        "overrides win, objects merge",
        {
            "request_defaults": {"seed": 1, "provider": {"a": 1, "b": 1}},
            "request_overrides": {"seed": 2, "provider": {"b": 2}},
        },
        {"seed": 2, "provider": {"a": 1, "b": 2}},
    ),
    Params(
        "reserved overrides are ignored and told",
        {"request_overrides": {"tools": [], "model": "x", "seed": 1}},
        {"seed": 1},
        ignored=("model", "tools"),
    ),
    Params(
        "parallel flag is taken out", {"request_overrides": {"parallel_tool_calls": True}}, {}, True
    ),
]


@pytest.mark.parametrize("case", PARAMS, ids=lambda case: case.id)
def test_body_fields_are_merged_and_reserved_ones_kept_out(case: Params) -> None:
    """What surecall sets itself cannot be set through body fields."""
    plan = plan_with(options=Options(**case.options))
    assert (plan.params, plan.parallel_tool_calls) == (case.params, case.parallel)
    assert plan.ignored_overrides == case.ignored


def test_tools_are_sorted_by_what_they_may_do() -> None:
    """Polling tools and tools with effects are known to the rules by name."""
    plan = plan_with(tools=(LOOK, SAVE, POLL))
    assert plan.polling_tools == {"wait"}
    assert plan.effect_tools == {"save", "wait"}
    assert plan.has_effects("save")
    assert not plan.has_effects("look")


def test_disabled_mode_drops_the_tools() -> None:
    """Nothing of the tools is left in the plan."""
    plan = plan_with(options=Options(tool_use_mode="disabled"))
    assert (plan.tools, plan.tools_allowed) == ((), False)


def test_a_request_has_the_system_text_first_and_tools_when_enabled() -> None:
    """The system text is added to each request and is no part of the history."""
    plan = plan_with(options=Options(request_overrides={"parallel_tool_calls": False}))
    request = plan.request(plan.messages, tools_enabled=True, stream=True)
    assert [message.role for message in request.messages] == ["system", "user"]
    assert request.messages[0].content == "be brief"
    assert (request.tools, request.tool_choice, request.stream) == ((LOOK, SAVE), "auto", True)
    assert request.parallel_tool_calls is False
    bare = plan.request(plan.messages, tools_enabled=False, stream=False)
    assert (bare.tools, bare.tool_choice) == ((), None)


def test_the_parallel_flag_is_not_sent_to_a_model_known_not_to_take_it() -> None:
    """The cap still holds; only the field stays out of the body."""
    plan = plan_with(
        options=Options(request_overrides={"parallel_tool_calls": False}),
        capabilities=Capabilities(supports_parallel_tools=False),
        capability_origins={"supports_parallel_tools": "model:m"},
    )
    request = plan.request(plan.messages, tools_enabled=True, stream=False)
    assert request.parallel_tool_calls is None
    assert plan.max_calls_per_turn == 1


def test_the_history_of_a_plan_is_complete() -> None:
    """A call without a result gets one before anything is sent."""
    call = ToolCall(id="x", name="look", arguments={})
    plan = plan_with(messages=(Message("assistant", "", (call,)), Message("user", "go on")))
    assert [message.role for message in plan.messages] == ["assistant", "tool", "user"]


def test_what_is_settled_is_shared_and_what_may_change_is_not() -> None:
    """A plan that somebody writes into leaves those of later runs as they were."""
    options = Options(request_overrides={"metadata": {"a": 1}})
    origins = {"request_overrides": "caller"}
    first = plan_with(options=options, origins=origins)
    print_of = first.fingerprint
    first.params["metadata"]["a"] = 2
    first.origins["max_turns"] = "nobody"
    second = plan_with(options=options, origins=origins)
    assert (second.params, second.origins) == ({"metadata": {"a": 1}}, origins)
    assert second.fingerprint == print_of
    other = plan_with(options=options, origins=origins, messages=(Message("user", "other"),))
    assert other.fingerprint != print_of


def test_equal_tools_share_what_is_settled_and_stay_their_own() -> None:
    """What somebody does to the schema of one run is not seen in another."""
    first = plan_with(tools=(ToolSpec(name="look", parameters={"type": "object"}),))
    equal = ToolSpec(name="look", parameters={"type": "object"})
    second = plan_with(tools=(equal,))
    assert second.fingerprint == first.fingerprint
    first.tools[0].parameters["required"] = ["id"]
    assert second.tools[0] is equal
    assert plan_with(tools=(equal,)).tools[0].parameters == {"type": "object"}
    changed = plan_with(tools=first.tools)
    assert changed.fingerprint != second.fingerprint


def test_options_that_are_changed_afterwards_change_no_later_run() -> None:
    """Plain options are settled once for equal values, whoever owns them."""
    extra = {"metadata": {"a": 1}}
    session = Session(model="m", transport=ScriptedTransport([]), preset=())
    first = session.plan("hi", request_overrides=extra)
    extra["metadata"]["a"] = 2
    second = session.plan("hi", request_overrides=extra)
    again = session.plan("hi", request_overrides={"metadata": {"a": 1}})
    assert [plan.params["metadata"]["a"] for plan in (first, second, again)] == [1, 2, 1]
    assert first.fingerprint == again.fingerprint != second.fingerprint
