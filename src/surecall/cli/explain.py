"""`surecall explain`: what a code, or anything else with a name, means; offline."""

from typing import TYPE_CHECKING, Any, Final

import click

from surecall.base.codes import all_codes, explain_code
from surecall.base.errors import Code

from .flags import pass_output
from .output import Output, select_fields
from .suggestions import complete_topics
from .terminal import make_table, styled

if TYPE_CHECKING:
    from surecall.cli.topics import Topic

_KINDS: Final = (
    *("code", "rule", "transform", "format", "fault", "behaviour", "preset", "profile"),
    *("strategy", "scenario", "option", "value", "setting", "word"),
)


@click.command
@click.argument("name", required=False, shell_complete=complete_topics)
@click.option("--kind", type=click.Choice(_KINDS), help="Only names of this kind.")
@click.option("--list", "list_all", is_flag=True, help="List all codes, or all names of a kind.")
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
        found = _find(name, kind)
        if output.json:
            others = [_render(topic) for topic in found[1:]]
            more = {"others": others} if others else {}
            output.data({"type": "explanation", **_render(found[0]), **more})
            return
        for number, topic in enumerate(found):
            _show(output, topic, is_first=number == 0)


def _find(name: str, kind: Any) -> "tuple[Topic, ...]":
    from surecall.cli.topics import explain_topic

    is_code = kind is None and name in Code.__members__
    return explain_topic(name, "code" if is_code else kind)


def _list_names(output: Output, kind: Any) -> None:
    if kind == "code":  # the rest of surecall is not needed for them
        names = [(text.code, text.title) for text in all_codes()]
    else:
        from surecall.cli.topics import list_topics

        names = [(topic.name, topic.title) for topic in list_topics(kind)]
    if output.json:
        key = "code" if kind == "code" else "name"
        listed = [{key: name, "title": title} for name, title in names]
        output.data({"type": f"{key}s", f"{key}s": listed})
        return
    output.page().print(make_table({"name": "", "title": ""}, names, headings=False))


def _render(topic: "Topic") -> dict[str, Any]:
    """Return a topic as data; a code has its own fields."""
    if topic.kind == "code":
        return select_fields(
            explain_code(topic.name), "code", "title", "seen", "why", "fix", "reaction", "page"
        )
    return select_fields(topic, "kind", "name", "title", "details")


def _show(output: Output, topic: "Topic", *, is_first: bool) -> None:
    console = output.page()
    if not is_first:
        console.print()
    kind = "" if topic.kind == "code" else f"  {topic.kind}"
    console.print(styled((topic.name, "bold"), (kind, "dim")))
    console.print(topic.title)
    if topic.details:
        console.print()
        rows = topic.details.items()
        console.print(make_table({"what": "dim whole", "text": ""}, rows, headings=False))
