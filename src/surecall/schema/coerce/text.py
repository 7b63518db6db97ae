"""Values that arrive as text, typed by the schema of their parameter: typing, not repair."""

from typing import Any, Final, cast

from surecall.base.errors import JSONTextError
from surecall.base.json_values import as_list
from surecall.schema.structure import References, json_types, listed_values, members_of
from surecall.text import MAX_ARGUMENT_STEPS, decode_noting, encode_text, repair_json

from .values import BOOLEAN_TEXTS, number_in

_ANY: Final = "any"
_CHARACTERS_PER_STEP: Final = 20
_MAX_CHOICES: Final = 200
# The first match counts: `longtext` is text before `long` is a number.
_PREFIXES: Final = (
    ("string", ("str", "char", "varchar", "nvarchar", "text", "longtext", "tinytext")),
    ("integer", ("int", "uint", "bigint", "smallint", "tinyint", "long", "short", "unsigned")),
    ("number", ("num", "float", "double", "decimal", "real")),
    ("boolean", ("bool",)),
    ("object", ("obj", "dict", "map", "struct")),
    ("array", ("arr", "list", "tuple", "set", "seq")),
    ("null", ("null", "none")),
)
_ORDER: Final = ("integer", "number", "boolean", "object", "array")
_PYTHON_RULES: Final = frozenset(
    {
        "drop_string_prefix",
        "drop_trailing_comma",
        "fix_escapes",
        "join_strings",
        "replace_literal",
        "replace_quotes",
        "tuple_to_array",
    }
)


def type_text_value(text: str, schema: dict[str, Any] | None) -> Any:
    """Return the value that a text stands for under its parameter's schema.

    Text of a string parameter is kept to the letter. Text that is not of the type asked for is
    kept too, for the check that follows to refuse. `schema` must not need another document to
    follow its references: use `property_schema` to make it so.
    """
    if not schema:
        return _read_untyped(text)
    options = None if "type" in schema else listed_values(schema)
    if options is not None:
        for option in options:
            if _says(text, option):
                return option
    types = _types(schema) or _types_of(options or [])
    if not types or _ANY in types:
        return _read_untyped(text)
    if types == {"string"}:
        return text
    if text.strip() == "null" and ("null" in types or "string" not in types):
        return None
    types.discard("null")
    if "string" in types:
        return _read_literal(text, types)
    return _read_typed(text, types)


def takes_text(schema: dict[str, Any] | None) -> bool:
    """Tell whether a text may be a value of a schema as it is."""
    types = _types(schema) if schema else set[str]()
    return not types or not types.isdisjoint(("string", _ANY))


def property_schema(schema: dict[str, Any], key: str) -> dict[str, Any] | None:
    """Return the schema of a property with its own `$ref` and `allOf` resolved, or None.

    References deeper inside, to parts of the value, stay as they are.
    """
    references = References(schema)
    found: list[Any] = []
    pending: list[Any] = [schema]
    for _ in range(_MAX_CHOICES):
        if not pending:
            break
        facets = references.list_facets(pending.pop(0))
        described = [members_of(facet) for facet in facets if "properties" in facet]
        own = [members[key] for members in described if key in members]
        if own:
            found.append(own[0] if len(own) == 1 else {"allOf": own})
            continue
        values: list[Any] = [facet.get("additionalProperties") for facet in facets]
        others: list[Any] = [item for item in values if isinstance(item, dict)]
        if others and not any("patternProperties" in facet for facet in facets):
            found.append(others[0])
            continue
        pending.extend(branch for facet in facets for branch in _branches(facet))
    if not found:
        return None
    return _resolve(found[0] if len(found) == 1 else {"anyOf": found}, references)


# Schemas


def _branches(facet: dict[str, Any]) -> list[Any]:
    return [*as_list(facet.get("anyOf")), *as_list(facet.get("oneOf"))]


def _resolve(part: Any, references: References) -> dict[str, Any]:
    """Return a part as one schema, and its branches likewise, two levels down."""
    result = references.join(part)
    levels = [result]
    for _ in range(3):
        following: list[dict[str, Any]] = []
        for schema in levels:
            for keyword in ("anyOf", "oneOf"):
                if isinstance(schema.get(keyword), list):
                    schema[keyword] = [references.join(item) for item in schema[keyword]]
                    following.extend(schema[keyword])
        levels = following[:_MAX_CHOICES]
    return result


def _types(schema: dict[str, Any]) -> set[str]:
    """Return the types a schema names, in standard words; nothing when it names none."""
    found: set[str] = set()
    pending: list[Any] = [schema]
    for _ in range(_MAX_CHOICES):
        if not pending:
            break
        item = pending.pop()
        if not isinstance(item, dict):
            found.add(_ANY)
            continue
        found |= _own_types(cast("dict[str, Any]", item), pending)
    return found


def _own_types(schema: dict[str, Any], pending: list[Any]) -> set[str]:
    found: set[str] = set()
    if schema.get("nullable") is True:
        found.add("null")
    if "type" in schema:
        return found | {_standard(word) for word in as_list(schema["type"]) or [schema["type"]]}
    branches = _branches(schema)
    options = listed_values(schema)
    if branches:
        pending.extend(branches)
    elif options is not None:
        found |= _types_of(options)
    elif "properties" in schema:
        found.add("object")
    elif "items" in schema:
        found.add("array")
    else:
        found.add(_ANY)
    return found


def _standard(word: Any) -> str:
    name = word.strip().lower() if isinstance(word, str) else ""
    for standard, prefixes in _PREFIXES:
        if name.startswith(prefixes):
            return standard
    return _ANY


def _types_of(options: list[Any]) -> set[str]:
    return {json_types(item)[0] for item in options}


# Text


def _says(text: str, option: Any) -> bool:
    if isinstance(option, str):
        return text == option
    try:
        return text.strip() == encode_text(option)
    except JSONTextError:
        return False


def _read_untyped(text: str) -> Any:
    """Take a complete JSON object, array, number, or word; anything else is the text."""
    value = _decode(text)
    return text if value is None or isinstance(value[0], str) else value[0]


def _read_literal(text: str, types: set[str]) -> Any:
    """Return the value of JSON text whose type is among those allowed; else it is the string."""
    value = _decode(text) if text == text.strip() else None
    if value is None:
        return text
    kind = json_types(value[0])[0]
    if kind == "string" or (kind not in types and not (kind == "integer" and "number" in types)):
        return text
    return value[0]


def _read_typed(text: str, types: set[str]) -> Any:
    for kind in _ORDER:
        if kind not in types:
            continue
        if kind in ("integer", "number"):
            number = number_in(text)
            if number is not None and (
                kind == "number" or isinstance(number, int) or types == {"integer"}
            ):
                return number
        elif kind == "boolean":
            word = BOOLEAN_TEXTS.get(text.strip().lower())
            if word is not None:
                return word
        else:
            value = _read_container(text)
            wanted = dict if kind == "object" else list
            if value.__class__ is wanted or (value is not None and types == {kind}):
                return value
    return _unquote(text)


def _unquote(text: str) -> str:
    """Return what a JSON string holds: quotes are not part of a value that is not a string."""
    found = _decode(text)
    return found[0] if found and isinstance(found[0], str) else text


def _read_container(text: str) -> Any:
    """Return the object or array of a JSON text or, failing that, of a Python literal."""
    found = _decode(text)
    value = found[0] if found else _read_python(text)
    return value if type(value) in (dict, list) else None


def _read_python(text: str) -> Any:
    """Return the value of text that differs from JSON only as Python's literals do."""
    repaired = repair_json(
        text,
        ended=False,
        nested="keep",
        max_steps=max(MAX_ARGUMENT_STEPS, len(text) // _CHARACTERS_PER_STEP),
    )
    rules = {receipt.rule for receipt in repaired.receipts}
    return repaired.value if repaired.state == "whole" and rules <= _PYTHON_RULES else None


def _decode(text: str) -> tuple[Any] | None:
    """Return the value of JSON text; none when a key is given twice and says different things."""
    if text.strip()[:1] not in _JSON_STARTS:
        return None
    try:
        value, repeated = decode_noting(text)
    except JSONTextError:
        return None
    return None if repeated else (value,)


_JSON_STARTS: Final = frozenset('{["-0123456789tfn')
