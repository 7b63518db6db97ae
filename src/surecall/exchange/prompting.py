"""How tools are presented to the model: natively, or taught in the prompt."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict, replace

from surecall.base.records import Message, ModelRequest, ToolSpec
from surecall.calls.teach import (
    ASK_FOR_ANSWER,
    TaughtWay,
    reply_schema,
    retell_history,
    teach_tools,
)
from surecall.models.profiles import Capabilities
from surecall.schema import Loss, LossKind, Rewritten, clean_parameters, rewrite_schema

from .wording import repeat_request

PromptMode = Literal["native", "strict", "taught", "constrained"]
"""`native` sends tools as the provider defines it, `strict` asks it to hold arguments to their
schema; `taught` explains tools in the prompt, `constrained` also holds the whole reply to a schema.
"""

_SCHEMA_NAME: Final = "call_or_answer"


class PromptChoice(NamedTuple):
    """The mode in force, and why."""

    mode: PromptMode
    reason: str


def choose_mode(
    capabilities: Capabilities,
    origins: Mapping[str, str],
    *,
    wanted: PromptMode | Literal["auto"] = "auto",
    has_required: bool = False,
) -> PromptChoice:
    """Choose natively unless the model is known not to be shown any tools.

    Required tools that no `tool_choice` can bring about are called because a schema leaves no room
    for anything else.

    Args:
        capabilities: What the model can do.
        origins: Where each of these was learned.
        wanted: The mode that the caller asks for.
        has_required: Whether some tools have to be called.
    """
    if wanted != "auto":
        return PromptChoice(wanted, "the option tool_prompting says so")
    origin = origins.get("supports_tool_use", "default")
    if has_required and capabilities.json_schema:
        choices = origins.get("tool_choices", "default")
        if not capabilities.supports_tool_use:
            reason = f"required_tools are declared, and supports_tool_use is false ({origin})"
            return PromptChoice("constrained", reason)
        if choices != "default" and "required" not in capabilities.tool_choices:
            reason = f"required_tools are declared, and a forced tool_choice is ignored ({choices})"
            return PromptChoice("constrained", reason)
    if capabilities.supports_tool_use:
        return PromptChoice("native", f"supports_tool_use is true ({origin})")
    return PromptChoice("taught", f"supports_tool_use is false ({origin})")


def name_choice(tool: str) -> dict[str, Any]:
    """Return the choice of one tool."""
    return {"type": "function", "function": {"name": tool}}


def taught_way(mode: PromptMode) -> TaughtWay | None:
    """Return how calls are written in a mode; `None` when the provider has its own way."""
    if mode == "taught":
        return "fenced"
    return "object" if mode == "constrained" else None


def present_tools(
    request: ModelRequest,
    mode: PromptMode,
    capabilities: Capabilities,
    *,
    forced_tool: str | None = None,
    must_call: bool = False,
    lesson: tuple[ToolSpec, ...] | None = None,
    lists: bool = False,
    wish: str = "",
) -> ModelRequest:
    """Present the tools of a request to the model in the given mode.

    With a `lesson`, a model whose reply is held to a schema is always taught these tools, in the
    same words; only the schema says which of them it may call. With `lists`, it is held to a list
    of calls. The `wish` is what the user asked for: a model that has to call a tool reads it again
    behind the last result, because a small one else takes the first of several things found.
    """
    way = taught_way(mode)
    if lists and way == "object":
        way = "list"
    if way is not None:
        # Nobody but the lesson itself can hold a taught model to the choice.
        forced_tool = forced_tool or _chosen_tool(request)
        if request.tool_choice == "none":
            request = replace(request, tools=(), tool_choice=None)
    if not request.tools:
        return request if way is None else _ask_for_answer(request, way, capabilities, lesson)
    if forced_tool is not None:
        tools = tuple(tool for tool in request.tools if tool.name == forced_tool)
        choice = name_choice(forced_tool)
        request = replace(request, tools=tools or request.tools, tool_choice=choice)
        must_call = True
    if mode == "native":
        return request
    if mode == "strict":
        return replace(request, tools=tuple(_strict(tool) for tool in request.tools))
    assert way is not None
    tools, messages = request.tools, request.messages
    if must_call and mode == "constrained" and _has_found(messages):
        messages = (*messages, Message("user", repeat_request(wish)))
    taught = replace(
        request,
        messages=teach_tools(
            messages, lesson or tools, way, must_call=must_call and lesson is None
        ),
        tools=(),
        tool_choice=None,
        parallel_tool_calls=None,
    )
    if mode == "taught":
        return taught
    return _held_to_schema(
        taught, tools, capabilities, may_answer=not must_call, lists=way == "list"
    )


def _has_found(messages: Sequence[Message]) -> bool:
    """Tell whether a conversation ends with the result of a call, and one of them brought some."""
    results = [message for message in messages if message.role == "tool"]
    is_last = bool(results) and results[-1] is messages[-1]
    return is_last and not all(message.extra.get("is_error") for message in results)


def _chosen_tool(request: ModelRequest) -> str | None:
    choice = request.tool_choice
    if not isinstance(choice, dict):
        return None
    return next((tool.name for tool in request.tools if choice == name_choice(tool.name)), None)


def _ask_for_answer(
    request: ModelRequest,
    way: TaughtWay,
    capabilities: Capabilities,
    lesson: tuple[ToolSpec, ...] | None,
) -> ModelRequest:
    """Tell a conversation with calls to a model that is to answer now, without any tool."""
    if lesson is not None:
        asking = (*request.messages, Message("user", ASK_FOR_ANSWER))
        asked = replace(request, messages=teach_tools(asking, lesson, way))
        return _held_to_schema(asked, (), capabilities, may_answer=True)
    messages = retell_history(request.messages, way)
    if way == "fenced" or messages == request.messages:
        return replace(request, messages=messages)
    messages = retell_history((*request.messages, Message("user", ASK_FOR_ANSWER)), way)
    asked = replace(request, messages=messages)
    return _held_to_schema(asked, (), capabilities, may_answer=True)


def _held_to_schema(
    request: ModelRequest,
    tools: tuple[ToolSpec, ...],
    capabilities: Capabilities,
    *,
    may_answer: bool,
    lists: bool = False,
) -> ModelRequest:
    is_grammar = capabilities.grammar
    schema, _ = reply_schema(tools, may_answer=may_answer, is_grammar=is_grammar, lists=lists)
    form = {"name": _SCHEMA_NAME, "schema": schema, "strict": True}
    field = None if capabilities.json_schema else capabilities.schema_field
    return replace(
        request,
        response_format={"type": "json_schema", "json_schema": form},
        schema_field=field or "response_format",
    )


def fit_strictly(tool: ToolSpec) -> Rewritten:
    """Return the parameters of a tool as a provider can hold arguments to them."""
    parameters = clean_parameters(tool.parameters or {"type": "object", "properties": {}})
    return rewrite_schema(parameters, "openai_strict")


def _strict(tool: ToolSpec) -> ToolSpec:
    extra = {**tool.extra, "strict": True}
    return replace(tool, parameters=fit_strictly(tool).schema, extra=extra)


class SchemaLoss(Struct, frozen=True, kw_only=True):
    """One thing that the schema of a tool says and the provider was not told in this form."""

    tool: str
    mode: str
    """`strict` or `constrained`: the way of presenting tools to the model that needed it."""
    place: str
    """JSON pointer into the parameters of the tool."""
    keyword: str
    kind: LossKind
    """`dropped` and `weakened` accept more than before; `changed` may accept less or other values;
    `over_limit` was kept, and the provider is likely to refuse it."""
    why: str


def find_losses(
    tools: Iterable[ToolSpec], mode: str, capabilities: Capabilities
) -> tuple[SchemaLoss, ...]:
    """Return what the tools lose in a way of presenting them; most ways lose nothing."""
    if mode not in ("strict", "constrained"):
        return ()
    return tuple(
        SchemaLoss(tool=tool.name, mode=mode, **asdict(loss))
        for tool in tools
        for loss in _losses_of(tool, mode, capabilities)
    )


def _losses_of(tool: ToolSpec, mode: str, capabilities: Capabilities) -> tuple[Loss, ...]:
    if mode == "constrained":
        return reply_schema((tool,), may_answer=False, is_grammar=capabilities.grammar)[1]
    return fit_strictly(tool).losses
