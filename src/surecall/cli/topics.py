"""Everything that has a name and can be explained: codes, rules, formats, faults, presets, options.

The words are those of the code itself: nothing here is written a second time.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final, Literal, get_args

from msgspec import Struct

from surecall.base.errors import Code, ConfigError, did_you_mean
from surecall.base.explain import all_codes
from surecall.text import encode_text

__all__ = ["KINDS", "Kind", "Topic", "explain_topic", "list_topics"]

Kind = Literal["code", "rule", "format", "fault", "behaviour", "preset", "option", "setting"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
"""What can be explained, in the order in which a name is looked up."""


class Topic(Struct, frozen=True):
    """One thing that can be explained."""

    kind: Kind
    name: str
    title: str
    """One short sentence."""
    details: dict[str, str] = {}
    """What else there is to say, by heading."""


def explain_topic(name: str, kind: Kind | None = None) -> tuple[Topic, ...]:
    """Return everything of this name, in any case and with `-` or `_`; mostly that is one thing.

    Raises:
        ConfigError: `UNKNOWN_CODE`: nothing has this name.
    """
    wanted = _plain(name)
    found = tuple(topic for topic in list_topics(kind) if _plain(topic.name) == wanted)
    if found:
        return found
    what = f"a {kind}" if kind else "a code, rule, format, fault, preset, option or setting"
    hint = did_you_mean(name, {topic.name for topic in list_topics(kind)})
    inside = [
        topic.name for topic in list_topics(kind) if _plain(topic.name).startswith(f"{wanted}.")
    ]
    if inside:
        hint = f"There are {', '.join(inside)}."
    elif not hint.startswith("Did"):
        hint = f"List them all with: surecall explain --list --kind {kind}"
        if kind is None:
            hint = "List rules with --kind rule, other names alike, and codes with: "
            hint += "surecall explain --list"
    raise ConfigError(Code.UNKNOWN_CODE, f"{name!r} is not {what} of surecall.", hint=hint)


def list_topics(kind: Kind | None = None) -> tuple[Topic, ...]:
    """Return all topics, or those of one kind."""
    kinds = KINDS if kind is None else (kind,)
    return tuple(topic for each in kinds for topic in _topics_of(each))


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "_")


def _codes() -> Iterator[Topic]:
    for text in all_codes():
        details = {"seen": text.seen, "why": text.why, "fix": text.fix, "surecall": text.reaction}
        if text.page:
            details["read on"] = f"surecall docs {text.page}"
        yield Topic("code", text.code, text.title, details)


def _rules() -> Iterator[Topic]:
    from surecall.reading import RULES

    for rule in RULES.values():
        off = f"disabled_rules=[{rule.name!r}]" if rule.switchable else "It cannot be switched off."
        loses = "It loses nothing." if rule.lossless else "It may lose something."
        yield Topic("rule", rule.name, rule.sentence, {"loss": loses, "off": off})


def _formats() -> Iterator[Topic]:
    from surecall.calls import FORMATS

    readers: dict[str, list[Any]] = {}
    for form in FORMATS:
        readers.setdefault(form.name, []).append(form)
    for name, forms in readers.items():
        title, _, more = inspect.cleandoc(type(forms[0]).__doc__ or "").partition("\n\n")
        opens = "  ".join(dict.fromkeys(text for form in forms for text in form.literals))
        details = {"written": " ".join(more.split()), "begins with": opens}
        yield Topic("format", name, _line(title), _filled(details))


def _faults() -> Iterator[Topic]:
    from surecall.faults import FAULTS

    for fault in FAULTS:
        serve = f"surecall faults serve --fault {fault.name}"
        details = {"group": fault.group, "seen": fault.seen, "try": serve}
        yield Topic("fault", fault.name, fault.does, _filled(details))


def _behaviours() -> Iterator[Topic]:
    from surecall.faults import zoo

    for behaviour in zoo():
        name = behaviour.name
        details = {
            "measure": f"surecall eval --models zoo:{name}",
            "serve": f"surecall faults serve --model {name}",
        }
        yield Topic("behaviour", behaviour.name, _line(behaviour.describes), details)


def _presets() -> Iterator[Topic]:
    from surecall.models.profiles import Catalog

    for preset in Catalog.builtin().presets:
        sets = encode_text(preset.fields)
        details = {"sets": sets, "date": preset.date.isoformat(), "source": preset.source}
        title = preset.purpose or "Sets options of a run."
        yield Topic("preset", preset.name, title, details)


def _options() -> Iterator[Topic]:
    from surecall.loop import Options
    from surecall.loop.options import CallerArguments

    default = Options()
    for name, words in describe_fields(Options).items():
        value = getattr(default, name)
        shown = "not set" if value is None else encode_text(value)
        where = f"--option {name}=…, or SURECALL_OPTIONS__{name.upper()}"
        details = {"default": shown, "set": where}
        yield Topic("option", name, words, details)
    for name, words in describe_fields(CallerArguments).items():
        where = f"--option {name}=…, or SURECALL_OPTIONS__{name.upper()}"
        details = {"default": "up to the provider", "set": where}
        yield Topic("option", name, words, details | {"same as": f"request_overrides.{name}"})


def _settings() -> Iterator[Topic]:
    from surecall.models.config import SETTINGS, variable_of

    for key, setting in SETTINGS.items():
        details = {"takes": setting.expected, "variable": variable_of(key.replace("*", "NAME"))}
        if setting.default is not None:
            details["default"] = encode_text(setting.default)
        yield Topic("setting", key, setting.plain_doc, details)


def describe_fields(record: type[Any]) -> dict[str, str]:
    """Return the words below each field of a class, as they are in its source."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(record))).body[0]
    assert isinstance(tree, ast.ClassDef)
    found: dict[str, str] = {}
    for node, after in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            words = ""
            if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
                words = _line(str(after.value.value))
            found[node.target.id] = words
    return found


def _line(text: str) -> str:
    return " ".join(text.split())


def _filled(details: dict[str, str]) -> dict[str, str]:
    return {heading: words for heading, words in details.items() if words}


_SOURCES: Final[dict[Kind, Callable[[], Iterator[Topic]]]] = {
    "code": _codes,
    "rule": _rules,
    "format": _formats,
    "fault": _faults,
    "behaviour": _behaviours,
    "preset": _presets,
    "option": _options,
    "setting": _settings,
}


@cache
def _topics_of(kind: Kind) -> tuple[Topic, ...]:
    return tuple(_SOURCES[kind]())
