"""Asking for text and directives, over scripts and real HTTP in every wire format."""

from typing import Any

import pytest

import surecall
from support.family_server import FamilyServer
from surecall import ScriptedTransport
from surecall.base.errors import OutputError
from surecall.base.records import RawCall, Reply, TextDelta, Usage
from surecall.loop import replay_trace
from surecall.loop.directives import DirectResult, Envelope, EnvelopeForm
from surecall.loop.directives import direct as ask_direct
from surecall.models.transport import ScriptedReply, assistant, tool_call
from surecall.text import encode_text
from surecall.tools import MemoryApprovals
from surecall.wire import PROTOCOLS, find_protocol

from .types import Toast, make_registry

REGISTRY = make_registry()
TOAST = {"type": "ui.toast", "payload": {"message": "Saved"}}
GOOD = encode_text({"assistant_text": "All\nsaved.", "directives": [TOAST]})


async def direct(replies: list[Any], **arguments: Any) -> tuple[DirectResult, list[Any]]:
    """Ask a script; return the result and the bodies that were sent."""
    transport = ScriptedTransport(replies)
    given: dict[str, Any] = {"directives": REGISTRY, "model": "m", "preset": (), **arguments}
    result = await ask_direct("Save it.", transport=transport, **given)
    return result, [request.body for request in transport.requests]


async def test_text_and_directives_come_in_one_turn() -> None:
    """The result has both, with the payload as an object of its type."""
    result, (body,) = await direct([GOOD], system="Be brief.")
    assert (result.ok, result.assistant_text) == (True, "All\nsaved.")
    assert [item.value for item in result.directives] == [Toast("Saved")]
    assert (result.mode, result.certainty, result.repairs) == ("json_object", "certain", 0)
    assert body["response_format"] == {"type": "json_object"}
    assert body["messages"][0]["content"].startswith("Be brief.\n\nAnswer with one JSON object")
    assert "- ui.toast: Shows a message." in body["messages"][0]["content"]


async def test_a_model_that_takes_schemas_is_held_to_the_types() -> None:
    """Each type is one form of a directive; an open payload is not held strictly."""
    _, (body,) = await direct([GOOD], capabilities={"json_schema": True}, allowed=["ui.toast"])
    form = body["response_format"]["json_schema"]
    item = form["schema"]["properties"]["directives"]["items"]
    assert (form["name"], form["strict"]) == ("directives", True)
    assert item["properties"]["type"]["enum"] == ["ui.toast"]
    _, (body,) = await direct([GOOD], capabilities={"json_schema": True})
    assert body["response_format"]["json_schema"]["strict"] is False


async def test_a_broken_envelope_is_asked_for_again_with_the_error() -> None:
    """The model reads what was wrong, beside what it had written."""
    result, (_, body) = await direct(['{"assistant_text": "x"}', GOOD])
    assert (result.ok, result.repairs, result.semantic_repairs) == (True, 1, 0)
    said, told = body["messages"][-2:]
    assert said == {"role": "assistant", "content": '{"assistant_text": "x"}'}
    assert "MISSING_DIRECTIVES: /directives:" in told["content"]
    assert [message.role for message in result.history] == ["user", "assistant"]


async def test_the_applications_check_is_told_to_the_model() -> None:
    """A semantic repair is counted apart."""

    def check(envelope: Envelope) -> list[str]:
        return [] if envelope.of_type("ui.toast") else ["A toast must be shown."]

    empty = encode_text({"assistant_text": "x", "directives": []})
    result, (_, body) = await direct([empty, GOOD], check=check)
    assert (result.ok, result.repairs, result.semantic_repairs) == (True, 0, 1)
    assert "ASSERTION_FAILED: A toast must be shown." in body["messages"][-1]["content"]


async def test_a_call_that_waits_for_an_approval_is_in_the_result() -> None:
    """Nothing is raised; once somebody has decided, the same form ends with the envelope."""
    launched: list[str] = []

    @surecall.tool(effect="external", approval="required")
    def launch(site: str) -> str:
        """Launch."""
        launched.append(site)
        return "up"

    store = MemoryApprovals()
    call = assistant(None, tool_call("launch", {"site": "a"}, "c1"))
    result, _ = await direct([call], tools=[launch], approvals=store)
    assert (result.ok, result.envelope, launched) == (False, None, [])
    assert [each.code for each in result.errors] == ["APPROVAL_PENDING"]
    (waiting,) = result.pending
    assert (waiting.name, waiting.payload) == ("launch", {"site": "a"})
    assert result.trace is not None
    await surecall.approve(store, waiting.id, by="ada")
    ended = await surecall.resume(
        result.trace.run_id,
        output=EnvelopeForm(REGISTRY),
        approvals=store,
        tools=[launch],
        transport=ScriptedTransport(["Up.", GOOD]),
        preset=(),
    )
    assert not isinstance(ended, surecall.PausedResult)
    assert (ended.output.assistant_text, launched) == ("All\nsaved.", ["a"])


async def test_a_refused_mode_leads_to_the_next_one() -> None:
    """Down from a schema over JSON mode to words alone."""
    refused = ScriptedReply(status=400, message="response_format is not supported")
    result, bodies = await direct(
        [refused, refused, f"Here it is:\n```json\n{GOOD}\n```"], capabilities={"json_schema": True}
    )
    sent = [body.get("response_format", {}).get("type") for body in bodies]
    assert sent == ["json_schema", "json_object", None]
    assert (result.mode, result.certainty) == ("prompt_only", "likely")


async def test_attempts_are_bounded_and_nothing_is_raised() -> None:
    """After every way was tried, the result says what was wrong."""
    result, bodies = await direct(["no"] * 9, capabilities={"json_schema": True})
    assert not result.ok
    assert len(bodies) == len(result.attempts) == 6
    assert [item.mode for item in result.attempts[::2]] == [
        "json_schema",
        "json_object",
        "prompt_only",
    ]
    assert [error.code for error in result.errors] == ["OUTPUT_INVALID", "INVALID_JSON"]
    assert isinstance(result.error, OutputError)
    assert (result.assistant_text, result.directives, result.envelope) == ("", (), None)


@pytest.mark.parametrize(
    ("replies", "arguments", "code"),
    [
        ([ScriptedReply(status=401, message="no")], {}, "AUTH"),
        ([ScriptedReply(status=503, message="busy")], {}, "UPSTREAM_5XX"),
        ([RuntimeError("boom")], {}, "INTERNAL_ERROR"),
        ([], {"max_turns": 0}, "INVALID_OPTION"),
        ([], {"allowed": ["nothing"]}, "UNKNOWN_DIRECTIVE_TYPE"),
        ([], {"output_modes": ["json_schema"]}, "CAPABILITY_UNSUPPORTED"),
    ],
)
async def test_what_goes_wrong_is_in_the_result(
    replies: list[Any], arguments: dict[str, Any], code: str
) -> None:
    """Neither providers nor settings make it raise."""
    result, _ = await direct(replies, **arguments)
    assert not result.ok
    assert result.errors[0].code == code


async def test_a_call_in_place_of_an_envelope_is_refused_and_not_run() -> None:
    """No tool is offered in such a request."""
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    message = {"role": "assistant", "content": GOOD, "tool_calls": [call]}
    result, _ = await direct([message, GOOD])
    assert result.ok
    assert [error.code for error in result.attempts[0].errors] == ["TOOL_CALLS_PRESENT"]


async def test_the_text_streams_while_the_envelope_is_arriving() -> None:
    """Pieces of the text come out one by one, and no JSON."""
    shown: list[TextDelta] = []
    chunks = [
        {"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in (GOOD[:25], GOOD[25:])
    ]
    finish: dict[str, Any] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    reply = ScriptedReply(chunks=[*chunks, finish, "[DONE]"])
    result, (body,) = await direct([reply], on_text=shown.append)
    assert result.ok
    assert body["stream"] is True
    assert len(shown) > 1
    assert "".join(delta.text for delta in shown) == "All\nsaved."


async def test_a_streamed_text_begins_anew_when_the_model_is_asked_again() -> None:
    """The turn of a piece says to which reply it belongs."""
    shown: list[TextDelta] = []
    bad = '{"assistant_text": "One"}'
    result, _ = await direct([bad, GOOD], on_text=shown.append)
    assert result.ok
    texts: dict[int, str] = {}
    for delta in shown:
        texts[delta.turn] = texts.get(delta.turn, "") + delta.text
    assert texts == {0: "One", 1: "All\nsaved."}


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_every_wire_format_carries_directives(name: str, stream: bool) -> None:
    """Tools run first, and the envelope is asked for without them; the trace replays."""
    calls: list[str] = []

    def look(what: str) -> str:
        """Look at something."""
        calls.append(what)
        return "seen"

    usage = Usage(1, 1, 2)
    replies = [
        Reply(
            calls=(RawCall("c1", "look", {"what": "é"}),), finish_reason="tool_calls", usage=usage
        ),
        Reply(content="Done.", finish_reason="stop", usage=usage),
        Reply(content=GOOD, finish_reason="stop", usage=usage),
    ]
    shown: list[TextDelta] = []
    async with FamilyServer(find_protocol(name), replies) as server:
        result = await ask_direct(
            "Look.",
            directives=REGISTRY,
            tools=[look],
            model="m",
            base_url=server.url,
            api_key="k-123",
            protocol=name,
            preset=(),
            capabilities={"json_schema": True},
            on_text=shown.append if stream else None,
        )
    assert result.ok, result.errors
    assert calls == ["é"]
    assert result.assistant_text == "All\nsaved."
    assert result.usage == Usage(3, 3, 6)
    first, _, last = server.requests
    assert [tool.name for tool in first.tools] == ["look"]
    assert first.response_format is None
    # Anthropic's format names tools that the history used, and forbids to use them.
    assert last.tools == () or (name, last.tool_choice) == ("messages", "none")
    assert last.response_format is not None
    assert last.response_format["type"] == "json_schema"
    assert result.trace is not None
    assert replay_trace(result.trace).same
    if stream:
        text = "".join(delta.text for delta in shown if delta.turn == 2)
        assert text == "All\nsaved."


async def test_an_envelope_is_an_output_of_any_run() -> None:
    """The form works with `run`, typed."""
    form = EnvelopeForm(REGISTRY, allowed=["ui.toast"])
    transport = ScriptedTransport([GOOD])
    result = await surecall.run("Save.", output=form, model="m", preset=(), transport=transport)
    assert result.output.assistant_text == "All\nsaved."
