"""Traces and metrics arrive at a collector that only the environment names."""

import asyncio
import gzip
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics

from surecall.faults import FaultServer, FaultyProvider
from surecall.gateway.telemetry.otel import _read_content
from surecall.store.records.record import RequestRecord

PUBLISHED = {str(value) for name, value in vars(gen_ai_attributes).items() if name.isupper()}
METRICS = {str(value) for name, value in vars(gen_ai_metrics).items() if name.isupper()}
RUN = """
import surecall
from surecall.gateway.telemetry import RunSpans

spans = RunSpans()
surecall.run_sync("call add with {}", model="faults:clean", base_url=URL, tools=[], on_event=spans)
spans.close()
"""


class Collector:
    """Takes what an exporter sends, as protobuf over HTTP."""

    def __init__(self) -> None:
        self.url = ""
        self.spans: list[Any] = []
        self.metrics: set[str] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take requests until the exporter is gone."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)
                body = await reader.readexactly(int(fields["content-length"]))
                if fields.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                self.take(head.split()[1], body)
                writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            writer.close()

    def take(self, path: str, body: bytes) -> None:
        """Decode what came."""
        if path.endswith("/traces"):
            request = ExportTraceServiceRequest.FromString(body)
            self.spans += [
                span
                for resource in request.resource_spans
                for scope in resource.scope_spans
                for span in scope.spans
            ]
            return
        found = ExportMetricsServiceRequest.FromString(body)
        self.metrics |= {
            metric.name
            for resource in found.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


@asynccontextmanager
async def open_collector() -> AsyncIterator[Collector]:
    """Serve a collector on loopback."""
    collector = Collector()
    server = await asyncio.start_server(collector.serve, "127.0.0.1", 0)
    collector.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield collector
    finally:
        server.close()


def named(span: Any) -> dict[str, Any]:
    """Return the attributes of a span."""
    return {item.key: item.value for item in span.attributes}


async def test_a_gateway_sends_a_trace_for_each_request(tmp_path: Path) -> None:
    """By `OTEL_EXPORTER_OTLP_ENDPOINT` alone, with published names and without contents."""
    async with open_collector() as collector, FaultServer(FaultyProvider()) as upstream:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "surecall", "serve", "--upstream", upstream.url, "--port", "0"),
            *("--store", str(tmp_path / "requests.db"), "--json"),
            env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url},
            stdout=asyncio.subprocess.PIPE,
            cwd=tmp_path,
        )
        assert process.stdout is not None
        url = json.loads(await process.stdout.readline())["url"]
        port = int(url.rpartition(":")[2])
        asked = {"model": "faults:clean", "messages": [{"role": "user", "content": "say Hello."}]}
        body = json.dumps(asked).encode()
        for _ in range(3):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(
                f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
                f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
                "connection: close\r\n\r\n".encode()
                + body
            )
            assert b" 200 " in (await reader.read())[:20]
            writer.close()
        process.send_signal(signal.SIGTERM)
        await process.wait()
    assert len(collector.spans) == 3
    assert len({span.trace_id for span in collector.spans}) == 3
    attributes = named(collector.spans[0])
    assert collector.spans[0].name == "chat faults:clean"
    assert {name for name in attributes if name.startswith("gen_ai.")} <= PUBLISHED
    assert attributes["gen_ai.request.model"].string_value == "faults:clean"
    assert attributes["gen_ai.usage.input_tokens"].int_value > 0
    assert not [name for name in attributes if "messages" in name]
    ours = {name for name in collector.metrics if name.startswith("gen_ai.")}
    assert ours == {"gen_ai.client.operation.duration", "gen_ai.client.token.usage"} <= METRICS


@pytest.mark.parametrize("more", [{}, {"OTEL_METRICS_EXPORTER": "none"}], ids=["all", "traces"])
async def test_a_run_sends_its_spans(more: dict[str, str], tmp_path: Path) -> None:
    """The observer of a run needs no more than the variable either; metrics can be left out."""
    async with open_collector() as collector, FaultServer(FaultyProvider()) as upstream:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", RUN.replace("URL", repr(upstream.url))),
            env={**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, **more},
            cwd=tmp_path,
        )
        assert await process.wait() == 0
    assert bool(collector.metrics) is not bool(more)
    names = {span.name for span in collector.spans}
    assert names == {"invoke_agent surecall", "chat faults:clean"}
    assert len({span.trace_id for span in collector.spans}) == 1


def test_contents_have_the_names_of_the_conventions() -> None:
    """Messages, tools and answers, in parts."""
    asked = {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Weather?"},
        ],
        "tools": [{"type": "function", "function": {"name": "get", "parameters": {}}}],
    }
    call = {"id": "c", "type": "function", "function": {"name": "get", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    answer = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
    record = RequestRecord(
        id="a",
        time=0.0,
        client_protocol="chat_completions",
        model_asked="m",
        request_body=json.dumps(asked).encode(),
        reply_body=json.dumps(answer).encode(),
    )
    found = _read_content(record)
    assert set(found) <= PUBLISHED
    assert json.loads(found["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "Weather?"}]}
    ]
    assert "Be brief." in found["gen_ai.system_instructions"]
    assert json.loads(found["gen_ai.tool.definitions"])[0]["name"] == "get"
    assert json.loads(found["gen_ai.output.messages"])[0]["parts"][0]["name"] == "get"
    assert found["gen_ai.response.finish_reasons"] == ["tool_calls"]


@pytest.mark.parametrize("body", [None, b"{", b"[]", b'{"messages": 3}'])
def test_contents_that_cannot_be_read_are_left_out(body: bytes | None) -> None:
    """A span never fails for what it would show."""
    record = RequestRecord(
        id="a", time=0.0, client_protocol="chat_completions", request_body=body, reply_body=b"<"
    )
    assert _read_content(record) == {}
