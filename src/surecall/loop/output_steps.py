"""Asking for a value at the end of a run: down the ways of asking, with the exact errors.

Each way is tried once and as often again as `max_output_retries` says. A refused request leads to
the next way, and so do replies that could not be used. All of it is decided without I/O.
"""

from typing import Final

from msgspec.structs import replace

from surecall.base.errors import Code, ProviderError, ProviderStatusError
from surecall.base.records import Final as Ended
from surecall.base.records import Message, ModelRequest
from surecall.calls.teach import retell_history
from surecall.exchange.prompting import taught_way
from surecall.exchange.provider_rules import fit_history
from surecall.models.profiles import deep_merge

from .output import OutputMode, OutputReading, render_format
from .plan import Plan
from .steps import (
    Accepted,
    AskModel,
    Emit,
    Fail,
    Finish,
    OutputState,
    Replied,
    Reraise,
    RunState,
    Step,
)
from .wording import ASK_FOR_OUTPUT, explain_output, tell_output_errors

_NOT_ABOUT_THE_FORM: Final = frozenset({401, 402, 403, 407, 408, 409, 413, 429, 503, 504, 529})
"""Statuses that another way of asking does not change."""
_MAX_ERRORS: Final = 8


def current_mode(plan: Plan, state: RunState) -> OutputMode:
    """Return in which way the value is asked for now."""
    assert state.output is not None
    return plan.output_modes[state.output.place.way]


def begin_output(state: RunState, plan: Plan, answer: str = "") -> RunState:
    """Return the state in which the value is asked for, after an answer or at the very start."""
    base = state.history
    if base and base[-1].role != "user":
        base = (*base, Message("user", ASK_FOR_OUTPUT))
    return replace(
        state, history=base, tools_enabled=False, output=OutputState(base=base, answer=answer)
    )


def ask_for_output(state: RunState, plan: Plan, answer: str, accepted: Accepted) -> Step:
    """Ask for the value after the answer that ends the use of tools."""
    state = begin_output(replace(state, turn=state.turn + 1), plan, answer)
    return Step(state, (AskModel(),), accepted)


def after_output_reply(state: RunState, replied: Replied, plan: Plan) -> Step:
    """Take the value, ask again with what was wrong, or go on to the next way of asking."""
    reading, output = replied.output, state.output
    assert reading is not None
    assert output is not None
    accepted = Accepted((), replied.reading.calls)
    content = replied.reading.content
    if reading.ok:
        state = replace(state, history=(*output.base, Message("assistant", content)))
        final = Ended(
            assistant_content_bytes=len(content.encode("utf-8", "replace")),
            any_tool_calls_seen=state.calls_seen > 0,
            any_tool_success_seen=state.any_success,
        )
        return Step(state, (Emit(final), Finish(content)), accepted)
    limit = plan.options.max_run_tokens
    if limit is not None and state.usage.total_tokens > limit:
        return Step(state, (_fail(reading, output, plan),), accepted)
    state = replace(state, turn=state.turn + 1, was_cut=reading.is_cut)
    place = output.place.next(len(plan.output_modes), plan.options.max_output_retries)
    if place is None:
        return Step(state, (_fail(reading, output, plan),), accepted)
    history = output.base
    if place.retries:
        said = (Message("assistant", content),) if content.strip() else ()
        told = Message("user", tell_output_errors(reading.errors[:_MAX_ERRORS]))
        history = (*history, *said, told)
    state = replace(state, history=history, output=replace(output, place=place))
    return Step(state, (AskModel(),), accepted)


def after_output_failure(state: RunState, error: ProviderError, plan: Plan) -> Step:
    """Go on to the next way of asking when the provider refused this one."""
    output = state.output
    assert output is not None
    place = output.place.next_way(len(plan.output_modes))
    is_status = isinstance(error, ProviderStatusError)
    if place is None or not is_status or error.status in _NOT_ABOUT_THE_FORM:
        return Step(state, (Reraise(error),))
    state = replace(state, history=output.base, output=replace(output, place=place))
    return Step(state, (AskModel(),))


def _fail(reading: OutputReading, output: OutputState, plan: Plan) -> Fail:
    first = reading.errors[0]
    kind = "was refused by the application's check" if reading.is_semantic else "could not be used"
    return Fail(
        Code.OUTPUT_INVALID,
        f"the model was asked for a value {output.place.asked} times, and the last reply {kind}: "
        f"{first.message}",
        "Look at turns[].output of the trace for what was wrong each time; a simpler schema or "
        "more max_output_retries may help.",
        {
            "asked": output.place.asked,
            "modes": list(plan.output_modes[: output.place.way + 1]),
            "errors": [
                {"code": str(error.code), "message": error.message, "path": error.path}
                for error in reading.errors
            ],
            "is_semantic": reading.is_semantic,
        },
    )


def build_output_request(plan: Plan, state: RunState, *, stream: bool) -> ModelRequest:
    """Build the request that asks for the value; tools are never part of it."""
    spec, mode = plan.output, current_mode(plan, state)
    assert spec is not None
    options = plan.options
    overrides = options.structured_request_overrides
    if mode == "prompt_only":
        overrides = options.prompt_only_request_overrides
    request = plan.request(
        state.history, tools_enabled=False, stream=stream, after_cut=state.was_cut
    )
    told = explain_output(spec.instructions, spec.schema, shows_schema=mode != "json_schema")
    system = f"{plan.system}\n\n{told}" if plan.system else told
    history = state.history
    if taught_way(state.mode) is not None:
        history = retell_history(history, "fenced")
    messages, _ = fit_history((Message("system", system), *history), plan.history_rules(state.mode))
    return replace(
        request,
        messages=messages,
        params=deep_merge(request.params, overrides) if overrides else request.params,
        response_format=render_format(spec, mode, plan.capabilities),
        parallel_tool_calls=None,
    )
