"""Conversations that a provider would refuse, mended without loss before they are sent.

Every call has one result behind it, no two calls share an id, and arguments can be read. A history
that needs nothing keeps its bytes; one that is mended gives the same bytes next time, since each
change depends only on what it mends.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw

from surecall.errors import JSONTextError
from surecall.jsontext import canonical_hash, decode, decode_plain, encode, encode_text
from surecall.narrow import as_fields, as_list
from surecall.protocols.substitutes import stand_in_arguments
from surecall.reading import read_arguments
from surecall.records import Receipt, clip

from .wording import missing_result, tell_lost_result

ADD_RESULT: Final = "add_missing_result"
MOVE_RESULT: Final = "move_result"
RENAME_ID: Final = "rename_repeated_id"
RESTORE_ECHO: Final = "restore_echo"
TELL_RESULT: Final = "tell_lost_result"
WRITE_ARGUMENTS: Final = "rewrite_history_arguments"

LIST_KEYS: Final[Mapping[str, str]] = {
    "chat_completions": "messages",
    "gemini": "contents",
    "messages": "messages",
    "responses": "input",
}
"""Where the conversation is in a request, by wire format."""

_decode_members: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_items: Final = msgspec.json.Decoder(list[Raw]).decode


def repair_history(
    document: dict[str, Any],
    protocol: str,
    *,
    echoes: "EchoCache | None" = None,
    scope: str = "",
    with_reasoning: bool = True,
) -> tuple[dict[str, Any], tuple[Receipt, ...]]:
    """Return a request whose conversation can be sent, and what was changed; the same if nothing.

    Args:
        document: The request; it is not changed.
        protocol: The name of its wire format.
        echoes: What clients should have sent back and may have left out.
        scope: Whose conversation it is.
        with_reasoning: Whether reasoning is put back, and not only signatures of calls.
    """
    key = LIST_KEYS[protocol]
    items = document.get(key)
    if not isinstance(items, list):
        return document, ()
    mender = _MENDERS[protocol](as_list(items), document)
    mended = mender.mend()
    if echoes is not None:
        mended = echoes.restore(mended, protocol, scope, mender.receipts, with_reasoning)
    if not mender.receipts:
        return document, ()
    return {**document, key: mended}, tuple(mender.receipts)


def repair_body(
    body: bytes,
    protocol: str,
    *,
    echoes: "EchoCache | None" = None,
    scope: str = "",
    with_reasoning: bool = True,
) -> tuple[bytes, tuple[Receipt, ...]]:
    """Do the same to the bytes of a request: only those of messages that change are written anew.

    What cannot be read is left as it is: the endpoint will say so.
    """
    key = LIST_KEYS[protocol]
    try:
        members = _decode_members(body)
        written = members.get(key, b"")
        raws = _decode_items(written)
        items = [decode(bytes(raw), surrogates="replace") for raw in raws]
        context = {name: True for name in members if name != key}
    except (ValueError, RecursionError, JSONTextError):
        return body, ()
    document, receipts = repair_history(
        {**context, key: items},
        protocol,
        echoes=echoes,
        scope=scope,
        with_reasoning=with_reasoning,
    )
    if not receipts:
        return body, ()
    known = {id(item): bytes(raw) for item, raw in zip(items, raws, strict=True)}
    parts = [known.get(id(item)) or encode(item) for item in as_list(document[key])]
    mended = b"[" + b",".join(parts) + b"]"
    before = bytes(written)
    if body.count(before) == 1:
        return body.replace(before, mended), receipts
    others = [
        encode(name) + b":" + (mended if name == key else bytes(raw))
        for name, raw in members.items()
    ]
    return b"{" + b",".join(others) + b"}", receipts


def find_call_ids(document: Mapping[str, Any], protocol: str) -> frozenset[str]:
    """Return the ids that calls of a conversation have."""
    found: set[str] = set()
    for item in as_list(document.get(LIST_KEYS[protocol])):
        for call in _calls_in(as_fields(item), protocol):
            call_id = call.get("call_id") if protocol == "responses" else call.get("id")
            if isinstance(call_id, str):
                found.add(call_id)
    return frozenset(found)


def ends_with_results(document: Mapping[str, Any], protocol: str) -> bool:
    """Tell whether the last thing in a conversation is the result of a tool."""
    items = as_list(document.get(LIST_KEYS[protocol]))
    last = as_fields(items[-1]) if items else {}
    if protocol == "chat_completions":
        return last.get("role") in ("tool", "function")
    if protocol == "responses":
        return last.get("type") == "function_call_output"
    if protocol == "gemini":
        parts = [as_fields(part) for part in as_list(last.get("parts"))]
        return any("functionResponse" in part or "function_response" in part for part in parts)
    blocks = [as_fields(block) for block in as_list(last.get("content"))]
    return any(block.get("type") == "tool_result" for block in blocks)


def _calls_in(item: dict[str, Any], protocol: str) -> Iterator[dict[str, Any]]:
    if protocol == "chat_completions":
        yield from (as_fields(call) for call in as_list(item.get("tool_calls")))
    elif protocol == "responses":
        if item.get("type") == "function_call":
            yield item
    elif protocol == "messages":
        blocks = (as_fields(block) for block in as_list(item.get("content")))
        yield from (block for block in blocks if block.get("type") == "tool_use")
    else:
        for part in as_list(item.get("parts")):
            fields = as_fields(part)
            call = fields.get("functionCall") or fields.get("function_call")
            if isinstance(call, dict):
                yield as_fields(call)


# Arguments


def _mend_text(written: Any) -> str | None:
    """Return the text of arguments that are not the text of an object; `None` if nothing is off."""
    if isinstance(written, str):
        if decode_plain(written).__class__ is dict:
            return None
        try:
            if isinstance(decode(written), dict):
                return None
        except JSONTextError:
            pass
    return encode_text(_object_of(written))


def _mend_object(given: Any) -> dict[str, Any] | None:
    return None if isinstance(given, dict) else _object_of(given)


def _object_of(given: Any) -> dict[str, Any]:
    if given is None or (isinstance(given, str) and not given.strip()):
        return {}
    found = read_arguments(given, ended=True)
    if found.value is None or any(not receipt.lossless for receipt in found.receipts):
        return stand_in_arguments(given)
    return found.value


# Menders, one for each format


class _Mender:
    """What all formats have in common: ids that differ, and what was changed."""

    def __init__(self, items: list[Any], document: Mapping[str, Any]) -> None:
        self.items = items
        self.document = document
        self.receipts: list[Receipt] = []
        self._used: set[str] = set()

    def mend(self) -> list[Any]:
        raise NotImplementedError

    def note(self, rule: str, place: str, before: Any, after: Any, why: str = "") -> None:
        self.receipts.append(Receipt(rule, place, before, after, why=why))

    def take_id(self, call_id: Any, place: str) -> str:
        """Return an id that no earlier call has."""
        wanted = call_id if isinstance(call_id, str) and call_id else f"call_{len(self._used)}"
        given, number = wanted, 1
        while given in self._used:
            number += 1
            given = f"{wanted}__{number}"
        self._used.add(given)
        if given != call_id:
            self.note(RENAME_ID, place, call_id, given, "another call has this id, or it has none")
        return given


class _ListMender(_Mender):
    """Formats in which each result is an item of its own: chat completions and responses."""

    def is_result(self, item: dict[str, Any]) -> bool:
        raise NotImplementedError

    def calls_of(self, item: dict[str, Any]) -> bool:
        raise NotImplementedError

    def result_id(self, item: dict[str, Any]) -> Any:
        raise NotImplementedError

    def rename_result(self, item: dict[str, Any], call_id: str) -> dict[str, Any]:
        raise NotImplementedError

    def make_result(self, call_id: str, name: str) -> dict[str, Any]:
        raise NotImplementedError

    def tell_result(self, item: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def mend_calls(
        self, item: dict[str, Any], place: str
    ) -> tuple[dict[str, Any], list[tuple[Any, str, str]]]:
        """Return an item with its calls mended, and for each call its id before, after and name."""
        raise NotImplementedError

    def turn_end(self, start: int) -> int:
        """Return where the calls that begin at an item end."""
        return start + 1

    def mend(self) -> list[Any]:
        mended: list[Any] = []
        taken: set[int] = set()
        at = 0
        while at < len(self.items):
            item = as_fields(self.items[at])
            if self.calls_of(item):
                end = self.turn_end(at)
                waiting: list[tuple[Any, str, str]] = []
                for index in range(at, end):
                    kept = self.items[index]
                    if self.calls_of(as_fields(kept)):
                        kept, calls = self.mend_calls(as_fields(kept), f"/{index}")
                        waiting += calls
                    mended.append(kept)
                mended += self._results(waiting, end, taken)
                at = end
                continue
            if self.is_result(item):
                if at not in taken:
                    mended.append(self._orphan(item, at))
            else:
                mended.append(self.items[at])
            at += 1
        return mended

    def _results(self, waiting: list[tuple[Any, str, str]], end: int, taken: set[int]) -> list[Any]:
        """Return the results of the calls of one turn, in their order, with those that lack."""
        found: list[Any] = []
        is_near = True
        open_calls = list(waiting)
        for index in range(end, len(self.items)):
            item = as_fields(self.items[index])
            if not open_calls:
                break
            if not self.is_result(item):
                is_near = False
                again = {call[0] for call in open_calls} & self._ids_at(item)
                open_calls = (
                    [call for call in open_calls if call[0] not in again] if again else (open_calls)
                )
                continue
            match = next((c for c in open_calls if c[0] == self.result_id(item)), None)
            if match is None or index in taken:
                continue
            taken.add(index)
            open_calls.remove(match)
            if not is_near:
                self.note(MOVE_RESULT, f"/{index}", "behind another message", "behind its call")
            kept = self.items[index]
            found.append(kept if match[1] == match[0] else self.rename_result(item, match[1]))
        answered = {id(call) for call in waiting} - {id(call) for call in open_calls}
        for call in waiting:
            if id(call) not in answered or call in open_calls:
                if any(call is kept for kept in found):  # pragma: no cover - never a call
                    continue
                self.note(ADD_RESULT, f"/{end}", None, call[1], "the call has no result")
                found.append(self.make_result(call[1], call[2]))
        return found

    def _ids_at(self, item: dict[str, Any]) -> set[Any]:
        return set()

    def _orphan(self, item: dict[str, Any], index: int) -> Any:
        if self.document.get("previous_response_id") or self.document.get("conversation"):
            return self.items[index]  # the endpoint keeps the call
        self.note(TELL_RESULT, f"/{index}", clip(str(self.result_id(item))), "text")
        return self.tell_result(item)


class _ChatMender(_ListMender):
    def is_result(self, item: dict[str, Any]) -> bool:
        return item.get("role") == "tool"

    def calls_of(self, item: dict[str, Any]) -> bool:
        calls = item.get("tool_calls")
        return item.get("role") == "assistant" and isinstance(calls, list) and bool(calls)

    def result_id(self, item: dict[str, Any]) -> Any:
        return item.get("tool_call_id")

    def rename_result(self, item: dict[str, Any], call_id: str) -> dict[str, Any]:
        return {**item, "tool_call_id": call_id}

    def make_result(self, call_id: str, name: str) -> dict[str, Any]:
        return {"role": "tool", "tool_call_id": call_id, "content": missing_result(name)}

    def tell_result(self, item: dict[str, Any]) -> dict[str, Any]:
        content = item.get("content")
        if isinstance(content, list):
            head = {"type": "text", "text": tell_lost_result(self.result_id(item), "")}
            return {"role": "user", "content": [head, *as_list(content)]}
        text = content if isinstance(content, str) else encode_text(content)
        return {"role": "user", "content": tell_lost_result(self.result_id(item), text)}

    def _ids_at(self, item: dict[str, Any]) -> set[Any]:
        ids = (as_fields(call).get("id") for call in as_list(item.get("tool_calls")))
        return {call_id for call_id in ids if isinstance(call_id, str)}

    def mend_calls(
        self, item: dict[str, Any], place: str
    ) -> tuple[dict[str, Any], list[tuple[Any, str, str]]]:
        calls: list[Any] = []
        ids: list[tuple[Any, str, str]] = []
        for index, entry in enumerate(as_list(item.get("tool_calls"))):
            call, here = as_fields(entry), f"{place}/tool_calls/{index}"
            if call.get("type", "function") != "function" or not isinstance(entry, dict):
                calls.append(entry)
                if isinstance(entry, dict):
                    call_id = self.take_id(call.get("id"), f"{here}/id")
                    ids.append((call.get("id"), call_id, ""))
                    if call_id != call.get("id"):
                        calls[-1] = {**call, "id": call_id}
                continue
            function = as_fields(call.get("function"))
            call_id = self.take_id(call.get("id"), f"{here}/id")
            text = _mend_text(function.get("arguments"))
            if text is not None:
                before = clip(str(function.get("arguments")))
                self.note(WRITE_ARGUMENTS, f"{here}/function/arguments", before, clip(text))
                call = {**call, "function": {**function, "arguments": text}}
            if call_id != call.get("id"):
                call = {**call, "id": call_id}
            calls.append(call if call is not as_fields(entry) else entry)
            ids.append((as_fields(entry).get("id"), call_id, str(function.get("name") or "")))
        before = as_list(item.get("tool_calls"))
        same = all(new is old for new, old in zip(calls, before, strict=True))
        return item if same else {**item, "tool_calls": calls}, ids


class _ResponsesMender(_ListMender):
    def is_result(self, item: dict[str, Any]) -> bool:
        return item.get("type") == "function_call_output"

    def calls_of(self, item: dict[str, Any]) -> bool:
        return item.get("type") == "function_call"

    def result_id(self, item: dict[str, Any]) -> Any:
        return item.get("call_id")

    def rename_result(self, item: dict[str, Any], call_id: str) -> dict[str, Any]:
        return {**item, "call_id": call_id}

    def make_result(self, call_id: str, name: str) -> dict[str, Any]:
        return {"type": "function_call_output", "call_id": call_id, "output": missing_result(name)}

    def tell_result(self, item: dict[str, Any]) -> dict[str, Any]:
        output = item.get("output")
        text = output if isinstance(output, str) else encode_text(output)
        told = tell_lost_result(self.result_id(item), text)
        return {"type": "message", "role": "user", "content": told}

    def turn_end(self, start: int) -> int:
        end = start + 1
        while end < len(self.items):
            kind = as_fields(self.items[end]).get("type")
            if kind not in ("function_call", "reasoning"):
                break
            end += 1
        while as_fields(self.items[end - 1]).get("type") == "reasoning":
            end -= 1  # thoughts before something else belong to that
        return end

    def _ids_at(self, item: dict[str, Any]) -> set[Any]:
        return {item.get("call_id")} if self.calls_of(item) else set()

    def mend_calls(
        self, item: dict[str, Any], place: str
    ) -> tuple[dict[str, Any], list[tuple[Any, str, str]]]:
        given = item.get("call_id")
        call_id = self.take_id(given, f"{place}/call_id")
        text = _mend_text(item.get("arguments"))
        mended = item
        if text is not None:
            before = clip(str(item.get("arguments")))
            self.note(WRITE_ARGUMENTS, f"{place}/arguments", before, clip(text))
            mended = {**mended, "arguments": text}
        if call_id != given:
            mended = {**mended, "call_id": call_id}
        return mended, [(given, call_id, str(item.get("name") or ""))]


class _Open(NamedTuple):
    before: Any
    call_id: str
    name: str


class _BlockMender(_Mender):
    """Formats in which calls and results are parts of messages: messages and gemini."""

    parts_key = "content"
    model_role = "assistant"
    answers_by_name = False

    def mend(self) -> list[Any]:
        mended: list[Any] = []
        waiting: list[_Open] = []
        for index, entry in enumerate(self.items):
            item = as_fields(entry)
            if item.get("role") == self.model_role:
                if waiting:
                    mended.append(self._answer(waiting, f"/{index}"))
                kept, waiting = self._mend_model(item, f"/{index}")
                mended.append(entry if kept is item else kept)
                continue
            kept = self._mend_user(item, waiting, f"/{index}")
            waiting = []
            mended.append(entry if kept is item else kept)
        if waiting:
            mended.append(self._answer(waiting, f"/{len(self.items)}"))
        return mended

    def _answer(self, waiting: list[_Open], place: str) -> dict[str, Any]:
        return {"role": "user", self.parts_key: self._missing(waiting, place)}

    def _missing(self, waiting: list[_Open], place: str) -> list[Any]:
        for call in waiting:
            self.note(ADD_RESULT, place, None, call.call_id or call.name, "the call has no result")
        return [self.make_result(call) for call in waiting]

    def _mend_model(self, item: dict[str, Any], place: str) -> tuple[dict[str, Any], list[_Open]]:
        parts = item.get(self.parts_key)
        if not isinstance(parts, list):
            return item, []
        waiting: list[_Open] = []
        mended: list[Any] = []
        changed = False
        for index, part in enumerate(as_list(parts)):
            kept, call = self.mend_call(as_fields(part), f"{place}/{self.parts_key}/{index}")
            changed = changed or kept is not as_fields(part)
            mended.append(part if kept is as_fields(part) else kept)
            if call is not None:
                waiting.append(call)
        changed = any(new is not old for new, old in zip(mended, as_list(parts), strict=True))
        return {**item, self.parts_key: mended} if changed else item, waiting

    def _mend_user(self, item: dict[str, Any], waiting: list[_Open], place: str) -> dict[str, Any]:
        parts = item.get(self.parts_key)
        if not isinstance(parts, list):
            if not waiting or not isinstance(parts, str):
                return (
                    {**item, self.parts_key: [*self._missing(waiting, place)]}
                    if waiting
                    else (item)
                )
            said = {"type": "text", "text": parts}
            return {**item, self.parts_key: [*self._missing(waiting, place), said]}
        left = list(waiting)
        results: list[Any] = []
        others: list[Any] = []
        lost = False
        for index, part in enumerate(as_list(parts)):
            fields = as_fields(part)
            if not self.is_result(fields):
                others.append(part)
                continue
            call = self.find_call(fields, left)
            if call is None:
                lost = True
                self.note(
                    TELL_RESULT, f"{place}/{index}", clip(str(self.result_id(fields))), "text"
                )
                others.append(self.tell_result(fields))
                continue
            left.remove(call)
            renamed = call.before != call.call_id
            results.append(self.rename_result(fields, call.call_id) if renamed else part)
        mended = [*results, *self._missing(left, place), *others]
        if not (lost or left) and len(mended) == len(as_list(parts)):
            in_order = all(new is old for new, old in zip(mended, as_list(parts), strict=True))
            if in_order:
                return item
            if not waiting:
                return item
            if not any(new not in as_list(parts) for new in mended):
                self.note(MOVE_RESULT, place, "behind text", "before text")
        return {**item, self.parts_key: mended}

    def is_result(self, part: dict[str, Any]) -> bool:
        raise NotImplementedError

    def result_id(self, part: dict[str, Any]) -> Any:
        raise NotImplementedError

    def find_call(self, part: dict[str, Any], left: list[_Open]) -> _Open | None:
        raise NotImplementedError

    def rename_result(self, part: dict[str, Any], call_id: str) -> dict[str, Any]:
        raise NotImplementedError

    def make_result(self, call: _Open) -> dict[str, Any]:
        raise NotImplementedError

    def tell_result(self, part: dict[str, Any]) -> dict[str, Any]:
        raise NotImplementedError

    def mend_call(self, part: dict[str, Any], place: str) -> tuple[dict[str, Any], _Open | None]:
        raise NotImplementedError


class _MessagesMender(_BlockMender):
    def is_result(self, part: dict[str, Any]) -> bool:
        return part.get("type") == "tool_result"

    def result_id(self, part: dict[str, Any]) -> Any:
        return part.get("tool_use_id")

    def find_call(self, part: dict[str, Any], left: list[_Open]) -> _Open | None:
        wanted = self.result_id(part)
        return next((call for call in left if call.before == wanted), None)

    def rename_result(self, part: dict[str, Any], call_id: str) -> dict[str, Any]:
        return {**part, "tool_use_id": call_id}

    def make_result(self, call: _Open) -> dict[str, Any]:
        return {
            "type": "tool_result",
            "tool_use_id": call.call_id,
            "content": missing_result(call.name),
            "is_error": True,
        }

    def tell_result(self, part: dict[str, Any]) -> dict[str, Any]:
        content = part.get("content")
        text = content if isinstance(content, str) else encode_text(content)
        return {"type": "text", "text": tell_lost_result(self.result_id(part), text)}

    def mend_call(self, part: dict[str, Any], place: str) -> tuple[dict[str, Any], _Open | None]:
        if part.get("type") != "tool_use":
            return part, None
        given = part.get("id")
        call_id = self.take_id(given, f"{place}/id")
        fields = _mend_object(part.get("input"))
        mended = part
        if fields is not None:
            self.note(WRITE_ARGUMENTS, f"{place}/input", clip(str(part.get("input"))), "object")
            mended = {**mended, "input": fields}
        if call_id != given:
            mended = {**mended, "id": call_id}
        return mended, _Open(given, call_id, str(part.get("name") or ""))


class _GeminiMender(_BlockMender):
    parts_key = "parts"
    model_role = "model"

    def is_result(self, part: dict[str, Any]) -> bool:
        return "functionResponse" in part or "function_response" in part

    def _response(self, part: dict[str, Any]) -> dict[str, Any]:
        return as_fields(part.get("functionResponse") or part.get("function_response"))

    def result_id(self, part: dict[str, Any]) -> Any:
        response = self._response(part)
        return response.get("id") or response.get("name")

    def find_call(self, part: dict[str, Any], left: list[_Open]) -> _Open | None:
        response = self._response(part)
        call_id, name = response.get("id"), response.get("name")
        if call_id:
            found = next((call for call in left if call.call_id == call_id), None)
            if found is not None:
                return found
        return next((call for call in left if call.name == name), None)

    def rename_result(self, part: dict[str, Any], call_id: str) -> dict[str, Any]:
        return part  # calls keep their ids here

    def make_result(self, call: _Open) -> dict[str, Any]:
        told = as_fields(decode(missing_result(call.name)))
        response: dict[str, Any] = {"name": call.name, "response": told}
        return {"functionResponse": {"id": call.call_id, **response} if call.call_id else response}

    def tell_result(self, part: dict[str, Any]) -> dict[str, Any]:
        text = encode_text(self._response(part).get("response"))
        return {"text": tell_lost_result(self.result_id(part), text)}

    def mend_call(self, part: dict[str, Any], place: str) -> tuple[dict[str, Any], _Open | None]:
        key = "functionCall" if "functionCall" in part else "function_call"
        call = part.get(key)
        if not isinstance(call, dict):
            return part, None
        fields = as_fields(call)
        given = fields.get("args")
        arguments = None if given is None else _mend_object(given)
        if arguments is not None:
            self.note(WRITE_ARGUMENTS, f"{place}/{key}/args", clip(str(given)), "object")
            part = {**part, key: {**fields, "args": arguments}}
        call_id = fields.get("id")
        call_id = call_id if isinstance(call_id, str) else ""
        return part, _Open(call_id, call_id, str(fields.get("name") or ""))


_MENDERS: Final[Mapping[str, Callable[[list[Any], Mapping[str, Any]], _Mender]]] = {
    "chat_completions": _ChatMender,
    "gemini": _GeminiMender,
    "messages": _MessagesMender,
    "responses": _ResponsesMender,
}


# What providers want back


class EchoCache:
    """Keeps what came with calls and has to be sent back, for clients that leave it out.

    It is found by the id of the call together with what was called, so that nobody gets what
    belongs to another conversation by guessing an id.
    """

    def __init__(self, max_entries: int = 4096, max_entry_bytes: int = 64 * 1024) -> None:
        self._max_entries = max_entries
        self._max_entry_bytes = max_entry_bytes
        self._kept: OrderedDict[str, tuple[dict[str, Any], dict[str, Any]]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def keep(
        self,
        scope: str,
        call_id: str,
        name: str,
        arguments: Any,
        message_extra: dict[str, Any],
        call_extra: dict[str, Any],
    ) -> None:
        """Keep what came with one call and with the message around it."""
        if not (message_extra or call_extra):
            return
        if len(encode([message_extra, call_extra])) > self._max_entry_bytes:
            return
        key = _echo_key(scope, call_id, name, arguments)
        self._kept[key] = (message_extra, call_extra)
        self._kept.move_to_end(key)
        while len(self._kept) > self._max_entries:
            self._kept.popitem(last=False)

    def find(
        self, scope: str, call_id: str, name: str, arguments: Any
    ) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return what was kept for a call: of its message, and of itself."""
        return self._kept.get(_echo_key(scope, call_id, name, arguments)) if self._kept else None

    def restore(
        self,
        items: list[Any],
        protocol: str,
        scope: str,
        receipts: list[Receipt],
        with_reasoning: bool,
    ) -> list[Any]:
        """Return a conversation with what was left out put back."""
        if not self._kept or protocol not in ("chat_completions", "gemini"):
            return items
        put_back = self._restore_chat if protocol == "chat_completions" else self._restore_gemini
        mended: list[Any] = []
        for index, item in enumerate(items):
            kept = put_back(as_fields(item), scope, with_reasoning)
            if kept is not as_fields(item) and kept != item:
                receipts.append(Receipt(RESTORE_ECHO, f"/{index}", None, "what came with the call"))
                mended.append(kept)
            else:
                mended.append(item)
        return mended

    def _restore_chat(
        self, message: dict[str, Any], scope: str, with_reasoning: bool
    ) -> dict[str, Any]:
        if message.get("role") != "assistant":
            return message
        calls: list[Any] = []
        around: dict[str, Any] = {}
        for entry in as_list(message.get("tool_calls")):
            call = as_fields(entry)
            function = as_fields(call.get("function"))
            name, arguments = str(function.get("name")), function.get("arguments")
            found = self.find(scope, str(call.get("id")), name, arguments)
            around = around or (found[0] if found else {})
            calls.append({**found[1], **call} if found and found[1] else entry)
        if calls == as_list(message.get("tool_calls")) and not around:
            return message
        mended = {**message, "tool_calls": calls}
        return {**around, **mended} if with_reasoning else mended

    def _restore_gemini(
        self, content: dict[str, Any], scope: str, with_reasoning: bool
    ) -> dict[str, Any]:
        if content.get("role") != "model":
            return content
        parts: list[Any] = []
        for entry in as_list(content.get("parts")):
            part = as_fields(entry)
            call = as_fields(part.get("functionCall"))
            signed = "thoughtSignature" in part or "thought_signature" in part
            found = None
            if call and not signed:
                name, call_id = str(call.get("name")), str(call.get("id") or "")
                found = self.find(scope, call_id, name, call.get("args") or {})
            signature = found[1].get("thought_signature") if found else None
            parts.append({**part, "thoughtSignature": signature} if signature else entry)
        return content if parts == as_list(content.get("parts")) else {**content, "parts": parts}


def _echo_key(scope: str, call_id: str, name: str, arguments: Any) -> str:
    if isinstance(arguments, str):
        plain = decode_plain(arguments)
        arguments = arguments if plain is None else plain
    try:
        return canonical_hash([scope, call_id, name, arguments])
    except JSONTextError:
        return canonical_hash([scope, call_id, name, str(arguments)])
