"""The provider that misbehaves on purpose: a request goes in, an answer as data comes out."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, Final
from urllib.parse import unquote

from msgspec.structs import replace

from surecall.base.errors import Code, ConfigError, RequestError
from surecall.base.json_values import as_fields
from surecall.base.records import Message, ModelRequest, ToolCall, ToolSpec, WireRequest
from surecall.calls.teach import ANSWER_KEY, MUST_CALL, REPLY_KEY, RESULT_OF, TOOLS_FOLLOW
from surecall.reading.truncation import cut_cause
from surecall.serving.admission import Refusal
from surecall.text import encode_text
from surecall.wire import WireProtocol, find_protocol

from .answers import Answer, event_stream, json_answer, provider_headers, refusal_answer
from .behaviours import ZOO_PREFIX, Behaviour, Situation, find_behaviour
from .catalog import Fault
from .conversation import Action, CallTools, Oracle, Say
from .oracles import DirectiveOracle, ObligingOracle, ask_oracles
from .rendering import CHAT, render_body, render_chunk, render_events, render_reply_chunks
from .replies import Occasion, PlannedReply, honour_request, plan_reply
from .schedule import CLEAN_PLAN, FaultPlan
from .toml_files import parse_fields
from .workspace_oracle import WorkspaceOracle

BUILTIN_ORACLES: Final = (DirectiveOracle(), WorkspaceOracle(), ObligingOracle())
"""The oracles of right calls; the first that knows the conversation wins."""

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
            body, _ = protocol.as_functions(wire.body)
            lesson = Lesson(protocol.parse_request(replace(wire, body=body)))
            request = lesson.request
            plan, behaviour = self._choose(request.model)
            occasion = self._make_occasion(request, protocol)
            if (stated := wire.body.get("tools")) != (body.get("tools") or stated):
                occasion = replace(occasion, settings={"tools": stated})
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


_FENCE: Final = "```json\n"
_FENCE_END: Final = "\n```"
_REQUIRED: Final = "required arguments"
_OPTIONAL: Final = "optional arguments"


class Lesson:
    """The lesson in a request: its tools and results back in their fields, and how to answer.

    A request that teaches nothing is left as it is, and so is the reply to it.
    """

    def __init__(self, request: ModelRequest) -> None:
        taught = "" if request.tools else _find_lesson(request.messages)
        schema = _find_schema(request)
        self._is_wrapped = REPLY_KEY in schema
        self.holds_reply = _is_reply_schema(schema)
        """Whether the provider holds the reply to a schema, so that no mistake gets through."""
        self._is_taught = bool(taught) or self.holds_reply
        self.request = request
        if self._is_taught or _has_results(request.messages):
            self.request = _understand(request, taught, held=self.holds_reply)

    def write(self, reply: PlannedReply) -> PlannedReply:
        """Return a reply in the form that was taught."""
        if not self._is_taught or not (reply.calls or self.holds_reply):
            return reply
        calls = reply.calls[:1] if self.holds_reply else reply.calls
        text = self._write_text(reply, calls)
        if calls and cut_cause(reply.finish_reason) is not None:
            return reply.with_text(_leave_open(text, calls[-1]), reply.finish_reason)
        return reply.with_text(text)

    def _write_text(self, reply: PlannedReply, calls: Sequence[dict[str, Any]]) -> str:
        if not self.holds_reply:
            return "\n\n".join(f"{_FENCE}{_write_call(call)}{_FENCE_END}" for call in calls)
        text = _write_call(calls[0]) if calls else encode_text({ANSWER_KEY: reply.text})
        return f'{{"{REPLY_KEY}": {text}}}' if self._is_wrapped else text


def _leave_open(text: str, last: dict[str, Any]) -> str:
    """Leave out what follows the last arguments: a model that is stopped there closes nothing."""
    arguments = _arguments(as_fields(last.get("function")))
    return text[: text.rindex(arguments) + len(arguments)]


def _write_call(call: dict[str, Any]) -> str:
    """Write a call with its arguments as they are, which may not be JSON at all."""
    function = as_fields(call.get("function"))
    return f'{{"name": {encode_text(function.get("name"))}, "arguments": {_arguments(function)}}}'


def _arguments(function: dict[str, Any]) -> str:
    written = function.get("arguments")
    return written if isinstance(written, str) and written else encode_text(written)


def _find_lesson(messages: Sequence[Message]) -> str:
    first = messages[0].text if messages else ""
    return first if TOOLS_FOLLOW in first else ""


def _find_schema(request: ModelRequest) -> dict[str, Any]:
    """Return the properties that a reply is held to."""
    wanted = as_fields(request.response_format)
    if wanted.get("type") != "json_schema":
        return {}
    schema = as_fields(as_fields(wanted.get("json_schema")).get("schema"))
    choices: Any = schema.get("anyOf") or [schema]
    return {key: part for each in choices for key, part in _properties(each).items()}


def _properties(schema: Any) -> dict[str, Any]:
    return as_fields(as_fields(schema).get("properties"))


def _is_reply_schema(properties: dict[str, Any]) -> bool:
    """Tell whether it is the schema of a call or an answer, and not one that a user gave."""
    keys = properties.keys()
    return keys in ({REPLY_KEY}, {ANSWER_KEY}, {"name", "arguments"}) or keys == {
        "name",
        "arguments",
        ANSWER_KEY,
    }


def _has_results(messages: Sequence[Message]) -> bool:
    return any(message.role == "user" and _is_result(message.text) for message in messages)


def _is_result(text: str) -> bool:
    return text.startswith(RESULT_OF) and ":\n" in text


def _understand(request: ModelRequest, taught: str, *, held: bool) -> ModelRequest:
    tools = tuple(_read_tools(taught))
    must_call = taught.rstrip().endswith(MUST_CALL)
    return replace(
        request,
        messages=tuple(_read_history(request.messages)),
        tools=tools,
        tool_choice="required" if must_call and tools else None,
        parallel_tool_calls=False if held else None,
        response_format=None if held else request.response_format,
    )


def _read_tools(taught: str) -> Iterator[ToolSpec]:
    for line in taught.partition(TOOLS_FOLLOW)[2].splitlines():
        described = parse_fields(line)
        if not described or not isinstance(described.get("name"), str):
            return
        yield ToolSpec(
            name=described["name"],
            description=str(described.get("description", "")),
            parameters=_read_parameters(described),
        )


def _read_parameters(described: dict[str, Any]) -> dict[str, Any]:
    if "parameters" in described:
        return as_fields(described["parameters"])
    required = as_fields(described.get(_REQUIRED))
    optional: dict[str, Any] = {}
    for key, value in described.items():
        if key.startswith(_OPTIONAL):
            optional = as_fields(value)
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
    }


def _read_history(messages: Sequence[Message]) -> Iterator[Message]:
    """Yield the conversation with the calls and results that were told as text."""
    waiting: list[ToolCall] = []
    for place, message in enumerate(messages):
        if message.role == "assistant" and not message.tool_calls:
            calls = tuple(_read_calls(message.text, place))
            if calls:
                waiting = list(calls)
                yield Message("assistant", "", calls)
                continue
        if message.role == "user" and waiting and _is_result(message.text):
            yield from _read_results(message.text, waiting)
            waiting = []
            continue
        yield message


def _read_calls(text: str, place: int) -> Iterator[ToolCall]:
    parts = text.split(_FENCE)
    written = [part.partition(_FENCE_END)[0] for part in parts[1:]] or text.split("\n\n")
    for number, one in enumerate(written):
        fields = parse_fields(one.strip()) or {}
        if isinstance(fields.get("name"), str) and "arguments" in fields:
            arguments: Any = fields["arguments"]
            yield ToolCall(
                id=f"taught_{place}_{number}",
                name=fields["name"],
                arguments=as_fields(arguments) if isinstance(arguments, dict) else None,
                raw=arguments,
            )


def _read_results(text: str, waiting: Sequence[ToolCall]) -> Iterator[Message]:
    """Yield the results in the order of their calls, and what the user says after them."""
    rest = text
    for place, call in enumerate(waiting):
        head = f"{RESULT_OF}{call.name}:\n"
        if not rest.startswith(head):
            break
        rest = rest.removeprefix(head)
        following = waiting[place + 1].name if place + 1 < len(waiting) else ""
        result, found, rest = rest.partition(
            f"\n\n{RESULT_OF}{following}:\n" if following else "\n\n"
        )
        if found and following:
            rest = f"{RESULT_OF}{following}:\n{rest}"
        yield Message("tool", result, tool_call_id=call.id)
    if rest.strip():
        yield Message("user", rest)
