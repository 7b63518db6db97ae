"""A stream on its way from the endpoint to the client: text at once, calls when they are whole."""

from collections.abc import Mapping, Sequence
from time import monotonic
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from surecall.errors import Code, ProviderError, ProviderReplyError, SurecallError
from surecall.exchange.policy import Outcome, ParseError, Policy, Route, Step
from surecall.exchange.request import ClientRequest
from surecall.jsontext import render_comment
from surecall.protocols import RawReply
from surecall.protocols.substitutes import restore_names
from surecall.reading import read_reply
from surecall.records import Defect, ErrorDetail, Reading, Receipt, Reply, ToolCall, Usage, clip

from .again import ask_again
from .passing import Passing
from .sides import Found, Side
from .translating import Translating

_BODY_STARTS: Final = b'{["<'
_MARK: Final = b"\xef\xbb\xbf"
_MAX_BLANK_BYTES: Final = 64 * 1024
_MAX_SNIPPET: Final = 200


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

    Give `feed` the bytes as they come and send what it returns. When the stream has ended, or
    `done` says that nothing more is of use, `finish` says what is sent last. Calls, the finish and
    everything behind them are sent then: a call or a finish never comes out of a stream that was
    cut.

    Args:
        request: What the client asked.
        route: Where it was sent.
        policy: What may be done to make calls usable.
        request_id: What the comment at the end names the request by.
        headers: Headers of the endpoint's answer, names in lower case.
        renamed: Names of tools that the endpoint does not take, and those it knows them by.
    """

    def __init__(
        self,
        request: ClientRequest,
        route: Route,
        policy: Policy,
        *,
        request_id: str = "",
        headers: Mapping[str, str] | None = None,
        renamed: Mapping[str, str] | None = None,
    ) -> None:
        self._request = request
        self._route = route
        self._policy = policy
        self._request_id = request_id
        self._headers = headers or {}
        self._renamed = renamed or {}
        self._began = monotonic()
        self._start = b""
        self._side: Side | None = None
        if route.protocol.name != request.protocol.name or route.strategy == "taught":
            self._side = self._translate()
        self._again: _Again | None = None
        self._requests = 1
        self._steps: list[Step] = []
        self._usage: Usage | None = None
        self._parse_error: ParseError | None = None
        self._defects: tuple[Defect, ...] = ()
        self._ending: Ending | None = None

    @property
    def done(self) -> bool:
        """Whether nothing more of what the endpoint sends is of use."""
        if self._again is not None:
            return self._again.done
        return self._side is not None and self._side.done

    def feed(self, chunk: bytes) -> bytes:
        """Take the next bytes, cut anywhere, and return those for the client."""
        if self._again is not None:
            self._again.feed(chunk)
            return b""
        side = self._side
        if side is None:
            chunk = self._start + chunk
            side = self._open(chunk)
            if side is None:
                self._start = chunk
                return b""
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

    def _finish(self, error: SurecallError | None) -> Ending:
        if self._again is not None:
            return self._finish_again(self._again, error)
        if self._side is None:
            self._side = Passing(self._request, self._policy, self._headers)
            self._side.feed(self._start)
        try:
            found = self._side.close(error)
        except SurecallError as failure:
            self._usage = self._side.usage
            return self._fail(failure)
        self._usage = self._side.usage
        if found.reading is None:
            return self._end(found.data, found.outcome, calls=found.calls)
        return self._decide(found)

    def _open(self, chunk: bytes) -> Side | None:
        """Find out from the first bytes whether this is a stream of events at all."""
        start = chunk.removeprefix(_MARK).lstrip()
        if not start and len(chunk) < _MAX_BLANK_BYTES:
            return None
        is_body = start[:1] and start[0] in _BODY_STARTS
        self._side = (
            self._translate()
            if is_body
            else Passing(self._request, self._policy, self._headers)
        )
        return self._side

    def _translate(self) -> Translating:
        return Translating(
            self._request, self._route, self._policy, self._headers, self._renamed
        )

    # what becomes of calls

    def _decide(self, found: Found) -> Ending:
        """Deliver the calls of a reply, ask for them again, or refuse them."""
        assert self._side is not None
        assert found.reading is not None
        reading = found.reading
        self._defects += reading.defects
        bad = find_unusable(reading.calls, self._request, self._policy)
        if not bad:
            if not reading.calls and self._again is not None and found.text is None:
                bad = (_NO_CALLS,)
            elif not reading.calls and self._again is None:
                return self._end(found.data, "clean")
        if not bad:
            receipts = (*reading.receipts, *(r for call in reading.calls for r in call.receipts))
            outcome: Outcome = "repaired"
            if self._again is not None:
                outcome = "reasked"
                self._steps.append(Step("reask", "ok", self._requests - 1))
            elif receipts or found.is_text:
                self._steps.append(Step("repair", "ok"))
            data = self._side.deliver(reading.calls, found)
            return self._end(data, outcome, receipts=receipts, calls=len(reading.calls))
        if all(problem.code == Code.CALL_NOT_CERTAIN for problem in bad):
            ways = {
                self._policy.treats_likely(call.name)
                for call in reading.calls
                if call.certainty == "likely"
            }
            if ways == {"leave"} and self._again is None:
                return self._end(found.data, "relayed", calls=len(reading.calls))
        return self._ask(bad, found) or self._refuse(bad)

    def _ask(self, bad: Sequence[ErrorDetail], found: Found) -> Ending | None:
        """Ask for the calls again, if that may be done."""
        if self._parse_error is None:
            mode = "native" if self._route.strategy == "native" else "fenced"
            self._parse_error = ParseError(mode, str(bad[0].code), clip(found.snippet, _MAX_SNIPPET))
        policy = self._policy
        used = self._usage.total_tokens if self._usage else 0
        if (
            not policy.allows("reask")
            or self._requests >= policy.max_requests
            or monotonic() - self._began > policy.max_seconds
            or (policy.max_tokens is not None and used >= policy.max_tokens)
        ):
            return None
        body = ask_again(self._request, self._route, bad, found.sent)
        if body is None:
            return None
        if self._again is not None:
            self._steps.append(Step("reask", "failed", 1))
        self._requests += 1
        self._again = _Again(self._route, found.sent)
        return self._report(Ending(ask=body, outcome="reasked"))

    def _finish_again(self, again: "_Again", error: SurecallError | None) -> Ending:
        try:
            reply = again.close(error)
        except SurecallError as failure:
            return self._fail(failure)
        self._usage = _add(self._usage, reply.usage)
        reply = restore_names(reply, self._renamed)
        reading = read_reply(
            reply,
            tools=self._request.tools.names,
            text_formats=self._policy.text_formats,
            limits=self._policy.limits,
            taught=self._route.strategy == "taught",
        )
        text = reading.content if not again.sent and not reading.calls else None
        assert self._side is not None
        found = self._side.again(reading, text or None)
        return self._decide(found)

    # endings

    def _refuse(self, bad: Sequence[ErrorDetail]) -> Ending:
        first = bad[0]
        more = f" ({len(bad) - 1} more.)" if len(bad) > 1 else ""
        error = ProviderReplyError(first.code, f"{first.message}{more}", hint=first.hint)
        return self._fail(error, "refused")

    def _fail(self, error: SurecallError, outcome: Outcome = "failed") -> Ending:
        side = self._side
        assert side is not None
        data = side.fail(error)
        return self._end(data, outcome, error=error)

    def _end(
        self,
        data: bytes,
        outcome: Outcome,
        *,
        receipts: tuple[Receipt, ...] = (),
        calls: int = 0,
        error: SurecallError | None = None,
    ) -> Ending:
        comment = f"surecall outcome={outcome} receipts={len(receipts)}"
        if self._request_id:
            comment += f" request={self._request_id}"
        return self._report(
            Ending(
                data=data + render_comment(comment),
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
            upstream_requests=self._requests if ending.ask is None else self._requests - 1,
            usage=self._usage,
            model_answered=None if side is None else side.model,
        )


_NO_CALLS: Final = ErrorDetail(
    Code.NO_TOOL_CALLS, "The model was asked for its calls again and sent none."
)


def find_unusable(
    calls: Sequence[ToolCall], request: ClientRequest, policy: Policy
) -> tuple[ErrorDetail, ...]:
    """Return why the calls of a reply cannot all be delivered; nothing when they can."""
    found: list[ErrorDetail] = []
    names = request.tools.names
    for call in calls:
        if call.arguments is None or call.errors:
            found += call.errors or (
                ErrorDetail(Code.ARGUMENTS_JSON_PARSE_ERROR, "The arguments cannot be read."),
            )
        elif names and names.spec(call.name) is None:
            known = ", ".join(names.names[:20])
            message = f"{clip(call.name, 64)!r} is not an available tool."
            hint = f"Call one of these: {known}."
            found.append(ErrorDetail(Code.TOOL_NOT_ALLOWED, message, hint))
        elif call.certainty == "likely" and policy.treats_likely(call.name) != "deliver":
            found.append(ErrorDetail(Code.CALL_NOT_CERTAIN, call.doubt))
        elif call.receipts and not policy.allows("repair"):
            why = f"The call needs a repair, which is off: {call.receipts[0].rule}."
            found.append(ErrorDetail(Code.ARGUMENTS_INVALID, why))
    return tuple(found)


class _Again:
    """Reads the answer to a request that asked for calls again."""

    def __init__(self, route: Route, sent: str) -> None:
        self._protocol = route.protocol
        self._folder = route.protocol.open_stream()
        self._error: ProviderError | None = None
        self.sent = sent

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
            raise error
        raw: RawReply = self._folder.close()
        return self._protocol.parse_message(raw)


def _add(first: Usage | None, second: Usage | None) -> Usage | None:
    if first is None or second is None:
        return first or second
    return Usage(
        input_tokens=first.input_tokens + second.input_tokens,
        output_tokens=first.output_tokens + second.output_tokens,
        total_tokens=first.total_tokens + second.total_tokens,
        reasoning_tokens=first.reasoning_tokens + second.reasoning_tokens,
        cached_tokens=first.cached_tokens + second.cached_tokens,
    )
