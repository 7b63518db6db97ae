"""One turn that answers with text and directives: asked for, read, and never raised about."""

from collections.abc import Callable, Iterable, Mapping
from time import perf_counter
from typing import Any, Final, Unpack, cast

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code, OutputError, SurecallError
from surecall.base.records import (
    Certainty,
    ErrorDetail,
    Event,
    Message,
    Receipt,
    TextDelta,
    Usage,
    clip,
)
from surecall.loop import (
    Arguments,
    OutputForm,
    OutputMode,
    OutputReading,
    PausedResult,
    Trace,
    run,
)
from surecall.loop.output import Check, ReadOutput, TextReader, find_reasons
from surecall.loop.session import Prompt
from surecall.tools import Approval

from .envelope import TEXT, Directive, Envelope, parse_envelope
from .registry import DirectiveRegistry, DirectiveType
from .text_reader import MemberTextReader

_NAME = "directives"
_TOLD: Final = (
    "Answer with one JSON object of two members. `assistant_text` is what the user reads. "
    "`directives` is a list of what the application is to do; it is empty when there is nothing to "
    'do. Each directive has a `type` and a `payload`:\n{"assistant_text": "...", "directives": '
    '[{"type": "...", "payload": {}}]}'
)

Types = DirectiveRegistry | Iterable[DirectiveType | Mapping[str, Any]]
"""A registry, or the types to make one of."""


class EnvelopeForm(OutputForm[Envelope]):
    """The form of an answer with directives: for `run(output=...)`, besides tools.

    Args:
        directives: The types of directives that there are.
        allowed: The types that may be used; all by default.
        check: Says what is wrong with an envelope; the model is asked again with these words.
        accept: `certain` takes only replies that are nothing but the envelope.
    """

    def __init__(
        self,
        directives: Types,
        *,
        allowed: Iterable[str] | None = None,
        check: Check | None = None,
        accept: Certainty = "likely",
    ) -> None:
        self.registry = make_registry(directives)
        self._allowed = None if allowed is None else tuple(allowed)
        self._accept_envelopes: Certainty = accept
        self._check_envelope = check
        super().__init__(
            self.registry.schema(self._allowed),
            name=_NAME,
            instructions=f"{_TOLD}\n\n{self.registry.instructions(self._allowed)}",
        )

    def read(
        self, text: str, finish_reason: str | None, mode: OutputMode, *, checks: bool = True
    ) -> ReadOutput:
        """Read the text of a reply as an envelope; directives of no use are left out."""
        found = parse_envelope(
            text,
            self.registry,
            allowed=self._allowed,
            finish_reason=finish_reason,
            accept=self._accept_envelopes,
        )
        reading = OutputReading(
            mode=mode,
            ok=found.ok,
            certainty=found.certainty,
            doubt=found.doubt,
            errors=found.errors,
            warnings=found.warnings,
            receipts=found.receipts,
            is_cut=found.is_cut,
        )
        if found.envelope is None:
            return ReadOutput(reading)
        reasons = find_reasons(self._check_envelope if checks else None, found.envelope)
        if reasons:
            wrong = tuple(ErrorDetail(Code.ASSERTION_FAILED, reason) for reason in reasons)
            refused = replace(reading, ok=False, is_semantic=True, errors=wrong + found.warnings)
            return ReadOutput(refused)
        return ReadOutput(reading, found.envelope, found.value)

    def open_text(self) -> TextReader:
        """Return what finds `assistant_text` in an envelope that arrives."""
        return MemberTextReader(TEXT)


class DirectResult(Struct, frozen=True, kw_only=True):
    """Text and directives; `errors` lists whatever went wrong."""

    ok: bool
    envelope: Envelope | None = None
    errors: tuple[ErrorDetail, ...] = ()
    history: tuple[Message, ...] = ()
    usage: Usage = Usage()
    elapsed_ms: float = 0.0
    trace: Trace | None = None
    """Unset when nothing was asked."""
    error: Exception | None = None
    """The error that a run would have raised."""
    pending: tuple[Approval, ...] = ()
    """What the run waits for: `surecall.resume(trace.run_id, output=EnvelopeForm(...))` goes on."""

    @property
    def attempts(self) -> tuple[OutputReading, ...]:
        """The outcome of every reply, in order."""
        turns = () if self.trace is None else self.trace.turns
        return tuple(turn.output for turn in turns if turn.output is not None)

    @property
    def assistant_text(self) -> str:
        """The text for the user; empty without an envelope."""
        return "" if self.envelope is None else self.envelope.assistant_text

    @property
    def directives(self) -> tuple[Directive, ...]:
        """The directives of the envelope."""
        return () if self.envelope is None else self.envelope.directives

    @property
    def warnings(self) -> tuple[ErrorDetail, ...]:
        """Why directives were left out of the envelope."""
        return () if self.envelope is None else self.envelope.warnings

    @property
    def mode(self) -> OutputMode | None:
        """The last way of asking."""
        return self.attempts[-1].mode if self.attempts else None

    @property
    def certainty(self) -> Certainty:
        """Whether the envelope was certain, or only likely."""
        return self.attempts[-1].certainty if self.attempts else "certain"

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        """Every change to what the model sent."""
        return () if self.trace is None else self.trace.receipts

    @property
    def repairs(self) -> int:
        """How often the model was asked again because its reply was not an envelope."""
        return sum(not item.ok and not item.is_semantic for item in self.attempts)

    @property
    def semantic_repairs(self) -> int:
        """How often it was asked again because the application's check refused the envelope."""
        return sum(item.is_semantic for item in self.attempts)


async def direct(
    prompt: Prompt,
    *,
    directives: Types,
    allowed: Iterable[str] | None = None,
    check: Check | None = None,
    accept: Certainty = "likely",
    on_text: Callable[[TextDelta], object] | None = None,
    **arguments: Unpack[Arguments],
) -> DirectResult:
    """Ask for text and directives in one turn; nothing is raised but cancellation.

    Args:
        prompt: A text, a message, or several messages.
        directives: The types of directives that there are.
        allowed: The types that may be used; all by default.
        check: Called with an envelope; says what is wrong with it, and the model is asked again
            with these words.
        accept: `certain` takes only replies that are nothing but the envelope.
        on_text: Called with each piece of `assistant_text` while the envelope is still arriving;
            the text starts over with every `turn`, when the model is asked again.
        arguments: Any argument of `run`. With tools, these are used before.
    """
    started = perf_counter()
    given: dict[str, Any] = dict(arguments)
    if on_text is not None:
        given = {**given, "stream": True, "on_event": _listen(on_text, given.get("on_event"))}
    try:
        form = EnvelopeForm(directives, allowed=allowed, check=check, accept=accept)
        result = await run(prompt, output=form, **given)
    except Exception as error:
        return _report(error, (perf_counter() - started) * 1000)
    paused = isinstance(result, PausedResult)
    return DirectResult(
        ok=not paused,
        envelope=None if paused else result.output,
        errors=() if result.trace.error is None else (result.trace.error,),
        history=result.history,
        usage=result.usage,
        elapsed_ms=result.elapsed_ms,
        trace=result.trace,
        pending=result.pending,
    )


def make_registry(directives: Types) -> DirectiveRegistry:
    """Take a registry as it is, or make one of types."""
    is_made = isinstance(directives, DirectiveRegistry)
    return directives if is_made else DirectiveRegistry(directives)


def _listen(
    on_text: Callable[[TextDelta], object], listener: Callable[[Event], object] | None
) -> Callable[[Event], object]:
    def listen(event: Event) -> None:
        if isinstance(event, TextDelta):
            on_text(event)
        if listener is not None:
            listener(event)

    return listen


def _report(error: Exception, elapsed_ms: float) -> DirectResult:
    """Put what went wrong into a result."""
    trace = cast("Trace | None", getattr(error, "trace", None))
    usage = Usage()
    for turn in () if trace is None else trace.turns:
        summary = turn.response_summary
        usage += (summary and summary.usage) or Usage()
    result = DirectResult(
        ok=False,
        errors=(_describe(error),),
        history=tuple(getattr(error, "history", ())),
        usage=usage,
        elapsed_ms=elapsed_ms,
        trace=trace,
        error=error,
    )
    if not isinstance(error, OutputError) or not result.attempts:
        return result
    return replace(result, errors=result.errors + result.attempts[-1].errors)


def _describe(error: Exception) -> ErrorDetail:
    if isinstance(error, SurecallError):
        return ErrorDetail(error.code, error.message, error.hint)
    return ErrorDetail(Code.INTERNAL_ERROR, clip(f"{type(error).__name__}: {error}"))
