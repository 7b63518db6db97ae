"""A stream on its way from the endpoint to the client: text at once, calls when they are whole."""

from collections.abc import Callable, Mapping
from time import monotonic
from typing import Final

from msgspec.structs import replace

from surecall.base.errors import Code, ProviderError, ProviderReplyError, SurecallError
from surecall.base.json_values import as_fields
from surecall.base.records import Defect, Reading, Receipt, Reply, Usage
from surecall.exchange.mediation import mediate
from surecall.exchange.policy import Ending, Outcome, Policy, Route, Sent
from surecall.exchange.prepare import Asked
from surecall.exchange.re_asks import Escalation, Planned, is_only_read, refuse
from surecall.exchange.reply_checker import ReplyChecker
from surecall.exchange.request import ClientRequest, add_members
from surecall.exchange.signatures import EchoCache
from surecall.exchange.verdict import (
    StreamEnd,
    Verdict,
    as_made,
    choose_bad,
    note_outcome,
    note_stop,
    says_calls,
)
from surecall.reading.truncation import came_to_its_end
from surecall.text import decode, decode_plain, encode
from surecall.wire import WireProtocol
from surecall.wire.substitutes import restore_names

from .passthrough import Passing
from .translating import Translating

ClientStream = Passing | Translating
"""One stream, on its way to the client."""

PULSE_S: Final = 1.5
"""How long to wait between two looks at a stream; its client hears nothing for twice as long."""
_CUT: Final = "The reply ended in the middle of a call."
_BODY_STARTS: Final = b'{["<'
_MARK: Final = b"\xef\xbb\xbf"
_MAX_BLANK_BYTES: Final = 64 * 1024


class StreamRelay:
    """Passes one streamed reply on, in the format of the client; no I/O.

    Send `body` to the endpoint, give `feed` the bytes of its answer as they come, and send the
    client what it returns. When the stream has ended, or `done` says that nothing more is of use,
    `finish` says what is sent last. Calls, the finish and everything behind them are sent then: a
    call or a finish never comes out of a stream that was cut.

    Args:
        request: What the client asked.
        route: Where it is sent.
        policy: What may be done to make calls usable.
        request_id: What the comment at the end names the request by.
        headers: Headers of the endpoint's answer, names in lower case.
        echoes: What clients should send back and may leave out, kept from earlier replies.
        scope: Whose conversation it is, such as the name of a key.
        clock: The time in seconds.
    """

    def __init__(
        self,
        request: ClientRequest,
        route: Route,
        policy: Policy,
        *,
        request_id: str = "",
        headers: Mapping[str, str] | None = None,
        echoes: EchoCache | None = None,
        scope: str = "",
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._request = request
        self._route = route
        self._policy = policy
        self._request_id = request_id
        self._headers = headers or {}
        self._clock = clock
        self._keeps_echoes = echoes is not None
        self._checker = ReplyChecker(request, route, policy)
        self._tries = Escalation(request, route, policy, echoes, scope, clock, clock())
        self._tries.requests = 1
        self._first: Asked | None = None
        self._start = b""
        self._side: ClientStream | None = None
        self._again: _Again | None = None
        self._single: Verdict | None = None
        """The reply with one call that is delivered if the list asked for is of no use."""
        self._held_text: str | None = None
        """What comes in the place of text that was held back."""
        self._may_leave = False
        """Whether the first reply may go on as it came, if nothing better is found."""
        self._defects: tuple[Defect, ...] = ()
        self._ending: Ending | None = None

    @property
    def asked(self) -> Asked:
        """What the endpoint is asked first, as a stream.

        Raises:
            RequestError: The endpoint's format cannot carry it.
        """
        if self._first is None:
            first = self._tries.prepare.first()
            if first.body is not self._request.body:
                first = replace(first, body=_as_stream(first.body, self._route.protocol))
            self._first = first
        return self._first

    @property
    def body(self) -> bytes:
        """The request to send to the endpoint.

        Raises:
            RequestError: The endpoint's format cannot carry it.
        """
        return self.asked.body

    @property
    def done(self) -> bool:
        """Whether nothing more of what the endpoint sends is of use."""
        if self._again is not None:
            return self._again.done
        return self._side is not None and self._side.done

    @property
    def usage(self) -> Usage | None:
        """The tokens that were reported so far."""
        if self._tries.usage is None and self._side is not None:
            return self._side.usage
        return self._tries.usage

    def take_headers(self, headers: Mapping[str, str]) -> None:
        """Note the headers of the endpoint's answer, names in lower case."""
        self._headers = headers

    def feed(self, chunk: bytes) -> bytes:
        """Take the next bytes, cut anywhere, and return those for the client."""
        if self._again is not None:
            self._again.feed(chunk)
            return b""
        side = self._side
        if side is None:
            chunk = self._start + chunk
            if not chunk.strip() and len(chunk) < _MAX_BLANK_BYTES:
                self._start = chunk
                return b""
            side = self._open(chunk)
        passed = side.feed(chunk)
        if side.pulses:
            passed = side.shift(passed)
        return passed + self._write_anew(side) if side.is_tagged else passed

    def pulse(self) -> bytes:
        """Return an event that says nothing, if the client waits for what is held back.

        Call it again and again, `PULSE_S` apart: clients give up on a stream that is silent for
        long. Comments and pings do not help, because SDKs do not hand these on.
        """
        if self._side is None or self._ending is not None:
            return b""
        return self._side.pulse()

    def finish(self, error: SurecallError | None = None) -> Ending:
        """Say how the stream ends.

        Args:
            error: Why the bytes ended before their end, such as a reset or a deadline.
        """
        if self._ending is not None:
            return self._ending
        ending = self._finish(error)
        if ending.ask is None:
            self._ending = ending
        return ending

    def break_off(self, error: SurecallError) -> Ending:
        """End the stream with an error, and look no more at what came: that has failed."""
        if self._side is None:
            self._open(self._start)
        self._ending = self._fail(error)
        return self._ending

    def _open(self, chunk: bytes) -> ClientStream:
        """Find out from the first bytes whether the events can be passed on as they are."""
        start = chunk.removeprefix(_MARK).lstrip()[:1]
        is_same = self._route.protocol.name == self._request.protocol.name
        is_native = self._route.strategy == "native"
        if is_same and is_native and not (start and start in _BODY_STARTS):
            self._side = Passing(
                self._request, self._policy, self._checker, self._headers, self._clock
            )
        else:
            self._side = Translating(
                self._request, self._policy, self._checker, self._route, self.asked, self._headers
            )
        return self._side

    def _write_anew(self, side: ClientStream) -> bytes:
        """Write a stream anew from its first part on, which is reasoning in tags."""
        assert isinstance(side, Passing)
        request, policy, headers = self._request, self._policy, self._headers
        self._side = Translating(
            request, policy, self._checker, self._route, self.asked, headers, begun=side
        )
        return self._side.feed(bytes(side.early or b""))

    def _finish(self, error: SurecallError | None) -> Ending:
        if self._again is not None:
            return self._finish_again(self._again, error)
        side = self._side
        if side is None:
            side = self._open(self._start)
            side.feed(self._start)
        try:
            found = side.close(error)
            self._tries.usage = side.usage
            if found.reading is None:
                if found.calls:
                    self._keep_echoes(None)
                return self._end(found.data, found.outcome, calls=found.calls)
            return self._decide(found, side)
        except SurecallError as failure:
            self._tries.usage = self._tries.usage or side.usage
            return self._go_on(failure, side) or self._fail(failure)

    def _go_on(self, failure: SurecallError, side: ClientStream) -> Ending | None:
        """Ask again for a stream that ended in a call; nothing for a client without a loop."""
        is_error = self._checker.refused_calls in ("auto", "error")
        if failure.code != Code.STREAM_TRUNCATED or is_error or side.has_begun:
            return None
        if not side.cut_short():
            return None
        self._tries.begin(Verdict(notice=_CUT, reading=Reading()), self.asked)
        return self._ask() or self._give_up()

    # What becomes of calls

    def _decide(self, found: StreamEnd, side: ClientStream) -> Ending:
        """Deliver what was read first, or ask for something better."""
        assert found.reading is not None
        reply = found.reply or Reply()
        verdict = self._checker.check_reading(found.reading, reply, self.asked)
        self._defects += verdict.defects
        if found.is_usual and verdict.is_usual:
            self._keep_echoes(None)
            return self._end(found.data, "clean", calls=verdict.calls)
        if not verdict.is_wrong:
            if says_calls(reply) and not verdict.calls and self._has_text(verdict, side):
                receipts = (note_stop(reply.finish_reason),)
                return self._end(side.deliver((), found.text), "repaired", receipts=receipts)
            calls = () if verdict.reading is None else verdict.reading.calls
            if side.has_begun and not (verdict.is_left or side.can_deliver(calls)):
                return self._deliver_as_made(verdict, side)
            if verdict.is_left or not verdict.calls:
                return self._end(side.leave(), "clean", calls=verdict.calls)
            self._keep_echoes(verdict)
            self._held_text = found.text
            if not (side.has_begun or self._checker.one_call):
                planned = self._tries.plan_list(verdict, self.asked)
                if planned is not None:
                    self._single = verdict
                    return self._send(planned)
            return self._deliver(verdict, found.text)
        self._held_text = found.text
        self._tries.begin(verdict, self.asked)
        if side.has_begun and not _may_go_on(verdict):
            return self._salvage(side) or self._refuse()
        self._may_leave = verdict.is_empty or verdict.is_text
        return self._ask() or self._give_up()

    def _deliver_as_made(self, verdict: Verdict, side: ClientStream) -> Ending:
        """End a stream whose calls were made right in another way than they had begun."""
        made = () if verdict.reading is None else tuple(map(as_made, verdict.reading.calls))
        if self._checker.refused_calls == "deliver" and side.can_deliver(made):
            return self._end(side.deliver(made, None), "unrepaired", calls=len(made))
        error = ProviderReplyError(
            Code.ARGUMENTS_INVALID,
            "The beginning of a call had been sent when the rest of it turned out to need repair.",
            hint="Raise `hold_calls_s` or `hold_calls_bytes` to hold calls for longer.",
        )
        return self._fail(error, "refused")

    def _keep_echoes(self, verdict: Verdict | None) -> None:
        """Keep what the client has to send back with its calls, and may leave out."""
        if not self._keeps_echoes or self._side is None:
            return
        try:
            reply = self._side.read_echoes()
        except ProviderError:
            return
        if reply is not None:
            reading = None if verdict is None else verdict.reading
            self._tries.keep_echoes(reply, reply.calls if reading is None else reading.calls)

    def _give_up(self) -> Ending:
        """End a stream for which nothing better was found: as it came, if that is not wrong."""
        assert self._side is not None
        if not self._may_leave:
            return self._salvage(self._side) or self._refuse()
        return self._end(self._side.leave(), "reasked" if self._tries.requests > 1 else "clean")

    def _salvage(self, side: ClientStream) -> Ending | None:
        """Deliver what can be of calls that nothing made right; nothing if that is an error."""
        tries = self._tries
        assert tries.first_bad is not None
        assert tries.bad is not None
        bad = choose_bad(tries.first_bad, tries.bad)
        has_text = self._has_text(bad, side)
        salvage = self._checker.plan_salvage(bad, has_text=has_text)
        if salvage is None:
            return None
        is_again = bad is not tries.first_bad
        text = self._held_text
        if bad.is_in_text:  # what else the model wrote cannot be told from its attempt
            text = ""
        elif is_again and not side.has_sent_text and bad.reading is not None:
            text = bad.reading.content
        note = salvage.note and f"\n\n{salvage.note}" if has_text else salvage.note
        calls = salvage.delivered
        if not side.can_deliver(calls):
            return None
        receipts = tuple(item for call in calls for item in call.receipts) + salvage.receipts
        self._defects += salvage.defects
        data = side.deliver(calls, text, note=note, is_again=is_again)
        return self._end(data, "unrepaired", receipts=receipts, calls=len(calls))

    def _has_text(self, verdict: Verdict, side: ClientStream) -> bool:
        """Tell whether the client has any of the text of a reply, or gets it."""
        said = "" if verdict.reading is None else verdict.reading.content
        return side.has_sent_text or bool(said.strip())

    def _deliver(self, verdict: Verdict, text: str | None) -> Ending:
        side, reading = self._side, verdict.reading
        assert side is not None
        assert reading is not None
        self._tries.note_repairs(verdict.receipts)
        outcome: Outcome = "repaired" if verdict.receipts else "clean"
        if self._again is not None:
            outcome = "reasked"
        elif self.asked.mode != "native" and is_only_read(verdict.receipts):
            outcome = "clean"
        data = side.deliver(reading.calls, text, is_again=self._again is not None)
        return self._end(data, outcome, receipts=verdict.receipts, calls=len(reading.calls))

    def _ask(self) -> Ending | None:
        """Return the next request that may help, if one may be made."""
        planned = self._tries.plan_next()
        return None if planned is None else self._send(planned)

    def _send(self, planned: Planned) -> Ending:
        ending = self._report(Ending(ask=planned.asked.body, outcome="reasked"))
        self._tries.requests += 1
        self._again = _Again(self._route, planned)
        return ending

    def _finish_again(self, again: "_Again", error: SurecallError | None) -> Ending:
        side, planned, single = self._side, again.planned, self._single
        assert side is not None
        verdict = None
        try:
            reply = restore_names(again.close(error), planned.asked.renamed)
            self._tries.add_usage(reply.usage)
            reading = self._checker.read(reply, planned.asked)
            verdict = self._checker.check_reading(reading, reply, planned.asked)
            text = self._held_text
            has_text = side.has_sent_text or bool((text or "").strip())
            if not reading.calls and not has_text:
                text = reading.content
            brings = reading.calls or (not has_text and reading.content.strip())
            is_good = bool(brings) and not verdict.is_wrong and not verdict.is_left
            is_good = is_good and side.can_deliver(reading.calls)
            if single is not None:
                is_good = is_good and self._checker.takes_list(single, verdict)
            if is_good and planned.suits(len(reading.calls)):
                self._tries.note(planned, is_good=True)
                return self._deliver(verdict, text)
            is_answer = has_text and not reading.calls and not verdict.is_wrong
            if is_answer and self._may_leave:  # so the text that was sent is one, too
                self._tries.note(planned, is_good=True)
                return self._give_up()
        except ProviderError:
            pass
        if single is not None:
            self._tries.note(planned, is_good=False)
            self._again = None
            return self._deliver(single, self._held_text)
        bad = verdict if verdict is not None and (verdict.answers or verdict.notice) else None
        self._tries.note(planned, is_good=False, bad=bad)
        return self._ask() or self._give_up()

    # Endings

    def _refuse(self) -> Ending:
        assert self._tries.bad is not None
        was_asked_again = self._tries.requests > 1
        return self._fail(refuse(self._tries.bad, was_asked_again=was_asked_again), "refused")

    def _fail(self, error: SurecallError, outcome: Outcome = "failed") -> Ending:
        assert self._side is not None
        data = b"" if self._ends_as_it_came(error) else self._side.fail(error)
        ending = self._end(data, outcome, error=error)
        stated = self._side.stated
        if stated is None or stated.error is not error:
            return ending
        return replace(
            ending,
            is_reply=stated.body is None,
            error_body=stated.body,
            error_status=stated.status,
        )

    def _ends_as_it_came(self, error: SurecallError) -> bool:
        """Tell whether the client sees by itself that its text was cut, as without anybody between.

        Programs that run a loop ask again when a finish is missing, and give up at an error.
        """
        assert self._side is not None
        is_cut = error.code == Code.STREAM_TRUNCATED and self._side.has_sent_text
        is_cut = is_cut and not self._side.has_begun
        return is_cut and self._checker.refused_calls in ("deliver", "tell")

    def _end(
        self,
        data: bytes,
        outcome: Outcome,
        *,
        receipts: tuple[Receipt, ...] = (),
        calls: int = 0,
        error: SurecallError | None = None,
    ) -> Ending:
        if self._first is not None and self._first.receipts:
            receipts = self._first.receipts + receipts
            outcome = "repaired" if outcome == "clean" else outcome
        if self._side is not None and self._side.receipts:
            if all(step.name != "repair" for step in self._tries.steps):
                self._tries.note_repairs(self._side.receipts)
            receipts = self._side.receipts + receipts
            outcome = "repaired" if outcome == "clean" else outcome
        if self._side is not None and self._side.pulses:
            data = self._side.shift(data)
        ending = Ending(data=data, outcome=outcome, receipts=receipts, calls=calls, error=error)
        ending = self._report(ending)
        protocol, shows = self._request.protocol, self._policy.show_receipts
        return note_outcome(ending, protocol, self._request_id, shows=shows)

    def _report(self, ending: Ending) -> Ending:
        return replace(
            ending,
            defects=self._defects if self._first is None else self._defects + self._first.defects,
            model_answered=None if self._side is None else self._side.model,
            **self._tries.report(),
        )


async def rescue_call(
    sent: Sent, request: ClientRequest, route: Route, policy: Policy, *, request_id: str = ""
) -> Ending | None:
    """Return the stream that delivers the call which an error holds, or `None` without one."""

    async def send(_: bytes) -> Sent:
        return sent

    one = replace(policy, max_requests=1, show_receipts=False)
    delivered = await mediate(request, route, one, send)
    if delivered.error is not None or not delivered.calls:
        return None
    own = Route(protocol=request.protocol, model=route.model)
    relay = StreamRelay(request, own, one, request_id=request_id)
    written = relay.feed(delivered.body)
    ending = relay.finish()
    if ending.error is not None or ending.ask is not None:
        return None
    return Ending(data=written + ending.data, **delivered.report())


def _may_go_on(verdict: Verdict) -> bool:
    """Tell whether a call that has begun may go on with the words of another reply.

    The same words are sure to come again only where all that is wrong is how they end.
    """
    calls = () if verdict.reading is None else verdict.reading.calls
    if verdict.reply is None or not came_to_its_end(verdict.reply.finish_reason) or not calls:
        return False
    raw = calls[0].raw
    return isinstance(raw, str) and not isinstance(decode_plain(raw), dict)


class _Again:
    """Reads the answer to a request that asked for calls again."""

    def __init__(self, route: Route, planned: Planned) -> None:
        self._protocol = route.protocol
        self._folder = route.protocol.open_stream()
        self._error: ProviderError | None = None
        self.planned = planned

    @property
    def done(self) -> bool:
        """Whether nothing more of what the endpoint sends is of use."""
        return self._error is not None or self._folder.done

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        if self._error is None:
            try:
                self._folder.feed(chunk)
            except ProviderError as error:
                self._error = error

    def close(self, error: SurecallError | None) -> Reply:
        """Return the reply, or raise why there is none."""
        if self._error is not None:
            raise self._error
        if error is not None and not self._folder.done:
            if isinstance(error, ProviderError):
                raise error
            raise ProviderError(error.code, error.message, hint=error.hint)
        return self._protocol.parse_message(self._folder.close())


def _as_stream(body: bytes, protocol: WireProtocol) -> bytes:
    """Return a request in another format than the client's as one for a stream."""
    added = protocol.stream_fields
    if not added:  # the path says so
        return body
    fields = as_fields(decode(body, surrogates="replace"))
    if fields.get("stream") is not True:
        fields.pop("stream", None)
        return encode({**fields, **added})
    return add_members(body, added)
