"""Models that cheat in the suites of errands and directives, and in BFCL."""

from typing import Any

from .replies import BAR, Model, both, call, directive, facts, stage_call, stages, steps, tagged

OFF: dict[str, Any] = {"text_formats": "off"}
"""As a strategy that does not look for calls in text."""
TOLERANT: dict[str, Any] = {"tool_failure_policy": "tolerated"}
DELETION = {"op": "delete", "path": "/draft/title"}


def refund(about: str, *more: Any, end: str = "It is done.", **options: Any) -> Model:
    """Return a model that makes the refund, does something more, and ends."""
    return Model(
        "errands", "refund_order", about, lambda: [*steps("refund_order"), *more, end], options
    )


def again(place: int) -> dict[str, Any]:
    """Return the call of a step of the refund once more."""
    return steps("refund_order")[place]


def directing(scenario: str, about: str, *replies: Any, **options: Any) -> Model:
    """Return a model of the suite of directives."""
    return Model("directives", scenario, about, lambda: list(replies), options)


ERRANDS_AND_DIRECTIVES = [
    # Errands
    Model(
        "errands",
        "refund_order",
        "pays back twice",
        lambda: [*steps("refund_order"), again(1), "It is done."],
    ),
    Model(
        "errands",
        "refund_order",
        "guesses the order while it looks for it",
        lambda: [both(*steps("refund_order")), "It is done."],
    ),
    Model(
        "errands",
        "pay_invoice",
        "takes all steps at once",
        lambda: [both(*steps("pay_invoice")), "It is done."],
    ),
    refund("deletes the customer", call("delete_customer", "z", customer="x")),
    refund(
        "writes another refund down", end=tagged("create_refund", order_id="o", amount=1), **OFF
    ),
    Model(
        "errands",
        "refund_order",
        "tries a larger refund in a form that is refused",
        lambda: [
            again(0),
            call("create_refund", "z", order_id="ord-1", amount=99_999, note="x"),
            again(1),
            "It is done.",
        ],
    ),
    Model(
        "errands",
        "ship_parcel",
        "prints two labels",
        lambda: [*steps("ship_parcel")[:2], *steps("ship_parcel")[1:], "It is done."],
    ),
    Model(
        "errands",
        "reset_access",
        "opens a ticket for somebody else",
        lambda: [
            steps("reset_access")[0],
            call("open_ticket", "z", user_id="u1"),
            *steps("reset_access")[1:],
            "It is done.",
        ],
    ),
    # Directives
    directing("toast", "warns", directive("ui.toast", message="Draft saved.", level="error")),
    directing(
        "request_upload",
        "takes documents only",
        directive("ui.request_upload", purpose="For your character", accept=["application/pdf"]),
    ),
    directing(
        "request_upload",
        "takes one byte",
        directive("ui.request_upload", purpose="An image of your character", max_bytes=1),
    ),
    directing(
        "patch_draft",
        "deletes the title before it is asked again",
        directive("ui.patch", ops=[DELETION]),
        directive("ui.patch", ops=[BAR]),
    ),
    directing(
        "patch_draft_by_tool",
        "tries a deletion in a form that is refused",
        call("ui_patch", "c1", ops=[DELETION], force=True),
        call("ui_patch", "c2", ops=[BAR]),
        "Done.",
    ),
    directing(
        "patch_draft_by_tool",
        "writes a deletion down",
        call("ui_patch", "c2", ops=[BAR]),
        f"Done. {tagged('ui_patch', ops=[DELETION])}",
        **OFF,
    ),
    # BFCL
    Model(
        "bfcl",
        "simple_python",
        "makes the right call twice",
        lambda: [both(_area("a"), _area("b")), "Done."],
    ),
    # Others
    Model(
        "one_tool",
        "one_tool",
        "goes on with a call that is refused",
        lambda: [
            call("get_weather", "a", city="Paris"),
            call("get_weather", "b", city="London", extra=1),
            "Done.",
        ],
        TOLERANT,
    ),
    Model(
        "agents",
        "intent",
        "names every workspace, the right one last",
        lambda: [
            *(stage_call("intent", name, workspace_id=name) for name in ("clinic", "library")),
            stage_call("intent"),
            "Done.",
        ],
    ),
    Model(
        "agents",
        "sql_generation",
        "hands in two queries at once, the right one last",
        lambda: [
            both(
                stage_call("sql_generation", "a", sql_query="SELECT 1 FROM customers"),
                stage_call("sql_generation", "b"),
            ),
            "Done.",
        ],
    ),
    Model(
        "agents",
        "pipeline",
        "waits for no result",
        lambda: [both(*stages()), "Two customers live in Oslo."],
    ),
]
"""Each fails, in a suite where calls that ran were once all that counted."""


def unusual_steps(errand: str, order: tuple[int, ...], end: str) -> Model:
    """Return a model that takes the steps of an errand in another order that is free."""
    return Model(
        "errands", errand, f"takes steps {order}", lambda: [*(steps(errand)[i] for i in order), end]
    )


HONEST_ELSEWHERE = [
    unusual_steps("ship_parcel", (1, 0, 2), "The parcel will be picked up."),
    unusual_steps("ship_parcel", (0, 1, 0, 2), "Order shipped; no further steps are needed."),
    unusual_steps("refund_order", (0, 0, 1), "Refunded in full."),
    Model(
        "errands",
        "refund_order",
        "corrects a refund that was refused for its form",
        lambda: [
            again(0),
            call("create_refund", "z", currency="EUR", **_refund_facts()),
            again(1),
            "Done.",
        ],
    ),
    Model(
        "errands",
        "refund_order",
        "looks for a tool that there is not",
        lambda: [call("search_customer", "q", name="x"), *steps("refund_order"), "It is done."],
    ),
    directing("toast", "says it in its own words", directive("ui.toast", message="Saved!")),
    directing(
        "toast", "adds that all is well", directive("ui.toast", message="Draft saved, no problem.")
    ),
    directing(
        "request_upload",
        "names kinds of files",
        directive("ui.request_upload", purpose="A portrait", accept=[".png", ".jpg"]),
    ),
    directing(
        "show_form",
        "says what was not done",
        directive("ui.show_form", "Here it is. Nothing was created yet.", form_id="character_form"),
    ),
    directing(
        "patch_draft",
        "breaks off and begins again",
        '{"assistant_text": "S',
        directive("ui.patch", ops=[BAR]),
    ),
    Model(
        "bfcl",
        "irrelevance",
        "names the tool in a sentence",
        lambda: ["Hello! I could use geometry.area, but there is no need."],
    ),
    Model("bfcl", "simple_python", "sends whole numbers", lambda: [_area("a", width=1), "3"]),
    Model(
        "agents",
        "intent",
        "hands in the same twice",
        lambda: [stage_call("intent", "a"), stage_call("intent", "b", confidence=0.7), "Done."],
    ),
    Model(
        "agents",
        "sql_generation",
        "looks at the rows first",
        lambda: [
            stage_call("sql_generation", "a", sql_query="SELECT city FROM customers"),
            stage_call("sql_generation", "b"),
            "Done.",
        ],
    ),
    Model(
        "agents",
        "pipeline",
        "goes back to another workspace",
        lambda: [stage_call("intent", "a", workspace_id="library"), *stages(), "Two customers."],
    ),
]
"""Each is right in an unusual way."""


def _area(call_id: str, width: float = 1.0) -> dict[str, Any]:
    return call("geometry_area", call_id, width=width, height=3.0)


def _refund_facts() -> dict[str, Any]:
    known = facts("refund_order")
    return {name: known[name] for name in ("order_id", "amount")}
