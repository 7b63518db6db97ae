"""A stream on its way from the endpoint to the client: text at once, calls when they are whole."""

from collections.abc import Callable, Mapping
from time import monotonic
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from surecall.errors import Code, ProviderError, ProviderReplyError, SurecallError
from surecall.exchange.history import EchoCache
from surecall.exchange.judge import REPAIR_RULES, SCHEMA_RULES, Verdict, refusal_of
from surecall.exchange.policy import Outcome, ParseError, Policy, Route, Step, StepName
from surecall.exchange.prepare import Asked, Preparation
from surecall.exchange.request import ClientRequest, add_members
from surecall.exchange.wording import REFUSED_HINT
from surecall.jsontext import decode, encode, render_comment
from surecall.narrow import as_fields
from surecall.protocols.substitutes import restore_names
from surecall.reading import RULES
from surecall.records import Defect, Message, Receipt, Reply, Usage

from .judging import StreamJudge, follow_up
from .passing import Passing
from .sides import Found, Side
from .translating import Translating

_BODY_STARTS: Final = b'{["<'
_MARK: Final = b"\xef\xbb\xbf"
_MAX_BLANK_BYTES: Final = 64 * 1024
_ASKING: Final[tuple[StepName, ...]] = ("reask", "force", "taught")


class Ending(Struct, frozen=True, kw_only=True):
    """How a stream ends, or what has to be asked before it can."""

    data: bytes = b""
    """What is sent last: calls, finish, usage and the comment; or the error."""
    ask: bytes | None = None
    """A request to send to the endpoint. Its answer, streamed or whole, is fed to the same relay,
    and `finish` says again how the stream ends."""
    outcome: Outcome = "clean"
    receipts: tuple[Receipt, ...] = ()
    defects: tuple[Defect, ...] = ()
    steps: tuple[Step, ...] = ()
    parse_error: ParseError | None = None
    upstream_requests: int = 1
    usage: Usage | None = None
    """The tokens of all requests together."""
    model_answered: str | None = None
    error: SurecallError | None = None
    """Why there is no whole reply, when there is none."""
    calls: int = 0
    """How many calls were delivered."""


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
        self._began_s = clock()
        self._prepare = Preparation(request, route, policy, echoes, scope)
        self._judge = StreamJudge(request, route, policy)
        self._first: Asked | None = None
        self._start = b""
        self._side: Side | None = None
        self._again: _Again | None = None
        self._requests = 1
        self._usage: Usage | None = None
        self._steps: list[Step] = []
        self._next_step = 0
        self._said: list[Message] = []
        """What was said since the client's request, and led to nothing yet."""
        self._bad: Verdict | None = None
        self._held_text: str | None = None
        """What comes in the place of text that was held back."""
        self._parse_error: ParseError | None = None
        self._defects: tuple[Defect, ...] = ()
        self._ending: Ending | None = None

    @property
    def asked(self) -> Asked:
        """What the endpoint is asked first, as a stream.

        Raises:
            RequestError: The endpoint's format cannot carry it.
        """
        if self._first is None:
            first = self._prepare.first()
            if first.body is not self._request.body:
                first = replace(first, body=_as_stream(first.body, self._route.protocol.name))
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
        return side.feed(chunk)

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

    def _open(self, chunk: bytes) -> Side:
        """Find out from the first bytes whether the events can be passed on as they are."""
        start = chunk.removeprefix(_MARK).lstrip()[:1]
        is_same = self._route.protocol.name == self._request.protocol.name
        is_native = self._route.strategy == "native"
        if is_same and is_native and not (start and start in _BODY_STARTS):
            self._side = Passing(self._request, self._policy, self._judge, self._headers)
        else:
            self._side = Translating(
                self._request, self._policy, self._judge, self._route, self.asked, self._headers
            )
        return self._side

    def _finish(self, error: SurecallError | None) -> Ending:
        if self._again is not None:
            return self._finish_again(self._again, error)
        side = self._side
        if side is None:
            side = self._open(self._start)
            side.feed(self._start)
        try:
            found = side.close(error)
            self._usage = side.usage
            if found.reading is None:
                return self._end(found.data, found.outcome, calls=found.calls)
            return self._decide(found, side)
        except SurecallError as failure:
            self._usage = self._usage or side.usage
            return self._fail(failure)

    # What becomes of calls

    def _decide(self, found: Found, side: Side) -> Ending:
        """Deliver what was read first, or ask for something better."""
        assert found.reading is not None
        reply = found.reply or Reply()
        weighed = self._judge.weigh(found.reading, reply, self.asked, own_form=side.keeps_form)
        verdict = weighed.verdict
        self._defects += verdict.defects
        if weighed.is_usable:
            if weighed.leaves or not verdict.calls:
                return self._end(found.data, "clean", calls=verdict.calls)
            return self._deliver(verdict, found.text)
        self._bad = verdict
        self._held_text = found.text
        self._parse_error = verdict.parse_error
        ending = self._ask(verdict, self.asked)
        if ending is None and verdict.is_empty:  # an empty answer is not wrong
            ending = self._end(found.data, "clean")
        return ending or self._refuse(verdict)

    def _deliver(self, verdict: Verdict, text: str | None) -> Ending:
        side, reading = self._side, verdict.reading
        assert side is not None
        assert reading is not None
        rules = {receipt.rule for receipt in verdict.receipts}
        if rules & REPAIR_RULES or any(rule not in RULES for rule in rules):
            self._steps.insert(0, Step("repair", "ok"))
        if rules & SCHEMA_RULES:
            self._steps.insert(0, Step("coerce", "ok"))
        outcome: Outcome = "repaired"
        if self._again is not None:
            outcome = "reasked"
        elif self.asked.mode != "native" and rules <= {"read_call_from_text"}:
            outcome = "clean"
        data = side.deliver(reading.calls, text, is_again=self._again is not None)
        return self._end(data, outcome, receipts=verdict.receipts, calls=len(reading.calls))

    def _ask(self, bad: Verdict, last: Asked) -> Ending | None:
        """Return the next request that may help, if one may be made."""
        while self._next_step < len(_ASKING):
            step = _ASKING[self._next_step]
            self._next_step += 1
            if not self._policy.allows(step):
                continue
            if not self._may_ask():
                break
            said = [*self._said, *follow_up(bad, last.mode)]
            asked = self._plan(step, bad, last, said)
            if asked is None:
                self._steps.append(Step(step, "skipped"))
                continue
            self._said = said
            ending = self._report(Ending(ask=asked.body, outcome="reasked"))
            self._requests += 1
            self._again = _Again(self._route, asked, step)
            return ending
        return None

    def _may_ask(self) -> bool:
        policy = self._policy
        used = 0 if self._usage is None else self._usage.total_tokens
        return (
            self._requests < policy.max_requests
            and (policy.max_tokens is None or used < policy.max_tokens)
            and self._clock() - self._began_s < policy.max_seconds
        )

    def _plan(self, step: StepName, bad: Verdict, last: Asked, said: list[Message]) -> Asked | None:
        """Return the request of a step, or `None` when there is no way to take it."""
        first = self.asked
        try:
            if step == "reask" and last.mode == "native":
                return self._prepare.continue_from(first, said)
            if step == "reask":
                return self._prepare.render(said, mode=last.mode)
            if step == "force" and not bad.is_empty:
                return self._force(bad, first, said)
            if step == "taught" and first.mode == "native" and not bad.is_empty:
                return self._prepare.render(said, mode="fenced")
        except SurecallError:
            return None
        return None

    def _force(self, bad: Verdict, first: Asked, said: list[Message]) -> Asked | None:
        """Demand the one tool whose call could not be used, in the way the endpoint offers."""
        capabilities = self._route.capabilities
        tools = bad.stuck_tools
        if len(tools) != 1 or tools[0] not in self._request.tools.names.names:
            return None
        if "named" in capabilities.tool_choices and first.mode == "native":
            return self._prepare.continue_from(first, said, forced_tool=tools[0])
        if capabilities.json_schema:
            return self._prepare.render(said, mode="object", forced_tool=tools[0])
        return None

    def _finish_again(self, again: "_Again", error: SurecallError | None) -> Ending:
        side = self._side
        assert side is not None
        assert self._bad is not None
        verdict = None
        try:
            reply = restore_names(again.close(error), again.asked.renamed)
            if reply.usage is not None:
                self._usage = reply.usage if self._usage is None else self._usage + reply.usage
            reading = self._judge.read(reply, again.asked)
            weighed = self._judge.weigh(reading, reply, again.asked, own_form=side.keeps_form)
            verdict = weighed.verdict
            if weighed.is_usable and not weighed.leaves:
                text = self._held_text
                has_text = side.has_sent_text or bool((text or "").strip())
                if not reading.calls and not has_text:
                    text = reading.content
                if reading.calls or (not has_text and reading.content.strip()):
                    self._steps.append(Step(again.step, "ok", 1))
                    return self._deliver(verdict, text)
        except ProviderError:
            pass
        self._steps.append(Step(again.step, "failed", 1))
        if verdict is not None and verdict.answers:
            self._bad = verdict
        return self._ask(self._bad, again.asked) or self._refuse(self._bad)

    # Endings

    def _refuse(self, bad: Verdict) -> Ending:
        error = ProviderReplyError(
            Code.CALLS_REFUSED, refusal_of(bad), hint=REFUSED_HINT, status=200
        )
        return self._fail(error, "refused")

    def _fail(self, error: SurecallError, outcome: Outcome = "failed") -> Ending:
        assert self._side is not None
        return self._end(self._side.fail(error), outcome, error=error)

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
        if self._request.protocol.name != "gemini":  # whose clients do not know comments
            comment = f"surecall outcome={outcome} receipts={len(receipts)}"
            if self._request_id:
                comment += f" request={self._request_id}"
            data += render_comment(comment)
        return self._report(
            Ending(
                data=data,
                outcome=outcome,
                receipts=receipts,
                calls=calls,
                error=error,
            )
        )

    def _report(self, ending: Ending) -> Ending:
        side = self._side
        return replace(
            ending,
            defects=self._defects,
            steps=tuple(self._steps),
            parse_error=self._parse_error,
            upstream_requests=self._requests,
            usage=self._usage,
            model_answered=None if side is None else side.model,
        )


class _Again:
    """Reads the answer to a request that asked for calls again."""

    def __init__(self, route: Route, asked: Asked, step: StepName) -> None:
        self._protocol = route.protocol
        self._folder = route.protocol.open_stream()
        self._error: ProviderError | None = None
        self.asked = asked
        self.step = step

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


def _as_stream(body: bytes, protocol: str) -> bytes:
    """Return a request in another format than the client's as one for a stream."""
    if protocol == "gemini":  # the path says so
        return body
    added: dict[str, object] = {"stream": True}
    if protocol == "chat_completions":
        added["stream_options"] = {"include_usage": True}
    fields = as_fields(decode(body, surrogates="replace"))
    if fields.get("stream") is not True:
        fields.pop("stream", None)
        return encode({**fields, **added})
    return add_members(body, added)
