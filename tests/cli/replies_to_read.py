"""Replies as they arrive, of every kind that `surecall read` knows, and what each comes to."""

import json
from dataclasses import dataclass
from typing import Any

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["city"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "refund",
            "parameters": {
                "type": "object",
                "properties": {"number": {"type": "string"}, "cents": {"type": "integer"}},
                "required": ["number", "cents"],
            },
        },
    },
]
TAGGED = (
    "<think>\nOslo, then.\n</think>\nLet me look.\n<tool_call>\n"
    '{"name": "get_weather", "arguments": {"city": "Oslo", days: "3"}}\n</tool_call>'
)
PROSE = 'Call get_weather with a city, as in get_weather({"city": "Oslo"}).'


def call(name: str, arguments: Any, call_id: str = "call_1") -> dict[str, Any]:
    """Build one entry of `tool_calls`."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def message(*calls: dict[str, Any], content: str | None = None) -> dict[str, Any]:
    """Build an assistant message."""
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def body(finish_reason: str, *calls: dict[str, Any]) -> dict[str, Any]:
    """Build a chat completion."""
    choice = {"index": 0, "message": message(*calls), "finish_reason": finish_reason}
    return {"id": "c1", "object": "chat.completion", "choices": [choice]}


def stream(*deltas: dict[str, Any], finish_reason: str | None = "tool_calls") -> str:
    """Build a recorded stream."""
    choices = [{"index": 0, "delta": delta} for delta in deltas]
    if finish_reason is not None:
        choices.append({"index": 0, "delta": {}, "finish_reason": finish_reason})
    return "".join(f"data: {json.dumps({'choices': [choice]})}\n\n" for choice in choices)


def pieces(*arguments: str) -> list[dict[str, Any]]:
    """Build the deltas of one call to `refund`."""
    entries: list[dict[str, Any]] = [{"index": 0, "function": {"arguments": a}} for a in arguments]
    entries[0] |= {"id": "call_9"}
    entries[0]["function"]["name"] = "refund"
    return [{"tool_calls": [entry]} for entry in entries]


GOOD = call("refund", '{"number": "A-17", "cents": 4500}')
CUT = call("refund", '{"number": "A-17", "cents": 45', "call_4")
WRONG = call("refund", {"number": "A-17", "cents": "all of it"}, "call_2")
FENCED = call("Get-Weather", "```json\n" + json.dumps('{"city": "Oslo"}') + "\n```")
STREAM = stream(*pieces('{"number": "A-17",', ' "cents": 4500}'))

REFUND: dict[str, Any] = {"number": "A-17", "cents": 4500}
BLOCKS: dict[str, Any] = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "t1", "name": "refund", "input": REFUND}],
    "stop_reason": "tool_use",
}
RESPONSE: dict[str, Any] = {
    "object": "response",
    "status": "completed",
    "output": [
        {
            "type": "function_call",
            "call_id": "f1",
            "name": "refund",
            "arguments": json.dumps(REFUND),
        }
    ],
}
ENDED = {"type": "response.completed", "response": RESPONSE}
CANDIDATES: dict[str, Any] = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [{"functionCall": {"id": "g1", "name": "refund", "args": REFUND}}],
            },
            "finishReason": "STOP",
        }
    ]
}


@dataclass(frozen=True)
class Case:
    """A reply, and what is said about it."""

    id: str
    given: Any
    kind: str
    summary: str
    exit_code: int = 0
    formats: tuple[str, ...] = ("tool_calls",)
    words: tuple[str, ...] = ()


CASES = [
    Case(
        "text",
        TAGGED,
        "text",
        "1 call: would run; 3 changes, all lossless",
        formats=("tagged_json",),
    ),
    Case("prose", PROSE, "text", "no calls; no changes", formats=()),
    Case("message", message(GOOD), "message", "1 call: would run; no changes"),
    Case(
        "message without role",
        {"tool_calls": [GOOD]},
        "message",
        "1 call: would run; no changes",
    ),
    Case("choice", body("stop", GOOD)["choices"][0], "choice", "1 call: would run; no changes"),
    Case("body", body("tool_calls", GOOD), "body", "1 call: would run; no changes"),
    Case("stream", STREAM, "stream", "1 call: would run; no changes"),
    Case("stream with comment", f": hello\n\n{STREAM}", "stream", "1 call: would run; no changes"),
    Case(
        "fenced",
        message(FENCED),
        "message",
        "1 call: would run; 3 changes, all lossless",
    ),
    Case(
        "cut body",
        body("length", CUT),
        "body",
        "1 call: refused (ARGUMENTS_TRUNCATED); no changes",
        1,
    ),
    Case(
        "whole arguments of a cut reply",
        message(GOOD),
        "message",
        "1 call: refused (ARGUMENTS_TRUNCATED); no changes",
        1,
        words=("--finish-reason", "length"),
    ),
    Case(
        "finish reason given wins",
        body("length", GOOD),
        "body",
        "1 call: would run; no changes",
        words=("--finish-reason", "stop"),
    ),
    Case(
        "cut text",
        TAGGED[: TAGGED.index(", days")],
        "text",
        "1 call: refused (ARGUMENTS_TRUNCATED); 1 change, lossless",
        1,
        formats=("tagged_json",),
        words=("--finish-reason", "length"),
    ),
    Case(
        "several",
        message(FENCED, WRONG),
        "message",
        "2 calls: 1 would run, 1 refused (ARGUMENTS_INVALID); 4 changes, all lossless",
        1,
    ),
    Case(
        "unknown tool",
        message(call("launch", "{}")),
        "message",
        "1 call: refused (TOOL_NOT_ALLOWED); no changes",
        1,
    ),
    Case(
        "unreadable",
        message(call("refund", "please")),
        "message",
        "1 call: refused (ARGUMENTS_JSON_PARSE_ERROR); no changes",
        1,
    ),
    Case(
        "cut stream",
        stream(*pieces('{"number": "A-17",'), finish_reason=None),
        "stream",
        "no reply (STREAM_TRUNCATED); nothing in it would be used",
        1,
        formats=(),
    ),
    Case(
        "damaged body",
        json.dumps(body("stop", GOOD))[:-4],
        "body",
        "no reply (UPSTREAM_INVALID_JSON); nothing in it would be used",
        1,
        formats=(),
    ),
    Case(
        "damaged message",
        json.dumps(message(GOOD)) + ', "finish_reason": "stop"',
        "message",
        "no reply (UPSTREAM_INVALID_JSON); nothing in it would be used",
        1,
        formats=(),
    ),
    Case(
        "error body",
        {"error": {"message": "no such model", "code": "model_not_found"}},
        "body",
        "no reply (NOT_FOUND); nothing in it would be used",
        1,
        formats=(),
    ),
    Case("Messages body", BLOCKS, "body", "1 call: would run; no changes"),
    Case(
        "Messages stream",
        [
            {"type": "message_start", "message": {**BLOCKS, "stop_reason": None}},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
            {"type": "message_stop"},
        ],
        "stream",
        "1 call: would run; no changes",
    ),
    Case("Responses body", RESPONSE, "body", "1 call: would run; no changes"),
    Case(
        "Responses stream",
        f"event: response.completed\ndata: {json.dumps(ENDED)}\n\n",
        "stream",
        "1 call: would run; no changes",
    ),
    Case("Gemini body", CANDIDATES, "body", "1 call: would run; no changes"),
    Case("Gemini chunks", [CANDIDATES], "body", "1 call: would run; no changes"),
    Case(
        "the second choice",
        {"choices": [*body("length", CUT)["choices"], *body("stop", GOOD)["choices"]]},
        "body",
        "1 call: would run; no changes",
        words=("--choice", "1"),
    ),
    Case(
        "a named wire format",
        {"content": BLOCKS["content"]},
        "body",
        "1 call: would run; no changes",
        words=("--protocol", "messages"),
    ),
    Case(
        "a likely call",
        'Done.\n```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```',
        "text",
        "no calls; no changes",
        formats=(),
    ),
    Case(
        "a likely call that is accepted",
        'Done.\n```json\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n```',
        "text",
        "1 call: refused (CALL_NOT_CERTAIN); 2 changes, all lossless",
        1,
        formats=("bare_json",),
        words=("--accept", "likely"),
    ),
    Case("any other object", {"answer": 42}, "text", "no calls; no changes", formats=()),
]
