"""Operations of an OpenAPI document: what each takes, and how that becomes a request."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, cast
from urllib.parse import quote

from msgspec import Struct

from surecall.errors import Code, ToolDefinitionError
from surecall.jsontext import encode, encode_text
from surecall.limits import MAX_SERVER_TOOLS, MAX_TOOL_DESCRIPTION_CHARACTERS
from surecall.narrow import as_fields, as_list, text_or_none
from surecall.records import Effect, ToolSpec, clip
from surecall.schema import clean_parameters
from surecall.tools import ToolFailed

from .schemas import SchemaWriter, follow

Location = Literal["path", "query", "header"]

_METHODS: Final[Mapping[str, Effect]] = {
    "get": "read",
    "head": "read",
    "post": "write",
    "put": "write",
    "patch": "write",
    "delete": "write",
}
_SAME_TWICE: Final = frozenset({"get", "head", "put", "delete"})
_OWN_HEADERS: Final = frozenset({"accept", "authorization", "content-type", "cookie", "host"})
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]+")
_IN_BRACES: Final = re.compile(r"\{([^{}]*)\}")
_BODY: Final = "body"
_JSON: Final = re.compile(r"application/(?:[\w.-]+\+)?json\b", re.IGNORECASE)


class Parameter(Struct, frozen=True):
    """One value of a request outside its body."""

    argument: str
    """What a model calls it."""
    name: str
    location: Location
    explodes: bool = True
    is_deep: bool = False


class Request(Struct, frozen=True):
    """What is sent for one call, apart from the host."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: dict[str, str] = {}
    body: bytes | None = None


class Operation(Struct, frozen=True):
    """One operation, with the schema of everything it takes."""

    id: str
    method: str
    path: str
    description: str
    parameters: tuple[Parameter, ...]
    schema: dict[str, Any]

    def describe(self, name: str, timeout_s: float | None) -> ToolSpec:
        """Return the operation as a model sees it."""
        return ToolSpec(
            name=name,
            description=clip(self.description, MAX_TOOL_DESCRIPTION_CHARACTERS),
            parameters=self.schema,
            effect=_METHODS[self.method],
            idempotent=self.method in _SAME_TWICE,
            timeout_s=timeout_s,
        )

    def make_request(self, arguments: Mapping[str, Any]) -> Request:
        """Return the request of a call; its path cannot leave the one of the document."""
        path, query, headers = self.path, list[tuple[str, str]](), dict[str, str]()
        for parameter in self.parameters:
            value = arguments.get(parameter.argument)
            if parameter.location == "path":
                path = path.replace(f"{{{parameter.name}}}", _path_part(parameter, value))
            elif value is None:
                continue
            elif parameter.location == "query":
                query += _query_parts(parameter, value)
            else:
                headers[parameter.name] = _header_text(parameter, value)
        body = encode(arguments[_BODY]) if _BODY in arguments and self._has_body else None
        return Request(self.method.upper(), path, tuple(query), headers, body)

    @property
    def _has_body(self) -> bool:
        return all(parameter.argument != _BODY for parameter in self.parameters)


def read_operations(document: Mapping[str, Any]) -> Iterator[Operation | ToolDefinitionError]:
    """Yield every operation, or why it cannot be used."""
    count = 0
    for path, item in as_fields(document.get("paths")).items():
        shared = follow(document, item)
        for method in _METHODS:
            if method not in shared:
                continue
            count += 1
            if count > MAX_SERVER_TOOLS:
                return
            try:
                yield _read_operation(document, path, method, shared)
            except ToolDefinitionError as error:
                where = f"{method.upper()} {path}"
                yield ToolDefinitionError(error.code, f"{where}: {error.message}", hint=error.hint)


def _read_operation(
    document: Mapping[str, Any], path: str, method: str, shared: Mapping[str, Any]
) -> Operation:
    own = as_fields(shared[method])
    if not path.startswith("/") or path.startswith("//"):
        raise ToolDefinitionError(Code.INVALID_TOOL, "its path does not begin with one slash.")
    writer = SchemaWriter(document)
    parameters: list[Parameter] = []
    properties: dict[str, Any] = {}
    required: list[str] = []
    for given in _merge_parameters(document, shared, own):
        parameter = _read_parameter(given, properties)
        if parameter is None:
            continue
        parameters.append(parameter)
        properties[parameter.argument] = _parameter_schema(writer, given)
        if given.get("required") is True or parameter.location == "path":
            required.append(parameter.argument)
    named = {parameter.name for parameter in parameters if parameter.location == "path"}
    for missing in set(_IN_BRACES.findall(path)) - named:
        raise ToolDefinitionError(Code.INVALID_TOOL, f"its path needs {missing!r:.80}.")
    _read_body(document, own, writer, properties, required)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    schema |= {"required": required} if required else {}
    schema |= {"additionalProperties": False}
    schema |= {"$defs": writer.definitions} if writer.definitions else {}
    words = [text for key in ("summary", "description") if (text := text_or_none(own.get(key)))]
    name = text_or_none(own.get("operationId")) or f"{method}{path}"
    described = "\n".join(dict.fromkeys(words)) or f"{method.upper()} {path}"
    return Operation(name, method, path, described, tuple(parameters), clean_parameters(schema))


def _merge_parameters(
    document: Mapping[str, Any], shared: Mapping[str, Any], own: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the parameters of an operation; its own replace those of its path."""
    every = [*as_list(shared.get("parameters")), *as_list(own.get("parameters"))]
    found = [follow(document, item) for item in every]
    return list({(item.get("in"), item.get("name")): item for item in found}.values())


def _read_parameter(given: Mapping[str, Any], taken: Mapping[str, Any]) -> Parameter | None:
    name, location = text_or_none(given.get("name")), given.get("in")
    if name is None:
        raise ToolDefinitionError(Code.INVALID_TOOL, "a parameter has no name.")
    if location == "header" and name.lower() in _OWN_HEADERS:
        return None  # set by whoever sends the request, never by a model
    if location not in ("path", "query", "header"):
        if given.get("required") is True:
            raise ToolDefinitionError(
                Code.INVALID_TOOL, f"it needs the parameter {name!r:.80} in {location!r:.80}."
            )
        return None
    argument = _NOT_IN_NAMES.sub("_", name).strip("_") or "value"
    if argument in taken or argument == _BODY:
        argument = f"{argument}_{location}"
    if argument in taken:
        raise ToolDefinitionError(Code.INVALID_TOOL, f"two parameters are named {name!r:.80}.")
    style = given.get("style")
    default_explode = location == "query" and style in (None, "form", "deepObject")
    explodes = given.get("explode", default_explode) is True
    return Parameter(argument, name, location, explodes, style == "deepObject")


def _parameter_schema(writer: SchemaWriter, given: Mapping[str, Any]) -> Any:
    schema = given.get("schema")
    if schema is None:
        contents = as_fields(given.get("content")).values()
        schema = next((as_fields(content).get("schema") for content in contents), None)
    written = writer.write({} if schema is None else schema)
    words = text_or_none(given.get("description"))
    if words and isinstance(written, dict) and "description" not in written:
        written = {**written, "description": words}
    return written


def _read_body(
    document: Mapping[str, Any],
    own: Mapping[str, Any],
    writer: SchemaWriter,
    properties: dict[str, Any],
    required: list[str],
) -> None:
    given = follow(document, own.get("requestBody"))
    if not given:
        return
    contents = as_fields(given.get("content"))
    found = [item for kind, item in contents.items() if _JSON.match(kind)]
    if not found:
        if given.get("required") is True:
            raise ToolDefinitionError(Code.INVALID_TOOL, "its body is not JSON.")
        return
    properties[_BODY] = writer.write(as_fields(found[0]).get("schema", {}))
    if given.get("required") is True:
        required.append(_BODY)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return encode_text(value)


def _path_part(parameter: Parameter, value: Any) -> str:
    text = ",".join(map(_text, as_list(value))) if isinstance(value, list) else _text(value)
    if text in ("", ".", ".."):
        raise ToolFailed(
            Code.ARGUMENT_ERROR,
            f"{parameter.argument} is {text!r}, which cannot be a part of an address.",
            "Give another value.",
        )
    return quote(text, safe="")


def _query_parts(parameter: Parameter, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        items = [_text(item) for item in cast("list[Any]", value)]
        texts = items if parameter.explodes else [",".join(items)]
        yield from ((parameter.name, text) for text in texts)
    elif isinstance(value, dict) and (parameter.explodes or parameter.is_deep):
        for key, item in cast("dict[str, Any]", value).items():
            yield f"{parameter.name}[{key}]" if parameter.is_deep else key, _text(item)
    else:
        yield parameter.name, _text(value)


def _header_text(parameter: Parameter, value: Any) -> str:
    text = ",".join(map(_text, as_list(value))) if isinstance(value, list) else _text(value)
    if not text.isprintable() or not text.isascii():
        raise ToolFailed(
            Code.ARGUMENT_ERROR,
            f"{parameter.argument} has characters that a header cannot have.",
            "Use plain ASCII on one line.",
        )
    return text
