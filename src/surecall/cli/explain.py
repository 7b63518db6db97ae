"""`surecall explain`: what a code means, offline."""

import click

from surecall.explain import CodeText, all_codes, explain_code
from surecall.reading import RULES, Rule

from .flags import pass_output
from .output import Output, select_fields
from .terminal import make_table, styled


@click.command
@click.argument("code", required=False)
@click.option("--list", "list_all", is_flag=True, help="List all codes.")
@pass_output
def explain(output: Output, code: str | None, list_all: bool) -> None:
    """Show what CODE, or the rule of a receipt, means and what to do about it."""
    if list_all:
        _list_codes(output)
    elif code is None:
        raise click.UsageError("Name a code, or use --list to see them all.")
    elif rule := RULES.get(code.strip().lower().replace("-", "_")):
        _explain_rule(output, rule)
    else:
        _explain_one(output, explain_code(code))


def _list_codes(output: Output) -> None:
    if output.json:
        output.data({"codes": [select_fields(text, "code", "title") for text in all_codes()]})
        return
    rows = ((text.code, text.title) for text in all_codes())
    output.page().print(make_table({"code": "", "title": ""}, rows, headings=False))


def _explain_rule(output: Output, rule: Rule) -> None:
    if output.json:
        output.data(rule._asdict())
        return
    console = output.page()
    console.print(styled((rule.name, "bold")))
    console.print(rule.sentence)
    console.print()
    console.print("It may lose something." if not rule.lossless else "It loses nothing.")
    off = f"Switch it off with disabled_rules=[{rule.name!r}]."
    console.print(off if rule.switchable else "It cannot be switched off.")


def _explain_one(output: Output, text: CodeText) -> None:
    if output.json:
        output.data(text)
        return
    console = output.page()
    console.print(text.code, style="bold")
    console.print(text.title)
    console.print()
    rows = {"seen": text.seen, "why": text.why, "fix": text.fix, "surecall": text.reaction}
    if text.page:
        rows["read on"] = f"surecall docs {text.page}"
    console.print(make_table({"what": "dim whole", "text": ""}, rows.items(), headings=False))
