"""Texts in which calls are spoken of and none is made, written before they were ever read.

Each template is filled with three of nine tools. `$call` is a call in one of five notations, which
take turns; `$py`, `$pos`, `$json`, `$keyed` and `$tag` are one notation each. A `2` makes it that
of another tool. `$name`, `$key`, `$value` and `$args` are parts of the call.
"""

import json
from collections.abc import Callable, Iterator
from itertools import count
from string import Template
from typing import Any, Final, NamedTuple

from surecall.base.records import ToolSpec

from . import languages, pages, records, talk

__all__ = ["KINDS", "OFFERED", "SpokenCall", "spoken_calls"]

_CALLS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("get_stock_price", {"symbol": "NVDA", "exchange": "NASDAQ"}),
    ("query_database", {"sql": "SELECT id FROM users", "limit": 10}),
    ("send_email", {"to": "priya@example.com", "subject": "Invoice 88", "body": "See attached."}),
    ("create_issue", {"title": "Login fails on Safari", "labels": ["bug", "auth"]}),
    ("math.factorial", {"number": 5}),
    ("search_flights", {"origin": "LIS", "destination": "JFK", "date": "2026-03-04"}),
    ("translate", {"text": "Good morning", "target": "fr"}),
    ("restart_service", {"service": "billing", "force": True}),
    ("read_file", {"path": "src/app.py"}),
)
_TYPES: Final = {bool: "boolean", int: "integer", list: "array", str: "string"}
_FILLS: Final = 3
KINDS: Final = {**talk.TEMPLATES, **pages.TEMPLATES, **records.TEMPLATES, **languages.TEMPLATES}


def _tool(name: str, arguments: dict[str, Any]) -> ToolSpec:
    properties = {key: {"type": _TYPES[type(value)]} for key, value in arguments.items()}
    schema = {"type": "object", "properties": properties, "required": [next(iter(arguments))]}
    return ToolSpec(name=name, parameters=schema)


OFFERED: Final = tuple(_tool(name, arguments) for name, arguments in _CALLS)


def _keywords(name: str, arguments: dict[str, Any]) -> str:
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"


def _positional(name: str, arguments: dict[str, Any]) -> str:
    return f"{name}({', '.join(map(repr, arguments.values()))})"


def _object(name: str, arguments: dict[str, Any]) -> str:
    return json.dumps({"name": name, "arguments": arguments})


def _keyed(name: str, arguments: dict[str, Any]) -> str:
    return json.dumps({name: arguments})


def _as_one_argument(name: str, arguments: dict[str, Any]) -> str:
    return f"{name}({json.dumps(arguments)})"


def _tag(name: str, arguments: dict[str, Any]) -> str:
    children = "".join(f"<{key}>{value}</{key}>" for key, value in arguments.items())
    return f"<{name}>{children}</{name}>"


_NOTATIONS: Final[tuple[Callable[[str, dict[str, Any]], str], ...]] = (
    _keywords,
    _object,
    _positional,
    _keyed,
    _as_one_argument,
)


class SpokenCall(NamedTuple):
    """A text in which nothing is called, and the kind of text that it is."""

    kind: str
    text: str


def spoken_calls() -> Iterator[SpokenCall]:
    """Yield every template, filled with some of the tools."""
    numbers = count()
    for kind, templates in KINDS.items():
        for template in templates:
            for _ in range(_FILLS):
                yield SpokenCall(kind, _fill(template, next(numbers)))


def _fill(template: str, number: int) -> str:
    tools = len(_CALLS)
    write = _NOTATIONS[(number // tools + number) % len(_NOTATIONS)]
    name, arguments = _CALLS[number % tools]
    other = _CALLS[(number + 4) % tools]
    key, value = next(iter(arguments.items()))
    return Template(template).safe_substitute(
        name=name,
        other=other[0],
        key=key,
        value=value,
        args=json.dumps(arguments),
        call=write(name, arguments),
        call2=write(*other),
        py=_keywords(name, arguments),
        py2=_keywords(*other),
        pos=_positional(name, arguments),
        json=_object(name, arguments),
        json2=_object(*other),
        keyed=_keyed(name, arguments),
        tag=_tag(name, arguments),
    )
