"""What official clients see of each named fault: straight from the provider, and with the gateway.

A trial is a whole conversation of a plain agent: the order, the call, its result, the answer.
"""

import asyncio
import json
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import anthropic
import openai
from google.genai import errors as google_errors

from gateway.harness import Served, make_settings, serve_gateway
from surecall.base.errors import Code
from surecall.faults import FaultServer, FaultyProvider
from surecall.faults.catalog import FAULTS, Fault

from .official_clients import AGENTS, Agent, Scene, Turn

CLIENTS = ("chat_completions", "responses", "messages", "gemini")
TOOLS: dict[str, dict[str, Any]] = {
    "save": {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "count": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "draft": {"type": "boolean"},
        },
        "required": ["title", "count", "tags"],
    },
    "ping": {"type": "object", "properties": {}},
}
ARGUMENTS: dict[str, Any] = {"title": 'a "b"\nc', "count": 3, "tags": ["x"], "draft": True}
ANSWER = "All is done."
RESULT = '{"ok": true}'
_TIMEOUT_S = 4.0
_TRIAL_S = 30.0
_MAX_TURNS = 4
_NO_ARGUMENTS = "empty_arguments_"
_CHOICES = {
    "named_ignored": "save",
    "none_ignored": "none",
    "required_ignored": "required",
    "tools_refused": "required",
}
"""What faults about the choice of a tool are asked, besides what they need for a run."""
_CUT_CODES = {Code.ARGUMENTS_TRUNCATED, Code.STREAM_TRUNCATED, Code.UPSTREAM_TRUNCATED_BODY}
_API_ERRORS = (openai.OpenAIError, anthropic.AnthropicError, google_errors.APIError)

BAD = frozenset({"wrong call", "unreadable call", "cut call", "called twice", "hangs", "crashes"})
"""What no client may see through the gateway, besides an answer without a word."""


class Trial(NamedTuple):
    """One fault, met by one client."""

    fault: Fault
    client: str
    stream: bool

    @property
    def name(self) -> str:
        """The trial in words."""
        return f"{self.fault.name} {self.client} {'stream' if self.stream else 'whole'}"


class Seen(NamedTuple):
    """What became of a trial."""

    kind: str
    """`right`, `error`, or how it went wrong."""
    detail: str = ""
    outcomes: tuple[str, ...] = ()
    """What the gateway says that it did, for each request."""

    @property
    def label(self) -> str:
        """The short form for a table."""
        if self.kind != "right":
            return "refused" if "refused" in self.outcomes else self.kind
        for outcome in ("reasked", "repaired"):
            if outcome in self.outcomes:
                return f"right, {outcome}"
        return "right"


def list_trials(stride: int = 1, start: int = 0) -> Iterator[Trial]:
    """Yield every n-th trial of the catalogue."""
    trials = [
        Trial(fault, client, stream)
        for fault in FAULTS
        for client in CLIENTS
        for stream in (False, True)
        if fault.reaches(stream=stream, protocol=client) and _can_ask(fault, client)
    ]
    yield from trials[start::stride]


def _can_ask(fault: Fault, client: str) -> bool:
    """Tell whether a client's format has a word for what the fault ignores."""
    return client != "gemini" or "request_overrides" not in fault.options


def make_scene(fault: Fault) -> Scene:
    """Return what the agent asks, so that the fault has something to spoil."""
    call, arguments = "save", ARGUMENTS
    if fault.name.startswith(_NO_ARGUMENTS):
        call, arguments = "ping", {}
    choice = str(fault.options.get("tool_choice", _CHOICES.get(fault.name, "auto")))
    if fault.options.get("tool_use_mode") == "enforced":
        choice = "required"
    order = f"call {call} with {json.dumps(arguments)} say {ANSWER}"
    return Scene(order, TOOLS, choice, "request_overrides" in fault.options)


def expected_calls(fault: Fault, client: str) -> list[tuple[str, Any]]:
    """Return the calls that are right."""
    if fault.name == "none_ignored":
        return []
    if fault.name.startswith(_NO_ARGUMENTS):
        return [("ping", {})]
    right: list[tuple[str, Any]] = [("save", ARGUMENTS)]
    return [*right, ("ping", {})] if fault.name == "id_repeated" else right


async def meet(trial: Trial, url: str) -> Seen:
    """Let a plain agent have its conversation at an address, and say what came of it."""
    scene = make_scene(trial.fault)
    agent: Agent = AGENTS[trial.client](
        url, f"faults:{trial.fault.name}", scene, stream=trial.stream, timeout=_TIMEOUT_S
    )
    try:
        async with asyncio.timeout(_TRIAL_S):
            return await _converse(agent, trial)
    except TimeoutError:
        return Seen("hangs")
    except _API_ERRORS as error:
        is_silent = isinstance(error, openai.APITimeoutError | anthropic.APITimeoutError)
        return Seen("hangs" if is_silent else "error", f"{type(error).__name__}: {error}"[:300])
    except Exception as error:  # whatever a client library does not expect
        name = type(error).__name__
        if "Timeout" in name:
            return Seen("hangs", name)
        is_wire = type(error).__module__.startswith("httpx")
        return Seen("error" if is_wire else "crashes", f"{name}: {error}"[:300])
    finally:
        with suppress(Exception):
            await agent.close()


async def _converse(agent: Agent, trial: Trial) -> Seen:
    expected = expected_calls(trial.fault, trial.client)
    made: list[tuple[Any, Any]] = []
    for _ in range(_MAX_TURNS):
        turn = await agent.ask()
        if not turn.calls:
            return _judge_end(turn, made, expected)
        wrong = _grade_calls(turn, trial.fault, expected)
        if wrong is not None:
            return wrong
        made += [(call.name, call.arguments) for call in turn.calls]
        if len(made) > len(expected):
            return Seen("called twice", str(made)[:300])
        agent.answer(RESULT)
    return Seen("called twice", "the conversation does not end")


def _grade_calls(turn: Turn, fault: Fault, expected: list[tuple[str, Any]]) -> Seen | None:
    for call in turn.calls:
        found = (call.name, call.arguments)
        if found not in expected:
            is_cut = Code.ARGUMENTS_TRUNCATED in (fault.refusal, fault.code)
            if not isinstance(call.arguments, dict):
                return Seen("cut call" if is_cut else "unreadable call", str(found)[:300])
            return Seen("cut call" if is_cut else "wrong call", str(found)[:300])
    if {fault.refusal, fault.code} & _CUT_CODES:
        return Seen("cut call", "from a reply that did not come to its end")
    ids = [call.id for call in turn.calls if call.id is not None]
    if len(set(ids)) < len(ids):
        return Seen("wrong call", f"the same id twice: {ids}")
    return None


def _judge_end(turn: Turn, made: list[Any], expected: list[tuple[str, Any]]) -> Seen:
    if len(made) < len(expected):
        return Seen("no call", turn.text[:300])
    if not turn.text.strip():
        return Seen("no answer")
    return Seen("right")


class Stand:
    """A faults server and, for each format, a gateway in front of it."""

    def __init__(self, provider: FaultyProvider, direct: str, gateways: dict[str, Served]) -> None:
        self._provider = provider
        self._direct = direct
        self._gateways = gateways

    async def meet_direct(self, trial: Trial) -> Seen:
        """Let the client talk to the provider itself."""
        self._provider.requests = 0
        return await meet(trial, self._direct)

    async def meet_gateway(self, trial: Trial) -> Seen:
        """Let the client talk to the gateway."""
        self._provider.requests = 0
        served = self._gateways[trial.client]
        served.store.records.clear()
        seen = await meet(trial, served.url)
        return seen._replace(outcomes=tuple(item.outcome for item in served.store.records))


@asynccontextmanager
async def open_stand() -> AsyncGenerator[Stand]:
    """Open a faults server and its gateways on loopback."""
    provider = FaultyProvider()
    async with FaultServer(provider) as faults:
        base = faults.url.removesuffix("/v1")
        with tempfile.TemporaryDirectory() as folder:
            opened = [_open_gateway(Path(folder), name, base) for name in CLIENTS]
            gateways = [await item.__aenter__() for item in opened]
            try:
                yield Stand(provider, base, dict(zip(CLIENTS, gateways, strict=True)))
            finally:
                for item in opened:
                    await item.__aexit__(None, None, None)


def _open_gateway(folder: Path, protocol: str, base: str) -> Any:
    version = "v1beta" if protocol == "gemini" else "v1"
    place = folder / protocol
    place.mkdir()
    text = (
        f'[upstreams.faults]\nurl = "{base}/{version}"\nprotocol = "{protocol}"\nprobe = "off"\n'
        "[upstreams.faults.deadlines]\nfirst_byte_s = 1.0\nidle_s = 1.0\ntotal_s = 2.5\n"
        "[retry]\nmax_wait_s = 1.0\n"
    )
    for fault in FAULTS:
        text += _write_model(fault)
    settings = make_settings(place, text)
    return serve_gateway(settings, facts=place / "facts.db")


def _write_model(fault: Fault) -> str:
    """Write what the settings say about a model: what a probe finds out, and limits of a run."""
    table = f'[models."faults:{fault.name}"]\n'
    if limit := fault.options.get("max_tool_args_bytes"):
        return f"{table}policy = {{ max_arguments_bytes = {limit} }}\n"
    if not fault.truth or fault.name == "none_ignored":
        return ""
    return f"{table}capabilities = {_write_toml(fault.truth)}\n"


def _write_toml(values: dict[str, Any]) -> str:
    fields = [f"{key} = {json.dumps(value)}" for key, value in values.items()]
    return f"{{ {', '.join(fields)} }}"


def find_failures(trial: Trial, seen: Seen) -> str | None:
    """Return what is not as it must be through the gateway."""
    if seen.kind in BAD or seen.kind == "no answer":
        return f"{trial.name}: {seen.kind} {seen.detail}"
    if trial.fault.repairable and seen.kind != "right":
        return f"{trial.name}: {seen.kind} {seen.detail}, though it can be repaired"
    if seen.kind == "no call":
        return f"{trial.name}: no call and no error: {seen.detail}"
    return None
