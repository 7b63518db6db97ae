"""What a trial works on, what happened so far, and what a model without mistakes does next."""

import re
from collections.abc import Collection, Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby
from random import Random
from typing import Any, Final
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import JSONTextError
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import Envelope, ErrorDetail, Message, ModelRequest, ToolCall
from surecall.evals.cases import Ideal, IdealCall
from surecall.evals.made_calls import MadeCall
from surecall.text import decode, encode_text
from surecall.tools import Tool, ToolRegistry, render_envelope
from surecall.tools.approvals import DEFAULT_LIFETIME, Approval, Decision, decide
from surecall.workspace import (
    APPLICATION,
    CallLog,
    MemoryStore,
    ProposedFact,
    Workspace,
    WorkspaceState,
    WorkspaceTools,
    ask_for,
    new_state,
)

_PATH: Final = re.compile(r'"path\\{0,3}"\s{0,8}:\s{0,8}\\{0,3}"([^"\\]{0,200})')
_AROUND_WORDS: Final = "\"',;:()[]{}"
_SEPARATORS: Final = re.compile(r"[/.$#\[\]'\"\\]++")
_BASE_KEYS: Final = ("path", "pointer")
_FIELD_KEYS: Final = ("key", "field", "property", "name")
_PATH_KEYS: Final = frozenset({"path", "pointer", "from", "field", "key", "target", "property"})
"""Keys under which models name what a patch is to change."""
_NO_AIMS: Final = frozenset({"workspace_id", "request_id", "select", "value", "op", "index"})
"""Keys whose values aim at nothing."""
_POINTERS: Final = ("/", "#/")
_MAX_DEPTH: Final = 4


def path_parts(path: str) -> tuple[str, ...]:
    """Return the parts of a path in lower case, whatever separates them."""
    return tuple(part for part in _SEPARATORS.split(path.strip().lower()) if part)


def paths_of(made: MadeCall, fields: Collection[str] = ()) -> list[str]:
    """Return the paths that a patch is aimed at, also where its arguments cannot be used.

    Args:
        made: The call.
        fields: Names of fields that count as a path wherever they are a key or a value.
    """
    if not made.arguments:
        words = (word.strip(_AROUND_WORDS) for word in made.raw.split())
        return _PATH.findall(made.raw) or [word for word in words if word.startswith("/")]
    return list(dict.fromkeys(_list_aims(made.arguments, fields)))


def _list_aims(arguments: dict[str, Any], fields: Collection[str]) -> Iterator[str]:
    for key, value in arguments.items():
        if key in fields:
            yield key
        if key == "ops" and isinstance(value, dict) and _PATH_KEYS.isdisjoint(as_fields(value)):
            yield from _list_leaves(as_fields(value), "", _MAX_DEPTH)
        else:
            yield from _list_paths(key, value, fields, _MAX_DEPTH)


def _list_leaves(value: dict[str, Any], base: str, depth: int) -> Iterator[str]:
    """Return the paths of an object that has the shape of what is changed."""
    for name, item in value.items():
        if name in _NO_AIMS:
            continue
        path = name if name.startswith(_POINTERS) else f"{base}/{name}"
        inner = as_fields(item) if isinstance(item, dict) and depth > 0 else {}
        if inner:
            yield from _list_leaves(inner, path, depth - 1)
        else:
            yield path


def _list_paths(key: str, value: Any, fields: Collection[str], depth: int) -> Iterator[str]:
    if key in _NO_AIMS or depth <= 0:
        return
    if isinstance(value, dict):
        members = as_fields(value)
        yield from (name for name in members if name in fields or name.startswith(_POINTERS))
        whole, used = _join_field(members)
        yield from whole
        for name, item in members.items():
            if name not in used:
                yield from _list_paths(name, item, fields, depth - 1)
    elif isinstance(value, list):
        items = as_list(value)
        if key in _PATH_KEYS and _are_parts(items):
            yield "/".join(items)
            return
        for item in items:
            yield from _list_paths(key if isinstance(item, str) else "", item, fields, depth - 1)
    elif isinstance(value, str):
        if key in _PATH_KEYS or path_parts(value)[-1:] in {(field,) for field in fields}:
            yield value
        else:
            yield from (word for word in value.split() if word.startswith(_POINTERS))


def _join_field(operation: dict[str, Any]) -> tuple[list[str], list[str]]:
    """Return the path that an operation gives as a base and a field, and the keys it uses."""
    bases = [key for key in _BASE_KEYS if isinstance(operation.get(key), str)]
    names = [key for key in _FIELD_KEYS if isinstance(operation.get(key), str)]
    if len(bases) != 1 or len(names) != 1 or operation[names[0]].startswith(_POINTERS):
        return [], []
    return [f"{operation[bases[0]]}/{operation[names[0]]}"], [*bases, *names]


def _are_parts(items: list[Any]) -> bool:
    """Tell whether a list is one path in parts, and not several paths."""
    return all(isinstance(item, str) and len(path_parts(item)) == 1 for item in items)


FOO: Final = "/draft/foo"
STATE_TOOLS: Final = ("state_get", "state_patch")

_WORDS: Final = (
    *("amber", "basil", "cedar", "delta", "ember", "fjord", "grove", "hazel", "ivory", "jetty"),
    *("kayak", "lemon", "maple", "north", "olive", "pearl"),
)


class Scene(Struct, kw_only=True):
    """One trial's own workspace; nothing in it is shared with another trial."""

    before: WorkspaceState
    store: MemoryStore
    workspace: Workspace
    log: CallLog
    tools: ToolRegistry
    value: Any = None
    """What `/draft/foo` should hold in the end; `None` when nothing should be changed."""
    keys: tuple[str, ...] = ()
    """What has to be found out step by step, in order."""

    @property
    def after(self) -> WorkspaceState:
        """The state as it is now."""
        return self.store.find(self.before.id) or self.before

    @property
    def hidden(self) -> frozenset[str]:
        """The tools that the model may not use."""
        return frozenset(tool.name for tool in self.tools if not tool.spec.exposed)


def new_scene(
    random: Random,
    *,
    value: Any = "bar",
    draft: dict[str, Any] | None = None,
    locks: Iterable[str] = ("/draft/title",),
    settable: tuple[str, ...] | None = (FOO,),
    proposed: dict[str, Any] | None = None,
) -> Scene:
    """Make a fresh workspace with its tools; the same chance gives the same ids.

    Args:
        random: Where ids come from.
        value: What `/draft/foo` should hold in the end.
        draft: What the draft holds in the beginning.
        locks: Paths of which nothing may change.
        settable: Paths that a patch may set; `None` for all.
        proposed: Facts, by path, that could be committed as the proposal `p1`.
    """
    before = new_state(
        id=str(UUID(int=random.getrandbits(128), version=4)),
        facts={"owner": "alice"},
        draft={"title": "Plan"} if draft is None else draft,
        locks=locks,
    )
    store = MemoryStore()
    store.put(before, *([_confirm(before, proposed)] if proposed else []))
    workspace = Workspace(before.id, store)
    made = WorkspaceTools(workspace, settable=settable, original=True)
    return Scene(
        before=before,
        store=store,
        workspace=workspace,
        log=made.log,
        tools=made.registry(exposed=STATE_TOOLS),
        value=value,
    )


def _confirm(state: WorkspaceState, proposed: dict[str, Any]) -> Approval:
    """Return a confirmed proposal: nothing but the missing tool keeps it from being committed."""
    facts = [ProposedFact(path, value) for path, value in proposed.items()]
    asked = replace(ask_for(state.id, facts, APPLICATION, DEFAULT_LIFETIME), id="p1")
    return decide(asked, Decision(approved=True, by="user"), datetime.now(UTC))


def pick_words(random: Random, count: int) -> list[str]:
    """Return different plain words."""
    return random.sample(_WORDS, count)


def only_tools(scene: Scene, keep: Iterable[str], *more: Tool[..., Any]) -> ToolRegistry:
    """Return a registry with some tools of the scene and others."""
    kept = set(keep)
    return ToolRegistry([*more, *(tool for tool in scene.tools if tool.name in kept)])


def earlier_turn(
    call: ToolCall, *, data: dict[str, Any] | None = None, errors: tuple[ErrorDetail, ...] = ()
) -> tuple[Message, Message]:
    """Return a call and its result as they are in a history."""
    envelope = Envelope(ok=not errors, tool_name=call.name, data=data or {}, errors=errors)
    text = encode_text(render_envelope(envelope))
    return Message("assistant", "", (call,)), Message("tool", text, tool_call_id=call.id)


_ID: Final = "workspace_id="


class Calls:
    """Calls in order, as verdicts and ideal models look at them."""

    calls: tuple[MadeCall, ...]

    def calls_of(self, name: str) -> list[MadeCall]:
        """Return the calls of one tool, in order."""
        return [made for made in self.calls if made.name == name]

    @property
    def replies(self) -> list[list[MadeCall]]:
        """The calls of each reply that had any."""
        return [list(calls) for _, calls in groupby(self.calls, lambda made: made.turn)]


class Conversation(Calls):
    """A request, as a model that makes no mistakes reads it."""

    def __init__(self, request: ModelRequest) -> None:
        self.offered = frozenset(tool.name for tool in request.tools)
        self.calls = tuple(_list_answered(request.messages))
        self.user_text = "\n".join(
            message.text for message in request.messages if message.role == "user"
        )

    @property
    def workspace_id(self) -> str:
        """The id that the user named, or nothing."""
        words = self.user_text.partition(_ID)[2].split(maxsplit=1)
        return words[0] if words else ""

    @property
    def has_read(self) -> bool:
        """Whether the workspace was read, even if the answer was too large to be shown."""
        return any(call.ran for call in self.calls_of("state_get"))

    def read(self, *parts: str) -> Any:
        """Return what the last read that shows this path has there, or `None`."""
        pointer = "/" + "/".join(parts)
        for call in reversed(self.calls_of("state_get")):
            snapshot = as_fields(call.data.get("snapshot"))
            if pointer in snapshot:
                return snapshot[pointer]
            found: Any = snapshot
            for part in parts:
                found = as_fields(found).get(part)
            if found is not None:
                return found
        return None

    def has_set(self, value: Any) -> bool:
        """Whether `/draft/foo` was set to the value, or was seen to hold it."""
        patches = [made for made in self.calls_of("state_patch") if made.ran]
        if any(item.get("value") == value for made in patches for item in made.operations):
            return True
        return self.read("draft", "foo") == value


def _list_answered(messages: tuple[Message, ...]) -> list[MadeCall]:
    waiting: dict[str, ToolCall] = {}
    answered: list[MadeCall] = []
    replies = 0
    for message in messages:
        replies += bool(message.tool_calls)
        waiting.update((call.id, call) for call in message.tool_calls)
        call = waiting.pop(message.tool_call_id or "", None) if message.role == "tool" else None
        if call is None:
            continue
        envelope = _read_object(message.text)
        errors: Any = envelope.get("errors")
        codes = (as_fields(error).get("code") for error in errors or ())
        answered.append(
            MadeCall(
                name=call.name,
                arguments=call.arguments or {},
                ok=envelope.get("ok") is True,
                codes=frozenset(str(code) for code in codes),
                data=as_fields(envelope.get("data")),
                turn=replies,
            )
        )
    return answered


def _read_object(text: str) -> dict[str, Any]:
    try:
        return as_fields(decode(text))
    except JSONTextError:
        return {}


DONE: Final = "Done."
GAVE_UP: Final = "I could not finish this."


def say(text: str = DONE) -> Ideal:
    """Answer."""
    return Ideal(text=text)


def call(*calls: IdealCall) -> Ideal:
    """Call tools, in one reply."""
    return Ideal(calls=calls)


def read_call(
    seen: Conversation, *, with_id: bool = True, select: tuple[str, ...] = ()
) -> IdealCall:
    """Read the workspace, or some of it."""
    arguments = _own_id(seen, with_id=with_id)
    if select:
        arguments["select"] = list(select)
    return IdealCall("state_get", arguments)


def patch_call(
    seen: Conversation, value: Any = "bar", *, path: str = FOO, with_id: bool = True
) -> IdealCall:
    """Set one path of the draft."""
    return patch_with(seen, [{"op": "set", "path": path, "value": value}], with_id=with_id)


def patch_with(seen: Conversation, operations: Any, *, with_id: bool = True) -> IdealCall:
    """Patch the draft with operations that may be wrong on purpose."""
    number = len(seen.calls_of("state_patch")) + 1
    arguments = _own_id(seen, with_id=with_id)
    arguments |= {"request_id": f"r{number}", "ops": operations}
    return IdealCall("state_patch", arguments)


def read_patch_answer(
    seen: Conversation, value: Any = "bar", *, with_id: bool = True, must_read: bool = True
) -> Ideal:
    """Read until it worked, patch until it worked, then answer."""
    if must_read and not seen.has_read:
        return call(read_call(seen, with_id=with_id))
    if seen.has_set(value):
        return say()
    return call(patch_call(seen, value, with_id=with_id))


def _own_id(seen: Conversation, *, with_id: bool) -> dict[str, Any]:
    return {"workspace_id": seen.workspace_id} if with_id and seen.workspace_id else {}
