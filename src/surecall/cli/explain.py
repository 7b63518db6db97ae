"""`surecall explain`: what a code means, offline."""

from dataclasses import asdict

import click

from surecall.explain import CodeText, all_codes, explain_code
from surecall.reading import RULES, Rule

from .flags import output_flags
from .output import ExitCode, Output
from .terminal import make_table


@click.command
@click.argument("code", required=False)
@click.option("--list", "list_all", is_flag=True, help="List all codes.")
@output_flags
@click.pass_obj
def explain(output: Output, code: str | None, list_all: bool) -> ExitCode:
    """Show what CODE, or the rule of a receipt, means and what to do about it."""
    if code is not None and not list_all:
        rule = RULES.get(code.strip().lower().replace("-", "_"))
        return (
            _explain_one(output, explain_code(code))
            if rule is None
            else _explain_rule(output, rule)
        )
    if not list_all:
        raise click.UsageError("Name a code, or use --list to see them all.")
    codes = all_codes()
    if output.json:
        output.data({"codes": [{"code": text.code, "title": text.title} for text in codes]})
        return ExitCode.OK
    rows = [(text.code, text.title) for text in codes]
    output.page().print(make_table({"code": "", "title": ""}, rows, headings=False))
    return ExitCode.OK


def _explain_rule(output: Output, rule: Rule) -> ExitCode:
    if output.json:
        output.data(rule._asdict())
        return ExitCode.OK
    console = output.page()
    from rich.text import Text

    console.print(Text(rule.name, "bold"))
    console.print(Text(rule.sentence))
    console.print()
    console.print("It may lose something." if not rule.lossless else "It loses nothing.")
    off = f"Switch it off with disabled_rules=[{rule.name!r}]."
    console.print(Text(off if rule.switchable else "It cannot be switched off."))
    return ExitCode.OK


def _explain_one(output: Output, text: CodeText) -> ExitCode:
    if output.json:
        output.data(asdict(text))
        return ExitCode.OK
    console = output.page()
    console.print(text.code, style="bold")
    console.print(text.title)
    console.print()
    rows = {"seen": text.seen, "why": text.why, "fix": text.fix, "surecall": text.reaction}
    console.print(make_table({"what": "dim whole", "text": ""}, rows.items(), headings=False))
    return ExitCode.OK
