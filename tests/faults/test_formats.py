"""What a client of each wire format sees of a fault."""

import json
from typing import Any

import pytest

from surecall.base.records import Message, ModelRequest, ToolSpec
from surecall.faults import FAULTS, Answer, Fault, FaultPlan, FaultyProvider, find_fault
from surecall.wire import PROTOCOLS, find_protocol

from .scene import ARGUMENTS, PROMPT

SAVE = ToolSpec(name="save", parameters={"type": "object", "properties": {}})
WHOLE_OR_STREAM = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
EVERY_FORMAT = pytest.mark.parametrize("protocol", PROTOCOLS)
TEXT = json.dumps(ARGUMENTS, ensure_ascii=False, separators=(",", ":"))


def ask(
    fault: str, protocol: str, *, stream: bool = False, seed: int = 7, plan: FaultPlan | None = None
) -> Answer:
    """Return the answer to a request that is to be answered with a call."""
    provider = FaultyProvider(seed=seed) if plan is None else FaultyProvider(seed=seed, plan=plan)
    spoken = find_protocol(protocol)
    request = ModelRequest(
        model=fault, messages=(Message("user", PROMPT),), tools=(SAVE,), stream=stream
    )
    return provider.answer(spoken, spoken.render_request(request))


def events_of(answer: Answer) -> list[tuple[str, Any]]:
    """Return the names and the values of the events of a stream."""
    found: list[tuple[str, Any]] = []
    for event in answer.body.decode().split("\n\n"):
        lines = event.split("\n")
        data = lines[-1].removeprefix("data: ")
        if data and data != "[DONE]":
            name = lines[0].removeprefix("event: ") if len(lines) > 1 else ""
            found.append((name, json.loads(data)))
    return found


def check_error(protocol: str, answer: Answer) -> None:
    """Check that an error has the body and the headers of the providers of the format."""
    body = json.loads(answer.body)
    assert answer.headers["content-type"] == "application/json"
    error = body["error"]
    assert error["message"]
    if protocol == "messages":
        assert body.keys() == {"type", "error", "request_id"}
        assert body["type"] == "error"
        assert error.keys() == {"type", "message"}
        assert answer.headers["request-id"] == body["request_id"]
    elif protocol == "gemini":
        assert body.keys() == {"error"}
        assert error.keys() - {"details"} == {"code", "message", "status"}
        assert error["status"].replace("_", "").isupper()
        assert "x-request-id" not in answer.headers
    else:
        assert body.keys() == {"error"}
        assert error.keys() == {"message", "type", "param", "code"}
        assert answer.headers["x-request-id"].startswith("req_")


IN_JSON = [
    fault
    for fault in FAULTS
    if ask(f"faults:{fault.name}", "chat_completions").status >= 400
    and fault.name not in {"html_502", "text_in_error"}
]
"""The faults that are an error status with a JSON body."""


@EVERY_FORMAT
@WHOLE_OR_STREAM
@pytest.mark.parametrize("fault", IN_JSON, ids=lambda fault: fault.name)
def test_an_error_has_the_shape_of_its_format(fault: Fault, protocol: str, stream: bool) -> None:
    """Whatever the status, the body and the headers are those of the format's provider."""
    answer = ask(f"faults:{fault.name}", protocol, stream=stream)
    assert answer.status >= 400
    check_error(protocol, answer)
    if protocol == "gemini":
        assert json.loads(answer.body)["error"]["code"] == answer.status


@pytest.mark.parametrize(
    ("protocol", "status", "header"),
    [
        ("chat_completions", "rate_limit_exceeded", "x-ratelimit-remaining-requests"),
        ("responses", "rate_limit_exceeded", "x-ratelimit-remaining-requests"),
        ("messages", "rate_limit_error", "anthropic-ratelimit-requests-remaining"),
        ("gemini", "RESOURCE_EXHAUSTED", None),
    ],
)
def test_a_rate_limit_is_reported_as_the_provider_does(
    protocol: str, status: str, header: str | None
) -> None:
    """The kind, the wait and what is left are where clients of the format look."""
    answer = ask("faults:rate_limit_long", protocol)
    error = json.loads(answer.body)["error"]
    assert status in error.values()
    assert answer.headers["retry-after"] == "86400"
    if header is None:
        assert error["details"][0]["retryDelay"] == "86400s"
    else:
        assert answer.headers[header] == "0"


def test_a_stream_breaks_off_as_its_format_does() -> None:
    """The last event is the one in which clients look for the error."""
    last = {
        protocol: events_of(ask("faults:stream_error_event", protocol, stream=True))
        for protocol in PROTOCOLS
    }
    assert last["chat_completions"][-1][1]["error"]["type"] == "overloaded_error"
    name, value = last["messages"][-1]
    assert (name, value["type"], value["error"]["type"]) == ("error", "error", "overloaded_error")
    (error_name, error), (failed_name, failed) = last["responses"][-2:]
    assert (error_name, error["type"], error["message"]) == ("error", "error", "Overloaded")
    assert (failed_name, failed["response"]["status"]) == ("response.failed", "failed")
    numbers = [value["sequence_number"] for _, value in last["responses"]]
    assert numbers == list(range(len(numbers)))
    assert last["gemini"][-1][1]["error"]["status"] == "UNAVAILABLE"


NOT_EVERYWHERE = [
    pytest.param(fault, protocol, id=f"{fault.name}-{protocol}")
    for fault in FAULTS
    for protocol in PROTOCOLS
    if protocol not in fault.protocols
]


@pytest.mark.parametrize(("fault", "protocol"), NOT_EVERYWHERE)
def test_a_fault_without_meaning_in_a_format_is_refused(fault: Fault, protocol: str) -> None:
    """Asked for by name it is an error with a code; as a step of a plan it is left out."""
    answer = ask(f"faults:{fault.name}", protocol)
    assert answer.status == 404
    assert b"FAULT_NOT_APPLICABLE" in answer.body
    plan = FaultPlan.parse({"steps": [{"fault": fault.name}]})
    assert ask("m", protocol, plan=plan) == ask("m", protocol)


def arguments_in(protocol: str, answer: Answer, *, stream: bool) -> Any:
    """Return the arguments of the one call, as they are on the wire; pieces are put together."""
    if stream and protocol == "messages":
        pieces = [value["delta"] for name, value in events_of(answer) if "delta" in value]
        return "".join(piece.get("partial_json", "") for piece in pieces)
    if stream and protocol == "responses":
        events = events_of(answer)
        text = "".join(value["delta"] for _, value in events if isinstance(value.get("delta"), str))
        done = [value["arguments"] for _, value in events if "arguments" in value]
        last = events[-1][1]["response"]["output"][0]["arguments"]
        assert [text, last] == [*done, *done]
        return text
    if stream and protocol == "chat_completions":
        chunks = [
            value["choices"][0]["delta"] for _, value in events_of(answer) if value["choices"]
        ]
        calls = [chunk["tool_calls"][0]["function"] for chunk in chunks if "tool_calls" in chunk]
        return "".join(call["arguments"] for call in calls)
    body = events_of(answer)[0][1] if stream else json.loads(answer.body)
    if protocol == "messages":
        return body["content"][0]["input"]
    if protocol == "responses":
        return body["output"][0]["arguments"]
    if protocol == "gemini":
        return body["candidates"][0]["content"]["parts"][0]["functionCall"]["args"]
    return body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]


@EVERY_FORMAT
@WHOLE_OR_STREAM
@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("clean", TEXT),
        ("arguments_fenced", f"```json\n{TEXT}\n```"),
        ("arguments_trailing_comma", f"{TEXT[:-1]},}}"),
        ("arguments_blank", ""),
        ("arguments_two_objects", TEXT + '{"other": 1}'),
        ("cut_at_limit", TEXT[: len(TEXT) // 2]),
    ],
)
def test_broken_arguments_are_broken_on_every_wire(
    fault: str, text: str, protocol: str, stream: bool
) -> None:
    """Where a format has text, it is that text; where it has an object, the text stands in it."""
    answer = ask(f"faults:{fault}", protocol, stream=stream)
    found = arguments_in(protocol, answer, stream=stream)
    has_object = protocol == "gemini" or (protocol == "messages" and not stream)
    assert found == (ARGUMENTS if has_object and fault == "clean" else text)


@EVERY_FORMAT
@pytest.mark.parametrize(
    ("fault", "key", "value"),
    [
        ("name_with_prefix", "name", "functions.save"),
        ("name_missing", "name", ""),
        ("id_number", "id", 7),
        ("id_empty", "id", ""),
        ("id_missing", "id", None),
    ],
)
@WHOLE_OR_STREAM
def test_names_and_ids_are_broken_on_every_wire(
    fault: str, key: str, value: Any, protocol: str, stream: bool
) -> None:
    """The format's own rules for names and ids do not mend what is to be broken."""
    answer = ask(f"faults:{fault}", protocol, stream=stream)
    text = answer.body.decode()
    values = [item for _, item in events_of(answer)] if stream else [json.loads(text)]
    calls = [call for item in values for call in calls_in(item)]
    names = ("call_id",) if key == "id" and protocol == "responses" else (key,)
    assert calls
    assert [call.get(name) for call in calls for name in names] == [value] * len(calls)


def calls_in(value: Any) -> list[dict[str, Any]]:
    """Return every object in an answer that is a call and says whose it is."""
    if isinstance(value, list):
        return [call for item in value for call in calls_in(item)]
    if not isinstance(value, dict):
        return []
    kind = value.get("type")
    if kind in {"tool_use", "function_call"}:
        return [value]
    if "functionCall" in value:
        return [value["functionCall"]]
    if isinstance(value.get("function"), dict) and "name" in value["function"]:
        return [{**value["function"], "id": value.get("id")}]
    return [call for item in value.values() for call in calls_in(item)]


@EVERY_FORMAT
@WHOLE_OR_STREAM
def test_the_same_seed_gives_the_same_answer(protocol: str, stream: bool) -> None:
    """No answer holds the time or an id that comes from elsewhere."""
    answers = [ask("faults:call_twice", protocol, stream=stream, seed=seed) for seed in (1, 1, 2)]
    assert answers[0] == answers[1] != answers[2]


def test_formats_are_named_where_a_fault_is_explained() -> None:
    """The catalog says of a fault about `[DONE]` that only one format has it."""
    assert find_fault("stream_without_done").protocols == ("chat_completions",)
    assert set(find_fault("second_choice").protocols) == {"chat_completions", "gemini"}
