"""Whole answers of a job, errors among them, and the record of what was done."""

import time
from typing import Any, Final

from surecall.errors import Code, ProviderError, ProviderStatusError, SurecallError
from surecall.exchange import ClientRequest, Delivered, Step
from surecall.gateway.answers import end_retries, render_error
from surecall.gateway.heads import returned_plain
from surecall.gateway.records import ParseError, ProbeNote, RequestRecord, StepNote
from surecall.gateway.upstreams import Known, Target
from surecall.records import Defect, Receipt, Usage

from .asking import AskingJob

_BYTES_PER_TOKEN: Final = 4
_JSON_TYPE: Final = (b"content-type", b"application/json")


class AnsweringJob(AskingJob):
    """A job that answers as a client of its format expects it."""

    _first_byte_s: float | None = None
    _request: ClientRequest | None = None
    _target: Target | None = None
    _known: Known | None = None

    async def _deliver(self, delivered: Delivered) -> None:
        headers = [
            _JSON_TYPE,
            (b"content-length", str(len(delivered.body)).encode()),
            *self._own_headers(delivered.outcome, len(delivered.receipts)),
        ]
        if delivered.headers:
            headers += returned_plain(delivered.headers)
        if delivered.error is not None:
            headers = end_retries(headers)
        usage = delivered.usage
        record = self._record(
            status=delivered.status,
            outcome=delivered.outcome,
            receipts=delivered.receipts,
            defects=delivered.defects,
            steps=delivered.steps,
            parse_error=delivered.parse_error,
            usage=usage,
            model_answered=delivered.model_answered,
            calls=delivered.calls,
            error=delivered.error,
            reply=delivered.body,
        )
        await self._keep(record)
        await self._respond(delivered.status, headers, delivered.body)

    def _own_headers(self, outcome: str, receipts: int) -> list[tuple[bytes, bytes]]:
        return [
            (b"x-surecall-outcome", outcome.encode()),
            (b"x-surecall-request-id", self.id.encode()),
            (b"x-surecall-receipts", str(receipts).encode()),
        ]

    async def _respond(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        if self._link.can_write(self._cycle) and not self._core.is_draining:
            self._link.write_whole(self._cycle, status, headers, body)
            return
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def _fail(self, error: SurecallError) -> None:
        """Answer with an error, in the format of the client."""
        status, body = render_error(self._protocol, error)
        headers = [
            _JSON_TYPE,
            (b"content-length", str(len(body)).encode()),
            *self._own_headers("failed", 0),
        ]
        is_ours = isinstance(error, ProviderStatusError) and error.retry_after_s is not None
        if isinstance(error, ProviderError):
            headers += returned_plain(error.headers)
        if is_ours and b"retry-after" not in dict(headers):
            assert isinstance(error, ProviderStatusError)
            seconds = max(1, round(error.retry_after_s or 0))
            headers.append((b"retry-after", str(seconds).encode()))
        if not (is_ours and status == 503):
            headers = end_retries(headers)
        if self._core.is_draining:
            headers.append((b"connection", b"close"))
        record = self._record(status=status, outcome="failed", error=error, reply=body)
        await self._keep(record)
        await self._respond(status, headers, body)

    def _describe_left(self) -> RequestRecord:
        status = 200 if self._has_started else 499
        return self._record(status=status, outcome="failed", code=Code.CLIENT_CLOSED)

    def _record(
        self,
        *,
        status: int,
        outcome: Any,
        receipts: tuple[Receipt, ...] = (),
        defects: tuple[Defect, ...] = (),
        steps: Any = (),
        parse_error: Any = None,
        usage: Usage | None = None,
        model_answered: str | None = None,
        calls: int = 0,
        error: SurecallError | None = None,
        code: str = "",
        reply: bytes | None = None,
    ) -> RequestRecord:
        request, target, known = self._request, self._target, self._known
        total_s = time.perf_counter() - self._began_s
        size = len(reply) if reply is not None else self._sent_bytes
        copy = self._copy
        kept = reply if reply is not None or copy is None else copy.read()
        if self._caller is not None:
            tokens = usage.total_tokens if usage is not None else 0
            if not tokens and self._requests:
                tokens = (len(self._body) + size) // _BYTES_PER_TOKEN
            self._caller.charge(self.time, tokens)
        upstream_s, first_byte_s = self._upstream_s, self._first_byte_s
        upstream = target.upstream if target is not None else None
        return RequestRecord(  # in the order of its fields, which is quickest
            id=self.id,
            time=self.time,
            key_id=self._caller.id if self._caller is not None else "",
            client_protocol=self._protocol.name,
            upstream=upstream.name if upstream is not None else "",
            upstream_protocol=upstream.entry.protocol if upstream is not None else "",
            model_asked=request.model if request is not None else "",
            model_answered=model_answered or "",
            strategy=known.route.strategy if known is not None else "",
            outcome=outcome,
            error_code=str(error.code) if error is not None else code,
            stream=request is not None and request.stream,
            client_closed=self._has_left,
            status=status,
            calls=calls,
            retries=self._retries,
            upstream_requests=self._requests,
            prompt_tokens=usage.input_tokens if usage is not None else 0,
            completion_tokens=usage.output_tokens if usage is not None else 0,
            request_bytes=len(self._body),
            reply_bytes=size,
            upstream_ms=_to_ms(upstream_s),
            added_ms=_to_ms(max(0.0, total_s - upstream_s - self._waited_s)),
            first_byte_ms=None if first_byte_s is None else _to_ms(first_byte_s),
            probe=None
            if known is None or known.probe_ok is None
            else ProbeNote(known.probe_ok, known.probe_error or None),
            steps=tuple(map(_note_step, steps)) if steps else (),
            receipts=receipts,
            defects=defects,
            parse_error=None
            if parse_error is None
            else ParseError(parse_error.mode, parse_error.error, parse_error.snippet),
            request_body=self._body if copy is not None else None,
            reply_body=kept if copy is not None else None,
        )


def _note_step(step: Step) -> StepNote:
    outcome = "rescued" if step.outcome == "ok" else step.outcome
    return StepNote(step.name, outcome, step.requests)


def _to_ms(seconds: float) -> float:
    """Return milliseconds with three decimals; `round` would take as long as all the rest."""
    return int(seconds * 1e6 + 0.5) / 1000
