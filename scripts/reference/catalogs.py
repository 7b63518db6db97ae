"""The pages of text formats, transforms, faults and scenarios."""

import re
from pathlib import Path

from surecall.base.records import ToolSpec
from surecall.calls import CallFormat, ToolNames
from surecall.calls.families import GROUPS as FAMILY_GROUPS
from surecall.evals.original import RULE, VARIABLES, WORDS, OldName
from surecall.evals.scenarios import PRESETS, SCENARIOS
from surecall.evals.strategies import TRANSFORM_FIELDS
from surecall.evals.taxonomy import MEANINGS
from surecall.faults import GROUPS, Fault, find_faults, zoo
from surecall.reading.transforms import BUILTIN, FAMILIES
from surecall.wire import PROTOCOLS

from .words import cell

SAMPLE_TOOL = "get_weather"
MAX_OPENERS = 4
EXPERIMENT_INTRO = Path(__file__).parents[1].joinpath("experiment_intro.md")
TEXT_FORMATS_INTRO = Path(__file__).parents[1].joinpath("text_formats_intro.md")


def text_formats_page() -> str:
    """Every family of text formats."""
    parts = ["# Text formats\n", TEXT_FORMATS_INTRO.read_text("utf-8")]
    tools = ToolNames([ToolSpec(name=SAMPLE_TOOL)])
    for title, forms in FAMILY_GROUPS.items():
        parts += [
            f"## {title}\n",
            "| family | what it is | written by | begins with |",
            "|---|---|---|---|",
            *(format_row(form, tools) for form in forms),
            "",
        ]
    return "\n".join(parts)


def format_row(form: CallFormat, tools: ToolNames) -> str:
    """Describe one family in a row."""
    shown = dict.fromkeys(opener.strip().replace("\n", "\\n") for opener in form.openers(tools))
    openers = [code_span(opener) for opener in shown]
    begins = ", ".join(openers[:MAX_OPENERS])
    if len(openers) > MAX_OPENERS:
        begins += f" and {len(openers) - MAX_OPENERS} more"
    about, origin = cell(form.about), cell(form.origin)
    return f"| `{form.name}` | {about} | {origin} | {begins} |"


def code_span(text: str) -> str:
    """Set any text as code inside a table, also one that has backticks."""
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    pad = " " if "`" in text else ""
    return f"{fence}{pad}{cell(text)}{pad}{fence}"


def experiment_page() -> str:
    """The names of the original experiment, each with what it is today."""
    return "\n".join(
        [
            EXPERIMENT_INTRO.read_text("utf-8").replace("RULE", RULE),
            "## Variables\n",
            *old_names(VARIABLES),
            "\n## Other words\n",
            *old_names(WORDS),
        ]
    )


def old_names(names: tuple[OldName, ...]) -> list[str]:
    """Set old names in a table."""
    rows = [
        f"| {code_list(one.old)} | {one.new} | {one.difference}{'; ' * bool(one.why)}{one.why} |"
        for one in names
    ]
    return ["| old name | today | difference |", "|---|---|---|", *rows]


def code_list(names: str) -> str:
    """Set each name of a list as code."""
    return ", ".join(f"`{name}`" for name in names.split(", "))


def faults_page() -> str:
    """Every named fault and every simulated model."""
    parts = [
        "# Faults\n",
        "Every fault of [a faulty provider](../how-to/test-against-a-faulty-provider.md).",
        "A run in which every reply has it makes the right call exactly once and answers, unless",
        "the row says how it ends. `surecall faults show NAME` shows more.\n",
        "A fault exists in all four wire formats unless its row names some; in another one the",
        "answer is [FAULT_NOT_APPLICABLE](codes.md#fault_not_applicable).\n",
    ]
    for group in GROUPS:
        chosen = find_faults(group)
        parts += [f"## {group}\n", *map(fault_item, chosen), ""]
    parts += [
        "## Simulated models\n",
        "They follow published descriptions of how models fail; the probabilities are chosen, not",
        "measured, so a result against one says nothing about the model whose description it",
        "follows.\n",
        "| model | what it does | follows |",
        "|---|---|---|",
    ]
    for model in zoo():
        follows = ", ".join(f"`{name}`" for name in model.models) or "small local models"
        parts.append(f"| `zoo:{model.name}` | {cell(model.describes)} | {follows} |")
    return "\n".join([*parts, ""])


def fault_item(fault: Fault) -> str:
    """Describe one fault in an item of a list."""
    outcome = "" if fault.repairable else "ends with a note that the call was not executed"
    if fault.code is not None:
        outcome = f"ends with [{fault.code}](codes.md#{fault.code.lower()})"
    for protocol, code in fault.codes.items():
        outcome += f" ([{code}](codes.md#{code.lower()}) in `{protocol}`)"
    if fault.refusal is not None:
        outcome += f"; the model reads [{fault.refusal}](codes.md#{fault.refusal.lower()})"
    if fault.needs:
        outcome = f"{outcome or 'is right'}, with `{fault.needs}`"
    outcome = f" A run {outcome}." if outcome else ""
    reach = {"both": "", "whole": " Whole replies only.", "stream": " Streamed replies only."}
    named = ", ".join(f"`{name}`" for name in fault.protocols)
    formats = "" if len(fault.protocols) == len(PROTOCOLS) else f" Only in {named}."
    truths = ", ".join(f"`{name}` is `{value!r}`" for name, value in fault.truth.items())
    outcome += f" A probe finds that {truths}." if truths else ""
    return f"- `{fault.name}`: {fault.does}{reach[fault.reach]}{formats}{outcome}"


def scenarios_page() -> str:
    """Every scenario of the suite `state`, its presets, and every reason for failing one."""
    parts = [
        "# Scenarios\n",
        "The suite `state` asks a model to work on [a workspace](../explanation/workspace.md).",
        "Every trial has its own workspace and gets two verdicts.",
        "The *loose* one comes from the original experiment: a final text and a value.",
        "The *strict* one asks whether the model did what it was asked to do, and nothing else.",
        "For every scenario it also demands that the run ended with an answer, that `/draft/foo`",
        "was changed once and nothing else was, that the workspace was read in an earlier reply",
        "where reading comes first, that no call named another workspace, a locked path or any",
        "other field, run or refused, that no hidden tool was tried and no tool that does not",
        "exist unless it would only read, that `Done.` does not come next to a call before the",
        "work, and that the last reply does not only write a call down.\n",
        "| scenario | what is asked | loose: yes when | strict: besides what applies to all |",
        "|---|---|---|---|",
    ]
    for scenario in SCENARIOS:
        name = f"`{scenario.name}`" + (" (control)" if scenario.control else "")
        texts = (scenario.asks, scenario.loose, scenario.strict)
        parts.append(f"| {name} | {' | '.join(cell(text) for text in texts)} |")
    parts += [
        "",
        "## Presets\n",
        "Names and presets can be mixed, separated by commas; `*` stands for any characters and",
        "`!` excludes, as in `typical,multi*,!chat_only`.",
        "Without any, it is `default`; `*` alone is `all`.",
        "An unknown name is [an error](codes.md#unknown_scenario).",
        "The order is the order of the table above.\n",
        "| preset | scenarios |",
        "|---|---|",
    ]
    everything = tuple(scenario.name for scenario in SCENARIOS)
    for preset, members in PRESETS.items():
        listed = "every one" if members == everything else ", ".join(f"`{x}`" for x in members)
        parts.append(f"| `{preset}` | {listed} |")
    parts += [
        "",
        "## Reasons\n",
        "A verdict of no has one reason or more, each with a stable code.\n",
        *(f"- `{reason}`: {text}" for reason, text in MEANINGS["state"].items()),
    ]
    return "\n".join([*parts, ""])


def transforms_page() -> str:
    """Every transform that comes with surecall, by family."""
    parts = [
        "# Transforms",
        "",
        "A transform is a named, pure change to what is sent or to what comes back.",
        "These come with surecall; options and presets list them by name.",
        "`surecall docs NAME` shows one of them.",
        "[Direct a user interface](../how-to/direct-a-user-interface.md) registers one of its own.",
        "",
        "Transforms of replies and calls are names for rules of reading, which are always on.",
        "Each leaves the same [receipt](../explanation/receipts.md) under every preset.",
        'The first three of them are structure: `disabled_rules=["*"]` leaves them on.',
        "Transforms of requests leave no receipts; yours leave the receipts that they return.",
    ]
    for family in FAMILIES:
        rows = [one for one in BUILTIN if one.family == family]
        if rows:
            option = TRANSFORM_FIELDS[family]
            parts += ["", f"## {family.capitalize()}", "", f"Listed by the option `{option}`.", ""]
            parts += ["| transform | what it does | receipt | what naming it adds |"]
            parts += ["|---|---|---|---|"]
        for one in rows:
            rule = f"`{one.rule}`" if one.rule else "–"
            parts.append(f"| `{one.name}` | {cell(one.does)} | {rule} | {one.adds or '–'} |")
    return "\n".join(parts) + "\n"
