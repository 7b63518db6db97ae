"""The fit gate asks an endpoint for decisions where one is known, and the model elsewhere."""

import json
import math
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given, settings
from hypothesis import strategies as st

import surecall
from surecall.models.probe.fit_gate import FitAsker
from surecall.models.profiles import Capabilities, Catalog, resolve_capabilities
from surecall.models.transport import ScriptedTransport, assistant
from surecall.wire import find_protocol

from .toolbox import look, save, saved, tool_call

SPEC = save.spec
USAGE = {"input_tokens": 30, "output_tokens": 1, "total_tokens": 31}
PATHS = ("/decisions", "/systemone")


def predicate(probability: Any) -> dict[str, Any]:
    """Answer as OpenAI's endpoint does."""
    answer = {"type": "predicate", "name": None, "probability": probability}
    return {"model": "d", "answers": [answer], "usage": USAGE}


def noul(probability: Any) -> dict[str, Any]:
    """Answer as a server of the System One API does."""
    return {"model": "d", "answers": {"fits": {"type": "noul", "noul": probability}}}


ANSWERS = dict(zip(PATHS, (predicate, noul), strict=True))


async def run_against(
    path: str, status: int, body: Any, word: str = "yes"
) -> tuple[Any, list[Any]]:
    """Run a prompt whose model calls `save`, at a server with an endpoint for decisions."""
    asked: list[Any] = []
    said = [
        {"role": "assistant", "content": None, "tool_calls": [tool_call("save", {"text": "y"})]},
        *([{"role": "assistant", "content": word}] if status != 200 else []),
        {"role": "assistant", "content": "Done."},
    ]

    async def decide(request: web.Request) -> web.Response:
        asked.append(await request.json())
        return web.json_response(body, status=status)

    async def chat(request: web.Request) -> web.Response:
        message = said.pop(0)
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        return web.json_response({"choices": [{"message": message, "finish_reason": finish}]})

    app = web.Application()
    app.router.add_post(f"/v1{path}", decide)
    app.router.add_post("/v1/chat/completions", chat)
    async with TestServer(app) as server:
        result = await surecall.run(
            "keep this",
            model="m",
            base_url=str(server.make_url("/v1")),
            api_key="k",
            tools=[look, save],
            preset=(),
            fit_gate="on",
            capabilities={"decision_model": "d", "decision_path": path},
        )
    return result, asked


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("probability", "runs"), [(0.03, False), (0.97, True), (1, True), (0, False)]
)
async def test_a_tool_runs_if_the_endpoint_finds_it_likely(
    path: str, probability: float, runs: bool
) -> None:
    """Of both forms, the probability decides; the model of the run is not asked."""
    result, (asked,) = await run_against(path, 200, ANSWERS[path](probability))
    assert bool(saved) is runs
    assert asked["model"] == "d"
    assert "keep this" in (asked.get("input"), asked.get("state"))
    assert "Save a text." in str(asked["questions"])
    (check,) = result.trace.turns[0].fit_checks
    assert (check.fits, check.requests, check.threshold) == (runs, 1, None)
    assert check.usage.total_tokens == (31 if path == "/decisions" else 0)


@pytest.mark.parametrize("status", [400, 403, 404, 405, 422])
async def test_an_endpoint_that_refuses_is_not_asked_again(status: int) -> None:
    """The model is asked as where no such endpoint is known, and what it says counts."""
    result, asked = await run_against("/decisions", status, {"error": {"message": "no"}}, "no")
    assert (len(asked), saved) == (1, [])
    (check,) = result.trace.turns[0].fit_checks
    assert (check.fits, check.requests) == (False, 2)


@pytest.mark.parametrize(
    "body",
    [
        {"answers": [{"type": "refusal", "name": None}]},
        {"answers": []},
        {},
        [],
        predicate(True),
        predicate(1.5),
        predicate("0.9"),
        predicate(None),
        {"answers": {"other": {"noul": 0.1}}},
    ],
)
@pytest.mark.parametrize("path", PATHS)
async def test_an_answer_without_a_probability_is_none(path: str, body: Any) -> None:
    """A refusal, another form and a number that is no probability: the model is asked instead."""
    known = Capabilities(decision_model="d", decision_path=path)
    transport = ScriptedTransport([json.dumps(body).encode(), assistant("no"), assistant("yes")])
    asker = FitAsker(transport, find_protocol("chat_completions"), "m", known)
    first, second = await asker.ask("hi", SPEC), await asker.ask("hi", SPEC)
    assert (first.says_yes, first.requests) == (False, 2)
    assert (second.says_yes, second.requests) == (True, 1)


@settings(max_examples=60)
@given(st.floats(0, 1), st.sampled_from(PATHS))
async def test_every_probability_has_a_score_that_says_the_same(likely: float, path: str) -> None:
    """Half and above fits; nothing is infinite."""
    known = Capabilities(decision_model="d", decision_path=path, fit_threshold=9.0)
    transport = ScriptedTransport([json.dumps(ANSWERS[path](likely)).encode()])
    asker = FitAsker(transport, find_protocol("chat_completions"), "m", known)
    answer = await asker.ask("hi", SPEC)
    assert answer.score is not None
    assert math.isfinite(answer.score)
    assert answer.fits(asker.threshold) is (likely >= 0.5)


def test_the_catalog_knows_the_endpoint_of_openai_alone() -> None:
    """By its official SDK, which names the one model that it takes."""
    found = {
        entry.id: resolve_capabilities(entry.id, "m").capabilities.decision_model
        for entry in Catalog.builtin().providers
    }
    assert {name: model for name, model in found.items() if model} == {"openai": "gpt-6-luna"}
