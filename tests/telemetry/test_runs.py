"""The observers of a gateway on the library's own loop: metrics and spans of real runs."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import surecall
from support.request_records import make_record
from surecall.base.metrics import Metrics
from surecall.base.records import Defect, Event, Receipt, RunStarted
from surecall.base.redaction import Secret
from surecall.gateway.telemetry import RunMetrics, RunSpans, observe
from surecall.gateway.telemetry.otel import RequestSpans
from surecall.models.transport import ScriptedTransport, assistant, tool_call


@surecall.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def run(on_event: Any, *replies: Any) -> None:
    """Ask a model that says what a script says."""
    transport = ScriptedTransport(replies)
    surecall.run_sync("Add.", model="small", tools=[add], transport=transport, on_event=on_event)


CALL = (assistant(None, tool_call("add", '{"a": 1, "b": 2,}')), assistant("3"))


class Traced:
    """A provider whose spans stay here."""

    def __init__(self) -> None:
        self._kept = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._kept))

    def spans(self) -> dict[str, ReadableSpan]:
        """Return the spans by name."""
        return {span.name: span for span in self._kept.get_finished_spans()}


@pytest.fixture
def traced() -> Traced:
    """An empty provider."""
    return Traced()


def values(spans: Iterable[ReadableSpan]) -> str:
    """Return everything that spans say."""
    return " ".join(f"{span.name} {dict(span.attributes or {})}" for span in spans)


def test_runs_are_counted() -> None:
    """In the series of a gateway, and in some of their own."""
    metrics = Metrics()
    counted = RunMetrics(metrics)
    run(counted, *CALL)
    assert counted.runs.value("small", "ok") == 1
    assert counted.replies.value("library", "small", "native") == 2
    assert counted.receipts.value("library", "small", "drop_trailing_comma") == 1
    assert counted.calls.value("library", "small", "repaired") == 1
    assert counted.tool_calls.value("add", "ok") == 1
    assert counted.upstream_requests.value("library") == 2
    assert b'surecall_run_seconds_count{model="small"} 1' in metrics.render()
    with pytest.raises(surecall.RunError):
        run(counted, *[assistant(None, tool_call("add", {"a": 1, "b": 2}))] * 40)
    assert sum(cell[0] for cell in counted.runs.samples().values()) == 2


def test_a_run_is_a_span_with_its_requests_and_tools_inside(traced: Traced) -> None:
    """After the conventions, and without content."""
    run(RunSpans(traced.provider), *CALL)
    spans = traced.spans()
    assert set(spans) == {"invoke_agent surecall", "chat small", "execute_tool add"}
    root, chat, call = (
        spans[name] for name in ("invoke_agent surecall", "chat small", "execute_tool add")
    )
    assert root.parent is None
    for span in (chat, call):
        assert span.parent is not None
        assert root.context is not None
        assert span.parent.span_id == root.context.span_id
        assert span.end_time is not None
    assert dict(call.attributes or {})["gen_ai.tool.name"] == "add"
    assert dict(call.attributes or {})["surecall.rules"] == ("drop_trailing_comma",)
    assert dict(chat.attributes or {})["gen_ai.operation.name"] == "chat"
    assert dict(chat.attributes or {})["gen_ai.request.model"] == "small"
    assert "arguments" not in values(spans.values())


def test_content_is_shown_only_when_asked_for(traced: Traced) -> None:
    """And never a secret."""
    secret = Secret("correct-horse-battery")
    arguments = '{"a": 1, "b": 2, "note": "correct-horse-battery"}'
    replies = (assistant(None, tool_call("add", arguments)), assistant("done"))
    run(RunSpans(traced.provider, content=True), *replies)
    text = values(traced.spans().values())
    assert "gen_ai.tool.call.arguments" in text
    assert secret.reveal() not in text


def test_runs_that_never_end_are_not_kept_for_ever(traced: Traced) -> None:
    """The earliest span is ended for them."""
    spans = RunSpans(traced.provider)
    for number in range(1005):
        spans(RunStarted(run_id=str(number), model="m", fingerprint="", tools=()))
    assert len(spans._runs) == 1000


def test_observers_do_not_disturb_each_other() -> None:
    """What one raises, the others do not notice."""
    seen: list[Event] = []

    def fail(event: Event) -> None:
        raise ValueError("no")

    run(observe(fail, seen.append), *CALL)
    assert len(seen) > 5


def test_a_request_of_a_gateway_is_a_span(traced: Traced) -> None:
    """In the trace of its client, with its own times, and without content."""
    secret = Secret("correct-horse-battery")
    record = make_record(
        outcome="repaired",
        model_asked=f"small {secret.reveal()}",
        prompt_tokens=7,
        receipts=(Receipt("drop_trailing_comma", "", "secret text", 2),),
        defects=(Defect("ID_REPEATED", "m"),),
        error_code="IDLE_TIMEOUT",
        stream=True,
        first_byte_ms=4.0,
        request_body=b'{"model": "m", "messages": [{"role": "user", "content": "what was asked"}]}',
    )
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    spans = RequestSpans(traced.provider)
    spans.observe(record, spans.begin(record.time, parent))
    spans.observe(make_record(model_asked="plain"), spans.begin(record.time, "garbage"))
    found = [span for name, span in traced.spans().items() if name != "chat plain"]
    (span,) = found
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == "b7ad6b7169203331"
    assert (span.end_time or 0) - (span.start_time or 0) == 12_750_000
    attributes = dict(span.attributes or {})
    assert attributes["gen_ai.usage.input_tokens"] == 7
    assert attributes["gen_ai.provider.name"] == "openai"
    assert attributes["gen_ai.response.time_to_first_chunk"] == 0.004
    assert attributes["surecall.outcome"] == "repaired"
    assert attributes["surecall.rules"] == ("drop_trailing_comma",)
    assert attributes["error.type"] == "IDLE_TIMEOUT"
    text = values(found)
    assert "secret text" not in text
    assert "what was asked" not in text
    assert secret.reveal() not in text
    plain = traced.spans()["chat plain"]
    assert plain.parent is None
    RequestSpans(traced.provider, content=True).observe(record)
    assert "what was asked" in values(traced.spans().values())


def test_a_session_takes_an_observer() -> None:
    """The seam is the one that every listener uses."""
    counted = RunMetrics(Metrics())
    transport = ScriptedTransport(CALL)

    async def ask() -> None:
        session = surecall.Session(
            model="small", tools=[add], transport=transport, on_event=counted
        )
        await session.run("Add.")

    asyncio.run(ask())
    assert counted.runs.value("small", "ok") == 1
