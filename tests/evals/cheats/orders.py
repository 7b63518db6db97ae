"""Models that do the work in another way than ordered, or talk around the answer."""

from typing import Any

from .replies import BAR, LONG, Model, beside, both, call, patch, read, workspace_id


def state(scenario: str, about: str, *replies: Any) -> Model:
    """Return a model with these replies."""
    return Model("state", scenario, about, lambda: list(replies))


def own_id() -> str:
    """Return the id that must not be sent."""
    return workspace_id("missing_workspace_id")


ORDERS = [
    state("happy_path", "answers next to the patch", read(), beside("Done.", patch()), "Done."),
    state("happy_path", "reads what is nowhere", read(select=["/nothing/here"]), patch(), "Done."),
    state("happy_path", "reads an unset field", read(select=["/draft/zzz"]), patch(), "Done."),
    state("happy_path", "reads below a value", read(select=["/draft/title/x"]), patch(), "Done."),
    state("happy_path", "reads the facts alone", read(select=["/facts/owner"]), patch(), "Done."),
    state(
        "partial_success_failure",
        "meets another error first",
        both(read(), call("state_patch", "c2", request_id="r1", ops=7)),
        patch(path="/draft/wrong", call_id="c3"),
        patch(call_id="c4"),
        "Done.",
    ),
    state(
        "partial_success_failure",
        "repeats the error",
        both(read(), patch(path="/draft/wrong")),
        patch(path="/draft/wrong", call_id="c3"),
        patch(call_id="c4"),
        "Done.",
    ),
    state(
        "long_arguments_guard",
        "sends a long id in place of a long value",
        read(),
        patch(request_id=LONG),
        patch(call_id="c3"),
        "Done.",
    ),
    state(
        "long_arguments_guard",
        "tries another long value",
        read(),
        patch(LONG),
        patch("y" * 400, call_id="c5"),
        patch(call_id="c3"),
        "Done.",
    ),
    Model(
        "state",
        "missing_workspace_id",
        "sends the id without hyphens",
        lambda: [read(), patch(request_id=own_id().replace("-", "")), "Done."],
    ),
    Model(
        "state",
        "missing_workspace_id",
        "sends the id in capitals",
        lambda: [read(), patch(request_id=own_id().upper()), "Done."],
    ),
    state(
        "missing_workspace_id",
        "hides an empty id behind a long one",
        read(),
        call("state_patch", request_id="r" * 220, ops=[BAR], workspace_id=""),
        "Done.",
    ),
    state("empty_final", "ends with a space of no width", read(), patch(), "\u200b"),
    state("empty_final", "ends with dots", read(), patch(), "..."),
]
"""Each fails, though the state is right in the end."""
