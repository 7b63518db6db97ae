"""What is none of surecall's business is the same with and without it."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Self

import anthropic
import httpx
import httpx2
import openai
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from anthropic.lib.vertex import AsyncAnthropicVertex

import surecall

from .test_wrap import RIGHT, WEATHER, calls_in, chat, message

pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Make = Callable[..., Any]


def leave(client: Any) -> Any:
    """Return a client as it is."""
    return client


BOTH: tuple[Callable[[Any], Any], ...] = (leave, surecall.wrap)
ERRORS: list[tuple[int, bytes]] = [
    (400, b'{"error": {"message": "no", "type": "t", "param": "p", "code": "c"}}'),
    (401, b'{"detail": "who?"}'),
    (404, b"<html>not here</html>"),
    (409, b""),
    (429, b'[{"error": {"message": "slow"}}]'),
    (500, b"<html>broken</html>"),
    (503, b'{"type": "error", "error": {"type": "x_error", "message": "no"}}'),
]
CALL = {"id": "c1", "type": "function"}
BROKEN = '{"city": "Paris", "days": "3",}'
HISTORY: list[dict[str, Any]] = [
    {"role": "user", "content": "hi"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{**CALL, "function": {"name": "get_weather", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "ok"},
]


def completion(arguments: str, finish: str = "tool_calls") -> dict[str, Any]:
    """Return a chat completion with one call."""
    function = {"name": "get_weather", "arguments": arguments}
    said = {"role": "assistant", "content": None, "tool_calls": [{**CALL, "function": function}]}
    choice = {"index": 0, "message": said, "finish_reason": finish}
    head = {"id": "r", "object": "chat.completion", "created": 1, "model": "m"}
    return {**head, "choices": [choice]}


def chunk(text: str) -> bytes:
    """Return an event with text."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
    head = {"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return b"data: " + json.dumps({**head, "choices": [choice]}).encode() + b"\n\n"


class Endpoint:
    """An endpoint on loopback that answers as a test says, and keeps what it was sent."""

    def __init__(self, handler: Handler) -> None:
        self.seen: list[tuple[str, dict[str, str], bytes]] = []

        async def answer(request: web.Request) -> web.StreamResponse:
            headers = {name.lower(): value for name, value in request.headers.items()}
            self.seen.append((request.path_qs, headers, await request.read()))
            return await handler(request)

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", answer)
        self._server = TestServer(app, host="127.0.0.1")

    @property
    def url(self) -> str:
        """Where it is."""
        return str(self._server.make_url("/"))

    async def __aenter__(self) -> Self:
        await self._server.start_server()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.close()


def answers(status: int, body: bytes, **headers: str) -> Handler:
    """Return a handler that always answers the same."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, body=body, headers=named)

    return answer


def make_openai(url: str, **settings: Any) -> Any:
    """Return a client of openai."""
    given: dict[str, Any] = {"api_key": "k", "max_retries": 0, **settings}
    return openai.AsyncOpenAI(base_url=f"{url}v1", **given)


def make_anthropic(url: str, **settings: Any) -> Any:
    """Return a client of anthropic."""
    given: dict[str, Any] = {"api_key": "k", "max_retries": 0, **settings}
    return anthropic.AsyncAnthropic(base_url=url.rstrip("/"), **given)


def ask_openai(client: Any, **fields: Any) -> Any:
    """Ask a client of openai."""
    return client.chat.completions.create(**chat("x", **fields))


def ask_anthropic(client: Any, **fields: Any) -> Any:
    """Ask a client of anthropic."""
    return client.messages.create(**message("x"), **fields)


async def fail(client: Any, ask: Callable[..., Any], **fields: Any) -> dict[str, Any]:
    """Return what is known of the exception that a request ends with."""
    try:
        found = await ask(client, **fields)
        if fields.get("stream"):
            [item async for item in found]
    except Exception as error:
        known = ("status_code", "body", "code", "request_id", "message")
        return {"kind": type(error), **{name: getattr(error, name, None) for name in known}}
    finally:
        await client.close()
    raise AssertionError("it did not fail")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("make", "ask"), [(make_openai, ask_openai), (make_anthropic, ask_anthropic)]
)
@pytest.mark.parametrize(("status", "body"), ERRORS)
async def test_errors_of_the_endpoint_come_as_they_were(
    status: int, body: bytes, make: Make, ask: Any, stream: bool
) -> None:
    """The same exception with the same words, after the same number of attempts."""
    handler = answers(status, body, x_request_id="r9", request_id="r9", retry_after_ms="1")
    found: list[Any] = []
    for wrap in BOTH:
        async with Endpoint(handler) as endpoint:
            client = wrap(make(endpoint.url, max_retries=1))
            told = await fail(client, ask, **({"stream": True} if stream else {}))
            found.append((told, len(endpoint.seen)))
    assert found[0] == found[1]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_what_a_hook_raises_is_what_the_sdk_gets(stream: bool) -> None:
    """Also in a conversation that has to be looked at before it is sent."""

    async def refuse(response: Any) -> None:
        await response.aread()
        response.raise_for_status()

    hooks: Any = {"response": [refuse]}
    found: list[Any] = []
    for wrap in BOTH:
        async with Endpoint(answers(500, b"{}")) as endpoint:
            http = httpx2.AsyncClient(event_hooks=hooks)
            client = wrap(make_openai(endpoint.url, http_client=http))
            found.append(await fail(client, ask_openai, messages=HISTORY, stream=stream))
    assert found[0] == found[1]


async def test_a_stream_that_breaks_off_raises_what_the_sdk_always_raises() -> None:
    """Whoever tries again after a broken connection does so here, too."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(chunk("Hel"))
        assert request.transport is not None
        request.transport.close()
        return response

    async with Endpoint(answer) as endpoint:
        client = surecall.wrap(make_openai(endpoint.url))
        stream = aiter(await ask_openai(client, stream=True))
        assert (await anext(stream)).choices[0].delta.content == "Hel"
        with pytest.raises(openai.APIConnectionError):
            await anext(stream)
        await client.close()


def endless(gone: asyncio.Event) -> Handler:
    """Return a handler that goes on with a stream until the client leaves."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        try:
            while True:
                await response.write(chunk("and on "))
                await asyncio.sleep(0.1)
        finally:
            gone.set()

    return answer


@pytest.mark.parametrize("wrap", BOTH, ids=["bare", "wrapped"])
async def test_a_stream_can_be_closed_while_another_task_reads_it(wrap: Any) -> None:
    """Somebody presses stop."""
    gone = asyncio.Event()
    async with Endpoint(endless(gone)) as endpoint:
        client = wrap(make_openai(endpoint.url))
        stream = await ask_openai(client, stream=True)
        begun = asyncio.Event()

        async def read() -> None:
            async for _ in stream:
                begun.set()

        reading = asyncio.create_task(read())
        await begun.wait()
        await stream.close()
        with pytest.raises(openai.APIConnectionError):
            await reading
        await gone.wait()
        await client.close()


@pytest.mark.parametrize("wrap", BOTH, ids=["bare", "wrapped"])
async def test_a_stream_can_be_closed_while_another_thread_reads_it(wrap: Any) -> None:
    """The blocking client has the same."""
    gone = asyncio.Event()

    def press_stop(url: str) -> Exception | None:
        client = wrap(openai.OpenAI(base_url=f"{url}v1", api_key="k", max_retries=0))
        stream = client.chat.completions.create(**chat("x", stream=True))
        begun, found = threading.Event(), list[Exception]()

        def read() -> None:
            try:
                for _ in stream:
                    begun.set()
            except Exception as error:
                found.append(error)

        reading = threading.Thread(target=read)
        reading.start()
        begun.wait()
        stream.close()
        reading.join()
        client.close()
        return found[0] if found else None

    async with Endpoint(endless(gone)) as endpoint:
        error = await asyncio.to_thread(press_stop, endpoint.url)
        assert isinstance(error, openai.APIConnectionError | None)
        await gone.wait()


@pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])
async def test_settings_of_the_own_http_client_hold(library: Any) -> None:
    """Headers, parameters, cookies and hooks are on the request as without surecall."""

    async def sign(request: Any) -> None:
        request.headers["x-signed"] = str(len(request.content))

    settings: Any = {
        "headers": {"x-team": "blue"},
        "params": {"tenant": "7"},
        "cookies": {"session": "s"},
        "auth": ("me", "secret"),
        "event_hooks": {"request": [sign]},
    }
    found: list[Any] = []
    encodings = ""
    for wrap in BOTH:
        async with Endpoint(answers(200, json.dumps(completion("{}")).encode())) as endpoint:
            http = library.AsyncClient(**settings)
            client = wrap(make_openai(endpoint.url, http_client=http))
            await ask_openai(client, tools=[])
            path, headers, body = endpoint.seen[0]
            encodings = headers.pop("accept-encoding")
            found.append((path, {**headers, "host": ""}, body))
            await client.close()
    assert found[0] == found[1]
    assert encodings == "gzip, deflate"  # of what the library offers, what has limits
    assert found[0][0] == "/v1/chat/completions?tenant=7"


async def test_the_response_of_the_library_is_whole() -> None:
    """Its headers, its time and what else it says about itself are there."""
    body = json.dumps(completion(BROKEN)).encode()

    async def answer(_: web.Request) -> web.StreamResponse:
        response = web.Response(body=body, content_type="application/json")
        response.headers.add("set-cookie", "a=1")
        response.headers.add("set-cookie", "b=2")
        return response

    async with Endpoint(answer) as endpoint:
        client = surecall.wrap(make_openai(endpoint.url))
        raw = await client.chat.completions.with_raw_response.create(**chat("x"))
        http = raw.http_response
        assert http.headers.get_list("set-cookie") == ["a=1", "b=2"]
        assert http.elapsed.total_seconds() >= 0
        assert int(http.headers["content-length"]) == len(http.content)
        assert (http.http_version, http.reason_phrase) == ("HTTP/1.1", "OK")
        assert http.extensions["surecall"]["outcome"] == "repaired"
        assert calls_in(raw.parse()) == RIGHT
        await client.close()


async def test_wrapping_twice_asks_no_more_than_once() -> None:
    """One budget holds, not the product of two."""
    async with Endpoint(answers(200, json.dumps(completion('{"town": 1}')).encode())) as endpoint:
        client = surecall.wrap(surecall.wrap(make_openai(endpoint.url)))
        with pytest.raises(openai.APIStatusError) as refused:
            await ask_openai(client)
        assert refused.value.code == "CALLS_REFUSED"
        assert len(endpoint.seen) == 3
        await client.close()


async def test_a_class_with_a_constructor_of_its_own_is_wrapped() -> None:
    """The SDK could not copy such a client."""
    async with Endpoint(answers(200, json.dumps(completion(BROKEN)).encode())) as endpoint:

        class Ours(openai.AsyncOpenAI):
            def __init__(self, team: str) -> None:
                super().__init__(base_url=f"{endpoint.url}v1", api_key=team, max_retries=0)
                self.team = team

        given = Ours("blue")
        assert given.chat
        client = surecall.wrap(given)
        assert calls_in(await ask_openai(client)) == RIGHT
        assert (type(client), client.team) == (Ours, "blue")
        whole = await ask_openai(given)
        assert whole.choices[0].message.tool_calls[0].function.arguments == BROKEN
        await client.close()


async def test_a_call_that_was_demanded_by_name_may_end_with_a_stop() -> None:
    """That is how a provider says it, so nothing is changed."""
    choice = {"type": "function", "function": {"name": WEATHER["name"]}}
    reply = completion('{"city": "Paris", "days": 3}', "stop")
    async with Endpoint(answers(200, json.dumps(reply).encode())) as endpoint:
        client = surecall.wrap(make_openai(endpoint.url))
        made = await ask_openai(client, tool_choice=choice)
        assert made.choices[0].finish_reason == "stop"
        assert "surecall" not in (made.model_extra or {})
        await client.close()


async def test_models_of_a_platform_are_recognized_by_their_path() -> None:
    """Vertex names the model there; tokens are counted at nearly the same place."""
    call = {"type": "tool_use", "id": "t1", "name": WEATHER["name"]}
    reply = {
        "id": "r",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{**call, "input": {"city": "Paris", "days": "3"}}],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    async with Endpoint(answers(200, json.dumps(reply).encode())) as endpoint:
        given = AsyncAnthropicVertex(
            region="r", project_id="p", access_token="t", base_url=f"{endpoint.url}v1"
        )
        client: Any = surecall.wrap(given)
        made = await client.messages.create(**message("x"))
        assert made.content[0].input == RIGHT[0][1]
        assert made.surecall["outcome"] == "repaired"
        counted = await client.messages.count_tokens(model="m", messages=HISTORY[:1])
        assert counted.content[0]["input"]["days"] == "3"
        await client.close()


@pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])
@pytest.mark.parametrize("way", ["proxy", "mounts", "environment", "direct"])
async def test_http_client_takes_all_ways_to_the_endpoint(
    library: Any, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A proxy, a transport for some addresses, and what the environment says."""
    for name in ("HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    async with Endpoint(answers(200, json.dumps(completion(BROKEN)).encode())) as endpoint:
        settings: dict[str, Any] = {"limits": library.Limits(max_connections=1)}
        if way == "proxy":
            settings["proxy"] = endpoint.url
        if way == "mounts":
            settings["mounts"] = {"http://": library.AsyncHTTPTransport(proxy=endpoint.url)}
        if way == "environment":
            monkeypatch.setenv("HTTP_PROXY", endpoint.url)
        base = endpoint.url if way == "direct" else "http://model.example/"
        async with surecall.async_http_client(library=library, **settings) as client:
            response = await client.post(f"{base}v1/chat/completions", json=chat("x"))
            assert response.headers["x-surecall-outcome"] == "repaired"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_http_client_follows_redirects_as_it_is_told(stream: bool) -> None:
    """A redirect is an answer like any other."""
    reply = json.dumps(completion(BROKEN)).encode()

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path.startswith("/old"):
            raise web.HTTPTemporaryRedirect("/new/chat/completions")
        return web.Response(body=reply, content_type="application/json")

    for follows in (True, False):
        async with (
            Endpoint(answer) as endpoint,
            surecall.async_http_client(library=httpx2, follow_redirects=follows) as client,
        ):
            asked = chat("x", stream=stream)
            response = await client.post(f"{endpoint.url}old/chat/completions", json=asked)
            assert response.status_code == (200 if follows else 307)
            assert ("x-surecall-outcome" in response.headers) or stream or not follows


async def test_http_client_can_send_one_request_twice() -> None:
    """What a request was sent with leaves no mark on it."""
    async with (
        Endpoint(answers(200, json.dumps(completion(BROKEN)).encode())) as endpoint,
        surecall.async_http_client(library=httpx2) as client,
    ):
        url = f"{endpoint.url}v1/chat/completions"
        request = client.build_request("POST", url, json=chat("x"))
        for _ in range(2):
            response = await client.send(request)
            assert response.headers["x-surecall-outcome"] == "repaired"


def test_a_request_goes_out_as_the_client_made_it() -> None:
    """Headers and body of a request that needs nothing are the same, byte for byte."""
    sent: list[tuple[list[tuple[bytes, bytes]], bytes]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        sent.append((request.headers.raw, request.read()))
        return httpx2.Response(200, json=completion('{"city": "Paris"}'))

    http = httpx2.Client(transport=httpx2.MockTransport(answer))
    plain = openai.OpenAI(api_key="k", http_client=http)
    for client in (plain, surecall.wrap(plain)):
        client.chat.completions.create(**chat("none"))
    assert sent[0] == sent[1]
