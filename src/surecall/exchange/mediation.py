"""One request of a client made reliable: sent, read, repaired, asked again, or refused.

The steps are tried in one order and paid from one budget. What is delivered is clean, or says what
was done to it; what is refused says why, in the format of the client.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial
from itertools import takewhile
from time import monotonic
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from surecall.base.background import read_in_thread
from surecall.base.errors import Code, ProviderError, ProviderReplyError, SurecallError
from surecall.base.json_values import as_fields
from surecall.base.limits import MAX_INLINE_CHARACTERS
from surecall.base.records import Defect
from surecall.text import decode, encode
from surecall.wire import translate_reply
from surecall.wire.rewriting import Clean

from .checks import read_clean
from .ladder import Rung
from .policy import (
    REPORT_MEMBER,
    Delivered,
    Outcome,
    Policy,
    Route,
    Send,
    Sent,
    Step,
)
from .prepare import Asked, Preparation, pass_on
from .re_asks import Escalation, is_only_read, refuse
from .reply_checker import ReplyChecker
from .request import ClientRequest, add_members
from .signatures import EchoCache
from .verdict import CHOICE_RULE, TELL_RULE, Choices, Verdict, choose_bad

_T = TypeVar("_T")

_log: Final = logging.getLogger("surecall.exchange")
_EMPTY: Final = Defect(Code.ANSWER_EMPTY, "The reply has no text and no calls.", "/content")
_LEFT_OUT: Final = (CHOICE_RULE, TELL_RULE)
_UNREAD: Final = Policy(steps=(), max_requests=1, repair_history=False)


async def mediate(
    request: ClientRequest,
    route: Route,
    policy: Policy,
    send: Send,
    *,
    echoes: EchoCache | None = None,
    scope: str = "",
    clock: Callable[[], float] = monotonic,
) -> Delivered:
    """Make one request of a client reliable.

    Args:
        request: What the client asked.
        route: Where it goes.
        policy: What may be done for it.
        send: Sends a body to the endpoint.
        echoes: What clients should send back and may leave out, kept from earlier replies.
        scope: Whose conversation it is, such as the name of a key.
        clock: The time in seconds.
    """
    began_s = clock()
    if request.is_long:
        asked = await read_in_thread(partial(pass_on, request, route), is_long=True)
    else:
        asked = pass_on(request, route)
    sent = None
    if asked is not None:
        try:
            sent = await send(asked.body)
        except ProviderError as error:
            sent = error
        else:
            clean = None
            if len(sent.body) <= MAX_INLINE_CHARACTERS:
                clean = read_clean(
                    request, sent.body, policy.limits, text_formats=policy.text_formats
                )
            if (
                clean is not None
                and not asked.losses
                and _needs_nothing(clean, sent, request, policy, echoes)
            ):
                return Delivered(
                    status=sent.status,
                    body=sent.body,
                    outcome="clean",
                    usage=clean.usage,
                    model_answered=clean.model,
                    upstream_s=clock() - began_s,
                    calls=clean.calls,
                )
    tries = Escalation(request, route, policy, echoes, scope, clock, began_s)
    exchange = _Exchange(tries, send)
    try:
        return await exchange.run(asked, sent)
    except SurecallError as error:
        return exchange.fail(error)
    except Exception as error:  # a client is owed an answer, whatever goes wrong here
        _log.exception("a reply could not be read")
        return exchange.fail(_internal(error))


async def relay(
    request: ClientRequest, route: Route, send: Send, *, clock: Callable[[], float] = monotonic
) -> Delivered:
    """Pass a request and its reply on without reading either, as far as their formats agree."""
    began_s = clock()
    try:
        asked = pass_on(request, route) or Preparation(request, route, _UNREAD).first()
        sent = await send(asked.body)
        body, status = sent.body, sent.status
        if not asked.is_own:
            if not 200 <= status < 300:
                raise route.protocol.parse_error(status, sent.headers, body)
            source, target = route.protocol, request.protocol
            written = translate_reply(
                body,
                source,
                target,
                sent.headers,
                renamed=asked.renamed,
                request=request.settings,
            )
            body = encode(written)
    except SurecallError as error:
        tries = Escalation(request, route, _UNREAD, None, "", clock, began_s)
        return replace(_Exchange(tries, send).fail(error), upstream_s=clock() - began_s)
    took_s = clock() - began_s
    return Delivered(status=status, body=body, outcome="relayed", upstream_s=took_s)


def _needs_nothing(
    clean: Clean,
    sent: Sent,
    request: ClientRequest,
    policy: Policy,
    echoes: EchoCache | None,
) -> bool:
    """Tell whether a clean reply is delivered as it is, and nothing of it has to be kept."""
    return (
        200 <= sent.status < 300
        and not policy.show_receipts
        and (clean.calls < 2 or not request.one_call)
        and (echoes is None or not clean.echoes)
    )


def _said_a_call(bad: Verdict | None) -> bool:
    """Tell whether a first reply was text with what may be a call, and can be delivered as text.

    When the model then makes no call, it answers a question that the client knows nothing of.
    """
    return bad is not None and bad.is_text and bad.fallback is not None


def _internal(error: Exception) -> SurecallError:
    return SurecallError(
        Code.INTERNAL_ERROR,
        f"The reply could not be read: {type(error).__name__}.",
        hint="Please report this with the reply that caused it.",
    )


class _Exchange:
    """One request of a client, and what was asked and used for it."""

    def __init__(self, tries: Escalation, send: Send) -> None:
        self._tries = tries
        self._send = send
        self._request = tries.request
        self._policy = tries.policy
        self._clock = tries.clock
        self._upstream_s = 0.0
        self._checker = ReplyChecker(tries.request, tries.route, tries.policy)

    async def run(self, asked: Asked | None, sent: Sent | ProviderError | None) -> Delivered:
        """Go on from what was sent already, if anything was."""
        if asked is None:
            asked = await self._in_thread(self._tries.prepare.first)
        first = asked
        if sent is not None:
            self._upstream_s = self._clock() - self._tries.began_s
        verdict = await self._ask(first, sent)
        if verdict.choices is not None:
            return await self._complete(verdict, verdict.choices, first)
        if verdict.body is not None and not verdict.receipts and not verdict.changed:
            return self._deliver(verdict, "repaired" if first.receipts else "clean", first)
        if verdict.error is not None:
            verdict = await self._after_error(verdict, first)
        if verdict.error is None:
            verdict = await self._list_calls(verdict, first)
        if verdict.body is not None:
            self._tries.note_repairs(verdict.receipts)
            return self._deliver(verdict, self._outcome_of(verdict, first), first)
        if verdict.error is not None:
            return self._pass_on(verdict, verdict.error)
        self._tries.begin(verdict, first)
        return await self._escalate()

    # Asking

    async def _in_thread(self, prepare: Callable[[], _T]) -> _T:
        """Return what a function prepares; of a long request that is done in a thread."""
        return await read_in_thread(prepare, is_long=self._request.is_long)

    async def _ask(self, asked: Asked, sent: Sent | ProviderError | None = None) -> Verdict:
        self._tries.requests += 1
        if sent is None:
            began_s = self._clock()
            try:
                sent = await self._send(asked.body)
            except ProviderError as error:
                sent = error
            self._upstream_s += self._clock() - began_s
        if isinstance(sent, ProviderError):
            return Verdict(error=sent)
        verdict = await self._checker.check(sent, asked)
        if verdict.error is not None:
            verdict.error.attempts = sent.attempts
        self._tries.add_usage(verdict.usage)
        return verdict

    async def _after_error(self, verdict: Verdict, first: Asked) -> Verdict:
        """Ask once more for a reply that was no reply, or without tools that nobody takes."""
        error = verdict.error
        policy = self._policy
        if error is None or not self._tries.may_ask():
            return verdict
        lacks_tools = error.code == Code.NO_TOOL_USE_ENDPOINT and self._request.offers_tools
        if lacks_tools and first.mode == "native" and policy.allows("taught"):
            plan = partial(self._tries.plan, Rung("taught", "taught"), verdict, first, "native", ())
            asked = await self._in_thread(plan)
            return verdict if asked is None else await self._take("taught", asked, verdict)
        is_no_reply = (
            isinstance(error, ProviderReplyError)
            and error.retryable
            and (error.status is None or error.status < 400)
        )
        if is_no_reply and error.attempts == 1 and policy.allows("reask"):
            return await self._take("retry", first, verdict)
        return verdict

    async def _list_calls(self, single: Verdict, first: Asked) -> Verdict:
        """Return the reply with all calls of a model that may have left some out."""
        if self._checker.one_call:
            return single
        planned = await self._in_thread(partial(self._tries.plan_list, single, first))
        if planned is None:
            return single
        listed = await self._ask(planned.asked)
        is_good = listed.body is not None and self._checker.takes_list(single, listed)
        self._tries.note(planned, is_good=is_good)
        return listed if is_good else single

    async def _take(self, name: str, asked: Asked, otherwise: Verdict) -> Verdict:
        verdict = await self._ask(asked)
        self._tries.steps.append(Step(name, "failed" if verdict.body is None else "ok", 1))
        return otherwise if verdict.error is not None else verdict

    async def _complete(self, bad: Verdict, choices: Choices, first: Asked) -> Delivered:
        """Ask for each reply that cannot be used of several; those that can are kept."""
        tries = self._tries
        tries.parse_error = bad.parse_error
        for position in tuple(choices.missing):
            if not (self._policy.allows("reask") and tries.may_ask()):
                break
            verdict = await self._ask(
                await self._in_thread(partial(tries.prepare.ask_for_one, first))
            )
            is_good = verdict.body is not None
            tries.steps.append(Step("reask", "ok" if is_good else "failed", 1))
            if is_good:
                bad_document = choices.missing[position].document
                earlier = () if bad_document is None else (bad_document,)
                choices = choices.take(position, self._keep_found(verdict, earlier))
        outcome: Outcome = "reasked" if tries.requests > 1 else "repaired"
        for position, missing in tuple(choices.missing.items()):
            if (salvage := self._checker.salvage(missing)) is not None:
                choices = choices.take(position, salvage)
                outcome = "unrepaired"
        if not choices.usable:
            return self._refuse(bad) if bad.error is None else self._pass_on(bad, bad.error)
        verdict = choices.join()
        tries.note_repairs([item for item in verdict.receipts if item.rule not in _LEFT_OUT])
        return self._deliver(replace(verdict, defects=bad.defects), outcome, first)

    # Escalation

    async def _escalate(self) -> Delivered:
        """Try what is left to make the model's calls usable."""
        tries = self._tries
        first_bad, first = tries.first_bad, tries.first
        while (planned := await self._in_thread(tries.plan_next)) is not None:
            verdict = await self._ask(planned.asked)
            is_good = verdict.body is not None and planned.suits(verdict.calls)
            is_bad = verdict.body is None and verdict.error is None
            is_echo = is_good and not verdict.calls and _said_a_call(first_bad)
            tries.note(planned, is_good=is_good and not is_echo, bad=verdict if is_bad else None)
            if is_echo:
                break
            if is_good:
                tries.note_repairs(verdict.receipts)
                return self._deliver(verdict, "reasked", planned.asked)
        bad, last = tries.bad, tries.last
        if first_bad is not None and first_bad.fallback is not None and not first_bad.is_empty:
            bad, last = first_bad, first  # what the model said to begin with
        assert bad is not None
        assert last is not None
        if bad.fallback is not None:  # which is not wrong, and there is no other
            defects = (*bad.defects, _EMPTY) if bad.is_empty else bad.defects
            verdict = replace(bad, body=bad.fallback, defects=defects)
            return self._deliver(verdict, self._outcome_of(verdict, last), last)
        assert first_bad is not None
        assert first is not None
        chosen = choose_bad(first_bad, bad)
        salvage = self._checker.salvage(chosen)
        if salvage is None:
            return self._refuse(bad)
        return self._deliver(salvage, "unrepaired", first if chosen is first_bad else last)

    def _keep_found(self, verdict: Verdict, earlier: Sequence[dict[str, Any]]) -> Verdict:
        """Put what the provider's own tools found in earlier replies before the one delivered."""
        older = list(takewhile(lambda bad: bad is not verdict.document, earlier))
        if not older or verdict.body is None:
            return verdict
        document = before = as_fields(decode(verdict.body, surrogates="replace"))
        for bad in reversed(older):
            document = self._request.protocol.keep_found(document, bad)
        return verdict if document is before else replace(verdict, body=encode(document))

    # Ends

    def _outcome_of(self, verdict: Verdict, first: Asked) -> Outcome:
        if self._tries.requests > 1:
            return "reasked"
        if first.mode != "native":
            return "clean" if is_only_read(verdict.receipts) else "repaired"
        return "repaired" if verdict.receipts or first.receipts else "clean"

    def _deliver(self, verdict: Verdict, outcome: Outcome, asked: Asked) -> Delivered:
        if verdict.echoes:
            self._keep_echoes(verdict)
        verdict = self._keep_found(verdict, self._tries.bad_documents)
        delivered = Delivered(
            status=200,
            body=verdict.body or b"",
            outcome=outcome,
            receipts=asked.receipts + verdict.receipts,
            defects=(*verdict.defects, *asked.defects),
            model_answered=verdict.model,
            upstream_s=self._upstream_s,
            calls=verdict.calls,
            **self._tries.report(),
        )
        return self._show(delivered)

    def _refuse(self, bad: Verdict) -> Delivered:
        error = refuse(bad, was_asked_again=self._tries.requests > 1)
        calls = () if bad.reading is None else bad.reading.calls
        failed = replace(
            self._fail(error),
            outcome="refused",
            defects=bad.defects,
            receipts=tuple(receipt for call in calls for receipt in call.receipts),
            should_retry=False,
            model_answered=bad.model,
        )
        return self._show(failed)

    def _pass_on(self, verdict: Verdict, error: ProviderError) -> Delivered:
        """Pass the endpoint's error on: as it is where the client knows its form."""
        failed = self._fail(error)
        if verdict.error_body is not None:
            status = error.status or failed.status
            failed = replace(failed, status=status, body=verdict.error_body)
        return self._show(failed)

    def fail(self, error: SurecallError) -> Delivered:
        """Answer with an error, in the format of the client."""
        return self._show(self._fail(error))

    def _fail(self, error: SurecallError) -> Delivered:
        wire = self._request.protocol.render_error(error)
        headers: dict[str, str] = {}
        if isinstance(error, ProviderError):
            headers = {k: v for k, v in error.headers.items() if k != "content-type"}
        return Delivered(
            status=wire.status,
            body=encode(wire.body),
            outcome="failed",
            headers=headers,
            upstream_s=self._upstream_s,
            should_retry=isinstance(error, ProviderError) and error.retryable,
            error=error,
            **self._tries.report(),
        )

    def _show(self, delivered: Delivered) -> Delivered:
        """Return an answer that says what was done, if the client wants to know."""
        if not self._policy.show_receipts:
            return delivered
        report = {REPORT_MEMBER: delivered.describe()}
        return replace(delivered, body=add_members(delivered.body, report))

    def _keep_echoes(self, verdict: Verdict) -> None:
        reply, protocol = verdict.reply, self._tries.route.protocol
        if reply is None and verdict.body is not None:
            try:
                reply = protocol.parse_message(protocol.parse_body(verdict.body))
            except ProviderError:
                return
        if reply is not None:
            calls = reply.calls if verdict.reading is None else verdict.reading.calls
            self._tries.keep_echoes(reply, calls)
