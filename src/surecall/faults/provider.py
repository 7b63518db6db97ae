"""The provider that misbehaves on purpose: a request goes in, an answer as data comes out."""

import re
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Final
from urllib.parse import unquote

from msgspec.structs import replace

from surecall.base.errors import Code, ConfigError, RequestError
from surecall.base.records import ModelRequest, WireRequest
from surecall.serving.admission import Refusal
from surecall.wire import WireProtocol, find_protocol

from .answers import Answer, event_stream, json_answer, provider_headers, refusal_answer
from .behaviours import ZOO_PREFIX, Behaviour, Situation, find_behaviour
from .catalog import Fault
from .conversation import Action, CallTools, Oracle, Say
from .oracles import DirectiveOracle, ObligingOracle, ask_oracles
from .plan import CLEAN_PLAN, FaultPlan
from .rendering import CHAT, render_body, render_chunk, render_events, render_reply_chunks
from .replies import Occasion, PlannedReply, honour_request, plan_reply
from .taught import Lesson
from .workspace import WorkspaceOracle

BUILTIN_ORACLES: Final = (DirectiveOracle(), WorkspaceOracle(), ObligingOracle())
"""Who decides what would be right; the first that knows the conversation wins."""

FAULT_PREFIX: Final = "faults:"

_ENDPOINTS: Final = {
    "/chat/completions": "chat_completions",
    "/messages": "messages",
    "/responses": "responses",
}
_GEMINI_PATH: Final = re.compile(r"/(?:tunedModels|models)/[^/]+:(?:g|streamG)enerateContent")
_PREFIX: Final = re.compile(r"/v1(?:beta)?(?=/)")
_GAVE_UP: Final = "I am sorry, I could not do this."
_THOUGHT: Final = "Let me think about what is wanted here."


def find_endpoint(path: str) -> WireProtocol | None:
    """Return the wire format that is spoken at a path, with or without a version before it."""
    plain = _PREFIX.sub("", path.partition("?")[0].rstrip("/"), count=1)
    name = _ENDPOINTS.get(plain)
    if name is None and _GEMINI_PATH.fullmatch(unquote(plain)):
        name = "gemini"
    return None if name is None else find_protocol(name)


class FaultyProvider:
    """Answers requests with the faults of a plan, or as a simulated model would.

    The name of the model in a request wins: `faults:NAME` meets every request with one fault,
    `zoo:NAME` answers as a simulated model. Where several faults meet, one that works on the
    message leaves alone what another has already broken.

    What happens depends on the seed and the number of the request only; a request with its own
    `seed` is answered by that and its place in the conversation, so that it does not matter how
    many others ask at the same time.
    """

    def __init__(
        self,
        *,
        plan: FaultPlan = CLEAN_PLAN,
        behaviour: Behaviour | None = None,
        seed: int = 0,
        oracles: Sequence[Oracle] = BUILTIN_ORACLES,
    ) -> None:
        self.plan = plan
        self.behaviour = behaviour
        self.seed = plan.seed if plan.seed is not None else seed
        self._oracles = tuple(oracles)
        self.requests = 0
        self.by_model: Counter[str] = Counter()
        self.by_fault: Counter[str] = Counter()

    def answer(self, protocol: WireProtocol, wire: WireRequest) -> Answer:
        """Return the answer to a request of a wire format."""
        self.requests += 1
        try:
            lesson = Lesson(protocol.parse_request(wire))
            request = lesson.request
            plan, behaviour = self._choose(request.model)
            occasion = self._make_occasion(request, protocol)
            situation, faults = self._meet(plan, behaviour, occasion)
        except (RequestError, ConfigError) as error:
            status = 400 if isinstance(error, RequestError) else 404
            return refusal_answer(protocol, Refusal(status, Code(error.code), str(error)))
        self.by_model[request.model] += 1
        self.by_fault.update(fault.name for fault in faults)
        reply = self._plan_reply(_see(occasion, faults), situation)
        for fault in faults:
            if fault.reply is not None and reply.is_clean and not lesson.holds_reply:
                reply = fault.reply(reply, occasion)
        reply = lesson.write(reply)
        if situation is not None and "starve" in situation.habits:
            reply = reply.with_text("", "length", reasoning_content=_THOUGHT)
        return _answer(reply, occasion, faults)

    def _meet(
        self, plan: FaultPlan, behaviour: Behaviour | None, occasion: Occasion
    ) -> tuple[Situation | None, tuple[Fault, ...]]:
        """Return the faults that a request meets, and who makes them when that is a model."""
        name, stream = occasion.protocol.name, occasion.stream
        if behaviour is None:
            number, random = occasion.number, occasion.random
            return None, plan.faults_for(number, random, stream=stream, protocol=name)
        clean = self._act(occasion.request)
        situation = Situation(behaviour, occasion.request, clean, occasion.random)
        return situation, tuple(
            fault for fault in situation.faults if fault.reaches(stream=stream, protocol=name)
        )

    def _choose(self, model: str) -> tuple[FaultPlan, Behaviour | None]:
        if model.startswith(FAULT_PREFIX):
            return FaultPlan.of(model.removeprefix(FAULT_PREFIX)), None
        if model.startswith(ZOO_PREFIX):
            return CLEAN_PLAN, find_behaviour(model.removeprefix(ZOO_PREFIX))
        return self.plan, self.behaviour

    def _make_occasion(self, request: ModelRequest, protocol: WireProtocol) -> Occasion:
        own, place = request.params.get("seed"), len(request.messages)
        own_key = f"{own}/{place}" if isinstance(own, int) else f"/{self.requests}"
        return Occasion(
            request=request,
            number=self.requests,
            random=Random(f"{self.seed}/{own_key}"),  # noqa: S311 - chance that can be repeated, not secrecy
            stream=request.stream,
            protocol=protocol,
        )

    def _act(self, request: ModelRequest) -> Action:
        """Return what is right to do for a request."""
        return honour_request(ask_oracles(self._oracles, request), request)

    def _plan_reply(self, occasion: Occasion, situation: Situation | None) -> PlannedReply:
        """Return the reply to a request before faults, with the habits of a simulated model."""
        action = self._act(occasion.request)
        if situation is not None:
            action = self._apply_habits(action, situation)
        return plan_reply(action, occasion)

    def _apply_habits(self, action: Action, situation: Situation) -> Action:
        if situation.gives_up and isinstance(action, CallTools):
            return Say(_GAVE_UP)
        before = situation.request_before_last_calls()
        if "repeat_failed_call" in situation.habits and before is not None:
            return self._act(before)
        if "skip_call" in situation.habits and isinstance(action, CallTools):
            return Say("Done.")
        if "chatty_final" in situation.habits and isinstance(action, Say):
            return Say(f"Sure! {action.text} Let me know if there is anything else.")
        return action


def _see(occasion: Occasion, faults: tuple[Fault, ...]) -> Occasion:
    """Return the occasion with the request as the provider sees it, which is what it counts."""
    request = occasion.request
    for fault in faults:
        if fault.see is not None:
            request = fault.see(request)
    return replace(occasion, request=request)


def _answer(reply: PlannedReply, occasion: Occasion, faults: tuple[Fault, ...]) -> Answer:
    reply_id = f"{occasion.random.getrandbits(96):024x}"
    occasion = replace(occasion, reply=reply, reply_id=reply_id)
    answer = _render(reply, occasion, faults)
    answer = replace(answer, headers={**answer.headers, **provider_headers(occasion)})
    for fault in faults:
        if fault.wire is not None:
            answer = fault.wire(answer, occasion)
    return answer


def _render(reply: PlannedReply, occasion: Occasion, faults: tuple[Fault, ...]) -> Answer:
    if not occasion.stream:
        return json_answer(render_body(reply, occasion))
    if occasion.protocol.name != CHAT:
        return event_stream(render_events(reply, occasion))
    chunks = render_reply_chunks(reply, occasion)
    for fault in faults:
        if fault.chunks is not None and reply.is_clean:
            chunks = fault.chunks(chunks, occasion)
    return event_stream(map(render_chunk, chunks))
