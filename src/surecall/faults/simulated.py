"""A faulty provider in this process: the same answers as over HTTP, without a socket.

Nothing is waited for: pauses are skipped, a stall is the deadline that would pass.
"""

import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from itertools import repeat
from typing import Final

import msgspec
from msgspec.structs import replace

from surecall.base.errors import (
    Code,
    ConfigError,
    ProviderConnectionError,
    ProviderError,
    ProviderReplyError,
    ProviderTimeoutError,
)
from surecall.base.records import WireReply, WireRequest
from surecall.models.client.bodies import open_decoder
from surecall.models.transport import RetryPolicy, WireLimits, parse_retry_after
from surecall.models.transport.interface import Closing, PreparedStream
from surecall.models.transport.retry import run_attempts
from surecall.wire.errors import check_body

from .answers import Answer, Flood, Pause
from .behaviours import Behaviour, find_behaviour
from .conversation import Oracle
from .provider import BUILTIN_ORACLES, FaultyProvider, find_endpoint
from .schedule import CLEAN_PLAN, FaultPlan

_DEFAULT_RETRY: Final = RetryPolicy()
_DEFAULT_LIMITS: Final = WireLimits()


class SimulatedTransport(Closing):
    """Answers as a simulated model, or with the faults of a plan, in this process.

    Args:
        model: A simulated model, by name or as read from a file; without one, requests are
            answered by the plan and by the name of the model they carry.
        seed: The same seed gives the same answers to the same requests.
        plan: Which faults requests meet.
        oracles: Who decides what would be right to do.
        retry: How often a failed attempt is made again; the waits between are left out.
        limits: How large an answer may be.
    """

    def __init__(
        self,
        model: str | Behaviour | None = None,
        *,
        seed: int = 0,
        plan: FaultPlan = CLEAN_PLAN,
        oracles: Sequence[Oracle] = BUILTIN_ORACLES,
        retry: RetryPolicy = _DEFAULT_RETRY,
        limits: WireLimits = _DEFAULT_LIMITS,
    ) -> None:
        behaviour = find_behaviour(model) if isinstance(model, str) else model
        self.provider = FaultyProvider(plan=plan, behaviour=behaviour, seed=seed, oracles=oracles)
        self._retry = retry
        self._limits = limits
        self.requests: list[WireRequest] = []
        """Every request, as it was when it was sent."""

    async def send(self, request: WireRequest) -> WireReply:
        """Return the whole answer, or raise what it stands for."""
        answer, attempts = await self._open(request)
        pieces, failure = _perform(answer, self._limits, stream=False)
        error = failure or check_body(answer.headers, b"".join(pieces), status=answer.status)
        if error is not None:
            error.attempts = attempts
            raise error
        return WireReply(
            status=answer.status,
            headers=dict(answer.headers),
            body=b"".join(pieces),
            attempts=attempts,
        )

    @asynccontextmanager
    async def stream(self, request: WireRequest) -> AsyncGenerator[PreparedStream, None]:
        """Open the answer as a stream, or raise what it stands for."""
        answer, attempts = await self._open(request)
        pieces, failure = _perform(answer, self._limits, stream=True)
        if "text/html" in answer.headers.get("content-type", ""):
            failure = check_body(answer.headers, b"".join(pieces), status=answer.status)
            pieces = []
        yield PreparedStream(answer.status, answer.headers, pieces, failure, attempts=attempts)

    async def _open(self, request: WireRequest) -> tuple[Answer, int]:
        protocol = find_endpoint(request.path)
        if protocol is None:
            raise ConfigError(
                Code.INVALID_CONFIG,
                f"the simulated provider does not serve {request.path!r}.",
                hint="It has the endpoints of the four wire formats and no others.",
            )
        body = msgspec.to_builtins(request.body)  # a copy, ten times as fast as `deepcopy`
        self.requests.append(replace(request, headers=dict(request.headers), body=body))

        async def attempt(number: int) -> tuple[Answer, int]:
            answer = self.provider.answer(protocol, request)
            error = _find_refusal(answer)
            if answer.status >= 300 and error is None:
                body = answer.body[: self._limits.max_error_body_bytes]
                error = protocol.parse_error(answer.status, answer.headers, body)
                if error.retry_after_s is None:
                    error.retry_after_s = parse_retry_after(answer.headers, time.time())
            if error is not None:
                raise error
            return answer, number

        return await run_attempts(self._retry, attempt, sleep=_no_wait)


async def _no_wait(_: float) -> None:
    return None


def _find_refusal(answer: Answer) -> ProviderError | None:
    """Return what a client sees in place of the head, or because of it."""
    if answer.before == "stall":
        return ProviderTimeoutError(
            Code.FIRST_BYTE_TIMEOUT, "The simulated provider never answers."
        )
    if answer.before != "keep":
        return _reset_error()
    declared = answer.declared_bytes
    if declared is not None and declared < len(answer.body):
        return ProviderReplyError(
            Code.UPSTREAM_BAD_FRAMING,
            "The simulated provider's answer is not framed as its headers say.",
        )
    return None


def _perform(
    answer: Answer, limits: WireLimits, *, stream: bool
) -> tuple[list[bytes], ProviderError | None]:
    """Return the decoded pieces that arrive, and the error with which they end."""
    code = Code.STREAM_TOO_LARGE if stream else Code.UPSTREAM_TOO_LARGE
    max_bytes = limits.max_stream_bytes if stream else limits.max_body_bytes
    arrived: list[bytes] = []
    try:
        encoding = answer.headers.get("content-encoding", "")
        decoder = open_decoder(encoding, limits, max_bytes=max_bytes, code=code)
        for data in _raw_pieces(answer):
            decoder.feed(data)
            while piece := decoder.step():
                arrived.append(piece)
        failure = _find_ending(answer)
        if failure is not None:
            return arrived, failure
        decoder.close()
    except ProviderError as error:
        return arrived, error
    return arrived, None


def _raw_pieces(answer: Answer) -> Iterator[bytes]:
    """Yield what the client receives; a flood that is slow ends at the total deadline."""
    for piece in answer.pieces:
        if isinstance(piece, Pause):
            continue
        if isinstance(piece, Flood):
            if piece.times is None and piece.pause_s:
                raise ProviderTimeoutError(
                    Code.TOTAL_TIMEOUT, "The simulated provider never comes to an end."
                )
            yield from (
                repeat(piece.data) if piece.times is None else repeat(piece.data, piece.times)
            )
            continue
        yield piece


def _find_ending(answer: Answer) -> ProviderError | None:
    if answer.ending == "stall":
        return ProviderTimeoutError(Code.IDLE_TIMEOUT, "The simulated provider stopped sending.")
    if answer.ending == "reset":
        return _reset_error()
    declared = answer.declared_bytes
    is_short = declared is not None and declared > len(answer.body)
    if answer.ending == "close" and (is_short or answer.framing == "chunked"):
        return ProviderReplyError(
            Code.UPSTREAM_TRUNCATED_BODY,
            "The simulated provider closed the connection before its answer was complete.",
            status=answer.status,
            retryable=True,
        )
    return None


def _reset_error() -> ProviderConnectionError:
    return ProviderConnectionError(
        Code.CONNECTION_RESET, "The simulated provider broke the connection.", retryable=True
    )
