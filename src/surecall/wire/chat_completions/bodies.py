"""Whole bodies in this format: told to be clean, and written with what was put right in them."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from surecall.base.errors import JSONTextError
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Reading, Receipt, ToolCall, Usage
from surecall.text import decode, decoder_of
from surecall.wire.events import event_of, same_event
from surecall.wire.rewriting import (
    Checks,
    Clean,
    Patched,
    Plan,
    Tokens,
    arguments_text,
    found_clean,
    is_from_text,
    join_note,
    note_finish,
    note_type,
)

from .replies import is_function

_CALL_ENDS: Final = ("tool_calls", "function_call")


class _Function(Struct):
    name: str
    arguments: str


class _Call(Struct):
    id: str
    type: str
    function: _Function
    extra_content: Any = None
    thought_signature: Any = None


class _Message(Struct):
    role: str = "assistant"
    content: str | None = None
    tool_calls: list[_Call] | None = None
    function_call: _Function | None = None
    refusal: str | None = None
    reasoning: Any = None
    reasoning_content: Any = None
    reasoning_details: Any = None
    thinking_blocks: Any = None


class _Choice(Struct):
    message: _Message
    finish_reason: str | None = None


class _ChatUsage(Struct):
    prompt_tokens: Tokens = 0
    completion_tokens: Tokens = 0
    total_tokens: Tokens = 0


class _Completion(Struct):
    choices: list[_Choice]
    model: str | None = None
    usage: _ChatUsage | None = None
    error: Any = None


_decode_completion: Final = decoder_of(_Completion)


def read_clean(body: bytes, checks: Checks) -> Clean | None:
    """Return what a whole reply has, or `None` if it is not surely clean."""
    reply = _decode_completion(body)
    if reply.error or not reply.choices:
        return None
    echoes = False
    for choice in reply.choices:
        message = choice.message
        if message.role != "assistant":
            return None
        if message.tool_calls or message.function_call:
            take = _takes_older if checks.is_legacy else _takes_calls
            if not take(message, choice.finish_reason, checks):
                return None
            echoes = echoes or _has_echoes(message)
        elif (
            not checks.takes_text(message.content or message.refusal or "")
            or choice.finish_reason in _CALL_ENDS
        ):
            return None
    used = reply.usage
    usage = used and Usage(used.prompt_tokens, used.completion_tokens, used.total_tokens)
    return found_clean(body, reply.model, usage, checks, echoes=echoes)


def _takes_calls(message: _Message, finish: str | None, checks: Checks) -> bool:
    """Tell whether all calls can be used; one that was demanded by its name ends like a text."""
    if finish != "tool_calls" and not (finish == "stop" and checks.is_named):
        return False
    if message.function_call or not checks.takes_words(message.content):
        return False
    for call in message.tool_calls or ():
        function = call.function
        if call.type != "function":
            return False
        if not checks.takes_call(call.id, function.name, function.arguments):
            return False
        if call.extra_content and not checks.has_own_id(call.id, function.name):
            return False
    return True


def _takes_older(message: _Message, finish: str | None, checks: Checks) -> bool:
    """Tell the same of a call in the older field, for a client that looks for it there.

    One that was demanded by its name ends with a plain stop.
    """
    function = message.function_call
    if function is None or message.tool_calls or finish not in ("function_call", "stop"):
        return False
    return checks.takes_words(message.content) and checks.takes_unnamed(
        function.name, function.arguments
    )


def _has_echoes(message: _Message) -> bool:
    return bool(
        message.reasoning_content
        or message.reasoning
        or message.reasoning_details
        or message.thinking_blocks
        or any(call.extra_content or call.thought_signature for call in message.tool_calls or ())
    )


def patch_reply(document: dict[str, Any], plan: Plan) -> Patched:
    """Put the calls that were read into the endpoint's own document."""
    reading = plan.reading
    choice = as_fields(as_list(document.get("choices"))[0])
    message = dict(as_fields(choice.get("message")))
    receipts: tuple[Receipt, ...] = ()
    if plan.is_legacy:
        field = "function_call"
        message.pop("tool_calls", None)
        call = next(iter(plan.own), None)
        calls: Any = call and {"name": call.name, "arguments": arguments_text(call)}
    else:
        field = "tool_calls"
        calls = _chat_calls(message, plan)
        receipts = _note_types(message, calls)
        message.pop("function_call", None)
    message[field] = calls
    if not calls:
        del message[field]
    if is_from_text(reading):
        message["content"] = reading.content or None
        if reading.reasoning and not message.get("reasoning_content"):
            message["reasoning_content"] = reading.reasoning
    if not isinstance(message.get("content"), str | None):
        message["content"] = reading.content or None
    message.setdefault("content", None)
    if plan.note:
        message["content"] = join_note(message["content"] or "", plan.note)
    finish, place = field if calls else "stop", "/choices/0/finish_reason"
    receipts += note_finish(choice.get("finish_reason"), finish, place, has_calls=bool(calls))
    patched = {**choice, "message": message, "finish_reason": finish}
    return Patched({**document, "choices": [patched]}, receipts)


def _note_types(message: dict[str, Any], calls: list[Any]) -> tuple[Receipt, ...]:
    """Return a receipt for each call that came without its type."""
    given = as_list(message.get("tool_calls"))
    if len(given) != len(calls):
        return ()
    return tuple(
        note_type(number) for number, entry in enumerate(given) if not as_fields(entry).get("type")
    )


def _chat_calls(message: dict[str, Any], plan: Plan) -> list[Any]:
    given: Any = message.get("tool_calls")
    listed: list[Any] = [given] if isinstance(given, dict) else as_list(given)
    entries = [as_fields(entry) for entry in listed if isinstance(entry, dict)]
    own = [entry for entry in entries if is_function(entry)]
    if is_from_text(plan.reading) or len(own) < len(plan.calls):
        calls = [_chat_call({}, call) for call in plan.own]
        return calls + [entry for entry in entries if not is_function(entry)]
    left = list(plan.calls)
    patched: list[Any] = []
    for entry in entries:
        if not is_function(entry):
            patched.append(entry)
        elif left and (call := left.pop(0)) is not None:
            patched.append(_chat_call(entry, call))
    return patched


def _chat_call(entry: dict[str, Any], call: ToolCall) -> dict[str, Any]:
    function = {
        **as_fields(entry.get("function")),
        "name": call.name,
        "arguments": arguments_text(call),
    }
    rest = {key: value for key, value in entry.items() if key not in ("name", "arguments")}
    return {**rest, "id": call.id, "type": "function", "function": function}


def put_older_call(document: dict[str, Any]) -> dict[str, Any]:
    """Return a chat completion whose call is in the older field, if it has one."""
    choice = as_fields(as_list(document.get("choices"))[0])
    message = as_fields(choice.get("message"))
    calls = as_list(message.get("tool_calls"))
    if not calls:
        return document
    kept = {key: value for key, value in message.items() if key != "tool_calls"}
    kept["function_call"] = as_fields(calls[0])["function"]
    finish = choice.get("finish_reason")
    finish = "function_call" if finish == "tool_calls" else finish
    return {**document, "choices": [{**choice, "message": kept, "finish_reason": finish}]}


def join_parts(document: dict[str, Any], reading: Reading) -> dict[str, Any] | None:
    """Return a chat completion whose content is text, where it came in parts; else nothing."""
    choices = as_list(document.get("choices"))
    choice = as_fields(choices[0]) if len(choices) == 1 else {}
    message = as_fields(choice.get("message"))
    if not isinstance(message.get("content"), list):
        return None
    settled = {**message, "content": reading.content or None}
    if reading.reasoning and not message.get("reasoning_content"):
        settled["reasoning_content"] = reading.reasoning
    return {**document, "choices": [{**choice, "message": settled}]}


def move_thought(document: dict[str, Any], thought: str, text: str) -> dict[str, Any]:
    """Return a reply with the reasoning that was split off its text in its own place."""
    choice = as_fields(as_list(document.get("choices"))[0])
    message = {**as_fields(choice.get("message")), "content": text or None}
    if thought:
        before = message.get("reasoning_content")
        message["reasoning_content"] = f"{before}\n{thought}" if before else thought
    return {**document, "choices": [{**choice, "message": message}]}


_CHOICE_FIELDS: Final = ("index", "message", "finish_reason")
"""What of a reply goes elsewhere in its events; the rest, such as `logprobs`, stays as it is."""


def write_events(document: dict[str, Any], request: Mapping[str, Any]) -> bytes:
    """Return the events of a whole reply, which may have several choices."""
    return b"".join(_write_choices(document, request)) + same_event(b"[DONE]")


def _write_choices(document: dict[str, Any], request: Mapping[str, Any]) -> Iterator[bytes]:
    head = {name: item for name, item in document.items() if name not in ("choices", "usage")}
    head["object"] = "chat.completion.chunk"
    for item in as_list(document.get("choices")):
        choice = as_fields(item)
        delta = dict(as_fields(choice.get("message")))
        if calls := as_list(delta.get("tool_calls")):
            numbered = enumerate(map(as_fields, calls))
            delta["tool_calls"] = [{"index": number, **call} for number, call in numbered]
        place = {"index": choice.get("index", 0)}
        rest = {name: item for name, item in choice.items() if name not in _CHOICE_FIELDS}
        begun = {**place, **rest, "delta": delta, "finish_reason": None}
        yield event_of({**head, "choices": [begun]})
        ended: dict[str, Any] = {**place, "delta": {}, "finish_reason": choice.get("finish_reason")}
        yield event_of({**head, "choices": [ended]})
    options = as_fields(request.get("stream_options"))
    if options.get("include_usage") and "usage" in document:
        yield event_of({**head, "choices": [], "usage": document["usage"]})


def parse_first_token(body: bytes) -> dict[str, float]:
    """Return the log-probabilities of what the first token could be; nothing without them."""
    try:
        document = decode(body, surrogates="replace")
    except JSONTextError:
        return {}
    choice = next(iter(as_list(as_fields(document).get("choices"))), None)
    tokens = as_list(as_fields(as_fields(choice).get("logprobs")).get("content"))
    first = as_fields(next(iter(tokens), None))
    found: dict[str, float] = {}
    for item in (*as_list(first.get("top_logprobs")), first):
        fields = as_fields(item)
        token: Any = fields.get("token")
        logprob: Any = fields.get("logprob")
        if isinstance(token, str) and isinstance(logprob, int | float):
            found.setdefault(token, float(logprob))
    return found
