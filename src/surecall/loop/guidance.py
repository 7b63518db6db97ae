"""What a run has to do before it may answer, and which tools it may call until then.

Applications declare it: tools that must have succeeded (`required_tools`), tools that need others
first (`requires`), and tools that are closed for the time being (`available_when`). What follows
from that is decided here, from the plan and what the run remembers.
"""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import Code
from surecall.base.records import ErrorDetail, ModelRequest, ToolCall, ToolResult, ToolSpec
from surecall.exchange.ladder import Hold, choose_hold
from surecall.exchange.prompting import PromptMode, name_choice

from .plan import Plan
from .wording import explain_not_ready


class Guidance(Struct, frozen=True, kw_only=True):
    """What a run remembers about what it has to do."""

    succeeded: frozenset[str] = frozenset()
    """The tools that have succeeded in this run."""
    closed: frozenset[str] = frozenset()
    """The tools whose `available_when` said no before the request of this turn."""
    unfit: frozenset[str] = frozenset()
    """The tools that were found not to fit the request."""
    nudges: int = 0
    """How often the model was asked to go on with what is missing."""
    held_by: Hold | None = None
    """How the request of this turn makes the model call a tool, when it was nudged."""
    is_narrow: bool = False
    """Whether this turn offers nothing but the next steps."""
    reads: dict[str, ToolResult] = {}
    """First results of reads, by the key of the call, since a tool with effects succeeded."""


class Nudge(Struct, frozen=True):
    """Asking a model to go on instead of taking its answer."""

    missing: tuple[str, ...]
    """The required tools that have not succeeded; none where just any call is demanded."""
    steps: tuple[str, ...]
    """The tools to call next."""
    held_by: Hold


def is_guided(plan: Plan, guidance: Guidance) -> bool:
    """Tell whether anything is declared that this run has to heed."""
    return plan.declares_steps or bool(guidance.closed or guidance.unfit)


def find_missing(plan: Plan, guidance: Guidance) -> tuple[str, ...]:
    """Return the required tools that have not succeeded yet."""
    required = plan.options.required_tools
    if not required:
        return ()
    return tuple(name for name in required if name not in guidance.succeeded)


def find_hidden(plan: Plan, guidance: Guidance) -> dict[str, tuple[str, ...]]:
    """Return the tools that cannot be called now, each with those that must succeed first."""
    hidden: dict[str, tuple[str, ...]] = {}
    if not is_guided(plan, guidance):
        return hidden
    for tool in plan.tools:
        waiting = tuple(name for name in tool.requires if name not in guidance.succeeded)
        if waiting or tool.name in guidance.closed or tool.name in guidance.unfit:
            hidden[tool.name] = waiting
    return hidden


def find_steps(plan: Plan, guidance: Guidance) -> tuple[str, ...]:
    """Return the tools that can be called now and lead to what is missing.

    What opens a closed tool is not known, so any tool that is shown may lead there.
    """
    hidden = find_hidden(plan, guidance)
    shown = tuple(tool.name for tool in plan.tools if tool.name not in hidden)
    steps: dict[str, None] = {}
    waiting = list(find_missing(plan, guidance))
    seen: set[str] = set()
    while waiting:
        name = waiting.pop(0)
        if name in seen:
            continue
        seen.add(name)
        if name not in hidden:
            steps[name] = None
        elif hidden[name]:
            waiting = [*hidden[name], *waiting]
        else:
            steps.update(dict.fromkeys(shown))
    return tuple(steps) or shown


def list_optional(plan: Plan) -> frozenset[str]:
    """Return the tools that are neither demanded nor needed for one that is."""
    needs = {tool.name: tool.requires for tool in plan.tools}
    needed: set[str] = set()
    waiting = [name for name in needs if plan.tool_choice == name_choice(name)]
    waiting += plan.options.required_tools
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting.extend(needs.get(name, ()))
    return frozenset(needs.keys() - needed)


def refuse_not_ready(plan: Plan, guidance: Guidance) -> dict[str, ErrorDetail]:
    """Return the refusal of each tool that cannot be called now."""
    hidden = find_hidden(plan, guidance)
    return {
        name: explain_not_ready(name, waiting, is_unfit=name in guidance.unfit)
        for name, waiting in hidden.items()
    }


# requests


def guide_request(
    request: ModelRequest, plan: Plan, guidance: Guidance, mode: PromptMode
) -> ModelRequest:
    """Offer only tools that can be called now, and force a call where the model was nudged."""
    if not request.tools:
        return request
    offered = offer_tools(plan, guidance)
    choice = request.tool_choice
    if not offered:
        choice = None
    elif guidance.held_by == "forced_choice" and mode in ("native", "strict"):
        step = _find_named_step(plan, guidance)
        choice = "required" if step is None else name_choice(step)
    elif isinstance(choice, dict) and all(choice != name_choice(tool.name) for tool in offered):
        choice = "auto"  # nobody can be made to call a tool that is not offered yet
    return replace(request, tools=offered, tool_choice=choice)


def offer_tools(plan: Plan, guidance: Guidance) -> tuple[ToolSpec, ...]:
    """Return the tools that are offered in a turn."""
    hidden = find_hidden(plan, guidance)
    steps = find_steps(plan, guidance) if guidance.is_narrow else ()
    return tuple(
        tool for tool in plan.tools if tool.name not in hidden and (not steps or tool.name in steps)
    )


def must_call(plan: Plan, guidance: Guidance, mode: PromptMode) -> bool:
    """Tell whether the reply of a turn is held to a schema that leaves no room for an answer."""
    if mode != "constrained":
        return False
    return guidance.held_by == "schema" or bool(find_missing(plan, guidance))


def find_lesson(plan: Plan, guidance: Guidance, mode: PromptMode) -> tuple[ToolSpec, ...] | None:
    """Return what every turn teaches, so that prompts keep their beginning.

    A schema masks tools where replies are held to one; elsewhere the lesson itself has to.
    """
    return plan.tools if mode == "constrained" and is_guided(plan, guidance) else None


# nudges


def find_nudge(
    plan: Plan, guidance: Guidance, mode: PromptMode, *, calls_seen: int
) -> Nudge | None:
    """Return how the model is asked to go on instead of taking its answer, if it is.

    In enforced mode that is tried once, and only where the reply can be held to a call.
    """
    options = plan.options
    missing = find_missing(plan, guidance)
    if guidance.nudges >= options.max_step_nudges or not plan.tools_allowed:
        return None
    if not missing and (
        options.tool_use_mode != "enforced"
        or plan.tool_choice == "none"
        or calls_seen
        or guidance.nudges
    ):
        return None
    steps = find_steps(plan, guidance)
    can_name = _find_named_step(plan, guidance) is not None
    held_by = choose_hold(plan.capabilities, mode, can_name=can_name)
    if missing:
        return Nudge(missing, steps, held_by)
    return None if held_by == "words" else Nudge((), steps, held_by)


def _find_named_step(plan: Plan, guidance: Guidance) -> str | None:
    """Return the one tool to force by its name, where the provider honours that.

    Where just any call is demanded, it is forced only if there is no other tool.
    """
    steps = find_steps(plan, guidance)
    is_clear = bool(find_missing(plan, guidance)) or len(steps) == 1
    is_honoured = "named" in plan.capabilities.tool_choices
    return steps[0] if steps and is_clear and is_honoured else None


def may_call_again(plan: Plan, guidance: Guidance, mode: PromptMode) -> bool:
    """Tell whether tools are offered after calls; when all is done, only the answer is left."""
    if guidance.unfit and not offer_tools(plan, guidance):
        return False
    if not _is_all_done(plan, guidance):
        return True
    default = "answer" if mode == "constrained" else "go_on"
    return (plan.options.after_required or default) == "go_on"


def _is_all_done(plan: Plan, guidance: Guidance) -> bool:
    """Tell whether all that was demanded has succeeded; the only tool, forced, is demanded too."""
    if plan.options.required_tools:
        return not find_missing(plan, guidance)
    is_forced = len(plan.tools) == 1 and plan.tool_choice == name_choice(plan.tools[0].name)
    return is_forced and plan.tools[0].name in guidance.succeeded


# what calls leave behind


def note_results(
    plan: Plan,
    guidance: Guidance,
    calls: Iterable[tuple[str, ToolCall]],
    results: Iterable[ToolResult],
) -> Guidance:
    """Return the guidance after these results; `calls` are those of the reply, with their keys."""
    results = tuple(results)
    succeeded = {result.name for result in results if result.ok}
    unfit = {
        result.name for result in results if Code.TOOL_DOES_NOT_FIT in result.envelope.error_codes
    }
    guidance = replace(
        guidance, succeeded=guidance.succeeded | succeeded, unfit=guidance.unfit | unfit
    )
    if not find_missing(plan, guidance):
        return replace(guidance, reads={}) if guidance.reads else guidance
    if any(plan.has_effects(name) for name in succeeded):
        return replace(guidance, reads={})
    by_id = {result.call_id: result for result in results if result.ok}
    reads = {key: by_id[call.id] for key, call in calls if key and call.id in by_id}
    return replace(guidance, reads={**reads, **guidance.reads})
