"""What may be done for one request of a client, where it goes, and what comes of it: as data."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, Literal, get_args

from msgspec import Struct

from surecall.base.errors import Code, ConfigError, RequestError, SurecallError, did_you_mean
from surecall.base.records import Defect, Receipt, Usage
from surecall.base.redaction import excerpt
from surecall.models.profiles import Capabilities, ResolvedCapabilities
from surecall.reading import ReadingLimits
from surecall.wire import WireProtocol

StepName = Literal["repair", "coerce", "reask", "force", "taught"]
"""What is tried for a call that cannot be used, in this order."""
STEPS: Final[tuple[StepName, ...]] = ("repair", "coerce", "reask", "force", "taught")
"""All steps, in the order in which they are tried."""

LikelyCalls = Literal["reask", "deliver", "leave"]
"""What becomes of a call of which a part may be missing: the model is asked again, it is delivered
with its receipt, or the reply is left as it arrived."""

RefusedCalls = Literal["auto", "deliver", "tell", "error"]
"""What becomes of calls that nothing made right: whole ones are delivered as the model made them,
all are told in the text of the reply, or the client gets an error. `auto` is `deliver` for clients
that run a loop: agent programs, and conversations with results of tools. For others it is `tell`
where the reply has any text or good calls, and otherwise `error`."""

Outcome = Literal["clean", "repaired", "reasked", "unrepaired", "refused", "relayed", "failed"]
"""What became of a request: nothing to do, repaired, asked again, delivered though a call could not
be made right, refused with reasons, passed on without being read, or failed at the endpoint."""


class Policy(Struct, frozen=True, kw_only=True):
    """The steps that may make the calls of one reply usable, and their budget.

    For example:

        surecall.Policy(max_requests=1).allows("repair")  # True
    """

    steps: tuple[StepName, ...] = STEPS
    """The steps that may be taken; none but these."""
    max_requests: int = 3
    """Requests to the endpoint for one request of the client, the first among them."""
    max_tokens: int | None = None
    """Tokens of all replies together; nothing more is asked once they are used up."""
    max_seconds: float = 120.0
    """How long after the first request another may begin."""
    hold_calls_s: float = 5.0
    """How long a native call in a stream is held back, so that it can be repaired or asked for
    again; after that it passes as it arrives, while nothing in it is in doubt."""
    hold_calls_bytes: int = 16_384
    """How many bytes of its arguments are held back before it passes."""
    likely_calls: LikelyCalls = "reask"
    likely_calls_by_tool: Mapping[str, LikelyCalls] = {}
    refused_calls: RefusedCalls = "auto"
    text_formats: bool = True
    """Whether calls that were written as text are looked for, where tools were offered."""
    repair_history: bool = True
    """Whether the conversation is repaired before it is sent."""
    repeated_calls: Literal["note", "tell"] = "note"
    """The same call with the same result for the third time in a conversation is a defect with a
    count; `tell` also adds a sentence to the result, which the model reads."""
    show_receipts: bool = False
    """Whether the reply gets a `surecall` member that says what was done."""
    limits: ReadingLimits = ReadingLimits()
    """How large arguments may be."""

    def __post_init__(self) -> None:
        """Refuse words that none of its fields knows."""
        chosen = (
            *(("steps", step, STEPS) for step in self.steps),
            ("likely_calls", self.likely_calls, get_args(LikelyCalls)),
            ("refused_calls", self.refused_calls, get_args(RefusedCalls)),
            ("repeated_calls", self.repeated_calls, ("note", "tell")),
        )
        for name, word, known in chosen:
            if word not in known:
                raise ConfigError(
                    Code.INVALID_OPTION,
                    f"{name} of a policy cannot be {word!r}.",
                    hint=did_you_mean(str(word), known),
                )

    def allows(self, step: StepName) -> bool:
        """Tell whether a step may be taken."""
        return step in self.steps

    def treats_likely(self, tool: str) -> LikelyCalls:
        """Return what becomes of a call to this tool that is only likely whole."""
        return self.likely_calls_by_tool.get(tool, self.likely_calls)


class Route(Struct, frozen=True, kw_only=True):
    """Where a request goes: the endpoint's wire format and model, and what that can do."""

    protocol: WireProtocol
    model: str
    capabilities: Capabilities = Capabilities()
    known: frozenset[str] = frozenset()
    """The capabilities that were declared or found out; the others are only assumed."""
    strategy: Literal["native", "taught"] = "native"
    request_defaults: dict[str, Any] = {}
    """Fields of the body for requests that do not have them."""

    @classmethod
    def of(
        cls,
        protocol: WireProtocol,
        model: str,
        found: ResolvedCapabilities,
        *,
        strategy: Literal["auto", "native", "taught"] = "auto",
        request_defaults: Mapping[str, Any] | None = None,
    ) -> "Route":
        """Return the way to a model; tools are taught only where it is known to lack them."""
        known = frozenset(name for name, origin in found.origins.items() if origin != "default")
        if strategy == "auto":
            lacks = "supports_tool_use" in known and not found.capabilities.supports_tool_use
            strategy = "taught" if lacks else "native"
        return cls(
            protocol=protocol,
            model=model,
            capabilities=found.capabilities,
            known=known,
            strategy=strategy,
            request_defaults=dict(request_defaults or {}),
        )

    @property
    def takes_bytes(self) -> bool:
        """Whether the endpoint is known to demand nothing of a conversation without calls."""
        if not self.known:
            return self.strategy == "native" and not self.capabilities.needs_reasoning_echo
        return self.strategy == "native" and not (
            self.lacks("supports_parallel_tools")
            or self.capabilities.needs_reasoning_echo
            or (self.lacks("allows_midturn_system") and not self.protocol.traits.has_dialects)
        )

    def lacks(self, capability: str) -> bool:
        """Tell whether a capability is known to be missing."""
        return capability in self.known and not getattr(self.capabilities, capability)


class Sent(Struct, frozen=True):
    """What the endpoint answered."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    attempts: int = 1
    """How often the request was sent for it."""


Send = Callable[[bytes], Awaitable[Sent]]
"""Sends a body to the endpoint of a route; raises `ProviderError` when nothing comes back."""


class Step(Struct, frozen=True):
    """One step that was taken, what came of it, and how many requests it cost."""

    name: str
    outcome: Literal["ok", "failed", "skipped"]
    requests: int = 0


class ParseError(Struct, frozen=True):
    """Why the first reply could not be used as it was."""

    mode: str
    """How calls were to be written: `native`, `fenced` or `object`."""
    error: str
    snippet: str


class Report(Struct, frozen=True, kw_only=True):
    """How an answer came about, whole or streamed."""

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

    def report(self) -> dict[str, Any]:
        """Return these fields, for an answer in another form that came about in the same way."""
        return {name: getattr(self, name) for name in Report.__struct_fields__}

    def describe(self) -> dict[str, Any]:
        """Return what was done to a reply, for those who ask."""
        return {
            "outcome": self.outcome,
            "upstream_requests": self.upstream_requests,
            "receipts": list(self.receipts),
            "steps": list(self.steps),
        }


class Delivered(Report, frozen=True, kw_only=True):
    """What the client is answered, and how it came about."""

    status: int
    body: bytes
    """In the wire format of the client."""
    headers: Mapping[str, str] = {}
    """Headers of the endpoint's answer that are the client's business, such as `retry-after`."""
    upstream_s: float = 0.0
    should_retry: bool | None = None
    """Whether the client should try again, where that is known."""


class Ending(Report, frozen=True, kw_only=True):
    """How a stream ends, or what has to be asked before it can."""

    data: bytes = b""
    """What is sent last: calls, finish, usage and the comment; or the error."""
    ask: bytes | None = None
    """A request to send to the endpoint. Its answer, streamed or whole, is fed to the same relay,
    and `finish` says again how the stream ends."""
    is_reply: bool = False
    """Whether the endpoint says why there is no whole reply in a valid one, which is sent as it
    is."""
    error_body: bytes | None = None
    """The endpoint's own words for it, where they are in the client's format, for an answer that is
    an error: as long as nothing was sent."""
    error_status: int | None = None
    """The status of such an answer, where the endpoint names one."""


REPORT_MEMBER: Final = "surecall"
"""Where a reply says what was done to it, when the request asks."""


REFUSED_CALLS_HEADER: Final = "x-surecall-refused-calls"
"""The header by which one request says what becomes of wrong calls."""
OUTCOME_HEADER: Final = "x-surecall-outcome"
RECEIPTS_HEADER: Final = "x-surecall-receipts"
"""How many receipts a reply has."""
_AGENTS: Final[dict[str, tuple[str, ...]]] = {
    "user-agent": (
        *("aider", "claude-cli", "cline", "codex", "crush", "geminicli", "goose", "kilo"),
        *("mini-swe-agent", "opencode", "openhands", "qwencode", "roo", "zed"),
    ),
    "x-title": ("aider", "cline", "crush", "goose", "kilo", "opencode", "openhands", "roo"),
}
"""How the values of their headers begin."""


def is_agent(headers: Iterable[tuple[str, str]]) -> bool:
    """Tell whether a request comes from a known agent program, which runs a loop.

    >>> from surecall.exchange.policy import is_agent
    >>> is_agent([("user-agent", "codex_cli_rs/0.47.0 (Debian 13.0.0; x86_64)")])
    True
    """
    return any(
        value.lower().startswith(_AGENTS[name]) for name, value in headers if name in _AGENTS
    )


def read_refused_calls(value: str) -> RefusedCalls:
    """Return what the header of a request says.

    Raises:
        RequestError: `INVALID_REQUEST`: a word that is not known.
    """
    words: tuple[RefusedCalls, ...] = get_args(RefusedCalls)
    word = value.strip().lower()
    for known in words:
        if word == known:
            return known
    raise RequestError(
        Code.INVALID_REQUEST,
        f"The header {REFUSED_CALLS_HEADER} is {excerpt(value, 40)!r}.",
        hint=f"It may be: {', '.join(words)}.",
    )
