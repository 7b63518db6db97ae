"""Requests as an endpoint of chat completions takes them, whoever wrote them.

Model servers hand messages to the template of a model, and many templates refuse a role or an order
of turns, or leave a message out without a word. Strict providers refuse members of other APIs. What
an endpoint is not known to take is said in the form that all of them take.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from hashlib import sha256
from itertools import pairwise
from operator import eq
from typing import Any, Final

from msgspec import Struct

from surecall.base.json_values import as_fields, as_list
from surecall.text import decode, decoder_of, encode
from surecall.wire.call_ids import find_id_shape

from .policy import Route
from .wording import FROM_SYSTEM

_MESSAGE_MEMBERS: Final = ("phase", "reasoning", "reasoning_content", "reasoning_details")
_CACHE: Final = "cache_control"
_NAMES: Final = ("prompt_cache_key", "safety_identifier", "user")
"""Members that name somebody, and how long they may be."""
_MAX_NAME_CHARS: Final = 64
_ANY_ID: Final = "^[a-zA-Z0-9]{9}$"
"""Ids of calls that every template takes which was rendered."""
_GOES_ON: Final = "[The conversation goes on.]"
_SEEN: Final = "[The result is above.]"
_JOINED: Final = frozenset({"content", "reasoning_content", "role", "tool_calls"})
_SYSTEM: Final = ("developer", "system")

_Message = dict[str, Any]


class _Role(Struct, gc=False):
    role: Any = None


class _Look(Struct):
    """What shows whether a request has to be changed, but for what is inside of messages."""

    messages: list[_Role] | None = None
    client_metadata: Any = None
    metadata: Any = None
    prompt_cache_key: Any = None
    prompt_cache_retention: Any = None
    reasoning_effort: Any = None
    safety_identifier: Any = None
    service_tier: Any = None
    store: Any = None
    top_k: Any = None
    user: Any = None
    verbosity: Any = None


_MEMBERS: Final = _Look.__struct_fields__[1:]
"""Members of a request that only some take; all others go along, since the provider may know
them."""
_NOTHING: Final = _Look()
_PLAIN_ROLES: Final = (["system", "user"], ["user"])
_look: Final = decoder_of(_Look)


def fit_chat(body: bytes, route: Route, *, is_translated: bool) -> tuple[bytes, tuple[str, ...]]:
    """Return a request as its endpoint takes it, and the names of what had to be left out.

    A request that needs no change keeps its bytes.

    Args:
        body: The request.
        route: Where it goes.
        is_translated: Whether the client wrote it in another format, and knows nothing of chat
            completions.
    """
    if not (is_translated or _may_need_change(body, route)):
        return body, ()
    try:
        document = as_fields(decode(body, surrogates="replace"))
    except ValueError:  # the endpoint says what is wrong with it
        return body, ()
    fitting = _Fitting(route, is_translated=is_translated)
    fitted = fitting.fit(document)
    return (body if fitted == document else encode(fitted)), tuple(sorted(fitting.losses))


def _may_need_change(body: bytes, route: Route) -> bool:
    """Tell whether a request in the client's own form may have something to change.

    This is all that most requests cost.
    """
    taken = route.capabilities.request_fields
    if b'"cache_control"' in body and not ({_CACHE, "*"} & {*taken}):
        return True
    try:
        found = _look(body)
    except (ValueError, RecursionError):
        return True  # the whole reader finds out
    messages, found.messages = found.messages, None
    if found != _NOTHING and "*" not in taken:
        for name in _MEMBERS:
            value = getattr(found, name)
            is_long = name in _NAMES and isinstance(value, str) and len(value) > _MAX_NAME_CHARS
            if is_long or (value is not None and name not in taken):
                return True
    roles = [item.role for item in messages or ()]
    return roles not in _PLAIN_ROLES and _may_need_order(roles, route)


def _may_need_order(roles: list[Any], route: Route) -> bool:
    """Tell whether messages of these roles may have to be changed."""
    wanted = route.capabilities
    if "assistant" in roles and (
        wanted.tool_id_pattern is not None or route.lacks("takes_user_after_result")
    ):
        return True
    if "developer" in roles and not wanted.takes_developer:
        return True
    if "system" in roles[1:] and not (wanted.allows_midturn_system or wanted.takes_developer):
        return True
    repeats = not wanted.takes_repeated_roles and any(map(eq, roles, roles[1:]))
    return repeats and any(
        first == second and first in ("user", "assistant") for first, second in pairwise(roles)
    )


def _takes(route: Route, name: str, *, is_known: bool) -> bool:
    """Tell whether an endpoint takes more than all do, and whether that has to be known of it."""
    return getattr(route.capabilities, name) and (name in route.known or not is_known)


class _Fitting:
    """Fits one request."""

    def __init__(self, route: Route, *, is_translated: bool) -> None:
        wanted = route.capabilities
        self._is_translated = is_translated
        self._taken = frozenset(wanted.request_fields)
        self._takes_all = "*" in self._taken
        self._takes_cache = self._takes_all or _CACHE in self._taken
        takes_more = partial(_takes, route, is_known=is_translated)
        self._takes_developer = takes_more("takes_developer")
        self._takes_late_system = self._takes_developer or takes_more("allows_midturn_system")
        self._takes_repeated_roles = takes_more("takes_repeated_roles")
        self._alternates = route.lacks("takes_user_after_result")
        """Whether turns have to alternate also around results, and the user has to begin."""
        self._id_pattern = wanted.tool_id_pattern
        if is_translated and not takes_more("takes_user_after_result"):
            self._alternates = True
            if "tool_id_pattern" not in route.known:
                self._id_pattern = _ANY_ID
        self.losses: set[str] = set()

    def fit(self, document: dict[str, Any]) -> dict[str, Any]:
        """Return a request as it is taken; the same if it is taken as it is."""
        fitted = document if self._takes_all else dict(self._fit_members(document))
        if "tools" in fitted and not self._takes_cache:
            fitted = {
                **fitted,
                "tools": [self._fit_tool(tool) for tool in as_list(fitted["tools"])],
            }
        items = fitted.get("messages")
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            return fitted
        messages: Iterable[_Message] = [self._clean(as_fields(item)) for item in as_list(items)]
        messages = self._order(messages)
        if self._id_pattern is not None:
            messages = _fit_ids(messages, self._id_pattern)
        return {**fitted, "messages": list(messages)}

    # Members

    def _fit_members(self, document: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        for name, value in document.items():
            if name in _MEMBERS and name not in self._taken:
                if value:  # what is off or empty says nothing
                    self.losses.add(name)
            elif name in _NAMES and isinstance(value, str) and len(value) > _MAX_NAME_CHARS:
                yield name, sha256(value.encode("utf-8", "replace")).hexdigest()
            else:
                yield name, value

    def _fit_tool(self, tool: Any) -> Any:
        fields = as_fields(tool)
        function = as_fields(fields.get("function"))
        if _CACHE not in fields and _CACHE not in function:
            return tool
        self.losses.add(f"tools.{_CACHE}")
        fields = _without(fields, _CACHE)
        return {**fields, "function": _without(function, _CACHE)} if function else fields

    def _clean(self, message: _Message) -> _Message:
        """Return a message without members that are not taken."""
        if not self._takes_cache:
            message = self._drop_cache(message)
        if self._takes_all:
            return message
        for name in _MESSAGE_MEMBERS:
            if name in message and name not in self._taken and self._drops(name):
                if message[name] and name != "phase":
                    self.losses.add(f"messages.{name}")
                message = _without(message, name)
        return message

    def _drops(self, name: str) -> bool:
        """Tell whether a member of a message goes: what a client itself wrote may be meant."""
        return name == "phase" or self._is_translated

    def _drop_cache(self, message: _Message) -> _Message:
        content = message.get("content")
        if isinstance(content, list):
            parts = [_without(as_fields(part), _CACHE) for part in as_list(content)]
            is_changed = parts != content
            if is_changed:
                self.losses.add(f"messages.{_CACHE}")
            plain = _as_text(parts) if self._is_translated else None
            if is_changed or plain is not None:
                message = {**message, "content": parts if plain is None else plain}
        if _CACHE in message:
            self.losses.add(f"messages.{_CACHE}")
            message = _without(message, _CACHE)
        return message

    # Turns

    def _order(self, messages: Iterable[_Message]) -> list[_Message]:
        """Return the messages in roles and turns that are taken; no text is lost."""
        fitted: list[_Message] = []
        was_moved = False
        for message in messages:
            if message.get("role") == "developer" and not self._takes_developer:
                message = {**message, "role": "system"}
            is_moved = False
            if message.get("role") in _SYSTEM and not self._takes_late_system:
                is_moved = any(item.get("role") not in _SYSTEM for item in fitted)
                if is_moved:
                    message = _from_system(message)
                elif fitted:
                    fitted[-1] = _join(fitted[-1], message)
                    continue
            self._add(fitted, message, may_join=is_moved or was_moved)
            was_moved = is_moved
        return fitted

    def _add(self, fitted: list[_Message], message: _Message, *, may_join: bool) -> None:
        role = message.get("role")
        last = fitted[-1] if fitted else {}
        if (
            role == last.get("role")
            and role in ("user", "assistant")
            and (may_join or not self._takes_repeated_roles)
            and _may_join(last, message)
        ):
            fitted[-1] = _join(last, message)
            return
        if self._alternates and role == "user" and last.get("role") == "tool":
            fitted.append({"role": "assistant", "content": _SEEN})
        is_first = not fitted or last.get("role") in _SYSTEM
        if self._alternates and role == "assistant" and is_first:
            fitted.append({"role": "user", "content": _GOES_ON})
        fitted.append(message)


def _may_join(first: _Message, second: _Message) -> bool:
    """Tell whether two messages of one role can be one without losing a part."""
    if first["role"] == "user":
        return first.get("name") == second.get("name")
    return not (first.keys() | second.keys()) - _JOINED


def _join(first: _Message, second: _Message) -> _Message:
    """Return two messages of one role as one."""
    joined = {**second, **first}
    before, after = first.get("content"), second.get("content")
    if before and after:
        if isinstance(before, str) and isinstance(after, str):
            joined["content"] = f"{before}\n\n{after}"
        else:
            joined["content"] = [*_parts_of(before), *_parts_of(after)]
    elif "content" in joined:
        joined["content"] = before or after or before
    if first.get("reasoning_content") and second.get("reasoning_content"):
        thoughts = f"{first['reasoning_content']}\n\n{second['reasoning_content']}"
        joined["reasoning_content"] = thoughts
    if first.get("tool_calls") and second.get("tool_calls"):
        joined["tool_calls"] = [*as_list(first["tool_calls"]), *as_list(second["tool_calls"])]
    return joined


def _from_system(message: _Message) -> _Message:
    """Return what the system says late as part of what the user says in the same place."""
    content = message.get("content")
    if isinstance(content, list):
        content = [{"type": "text", "text": FROM_SYSTEM}, *as_list(content)]
        return {**message, "role": "user", "content": content}
    return {**message, "role": "user", "content": f"{FROM_SYSTEM}\n{content or ''}"}


def _parts_of(content: Any) -> list[Any]:
    if isinstance(content, list):
        return as_list(content)
    return [{"type": "text", "text": content}] if content else []


def _as_text(parts: list[Any]) -> str | None:
    """Return parts that are nothing but text as one text, which more servers take."""
    texts: list[str] = []
    for part in map(as_fields, parts):
        if part.keys() != {"type", "text"} or not isinstance(part["text"], str):
            return None
        texts.append(part["text"])
    return "\n\n".join(text for text in texts if text)


def _fit_ids(messages: Iterable[_Message], pattern: str) -> Iterator[_Message]:
    """Give calls and their results ids of the shape that is taken."""
    ids = find_id_shape(pattern).open()
    waiting: dict[Any, list[str]] = {}
    for message in messages:
        if message.get("tool_calls"):
            waiting = {}
            calls: list[_Message] = []
            for call in map(as_fields, as_list(message["tool_calls"])):
                call_id = ids.assign(str(call.get("id") or ""))
                waiting.setdefault(call.get("id"), []).append(call_id)
                calls.append({**call, "id": call_id})
            message = {**message, "tool_calls": calls}
        elif message.get("role") == "tool" and waiting.get(message.get("tool_call_id")):
            message = {**message, "tool_call_id": waiting[message["tool_call_id"]].pop(0)}
        yield message


def _without(fields: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != name}
