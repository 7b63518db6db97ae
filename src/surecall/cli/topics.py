"""Everything that has a name and can be explained: codes, rules, formats, faults, presets, options.

The words are those of the code itself: nothing here is written a second time.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, Final, Literal, get_args, get_type_hints

from msgspec import Struct

from surecall.base.codes import all_codes
from surecall.base.errors import Code, ConfigError, did_you_mean
from surecall.text import encode_text

__all__ = ["KINDS", "Kind", "Topic", "explain_topic", "list_topics"]

Kind = Literal[
    "code",
    "rule",
    "transform",
    "format",
    "fault",
    "behaviour",
    "preset",
    "profile",
    "strategy",
    "scenario",
    "option",
    "value",
    "setting",
    "word",
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
"""Kinds of names, in the order in which a name is looked up."""

_PAGES_OF_WORDS: Final = (
    *("coming-from-the-experiment", "environment", "events", "report-files", "metrics"),
    *("capabilities", "workspace"),
)
_NAME: Final = re.compile(r"`([\w.]+)`")
_HEADING: Final = re.compile(r"###? (\w+\.\w+)")
_LINK: Final = re.compile(r"\[([^\]]*+)\]\([^)]*+\)")


class Topic(Struct, frozen=True):
    """One thing that can be explained."""

    kind: Kind
    name: str
    title: str
    """One short sentence."""
    details: dict[str, str] = {}
    """Further facts, by heading."""


def explain_topic(name: str, kind: Kind | None = None) -> tuple[Topic, ...]:
    """Return everything of this name, in any case and with `-` or `_`; mostly that is one thing.

    Raises:
        ConfigError: `UNKNOWN_CODE`: nothing has this name.
    """
    wanted = _plain(name)
    found = tuple(topic for topic in list_topics(kind) if _plain(topic.name) == wanted)
    others = tuple(topic for topic in found if topic.kind != "word")
    if found:
        return others or found
    what = f"a {kind}" if kind else "a name"
    hint = did_you_mean(name, {topic.name for topic in list_topics(kind)})
    inside = [
        topic.name for topic in list_topics(kind) if _plain(topic.name).startswith(f"{wanted}.")
    ]
    if inside:
        hint = f"There are {', '.join(inside)}."
    elif not hint.startswith("Did"):
        hint = f"List them all with: surecall docs explain --list --kind {kind}"
        if kind is None:
            hint = "List rules with --kind rule, other names alike, and codes with: "
            hint += "surecall docs explain --list"
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


def _transforms() -> Iterator[Topic]:
    from surecall.reading.transforms import BUILTIN

    for one in BUILTIN:
        receipt = f"`{one.rule}`" if one.rule else "None: it changes what is sent."
        details = {"family": one.family, "receipt": receipt, "naming it adds": one.adds}
        yield Topic("transform", one.name, one.does, _filled(details))


def _formats() -> Iterator[Topic]:
    from surecall.calls import FORMATS

    readers: dict[str, list[Any]] = {}
    for form in FORMATS:
        readers.setdefault(form.name, []).append(form)
    for name, forms in readers.items():
        opens = "  ".join(dict.fromkeys(text for form in forms for text in form.literals))
        details = {"written by": forms[0].origin, "begins with": opens}
        yield Topic("format", name, forms[0].about, _filled(details))


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


def _profiles() -> Iterator[Topic]:
    from surecall.models.profiles import Catalog

    for profile in Catalog.builtin().sampling:
        details = {"for": "  ".join(profile.applies_to), "sets": encode_text(profile.params)}
        details |= {"date": profile.date.isoformat(), "source": profile.source}
        yield Topic("profile", profile.id, "A set of sampling parameters.", _filled(details))


def _strategies() -> Iterator[Topic]:
    from surecall.models.profiles import STRATEGIES

    for strategy in STRATEGIES:
        details = {"also": "  ".join(strategy.tags), "use": f"--strategies {strategy.id}"}
        yield Topic("strategy", strategy.id, f"Trials with {strategy.meaning}.", details)


def _scenarios() -> Iterator[Topic]:
    from surecall.evals.scenarios import SCENARIOS

    for scenario in SCENARIOS:
        details = {"loose": scenario.loose, "strict": scenario.strict}
        details["run"] = f"surecall eval --scenarios {scenario.name}"
        yield Topic("scenario", scenario.name, scenario.asks, _filled(details))


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


def _values() -> Iterator[Topic]:
    from surecall.loop import Options

    words = describe_fields(Options)
    for name, kind in get_type_hints(Options).items():
        for value in get_args(kind):
            if isinstance(value, str):
                details = {"set": f"--option {name}={value}", "option": words[name]}
                yield Topic("value", value, f"A value of the option {name}.", details)


def _settings() -> Iterator[Topic]:
    from surecall.models.config import SETTINGS, variable_of

    for key, setting in SETTINGS.items():
        details = {"takes": setting.expected, "variable": variable_of(key.replace("*", "NAME"))}
        if setting.default is not None:
            details["default"] = encode_text(setting.default)
        yield Topic("setting", key, setting.plain_doc, details)


def _words() -> Iterator[Topic]:
    """Yield what pages say in tables, lists and headings of variables, events and files."""
    from .manual import find_page

    seen: set[str] = set()
    for topic in _PAGES_OF_WORDS:
        lines = find_page(topic).text.splitlines()
        for number, line in enumerate(lines):
            names, said = _row(line)
            if heading := _HEADING.fullmatch(line):
                names, said = [heading[1]], next(filter(None, lines[number + 1 :]), "")
            for name in names:
                if said and name not in seen:
                    seen.add(name)
                    yield Topic("word", name, said, {"read on": f"surecall docs {topic}"})


def _row(line: str) -> tuple[list[str], str]:
    """Return the names at the start of a row or an item of a list, and what the rest says."""
    if not line.startswith(("| `", "- `")):
        return [], ""
    first, *rest = line.strip("| ").split(" | ") if line[0] == "|" else line.split(": ", 1)
    said = "; ".join(filter(None, map(str.strip, rest)))
    return _NAME.findall(first), _LINK.sub(r"\1", said)


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


def describe_config() -> dict[str, Any]:
    """Return the JSON Schema of a configuration file."""
    root: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "surecall.toml",
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }
    from surecall.models.config import SETTINGS

    for key, setting in SETTINGS.items():
        table, _, name = key.partition(".")
        described = _describe_type(setting.type) | {"description": setting.doc}
        if setting.default is not None:
            described["default"] = setting.default
        if not name:
            root["properties"][key] = described
        elif key.endswith(".*"):
            root["properties"][table] = _describe_free_table(table, described)
        else:
            inner = root["properties"].setdefault(
                table, {"type": "object", "properties": {}, "additionalProperties": False}
            )
            inner["properties"][name] = described
    return root


def _describe_free_table(table: str, described: Mapping[str, Any]) -> dict[str, Any]:
    if table == "headers":
        return {"type": "object", "additionalProperties": dict(described)}
    from surecall.loop import Options
    from surecall.loop.options import CallerArguments
    from surecall.models.profiles import Capabilities, Findings

    records = (Options, CallerArguments) if table == "options" else (Capabilities, Findings)
    fields: dict[str, Any] = {}
    for record in records:
        kinds = get_type_hints(record)
        for name, words in describe_fields(record).items():
            fields[name] = _describe_type(kinds[name]) | {"description": words}
    return {"type": "object", "properties": fields, "additionalProperties": False}


def _describe_type(kind: Any) -> dict[str, Any]:
    from surecall.schema import infer_schema

    return {} if kind is Any else infer_schema(kind)


def _line(text: str) -> str:
    return " ".join(text.split())


def _filled(details: dict[str, str]) -> dict[str, str]:
    return {heading: words for heading, words in details.items() if words}


_SOURCES: Final[dict[Kind, Callable[[], Iterator[Topic]]]] = {
    "code": _codes,
    "rule": _rules,
    "transform": _transforms,
    "format": _formats,
    "fault": _faults,
    "behaviour": _behaviours,
    "preset": _presets,
    "profile": _profiles,
    "strategy": _strategies,
    "scenario": _scenarios,
    "option": _options,
    "value": _values,
    "setting": _settings,
    "word": _words,
}


@cache
def _topics_of(kind: Kind) -> tuple[Topic, ...]:
    return tuple(_SOURCES[kind]())
