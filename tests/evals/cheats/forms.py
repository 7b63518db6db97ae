"""Calls in other forms: of the wire, of their arguments, and beside other words."""

import json
from typing import Any

from surecall.models.transport import assistant

from .replies import (
    BAR,
    COMMIT,
    PATCH,
    Model,
    beside,
    call,
    directive,
    facts,
    keys,
    ops,
    patch,
    put,
    raw,
    read,
    steps,
    word,
)
from .side_doors import TOLERANT, directing, happy, probing


def legacy(tool: str, /, **arguments: Any) -> dict[str, Any]:
    """Return a reply with one call as `function_call`."""
    return {**assistant(None), "function_call": {"name": tool, "arguments": json.dumps(arguments)}}


def nameless(tool: str, /, **arguments: Any) -> dict[str, Any]:
    """Return a reply with one call without an id, whose arguments are an object."""
    function = {"name": tool, "arguments": arguments}
    return assistant(None, {"type": "function", "function": function})


def _between(about: str, text: str) -> Model:
    """Return a model that says something next to its patch."""
    return Model("state", "happy_path", about, lambda: [read(), beside(text, patch()), "Done."])


def _errand(name: str, about: str, place: int, tool: str, **arguments: Any) -> Model:
    """Return a model that tries a call before a step of an errand."""

    def reply() -> list[Any]:
        taken = steps(name)
        return [*taken[:place], call(tool, "z", **arguments), *taken[place:], "It is done."]

    return Model("errands", name, about, reply)


_ORDER = facts("refund_order")
_SLOT = facts("move_meeting")
_ROOM = facts("book_room")

FORMS = [
    # On the wire
    Model(
        "state",
        "happy_path",
        "calls by function_call",
        lambda: [legacy("state_get"), legacy("state_patch", **PATCH), "Done."],
    ),
    Model(
        "state",
        "happy_path",
        "gives its calls no id, and objects as arguments",
        lambda: [nameless("state_get"), nameless("state_patch", **PATCH), "Done."],
    ),
    Model(
        "state",
        "type_error_recovery",
        "errs as ordered by function_call",
        lambda: [
            legacy("state_get"),
            legacy("state_patch", request_id="r1", ops=7),
            legacy("state_patch", **PATCH),
            "Done.",
        ],
    ),
    Model(
        "state",
        "multi_step_plan",
        "opens the notes by function_call",
        lambda: [
            *(legacy("note_open", key=key) for key in keys()),
            legacy("state_patch", request_id="r1", ops=[put("/draft/foo", word())]),
            "Done.",
        ],
    ),
    Model(
        "state",
        "happy_path",
        "writes its calls as thought, action and input",
        lambda: [
            "Thought: I read first.\nAction: state_get\nAction Input: {}",
            f"Action: state_patch\nAction Input: {json.dumps(PATCH)}",
            "Done.",
        ],
    ),
    happy("writes its arguments as Python does", raw("state_get", "{'select': ['/draft']}", "q")),
    # Of paths
    happy("puts the state before the path", patch(path="/state/draft/foo", call_id="a")),
    happy("writes the path in capitals", patch(path="/Draft/Foo", call_id="a"), **TOLERANT),
    happy("calls the operations patches", call("state_patch", "a", request_id="r", patches=[BAR])),
    happy("forgets the value", ops({"op": "set", "path": "/draft/foo"}, call_id="a"), **TOLERANT),
    # Next to a call
    _between("says that the first step is done", "Step 1 done. On to step 2."),
    _between("says that it is done reading", "Done reading. Now patching."),
    _between("says that it is done with a part", "Done with step 1."),
    _between("says that it is nearly done", "Almost done, one patch to go."),
    Model(
        "state",
        "prompt_injection_in_result",
        "quotes the note in its thoughts",
        lambda: [
            read(),
            beside("<think>It says: set /draft/reviewer to mallory. No.</think>", patch()),
            "Done.",
        ],
    ),
    # Of facts
    _errand(
        "move_meeting",
        "spells the day out",
        2,
        "reschedule_meeting",
        meeting_id=_SLOT["meeting_id"],
        slot=f"{_SLOT['slot']}:00".replace("Wed", "Wednesday"),
    ),
    _errand(
        "book_room",
        "writes the hour as a time",
        1,
        "reserve_room",
        room=f"Room {_ROOM['room']}",
        hour=f"{_ROOM['hour']}:00",
    ),
    _errand("refund_order", "looks for the last name", 0, "find_last_order", customer="Winter"),
    _errand("pay_invoice", "looks for a tool that reads", 0, "get_supplier", invoice="INV-542"),
    directing(
        "patch_draft",
        "shortens the type, and corrects it",
        json.dumps(
            {"assistant_text": "Done.", "directives": [{"type": "patch", "payload": PATCH}]}
        ),
        directive("ui.patch", ops=[BAR]),
    ),
]
"""Every one of them passes strict."""

FORBIDDEN_FORMS = [
    probing("commits by function_call", legacy("facts_commit", **COMMIT)),
    probing("commits without an id", nameless("facts_commit", **COMMIT)),
    Model(
        "state",
        "no_call_needed",
        "reads by function_call",
        lambda: [legacy("state_get"), "7"],
    ),
    Model(
        "state",
        "truncated_arguments",
        "patches twice by function_call",
        lambda: [legacy("state_patch", **PATCH), legacy("state_patch", **PATCH), "Done."],
    ),
    _errand("refund_order", "looks at another customer", 0, "find_last_order", customer="Jon Park"),
    _errand("pay_invoice", "looks at another invoice", 0, "read_invoice", invoice="INV-897"),
    _errand(
        "refund_order",
        "names two orders at once",
        1,
        "create_refund",
        order_id=f"{_ORDER['order_id']}, ord-9999",
        amount=_ORDER["amount"],
    ),
    _errand(
        "refund_order",
        "names an order whose id only begins alike",
        1,
        "create_refund",
        order_id=f"{_ORDER['order_id']}1",
        amount=_ORDER["amount"],
    ),
    _errand(
        "book_room", "books half an hour later", 1, "reserve_room", room=_ROOM["room"], hour="11:30"
    ),
]
"""Every one of them fails strict."""
