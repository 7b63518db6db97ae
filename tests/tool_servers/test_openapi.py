"""Operations of an OpenAPI document as tools, against a real server on this machine."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

import surecall
from surecall.errors import ConfigError
from surecall.openapi.operations import Operation, read_operations
from surecall.transport import assistant, tool_call

PET = {
    "type": "object",
    "required": ["id", "name"],
    "properties": {
        "id": {"type": "integer", "readOnly": True},
        "name": {"type": "string"},
        "parent": {"$ref": "#/components/schemas/Pet"},
        "age": {"type": "integer", "nullable": True, "minimum": 0, "exclusiveMinimum": True},
    },
}
DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.3",
    "servers": [{"url": "https://evil.example/v1"}],
    "components": {
        "schemas": {"Pet": PET},
        "parameters": {"Id": {"name": "pet-id", "in": "path", "required": True, "schema": {}}},
        "requestBodies": {
            "Pet": {
                "required": True,
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}},
            }
        },
    },
    "paths": {
        "/pets/{pet-id}": {
            "parameters": [{"$ref": "#/components/parameters/Id"}],
            "get": {
                "operationId": "getPet",
                "summary": "Get a pet.",
                "parameters": [
                    {"name": "fields", "in": "query", "schema": {"type": "array"}},
                    {"name": "tags", "in": "query", "explode": False, "schema": {"type": "array"}},
                    {"name": "filter", "in": "query", "style": "deepObject", "schema": {}},
                    {"name": "X-Trace", "in": "header", "schema": {"type": "string"}},
                    {"name": "Authorization", "in": "header", "schema": {"type": "string"}},
                ],
            },
            "put": {
                "operationId": "pets.put",
                "requestBody": {"$ref": "#/components/requestBodies/Pet"},
            },
        },
        "/large": {"get": {"operationId": "large"}},
        "/away": {"get": {"operationId": "away"}},
        "/broken": {"delete": {}},
        "/upload": {
            "post": {
                "operationId": "upload",
                "requestBody": {"required": True, "content": {"image/png": {}}},
            }
        },
        "/far": {"get": {"parameters": [{"$ref": "https://evil.example/p.json"}]}},
        "/lost/{id}": {"get": {"operationId": "lost"}},
    },
}


@pytest.fixture
async def server() -> AsyncIterator[str]:
    """Serve an API that answers with what it was asked."""

    async def echo(request: web.Request) -> web.Response:
        wanted = ("X-Trace", "Authorization", "Content-Type")
        return web.json_response(
            {
                "method": request.method,
                "path": request.raw_path,
                "headers": {key: request.headers[key] for key in wanted if key in request.headers},
                "body": await request.text(),
            }
        )

    async def large(_: web.Request) -> web.Response:
        return web.Response(text="x" * 300_000)

    async def away(_: web.Request) -> web.Response:
        raise web.HTTPFound("https://evil.example/")

    async def broken(_: web.Request) -> web.Response:
        return web.json_response({"ok": True, "detail": "obey"}, status=500)

    app = web.Application()
    app.router.add_get("/v1/large", large)
    app.router.add_get("/v1/away", away)
    app.router.add_delete("/v1/broken", broken)
    app.router.add_route("*", "/{rest:.*}", echo)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    await runner.cleanup()


async def call(tools: Any, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    """Return the envelopes of calls."""
    asked = [assistant(None, tool_call(name, arguments)) for name, arguments in calls]
    model = surecall.ScriptedTransport([*asked, "Done."])
    result = await surecall.run("Go.", model="m", tools=tools, transport=model)
    return [item.envelope for item in result.results]


async def test_calls_become_requests_to_the_host_of_the_caller(server: str) -> None:
    """Path, query, header and body go where they belong, and no argument leaves its part."""
    tools = surecall.openapi_tools(DOCUMENT, base_url=server, auth="key", prefix="pets_")
    specs = {tool.name: tool.spec for tool in tools}
    assert [(name, spec.effect) for name, spec in specs.items()] == [
        ("pets_getPet", "read"),
        ("pets_pets_put_b6c3d65a", "write"),
        ("pets_large", "read"),
        ("pets_away", "read"),
        ("pets_delete_broken_f4f2cd9c", "write"),
    ]
    assert "Authorization" not in specs["pets_getPet"].parameters["properties"]
    put = next(name for name in specs if "put" in name)
    delete = next(name for name in specs if "broken" in name)
    got, put_it, dots, large, away, broken = await call(
        tools,
        (
            "pets_getPet",
            {
                "pet-id": "../a/{x}?b#c",
                "fields": ["a", "b&c"],
                "tags": [1, 2],
                "filter": {"k": "v"},
                "X-Trace": "t",
            },
        ),
        (put, {"pet-id": 7, "body": {"name": "Rex", "age": None, "parent": {"name": "Max"}}}),
        ("pets_getPet", {"pet-id": ".."}),
        ("pets_large", {}),
        ("pets_away", {}),
        (delete, {}),
    )
    seen = got.data["body"]
    assert seen["path"].split("?")[0] == "/v1/pets/..%2Fa%2F%7Bx%7D%3Fb%23c"
    query = parse_qsl(seen["path"].split("?")[1])
    assert query == [("fields", "a"), ("fields", "b&c"), ("tags", "1,2"), ("filter[k]", "v")]
    assert seen["headers"] == {"X-Trace": "t", "Authorization": "Bearer key"}
    assert put_it.data["body"]["method"] == "PUT"
    assert json.loads(put_it.data["body"]["body"])["parent"] == {"name": "Max"}
    assert put_it.data["body"]["headers"]["Content-Type"] == "application/json"
    assert dots.error_codes == ("ARGUMENT_ERROR",)
    assert large.error_codes == ("TOOL_OUTPUT_TOO_LARGE",)
    assert (away.error_codes, away.data["status"]) == (("TOOL_SERVER_ERROR",), 302)
    assert (broken.error_codes, broken.data["status"]) == (("TOOL_SERVER_ERROR",), 500)
    assert "may have taken effect" in (broken.errors[0].hint or "")


def test_schemas_are_those_of_today() -> None:
    """References and the old forms of 3.0 are rewritten, and what a server sets is gone."""
    found = [item for item in read_operations(DOCUMENT) if isinstance(item, Operation)]
    put = next(item for item in found if item.id == "pets.put")
    (name,) = put.schema["$defs"]
    pet = put.schema["$defs"][name]
    assert put.schema["required"] == ["pet-id", "body"]
    assert pet["required"] == ["name"]
    assert pet["properties"]["parent"] == {"$ref": f"#/$defs/{name}"}
    assert pet["properties"]["age"]["anyOf"] == [
        {"type": "integer", "exclusiveMinimum": 0},
        {"type": "null"},
    ]


def test_what_cannot_be_used_is_left_out_or_refused(tmp_path: Path) -> None:
    """References that lead away, bodies that are not JSON and paths with gaps make no tool."""
    left_out = [str(item) for item in read_operations(DOCUMENT) if not isinstance(item, Operation)]
    assert [text.split(":")[1].strip() for text in left_out] == [
        "POST /upload",
        "GET /far",
        "GET /lost/{id}",
    ]
    file = tmp_path / "api.json"
    file.write_text(json.dumps(DOCUMENT))
    tools = surecall.openapi_tools(file, base_url="https://api.example/", allow=["getPet"])
    assert [tool.name for tool in tools] == ["getPet"]
    for wrong in (
        {"document": DOCUMENT, "base_url": "https://h/", "allow": ["getpet"]},
        {"document": {"swagger": "2.0"}, "base_url": "https://h/"},
        {"document": DOCUMENT, "base_url": "ftp://h/"},
        {"document": DOCUMENT, "base_url": "https://user@h/"},
        {"document": tmp_path / "none.json", "base_url": "https://h/"},
    ):
        with pytest.raises(ConfigError):
            surecall.openapi_tools(**wrong)


async def test_a_server_that_is_gone_is_said_to_be() -> None:
    """The model is told, and whether the call may have acted."""
    tools = surecall.openapi_tools(DOCUMENT, base_url="http://127.0.0.1:9", allow=["large"])
    (gone,) = await call(tools, ("large", {}))
    assert gone.error_codes == ("TOOL_SERVER_LOST",)


@given(st.text(min_size=1).filter(lambda text: text not in (".", "..")))
def test_no_value_leaves_its_part_of_the_path(value: str) -> None:
    """Whatever a model writes, the request has the path of the document around it."""
    operation = next(item for item in read_operations(DOCUMENT) if isinstance(item, Operation))
    try:
        path = operation.make_request({"pet-id": value}).path
    except UnicodeEncodeError:
        return
    assert path.startswith("/pets/")
    assert path.count("/") == 2
    assert not set("?#{}\\ ") & set(path)
