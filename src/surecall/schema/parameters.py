"""Arguments of a call, fitted to the schema of their tool, or typed from text by it.

What fits is returned as it is. What could mean two things is an error that names both. The result
either fits the schema or comes with errors.
"""

from collections.abc import Iterator
from typing import Any, Final, cast

from msgspec import Struct

from surecall.base.errors import JSONTextError
from surecall.base.json_values import as_list
from surecall.base.limits import MAX_JSON_DEPTH
from surecall.base.records import Certainty, ErrorDetail, Receipt
from surecall.text import (
    MAX_ARGUMENT_STEPS,
    decode_noting,
    encode_text,
    repair_json,
)

from . import conversions
from .check import SchemaChecker
from .conversions import Conversion
from .fitter import Fit, Fitter, TooMuchWorkError, only_name, same_json
from .mismatches import (
    MAX_ERRORS,
    NOT_AN_OBJECT,
    TOO_DEEP,
    TOO_MANY_FORMS,
    detail_at,
    explain_shape,
)
from .scalars import BOOLEAN_TEXTS, NULL_TEXTS, is_schema_echo, number_in
from .structure import References, json_types, listed_values, members_of, nests_deeper
from .subschemas import SchemaParts

_WRAPPERS: Final = frozenset(
    {
        "action_input", "args", "arguments", "function", "input", "kwargs", "parameters", "params",
        "properties", "tool_input",
    }
)  # fmt: skip
# What a whole call has beside its arguments, and says nothing that is not known.
_NAME_LABELS: Final = frozenset(
    {"action", "function", "function_name", "name", "tool", "tool_name"}
)
_KINDS_OF_CALLS: Final = frozenset({"function", "function_call", "tool_call", "tool_use"})
_MAX_WRAPPERS: Final = 3


class Coerced(Struct, frozen=True):
    """Arguments after coercion."""

    value: Any
    """An object that fits, when there are no errors; otherwise what it was possible to make."""
    receipts: tuple[Receipt, ...] = ()
    """Every change, in order; a place is a pointer into the value as it was before the change.

    A repair inside a text that was decoded has the pointer, `@`, and the span of the text.
    """
    errors: tuple[ErrorDetail, ...] = ()
    """What is still wrong."""
    doubt: str = ""
    """Why they are only likely: one sentence that a model can read."""


def coerce_arguments(
    value: Any,
    schema: dict[str, Any],
    checker: SchemaChecker | None = None,
    *,
    tool_name: str = "",
    accept: Certainty = "certain",
) -> Coerced:
    """Return arguments as their schema asks for them, with a receipt for every change.

    Args:
        value: What was sent: an object, or anything else that JSON can say.
        schema: The schema of the arguments.
        checker: The compiled schema, when there is one already.
        tool_name: Name of the tool, which may be found wrapped around its arguments.
        accept: `likely` also makes changes that rest on a judgement, with a doubt, such as leaving
            out a name that the schema forbids.

    Raises:
        ToolDefinitionError: the schema cannot be used.
    """
    if checker is None:
        checker = SchemaChecker(schema)
    if value.__class__ is dict and checker.is_exact(value):
        return Coerced(value)
    parts = SchemaParts.of(checker)
    if value.__class__ is dict and checker.is_valid(value):
        return _name_strays(Fit(value), checker)
    found = Fit(value)
    if nests_deeper(value, MAX_JSON_DEPTH):
        found = Fit(value, notes=(detail_at((), TOO_DEEP),))
        accept = "certain"
    else:
        found = _shape_arguments(value, parts, checker, tool_name)
    if _is_good(found, checker):
        return _name_strays(found, checker)
    wrong = checker.check(found.value) or (detail_at((), NOT_AN_OBJECT),)
    errors = tuple(dict.fromkeys((*found.notes, *wrong)))
    if accept == "likely":
        judged = _shape_arguments(value, parts, checker, tool_name, likely=True)
        if _is_good(judged, checker):
            why = next(iter(judged.doubts), conversions.JUDGED)
            return _name_strays(judged, checker, f"{errors[0].message}. {why}")
    return Coerced(found.value, found.receipts, errors[:MAX_ERRORS])


def _shape_arguments(
    value: Any, parts: SchemaParts, checker: SchemaChecker, name: str, *, likely: bool = False
) -> Fit:
    try:
        return _Shapes(parts, checker, name, likely).run(value)
    except TooMuchWorkError:
        return Fit(value, notes=(detail_at((), TOO_MANY_FORMS),))


def _is_good(fit: Fit, checker: SchemaChecker) -> bool:
    return fit.fits and isinstance(fit.value, dict) and checker.is_valid(fit.value)  # pyright: ignore[reportUnknownMemberType] - any JSON


def _name_strays(fit: Fit, checker: SchemaChecker, doubt: str = "") -> Coerced:
    """Return arguments that fit, with the names that their stray keys mean."""
    value: dict[str, Any] = fit.value
    doubt = doubt or next(iter(fit.doubts), "")
    if not checker.is_exact(value):
        # Where a schema is silent about other keys, tools ignore them: an argument in other
        # capitals would be lost. Where it allows them in words, they stay.
        try:
            named = Fitter(SchemaParts.of(checker.closed())).fit(value)
        except TooMuchWorkError:
            named = Fit(value)
        is_renamed = {item.rule for item in named.receipts} == {conversions.RENAME_KEY.rule}
        if is_renamed and checker.is_valid(named.value):
            return Coerced(named.value, (*fit.receipts, *named.receipts), doubt=doubt)
    return Coerced(value, fit.receipts, doubt=doubt)


class _Shapes:
    """Brings whole arguments into the shape that their schema asks for."""

    __slots__ = ("_checker", "_fitter", "_likely", "_parts", "_tool_name", "_view", "_wrappers")

    def __init__(self, parts: SchemaParts, checker: SchemaChecker, name: str, likely: bool) -> None:
        self._checker = checker
        self._parts = parts
        self._likely = likely
        self._fitter = Fitter(parts, likely=likely)
        self._tool_name = name
        self._view = parts.view(parts.root)
        names = _WRAPPERS | {name} if name else _WRAPPERS
        self._wrappers = names - self._view.properties.keys()

    def run(self, value: Any) -> Fit:
        """Return the arguments, changed where that is clear or likely, and what was changed.

        Raises:
            TooMuchWorkError: the branches of the schema multiply.
        """
        inner: Fit | None = Fit(value)
        if isinstance(value, str):
            inner = self._fitter.decode(value, ()) or inner
        forms: list[Fit] = []
        while inner is not None and len(forms) <= _MAX_WRAPPERS:
            forms.append(self._shape(inner))
            if self._is_good(forms[-1]) and not self._likely:
                return forms[-1]
            inner = self._unwrap(inner)
        # By a judgement, a wrapper would be left out with all that it holds.
        return next((form for form in reversed(forms) if self._is_good(form)), forms[0])

    def _is_good(self, fit: Fit) -> bool:
        return _is_good(fit, self._checker)

    def _unwrap(self, outer: Fit) -> Fit | None:
        """Take off one wrapper."""
        value: Any = outer.value
        if not isinstance(value, dict):
            return None
        members = cast("dict[str, Any]", value)
        held = [item for item in members.items() if not self._is_label(*item)]
        if len(held) != 1 or held[0][0] not in self._wrappers:
            return None
        inner = self._fitter.change(conversions.UNWRAP_ARGUMENTS, (), members, held[0][1])
        if isinstance(inner.value, str):
            decoded = self._fitter.decode(inner.value, ())
            if decoded is None:
                return None
            inner = decoded.after(inner)
        return inner.after(outer) if isinstance(inner.value, dict | list) else None

    def _is_label(self, key: str, item: Any) -> bool:
        """Tell whether a member names the call that the arguments are of."""
        if not isinstance(item, str) or key in self._view.properties:
            return False
        if key == "type":
            return item in _KINDS_OF_CALLS
        return key in _NAME_LABELS and item == self._tool_name

    def _shape(self, given: Fit) -> Fit:
        """Shape a value without taking off a wrapper object."""
        value = given.value
        if self._is_good(given):
            return given
        if isinstance(value, dict):
            return self._fitter.fit(value).after(given)
        forms: list[Fit] = []
        notes: list[ErrorDetail] = []
        for form in self._list_forms(value, notes):
            if self._is_good(form) and not any(same_json(form.value, one.value) for one in forms):
                forms.append(form)
        if len(forms) == 1:
            return forms[0].after(given)
        if forms:
            notes.append(detail_at((), explain_shape([form.value for form in forms])))
        elif self._likely:
            return self._fitter.fit(value).after(given)
        return given._replace(notes=(*given.notes, *notes))

    def _list_forms(self, value: Any, notes: list[ErrorDetail]) -> Iterator[Fit]:
        """Yield the objects that a value may stand for, each with its changes."""
        if value is None:
            yield self._make_form(conversions.NULL_TO_OBJECT, value, {})
        elif isinstance(value, str) and not value.strip():
            yield self._make_form(conversions.BLANK_TO_OBJECT, value, {})
        elif isinstance(value, list):
            items = cast("list[Any]", value)
            if len(items) == 1 and isinstance(items[0], dict) and not is_schema_echo(items[0]):
                yield self._make_form(conversions.UNWRAP_LIST, items, cast("Any", items[0]))
            if self._likely:
                return
            name = only_name(self._view)
            if name is not None and self._checker.is_valid({name: items}):
                yield self._make_form(conversions.NAME_ARGUMENT, items, {name: items})
        elif isinstance(value, str | int | float) and not _looks_structured(value):
            name = only_name(self._view)
            if name is not None:
                yield self._make_form(conversions.NAME_ARGUMENT, value, {name: value})

    def _make_form(self, conversion: Conversion, before: Any, after: Any) -> Fit:
        step = self._fitter.change(conversion, (), before, after)
        return step if self._is_good(step) else self._fitter.fit(after).after(step)


def _looks_structured(value: Any) -> bool:
    return isinstance(value, str) and (value.strip()[:1] in ("{", "[") or value in NULL_TEXTS)


# Values that arrive as text, typed by the schema of their parameter: typing, not repair

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
        "drop_trailing_comma",
        "fix_escapes",
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
