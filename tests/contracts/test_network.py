"""Every door to a provider takes the same way: proxies and certificates in runs, probes, the
gateway and evals.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import surecall
from gateway.harness import ask, chat, make_settings, serve_gateway
from support.certificates import Authority
from support.proxy import ConnectProxy
from support.secure_upstream import SecureUpstream
from support.upstream import reply
from surecall.base.errors import Code, SurecallError
from surecall.base.records import WireRequest
from surecall.evals.models import TransportPool, find_contenders
from surecall.evals.records import Cell, Unit
from surecall.models.probe import fetch_listing
from surecall.models.transport import Deadlines
from surecall.wire import find_protocol

PASSWORD = "correct horse"
QUICK = Deadlines(connect_s=2)
UNIT = Unit(index=0, cell=Cell(model="m", scenario="s"), seed=1)


async def by_run(base: str, _: Path) -> str:
    """Ask by a run."""
    try:
        result = await surecall.run("Hi", model="m", base_url=base, api_key="sk-none")
    except SurecallError as error:
        return str(error.code)
    return "works" if result.text == "hello" else str(result.text)


async def by_probe(base: str, _: Path) -> str:
    """Ask for the list of models, as a probe does."""
    try:
        await fetch_listing(base, find_protocol("chat_completions"))
    except SurecallError as error:
        return str(error.code)
    return "works"


async def by_gateway(base: str, folder: Path) -> str:
    """Ask through a gateway."""
    text = f'[upstreams.u]\nurl = "{base}"\nprobe = "off"\n[retry]\nmax_retries = 0\n'
    text += "[upstreams.u.deadlines]\nconnect_s = 2.0\n"
    async with serve_gateway(make_settings(folder, text), facts=folder / "f.db") as served:
        answer = await ask(served, "POST", "/v1/chat/completions", chat("m"))
    if answer.status == 200:
        return "works"
    return str(answer.json["error"]["code"])


async def by_eval(base: str, _: Path) -> str:
    """Ask as a trial does."""
    pool = TransportPool()
    (contender,) = find_contenders(f"m@{base}")
    request = WireRequest(path="/chat/completions", body={"model": "m", "messages": []})
    try:
        async with pool(contender, UNIT, None) as transport:  # type: ignore[arg-type]
            await transport.send(request)
    except SurecallError as error:
        return str(error.code)
    finally:
        await pool.aclose()
    return "works"


DOORS: list[Callable[[str, Path], Awaitable[str]]] = [by_run, by_probe, by_gateway, by_eval]


@dataclass(frozen=True)
class Way:
    id: str
    outcome: str
    proxy: dict[str, Any] = field(default_factory=dict[str, Any])
    password: str = ""
    certificate: str = "good"
    trusts: str = "SURECALL_CA_FILE"
    is_listed: bool = False


WAYS = [
    Way("a proxy", "works"),
    Way("a proxy with a password", "works", {"password": PASSWORD}, PASSWORD),
    Way("a proxy that demands a password", Code.PROXY_AUTH, {"password": PASSWORD}),
    Way("a wrong password", Code.PROXY_AUTH, {"password": PASSWORD}, "another one"),
    Way("a proxy that refuses", Code.PROXY_REFUSED, {"mood": "refuses"}),
    Way("a proxy that hangs", Code.CONNECT_TIMEOUT, {"mood": "hangs"}),
    Way("NO_PROXY", "works", {"mood": "refuses"}, is_listed=True),
    Way("a company's authority", "works", trusts="SSL_CERT_FILE"),
    Way("an unknown authority", Code.TLS_FAILURE, trusts=""),
    Way("an expired certificate", Code.TLS_FAILURE, certificate="expired"),
]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """The authority of a company."""
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.id)
async def test_each_way_works_or_is_named(
    way: Way,
    door: Callable[[str, Path], Awaitable[str]],
    authority: Authority,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The environment alone decides; the code says what is wrong."""
    certificate = authority.issue("127.0.0.1", days=-1 if way.certificate == "expired" else 1)
    async with SecureUpstream([[reply("hello")]], certificate) as upstream:
        place = f"127.0.0.1:{upstream.port}"
        async with ConnectProxy({place: upstream.port}, **way.proxy) as proxy:
            url = proxy.url_with("user", way.password) if way.password else proxy.url
            with ExitStack() as stack:
                patch = stack.enter_context(monkeypatch.context())
                patch.chdir(tmp_path)
                patch.setenv("HTTPS_PROXY", url)
                patch.setenv("NO_PROXY", "127.0.0.1" if way.is_listed else "")
                patch.setenv("SURECALL_DEADLINES__CONNECT_S", "2")
                patch.setattr("surecall.models.probe.questions._DEADLINES", QUICK)
                if way.trusts:
                    patch.setenv(way.trusts, str(authority.file))
                async with asyncio.timeout(60):
                    assert await door(f"https://{place}/v1", tmp_path) == way.outcome
            assert bool(proxy.asked) == (not way.is_listed)
            assert bool(upstream.calls) == (way.outcome == "works")
