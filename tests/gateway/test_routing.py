"""Where requests go: names, weights, fallbacks, retries, strategies, and what clients wish for."""

import asyncio
import json
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest

from surecall.gateway.budgets import RecentFailures
from surecall.gateway.dashboard.overview import list_down
from surecall.gateway.probing import Strategies
from surecall.gateway.upstreams import Target, Upstream
from surecall.wire.messages import Messages

from .harness import (
    STREAM_END,
    STREAM_HEAD,
    Served,
    ask,
    chat,
    completion,
    free_port,
    make_settings,
    piece,
    reply,
    serve_faults,
    serve_gateway,
    serve_stub,
    serve_stubbed,
)

CHAT = "/v1/chat/completions"
BROKEN = reply({"error": {"message": "broken", "type": "server_error"}}, 500)
HTML = b"HTTP/1.1 502 Bad Gateway\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>"
CUT = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999\r\n\r\n{"
STREAM = [STREAM_HEAD, piece("Hello"), piece("", "stop"), STREAM_END]


def two_upstreams(first: str, second: str) -> str:
    """Return a route with a fallback."""
    return (
        f'[upstreams.a]\nurl = "{first}"\nprobe = "off"\n'
        f'[upstreams.b]\nurl = "{second}"\nprobe = "off"\n'
        '[routes.smart]\ntargets = [{upstream = "a", model = "big"}]\n'
        'fallbacks = [{upstream = "b", model = "small"}]\n'
    )


# retries and fallbacks


async def ask_openai(url: str, *, stream: bool) -> None:
    """Ask with the official client, which sends a request that failed twice more."""
    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k-123456") as client:
        made = await client.chat.completions.create(**chat("m"), stream=stream)
        if stream:
            [event async for event in made]


async def ask_anthropic(url: str, *, stream: bool) -> None:
    """Ask with the other one, which does the same."""
    said: Any = [{"role": "user", "content": "Hi"}]
    async with anthropic.AsyncAnthropic(base_url=url, api_key="k-123456") as client:
        made = await client.messages.create(model="m", max_tokens=9, messages=said, stream=stream)
        if stream:
            [event async for event in made]


async def ask_unknowing(url: str, *, stream: bool) -> None:
    """Ask as the AI SDK for JavaScript does: twice more, whatever `x-should-retry` says."""
    for _ in range(3):
        got = await ask(Served(None, url, None, None), "POST", CHAT, chat("m", stream=stream))
        if got.status < 400:
            return
    raise openai.APIError("none", httpx.Request("POST", url), body=None)


ASKERS: dict[str, Any] = {"openai": ask_openai, "anthropic": ask_anthropic, "ai": ask_unknowing}
SOON = reply({"error": {"message": "soon"}}, 429, retry_after_ms="10")
TRANSIENT: dict[str, Any] = {
    "broken": [BROKEN],
    "soon": [SOON],
    "closed": [None],
    "a page": [HTML],
    "timed out": [5],
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("kind", TRANSIENT)
@pytest.mark.parametrize("client", ASKERS)
async def test_retries_do_not_multiply(
    client: str, kind: str, stream: bool, tmp_path: Path
) -> None:
    """With a client that asks three times, an upstream that fails is asked four times at most.

    The gateway retries the first request of the client, and only that.
    """
    text = f'protocol = "{"messages" if client == "anthropic" else "chat_completions"}"\n'
    text += "deadlines = {first_byte_s = 0.2}\n"
    async with serve_stubbed(tmp_path, TRANSIENT[kind], text=text) as (served, stub):
        with pytest.raises((openai.APIError, anthropic.APIError)):
            await ASKERS[client](served.url, stream=stream)
        assert len(stub.heads) == (3 if kind == "timed out" else 4)
        retries = [record.retries for record in served.store.records]
        assert retries == [0 if kind == "timed out" else 1, 0, 0]
        assert sum(record.upstream_requests for record in served.store.records) == len(stub.heads)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_client_may_try_as_often_as_without(stream: bool, tmp_path: Path) -> None:
    """An upstream that is back after three failures answers a client that asks three times."""
    good = STREAM if stream else [reply(completion())]
    async with serve_stubbed(tmp_path, *[[BROKEN]] * 3, good) as (served, stub):
        await ask_openai(served.url, stream=stream)
        assert len(stub.heads) == 4
        assert served.last.outcome == "clean"


async def test_a_relayed_path_may_be_tried_again(tmp_path: Path) -> None:
    """The gateway does not retry there, and keeps no client from it."""
    async with serve_stubbed(tmp_path, [None], [None], [reply({"data": []})]) as (served, stub):
        async with openai.AsyncOpenAI(base_url=f"{served.url}/v1", api_key="k-123456") as client:
            await client.post("/rerank", body={"model": "m"}, cast_to=object)
        assert len(stub.heads) == 3


async def test_asking_again_does_not_multiply(tmp_path: Path) -> None:
    """Of a client that repeats a reply that is none, only the first request is asked again."""
    async with serve_stubbed(tmp_path, [reply({"choices": []})]) as (served, stub):
        with pytest.raises(openai.APIError):
            await ask_unknowing(served.url, stream=False)
        assert len(stub.heads) == 4
        assert [record.upstream_requests for record in served.store.records] == [2, 1, 1]


async def test_another_key_or_body_is_another_request(tmp_path: Path) -> None:
    """A request that failed for one client is retried for others, and again after a repeat."""
    async with serve_stubbed(tmp_path, [BROKEN]) as (served, _):
        for key, text in (("a", "Hi"), ("b", "Hi"), ("a", "Ho"), ("a", "Hi")):
            head = {"authorization": f"Bearer k-{key}23456"}
            await ask(served, "POST", CHAT, chat("m", text), head)
        assert [record.retries for record in served.store.records] == [1, 1, 1, 0]


def test_what_failed_is_remembered_for_a_minute() -> None:
    """And only of so many requests."""
    now = 0.0
    failures = RecentFailures(lambda: now)
    failures.note("k", b"{}")
    now = 59.0
    assert failures.take("k", b"{}")
    failures.note("k", b"{}")
    now = 120.0
    assert not failures.take("k", b"{}")
    for number in range(1001):
        failures.note("k", b"%d" % number)
    assert not failures.take("k", b"0")
    assert failures.take("k", b"1")
    long = bytes(100_000)
    failures.note("k", long)
    assert not failures.take("k", long + b"1")
    assert failures.take("k", long)


async def test_nobody_listens(tmp_path: Path) -> None:
    """A refused connection is an error in the client's format, with its code in the record."""
    settings = make_settings(tmp_path, upstream=f"http://127.0.0.1:{free_port()}/v1")
    async with serve_gateway(settings) as served:
        got = await ask(served, "POST", CHAT, chat("m"))
        assert got.status == 503
        assert "x-should-retry" not in got.headers
        assert served.last.error_code == "CONNECTION_REFUSED"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    ("answer", "asked", "may"),
    [
        (reply({"error": {"message": "later"}}, 429, retry_after="86400"), 1, False),
        (reply({"error": {"message": "no"}}, 503, x_should_retry="false"), 1, False),
        (reply({"error": {"message": "no", "code": "insufficient_quota"}}, 429), 1, False),
        (reply({"error": {"message": "no"}}, 400), 1, False),
        (SOON, 2, True),
        (HTML, 2, True),
        (CUT, 2, True),
        (reply(b"no JSON"), 2, False),
    ],
    ids=["too long", "told not to", "quota", "bad", "soon", "a page", "cut off", "no JSON"],
)
async def test_what_is_tried_again(
    answer: bytes, asked: int, may: bool, stream: bool, tmp_path: Path
) -> None:
    """Only what may help, only once, and only after a wait that is short enough."""
    async with serve_stubbed(tmp_path, [answer, None]) as (served, stub):
        got = await ask(served, "POST", CHAT, chat("m", stream=stream))
        begun = stream and b" 200 " in answer  # a stream that has begun is not asked for again
        assert len(stub.heads) == (1 if begun else asked)
        assert got.status in (400, 429, 502, 503)
        assert ("x-should-retry" not in got.headers) is (may and not begun)
        assert served.last.upstream_requests == len(stub.heads)
        if b"86400" in answer:
            assert got.headers["retry-after"] == "86400"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_fallback_answers_before_the_first_byte(stream: bool, tmp_path: Path) -> None:
    """The next one in order is asked for its own model, with no retry in between."""
    good = STREAM if stream else [reply(completion("From b."))]
    async with serve_stub([BROKEN]) as first, serve_stub(good) as second:
        settings = make_settings(tmp_path, two_upstreams(first.url, second.url))
        async with serve_gateway(settings) as served:
            headers = {"authorization": "Bearer key-of-a-123456"}
            got = await ask(served, "POST", CHAT, chat("smart", stream=stream), headers)
            assert got.status == 200
            assert (len(first.heads), len(second.heads)) == (1, 1)
            assert json.loads(first.bodies[0])["model"] == "big"
            assert json.loads(second.bodies[0])["model"] == "small"
            assert "key-of-a" in first.heads[0]
            assert "key-of-a" not in second.heads[0]
            assert (served.last.upstream, served.last.model_asked) == ("b", "smart")


async def test_no_fallback_after_the_first_byte(tmp_path: Path) -> None:
    """A stream that breaks ends with an error event; two answers are never joined."""
    cut = [STREAM_HEAD, piece("Hello"), b"5\r\nda", None]
    async with serve_stub(cut) as first, serve_stub(STREAM) as second:
        settings = make_settings(tmp_path, two_upstreams(first.url, second.url))
        async with serve_gateway(settings) as served:
            got = await ask(served, "POST", CHAT, chat("smart", "Hi", stream=True))
            assert b"Hello" in got.body
            assert b'"error"' in got.body
            assert b"[DONE]" not in got.body
            assert not second.heads
            assert served.last.outcome == "failed"


async def test_weights_share_the_load(tmp_path: Path) -> None:
    """A target with no weight is never chosen, the others are."""
    async with serve_stub([reply(completion())]) as first, serve_stub([reply(completion())]) as two:
        text = (
            f'[upstreams.a]\nurl = "{first.url}"\n[upstreams.b]\nurl = "{two.url}"\n'
            '[routes.r]\ntargets = [{upstream = "a", model = "x", weight = 3},'
            '{upstream = "b", model = "y", weight = 1},'
            '{upstream = "b", model = "z", weight = 0}]\n'
        )
        async with serve_gateway(make_settings(tmp_path, text)) as served:
            for _ in range(40):
                assert (await ask(served, "POST", CHAT, chat("r"))).status == 200
        assert len(first.heads) > len(two.heads) > 0
        assert {json.loads(body)["model"] for body in two.bodies} == {"y"}


async def test_names_lead_to_upstreams(tmp_path: Path) -> None:
    """An alias, an upstream before a slash, and globs; what leads nowhere is 404."""
    async with serve_stub([reply(completion())]) as first, serve_stub([reply(completion())]) as two:
        text = (
            f'[upstreams.a]\nurl = "{first.url}"\nmodels = ["gpt-*"]\n'
            f'[upstreams.b]\nurl = "{two.url}"\nmodels = ["claude-*"]\n'
            '[aliases]\nfast = "gpt-mini"\n'
        )
        async with serve_gateway(make_settings(tmp_path, text)) as served:
            for name in ("fast", "gpt-5", "a/other"):
                assert (await ask(served, "POST", CHAT, chat(name))).status == 200
            assert (await ask(served, "POST", CHAT, chat("claude-5"))).status == 200
            unknown = await ask(served, "POST", CHAT, chat("nothing"))
            assert unknown.status == 404
            assert "nothing" in unknown.json["error"]["message"]
        asked = [json.loads(body)["model"] for body in first.bodies]
        assert asked == ["gpt-mini", "gpt-5", "other"]
        assert len(two.heads) == 1


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ({"detail": "x"}, {"message": "The provider answered 422: x.", "code": "UNPROCESSABLE"}),
        ({"error": {"message": "own", "code": "c1"}}, {"message": "own", "code": "c1"}),
    ],
    ids=["another form", "the client's form"],
)
async def test_an_error_has_one_form_whole_and_streamed(
    body: dict[str, Any], shown: dict[str, str], tmp_path: Path
) -> None:
    """An upstream's own error goes on if clients know its form, and is written in it if not."""
    async with serve_stubbed(tmp_path, [reply(body, 422)]) as (served, _):
        answers = [
            await ask(served, "POST", CHAT, chat("m", stream=stream)) for stream in (False, True)
        ]
        assert [answer.status for answer in answers] == [422, 422]
        assert answers[0].body == answers[1].body
        error = answers[0].json["error"]
        assert {name: error[name] for name in shown} == shown


async def test_an_upstream_is_told_the_version_of_its_api(tmp_path: Path) -> None:
    """A client of another format does not say it."""
    said = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "c",
        "content": [{"type": "text", "text": "Hello"}],
        "stop_reason": "end_turn",
    }
    async with serve_stub([reply(said)]) as stub:
        text = f'[upstreams.a]\nurl = "{stub.url}"\nprotocol = "messages"\nprobe = "off"\n'
        async with serve_gateway(make_settings(tmp_path, text)) as served:
            assert (await ask(served, "POST", CHAT, chat("c"))).status == 200
        versions = [line for line in stub.heads[0].splitlines() if line.startswith("anthropic-v")]
        assert versions == [f"anthropic-version: {Messages.fixed_headers['anthropic-version']}"]


async def test_what_was_not_carried_over_is_said_in_a_header(tmp_path: Path) -> None:
    """An image of Gemini, and a field that it does not know; the record has both too."""
    picture = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    content = {"role": "model", "parts": [{"text": "Here."}, picture]}
    drawn = {"candidates": [{"content": content, "finishReason": "STOP"}], "modelVersion": "g"}
    async with serve_stub([reply(drawn)]) as stub:
        url = stub.url.replace("/v1", "/v1beta")
        text = f'[upstreams.a]\nurl = "{url}"\nprotocol = "gemini"\nprobe = "off"\n'
        async with serve_gateway(make_settings(tmp_path, text)) as served:
            got = await ask(served, "POST", CHAT, {**chat("g"), "user": "ann"})
            assert got.json["choices"][0]["message"]["content"] == "Here."
            assert got.headers["x-surecall-outcome"] == "clean"
            assert got.headers["x-surecall-defects"] == "PART_NOT_KNOWN,FIELD_NOT_CARRIED"
            assert [item.place for item in served.last.defects] == ["/parts/1", "user"]


async def test_a_server_named_after_a_provider_may_have_any_template(tmp_path: Path) -> None:
    """A client of another format is put into turns that all take; a client of its own is left."""
    async with serve_stub([reply(completion())]) as stub:
        text = f'[upstreams.a]\nurl = "{stub.url}"\nprovider = "openai"\nprobe = "off"\n'
        said = [{"role": "developer", "content": "rules"}, {"role": "user", "content": "hi"}]
        async with serve_gateway(make_settings(tmp_path, text)) as served:
            await ask(served, "POST", "/v1/responses", {"model": "m", "input": said})
            await ask(served, "POST", CHAT, {"model": "m", "messages": said})
    messages = [json.loads(body)["messages"] for body in stub.bodies]
    roles = [[item["role"] for item in items] for items in messages]
    assert roles == [["system", "user"], ["developer", "user"]]


# what clients wish for


async def test_off_passes_everything_on_as_it_is(tmp_path: Path) -> None:
    """Request and reply keep their bytes, whole and streamed, also broken ones."""
    strange = b'{ "id":"c-1", "choices":[{"message":{"content":"<tool_call>{"}}] ,"x":1}'
    async with serve_stubbed(tmp_path, [reply(strange)], STREAM) as (served, stub):
        body = json.dumps(chat("m"), indent=3).encode()
        got = await ask(served, "POST", CHAT, body, {"x-surecall": "off"})
        assert got.body == strange
        assert stub.bodies[0] == body
        assert got.headers["x-surecall-outcome"] == "relayed"
        got = await ask(served, "POST", CHAT, chat("m", stream=True), {"x-surecall": "off"})
        assert got.body == b"".join(part.split(b"\r\n", 1)[1][:-2] for part in STREAM[1:3]) + (
            b"data: [DONE]\n\n"
        )
        assert [record.outcome for record in served.store.records] == ["relayed", "relayed"]
        assert served.store.records[0].upstream_requests == 1


async def test_receipts_come_when_asked_for(tmp_path: Path) -> None:
    """A repaired reply says what was changed, and a step can be switched off."""
    async with serve_faults(tmp_path) as (served, provider):
        body = chat("faults:arguments_trailing_comma")
        plain = await ask(served, "POST", CHAT, body)
        assert plain.headers["x-surecall-outcome"] == "repaired"
        assert int(plain.headers["x-surecall-receipts"]) > 0
        assert "surecall" not in plain.json
        shown = await ask(served, "POST", CHAT, body, {"x-surecall": "receipts"})
        assert shown.json["surecall"]["outcome"] == "repaired"
        assert shown.json["surecall"]["receipts"]
        before = provider.requests
        words = "no-repair, no-reask,no-force, no-taught"
        off = await ask(served, "POST", CHAT, body, {"x-surecall": words})
        assert off.headers["x-surecall-outcome"] == "refused"
        assert off.headers["x-should-retry"] == "false"
        assert provider.requests == before + 1
        wrong = await ask(served, "POST", CHAT, body, {"x-surecall": "please"})
        assert wrong.status == 400
        assert "please" in wrong.json["error"]["message"]


async def test_clean_replies_keep_their_bytes(tmp_path: Path) -> None:
    """Where both sides speak the same format, whole and streamed."""
    spaced = json.dumps(completion(), indent=1).encode()
    async with serve_stubbed(tmp_path, [reply(spaced)], STREAM) as (served, stub):
        body = json.dumps(chat("m", "Hi", unknown_field={"a": 1})).encode()
        got = await ask(served, "POST", CHAT, body)
        assert got.body == spaced
        assert stub.bodies[0] == body
        got = await ask(served, "POST", CHAT, chat("m", "Hi", stream=True))
        events = b"".join(part.split(b"\r\n", 1)[1][:-2] for part in STREAM[1:3])
        assert got.body.startswith(events + b"data: [DONE]\n\n")
        comment = got.body.removeprefix(events + b"data: [DONE]\n\n").decode()
        assert comment == f": surecall outcome=clean receipts=0 request={served.last.id}\n\n"


# what is declared and found out


async def test_settings_of_a_model(tmp_path: Path) -> None:
    """Fields that are missing are added, others replaced; a taught format where tools are not."""
    text = (
        "[models.m]\nrequest_defaults = {temperature = 0.1, top_p = 0.5}\n"
        "request_overrides = {seed = 7}\n"
        "[models.old]\ncapabilities = {supports_tool_use = false}\n"
    )
    async with serve_stubbed(tmp_path, [reply(completion())], text=text) as (served, stub):
        await ask(served, "POST", CHAT, chat("m", "Hi", temperature=0.9, seed=1))
        sent = json.loads(stub.bodies[0])
        assert (sent["temperature"], sent["top_p"], sent["seed"]) == (0.9, 0.5, 7)
        await ask(served, "POST", CHAT, chat("old", "Hi"))
        assert "tools" not in json.loads(stub.bodies[1])
        assert served.last.strategy == "taught"


async def test_a_model_is_probed_with_a_key_of_the_gateway_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a key of its own the gateway asks nothing; with one it asks in the background."""
    monkeypatch.setenv("STUB_KEY", "probe-key-0123456789")
    for key, is_probed in (("", False), ('api_key_env = "STUB_KEY"\n', True)):
        text = f'[upstreams.a]\nurl = "{{url}}"\n{key}'
        folder = tmp_path / str(is_probed)
        folder.mkdir()
        async with serve_faults(folder, text) as (served, provider):
            headers = {"authorization": "Bearer client-key-0123456"}
            got = await ask(served, "POST", CHAT, chat(), headers)
            assert got.status == 200
            await asyncio.gather(*served.gateway.state.strategies._probes.values())
            assert (provider.requests > 1) is is_probed
            await ask(served, "POST", CHAT, chat(), headers)
            assert (served.last.probe is not None) is is_probed
            if is_probed:
                assert served.last.probe is not None
                assert served.last.probe.ok


# what is left behind


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_the_record_is_durable_before_the_last_byte(stream: bool, tmp_path: Path) -> None:
    """As long as the record is not stored, the client does not have its answer."""
    async with serve_faults(tmp_path) as (served, _):
        may_store = asyncio.Event()
        add = served.store.add

        async def add_later(record: Any) -> None:
            await may_store.wait()
            await add(record)

        served.store.add = add_later  # type: ignore[method-assign]
        task = asyncio.ensure_future(ask(served, "POST", CHAT, chat(stream=stream)))
        await asyncio.sleep(0.2)
        assert not task.done()
        may_store.set()
        got = await task
        assert got.status == 200
        record = served.last
        assert record.outcome == "clean"
        assert record.upstream_ms > 0
        assert record.request_body is None
        assert record.reply_body is None


async def test_the_other_endpoints(tmp_path: Path) -> None:
    """Health is for everybody; tokens are counted by an upstream of the same family."""
    async with serve_faults(tmp_path) as (served, _):
        health = await ask(served, "GET", "/healthz")
        assert health.json["status"] == "ok"
        assert health.headers["connection"] == "close"
        assert (await ask(served, "GET", "/readyz")).json == {"status": "ready"}
        metrics = await ask(served, "GET", "/metrics")
        assert metrics.headers["content-type"].startswith("text/plain")
        counted = await ask(served, "POST", "/v1/messages/count_tokens", {"model": "m"})
        assert counted.status == 404
        assert "chat_completions" in counted.json["error"]["message"]
        assert (await ask(served, "GET", CHAT)).status == 405
        events = "/v1beta/models/m:streamGenerateContent"
        assert (await ask(served, "POST", events, {"contents": []})).status == 400
        bad = await ask(served, "POST", CHAT, b"[1]")
        assert bad.status == 400
        assert served.last.status == 400


async def test_an_embedded_model_is_asked_with_a_limit(tmp_path: Path) -> None:
    """A small model may never find an end, and others wait for it meanwhile."""
    text = '[upstreams.local]\nurl = "embedded:smollm2-135m"\n'
    settings = make_settings(tmp_path, text)
    upstream = Upstream(settings.upstreams["local"], settings.limits, is_only=True)
    target = Target(upstream, "smollm2-135m")
    known = await Strategies(settings, facts=tmp_path / "facts.db").find(target, with_tools=False)
    assert known.route.request_defaults["max_tokens"] == 512


# a primary that only fails, behind a fallback

PAGE = reply(b"<html>Bad day</html>")
RUBBISH = reply({"hello": "world"})
FAILING = {
    "refuses": (None, "CONNECTION_REFUSED"),
    "answers 500": ([BROKEN], "UPSTREAM_5XX"),
    "times out": ([5.0], "FIRST_BYTE_TIMEOUT"),
    "sends a page": ([PAGE], "UPSTREAM_HTML"),
    "sends rubbish": ([RUBBISH], "UPSTREAM_NO_CHOICES"),
    "breaks off": ([CUT, None], "UPSTREAM_TRUNCATED_BODY"),
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("kind", FAILING)
async def test_a_primary_that_only_fails_is_named_everywhere(
    kind: str, stream: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In the record, the headers, the metrics, the log and the dashboard of every request."""
    answers, code = FAILING[kind]
    good = STREAM if stream else [reply(completion("From b."))]
    async with serve_stub(answers or []) as first, serve_stub(good) as second:
        url = first.url if answers else f"http://127.0.0.1:{free_port()}/v1"
        text = two_upstreams(url, second.url).replace(
            "[upstreams.b]", "deadlines = {first_byte_s = 0.1}\n[upstreams.b]"
        )
        async with serve_gateway(make_settings(tmp_path, text)) as served:
            for _ in range(3):
                got = await ask(served, "POST", CHAT, chat("smart", stream=stream))
                assert got.status == 200
                assert got.headers["x-surecall-upstream"] == "b"
                trail = got.headers["x-surecall-attempts"].split(", ")
                named = [item.partition(";ms=")[0] for item in trail]
                assert named[-2:] == [f"a;error={code}", "b"]
                *_, failed, answered = served.last.attempts
                assert (failed.upstream, failed.model) == ("a", "big")
                assert (failed.outcome, failed.error) == ("failed", code)
                assert (answered.upstream, answered.outcome) == ("b", "answered")
            metrics = (await ask(served, "GET", "/metrics")).body.decode()
            count = len(first.heads) or 3
            assert f'surecall_upstream_failures_total{{upstream="a",code="{code}"}}' in metrics
            assert f'surecall_upstream_requests_total{{upstream="a"}} {count}' in metrics
            assert 'surecall_upstream_requests_total{upstream="b"} 3' in metrics
            assert 'surecall_upstream_down{upstream="a"} 1' in metrics
            assert 'surecall_upstream_down{upstream="b"} 0' in metrics
            (down,) = list_down(served.gateway.state)
            assert (down["upstream"], down["code"]) == ("a", code)
    (line,) = [item.message for item in caplog.records if "is down" in item.message]
    assert line == f"The upstream a is down: 3 requests in a row failed, the last with {code}."


async def test_an_upstream_that_answers_again_is_not_down(tmp_path: Path) -> None:
    """One answer is enough, also a refusal that is about the client."""
    limited = reply({"error": {"message": "later"}}, 429)
    good = [reply(completion())]
    async with serve_stub(*[[BROKEN]] * 6, [limited]) as first, serve_stub(good) as second:
        settings = make_settings(tmp_path, two_upstreams(first.url, second.url))
        async with serve_gateway(settings) as served:
            health = served.gateway.state.upstreams["a"].health
            for asked in range(6):
                await ask(served, "POST", CHAT, chat("smart"))
                assert health.is_down is (asked >= 2)
            await ask(served, "POST", CHAT, chat("smart"))
            assert not health.is_down


async def test_only_one_attempt_leaves_no_list(tmp_path: Path) -> None:
    """What the record says anyway is not said twice; the headers have it."""
    async with serve_stubbed(tmp_path, [reply(completion())]) as (served, _):
        got = await ask(served, "POST", CHAT, chat("m"))
        assert got.headers["x-surecall-upstream"] == "stub"
        assert got.headers["x-surecall-attempts"].startswith("stub;ms=")
        assert served.last.attempts == ()
