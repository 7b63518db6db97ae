"""Operations of an OpenAPI document as tools, against a real server on this machine."""

import json
from collections.abc import AsyncIterator
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

import surecall
from surecall.base.errors import ConfigError, ToolDefinitionError
from surecall.models.transport import assistant, tool_call
from surecall.tools import ToolFailed
from surecall.tools.openapi.operations import Operation, read_operations

from .conftest import serve

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
        "/a/%2e%2e/admin": {"get": {"operationId": "up"}},
        "/a/..;/admin": {"get": {"operationId": "over"}},
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

    async def latin(_: web.Request) -> web.Response:
        body = "Grüße".encode("latin-1")
        return web.Response(body=body, headers={"Content-Type": "text/plain; charset=latin-1"})

    app = web.Application()
    app.router.add_get("/v1/large", large)
    app.router.add_get("/v1/away", away)
    app.router.add_get("/v1/latin", latin)
    app.router.add_delete("/v1/broken", broken)
    app.router.add_route("*", "/{rest:.*}", echo)
    async with serve(app) as base:
        yield f"{base}/v1"


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
                "pet-id": "a/..b/{x}?b#c",
                "fields": ["a", "b&c"],
                "tags": [1, 2],
                "filter": {"k": "v"},
                "X-Trace": "t",
            },
        ),
        (put, {"pet-id": 7, "body": {"name": "Rex", "age": None, "parent": {"name": "Max"}}}),
        ("pets_getPet", {"pet-id": "../a"}),
        ("pets_large", {}),
        ("pets_away", {}),
        (delete, {}),
    )
    seen = got.data["body"]
    assert seen["path"].split("?")[0] == "/v1/pets/a%2F..b%2F%7Bx%7D%3Fb%23c"
    query = parse_qsl(seen["path"].split("?")[1])
    assert query == [("fields", "a"), ("fields", "b&c"), ("tags", "1,2"), ("filter[k]", "v")]
    assert seen["headers"] == {"X-Trace": "t", "Authorization": "Bearer key"}
    assert put_it.data["body"]["method"] == "PUT"
    assert json.loads(put_it.data["body"]["body"])["parent"] == {"name": "Max"}
    assert put_it.data["body"]["headers"]["Content-Type"] == "application/json"
    assert dots.error_codes == ("ARGUMENT_ERROR",)
    assert large.error_codes == ("TOOL_OUTPUT_TOO_LARGE",)
    assert (away.error_codes, away.data["status"]) == (("TOOL_SERVER_ERROR",), 302)
    assert away.data["location"] == "https://evil.example/"
    assert "not followed" in (away.errors[0].hint or "")
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
        "GET /a/%2e%2e/admin",
        "GET /a/..;/admin",
    ]
    file = tmp_path / "api.json"
    file.write_text(json.dumps(DOCUMENT))
    tools = surecall.openapi_tools(file, base_url="https://api.example/", allow=["getPet"])
    assert [tool.name for tool in tools] == ["getPet"]
    refused: list[dict[str, Any]] = [
        {"document": DOCUMENT, "base_url": "https://h/", "allow": ["getpet"]},
        {"document": {"swagger": "2.0"}, "base_url": "https://h/"},
        {"document": DOCUMENT, "base_url": "ftp://h/"},
        {"document": DOCUMENT, "base_url": "https://user@h/"},
        {"document": DOCUMENT, "base_url": "https://:password@h/"},
        {"document": DOCUMENT, "base_url": "https://h:99999/"},
        {"document": DOCUMENT, "base_url": "https://h/", "prefix": "a b"},
        {"document": {**DOCUMENT, "x": object()}, "base_url": "https://h/"},
        {"document": tmp_path / "none.json", "base_url": "https://h/"},
    ]
    for wrong in refused:
        with pytest.raises(ConfigError):
            surecall.openapi_tools(**wrong)


async def test_a_server_that_is_gone_is_said_to_be() -> None:
    """The model is told, and whether the call may have acted."""
    tools = surecall.openapi_tools(DOCUMENT, base_url="http://127.0.0.1:9", allow=["large"])
    (gone,) = await call(tools, ("large", {}))
    assert gone.error_codes == ("TOOL_SERVER_LOST",)


def describe(paths: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a document with these paths."""
    return {"openapi": "3.1.0", "paths": paths, **more}


def take(*parameters: dict[str, Any], path: str = "/things") -> dict[str, Any]:
    """Return a document with one operation that has these parameters."""
    return describe({path: {"get": {"operationId": "take", "parameters": list(parameters)}}})


def body_of(schema: Any, kind: str = "application/json", **more: Any) -> dict[str, Any]:
    """Return a path whose one operation takes a body."""
    content = {kind: {"schema": schema}}
    return {"post": {"operationId": "send", "requestBody": {"content": content}, **more}}


def operation_of(document: dict[str, Any]) -> Operation:
    """Return the one operation of a document."""
    (found,) = read_operations(document)
    assert isinstance(found, Operation)
    return found


LIST, OBJECT = ["a,b", "c d"], {"k": "v/w", "m": 1}


@pytest.mark.parametrize(
    ("style", "value", "query"),
    [
        ({}, LIST, "q=a%2Cb&q=c%20d"),
        ({"explode": False}, LIST, "q=a%2Cb,c%20d"),
        ({}, OBJECT, "k=v%2Fw&m=1"),
        ({"explode": False}, OBJECT, "q=k,v%2Fw,m,1"),
        ({"style": "spaceDelimited"}, LIST, "q=a%2Cb%20c%20d"),
        ({"style": "pipeDelimited"}, LIST, "q=a%2Cb%7Cc%20d"),
        ({"style": "pipeDelimited", "explode": True}, LIST, "q=a%2Cb&q=c%20d"),
        ({"style": "deepObject"}, {"a": {"b": [1, True]}}, "q[a][b]=1&q[a][b]=true"),
        (
            {"content": {"application/json": {}}},
            OBJECT,
            "q=%7B%22k%22%3A%22v%2Fw%22%2C%22m%22%3A1%7D",
        ),
        ({"content": {"application/json": {}}}, "x", "q=%22x%22"),
        ({}, "a&b=c+d", "q=a%26b%3Dc%2Bd"),
        ({}, True, "q=true"),
        ({}, None, ""),
    ],
)
def test_a_query_has_the_style_of_the_document(style: Any, value: Any, query: str) -> None:
    """What separates values is never what is inside one."""
    schema: dict[str, Any] = {} if "content" in style else {"schema": {}}
    operation = operation_of(take({"name": "q", "in": "query", **schema, **style}))
    assert operation.make_request({"q": value}).query == query


@pytest.mark.parametrize(
    ("style", "value", "path"),
    [
        ({}, LIST, "/a%2Cb,c%20d/x"),
        ({}, OBJECT, "/k,v%2Fw,m,1/x"),
        ({"explode": True}, OBJECT, "/k=v%2Fw,m=1/x"),
        ({"style": "label"}, LIST, "/.a%2Cb,c%20d/x"),
        ({"style": "label", "explode": True}, LIST, "/.a%2Cb.c%20d/x"),
        ({"style": "matrix"}, 5, "/;p=5/x"),
        ({"style": "matrix"}, LIST, "/;p=a%2Cb,c%20d/x"),
        ({"style": "matrix", "explode": True}, LIST, "/;p=a%2Cb;p=c%20d/x"),
        ({"style": "matrix", "explode": True}, OBJECT, "/;k=v%2Fw;m=1/x"),
        ({}, None, None),
        ({}, [], None),
        ({}, {}, None),
        ({"style": "label"}, ".", None),
        ({"style": "matrix"}, "", None),
    ],
)
def test_a_path_has_the_style_of_the_document(style: Any, value: Any, path: str | None) -> None:
    """What would leave a part empty or lead elsewhere is refused."""
    given: dict[str, Any] = {"name": "p", "in": "path", "required": True, "schema": {}, **style}
    operation = operation_of(take(given, path="/{p}/x"))
    if path is None:
        with pytest.raises(ToolFailed) as caught:
            operation.make_request({"p": value})
        assert caught.value.code == "ARGUMENT_ERROR"
    else:
        assert operation.make_request({"p": value}).path == path


def test_a_header_has_the_style_of_the_document_and_one_line() -> None:
    """No value adds a header of its own."""
    operation = operation_of(take({"name": "X-A", "in": "header", "schema": {}}))
    assert operation.make_request({"X-A": ["a", 1]}).headers == {"X-A": "a,1"}
    assert operation.make_request({"X-A": {"k": "v"}}).headers == {"X-A": "k,v"}
    with pytest.raises(ToolFailed):
        operation.make_request({"X-A": "a\r\nX-B: c"})


@pytest.mark.parametrize(
    ("contents", "kind"),
    [
        (["text/xml", "application/json"], "application/json"),
        (["application/vnd.api+json"], "application/vnd.api+json"),
        (["application/merge-patch+json", "application/json"], "application/json"),
        (["*/*"], "application/json"),
    ],
)
def test_a_body_is_sent_as_the_kind_of_json_it_is(contents: list[str], kind: str) -> None:
    """A server may refuse one kind of JSON for another."""
    content: dict[str, Any] = {name: {"schema": {}} for name in contents}
    path = {"patch": {"operationId": "send", "requestBody": {"content": content}}}
    request = operation_of(describe({"/a": path})).make_request({"body": {"a": 1}})
    assert (request.content_type, request.body) == (kind, b'{"a":1}')


async def test_what_is_sent_with_every_request_is_offered_to_no_model(server: str) -> None:
    """Neither a header in other letters, nor a cookie, nor what a server says of it."""
    parameters = [
        {"name": "X-API-Key", "in": "header", "required": True, "schema": {"type": "string"}},
        {"name": "session", "in": "cookie", "required": True, "schema": {"type": "string"}},
        {"name": "Content-Length", "in": "header", "schema": {"type": "string"}},
    ]
    document = take(*parameters)
    auth = {"x-api-key": "k", "Cookie": "session=1", "Authorization": "Bearer hunter2hunter2"}
    (tool,) = surecall.openapi_tools(document, base_url=server, auth=auth)
    assert tool.spec.parameters["properties"] == {}
    (seen,) = await call([tool], ("take", {}))
    assert seen.data["body"]["headers"]["Authorization"] == "Bearer [redacted]"
    for wrong in ("hunter2\r\nX: y", {"A b": "c"}):
        with pytest.raises(ConfigError) as caught:
            surecall.openapi_tools(document, base_url=server, auth=wrong)
        assert "hunter2" not in str(caught.value)


async def test_an_answer_is_read_in_its_own_characters(server: str) -> None:
    """And a path that is not ASCII reaches the server."""
    document = describe({"/latin": {"get": {"operationId": "latin"}}, "/é b": {"get": {}}})
    tools = surecall.openapi_tools(document, base_url=server)
    latin, other = await call(tools, ("latin", {}), (tools[1].name, {}))
    assert latin.data["body"] == "Grüße"
    assert other.data["body"]["path"] == "/v1/%C3%A9%20b"


def chain(length: int) -> dict[str, Any]:
    """Return components of which each refers to the next."""
    links = {f"A{n}": {"items": {"$ref": f"#/components/schemas/A{n + 1}"}} for n in range(length)}
    return {"schemas": {**links, f"A{length}": {}}}


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (body_of({"type": "wat"}), "POST /bad: The schema is not valid"),
        (body_of({}, "application/x-www-form-urlencoded"), "its body is not JSON"),
        (body_of({"$ref": "#/components/schemas/A0"}), "POST /bad: The schema has more than"),
        (body_of({"$ref": "#/components/schemas/None"}), "leads nowhere"),
        ({"$ref": "other.yaml#/bad"}, "leads out of the document"),
        ({"get": {"parameters": [{"name": "a b", "in": "header"}]}}, "the name of a header"),
        ({"get": {"parameters": [{"name": "a", "in": "query", "style": "x"}]}}, "the style 'x'"),
    ],
)
def test_one_operation_that_cannot_be_used_leaves_the_others(
    path: dict[str, Any], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said which and why; to name it is an error."""
    paths = {"/bad": path, "/good": {"get": {"operationId": "good"}}}
    document = describe(paths, components=chain(3000))
    tools = surecall.openapi_tools(document, base_url="https://h")
    assert [tool.name for tool in tools] == ["good"]
    assert words in caplog.text
    if "post" in path:
        with pytest.raises(ToolDefinitionError, match=words):
            surecall.openapi_tools(document, base_url="https://h", allow="send")


def test_every_operation_has_a_name_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    """Two of one id go by their paths, and no name that was cleaned is that of another."""
    paths = {f"/{n}": {"get": {"operationId": "same"}} for n in range(2)}
    paths |= {f"/{n}": {"get": {"operationId": n}} for n in ("a.b", "a_b_2e7336dc")}
    tools = surecall.openapi_tools(describe(paths), base_url="https://h")
    assert len({tool.name for tool in tools}) == 4
    assert "2 operations have the id same" in caplog.text
    surecall.openapi_tools(describe(paths), base_url="https://h", allow=["get/0"])
    many = describe({f"/{n}": {"get": {"operationId": f"o{n}"}} for n in range(1001)})
    (last,) = surecall.openapi_tools(many, base_url="https://h", allow=["o1000"])
    assert last.name == "o1000"
    with pytest.raises(ConfigError, match="more than 1000"):
        surecall.openapi_tools(many, base_url="https://h")


def test_a_document_as_readers_of_yaml_return_it() -> None:
    """Dates are text again, and a reference may be encoded."""
    when = {"type": "string", "default": date(2020, 1, 1)}
    document: dict[Any, Any] = {
        **describe({"/a": {**body_of({"$ref": "#/components/schemas/A%20B"}), 5: {}}}),
        "components": {"schemas": {"A B": {"properties": {"when": when}, "x-of": {"$ref": "x"}}}},
    }
    (tool,) = surecall.openapi_tools(document, base_url="https://h")
    (found,) = tool.spec.parameters["$defs"].values()
    assert found == {"properties": {"when": {"type": "string", "default": "2020-01-01"}}}


def test_what_only_a_server_sets_is_gone_where_schemas_are_combined() -> None:
    """Also from what another part requires; what stands next to a reference counts since 3.1."""
    base = {"properties": {"id": {"type": "integer", "readOnly": True}, "name": {}}}
    schema = {
        "allOf": [{"$ref": "#/components/schemas/Base"}, {"required": ["id", "name"]}],
        "properties": {"kind": {"$ref": "#/components/schemas/Kind", "default": "a"}},
    }
    components = {"schemas": {"Base": base, "Kind": {"enum": ["a"], "nullable": True}}}
    new = operation_of(describe({"/a": body_of(schema)}, components=components)).schema
    body = new["properties"]["body"]
    assert body["allOf"][1] == {"required": ["name"]}
    assert body["properties"]["kind"]["default"] == "a"
    assert all("id" not in item.get("properties", {}) for item in new["$defs"].values())
    old = {**describe({"/a": body_of(schema)}, components=components), "openapi": "3.0.0"}
    kind = operation_of(old).schema["properties"]["body"]["properties"]["kind"]
    assert list(kind) == ["$ref"]


@given(st.text(min_size=1).filter(lambda text: text not in (".", "..")))
def test_no_value_leaves_its_part_of_the_path(value: str) -> None:
    """Whatever a model writes, the request has the path of the document around it, or is refused.

    A server may take `.;` or `%2e` for a dot, so such a value is refused.
    """
    operation = next(item for item in read_operations(DOCUMENT) if isinstance(item, Operation))
    try:
        path = operation.make_request({"pet-id": value}).path
    except UnicodeEncodeError:
        return
    except ToolFailed:
        assert "." in unquote(unquote(unquote(value)))
        return
    assert path.startswith("/pets/")
    assert path.count("/") == 2
    assert not set("?#{}\\ ") & set(path)
