"""The provider that misbehaves on purpose: a request goes in, an answer as data comes out."""

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any, Final

from msgspec.structs import replace

from surecall.errors import ConfigError, RequestError
from surecall.protocols import ChatCompletions, RawReply, WireProtocol, find_protocol
from surecall.records import ModelRequest, Reply, Usage, WireRequest
from surecall.transport.script_chunks import render_chunks, render_completion

from .actions import Action, CallTools, Oracle, Say
from .answers import Answer, error_answer, event_stream, json_answer
from .behaviours import Behaviour, Situation
from .directives import DirectiveOracle, ask_oracles
from .drafts import Draft, Occasion, draft_reply, honour_request
from .models import find_behaviour
from .obliging import ObligingOracle
from .plan import CLEAN_PLAN, FaultPlan
from .records import Fault
from .workspace import WorkspaceOracle

__all__ = ["BUILTIN_ORACLES", "FAULT_PREFIX", "ZOO_PREFIX", "FaultyProvider", "find_endpoint"]

BUILTIN_ORACLES: Final[tuple[Oracle, ...]] = (
    DirectiveOracle(),
    WorkspaceOracle(),
    ObligingOracle(),
)
"""Who decides what would be right; the first that knows the conversation wins."""

FAULT_PREFIX: Final = "faults:"
ZOO_PREFIX: Final = "zoo:"

_chat: Final = ChatCompletions()
_ENDPOINTS: Final = {"/chat/completions": "chat_completions", "/messages": "messages"}
_GAVE_UP: Final = "I am sorry, I could not do this."
_THOUGHT: Final = "Let me think about what is wanted here."


def find_endpoint(path: str) -> WireProtocol | None:
    """Return the wire format that is spoken at a path, with or without `/v1` before it."""
    name = _ENDPOINTS.get(path.removeprefix("/v1").rstrip("/"))
    return None if name is None else find_protocol(name)


class FaultyProvider:
    """Answers requests with the faults of a plan, or as a simulated model would.

    The name of the model in a request wins: `faults:NAME` meets every request with one fault,
    `zoo:NAME` answers as a simulated model. Where several faults meet, one that works on the
    message leaves alone what another has already broken.

    What happens depends on the seed and the number of the request only; a request with a `seed` of
    its own is answered by that and its place in the conversation, so that it does not matter how
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
            request = protocol.parse_request(wire)
            plan, behaviour = self._chosen(request.model)
        except RequestError as error:
            fault = protocol.render_fault(error)
            return json_answer(fault.body, fault.status)
        except ConfigError as error:
            return error_answer(404, str(error), kind="not_found_error")
        self.by_model[request.model] += 1
        occasion = self._occasion(request)
        clean = self._act(request, ())
        situation = None
        if behaviour is None:
            faults = plan.faults_for(occasion.number, occasion.random, stream=occasion.stream)
        else:
            situation = Situation(behaviour, request, clean, occasion.random)
            faults = tuple(
                fault for fault in situation.faults if fault.reaches(stream=occasion.stream)
            )
        self.by_fault.update(fault.name for fault in faults)
        action = self._act(request, faults)
        draft = self._draft(action, occasion, situation, faults)
        return _answer(draft, replace(occasion, draft=draft), protocol, faults)

    def _chosen(self, model: str) -> tuple[FaultPlan, Behaviour | None]:
        if model.startswith(FAULT_PREFIX):
            return FaultPlan.of(model.removeprefix(FAULT_PREFIX)), None
        if model.startswith(ZOO_PREFIX):
            return CLEAN_PLAN, find_behaviour(model.removeprefix(ZOO_PREFIX))
        return self.plan, self.behaviour

    def _occasion(self, request: ModelRequest) -> Occasion:
        own = request.params.get("seed")
        if isinstance(own, int):
            key = f"{self.seed}/{own}/{len(request.messages)}"
        else:
            key = f"{self.seed}//{self.requests}"
        return Occasion(
            request=request,
            number=self.requests,
            random=Random(key),  # noqa: S311 - chance that can be repeated, not secrecy
            stream=request.stream,
        )

    def _act(self, request: ModelRequest, faults: tuple[Fault, ...]) -> Action:
        """Return what is right to do for a request as this provider sees it."""
        for fault in faults:
            if fault.see is not None:
                request = fault.see(request)
        return honour_request(ask_oracles(self._oracles, request), request)

    def _draft(
        self,
        action: Action,
        occasion: Occasion,
        situation: Situation | None,
        faults: tuple[Fault, ...],
    ) -> Draft:
        if situation is not None:
            action = self._with_habits(action, situation)
        draft = draft_reply(action, _seen(occasion, faults))
        for fault in faults:
            if fault.draft is not None and draft.is_clean:
                draft = fault.draft(draft, occasion)
        if situation is not None and "starve" in situation.habits:
            message = {"role": "assistant", "content": "", "reasoning_content": _THOUGHT}
            draft = replace(draft, message=message, finish_reason="length")
        return draft

    def _with_habits(self, action: Action, situation: Situation) -> Action:
        if situation.gives_up and isinstance(action, CallTools):
            return Say(_GAVE_UP)
        before = situation.request_before_last_calls()
        if "repeat_failed_call" in situation.habits and before is not None:
            return self._act(before, ())
        if "skip_call" in situation.habits and isinstance(action, CallTools):
            return Say("Done.")
        if "chatty_final" in situation.habits and isinstance(action, Say):
            return Say(f"Sure! {action.text} Let me know if there is anything else.")
        return action


def _seen(occasion: Occasion, faults: tuple[Fault, ...]) -> Occasion:
    """Return the occasion with the request as the provider sees it, which is what it counts."""
    request = occasion.request
    for fault in faults:
        if fault.see is not None:
            request = fault.see(request)
    return replace(occasion, request=request)


def _answer(
    draft: Draft, occasion: Occasion, protocol: WireProtocol, faults: tuple[Fault, ...]
) -> Answer:
    reply_id = f"{occasion.random.getrandbits(96):024x}"
    if protocol.name == _chat.name:
        answer = _chat_answer(draft, occasion, f"chatcmpl-{reply_id}", faults)
    else:
        answer = _other_answer(draft, occasion, protocol, reply_id)
    for fault in faults:
        if fault.wire is not None:
            answer = fault.wire(answer, occasion)
    return answer


def _chat_answer(
    draft: Draft, occasion: Occasion, reply_id: str, faults: tuple[Fault, ...]
) -> Answer:
    completion = render_completion(draft.message, draft.finish_reason, draft.usage)
    completion |= {"id": reply_id, "model": occasion.request.model}
    if not occasion.stream:
        return json_answer(completion)
    chunks: list[Any] = render_chunks(completion)
    for fault in faults:
        if fault.chunks is not None and draft.is_clean:
            chunks = fault.chunks(chunks, occasion)
    return event_stream(chunks)


def _other_answer(
    draft: Draft, occasion: Occasion, protocol: WireProtocol, reply_id: str
) -> Answer:
    reply = _as_reply(draft, occasion.request.model, reply_id)
    if not occasion.stream:
        return json_answer(protocol.render_reply(reply))
    writer = protocol.open_writer(model=occasion.request.model, reply_id=reply_id)
    events = [writer.begin(), writer.reasoning(reply.reasoning or "", reply.extra)]
    events += [writer.text(reply.content or ""), *(writer.call(call) for call in reply.calls)]
    return event_stream([event for event in (*events, writer.end(reply)) if event])


def _as_reply(draft: Draft, model: str, reply_id: str) -> Reply:
    raw = RawReply(message=draft.message, finish_reason=draft.finish_reason)
    counts = draft.usage or {}
    usage = Usage(
        input_tokens=counts.get("prompt_tokens", 0),
        output_tokens=counts.get("completion_tokens", 0),
        total_tokens=counts.get("total_tokens", 0),
    )
    return replace(_chat.parse_message(raw), usage=usage, model=model, id=reply_id)
