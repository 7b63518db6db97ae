"""What the gateway counts: receipts by rule, and what becomes of its records."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from support.request_records import make_record
from surecall.gateway.app import Gateway
from surecall.store.records.sqlite import SqliteRecords

from .harness import ask, chat, make_settings, serve_faults


async def test_receipts_are_counted_by_the_rules_of_the_exchange(tmp_path: Path) -> None:
    """Those of reading and those of the gateway have names of their own."""
    async with serve_faults(tmp_path) as (served, _):
        body = chat("faults:extra_call", parallel_tool_calls=False)
        await ask(served, "POST", "/v1/chat/completions", chat("faults:finish_stop_with_calls"))
        await ask(served, "POST", "/v1/chat/completions", body)
        await ask(served, "POST", "/v1/chat/completions", chat("faults:arguments_single_quotes"))
        shown = (await ask(served, "GET", "/metrics")).body.decode()
    lines = [line for line in shown.split("\n") if line.startswith("surecall_receipts_total")]
    assert any('rule="set_finish_reason"' in line for line in lines)
    assert not any('rule="other"' in line for line in lines)
    assert "# TYPE surecall_loop_stall_seconds histogram" in shown
    assert 'surecall_records_total{result="dropped"} 0' in shown


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_findings_of_observed_replies_are_no_changes(tmp_path: Path, *, stream: bool) -> None:
    """A reply that passed untouched counts in series of its own, and in none of what was done."""
    async with serve_faults(tmp_path) as (served, _):
        for fault in ("clean", "arguments_single_quotes", "name_unknown"):
            body = chat(f"faults:{fault}", stream=stream)
            await ask(served, "POST", "/v1/chat/completions", body, {"x-surecall": "observe"})
        shown = (await ask(served, "GET", "/metrics")).body.decode()
    counted = {
        line.partition("{")[0]: line for line in shown.split("\n") if line and line[-1] != "0"
    }
    for name in ("replies", "receipts", "defects", "parse_errors", "empty_finals", "steps_used"):
        assert f"surecall_{name}_total" not in counted
    for outcome in ("clean", "repaired", "reasked"):
        assert re.search(rf'surecall_observed_total{{.*outcome="{outcome}"}} 1\n', shown)
    assert 'rule="replace_quotes"} 3' in counted["surecall_observed_receipts_total"]
    assert 'code="TOOL_NOT_ALLOWED"} 1' in counted["surecall_observed_defects_total"]


async def test_old_records_are_removed_while_serving(tmp_path: Path) -> None:
    """Retention works from the start of a gateway on, and is counted."""
    store = SqliteRecords(tmp_path / "requests.db")
    for number in range(5):
        await store.add(make_record(number))
    settings = make_settings(
        tmp_path,
        '[upstreams.a]\nurl = "http://127.0.0.1:9/v1"\nprobe = "off"\n'
        "[store]\nmax_records = 2\nmax_age_days = 36500\n",
    )
    gateway = Gateway(settings, store=store, facts=tmp_path / "facts.db")
    await gateway.open()
    pruned: Any = gateway.request_metrics.pruned
    async with asyncio.timeout(60):
        while not pruned.value():
            await asyncio.sleep(0.01)
    assert pruned.value() == 3
    assert b"surecall_records_pruned_total 3" in gateway.render_metrics([])
    await gateway.close()


async def test_several_streamed_replies_are_made_usable(tmp_path: Path) -> None:
    """Each of them is read, although they are streamed at once."""
    async with serve_faults(tmp_path) as (served, _):
        body = chat("faults:arguments_single_quotes", n=2, stream=True)
        answer = await ask(served, "POST", "/v1/chat/completions", body)
    events = [line[6:] for line in answer.body.split(b"\n") if line.startswith(b"data: {")]
    deltas = [choice["delta"] for event in events for choice in json.loads(event)["choices"]]
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    assert calls
    for call in calls:
        assert json.loads(call["function"]["arguments"]) == {"city": "Paris", "days": 3}
    assert b": surecall outcome=repaired" in answer.body
