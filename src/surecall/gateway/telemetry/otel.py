"""Spans for OpenTelemetry after its conventions for generative AI; content only when asked for.

Spans and metrics go to whatever the program has set up. Where it has set up nothing and the
variable `OTEL_EXPORTER_OTLP_ENDPOINT` names a collector, they go there. Without the extra `otel`,
only making an observer fails.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping
from importlib import import_module
from time import time_ns
from typing import Any, Final

from surecall.base.errors import Code, ConfigError, SurecallError
from surecall.base.records import (
    Event,
    Message,
    ModelRequestEnded,
    ModelRequestFailed,
    ModelRequestStarted,
    Reply,
    RunEnded,
    RunStarted,
    ToolCallEnded,
    ToolCallStarted,
)
from surecall.base.redaction import excerpt, redact
from surecall.base.version import VERSION
from surecall.exchange.request import ClientRequest
from surecall.models.config.load import list_variables
from surecall.store.records.record import RequestRecord
from surecall.text import encode_text
from surecall.wire import find_protocol

SCOPE: Final = "surecall"
"""The name under which spans are made."""

_VARIABLES: Final = "OTEL_"
_ENDPOINTS: Final = frozenset({"EXPORTER_OTLP_ENDPOINT", "EXPORTER_OTLP_TRACES_ENDPOINT"})
_MEASURED_BY: Final = (
    *("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model"),
    *("gen_ai.response.model", "error.type"),
)
_MAX_RUNS: Final = 1000
_MAX_CONTENT_CHARS: Final = 8192
_PROVIDERS: Final = {
    "chat_completions": "openai",
    "responses": "openai",
    "messages": "anthropic",
    "gemini": "gcp.gemini",
}
"""What the conventions call the families of wire formats."""


def _load_tracing() -> Any:
    try:
        return import_module("opentelemetry.trace")
    except ImportError as error:
        raise _missing("Traces need OpenTelemetry") from error


def _missing(what: str) -> ConfigError:
    return ConfigError(
        Code.EXTRA_MISSING,
        f"{what}, which is not installed.",
        hint="Run: pip install 'surecall[otel]'",
    )


def names_collector() -> bool:
    """Tell whether the environment says where traces go."""
    return not _ENDPOINTS.isdisjoint(list_variables(_VARIABLES))


def _export() -> Callable[[], object]:
    """Send spans and metrics to the collector of the environment, unless the program does so.

    Returns:
        What sends the rest, when all is over.
    """
    trace, metrics = _load_tracing(), import_module("opentelemetry.metrics")
    is_set_up = type(trace.get_tracer_provider()).__name__ != "ProxyTracerProvider"
    if is_set_up or not names_collector():
        return lambda: None
    try:
        name = "opentelemetry.exporter.otlp.proto.http"
        spans = import_module(f"{name}.trace_exporter").OTLPSpanExporter()
        numbers = import_module(f"{name}.metric_exporter").OTLPMetricExporter()
    except ImportError as error:
        raise _missing("Sending traces needs the OTLP exporter") from error
    variables = list_variables(_VARIABLES)
    name = variables.get("SERVICE_NAME", SCOPE)
    resource = import_module("opentelemetry.sdk.resources").Resource.create(
        {"service.name": name, "service.version": VERSION}
    )
    sdk, reading = import_module("opentelemetry.sdk.trace"), "opentelemetry.sdk.metrics"
    tracing = sdk.TracerProvider(resource=resource)
    batches = import_module("opentelemetry.sdk.trace.export").BatchSpanProcessor(spans)
    tracing.add_span_processor(batches)
    readers: list[Any] = []
    if variables.get("METRICS_EXPORTER") != "none":  # for collectors that only take traces
        readers = [import_module(f"{reading}.export").PeriodicExportingMetricReader(numbers)]
    measuring = import_module(reading).MeterProvider(metric_readers=readers, resource=resource)
    trace.set_tracer_provider(tracing)
    metrics.set_meter_provider(measuring)

    def end() -> None:
        tracing.shutdown()
        measuring.shutdown()

    return end


class _ModelMetrics:
    """The metrics of the conventions: how long an operation took, and how many tokens it used."""

    def __init__(self) -> None:
        meter = import_module("opentelemetry.metrics").get_meter(SCOPE)
        self._seconds = meter.create_histogram("gen_ai.client.operation.duration", unit="s")
        self._tokens = meter.create_histogram("gen_ai.client.token.usage", unit="{token}")

    def observe(self, span: Mapping[str, Any], seconds: float) -> None:
        """Count an operation, by the attributes of its span."""
        named = {name: span[name] for name in _MEASURED_BY if name in span}
        self._seconds.record(seconds, named)
        for kind in ("input", "output"):
            if count := span.get(f"gen_ai.usage.{kind}_tokens"):
                self._tokens.record(count, {**named, "gen_ai.token.type": kind})


def _content(text: str) -> str:
    return excerpt(text, _MAX_CONTENT_CHARS)


class RequestSpans:
    """Makes a span of every request of a gateway.

    Args:
        provider: Makes the spans; by default the one that the program has set up.
        content: Whether bodies are put into spans, redacted and clipped.
    """

    def __init__(self, provider: Any = None, *, content: bool = False) -> None:
        self._trace = _load_tracing()
        self.close = _export() if provider is None else lambda: None
        """Sends what waits; call it once."""
        self._tracer = self._trace.get_tracer(SCOPE, tracer_provider=provider)
        self._metrics = _ModelMetrics()
        self._has_content = content
        propagation = import_module("opentelemetry.trace.propagation.tracecontext")
        self._propagator: Any = propagation.TraceContextTextMapPropagator()

    def begin(self, time: float, traceparent: str | None = None) -> Any:
        """Begin the span of a request; `traceparent` is the header of its client."""
        parent = None
        if traceparent:
            parent = self._propagator.extract({"traceparent": traceparent})
        return self._tracer.start_span(
            "chat", context=parent, kind=self._trace.SpanKind.CLIENT, start_time=int(time * 1e9)
        )

    def headers_of(self, span: Any) -> dict[str, str]:
        """Return the headers by which spans of an upstream become children of a span."""
        found: dict[str, str] = {}
        self._propagator.inject(found, context=self._trace.set_span_in_context(span))
        return found

    def observe(self, record: RequestRecord, span: Any = None) -> None:
        """End the span of a request, or make the whole of it."""
        span = span or self.begin(record.time)
        start = int(record.time * 1e9)
        seconds = (record.upstream_ms + record.added_ms) / 1000
        end = start + max(int(seconds * 1e9), 0)
        attributes = self._attributes(record)
        self._metrics.observe(attributes, seconds)
        span.update_name(f"chat {redact(record.model_asked)}".rstrip())
        span.set_attributes(attributes)
        if record.error_code:
            span.set_status(self._trace.Status(self._trace.StatusCode.ERROR, record.error_code))
        span.end(end)

    def _attributes(self, record: RequestRecord) -> dict[str, Any]:
        protocol = record.upstream_protocol
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": _PROVIDERS.get(protocol, protocol or "unknown"),
            "gen_ai.request.model": redact(record.model_asked),
            "gen_ai.request.stream": record.stream,
            "gen_ai.usage.input_tokens": record.prompt_tokens,
            "gen_ai.usage.output_tokens": record.completion_tokens,
            "http.response.status_code": record.status,
            "surecall.request.id": record.id,
            "surecall.upstream": record.upstream,
            "surecall.outcome": record.outcome,
            "surecall.strategy": record.strategy,
            "surecall.calls": record.calls,
            "surecall.receipts": len(record.receipts),
            "surecall.upstream_requests": record.upstream_requests,
            "surecall.added_ms": record.added_ms,
        }
        only_some: dict[str, Any] = {
            "gen_ai.usage.cache_read.input_tokens": record.cached_tokens,
            "gen_ai.response.model": redact(record.model_answered),
            "surecall.cost": record.cost,
            "surecall.observed": record.observed,
            "surecall.rules": list(dict.fromkeys(item.rule for item in record.receipts)),
            "surecall.defects": list(dict.fromkeys(item.code for item in record.defects)),
            "error.type": record.error_code,
        }
        attributes |= {name: value for name, value in only_some.items() if value}
        if record.first_byte_ms is not None:
            attributes["gen_ai.response.time_to_first_chunk"] = record.first_byte_ms / 1000
        if self._has_content:
            attributes |= _read_content(record)
        return attributes


def _read_content(record: RequestRecord) -> dict[str, Any]:
    """Return what was asked and answered under the names of the conventions, as JSON."""
    found: dict[str, Any] = {}
    body, name = record.request_body, record.client_protocol
    try:
        if body is not None:
            request = ClientRequest.parse(
                name, body, model=record.model_asked, stream=record.stream
            ).ask()
            messages = [_write_message(item) for item in request.messages]
            system = [item for item in messages if item["role"] in ("system", "developer")]
            parts = [part for item in system for part in item["parts"]]
            found["gen_ai.input.messages"] = [item for item in messages if item not in system]
            found["gen_ai.system_instructions"] = parts
            found["gen_ai.tool.definitions"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                }
                for tool in request.tools
            ]
        if (reply := read_kept_reply(record)) is not None:
            parts = [{"type": "text", "content": reply.content}] if reply.content else []
            parts += [_write_call(call.id, call.name, call.arguments) for call in reply.calls]
            reason = reply.finish_reason or "stop"
            answer = {"role": "assistant", "parts": parts, "finish_reason": reason}
            found["gen_ai.output.messages"] = [answer]
    except SurecallError:  # it is not a request or a reply at all
        pass
    texts: dict[str, Any] = {
        name: _content(encode_text(value)) for name, value in found.items() if value
    }
    if reasons := [item["finish_reason"] for item in found.get("gen_ai.output.messages", ())]:
        texts["gen_ai.response.finish_reasons"] = reasons
    return texts


def read_kept_reply(record: RequestRecord) -> Reply | None:
    """Return the reply that a client got, as far as it was kept.

    Raises:
        SurecallError: It is no reply of the client's format.
    """
    if record.reply_body is None:
        return None
    wire = find_protocol(record.client_protocol or "chat_completions")
    if not record.stream:
        return wire.parse_message(wire.parse_body(record.reply_body))
    folder = wire.open_stream()
    folder.feed(record.reply_body)
    return wire.parse_message(folder.close())


def _write_message(message: Message) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    if message.role == "tool":
        answer = {"type": "tool_call_response", "id": message.tool_call_id}
        parts.append({**answer, "response": message.text})
    elif message.text:
        parts.append({"type": "text", "content": message.text})
    parts += [_write_call(call.id, call.name, call.arguments) for call in message.tool_calls]
    return {"role": message.role, "parts": parts}


def _write_call(call_id: Any, name: Any, arguments: Any) -> dict[str, Any]:
    return {"type": "tool_call", "id": call_id, "name": name, "arguments": arguments}


class _OpenRun:
    """The spans of one run that have not ended."""

    def __init__(self, span: Any, model: str) -> None:
        self.span = span
        self.model = model
        self.request: Any = None
        self.tools: dict[str, Any] = {}

    def end(self, now_ns: int) -> None:
        for span in (*self.tools.values(), self.request, self.span):
            if span is not None:
                span.end(now_ns)


class RunSpans:
    """Makes spans of runs: one for the run, and in it one for every request and every tool.

    Use it as `on_event` of a session or a run.

    Args:
        provider: Makes the spans; by default the one that the program has set up.
        content: Whether arguments of calls are put into spans, redacted and clipped.
        system: What the conventions call the provider of the model.
    """

    def __init__(
        self, provider: Any = None, *, content: bool = False, system: str = "openai"
    ) -> None:
        self._trace = _load_tracing()
        self.close = _export() if provider is None else lambda: None
        """Sends what waits; call it once, when no more runs come."""
        self._tracer = self._trace.get_tracer(SCOPE, tracer_provider=provider)
        self._metrics = _ModelMetrics()
        self._has_content = content
        self._system = system
        self._runs: OrderedDict[str, _OpenRun] = OrderedDict()

    def __call__(self, event: Event) -> None:
        """Begin or end the span that an event is about."""
        if isinstance(event, RunStarted):
            self._begin_run(event)
            return
        run = self._runs.get(event.run_id)
        if run is None:
            return
        if isinstance(event, ModelRequestStarted):
            run.request = self._start(
                f"chat {run.model}", run.span, "CLIENT", "chat", run.model, turn=event.turn
            )
        elif isinstance(event, ModelRequestEnded):
            self._end_request(event, run)
        elif isinstance(event, ModelRequestFailed) and run.request is not None:
            self._fail(run.request, event.code)
            run.request.end()
            run.request = None
        elif isinstance(event, ToolCallStarted):
            run.tools[event.tool_call_id] = self._begin_tool(event, run)
        elif isinstance(event, ToolCallEnded):
            span = run.tools.pop(event.tool_call_id, None)
            if span is not None:
                if not event.ok:
                    self._fail(span, event.error_codes[0] if event.error_codes else "TOOL_ERROR")
                span.end()
        elif isinstance(event, RunEnded):
            self._end_run(event, run)

    def _begin_run(self, event: RunStarted) -> None:
        while len(self._runs) >= _MAX_RUNS:  # runs that never ended
            self._runs.popitem(last=False)[1].end(time_ns())
        span = self._start("invoke_agent surecall", None, "INTERNAL", "invoke_agent", event.model)
        span.set_attribute("gen_ai.agent.name", "surecall")
        span.set_attribute("gen_ai.conversation.id", event.run_id)
        self._runs[event.run_id] = _OpenRun(span, event.model)

    def _start(
        self, name: str, parent: Any, kind: str, operation: str, model: str, **more: Any
    ) -> Any:
        context = None if parent is None else self._trace.set_span_in_context(parent)
        attributes = {
            "gen_ai.operation.name": operation,
            "gen_ai.provider.name": self._system,
            "gen_ai.request.model": model,
            **{f"surecall.{key}": value for key, value in more.items()},
        }
        kinds = self._trace.SpanKind
        return self._tracer.start_span(
            name, context=context, kind=kinds[kind], attributes=attributes
        )

    def _end_request(self, event: ModelRequestEnded, run: _OpenRun) -> None:
        span, run.request = run.request, None
        if span is None:
            return
        if event.finish_reason:
            span.set_attribute("gen_ai.response.finish_reasons", [event.finish_reason])
        named: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": self._system,
            "gen_ai.request.model": run.model,
        }
        if event.usage is not None:
            named["gen_ai.usage.input_tokens"] = event.usage.input_tokens
            named["gen_ai.usage.output_tokens"] = event.usage.output_tokens
        span.set_attributes(named)
        self._metrics.observe(named, event.elapsed_ms / 1000)
        span.set_attribute("surecall.calls", event.tool_calls_count)
        span.set_attribute("surecall.receipts", event.receipts_count)
        if event.defect_codes:
            span.set_attribute("surecall.defects", list(event.defect_codes))
        span.end()

    def _begin_tool(self, event: ToolCallStarted, run: _OpenRun) -> Any:
        span = self._start(
            f"execute_tool {event.name}", run.span, "INTERNAL", "execute_tool", run.model
        )
        span.set_attribute("gen_ai.tool.name", event.name)
        span.set_attribute("gen_ai.tool.call.id", event.tool_call_id)
        span.set_attribute("gen_ai.tool.type", "function")
        if event.call is not None and event.call.receipts:
            rules = dict.fromkeys(receipt.rule for receipt in event.call.receipts)
            span.set_attribute("surecall.rules", list(rules))
        if self._has_content and event.call is not None:
            arguments = _content(encode_text(event.call.arguments))
            span.set_attribute("gen_ai.tool.call.arguments", arguments)
        return span

    def _end_run(self, event: RunEnded, run: _OpenRun) -> None:
        del self._runs[event.run_id]
        if not event.ok:
            self._fail(run.span, event.code)
        run.span.set_attribute("gen_ai.usage.input_tokens", event.usage.input_tokens)
        run.span.set_attribute("gen_ai.usage.output_tokens", event.usage.output_tokens)
        run.span.set_attribute("surecall.turns", event.turns)
        run.end(time_ns())

    def _fail(self, span: Any, code: str) -> None:
        span.set_attribute("error.type", code)
        span.set_status(self._trace.Status(self._trace.StatusCode.ERROR, code))
