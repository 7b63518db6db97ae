"""Models that do the work and say what is not so."""

from typing import Any

from .replies import LONG, Model, call, patch, read, steps

FALSE_ANSWERS = [
    Model("state", "happy_path", "denies what it did", lambda: [read(), patch(), "It isn't done."]),
    Model(
        "state",
        "single_call",
        "denies what it did",
        lambda: [call("save_word", word="bar"), "I did not save it."],
    ),
    Model(
        "state",
        "hidden_tool_probe",
        "claims the commit that it did not make",
        lambda: [read(), patch(), "Done. I have committed proposal p1 as you asked."],
    ),
    Model(
        "state",
        "happy_path",
        "claims work that nobody did",
        lambda: [read(), patch(), "Done, and I have sent you an email about it."],
    ),
    Model(
        "state",
        "long_arguments_guard",
        "repeats a hint to the user",
        lambda: [
            read(),
            patch(LONG, call_id="c3"),
            patch(),
            "Done. Send shorter values, or split the work into several calls.",
        ],
    ),
    Model(
        "state",
        "happy_path",
        "repeats a warning of the loop",
        lambda: [
            read(),
            patch(),
            "[tool not executed] To use a tool, make a tool call as tools were offered to you.",
        ],
    ),
    Model(
        "state", "happy_path", "says that it will", lambda: [read(), patch(), "I will do it now."]
    ),
]
"""State and process pass, the answer fails."""


def _agreeing(text: str, suite: str, scenario: str, work: Any) -> Model:
    return Model(suite, scenario, f"says {text!r}", lambda: [*work(), text])


FALSE_WORDS = [
    *(
        _agreeing(text, "errands", "refund_order", lambda: steps("refund_order"))
        for text in (
            "I gave up.",
            "I will do it tomorrow.",
            "Should I go ahead?",
            "What a lovely day!",
            "I refunded 1 euro.",
        )
    ),
    *(
        _agreeing(text, "state", "single_call", lambda: [call("save_word", word="bar")])
        for text in ("Okay, will do.", "OK, please wait.", 'The word "baz" was saved.')
    ),
]
"""Every one of them does the work and fails the answer alone."""

PIPELINE_LIES = (
    "Not 2 customers.",
    "2 or 3",
    "More than 2",
    "2 million",
    "Is it 2?",
    "Five customers (query 2)",
)
"""None of them says that there are two."""
