"""Every error of the settings at once, each with its line, its key and the likeliest right word."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

from msgspec import Struct, inspect

from surecall.base.errors import ConfigError, did_you_mean, invalid_config
from surecall.base.redaction import excerpt

Key = tuple[str | int, ...]

_SYNONYMS: Final[Mapping[str, str]] = {
    "address": "url",
    "api_base": "url",
    "api_key": "api_key_env",
    "base_url": "url",
    "budget": "tokens_per_day",
    "endpoint": "url",
    "fallback": "fallbacks",
    "format": "protocol",
    "key_hash": "key_sha256",
    "max_budget": "cost_per_month",
    "monthly_budget": "cost_per_month",
    "spend_limit": "cost_per_month",
    "max_body_bytes": "max_request_bytes",
    "name": "id",
    "prefix": "api_prefix",
    "rpm": "requests_per_minute",
    "timeout": "deadlines",
    "timeout_s": "deadlines",
    "tpm": "tokens_per_minute",
    "type": "protocol",
}
"""What other gateways call a setting, and its name here."""
_SECRETS: Final = frozenset({"api_key", "key_value", "password", "secret", "token"})
_ALL_SETTINGS: Final = "`surecall docs gateway` has all settings."
_STATED_LINE: Final = re.compile(r"at line (\d+)")
_ASSIGNMENT: Final = re.compile(r"[ \t]*([A-Za-z0-9_.-]+)[ \t]*[=:][ \t]*([^#\s\[\]{}\"']*)")


class SettingError(NamedTuple):
    """What is wrong with one setting."""

    key: Key
    message: str
    """What follows the key in a sentence."""
    hint: str | None = None


def refuse(shown: str, path: Path | None, found: Sequence[SettingError]) -> ConfigError:
    """Return one error that names everything that is wrong."""
    lines = _find_lines(path.read_text("utf-8")) if path is not None else {}
    ordered = sorted(found, key=lambda item: _line_of(item.key, lines) or 0)
    sentences = [_describe(item, _line_of(item.key, lines)) for item in ordered]
    if len(ordered) == 1:
        start, rest = sentences[0]
        return invalid_config(f"{shown}{start}: {rest}", ordered[0].hint or _ALL_SETTINGS)
    listed = [
        f"{start.removeprefix(', ') or 'in all'}: {rest} {item.hint or ''}".rstrip()
        for item, (start, rest) in zip(ordered, sentences, strict=True)
    ]
    return invalid_config(f"{shown} has {len(ordered)} errors.\n" + "\n".join(listed))


def refuse_syntax(shown: str, path: Path, error: tomllib.TOMLDecodeError) -> ConfigError:
    """Return the error of a file that is not TOML, with what its line should be."""
    stated = _STATED_LINE.search(str(error))
    lines = path.read_text("utf-8").splitlines()
    number = int(stated[1]) if stated else len(lines)
    line = lines[number - 1] if 0 < number <= len(lines) else ""
    hint = 'Write KEY = VALUE with text in quotes, as in url = "http://…", and [TABLE] above keys.'
    named = _ASSIGNMENT.match(line)
    what = f"{named[1]} is" if named else f"{excerpt(line.strip(), 40)!r} is" if line else "it is"
    if named and named[2] and named[1].rpartition(".")[2] not in _SECRETS:
        value = named[2].rstrip(",")
        right = value.lower() if value.lower() in {"true", "false"} else f'"{excerpt(value, 60)}"'
        hint = f"Write {named[1]} = {right}"
        if "declare" not in str(error) and "overwrite" not in str(error):
            return invalid_config(f"{shown}, line {number}: {what} not valid TOML.", f"{hint}.")
    said = re.sub(r" \(at .*\)$", "", str(error)).rstrip(".")
    if "overwrite" in said or "twice" in said or "mutate" in said:
        return invalid_config(f"{shown}, line {number}: {what} given twice.", "Leave one out.")
    return invalid_config(f"{shown}, line {number}: {what} not valid TOML: {said}.", hint)


def find_errors(value: Any, kind: type[Struct]) -> list[SettingError]:
    """Return everything in a document that a struct does not take."""
    return list(_check(value, inspect.type_info(kind), ()))


def show_key(key: Key) -> str:
    """Return a key as people write it: `upstreams.a.url`, `keys[0].id`."""
    shown = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in key)
    return excerpt(shown.removeprefix("."), 120)


# Lines


def _find_lines(text: str) -> dict[Key, int]:
    """Return the line on which each key of a sound file begins.

    Every statement of TOML is a document by itself, so the parser of the whole file finds where
    each ends.
    """
    found: dict[Key, int] = {}
    counts: dict[Key, int] = {}
    table: Key = ()
    began, statement = 0, ""
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        began = began if statement else number
        statement += line
        try:
            parsed = tomllib.loads(statement)
        except ValueError:
            continue
        if statement.lstrip().startswith("["):
            table = _enter(parsed, counts)
            for size in range(1, len(table) + 1):
                found.setdefault(table[:size], began)
        else:
            for key, _ in _walk(parsed, ()):
                name = str(key[-1])
                rows = statement.splitlines()
                at = next((i for i, row in enumerate(rows) if name in row), 0)
                found.setdefault(table + key, began + at)
        statement = ""
    return found


def _enter(header: dict[str, Any], counts: dict[Key, int]) -> Key:
    """Return the key of the table that a header begins."""
    parts: list[str | int] = []
    value: Any = header
    while isinstance(value, dict) and value:
        table = cast("dict[str, Any]", value)
        (name,) = table
        value = table[name]
        parts.append(name)
        if isinstance(value, list):
            counts[tuple(parts)] = counts.get(tuple(parts), -1) + 1
        if tuple(parts) in counts:
            parts.append(counts[tuple(parts)])
    return tuple(parts)


def _walk(value: Any, key: Key) -> Iterator[tuple[Key, Any]]:
    if key:
        yield key, value
    if isinstance(value, dict):
        for name, item in cast("dict[str, Any]", value).items():
            yield from _walk(item, (*key, name))
    elif isinstance(value, list):
        for number, item in enumerate(cast("list[Any]", value)):
            yield from _walk(item, (*key, number))


def _line_of(key: Key, lines: Mapping[Key, int]) -> int | None:
    return next((lines[key[:n]] for n in range(len(key), 0, -1) if key[:n] in lines), None)


def _describe(error: SettingError, line: int | None) -> tuple[str, str]:
    place = f", line {line}" if line is not None else ""
    return place, f"{show_key(error.key)} {error.message}".strip()


# Values


def _check(value: Any, kind: Any, key: Key) -> Iterator[SettingError]:
    if isinstance(kind, inspect.UnionType):
        kind = next(item for item in kind.types if not isinstance(item, inspect.NoneType))
    if isinstance(kind, inspect.StructType):
        yield from _check_table(value, kind, key)
    elif isinstance(kind, inspect.DictType):
        inner = kind.value_type
        if not isinstance(value, dict):
            place = f"{show_key(key)}.NAME" if isinstance(inner, inspect.StructType) else key[-1]
            yield SettingError(key, "must be a table.", f"Write [{place}] above its keys.")
            return
        for name, item in cast("dict[str, Any]", value).items():
            if isinstance(inner, inspect.StructType) and not isinstance(item, dict):
                yield _nameless(inner, (*key, name))
            else:
                yield from _check(item, inner, (*key, name))
    elif isinstance(kind, inspect.VarTupleType):
        yield from _check_list(value, kind, key)
    elif isinstance(kind, inspect.LiteralType):
        words = [str(item) for item in kind.values]
        if value not in kind.values:
            listed = " or ".join(map(repr, words))
            yield SettingError(
                key, f"must be {listed}, not {_show(value)}.", _suggest(str(value), words)
            )
    else:
        yield from _check_plain(value, kind, key)


def _check_table(value: Any, kind: inspect.StructType, key: Key) -> Iterator[SettingError]:
    if not isinstance(value, dict):
        yield SettingError(key, "must be a table.", f"Write [{show_key(key)}] above its keys.")
        return
    fields = {field.encode_name: field for field in kind.fields}
    given = cast("dict[str, Any]", value)
    suggested = ""
    for name, item in given.items():
        if name in fields:
            yield from _check(item, fields[name].type, (*key, name))
        else:
            hint = _suggest_name(name, fields)
            suggested += hint
            yield SettingError((*key, name), "is not a setting.", hint)
    for name, field in fields.items():
        if field.required and name not in given and f"Did you mean {name!r}" not in suggested:
            yield SettingError(key, f"has no {name}.", f"Add {name} = {_example(field.type)}.")


def _check_list(value: Any, kind: inspect.VarTupleType, key: Key) -> Iterator[SettingError]:
    if not isinstance(value, list):
        hint = f"Write {key[-1]} = [{_literal(value)}]."
        if isinstance(kind.item_type, inspect.StructType):
            hint = f"Write [[{show_key(key)}]] above each."
        yield SettingError(key, "must be a list.", hint)
        return
    items = cast("list[Any]", value)
    if len(items) < (kind.min_length or 0):
        yield SettingError(key, "is empty.", "Name at least one.")
    for number, item in enumerate(items):
        yield from _check(item, kind.item_type, (*key, number))


_PLAIN: Final[tuple[tuple[Any, tuple[type, ...], str], ...]] = (
    (inspect.StrType, (str,), "text"),
    (inspect.BoolType, (bool,), "true or false"),
    (inspect.IntType, (int,), "a whole number"),
    (inspect.FloatType, (int, float), "a number"),
)


def _check_plain(value: Any, kind: Any, key: Key) -> Iterator[SettingError]:
    found = next((row for row in _PLAIN if isinstance(kind, row[0])), None)
    if found is None:  # anything is taken
        return
    _, types, name = found
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        yield SettingError(
            key, f"must be {name}, not {_show(value)}.", _suggest_value(value, types, key)
        )
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    number = cast("inspect.FloatType", kind)
    low, most = number.ge if number.ge is not None else number.gt, number.le
    if low is not None and not (value > low or (value == low and number.ge is not None)):
        words = f"at least {low:g}" if number.ge is not None else f"more than {low:g}"
    elif most is not None and value > most:
        words = f"at most {most:g}"
    else:
        return
    yield SettingError(
        key, f"must be {words}, not {_show(value)}.", f"Change {key[-1]}, or leave it out."
    )


# Suggestions


def _suggest_name(name: str, fields: Mapping[str, Any]) -> str:
    """Return what was probably meant by a name that is not a setting here."""
    plain = name.lower().replace("-", "_")
    meant = _SYNONYMS.get(plain)
    if meant in fields:
        return f"Did you mean {meant!r}?" + (
            " The key itself stays out of the file." if plain in _SECRETS else ""
        )
    if get_close_matches(plain, fields, n=1, cutoff=0.6):
        return did_you_mean(plain, fields)
    for table, keys in _tables():
        if plain in keys:
            return f"{plain!r} belongs {table}."
    return did_you_mean(plain, fields)


def _tables() -> Iterator[tuple[str, set[str]]]:
    """Yield every place of the file with its keys."""
    from .tables import SettingsFile

    whole = inspect.type_info(SettingsFile)
    assert isinstance(whole, inspect.StructType)
    yield "above all tables", {field.name for field in whole.fields} & {"relay_paths"}
    for field in whole.fields:
        kind, shown = field.type, f"[{field.name}]"
        if isinstance(kind, inspect.DictType):
            kind, shown = kind.value_type, f"[{field.name}.NAME]"
        elif isinstance(kind, inspect.VarTupleType):
            kind, shown = kind.item_type, f"[[{field.name}]]"
        if isinstance(kind, inspect.StructType):
            yield f"under {shown}", {item.encode_name for item in kind.fields}


def _nameless(kind: inspect.StructType, key: Key) -> SettingError:
    """Return the error of a value where there should be a table with a name."""
    table, name = show_key(key[:-1]), str(key[-1])
    if name in {field.encode_name for field in kind.fields}:
        return SettingError(
            key,
            "has no name above it.",
            f"Write [{table}.NAME] above {name}, with a name of yours.",
        )
    return SettingError(key, "must be a table.", f"Write [{show_key(key)}] above its keys.")


def _suggest(value: str, words: Sequence[str]) -> str:
    return did_you_mean(value.lower(), words)


def _suggest_value(value: Any, types: tuple[type, ...], key: Key) -> str | None:
    if isinstance(value, str) and str not in types:
        text = value.strip().lower()
        if bool in types:
            text = {"on": "true", "yes": "true", "off": "false", "no": "false"}.get(text, text)
        is_right = text in {"true", "false"} if bool in types else _is_number(text)
        return f"Write {key[-1]} = {text}, without quotes." if is_right else None
    if isinstance(value, list) and len(cast("list[Any]", value)) == 1:
        return f"Write {key[-1]} = {_literal(value[0])}."
    if str in types and isinstance(value, bool | int | float):
        return f'Write {key[-1]} = "{_literal(value)}".'
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _example(kind: Any) -> str:
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        return "1"
    return '"…"' if isinstance(kind, inspect.StrType) else "[…]"


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{excerpt(value, 60)}"' if isinstance(value, str) else excerpt(str(value), 60)


def _show(value: Any) -> str:
    """Return a value as the file has it, or its kind if it is large."""
    if isinstance(value, dict):
        return "a table"
    return "a list" if isinstance(value, list) else _literal(value)
