"""Sessions and the functions around them."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import surecall
from surecall import Session, run_sync
from surecall.base.errors import Code, ConfigError, ProviderStatusError, RequestError
from surecall.base.records import Message, RunEnded
from surecall.base.redaction import Secret
from surecall.models.config import Config
from surecall.models.transport import ScriptedReply, ScriptedTransport
from surecall.tools import ApprovalDecision, ApprovalRequest

from .toolbox import assistant, look, save, saved, tool_call


def session_of(replies: list[Any], **arguments: Any) -> tuple[Session, ScriptedTransport]:
    """Return a session over a script."""
    transport = ScriptedTransport(replies)
    arguments.setdefault("model", "m")
    return Session(preset=(), transport=transport, **arguments), transport


async def test_a_session_keeps_its_history_between_runs() -> None:
    """The second run goes on where the first ended; the system text is never stored."""
    session, transport = session_of(["one", "two"], system="be brief")
    await session.run("first")
    result = await session.run("second")
    sent = [(m["role"], m["content"]) for m in transport.requests[1].body["messages"]]
    assert sent == [
        ("system", "be brief"),
        ("user", "first"),
        ("assistant", "one"),
        ("user", "second"),
    ]
    assert session.history == result.history
    assert [message.role for message in session.history] == ["user", "assistant"] * 2


async def test_a_failed_run_leaves_the_history_as_it_was() -> None:
    """What led nowhere is in the error, not in the session."""
    refused = ScriptedReply(status=400, message="no")
    session, _ = session_of(["one", assistant(None, tool_call("look")), refused], tools=[look])
    before = (await session.run("first")).history
    with pytest.raises(ProviderStatusError) as caught:
        await session.run("second")
    assert session.history == before
    assert len(caught.value.history) == 5


async def test_ids_stay_unique_over_the_runs_of_a_session() -> None:
    """A model that uses the same id in each run gets a new one for the second call."""
    call = assistant(None, tool_call("look", id="x"))
    session, transport = session_of([call, "one", call, "two"], tools=[look])
    await session.run("first")
    await session.run("second")
    ids = [
        entry["id"]
        for message in transport.requests[-1].body["messages"]
        for entry in message.get("tool_calls", ())
    ]
    assert ids == ["x", "x__2"]


PROMPTS = [
    pytest.param("hi", [Message("user", "hi")], id="text"),
    pytest.param(Message("developer", "hi"), [Message("developer", "hi")], id="message"),
    pytest.param({"role": "user", "content": "hi"}, [Message("user", "hi")], id="mapping"),
    pytest.param(["a", "b"], [Message("user", "a"), Message("user", "b")], id="several"),
    pytest.param(iter(["a"]), [Message("user", "a")], id="iterator"),
    pytest.param(" \n", [], id="blank"),
]


@pytest.mark.parametrize(("prompt", "messages"), PROMPTS)
def test_a_prompt_may_be_text_messages_or_several(prompt: Any, messages: list[Message]) -> None:
    """Whatever is given is turned into messages behind the history."""
    session, _ = session_of([], history=["before"])
    assert list(session.plan(prompt).messages) == [Message("user", "before"), *messages]


async def test_options_of_a_run_win_over_those_of_the_session() -> None:
    """They hold for that run only, and the plan says where they came from."""
    session, _ = session_of([], max_turns=3, tools=[look, save], tool_denylist=["save"])
    assert session.plan("x").options.max_turns == 3
    plan = session.plan("x", max_turns=4)
    assert (plan.options.max_turns, plan.origins["max_turns"]) == (4, "caller")
    assert [tool.name for tool in plan.tools] == ["look"]
    assert session.plan("x").options.max_turns == 3


@pytest.mark.parametrize(
    ("arguments", "kind", "code"),
    [
        pytest.param({"max_turn": 3}, ConfigError, Code.UNKNOWN_OPTION, id="unknown option"),
        pytest.param({"preset": "nope"}, ConfigError, Code.UNKNOWN_PRESET, id="unknown preset"),
        pytest.param({"model": None}, RequestError, Code.INVALID_OPTION, id="no model"),
        pytest.param(
            {"tool_allowlist": ["nope"]}, ConfigError, Code.INVALID_OPTION, id="unknown tool"
        ),
        pytest.param(
            {"capabilities": {"streming": True}},
            ConfigError,
            Code.UNKNOWN_OPTION,
            id="unknown capability",
        ),
    ],
)
async def test_a_mistake_is_told_before_anything_is_sent(
    arguments: dict[str, Any], kind: type[ConfigError], code: str
) -> None:
    """Nothing unknown is ignored."""
    transport = ScriptedTransport(["x"])
    given: dict[str, Any] = {"model": "m", "config": Config(), "transport": transport} | arguments
    with pytest.raises(kind) as caught:
        await surecall.run("hi", **given)
    assert caught.value.code == code
    assert transport.requests == []


async def test_unknown_transforms_are_told_before_anything_is_sent() -> None:
    """A transform that does not exist is an error, not a no-op."""
    session, transport = session_of(["x"], message_transforms=["nope"])
    with pytest.raises(ConfigError) as caught:
        await session.run("hi")
    assert (caught.value.code, transport.requests) == (Code.UNKNOWN_TRANSFORM, [])


async def test_without_an_address_there_is_a_clear_error() -> None:
    """The error says what to set."""
    with pytest.raises(ConfigError, match="openrouter:vendor"):
        await surecall.run("hi", model="m", config=Config())


async def test_a_provider_that_is_nearly_spelt_right_is_suggested() -> None:
    """A typo before the colon is taken for what it is."""
    with pytest.raises(ConfigError, match=r"Did you mean openrouter:vendor/some:free\?"):
        await surecall.run("hi", model="opnrouter:vendor/some:free", config=Config())


async def test_a_session_closes_only_what_it_opened() -> None:
    """A transport of the caller stays open."""

    class Watched(ScriptedTransport):
        closed = 0

        async def aclose(self) -> None:
            self.closed += 1

    transport = Watched(["x"])
    async with Session(model="m", preset=(), transport=transport) as session:
        await session.run("hi")
    assert transport.closed == 0
    async with Session(model="m", config=Config(), base_url="http://127.0.0.1:9/v1") as session:
        session.plan("hi")
    await session.aclose()


def test_a_key_given_as_text_is_never_shown() -> None:
    """Neither the session nor its settings print it."""
    session = Session(model="m", config=Config(), api_key="sk-very-secret-key", base_url="http://x")
    shown = f"{session!r} {vars(session)!r} {session._config!r}"
    assert "very-secret" not in shown
    assert session._config.api_key == Secret("sk-very-secret-key")


def test_run_sync_runs_without_an_event_loop() -> None:
    """The same result from code that is not asynchronous."""
    result = run_sync("hi", model="m", preset=(), transport=ScriptedTransport(["x"]))
    assert result.text == "x"


async def test_run_sync_refuses_to_block_a_running_loop() -> None:
    """It names what to use instead."""
    with pytest.raises(RuntimeError, match=r"await surecall\.run"):
        run_sync("hi", model="m", transport=ScriptedTransport(["x"]))
    assert asyncio.get_running_loop().is_running()


async def test_a_journal_may_be_a_path_and_a_run_may_have_its_own_id(tmp_path: Path) -> None:
    """`journal` and `run_id` go to the run, everything else to the session."""
    path = tmp_path / "j"
    call = assistant(None, tool_call("save", {"text": "a"}))
    first = await surecall.run(
        "hi",
        model="m",
        preset=(),
        tools=[save],
        transport=ScriptedTransport([call, "x"]),
        journal=str(path),
        run_id="mine",
    )
    again = await surecall.run(
        "hi",
        model="m",
        preset=(),
        tools=[save],
        transport=ScriptedTransport([]),
        journal=surecall.FileJournal(path),
    )
    assert (first.run_id, again.run_id, saved) == ("mine", "mine", ["a"])


async def test_both_listeners_are_told() -> None:
    """The session's and the run's own listener hear the same events."""
    mine: list[Any] = []
    ours: list[Any] = []
    session, _ = session_of(["x"], on_event=ours.append)
    await session.run("hi", on_event=mine.append)
    assert mine == ours
    assert isinstance(mine[-1], RunEnded)


async def test_an_approver_is_asked_with_the_arguments_that_run() -> None:
    """A refusal reaches the model and nothing is run."""

    async def deny(request: ApprovalRequest) -> ApprovalDecision:
        assert request.arguments == {"text": "a"}
        return ApprovalDecision(False, "not today")

    call = assistant(None, tool_call("save", {"text": "a"}))
    session, transport = session_of([call, "x"], tools=[save], approver=deny)
    result = await session.run("hi")
    assert result.results[0].envelope.error_codes == (Code.APPROVAL_DENIED,)
    assert "not today" in transport.requests[1].body["messages"][-1]["content"]
    assert saved == []


@pytest.mark.parametrize("protocol", ["messages", "responses", "gemini"])
async def test_an_embedded_model_speaks_chat_completions_only(protocol: str) -> None:
    """The run does not begin: the weights are neither looked for nor loaded."""
    with pytest.raises(RequestError) as caught:
        await surecall.run("Hi", model="embedded:smollm2-135m", protocol=protocol)
    assert caught.value.code == Code.CAPABILITY_UNSUPPORTED
    assert f"supports chat_completions, not {protocol}" in caught.value.message
    assert "Leave the protocol out" in str(caught.value.hint)


async def test_common_parameters_are_arguments() -> None:
    """They are sent with every request; those of a run win over those of the session."""
    session, transport = session_of(["one", "two"], temperature=0.5, max_tokens=20, stop=["\n"])
    await session.run("first")
    await session.run("second", temperature=0.0, seed=7, request_overrides={"top_p": 0.9})
    names = ("temperature", "max_tokens", "stop", "seed", "top_p")
    first, second = (
        {name: request.body[name] for name in names if name in request.body}
        for request in transport.requests
    )
    assert first == {"temperature": 0.5, "max_tokens": 20, "stop": ["\n"]}
    assert second == {
        "temperature": 0.0,
        "max_tokens": 20,
        "stop": ["\n"],
        "seed": 7,
        "top_p": 0.9,
    }


def test_headers_and_timeout_are_settings_of_the_session() -> None:
    """They reach the connection, and are shown as given by the caller."""
    session = Session(
        model="m", base_url="http://127.0.0.1:9/v1", headers={"x-team": "blue"}, timeout=3
    )
    assert session._config.headers == {"x-team": "blue"}
    assert session._config.deadlines["total_s"] == 3
