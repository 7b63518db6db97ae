"""Whether tools reach the model, how it calls them, and whether a choice among them holds."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from surecall.records import ToolSpec

from .asker import Answered, Asker, Refused
from .dummy_tools import CALL_NAMED, CALL_UNNAMED, ECHO, NOTE, user
from .findings import Finding, no, unclear, yes

__all__ = ["ask_tool_choice", "ask_tools", "ask_tools_seen"]

_LEFT_OUT: Final = "the model's template leaves tools out"
_NO_CALL: Final = "Answer with the single word: hello. Do not call any tool."


async def ask_tools(asker: Asker) -> Finding:
    """Offer one tool and demand a call; the second time the tool is named."""
    if await _template_shows_tools(asker) is False:
        return no(_LEFT_OUT, supports_tool_use=False)
    first = await asker.try_ask(user(CALL_UNNAMED), tools=(ECHO,))
    if isinstance(first, Refused):
        return no(f"a request with a tool is refused with {first.said}", supports_tool_use=False)
    found = _call_found(first, proves_sight=True)
    if found is not None:
        return found
    second = await asker.try_ask(user(CALL_NAMED), tools=(ECHO,))
    if isinstance(second, Refused):
        return unclear(f"one request with a tool is accepted, the next refused with {second.said}")
    found = _call_found(second, proves_sight=False)
    if found is not None:
        return found
    for answer in (first, second):
        if answer.unusable:
            return unclear(f"asked for a call, but {answer.unusable}")
    return no(f"asked twice for a call, words came instead: {second.said}", supports_tool_use=False)


def _call_found(answer: Answered, *, proves_sight: bool) -> Finding | None:
    if answer.unusable and answer.reply.calls:
        return unclear(f"a call came, but {answer.unusable}")
    calls = answer.calls(ECHO)
    if not calls:
        return None
    if answer.reply.calls:
        return yes(f"a structured call of {ECHO.name} came", supports_tool_use=True)
    if answer.unusable:
        return unclear(f"a call came as text, but {answer.unusable}")
    evidence = f"the call came as text in the format {calls[0].format}"
    if proves_sight:
        return yes(evidence, supports_tool_use=True, text_formats=True)
    return yes(f"{evidence}, once the question named the tool", text_formats=True)


async def ask_tools_seen(asker: Asker) -> Finding:
    """Find out whether a server drops tools silently: its prompt is as long without them."""
    shown = await _template_shows_tools(asker)
    if shown is False:
        return no(_LEFT_OUT, supports_tool_use=False)
    if shown is True:
        return yes("the model's template has a place for tools")
    with_tools = await asker.try_ask(user(CALL_UNNAMED), tools=(ECHO,))
    if isinstance(with_tools, Refused):
        return unclear(f"a request with a tool is refused with {with_tools.said}")
    if with_tools.calls(ECHO):
        evidence = "the model called a tool whose name only its definition tells"
        return yes(evidence, supports_tool_use=True)
    without = await asker.ask(user(CALL_UNNAMED))
    long, short = with_tools.prompt_tokens, without.prompt_tokens
    if not long or not short:
        return unclear("the provider does not count the tokens of the prompt")
    counts = f"{long} tokens in the prompt with a tool, {short} without"
    if long == short:
        return no(f"the server drops tools silently: {counts}", supports_tool_use=False)
    if long < short:
        return unclear(f"the counts make no sense: {counts}")
    called = any(answer.calls(ECHO) for answer in asker.answers)
    return yes(counts, supports_tool_use=True) if called else yes(counts)


async def _template_shows_tools(asker: Asker) -> bool | None:
    """Ask a transport that knows the template of its model; most do not."""
    shows = cast(
        "Callable[[], Awaitable[bool | None]] | None",
        getattr(asker.transport, "template_shows_tools", None),
    )
    return await shows() if shows is not None else None


async def ask_tool_choice(asker: Asker) -> Finding:
    """Set each choice against a question that asks for the contrary."""
    forced = {"type": "function", "function": {"name": NOTE.name}}
    kinds = ["auto"]
    notes: list[str] = []
    for kind, question, choice, wanted in (
        ("none", CALL_NAMED, "none", None),
        ("required", _NO_CALL, "required", ECHO),
        ("named", CALL_NAMED, forced, NOTE),
    ):
        held, note = await _is_held(asker, question, choice, wanted)
        if held is None:
            return unclear(f"{kind}: {note}")
        if held:
            kinds.append(kind)
        notes.append(f"{kind}: {note}")
    verdict = yes if len(kinds) > 1 else no
    return verdict("; ".join(notes), tool_choices=tuple(kinds))


async def _is_held(
    asker: Asker, question: str, choice: Any, wanted: ToolSpec | None
) -> tuple[bool | None, str]:
    """Tell whether a choice holds against the question, and what came."""
    tools = (ECHO, NOTE)
    answer = await asker.try_ask(user(question), tools=tools, tool_choice=choice)
    if isinstance(answer, Refused):
        return False, f"refused with {answer.said}"
    calls = answer.calls(*tools)
    if answer.unusable and not (wanted is None and answer.unusable == "the reply was empty"):
        return None, answer.unusable
    if wanted is not None:
        names = {call.name for call in calls}
        fits = bool(names) if wanted is ECHO else names == {wanted.name}
        return fits, f"asked for the contrary, {answer.said} came"
    if calls:
        return False, f"{answer.said} came all the same"
    control = await asker.ask(user(question), tools=tools)
    if not control.calls(*tools):
        return False, "not shown: no call comes without it either"
    return True, "no call came, though one was asked for"
