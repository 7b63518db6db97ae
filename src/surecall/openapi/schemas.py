"""Schemas of an OpenAPI document as JSON Schema of one tool, with all that they refer to."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, cast

from surecall.errors import Code, JSONTextError, ToolDefinitionError
from surecall.jsontext import resolve_pointer
from surecall.narrow import as_fields, as_list

_DROPPED: Final = frozenset(
    {"discriminator", "example", "externalDocs", "nullable", "readOnly", "writeOnly", "xml"}
)
_LIMITS: Final = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))
_BY_NAME: Final = frozenset({"$defs", "dependentSchemas", "patternProperties", "properties"})
_VALUES: Final = frozenset({"const", "default", "enum", "examples", "required"})


def follow(document: Mapping[str, Any], part: Any) -> dict[str, Any]:
    """Return what a part of the document refers to, or the part itself."""
    seen: set[str] = set()
    found = as_fields(part)
    while isinstance(place := found.get("$ref"), str):
        if place in seen:
            raise _unusable(f"the reference {place!r:.200} leads back to itself.")
        seen.add(place)
        found = as_fields(_look_up(document, place))
    return found


def _look_up(document: Mapping[str, Any], place: str) -> Any:
    if not place.startswith("#/"):
        raise ToolDefinitionError(
            Code.REMOTE_REF_REFUSED,
            f"the reference {place!r:.200} leads out of the document.",
            hint="Put what it refers to into the document.",
        )
    try:
        return resolve_pointer(document, place.removeprefix("#"))
    except JSONTextError as error:
        raise _unusable(f"the reference {place!r:.200} leads nowhere.") from error


def _unusable(message: str) -> ToolDefinitionError:
    return ToolDefinitionError(Code.INVALID_SCHEMA, message)


class SchemaWriter:
    """Writes schemas of one operation; what they refer to is collected in `definitions`."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._names: dict[str, str] = {}
        self.definitions: dict[str, Any] = {}

    def write(self, schema: Any) -> dict[str, Any] | bool:
        """Return a schema in today's JSON Schema; references lead to `#/$defs`."""
        if isinstance(schema, bool):
            return schema
        given = as_fields(schema)
        if isinstance(place := given.get("$ref"), str):
            words = {key: given[key] for key in ("description",) if key in given}
            return {"$ref": f"#/$defs/{self._define(place)}", **words}
        written = {key: self._write_part(key, value) for key, value in given.items()}
        _drop_what_is_only_answered(written, as_fields(given.get("properties")))
        for key, limit in _LIMITS:
            is_old_form = isinstance(written.get(key), bool)  # that of OpenAPI 3.0
            if is_old_form and written.pop(key) and limit in written:
                written[key] = written.pop(limit)
        is_nullable = given.get("nullable") is True
        written = {key: value for key, value in written.items() if key not in _DROPPED}
        return {"anyOf": [written, {"type": "null"}]} if is_nullable else written

    def _write_part(self, key: str, value: Any) -> Any:
        if key in _VALUES:
            return value
        if key in _BY_NAME:
            return {name: self.write(item) for name, item in as_fields(value).items()}
        if isinstance(value, dict):
            return self.write(cast("Any", value))
        if isinstance(value, list):
            items = cast("list[Any]", value)
            return [self.write(item) if isinstance(item, dict) else item for item in items]
        return value

    def _define(self, place: str) -> str:
        name = self._names.get(place)
        if name is None:
            mark = sha256(place.encode()).hexdigest()[:8]
            plain = place.rpartition("/")[2]
            plain = plain if plain.isascii() and plain.isidentifier() else "schema"
            name = self._names[place] = f"{plain}_{mark}"
            self.definitions[name] = self.write(_look_up(self._document, place))
        return name


def _drop_what_is_only_answered(written: dict[str, Any], members: dict[str, Any]) -> None:
    """Leave out properties that a server sets: they are not part of a request."""
    answered = {name for name, item in members.items() if as_fields(item).get("readOnly") is True}
    if not answered:
        return
    written["properties"] = {
        name: item for name, item in written["properties"].items() if name not in answered
    }
    required = [name for name in as_list(written.get("required")) if name not in answered]
    written["required"] = required
    if not required:
        del written["required"]
