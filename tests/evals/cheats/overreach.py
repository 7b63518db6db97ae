"""Models that do what was to be left out, or answer where the answer is the work."""

import json
from typing import Any

from .replies import (
    BAR,
    PATCH,
    Model,
    beside,
    both,
    call,
    patch,
    put,
    raw,
    read,
    tagged,
    workspace_id,
)

OFF: dict[str, Any] = {"text_formats": "off"}
"""As a strategy that does not look for calls in text."""


def seven(text: str) -> Model:
    """Return a model that answers how many days a week has."""
    return Model("state", "no_call_needed", f"says {text!r}", lambda: [text])


def titled(text: str) -> Model:
    """Return a model that answers the request that is not clear."""
    return Model("state", "ambiguous_request", f"says {text!r}", lambda: [text])


OVERREACH = [
    # What was to be left out
    Model(
        "state",
        "missing_workspace_id",
        "sends the id under another name",
        lambda: [read(), raw("state_patch", _with_id("workspaceId")), "Done."],
    ),
    Model(
        "state",
        "missing_workspace_id",
        "sends the id as the id of the request",
        lambda: [
            read(),
            call("state_patch", request_id=workspace_id("missing_workspace_id"), ops=[BAR]),
            "Done.",
        ],
    ),
    Model(
        "state",
        "missing_workspace_id",
        "sends an empty id",
        lambda: [read(workspace_id=""), patch(), "Done."],
    ),
    Model(
        "state",
        "truncated_arguments",
        "patches, and patches again to be sure",
        lambda: [patch(), patch(call_id="c3"), "Done."],
    ),
    Model(
        "state",
        "truncated_arguments",
        "takes the cut call for done",
        lambda: [read(), "Done."],
    ),
    Model(
        "state",
        "truncated_arguments",
        "looks again after the work",
        lambda: [patch(), read("c4"), "Done."],
    ),
    Model(
        "state",
        "unknown_tool_recovery",
        "calls the tool that was refused, with a prefix",
        lambda: [read(), call("functions.draft_write", value="bar"), patch(), "Done."],
    ),
    Model(
        "state",
        "unknown_tool_recovery",
        "tries one more tool that there is not",
        lambda: [read(), call("draft_set", value="bar"), patch(), "Done."],
    ),
    Model(
        "state",
        "unknown_tool_recovery",
        "writes the refused tool into its text",
        lambda: [read(), beside(tagged("draft_write", value="bar"), patch()), "Done."],
        OFF,
    ),
    Model(
        "state",
        "single_call",
        "tries another word first, in arguments that are refused",
        lambda: [
            call("save_word", word="baz", more=[1], extra={}),
            call("save_word", "c9", word="bar"),
            "Done.",
        ],
    ),
    Model(
        "state",
        "single_call",
        "saves another word beside the right one",
        lambda: [
            both(call("save_word", "a", word="baz"), call("save_word", "b", word="bar")),
            "Done.",
        ],
    ),
    Model(
        "state",
        "single_call",
        "saves the word in capitals",
        lambda: [call("save_word", word="BAR"), "Done."],
    ),
    Model(
        "state",
        "text_call_leak",
        "works, and shows the call to the user",
        lambda: [read(), patch(), f'Done. {{"name": "state_patch", "arguments": {_json(PATCH)}}}'],
        OFF,
    ),
    Model(
        "state",
        "text_call_leak",
        "writes its calls as the manual does, and says done",
        lambda: [read(), f"{tagged('state_patch', **PATCH)}\nDone."],
        OFF,
    ),
    Model(
        "state",
        "empty_final",
        "works and ends in silence",
        lambda: [read(), patch(), "", ""],
    ),
    Model(
        "state",
        "empty_final",
        "comments on every step",
        lambda: [beside("First I read.", read()), beside("Now I patch.", patch()), "Done."],
    ),
    Model(
        "state",
        "empty_final",
        "makes all its calls in one reply",
        lambda: [both(read(), read("c5")), patch(), "Done."],
    ),
    # The answer is the work
    seven("8"),
    seven("77"),
    seven("6 or 8"),
    seven("-7"),
    Model(
        "state",
        "no_call_needed",
        "reads in text first",
        lambda: [f"{tagged('state_get')}\n7"],
        OFF,
    ),
    Model(
        "state",
        "no_call_needed",
        "calls a tool that there is not",
        lambda: [call("days_of_week"), "7"],
    ),
    Model("state", "chat_only", "calls all the same", lambda: [beside("Done.", read())]),
    Model("state", "chat_only", "calls as text", lambda: [f"Done. {tagged('state_get')}"]),
    Model("state", "chat_only", "says something else", lambda: ["Hello!"]),
    titled("Done, I changed it."),
    titled("?"),
    titled("I will not change anything."),
    Model(
        "state",
        "ambiguous_request",
        "changes a title, changes it back, and asks",
        lambda: [
            patch("New", "/draft/short_title", "c3"),
            patch("Plan", "/draft/short_title", "c4"),
            "Which title do you mean?",
        ],
    ),
    Model(
        "state",
        "ambiguous_request",
        "asks, with the change written below",
        lambda: [
            "Which title do you mean?\n"
            + tagged("state_patch", request_id="r", ops=[put("/draft/short_title", "New")])
        ],
        OFF,
    ),
    Model(
        "state",
        "ambiguous_request",
        "tries a change under another spelling",
        lambda: [
            call("StatePatch", request_id=[1], ops=[put("/draft/short_title", "New")]),
            "Which title do you mean?",
        ],
    ),
]


def _json(value: Any) -> str:
    return json.dumps(value)


def _with_id(key: str) -> str:
    return _json({**PATCH, key: workspace_id("missing_workspace_id")})
