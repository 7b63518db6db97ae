"""`surecall docs`: the pages of the documentation, offline."""

import click

from surecall.cli.manual import Page, find_page, list_pages

from .flags import pass_output
from .output import Output, select_fields
from .suggestions import complete_pages
from .terminal import make_table


@click.command
@click.argument("topic", required=False, shell_complete=complete_pages)
@pass_output
def docs(output: Output, topic: str | None) -> None:
    """Print the page about TOPIC, or list all pages."""
    if topic is None:
        _list_pages(output)
    else:
        _print_page(output, find_page(topic))


def _list_pages(output: Output) -> None:
    if output.json:
        pages = [select_fields(page, "topic", "kind", "title") for page in list_pages()]
        output.data({"type": "pages", "pages": pages})
        return
    rows = ((page.topic, page.kind, page.title) for page in list_pages())
    columns = {"topic": "whole", "kind": "dim whole", "title": ""}
    output.page().print(make_table(columns, rows, optional=("kind",)))


def _print_page(output: Output, page: Page) -> None:
    if output.json:
        output.data({"type": "page", **page._asdict()})
        return
    console = output.page()
    if console.is_terminal:
        from rich.markdown import Markdown

        console.print(Markdown(page.text, hyperlinks=False))
    else:
        output.text(page.text)
