"""Whole runs over real HTTP, in every wire format."""

from typing import Any

import pytest

import surecall
from support.family_server import FamilyServer
from surecall.base.errors import Code, ConfigError, ProviderStatusError
from surecall.base.records import RawCall, ReasoningDelta, Reply, TextDelta, Usage
from surecall.loop import replay_trace
from surecall.loop.resolve import choose_protocol
from surecall.models.config import load_config
from surecall.models.profiles import Catalog
from surecall.models.transport import ScriptedTransport
from surecall.wire import PROTOCOLS, ChatCompletions, WireProtocol, find_protocol

from .toolbox import look, save, saved

each_family = pytest.mark.parametrize("name", sorted(PROTOCOLS))
either_way = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])

ASKING = Reply(
    content="Let me look.",
    reasoning="I need to look.",
    calls=(
        RawCall("call_1", "look", {"what": "é"}),
        RawCall("call_2", "save", {"text": "kept"}),
    ),
    finish_reason="tool_calls",
    usage=Usage(10, 5, 15),
    model="m",
    id="r1",
)
DONE = Reply(content="All done.", finish_reason="stop", usage=Usage(20, 3, 23), model="m", id="r2")


async def run_against(server: FamilyServer, name: str, **arguments: Any) -> surecall.RunResult:
    """Run a prompt with both tools against the server."""
    return await surecall.run(
        "Look and save.",
        model="m",
        system="Be brief.",
        tools=[look, save],
        base_url=server.url,
        api_key="k-123",
        protocol=name,
        preset=(),
        **arguments,
    )


@each_family
@either_way
async def test_a_run_with_two_turns_works_in_every_format(name: str, stream: bool) -> None:
    """Calls run, results go back, and the answer arrives."""
    async with FamilyServer(find_protocol(name), [ASKING, DONE]) as server:
        result = await run_against(server, name, stream=stream)
    assert result.text == "All done."
    assert saved == ["kept"]
    assert result.usage == Usage(30, 8, 38)
    first, second = server.requests
    assert first.stream is second.stream is stream
    assert [tool.name for tool in first.tools] == ["look", "save"]
    assert first.messages[0].text == "Be brief."
    calls = [call for message in second.messages for call in message.tool_calls]
    assert [(c.name, c.arguments) for c in calls] == [
        ("look", {"what": "é"}),
        ("save", {"text": "kept"}),
    ]
    results = [message for message in second.messages if message.role == "tool"]
    assert [message.tool_call_id for message in results] == [call.id for call in calls]
    assert '"seen":"é"' in results[0].text
    assert [turn.defects for turn in result.trace.turns] == [(), ()]
    assert [turn.all_receipts for turn in result.trace.turns] == [(), ()]


@each_family
async def test_the_key_goes_where_the_format_has_it(name: str) -> None:
    """In one header, under the prefix of the format."""
    protocol = find_protocol(name)
    async with FamilyServer(protocol, [DONE]) as server:
        await run_against(server, name)
    (wire,) = server.wires
    ((header, value),) = protocol.render_auth("k-123").items()
    assert wire.headers[header.lower()] == value
    assert [key for key, text in wire.headers.items() if "k-123" in text] == [header.lower()]
    assert not wire.path.startswith(protocol.default_prefix)


@each_family
async def test_text_and_reasoning_are_told_as_they_arrive(name: str) -> None:
    """Listeners see the same in every format."""
    heard: list[Any] = []
    async with FamilyServer(find_protocol(name), [ASKING, DONE]) as server:
        await run_against(server, name, stream=True, on_event=heard.append)
    texts = [event.text for event in heard if isinstance(event, TextDelta)]
    thoughts = [event.text for event in heard if isinstance(event, ReasoningDelta)]
    assert "".join(texts) == "Let me look.All done."
    assert "".join(thoughts) == "I need to look."


@each_family
async def test_an_error_of_the_provider_has_its_code(name: str) -> None:
    """Whatever shape the format gives it."""
    refusal = ProviderStatusError(Code.AUTH, "Who are you?", status=401)
    async with FamilyServer(find_protocol(name), [refusal]) as server:
        with pytest.raises(ProviderStatusError) as caught:
            await run_against(server, name, fallback_retry_count=0)
    assert caught.value.code == Code.AUTH
    assert "Who are you?" in caught.value.message


@each_family
async def test_the_key_is_taken_out_of_what_the_provider_says(name: str) -> None:
    """Whichever header carried it."""
    refusal = ProviderStatusError(Code.AUTH, "The key k-1234567890 is not known.", status=401)
    async with FamilyServer(find_protocol(name), [refusal]) as server:
        session = surecall.Session(
            model="m", base_url=server.url, api_key="k-1234567890", protocol=name, preset=()
        )
        with pytest.raises(ProviderStatusError) as caught:
            await session.run("hi")
        await session.aclose()
    error = caught.value
    assert error.code == Code.AUTH
    assert "k-1234567890" not in f"{error} {error.body} {error.provider_message}"
    assert "is not known" in error.message


@each_family
@either_way
async def test_a_run_replays_from_its_trace(name: str, stream: bool) -> None:
    """The trace says in which format its replies are."""
    async with FamilyServer(find_protocol(name), [ASKING, DONE]) as server:
        result = await run_against(server, name, stream=stream)
    assert result.trace.protocol == name
    replay = replay_trace(result.trace)
    assert replay.differences == ()
    assert replay.text == "All done."


@each_family
async def test_a_run_resumes_from_its_journal(name: str) -> None:
    """Replies that were recorded in a format are read again in it."""
    journal = surecall.loop.MemoryJournal()
    failure = ProviderStatusError(Code.BAD_REQUEST, "No.", status=400)
    async with FamilyServer(find_protocol(name), [ASKING, failure, DONE]) as server:
        with pytest.raises(ProviderStatusError):
            await run_against(server, name, journal=journal, fallback_retry_count=0)
        result = await run_against(server, name, journal=journal, fallback_retry_count=0)
    assert result.text == "All done."
    assert saved == ["kept"]


async def test_another_format_is_another_request() -> None:
    """A journal of one format is not resumed in another, and old fingerprints stay."""
    plans = {
        name: surecall.Session(
            model="m", transport=ScriptedTransport([]), protocol=name, preset=()
        ).plan("hi")
        for name in PROTOCOLS
    }
    default = surecall.Session(model="m", transport=ScriptedTransport([]), preset=()).plan("hi")
    assert len({plan.fingerprint for plan in plans.values()}) == len(PROTOCOLS)
    assert default.fingerprint == plans["chat_completions"].fingerprint


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "chat_completions"),
        ({"base_url": "https://api.openai.com/v1"}, "chat_completions"),
        ({"base_url": "http://127.0.0.1:8000"}, "chat_completions"),
        ({"base_url": "https://api.anthropic.com"}, "messages"),
        ({"base_url": "https://api.anthropic.com/v1"}, "messages"),
        ({"base_url": "https://generativelanguage.googleapis.com"}, "gemini"),
        (
            {"base_url": "https://generativelanguage.googleapis.com/v1beta/openai/"},
            "chat_completions",
        ),
        ({"base_url": "http://127.0.0.1:8000", "provider": "anthropic"}, "messages"),
        (
            {"base_url": "https://api.anthropic.com", "protocol": "chat_completions"},
            "chat_completions",
        ),
        ({"base_url": "https://evil-anthropic.com"}, "chat_completions"),
    ],
)
def test_the_format_follows_from_the_settings(settings: dict[str, str], expected: str) -> None:
    """What is said wins, then what the catalog knows of the provider."""
    config = load_config(environ={}, overrides=settings, search=False)
    assert choose_protocol(None, config, Catalog.builtin()).name == expected


def test_an_unknown_format_is_refused_with_a_suggestion() -> None:
    """Before anything is sent."""
    with pytest.raises(ConfigError, match="Did you mean 'messages'") as caught:
        surecall.Session(model="m", protocol="mesages")
    assert caught.value.code == Code.UNKNOWN_PROTOCOL


class _Renamed(ChatCompletions):
    name = "ours"


async def test_a_format_of_ones_own_is_taken() -> None:
    """Any object that keeps the contract will do; its traces need it to be replayed."""
    protocol: WireProtocol = _Renamed()
    result = await surecall.run(
        "hi", model="m", transport=ScriptedTransport(["hello"]), protocol=protocol, preset=()
    )
    assert result.text == "hello"
    assert result.trace.protocol == "ours"
    assert replay_trace(result.trace, protocol=protocol).same
    with pytest.raises(ConfigError) as caught:
        replay_trace(result.trace)
    assert caught.value.code == Code.UNKNOWN_PROTOCOL


@pytest.mark.parametrize(
    ("field", "transform"),
    [
        ("message_transforms", "assistant_tool_calls_reasoning_content_empty_if_missing"),
        ("tool_transforms", "openai_tools_strip_function_descriptions"),
    ],
)
async def test_transforms_that_edit_chat_completions_are_refused_elsewhere(
    field: str, transform: str
) -> None:
    """A transform that was asked for is never left out silently."""
    options: Any = {field: [transform]}
    async with surecall.Session(
        model="m", transport=ScriptedTransport([]), protocol="messages", preset=()
    ) as session:
        with pytest.raises(ConfigError, match=transform) as caught:
            session.plan("hi", **options)
    assert caught.value.code == Code.INVALID_OPTION


async def test_a_preset_may_name_transforms_that_do_not_fit() -> None:
    """They are left out; those of calls and results work in every format."""
    asking = Reply(calls=(RawCall("call_1", "look", {}),), finish_reason="tool_calls")
    async with FamilyServer(find_protocol("messages"), [asking, DONE]) as server:
        result = await surecall.run(
            "hi",
            model="m",
            base_url=server.url,
            protocol="messages",
            preset=["default_tool_calling", "deepseek_openrouter_compat"],
            tools=[look],
            tool_result_transforms=["tool_result_compact_envelope"],
        )
    assert result.text == "All done."
    (answer,) = [m for m in server.requests[1].messages if m.role == "tool"]
    assert "warnings" not in answer.text


async def test_a_generation_inside_an_error_is_rescued_in_any_format() -> None:
    """What the model wrote is text, whatever the format of the error around it."""
    raw = """error parsing tool call: raw='<tool_call>{"name": "look", "arguments": {"what": "a"}}\
</tool_call>', err=invalid"""
    failure = ProviderStatusError(Code.BAD_REQUEST, raw, status=400)
    async with FamilyServer(find_protocol("messages"), [failure, DONE]) as server:
        result = await surecall.run(
            "hi",
            model="m",
            base_url=server.url,
            protocol="messages",
            preset=(),
            tools=[look],
            text_formats="all",
        )
    assert result.text == "All done."
    assert result.trace.turns[0].calls[0].arguments == {"what": "a"}
    assert replay_trace(result.trace).same


THREE_READS = Reply(
    content=None,
    calls=tuple(RawCall(f"call_{n}", "look", {"what": str(n)}) for n in range(3)),
    finish_reason="tool_calls",
    model="m",
    id="r1",
)


@pytest.mark.parametrize("provider", [entry.id for entry in Catalog.builtin().providers])
@either_way
async def test_every_call_of_a_reply_runs_at_every_provider(provider: str, stream: bool) -> None:
    """No default asks for one call or drops the others, whoever the provider is."""
    entry = Catalog.builtin().find_provider(provider)
    assert entry is not None
    protocol = find_protocol(entry.protocol or "chat_completions")
    async with FamilyServer(protocol, [THREE_READS, DONE]) as server:
        result = await surecall.run(
            "Look three times.",
            model="m",
            tools=[look],
            base_url=server.url,
            api_key="k-123",
            provider=provider,
            stream=stream,
        )
    assert [call.arguments for call in result.calls] == [{"what": str(n)} for n in range(3)]
    assert [answer.ok for answer in result.results] == [True] * 3
    assert server.requests[0].parallel_tool_calls is None
    assert result.problems == ()
