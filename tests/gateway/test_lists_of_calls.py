"""A client that takes several calls gets those that a model leaves out of its text, over HTTP."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.completion_server import CompletionServer
from surecall.models.transport import ScriptedReply
from surecall.wire import find_protocol

from .harness import Plain, Served, ask, chat, make_settings, serve_gateway

CAN = "json_schema = true, grammar = true, text_formats = true"
CITIES = [{"name": "get_weather", "arguments": {"city": city}} for city in ("Oslo", "Bergen")]
ONE = json.dumps(CITIES[0])
PACKED = '{"name": "get_weather", "arguments": {"city": ["Oslo", "Bergen"]}}'
LISTED = json.dumps({"calls": CITIES})


@asynccontextmanager
async def serve(
    folder: Path, *replies: Any, can: str = CAN
) -> AsyncGenerator[tuple[Served, CompletionServer]]:
    """Serve a gateway in front of a model with these replies."""
    async with CompletionServer(replies) as server:
        text = (
            f'[upstreams.a]\nurl = "{server.url}"\nprobe = "off"\n'
            f"[models.m]\ncapabilities = {{{can}}}\n"
        )
        settings = make_settings(folder, text)
        async with serve_gateway(settings, facts=folder / "facts.db") as served:
            yield served, server


def cities(got: Plain, *, stream: bool = False) -> list[Any]:
    """Return the city of each call that a client finds."""
    protocol = find_protocol("chat_completions")
    if stream:
        folder = protocol.open_stream()
        folder.feed(got.body)
        raw = folder.close()
    else:
        raw = protocol.parse_body(got.body)
    found = [call.arguments for call in protocol.parse_message(raw).calls]
    return [json.loads(each)["city"] if isinstance(each, str) else each["city"] for each in found]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_gets_all_calls(tmp_path: Path, stream: bool) -> None:
    """The list is asked for with the schema of the tool alone, and paid from the same budget."""
    async with serve(tmp_path, ONE, LISTED) as (served, server):
        got = await ask(served, "POST", "/v1/chat/completions", chat("m", "Hi", stream=stream))
        assert (got.status, cities(got, stream=stream)) == (200, ["Oslo", "Bergen"])
        held = server.bodies[1]["response_format"]["json_schema"]["schema"]
        assert list(held["properties"]) == ["calls"]
        assert "tools" not in server.bodies[1]
        assert (served.last.outcome, served.last.upstream_requests) == ("reasked", 2)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "useless",
    [
        '{"calls": []}',
        LISTED[:-2],
        "No.",
        json.dumps({"calls": [CITIES[1], CITIES[1]]}),
        ScriptedReply(message="no", status=422),
    ],
)
async def test_a_list_of_no_use_leaves_the_single_call(
    tmp_path: Path, useless: Any, stream: bool
) -> None:
    """The client gets what it would have got."""
    async with serve(tmp_path, ONE, useless) as (served, server):
        got = await ask(served, "POST", "/v1/chat/completions", chat("m", "Hi", stream=stream))
        assert (got.status, cities(got, stream=stream)) == (200, ["Oslo"])
        assert len(server.bodies) == 2


async def test_several_things_in_one_argument_become_several_calls(tmp_path: Path) -> None:
    """Before the errors are told; where the list is of no use, they are told as before."""
    async with serve(tmp_path, PACKED, LISTED) as (served, server):
        got = await ask(served, "POST", "/v1/chat/completions", chat("m", "Hi"))
        assert cities(got) == ["Oslo", "Bergen"]
    async with serve(tmp_path, PACKED, "No.", ONE) as (served, server):
        got = await ask(served, "POST", "/v1/chat/completions", chat("m", "Hi"))
        assert cities(got) == ["Oslo"]
        assert "city" in server.bodies[2]["messages"][-1]["content"]


@pytest.mark.parametrize(
    ("can", "fields"),
    [
        ("json_schema = true", {}),
        ("text_formats = true", {}),
        (f"{CAN}, supports_parallel_tools = true", {}),
        (CAN, {"parallel_tool_calls": False}),
    ],
)
async def test_where_nothing_may_be_missing_nothing_is_asked(
    tmp_path: Path, can: str, fields: dict[str, Any]
) -> None:
    """Neither of an endpoint that cannot hold a reply, nor for a client that takes one call."""
    async with serve(tmp_path, ONE, can=can) as (served, server):
        got = await ask(served, "POST", "/v1/chat/completions", chat("m", "Hi", **fields))
        assert cities(got) == ["Oslo"]
        assert len(server.bodies) == 1


async def test_a_conversation_with_calls_is_not_listed(tmp_path: Path) -> None:
    """What follows a result may depend on it."""
    entry = {"id": "c1", "type": "function"}
    entry["function"] = {"name": "get_weather", "arguments": '{"city": "Rome"}'}
    more = [
        {"role": "assistant", "content": None, "tool_calls": [entry]},
        {"role": "tool", "tool_call_id": "c1", "content": "Rain."},
    ]
    asked = chat("m", "Hi")
    async with serve(tmp_path, ONE) as (served, server):
        body = {**asked, "messages": [*asked["messages"], *more]}
        got = await ask(served, "POST", "/v1/chat/completions", body)
        assert cities(got) == ["Oslo"]
        assert len(server.bodies) == 1
