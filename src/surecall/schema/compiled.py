"""A schema compiled by jsonschema-rs, which is loaded with this module and not before."""

import datetime
from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final, NoReturn, cast

import jsonschema_rs
import msgspec

from surecall.errors import Code, JSONTextError, ToolDefinitionError
from surecall.jsontext import encode, render_pointer, resolve_pointer
from surecall.records import ErrorDetail, clip

from .explain import Checked, detail_at, explain_error, most_telling
from .guard import refuse_unsafe_schema, remote_reference
from .narrow import MAX_ERRORS, has_few_nodes, narrow, shallow_schema

__all__ = ["CompiledSchema"]

_MAX_LISTED_NODES: Final = 2_000
_MAX_COMPILED: Final = 256

_UNASSERTED_FORMATS: Final = (
    "duration",
    "hostname",
    "idn-email",
    "idn-hostname",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "uri-reference",
    "uri-template",
)


_compiled: Final[dict[bytes, tuple[dict[str, Any], jsonschema_rs.Validator]]] = {}
"""What was compiled last."""


class CompiledSchema:
    """A schema ready to check values."""

    __slots__ = ("_schema", "_validator")

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._validator = _compile(schema)

    def is_valid(self, value: Any) -> bool:
        """Tell whether a JSON value fits the schema."""
        try:
            return self._validator.is_valid(value)
        except ValueError:  # not JSON: a lone surrogate, an object of another kind
            return False

    def list_errors(self, value: Any) -> tuple[ErrorDetail, ...]:
        """Return at least one error of a value that does not fit."""
        try:
            # All errors are made before the first is given: a large value is narrowed down first.
            if has_few_nodes(value, _MAX_LISTED_NODES):
                details = _explain(self._validator, Checked(value, self._schema))
            else:
                details = self._narrow(value)
        except ValueError as error:
            details = [detail_at((), f"cannot be checked: {clip(str(error))}")]
        if not details:
            details = [detail_at((), "does not fit its schema")]
        return tuple(dict.fromkeys(details))[:MAX_ERRORS]

    def _narrow(self, value: Any) -> list[ErrorDetail]:
        validators = jsonschema_rs.validator_map_for(self._schema, **_options(_refuse_remote))
        dialect = {key: self._schema[key] for key in ("$schema",) if key in self._schema}

        def fits(pointer: str, part: Any) -> bool:
            return pointer not in validators or validators[pointer].is_valid(part)

        details: list[ErrorDetail] = []
        for part in narrow(self._schema, value, fits, _MAX_LISTED_NODES):
            pointer = render_pointer(part.pointer)
            schema: Any = resolve_pointer(self._schema, pointer)
            if part.scope == "whole" or not isinstance(schema, dict):
                validator = validators[f"#{pointer}"]
            else:
                shallow: dict[str, Any] = {
                    **dialect,
                    **shallow_schema(cast(dict[str, Any], schema)),
                }
                validator = jsonschema_rs.validator_for(shallow, **_options(_refuse_remote))
            found = _explain(validator, Checked(part.value, schema, part.path))
            if part.scope == "end" and not found:
                found = [detail_at(part.path, "fits none of the forms its schema allows")]
            details.extend(found)
            if len(details) >= MAX_ERRORS:
                break
        return details


def _explain(validator: jsonschema_rs.Validator, checked: Checked) -> list[ErrorDetail]:
    errors = most_telling(list(validator.iter_errors(checked.value)))[:MAX_ERRORS]
    return [detail for error in errors for detail in explain_error(error, checked)]


def _refuse_remote(uri: str) -> NoReturn:
    raise ValueError("schemas are never fetched")


def _options(retriever: Callable[[str], NoReturn]) -> Any:
    return {
        "formats": _FORMATS,
        "validate_formats": True,
        "retriever": retriever,
        "pattern_options": jsonschema_rs.RegexOptions(),
    }


def _compile(schema: dict[str, Any]) -> jsonschema_rs.Validator:
    """Compile a schema, or take what was compiled for the very same one before.

    Programs that make their tools anew for every run would otherwise compile them every time.
    """
    try:
        key = encode(schema)
    except JSONTextError:
        return _compile_new(schema)
    known = _compiled.get(key)
    # Different Python values may be the same JSON, and equal ones may not be.
    if known is not None and known[0] == schema:
        return known[1]
    validator = _compile_new(schema)
    if len(_compiled) >= _MAX_COMPILED:
        _compiled.pop(next(iter(_compiled)), None)
    _compiled[key] = (deepcopy(schema), validator)
    return validator


def _compile_new(schema: dict[str, Any]) -> jsonschema_rs.Validator:
    refuse_unsafe_schema(schema)
    refused: list[str] = []

    def refuse(uri: str) -> NoReturn:
        refused.append(uri)
        raise ValueError("schemas are never fetched")

    try:
        return jsonschema_rs.validator_for(schema, **_options(refuse))
    except jsonschema_rs.ValidationError as error:
        raise _refusal(error, refused) from None
    except ValueError as error:
        raise ToolDefinitionError(
            Code.INVALID_SCHEMA,
            f"The schema is not JSON: {clip(str(error))}.",
            hint="Use objects with string keys, lists, strings, finite numbers, booleans, null.",
        ) from None


def _refusal(error: jsonschema_rs.ValidationError, refused: list[str]) -> ToolDefinitionError:
    if refused or "not present in a registry" in error.message:
        uri = refused[0] if refused else error.message.split("'")[1]
        return remote_reference(uri, "")
    place = render_pointer(error.instance_path) or "/"
    message = f"The schema is not valid at {place}: {clip(error.message)}."
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
    return ToolDefinitionError(Code.INVALID_SCHEMA, message, hint=hint)


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
