"""Runs that ask first, runs that use what was found out, and runs that do neither."""

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import surecall
from support.capability_upstream import CapabilityUpstream, Truth
from surecall.base.errors import ConfigError, RunLimitError
from surecall.loop.probing import FACTS_FILE, ProbedModel, fact_address
from surecall.models.config import Config, load_config
from surecall.models.probe import FactKey, FactStore, Finding
from surecall.models.transport import ScriptedTransport, assistant, tool_call
from surecall.wire import ChatCompletions


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep facts where no other test sees them."""
    monkeypatch.setenv("SURECALL_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("SURECALL_PROBE", raising=False)


@surecall.tool(effect="read")
def weather(city: str) -> dict[str, str]:
    """Tell the weather of a city."""
    return {"city": city, "sky": "clear"}


async def ask(upstream: CapabilityUpstream, **settings: Any) -> surecall.RunResult:
    """Run one question with a tool."""
    return await surecall.run(
        "Say one word.", model="m", base_url=upstream.url, tools=[weather], **settings
    )


def learn(tmp_path: Path, address: str, **fields: Any) -> None:
    """Store facts as `surecall probe` would."""
    finding = Finding(question="q", verdict="yes", fields=fields, evidence="e")
    store = FactStore(tmp_path / FACTS_FILE)
    store.save(FactKey.of(address, "chat_completions", "m"), [finding])


async def test_a_library_never_asks_unasked() -> None:
    """By default only the run's own request is sent."""
    async with CapabilityUpstream() as upstream:
        result = await ask(upstream)
        assert upstream.calls == 1
    assert result.trace.probe is None
    assert result.trace.capability_origins["supports_tool_use"] == "default"


async def test_auto_asks_before_the_first_run_and_not_before_the_second() -> None:
    """What was found out is in the trace, and is remembered for other sessions."""
    async with CapabilityUpstream() as upstream:
        first = await ask(upstream, probe="auto")
        assert upstream.calls == 2
        second = await ask(upstream, probe="auto")
        assert upstream.calls == 3
    note = first.trace.probe
    assert note is not None
    assert (note["ok"], note["source"], note["requests"]) == (True, "asked", 1)
    assert note["findings"] == {"tools": "yes", "tools_seen": "yes"}
    assert note["error"] is None
    origin = f"probe:{note['asked_at'][:10]}"
    assert first.trace.capability_origins["supports_tool_use"] == origin
    assert second.trace.capability_origins["supports_tool_use"] == origin
    assert second.trace.probe is None
    assert first.trace.strategy["mode"] == "native"


async def test_a_model_that_is_not_shown_tools_is_taught_them() -> None:
    """Tools that a server drops are explained in the prompt instead."""
    async with CapabilityUpstream(Truth(tools="dropped")) as upstream:
        result = await ask(upstream, probe="auto")
        last = upstream.bodies[-1]
    assert result.trace.capabilities["supports_tool_use"] is False
    assert result.trace.strategy["mode"] == "taught"
    assert "tools" not in last
    assert "weather" in json.dumps(last["messages"])


async def test_calls_as_text_are_read_once_a_probe_has_seen_them() -> None:
    """A server that does not parse calls is used with text formats on."""
    async with CapabilityUpstream(Truth(tools="text")) as upstream:
        result = await ask(upstream, probe="auto")
    assert result.trace.capabilities["text_formats"] is True


@pytest.mark.parametrize(
    "settings",
    [
        {"capabilities": {"supports_tool_use": True}},
        {"provider": "openai"},
        {"tool_use_mode": "disabled"},
        {"tool_prompting": "native"},
    ],
    ids=["caller", "catalog", "no-tools", "mode-given"],
)
async def test_auto_does_not_ask_what_is_already_said(settings: dict[str, Any]) -> None:
    """The caller, the catalog, or a run without tools leave nothing to ask."""
    async with CapabilityUpstream() as upstream:
        result = await ask(upstream, probe="auto", **settings)
        assert upstream.calls == 1
    assert result.trace.probe is None


async def test_the_caller_wins_over_a_probe_and_a_probe_over_the_catalog(tmp_path: Path) -> None:
    """Stored facts are used without asking, also when asking is off."""
    async with CapabilityUpstream() as upstream:
        learn(tmp_path, upstream.url + "/v1", json_schema=False, grammar=True, streaming=False)
        result = await ask(upstream, provider="openai", capabilities={"streaming": True})
    origins = result.trace.capability_origins
    assert result.trace.capabilities["json_schema"] is False
    assert origins["json_schema"].startswith("probe:20")
    assert origins["streaming"] == "override"
    assert origins["json_object"] == "provider:openai"
    assert result.trace.capabilities["grammar"] is True


async def test_a_probe_that_fails_does_not_fail_the_run() -> None:
    """The run goes on with the defaults, and its trace says what happened."""
    truth = Truth(failures={1: 500, 2: 500})
    async with CapabilityUpstream(truth) as upstream:
        result = await ask(upstream, probe="auto", config=quiet_config())
    assert result.text == "Very well."
    note = result.trace.probe
    assert note is not None
    assert note["ok"] is False
    assert note["error"]["code"] == "UPSTREAM_5XX"
    assert result.trace.capability_origins["supports_tool_use"] == "default"


async def test_a_probe_takes_no_more_time_than_its_run_has() -> None:
    """The deadline of a run holds from the first question on."""
    async with CapabilityUpstream(Truth(delay_s=2)) as upstream:
        with pytest.raises(RunLimitError, match="DEADLINE_EXCEEDED") as caught:
            await ask(upstream, probe="auto", deadline_s=0.05)
    assert caught.value.trace is not None


def quiet_config() -> Config:
    """Return settings without retries."""
    return load_config(overrides={"retry.max_retries": 0}, search=False)


async def test_one_session_asks_once() -> None:
    """Also when the probe found nothing out."""
    truth = Truth(failures={1: 500, 2: 500})
    async with (
        CapabilityUpstream(truth) as upstream,
        surecall.Session(
            model="m", base_url=upstream.url, tools=[weather], probe="auto", config=quiet_config()
        ) as session,
    ):
        await session.run("Say one word.")
        asked = upstream.calls
        await session.run("Say one word.")
        assert upstream.calls == asked + 1


async def test_a_transport_of_ones_own_is_asked_for_the_session_only(tmp_path: Path) -> None:
    """Without an address nothing is stored."""
    call = assistant(None, tool_call("surecall_probe_echo", {"text": "ping"}))
    transport = ScriptedTransport([call, "Fine."])
    result = await surecall.run(
        "How is it?", model="m", transport=transport, tools=[weather], probe="auto"
    )
    assert result.text == "Fine."
    assert result.trace.probe is not None
    assert result.trace.probe["ok"] is True
    assert not (tmp_path / FACTS_FILE).exists()


async def test_the_setting_switches_it_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable is as good as an argument."""
    monkeypatch.setenv("SURECALL_PROBE", "auto")
    async with CapabilityUpstream() as upstream:
        result = await ask(upstream)
    assert result.trace.probe is not None


def test_another_value_is_refused() -> None:
    """There is nothing between asking and not asking."""
    with pytest.raises(ConfigError) as caught:
        surecall.Session(model="m", probe="always")  # pyright: ignore[reportArgumentType]
    assert caught.value.code == "INVALID_CONFIG"


async def test_a_run_can_be_resumed_after_the_same_was_found_out_anew(tmp_path: Path) -> None:
    """The date of a probe is no part of the fingerprint; what it found out is."""
    fingerprints: list[str] = []
    for day, found in ((0.0, True), (86400.0, True), (0.0, False)):
        clock_now = time.time() - day
        store = FactStore(tmp_path / FACTS_FILE, clock=lambda now=clock_now: now)
        finding = Finding(question="q", verdict="yes", fields={"grammar": found}, evidence="e")
        store.save(FactKey("http://127.0.0.1:9/v1", "chat_completions", "m"), [finding])
        session = surecall.Session(model="m", base_url="http://127.0.0.1:9", tools=[weather])
        fingerprints.append(session.plan("Hello.").fingerprint)
    assert fingerprints[0] == fingerprints[1]
    assert fingerprints[0] != fingerprints[2]


def test_damaged_facts_do_not_keep_a_session_from_working(tmp_path: Path) -> None:
    """A later version's file is left alone and the facts in it are not used."""
    learn(tmp_path, "http://127.0.0.1:9/v1", grammar=True)
    with closing(sqlite3.connect(tmp_path / FACTS_FILE)) as database:
        database.execute("PRAGMA user_version = 99")
    session = surecall.Session(model="m", base_url="http://127.0.0.1:9", tools=[weather])
    assert session.plan("Hello.").capabilities.grammar is False


@pytest.mark.parametrize(
    ("values", "address"),
    [
        ({"model": "m", "base_url": "http://h:1"}, "http://h:1/v1"),
        ({"model": "m", "base_url": "http://h:1/api/v3"}, "http://h:1/api/v3"),
        ({"model": "embedded:smollm2-135m"}, "embedded"),
        ({"model": "m"}, ""),
    ],
)
def test_facts_are_kept_for_the_place_requests_go_to(values: dict[str, Any], address: str) -> None:
    """The same provider written in two ways is one place."""
    config = load_config(overrides=values, search=False, environ={})
    assert fact_address(config, ChatCompletions()) == address


@pytest.mark.parametrize(
    ("values", "asks"),
    [
        ({"model": "m"}, False),
        ({"model": "m", "probe": "auto"}, True),
        ({"model": "embedded:x.gguf"}, True),
        ({"model": "embedded:x.gguf", "probe": "off"}, False),
    ],
)
def test_embedded_models_are_asked_by_default(values: dict[str, Any], asks: bool) -> None:
    """They cost nothing but time; a provider is only asked when someone says so."""
    config = load_config(overrides=values, search=False, environ={})
    assert ProbedModel(config, ChatCompletions()).asks is asks


class Clock:
    """A clock for the session's facts that a test sets."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = time.time()
        monkeypatch.setattr("surecall.loop.probing.time", self)

    def time(self) -> float:
        """Tell the time."""
        return self.now


WEEK_S = 7 * 24 * 3600.0


async def test_a_session_asks_again_when_its_facts_have_expired(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was asked for this session is believed as long as any other fact."""
    clock = Clock(monkeypatch)
    async with (
        CapabilityUpstream(Truth(tools="dropped")) as upstream,
        surecall.Session(
            model="m", base_url=upstream.url, tools=[weather], probe="auto"
        ) as session,
    ):
        await session.run("Say one word.")
        asked = upstream.calls
        clock.now += WEEK_S - 10
        known = session.plan("Say one word.")
        assert known.mode == "taught"
        assert known.probe is not None
        await session.run("Say one word.")
        assert upstream.calls == asked + 1
        clock.now += 20
        forgotten = session.plan("Say one word.")
        assert forgotten.capability_origins["supports_tool_use"] == "default"
        assert (forgotten.mode, forgotten.probe) == ("native", None)
        upstream.truth = Truth()
        result = await session.run("Say one word.")
        assert result.trace.strategy["mode"] == "native"
        assert result.trace.capability_origins["supports_tool_use"].startswith("probe:")
        assert result.trace.probe is not None
        assert result.trace.probe["source"] == "asked"


async def test_facts_without_a_store_expire_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A transport of one's own has no address; its facts live in the session, and not for ever."""
    clock = Clock(monkeypatch)
    call = assistant(None, tool_call("surecall_probe_echo", {"text": "ping"}))
    transport = ScriptedTransport([call, "One.", "Two.", call, "Three."])
    async with surecall.Session(
        model="m", transport=transport, tools=[weather], probe="auto"
    ) as session:
        await session.run("Say one word.")
        second = await session.run("Say one word.")
        assert second.trace.capability_origins["supports_tool_use"].startswith("probe:")
        clock.now += 3650 * 24 * 3600.0
        assert session.plan("Hello.").capability_origins["supports_tool_use"] == "default"
        assert (await session.run("Say one word.")).text == "Three."


def test_stored_facts_expire_inside_a_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each at its own time; what another session found out since then is taken up."""
    clock = Clock(monkeypatch)
    store = FactStore(tmp_path / FACTS_FILE, clock=clock.time)
    key = FactKey("http://127.0.0.1:9/v1", "chat_completions", "m")

    def find_out(**fields: Any) -> None:
        store.save(key, [Finding(question="q", verdict="yes", fields=fields, evidence="e")])

    find_out(grammar=True)
    clock.now += 1000
    find_out(json_schema=True)
    session = surecall.Session(model="m", base_url="http://127.0.0.1:9", tools=[weather])

    def known() -> tuple[bool, bool]:
        capabilities = session.plan("Hello.").capabilities
        return capabilities.grammar, capabilities.json_schema

    assert known() == (True, True)
    clock.now += WEEK_S - 1000
    assert known() == (False, True)
    find_out(grammar=True)
    clock.now += 1000
    assert known() == (True, False)
    clock.now += WEEK_S
    assert known() == (False, False)
