"""`surecall models`: the models of the catalog, and presets and transforms by name."""

import re
from typing import Any, Final, cast

import click

from surecall.base.json_values import as_fields
from surecall.loop.resolve import find_provider
from surecall.models.config import load_config
from surecall.models.profiles import Catalog, Merged, merge_presets, presets_for, select

from .console import Output
from .flags import flag, output_flags, pass_output
from .groups import CommandEntry, LazyGroup
from .suggestions import complete_models, complete_providers
from .terminal import line_of, shown_value, styled

_KEY_PART: Final = re.compile(r'"([^"]*)"|([^."]+)')


_COMMANDS: Final = {
    "presets": CommandEntry("models", "presets", "Show presets, and what a model gets from them."),
    "transforms": CommandEntry("models", "list_transforms", "List the transforms by name."),
    "local": CommandEntry("local", "local", "List the models that can run here."),
    "fetch": CommandEntry("local", "fetch", "Download the weights of a model."),
    "serve": CommandEntry("local", "serve", "Serve a model of this machine over HTTP."),
}


@click.group(
    cls=LazyGroup,
    entries=_COMMANDS,
    default="list",
    invoke_without_command=True,
    subcommand_metavar="[FILTER] | COMMAND [ARGS]...",
)
@output_flags
@click.pass_context
def models(context: click.Context) -> None:
    """List the models in the catalog; FILTER selects some, as in `stable,qwen*,!openai`."""
    if context.invoked_subcommand is None:
        context.invoke(list_models, filter="")


@models.command("list", short_help="List the models in the catalog.")
@click.argument("filter", default="", required=False, metavar="[FILTER]")
@pass_output
def list_models(output: Output, filter: str) -> None:  # noqa: A002 - the word users see
    """List the models in the catalog; `surecall models` without a command does the same."""
    chosen = select(Catalog.builtin().models, filter)
    if output.json:
        output.data({"type": "models", "models": chosen})
        return
    console = output.page()
    sources = list(dict.fromkeys(entry.source for entry in chosen))
    columns = {"model": "whole", "tags": "", "workarounds": "", "date": "whole"}
    columns |= {"src": "whole dim"}
    rows = [
        (
            entry.id,
            ", ".join(entry.tags),
            ", ".join(entry.workarounds) or "-",
            entry.date.isoformat(),
            f"[{sources.index(entry.source) + 1}]",
        )
        for entry in chosen
    ]
    output.table(columns, rows, optional=("date", "src", "workarounds", "tags"))
    console.print()
    for number, source in enumerate(sources, 1):
        console.print(f"[{number}] {line_of(source)}", style="dim")


@click.group
@output_flags
def presets() -> None:
    """Show presets, and what a model gets from them."""


@presets.command("list")
@pass_output
def list_presets(output: Output) -> None:
    """List all presets and what they set."""
    known = Catalog.builtin().presets
    columns = {"preset": "whole", "sets": "", "date": "whole"}
    rows = ((one.name, ", ".join(one.fields) or "-", one.date.isoformat()) for one in known)
    output.listing({"type": "presets", "presets": known}, columns, rows, optional=("date",))


@presets.command("show", short_help="Show the options a model gets from presets.")
@click.argument("model", shell_complete=complete_models)
@flag(
    "--provider",
    "Provider; by default the one in the settings.",
    type=str,
    complete=complete_providers,
)
@pass_output
def show_presets(output: Output, model: str, provider: str | None) -> None:
    """Show the options MODEL gets from presets, and where each value comes from."""
    catalog = Catalog.builtin()
    config = load_config(overrides={"model": model, "provider": provider})
    provider, model = find_provider(config, catalog), config.model or model
    used = presets_for(provider, model, catalog)
    merged = merge_presets(preset.layer for preset in used)
    is_known = catalog.find(model) is not None
    if output.json:
        known = {"model": model, "provider": provider, "known_model": is_known}
        names = [preset.name for preset in used]
        values = {"values": merged.values, "origins": merged.origins}
        output.data({"type": "model_presets", **known, "presets": names, **values})
        return
    console = output.page()
    where = f"  at {line_of(provider or 'any provider')}"
    unknown = "" if is_known else "  not in the catalog"
    heading = styled((line_of(model), "bold"), (where, "dim"), (unknown, "yellow"))
    console.print(heading, soft_wrap=True)
    rows = ((line_of(text), origin) for text, origin in _rows(merged))
    output.table({"option": "", "from": "dim"}, rows)
    console.print()
    for preset in used:
        dated = f"{preset.date.isoformat()}, {preset.source}"
        console.print(styled(preset.name, (f"  {line_of(dated)}", "dim")))


@click.command("transforms")
@pass_output
def list_transforms(output: Output) -> None:
    """List the transforms: changes to messages, tools, replies, calls and results, by name."""
    from .topics import list_topics

    found = list_topics("transform")
    listed = [{"name": topic.name, "title": topic.title, **topic.details} for topic in found]
    rows = ((topic.name, topic.title) for topic in found)
    data = {"type": "transforms", "transforms": listed}
    output.listing(data, {"transform": "", "what it does": ""}, rows)


def _rows(merged: Merged) -> list[tuple[str, str]]:
    """Return each value with its origin; the items of a list below its name."""
    rows: list[tuple[str, str]] = []
    for field, value in merged.values.items():
        items = cast("list[str]", value) if isinstance(value, list) else []
        if items:
            rows.append((field, ""))
            rows += [(f"  {item}", _origin(merged, field, item)) for item in items]
        elif isinstance(value, dict):
            below = [key for key in merged.origins if key.startswith(f"{field}.")]
            rows += [(f"{key} = {_value_at(merged, key)}", merged.origins[key]) for key in below]
        else:
            rows.append((f"{field} = {shown_value(value)}", _origin(merged, field)))
    return rows


def _origin(merged: Merged, field: str, item: str = "") -> str:
    key = f'{field}."{item}"' if "." in item else f"{field}.{item}".rstrip(".")
    return merged.origins.get(key, merged.origins.get(field, ""))


def _value_at(merged: Merged, key: str) -> str:
    place: Any = merged.values
    for quoted, plain in _KEY_PART.findall(key):
        place = as_fields(place).get(quoted or plain)
    return shown_value(place)
