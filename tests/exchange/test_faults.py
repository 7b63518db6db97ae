"""Every named fault of a whole reply, seen by clients of four formats."""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from surecall.base.records import Message, ToolCall
from surecall.exchange.mediation import mediate
from surecall.exchange.policy import Delivered, Policy, Route
from surecall.exchange.request import ClientRequest
from surecall.faults.catalog import FAULTS, Fault
from surecall.faults.provider import FaultyProvider
from surecall.reading import ReadingLimits
from surecall.wire import find_protocol

from .scene import ARGUMENTS, FORMATS, calls_in, endpoint, seen, write_request

WIRE_ONLY = {"transport"}
"""Faults of the connection, which whoever sends has to deal with."""
SHORT = Policy(limits=ReadingLimits(max_arguments_bytes=4096))
RIGHT = ("save", ARGUMENTS)
HISTORY = (
    Message(
        "assistant",
        None,
        (ToolCall(id="call_before", name="save", arguments=ARGUMENTS, raw=json.dumps(ARGUMENTS)),),
    ),
    Message("tool", '{"ok": true}', tool_call_id="call_before"),
)


def _faults(client: str, upstream: str) -> list[Fault]:
    """Return the faults to try: all with the same format and one other, a part with the rest."""
    found = [
        fault
        for fault in FAULTS
        if fault.group not in WIRE_ONLY and fault.reaches(stream=False, protocol=upstream)
    ]
    distance = (FORMATS.index(upstream) - FORMATS.index(client)) % len(FORMATS)
    return found if distance < 2 else found[distance - 2 :: 4]


def _with_choices(client: str, fault: Fault, body: bytes) -> bytes:
    """Ask for one call at a time, or for a choice, where the fault is about that."""
    document: dict[str, Any] = json.loads(body)
    if "request_overrides" in fault.options and client != "gemini":
        if client == "messages":
            document["tool_choice"] = {"type": "auto", "disable_parallel_tool_use": True}
        else:
            document["parallel_tool_calls"] = False
    return json.dumps(document).encode()


async def _mediate(
    fault: Fault, client: str, upstream: str, policy: Policy, history: tuple[Message, ...] = ()
) -> Delivered:
    model = f"faults:{fault.name}"
    body = _with_choices(client, fault, write_request(client, model, history))
    request = ClientRequest.parse(client, body, model=model)
    send = endpoint(FaultyProvider(), upstream, model)
    return await mediate(
        request, Route(protocol=find_protocol(upstream), model=model), policy, send
    )


def _is_right(client: str, fault: Fault, calls: list[Any]) -> bool:
    if fault.name in {"extra_call", "call_twice", "call_flood", "parallel_false_ignored"}:
        return bool(calls) and calls[0] == RIGHT and (len(calls) == 1 or client == "gemini")
    if fault.name == "id_repeated":
        return calls == [RIGHT, ("ping", {})]
    return calls == [RIGHT]


@pytest.mark.parametrize("upstream", FORMATS)
@pytest.mark.parametrize("client", FORMATS)
async def test_each_fault_is_repaired_or_refused(client: str, upstream: str) -> None:
    """All that can be repaired is, and no wrong or cut call is ever delivered."""
    wrong: list[str] = []
    for fault in _faults(client, upstream):
        policy = SHORT if fault.name == "arguments_too_large" else Policy()
        policy = replace(policy, steps=("repair", "coerce", "reask"))
        delivered = await _mediate(fault, client, upstream, policy)
        calls = calls_in(client, delivered) if delivered.status == 200 else []
        if fault.repairable and not fault.truth and not _is_right(client, fault, calls):
            wrong.append(f"{fault.name}: {delivered.outcome} {calls}")
        if calls and not _is_right(client, fault, calls):
            wrong.append(f"{fault.name}: wrong call {calls}")
        if fault.refusal is not None and (delivered.outcome, delivered.should_retry) != (
            "refused",
            False,
        ):
            wrong.append(f"{fault.name}: {delivered.outcome}, not refused")
    assert not wrong


@pytest.mark.parametrize("upstream", FORMATS)
@pytest.mark.parametrize("client", FORMATS)
async def test_answers_after_results_arrive(client: str, upstream: str) -> None:
    """After a tool has run, an empty answer is asked for again, and ids stay apart."""
    wrong: list[str] = []
    for fault in _faults(client, upstream):
        if not fault.repairable or fault.group not in {"empty_final", "ids", "reasoning"}:
            continue
        delivered = await _mediate(fault, client, upstream, Policy(), HISTORY)
        if delivered.status != 200 or not (seen(client, delivered).content or "").strip():
            wrong.append(f"{fault.name}: {delivered.outcome} {delivered.body[:120]!r}")
    assert not wrong


@pytest.mark.parametrize("client", FORMATS)
async def test_unusable_bodies_are_coded_errors(client: str) -> None:
    """Unusable bodies are coded errors."""
    protocol = find_protocol(client)
    codes: dict[str, str] = {}
    for fault in _faults(client, client):
        if fault.group == "body" and fault.code is not None:
            delivered = await _mediate(fault, client, client, Policy())
            assert delivered.outcome == "failed"
            assert delivered.error is not None
            assert delivered.status >= 400
            assert json.loads(delivered.body)["error"]
            codes[fault.name] = delivered.error.code
            assert delivered.error.code == fault.code_in(protocol.name), fault.name
    assert codes


async def test_an_id_of_the_conversation_is_not_given_again() -> None:
    """An id of the conversation is not given again."""
    delivered = await _mediate(
        next(fault for fault in FAULTS if fault.name == "id_reused"),
        "chat_completions",
        "chat_completions",
        Policy(),
        (
            Message("assistant", None, (replace(HISTORY[0].tool_calls[0], id="call_0"),)),
            Message("tool", '{"ok": false, "errors": []}', tool_call_id="call_0"),
        ),
    )
    assert [call.id for call in seen("chat_completions", delivered).calls] == ["call_0__2"]
    assert delivered.outcome == "repaired"
