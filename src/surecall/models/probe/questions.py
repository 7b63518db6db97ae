"""Questions to a provider: which calls, replies and judgements of fit it is capable of.

What its own list of models says of the context window is looked up here as well.
"""

import tomllib
from collections.abc import Awaitable, Callable, Mapping
from importlib import resources
from typing import Any, Final, NamedTuple, cast, get_args

from msgspec.structs import replace

from surecall.base.errors import Code, JSONTextError, ProviderError
from surecall.base.json_values import as_fields, as_list
from surecall.base.limits import MIB
from surecall.base.records import Message, ModelRequest, RawCall, ToolCall, ToolSpec
from surecall.base.redaction import Secret, mask_known, secrets_in_headers
from surecall.models.client import ClientLimits, Network, open_once
from surecall.models.client.network import Deadlines, join_url
from surecall.models.config import read_network
from surecall.models.profiles.entries import SchemaField
from surecall.reading import read_arguments
from surecall.schema import SchemaChecker
from surecall.text import decode
from surecall.wire import WireProtocol

from .asker import (
    CALL_NAMED,
    CALL_TWICE,
    CALL_UNNAMED,
    ECHO,
    NOTE,
    ONE_CODE,
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
from .fit_gate import find_threshold, measure_separation

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
    found = _grade_call(first, proves_sight=True)
    if found is not None:
        return found
    second = await asker.try_ask(user(CALL_NAMED), tools=(ECHO,))
    if isinstance(second, Refused):
        return unclear(f"one request with a tool is accepted, the next refused with {second.said}")
    found = _grade_call(second, proves_sight=False)
    if found is not None:
        return found
    for answer in (first, second):
        if answer.unusable:
            return unclear(f"asked for a call, but {answer.unusable}")
    return no(f"asked twice for a call, words came instead: {second.said}", supports_tool_use=False)


def _grade_call(answer: Answered, *, proves_sight: bool) -> Finding | None:
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


# Asks for JSON, as some providers demand, but in a form that JSON mode does not allow.
_OBJECT: Final = (
    "First write the sentence 'Here it is.', and below it, inside a ```json fence, "
    'a JSON object that has the key "word" with the value "ping".'
)
_SCHEMA: Final = 'Name a fruit as JSON, as in {"fruit": "..."}. Use no other key.'
_ONE_CODE_FORM: Final = {
    "type": "json_schema",
    "json_schema": {"name": "surecall_probe", "schema": ONE_CODE, "strict": True},
}
SCHEMA_FIELDS: Final[tuple[SchemaField, ...]] = get_args(SchemaField)
_GRAMMAR: Final = "Greet me in one short sentence."
_GRAMMAR_TEXT: Final = "surecall-q7"

_STABILITY_TEXTS: Final = tuple(
    f"Write a JSON object and nothing else, without a code fence: {wish}"
    for wish in (
        'the keys "name" and "age" for Ada, who is 36.',
        'the key "colours" with a list of three colours.',
        'the key "quote" with the text: She said "yes" and left.',
        'the keys "a" to "e", each with an object that has the keys "x" and "y" with a number.',
        'the key "lines" with a text of two lines.',
    )
)
_MIN_SAMPLES: Final = 3
_MEDIUM_SHARE: Final = 0.6


@question("Does response_format json_object hold?", "json_object", max_requests=1)
async def ask_json_object(asker: Asker) -> Finding:
    """Demand a JSON object while the question asks for words around it."""
    answer = await asker.try_ask(user(_OBJECT), response_format={"type": "json_object"})
    if isinstance(answer, Refused):
        return no(f"json_object is refused with {answer.said}", json_object=False)
    if answer.unusable:
        return unclear(f"a JSON object was demanded, but {answer.unusable}")
    if isinstance(_parse(answer.content), dict):
        return yes("asked for words around it, a bare object came", json_object=True)
    return no(f"json_object is accepted and ignored: {answer.said}", json_object=False)


@question(
    "Does response_format json_schema hold against a question that breaks it?",
    "json_schema",
    max_requests=1,
)
async def ask_json_schema(asker: Asker) -> Finding:
    """Demand a schema that the question asks to break."""
    answer = await asker.try_ask(user(_SCHEMA), response_format=_ONE_CODE_FORM)
    if isinstance(answer, Refused):
        return no(f"json_schema is refused with {answer.said}", json_schema=False)
    if answer.unusable:
        return unclear(f"a schema was demanded, but {answer.unusable}")
    if SchemaChecker(ONE_CODE).is_valid(_parse(answer.content)):
        return yes("asked for another shape, the schema's came", json_schema=True)
    return no(f"json_schema is accepted and ignored: {answer.said}", json_schema=False)


@question("Which field holds a reply to a schema?", "schema_field", max_requests=len(SCHEMA_FIELDS))
async def ask_schema_field(asker: Asker) -> Finding:
    """Demand a schema that the question asks to break, in each field that servers are known by."""
    if not asker.protocol.traits.has_dialects:
        return no(f"the wire format {asker.protocol.name} has no such field", schema_field=None)
    said: list[str] = []
    for field in SCHEMA_FIELDS:
        answer = await asker.try_ask(
            user(_SCHEMA), response_format=_ONE_CODE_FORM, schema_field=field
        )
        if isinstance(answer, Refused):
            said.append(f"{field} is refused with {answer.said}")
        elif answer.unusable:
            return unclear(f"a schema was demanded in {field}, but {answer.unusable}")
        elif SchemaChecker(ONE_CODE).is_valid(_parse(answer.content)):
            return yes(f"asked for another shape, that of {field} came", schema_field=field)
        else:
            said.append(f"{field} is accepted and ignored: {answer.said}")
    return no("; ".join(said), schema_field=None)


@question("Does a llama.cpp grammar hold?", "grammar", max_requests=1)
async def ask_grammar(asker: Asker) -> Finding:
    """Send a llama.cpp grammar that allows one text only."""
    if not asker.protocol.traits.has_dialects:
        return no(f"the wire format {asker.protocol.name} has no place for one", grammar=False)
    grammar = f'root ::= "{_GRAMMAR_TEXT}"'
    answer = await asker.try_ask(user(_GRAMMAR), params={"grammar": grammar})
    if isinstance(answer, Refused):
        return no(f"a grammar is refused with {answer.said}", grammar=False)
    if answer.content == _GRAMMAR_TEXT:
        return yes("asked for a greeting, the grammar's only text came", grammar=True)
    if answer.unusable:
        return unclear(f"a grammar was sent, but {answer.unusable}")
    return no(f"a grammar is accepted and ignored: {answer.said}", grammar=False)


@question(
    "Is JSON that is written as plain text whole every time?",
    "json_stability",
    max_requests=len(_STABILITY_TEXTS),
)
async def ask_json_stability(asker: Asker) -> Finding:
    """Ask for JSON as plain text a few times and count what came out whole."""
    samples: list[Answered] = []
    for text in _STABILITY_TEXTS:
        answer = await asker.ask(user(text))
        if not answer.unusable:
            samples.append(answer)
    if len(samples) < _MIN_SAMPLES:
        return unclear(f"only {len(samples)} of {len(_STABILITY_TEXTS)} replies were complete")
    whole = sum(isinstance(_parse(_strip_fence(answer.content)), dict) for answer in samples)
    evidence = f"{whole} of {len(samples)} objects written as plain text were whole"
    if whole == len(samples):
        return yes(evidence, json_stability="high")
    share = whole / len(samples)
    return no(evidence, json_stability="medium" if share >= _MEDIUM_SHARE else "low")


def _parse(text: str) -> Any:
    try:
        return decode(text)
    except JSONTextError:
        return None


def _strip_fence(text: str) -> str:
    """Return what is inside a fence that is around the whole text."""
    if not (text.startswith("```") and text.endswith("```")):
        return text
    return text.removesuffix("```").partition("\n")[2].strip()


_WORD: Final = "teal"
_BEFORE: Final = (Message("user", PLAIN), Message("assistant", "ready"))
_MIDTURN: Final = Message("system", f"From now on, answer only with the single word: {_WORD}")
_AFTER: Final = Message("user", "Say one word.")


@question(
    "May a system message be in the middle of a conversation?",
    "allows_midturn_system",
    max_requests=2,
)
async def ask_midturn_system(asker: Asker) -> Finding:
    """Send a system message in the middle of a conversation."""
    answer = await asker.try_ask((*_BEFORE, _MIDTURN, _AFTER))
    if isinstance(answer, Refused):
        return no(f"it is refused with {answer.said}", allows_midturn_system=False)
    if answer.unusable:
        return unclear(f"it is accepted, but {answer.unusable}")
    if _WORD in answer.content.lower():
        return yes("it is accepted and followed", allows_midturn_system=True)
    without = await asker.ask((*_BEFORE, _AFTER))
    count = answer.prompt_tokens
    if count and count == without.prompt_tokens:
        return no(
            f"it is dropped silently: {count} tokens in the prompt with it and without",
            allows_midturn_system=False,
        )
    return unclear(f"it is accepted but not followed: {answer.said}")


@question(
    "Must the reasoning of a turn with calls be sent back?", "needs_reasoning_echo", max_requests=3
)
async def ask_reasoning_echo(asker: Asker) -> Finding:
    """Send a turn with a call back without its reasoning, then with it."""
    first = await asker.try_ask(user(CALL_NAMED), tools=(ECHO,))
    if isinstance(first, Refused) or not first.reply.calls:
        return unclear("no structured call came, so there is no such turn")
    plain = await asker.try_ask(second_turn(first), tools=(ECHO,))
    if isinstance(plain, Answered):
        sent = "some" if first.reply.reasoning else "none"
        evidence = f"the turn is taken without reasoning; the model had sent {sent}"
        return no(evidence, needs_reasoning_echo=False)
    extra = first.reply.extra or {"reasoning_content": ""}  # some demand the field, blank or not
    again = await asker.try_ask(second_turn(first, extra), tools=(ECHO,))
    if isinstance(again, Refused):
        return unclear(f"the turn is refused with its reasoning too, with {again.said}")
    return yes(f"without it the turn is refused with {plain.said}", needs_reasoning_echo=True)


REPLY_QUESTIONS: Final = (
    ask_json_object,
    ask_json_schema,
    ask_schema_field,
    ask_grammar,
    ask_midturn_system,
    ask_reasoning_echo,
    ask_json_stability,
)


_MIN_FALSE_CALLS: Final = 0.2
"""A model that makes fewer needless calls is better left alone."""
_MIN_SEPARATION: Final = 0.85
"""Below this the answers of a model say too little to refuse a call for them."""


class _FitCase(NamedTuple):
    """A function, a request that it fits, and one that it does not."""

    name: str
    description: str
    arguments: list[str]
    fitting: str
    other: str

    @property
    def tool(self) -> ToolSpec:
        """The function as it is offered."""
        properties = {word: {"type": "string"} for word in self.arguments}
        parameters = {"type": "object", "properties": properties, "required": self.arguments}
        return ToolSpec(
            name=self.name, description=self.description, parameters=parameters, effect="read"
        )


_FUNCTIONS: Final = resources.files("surecall.models.probe").joinpath("functions.toml")
_CASES: Final = tuple(
    _FitCase(**row) for row in tomllib.loads(_FUNCTIONS.read_text("utf-8"))["functions"]
)


@question(
    "Does asking whether a function fits keep the model from needless calls?",
    "fit_threshold",
    "false_call_rate",
    "fit_separation",
    max_requests=3 * len(_CASES),
)
async def ask_fit(asker: Asker) -> Finding:
    """Offer each function for a request it does not fit, and ask about its fit in both cases."""
    false_calls = 0
    fitting: list[float] = []
    other: list[float] = []
    for case in _CASES:
        answer = await asker.ask(user(case.other), tools=(case.tool,))
        false_calls += bool(answer.calls(case.tool))
        for request, scores in ((case.fitting, fitting), (case.other, other)):
            asked = await asker.ask_fit(request, case.tool)
            if asked.score is not None:
                scores.append(asked.score)
            elif asked.says_yes is not None:
                scores.append(1.0 if asked.says_yes else -1.0)
    rate = false_calls / len(_CASES)
    if min(len(fitting), len(other)) < len(_CASES) // 2:
        return unclear("too few of its answers were yes or no")
    separation = round(measure_separation(fitting, other), 3)
    threshold = round(find_threshold(fitting, other), 3)
    evidence = (
        f"{false_calls} of {len(_CASES)} functions were called for requests they do not fit; "
        f"a fitting function scores above another one in {separation:.0%} of all pairs"
    )
    known: dict[str, Any] = {"false_call_rate": rate, "fit_separation": separation}
    if rate >= _MIN_FALSE_CALLS and separation >= _MIN_SEPARATION:
        return yes(f"{evidence}; the threshold is {threshold}", **known, fit_threshold=threshold)
    return no(evidence, **known, fit_threshold=None)


_DEADLINES: Final = Deadlines(connect_s=10.0, first_byte_s=10.0, idle_s=10.0, total_s=10.0)
_LIMITS: Final = ClientLimits(max_body_bytes=16 * MIB)

_WINDOW_FIELDS: Final = (
    "context_length",
    "context_window",
    "inputTokenLimit",
    "max_context_length",
    "max_input_tokens",
    "max_model_len",
    "n_ctx",
)
_INNER_FIELDS: Final = ("meta", "top_provider")


@question(
    "Does the provider's list name the size of the context window?",
    "context_window_tokens",
    max_requests=1,
    tokens=0,
)
async def ask_context_window(asker: Asker) -> Finding:
    """Look the context window up in the provider's list; it is never found out by filling it."""
    try:
        document = await asker.fetch_listing()
    except ProviderError as error:  # a provider may well have no list
        return unclear(f"there is no list of models: {error.message}", error.code)
    if document is None:
        return unclear("there is no list of models to look it up in")
    row = _row_of(document, asker.model)
    if row is None:
        return unclear("the provider's list does not have this model")
    sizes = dict(_window_sizes(row))
    if not sizes:
        return unclear("the provider's list does not name the size")
    found = ", ".join(f"{name} {size}" for name, size in sizes.items())
    return yes(f"its list says {found}", context_window_tokens=min(sizes.values()))


def _row_of(document: Any, model: str) -> dict[str, Any] | None:
    fields = as_fields(document)
    for row in as_list(fields.get("data") or fields.get("models")):
        names = (as_fields(row).get("id"), as_fields(row).get("name"))
        if model in names or f"models/{model}" in names:
            return as_fields(row)
    return None


def _window_sizes(row: dict[str, Any]) -> list[tuple[str, int]]:
    places = [("", row), *((f"{name}.", as_fields(row.get(name))) for name in _INNER_FIELDS)]
    return [
        (prefix + name, fields[name])
        for prefix, fields in places
        for name in _WINDOW_FIELDS
        if type(fields.get(name)) is int and fields[name] > 0
    ]


async def fetch_listing(
    base_url: str,
    protocol: WireProtocol,
    *,
    api_prefix: str | None = None,
    api_key: Secret | None = None,
    headers: Mapping[str, str] | None = None,
    network: Network | None = None,
) -> Any:
    """Ask a provider for its list of models.

    Args:
        base_url: Where the provider is.
        protocol: The wire format it speaks.
        api_prefix: Path below the base URL.
        api_key: The key, sent as the wire format has it.
        headers: What to send along.
        network: Proxies and certificates; by default those that the environment names.

    Raises:
        ProviderError: There is no list.
    """
    url = join_url(base_url, api_prefix, "/models", default_prefix=protocol.default_prefix)
    sent = {**_own_headers(protocol), **(headers or {})}
    if api_key:
        sent |= protocol.render_auth(api_key.reveal())
    secrets = secrets_in_headers(sent)
    try:
        return mask_known(await _fetch(url, sent, protocol, network))
    finally:
        secrets.clear()


def _own_headers(protocol: WireProtocol) -> dict[str, str]:
    """Return what the wire format sends with every request, such as the version of its API."""
    return protocol.render_request(ModelRequest(model="m", messages=user("m"))).headers


async def _fetch(
    url: str, headers: dict[str, str], protocol: WireProtocol, network: Network | None
) -> Any:
    async with open_once(
        "GET",
        url,
        headers,
        deadlines=_DEADLINES,
        limits=_LIMITS,
        network=read_network() if network is None else network,
    ) as answer:
        body = await answer.read()
    if not 200 <= answer.status < 300:
        raise protocol.parse_error(answer.status, dict(answer.headers), body)
    try:
        return decode(body, surrogates="replace")
    except JSONTextError:
        return {}
