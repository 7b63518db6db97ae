"""Models that mean the right thing and write it in a form that is refused, or unusual."""

from .replies import (
    BAR,
    LONG,
    Model,
    call,
    directive,
    facts,
    keys,
    notes,
    one_tool_call,
    ops,
    patch,
    put,
    read,
    stage_call,
    word,
)
from .side_doors import TOLERANT, directing, happy, refunding, saying, uploading, weather

SLIPS = [
    # Forms of the right thing that are refused and corrected
    happy("gives the path in parts, and corrects it", ops({**BAR, "path": ["draft", "foo"]})),
    happy(
        "gives the change as an object, and corrects it",
        call("state_patch", "a", request_id="r", ops={"draft": {"foo": "bar"}}),
    ),
    happy("puts the snapshot before the path", patch(path="/snapshot/draft/foo", call_id="a")),
    happy("sends a placeholder for the id", read("c8", workspace_id="<id>"), **TOLERANT),
    Model(
        "state",
        "multi_step_plan",
        "sends the key in capitals, then rightly",
        lambda: [call("note_open", "g", key=keys()[0].upper()), *notes(), patch(word()), "Done."],
    ),
    Model(
        "state",
        "multi_step_plan",
        "copies the name of the key as well, then only the key",
        lambda: [
            call("note_open", "g", key=f"first_key={keys()[0]}"),
            *notes(),
            patch(word()),
            "Done.",
        ],
    ),
    Model(
        "state",
        "long_arguments_guard",
        "writes the long value on two lines",
        lambda: [read(), patch(f"{LONG[:200]}\n{LONG[:200]}", call_id="a"), patch(), "Done."],
    ),
    refunding(
        "writes the currency into the amount",
        call("create_refund", "z", order_id=facts("refund_order")["order_id"], amount="222 EUR"),
    ),
    refunding(
        "writes the order in capitals",
        call(
            "create_refund",
            "z",
            **{
                **{name: facts("refund_order")[name] for name in ("order_id", "amount")},
                "order_id": f"#{facts('refund_order')['order_id'].upper()}",
            },
        ),
    ),
    directing(
        "patch_draft", "leaves the slash out", directive("ui.patch", ops=[put("draft/foo", "bar")])
    ),
    directing(
        "patch_draft_by_tool",
        "forgets the path, then names it",
        call("ui_patch", "a", ops=[{"op": "set", "value": "bar"}]),
        call("ui_patch", "b", ops=[BAR]),
        "Done.",
    ),
    saying("Draft saved. Nothing was lost."),
    saying("Draft saved, you won't lose your work."),
    uploading("Avatar", accept=["image/png"]),
    uploading("An image of your character, no larger than 5 MB"),
    Model(
        "one_tool",
        "one_tool",
        "makes the same call in lower case again",
        lambda: [weather(), weather(city=one_tool_call()[1]["city"].lower()), "Done."],
    ),
    Model(
        "agents",
        "intent",
        "looks for a tool that lists workspaces",
        lambda: [call("list_workspaces", "z"), stage_call("intent"), "Done."],
        TOLERANT,
    ),
]
"""Every one of them passes strict."""
