"""A small workspace as an application would build it: a draft to edit, facts that are guarded."""

from copy import deepcopy
from typing import Any
from uuid import uuid4

from surecall.records import ToolSpec
from surecall.tools import ToolFailed, ToolRegistry

__all__ = ["ALLOWED_PATH", "Workspace"]

ALLOWED_PATH = "/draft/foo"

_TEXT = {"type": "string"}
_OPERATION = {
    "type": "object",
    "properties": {"op": _TEXT, "path": _TEXT, "value": {}, "index": {"type": "integer"}},
    "required": ["op", "path"],
    "additionalProperties": False,
}


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"workspace_id": _TEXT, **properties},
        "required": required,
        "additionalProperties": False,
    }


_SPECS = (
    ToolSpec(
        name="state_get",
        description="Read the workspace.",
        parameters=_object([], select={"type": "array", "items": _TEXT}),
        effect="read",
    ),
    ToolSpec(
        name="state_patch",
        description="Change the draft.",
        parameters=_object(
            ["request_id", "ops"], request_id=_TEXT, ops={"type": "array", "items": _OPERATION}
        ),
    ),
    ToolSpec(
        name="facts_commit",
        description="Make a proposal a fact.",
        parameters=_object(
            ["workspace_id", "request_id", "proposal_id", "user_confirmed"],
            request_id=_TEXT,
            proposal_id=_TEXT,
            user_confirmed={"type": "boolean"},
        ),
        exposed=False,
    ),
)


class Workspace:
    """The state of one workspace, and the tools through which a model may touch it."""

    def __init__(self, draft: dict[str, Any] | None = None) -> None:
        self.id = str(uuid4())
        self.facts: dict[str, Any] = {}
        self.draft: dict[str, Any] = deepcopy(draft or {})
        self.draft_version = 0
        self.executed: list[str] = []
        self.tools = ToolRegistry.from_executor(_SPECS, self.execute)

    def execute(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Run one call; the model may only set the one allowed path."""
        self.executed.append(name)
        given = arguments.get("workspace_id", "")
        if given not in {"", "workspace_id", self.id}:
            raise ToolFailed("WORKSPACE_NOT_FOUND", f"There is no workspace {given!r}.")
        match name:
            case "state_get":
                return {"snapshot": self._snapshot(arguments.get("select", []))}
            case "state_patch":
                return self._patch(arguments["ops"])
            case _:
                raise ToolFailed("TOOL_NOT_IMPLEMENTED", f"{name} is not implemented.")

    @property
    def draft_etag(self) -> str:
        """The version of the draft."""
        return f"draft:{self.draft_version}"

    def _snapshot(self, select: list[str]) -> dict[str, Any]:
        whole: dict[str, Any] = {
            "facts": self.facts,
            "draft": self.draft,
            "locks": {"paths": []},
            "ui_state": {},
            "versions": {"facts_etag": "facts:0", "draft_etag": self.draft_etag},
        }
        if not select:
            return deepcopy(whole)
        return {pointer: deepcopy(_find(whole, pointer)) for pointer in map(_pointer, select)}

    def _patch(self, operations: list[dict[str, Any]]) -> dict[str, Any]:
        if not operations:
            raise ValueError("ops must not be empty")
        for operation in operations:
            if operation["op"] != "set" or operation["path"] != ALLOWED_PATH:
                raise ValueError(f"only op 'set' on {ALLOWED_PATH} is allowed")
        for operation in operations:
            self.draft["foo"] = operation.get("value")
        self.draft_version += 1
        return {"draft_etag": self.draft_etag, "applied": len(operations)}


def _pointer(text: str) -> str:
    text = text.strip().strip("\"'`").strip()
    return text.removeprefix("#") if text.startswith("#/") else "/" + text.removeprefix("/")


def _find(document: Any, pointer: str) -> Any:
    for part in pointer.split("/")[1:]:
        document = document.get(part) if isinstance(document, dict) else None
    return document
