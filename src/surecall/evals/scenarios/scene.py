"""What a trial works on: a fresh workspace, its tools, and what should come of it."""

from collections.abc import Iterable
from datetime import UTC, datetime
from random import Random
from typing import Any, Final
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.records import Envelope, ErrorDetail, Message, ToolCall
from surecall.text import encode_text
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
