"""Simulated models: their files, their lapses, and what makes them recover."""

from dataclasses import dataclass
from typing import Any

import pytest

import surecall
from support.workspace import Workspace
from surecall.base.errors import ConfigError
from surecall.base.records import Message
from surecall.faults import Behaviour, FaultyProvider, SimulatedTransport, find_behaviour, zoo
from surecall.faults.behaviours import parse_behaviour
from surecall.wire import PROTOCOLS

from .conversations import ask, failed, message_of, request_of, succeeded

SAVE_A = 'call save with {"text": "a", "tags": ["b"]}'


def behaviour(**fields: Any) -> Behaviour:
    """Return a simulated model with one lapse that always shows."""
    about = {"name": "x", "models": [], "describes": "x", "source": "x"}
    return parse_behaviour(about | fields)


def lapse(**fields: Any) -> Behaviour:
    """Return a simulated model with one lapse."""
    return behaviour(lapses=[fields])


def arguments_of(provider: FaultyProvider, *messages: Message | str) -> str | None:
    """Return the arguments of the call a provider makes next, if it makes one."""
    calls = message_of(ask(provider, request_of(SAVE_A, *messages))).get("tool_calls")
    return calls[0]["function"]["arguments"] if calls else None


CLEAN = '{"text":"a","tags":["b"]}'


@dataclass(frozen=True)
class Recovery:
    """An error that ends a lapse, and one that does not."""

    id: str
    recovers: str
    enough: dict[str, Any]
    too_little: dict[str, Any] | None


RECOVERIES = [
    Recovery("any error", "told", {"code": "ARGUMENTS_INVALID"}, None),
    Recovery(
        "a hint",
        "hint",
        {"code": "ARGUMENTS_INVALID", "message": "no", "hint": "Send a list."},
        {"code": "ARGUMENTS_INVALID", "message": "no"},
    ),
    Recovery(
        "the path of the field",
        "field",
        {"code": "ARGUMENTS_INVALID", "message": "no", "path": "/tags"},
        {"code": "ARGUMENTS_INVALID", "message": "The arguments are wrong."},
    ),
    Recovery(
        "the name of the field",
        "field",
        {"code": "ARGUMENTS_INVALID", "message": "'text' must be text."},
        {"code": "ARGUMENTS_INVALID", "message": "Something must be text."},
    ),
    Recovery(
        "the limit",
        "limit",
        {"code": "ARGUMENTS_INVALID", "message": "The limit is 300 bytes."},
        {"code": "ARGUMENTS_INVALID", "message": "Too much."},
    ),
]


@pytest.mark.parametrize("case", RECOVERIES, ids=lambda case: case.id)
def test_a_lapse_ends_when_an_error_is_clear_enough(case: Recovery) -> None:
    """An error that says what is needed is followed by a clean call, any other by the same slip."""
    model = lapse(fault="arguments_missing_field", recovers=case.recovers)
    provider = FaultyProvider(behaviour=model)
    assert arguments_of(provider) == '{"tags":["b"]}'
    assert arguments_of(provider, *failed("save", **case.enough)) == CLEAN
    if case.too_little is not None:
        assert arguments_of(provider, *failed("save", **case.too_little)) == '{"tags":["b"]}'


def test_a_lapse_without_recovery_comes_every_time() -> None:
    """Some mistakes are not cured by words."""
    provider = FaultyProvider(behaviour=lapse(fault="arguments_fenced", recovers="never"))
    error = failed("save", code="ARGUMENTS_JSON_PARSE_ERROR", hint="Send JSON.", path="/text")
    assert arguments_of(provider, *error) == f"```json\n{CLEAN}\n```"


@pytest.mark.parametrize(
    ("error", "repeats"),
    [
        ({"code": "ARGUMENTS_TOO_LARGE", "message": "Too large."}, True),
        ({"code": "ARGUMENTS_TOO_LARGE", "message": "The limit is 300 bytes."}, False),
    ],
)
async def test_a_call_that_was_too_large_is_shortened_only_when_the_limit_is_named(
    error: dict[str, Any], repeats: bool
) -> None:
    """The bottleneck of the published study: a model must read how much is allowed."""
    tools = Workspace().tools.specs()
    system = Message("system", "scenario=long_arguments_guard")
    read = succeeded("state_get")
    provider = FaultyProvider(behaviour=find_behaviour("stubborn"), seed=1)
    first = request_of(system, "workspace_id=w", *read, tools=tuple(tools))
    long_call = message_of(ask(provider, first))["tool_calls"][0]["function"]["arguments"]
    assert len(long_call) > 300
    limited = request_of(
        system, "workspace_id=w", *read, *failed("state_patch", **error), tools=tuple(tools)
    )
    next_call = message_of(ask(provider, limited))["tool_calls"][0]["function"]["arguments"]
    assert (len(next_call) > 300) == repeats


def test_a_lapse_is_limited_to_its_tool() -> None:
    """A call of another tool in the same reply stays clean."""
    model = lapse(fault="arguments_fenced", tool="save", recovers="never")
    text = f"call look with {{}} and {SAVE_A}"
    calls = message_of(ask(FaultyProvider(behaviour=model), request_of(text)))["tool_calls"]
    assert [call["function"]["arguments"][:3] for call in calls] == ["{}", "```"]


@pytest.mark.parametrize(
    ("fields", "params", "shows"),
    [
        ({"min_temperature": 1.4}, {"temperature": 1.5}, True),
        ({"min_temperature": 1.4}, {"temperature": 1}, False),
        ({"min_temperature": 1.4}, {}, False),
        ({"params": {"top_p": 0.8}}, {"top_p": 0.8}, True),
        ({"params": {"top_p": 0.8}}, {"top_p": 0.9}, False),
        ({"below_tokens": 64}, {"max_tokens": 32}, True),
        ({"below_tokens": 64}, {"max_completion_tokens": 64}, False),
    ],
)
def test_a_lapse_may_depend_on_the_parameters_of_the_request(
    fields: dict[str, Any], params: dict[str, Any], shows: bool
) -> None:
    """Some models fail only when hot, or only when they may not say much."""
    model = lapse(fault="arguments_fenced", recovers="never", **fields)
    answer = ask(FaultyProvider(behaviour=model), request_of(SAVE_A, params=params))
    arguments = message_of(answer)["tool_calls"][0]["function"]["arguments"]
    assert arguments.startswith("```") == shows


def test_a_model_may_give_up() -> None:
    """After so many errors in a row it answers without having done the work."""
    provider = FaultyProvider(behaviour=behaviour(gives_up_after_errors=2))
    one, two = failed("save", code="A"), failed("save", code="BB")
    assert arguments_of(provider, *one) == CLEAN
    assert arguments_of(provider, *one, *two) is None


@pytest.mark.parametrize(("choice", "calls"), [(None, False), ("required", True)])
def test_a_skipped_call_can_be_forced(choice: str | None, calls: bool) -> None:
    """A model that talks in place of calling calls when it must."""
    model = lapse(habit="skip_call", recovers="forced")
    answer = ask(FaultyProvider(behaviour=model), request_of(SAVE_A, tool_choice=choice))
    assert ("tool_calls" in message_of(answer)) == calls


def test_an_empty_answer_is_given_once() -> None:
    """Asked again by the user, the model answers."""
    model = lapse(fault="final_empty", when="final", recovers="asked")
    provider = FaultyProvider(behaviour=model)
    done = request_of(SAVE_A, *succeeded("save"))
    assert message_of(ask(provider, done))["content"] == ""
    again = request_of(SAVE_A, *succeeded("save"), "Please answer.")
    assert message_of(ask(provider, again))["content"] == "Done."


def test_a_small_limit_can_be_spent_on_reasoning() -> None:
    """Nothing is left for the answer, and the finish says so."""
    answer = ask(
        FaultyProvider(behaviour=find_behaviour("deep-thinker")),
        request_of("hi", tools=(), params={"max_tokens": 32}),
    )
    assert message_of(answer)["content"] == ""
    assert b'"finish_reason":"length"' in answer.body


def test_every_file_of_the_zoo_says_whom_it_follows() -> None:
    """Each has a description, a source and a name of its own; no rates of success."""
    models = zoo()
    assert len(models) >= 12
    assert len({model.name for model in models}) == len(models)
    for model in models:
        assert model.describes.endswith(".")
        assert "vibe_tavern" in model.source
        assert all(0 < item.probability <= 1 for item in model.lapses)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("model", zoo(), ids=lambda model: model.name)
async def test_a_simulated_model_is_the_same_for_the_same_seed(
    model: Behaviour, protocol: str
) -> None:
    """Two runs with one seed end alike and are sent the same, over every wire format."""

    async def play() -> tuple[str, list[str]]:
        workspace = Workspace()
        transport = SimulatedTransport(model, seed=3)
        try:
            result = await surecall.run(
                "workspace_id=",
                system="scenario=happy_path",
                model="m",
                tools=workspace.tools,
                transport=transport,
                protocol=protocol,
                preset=(),
                text_formats="all",
            )
        except surecall.SurecallError as error:
            return error.code, []
        return result.text, [str(call.raw) for call in result.calls]

    first = await play()
    assert first == await play()
    assert model.name != "steady" or first[0] == "Done."


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"lapses": [{"fault": "no_such_fault"}]}, "no fault 'no_such_fault'"),
        ({"lapses": [{}]}, "either a fault or a habit"),
        ({"lapses": [{"habit": "sing"}]}, "sing"),
        ({"lapses": [{"fault": "reset", "probability": 2}]}, "between 0 and 1"),
        ({"traits": ["nope"]}, "no fault 'nope'"),
        ({"success_rate": 0.9}, "success_rate"),
    ],
)
def test_a_file_with_a_mistake_is_refused(fields: dict[str, Any], problem: str) -> None:
    """What is wrong is said, also a rate of success, which no behaviour has."""
    with pytest.raises(ConfigError, match=problem):
        behaviour(**fields)


def test_an_unknown_model_is_answered_with_the_closest() -> None:
    """A misspelt name is refused, with the name that was probably meant."""
    with pytest.raises(ConfigError, match="Did you mean 'stubborn'"):
        find_behaviour("stuborn")
