"""Suggestions for a shell: models, runs and names of this machine."""

from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from typing import Any, Final

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    split_arg_string,
)

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem[Any]]]
"""Returns what a word that was begun may become."""
_Names = Iterable[tuple[str, str]]


def _suggest(names: _Names, typed: str) -> list[CompletionItem[Any]]:
    return [CompletionItem(name, help=words) for name, words in names if name.startswith(typed)]


def _completer(list_names: Callable[[], _Names], *, is_list: bool = False) -> Completer:
    """Return what completes one name, or the last one of a list with commas."""

    def complete(
        _context: click.Context, _parameter: click.Parameter, typed: str
    ) -> list[CompletionItem[Any]]:
        begun = typed[: typed.rfind(",") + 1] if is_list else ""
        return _suggest(((begun + name, words) for name, words in list_names()), typed)

    return complete


def _list_simulated() -> _Names:
    from surecall.faults import zoo

    return [(f"zoo:{behaviour.name}", behaviour.describes) for behaviour in zoo()]


def _list_models() -> _Names:
    from surecall.models.profiles import Catalog

    catalog = Catalog.builtin()
    names = [(entry.id, ", ".join(entry.tags)) for entry in catalog.models]
    names += [(f"{entry.id}:", "a provider") for entry in catalog.providers]
    return [*names, *_list_simulated()]


def _list_contenders() -> _Names:
    groups = [("zoo:*", "all simulated models"), ("zoo:catalog", "the catalog, simulated")]
    return [*groups, *_list_models()]


def _list_topics(kind: Any = None) -> _Names:
    from surecall.cli.topics import list_topics

    return ((topic.name, topic.title) for topic in list_topics(kind))


def _list_pages() -> _Names:
    from surecall.cli.manual import list_pages

    return ((page.topic, page.title) for page in list_pages())


def _list_providers() -> _Names:
    from surecall.models.profiles import Catalog

    return ((entry.id, entry.base_url or "") for entry in Catalog.builtin().providers)


def _list_weights() -> _Names:
    from surecall.models.profiles import known_weights

    return ((weights.name, weights.title) for weights in known_weights())


def _list_questions() -> _Names:
    from surecall.models.probe import ON_REQUEST, QUESTIONS

    return ((question.name, question.title) for question in (*QUESTIONS, *ON_REQUEST))


def _list_keys(module: str, table: str, words: str, *more: str) -> _Names:
    """Return the names in a table of a module, which is imported now, and some more."""
    return ((name, words) for name in (*getattr(import_module(module), table), *more))


complete_models: Final = _completer(_list_models)
complete_contenders: Final = _completer(_list_contenders, is_list=True)
complete_simulated: Final = _completer(_list_simulated)
complete_topics: Final = _completer(_list_topics)
complete_pages: Final = _completer(_list_pages)
complete_faults: Final = _completer(partial(_list_topics, "fault"))
complete_presets: Final = _completer(partial(_list_topics, "preset"))
complete_providers: Final = _completer(_list_providers)
complete_profiles: Final = _completer(partial(_list_topics, "profile"))
complete_profile_lists: Final = _completer(partial(_list_topics, "profile"), is_list=True)
complete_strategies: Final = _completer(partial(_list_topics, "strategy"), is_list=True)
complete_weights: Final = _completer(_list_weights)
complete_questions: Final = _completer(_list_questions)
complete_protocols: Final = _completer(
    partial(_list_keys, "surecall.wire", "PROTOCOLS", "a wire format")
)
complete_fault_groups: Final = _completer(
    partial(_list_keys, "surecall.faults", "GROUPS", "a group of faults")
)
complete_suites: Final = _completer(
    partial(_list_keys, "surecall.evals.suites", "SUITES", "a suite", "custom:"), is_list=True
)
complete_formats: Final = _completer(
    partial(_list_keys, "surecall.evals.export", "FORMATS", "a format", "all"), is_list=True
)


def complete_files(
    _context: click.Context, _parameter: click.Parameter, typed: str
) -> list[CompletionItem[Any]]:
    """Let the shell suggest files."""
    return [CompletionItem(typed, type="file")]


def complete_folders(
    _context: click.Context, _parameter: click.Parameter, typed: str
) -> list[CompletionItem[Any]]:
    """Let the shell suggest folders."""
    return [CompletionItem(typed, type="dir")]


def complete_programs(
    _context: click.Context, _parameter: click.Parameter, typed: str
) -> list[CompletionItem[Any]]:
    """Suggest programs that can use a gateway."""
    from surecall.gateway.programs import list_programs

    named = list_programs().items()
    return [CompletionItem(n, help=p.title) for n, p in named if n.startswith(typed)]


def complete_runs(
    context: click.Context, _parameter: click.Parameter, typed: str
) -> list[CompletionItem[Any]]:
    """Suggest runs of the store that the command would use, newest first."""
    from surecall.base.errors import SurecallError
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


_WORDS: Final = "COMP_CWORD=$COMP_CWORD"
_LINE: Final = 'COMP_LINE="${COMP_LINE:0:COMP_POINT}." COMP_WORDBREAKS="$COMP_WORDBREAKS"'
"""The line up to the cursor; the dot keeps a blank at its end."""


@add_completion_class
class _WholeWords(BashComplete):
    """Takes `zoo:steady` and `@latest` as one word, where bash ends words at `:` and `@`."""

    source_template = BashComplete.source_template.replace(_WORDS, f"{_WORDS} {_LINE}")
    _begun = ""
    """The part of the word that bash keeps, because it ends in a character that ends words."""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words before the cursor, and the one that was begun."""
        from surecall.models.config.load import list_variables

        given = list_variables("COMP_")
        line = given.get("LINE", "")[:-1]
        if not line:
            return super().get_completion_args()
        words = split_arg_string(line)
        typed = "" if line[-1].isspace() or not words else words.pop()
        value = typed.partition("=")[2] if typed.startswith("--") else typed
        # An @ ends words as well, but bash replaces it along with what follows.
        ends = (value.rfind(mark) for mark in ":=" if mark in given.get("WORDBREAKS", ""))
        self._begun = value[: max(ends, default=-1) + 1]
        return words[1:], typed

    def format_completion(self, item: CompletionItem[Any]) -> str:
        """Return what bash adds to the part that it keeps."""
        return f"{item.type},{str(item.value).removeprefix(self._begun)}"
