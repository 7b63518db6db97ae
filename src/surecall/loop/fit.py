"""The fit gate: before an optional tool runs, the model is asked whether it fits the request."""

from time import perf_counter
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import ProviderError
from surecall.base.records import FitJudged, ToolCall, ToolSpec, Usage
from surecall.base.redaction import open_log
from surecall.models.transport import Transport
from surecall.tools import Dispatcher
from surecall.wire import WireProtocol

from .events import EventEmitter
from .guidance import list_optional
from .plan import Plan
from .steps import RunCalls
from .wording import DOES_NOT_FIT

if TYPE_CHECKING:
    from surecall.models.probe.fit import FitAsker

_log = open_log("surecall.loop")


class FitCheck(Struct, frozen=True, kw_only=True):
    """One question about the fit of a tool, and what came of it."""

    tool: str
    fits: bool
    score: float | None = None
    """Log-probability of yes less log-probability of no; unset after a plain answer."""
    threshold: float | None = None
    requests: int = 1
    usage: Usage | None = None
    elapsed_ms: float = 0.0
    error: str | None = None
    """The code of what kept the model from being asked; the tool then counts as fitting."""


def uses_gate(plan: Plan) -> bool:
    """Tell whether a run asks about the fit of its optional tools."""
    if plan.options.fit_gate == "auto":
        return plan.capabilities.fit_threshold is not None
    return plan.options.fit_gate == "on"


class FitGate:
    """Asks about each optional tool once in a run, before its first call."""

    def __init__(
        self,
        plan: Plan,
        transport: Transport,
        protocol: WireProtocol,
        dispatcher: Dispatcher,
        emitter: EventEmitter,
    ) -> None:
        self._plan = plan
        self._transport = transport
        self._protocol = protocol
        self._dispatcher = dispatcher
        self._emitter = emitter
        self._optional = list_optional(plan)
        self._checks: dict[str, FitCheck] = {}
        self._asker: FitAsker | None = None

    async def check(self, wanted: RunCalls) -> tuple[RunCalls, tuple[FitCheck, ...]]:
        """Return the calls with refusals of tools that do not fit, and the questions asked."""
        asked: list[FitCheck] = []
        for call in wanted.calls:
            tool = self._tool_of(call, wanted)
            if tool is None or tool.name in self._checks:
                continue
            found = self._checks[tool.name] = await self._ask(tool)
            asked.append(found)
        unfit = {name: DOES_NOT_FIT for name, check in self._checks.items() if not check.fits}
        if unfit:
            wanted = replace(wanted, not_ready={**unfit, **wanted.not_ready})
        return wanted, tuple(asked)

    def _tool_of(self, call: ToolCall, wanted: RunCalls) -> ToolSpec | None:
        """Return the optional tool that a call would run."""
        if self._dispatcher.effect_of(call) is None:
            return None
        tool = self._dispatcher.resolve(call.name)
        if tool is None or tool.name not in self._optional or tool.name in wanted.not_ready:
            return None
        return tool.spec

    async def _ask(self, tool: ToolSpec) -> FitCheck:
        started = perf_counter()
        threshold = self._plan.capabilities.fit_threshold
        check = FitCheck(tool=tool.name, fits=True, threshold=threshold)
        try:
            answer = await self._open().ask(self._plan.request_text, tool)
        except ProviderError as error:
            _log.warning("whether %s fits could not be asked: %s", tool.name, error.code)
            check = replace(check, requests=max(error.attempts, 1), error=str(error.code))
        else:
            check = replace(
                check,
                fits=answer.fits(threshold),
                score=answer.score,
                requests=answer.requests,
                usage=answer.usage,
            )
        check = replace(check, elapsed_ms=(perf_counter() - started) * 1000)
        self._emitter.emit(
            FitJudged,
            tool=check.tool,
            fits=check.fits,
            score=check.score,
            threshold=check.threshold,
            elapsed_ms=check.elapsed_ms,
        )
        return check

    def _open(self) -> "FitAsker":
        if self._asker is None:
            from surecall.models.probe.fit import FitAsker

            self._asker = FitAsker(self._transport, self._protocol, self._plan.model)
        return self._asker


def add_usage(checks: tuple[FitCheck, ...]) -> Usage | None:
    """Return what questions about the fit of tools have cost; nothing when none was asked."""
    if not checks:
        return None
    return sum((check.usage for check in checks if check.usage is not None), Usage())
