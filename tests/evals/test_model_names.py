"""Who a name stands for, and the door that is opened to it."""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from support.completion_server import CompletionServer
from support.eval_fakes import ORIGINAL_PROFILES
from surecall.base.errors import Code, ConfigError
from surecall.base.records import ModelRequest, WireRequest
from surecall.evals.cases import Contender, Ideal, IdealCall, close_transports, parse_price
from surecall.evals.matrix import Axes, build_matrix
from surecall.evals.models import (
    CaseOracle,
    TransportPool,
    find_contenders,
    open_transport,
    simulate_catalog,
)
from surecall.evals.records import Cell, Unit
from surecall.evals.scenarios import StateSuite
from surecall.evals.strategies import settle
from surecall.evals.trial import run_trial
from surecall.faults import FAULTS, CallTools, PlannedCall, Say
from surecall.models.config import load_config
from surecall.models.profiles import Catalog
from surecall.models.transport import EmbeddedTransport, HttpTransport

STATE = StateSuite()


def only(expression: str, **arguments: Any) -> Contender:
    """Return the one contender an expression names."""
    (found,) = find_contenders(expression, **arguments)
    return found


def labels(expression: str, **arguments: Any) -> list[str]:
    """Return the labels of those an expression names."""
    return [item.label for item in find_contenders(expression, **arguments)]


def unit(scenario: str, seed: int = 1) -> Unit:
    """Return a unit of the suite `state`."""
    return Unit(index=0, cell=Cell(model="m", scenario=scenario), seed=seed)


# names


def test_models_in_this_process_are_named_by_weights_or_file() -> None:
    """The name is the label; what the catalog knows of it are its tags."""
    known = only("embedded:smollm2-135m")
    assert (known.model, known.kind, known.provider) == (
        "embedded:smollm2-135m",
        "embedded",
        "embedded",
    )
    assert "local" in known.tags
    assert only("embedded:./Own.gguf").model == "embedded:./Own.gguf"


def test_simulated_models_are_named_after_the_zoo() -> None:
    """They are marked as simulated, and no address belongs to them."""
    steady = only("zoo:steady")
    assert (steady.kind, steady.simulated, steady.base_url) == ("simulated", True, None)
    assert labels("zoo:tag*") == ["zoo:tag-writer", "zoo:tags-and-thoughts"]
    assert only("faults:arguments_python").model == "faults:arguments_python"


@pytest.mark.parametrize("name", ["zoo:steady", "faults:arguments_python", "gpt-5", "a:b"])
def test_an_address_behind_a_name_wins(name: str) -> None:
    """`faults serve` knows simulated models by name, and is asked for them like any server."""
    found = only(f"{name}@http://127.0.0.1:8099/v1")
    assert (found.model, found.base_url) == (name, "http://127.0.0.1:8099/v1")
    assert not found.simulated


def test_the_whole_catalog_can_be_simulated() -> None:
    """Every model of the original experiment has a behaviour, and a label that says simulated."""
    found = find_contenders("zoo:catalog")
    known = [entry.id for entry in Catalog.builtin().models if not entry.id.startswith("embedded:")]
    assert [item.model for item in found] == known
    assert [item.label for item in found] == [f"simulated:{name}" for name in known]
    assert all(item.simulated and item.behaviour for item in found)
    rows = build_matrix(Axes(profiles=ORIGINAL_PROFILES), [STATE], found).describe()["rows"]
    assert len(rows) == 29
    one = only("simulated:x-ai/grok-4.1-fast")
    assert (one.behaviour, one.provider) == ("slow-and-strict", "openrouter")


def test_catalog_models_can_be_left_out_again() -> None:
    """Labels, tags and globs exclude."""
    left = labels("zoo:catalog,!stable,!*minimax*,!deepseek")
    assert left == [
        "simulated:x-ai/grok-4.1-fast",
        "simulated:google/gemini-3-flash-preview:nitro",
        "simulated:google/gemini-3-pro-preview:nitro",
        "simulated:openai/gpt-5.2-chat:nitro",
        "simulated:z-ai/glm-4.7:nitro",
        "simulated:z-ai/glm-4.7-flash:nitro",
        "simulated:moonshotai/kimi-k2.5:nitro",
    ]


def test_openrouter_is_known_by_name() -> None:
    """An id is taken as it is, a filter chooses from the catalog."""
    one = only("openrouter:deepseek/deepseek-v3.2")
    assert (one.model, one.label) == (
        "deepseek/deepseek-v3.2",
        "openrouter:deepseek/deepseek-v3.2",
    )
    assert (one.provider, one.base_url) == ("openrouter", "https://openrouter.ai/api/v1")
    assert one.kind == "live"
    stable = labels("openrouter:stable,!qwen")
    assert stable == [
        "openrouter:google/gemini-2.5-flash:nitro",
        "openrouter:anthropic/claude-opus-4.6:nitro",
        "openrouter:openai/gpt-5.2:nitro",
    ]
    assert only("openrouter:some/new-model").model == "some/new-model"


def test_any_address_will_do() -> None:
    """The provider is known by its host, and so is its wire format."""
    local = only("qwen@http://127.0.0.1:8000/v1")
    assert (local.model, local.provider, local.label) == (
        "qwen",
        None,
        "qwen@http://127.0.0.1:8000/v1",
    )
    assert only("claude-x@https://api.anthropic.com").provider == "anthropic"


def test_a_plain_name_is_at_the_configured_address() -> None:
    """What the configuration says of the model holds there, and only there."""
    config = load_config(
        overrides={
            "base_url": "http://127.0.0.1:9/v1",
            "capabilities": {"supports_tool_use": False},
            "protocol": "messages",
        },
        search=False,
    )
    plain = only("qwen", config=config)
    assert (plain.base_url, plain.capabilities, plain.protocol) == (
        "http://127.0.0.1:9/v1",
        {"supports_tool_use": False},
        "messages",
    )
    other = only("qwen@http://127.0.0.1:8/v1", config=config)
    assert (other.capabilities, other.protocol) == ({}, None)
    openrouter = load_config(overrides={"base_url": "https://openrouter.ai/api/v1"}, search=False)
    assert len(find_contenders("stable", config=openrouter)) == 6


def test_prices_are_given_by_label_or_model() -> None:
    """Who has none costs what nobody knows."""
    prices = {"zoo:steady": parse_price("1/2"), "qwen": parse_price("3/4")}
    found = find_contenders("zoo:steady,zoo:hasty,qwen@http://127.0.0.1:1/v1", prices=prices)
    assert [item.price and item.price.input_usd for item in found] == [1.0, None, 3.0]


@pytest.mark.parametrize(
    ("expression", "code", "hint"),
    [
        pytest.param("zoo:stedy", "UNKNOWN_MODEL", "steady", id="zoo"),
        pytest.param("zoo:x*", "UNKNOWN_MODEL", "Known", id="glob"),
        pytest.param("faults:arguments_pyton", "UNKNOWN_FAULT", "arguments_python", id="fault"),
        pytest.param("simulated:x-ai/grok", "UNKNOWN_MODEL", "grok-4.1-fast", id="simulated"),
        pytest.param("qwen", "UNKNOWN_MODEL", "SURECALL_BASE_URL", id="nowhere"),
        pytest.param("", "NOTHING_SELECTED", "zoo:catalog", id="nothing"),
        pytest.param("zoo:steady,!zoo", "NOTHING_SELECTED", "zoo:steady", id="nothing left"),
        pytest.param("m@http://", "INVALID_CONFIG", "", id="address"),
    ],
)
def test_a_name_that_means_nothing_is_an_error(expression: str, code: str, hint: str) -> None:
    """What is wrong is said, with what is meant where that can be told."""
    with pytest.raises(ConfigError) as caught:
        find_contenders(expression)
    assert caught.value.code == code
    assert hint in str(caught.value.hint)


# doors


@pytest.mark.parametrize("scenario", ["happy_path", "long_arguments_guard", "chat_only"])
async def test_a_simulated_model_without_mistakes_passes(scenario: str) -> None:
    """The oracle of the case leads it through, under every strategy."""
    steady, (case,) = only("zoo:steady"), STATE.cases(scenario)
    for strategy in ("raw", "baseline", "production"):
        row, _ = await run_trial(
            unit(scenario), case, steady, open_transport, settle(strategy, steady)
        )
        assert (row.strict_ok, row.simulated, row.strict_reasons) == (True, True, ())


async def test_a_seed_decides_what_a_simulated_model_does() -> None:
    """The same seed gives the same trial, seeds differ among each other."""
    who, (case,) = only("zoo:small-tag-writer"), STATE.cases("happy_path")
    settled = settle("raw", who)

    async def outcome(seed: int) -> Any:
        row, _ = await run_trial(unit("happy_path", seed), case, who, open_transport, settled)
        return row.strict_ok, row.requests, row.outcome, row.usage

    assert await outcome(3) == await outcome(3)
    assert len({await outcome(seed) for seed in range(8)}) > 1


async def test_a_fault_is_met_by_every_request() -> None:
    """`faults:NAME` is a perfect model whose replies all have one fault."""
    who, (case,) = only("faults:arguments_python"), STATE.cases("single_call")
    raw, _ = await run_trial(unit("single_call"), case, who, open_transport, settle("raw", who))
    assert raw.strict_ok is False
    helped, _ = await run_trial(
        unit("single_call"), case, who, open_transport, settle("production", who)
    )
    assert helped.strict_ok is True
    assert helped.saved_by


@pytest.mark.parametrize("strategy", ["raw", "production"])
async def test_no_fault_makes_a_call_say_what_the_model_did_not(strategy: str) -> None:
    """Whatever is wrong with replies, nothing is made up, and no trial breaks the harness."""
    (case,) = STATE.cases("happy_path")
    passed = 0
    for fault in FAULTS:
        who = only(f"faults:{fault.name}")
        row, _ = await run_trial(
            unit("happy_path"), case, who, open_transport, settle(strategy, who), timeout_s=20
        )
        assert (fault.name, row.fabrications) == (fault.name, 0)
        assert row.code != Code.INTERNAL_ERROR, (fault.name, row.error)
        passed += row.strict_ok
    assert 0 < passed < len(FAULTS)


def test_the_oracle_says_what_the_case_says() -> None:
    """Calls, words, or that it does not know."""

    class Case:
        answer: Ideal | None = None

        def ideal(self, request: ModelRequest) -> Ideal | None:
            return self.answer

    case = Case()
    oracle = CaseOracle(cast("Any", case))  # only `ideal` is looked at
    request = ModelRequest(model="m", messages=())
    assert oracle.next_action(request) is None
    case.answer = Ideal(text="Hi.")
    assert oracle.next_action(request) == Say("Hi.")
    case.answer = Ideal(calls=(IdealCall("a", {"b": 1}),))
    assert oracle.next_action(request) == CallTools((PlannedCall("a", {"b": 1}),))


async def test_trials_share_connections_until_they_are_closed() -> None:
    """The door to a provider is opened once for an event loop, and closed once."""
    pool, (case,) = TransportPool(), STATE.cases("chat_only")
    async with CompletionServer(["Done.", "Done."]) as server:
        who = only(f"m@{server.url}")
        doors: list[Any] = []
        for _ in range(2):
            async with pool(who, unit("chat_only"), case) as door:
                doors.append(door._inner)
                await door.send(WireRequest(path="/chat/completions", body={"messages": []}))
        assert doors[0] is doors[1]
        assert isinstance(doors[0], HttpTransport)
        await close_transports(pool)
        async with pool(who, unit("chat_only"), case) as door:
            assert door._inner is not doors[0]
        await close_transports(pool)
    assert len(server.requests) == 2


async def test_settings_for_one_address_go_to_no_other() -> None:
    """Headers of the configured provider are not sent to another one."""
    async with CompletionServer(["Done."] * 2) as own, CompletionServer(["Done."]) as other:
        Path("surecall.toml").write_text(
            f'base_url = "{own.url}"\napi_prefix = ""\n[headers]\nx-team = "blue"\n'
        )
        pool, (case,) = TransportPool(), STATE.cases("chat_only")
        for who in (only("m"), only(f"m@{other.url}")):
            async with pool(who, unit("chat_only"), case) as door:
                await door.send(WireRequest(path="/chat/completions", body={"messages": []}))
        await pool.aclose()
    assert own.requests[0].headers["x-team"] == "blue"
    assert "x-team" not in other.requests[0].headers


async def test_a_door_that_did_not_open_is_tried_again() -> None:
    """One failure does not shut a model out; two who wait for the same door both hear of it."""
    pool, (case,) = TransportPool(), STATE.cases("chat_only")
    who = only("embedded:./missing.gguf")

    async def enter() -> None:
        async with pool(who, unit("chat_only"), case):
            pass

    results = await asyncio.gather(enter(), enter(), return_exceptions=True)
    assert [getattr(result, "code", None) for result in results] == ["MODEL_WEIGHTS_MISSING"] * 2
    Path("missing.gguf").write_bytes(b"no weights")
    with pytest.raises(Exception, match="MODEL_NOT_LOADABLE"):
        await enter()
    await pool.aclose()


async def test_a_model_in_this_process_is_loaded_before_the_trial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Loading takes seconds that are not the model's."""
    opened: list[str] = []

    async def load(self: EmbeddedTransport) -> None:
        opened.append(repr(self))

    monkeypatch.setattr(EmbeddedTransport, "open", load)
    pool, (case,) = TransportPool(), STATE.cases("chat_only")
    async with pool(only("embedded:smollm2-135m"), unit("chat_only"), case):
        assert opened == ["EmbeddedTransport('smollm2-135m')"]
    await pool.aclose()


def test_every_behaviour_of_the_catalog_exists() -> None:
    """A catalog model is simulated by the zoo entry that follows its description."""
    found = {item.model: item.behaviour for item in simulate_catalog()}
    assert found["anthropic/claude-opus-4.6:nitro"] == "steady"
    assert found["minimax/minimax-m2-her"] == "storyteller"
    assert len(found) == 17
