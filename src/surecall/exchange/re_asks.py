"""The requests for better calls, up the ladder and within one budget, for every kind of reply.

Everything here is decided; nothing is sent.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from surecall.base.errors import Code, ProviderReplyError, SurecallError
from surecall.base.records import (
    ErrorDetail,
    Message,
    RawCall,
    Receipt,
    Reply,
    ToolCall,
    Usage,
    clip,
)
from surecall.calls.teach import tell_not_executed

from .ladder import Demand, Rung, RungName, Standing, find_list_rung, list_rungs
from .policy import ParseError, Policy, Route, Step, StepName
from .prepare import PROMPT_MODES, Asked, Mode, Preparation
from .reply_checker import SCHEMA_RULES
from .request import ClientRequest, Wanted
from .signatures import EchoCache
from .verdict import Verdict
from .wording import EMPTY_ANSWER, ask_for_call, hint_refused, refuse_calls, write_envelope

_log: Final = logging.getLogger("surecall.exchange")
_ASKING: Final[tuple[StepName, ...]] = ("reask", "force", "taught")
_STEPS: Final[dict[RungName, StepName]] = {"errors": "reask", "taught": "taught"}
"""What a rung is called in a policy and in a report; those between the two are one step."""
_DEMANDS: Final[dict[Wanted, Demand]] = {"any": "nothing", "call": "call", "none": "no_call"}
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
        self.request = request
        self.route = route
        self.policy = policy
        self.clock = clock
        self.began_s = began_s
        self._echoes = echoes
        self._scope = scope
        self._left: list[StepName] = [step for step in _ASKING if policy.allows(step)]
        self._climbed: set[RungName] = set()
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
        self.bad_documents: list[dict[str, Any]] = []
        """All such replies where they are in the client's format."""
        self.requests = 0
        self.usage: Usage | None = None
        """The tokens of all requests together."""
        self.steps: list[Step] = []
        self.parse_error: ParseError | None = None

    def add_usage(self, usage: Usage | None) -> None:
        """Count the tokens of a reply."""
        if usage is not None:
            self.usage = usage if self.usage is None else self.usage + usage

    def keep_echoes(self, reply: Reply, calls: Sequence[RawCall | ToolCall]) -> None:
        """Keep what the client has to send back with its calls, and may leave out."""
        if self._echoes is not None:
            lasts = self.prepare.keeps_reasoning
            self._echoes.keep_reply(self._scope, reply, calls, lasts=lasts)

    def report(self) -> dict[str, Any]:
        """Return what an answer reports of the requests that led to it."""
        return {
            "steps": tuple(self.steps),
            "parse_error": self.parse_error,
            "upstream_requests": self.requests,
            "usage": self.usage,
        }

    def may_ask(self) -> bool:
        """Tell whether the budget has another request."""
        policy = self.policy
        used = 0 if self.usage is None else self.usage.total_tokens
        return (
            self.requests < policy.max_requests
            and (policy.max_tokens is None or used < policy.max_tokens)
            and self.clock() - self.began_s < policy.max_seconds
        )

    def begin(self, bad: Verdict, first: Asked) -> None:
        """Begin with the first reply, whose calls cannot be used."""
        self.first = self.last = first
        self.first_bad = bad
        self.parse_error = bad.parse_error
        self._take_bad(bad)

    def plan_next(self) -> Planned | None:
        """Return the next request that may help, if one may be made."""
        bad, last, first = self.bad, self.last, self.first
        assert bad is not None
        assert last is not None
        assert first is not None
        if self.request.choices > 1:
            return None
        for rung in self._rungs(bad, first.mode):
            if not self.may_ask():
                return None
            step = self._climb(rung)
            if step is None:
                continue
            said = (*self._said, *_follow_up(bad, last.mode))
            asked = self.plan(rung, bad, first, last.mode, said)
            if asked is not None and bad.reply is not None:
                usage = bad.reply.usage or self.usage
                used = 0 if usage is None else usage.output_tokens
                asked = self.prepare.raise_limit(asked, bad.reply.finish_reason, used)
            if asked is not None:
                demands = self.request.choice.wanted != "none"
                return Planned(step, asked, said, demands)
        if self.may_ask():
            self._skip_to(None)
        return None

    def plan_list(self, good: Verdict, first: Asked) -> Planned | None:
        """Return the request for all calls of a model that made its first one in its text.

        Args:
            good: The reply with that call, which is delivered if the list is of no use.
            first: What it answers.
        """
        request, reading = self.request, good.reading
        is_first = not request.has_calls and request.choices == 1 and self.policy.allows("force")
        if reading is None or not is_first or not self.may_ask():
            return None
        mode = PROMPT_MODES[first.mode]
        rung = find_list_rung(reading.calls, mode, self.route.capabilities)
        if rung is None or rung.tool not in request.tools.names.names:
            return None
        asked = self.plan(rung, good, first, first.mode, ())
        return None if asked is None else Planned("force", asked, ())

    def _rungs(self, bad: Verdict, mode: Mode) -> tuple[Rung, ...]:
        """Return the ladder as it is for the tool whose call could not be used."""
        choice, offered = self.request.choice, self.request.tools.names.names
        tool = choice.only_tool or _only(bad.stuck_tools) or self._only_demanded()
        demand = "tool" if choice.only_tool is not None else _DEMANDS[choice.wanted]
        if demand == "nothing" and not choice.is_free:
            demand = "call"
        standing = Standing(PROMPT_MODES[mode], tool, demand, is_silent=bad.is_empty)
        rungs = list_rungs(standing, self.route.capabilities)
        is_offered = tool is not None and tool in offered
        if demand != "no_call" and not is_offered:  # there is no schema of this tool to hold it to
            kept: set[RungName] = {"errors", "taught"}
            if tool is None:
                kept |= {"free_choice"} if mode == "native" else {"schema"}
            rungs = tuple(rung for rung in rungs if rung.name in kept)
        return rungs

    def _climb(self, rung: Rung) -> StepName | None:
        """Return the step that a rung is a part of; `None` if it may not be taken any more."""
        step = _STEPS.get(rung.name, "force")
        if rung.name in self._climbed or step not in self._left:
            return None
        self._climbed.add(rung.name)
        self._skip_to(step)
        return step

    def _skip_to(self, step: StepName | None) -> None:
        """Note the steps below another one for which there was no way."""
        while self._left and self._left[0] != step:
            below = self._left.pop(0)
            if all(taken.name != below for taken in self.steps):
                self.steps.append(Step(below, "skipped"))

    def note(self, planned: Planned, *, is_good: bool, bad: Verdict | None = None) -> None:
        """Note what came of a request.

        Args:
            planned: The request.
            is_good: Whether its reply is delivered.
            bad: The reply, if the model is to be asked about this one from now on.
        """
        self.steps.append(Step(planned.step, "ok" if is_good else "failed", 1))
        if bad is not None:
            self.last, self._said = planned.asked, planned.said
            self._take_bad(bad)

    def _take_bad(self, bad: Verdict) -> None:
        self.bad = bad
        if bad.document is not None:
            self.bad_documents.append(bad.document)

    def note_repairs(self, receipts: Sequence[Receipt]) -> None:
        """Note which steps made the calls of a reply usable without asking."""
        rules = {receipt.rule for receipt in receipts}
        if rules & SCHEMA_RULES:
            self.steps.insert(0, Step("coerce", "ok"))
        if rules - SCHEMA_RULES:
            self.steps.insert(0, Step("repair", "ok"))

    def plan(
        self, rung: Rung, bad: Verdict, first: Asked, mode: Mode, said: Sequence[Message]
    ) -> Asked | None:
        """Return the request of a rung, or `None` when the endpoint's format has none for it."""
        prepare, tool = self.prepare, rung.tool
        try:
            match rung.name:
                case "errors" if mode != "native":
                    return prepare.render(said, mode=mode)
                case "errors":
                    return prepare.continue_from(first, said)
                case "strict_tool" | "forced_choice":
                    strict = rung.name == "strict_tool"
                    return prepare.continue_from(first, said, forced_tool=tool, is_strict=strict)
                case "free_choice":
                    return prepare.continue_from(first, said, keeps_choice=False)
                case "no_tools":
                    return prepare.continue_from(first, (), offers_tools=False)
                case "schema":
                    return prepare.render(said, mode="object", forced_tool=tool)
                case "list":
                    return prepare.render(said, mode="object", forced_tool=tool, lists=True)
                case "taught":
                    return prepare.render(said, mode="fenced", must_call=bool(bad.answers))
        except SurecallError as error:
            _log.debug("a step could not be taken: %s", error)
        return None

    def _only_demanded(self) -> str | None:
        """Return the tool that must be called because there is no other."""
        if self.request.choice.wanted != "call":
            return None
        return _only(tuple(self.request.tools.names.names))


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
