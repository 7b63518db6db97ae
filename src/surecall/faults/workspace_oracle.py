"""The oracle of the workspace scenarios: read the state, patch the draft, finish.

It recognises them by their two tools. The system text names the scenario as
`scenario=NAME`, or else it is seen from what the text asks for.
"""

from typing import Any, Final

from surecall.base.errors import Code
from surecall.base.json_values import as_fields, as_list
from surecall.base.records import ModelRequest

from .conversation import Action, Answered, CallTools, PlannedCall, Say, answered_calls, system_text
from .oracles import FINAL_TEXT

READ: Final = "state_get"
PATCH: Final = "state_patch"
LONG_VALUE_CHARS: Final = 320

SCENARIOS: Final = (
    "happy_path",
    "partial_success_failure",
    "missing_workspace_id",
    "type_error_recovery",
    "happy_path_parallel",
    "long_arguments_guard",
    "tool_output_truncation",
    "chat_only",
)
"""Scripts of conversations that a simulated model follows."""

_MARKER: Final = "scenario="
_ID: Final = "workspace_id="
_GOOD_PATH: Final = "/draft/foo"
_BAD_PATH: Final = "/draft/wrong"
_GOOD_VALUE: Final = "bar"
_LONG_VALUE: Final = "x" * LONG_VALUE_CHARS
_AVOIDING: Final = ("do not pass", "don't pass", "never pass", "omit", "without passing")


class WorkspaceOracle:
    """Plays the scenarios of the workspace without a mistake."""

    def next_action(self, request: ModelRequest) -> Action | None:
        """Return the next step, or `None` when this is not a workspace."""
        scenario = find_scenario(request)
        if scenario is None:
            return None
        if scenario == "chat_only" or not {READ, PATCH} <= {tool.name for tool in request.tools}:
            return Say(FINAL_TEXT)
        return _Play(request, scenario).next_action()


def find_scenario(request: ModelRequest) -> str | None:
    """Return which scenario is played, or `None`."""
    text = system_text(request)
    marked = text.partition(_MARKER)[2].split(maxsplit=1)
    name = marked[0].strip(".,;:)]\"'`") if marked else ""
    if name in SCENARIOS:
        return name
    if {READ, PATCH} <= {tool.name for tool in request.tools}:
        return _guess(text)
    return None


def _guess(text: str) -> str:
    lowered = text.lower()
    if Code.ARGUMENTS_TOO_LARGE in text:
        return "long_arguments_guard"
    if Code.TOOL_OUTPUT_TOO_LARGE in text:
        return "tool_output_truncation"
    if "both" in lowered:
        wrong = "wrong" in lowered or "invalid" in lowered
        return "partial_success_failure" if wrong else "happy_path_parallel"
    if "workspace_id" in lowered and any(words in lowered for words in _AVOIDING):
        return "missing_workspace_id"
    return "type_error_recovery" if Code.ARGUMENT_ERROR in text else "happy_path"


class _Play:
    def __init__(self, request: ModelRequest, scenario: str) -> None:
        self._scenario = scenario
        self._answered = answered_calls(request)
        self._patches = [item for item in self._answered if item.call.name == PATCH]
        self._has_read = any(
            item.ok or Code.TOOL_OUTPUT_TOO_LARGE in item.codes
            for item in self._answered
            if item.call.name == READ
        )
        omits_id = scenario == "missing_workspace_id"
        self._workspace_id = "" if omits_id else _find_workspace_id(request)

    def next_action(self) -> Action:
        read = PlannedCall(READ, self._own_id())
        if not self._answered and self._scenario == "happy_path_parallel":
            return CallTools((read, self._patch()))
        if not self._answered and self._scenario == "partial_success_failure":
            return CallTools((read, self._patch(path=_BAD_PATH)))
        if not self._has_read:
            return CallTools((read,))
        if any(_sets_good_value(item) for item in self._patches if item.ok):
            return Say(FINAL_TEXT)
        if self._scenario == "long_arguments_guard" and not self._patches:
            return CallTools((self._patch(value=_LONG_VALUE),))
        return CallTools((self._patch(),))

    def _patch(self, path: str = _GOOD_PATH, value: str = _GOOD_VALUE) -> PlannedCall:
        number = len(self._patches) + 1
        operation = {"op": "set", "path": path, "value": value}
        arguments = {**self._own_id(), "request_id": f"r{number}", "ops": [operation]}
        return PlannedCall(PATCH, arguments)

    def _own_id(self) -> dict[str, Any]:
        return {"workspace_id": self._workspace_id} if self._workspace_id else {}


def _find_workspace_id(request: ModelRequest) -> str:
    """Return the id of the workspace that the user named, or nothing."""
    for message in request.messages:
        if message.role == "user" and _ID in message.text:
            words = message.text.partition(_ID)[2].split(maxsplit=1)
            return words[0] if words else ""
    return ""


def _sets_good_value(item: Answered) -> bool:
    operations: Any = (item.call.arguments or {}).get("ops")
    return not isinstance(operations, list) or any(
        as_fields(operation).get("value") == _GOOD_VALUE for operation in as_list(operations)
    )
