"""What a run tells whoever listens."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from surecall.base.errors import Code, ProviderStatusError, ToolUseError
from surecall.base.records import Event, Usage
from surecall.models.transport import ScriptedReply, assistant, tool_call
from surecall.reading.transforms import TransformRegistry

from .doors import MODEL, Door
from .sample_tools import Ledger, call_add, calls_add

ABOUT = {"type", "run_id", "turn", "at_ms"}
FIELDS = {
    "run_start": {"model", "fingerprint", "tools", "resumed"},
    "llm_request_start": {
        "tool_use_mode",
        "tool_failure_policy",
        "tools_enabled",
        "messages_count",
        "tools_count",
        "tool_choice",
        "request_attempts_left",
    },
    "llm_request_error": {
        "tools_enabled",
        "code",
        "status",
        "error_class",
        "message",
        "elapsed_ms",
    },
    "llm_request_retry": {"tools_enabled", "request_attempts_left"},
    "llm_request_end": {
        "tool_use_mode",
        "tool_failure_policy",
        "tools_enabled",
        "elapsed_ms",
        "finish_reason",
        "assistant_content_bytes",
        "usage",
        "tool_calls_count",
        "ignored_tool_calls_count",
        "tool_calls",
        "request_id",
        "receipts_count",
        "defect_codes",
    },
    "tool_call_start": {"tool_call_id", "name", "arguments_bytes", "parse_status"},
    "tool_call_end": {
        "tool_call_id",
        "name",
        "ok",
        "elapsed_ms",
        "output_bytes",
        "output_replaced",
        "error_codes",
        "executed",
    },
    "fix_empty_final": {"disable_tools", "user_text_bytes"},
    "final": {"assistant_content_bytes", "any_tool_calls_seen", "any_tool_success_seen"},
    "run_end": {"ok", "code", "turns", "calls", "usage", "elapsed_ms"},
}


def documented_fields() -> dict[str, set[str]]:
    """Return the fields of every event as its page lists them."""
    page = Path(__file__).parents[2] / "docs" / "reference" / "events.md"
    fields: dict[str, set[str]] = {}
    section = ""
    for line in page.read_text().splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
            fields[section] = set()
        elif line.startswith("- `") and section:
            fields[section].add(line.split("`")[1])
    return fields


class Ear:
    """Listens and keeps the events as plain data."""

    def __init__(self) -> None:
        self.heard: list[dict[str, Any]] = []

    def __call__(self, event: Event) -> None:
        """Keep one event."""
        self.heard.append(msgspec.to_builtins(event))

    @property
    def types(self) -> list[str]:
        """The types of all events, in order."""
        return [event["type"] for event in self.heard]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of one type, without what differs from run to run."""
        return [
            {
                key: value
                for key, value in event.items()
                if key not in {"type", "run_id", "at_ms", "elapsed_ms"}
            }
            for event in self.heard
            if event["type"] == kind
        ]


async def test_events_come_in_order(door: Door, ledger: Ledger) -> None:
    """A run of two turns with one call and an empty answer tells each step as it happens."""
    ear = Ear()
    await door.run([calls_add(), "", "5"], tools=ledger.tools, on_event=ear)

    asking = ["llm_request_start", "llm_request_end"]
    assert ear.types == [
        "run_start",
        *asking,
        "tool_call_start",
        "tool_call_end",
        *asking,
        "fix_empty_final",
        *asking,
        "final",
        "run_end",
    ]


async def test_events_have_the_documented_fields(door: Door, ledger: Ledger) -> None:
    """Every event carries its fields and no others, and time never goes back."""
    ear = Ear()
    refused = ScriptedReply(status=400, message="no")
    await door.run(
        [calls_add(), "", refused, "5"],
        tools=ledger.tools,
        fallback_retry_count=1,
        fix_empty_final_disable_tools=False,
        on_event=ear,
    )

    assert set(ear.types) == FIELDS.keys()
    documented = documented_fields()
    for event in ear.heard:
        assert event.keys() == ABOUT | documented[event["type"]]
        assert documented[event["type"]] >= FIELDS[event["type"]]
    assert len({event["run_id"] for event in ear.heard}) == 1
    moments = [event["at_ms"] for event in ear.heard]
    assert moments == sorted(moments)


async def test_requests_are_told_with_their_sizes(door: Door, ledger: Ledger) -> None:
    """Start and end of each request say what was sent and what came back."""
    ear = Ear()
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
    reply = ScriptedReply(message=calls_add("Wait…"), usage=usage)
    await door.run([reply, "fünf"], tools=ledger.tools, system="Be brief.", on_event=ear)

    common = {"tool_use_mode": "relaxed", "tool_failure_policy": "fatal", "tools_enabled": True}
    assert ear.of("llm_request_start") == [
        {
            **common,
            "turn": turn,
            "messages_count": count,
            "tools_count": 3,
            "tool_choice": "auto",
            "request_attempts_left": 0,
            "prompt_mode": "native",
        }
        for turn, count in ((0, 2), (1, 4))
    ]
    first, second = ear.of("llm_request_end")
    assert first["assistant_content_bytes"] == len("Wait…".encode())
    assert first["finish_reason"] == "tool_calls"
    assert first["usage"] == msgspec.to_builtins(Usage(9, 3, 12))
    assert (first["tool_calls_count"], first["ignored_tool_calls_count"]) == (1, 0)
    call = {"id": "call_1", "name": "add", "arguments_bytes": len('{"a":2,"b":3}')}
    assert list(first["tool_calls"]) == [call]
    assert second["assistant_content_bytes"] == 5
    assert second["usage"] is None
    assert second["finish_reason"] == "stop"


async def test_calls_are_told_with_their_outcome(door: Door, ledger: Ledger) -> None:
    """Start and end of each call say how it was read and what became of it."""
    ear = Ear()
    calls = assistant(
        None,
        call_add(id="good"),
        tool_call("add", "what?", "bad"),
        tool_call("note", {"text": "x" * 200}, "big"),
        tool_call("nope", "{}", "unknown"),
        tool_call("fail", "{}", "failing"),
    )
    await door.run(
        [calls, "done"],
        tools=ledger.tools,
        max_tool_args_bytes=100,
        max_concurrent_calls=1,
        on_event=ear,
    )

    started = {event["tool_call_id"]: event for event in ear.of("tool_call_start")}
    assert {key: event["parse_status"] for key, event in started.items()} == {
        "good": "ok",
        "bad": "invalid_json",
        "big": "too_large",
        "unknown": "ok",
        "failing": "ok",
    }
    ended = {event["tool_call_id"]: event for event in ear.of("tool_call_end")}
    assert {
        key: (event["ok"], event["executed"], tuple(event["error_codes"]))
        for key, event in ended.items()
    } == {
        "good": (True, True, ()),
        "bad": (False, False, (Code.ARGUMENTS_JSON_PARSE_ERROR,)),
        "big": (False, False, (Code.ARGUMENTS_TOO_LARGE,)),
        "unknown": (False, False, (Code.TOOL_NOT_ALLOWED,)),
        "failing": (False, True, (Code.INTERNAL_ERROR,)),
    }
    texts = [m["content"] for m in door.messages if m["role"] == "tool"]
    sizes = {event["tool_call_id"]: event["output_bytes"] for event in ended.values()}
    assert [sizes[call["id"]] for call in calls["tool_calls"]] == [len(t.encode()) for t in texts]


async def test_events_carry_the_call_its_changes_and_its_errors(door: Door, ledger: Ledger) -> None:
    """A listener sees what was read, what was changed, and why a call was refused."""
    ear = Ear()
    tags = '<tool_call>{"name": "add", "arguments": "```{\\"a\\": 2, \\"b\\": 3}```"}</tool_call>'
    await door.run(
        [tags, assistant(None, tool_call("add", {"a": 2}, "bad")), "done"],
        tools=ledger.tools,
        response_transforms=["assistant_content_tool_call_tags_to_tool_calls"],
        on_event=ear,
    )

    ended = ear.of("llm_request_end")
    assert list(ended[0]["receipts"]) == []
    assert ended[0]["receipts_count"] == 2
    call = ear.of("tool_call_start")[0]["call"]
    assert (call["id"], call["arguments"]) == ("tag_call_1", {"a": 2, "b": 3})
    assert [r["rule"] for r in call["receipts"]] == ["read_call_from_text", "strip_code_fence"]
    good, bad = ear.of("tool_call_end")
    assert list(good["errors"]) == []
    assert [error["code"] for error in bad["errors"]] == [Code.ARGUMENTS_INVALID]
    assert "b" in bad["errors"][0]["message"]


async def test_a_replaced_answer_is_told(door: Door, ledger: Ledger) -> None:
    """The event says that the tool's own answer was left out."""
    ear = Ear()
    await door.run(
        [assistant(None, tool_call("note", {"text": "x" * 2000})), "done"],
        tools=ledger.tools,
        max_tool_output_bytes=1000,
        on_event=ear,
    )

    ended = ear.of("tool_call_end")[0]
    assert ended["output_replaced"] is True
    assert ended["executed"] is True
    assert list(ended["error_codes"]) == [Code.TOOL_OUTPUT_TOO_LARGE]


async def test_the_beginning_and_the_end_are_told(door: Door, ledger: Ledger) -> None:
    """The first event names the run, the last ones say how it ended."""
    ear = Ear()
    result = await door.run([calls_add(), "5"], tools=ledger.tools, run_id="run-1", on_event=ear)

    assert ear.of("run_start") == [
        {
            "turn": 0,
            "model": MODEL,
            "fingerprint": result.trace.fingerprint,
            "tools": ("add", "note", "fail"),
            "resumed": False,
        }
    ]
    assert ear.of("final") == [
        {
            "turn": 1,
            "assistant_content_bytes": 1,
            "any_tool_calls_seen": True,
            "any_tool_success_seen": True,
        }
    ]
    assert ear.of("run_end") == [
        {
            "turn": 1,
            "ok": True,
            "code": "",
            "turns": 2,
            "calls": 1,
            "usage": msgspec.to_builtins(Usage()),
        }
    ]
    assert {event["run_id"] for event in ear.heard} == {"run-1"}


async def test_a_retry_without_tools_is_told(door: Door, ledger: Ledger) -> None:
    """Error, retry and the second attempt are events of the same turn."""
    ear = Ear()
    await door.run(
        [ScriptedReply(status=400, message="no tools here"), "Hello."],
        tools=ledger.tools,
        fallback_retry_count=1,
        on_event=ear,
    )

    assert ear.types == [
        "run_start",
        "llm_request_start",
        "llm_request_error",
        "llm_request_retry",
        "llm_request_start",
        "llm_request_end",
        "final",
        "run_end",
    ]
    assert [
        (e["turn"], e["tools_enabled"], e["request_attempts_left"])
        for e in ear.of("llm_request_start")
    ] == [(0, True, 1), (0, False, 0)]
    error = ear.of("llm_request_error")[0]
    assert (error["status"], error["code"]) == (400, Code.BAD_REQUEST)
    assert error["error_class"] == "ProviderStatusError"
    assert "no tools here" in error["message"]
    assert ear.of("llm_request_retry") == [
        {"turn": 0, "tools_enabled": False, "request_attempts_left": 0}
    ]


@pytest.mark.parametrize(
    ("reply", "error", "code"),
    [
        pytest.param("5", ToolUseError, Code.NO_TOOL_CALLS, id="no calls"),
        pytest.param(
            ScriptedReply(status=401, message="who?"), ProviderStatusError, Code.AUTH, id="refused"
        ),
    ],
)
async def test_a_run_that_fails_tells_its_end(
    door: Door, ledger: Ledger, reply: Any, error: type[Exception], code: Code
) -> None:
    """The last event has the code of the error, and there is no final."""
    ear = Ear()
    with pytest.raises(error):
        await door.run([reply], tools=ledger.tools, tool_use_mode="enforced", on_event=ear)

    assert ear.types[-1] == "run_end"
    assert "final" not in ear.types
    end = ear.of("run_end")[0]
    assert (end["ok"], end["code"]) == (False, code)


async def test_a_run_that_breaks_tells_its_end(door: Door, ledger: Ledger) -> None:
    """Whatever ends a run, whoever listens is told that it is over."""

    def broken(messages: list[Any]) -> list[Any]:
        raise RuntimeError("a transform is broken")

    registry = TransformRegistry.builtin()
    registry.register("messages", "broken", broken)
    ear = Ear()
    with pytest.raises(RuntimeError, match="a transform is broken"):
        await door.run(
            [], tools=ledger.tools, transforms=registry, message_transforms=["broken"], on_event=ear
        )

    assert ear.types == ["run_start", "llm_request_start", "llm_request_error", "run_end"]


async def test_what_a_listener_raises_is_ignored(door: Door, ledger: Ledger) -> None:
    """A listener that fails at every event changes nothing about the run."""
    heard: list[str] = []

    def listen(event: Event) -> None:
        heard.append(type(event).__name__)
        raise RuntimeError("the listener is broken")

    result = await door.run([calls_add(), "5"], tools=ledger.tools, on_event=listen)

    assert result.text == "5"
    assert ledger.names_ran == ["add"]
    assert heard[0] == "RunStarted"
    assert heard[-1] == "RunEnded"
    assert len(heard) == 9
