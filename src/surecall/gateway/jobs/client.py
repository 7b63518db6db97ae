"""What every request of a client goes through: it comes in, may be left or cut, is recorded."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, cast

from surecall.base.errors import Code, JSONTextError, SurecallError, explain
from surecall.base.json_values import as_fields, count_or_none
from surecall.base.records import Usage
from surecall.base.redaction import drop_begun, excerpt, open_log, redact
from surecall.gateway.budgets import overloaded
from surecall.gateway.headers import ClientLeft, Head, hide_key, read_body, too_large
from surecall.gateway.keys import Caller, forbidden
from surecall.gateway.settings.tables import PriceSettings
from surecall.gateway.state import Core, State
from surecall.gateway.upstreams import Target
from surecall.store.records.record import MAX_BODY_BYTES, RequestRecord, new_request_id
from surecall.text import decode
from surecall.wire import WireProtocol

if TYPE_CHECKING:
    from surecall.gateway.state import GatewayConnection
    from surecall.models.client import Answer
    from surecall.serving import Exchange

_log = open_log("surecall.gateway")


class ClientJob(ABC):
    """One request of a client, in the task of the server.

    Args:
        core: What all requests share.
        state: The settings in force when it came.
        protocol: The format of the client.
        head: What its headers say.
        caller: The virtual key it came with, if there are any.
        asgi: Scope, receive and send of the server.
    """

    _upstream_s: float = 0.0
    _body = b""
    _task: "asyncio.Task[Any] | None" = None
    _answer: "Answer | None" = None
    _has_started = False
    _is_over = False
    _has_left = False
    _is_cut = False
    _is_recorded = False
    _sent_bytes = 0
    _counted_at = 0.0
    """When the request began to count for its key; zero if it does not."""
    _asked_bytes = 0
    """Of all bodies that went to upstreams."""
    _received_bytes = 0
    """Of all bodies that came back, also in part."""
    _received_events = 0

    def __init__(
        self,
        core: Core,
        state: State,
        protocol: WireProtocol,
        head: Head,
        caller: Caller | None,
        asgi: tuple[Any, Any, Any],
    ) -> None:
        self._core = core
        self._state = state
        self._protocol = protocol
        self._head = head
        self._caller = caller
        self._asgi_scope, self._receive, self._send = asgi
        self._link: GatewayConnection = self._asgi_scope["surecall.link"]
        self._cycle = cast("Exchange", self._link.current)
        self._secret = hide_key(head.token)
        self.id = new_request_id()
        self.time = time.time()
        self._began_s = time.perf_counter()
        self._span: Any = None
        """The span that has begun, where spans are made."""
        self._passed = head.passed
        """The headers that go to any upstream."""
        self._copy = StreamCopy() if state.settings.store.keep_bodies else None

    @abstractmethod
    async def _serve(self) -> None:
        """Serve the request, whose body is there."""

    @abstractmethod
    async def _fail(self, error: SurecallError) -> None:
        """Answer with an error, also where an answer has begun."""

    @abstractmethod
    def _describe_left(self) -> RequestRecord:
        """Return the record of a request whose client has left."""

    async def run(self) -> None:
        """Serve the request; whatever happens, the client gets an answer and a record is left."""
        core = self._core
        try:
            core.check_room(is_crowded=self._link.is_crowded)
            limit = self._state.settings.limits.max_request_bytes
            body = self._link.take_body(self._cycle)
            if body is None:
                body = await read_body(self._receive, self._head, limit)
            elif len(body) > limit:
                raise too_large(limit)
            self._body = body
            if begun := core.begin_span(self.time, self._head):
                self._span, self._passed = begun
        except ClientLeft:
            return
        except SurecallError as error:
            await self._fail(error)
            return
        task = self._task = asyncio.current_task()
        assert task is not None
        self._link.on_lost = self._on_client_left
        self._link.read_on()
        core.live.add(self)
        try:
            await self._serve_or_fail()
        except asyncio.CancelledError:
            if not self._has_left and not self._is_cut:
                raise
            task.uncancel()
            self._is_over = True  # nobody cancels what is done about it
            await self._end_early()
        finally:
            self._is_over = True
            self._link.on_lost = self._link.on_writable = None
            core.live.discard(self)

    async def _serve_or_fail(self) -> None:
        """Serve the request, and answer with an error where that fails."""
        try:
            await self._serve()
        except SurecallError as error:
            await self._fail(error)
        except Exception:
            _log.exception("Request %s failed.", self.id)
            await self._fail(
                SurecallError(
                    Code.INTERNAL_ERROR,
                    "The gateway failed.",
                    hint=f"Its log has more under {self.id}.",
                )
            )

    def _on_client_left(self) -> None:
        self._has_left = True
        if self._answer is not None:
            self._answer.abort()
        if self._task is not None and not self._is_over:
            self._task.cancel()

    def cut(self) -> None:
        """End the request now, because the gateway ends."""
        self._is_cut = True
        if self._task is not None and not self._is_over:
            self._task.cancel()

    async def _end_early(self) -> None:
        if not self._has_left:
            await self._fail(overloaded("The gateway is being stopped.", 5.0))
            return
        if self._is_recorded:  # the client left while its record was written
            return
        record = self._describe_left()
        self._core.observe(record, self._span)
        try:
            self._core.store.add_soon(record)
        except Exception as error:
            _log.error("Request %s was not recorded: %s", self.id, explain(error))

    async def _begin_counting(self) -> None:
        """Count the request for its key.

        Raises:
            ProviderStatusError: The key has used what it may.
        """
        caller = self._caller
        if caller is None:
            return
        now = caller.now()
        refusal = await caller.begin(now)
        if refusal is not None:
            self._core.count_shed("rate_limit" if refusal.code == Code.RATE_LIMIT else "budget")
            raise refusal
        self._counted_at = now

    def _note_received(self, data: bytes) -> None:
        """Note a piece of a stream as it came from an upstream."""
        self._received_bytes += len(data)
        if self._counted_at:
            self._received_events += data.count(b"\n\n") or data.count(b"\r\n\r\n")

    async def read_whole(self, answer: "Answer") -> bytes:
        """Return the body of an answer; what came of it counts, also if it is not read to its end.

        Raises:
            ProviderError: It did not come in full.
        """
        try:
            return await answer.read()
        finally:
            self._received_bytes += answer.received_bytes

    def _prices_of(self, target: Target | None) -> PriceSettings | None:
        """Return what the tokens of a model cost, if that is known."""
        if target is None or not self._state.settings.models:
            return None
        found = self._state.strategies.model_settings(target)
        return None if found is None else found.prices

    def _check_prices(self, targets: Iterable[Target]) -> None:
        """Refuse what a key may only pay for, and nobody knows the price of.

        Raises:
            ProviderStatusError: `FORBIDDEN`.
        """
        if self._caller is None or not self._caller.counts_cost:
            return
        for target in targets:
            if self._prices_of(target) is None:
                raise forbidden(
                    f"The model {excerpt(target.model, 80)!r} has no prices, "
                    "so what it costs this key cannot be counted."
                )

    def _charge(
        self,
        usage: Usage | None,
        prices: PriceSettings | None,
        *,
        makes_text: bool = True,
        is_failed: bool = False,
    ) -> float:
        """Charge what was used to the key, once, however the request ends; return its cost.

        A reply that failed costs nothing unless the upstream reports tokens.
        """
        now, self._counted_at = self._counted_at, 0.0
        caller = self._caller if now else None
        if caller is None and prices is None:
            return 0.0
        tokens = count_tokens(
            usage,
            sent_bytes=self._asked_bytes,
            received_bytes=self._received_bytes,
            events=self._received_events,
            makes_text=makes_text,
            is_whole=not self._has_left and not self._is_cut,
        )
        is_free = prices is None or (is_failed and usage is None and not self._has_left)
        asked = self._asked_bytes // BYTES_PER_TOKEN
        cost = 0.0 if is_free or prices is None else price(prices, usage, tokens, asked)
        if caller is not None:
            caller.charge(now, tokens, cost)
        return cost

    async def _keep(self, record: RequestRecord) -> None:
        """Record the request; when this returns the record is durable.

        Only for what was refused for want of room nobody waits: there are many of these. A request
        that was answered never fails because its record cannot be kept.
        """
        if self._is_recorded:  # one request leaves one record
            return
        self._is_recorded = True
        self._core.observe(record, self._span)
        store = self._core.store
        try:
            if record.error_code == Code.OVERLOADED and not record.upstream_requests:
                store.add_soon(record)
            else:
                await store.add(record)
        except Exception as error:
            _log.error("Request %s was not recorded: %s", self.id, explain(error))

    def _count(self, data: bytes) -> None:
        """Note bytes of a stream for the record."""
        self._sent_bytes += len(data)
        if self._copy is not None:
            self._copy.add(data)

    def _write(self, data: bytes) -> None:
        """Send a piece of a stream now; a client that does not read stops the upstream."""
        self._link.write_piece(data)
        self._note_written(data)

    def _note_written(self, data: bytes) -> None:
        self._count(data)
        link = self._link
        if link.is_slow and self._answer is not None:
            self._answer.pause()
            link.on_writable = self._answer.resume


class StreamCopy:
    """Copies the events of a stream, up to what a record keeps of a body."""

    __slots__ = ("_data",)

    def __init__(self) -> None:
        self._data = bytearray()

    def add(self, data: bytes) -> None:
        """Copy the next bytes, as far as they are kept."""
        room = MAX_BODY_BYTES - len(self._data)
        if room > 0:
            self._data += data[:room]

    def read(self) -> bytes | None:
        """Return the copy; nothing when a secret is spread over events, where none would see it."""
        text = self._data.decode("utf-8", "surrogateescape")
        # What is cut, here or upstream, may end inside a secret.
        data = drop_begun(text).encode("utf-8", "surrogateescape")
        texts: dict[tuple[Any, ...], list[str]] = {}
        for line in data.split(b"\n"):
            if line.startswith(b"data:"):
                try:
                    _collect_texts(decode(line[5:], surrogates="replace"), (), texts)
                except JSONTextError:
                    continue
        joined = ("".join(pieces) for pieces in texts.values() if len(pieces) > 1)
        hides_secret = any(drop_begun(redact(text)) != text for text in joined)
        return None if hides_secret or not data else data


def _collect_texts(
    value: Any, place: tuple[Any, ...], found: dict[tuple[Any, ...], list[str]]
) -> None:
    """Add every text in a value to those that other events have at the same place."""
    if isinstance(value, str):
        found.setdefault(place, []).append(value)
    elif isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            _collect_texts(item, (*place, key), found)
    elif isinstance(value, list):
        for at, item in enumerate(cast("list[Any]", value)):
            _collect_texts(item, (*place, at), found)


BYTES_PER_TOKEN: Final = 4
_EVENT_BYTES: Final = 300
"""What an event of a stream has around its text."""


def find_usage(body: bytes) -> Usage | None:
    """Return the tokens that a reply in any format names."""
    if b'"usage' not in body:
        return None
    try:
        fields = as_fields(decode(body, surrogates="replace"))
    except JSONTextError:
        return None
    for place in (fields, as_fields(fields.get("response")), as_fields(fields.get("message"))):
        if counts := as_fields(place.get("usage") or place.get("usageMetadata")):
            return _read_usage(counts)
    return None


def find_stream_usage(tail: bytes) -> Usage | None:
    """Return the tokens that the end of a stream names."""
    for line in reversed(tail.split(b"\n")):
        if line.startswith(b"data:") and (b'"usage"' in line or b'"usageMetadata"' in line):
            usage = find_usage(line[5:])
            if usage is not None:
                return usage
    return None


def _read_usage(fields: dict[str, Any]) -> Usage:
    """Return the counts that can be used; others are zero."""

    def number(*names: str) -> int:
        counts = (count_or_none(fields.get(name)) for name in names)
        return next((count for count in counts if count is not None), 0)

    asked = number("prompt_tokens", "input_tokens", "promptTokenCount")
    given = number("completion_tokens", "output_tokens", "candidatesTokenCount")
    details = as_fields(fields.get("prompt_tokens_details") or fields.get("input_tokens_details"))
    cached = count_or_none(details.get("cached_tokens")) or number("cachedContentTokenCount")
    read, written = number("cache_read_input_tokens"), number("cache_creation_input_tokens")
    asked += read + written  # in the one format that counts these apart
    total = number("total_tokens", "totalTokenCount") or asked + given
    return Usage(
        input_tokens=asked,
        output_tokens=given,
        total_tokens=total,
        cached_tokens=min(cached + read, asked),
        cache_write_tokens=written,
    )


def price(prices: PriceSettings, usage: Usage | None, tokens: int, asked: int) -> float:
    """Return what a request cost: what was reported, and the rest of the tokens as output.

    Args:
        prices: For a million tokens.
        usage: What was reported.
        tokens: What was used in all, as `count_tokens` says.
        asked: How many tokens went to the upstream, by their bytes.
    """
    usage = usage or Usage()
    given = min(usage.input_tokens or asked, tokens)
    cached = min(usage.cached_tokens, given)
    written = min(usage.cache_write_tokens, given - cached)
    read = prices.input if prices.cached_input is None else prices.cached_input
    write = prices.input if prices.cache_write is None else prices.cache_write
    plain = (given - cached - written) * prices.input + (tokens - given) * prices.output
    return (plain + cached * read + written * write) / 1e6


def count_tokens(
    usage: Usage | None,
    *,
    sent_bytes: int,
    received_bytes: int,
    events: int = 0,
    makes_text: bool = True,
    is_whole: bool = True,
) -> int:
    """Return how many tokens a request has used: as reported, and estimated where nothing is.

    A token is four bytes of what was sent or received, but an event of a stream is at least one,
    and its first bytes are about itself.

    Args:
        usage: What was reported; a count of zero may be one that cannot be used.
        sent_bytes: Of the bodies that went to the upstream.
        received_bytes: Of the bodies that came back.
        events: How many events these have.
        makes_text: Whether the reply is text of the model, which is never without a token.
        is_whole: Whether the reply came to its end, and the report with it.
    """
    asked = sent_bytes // BYTES_PER_TOKEN
    given = max(events, (received_bytes - events * _EVENT_BYTES) // BYTES_PER_TOKEN)
    if usage is None:
        return asked + given
    total = max(usage.total_tokens, usage.input_tokens + usage.output_tokens)
    if not is_whole:
        given = max(given, usage.output_tokens)
        return max(total, (usage.input_tokens or asked) + given)
    lacks_input, lacks_output = total <= usage.output_tokens, total <= usage.input_tokens
    charged = total + asked * lacks_input + given * (lacks_output and (makes_text or not total))
    # There is no request without input: what else such a report says may be as wrong.
    return charged if usage.input_tokens or not makes_text else max(charged, asked + given)
