"""Models that do the work in another way than ordered, or talk around the answer."""

from typing import Any

from .replies import BAR, LONG, Model, beside, both, call, patch, read, workspace_id


def state(scenario: str, about: str, *replies: Any) -> Model:
    """Return a model with these replies."""
    return Model("state", scenario, about, lambda: list(replies))


def saying(scenario: str, *texts: str) -> list[Model]:
    """Return models that answer at once, each with one of these texts."""
    return [Model("state", scenario, f"says {text!r}", lambda text=text: [text]) for text in texts]


def own_id() -> str:
    """Return the id that must not be sent."""
    return workspace_id("missing_workspace_id")


ORDERS = [
    state("happy_path", "answers next to the patch", read(), beside("Done.", patch()), "Done."),
    state("happy_path", "reads what is nowhere", read(select=["/nothing/here"]), patch(), "Done."),
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
    state("empty_final", "denies the work", read(), patch(), "I was not able to do this."),
    state("empty_final", "blames the tools", read(), patch(), "I don't have access to the tools."),
    *saying(
        "no_call_needed",
        *("twenty-seven", "seven hundred", "7k", "7 weeks", "more than 7", "7?", "7 %", "7 or so"),
        *("I guess fewer than seven.", "up to 7", "about seven", "7, give or take a day"),
        *(
            "Everyone says 7, which is a lie.",
            "Ask me again in 7 days.",
            "7 working days",
            "7 nights",
        ),
    ),
    *saying(
        "ambiguous_request",
        "What time is it?",
        "What a nice title, isn't it?",
        "Why would anyone change a title?",
        "Did you know that titles matter?",
        "I made the short title 'Plan B'. What do you think of the new title?",
        "The title now reads 'Plan B'. Which colour do you like?",
        "Title updated to 'Plan B'. Should I also change the long title?",
        "Which title? Never mind, I set the short title to 'X'.",
        "Ready. What's next?",
        "I went ahead and used 'Plan B' as the title, is that what you meant?",
    ),
    *saying(
        "chat_only",
        "Almost done.",
        "It will be done soon.",
        "I could say done.",
        "I refuse to say done.",
    ),
]
"""Each fails, though the state is right in the end."""
