"""Checking values against a schema: refused when unsafe, compiled once, explained when it fails."""

import datetime
from collections.abc import Callable, Iterator
from copy import deepcopy
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, NoReturn

import msgspec

from surecall.base.errors import Code, JSONTextError, ToolDefinitionError
from surecall.base.json_values import as_fields, as_list
from surecall.base.limits import MAX_SCHEMA_DEPTH
from surecall.base.records import ErrorDetail, clip
from surecall.text import encode, render_pointer

from . import mismatches
from .mismatches import MAX_ERRORS
from .structure import (
    MAX_SCHEMA_NODES,
    References,
    SchemaPath,
    has_few_nodes,
    in_place_schemas,
    json_types,
    members_of,
    nests_deeper,
    walk_schema,
)

if TYPE_CHECKING:
    import jsonschema_rs

_MAX_LISTED_DEPTH: Final = 6
_MAX_LISTED_NODES: Final = 2_000
_MAX_COMPILED: Final = 256
_MAX_EXPANSION: Final = 20_000
_DIALECTS: Final = tuple(
    f"json-schema.org/{draft}/schema"
    for draft in ("draft-04", "draft-06", "draft-07", "draft/2019-09", "draft/2020-12")
)
SPEAKS_OF_NAMES: Final = frozenset(
    {"additionalProperties", "patternProperties", "propertyNames", "unevaluatedProperties"}
)
"""Keywords that say which other keys an object may have."""
_NEGATING: Final = (b'"not"', b'"if"', b'"oneOf"', b'"contains"', b'"dependentSchemas"')
"""Keywords under which forbidding more allows more."""
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_UNASSERTED_FORMATS: Final = (
    *("duration", "hostname", "idn-email", "idn-hostname", "iri", "iri-reference", "json-pointer"),
    *("regex", "relative-json-pointer", "uri-reference", "uri-template"),
)


class _Compiled:
    """One schema as it was when it was compiled, and what was made of it."""

    __slots__ = ("closed", "is_mixed", "parts", "schema", "validator")

    def __init__(self, schema: dict[str, Any], validator: "jsonschema_rs.Validator") -> None:
        self.schema = schema
        self.validator = validator
        self.closed: _Compiled | None = None
        """Accepts only keys that the schema names or speaks of; made when it is first needed."""
        self.is_mixed = False
        """Whether forbidding more may allow more."""
        self.parts: Any = None
        """What was found out about its parts, by whoever looks at them."""


_compiled: Final[dict[bytes, _Compiled]] = {}
"""What was compiled last."""


class SchemaChecker:
    """Checks values against one schema; compiled when first used.

    The formats `date-time`, `date`, `time`, `uuid`, `email`, `uri`, `ipv4` and `ipv6` are
    asserted, a `date-time` or `time` with or without an offset; other formats are notes to the
    reader. Patterns run on an engine whose cost is linear in the text, so look-around and
    back-references are refused when the schema is compiled.
    """

    __slots__ = ("_made", "schema")

    def __init__(self, schema: dict[str, Any], made: _Compiled | None = None) -> None:
        self.schema = schema
        self._made = made

    def compile(self) -> _Compiled:
        """Compile now, so that a schema that cannot be used is refused here and not later.

        Raises:
            ToolDefinitionError: it is not a schema, too large, or refers to something outside.
        """
        if self._made is None:
            self._made = _compile(self.schema)
        return self._made

    def is_valid(self, value: Any) -> bool:
        """Tell whether a JSON value fits the schema."""
        made = self._made or self.compile()
        try:
            return made.validator.is_valid(value)
        except ValueError:  # not JSON: a lone surrogate, an object of another kind
            return False

    def is_exact(self, value: Any) -> bool:
        """Tell whether a JSON value fits, and has no key that the schema is silent about.

        Where parts of a schema are combined, a value that is exact may be taken for one that is
        not, and never the other way round.
        """
        made = self._made or self.compile()
        closed = made.closed or self._close(made)
        try:
            is_exact = closed.validator.is_valid(value)
        except ValueError:
            return False
        return is_exact and (not made.is_mixed or made.validator.is_valid(value))

    def closed(self) -> "SchemaChecker":
        """Return a checker that forbids the keys that the schema is silent about."""
        made = self.compile()
        closed = made.closed or self._close(made)
        return SchemaChecker(closed.schema, closed)

    def _close(self, made: _Compiled) -> _Compiled:
        made.is_mixed = any(word in encode(made.schema) for word in _NEGATING)
        made.closed = _compile_closed(made)
        return made.closed

    def check(self, value: Any) -> tuple[ErrorDetail, ...]:
        """Return every error of a JSON value, at most `MAX_ERRORS`; nothing when it fits."""
        if self.is_valid(value):
            return ()
        if self._has_recursive_union and nests_deeper(value, _MAX_LISTED_DEPTH):
            return (mismatches.NOT_LISTED,)
        try:
            # All errors are made before the first is given: a large value is narrowed down first.
            if has_few_nodes(value, _MAX_LISTED_NODES):
                whole = mismatches.Checked(value, self.schema)
                details = mismatches.explain_errors(self.compile().validator, whole)
            else:
                details = self._check_large(value)
        except ValueError as error:
            details = [mismatches.detail_at((), f"cannot be checked: {clip(str(error))}")]
        if not details:
            details = [mismatches.detail_at((), mismatches.UNKNOWN_ERROR)]
        return tuple(dict.fromkeys(details))[:MAX_ERRORS]

    def _check_large(self, value: Any) -> list[ErrorDetail]:
        """Return the errors of the parts of a large value that are wrong."""
        import jsonschema_rs

        options = _options(_refuse_remote)
        validators = jsonschema_rs.validator_map_for(self.schema, **options)
        dialect = {key: self.schema[key] for key in ("$schema",) if key in self.schema}

        def fits(pointer: str, part: Any) -> bool:
            return pointer not in validators or validators[pointer].is_valid(part)

        details: list[ErrorDetail] = []
        for part in _find_wrong(self.schema, value, fits, _MAX_LISTED_NODES):
            fields = as_fields(part.schema)
            if part.scope == "whole" or not fields:
                validator = validators[f"#{render_pointer(part.pointer)}"]
            else:
                shallow = {**dialect, **_shallow_schema(fields)}
                validator = jsonschema_rs.validator_for(shallow, **options)
            checked = mismatches.Checked(part.value, part.schema, part.path)
            found = mismatches.explain_errors(validator, checked)
            if part.scope == "end" and not found:
                found = [mismatches.detail_at(part.path, mismatches.NO_FORM_FITS)]
            details.extend(found)
            if len(details) >= MAX_ERRORS:
                break
        return details

    @property
    def _has_recursive_union(self) -> bool:
        """Whether listing errors may cost a multiple with every level of the value."""
        text = encode(self.schema)
        return b'"$ref"' in text and (b'"anyOf"' in text or b'"oneOf"' in text)


# Compiling


def _compile(schema: dict[str, Any]) -> _Compiled:
    """Compile a schema, or take what was compiled for the very same one before.

    Programs that make their tools anew for every run would otherwise compile them every time.
    """
    try:
        key = encode(schema)
    except JSONTextError:
        return _Compiled(schema, _compile_new(schema))
    known = _compiled.get(key)
    # Different Python values may be the same JSON, and equal ones may not be.
    if known is not None and known.schema == schema:
        return known
    made = _Compiled(deepcopy(schema), _compile_new(schema))
    if len(_compiled) >= _MAX_COMPILED:
        _compiled.pop(next(iter(_compiled)), None)
    _compiled[key] = made
    return made


def _compile_closed(made: _Compiled) -> _Compiled:
    """Compile a schema that forbids the keys it is silent about; the same if there are no such."""
    closed = deepcopy(made.schema)
    is_same = True
    for place in walk_schema(closed):
        fields = place.schema
        if isinstance(fields.get("properties"), dict) and not SPEAKS_OF_NAMES & fields.keys():
            fields["additionalProperties"] = False
            is_same = False
    try:
        return made if is_same else _compile(closed)
    except ToolDefinitionError:  # by a hair too large
        return made


def _compile_new(schema: dict[str, Any]) -> "jsonschema_rs.Validator":
    import jsonschema_rs

    _refuse_unsafe(schema)
    remote: list[str] = []

    def refuse(uri: str) -> NoReturn:
        remote.append(uri)
        _refuse_remote(uri)

    try:
        return jsonschema_rs.validator_for(schema, **_options(refuse))
    except jsonschema_rs.ValidationError as error:
        raise _explain_refusal(error, remote) from None
    except ValueError as error:
        raise _refusal(
            f"The schema is not JSON: {clip(str(error))}.",
            "Use objects with string keys, lists, strings, finite numbers, booleans, null.",
        ) from None


def _options(retriever: Callable[[str], NoReturn]) -> Any:
    import jsonschema_rs

    return {
        "formats": _FORMATS,
        "validate_formats": True,
        "retriever": retriever,
        "pattern_options": jsonschema_rs.RegexOptions(),
    }


def _refuse_remote(uri: str) -> NoReturn:
    raise ValueError("schemas are never fetched")


def _explain_refusal(
    error: "jsonschema_rs.ValidationError", remote: list[str]
) -> ToolDefinitionError:
    import jsonschema_rs

    if remote or "not present in a registry" in error.message:
        return _remote_reference(remote[0] if remote else error.message.split("'")[1], "")
    place = render_pointer(error.instance_path) or "/"
    match error.kind:
        case jsonschema_rs.ValidationErrorKind.Format(format="regex"):
            hint = (
                "Patterns run in linear time: look-ahead, look-behind and back-references are not "
                "available, nor are patterns that compile to more than 10 MB."
            )
        case jsonschema_rs.ValidationErrorKind.Referencing():
            hint = 'Refer to a definition that exists, as in "#/$defs/Name".'
        case _:
            hint = "See the JSON Schema 2020-12 rules for this keyword."
    return _refusal(f"The schema is not valid at {place}: {clip(error.message)}.", hint)


def _reads_as(kind: type) -> Callable[[str], bool]:
    """Make a check that accepts exactly what can later become the Python value."""

    def check(text: str) -> bool:
        try:
            msgspec.convert(text, kind)
        except msgspec.ValidationError:
            return False
        return True

    return check


def _accept(_text: str) -> bool:
    return True


_FORMATS: Final[dict[str, Callable[..., bool]]] = {
    **dict.fromkeys(_UNASSERTED_FORMATS, _accept),
    "date-time": _reads_as(datetime.datetime),
    "time": _reads_as(datetime.time),
}


# Schemas that must not be compiled: too deep, too large, reaching outside, or exploding


def _refuse_unsafe(schema: Any) -> None:
    """Raise for a schema that would be dangerous or pointless to compile."""
    if not isinstance(schema, dict):
        raise _refusal(
            f"A schema is a JSON object, not {type(schema).__name__}.",
            'Write {"type": "object", "properties": {...}}.',
        )
    root = as_fields(schema)
    _refuse_size(root)
    _refuse_dialect(root)
    _refuse_references(root)


def _refuse_size(root: Any) -> None:
    stack: list[tuple[Any, int]] = [(root, 1)]
    nodes = 0
    while stack:
        value, depth = stack.pop()
        nodes += 1
        if depth > MAX_SCHEMA_DEPTH:
            raise _refusal(
                f"The schema is nested deeper than {MAX_SCHEMA_DEPTH} levels.",
                "Flatten it: models fill flat arguments far more reliably.",
            )
        inner = as_fields(value).values()
        stack.extend((item, depth + 1) for item in inner if isinstance(item, (dict, list)))  # pyright: ignore[reportUnknownArgumentType] - any JSON
        stack.extend((item, depth + 1) for item in as_list(value))
        if nodes + len(stack) > MAX_SCHEMA_NODES:
            raise _refusal(
                f"The schema has more than {MAX_SCHEMA_NODES} objects and list elements.",
                "Split the tool, or pass long lists of choices as text to look up.",
            )


def _refuse_dialect(root: dict[str, Any]) -> None:
    dialect = root.get("$schema")
    if not isinstance(dialect, str):
        return
    name = dialect.rstrip("#").removeprefix("https://").removeprefix("http://")
    if name not in _DIALECTS:
        raise _refusal(
            f"The schema is written in an unknown dialect: {clip(dialect, 120)!r} at /$schema.",
            'Leave "$schema" out for draft 2020-12, or name a draft from 4 to 2020-12.',
        )


def _refuse_references(root: dict[str, Any]) -> None:
    budget = _MAX_EXPANSION
    references = References(root)
    for place in walk_schema(root):
        for keyword in _REFERENCES:
            reference = place.schema.get(keyword)
            if not isinstance(reference, str):
                continue
            if not reference.startswith("#"):
                raise _remote_reference(reference, render_pointer((*place.path, keyword)))
            budget = _spend(references, reference, budget)


def _spend(references: References, reference: str, budget: int) -> int:
    """Follow everything a reference applies to one value; references of references multiply."""
    stack: list[Any] = [references.resolve(reference)]
    while stack:
        schema = stack.pop()
        if not isinstance(schema, dict):
            continue
        budget -= 1
        if budget < 0:
            raise _refusal(
                f"The references of the schema never end or multiply: following {reference!r} "
                f"takes more than {_MAX_EXPANSION} steps.",
                "A $ref must not lead back to itself except through a property or item.",
            )
        fields = as_fields(schema)
        stack.extend(in_place_schemas(fields))
        inner = fields.get("$ref")
        if isinstance(inner, str) and inner.startswith("#"):
            stack.append(references.resolve(inner))
    return budget


def _remote_reference(reference: str, place: str) -> ToolDefinitionError:
    where = f" at {place}" if place else ""
    return ToolDefinitionError(
        Code.REMOTE_REF_REFUSED,
        f"The schema refers to {clip(reference, 120)!r}{where}, outside of itself; "
        "schemas are never fetched.",
        hint='Copy the schema into "$defs" and refer to it as "#/$defs/Name".',
    )


def _refusal(message: str, hint: str) -> ToolDefinitionError:
    return ToolDefinitionError(Code.INVALID_SCHEMA, message, hint=hint)


# The part of a large value that is wrong, found without listing every error of the whole

_MAX_STEPS: Final = 100
_OWN_KEYWORDS: Final = frozenset(
    {"const", "dependentRequired", "enum", "exclusiveMaximum", "exclusiveMinimum", "format"}
    | {"maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength"}
    | {"minProperties", "minimum", "multipleOf", "pattern", "required", "type", "uniqueItems"}
)


class _Part(NamedTuple):
    """A part of a value, and the part of the schema that applies to it."""

    path: SchemaPath
    value: Any
    pointer: SchemaPath
    schema: Any
    scope: Literal["whole", "own", "end"] = "whole"
    """List all its errors, only its own, or only its own because nothing inside is wrong."""

    def apply(self, schema: Any, *way: str | int) -> "_Part":
        """Return the same value with a schema that is found under this one."""
        return self._replace(pointer=(*self.pointer, *way), schema=schema)

    def enter(self, key: str | int, value: Any, schema: Any, *way: str | int) -> "_Part":
        """Return a member or an element of the value with its schema."""
        return _Part((*self.path, key), value, (*self.pointer, *way), schema)


def _find_wrong(
    schema: dict[str, Any], value: Any, fits: Callable[[str, Any], bool], limit: int
) -> Iterator[_Part]:
    """Yield the parts that are wrong: small ones whole, large ones for what they are themselves."""
    references = References(schema)
    large = [_Part((), value, (), schema)]
    steps = 0
    while large and steps < _MAX_STEPS:
        steps += 1
        part = large.pop()
        inner = chain(_apply_in_place(part, references), _enter_parts(part))
        wrong = (item for item in inner if not fits(f"#{render_pointer(item.pointer)}", item.value))
        small: list[_Part] = []
        found = len(large)
        for item in islice(wrong, MAX_ERRORS):
            (small if has_few_nodes(item.value, limit) else large).append(item)
        ended = not small and len(large) == found
        yield part._replace(scope="end" if ended else "own")
        yield from small


def _shallow_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return what a schema says about a value itself, and nothing about what is inside."""
    shallow = {key: value for key, value in schema.items() if key in _OWN_KEYWORDS}
    if schema.get("additionalProperties") is False and "patternProperties" not in schema:
        shallow["properties"] = dict.fromkeys(members_of(schema), True)
        shallow["additionalProperties"] = False
    return shallow


def _apply_in_place(part: _Part, references: References) -> Iterator[_Part]:
    """Yield the value with the other schemas that apply to it."""
    here = as_fields(part.schema)
    reference = here.get("$ref")
    if isinstance(reference, str):
        pointer, target = references.find(reference)
        if target is not None:
            yield part._replace(pointer=pointer, schema=target)
    for keyword in ("anyOf", "oneOf"):
        branches = enumerate(as_list(here.get(keyword)))
        meant = [(index, item) for index, item in branches if _may_be(item, part.value)]
        if len(meant) == 1:
            yield part.apply(meant[0][1], keyword, meant[0][0])
    for index, item in enumerate(as_list(here.get("allOf"))):
        yield part.apply(item, "allOf", index)


def _enter_parts(part: _Part) -> Iterator[_Part]:
    """Yield the members or elements of the value that the schema describes."""
    here = as_fields(part.schema)
    members = as_fields(part.value)
    if members:
        properties = members_of(here)
        others = here.get("additionalProperties")
        has_others = isinstance(others, dict) and "patternProperties" not in here
        for key, item in members.items():
            if key in properties:
                yield part.enter(key, item, properties[key], "properties", key)
            elif has_others:
                yield part.enter(key, item, others, "additionalProperties")
    elif isinstance(here.get("items"), dict) and "prefixItems" not in here:
        for index, item in enumerate(as_list(part.value)):
            yield part.enter(index, item, here["items"], "items")


def _may_be(branch: Any, value: Any) -> bool:
    kind = as_fields(branch).get("type")
    return not isinstance(kind, str) or kind in json_types(value)
