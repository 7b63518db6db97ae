"""ReAct: an action and its input."""

import pytest

from support.text_cases import TextCase, check_case, check_no_call

FERRY = ("ferry_times", {"origin": "Pier 4"})
INPUT = '{"origin": "Pier 4"}'
CASES = (
    TextCase(
        "a thought, an action, a made-up observation",
        f"Thought: when?\nAction: ferry_times\nAction Input: {INPUT}\nObservation: 9\nAction: ping",
        (FERRY,),
        "Thought: when?",
    ),
    TextCase(
        "text",
        "Action: ferry_times\nAction Input: Pier 4\nObservation:",
        (FERRY,),
        rules=("only_parameter",),
    ),
    TextCase(
        "text in quotes",
        'Action: ferry_times\nAction Input: "Pier 4"\n',
        (FERRY,),
        rules=("only_parameter",),
    ),
    TextCase(
        "lines that begin like a label",
        "Action: ferry_times\nAction Input: Pier\nObservatory\nActions\nAktionstag\nObservation: 9",
        (("ferry_times", {"origin": "Pier\nObservatory\nActions\nAktionstag"}),),
        rules=("only_parameter",),
    ),
    TextCase(
        "quotes around words of the text",
        "Action: ferry_times\nAction Input: 'a' and 'b'",
        (("ferry_times", {"origin": "'a' and 'b'"}),),
        rules=("only_parameter",),
    ),
    TextCase(
        "text in a fence",
        "Action: ferry_times\nAction Input: ```\nPier 4\n```",
        (("ferry_times", {"origin": "```\nPier 4\n```"}),),
        rules=("only_parameter",),
    ),
    TextCase("a label without its colon", "Action: ping\nObservation", (("ping", {}),)),
    TextCase("numbers", f"Action 1: ferry_times\nAction Input 1: {INPUT}", (FERRY,)),
    TextCase("bold", f"**Action:** `ferry_times`\n**Action Input:** {INPUT}", (FERRY,)),
    TextCase("bold words", f"**Action**: ferry_times\n**Action Input**: {INPUT}", (FERRY,)),
    TextCase("a sentence", f"Action: ferry_times (to look)\nAction Input: {INPUT}", (FERRY,)),
    TextCase("brackets", f"Action: [ferry_times]\nAction Input: {INPUT}", (FERRY,)),
    TextCase("a fence", f"Action: ferry_times\nAction Input:\n```json\n{INPUT}\n```", (FERRY,)),
    TextCase(
        "several lines",
        'Action: ferry_times\nAction Input: {\n"origin":\n"Pier 4"\n}\n',
        (FERRY,),
    ),
    TextCase(
        "an object in a fence",
        'Action:\n```json\n{"action": "ferry_times", "action_input": {"origin": "Pier 4"}}\n```',
        (FERRY,),
    ),
    TextCase(
        "written as a call",
        'Action: ferry_times(origin="Pier 4")',
        (FERRY,),
        rules=("split_action",),
    ),
    TextCase(
        "written with brackets",
        "Action: ferry_times[Pier 4]",
        (FERRY,),
        rules=("only_parameter", "split_action"),
    ),
    TextCase("nothing to give", "Action: ping\nObservation: up", (("ping", {}),)),
    TextCase("no input", "Action: ping\nAction Input: None", (("ping", {}),)),
    TextCase(
        "text for many parameters",
        "Action: save_note\nAction Input: buy milk",
        (("save_note", {"title": "buy milk"}),),
        rules=("only_parameter",),
    ),
    *(
        TextCase(
            f"{text!r} is not plain",
            f"Action: ferry_times\nAction Input: {text}",
            (("ferry_times", text),),
            states=("unreadable",),
        )
        for text in ("origin=Pier 4", "Origin: Pier 4", "null", '["Pier 4"')
    ),
    TextCase(
        "cut",
        'Action: ferry_times\nAction Input: {"origin": "Pi',
        (("ferry_times", '{"origin": "Pi'),),
        states=("cut",),
    ),
    TextCase(
        "cut before the input",
        "Action: ferry_times\nAction Input:",
        (("ferry_times", ""),),
        states=("cut",),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_first_action_is_read(case: TextCase) -> None:
    """A known name and its input are a call; what follows is made up."""
    check_case(case)


@pytest.mark.parametrize(
    "text",
    [
        "Action: we will now proceed.",
        "Action: ping",
        "Action: ferry_times\nThen we see.",
        "Action: other\nAction Input: {}",
        "Take Action: ping\nAction Input: {}",
        "Actions speak louder.",
        "Action",
        "ACT II\nAction: the lamp is dimmed.\nObservation: it is dark.",
    ],
)
def test_prose_about_actions_is_text(text: str) -> None:
    """A label without a known name and an input is prose."""
    check_no_call(text)
