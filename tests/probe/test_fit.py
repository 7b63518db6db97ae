"""Whether asking about the fit of a function helps: scores, thresholds, and the question itself."""

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from surecall.base.errors import Code, ProviderStatusError
from surecall.base.records import ToolSpec, WireRequest
from surecall.models.probe import FactKey, FactStore, probe_model, select_questions
from surecall.models.probe.fit_gate import (
    FitAsker,
    find_threshold,
    measure_separation,
    read_word,
    score_token,
)
from surecall.models.transport import ScriptedTransport, assistant, tool_call
from surecall.wire import find_protocol
from surecall.wire.chat_completions.bodies import parse_first_token

CHAT = find_protocol("chat_completions")
TOOL = ToolSpec(name="save", description="Save a text.")


@pytest.mark.parametrize(
    ("logprobs", "score"),
    [
        ({}, None),
        ({"Maybe": -0.1}, None),
        ({"yes": -0.5, "no": -2.0}, 1.5),
        ({"Yes": -1.0, " yes": -1.0, "no": -1.0}, math.log(2)),
        ({"no": -0.1, "Maybe": -7.0}, -6.9),
    ],
)
def test_the_score_is_how_much_likelier_yes_is(
    logprobs: dict[str, float], score: float | None
) -> None:
    """All spellings of a word count; one that is not listed is at most as likely as the last."""
    found = score_token(logprobs)
    assert found == (None if score is None else pytest.approx(score))


@pytest.mark.parametrize(
    ("said", "says_yes"),
    [("Yes.", True), (" **no**", False), ("NO, it cannot", False), ("perhaps", None), ("", None)],
)
def test_a_plain_answer_is_read_by_its_first_word(said: str, says_yes: bool | None) -> None:
    """Anything but yes and no says nothing."""
    assert read_word(said) is says_yes


@given(st.binary() | st.text().map(str.encode))
def test_any_body_has_log_probabilities_or_none(body: bytes) -> None:
    """What is not a reply with log-probabilities gives nothing, and nothing is raised."""
    assert parse_first_token(body) == {}


SCORES = st.lists(st.floats(-20, 20), min_size=1, max_size=12)


@given(SCORES, SCORES)
def test_a_threshold_tells_apart_what_can_be_told_apart(
    fitting: list[float], other: list[float]
) -> None:
    """Where all fitting scores are above all others, the threshold is between them."""
    threshold = find_threshold(fitting, other)
    separation = measure_separation(fitting, other)
    assert 0 <= separation <= 1
    if min(fitting) > max(other) + 1e-6:
        assert separation == 1
        assert max(other) < threshold <= min(fitting)


async def test_what_a_provider_refuses_is_not_sent_again() -> None:
    """Without log-probabilities the plain answer counts."""
    refusal = ProviderStatusError(Code.BAD_REQUEST, "logprobs are not supported", status=400)
    transport = ScriptedTransport([refusal, assistant("no"), assistant("yes")])
    asker = FitAsker(transport, CHAT, "m")
    first = await asker.ask("hi", TOOL)
    second = await asker.ask("hello", TOOL)
    assert (first.says_yes, first.score, first.requests) == (False, None, 2)
    assert (second.says_yes, second.requests) == (True, 1)
    assert ["logprobs" in request.body for request in transport.requests] == [True, False, False]


def eager_model(*, is_sure: bool, calls: bool) -> Any:
    """Return a model that calls whatever it is offered, and knows or does not know what fits."""

    def reply(request: WireRequest) -> Any:
        body = request.body
        if "tools" in body:
            name = body["tools"][0]["function"]["name"]
            names = body["tools"][0]["function"]["parameters"]["properties"]
            arguments = dict.fromkeys(names, "x")
            return assistant(tool_calls=[tool_call(name, arguments)]) if calls else "I cannot."
        text = body["messages"][0]["content"]
        fits = any(word in text for word in FITTING) if is_sure else len(text) % 2 == 0
        top = [
            {"token": "yes", "logprob": -1.0 if fits else -4.0},
            {"token": "no", "logprob": -4.0 if fits else -1.0},
        ]
        message = {"role": "assistant", "content": "yes" if fits else "no"}
        logprobs = {"content": [{"token": "yes", "logprob": -1.0, "top_logprobs": top}]}
        return {"choices": [{"message": message, "logprobs": logprobs, "finish_reason": "stop"}]}

    return ScriptedTransport(reply)


FITTING = (
    "umbrella",
    "euros",
    "triangle is",
    "Lisbon",
    "Remind me",
    "AAPL",
    "Thai",
    "Kenya",
    "RX4471",
    "Casa Luna",
)


@pytest.mark.parametrize(
    ("is_sure", "calls", "verdict", "threshold"),
    [(True, True, "yes", 0.0), (True, False, "no", None), (False, True, "no", None)],
)
async def test_a_probe_stores_a_threshold_only_where_the_gate_helps(
    tmp_path: Path, is_sure: bool, calls: bool, verdict: str, threshold: float | None
) -> None:
    """It helps a model that calls too much and knows what fits; threshold and date are kept."""
    store = FactStore(tmp_path / "facts.sqlite3")
    report = await probe_model(
        eager_model(is_sure=is_sure, calls=calls),
        CHAT,
        "m",
        questions=select_questions(["fit"]),
        store=store,
        address="http://127.0.0.1:9/v1",
    )
    (finding,) = report.findings
    assert finding.verdict == verdict
    assert finding.fields["fit_threshold"] == threshold
    assert finding.fields["false_call_rate"] == (1.0 if calls else 0.0)
    assert finding.cost.requests == 30
    key = FactKey.of(report.address, "chat_completions", "m")
    facts = {fact.field: fact for fact in store.fresh(key)}
    assert facts["fit_threshold"].value == threshold
    assert facts["fit_threshold"].asked_at > 0
