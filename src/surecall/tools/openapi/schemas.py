"""Schemas of an OpenAPI document as JSON Schema of one tool, with all that they refer to."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, cast
from urllib.parse import unquote

from surecall.base.errors import Code, JSONTextError, ToolDefinitionError
from surecall.base.json_values import as_fields, as_list
from surecall.base.redaction import excerpt
from surecall.text import resolve_pointer

_DROPPED: Final = frozenset(
    {"discriminator", "example", "externalDocs", "nullable", "readOnly", "writeOnly", "xml"}
)
_LIMITS: Final = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))
_BY_NAME: Final = frozenset({"$defs", "dependentSchemas", "patternProperties", "properties"})
_MAX_COMBINED: Final = 100
_VALUES: Final = frozenset({"const", "default", "enum", "examples", "required"})


def follow(document: Mapping[str, Any], part: Any) -> dict[str, Any]:
    """Return what a part of the document refers to, or the part itself."""
    seen: set[str] = set()
    found = as_fields(part)
    while isinstance(place := found.get("$ref"), str):
        if place in seen:
            raise _unusable(f"the reference {excerpt(place)!r} leads back to itself.")
        seen.add(place)
        found = as_fields(_look_up(document, place))
    return found


def _look_up(document: Mapping[str, Any], place: str) -> Any:
    if not place.startswith("#/"):
        raise ToolDefinitionError(
            Code.REMOTE_REF_REFUSED,
            f"the reference {excerpt(place)!r} leads out of the document.",
            hint="Put what it refers to into the document.",
        )
    # A reference is a URL, so that what a name has of `%` and spaces may be encoded.
    for pointer in (place.removeprefix("#"), unquote(place.removeprefix("#"))):
        try:
            return resolve_pointer(document, pointer)
        except JSONTextError:
            continue
    raise _unusable(f"the reference {excerpt(place)!r} leads nowhere.")


def _unusable(message: str) -> ToolDefinitionError:
    return ToolDefinitionError(Code.INVALID_SCHEMA, message)


class SchemaWriter:
    """Writes schemas of one operation; what they refer to is collected in `definitions`."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._is_old = str(document.get("openapi", "")).startswith("3.0")
        self._names: dict[str, str] = {}
        self._pending: list[str] = []
        self.definitions: dict[str, Any] = {}

    def write(self, schema: Any) -> dict[str, Any] | bool:
        """Return a schema in today's JSON Schema; references lead to `#/$defs`."""
        written = self._write(schema)
        while self._pending:
            place = self._pending.pop()
            self.definitions[self._names[place]] = self._write(_look_up(self._document, place))
        return written

    def _write(self, schema: Any, answered: frozenset[str] = frozenset()) -> dict[str, Any] | bool:
        """Write one schema; `answered` names what its neighbours say that only a server sets."""
        if isinstance(schema, bool):
            return schema
        given = as_fields(schema)
        is_nullable = given.get("nullable") is True
        if isinstance(place := given.get("$ref"), str):
            # In 3.0 nothing else counts next to a reference, but much is meant to.
            kept = {"description"} if self._is_old else given.keys()
            given = {key: value for key, value in given.items() if key in kept and key != "$ref"}
            written: dict[str, Any] = {"$ref": f"#/$defs/{self._define(place)}"}
        else:
            written = {}
        answered |= self._find_answered(given)
        written |= {
            key: self._write_part(key, value, answered)
            for key, value in given.items()
            if key not in _DROPPED and not key.startswith("x-")
        }
        _drop_members(written, answered)
        for key, limit in _LIMITS:
            is_old_form = isinstance(written.get(key), bool)  # that of OpenAPI 3.0
            if is_old_form and written.pop(key) and limit in written:
                written[key] = written.pop(limit)
        return _or_null(written) if is_nullable else written

    def _write_part(self, key: str, value: Any, answered: frozenset[str]) -> Any:
        if key in _VALUES:
            return value
        if key in _BY_NAME:
            return {name: self._write(item) for name, item in as_fields(value).items()}
        if isinstance(value, dict):
            return self._write(cast("Any", value))
        if isinstance(value, list):
            items = cast("list[Any]", value)
            near = answered if key == "allOf" else frozenset[str]()
            return [self._write(item, near) if isinstance(item, dict) else item for item in items]
        return value

    def _find_answered(self, schema: Mapping[str, Any]) -> frozenset[str]:
        """Return the names of what only a server sets, here and in what is combined with it."""
        found: set[str] = set()
        todo: list[dict[str, Any]] = [dict(schema)]
        for part in todo:
            members = as_fields(part.get("properties"))
            found |= {name for name, item in members.items() if self._is_answered(item)}
            if len(todo) < _MAX_COMBINED:
                todo += [follow(self._document, item) for item in as_list(part.get("allOf"))]
        return frozenset(found)

    def _is_answered(self, member: Any) -> bool:
        given = as_fields(member)
        return given.get("readOnly") is True or (
            isinstance(given.get("$ref"), str)
            and follow(self._document, given).get("readOnly") is True
        )

    def _define(self, place: str) -> str:
        name = self._names.get(place)
        if name is None:
            mark = sha256(place.encode("utf-8", "surrogatepass")).hexdigest()[:8]
            plain = place.rpartition("/")[2]
            plain = plain if plain.isascii() and plain.isidentifier() else "schema"
            name = self._names[place] = f"{plain}_{mark}"
            self._pending.append(place)
        return name


def _or_null(written: dict[str, Any]) -> dict[str, Any]:
    words = {"description": written.pop("description")} if "description" in written else {}
    return {"anyOf": [written, {"type": "null"}], **words}


def _drop_members(written: dict[str, Any], answered: frozenset[str]) -> None:
    """Leave out properties that only a server sets: they are not part of a request."""
    if not answered:
        return
    if "properties" in written:
        members = as_fields(written["properties"])
        written["properties"] = {k: v for k, v in members.items() if k not in answered}
    if "required" in written:
        required = [name for name in as_list(written["required"]) if name not in answered]
        written["required"] = required
        if not required:
            del written["required"]
