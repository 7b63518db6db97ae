# ruff: noqa: E501 - a text is one entry
"""Calls in unusual and damaged forms, by class, with values as models write them.

Each text was written before any rule for it. A class has whole calls, each with the calls it
stands for, and the same texts where they are quoted, shown, replayed or not offered.
"""

import html
import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, NamedTuple, cast

from surecall.base.records import ToolSpec

__all__ = ["CLASSES", "OFFERED", "Fresh", "Values", "mentioned", "written", "written_values"]

Arguments = dict[str, Any]
Call = tuple[str, Arguments]


class Fresh(NamedTuple):
    """A text and the calls it stands for."""

    text: str
    calls: tuple[Call, ...]


class Values(NamedTuple):
    """A text, the schema of the answer that was asked for, and the value it stands for."""

    text: str
    schema: dict[str, Any]
    value: Any


def _tool(name: str, required: str, closed: bool = True, **kinds: Any) -> ToolSpec:
    properties = {
        key: {"type": kind} if isinstance(kind, str) else kind for key, kind in kinds.items()
    }
    schema: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "required": required.split(),
    }
    if closed:
        schema["additionalProperties"] = False
    return ToolSpec(name=name, parameters=schema)


_TEXTS = {"type": "array", "items": {"type": "string"}}
_REMINDER = {
    "type": "object",
    "properties": {"minutes": {"type": "integer"}, "method": {"type": "string"}},
    "required": ["minutes"],
    "additionalProperties": False,
}
OFFERED: Final = (
    _tool("web_search", "query", query="string", max_results="integer"),
    _tool("execute_sql", "sql", sql="string"),
    _tool("Bash", "command", command="string", description="string", timeout="integer"),
    _tool("Read", "file_path", file_path="string", offset="integer", limit="integer"),
    _tool(
        "Edit",
        "file_path old_string new_string",
        file_path="string",
        old_string="string",
        new_string="string",
        replace_all="boolean",
    ),
    _tool(
        "get_weather",
        "location",
        location="string",
        unit={"type": "string", "enum": ["celsius", "fahrenheit"]},
        days="integer",
    ),
    _tool("send_email", "to subject", to=_TEXTS, subject="string", body="string"),
    _tool("create_event", "title start", title="string", start="string", reminder=_REMINDER),
    _tool("set_temperature", "degrees", degrees="number", zone="string", hold="boolean"),
    _tool(
        "mcp__github__create_issue",
        "owner repo title",
        owner="string",
        repo="string",
        title="string",
        labels=_TEXTS,
    ),
)
_ONE_TEXT: Final[tuple[Call, ...]] = (
    ("web_search", {"query": "prix du billet Lyon-Marseille le 3 décembre"}),
    ("web_search", {"query": 'who said "less is more"?'}),
    ("web_search", {"query": "東京 天気 明日"}),
    ("Read", {"file_path": "/home/ana/app/src/main.rs"}),
    ("Bash", {"command": "git log --oneline -n 5 | cat"}),
    ("Bash", {"command": 'for f in *.md; do\n  wc -w "$f"\ndone'}),
    ("execute_sql", {"sql": "SELECT id, name\nFROM users\nWHERE age >= 18 AND city <> 'Köln';"}),
    ("execute_sql", {"sql": "DELETE FROM carts WHERE total < 1 AND owner = 'O''Brien'"}),
)
_LINES: Final[tuple[Call, ...]] = (
    ("get_weather", {"location": "São Paulo", "unit": "celsius", "days": 3}),
    ("get_weather", {"location": "東京都", "days": 1}),
    ("Read", {"file_path": "C:\\Users\\Ana\\notes.txt", "offset": 40, "limit": 25}),
    ("Bash", {"command": "grep -rn 'def main' src | head -5", "timeout": 120000}),
    ("set_temperature", {"degrees": -2.5, "zone": "cellar", "hold": False}),
    ("set_temperature", {"degrees": 19, "hold": True}),
    ("web_search", {"query": "¿cuánto cuesta un café en Bogotá?", "max_results": 10}),
    ("create_event", {"title": "Zahnarzt: Kontrolle", "start": "2026-11-20T09:30"}),
    (
        "mcp__github__create_issue",
        {"owner": "acme", "repo": "shop-api", "title": 'Crash on "Save" (v2.1)'},
    ),
)
_RICH: Final[tuple[Call, ...]] = (
    *_LINES,
    (
        "Edit",
        {
            "file_path": "index.html",
            "old_string": "<b>Hi</b>",
            "new_string": "<strong>Hi</strong>",
            "replace_all": True,
        },
    ),
    (
        "send_email",
        {
            "to": ["ana@example.com", "li@example.cn"],
            "subject": "Réunion lundi",
            "body": "Bonjour,\n\nà 10 h ?",
        },
    ),
    (
        "create_event",
        {"title": "Call", "start": "2026-12-01", "reminder": {"minutes": 15, "method": "popup"}},
    ),
    (
        "mcp__github__create_issue",
        {"owner": "acme", "repo": "shop", "title": "Slow list", "labels": ["bug", "p1"]},
    ),
)
_DAMAGEABLE: Final[tuple[Call, ...]] = (
    ("get_weather", {"location": "Paris", "unit": "celsius", "days": 3}),
    ("get_weather", {"location": "Łódź", "unit": "fahrenheit"}),
    (
        "Bash",
        {"command": "npm run build -- --watch", "description": "Build the site", "timeout": 60000},
    ),
    ("Read", {"file_path": "/etc/hosts", "offset": 1, "limit": 20}),
    ("set_temperature", {"degrees": 21.5, "zone": "Küche", "hold": True}),
    (
        "mcp__github__create_issue",
        {"owner": "acme", "repo": "shop", "title": "Slow list", "labels": ["bug", "p1"]},
    ),
    ("create_event", {"title": "歯医者", "start": "2026-11-20T09:30"}),
    ("send_email", {"to": ["bo@example.com"], "subject": "Re: Angebot", "body": "Danke!"}),
)


def _json(value: Any, **options: Any) -> str:
    return json.dumps(value, ensure_ascii=False, **options)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else _json(value)


def _python(value: Any) -> str:
    return repr(value)


def _object(name: str, arguments: str, key: str = "arguments") -> str:
    return f'{{"name": "{name}", "{key}": {arguments}}}'


def _hermes(name: str, arguments: str) -> str:
    return f"<tool_call>\n{_object(name, arguments)}\n</tool_call>"


def _mistral(name: str, arguments: str) -> str:
    return f"[TOOL_CALLS]{name}[ARGS]{arguments}"


def _bare(name: str, arguments: str) -> str:
    return _object(name, arguments, "parameters")


def _fenced(name: str, arguments: str) -> str:
    return f"```json\n{_object(name, arguments)}\n```"


def _kimi(name: str, arguments: str) -> str:
    return f"<|tool_calls_section_begin|><|tool_call_begin|>functions.{name}:0<|tool_call_argument_begin|>{arguments}<|tool_call_end|><|tool_calls_section_end|>"


def _function(name: str, arguments: str) -> str:
    return f"<function={name}>{arguments}</function>"


_JSON_FORMS = (_hermes, _mistral, _bare, _fenced, _kimi, _function)


def _qwen(name: str, arguments: Arguments) -> str:
    inner = "".join(
        f"<parameter={key}>\n{_plain(value)}\n</parameter>\n" for key, value in arguments.items()
    )
    return f"<tool_call>\n<function={name}>\n{inner}</function>\n</tool_call>"


def _invoke(name: str, arguments: Arguments, prefix: str = "") -> str:
    inner = "".join(
        f'<{prefix}parameter name="{key}">{_plain(value)}</{prefix}parameter>\n'
        for key, value in arguments.items()
    )
    return f'<{prefix}function_calls>\n<{prefix}invoke name="{name}">\n{inner}</{prefix}invoke>\n</{prefix}function_calls>'


def _pythonic(name: str, arguments: Arguments) -> str:
    return f"[{name}({', '.join(f'{key}={_python(value)}' for key, value in arguments.items())})]"


def _each(calls: Iterable[Call], *forms: Callable[[str, Arguments], str]) -> Iterator[Fresh]:
    for (name, arguments), form in itertools.product(calls, forms):
        yield Fresh(form(name, arguments), ((name, arguments),))


def _turns(
    calls: Iterable[Call], forms: Iterable[Callable[[str, str], str]]
) -> Iterator[tuple[Call, Callable[[str, str], str]]]:
    """Each call in two of the forms, in turns."""
    around = itertools.cycle(forms)
    for call in calls:
        for _ in range(3):
            yield call, next(around)


# Arguments that a closed schema forbids
_EXTRAS: Final[tuple[Arguments, ...]] = (
    {"explanation": "The user wants to know this."},
    {"requires_approval": False},
    {"is_background": True},
    {"thought": "Schritt 1: nachsehen"},
    {"_meta": {"turn": 3, "why": None}},
    {"task_progress": "- [x] plan\n- [ ] act"},
)


def _closed_schema() -> Iterator[Fresh]:
    forms: tuple[Callable[[str, Arguments], str], ...] = (
        lambda n, a: _hermes(n, _json(a)),
        _qwen,
        lambda n, a: _mistral(n, _json(a)),
        _invoke,
        lambda n, a: _bare(n, _json(a, indent=2)),
        _pythonic,
        lambda n, a: _fenced(n, _json(a)),
        lambda n, a: _kimi(n, _json(a)),
    )
    around = itertools.cycle(forms)
    extras = itertools.cycle(_EXTRAS)
    for name, arguments in (*_DAMAGEABLE, *_RICH, *_RICH[:5]):
        extra = next(extras)
        more = {**arguments, **extra} if len(arguments) > 2 else {**extra, **arguments}
        yield Fresh(next(around)(name, more), ((name, arguments),))


# A tool's tag with its one required text
def _one_text() -> Iterator[Fresh]:
    def only(arguments: Arguments) -> str:
        return str(next(iter(arguments.values())))

    yield from _each(
        _ONE_TEXT,
        lambda n, a: f"<{n}>{only(a)}</{n}>" if "<" not in only(a) else f"<{n}>\n{only(a)}\n</{n}>",
        lambda n, a: f"<{n}><![CDATA[{only(a)}]]></{n}>",
        lambda n, a: f"Un moment, je regarde.\n\n<{n}>\n{html.escape(only(a))}\n</{n}>",
        lambda n, a: f"<{n}>\n<![CDATA[\n{only(a)}\n]]>\n</{n}>",
    )


# A tool's tag with lines of keys and values, YAML, block scalars
def _yaml(arguments: Arguments, indent: str = "") -> str:
    lines: list[str] = []
    for key, value in arguments.items():
        if isinstance(value, dict):
            lines += [f"{indent}{key}:", _yaml(cast("Arguments", value), indent + "  ")]
        elif isinstance(value, list):
            items = cast("list[str]", value)
            lines += [f"{indent}{key}:", *(f"{indent}  - {item}" for item in items)]
        elif isinstance(value, str) and "\n" in value:
            lines += [
                f"{indent}{key}: |",
                *(f"{indent}  {line}".rstrip() for line in value.split("\n")),
            ]
        elif isinstance(value, bool):
            lines.append(f"{indent}{key}: {str(value).lower()}")
        else:
            lines.append(f"{indent}{key}: {value}")
    return "\n".join(lines)


def _key_value() -> Iterator[Fresh]:
    blocks: tuple[Call, ...] = (
        (
            "Bash",
            {
                "command": "cat > out.txt <<'EOF'\nhello: world\n- a & b\nEOF\nwc -l out.txt",
                "timeout": 5000,
            },
        ),
        (
            "send_email",
            {
                "to": ["ana@example.com", "li@example.cn"],
                "subject": "Réunion lundi",
                "body": "Bonjour,\n\nà 10 h ?\nAna",
            },
        ),
        (
            "create_event",
            {
                "title": "Call",
                "start": "2026-12-01",
                "reminder": {"minutes": 15, "method": "popup"},
            },
        ),
        (
            "mcp__github__create_issue",
            {"owner": "acme", "repo": "shop", "title": "Slow list", "labels": ["bug", "p1"]},
        ),
        ("execute_sql", {"sql": "SELECT 1;\nSELECT 'a: b';"}),
    )
    yield from _each(
        (*_LINES, *blocks),
        lambda n, a: f"<{n}>\n{_yaml(a)}\n</{n}>",
        lambda n, a: f"Ich sehe nach.\n<{n}>\n{_yaml(a, '  ')}\n</{n}>",
    )
    yield from _each(
        _LINES[:4],
        lambda n, a: "\n".join([f"<{n}>", *(f"{key}: {_json(a[key])}" for key in a), f"</{n}>"]),
        lambda n, a: "\n".join([f"<{n}>", *(f"{key} = {_json(a[key])}" for key in a), f"</{n}>"]),
        lambda n, a: f"<{n}>\n---\n{_yaml(a)}\n</{n}>",
    )


# Variants of Qwen's tags: each has what stands around, and one argument
_VARIANTS: Final = (
    (
        "<tool_call>\n<function>NAME</function>\nPAIRS</tool_call>",
        "<parameter>KEY</parameter> VALUE\n",
    ),
    (
        "<tool_call>\n<function=NAME>\nPAIRS</function>\n</tool_call>",
        "<parameter>KEY</parameter>\nVALUE\n",
    ),
    ("<tool_call>\n<name>NAME</name>\nPAIRS</tool_call>", "<parameter=KEY>VALUE</parameter>\n"),
    (
        '<tool_call>\n<function="NAME">\nPAIRS</function>\n</tool_call>',
        '<parameter="KEY">VALUE</parameter>\n',
    ),
    ("<function=NAME>\nPAIRS</function>", "<KEY>VALUE</KEY>\n"),
    ("<tool_call>NAME\nPAIRS</tool_call>", "<parameter=KEY>\nVALUE\n</parameter>\n"),
    (
        "<tool_call>\n<function name=NAME>\nPAIRS</function>\n</tool_call>",
        "<parameter name=KEY>VALUE</parameter>\n",
    ),
    (
        "<tool_call>\n<function=NAME>\nPAIRS</function=NAME>\n</tool_call>",
        "<parameter=KEY>\nVALUE\n</parameter=KEY>\n",
    ),
)


def _filled(around: str, pair: str, name: str, arguments: Arguments) -> Fresh:
    pairs = "".join(
        pair.replace("KEY", key).replace("VALUE", _plain(value)) for key, value in arguments.items()
    )
    text = around.replace("NAME", name).replace("PAIRS", pairs)
    text = text.replace("INDENTED", _json(arguments, indent=2)).replace("JSON", _json(arguments))
    return Fresh(text, ((name, arguments),))


def _qwen_variants() -> Iterator[Fresh]:
    for (name, arguments), form in itertools.product(
        (_RICH[0], _RICH[2], _RICH[4], _RICH[9]), _VARIANTS
    ):
        yield _filled(*form, name, arguments)


# A name on a line of its own
_BELOW_A_NAME: Final = (
    ("NAME\nJSON", ""),
    ("NAME\nPAIRS</function>", "<parameter=KEY>\nVALUE\n</parameter>\n"),
    ("<tool_call>\nNAME\nJSON\n</tool_call>", ""),
    ("NAME\nPAIRS", "<KEY>VALUE</KEY>\n"),
    ("**NAME**\n```json\nINDENTED\n```", ""),
    ("NAME:\nJSON", ""),
    ("NAME\n<arguments>\nJSON\n</arguments>", ""),
)


def _name_on_a_line() -> Iterator[Fresh]:
    for (name, arguments), form in itertools.product(
        (_RICH[0], _RICH[3], _RICH[8], _RICH[11]), _BELOW_A_NAME
    ):
        yield _filled(*form, name, arguments)


# Strays: a tag or a bracket behind a complete call
def _strays() -> Iterator[Fresh]:
    strays = (
        "</parameter>",
        "</function>",
        "</tool_call>\n</tool_call>",
        "<parameter=",
        "</invoke>",
        "</parameter>\n</function>\n</tool_call>",
    )
    around = itertools.cycle(strays)
    for name, arguments in _RICH:
        yield Fresh(_qwen(name, arguments) + "\n" + next(around), ((name, arguments),))
    tails = itertools.cycle(("}", "}}", "]", "\n</tool_call>", "</s>", "\n```"))
    for (name, arguments), form in _turns(_DAMAGEABLE[:6], (_hermes, _mistral, _bare)):
        text = form(name, _json(arguments))
        tail = next(tails)
        text = (
            text.replace("\n</tool_call>", tail.strip() + "\n</tool_call>")
            if form is _hermes and tail in "}}]"
            else text + tail
        )
        yield Fresh(text, ((name, arguments),))


# A fence inside brackets
def _fence_in_brackets() -> Iterator[Fresh]:
    for name, arguments in (*_DAMAGEABLE[:4], *_RICH[9:13]):
        whole = (((name, arguments)),)
        plain = _json(arguments)
        yield Fresh(f"<tool_call>\n[\n```json\n{_object(name, plain)}\n```\n]\n</tool_call>", whole)
        yield Fresh(f"[TOOL_CALLS][```json\n{_object(name, plain)}\n```]", whole)
        yield Fresh(_hermes(name, f"```json\n{plain}\n```"), whole)
        yield Fresh(_object(name, f"\n```\n{_json(arguments, indent=2)}\n```\n"), whole)


# A closing quote missing before the next key
def _missing_quote() -> Iterator[Fresh]:
    for (name, arguments), form in _turns(_DAMAGEABLE, _JSON_FORMS):
        texts = [key for key, value in list(arguments.items())[:-1] if isinstance(value, str)]
        if texts:
            key = texts[-1]
            whole, less = (
                f'"{key}": {_json(arguments[key])},',
                f'"{key}": {_json(arguments[key])[:-1]},',
            )
            yield Fresh(form(name, _json(arguments).replace(whole, less)), ((name, arguments),))


# A bracket closed too early, with more members behind it
def _early_closer() -> Iterator[Fresh]:
    for (name, arguments), form in _turns(_DAMAGEABLE, _JSON_FORMS):
        first, *rest = arguments.items()
        early = "{" + f'"{first[0]}": {_json(first[1])}' + "}, " + _json(dict(rest))[1:]
        yield Fresh(form(name, early), ((name, arguments),))
    for name, arguments in (_RICH[10], _RICH[12]):
        for form in (_hermes, _bare):
            text = _json(arguments)
            for value in arguments.values():
                if not isinstance(value, list):
                    continue
                items = cast("list[str]", value)
                text = text.replace(_json(items), f"[{_json(items[0])}], {_json(items[1])}]")
            yield Fresh(form(name, text), ((name, arguments),))


# Several objects beside each other
def _several() -> Iterator[Fresh]:
    between = itertools.cycle(("\n", ", ", ";\n", "\n\n", " "))
    shapes = itertools.cycle(
        ("name arguments", "name parameters", "tool args", "function arguments")
    )
    calls = (*_DAMAGEABLE, *_RICH)
    for number in range(len(calls)):
        pair = (calls[number], calls[(number + 3) % len(calls)])
        key, inside = next(shapes).split()
        texts = [_json({key: name, inside: arguments}) for name, arguments in pair]
        yield Fresh(next(between).join(texts), pair)


# Prefixed tags of this autumn
def _prefixed(left: str, right: str) -> Iterator[Fresh]:
    def tag(word: str) -> str:
        return f"<{left}{word}{right}>"

    def end(word: str) -> str:
        return f"</{left}{word}{right}>"

    def kind(value: Any) -> str:
        return "true" if isinstance(value, str) else "false"

    def invoke(name: str, arguments: Arguments) -> str:
        inner = "".join(
            f'<{left}parameter name="{key}" string="{kind(value)}">{_plain(value)}{end("parameter")}\n'
            for key, value in arguments.items()
        )
        return f'{tag("function_calls")}\n<{left}invoke name="{name}">\n{inner}{end("invoke")}\n{end("function_calls")}'

    def bare_invoke(name: str, arguments: Arguments) -> str:
        inner = "".join(
            f'<{left}parameter name="{key}">{_plain(value)}{end("parameter")}'
            for key, value in arguments.items()
        )
        return f'<{left}invoke name="{name}">{inner}{end("invoke")}'

    def pairs(name: str, arguments: Arguments) -> str:
        inner = "".join(
            f"{tag('arg_key')}{key}{end('arg_key')}\n{tag('arg_value')}{_plain(value)}{end('arg_value')}\n"
            for key, value in arguments.items()
        )
        return f"{tag('tool_call')}{name}\n{inner}{end('tool_call')}"

    def of_json(name: str, arguments: Arguments) -> str:
        return f"{tag('tool_call')}\n{_object(name, _json(arguments))}\n{end('tool_call')}"

    yield from _each((*_RICH[:1], *_RICH[3:4], *_RICH[8:12]), invoke, bare_invoke, pairs, of_json)


# Arrows and options
def _arrows() -> Iterator[Fresh]:
    def options(arguments: Arguments) -> str:
        return "\n  ".join(f"--{key} {_json(value)}" for key, value in arguments.items())

    yield from _each(
        _RICH,
        lambda n, a: (
            f'[TOOL_CALL]\n{{tool => "{n}", args => {{\n  {options(a)}\n}}}}\n[/TOOL_CALL]'
        ),
        lambda n, a: (
            "Let me check.\n[TOOL_CALL] {tool => "
            + f'"{n}", args => {{ {options(a)} }}}}'.replace("\n", "")
            + " [/TOOL_CALL]"
        ),
    )


# Words before the call on its line
def _behind_words() -> Iterator[Fresh]:
    words = (
        "Je vais vérifier. ",
        "Let me look that up: ",
        "好的，我来查一下。",
        "Sure! ",
        "Als Nächstes: ",
    )
    around = itertools.cycle(words)
    for name, arguments in _RICH:
        yield Fresh(
            next(around)
            + _qwen(name, arguments).removeprefix("<tool_call>\n").removesuffix("\n</tool_call>"),
            ((name, arguments),),
        )
        yield Fresh(next(around) + _object(name, _json(arguments)), ((name, arguments),))


# Tags and wrappers that models take from other products
def _borrowed() -> Iterator[Fresh]:
    def record(name: str, arguments: Arguments) -> str:
        inner = "".join(
            f'<parameter name="{key}">{_plain(value)}</parameter>'
            for key, value in arguments.items()
        )
        return f'<call_record tool="{name}">{inner}</call_record>'

    yield from _each(
        (_RICH[0], _RICH[3], _RICH[10], _RICH[12]),
        record,
        lambda n, a: _invoke(n, a, "xai:"),
        lambda n, a: _invoke(n, a, "tools:"),
        lambda n, a: f"<tool>{n}</tool><tool_input>{_json(a)}</tool_input>",
        lambda n, a: _json({"tool_uses": [{"recipient_name": f"functions.{n}", "parameters": a}]}),
        lambda n, a: f"<longcat_tool_call>functions.{n}({_json(a)})</longcat_tool_call>",
        lambda n, a: (
            f"<use_mcp_tool>\n<server_name>home</server_name>\n<tool_name>{n}</tool_name>\n<arguments>\n{_json(a)}\n</arguments>\n</use_mcp_tool>"
        ),
    )


CLASSES: Final[dict[str, Callable[[], Iterator[Fresh]]]] = {
    "closed schema": _closed_schema,
    "one text": _one_text,
    "key and value lines": _key_value,
    "variants of qwen": _qwen_variants,
    "name on a line": _name_on_a_line,
    "strays": _strays,
    "fence in brackets": _fence_in_brackets,
    "missing quote": _missing_quote,
    "early closer": _early_closer,
    "several objects": _several,
    "ifm": lambda: _prefixed("ifm|", ""),
    "gcml": lambda: _prefixed("｜GCML｜", ""),
    "arrows": _arrows,
    "behind words": _behind_words,
    "borrowed": _borrowed,
}


def written(name: str) -> list[Fresh]:
    """Whole calls of a class."""
    return list(CLASSES[name]())


# The same text where it makes no call: quoted, shown, replayed, described
def _quoted(text: str) -> str:
    return text.replace("\n", " ")


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.split("\n"))


_NO_CALLS: Final[tuple[Callable[[str], str], ...]] = (
    lambda t: f"Older models answered with `{_quoted(t)}` and stopped there.",
    lambda t: (
        f"Das Log zeigt nur diese Zeile:\n\n```\n{t}\n```\n\nDanach kam nichts mehr, also wurde nichts ausgeführt."
    ),
    lambda t: f"“{_quoted(t)}” is what the page says, word for word.",
    lambda t: (
        "\n".join(f"> {line}" for line in t.split("\n")) + "\n\nThe quote above is from the manual."
    ),
    lambda t: f"<example>{t}</example>",
    lambda t: f"<!-- {_quoted(t)} -->\nThe template has no other comment.",
    lambda t: (
        f"Q: What does the model write?\nA: It writes `{_quoted(t)}`.\nQ: And then?\nA: It waits."
    ),
    lambda t: f"```python\ndef test_parse():\n    assert parse({t!r}) is not None\n```",
    lambda t: f"<think>I could write {t} but there is no need.</think>Two plus two is four.",
    lambda t: f"User: {t}\nAssistant: I cannot do that.",
    lambda t: f"2026-11-19 10:00:01 DEBUG worker-3 out={t!r} ms=12",
    lambda t: f"| format | text |\n|---|---|\n| ours | `{_quoted(t)}` |\n\nThe table has one row.",
    lambda t: f"« {_quoted(t)} » : voilà ce que le modèle a écrit hier.",
    lambda t: f"<tool_response>\n{t}\n</tool_response>\nThe tool gave back its own request.",
    lambda t: (
        "```diff\n"
        + "\n".join(f"+{line}" for line in t.split("\n"))
        + "\n```\nThe patch adds the lines above."
    ),
    lambda t: f"Hier nur zur Ansicht:\n\n~~~text\n{t}\n~~~\n\nBitte ersetzen Sie die Werte.",
    lambda t: json.dumps({"event": "model_output", "text": t, "logged": True}),
    lambda t: (
        f"To call it, a model would write\n\n{_indented(t)}\n\nbut this page only explains it."
    ),
    lambda t: f"「{_quoted(t)}」という文字列が記録に残っています。",
    lambda t: f"1. Open the console.\n2. Paste `{_quoted(t)}`.\n3. Press return.",
    lambda t: f'She asked: "Why does it print {_quoted(t)} instead of running it?"',
)


def mentioned(name: str) -> list[Fresh]:
    """The texts of a class where they make no call."""
    around = itertools.cycle(_NO_CALLS)
    texts = written(name)
    number = max(len(texts), len(_NO_CALLS))
    return [
        Fresh(next(around)(text.text), ())
        for text in itertools.islice(itertools.cycle(texts), number)
    ]


# Values of an answer
_PERSON: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "city": {"type": "string"},
    },
    "required": ["name"],
    "additionalProperties": False,
}
_ORDER: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "items": {"type": "array", "items": {"type": "string"}},
        "total": {"type": "number"},
        "gift": {"type": "boolean"},
    },
    "required": ["id", "total"],
}
_PEOPLE: Final[tuple[Arguments, ...]] = (
    {"name": "Zoë", "age": 31, "city": "Gent"},
    {"name": "李雷", "age": 9, "city": "成都"},
    {"name": "Ó Briain", "age": 70, "city": "Cork"},
)
_ORDERS: Final[tuple[Arguments, ...]] = (
    {"id": 7, "items": ["Tee", "Brot"], "total": 12.5, "gift": False},
    {"id": 81, "items": ['a "b"'], "total": 3.0, "gift": True},
)


def written_values() -> dict[str, list[Values]]:
    """Texts of answers by class, with the value that each stands for."""
    both = [(value, _PERSON) for value in _PEOPLE] + [(value, _ORDER) for value in _ORDERS]
    several: list[Values] = []
    absent: list[Values] = []
    for value, schema in both:
        text = _json(value)
        several += [
            Values(f'{{"status": "ok", "took": 3}}\n{text}', schema, value),
            Values(f'{text}\n{{"note": "end"}}', schema, value),
            Values(f'Reasoning: {{"step": 1}} then\n\n{text}', schema, value),
            Values(f'{{"thoughts": "hm"}}, {text}', schema, value),
        ]
        optional = [key for key in value if key not in schema["required"]]
        for number, key in enumerate(optional[:2]):
            less = {each: item for each, item in value.items() if each != key}
            absent += [
                Values(_json(less), schema, less),
                Values(_json({**less, key: None}), schema, less),
                Values(
                    "\n".join(f"{each}: {_plain(item)}" for each, item in less.items()),
                    schema,
                    less,
                ),
            ]
            if number == 0:
                absent.append(
                    Values(
                        f"```json\n{_json({**less, key: None}, indent=1)}\n```\nDone.", schema, less
                    )
                )
    return {"first that fits": several, "absent optional key": absent}
