"""Asking a provider with harmless tools: every request is counted, and none is sent twice."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from surecall.base.errors import Code, ProviderError
from surecall.base.records import Message, ModelRequest, Reply, ToolCall, ToolSpec, Usage
from surecall.base.redaction import cut_secret_causes
from surecall.models.transport import Transport, exchange
from surecall.reading import read_reply
from surecall.reading.truncation import cut_cause
from surecall.text import canonical_hash
from surecall.wire import RawReply, WireProtocol
from surecall.wire.replies import mask_reply

from .findings import Cost, Finding, quote
from .fit_gate import FitAnswer, FitAsker


def _describe_object(**properties: Any) -> dict[str, Any]:
    required = {"required": list(properties)} if properties else {}
    object_: dict[str, Any] = {"type": "object", "properties": properties}
    return {**object_, **required, "additionalProperties": False}


_TEXT: Final = _describe_object(text={"type": "string"})
ONE_CODE: Final = _describe_object(code={"type": "string", "enum": ["Q7"]})
"""A schema that only one object fits."""


def _make_tool(name: str, description: str, parameters: dict[str, Any]) -> ToolSpec:
    return ToolSpec(
        name=f"surecall_probe_{name}",
        description=f"{description} and changes nothing.",
        parameters=parameters,
        effect="read",
    )


ECHO: Final = _make_tool("echo", "Returns the text it is given", _TEXT)
NOTE: Final = _make_tool("note", "Returns how long a text is", _TEXT)
PING: Final = _make_tool("ping", "Takes no arguments", _describe_object())
PICK: Final = _make_tool("pick", "Takes a code", ONE_CODE)

# The first text names neither the tool nor its parameter: a call that has both right proves that
# the model saw the definition.
CALL_UNNAMED: Final = (
    'You have been given one tool. Call it now with the text "ping". Do not answer in words.'
)
CALL_NAMED: Final = f'Call the tool {ECHO.name} now with the text "ping". Do not answer in words.'
CALL_TWICE: Final = (
    f"Call the tool {ECHO.name} two times in this one reply: "
    'once with the text "one" and once with the text "two". Do not answer in words.'
)
PLAIN: Final = "Answer with the single word: ready"


def user(text: str) -> tuple[Message, ...]:
    """Return a conversation that consists of one question."""
    return (Message("user", text),)


Listing = Callable[[], Awaitable[Any]]
"""Fetches the provider's own list of models, decoded."""

_MAX_TOKENS: Final = 1024
"""Enough for a model that thinks before a short answer."""
_REFUSING_CODES: Final = frozenset({Code.BAD_REQUEST, Code.UNPROCESSABLE})
_BROKEN_CODES: Final = frozenset({Code.CONNECTION_FAILED, Code.CONNECTION_RESET})
_NOT_IMPLEMENTED: Final = 501
_REFUSING_PHRASES: Final = ("requires --jinja", "does not support tools")
"""What servers say with a status of 500 when they mean that they never will."""
_MAX_ADAPTATIONS: Final = 2
TOKENS_PER_REQUEST: Final = 250
"""A short question with one small tool, and a short answer; a model that thinks takes more."""


class BudgetSpentError(Exception):
    """A question needs one request more than are left; the runner makes a finding of it."""


class Answered(NamedTuple):
    """A reply, parsed."""

    reply: Reply
    raw: RawReply
    came_whole: bool = True
    """Whether it came in one piece, though it may have been asked for as a stream."""

    @property
    def content(self) -> str:
        """The text, without the space around it."""
        return (self.reply.content or "").strip()

    @property
    def prompt_tokens(self) -> int:
        """How long the prompt was, as the provider counted; 0 when it did not."""
        return self.reply.usage.input_tokens if self.reply.usage else 0

    @property
    def unusable(self) -> str | None:
        """Why nothing can be concluded from it: it was cut, or it is empty."""
        cause = cut_cause(self.reply.finish_reason, self.reply.defects)
        if cause is None and not self.reply.calls and not self.content:
            return "the reply was empty"
        return cause

    def calls(self, *tools: ToolSpec) -> tuple[ToolCall, ...]:
        """Return the whole calls of these tools, also those written as text."""
        names = {tool.name for tool in tools}
        reading = read_reply(self.reply, tools=tools)
        return tuple(call for call in reading.calls if call.name in names and call.state == "whole")

    @property
    def said(self) -> str:
        """What came, in a few words, for the evidence."""
        if self.reply.calls:
            names = ", ".join(quote(str(call.name)) for call in self.reply.calls[:3])
            return f"{len(self.reply.calls)} call(s) of {names}"
        return quote(self.content)


class Refused(NamedTuple):
    """The provider refused the request, while it accepts a plain one."""

    error: ProviderError

    @property
    def said(self) -> str:
        """What it said, in a few words."""
        return f"{self.error.status}: {quote(self.error.provider_message)}"


class Asker:
    """Asks one model; remembers every answer of this probe, so that questions can share them.

    Args:
        transport: How requests get there.
        protocol: The wire format.
        model: The model, as the provider names it.
        max_requests: How many requests may be sent in all.
        listing: Fetches the provider's list of models.
    """

    def __init__(
        self,
        transport: Transport,
        protocol: WireProtocol,
        model: str,
        *,
        max_requests: int,
        listing: Listing | None = None,
    ) -> None:
        self.transport = transport
        self.protocol = protocol
        self.model = model
        self.cost = Cost()
        self._max_requests = max_requests
        self._listing = listing
        self._fit_asker = FitAsker(transport, protocol, model)
        self._answers: dict[str, Answered | ProviderError] = {}
        self._params: dict[str, Any] = {"max_tokens": _MAX_TOKENS, "temperature": 0}

    @property
    def answers(self) -> tuple[Answered, ...]:
        """Every reply so far."""
        return tuple(item for item in self._answers.values() if isinstance(item, Answered))

    async def ask(
        self,
        messages: tuple[Message, ...],
        *,
        tools: tuple[ToolSpec, ...] = (),
        params: dict[str, Any] | None = None,
        attempt: int = 1,
        **fields: Any,
    ) -> Answered:
        """Return the reply to a request; one that was made before is not made again.

        A second `attempt` is another request, though it says the same.

        Raises:
            BudgetSpentError: No request is left.
            ProviderError: There is no reply.
        """
        request = ModelRequest(
            model=self.model, messages=messages, tools=tools, params=params or {}, **fields
        )
        key = f"{attempt}:{canonical_hash(request)}"
        if key not in self._answers:
            try:
                self._answers[key] = await self._send_adapted(request)
            except ProviderError as error:
                if error.retryable:
                    raise
                self._answers[key] = error
        answer = self._answers[key]
        if isinstance(answer, ProviderError):
            raise answer
        return answer

    async def try_ask(
        self, messages: tuple[Message, ...], *, tools: tuple[ToolSpec, ...] = (), **fields: Any
    ) -> Answered | Refused:
        """Return the reply, or the refusal of exactly this request.

        A request only counts as refused when a plain one is accepted: a provider that refuses
        everything says nothing about what it can do.
        """
        try:
            return await self.ask(messages, tools=tools, **fields)
        except ProviderError as error:
            if not _is_refusal(error):
                raise
            if error.code != Code.NO_TOOL_USE_ENDPOINT:
                await self.ask(user(PLAIN))
            return Refused(error)

    async def ask_fit(self, request: str, tool: ToolSpec) -> FitAnswer:
        """Ask whether a function fits a request."""
        self._require_request()
        try:
            answer = await self._fit_asker.ask(request, tool)
        except ProviderError as error:
            self.cost += Cost(max(error.attempts, 1))
            raise
        usage = answer.usage or Usage()
        self.cost += Cost(answer.requests, usage.input_tokens, usage.output_tokens)
        return answer

    async def fetch_listing(self) -> Any:
        """Return the provider's list of models, or `None` when there is no way to ask for it."""
        if self._listing is None:
            return None
        self._require_request()
        self.cost += Cost(1)
        return await self._listing()

    async def _send_adapted(self, request: ModelRequest) -> Answered:
        """Send the request; leave out the sampling settings that this model refuses."""
        for _ in range(_MAX_ADAPTATIONS):
            try:
                return await self._send_twice(request)
            except ProviderError as error:
                if error.code not in _REFUSING_CODES or not self._adapt(error):
                    raise
        return await self._send_twice(request)

    def _adapt(self, error: ProviderError) -> bool:
        said = (error.provider_message or "").lower()
        if "max_tokens" in self._params and "max_completion_tokens" in said:
            self._params["max_completion_tokens"] = self._params.pop("max_tokens")
            return True
        if "temperature" in self._params and "temperature" in said:
            del self._params["temperature"]
            return True
        return False

    async def _send_twice(self, request: ModelRequest) -> Answered:
        """Send the request again when its connection broke: a question has no effects."""
        try:
            return await self._send(request)
        except ProviderError as error:
            if error.code not in _BROKEN_CODES:
                raise
        return await self._send(request)

    async def _send(self, request: ModelRequest) -> Answered:
        self._require_request()
        request = replace(request, params={**self._params, **request.params})
        wire = self.protocol.render_request(request)
        try:
            came = await exchange(self.transport, self.protocol, wire)
        except ProviderError as error:
            cut_secret_causes(error)
            self.cost += Cost(max(error.attempts, 1))
            raise
        raw = mask_reply(came.raw)
        usage = raw.usage or Usage()
        self.cost += Cost(came.attempts, usage.input_tokens, usage.output_tokens)
        return Answered(self.protocol.parse_message(raw), raw, came.came_whole)

    def _require_request(self) -> None:
        if self.cost.requests >= self._max_requests:
            raise BudgetSpentError(f"all {self._max_requests} requests of this probe are spent")


def _is_refusal(error: ProviderError) -> bool:
    if error.code in _REFUSING_CODES or error.status == _NOT_IMPLEMENTED:
        return True
    said = (error.provider_message or "").lower()
    return error.code == Code.NO_TOOL_USE_ENDPOINT or (
        error.code == Code.UPSTREAM_5XX and any(phrase in said for phrase in _REFUSING_PHRASES)
    )


Ask = Callable[[Asker], Awaitable[Finding]]


class Question(NamedTuple):
    """One thing to find out about a model at a provider."""

    name: str
    title: str
    decides: tuple[str, ...]
    """The capabilities it decides."""
    max_requests: int
    """At most, when no answer can be shared with another question."""
    ask: Ask
    tokens: int = TOKENS_PER_REQUEST
    """About how many a request takes."""

    @property
    def rough_tokens(self) -> int:
        """About how many tokens it takes at most."""
        return self.max_requests * self.tokens


def question(
    title: str, *decides: str, max_requests: int, tokens: int = TOKENS_PER_REQUEST
) -> Callable[[Ask], Question]:
    """Make a question of a function that asks it; the function `ask_x` asks the question `x`."""

    def make(ask: Ask) -> Question:
        name = ask.__name__.removeprefix("ask_")
        return Question(name, title, decides, max_requests, ask, tokens)

    return make
