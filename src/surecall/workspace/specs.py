"""The tools of a workspace as a model sees them."""

from typing import Any, Final

from msgspec.structs import replace

from surecall.base.records import ToolSpec


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
