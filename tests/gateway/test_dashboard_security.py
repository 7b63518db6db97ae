"""Who may look at the dashboard and who may act: keys, sessions, tokens and other sites."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from support.dashboard_traffic import BODY, fill, make_request, open_store
from surecall.gateway.budgets import Budgets
from surecall.gateway.dashboard import visits
from surecall.gateway.endpoints import DASHBOARD
from surecall.gateway.keys import Keyring
from surecall.gateway.settings.load import VirtualKey
from surecall.gateway.settings.tables import KeySettings

from .harness import Plain, Served, ask, completion, make_settings, reply, serve_gateway, serve_stub
from .test_security import KEYS, key_tables


@asynccontextmanager
async def serve_keys(folder: Path, text: str = "") -> AsyncGenerator[tuple[Served, str]]:
    """Serve a gateway with a key of each role and one kept request; give its id, too."""
    record = make_request(5, request_body=BODY)
    store = open_store(folder)
    await fill(store, record)
    async with serve_stub([reply(completion())]) as stub:
        head = f'[upstreams.stub]\nurl = "{stub.url}"\nprobe = "off"\n'
        settings = make_settings(folder, text + head + key_tables())
        async with serve_gateway(settings, store=store, facts=folder / "facts.db") as served:
            yield served, record.id


async def sign_in(served: Served, key: str) -> Plain:
    """Sign in as the page does."""
    token = (await ask(served, "GET", "/ui/data/session")).json["csrf"]
    headers = {"x-surecall-csrf": token}
    return await ask(served, "POST", "/ui/data/session", {"key": key}, headers)


async def cookie_of(served: Served, role: str) -> dict[str, str]:
    """Return the header of a session with a key of this role."""
    answer = await sign_in(served, KEYS[role])
    assert answer.status == 200, answer.body
    return {"cookie": answer.headers["set-cookie"].partition(";")[0]}


async def test_a_key_becomes_a_cookie_that_no_script_and_no_site_can_use(tmp_path: Path) -> None:
    """The key is not in it, and it opens what the key may see."""
    async with serve_keys(tmp_path) as (served, _):
        assert (await ask(served, "GET", "/ui/data/overview")).status == 401
        answer = await sign_in(served, KEYS["read-only"])
        cookie = answer.headers["set-cookie"]
        for part in ("HttpOnly", "SameSite=Strict", "Path=/ui", "Max-Age=43200"):
            assert part in cookie
        assert "Secure" not in cookie  # it is plain HTTP here
        assert KEYS["read-only"] not in cookie
        assert f"surecall_ui_{served.port}=" in cookie
        session = await cookie_of(served, "read-only")
        assert (await ask(served, "GET", "/ui/data/overview", None, session)).status == 200
        shown = (await ask(served, "GET", "/ui/data/session", None, session)).json
        assert (shown["key"], shown["may_look"], shown["may_act"]) == ("read-only-id", True, False)


async def test_wrong_keys_do_not_sign_in(tmp_path: Path) -> None:
    """One that nobody knows, one that may only call, and none."""
    async with serve_keys(tmp_path) as (served, _):
        for key, status in (("nonsense", 401), ("", 401), (KEYS["call"], 403)):
            answer = await sign_in(served, key)
            assert answer.status == status
            assert "set-cookie" not in answer.headers
        stranger = (await ask(served, "GET", "/ui/data/session")).json
        assert stranger["may_look"] is False
        assert "upstreams" not in stranger


async def test_a_reader_may_not_act_and_an_admin_may(tmp_path: Path) -> None:
    """With a token that belongs to the session."""
    async with serve_keys(tmp_path) as (served, record_id):
        path = f"/ui/data/requests/{record_id}/replay"
        for role, expected in (("read-only", 403), ("admin", 200)):
            session = await cookie_of(served, role)
            token = (await ask(served, "GET", "/ui/data/session", None, session)).json["csrf"]
            headers = {**session, "x-surecall-csrf": token}
            assert (await ask(served, "POST", path, {}, headers)).status == expected


async def test_every_act_without_its_token_is_refused(tmp_path: Path) -> None:
    """No token, that of nobody, that of another session; also without any keys."""
    async with serve_keys(tmp_path) as (served, record_id):
        session = await cookie_of(served, "admin")
        other = await cookie_of(served, "admin")
        tokens = [
            "",
            "nonsense",
            (await ask(served, "GET", "/ui/data/session")).json["csrf"],
            (await ask(served, "GET", "/ui/data/session", None, other)).json["csrf"],
        ]
        for endpoint in DASHBOARD:
            if endpoint.method != "POST":
                continue
            path = endpoint.path.replace("{id}", record_id)
            for token in tokens:
                headers = {**session, "x-surecall-csrf": token}
                answer = await ask(served, "POST", path, {}, headers)
                assert answer.status == 403, (path, token)
        assert (await ask(served, "GET", "/ui/data/requests", None, session)).json["total"] == 1
    async with serve_gateway(make_settings(tmp_path, upstream="http://127.0.0.1:1/v1")) as served:
        answer = await ask(served, "POST", "/ui/data/models/probe", {})
        assert answer.status == 403
        # Without keys, a key in a header is nobody's and proves nothing.
        answer = await ask(served, "POST", "/ui/data/models/probe", {}, {"x-api-key": "k-123456"})
        assert answer.status == 403


async def test_a_changed_cookie_is_worth_nothing(tmp_path: Path) -> None:
    """Another id, a later end, another signature, and things that are no cookie at all."""
    async with serve_keys(tmp_path) as (served, _):
        name, _, value = (await cookie_of(served, "read-only"))["cookie"].partition("=")
        admin = (await cookie_of(served, "admin"))["cookie"].partition("=")[2]
        who, ends, nonce, sign = value.split(".")
        forged = (
            f"{admin.split('.')[0]}.{ends}.{nonce}.{sign}",
            f"{who}.{int(ends) + 1}.{nonce}.{sign}",
            f"{who}.{ends}.{nonce}.{'0' * 64}",
            f"{who}.{ends}.{nonce}",
            f"{who}.²².{nonce}.{sign}",
            "",
            "...",
            "x" * 5000,
            "%ff.1.2.3",
        )
        for text in forged:
            answer = await ask(
                served, "GET", "/ui/data/overview", None, {"cookie": f"{name}={text}"}
            )
            assert answer.status == 401, text
        whole = {"cookie": f"other=1; {name}={value}; more=2"}
        assert (await ask(served, "GET", "/ui/data/overview", None, whole)).status == 200


def test_a_session_ends_with_its_time_and_with_its_key() -> None:
    """A key that was given out anew under the same name does not continue it."""
    ring = Keyring([VirtualKey(settings=KeySettings(id="a"), digest=b"1" * 32)], Budgets())
    found = ring.find_named("a")
    assert found is not None
    cookie = visits.begin_session(*found, now=1000.0)
    assert visits.find_session(cookie, ring, now=1000.0 + visits.SESSION_S - 1) is found[0]
    assert visits.find_session(cookie, ring, now=1000.0 + visits.SESSION_S) is None
    renewed = Keyring([VirtualKey(settings=KeySettings(id="a"), digest=b"2" * 32)], Budgets())
    assert visits.find_session(cookie, renewed, now=1000.0) is None
    assert visits.find_session(cookie, Keyring([], Budgets()), now=1000.0) is None


async def test_signing_out_takes_the_cookie_away(tmp_path: Path) -> None:
    """With the token of the session."""
    async with serve_keys(tmp_path) as (served, _):
        session = await cookie_of(served, "admin")
        token = (await ask(served, "GET", "/ui/data/session", None, session)).json["csrf"]
        headers = {**session, "x-surecall-csrf": token}
        answer = await ask(served, "POST", "/ui/data/session/end", {}, headers)
        assert re.match(r"surecall_ui_\d+=; .*Max-Age=0", answer.headers["set-cookie"])


async def test_other_sites_reach_pages_by_links_and_nothing_else(tmp_path: Path) -> None:
    """A link may be followed; data, assets and acts are refused, and so are other hosts."""
    foreign = {"sec-fetch-site": "cross-site"}
    follows = {**foreign, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    async with serve_keys(tmp_path) as (served, record_id):
        session = await cookie_of(served, "admin")
        for path in ("/ui", "/ui/requests", f"/ui/requests/{record_id}", "/ui/models"):
            assert (await ask(served, "GET", path, None, foreign)).status == 403
            assert (await ask(served, "GET", path, None, follows)).status == 200
            framed = {**follows, "sec-fetch-dest": "iframe"}
            assert (await ask(served, "GET", path, None, framed)).status == 403
            rebound = {**follows, "host": "evil.example"}
            assert (await ask(served, "GET", path, None, rebound)).status == 403
        for headers in (foreign, follows, {"origin": "https://evil.example"}):
            answer = await ask(served, "GET", "/ui/data/overview", None, {**session, **headers})
            assert answer.status == 403
            assert (
                await ask(served, "GET", "/v1/models", None, {**session, **headers})
            ).status == 403


async def test_behind_tls_the_pages_of_an_allowed_name_may_act(tmp_path: Path) -> None:
    """The origin has the other scheme there; the cookie is for secure connections only."""
    text = '[server]\nallow_hosts = ["llm.example"]\n'
    async with serve_keys(tmp_path, text) as (served, _):
        own = {"host": "llm.example", "origin": "https://llm.example"}
        token = (await ask(served, "GET", "/ui/data/session", None, {"host": "llm.example"})).json
        headers = {**own, "x-surecall-csrf": token["csrf"]}
        body = {"key": KEYS["read-only"]}
        answer = await ask(served, "POST", "/ui/data/session", body, headers)
        assert answer.status == 200
        assert "; Secure" in answer.headers["set-cookie"]
        for wrong in (
            {"host": f"127.0.0.1:{served.port}", "origin": f"https://127.0.0.1:{served.port}"},
            {**own, "origin": "https://llm.example.evil"},
            {**own, "sec-fetch-site": "same-site"},
        ):
            answer = await ask(served, "POST", "/ui/data/session", body, {**headers, **wrong})
            assert answer.status == 403, wrong


async def test_bodies_of_acts_are_small_json(tmp_path: Path) -> None:
    """Anything else is refused before it is read."""
    async with serve_keys(tmp_path) as (served, _):
        key = {"x-api-key": KEYS["admin"]}
        path = "/ui/data/models/probe"
        for body, headers, status in (
            (b"{}", {"content-type": "text/plain"}, 415),
            (b"{}", {"content-encoding": "gzip"}, 415),
            (b"{", {}, 400),
            (b"[]", {}, 404),
            (b" " * 70_000, {}, 413),
        ):
            answer = await ask(served, "POST", path, body, {**key, **headers})
            assert answer.status == status, body[:10]
            assert answer.json["error"]["message"]
