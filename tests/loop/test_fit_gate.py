"""The fit gate: an optional tool that does not fit the request is not run."""

import json
from typing import Any

import pytest

from surecall.base.errors import Code
from surecall.base.records import Event, FitJudged
from surecall.loop import replay_trace
from surecall.models.transport import ScriptedTransport, assistant, tool_call

from .toolbox import run_script, saved

CALL = [tool_call("save", {"text": "y"})]


def judged(word: str, **logprobs: float) -> dict[str, Any]:
    """Return a reply to the question whether a tool fits, with the log-probabilities given."""
    reply: dict[str, Any] = {
        "choices": [{"message": {"role": "assistant", "content": word}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 40, "completion_tokens": 1, "total_tokens": 41},
    }
    if logprobs:
        top = [{"token": token, "logprob": value} for token, value in logprobs.items()]
        first = {"token": word, "logprob": logprobs.get(word, -9.0), "top_logprobs": top}
        reply["choices"][0]["logprobs"] = {"content": [first]}
    return reply


@pytest.mark.parametrize(
    ("options", "capabilities", "reply", "runs"),
    [
        pytest.param("on", {}, judged("No"), False, id="a plain no"),
        pytest.param("on", {}, judged("Yes."), True, id="a plain yes"),
        pytest.param("on", {}, judged("Hm"), True, id="neither"),
        pytest.param("on", {}, judged("yes", yes=-0.1, no=-3.0), True, id="yes is likelier"),
        pytest.param("on", {}, judged("no", no=-0.1, yes=-3.0), False, id="no is likelier"),
        pytest.param(
            "auto",
            {"fit_threshold": -4.0},
            judged("no", no=-0.1, yes=-3.0),
            True,
            id="above its threshold",
        ),
        pytest.param(
            "auto",
            {"fit_threshold": 5.0},
            judged("yes", yes=-0.1, no=-3.0),
            False,
            id="below its threshold",
        ),
    ],
)
async def test_a_tool_runs_only_if_it_fits(
    options: Any, capabilities: dict[str, Any], reply: Any, runs: bool
) -> None:
    """The score decides where there is one, the word elsewhere."""
    transport = ScriptedTransport([assistant(tool_calls=CALL), reply, assistant("Done.")])
    events: list[FitJudged] = []

    def listen(event: Event) -> None:
        if isinstance(event, FitJudged):
            events.append(event)

    result = await run_script(
        [],
        transport=transport,
        fit_gate=options,
        capabilities=capabilities,
        on_event=listen,
    )
    assert bool(saved) is runs
    assert [event.fits for event in events] == [runs]
    turn = result.trace.turns[0]
    assert turn.results[0].envelope.error_codes == (() if runs else (Code.TOOL_DOES_NOT_FIT,))
    assert [check.tool for check in turn.fit_checks] == ["save"]
    assert result.usage.total_tokens >= 41
    assert replay_trace(result.trace).same


async def test_a_tool_that_does_not_fit_is_no_longer_offered() -> None:
    """The run goes on to an answer."""
    transport = ScriptedTransport(
        [assistant(tool_calls=CALL), judged("no"), assistant("I cannot do that.")]
    )
    result = await run_script([], transport=transport, fit_gate="on")
    offered = [tool["function"]["name"] for tool in transport.requests[2].body["tools"]]
    assert offered == ["look"]
    assert "does not fit" in json.dumps(transport.requests[2].body["messages"])
    assert result.text == "I cannot do that."


async def test_each_tool_is_asked_about_once() -> None:
    """The question is about the tool and the request, which do not change in a run."""
    second = [tool_call("save", {"text": "z"}, "c2")]
    transport = ScriptedTransport(
        [
            assistant(tool_calls=CALL),
            judged("yes"),
            assistant(tool_calls=second),
            assistant("Done."),
        ]
    )
    await run_script([], transport=transport, fit_gate="on")
    assert saved == ["y", "z"]


async def test_a_required_tool_is_not_asked_about() -> None:
    """What the application requires fits."""
    transport = ScriptedTransport([assistant(tool_calls=CALL), assistant("Done.")])
    await run_script([], transport=transport, fit_gate="on", required_tools=("save",))
    assert saved == ["y"]


async def test_auto_asks_nothing_where_no_probe_found_that_it_helps() -> None:
    """Without a threshold there is no question."""
    transport = ScriptedTransport([assistant(tool_calls=CALL), assistant("Done.")])
    await run_script([], transport=transport, fit_gate="auto")
    assert saved == ["y"]


async def test_the_question_names_the_function_and_the_request() -> None:
    """It is short, and asks for the log-probabilities of its one word."""
    transport = ScriptedTransport([assistant(tool_calls=CALL), judged("yes"), assistant("Done.")])
    await run_script([], transport=transport, fit_gate="on")
    body = transport.requests[1].body
    (message,) = body["messages"]
    assert "hi" in message["content"]
    assert "save: Save a text." in message["content"]
    assert "Its arguments: text." in message["content"]
    assert (body["logprobs"], body["temperature"]) == (True, 0)
    assert "tools" not in body
