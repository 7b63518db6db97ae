"""The figures of the dashboard: overview, lists, one request, cases, replays and probes."""

import re
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.dashboard_traffic import (
    BODY,
    FAILED,
    HOSTILE,
    REASKED,
    REFUSED,
    REPAIRED,
    REPLY,
    UNREPAIRED,
    fill,
    make_request,
    open_store,
    usual_day,
)
from surecall.base.errors import ProviderStatusError, ProviderTimeoutError
from surecall.base.rates import percentiles, share
from surecall.evals.suites.custom import load_custom
from surecall.faults import FaultServer, FaultyProvider
from surecall.gateway.dashboard.app import list_assets, render_page
from surecall.gateway.dashboard.lists import show_request
from surecall.gateway.dashboard.overview import Overviews

from .harness import Plain, Served, ask, chat, make_settings, serve_gateway

UPSTREAMS = (
    '[upstreams.stub]\nurl = "http://127.0.0.1:1/v1"\nprobe = "off"\n'
    '[upstreams.other]\nurl = "http://127.0.0.1:2/v1"\n'
)


@asynccontextmanager
async def serve_records(
    folder: Path, *records: Any, text: str = UPSTREAMS
) -> AsyncGenerator[Served]:
    """Serve a gateway whose store has these requests."""
    store = open_store(folder)
    await fill(store, *records)
    settings = make_settings(folder, text)
    async with serve_gateway(settings, store=store, facts=folder / "facts.db") as served:
        yield served


async def look(served: Served, path: str) -> Any:
    """Return the data of a page."""
    answer = await ask(served, "GET", f"/ui/data/{path}")
    assert answer.status == 200, answer.body
    return answer.json


async def act(served: Served, path: str, body: Any = None) -> Plain:
    """Act as a page does, with its token."""
    token = (await look(served, "session"))["csrf"]
    return await ask(served, "POST", f"/ui/data/{path}", body or {}, {"x-surecall-csrf": token})


# Pages


async def test_pages_hold_nothing_and_run_nothing_of_others(tmp_path: Path) -> None:
    """Every page is the same, without script or style inside, under a strict policy."""
    async with serve_records(tmp_path, make_request(1)) as served:
        for path in (
            "/ui",
            "/ui/requests",
            "/ui/requests/abc",
            "/ui/approvals",
            "/ui/approvals/ap_1",
            "/ui/models",
            "/ui?range=7d",
        ):
            page = await ask(served, "GET", path)
            assert page.status == 200
            assert page.body == render_page()
            policy = page.headers["content-security-policy"]
            assert policy.startswith("default-src 'none'; style-src 'self'; script-src 'self'")
            assert "unsafe" not in policy
            assert page.headers["cache-control"] == "no-store"
        text = render_page().decode()
        assert re.findall(r"<script(?![^>]*src=)|<style|style=|\son\w+=", text) == []
        assert re.findall(r"https?://", text) == []
        assert (await ask(served, "GET", "/ui/nothing")).status == 404
        assert (await ask(served, "POST", "/ui", {})).status == 405


async def test_assets_are_kept_for_ever_under_the_hash_of_their_content(tmp_path: Path) -> None:
    """A name that is not known is not found."""
    async with serve_records(tmp_path) as served:
        for name, (kind, body) in list_assets().items():
            assert f"/ui/assets/{name}".encode() in render_page()
            asset = await ask(served, "GET", f"/ui/assets/{name}")
            assert (asset.status, asset.body) == (200, body)
            assert asset.headers["content-type"] == kind
            assert asset.headers["cache-control"] == "public, max-age=31536000, immutable"
        for name in ("surecall.css", "..%2fapp.py", "dashboard.html"):
            assert (await ask(served, "GET", f"/ui/assets/{name}")).status == 404


def test_no_data_becomes_markup() -> None:
    """The script has no way to make markup of text."""
    (script,) = [body.decode() for kind, body in list_assets().values() if "javascript" in kind]
    for name in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert name not in script


# Overview


async def test_the_overview_counts_outcomes_by_model_and_upstream(tmp_path: Path) -> None:
    """Replies that were read make the band; what got no reply is beside it."""
    records = [
        *(make_request(60 + at) for at in range(6)),
        make_request(50, **REPAIRED, retries=2),
        make_request(40, **REASKED, model_asked="big"),
        make_request(35, **UNREPAIRED, upstream="other"),
        make_request(30, **REFUSED, upstream="other"),
        make_request(20, **FAILED, upstream="other"),
        make_request(10, outcome="relayed"),
    ]
    async with serve_records(tmp_path, *records) as served:
        data = await look(served, "overview?range=1h")
        read = {"clean": 6, "repaired": 1, "reasked": 1, "unrepaired": 1, "refused": 1}
        total = {**read, "failed": 1, "relayed": 1}
        assert data["total"] == total
        assert len(data["slots"]) == 60
        assert sum(slot["clean"] for slot in data["slots"]) == 6
        assert [(pair["model"], pair["upstream"]) for pair in data["pairs"]] == [
            ("small", "stub"),
            ("small", "other"),
            ("big", "stub"),
        ]
        first = data["pairs"][0]
        assert first["counts"]["requests"] == 8
        assert first["counts"]["retries"] == 2
        assert (first["wrong"]["of"], first["wrong"]["n"]) == (1, 7)
        assert (first["receipts"]["of"], first["receipts"]["n"]) == (1, 8)
        assert first["added_ms"] == {"p50": 0.5, "p95": 0.5, "n": 8}
        assert 100.0 <= first["upstream_ms"]["p50"] <= first["upstream_ms"]["p95"] < 107.0
        assert (data["parse"]["received"]["of"], data["parse"]["after"]["of"]) == (3, 2)
        assert data["parse"]["received"]["n"] == 10
        turn = next(item for item in data["turns"] if item["model"] == "small")
        assert (turn["strategy"], turn["success"]["of"], turn["success"]["n"]) == ("native", 7, 10)
        assert data["not_clean"] == 5
        assert [row["outcome"] for row in data["recent"]] == [
            *("failed", "refused", "unrepaired", "reasked", "repaired")
        ]
        assert (await look(served, "overview?range=nonsense"))["range"] == "1h"


async def test_what_keys_have_spent_this_month_is_shown(tmp_path: Path) -> None:
    """From the records: of keys that may spend so much, and of each request."""
    text = f"{UPSTREAMS}[models.small.prices]\ninput = 1\noutput = 2\n" + "".join(
        f'[[keys]]\nid = "{name}"\nkey_sha256 = "{digit * 64}"\n{more}'
        for name, digit, more in (("team", "a", "cost_per_month = 50\n"), ("free", "b", ""))
    )
    costs = [("team", 1.5), ("team", 2.25), ("free", 9.0)]
    records = [
        make_request(at, key_id=key, cost=cost, cached_tokens=3)
        for at, (key, cost) in enumerate(costs)
    ]
    async with serve_records(tmp_path, *records, text=text) as served:
        shown = await Overviews(served.gateway).show(served.gateway.state, "1h")
        assert shown["spent"] == [{"key": "team", "spent": 3.75, "limit": 50.0}]
        row = await show_request(served.store, records[0].id, served.gateway.settings.store)
        assert (row["cost"], row["cached_tokens"]) == (1.5, 3)


async def test_what_became_worse_is_named_with_its_time(tmp_path: Path) -> None:
    """The model, the upstream, when it began and ended, and the code that is found most."""
    async with serve_records(tmp_path, *usual_day()) as served:
        data = await look(served, "overview?range=1h")
        changed = data["changed"]
        assert (changed["model"], changed["upstream"]) == ("small", "stub")
        assert changed["code"] == "CALL_IN_TEXT"
        assert changed["is_over"] is True
        assert 840 <= data["now"] - changed["to"] <= 960
        assert 1200 <= data["now"] - changed["from"] <= 1320
        assert changed["usual"] == pytest.approx(0.04)
        assert data["down"] == []


async def test_a_quiet_day_has_nothing_to_tell(tmp_path: Path) -> None:
    """A few more defects than before may be chance, and are not reported."""
    records = [
        make_request(10 + at * 40, **(REPAIRED if at % 24 == 0 else {})) for at in range(2000)
    ]
    async with serve_records(tmp_path, *records) as served:
        assert (await look(served, "overview?range=1h"))["changed"] is None


async def test_an_upstream_that_only_fails_is_reported_as_down(tmp_path: Path) -> None:
    """On both pages, after three failures in a row and until it answers; a 429 is an answer."""
    async with serve_records(tmp_path, make_request(10)) as served:
        health = served.gateway.state.upstreams["other"].health
        timeout = ProviderTimeoutError("FIRST_BYTE_TIMEOUT", "Nothing came.")
        began_s = time.time()
        for failed in range(1, 4):
            assert (await look(served, "overview?range=1h"))["down"] == []
            health.note(timeout)
            assert health.failures == failed
        (down,) = (await look(served, "overview?range=1h"))["down"]
        assert (down["upstream"], down["failed"]) == ("other", 3)
        assert down["code"] == "FIRST_BYTE_TIMEOUT"
        assert down["since"] == pytest.approx(began_s, abs=60)
        shown = {item["name"]: item for item in (await look(served, "models"))["upstreams"]}
        assert (shown["other"]["is_failing"], shown["stub"]["is_failing"]) == (True, False)
        health.note(ProviderStatusError("RATE_LIMIT", "Later.", status=429))
        assert (await look(served, "overview?range=1h"))["down"] == []


async def test_an_empty_store_has_lines_to_paste(tmp_path: Path) -> None:
    """With the address that the page was opened at."""
    async with serve_records(tmp_path) as served:
        data = await look(served, "overview")
        assert data["has_any"] is False
        titles = [item["title"] for item in data["snippets"]]
        assert titles[:3] == ["openai", "anthropic", "LangChain"]
        assert f'base_url="{served.url}/v1"' in data["snippets"][0]["text"]


async def test_without_a_store_the_pages_say_so(tmp_path: Path) -> None:
    """Nothing fails; there is nothing to list."""
    async with serve_gateway(make_settings(tmp_path, UPSTREAMS)) as served:
        assert (await look(served, "overview"))["is_recorded"] is False
        listed = await ask(served, "GET", "/ui/data/requests")
        assert listed.status == 404
        assert "not recorded" in listed.json["error"]["message"]


# Lists


async def test_a_list_is_filtered_and_paged_by_its_address(tmp_path: Path) -> None:
    """Each filter alone, and pages that lead through all of it."""
    records = [
        *(make_request(200 + at) for at in range(100)),
        make_request(50, **REPAIRED, model_asked="a&b=c"),
        make_request(40, **REFUSED, upstream="other", key_id="team b"),
        make_request(90_000, **REASKED),
    ]
    async with serve_records(tmp_path, *records) as served:
        first = await look(served, "requests")
        assert (len(first["rows"]), first["total"]) == (50, 103)
        second = await look(served, f"requests?before={first['next']}")
        third = await look(served, f"requests?before={second['next']}")
        listed = [row["id"] for page in (first, second, third) for row in page["rows"]]
        assert listed == sorted((record.id for record in records), reverse=True)
        assert third["next"] is None
        for query, expected in (
            ("model=a%26b%3Dc", 1),
            ("upstream=other", 1),
            ("outcome=not-clean", 3),
            ("outcome=not-clean&range=24h", 2),
            ("code=CALL_IN_TEXT", 1),
            ("status=4xx", 1),
            ("status=200&range=7d", 102),
            ("key=team+b", 1),
            (f"since={records[0].time - 30}", 33),
            ("model=%00%ff&code=%27%22--", 0),
        ):
            assert (await look(served, f"requests?{query}"))["total"] == expected, query
        wrong = await ask(served, "GET", "/ui/data/requests?since=soon")
        assert wrong.status == 400


async def test_one_request_is_shown_with_all_that_is_kept(tmp_path: Path) -> None:
    """Changes, defects, steps, bodies, and how many are like it."""
    record = make_request(10, **REASKED | {"receipts": REPAIRED["receipts"]}, request_body=BODY)
    alike = [make_request(100 + at, **REASKED) for at in range(3)]
    async with serve_records(tmp_path, record, *alike) as served:
        data = await look(served, f"requests/{record.id}")
        assert [change["rule"] for change in data["changes"]] == [
            *("replace_quotes", "parse_number_text")
        ]
        assert data["changes"][1]["after"] == 3
        assert data["defects"][0]["place"] == "/arguments"
        assert data["parse_error"]["snippet"] == '{"city": "Os'
        assert data["steps_taken"][1] == {"name": "reask", "outcome": "rescued", "requests": 1}
        assert data["request_body"] == BODY.decode()
        assert data["reply_body"] is None
        assert data["like"]["others"] == 3
        assert (await ask(served, "GET", "/ui/data/requests/nothing")).status == 404


async def test_names_of_strangers_arrive_as_they_are(tmp_path: Path) -> None:
    """As JSON text, which a page shows as text."""
    async with serve_records(
        tmp_path, *(make_request(5, model_asked=name) for name in HOSTILE)
    ) as served:
        answer = await ask(served, "GET", "/ui/data/requests")
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert {row["model"] for row in answer.json["rows"]} == set(HOSTILE)


# Cases


async def test_a_request_becomes_a_case_that_can_be_run(tmp_path: Path) -> None:
    """The file is read by the suite of own cases, and expects what was delivered."""
    record = make_request(1, **REPAIRED, request_body=BODY, reply_body=REPLY)
    async with serve_records(tmp_path, record) as served:
        answer = await ask(served, "GET", f"/ui/data/requests/{record.id}/case")
        assert answer.headers["content-disposition"] == (
            f'attachment; filename="case-{record.id}.json"'
        )
        file = tmp_path / "case.json"
        file.write_bytes(answer.body)
        suite = load_custom(file)
        (case,) = suite.cases("cases")
        prepared = case.prepare(seed=1)
        assert [message.text for message in prepared.messages] == [
            *("Be short.", "How warm is it in Oslo?")
        ]
        assert answer.json["cases"][0]["calls"] == [
            {"tool": "get_weather", "arguments": {"city": "Oslo"}}
        ]
        own = await ask(served, "GET", f"/ui/data/requests/{record.id}/case?calls=%5B%5D")
        assert own.json["cases"][0]["calls"] == []
        for calls in ("nonsense", "%7B%7D", "%5B1%5D"):
            path = f"/ui/data/requests/{record.id}/case?calls={calls}"
            assert (await ask(served, "GET", path)).status == 400


async def test_a_request_without_its_body_cannot_become_a_case_or_be_sent(tmp_path: Path) -> None:
    """The reason is part of the page, and of the refusal."""
    long = b'{"model": "small", "messages": [{"role": "user", "content": "' + b"x" * 70_000
    with_calls = BODY.replace(
        b'{"role":"user"', b'{"role":"tool","tool_call_id":"c","content":"4"},{"role":"user"'
    )
    cases = (
        (make_request(1), "was not kept", "was not kept"),
        (make_request(2, request_body=long + b'"}]}'), "too large", "too large"),
        (make_request(3, request_body=with_calls), "calls in it already", ""),
        (make_request(4, outcome="relayed", request_body=BODY), "", "passed on untouched"),
    )
    async with serve_records(tmp_path, *(record for record, _, _ in cases)) as served:
        for record, no_case, no_replay in cases:
            data = await look(served, f"requests/{record.id}")
            assert no_case in data["no_case"], data["no_case"]
            assert no_replay in data["no_replay"], data["no_replay"]
            if no_case:
                saved = await ask(served, "GET", f"/ui/data/requests/{record.id}/case?calls=%5B%5D")
                assert saved.status == 409
                assert no_case in saved.json["error"]["message"]
            if no_replay:
                sent = await act(served, f"requests/{record.id}/replay")
                assert sent.status == 409
                assert no_replay in sent.json["error"]["message"]


# Acts


@pytest.mark.parametrize("stream", [False, True])
async def test_a_kept_request_is_sent_again(tmp_path: Path, stream: bool) -> None:
    """Through the gateway, so that a second record says what became of it."""
    async with FaultServer(FaultyProvider()) as upstream:
        text = f'[upstreams.faults]\nurl = "{upstream.url}"\nprobe = "off"\n[store]\n'
        async with serve_records(tmp_path, text=text + "keep_bodies = true\n") as served:
            body = chat("faults:arguments_fenced", stream=stream)
            first = await ask(served, "POST", "/v1/chat/completions", body)
            record_id = first.headers["x-surecall-request-id"]
            assert (await look(served, f"requests/{record_id}"))["outcome"] == "repaired"
            sent = await act(served, f"requests/{record_id}/replay")
            assert (sent.status, sent.json["status"]) == (200, 200)
            again = await look(served, f"requests/{sent.json['id']}")
            assert again["id"] != record_id
            assert (again["outcome"], again["calls"], again["stream"]) == ("repaired", 1, stream)
            assert (await look(served, "requests"))["total"] == 2


async def test_a_model_is_asked_again_what_it_can_do(tmp_path: Path) -> None:
    """The facts come with a date; where no probe is allowed, the reason is said."""
    async with FaultServer(FaultyProvider()) as upstream:
        text = (
            f'[upstreams.faults]\nurl = "{upstream.url}"\nkey = "none"\n'
            'models = ["faults:clean"]\n' + UPSTREAMS
        )
        async with serve_records(tmp_path, make_request(5), text=text) as served:
            before = await look(served, "models")
            named = {item["name"]: item for item in before["upstreams"]}
            assert named["faults"]["models"][0]["facts"] == []
            assert "probe" in named["stub"]["no_probe"]
            assert "no key of its own" in named["other"]["no_probe"]
            wanted = {"upstream": "faults", "model": "faults:clean"}
            done = await act(served, "models/probe", wanted)
            assert done.status == 200, done.body
            assert done.json["error"] is None
            after = await look(served, "models")
            (model,) = after["upstreams"][0]["models"]
            facts = {fact["field"]: fact for fact in model["facts"]}
            assert facts["supports_tool_use"]["value"] is True
            assert facts["supports_tool_use"]["asked_at"] <= after["now"]
            for body, status in (
                ({"upstream": "stub", "model": "small"}, 409),
                ({"upstream": "nowhere", "model": "small"}, 404),
                ({"upstream": "faults", "model": "x" * 300}, 404),
                ({}, 404),
            ):
                assert (await act(served, "models/probe", body)).status == status


# Figures


def test_shares_have_wilsons_interval() -> None:
    """Also at nothing and at everything."""
    found = share(10, 100)
    assert (found.low, found.high) == (
        pytest.approx(0.0552, abs=1e-4),
        pytest.approx(0.1744, abs=1e-4),
    )
    assert share(0, 10).low == 0.0
    assert share(0, 10).high == pytest.approx(0.2775, abs=1e-4)
    assert share(10, 10).high == 1.0
    assert share(0, 0).value == 0.0


def test_percentiles_are_values_that_occurred() -> None:
    """By the nearest rank."""
    assert percentiles([float(n) for n in range(100, 0, -1)]) == {
        "p50": 50.0,
        "p95": 95.0,
        "n": 100,
    }
    assert percentiles([3.0]) == {"p50": 3.0, "p95": 3.0, "n": 1}
    assert percentiles([]) is None
