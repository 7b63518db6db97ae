"""Spans for OpenTelemetry after its conventions for generative AI; content only when asked for.

Nothing is sent anywhere by this module: spans go to whatever the program has set up. Without the
extra `otel`, only making an observer fails.
"""

from collections import OrderedDict
from importlib import import_module
from time import time_ns
from typing import Any, Final

from surecall.base.errors import Code, ConfigError
from surecall.base.records import (
    Event,
    ModelRequestEnded,
    ModelRequestFailed,
    ModelRequestStarted,
    RunEnded,
    RunStarted,
    ToolCallEnded,
    ToolCallStarted,
)
from surecall.base.redaction import excerpt, redact
from surecall.text import encode_text

from .record import RequestRecord

SCOPE: Final = "surecall"
"""The name under which spans are made."""

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
        raise ConfigError(
            Code.EXTRA_MISSING,
            "Traces need OpenTelemetry, which is not installed.",
            hint="Run: pip install 'surecall[otel]'",
        ) from error


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
        self._tracer = self._trace.get_tracer(SCOPE, tracer_provider=provider)
        self._has_content = content
        propagation = import_module("opentelemetry.trace.propagation.tracecontext")
        self._propagator: Any = propagation.TraceContextTextMapPropagator()

    def observe(self, record: RequestRecord, *, traceparent: str | None = None) -> None:
        """Make the span of a request that is over; `traceparent` is the header of its client."""
        parent = None
        if traceparent:
            parent = self._propagator.extract({"traceparent": traceparent})
        start = int(record.time * 1e9)
        end = start + max(int((record.upstream_ms + record.added_ms) * 1e6), 0)
        span = self._tracer.start_span(
            f"chat {redact(record.model_asked)}".rstrip(),
            context=parent,
            kind=self._trace.SpanKind.CLIENT,
            start_time=start,
            attributes=self._attributes(record),
        )
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
        if record.model_answered:
            attributes["gen_ai.response.model"] = redact(record.model_answered)
        if record.first_byte_ms is not None:
            attributes["gen_ai.response.time_to_first_chunk"] = record.first_byte_ms / 1000
        if record.receipts:
            rules = dict.fromkeys(receipt.rule for receipt in record.receipts)
            attributes["surecall.rules"] = list(rules)
        if record.defects:
            codes = dict.fromkeys(defect.code for defect in record.defects)
            attributes["surecall.defects"] = list(codes)
        if record.error_code:
            attributes["error.type"] = record.error_code
        if self._has_content:
            bodies = {"request": record.request_body, "reply": record.reply_body}
            attributes |= {
                f"surecall.{name}.body": _content(body.decode("utf-8", "replace"))
                for name, body in bodies.items()
                if body is not None
            }
        return attributes


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
        self._tracer = self._trace.get_tracer(SCOPE, tracer_provider=provider)
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
        if event.usage is not None:
            span.set_attribute("gen_ai.usage.input_tokens", event.usage.input_tokens)
            span.set_attribute("gen_ai.usage.output_tokens", event.usage.output_tokens)
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
