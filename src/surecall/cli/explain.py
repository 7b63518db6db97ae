"""`surecall explain`: what a code means, offline."""

from dataclasses import asdict

import click

from surecall.explain import CodeText, all_codes, explain_code

from .flags import output_flags
from .output import ExitCode, Output
from .terminal import make_table

__all__ = ["explain"]


@click.command
@click.argument("code", required=False)
@click.option("--list", "list_all", is_flag=True, help="List all codes.")
@output_flags
@click.pass_obj
def explain(output: Output, code: str | None, list_all: bool) -> ExitCode:
    """Show what CODE means and what to do about it."""
    if code is not None and not list_all:
        return _explain_one(output, explain_code(code))
    if not list_all:
        raise click.UsageError("Name a code, or use --list to see them all.")
    codes = all_codes()
    if output.json:
        output.data({"codes": [{"code": text.code, "title": text.title} for text in codes]})
        return ExitCode.OK
    rows = [(text.code, text.title) for text in codes]
    output.page().print(make_table({"code": "", "title": ""}, rows, headings=False))
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
