"""Who gets in: keys and roles on every route, hosts and origins, headers, and addresses."""

import hashlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from surecall.base.errors import ConfigError
from surecall.gateway.budgets import Budgets
from surecall.gateway.dashboard.app import list_assets
from surecall.gateway.endpoints import ENDPOINTS
from surecall.gateway.keys import Keyring
from surecall.gateway.settings.load import load_settings
from surecall.gateway.settings.tables import RELAYED_PATHS
from surecall.serving import render_head

from .harness import (
    STREAM_HEAD,
    Served,
    Stub,
    ask,
    chat,
    chunk,
    completion,
    make_settings,
    reply,
    serve_gateway,
    serve_stub,
    serve_stubbed,
)

PREFIXES = ("/v1", "/v1beta", "/v1alpha")
KEYS = {role: f"virtual-{role}-key-0123456789" for role in ("call", "read-only", "admin")}
NAMES = {
    "{model}": "m",
    "{path}": "embeddings",
    "{id}": "0123456789abc",
    "{name}": next(iter(list_assets())),
}
UPSTREAM_KEY = "upstream-own-key-987654321"


def key_tables(**extra: str) -> str:
    """Return the tables of a key for each role."""

    def table(role: str, key: str) -> str:
        digest = hashlib.sha256(key.encode()).hexdigest()
        more = extra.get(role.replace("-", "_"), "")
        return f'[[keys]]\nid = "{role}-id"\nrole = "{role}"\nkey_sha256 = "{digest}"\n{more}\n'

    return "".join(table(role, key) for role, key in KEYS.items())


def bodies(path: str) -> Any:
    """Return a body that every format takes."""
    if ":" in path:
        return {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    said = [{"role": "user", "content": "Hi"}]
    return {"model": "m", "messages": said, "input": "Hi", "max_tokens": 9}


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
RELAYED = {
    *(
        (method or "POST", f"{prefix}/{path.replace('*', path[0] + '1')}")
        for method, _, path in (item.rpartition(" ") for item in RELAYED_PATHS)
        for prefix in PREFIXES
    ),
    *(("GET", f"{prefix}/models/{name}") for prefix in PREFIXES for name in ("m", "a/m")),
    *(
        ("POST", f"{prefix}/models/m:{act}")
        for prefix in PREFIXES
        for act in ("batchEmbedContents", "countTokens", "embedContent")
    ),
    *(
        ("POST", f"{prefix}/models/m:{act}")
        for prefix in PREFIXES
        for act in ("generateContent", "streamGenerateContent?alt=sse")
    ),
}
"""What a key that may call reaches at the upstream, besides the endpoints with a path of their own:
all else is not for keys of the gateway."""
OTHERS = [
    f"{prefix}/{path}"
    for prefix in PREFIXES
    for path in (
        *("assistants", "batches", "batches/b1/cancel", "chat/completions/c1", "containers"),
        *("embeddings/", "embeddings/x", "files", "files/f1", "fine_tuning/jobs", "keys"),
        *("models/m:asyncBatchEmbedContent", "models/m:predict", "models/m%3Apredict"),
        *("organization/users", "responses/r1", "responses/r1/cancel", "threads"),
        *("tunedModels", "tunedModels/t1", "tunedModels/t1/permissions", "uploads", "users"),
    )
]


def fill(path: str) -> str:
    """Return a path of the list of endpoints that can be asked for."""
    for name, value in NAMES.items():
        path = path.replace(name, value)
    return path


def roles_by_place() -> dict[tuple[str, str], set[str]]:
    """Return who may do what, for every place that needs a key."""
    table = {place: {"call", "admin"} for place in RELAYED}
    for endpoint in ENDPOINTS:
        if endpoint.role is not None and endpoint.kind != "relay":
            path = fill(endpoint.path)
            path += "?alt=sse" if path.endswith("streamGenerateContent") else ""
            table[endpoint.method, path] = {endpoint.role, "admin"}
    return table


async def test_every_method_of_every_path_asks_for_a_key_with_the_right_role(
    tmp_path: Path,
) -> None:
    """Each, without a key, with one nobody knows, and with one of each role: an allow list."""
    table = roles_by_place()
    open_to_all = {fill(item.path) for item in ENDPOINTS if item.role is None}
    paths = dict.fromkeys([*(path for _, path in table), *OTHERS])
    wrong: list[tuple[Any, ...]] = []
    async with serve_stubbed(tmp_path, [reply(completion())], text=key_tables()) as (served, stub):
        for path in paths:
            if path in open_to_all:
                continue
            for method in METHODS:
                body = bodies(path) if method in {"POST", "PUT", "PATCH"} else None
                may = table.get((method, path), set())
                for role, key in {"": "", "unknown": "virtual-call-key-012345678X", **KEYS}.items():
                    asked = len(stub.heads)
                    headers = {"x-api-key": key} if key else {}
                    status = (await ask(served, method, path, body, headers)).status
                    if role in may:
                        right = status not in {401, 403, 405}
                    else:
                        refusals = {403, 404, 405} if role in KEYS else {401, 404, 405}
                        right = status in refusals and len(stub.heads) == asked
                    if not right:
                        wrong.append((method, path, role, status))
        sent = "".join(stub.heads)
    assert wrong == []
    assert "virtual-" not in sent


async def test_nothing_else_is_open_without_a_key(tmp_path: Path) -> None:
    """Pages and signs of life; acts ask for the token of a page."""
    async with serve_stubbed(tmp_path, [reply(completion())], text=key_tables()) as (served, stub):
        for endpoint in ENDPOINTS:
            if endpoint.role is None:
                expected = 403 if endpoint.method == "POST" else 200
                body = {} if endpoint.method == "POST" else None
                answer = await ask(served, endpoint.method, fill(endpoint.path), body)
                assert answer.status == expected, endpoint
        assert not stub.heads


async def test_a_key_in_the_address_stays_here(tmp_path: Path) -> None:
    """However its name is written."""
    async with serve_stubbed(tmp_path, [reply({})], text=key_tables()) as (served, stub):
        for name in ("key", "k%65y", "%6Bey"):
            path = f"/v1/models/m?a=1&{name}={KEYS['call']}&b=2"
            assert (await ask(served, "GET", path)).status == 200
            assert "GET /v1/models/m?a=1&b=2 " in stub.heads[-1]


async def test_a_virtual_key_is_replaced_by_the_upstreams(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The upstream gets its own key, and nothing of the client's."""
    monkeypatch.setenv("STUB_KEY", UPSTREAM_KEY)
    text = 'api_key_env = "STUB_KEY"\n' + key_tables()
    async with serve_stubbed(tmp_path, [reply(completion())], text=text) as (served, stub):
        headers = {
            "authorization": f"Bearer {KEYS['call']}",
            "cookie": "session=1",
            "x-forwarded-for": "10.0.0.1",
            "x-evil": "1",
            "openai-organization": "org-1",
        }
        answer = await ask(served, "POST", "/v1/chat/completions", chat("m"), headers)
        assert answer.status == 200
        head = stub.heads[-1].lower()
        assert f"authorization: bearer {UPSTREAM_KEY}" in head
        assert "openai-organization: org-1" in head
        for name in ("cookie", "x-forwarded-for", "x-evil", "virtual-"):
            assert name not in head
        assert served.last.key_id == "call-id"
        # A key of the gateway opens the paths that are listed, and no others.
        listed = await ask(served, "POST", "/v1/embeddings", {"model": "m"}, headers)
        assert listed.status == 200
        files = await ask(served, "GET", "/v1/files", None, headers)
        assert files.status == 403
        assert len(stub.heads) == 2


async def test_a_clients_key_passes_through_without_virtual_keys(tmp_path: Path) -> None:
    """The client's key goes to its upstream; what the upstream says comes back filtered."""
    answer = reply(
        completion(),
        x_request_id="r-1",
        set_cookie="a=b",
        x_ratelimit_limit_requests="9",
        server="x",
    )
    async with serve_stubbed(tmp_path, [answer]) as (served, stub):
        headers = {"authorization": "Bearer my-own-key-123456"}
        got = await ask(served, "POST", "/v1/chat/completions", chat("m"), headers)
        assert "authorization: Bearer my-own-key-123456" in stub.heads[-1]
        assert got.headers["x-surecall-outcome"] == "clean"
        assert got.headers["x-surecall-receipts"] == "0"
        assert got.headers["x-surecall-request-id"] == served.last.id
        assert got.json == completion()
        for name in ("set-cookie", "server"):
            assert name not in got.headers
        files = await ask(served, "GET", "/v1/files?limit=2&key=abc", None, headers)
        assert files.status == 200
        assert "GET /v1/files?limit=2 " in stub.heads[-1]


VECTORS: list[tuple[dict[str, str], int]] = [
    ({"host": "evil.example"}, 403),
    ({"host": "localhost.evil.example:{port}"}, 403),
    ({"host": "127.0.0.1.evil.example:{port}"}, 403),
    ({"host": "127.0.0.1"}, 403),
    ({"host": "127.0.0.1:1"}, 403),
    ({"host": "user@127.0.0.1:{port}"}, 403),
    ({"host": "127.0.0.1:{port}/"}, 403),
    ({"host": "0.0.0.0:{port}"}, 403),
    ({"host": ""}, 403),
    ({"origin": "https://evil.example"}, 403),
    ({"origin": "null"}, 403),
    ({"origin": "http://localhost.evil.example"}, 403),
    ({"origin": "http://127.0.0.1"}, 403),
    ({"sec-fetch-site": "cross-site"}, 403),
    ({"sec-fetch-site": "same-site"}, 403),
    ({"content-type": "text/plain"}, 415),
    ({"content-type": "application/x-www-form-urlencoded"}, 415),
    ({"content-type": "multipart/form-data; boundary=x"}, 415),
    ({"content-type": ""}, 415),
    ({"content-encoding": "gzip"}, 415),
    ({"host": "localhost:{port}"}, 200),
    ({"origin": "http://127.0.0.1:{port}", "sec-fetch-site": "same-origin"}, 200),
    ({"content-type": "application/json; charset=utf-8"}, 200),
]


async def test_pages_of_other_sites_get_nothing(tmp_path: Path) -> None:
    """A page in a browser on this machine reaches no model, whatever it tries."""
    async with serve_stubbed(tmp_path, [reply(completion())]) as (served, stub):
        for headers, status in VECTORS:
            before = len(stub.heads)
            filled = {name: value.format(port=served.port) for name, value in headers.items()}
            got = await ask(served, "POST", "/v1/chat/completions", chat("m"), filled)
            assert got.status == status, headers
            assert len(stub.heads) - before == (status == 200), headers


async def test_paths_cannot_leave_the_prefix(tmp_path: Path) -> None:
    """Nothing but plain paths below the prefix is relayed."""
    paths = ("/v1/../admin", "/v1//x", "/v1/%2e%2e/x", "/v1/a%2fb", "/v1/a\\b", "/", "/v2/x")
    async with serve_stubbed(tmp_path, [reply({})]) as (served, stub):
        for path in (*paths, "/ui/../v1"):
            got = await ask(served, "GET", path, None, {"authorization": "Bearer k-123456"})
            assert got.status == 404, path
        assert not stub.heads


@pytest.mark.parametrize("own", ["", 'key = "needed"\napi_key_env = "STUB_KEY"'])
async def test_virtual_keys_are_held_to_the_listed_paths(
    own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether or not the upstream has a key of its own; what is listed is relayed."""
    monkeypatch.setenv("STUB_KEY", UPSTREAM_KEY)
    async with serve_stub([reply({"data": []})]) as stub:
        paths = '["embeddings", "batches", "DELETE files"]'
        text = f'relay_paths = {paths}\n[upstreams.stub]\nurl = "{stub.url}"\n'
        settings = make_settings(tmp_path, f"{text}{own}\n{key_tables()}")
        async with serve_gateway(settings) as served:
            headers = {"authorization": f"Bearer {KEYS['admin']}"}
            for path in ("files", "responses/resp_1", "fine_tuning/jobs"):
                got = await ask(served, "GET", f"/v1/{path}", None, headers)
                assert (got.status, got.json["error"]["code"]) == (403, "FORBIDDEN")
            assert not stub.heads
            for path in ("batches", "models/m"):
                assert (await ask(served, "GET", f"/v1/{path}", None, headers)).status == 200
            assert (await ask(served, "POST", "/v1/batches", {}, headers)).status == 200
            assert (await ask(served, "DELETE", "/v1/files", None, headers)).status == 200
            for method, path in (("DELETE", "batches"), ("GET", "embeddings"), ("POST", "files")):
                assert (await ask(served, method, f"/v1/{path}", None, headers)).status == 403
            assert len(stub.heads) == 4


async def test_files_and_batches_are_found_by_their_id_only(tmp_path: Path) -> None:
    """A list would show what others have; the tokens of a batch are in no budget."""
    text = key_tables(call="tokens_per_day = 1000000")
    async with serve_stubbed(tmp_path, [reply({"data": []})], text=text) as (served, stub):
        admin = {"authorization": f"Bearer {KEYS['admin']}"}
        call = {"authorization": f"Bearer {KEYS['call']}"}
        for method, path, status in (
            ("POST", "decisions", 200),
            ("POST", "systemone", 200),
            ("POST", "responses/compact", 200),
            ("POST", "files", 200),
            ("GET", "files/file-a1", 200),
            ("GET", "files/file-a1/content", 200),
            ("GET", "files", 403),
            ("DELETE", "files/file-a1", 403),
            ("GET", "files/file-a1/content/x", 403),
            ("POST", "batches", 200),
            ("GET", "batches/batch_1", 200),
            ("POST", "batches/batch_1/cancel", 200),
            ("GET", "batches", 403),
        ):
            body = {"model": "m"} if method == "POST" else None
            got = await ask(served, method, f"/v1/{path}", body, admin)
            assert got.status == status, (method, path)
        asked = len(stub.heads)
        assert (await ask(served, "POST", "/v1/batches", {"model": "m"}, call)).status == 403
        assert (await ask(served, "POST", "/v1/files", {"model": "m"}, call)).status == 200
        assert len(stub.heads) == asked + 1


async def test_budgets_and_rates_end_in_429(tmp_path: Path) -> None:
    """A key has what it was given and no more; switching the gateway off changes nothing."""
    text = key_tables(call="tokens_per_day = 10", admin='requests_per_minute = 2\nmodels = ["m*"]')
    async with serve_stubbed(tmp_path, [reply(completion())], text=text) as (served, stub):
        call = {"authorization": f"Bearer {KEYS['call']}", "x-surecall": "off"}
        statuses = [
            (await ask(served, "POST", "/v1/chat/completions", chat("m"), call)).status
            for _ in range(3)
        ]
        assert statuses == [200, 200, 429]  # 7 tokens each
        spent = await ask(served, "POST", "/v1/chat/completions", chat("m"), call)
        assert spent.headers["x-should-retry"] == "false"
        assert int(spent.headers["retry-after"]) > 0
        admin = {"authorization": f"Bearer {KEYS['admin']}"}
        answers = [
            await ask(served, "POST", "/v1/chat/completions", chat("m"), admin) for _ in range(3)
        ]
        assert [answer.status for answer in answers] == [200, 200, 429]
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 60
        assert "x-should-retry" not in answers[-1].headers
        other = await ask(served, "POST", "/v1/chat/completions", chat("other"), admin)
        assert other.status == 403
        assert len(stub.heads) == 4


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/chat/completions", b'{"model": "big", "model": "m", "messages": []}'),
        ("/v1/chat/completions", b'{"mod\\u0065l": "big", "messages": [], "model": "m"}'),
        ("/v1/embeddings", b'{"model": "big", "input": "x", "model": "m"}'),
        ("/v1/embeddings", b'{"model": "big", "input": NaN}'),
        ("/v1beta/models/big:countTokens", b'{"model": "m", "contents": []}'),
        ("/v1beta/models/m:batchEmbedContents", b'{"requests": [{"model": "models/big"}]}'),
        ("/v1beta/models/m:countTokens", b'{"generateContentRequest": {"model": "models/big"}}'),
        ("/v1beta/models/%62ig:countTokens", b'{"contents": []}'),
        ("/v1/chat/completions", b'{"model": "m", "MODEL": "big", "messages": []}'),
        ("/v1/chat/completions", b'{"model": "m", "models": ["m", "big"], "messages": []}'),
        (
            "/v1/chat/completions",
            b'{"model": "m", "messages": [], "fallbacks": [{"model": "big"}]}',
        ),
        (
            "/v1/responses",
            b'{"model": "m", "input": "x", "tools": [{"type": "t", "model": "big"}]}',
        ),
        ("/v1/embeddings", b'{"model": "m", "input": "x", "fallback_models": ["big"]}'),
        ("/v1/embeddings", b'{"model": "m", "input": "x", "modelId": "big"}'),
        ("/v1/embeddings", b'{"model": "m", "input": "x", "engine": "big"}'),
        ("/v1/embeddings", b'{"input": "x"}'),
        ("/v1/embeddings", b'{"input": "x", "model": null}'),
        ("/v1/embeddings", b'{"input": "x", "model": ["m", "big"]}'),
        ("/v1/embeddings?model=big", b'{"input": "x", "model": "m"}'),
        ("/v1/embeddings?mod%65l=big", b'{"input": "x"}'),
        ("/v1/embeddings", b""),
        ("/v1/embeddings", b"[]"),
        ("/v1/batches", b'{"input_file_id": "f1", "endpoint": "/v1/chat/completions"}'),
        ("/v1/batches", b'{"model": "m"}\n{"model": "big"}'),
        ("/v1/messages/batches", b'{"requests": [{"params": {"model": "big"}}]}'),
        (
            "/v1/audio/transcriptions",
            b'--x\r\ncontent-disposition: form-data; name="model"\r\n\r\nm',
        ),
    ],
)
async def test_a_key_for_some_models_gets_no_other(path: str, body: bytes, tmp_path: Path) -> None:
    """Not by naming two of them, in whatever place an endpoint may look."""
    header = {"authorization": f"Bearer {KEYS['call']}", "content-type": "application/json"}
    if body.startswith(b"--x"):
        header["content-type"] = "multipart/form-data; boundary=x"
    async with serve_limited(path, tmp_path) as (served, stub):
        got = await ask(served, "POST", path, body, header)
        assert got.status == 403
        assert not stub.heads


@asynccontextmanager
async def serve_limited(path: str, folder: Path) -> AsyncIterator[tuple[Served, Stub]]:
    """Serve a gateway with a key for one model, which relays more than it does by default."""
    relayed = [*RELAYED_PATHS, "batches", "messages/batches", "audio/transcriptions", "GET files"]
    async with serve_stub([reply(completion())]) as stub:
        text = f'relay_paths = {relayed}\n[upstreams.stub]\nurl = "{stub.url}"\nprobe = "off"\n'
        family = "gemini" if ":" in path else "messages" if "/messages" in path else ""
        text += f'protocol = "{family or "chat_completions"}"\n'
        settings = make_settings(folder, text + key_tables(call='models = ["m"]'))
        async with serve_gateway(settings, facts=folder / "facts.db") as served:
            yield served, stub


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/embeddings", b'{"input": "x", "model": "m"}'),
        ("/v1/embeddings?model=m", b'{"input": "x"}'),
        ("/v1/messages/batches", b'{"requests": [{"params": {"model": "m", "messages": []}}]}'),
        ("/v1beta/models/%6D:countTokens", b'{"contents": [{"parts": [{"text": "model"}]}]}'),
        ("/v1beta/models/m:countTokens", b'{"generateContentRequest": {"model": "models/m"}}'),
        (
            "/v1/messages/count_tokens",
            json.dumps(
                {
                    "model": "m",
                    "messages": [
                        {"role": "assistant", "content": [{"input": {"model": "T"}, "id": "c"}]}
                    ],
                    "tools": [{"name": "f", "input_schema": {"default": {"model": "T"}}}],
                }
            ).encode(),
        ),
    ],
)
async def test_a_key_for_a_model_may_ask_for_it(path: str, body: bytes, tmp_path: Path) -> None:
    """Wherever it is named; what the model reads may have the word as well."""
    header = {"authorization": f"Bearer {KEYS['call']}", "content-type": "application/json"}
    async with serve_limited(path, tmp_path) as (served, stub):
        got = await ask(served, "POST", path, body, header)
        assert got.status == 200, got.body
        assert len(stub.heads) == 1


async def test_reloading_needs_an_admin_key(tmp_path: Path) -> None:
    """Without keys, nobody reloads over HTTP."""
    async with serve_stub([reply({})]) as stub:
        settings = make_settings(tmp_path, upstream=stub.url)
        async with serve_gateway(settings) as served:
            assert (await ask(served, "POST", "/admin/reload", {})).status == 403


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.7", "::", "example.com"])
def test_other_machines_need_a_key(host: str) -> None:
    """Off loopback the gateway does not start without a key."""
    with pytest.raises(ConfigError, match="no key"):
        load_settings(upstream="http://127.0.0.1:1/v1", server={"host": host})


def test_keys_are_compared_whole() -> None:
    """Parts, changes and other forms of a key are not the key."""
    secret = "virtual-key-of-tests-123"
    settings = load_settings(
        upstream="http://127.0.0.1:1/v1",
    )
    assert not Keyring(settings.keys, Budgets())
    digest = hashlib.sha256(secret.encode()).digest()
    from surecall.gateway.settings.load import VirtualKey
    from surecall.gateway.settings.tables import KeySettings

    ring = Keyring([VirtualKey(settings=KeySettings(id="a"), digest=digest)], Budgets())
    caller = ring.find(secret)
    assert caller is not None
    assert caller.id == "a"
    for wrong in ("", secret[:-1], secret + "x", secret.upper(), digest.hex(), "x" * 10_000):
        assert ring.find(wrong) is None


@pytest.mark.parametrize("value", [b"a\r\nx: b", b"a\nb", b"a\rb"])
def test_a_header_of_an_answer_cannot_add_another(value: bytes) -> None:
    """What would end a header early is not written."""
    with pytest.raises(ValueError, match="more than one line"):
        render_head(200, [(b"x-request-id", value)])


def test_the_head_of_an_answer_is_written_whole() -> None:
    """The status, every header, and the blank line."""
    head = render_head(200, [(b"content-length", b"2"), (b"x-a", b"b")])
    assert head == b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-a: b\r\n\r\n"


OWN_KEY = "Zq8vN3xL0-bT7mR5wK2yH9cJ4"
SAID = (OWN_KEY, OWN_KEY.replace("-", "\\u002d"), OWN_KEY[:-9], OWN_KEY[9:])


@pytest.mark.parametrize("wish", ["", "off"])
@pytest.mark.parametrize("status", [400, 401, 500])
@pytest.mark.parametrize("said", SAID, ids=["whole", "escaped", "begun", "ended"])
async def test_no_client_is_told_the_key_of_the_gateway(
    said: str, status: int, wish: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upstream may repeat it in an error, also in part, on any path and into any store."""
    monkeypatch.setenv("STUB_KEY", OWN_KEY)
    error = b'{"error": {"message": "Incorrect key: x%b is no key"}}' % said.encode()
    text = 'api_key_env = "STUB_KEY"\n[retry]\nmax_retries = 0\n[store]\nkeep_bodies = true\n'
    async with serve_stubbed(tmp_path, [reply(error, status)], text=text) as (served, _):
        for path in ("/v1/chat/completions", "/v1/embeddings"):
            got = await ask(served, "POST", path, bodies(path), {"x-surecall": wish})
            assert got.status == status
            for shown in (got.body, served.last.reply_body or b""):
                assert b"N3xL0" not in shown
                assert b"R5wK2" not in shown
            assert b"is no key" in got.body


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_no_stream_that_is_passed_on_has_the_key_of_the_gateway(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However it is cut; all other bytes arrive, also those that are no text."""
    monkeypatch.setenv("STUB_KEY", OWN_KEY)
    sent = b"data: \xff\xc3\xa9 Zq8v %b and Zq8vN3xL0-\n\n" % OWN_KEY.encode()
    chunks = [chunk(sent[at : at + size]) for at in range(0, len(sent), size)]
    answer = [STREAM_HEAD, *chunks, b"0\r\n\r\n"]
    async with serve_stubbed(tmp_path, answer, text='api_key_env = "STUB_KEY"\n') as (served, _):
        got = await ask(served, "POST", "/v1/embeddings", {"model": "m", "input": "x"})
        assert got.body == sent.replace(OWN_KEY.encode(), b"[redacted]")
