"""What is tried for calls that cannot be used, step by step, for whole and for streamed replies.

The steps are tried in one order and paid from one budget. Everything here is decided; nothing is
sent.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from surecall.base.errors import Code, ProviderReplyError, SurecallError
from surecall.base.records import ErrorDetail, Message, Receipt, Reply, Usage, clip
from surecall.calls.teach import tell_not_executed

from .echoes import EchoCache
from .judge import SCHEMA_RULES
from .policy import ParseError, Policy, Route, Step, StepName
from .prepare import Asked, Mode, Preparation
from .request import ClientRequest
from .verdict import Verdict
from .wording import EMPTY_ANSWER, ask_for_call, hint_refused, refuse_calls, write_envelope

_log: Final = logging.getLogger("surecall.exchange")
_ASKING: Final[tuple[StepName, ...]] = ("reask", "force", "taught")
_MAX_ECHO_CHARS: Final = 4000
_NOTHING: Final = "(nothing)"


class Planned(NamedTuple):
    """A request that may bring better calls."""

    step: StepName
    asked: Asked
    said: tuple[Message, ...]
    """What it says since the client's request."""
    demands_call: bool = True
    """Whether a call may be what the step is for."""

    def suits(self, calls: int) -> bool:
        """Tell whether a good reply with so many calls is what the step is for.

        Where a call is demanded, words are not what the model wanted to do.
        """
        return self.step == "reask" or calls > 0 or not self.demands_call


class Escalation:
    """The requests that one request of a client leads to: planned, counted, paid.

    Args:
        request: What the client asked.
        route: Where it goes.
        policy: What may be done for it.
        echoes: What clients should send back and may leave out, kept from earlier replies.
        scope: Whose conversation it is.
        clock: The time in seconds.
        began_s: When it began.
    """

    def __init__(
        self,
        request: ClientRequest,
        route: Route,
        policy: Policy,
        echoes: EchoCache | None,
        scope: str,
        clock: Callable[[], float],
        began_s: float,
    ) -> None:
        self._request = request
        self._route = route
        self._policy = policy
        self._clock = clock
        self._began_s = began_s
        self._left: list[StepName] = [step for step in _ASKING if policy.allows(step)]
        self._said: tuple[Message, ...] = ()
        """What was said since the client's request, and led to nothing yet."""
        self.prepare: Final = Preparation(request, route, policy, echoes, scope)
        self.first: Asked | None = None
        """What was asked first."""
        self.last: Asked | None = None
        """What the bad reply answers."""
        self.first_bad: Verdict | None = None
        """The first reply, whose calls cannot be used."""
        self.bad: Verdict | None = None
        """The last such reply."""
        self.requests = 0
        self.usage: Usage | None = None
        """The tokens of all requests together."""
        self.steps: list[Step] = []
        self.parse_error: ParseError | None = None

    def add_usage(self, usage: Usage | None) -> None:
        """Count the tokens of a reply."""
        if usage is not None:
            self.usage = usage if self.usage is None else self.usage + usage

    def may_ask(self) -> bool:
        """Tell whether the budget has another request."""
        policy = self._policy
        used = 0 if self.usage is None else self.usage.total_tokens
        return (
            self.requests < policy.max_requests
            and (policy.max_tokens is None or used < policy.max_tokens)
            and self._clock() - self._began_s < policy.max_seconds
        )

    def begin(self, bad: Verdict, first: Asked) -> None:
        """Begin with the first reply, whose calls cannot be used."""
        self.first = self.last = first
        self.first_bad = self.bad = bad
        self.parse_error = bad.parse_error

    def plan_next(self) -> Planned | None:
        """Return the next request that may help, if one may be made."""
        bad, last, first = self.bad, self.last, self.first
        assert bad is not None
        assert last is not None
        assert first is not None
        while self._left and self._request.choices == 1 and self.may_ask():
            step = self._left.pop(0)
            said = (*self._said, *_follow_up(bad, last.mode))
            asked = self.plan(step, bad, first, last.mode, said)
            if asked is not None:
                demands = self._request.choice.wanted != "none"
                return Planned(step, asked, said, demands)
            self.steps.append(Step(step, "skipped"))
        return None

    def note(self, planned: Planned, *, is_good: bool, bad: Verdict | None = None) -> None:
        """Note what came of a request.

        Args:
            planned: The request.
            is_good: Whether its reply is delivered.
            bad: The reply, if the model is to be asked about this one from now on.
        """
        self.steps.append(Step(planned.step, "ok" if is_good else "failed", 1))
        if bad is not None:
            self.bad, self.last, self._said = bad, planned.asked, planned.said

    def note_repairs(self, receipts: Sequence[Receipt]) -> None:
        """Note which steps made the calls of a reply usable without asking."""
        rules = {receipt.rule for receipt in receipts}
        if rules & SCHEMA_RULES:
            self.steps.insert(0, Step("coerce", "ok"))
        if rules - SCHEMA_RULES:
            self.steps.insert(0, Step("repair", "ok"))

    def plan(
        self, step: StepName, bad: Verdict, first: Asked, mode: Mode, said: Sequence[Message]
    ) -> Asked | None:
        """Return the request of a step, or `None` when there is no way to take it."""
        prepare = self.prepare
        try:
            if step == "reask" and mode == "native":
                return prepare.continue_from(first, said)
            if step == "reask":
                return prepare.render(said, mode=mode)
            if step == "force" and not bad.is_empty:
                return self._force(bad, first, said)
            is_free = self._request.choice.wanted != "none"
            if step == "taught" and first.mode == "native" and not bad.is_empty and is_free:
                return prepare.render(said, mode="fenced", must_call=bool(bad.answers))
        except SurecallError as error:
            _log.debug("a step could not be taken: %s", error)
        return None

    def _force(self, bad: Verdict, first: Asked, said: Sequence[Message]) -> Asked | None:
        """Demand the one tool whose call could not be used, in the way the endpoint offers.

        A choice of the client that the endpoint did not follow is left out: what comes is checked
        all the same. Where no call may be made, no tool is offered.
        """
        capabilities, choice = self._route.capabilities, self._request.choice
        is_native = first.mode == "native"
        if choice.wanted == "none":
            return self.prepare.continue_from(first, (), offers_tools=False) if is_native else None
        tool = choice.only_tool or _only(bad.stuck_tools) or self._only_demanded()
        if tool is not None and tool not in self._request.tools.names.names:
            return None
        if tool is not None and capabilities.json_schema and (choice.only_tool or not is_native):
            return self.prepare.render(said, mode="object", forced_tool=tool)
        if not is_native:
            return None
        if not choice.is_free and (tool is None or choice.only_tool is not None):
            return self.prepare.continue_from(first, said, keeps_choice=False)
        if tool is not None and "named" in capabilities.tool_choices:
            return self.prepare.continue_from(first, said, forced_tool=tool)
        if tool is not None and capabilities.json_schema:
            return self.prepare.render(said, mode="object", forced_tool=tool)
        return None

    def _only_demanded(self) -> str | None:
        """Return the tool that must be called because there is no other."""
        if self._request.choice.wanted != "call":
            return None
        return _only(tuple(self._request.tools.names.names))


def _only(names: Sequence[str]) -> str | None:
    return names[0] if len(names) == 1 else None


def _follow_up(bad: Verdict, mode: Mode) -> list[Message]:
    """Return the model's own reply and what is wrong with it, as the conversation goes on."""
    if bad.is_empty:
        return [Message("user", EMPTY_ANSWER)]
    reply, reading = bad.reply or Reply(), bad.reading
    if reading is None or not reading.calls:
        way = "object" if mode == "object" else "fenced"
        content = clip(reply.content or "", _MAX_ECHO_CHARS) or _NOTHING
        notice = tell_not_executed(bad.notice, way)
        if mode == "native" and bad.lacks_call:
            notice = ask_for_call(bad.notice)
        return [Message("assistant", content), Message("user", notice)]
    results = [
        Message("tool", write_envelope(answer), tool_call_id=call.id, extra={"is_error": True})
        for call, answer in zip(reading.calls, bad.answers, strict=True)
    ]
    said = Message("assistant", reading.content or None, reading.calls, extra=reply.extra)
    return [said, *results]


def refuse(bad: Verdict, *, was_asked_again: bool) -> ProviderReplyError:
    """Return the error for calls that nothing made usable."""
    errors = bad.errors or (ErrorDetail(Code.TOOL_NOT_EXECUTED, bad.notice),)
    message = refuse_calls(errors, was_asked_again=was_asked_again)
    refused = ProviderReplyError(Code.CALLS_REFUSED, message, hint=hint_refused(errors), status=200)
    refused.errors = errors
    return refused


def is_only_read(receipts: Sequence[Receipt]) -> bool:
    """Tell whether nothing was done to calls but reading them where they were taught to be."""
    return all(receipt.rule == "read_call_from_text" for receipt in receipts)
