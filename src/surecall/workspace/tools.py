"""The tools through which a model works on a workspace."""

from collections.abc import Awaitable, Callable, Collection
from functools import partial
from typing import Any, Final, NamedTuple, cast

from msgspec.structs import replace

from surecall.errors import Code, WorkspaceError
from surecall.jsontext.pointer import json_type
from surecall.records import ToolSpec
from surecall.schema import SchemaChecker
from surecall.tools import Tool, ToolContext, ToolFailed, ToolRegistry

from .patch import clean_pointer, refusal
from .state import ProposedFact
from .workspace import CallLog, Workspace


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

WORKSPACE_TOOLS: Final = (
    ToolSpec(
        name="state_get",
        description="Read the workspace: facts, draft, locks, ui_state and versions.",
        parameters=_closed(
            [],
            workspace_id=_WORKSPACE_ID,
            select={**_list_of(_PLAIN_TEXT), "description": _POINTERS},
        ),
        effect="read",
    ),
    ToolSpec(
        name="state_patch",
        description="Change the draft: all operations are applied, or none.",
        parameters=_closed(
            ["request_id", "ops"],
            workspace_id=_WORKSPACE_ID,
            request_id=_REQUEST_ID,
            ops=_list_of(
                _closed(
                    ["op", "path"],
                    op=_text("One of set, delete, append, insert."),
                    path=_text("JSON pointer that begins with /draft/."),
                    value={},
                    index={"type": "integer", "description": "Only for insert."},
                )
            ),
        ),
    ),
    ToolSpec(
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
    ),
    ToolSpec(
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
    ),
)
"""The tools as a model sees them; `facts_commit` is for the application and never exposed."""

EXPOSED_TOOLS: Final = tuple(spec.name for spec in WORKSPACE_TOOLS if spec.exposed)
"""The workspace tools that a model may see."""

_CURRENT: Final = (None, "", "workspace_id")
"""What stands for the current workspace: models also send the name of the field."""

_CHECKERS: Final = {spec.name: SchemaChecker(spec.parameters) for spec in WORKSPACE_TOOLS}
"""Compiled once, because an evaluation makes these tools for every trial."""


class _Answer(NamedTuple):
    data: dict[str, Any]
    read: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    etag: str | None = None


class WorkspaceTools:
    """The tools of one workspace, with a log of every call.

    Args:
        workspace: What they work on.
        settable: When given, patches may only `set` one of exactly these paths.
        log: Where calls are noted; a log of its own when left out.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        settable: Collection[str] | None = None,
        log: CallLog | None = None,
    ) -> None:
        self._workspace = workspace
        self._settable = settable
        self.log = CallLog() if log is None else log
        self._runners: dict[str, Callable[[dict[str, Any]], Awaitable[_Answer]]] = {
            "state_get": self._read,
            "state_patch": self._patch,
            "facts_propose": self._propose,
            "facts_commit": self._commit,
        }

    def registry(self, exposed: Collection[str] = EXPOSED_TOOLS) -> ToolRegistry:
        """Return all tools; those not named in `exposed` are there but hidden from models."""
        return ToolRegistry(self._tool(spec, exposed) for spec in WORKSPACE_TOOLS)

    async def execute(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run one call and note it.

        Raises:
            ToolFailed: With a code that tells the model what to correct.
        """
        if name not in self._runners:
            raise ToolFailed(Code.TOOL_NOT_IMPLEMENTED, f"{name} is not implemented.")
        try:
            self._check_id(arguments.get("workspace_id"))
            answer = await self._runners[name](arguments)
        except WorkspaceError as error:
            self.log.add(name, arguments, ok=False, code=error.code)
            raise ToolFailed(error.code, error.message, error.hint) from None
        self.log.add(
            name, arguments, ok=True, read=answer.read, written=answer.written, etag=answer.etag
        )
        return answer.data

    def _tool(self, spec: ToolSpec, exposed: Collection[str]) -> Tool[..., Any]:
        if spec.exposed and spec.name not in exposed:
            spec = replace(spec, exposed=False)

        def bind(arguments: dict[str, Any], context: ToolContext) -> Callable[[], Any]:
            return partial(self.execute, spec.name, arguments)

        return Tool(spec, self.execute, binder=bind, checker=_CHECKERS[spec.name])

    def _check_id(self, given: Any) -> None:
        if given in _CURRENT or given == self._workspace.id:
            return
        raise WorkspaceError(
            Code.WORKSPACE_NOT_FOUND,
            f"there is no workspace {given!r:.80}.",
            hint="Leave workspace_id out to mean the current workspace.",
        )

    async def _read(self, arguments: dict[str, Any]) -> _Answer:
        select = _texts(arguments.get("select"))
        state = await self._workspace.read()
        if not select:
            return _Answer({"snapshot": state.snapshot()}, read=("/",))
        chosen = state.select(select)
        return _Answer({"snapshot": chosen}, read=tuple(chosen))

    async def _patch(self, arguments: dict[str, Any]) -> _Answer:
        operations = _objects(arguments.get("ops"), "ops")
        if self._settable is not None:
            _refuse_others(operations, self._settable)
        state = await self._workspace.patch(operations)
        return _Answer(
            {"draft_etag": state.draft_etag, "applied": len(operations)},
            written=tuple(dict.fromkeys(str(item.get("path")) for item in operations)),
            etag=state.draft_etag,
        )

    async def _propose(self, arguments: dict[str, Any]) -> _Answer:
        facts = [
            ProposedFact(str(item.get("path")), item.get("value"), str(item.get("reason", "")))
            for item in _objects(arguments.get("proposals"), "proposals")
        ]
        proposal_id = await self._workspace.propose(facts)
        paths = tuple(dict.fromkeys(fact.path for fact in facts))
        return _Answer({"proposal_id": proposal_id, "proposed": len(facts)}, written=paths)

    async def _commit(self, arguments: dict[str, Any]) -> _Answer:
        state, paths = await self._workspace.commit(
            str(arguments.get("proposal_id")),
            user_confirmed=arguments.get("user_confirmed") is True,
        )
        data = {
            "facts_etag": state.facts_etag,
            "committed": len(paths),
            "changed_paths": list(paths),
        }
        return _Answer(data, written=paths, etag=state.facts_etag)


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
            allowed = " or ".join(settable)
            raise refusal(
                f"only the operation 'set' on {allowed} is allowed here; nothing was changed.",
                "Send the patch again with an allowed operation and path.",
            )
