"""The streams and bodies of the golden corpus, and everything that becomes of one on the wire.

Inputs are made from the fixtures, the faults and a few writers, so the corpus holds outputs only:
what each means, and a digest of its bytes.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from surecall.base.errors import ProviderConnectionError, SurecallError
from surecall.base.records import RawCall, Reply, Usage, WireRequest
from surecall.exchange.mediation import mediate
from surecall.exchange.policy import Policy, Route, Sent
from surecall.exchange.request import ClientRequest
from surecall.exchange.streams import StreamRelay
from surecall.faults.catalog import FAULTS
from surecall.faults.provider import FaultyProvider
from surecall.text import encode_text
from surecall.wire import find_protocol

__all__ = ["CORPUS", "FORMATS", "Source", "bodies", "follow_body", "follow_stream", "streams"]

CORPUS = Path(__file__).with_name("wire.jsonl")
FORMATS = ("chat_completions", "gemini", "messages", "responses")
_RECORDED = Path(__file__).parents[1] / "wire" / "recorded"
_SKIPPED = {"transport", "size", "capability"}
_REPAIRS = ("repair", "coerce")
_SMALL = 13
_SEED = 7
_CHANGING = re.compile(rb"[0-9a-f]{32}|tc_[0-9a-f]{24}")
_TIMES = re.compile(rb'"(created|created_at|completed_at)":[ ]?\d+')
_SAVE = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "urgent": {"type": "boolean"},
    },
    "required": ["text", "count", "tags"],
    "additionalProperties": False,
}
_LOOK = {"type": "object", "properties": {"what": {"type": "string"}}}
ARGUMENTS = {"text": "Zoë said: it's 5 < 6\nand left.", "count": 3, "tags": ["a"], "urgent": True}
PROMPT = f"call save with {json.dumps(ARGUMENTS, ensure_ascii=False)} say All is saved."


class Source(NamedTuple):
    """A stream, event by event, or a body that is one piece."""

    id: str
    format: str
    pieces: tuple[bytes, ...]
    status: int = 200
    headers: dict[str, str] = {}  # noqa: RUF012 - never changed
    is_reset: bool = False


def streams() -> Iterator[Source]:
    """Yield every stream once."""
    for name in FORMATS:
        for file in sorted((_RECORDED / name).glob("stream_*.json")):
            yield Source(f"{name} {file.stem}", name, _recorded_events(file))
        yield from _faulty(name, is_stream=True)
        yield from _written(name)


def bodies() -> Iterator[Source]:
    """Yield every whole answer once."""
    for name in FORMATS:
        for file in sorted((_RECORDED / name).glob("*.json")):
            document = json.loads(file.read_text("utf-8"))
            if "body" in document:
                body = document["body"]
                data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
                status = document.get("status", 200)
                yield Source(f"{name} whole {file.stem}", name, (data,), status)
        yield from _faulty(name, is_stream=False)


def _recorded_events(file: Path) -> tuple[bytes, ...]:
    events: list[bytes] = []
    for entry in json.loads(file.read_text("utf-8"))["events"]:
        item = entry if isinstance(entry, dict) else {"data": entry}
        data = item["data"] if isinstance(item["data"], str) else json.dumps(item["data"])
        named = f"event: {item['event']}\n" if item.get("event") else ""
        events.append(f"{named}data: {data}\n\n".encode())
    return tuple(events)


def _faulty(name: str, *, is_stream: bool) -> Iterator[Source]:
    protocol = find_protocol(name)
    way = "" if is_stream else "whole "
    for fault in FAULTS:
        if fault.group in _SKIPPED or not fault.reaches(stream=is_stream, protocol=name):
            continue
        model = f"faults:{fault.name}"
        verb = "streamGenerateContent" if is_stream else "generateContent"
        path = f"/models/{model}:{verb}" if name == "gemini" else "/chat"
        body = json.loads(request_for(name, model, is_stream=is_stream).body)
        wire = WireRequest(path=path, body=body, stream=is_stream)
        answer = FaultyProvider(seed=_SEED).answer(protocol, wire)
        pieces: list[bytes] = []
        for piece in answer.pieces:
            if isinstance(piece, bytes):
                pieces.append(piece)
            elif hasattr(piece, "data"):
                pieces += [piece.data] * 4
        yield Source(
            f"{name} {way}{fault.name}",
            name,
            tuple(pieces) if is_stream else (answer.body,),
            answer.status,
            {key.lower(): value for key, value in answer.headers.items()},
            is_reset=answer.ending in ("reset", "stall"),
        )


def request_for(
    name: str, model: str = "m", *, is_stream: bool, with_tools: bool = True
) -> ClientRequest:
    """Return a request with two tools, in one of the formats."""
    functions = [
        {"name": tool, "description": "", "parameters": schema}
        for tool, schema in (("look", _LOOK), ("save", _SAVE), ("ping", {"type": "object"}))
    ] * with_tools
    said = [{"role": "user", "content": PROMPT}]
    body: dict[str, Any] = {"model": model, "messages": said}
    if name == "gemini":
        body = {"contents": [{"role": "user", "parts": [{"text": PROMPT}]}]}
        body |= {"tools": [{"functionDeclarations": functions}]} if functions else {}
    elif name == "responses":
        body = {"model": model, "input": said}
        body["tools"] = [{"type": "function", **entry} for entry in functions]
    elif name == "messages":
        body |= {"max_tokens": 100}
        body["tools"] = [
            {"name": entry["name"], "input_schema": entry["parameters"]} for entry in functions
        ]
    else:
        body["tools"] = [{"type": "function", "function": entry} for entry in functions]
    if name != "gemini" and is_stream:
        body["stream"] = True
    return ClientRequest.parse(name, json.dumps(body).encode(), model=model, stream=is_stream)


# Streams that a writer makes, and what is done to their bytes

_CALL = RawCall("call_9", "save", json.dumps(ARGUMENTS))
_BROKEN = RawCall("call_9", "save", '{"text": "a", count: 3, "tags": "a",}')
_TAGGED = f'<tool_call>{{"name": "save", "arguments": {json.dumps(ARGUMENTS)}}}</tool_call>'


class _Said(NamedTuple):
    text: str = ""
    calls: tuple[RawCall, ...] = ()
    reasoning: str = ""
    finish: str = ""
    is_refusal: bool = False


_SAID: dict[str, _Said] = {
    "text": _Said("All is saved. It took a while, but 5 < 6."),
    "call": _Said("", (_CALL,)),
    "text and calls": _Said("I save it.", (_CALL, RawCall("call_10", "look", '{"what":"a"}'))),
    "broken call": _Said("I save it.", (_BROKEN,)),
    "blank call": _Said("", (RawCall("call_9", "ping", ""),)),
    "unknown tool": _Said("", (RawCall("call_9", "sing", "{}"),)),
    "no id": _Said("", (RawCall("", "save", json.dumps(ARGUMENTS)),)),
    "repeated id": _Said("", (_CALL, _CALL)),
    "thought": _Said("Done.", (_CALL,), "I should save it."),
    "tagged call": _Said(f"I save it. {_TAGGED}"),
    "tagged call and more": _Said(f"{_TAGGED}\nIs it well?"),
    "cut tagged call": _Said(_TAGGED[:60], finish="length"),
    "tagged thought": _Said("<think>I should\nsave it.</think>\n\nAll is saved."),
    "tagged thought and call": _Said("<think>I should.</think>", (_CALL,)),
    "call in a thought": _Said(f"<think>I should. {_TAGGED}"),
    "thought in the midst": _Said("Well. <think>I should.</think> Yes."),
    "nothing": _Said(),
    "blank": _Said("  \n"),
    "finish without calls": _Said("All is saved.", finish="tool_calls"),
    "cut call": _Said("", (RawCall("call_9", "save", '{"text": "a", "cou'),), finish="length"),
    "filtered": _Said("All is", finish="content_filter"),
    "refusal": _Said("I cannot.", is_refusal=True),
}


def _stream(name: str, said: _Said) -> tuple[bytes, ...]:
    writer = find_protocol(name).open_writer(model="m", reply_id="r1")
    written = [writer.begin(), writer.reasoning(said.reasoning)]
    write = writer.refusal if said.is_refusal else writer.text
    written += [write(said.text[at : at + 4]) for at in range(0, len(said.text), 4)]
    written += [writer.call(call) for call in said.calls]
    finish = said.finish or ("tool_calls" if said.calls else "stop")
    usage = Usage(3, 4, 7)
    ended = Reply(calls=said.calls, finish_reason=finish, usage=usage, is_refusal=said.is_refusal)
    written.append(writer.end(ended))
    return _events(_fixed(b"".join(written)))


def _events(data: bytes) -> tuple[bytes, ...]:
    *blocks, rest = data.split(b"\n\n")
    return (*(block + b"\n\n" for block in blocks), *([rest] if rest else []))


def _edit_json(edit: Callable[[Any], Any]) -> Callable[[bytes], bytes]:
    def edit_event(event: bytes) -> bytes:
        head, mark, data = event.rpartition(b"data: ")
        if not data.startswith(b"{"):
            return event
        return head + mark + encode_text(edit(json.loads(data))).encode() + b"\n\n"

    return edit_event


def _without(*names: str) -> Callable[[Any], Any]:
    def drop(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: drop(item) for key, item in value.items() if key not in names}
        return [drop(item) for item in value] if isinstance(value, list) else value

    return drop


_SNAKES = {"functionCall": "function_call", "finishReason": "finish_reason"}


def _snake(value: Any) -> Any:
    if isinstance(value, dict):
        return {_SNAKES.get(key, key): _snake(item) for key, item in value.items()}
    return [_snake(item) for item in value] if isinstance(value, list) else value


_EDITS: dict[str, Callable[[bytes], bytes]] = {
    "returns": lambda event: event.replace(b"\n", b"\r\n"),
    "comments": lambda event: b": a comment\n\n" + event,
    "no blank": lambda event: event.replace(b"data: ", b"data:"),
    "no names": lambda event: event[event.find(b"data:") :],
    "lines": lambda event: event.replace(b'{"', b'{\ndata: "', 1),
    "more fields": _edit_json(lambda value: {**value, "more": {"a": [1, None]}}),
    "no ids": _edit_json(_without("id", "call_id", "item_id")),
    "no indexes": _edit_json(_without("index", "output_index", "content_index")),
    "no types": _edit_json(_without("type")),
    "no numbers": _edit_json(_without("sequence_number")),
    "no models": _edit_json(_without("model", "modelVersion", "usage", "usageMetadata")),
    "snakes": _edit_json(_snake),
}
_EDITED = ("text", "text and calls", "broken call", "tagged call", "tagged thought and call")


def _written(name: str) -> Iterator[Source]:
    for kind, said in _SAID.items():
        yield Source(f"{name} written {kind}", name, _stream(name, said))
    for kind in _EDITED:
        events = _stream(name, _SAID[kind])
        for edit, change in _EDITS.items():
            changed = tuple(map(change, events))
            if changed != events:
                yield Source(f"{name} written {kind}, {edit}", name, changed)
        for count in range(len(events)):
            if count > 4 and count < len(events) - 4:
                continue
            cut = (*events[:count], events[count][:-3])
            yield Source(f"{name} written {kind}, cut in {count}", name, cut)
            yield Source(f"{name} written {kind}, reset at {count}", name, cut[:-1], is_reset=True)


# What becomes of them


def follow_stream(source: Source, dump: Callable[[str, bytes], None] | None = None) -> Any:
    """Return what a stream means, and what each client gets of it, whole and in pieces."""
    data = b"".join(source.pieces)
    small = [data[at : at + _SMALL] for at in range(0, len(data), _SMALL)]
    splits = {"whole": [data], "events": list(source.pieces), "small": small}
    folded = {split: _fold(source, pieces) for split, pieces in splits.items()}
    found: dict[str, Any] = {"input": _digest(data), "folded": _joined(folded)}
    if source.status >= 300:
        return found
    number = FORMATS.index(source.format)
    is_cut = ", cut in" in source.id or ", reset at" in source.id
    for client in (source.format, FORMATS[(number + 1) % 4])[: 1 if is_cut else 2]:
        sent: dict[str, Any] = {}
        for split, pieces in (*splits.items(), ("pulses", source.pieces)):
            policy = Policy(steps=_REPAIRS)
            key, pulses = f"{client} {split}", split == "pulses"
            sent[split] = _relay(source, client, pieces, policy, key, dump, pulses=pulses)
        found[client] = _joined(sent)
    key = f"{source.format} again"
    found["again"] = _relay(source, source.format, source.pieces, Policy(), key, dump)
    if found["again"] == _first(found[source.format]):
        del found["again"]
    return _shorten(found)


def _first(sent: Any) -> Any:
    """Return what was sent of a stream that came in one piece."""
    return sent[0] if isinstance(sent, list) else sent


def _shorten(found: dict[str, Any]) -> dict[str, Any]:
    """Name what means the same as the folded stream so."""
    meaning = _first(found["folded"])
    short = _short(meaning) if isinstance(meaning, dict) else None
    for told in found.values():
        sent = _first(told)
        if isinstance(sent, dict) and short is not None and sent.get("to") == short:
            sent["to"] = "folded"
    return found


def _joined(splits: dict[str, Any]) -> Any:
    """Return what the first split gives, and behind it only what others give instead."""
    whole, *others = splits.items()
    differing = {
        split: _difference(whole[1], value) for split, value in others if value != whole[1]
    }
    return [whole[1], differing] if differing else whole[1]


def _difference(whole: Any, other: Any) -> Any:
    if not isinstance(whole, dict) or not isinstance(other, dict):
        return other
    return {
        name: other.get(name) for name in {**whole, **other} if other.get(name) != whole.get(name)
    }


def _fold(source: Source, pieces: Sequence[bytes]) -> Any:
    protocol = find_protocol(source.format)
    folder = protocol.open_stream(source.headers)
    shown: dict[str, str] = {}
    try:
        for piece in pieces:
            for delta in folder.feed(piece):
                shown[delta.kind] = shown.get(delta.kind, "") + delta.text
        reply = protocol.parse_message(folder.close())
    except SurecallError as error:
        return _plain([str(error.code), error.message[:80], shown])
    if shown != _shown(reply):
        return _plain([_meaning(reply), {"shown": shown}])
    return _plain(_meaning(reply))


def _shown(reply: Reply) -> dict[str, str]:
    said = {"text": reply.content or "", "reasoning": reply.reasoning or ""}
    return {key: text for key, text in said.items() if text}


def _meaning(reply: Reply) -> dict[str, Any]:
    usage = reply.usage
    found = {
        "text": reply.content,
        "reasoning": reply.reasoning,
        "calls": [[call.id, call.name, _known(call.arguments), call.extra] for call in reply.calls],
        "finish": reply.finish_reason,
        "usage": usage and [usage.input_tokens, usage.output_tokens],
        "model": reply.model,
        "refusal": reply.is_refusal,
        "defects": [str(defect.code) for defect in reply.defects],
        "extra": reply.extra,
    }
    return {key: value for key, value in found.items() if value}


def _known(arguments: Any) -> Any:
    """Return arguments, or a short word for those that most calls have."""
    written = arguments if isinstance(arguments, str) else encode_text(arguments)
    try:
        return "right" if json.loads(written) == ARGUMENTS else written
    except ValueError:
        return written


def _relay(
    source: Source,
    client: str,
    pieces: Sequence[bytes],
    policy: Policy,
    key: str,
    dump: Callable[[str, bytes], None] | None,
    *,
    pulses: bool = False,
) -> Any:
    request = request_for(client, is_stream=True)
    route = Route(protocol=find_protocol(source.format), model="m")
    relay = StreamRelay(request, route, policy, request_id="r-1", headers=source.headers)
    sent: list[bytes] = []
    asked: list[str] = []
    for piece in pieces:
        try:
            sent.append(relay.feed(piece))
        except SurecallError as error:
            return f"raises {error.code}"
        if pulses:
            sent += [relay.pulse(), relay.pulse()]
        if relay.done:
            break
    error = ProviderConnectionError("CONNECTION_RESET", "The connection was reset.")
    ending = relay.finish(error if source.is_reset else None)
    while ending.ask is not None:
        asked.append(_digest(ending.ask))
        for piece in _stream(source.format, _SAID["call"]):
            relay.feed(piece)
        ending = relay.finish()
    data = _fixed(b"".join((*sent, ending.data)))
    if dump is not None:
        dump(f"{source.id} | {key}", data)
    found = {
        "sent": _digest(data),
        "to": "" if source.format == client else _seen(client, data),
        "outcome": ending.outcome,
        "rules": [receipt.rule for receipt in ending.receipts],
        "error": ending.error and str(ending.error.code),
        "calls": ending.calls,
        "asked": asked,
        "model": ending.model_answered,
        "usage": ending.usage and ending.usage.total_tokens,
        "defects": [str(defect.code) for defect in ending.defects],
        "error_body": ending.error_body and _digest(ending.error_body),
    }
    if source.format == client and data != b"".join(source.pieces):
        found["to"] = _seen(client, data)
    return _plain({name: value for name, value in found.items() if value})


def _seen(client: str, data: bytes) -> Any:
    protocol = find_protocol(client)
    try:
        folder = protocol.open_stream()
        folder.feed(data)
        return _short(_meaning(protocol.parse_message(folder.close())))
    except SurecallError as error:
        return str(error.code)


def _short(meaning: dict[str, Any]) -> dict[str, Any]:
    """Return a meaning without what every client gets in the same way, as the bytes show."""
    return {key: value for key, value in meaning.items() if key not in ("model", "usage")}


async def follow_body(source: Source, dump: Callable[[str, bytes], None] | None = None) -> Any:
    """Return what each client gets of a whole answer."""
    found: dict[str, Any] = {"input": _digest(source.pieces[0])}
    number = FORMATS.index(source.format)
    for client in (source.format, FORMATS[(number + 1) % 4]):
        for steps in ((), _REPAIRS):
            key = f"{client} {'repaired' if steps else 'left'}"
            request = request_for(client, is_stream=False)
            route = Route(protocol=find_protocol(source.format), model="m")

            async def send(_: bytes) -> Sent:
                return Sent(source.status, source.headers, source.pieces[0])

            policy = Policy(steps=steps, max_requests=1)
            delivered = await mediate(request, route, policy, send)
            data = _fixed(delivered.body)
            if dump is not None:
                dump(f"{source.id} | {key}", data)
            seen: Any = ""
            if delivered.status < 300 and data != source.pieces[0]:
                protocol = find_protocol(client)
                seen = _short(_meaning(protocol.parse_message(protocol.parse_body(data))))
            told = {
                "sent": _digest(data),
                "to": seen,
                "outcome": delivered.outcome,
                "rules": [receipt.rule for receipt in delivered.receipts],
                "error": delivered.error and str(delivered.error.code),
                "calls": delivered.calls,
                "defects": [str(defect.code) for defect in delivered.defects],
            }
            found[key] = _plain({name: value for name, value in told.items() if value})
    return found


def _plain(value: Any) -> Any:
    return json.loads(_fixed(encode_text(value).encode()))


def _fixed(data: bytes) -> bytes:
    """Return bytes with what differs from run to run numbered by where it came first."""
    known: dict[bytes, bytes] = {}

    def number(found: re.Match[bytes]) -> bytes:
        return known.setdefault(found[0], b"made-%d" % len(known))

    return _TIMES.sub(rb'"\1":0', _CHANGING.sub(number, data))


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:12]
