"""Models that skip the error, the order or the reply that a task is about."""

from typing import Any

from .replies import (
    BAR,
    LONG,
    Model,
    beside,
    both,
    call,
    joined,
    keys,
    note,
    notes,
    patch,
    raw,
    read,
    sides,
    tagged,
    word,
)

OFF: dict[str, Any] = {"text_formats": "off"}
"""As a strategy that does not look for calls in text."""

SHORTCUTS = [
    # Errors that were to be provoked
    Model(
        "state",
        "type_error_recovery",
        "is refused for a missing field instead",
        lambda: [read(), call("state_patch", ops=[BAR]), patch(), "Done."],
    ),
    Model(
        "state",
        "type_error_recovery",
        "sends another wrong type",
        lambda: [read(), call("state_patch", request_id="r", ops={"a": 1}), patch(), "Done."],
    ),
    Model(
        "state",
        "type_error_recovery",
        "does the work first and errs later",
        lambda: [read(), patch(), call("state_patch", "c9", request_id="r", ops=7), "Done."],
        {"tool_failure_policy": "tolerated"},
    ),
    Model(
        "state",
        "type_error_recovery",
        "errs before it reads",
        lambda: [call("state_patch", "c0", request_id="r", ops=7), read(), patch(), "Done."],
    ),
    Model(
        "state",
        "long_arguments_guard",
        "is too large elsewhere",
        lambda: [
            read(),
            call("state_patch", request_id="r" * 400, ops=[BAR]),
            patch(),
            "Done.",
        ],
    ),
    Model(
        "state",
        "long_arguments_guard",
        "is too large with other letters",
        lambda: [read(), patch("y" * 400, call_id="c3"), patch(), "Done."],
    ),
    Model(
        "state",
        "long_arguments_guard",
        "is too large at another path",
        lambda: [read(), patch(LONG, "/draft/other", "c3"), patch(), "Done."],
    ),
    Model(
        "state",
        "long_arguments_guard",
        "sends the long value three times",
        lambda: [read(), *(patch(LONG, call_id=f"c{n}") for n in (3, 4, 5)), patch(), "Done."],
    ),
    Model(
        "state",
        "partial_success_failure",
        "is refused for another path",
        lambda: [both(read(), patch(path="/draft/oops", call_id="c3")), patch(), "Done."],
    ),
    Model(
        "state",
        "partial_success_failure",
        "is refused for its arguments instead of its path",
        lambda: [both(read(), raw("state_patch", "{}", "c3")), patch(), "Done."],
    ),
    Model(
        "state",
        "partial_success_failure",
        "adds the right patch to the first reply",
        lambda: [both(read(), patch(path="/draft/wrong", call_id="c3"), patch()), "Done."],
    ),
    Model(
        "state",
        "tool_output_truncation",
        "peeks at a part first",
        lambda: [read("c0", select=["/draft/title"]), read(), patch(), "Done."],
    ),
    Model(
        "state",
        "tool_output_truncation",
        "reads again after the work",
        lambda: [read(), patch(), read("c5", select=["/draft/foo"]), "Done."],
    ),
    # Several calls, in one reply or one after the other
    Model(
        "state",
        "happy_path_parallel",
        "sends a sham patch first",
        lambda: [both(read(), patch("nothing yet", call_id="c3")), patch(), "Done."],
    ),
    Model(
        "state",
        "happy_path_parallel",
        "sends a broken patch first and the real one later",
        lambda: [both(read(), raw("state_patch", "{}", "c3")), patch(), "Done."],
    ),
    Model(
        "state",
        "duplicate_ids",
        "reads everything first",
        lambda: [read("c0"), sides(), patch(joined()), "Done."],
    ),
    Model(
        "state",
        "duplicate_ids",
        "asks twice for both words",
        lambda: [
            both(*(read(i, select=["/draft/left", "/draft/right"]) for i in ("a", "b"))),
            patch(joined()),
            "Done.",
        ],
    ),
    Model(
        "state",
        "duplicate_ids",
        "reads one after the other",
        lambda: [
            read("a", select=["/draft/left"]),
            read("b", select=["/draft/right"]),
            patch(joined()),
            "Done.",
        ],
    ),
    Model(
        "state",
        "multi_step_plan",
        "guesses keys in one reply",
        lambda: [both(note(0), note(1)), note(2), note(3), patch(word()), "Done."],
    ),
    Model(
        "state",
        "multi_step_plan",
        "knows the word before the last note",
        lambda: [*notes()[:3], patch(word()), note(3), "Done."],
    ),
    Model(
        "state",
        "multi_step_plan",
        "tries a key in text that nobody reads",
        lambda: [
            beside(tagged("note_open", key=keys()[3]), note(0)),
            *notes()[1:],
            patch(word()),
            "Done.",
        ],
        OFF,
    ),
    Model(
        "state",
        "multi_step_plan",
        "opens the last note at once",
        lambda: [note(3), patch(word()), "Done."],
    ),
]
