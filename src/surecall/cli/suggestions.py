"""What a shell may suggest: models, runs and names, as they are on this machine."""

from collections.abc import Iterable

import click
from click.shell_completion import CompletionItem


def _suggest(names: Iterable[tuple[str, str]], typed: str) -> list[CompletionItem]:
    return [CompletionItem(name, help=words) for name, words in names if name.startswith(typed)]


def complete_models(
    _context: click.Context, _parameter: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Suggest models of the catalog, simulated ones and names of providers."""
    from surecall.faults import zoo
    from surecall.profiles import Catalog

    catalog = Catalog.builtin()
    names = [(entry.id, ", ".join(entry.tags)) for entry in catalog.models]
    names += [(f"{entry.id}:", "a provider") for entry in catalog.providers]
    names += [(f"zoo:{behaviour.name}", behaviour.describes) for behaviour in zoo()]
    return _suggest(names, typed)


def complete_runs(
    context: click.Context, _parameter: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Suggest runs of the store that the command would use, newest first."""
    from surecall.errors import SurecallError
    from surecall.evals.experiments import open_run_store

    names = [("@latest", "the newest run")]
    try:
        with open_run_store(context.params.get("store_file"), must_exist=True) as store:
            for info in store.runs():
                names += [(f"@{tag}", f"tag of {info.id}") for tag in info.tags]
                names.append((info.id, info.status))
    except (SurecallError, OSError):  # a shell has no place for an error
        pass
    return _suggest(names, typed)


def complete_topics(
    _context: click.Context, _parameter: click.Parameter, typed: str
) -> list[CompletionItem]:
    """Suggest everything that `explain` knows."""
    from surecall.topics import list_topics

    return _suggest(((topic.name, topic.title) for topic in list_topics()), typed)
