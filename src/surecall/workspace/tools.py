"""The tools through which a model works on a workspace."""

from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Any, Final, NamedTuple, cast

from msgspec import Struct
from msgspec.structs import replace

from surecall.base.errors import ApprovalError, Code, WorkspaceError
from surecall.base.records import ToolSpec
from surecall.schema import SchemaChecker
from surecall.text.pointer import json_type
from surecall.tools import Tool, ToolContext, ToolFailed, ToolRegistry

from .changes import APPLICATION, Author
from .patches import clean_pointer, copy_value, is_under, refusal, split_path
from .proposals import Proposal, ProposedFact
from .state import select_values
from .workspace import Workspace


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


def _closed(required: list[str], **properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _list_of(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_PLAIN_TEXT: Final = {"type": "string"}
_WORKSPACE_ID: Final = _text("The workspace; the current one when left out.")
_REQUEST_ID: Final = _text("A short id of your own for this request.")
_POINTERS: Final = "JSON pointers of the parts to read; all of it when left out."
_OPERATIONS: Final = _list_of(
    _closed(
        ["op", "path"],
        op=_text("One of set, delete, append, insert."),
        path=_text("JSON pointer that begins with /draft/."),
        value={},
        index={"type": "integer", "description": "Only for insert."},
    )
)

_STATE_GET: Final = ToolSpec(
    name="state_get",
    description="Read the workspace: facts, draft, locks, ui_state and versions.",
    parameters=_closed(
        [],
        workspace_id=_WORKSPACE_ID,
        select={**_list_of(_PLAIN_TEXT), "description": _POINTERS},
    ),
    effect="read",
)
_STATE_PATCH: Final = ToolSpec(
    name="state_patch",
    description="Change the draft: all operations are applied, or none.",
    parameters=_closed(
        ["request_id", "ops"], workspace_id=_WORKSPACE_ID, request_id=_REQUEST_ID, ops=_OPERATIONS
    ),
)
_FACTS_PROPOSE: Final = ToolSpec(
    name="facts_propose",
    description="Propose facts; they hold only after a person has committed them.",
    parameters=_closed(
        ["request_id", "proposals"],
        workspace_id=_WORKSPACE_ID,
        request_id=_REQUEST_ID,
        proposals=_list_of(
            _closed(
                ["path", "value"],
                path=_text("JSON pointer that begins with /facts/."),
                value={},
                reason=_PLAIN_TEXT,
            )
        ),
    ),
)
_UI_RENDER: Final = ToolSpec(
    name="ui_render",
    description="Ask the interface to show something: the actions replace the earlier ones.",
    parameters=_closed(
        ["actions"],
        workspace_id=_WORKSPACE_ID,
        request_id=_REQUEST_ID,
        actions=_list_of({"type": "object"}),
    ),
)
_FACTS_COMMIT: Final = ToolSpec(
    name="facts_commit",
    description="Make a proposal the facts, after the user has confirmed it.",
    parameters=_closed(
        ["workspace_id", "request_id", "proposal_id", "user_confirmed"],
        workspace_id=_WORKSPACE_ID,
        request_id=_REQUEST_ID,
        proposal_id=_PLAIN_TEXT,
        user_confirmed={"type": "boolean"},
    ),
    exposed=False,
)

ORIGINAL_TOOLS: Final = (_STATE_GET, _STATE_PATCH, _FACTS_PROPOSE, _FACTS_COMMIT)
"""The tools as the scenarios' original has them: ids of requests are required."""


def _without_ids(spec: ToolSpec, **more: dict[str, Any]) -> ToolSpec:
    """Return a tool whose ids may all be left out, with some more properties."""
    properties = {**spec.parameters["properties"], **more}
    properties.pop("user_confirmed", None)
    optional = ("workspace_id", "request_id")
    required = [name for name in spec.parameters["required"] if name not in optional]
    required = [name for name in required if name in properties]
    return replace(spec, parameters=_closed(required, **properties))


WORKSPACE_TOOLS: Final = (
    replace(
        _STATE_GET,
        description="Read the workspace: facts, draft, locks, ui_state, versions and proposals.",
    ),
    _without_ids(_STATE_PATCH, draft_etag=_text("The version that the draft must have.")),
    _without_ids(_FACTS_PROPOSE),
    _UI_RENDER,
    _without_ids(_FACTS_COMMIT),
)
"""The tools as a model sees them; `facts_commit` is for the application and never exposed."""

EXPOSED_TOOLS: Final = tuple(spec.name for spec in WORKSPACE_TOOLS if spec.exposed)
"""The workspace tools that a model may see."""


class LoggedCall(Struct, frozen=True, kw_only=True):
    """One call that reached a tool of the workspace."""

    tool: str
    arguments: dict[str, Any]
    ok: bool
    code: str | None = None
    """Why it was refused."""
    read: tuple[str, ...] = ()
    """Pointers it read; `/` is the whole workspace."""
    written: tuple[str, ...] = ()
    """Paths it set, deleted or added to, or proposes to set."""
    etag: str | None = None
    """The version that its change led to."""


class CallLog:
    """The calls in the order in which they were made."""

    def __init__(self) -> None:
        self._calls: list[LoggedCall] = []

    @property
    def calls(self) -> tuple[LoggedCall, ...]:
        """Every call so far, also those that were refused."""
        return tuple(self._calls)

    def add(self, tool: str, arguments: dict[str, Any], **fields: Any) -> None:
        """Note one call."""
        self._calls.append(LoggedCall(tool=tool, arguments=copy_value(arguments), **fields))


_CURRENT: Final = (None, "", "workspace_id")
"""Values that stand for the current workspace: models also send the name of the field."""

_SHOWN_PROPOSALS: Final = 20
"""How many of the latest proposals a model reads."""

_CHECKERS: Final = {
    original: {spec.name: SchemaChecker(spec.parameters) for spec in specs}
    for original, specs in ((False, WORKSPACE_TOOLS), (True, ORIGINAL_TOOLS))
}
"""Compiled once, because an evaluation makes these tools for every trial."""


class _Answer(NamedTuple):
    data: dict[str, Any]
    read: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    etag: str | None = None


class WorkspaceTools:
    """The tools of one workspace, with a log of every call.

    Args:
        workspace: The workspace they work on.
        allowed_paths: When given, patches and proposals may only write at or below these paths.
        settable: When given, patches may only `set` one of exactly these paths.
        log: Where calls are noted; a log of its own when left out.
        original: Behave as the scenarios' original: ids of requests are required and claim
            nothing, proposals are not shown, and there is no `ui_render`.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        allowed_paths: Collection[str] | None = None,
        settable: Collection[str] | None = None,
        log: CallLog | None = None,
        original: bool = False,
    ) -> None:
        self._workspace = workspace
        self._allowed = _split_all(allowed_paths)
        self._settable = settable
        self._original = original
        self._specs = ORIGINAL_TOOLS if original else WORKSPACE_TOOLS
        self.log = CallLog() if log is None else log
        self._runners: dict[str, Callable[[dict[str, Any], Author], Awaitable[_Answer]]] = {
            "state_get": self._read,
            "state_patch": self._patch,
            "facts_propose": self._propose,
            "ui_render": self._render,
            "facts_commit": self._commit,
        }

    def registry(self, exposed: Collection[str] = EXPOSED_TOOLS) -> ToolRegistry:
        """Return all tools; those not named in `exposed` are there but hidden from models."""
        return ToolRegistry(self._tool(spec, exposed) for spec in self._specs)

    async def execute(
        self, name: str, arguments: dict[str, Any], *, author: Author = APPLICATION
    ) -> dict[str, Any]:
        """Run one call and note it.

        Raises:
            ToolFailed: With a code that tells the model what to correct.
        """
        if name not in self._runners:
            raise ToolFailed(Code.TOOL_NOT_IMPLEMENTED, f"{name} is not implemented.")
        try:
            self._check_id(arguments.get("workspace_id"))
            answer = await self._runners[name](arguments, author)
        except (WorkspaceError, ApprovalError) as error:
            self.log.add(name, arguments, ok=False, code=error.code)
            raise ToolFailed(error.code, error.message, error.hint) from None
        self.log.add(
            name, arguments, ok=True, read=answer.read, written=answer.written, etag=answer.etag
        )
        return answer.data

    def _tool(self, spec: ToolSpec, exposed: Collection[str]) -> Tool[..., Any]:
        checker = _CHECKERS[self._original][spec.name]
        if spec.exposed and spec.name not in exposed:
            spec = replace(spec, exposed=False)

        def bind(arguments: dict[str, Any], context: ToolContext) -> Callable[[], Any]:
            author = Author(
                by="model",
                run_id=context.run_id,
                call_id=context.call_id,
                receipts=context.receipts,
            )
            return partial(self.execute, spec.name, arguments, author=author)

        return Tool(spec, self.execute, binder=bind, checker=checker)

    def _check_id(self, given: Any) -> None:
        if given in _CURRENT or given == self._workspace.id:
            return
        raise WorkspaceError(
            Code.WORKSPACE_NOT_FOUND,
            f"there is no workspace {given!r:.80}.",
            hint="Leave workspace_id out to mean the current workspace.",
        )

    def _request_id(self, arguments: dict[str, Any]) -> str | None:
        """Return the id that a change claims; an empty one is none."""
        return None if self._original else arguments.get("request_id") or None

    async def _read(self, arguments: dict[str, Any], author: Author) -> _Answer:
        select = _texts(arguments.get("select"))
        state = await self._workspace.read()
        document = state.document(original=self._original)
        if not self._original:
            found = await self._workspace.proposals(limit=_SHOWN_PROPOSALS)
            document["proposals"] = [_describe(each) for each in found]
        if not select:
            return _Answer({"snapshot": select_values(document, ["/"])["/"]}, read=("/",))
        chosen = select_values(document, select)
        return _Answer({"snapshot": chosen}, read=tuple(chosen))

    async def _patch(self, arguments: dict[str, Any], author: Author) -> _Answer:
        operations = _objects(arguments.get("ops"), "ops")
        if self._settable is not None:
            _refuse_others(operations, self._settable)
        paths = tuple(dict.fromkeys(str(item.get("path")) for item in operations))
        self._check_paths(paths)
        state = await self._workspace.patch(
            operations,
            etag=arguments.get("draft_etag") or None,
            request_id=self._request_id(arguments),
            author=author,
        )
        return _Answer(
            {"draft_etag": state.draft_etag, "applied": len(operations)},
            written=paths,
            etag=state.draft_etag,
        )

    async def _propose(self, arguments: dict[str, Any], author: Author) -> _Answer:
        facts = [
            ProposedFact(str(item.get("path")), item.get("value"), str(item.get("reason") or ""))
            for item in _objects(arguments.get("proposals"), "proposals")
        ]
        paths = tuple(dict.fromkeys(fact.path for fact in facts))
        self._check_paths(paths)
        proposal = await self._workspace.propose(
            facts, request_id=self._request_id(arguments), author=author
        )
        return _Answer({"proposal_id": proposal.id, "proposed": len(facts)}, written=paths)

    async def _render(self, arguments: dict[str, Any], author: Author) -> _Answer:
        actions = _objects(arguments.get("actions"), "actions")
        state = await self._workspace.render(
            actions, request_id=self._request_id(arguments), author=author
        )
        return _Answer(
            {"rendered": len(actions)},
            written=("/ui_state/last_render",),
            etag=state.ui_state_etag,
        )

    async def _commit(self, arguments: dict[str, Any], author: Author) -> _Answer:
        if self._original and arguments.get("user_confirmed") is not True:
            raise refusal("a commit needs the confirmation of the user.", "Ask first.")
        state, paths = await self._workspace.commit(
            str(arguments.get("proposal_id")), request_id=self._request_id(arguments)
        )
        data = {
            "facts_etag": state.facts_etag,
            "committed": len(paths),
            "changed_paths": list(paths),
        }
        return _Answer(data, written=paths, etag=state.facts_etag)

    def _check_paths(self, paths: Collection[str]) -> None:
        """Refuse to write anywhere but at or below an allowed path."""
        for path in paths if self._allowed is not None else ():
            parts = split_path(path) if path.startswith("/") else ()
            if not any(is_under(parts, prefix) for _, prefix in self._allowed or ()):
                shown = " or ".join(text for text, _ in self._allowed or ()) or "nothing"
                raise refusal(
                    f"only {shown} may be written here, not {path!r:.80}; nothing was changed.",
                    "Send it again with an allowed path.",
                )


def _split_all(paths: Collection[str] | None) -> tuple[tuple[str, tuple[str, ...]], ...] | None:
    if paths is None:
        return None
    return tuple((path, split_path(path)) for path in map(clean_pointer, paths))


def _describe(proposal: Proposal) -> dict[str, Any]:
    """Return what a model reads about a proposal."""
    shown: dict[str, Any] = {
        "proposal_id": proposal.id,
        "status": proposal.status,
        "paths": [fact.path for fact in proposal.facts],
    }
    if proposal.is_edited:
        shown["accepted"] = [fact.path for fact in proposal.accepted]
    if proposal.reason:
        shown["reason"] = proposal.reason
    return shown


def _texts(select: Any) -> list[str]:
    """Return the pointers that are asked for, also when a single one is not in a list."""
    if select is None:
        return []
    items = cast("list[Any]", select) if isinstance(select, list) else [select]
    return [clean_pointer(str(item)) for item in items]


def _objects(value: Any, name: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not value:
        found = "empty" if value == [] else json_type(value)
        raise refusal(f"{name} must be an array with at least one item and is {found}.")
    for item in cast("list[Any]", value):
        if not isinstance(item, dict):
            raise refusal(f"every item of {name} must be an object, not {json_type(item)}.")
    return cast("list[dict[str, Any]]", value)


def _refuse_others(operations: list[dict[str, Any]], settable: Collection[str]) -> None:
    for operation in operations:
        if operation.get("op") != "set" or operation.get("path") not in settable:
            allowed = f"the operation 'set' on {' or '.join(settable)}"
            raise refusal(
                f"only {allowed} is allowed here; nothing was changed.",
                "Send the patch again with an allowed operation and path.",
            )
