"""Whole answers over HTTP: every upstream fault, counted by the upstream."""

import asyncio
import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from support.upstream import (
    CLOSE,
    RESET,
    FaultyUpstream,
    Pause,
    Received,
    Script,
    chunked,
    completion_bytes,
    gzipped,
    http_response,
    reply,
    unused_port,
)
from surecall.base.errors import (
    Code,
    ConfigError,
    ProviderConnectionError,
    ProviderError,
    ProviderReplyError,
    ProviderStatusError,
    SurecallError,
)
from surecall.base.records import WireRequest
from surecall.base.redaction import Secret, redact
from surecall.models.client import Network
from surecall.models.transport import HttpTransport, RetryPolicy, WireLimits

KEY = "sk-hunter2hunter2hunter2"
BODY = completion_bytes("hi")


async def failure(transport: HttpTransport, request: WireRequest) -> ProviderError:
    """Return the error a request ends with."""
    with pytest.raises(ProviderError) as caught:
        await transport.send(request)
    return caught.value


async def test_a_request_goes_out_and_its_answer_comes_back(request_of_chat: WireRequest) -> None:
    """The key is in one header only, the body is JSON, nothing odd is accepted."""
    async with (
        FaultyUpstream([reply("hi")]) as upstream,
        HttpTransport(upstream.url, api_key=KEY, headers={"x-title": "t"}) as transport,
    ):
        answer = await transport.send(request_of_chat)
    assert json.loads(answer.body)["choices"][0]["message"]["content"] == "hi"
    assert (answer.status, answer.attempts) == (200, 1)
    assert answer.headers["content-type"] == "application/json"
    assert answer.elapsed_ms > 0
    [sent] = upstream.requests
    assert sent.head == "POST /v1/chat/completions HTTP/1.1"
    assert sent.json == {"model": "m", "messages": []}
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert sent.headers["accept-encoding"] == "gzip, identity"
    assert sent.headers["content-type"] == "application/json"
    assert sent.headers["x-title"] == "t"
    assert [name for name, value in sent.headers.items() if KEY in value] == ["authorization"]


async def test_headers_of_one_request_are_added_to_it_alone() -> None:
    """They win over the transport's own and are gone with the next request."""
    async with (
        FaultyUpstream([reply()]) as upstream,
        HttpTransport(upstream.url, headers={"x-a": "1"}) as transport,
    ):
        await transport.send(WireRequest(path="/c", body={}, headers={"X-A": "2", "x-b": "3"}))
        await transport.send(WireRequest(path="/c", body={}))
    first, second = upstream.requests
    assert (first.headers["x-a"], first.headers["x-b"]) == ("2", "3")
    assert (second.headers["x-a"], "x-b" in second.headers) == ("1", False)


async def test_a_connection_is_used_again(request_of_chat: WireRequest) -> None:
    """Requests one after the other share a connection."""
    async with FaultyUpstream([reply()]) as upstream, HttpTransport(upstream.url) as transport:
        for _ in range(3):
            await transport.send(request_of_chat)
    assert [sent.connection for sent in upstream.requests] == [1, 1, 1]


async def test_a_large_request_body_is_sent_whole(request_of_chat: WireRequest) -> None:
    """Megabytes go out in slices, without a warning."""
    request = WireRequest(path="/c", body={"text": "x" * 3_000_000})
    async with FaultyUpstream([reply()]) as upstream, HttpTransport(upstream.url) as transport:
        await transport.send(request)
    assert upstream.requests[0].json == request.body


@dataclass(frozen=True)
class Case:
    """What the upstream does to every request, and what must come of it."""

    id: str
    script: Script
    code: Code
    calls: int = 1
    kind: type[ProviderError] = ProviderReplyError
    told: str = ""
    limits: WireLimits = field(default_factory=WireLimits)


def plain(body: bytes, **headers: str | None) -> list[Any]:
    """Return the script of one answer with these headers."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return [http_response(body, headers=named)]


def unsized(body: bytes, *rest: Any) -> list[Any]:
    """Return the script of one answer that is sent in chunks."""
    return [*plain(body, content_length=None, transfer_encoding="chunked"), *rest]


TWICE = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\nabcd"
PAGE = b"<html><title>502 Bad gateway</title><body>trace</body></html>"
CASES = [
    Case(
        "A7 page with 502",
        [http_response(PAGE, 502, {"content-type": "text/html"})],
        Code.UPSTREAM_HTML,
        calls=2,
        told="titled '502 Bad gateway'",
    ),
    Case("A8 page with 200", plain(PAGE, content_type="text/html"), Code.UPSTREAM_HTML),
    Case("A8 page as json", plain(PAGE), Code.UPSTREAM_HTML),
    Case("A8 empty 200", plain(b""), Code.UPSTREAM_EMPTY),
    Case("A8 204", [http_response(b"", 204)], Code.UPSTREAM_EMPTY),
    Case(
        "A9 shorter than its length",
        [*plain(BODY, content_length="9999"), CLOSE],
        Code.UPSTREAM_TRUNCATED_BODY,
    ),
    Case("A9 longer than its length", plain(BODY, content_length="10"), Code.UPSTREAM_BAD_FRAMING),
    Case("A9 two lengths", [TWICE], Code.UPSTREAM_BAD_FRAMING),
    Case(
        "A9 unknown transfer encoding",
        plain(chunked(BODY), content_length=None, transfer_encoding="gzip, chunked"),
        Code.UPSTREAM_BAD_FRAMING,
    ),
    Case("A9 bad chunk", unsized(b"zz\r\nabc\r\n"), Code.UPSTREAM_BAD_FRAMING),
    Case(
        "A9 bad chunk later",
        unsized(chunked(b"abc", end=False), Pause(0.03), b"zz\r\nabc\r\n"),
        Code.UPSTREAM_BAD_FRAMING,
    ),
    Case(
        "A9 chunks without an end",
        unsized(chunked(b"abc", end=False), Pause(0.03), CLOSE),
        Code.UPSTREAM_TRUNCATED_BODY,
    ),
    Case("A9 not HTTP", [b"hello\r\n\r\n"], Code.UPSTREAM_BAD_FRAMING),
    Case("A9 endless header", plain(BODY, x="a" * 99_999), Code.UPSTREAM_BAD_FRAMING),
    Case(
        "A3 reset before the answer",
        [RESET],
        Code.CONNECTION_RESET,
        calls=2,
        kind=ProviderConnectionError,
    ),
    Case(
        "A3 close before the answer",
        [CLOSE],
        Code.CONNECTION_RESET,
        calls=2,
        kind=ProviderConnectionError,
    ),
    Case(
        "A3 reset inside the body",
        [*plain(BODY, content_length="9999"), Pause(0.03), RESET],
        Code.CONNECTION_RESET,
        kind=ProviderConnectionError,
    ),
    Case("A16 brotli", plain(b"x", content_encoding="br"), Code.UPSTREAM_ENCODING),
    Case("A16 zstd", plain(b"x", content_encoding="zstd"), Code.UPSTREAM_ENCODING),
    Case(
        "A16 nested gzip",
        plain(gzipped(gzipped(BODY)), content_encoding="gzip, gzip"),
        Code.UPSTREAM_ENCODING,
    ),
    Case(
        "A16 trailing data",
        plain(gzipped(BODY) + b"x", content_encoding="gzip"),
        Code.UPSTREAM_ENCODING,
    ),
    Case(
        "A16 cut gzip",
        plain(gzipped(BODY)[:-4], content_encoding="gzip"),
        Code.UPSTREAM_TRUNCATED_BODY,
    ),
    Case(
        "body above its limit",
        plain(b'"' + b"x" * 2000 + b'"'),
        Code.UPSTREAM_TOO_LARGE,
        limits=WireLimits(max_body_bytes=1000),
    ),
    Case(
        "unsized body above its limit",
        unsized(chunked(*[b"x" * 200] * 10)),
        Code.UPSTREAM_TOO_LARGE,
        limits=WireLimits(max_body_bytes=1000),
    ),
    Case(
        "A21 redirect",
        [http_response(b"", 307, {"location": "http://127.0.0.1:1/elsewhere"})],
        Code.UPSTREAM_REDIRECT,
        kind=ProviderStatusError,
        told="http://127.0.0.1:1",
    ),
    Case(
        "A13 quota",
        [http_response(b'{"error": {"code": "insufficient_quota"}}', 429, {"retry-after": "0"})],
        Code.QUOTA_EXCEEDED,
        kind=ProviderStatusError,
    ),
    Case(
        "A13 payment",
        [http_response(b"{}", 402)],
        Code.PAYMENT_REQUIRED,
        kind=ProviderStatusError,
    ),
    Case("A15 500", [http_response(b"{}", 500)], Code.UPSTREAM_5XX, 2, ProviderStatusError),
    Case("A12 429", [http_response(b"{}", 429)], Code.RATE_LIMIT, 2, ProviderStatusError),
    Case(
        "A12 429 for a day",
        [http_response(b"{}", 429, {"retry-after": "86400"})],
        Code.RATE_LIMIT,
        kind=ProviderStatusError,
        told="asks to wait 86400 s",
    ),
    Case("401", [http_response(b"{}", 401)], Code.AUTH, kind=ProviderStatusError),
    Case(
        "error body cut short",
        [http_response(b'{"err', 500, {"content-length": "99"}), CLOSE],
        Code.UPSTREAM_5XX,
        calls=2,
        kind=ProviderStatusError,
    ),
    Case(
        "error body in an unknown encoding",
        [http_response(b"xx", 500, {"content-encoding": "br"})],
        Code.UPSTREAM_5XX,
        calls=2,
        kind=ProviderStatusError,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_fault_gets_its_code_and_no_more_calls_than_allowed(
    case: Case, request_of_chat: WireRequest, quick: RetryPolicy
) -> None:
    """Every fault has one code, and the upstream sees one call, or two if trying again can help."""
    async with (
        FaultyUpstream([case.script]) as upstream,
        HttpTransport(upstream.url, api_key=KEY, retry=quick, limits=case.limits) as transport,
    ):
        error = await failure(transport, request_of_chat)
    assert error.code == case.code
    assert type(error) is case.kind
    assert upstream.calls == error.attempts == case.calls
    assert case.told in str(error)
    assert error.__cause__ is None


async def test_a_gzip_answer_is_read(request_of_chat: WireRequest) -> None:
    """Compressed answers arrive decompressed, and their connection is used again."""
    script = plain(gzip.compress(BODY), content_encoding="gzip")
    async with FaultyUpstream([script]) as upstream, HttpTransport(upstream.url) as transport:
        assert (await transport.send(request_of_chat)).body == BODY
        assert (await transport.send(request_of_chat)).body == BODY
    assert upstream.connections == 1


async def test_a_large_gzip_answer_is_read_without_holding_up_others(
    request_of_chat: WireRequest,
) -> None:
    """Other tasks run while megabytes are decompressed."""
    body = b"[" + b",".join(b'{"n": %d}' % n for n in range(400_000)) + b"]"
    script = plain(gzip.compress(body, 1), content_encoding="gzip")
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    async with FaultyUpstream([script]) as upstream, HttpTransport(upstream.url) as transport:
        other = asyncio.create_task(tick())
        answer = await transport.send(request_of_chat)
        other.cancel()
    assert answer.body == body
    assert ticks > len(body) / (1024 * 1024)


async def test_a_retry_that_succeeds_is_counted(
    request_of_chat: WireRequest, quick: RetryPolicy
) -> None:
    """One failed call and one good one give an answer in two attempts."""
    async with (
        FaultyUpstream([http_response(b"busy", 503), reply("hi")]) as upstream,
        HttpTransport(upstream.url, retry=quick) as transport,
    ):
        answer = await transport.send(request_of_chat)
    assert answer.attempts == upstream.calls == 2
    assert upstream.connections == 1


async def test_a_limit_error_keeps_the_wish_and_the_headers(request_of_chat: WireRequest) -> None:
    """The caller can forward what the provider asked for."""
    headers = {"retry-after": "86400", "x-ratelimit-reset": "1d", "x-request-id": "req_9"}
    async with (
        FaultyUpstream([http_response(b'{"error": "slow"}', 429, headers)]) as upstream,
        HttpTransport(upstream.url) as transport,
    ):
        error = await failure(transport, request_of_chat)
    assert error.retry_after_s == 86_400
    assert error.headers == {"content-type": "application/json", **headers}
    assert error.request_id == "req_9"
    assert error.provider_message == "slow"


async def test_no_retry_when_none_is_allowed(request_of_chat: WireRequest) -> None:
    """With no retries, the first failure is final."""
    async with (
        FaultyUpstream([RESET]) as upstream,
        HttpTransport(upstream.url, retry=RetryPolicy(max_retries=0)) as transport,
    ):
        await failure(transport, request_of_chat)
    assert upstream.calls == 1


async def test_a_redirect_never_carries_the_key_elsewhere(request_of_chat: WireRequest) -> None:
    """A21: the second host sees no connection at all."""
    async with FaultyUpstream([reply()]) as other:
        script = http_response(b"", 307, {"location": f"{other.url}/v1/chat/completions"})
        async with (
            FaultyUpstream([script]) as upstream,
            HttpTransport(upstream.url, api_key=KEY) as transport,
        ):
            await failure(transport, request_of_chat)
        assert other.connections == 0


async def test_an_unasked_answer_is_not_taken_for_the_next_one(
    request_of_chat: WireRequest,
) -> None:
    """A9: a second answer to the first request never answers the second request."""
    scripts = [[reply("one"), Pause(0.02), reply("stray")], [reply("two")]]
    async with FaultyUpstream(scripts) as upstream, HttpTransport(upstream.url) as transport:
        first = await transport.send(request_of_chat)
        await asyncio.sleep(0.06)
        second = await transport.send(request_of_chat)
    contents = [json.loads(a.body)["choices"][0]["message"]["content"] for a in (first, second)]
    assert contents == ["one", "two"]
    assert [sent.connection for sent in upstream.requests] == [1, 2]


async def test_an_idle_connection_that_was_closed_is_not_used(
    request_of_chat: WireRequest,
) -> None:
    """A keep-alive connection that the provider closed costs no failed call."""
    scripts = [[reply("one"), CLOSE], [reply("two")]]
    async with FaultyUpstream(scripts) as upstream, HttpTransport(upstream.url) as transport:
        await transport.send(request_of_chat)
        await asyncio.sleep(0.03)
        assert (await transport.send(request_of_chat)).attempts == 1
    assert (upstream.calls, upstream.connections) == (2, 2)


@pytest.mark.parametrize(
    ("make_url", "code"),
    [
        pytest.param(lambda: "http://nonexistent.invalid", Code.DNS_FAILURE, id="dns"),
        pytest.param(
            lambda: f"http://127.0.0.1:{unused_port()}", Code.CONNECTION_REFUSED, id="refused"
        ),
        pytest.param(
            lambda: f"http://localhost:{unused_port()}", Code.CONNECTION_REFUSED, id="refused twice"
        ),
    ],
)
async def test_a22_no_connection_has_its_own_code(
    make_url: Callable[[], str], code: Code, request_of_chat: WireRequest, quick: RetryPolicy
) -> None:
    """A host that is not there and a port that is closed are told apart."""
    async with HttpTransport(make_url(), retry=quick) as transport:
        error = await failure(transport, request_of_chat)
    assert isinstance(error, ProviderConnectionError)
    assert (error.code, error.attempts, error.retryable) == (code, 2, True)


async def test_a22_tls_to_a_server_without_it(request_of_chat: WireRequest) -> None:
    """A handshake that cannot work is told as such and not tried again."""
    async with (
        FaultyUpstream([], greeting=[b"HTTP/1.1 400 no\r\n\r\n"]) as upstream,
        HttpTransport(f"https://127.0.0.1:{upstream.port}") as transport,
    ):
        error = await failure(transport, request_of_chat)
    assert (error.code, error.retryable) == (Code.TLS_FAILURE, False)
    assert upstream.connections == 1


async def test_cookies_are_never_sent_back(request_of_chat: WireRequest) -> None:
    """What one answer sets, the next request does not carry."""
    script = plain(BODY, set_cookie="a=b; Path=/")
    async with FaultyUpstream([script]) as upstream, HttpTransport(upstream.url) as transport:
        await transport.send(request_of_chat)
        await transport.send(request_of_chat)
    assert "cookie" not in upstream.requests[1].headers


async def test_proxies_of_the_environment_are_used(
    request_of_chat: WireRequest, quick: RetryPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless the host is listed in NO_PROXY, or the caller says how the network is reached."""
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{unused_port()}")
    async with FaultyUpstream([reply()]) as upstream:
        async with HttpTransport(upstream.url, retry=quick) as transport:
            with pytest.raises(ProviderConnectionError, match=r"proxy 127\.0\.0\.1") as caught:
                await transport.send(request_of_chat)
        assert caught.value.code == Code.CONNECTION_REFUSED
        async with HttpTransport(upstream.url, network=Network()) as transport:
            assert (await transport.send(request_of_chat)).status == 200
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        async with HttpTransport(upstream.url) as transport:
            assert (await transport.send(request_of_chat)).status == 200


def echo(request: Received) -> Script:
    """Answer with an error that repeats everything the request held."""
    seen = f"{request.head} {request.headers} {request.body.decode()}"
    return [
        http_response(json.dumps({"error": {"message": seen}}).encode(), 400, {"x-request-id": KEY})
    ]


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"api_key": KEY}, id="text"),
        pytest.param({"api_key": Secret(KEY)}, id="secret"),
        pytest.param({"headers": {"X-Api-Key": KEY}}, id="header"),
        pytest.param({"headers": {"Authorization": f"Bearer {KEY}"}}, id="own bearer"),
    ],
)
async def test_a_key_that_is_echoed_does_not_get_into_the_error(settings: dict[str, Any]) -> None:
    """Whatever a provider repeats, the key is taken out of every field."""
    async with (
        FaultyUpstream(echo) as upstream,
        HttpTransport(upstream.url, **settings) as transport,
    ):
        error = await failure(transport, WireRequest(path="/c", body={"leak": KEY}))
    assert KEY in str(upstream.requests[0].headers)
    shown = f"{error} {error!r} {error.args} {vars(error)} {transport!r}"
    assert "hunter2" not in shown
    assert "[redacted]" in str(error)


async def test_a_key_of_one_request_is_redacted_too() -> None:
    """Keys given with a request are as secret as those of the transport."""
    async with FaultyUpstream(echo) as upstream, HttpTransport(upstream.url) as transport:
        request = WireRequest(path="/c", body={}, headers={"api-key": "plain-looking-value"})
        error = await failure(transport, request)
    assert "plain-looking-value" not in f"{error} {vars(error)}"


@pytest.mark.parametrize(
    ("name", "value", "is_secret"),
    [
        ("X-Auth-Token", "plain-looking-value", True),
        ("Proxy-Authorization", "Basic plain-looking-value", True),
        ("X-Whatever", "sk-0123456789abcdef", True),
        ("X-Mytoken", "plain-looking-value-1", True),
        ("Cookie", "theme=dark-and-quiet; session=0123456789abcdef", True),
        ("X-Max-Tokens", "100000", False),
        ("X-Portkey-Provider", "openai-compatible", False),
        ("X-Title", "an-app-with-a-name", False),
    ],
)
async def test_headers_are_secret_by_their_name_or_their_shape(
    name: str, value: str, is_secret: bool
) -> None:
    """What is only about keys and tokens stays readable in messages."""
    async with HttpTransport("http://127.0.0.1", headers={name: value}):
        own = value.rpartition(" ")[2].rpartition("=")[2]
        assert (redact(f"it said {own}") == "it said [redacted]") is is_secret


async def test_failures_carry_no_trace_of_the_request(
    request_of_chat: WireRequest, quick: RetryPolicy
) -> None:
    """The exceptions below, which hold the headers, are not chained to ours."""
    async with (
        FaultyUpstream([b"junk\r\n\r\n"]) as upstream,
        HttpTransport(upstream.url, api_key=KEY, retry=quick) as transport,
    ):
        error = await failure(transport, request_of_chat)
    assert error.__cause__ is None
    assert error.__context__ is None


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"api_key": "key\n"}, id="key with a line break"),
        pytest.param({"api_key": "kéy"}, id="key that is not ascii"),
        pytest.param({"headers": {"x y": "1"}}, id="space in a name"),
        pytest.param({"headers": {"x": "a\r\nb: c"}}, id="header injection"),
        pytest.param({"headers": {"Content-Length": "1"}}, id="framing"),
        pytest.param({"headers": {"accept-encoding": "br"}}, id="encoding"),
    ],
)
def test_headers_that_cannot_be_sent_are_refused_at_once(settings: dict[str, Any]) -> None:
    """A broken key is told when it is set, without showing it."""
    with pytest.raises(ConfigError) as caught:
        HttpTransport("http://127.0.0.1", **settings)
    assert caught.value.code == Code.INVALID_CONFIG
    assert "key\n" not in str(caught.value)


def test_a_blank_key_is_no_key() -> None:
    """An unset variable does not become an empty bearer token."""
    assert (
        repr(HttpTransport("http://h", api_key="")) == "HttpTransport('http://h/v1', api_key=None)"
    )
    assert "api_key='***'" in repr(HttpTransport("http://h", api_key=KEY))


async def test_a_body_that_is_not_json_is_the_callers_error(request_of_chat: WireRequest) -> None:
    """Nothing is sent when the body cannot be written."""
    async with FaultyUpstream([reply()]) as upstream, HttpTransport(upstream.url) as transport:
        with pytest.raises(SurecallError) as caught:
            await transport.send(WireRequest(path="/c", body={"x": object()}))
    assert caught.value.code == Code.NOT_SERIALIZABLE
    assert upstream.connections == 0


async def test_cancelling_closes_the_connection(request_of_chat: WireRequest) -> None:
    """Work upstream is given up when nobody waits for it, and the next request starts afresh."""
    scripts = [[Pause(5), reply("late")], [reply("fresh")]]
    async with FaultyUpstream(scripts) as upstream, HttpTransport(upstream.url) as transport:
        task = asyncio.create_task(transport.send(request_of_chat))
        while not upstream.calls:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        answer = await transport.send(request_of_chat)
    assert b"fresh" in answer.body
    assert [sent.connection for sent in upstream.requests] == [1, 2]


def test_a_transport_is_used_again_in_another_loop_after_closing(
    request_of_chat: WireRequest,
) -> None:
    """Closing it, or its loop, frees it for the next loop."""
    transport = HttpTransport(f"http://127.0.0.1:{unused_port()}", retry=RetryPolicy(max_retries=0))

    async def once(*, close: bool) -> str:
        error = await failure(transport, request_of_chat)
        if close:
            await transport.aclose()
        return error.code

    assert asyncio.run(once(close=False)) == Code.CONNECTION_REFUSED
    assert asyncio.run(once(close=True)) == Code.CONNECTION_REFUSED
    assert asyncio.run(once(close=True)) == Code.CONNECTION_REFUSED


async def test_a_transport_is_not_shared_by_two_running_loops(request_of_chat: WireRequest) -> None:
    """The second loop is told so instead of hanging."""
    async with FaultyUpstream([reply()]) as upstream, HttpTransport(upstream.url) as transport:
        await transport.send(request_of_chat)
        with pytest.raises(ConfigError, match="another event loop"):
            await asyncio.to_thread(asyncio.run, transport.send(request_of_chat))


def test_importing_the_transport_does_not_load_the_http_client() -> None:
    """The HTTP library is loaded with the first request only."""
    code = "import sys, surecall.models.transport; print('httptools' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
