"""Operations of an OpenAPI document: what each takes, and how that becomes a request."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from hashlib import sha256
from typing import Any, Final, Literal, cast
from urllib.parse import quote, unquote

from msgspec import Struct

from surecall.base.errors import Code, JSONTextError, ToolDefinitionError
from surecall.base.json_values import as_fields, as_list, text_or_none
from surecall.base.limits import MAX_TOOL_DESCRIPTION_CHARACTERS
from surecall.base.records import Effect, ToolSpec, clip
from surecall.base.redaction import excerpt, open_log
from surecall.schema import clean_parameters
from surecall.text import encode, encode_text, resolve_pointer
from surecall.tools import ToolFailed

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
            raise _unusable_schema(f"the reference {excerpt(place)!r} leads back to itself.")
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
    raise _unusable_schema(f"the reference {excerpt(place)!r} leads nowhere.")


def _unusable_schema(message: str) -> ToolDefinitionError:
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


_log = open_log("surecall.openapi")

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
_OWN_HEADERS: Final = frozenset(
    {"accept", "accept-encoding", "authorization", "connection", "content-length", "content-type"}
    | {"cookie", "expect", "host", "proxy-authorization", "te", "trailer", "transfer-encoding"}
    | {"upgrade"}
)
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]+")
_IN_BRACES: Final = re.compile(r"\{([^{}]*)\}")
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_MEDIA_TYPE: Final = re.compile(r"[a-z0-9!#$&^_.+*-]+/[a-z0-9!#$&^_.+*-]+")
_BODY: Final = "body"
_JSON: Final = "application/json"
_IN_QUERY_NAMES: Final = "$[]"
_MAX_DECODINGS: Final = 3
_LITERAL: Final = "/%:@!$&'()*+,;=~"
_DELIMITERS: Final[Mapping[str, str]] = {"spaceDelimited": "%20", "pipeDelimited": "%7C"}
_STYLES: Final[Mapping[Location, tuple[str, ...]]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "deepObject", *_DELIMITERS),
    "header": ("simple",),
}


class Parameter(Struct, frozen=True):
    """One value of a request outside its body."""

    argument: str
    """Its name for the model."""
    name: str
    location: Location
    style: str = "form"
    explodes: bool = True
    is_json: bool = False
    """Whether it is written as JSON and has no style."""


class Request(Struct, frozen=True):
    """The request of one call, apart from the host."""

    method: str
    path: str
    query: str = ""
    headers: dict[str, str] = {}
    body: bytes | None = None
    content_type: str = _JSON


class Operation(Struct, frozen=True):
    """One operation, with the schema of everything it takes."""

    id: str
    method: str
    path: str
    description: str
    parameters: tuple[Parameter, ...]
    schema: dict[str, Any]
    content_type: str = ""
    """The media type of its body; empty when it has none."""

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
        in_path, query, headers = dict[str, str](), list[str](), dict[str, str]()
        for parameter in self.parameters:
            value = arguments.get(parameter.argument)
            if parameter.location == "path":
                in_path[parameter.name] = _path_part(parameter, value)
            elif value is None:
                continue
            elif parameter.location == "query":
                query += _query_parts(parameter, value)
            else:
                headers[parameter.name] = _header_text(parameter, value)
        path = "".join(
            in_path[text] if index % 2 else quote(text, safe=_LITERAL)
            for index, text in enumerate(_IN_BRACES.split(self.path))
        )
        if _leaves(path):
            raise ToolFailed(
                Code.ARGUMENT_ERROR, f"The address would be {path!r:.200}.", "Give other values."
            )
        has_body = self.content_type and _BODY in arguments
        body = encode(arguments[_BODY]) if has_body else None
        return Request(self.method.upper(), path, "&".join(query), headers, body, self.content_type)


class UnusableOperation(ToolDefinitionError):  # noqa: N818 - what it is about
    """Why an operation cannot be a tool."""

    def __init__(self, operation: str, where: str, reason: ToolDefinitionError) -> None:
        super().__init__(reason.code, f"{where}: {reason.message}", hint=reason.hint)
        self.operation = operation


def read_operations(
    document: Mapping[str, Any], sent: Collection[str] = ()
) -> Iterator[Operation | UnusableOperation]:
    """Yield every operation, or why it cannot be used.

    Args:
        document: The document.
        sent: Names of the headers that are sent with every request, in lower case.
    """
    ids = Counter(_find_ids(document))
    for name, count in ids.items():
        if count > 1:
            _log.warning("%d operations have the id %s: they go by method and path", count, name)
    for path, item in as_fields(document.get("paths")).items():
        try:
            shared = follow(document, item)
        except ToolDefinitionError as error:
            yield UnusableOperation(path, path, error)
            continue
        for method in _METHODS:
            if method not in shared:
                continue
            own = as_fields(shared[method])
            name = text_or_none(own.get("operationId"))
            # Two operations of one id are told apart by where they are.
            name = name if name and ids[name] == 1 else f"{method}{path}"
            try:
                yield _read_operation(document, (name, path, method), shared, sent)
            except ToolDefinitionError as error:
                yield UnusableOperation(name, f"{method.upper()} {path}", error)
            except RecursionError:
                deep = ToolDefinitionError(Code.INVALID_SCHEMA, "its schemas nest too deep.")
                yield UnusableOperation(name, f"{method.upper()} {path}", deep)


def _find_ids(document: Mapping[str, Any]) -> Iterator[str]:
    for item in as_fields(document.get("paths")).values():
        try:
            shared = follow(document, item)
        except ToolDefinitionError:
            continue
        for method in _METHODS:
            if name := text_or_none(as_fields(shared.get(method)).get("operationId")):
                yield name


def _read_operation(
    document: Mapping[str, Any],
    names: tuple[str, str, str],
    shared: Mapping[str, Any],
    sent: Collection[str],
) -> Operation:
    name, path, method = names
    own = as_fields(shared[method])
    if not path.startswith("/") or path.startswith("//") or _leaves(path):
        raise _unusable("its path does not begin with one slash, or leads elsewhere.")
    if "?" in path or "#" in path:
        raise _unusable("its path has a query or a fragment.")
    writer = SchemaWriter(document)
    parameters: list[Parameter] = []
    properties: dict[str, Any] = {}
    required: list[str] = []
    for given in _merge_parameters(document, shared, own):
        parameter = _read_parameter(given, properties, sent)
        if parameter is None:
            continue
        parameters.append(parameter)
        properties[parameter.argument] = _parameter_schema(writer, given)
        if given.get("required") is True or parameter.location == "path":
            required.append(parameter.argument)
    named = {parameter.name for parameter in parameters if parameter.location == "path"}
    for missing in set(_IN_BRACES.findall(path)) - named:
        raise _unusable(f"its path needs {missing!r:.80}.")
    content_type = _read_body(document, own, writer, properties, required)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    schema |= {"required": required} if required else {}
    schema |= {"additionalProperties": False}
    schema |= {"$defs": writer.definitions} if writer.definitions else {}
    words = [text for key in ("summary", "description") if (text := text_or_none(own.get(key)))]
    described = "\n".join(dict.fromkeys(words)) or f"{method.upper()} {path}"
    return Operation(
        name, method, path, described, tuple(parameters), clean_parameters(schema), content_type
    )


def _unusable(message: str) -> ToolDefinitionError:
    return ToolDefinitionError(Code.INVALID_TOOL, message)


def _leaves(path: str) -> bool:
    """Tell whether a path leads elsewhere for a server that decodes it, or a proxy that did."""
    for _ in range(_MAX_DECODINGS):
        path = unquote(path)
    parts = path.replace("\\", "/").split("/")
    return any(part.partition(";")[0] in (".", "..") for part in parts)


def _merge_parameters(
    document: Mapping[str, Any], shared: Mapping[str, Any], own: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the parameters of an operation; its own replace those of its path."""
    every = [*as_list(shared.get("parameters")), *as_list(own.get("parameters"))]
    found = [follow(document, item) for item in every]
    return list({(item.get("in"), item.get("name")): item for item in found}.values())


def _read_parameter(
    given: Mapping[str, Any], taken: Mapping[str, Any], sent: Collection[str]
) -> Parameter | None:
    name, location = text_or_none(given.get("name")), given.get("in")
    if name is None:
        raise _unusable("a parameter has no name.")
    if location == "header" and (name.lower() in _OWN_HEADERS or name.lower() in sent):
        return None  # set by whoever sends the request, never by a model
    if location not in ("path", "query", "header"):
        if given.get("required") is True and not (location == "cookie" and "cookie" in sent):
            raise _unusable(f"it needs the parameter {name!r:.80} in {location!r:.80}.")
        return None
    if location == "header" and not _HEADER_NAME.fullmatch(name):
        raise _unusable(f"{name!r:.80} cannot be the name of a header.")
    argument = _NOT_IN_NAMES.sub("_", name).strip("_") or "value"
    if argument in taken or argument == _BODY:
        argument = f"{argument}_{location}"
    if argument in taken:
        raise _unusable(f"two parameters are named {name!r:.80}.")
    style = given.get("style") or _STYLES[location][0]
    if style not in _STYLES[location]:
        raise _unusable(f"{name!r:.80} has the style {style!r:.80}, which {location} has not.")
    explodes = given.get("explode", style in ("form", "deepObject")) is True
    is_json = "schema" not in given and bool(as_fields(given.get("content")))
    return Parameter(argument, name, location, style, explodes, is_json)


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
) -> str:
    """Add the argument for the body, and return what kind of JSON it is; empty without one."""
    given = follow(document, own.get("requestBody"))
    contents = as_fields(given.get("content"))
    if not contents:
        return ""
    kinds = [kind for kind in contents if _is_json(kind)]
    if not kinds:
        raise _unusable(f"its body is not JSON but {', '.join(contents)!s:.80}.")
    kind = min(kinds, key=lambda kind: not kind.lower().startswith(_JSON))
    properties[_BODY] = writer.write(as_fields(contents[kind]).get("schema", {}))
    if given.get("required") is True:
        required.append(_BODY)
    return _JSON if "*" in kind else kind


def _is_json(kind: str) -> bool:
    plain = kind.partition(";")[0].strip().lower()
    if not _MEDIA_TYPE.fullmatch(plain) or not kind.isascii() or not kind.isprintable():
        return False
    return plain in (_JSON, "*/*", "application/*") or plain.endswith("+json")


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return encode_text(value)


def _encoded(value: Any) -> str:
    return quote(_text(value), safe="")


def _join(value: Any, between: str, write: Callable[[Any], str], *, pairs: bool) -> str:
    """Return a list or an object as one text: `a,b`, or `k,v`, or `k=v` for `pairs`."""
    if isinstance(value, list):
        return between.join(map(write, cast("list[Any]", value)))
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        equals = "=" if pairs else between
        return between.join(f"{write(key)}{equals}{write(item)}" for key, item in items)
    return write(value)


def _path_part(parameter: Parameter, value: Any) -> str:
    if parameter.is_json:
        text = quote(encode_text(value), safe="")
    else:
        text = _style_in_path(parameter, value)
    if value is None or text in ("", ".", "..", f";{quote(parameter.name, safe='')}="):
        raise ToolFailed(
            Code.ARGUMENT_ERROR,
            f"{parameter.argument} is {_text(value)!r:.80}, which cannot be a part of an address.",
            "Give another value.",
        )
    return text


def _style_in_path(parameter: Parameter, value: Any) -> str:
    explodes = parameter.explodes
    if parameter.style == "simple":
        return _join(value, ",", _encoded, pairs=explodes)
    if parameter.style == "label":
        return "." + _join(value, "." if explodes else ",", _encoded, pairs=explodes)
    name = quote(parameter.name, safe="")
    if explodes and isinstance(value, list):
        return "".join(f";{name}={_encoded(item)}" for item in cast("list[Any]", value))
    if explodes and isinstance(value, dict):
        return ";" + _join(value, ";", _encoded, pairs=True) if value else ""
    return f";{name}={_join(value, ',', _encoded, pairs=False)}"


def _query_parts(parameter: Parameter, value: Any) -> Iterator[str]:
    name = quote(parameter.name, safe=_IN_QUERY_NAMES)
    if parameter.is_json:
        yield f"{name}={quote(encode_text(value), safe='')}"
    elif parameter.style == "deepObject" and isinstance(value, dict):
        yield from _deep_parts(name, value)
    elif parameter.explodes and isinstance(value, list):
        yield from (f"{name}={_encoded(item)}" for item in cast("list[Any]", value))
    elif parameter.explodes and isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        yield from (f"{_encoded(key)}={_encoded(item)}" for key, item in items)
    else:
        between = _DELIMITERS.get(parameter.style, ",")
        yield f"{name}={_join(value, between, _encoded, pairs=False)}"


def _deep_parts(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in cast("dict[str, Any]", value).items():
            yield from _deep_parts(f"{name}[{_encoded(key)}]", item)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _deep_parts(name, item)
    else:
        yield f"{name}={_encoded(value)}"


def _header_text(parameter: Parameter, value: Any) -> str:
    if parameter.is_json:
        text = encode_text(value)
    else:
        text = _join(value, ",", _text, pairs=parameter.explodes)
    if not text.isprintable() or not text.isascii():
        raise ToolFailed(
            Code.ARGUMENT_ERROR,
            f"{parameter.argument} has characters that a header cannot have.",
            "Use plain ASCII on one line.",
        )
    return text
