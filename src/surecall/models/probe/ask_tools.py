"""Questions about calls: whether tools reach the model, and in which form calls come back."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from msgspec.structs import replace

from surecall.base.errors import Code, ProviderError
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Message, RawCall, ToolCall, ToolSpec
from surecall.reading import read_arguments

from .asker import (
    CALL_NAMED,
    CALL_TWICE,
    CALL_UNNAMED,
    ECHO,
    NOTE,
    PICK,
    PING,
    PLAIN,
    Answered,
    Asker,
    Refused,
    question,
    user,
)
from .findings import Finding, no, quote, unclear, yes

_LEFT_OUT: Final = "the model's template leaves tools out"
_NO_CALL: Final = "Answer with the single word: hello. Do not call any tool."


@question(
    "Does it call a tool, and in which form?", "supports_tool_use", "text_formats", max_requests=2
)
async def ask_tools(asker: Asker) -> Finding:
    """Offer one tool and demand a call; the second time the tool is named."""
    if await _template_shows_tools(asker) is False:
        return no(_LEFT_OUT, supports_tool_use=False)
    first = await asker.try_ask(user(CALL_UNNAMED), tools=(ECHO,))
    if isinstance(first, Refused):
        return no(f"a request with a tool is refused with {first.said}", supports_tool_use=False)
    found = _judge_call(first, proves_sight=True)
    if found is not None:
        return found
    second = await asker.try_ask(user(CALL_NAMED), tools=(ECHO,))
    if isinstance(second, Refused):
        return unclear(f"one request with a tool is accepted, the next refused with {second.said}")
    found = _judge_call(second, proves_sight=False)
    if found is not None:
        return found
    for answer in (first, second):
        if answer.unusable:
            return unclear(f"asked for a call, but {answer.unusable}")
    return no(f"asked twice for a call, words came instead: {second.said}", supports_tool_use=False)


def _judge_call(answer: Answered, *, proves_sight: bool) -> Finding | None:
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


@question(
    "Does the model get to see the tools, or does the server drop them?",
    "supports_tool_use",
    max_requests=2,
)
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
        evidence = "the model called a tool whose name is only in its definition"
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


@question(
    "Which kinds of tool_choice hold against a question that asks for the opposite?",
    "tool_choices",
    max_requests=4,
)
async def ask_tool_choice(asker: Asker) -> Finding:
    """Set each choice against a question that asks for the opposite."""
    forced = {"type": "function", "function": {"name": NOTE.name}}
    kinds = ["auto"]
    notes: list[str] = []
    for kind, text, choice, wanted in (
        ("none", CALL_NAMED, "none", None),
        ("required", _NO_CALL, "required", ECHO),
        ("named", CALL_NAMED, forced, NOTE),
    ):
        held, note = await _is_held(asker, text, choice, wanted)
        if held is None:
            return unclear(f"{kind}: {note}")
        if held:
            kinds.append(kind)
        notes.append(f"{kind}: {note}")
    verdict = yes if len(kinds) > 1 else no
    return verdict("; ".join(notes), tool_choices=tuple(kinds))


async def _is_held(
    asker: Asker, text: str, choice: Any, wanted: ToolSpec | None
) -> tuple[bool | None, str]:
    """Tell whether a choice holds against the question, and what came."""
    tools = (ECHO, NOTE)
    answer = await asker.try_ask(user(text), tools=tools, tool_choice=choice)
    if isinstance(answer, Refused):
        return False, f"refused with {answer.said}"
    calls = answer.calls(*tools)
    if answer.unusable and not (wanted is None and answer.unusable == "the reply was empty"):
        return None, answer.unusable
    if wanted is not None:
        names = {call.name for call in calls}
        fits = bool(names) if wanted is ECHO else names == {wanted.name}
        return fits, f"asked for the opposite, {answer.said} came"
    if calls:
        return False, f"{answer.said} came all the same"
    control = await asker.ask(user(text), tools=tools)
    if not control.calls(*tools):
        return False, "not shown: no call comes without it either"
    return True, "no call came, though one was asked for"


_SECOND_TURN: Final = f'Now call {ECHO.name} again, with the text "pong". Do not answer in words.'
_PING: Final = f"Call the tool {PING.name} now. Do not answer in words."
_PICK: Final = f'Call the tool {PICK.name} now with the code "Z9". Do not answer in words.'

# From the most liberal to the strictest; each with what ids must then match.
_ID_STYLES: Final = (
    (f"functions.{ECHO.name}:0", None),
    ("call_Surecall-probe-1", r"^[a-zA-Z0-9_-]{1,64}$"),
    ("Sure1Cal2", r"^[a-zA-Z0-9]{9}$"),
)


@question(
    "Do several calls come at once when they are asked for?",
    "supports_parallel_tools",
    max_requests=1,
)
async def ask_parallel_calls(asker: Asker) -> Finding:
    """Ask for two calls in one reply."""
    answer = await asker.try_ask(user(CALL_TWICE), tools=(ECHO,), parallel_tool_calls=True)
    if isinstance(answer, Refused):
        return no(
            f"parallel_tool_calls is refused with {answer.said}", supports_parallel_tools=False
        )
    calls = answer.calls(ECHO)
    if len(calls) > 1:
        return yes(f"asked for two calls, {len(calls)} came at once", supports_parallel_tools=True)
    if answer.unusable:
        return unclear(f"asked for two calls, but {answer.unusable}")
    if calls:
        return no("asked for two calls at once, one came", supports_parallel_tools=False)
    return unclear(f"asked for two calls, words came: {answer.said}")


@question("Does parallel_tool_calls=false give one call?", "honours_parallel_false", max_requests=2)
async def ask_parallel_false(asker: Asker) -> Finding:
    """Ask for two calls and forbid them at the same time."""
    allowed = await asker.try_ask(user(CALL_TWICE), tools=(ECHO,), parallel_tool_calls=True)
    if isinstance(allowed, Refused):
        return unclear(f"parallel_tool_calls is refused with {allowed.said}")
    if len(allowed.calls(ECHO)) < 2:
        return unclear("several calls at once never came, so that none could be held back")
    answer = await asker.try_ask(user(CALL_TWICE), tools=(ECHO,), parallel_tool_calls=False)
    if isinstance(answer, Refused):
        return no(
            f"parallel_tool_calls=false is refused with {answer.said}", honours_parallel_false=False
        )
    calls = answer.calls(ECHO)
    if len(calls) > 1:
        return no(f"{len(calls)} calls came in spite of it", honours_parallel_false=False)
    if answer.unusable or not calls:
        return unclear(f"no call came: {answer.unusable or answer.said}")
    return yes("one call came, though two were asked for", honours_parallel_false=True)


@question(
    "Can replies be streamed, and does a stream carry what a whole reply does?",
    "streaming",
    "stream_equals_whole",
    max_requests=4,
)
async def ask_streaming(asker: Asker) -> Finding:
    """Ask for the same call whole and streamed, and compare."""
    whole = await asker.try_ask(user(CALL_NAMED), tools=(ECHO,))
    tools = (ECHO,)
    if isinstance(whole, Refused) or not whole.calls(ECHO):
        whole, tools = await asker.ask(user(PLAIN)), ()
    text = CALL_NAMED if tools else PLAIN
    if whole.unusable:
        return unclear(f"there is no whole reply to compare with: {whole.unusable}")
    differences: list[str] = []
    for attempt in (1, 2):
        try:
            streamed = await asker.try_ask(user(text), tools=tools, stream=True, attempt=attempt)
        except ProviderError as error:
            if error.code != Code.STREAM_TRUNCATED:
                raise
            differences.append("it ended without a finish")
            continue
        if isinstance(streamed, Refused):
            return no(f"streaming is refused with {streamed.said}", streaming=False)
        if streamed.came_whole:
            return no("a stream was asked for, and a whole reply came", streaming=False)
        difference = _difference(whole, streamed)
        if difference is None:
            return _streams(differences)
        differences.append(difference)
    if differences == ["it ended without a finish"] * 2:
        return no("a stream came twice and never had a finish", streaming=False)
    return no(
        f"the same reply, streamed: {'; then '.join(differences)}",
        streaming=True,
        stream_equals_whole=False,
    )


def _streams(differences: list[str]) -> Finding:
    if differences:  # equal the second time: sampling, or a stream that breaks at times
        return yes(f"once equal, once not: {differences[0]}", streaming=True)
    return yes("streamed and whole, the same came", streaming=True, stream_equals_whole=True)


def _difference(whole: Answered, streamed: Answered) -> str | None:
    """Say in what way a streamed reply carries less or other than the whole one."""
    expected = [(call.name, call.arguments) for call in whole.calls(ECHO)]
    found = [(call.name, call.arguments) for call in streamed.calls(ECHO)]
    if len(found) != len(expected):
        return f"{len(found)} calls instead of {len(expected)}"
    if found != expected:
        return f"other arguments: {quote(str(found[0][1]))}"
    if bool(whole.reply.calls) != bool(streamed.reply.calls):
        return "the call came as text in one of them"
    if whole.reply.finish_reason != streamed.reply.finish_reason:
        return f"finish reason {quote(streamed.reply.finish_reason)}"
    if not expected and whole.content and not streamed.content:
        return "no text"
    return None


@question("Does every call get a unique id?", "unique_call_ids", max_requests=2)
async def ask_call_ids(asker: Asker) -> Finding:
    """Compare the ids of two calls in two turns of one conversation."""
    first = await asker.try_ask(user(CALL_NAMED), tools=(ECHO,))
    if isinstance(first, Refused) or not first.reply.calls:
        return unclear("no structured call came, so there is no id")
    own = first.reply.calls[0].id
    if not isinstance(own, str) or not own.strip():
        return no("a call came without an id", unique_call_ids=False)
    second = await asker.try_ask(second_turn(first, first.reply.extra), tools=(ECHO,))
    if isinstance(second, Refused):
        return unclear(f"a second turn is refused with {second.said}")
    if not second.reply.calls:
        return unclear("no structured call came in the second turn")
    if second.reply.calls[0].id == own:
        return no(f"calls of two turns have the id {quote(own)}", unique_call_ids=False)
    for answer in asker.answers:
        ids = [call.id for call in answer.reply.calls]
        if any(ids.count(item) > 1 for item in ids):
            return no("two calls of one reply have the same id", unique_call_ids=False)
    other = quote(str(second.reply.calls[0].id))
    return yes(f"two turns gave {quote(own)} and {other}", unique_call_ids=True)


def second_turn(first: Answered, extra: dict[str, Any] | None = None) -> tuple[Message, ...]:
    """Return the conversation after a first call was answered.

    Without `extra`, nothing is sent back that the model gave along with the call.
    """
    found = first.calls(ECHO)[:1]
    call = found[0] if found else _own_call("call_1")
    if extra is None:
        call = replace(call, extra={})
    return _with_result(call, extra) + user(_SECOND_TURN)


def _own_call(call_id: str) -> ToolCall:
    return ToolCall(id=call_id, name=ECHO.name, arguments={"text": "ping"})


def _with_result(call: ToolCall, extra: dict[str, Any] | None = None) -> tuple[Message, ...]:
    return (
        *user(CALL_NAMED),
        Message("assistant", None, tool_calls=(call,), extra=extra or {}),
        Message("tool", '{"text": "ping"}', tool_call_id=call.id),
    )


@question("Are ids of any shape taken back?", "tool_id_pattern", max_requests=3)
async def ask_id_pattern(asker: Asker) -> Finding:
    """Send a finished call back under our ids, from unusual to plain ones."""
    refusals: list[str] = []
    for call_id, pattern in _ID_STYLES:
        messages = _with_result(_own_call(call_id)) + user(_SECOND_TURN)
        answer = await asker.try_ask(messages, tools=(ECHO,))
        if isinstance(answer, Answered):
            taken = f"the id {call_id!r} is taken"
            evidence = "; ".join([*refusals, taken])
            if pattern is None:
                return yes(evidence, tool_id_pattern=None)
            return no(evidence, tool_id_pattern=pattern)
        refusals.append(f"{call_id!r} is refused with {answer.said}")
    return unclear("; ".join(refusals))


@question(
    "Is a call without arguments written as an empty object?", "empty_arguments", max_requests=1
)
async def ask_empty_arguments(asker: Asker) -> Finding:
    """Look at how a call without arguments is written."""
    answer = await asker.try_ask(user(_PING), tools=(PING,))
    if isinstance(answer, Refused):
        return unclear(f"a tool without parameters is refused with {answer.said}")
    if answer.unusable or not answer.reply.calls:
        return unclear(f"no structured call came: {answer.unusable or answer.said}")
    call = answer.reply.calls[0]
    style = _style_of(call, answer.raw.message)
    if style is None:
        return unclear(f"the arguments were {quote(str(call.arguments))}")
    verdict = yes if style == "object" else no
    return verdict(f"the arguments were written as {style}", empty_arguments=style)


def _style_of(call: RawCall, message: dict[str, Any]) -> str | None:
    arguments = call.arguments
    if arguments is None:
        return "null" if _has_null(message) else "missing"
    if isinstance(arguments, dict):
        return None if arguments else "object"
    if not isinstance(arguments, str):
        return None
    text = "".join(arguments.split())
    return {"{}": "object", "": "blank", "null": "null"}.get(text)


def _has_null(message: dict[str, Any]) -> bool:
    """Tell whether the first call names its arguments at all."""
    calls = as_list(message.get("tool_calls"))
    entry = as_fields(calls[0] if calls else None)
    return "arguments" in entry or "arguments" in as_fields(entry.get("function"))


@question("Does strict hold arguments to their schema?", "strict_tools", max_requests=2)
async def ask_strict_tools(asker: Asker) -> Finding:
    """Ask for an argument that the schema forbids, with and without `strict`."""
    strict = replace(PICK, extra={"strict": True})
    answer = await asker.try_ask(user(_PICK), tools=(strict,))
    if isinstance(answer, Refused):
        return no(f"strict is refused with {answer.said}", strict_tools=False)
    code = _code_of(answer)
    if code is None:
        return unclear(f"no structured call came: {answer.unusable or answer.said}")
    if code != "Q7":
        return no(f"{quote(code)} came, which the schema forbids", strict_tools=False)
    control = await asker.try_ask(user(_PICK), tools=(PICK,))
    loose = _code_of(control) if isinstance(control, Answered) else None
    if loose is None or loose == "Q7":
        return unclear("the model keeps to the schema without strict too")
    return yes(f"asked for {quote(loose)}, only strict made it 'Q7'", strict_tools=True)


def _code_of(answer: Answered) -> str | None:
    """Return the argument as the model wrote it, before anything was fitted to the schema."""
    if answer.unusable or not answer.reply.calls:
        return None
    value = read_arguments(answer.reply.calls[0].arguments).value
    code = value.get("code") if value else None
    return code if isinstance(code, str) else None


CALL_QUESTIONS: Final = (
    ask_tools,
    ask_tools_seen,
    ask_tool_choice,
    ask_parallel_calls,
    ask_parallel_false,
    ask_streaming,
    ask_call_ids,
    ask_id_pattern,
    ask_empty_arguments,
    ask_strict_tools,
)
