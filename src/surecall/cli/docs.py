"""`surecall docs`: pages by name or content, and what a code or another name means; offline."""

from typing import TYPE_CHECKING, Any, Final

import click

from surecall.base.codes import all_codes, explain_code
from surecall.base.errors import Code, ConfigError
from surecall.cli.manual import Page, find_page, list_pages, search_pages

from .console import Output, select_fields
from .flags import flag, output_flags, pass_output
from .groups import LazyGroup
from .suggestions import complete_pages, complete_topics
from .terminal import styled

if TYPE_CHECKING:
    from surecall.cli.topics import Topic

_KINDS: Final = (
    *("code", "rule", "transform", "format", "fault", "behaviour", "preset", "profile"),
    *("strategy", "scenario", "option", "value", "setting", "word"),
)
_MAX_FOUND: Final = 8


@click.group(
    cls=LazyGroup,
    entries={},
    default="show",
    invoke_without_command=True,
    subcommand_metavar="[WORD]... | COMMAND [ARGS]...",
)
@output_flags
@click.pass_context
def docs(context: click.Context) -> None:
    """Find WORD: the page of this name, else what the code or name means, else pages about it.

    Without a word all pages are listed.
    """
    if context.invoked_subcommand is None:
        context.invoke(show, words=())


@docs.command("show", hidden=True)
@click.argument("words", nargs=-1, shell_complete=complete_pages)
@pass_output
def show(output: Output, words: tuple[str, ...]) -> None:
    """Print the page of this name, what the name means, or the pages that speak of it."""
    if not words:
        _list_pages(output, list_pages(), "pages")
        return
    text = " ".join(words)
    if (code := text.strip().upper()) in Code.__members__:
        _show_topics(output, _find(code, None))
        return
    try:
        page = find_page(text)
    except ConfigError as unknown:
        _explain_or_search(output, text, unknown)
    else:
        _print_page(output, page)


@docs.command("explain", short_help="Show what a code, an option or another name means.")
@click.argument("name", required=False, shell_complete=complete_topics)
@flag("--kind", "Only names of this kind.", choices=_KINDS)
@flag("--list", "List all codes, or all names of a kind.", to="list_all")
@pass_output
def explain(output: Output, name: str | None, kind: Any, list_all: bool) -> None:
    """Show what NAME means and what to do about it.

    NAME is a code, the rule of a receipt, a transform, a text format, a fault, a simulated
    behaviour, a preset, a sampling profile, a strategy, a scenario, an option or its value, a
    setting, or a word from the tables of variables, events, metrics and report files.
    """
    if list_all:
        _list_names(output, kind or "code")
    elif name is None:
        raise click.UsageError("Name a code or something else, or use --list.")
    else:
        _show_topics(output, _find(name, kind))


def _explain_or_search(output: Output, text: str, unknown: ConfigError) -> None:
    try:
        found = _find(text, None)
    except ConfigError:
        pages = search_pages(text)[:_MAX_FOUND]
        if not pages:
            raise unknown from None
        _list_pages(output, pages, "found")
    else:
        _show_topics(output, found)


def _list_pages(output: Output, listed: "tuple[Page, ...]", kind: str) -> None:
    columns = {"topic": "whole", "kind": "dim whole", "title": ""}
    pages = [select_fields(page, *columns) for page in listed]
    data = {"type": kind, "pages": pages}
    output.listing(data, columns, (page.values() for page in pages), optional=("kind",))
    if kind == "found" and not output.json:
        output.note("print one with: surecall docs TOPIC")


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


def _find(name: str, kind: Any) -> "tuple[Topic, ...]":
    from surecall.cli.topics import explain_topic

    is_code = kind is None and name in Code.__members__
    return explain_topic(name, "code" if is_code else kind)


def _show_topics(output: Output, found: "tuple[Topic, ...]") -> None:
    if output.json:
        others = [_render(topic) for topic in found[1:]]
        more = {"others": others} if others else {}
        output.data({"type": "explanation", **_render(found[0]), **more})
        return
    for number, topic in enumerate(found):
        _show_topic(output, topic, is_first=number == 0)


def _list_names(output: Output, kind: Any) -> None:
    if kind == "code":  # the rest of surecall is not needed for them
        names = [(text.code, text.title) for text in all_codes()]
    else:
        from surecall.cli.topics import list_topics

        names = [(topic.name, topic.title) for topic in list_topics(kind)]
    key = "code" if kind == "code" else "name"
    listed = [{key: name, "title": title} for name, title in names]
    data = {"type": f"{key}s", f"{key}s": listed}
    output.listing(data, {"name": "", "title": ""}, names, headings=False)


def _render(topic: "Topic") -> dict[str, Any]:
    """Return a topic as data; a code has its own fields."""
    if topic.kind == "code":
        return select_fields(
            explain_code(topic.name), "code", "title", "seen", "why", "fix", "reaction", "page"
        )
    return select_fields(topic, "kind", "name", "title", "details")


def _show_topic(output: Output, topic: "Topic", *, is_first: bool) -> None:
    console = output.page()
    if not is_first:
        console.print()
    kind = "" if topic.kind == "code" else f"  {topic.kind}"
    console.print(styled((topic.name, "bold"), (kind, "dim")))
    console.print(topic.title)
    if topic.details:
        console.print()
        output.facts(topic.details.items())
