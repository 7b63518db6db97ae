"""OpenAPI: the operations of a described HTTP API as tools of a run."""

import re
from collections.abc import Callable, Iterable, Mapping
from email.message import Message
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import msgspec

from surecall.base.errors import (
    Code,
    ConfigError,
    JSONTextError,
    ProviderError,
    ProviderReplyError,
    RequestError,
    ToolDefinitionError,
    did_you_mean,
    invalid_config,
)
from surecall.base.json_values import as_fields
from surecall.base.limits import (
    MAX_BODY_BYTES,
    MAX_OUTPUT_BYTES,
    MAX_SERVER_TOOLS,
    TOOL_SERVER_TIMEOUT_S,
)
from surecall.base.records import Effect, Envelope
from surecall.base.redaction import Secret, excerpt, mask_known, open_log, secrets_in_headers
from surecall.models.client import ClientLimits, open_once
from surecall.models.client.network import Deadlines, split_base_url, split_url
from surecall.models.config import read_network
from surecall.models.transport import check_headers
from surecall.schema import compile_foreign
from surecall.text import decode
from surecall.tools import ApprovalRule, Tool, ToolFailed

from .operations import Operation, Request, UnusableOperation, read_operations

__all__ = ["openapi_tools"]


_log = open_log("surecall.openapi")
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]+")
_MAX_NAME_CHARACTERS: Final = 64
_HASH_CHARACTERS: Final = 8
_DAY_S: Final = 86_400.0
_DEADLINES: Final = Deadlines(connect_s=30.0, first_byte_s=_DAY_S, idle_s=_DAY_S, total_s=_DAY_S)
"""How long a call may take is the business of whoever runs the tool."""
_ACCEPT: Final = "application/json, */*;q=0.5"
_MAY_HAVE_ACTED: Final = "It may have taken effect: find out in another way before you repeat it."


def openapi_tools(
    document: Mapping[str, Any] | str | Path,
    *,
    base_url: str,
    auth: str | Secret | Mapping[str, str] | None = None,
    allow: Iterable[str] | None = None,
    prefix: str = "",
    approval: ApprovalRule | None = None,
    timeout_s: float | None = TOOL_SERVER_TIMEOUT_S,
    max_bytes: int = MAX_OUTPUT_BYTES,
) -> list[Tool[..., Any]]:
    """Make a tool of each operation that an OpenAPI document describes, 3.0 or 3.1.

        document = {"openapi": "3.1.0", "paths": {"/pets": {"get": {"operationId": "listPets"}}}}
        tools = surecall.openapi_tools(document, base_url="https://api.example.com")
        [tool.name for tool in tools]  # ['listPets']

    Args:
        document: The document, or the path of one in JSON.
        base_url: Address of the API. The servers of the document are not used, redirects
            are not followed, and no argument can lead to another host.
        auth: A token for `Authorization: Bearer`, or headers to send; no model sees them.
        allow: Ids of the operations to take; all of them by default. One without an id is named by
            method and path, as in `get/towns/{town}`.
        prefix: Text before the name of each tool.
        approval: Which calls of operations with effects need an approval, as in `@tool`.
        timeout_s: Seconds that one call may take.
        max_bytes: The largest answer; one that is larger is refused.

    Raises:
        ConfigError: The document or `base_url` cannot be used, or `allow` names an operation that
            does not exist.
        ToolDefinitionError: An operation that `allow` names cannot be a tool.
    """
    split_base_url(base_url)
    headers = check_headers(_auth_headers(auth))
    names = (allow,) if isinstance(allow, str) else None if allow is None else tuple(allow)
    found = _choose(_load(document), names, {name.lower() for name in headers})
    caller = _Caller(base_url, headers, max_bytes)
    tools: list[Tool[..., Any]] = []
    for name, operation in _name_tools(prefix, found).items():
        spec = operation.describe(name, timeout_s)
        send = partial(caller.call, spec.name, spec.effect, operation)
        rule = None if spec.effect == "read" else approval
        tools.append(Tool(spec, caller.call, binder=_bind(send), approval=rule))
    return tools


def _bind(send: Callable[..., Any]) -> Callable[[dict[str, Any], Any], Callable[[], Any]]:
    return lambda arguments, _context: partial(send, arguments)


def _load(document: Mapping[str, Any] | str | Path) -> dict[str, Any]:
    if isinstance(document, Mapping):
        try:
            # A reader of YAML makes dates, and numbers of keys.
            found: dict[str, Any] = msgspec.to_builtins(dict(document), str_keys=True)
        except (TypeError, ValueError, RecursionError) as error:
            raise invalid_config(f"the document is not plain JSON: {error}.") from error
    else:
        try:
            with Path(document).open("rb") as file:
                text = file.read(MAX_BODY_BYTES + 1)
            found = as_fields(decode(text, max_bytes=MAX_BODY_BYTES))
        except OSError as error:
            raise invalid_config(
                f"{document} cannot be read: {error.strerror or error}."
            ) from error
        except JSONTextError as error:
            hint = "Read YAML with a package of your choice, and give what it returns."
            raise invalid_config(f"{document} is not JSON: {error.message}", hint) from error
    version = str(found.get("openapi", ""))
    if not version.startswith("3."):
        raise invalid_config(
            "the document is not OpenAPI 3.0 or 3.1.", "Convert it, or describe the tools by hand."
        )
    return found


def _choose(
    document: dict[str, Any], allow: tuple[str, ...] | None, sent: set[str]
) -> list[Operation]:
    every = {
        item.operation if isinstance(item, UnusableOperation) else item.id: item
        for item in read_operations(document, sent)
    }
    for name in allow or ():
        if name not in every:
            raise ConfigError(
                Code.INVALID_OPTION,
                f"allow names {name!r}, which is not an operation of the document.",
                hint=did_you_mean(name, every),
            )
    chosen: list[Operation] = []
    for item in every.values() if allow is None else [every[name] for name in allow]:
        try:
            if isinstance(item, UnusableOperation):
                raise item
            chosen.append(_compile(item))
        except UnusableOperation as error:
            if allow is not None:
                raise
            _log.warning("left out: %s", error)
    if len(chosen) > MAX_SERVER_TOOLS:
        raise invalid_config(
            f"the document has more than {MAX_SERVER_TOOLS} operations.",
            "Name those you need with allow=[...].",
        )
    return chosen


def _compile(operation: Operation) -> Operation:
    try:
        return msgspec.structs.replace(operation, schema=compile_foreign(operation.schema))
    except ToolDefinitionError as error:
        where = f"{operation.method.upper()} {operation.path}"
        raise UnusableOperation(operation.id, where, error) from error


def _name_tools(prefix: str, operations: list[Operation]) -> dict[str, Operation]:
    if _NOT_IN_NAMES.search(prefix):
        raise invalid_config(
            f"prefix is {excerpt(prefix, 80)!r}, which names of tools cannot begin with.",
            "Use letters, digits, `_` and `-`.",
        )
    plain = {f"{prefix}{item.id}" for item in operations if _fits(prefix, item.id)}
    found: dict[str, Operation] = {}
    for item in operations:
        name, length = f"{prefix}{item.id}", _HASH_CHARACTERS
        if not _fits(prefix, item.id):
            while (name := _mark_name(prefix, item.id, length)) in plain or name in found:
                length += _HASH_CHARACTERS
        found[name] = item
    return found


def _fits(prefix: str, operation: str) -> bool:
    is_short = len(prefix) + len(operation) <= _MAX_NAME_CHARACTERS
    return is_short and _clean(operation) == operation


def _clean(operation: str) -> str:
    return _NOT_IN_NAMES.sub("_", operation).strip("_") or "operation"


def _mark_name(prefix: str, operation: str, length: int) -> str:
    mark = sha256(operation.encode("utf-8", "surrogatepass")).hexdigest()[:length]
    return f"{prefix}{_clean(operation)}"[: _MAX_NAME_CHARACTERS - length - 1] + f"_{mark}"


def _auth_headers(auth: str | Secret | Mapping[str, str] | None) -> dict[str, str]:
    if auth is None:
        return {}
    if isinstance(auth, Mapping):
        return dict(auth)
    token = auth.reveal() if isinstance(auth, Secret) else auth
    return {"Authorization": f"Bearer {token}"}


class _Caller:
    """Sends calls to one host, and reads what it answers within a limit."""

    def __init__(self, base_url: str, headers: dict[str, str], max_bytes: int) -> None:
        self._base_url = base_url
        self._headers = headers
        # Known, and so taken out of everything, for as long as calls can be made.
        self._secrets = secrets_in_headers(headers)
        self._max_bytes = max_bytes
        self._limits = ClientLimits(max_body_bytes=max_bytes)

    async def call(
        self, name: str, effect: Effect, operation: Operation, arguments: dict[str, Any]
    ) -> Envelope:
        request = operation.make_request(arguments)
        status, location, kind, body = await self._send(name, effect, request)
        if body is None:
            raise ToolFailed(
                Code.TOOL_OUTPUT_TOO_LARGE,
                f"{name} ran, but its answer is over the limit of {self._max_bytes} bytes.",
                "Ask for less: a narrower query, fewer fields, or one page at a time."
                if effect == "read"
                else "It has run: do not repeat the call only to see its answer.",
                {"status": status, "max_bytes": self._max_bytes},
            )
        # A server may answer with the key that it was sent, which no model is to see.
        said = mask_known(_read_body(kind, body))
        if not 200 <= status < 300:
            data: dict[str, Any] = {"status": status, "server_said": said}
            raise ToolFailed(
                Code.TOOL_SERVER_ERROR,
                f"The server answered with status {status}; what it said is in data.",
                _advise(status, effect),
                data | ({"location": mask_known(location)} if location else {}),
            )
        # An envelope of our own: an answer that looks like one is not taken for one.
        return Envelope(ok=True, tool_name=name, data={"status": status, "body": said})

    async def _send(
        self, name: str, effect: Effect, request: Request
    ) -> tuple[int, str, tuple[str, str], bytes | None]:
        """Return the status, the place of a redirect, the type, and the body if it fits."""
        query = f"?{request.query}" if request.query else ""
        base, start = split_url(self._base_url)
        # Encoded already: nothing in an argument is read as a part of the address again.
        url = f"{base}{start.rstrip('/')}{request.path}{query}"
        headers = {**request.headers, "Accept": _ACCEPT, **self._headers}
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        try:
            async with open_once(
                request.method,
                url,
                headers,
                request.body or b"",
                deadlines=_DEADLINES,
                limits=self._limits,
                network=read_network(),
            ) as answer:
                said = answer.header_map
                kind = _parse_kind(said.get("content-type", ""))
                try:
                    body = await answer.read()
                except ProviderReplyError as error:
                    if error.code != Code.UPSTREAM_TOO_LARGE:
                        raise
                    body = None
                return answer.status, said.get("location", ""), kind, body
        except RequestError as error:
            raise ToolFailed(
                Code.ARGUMENTS_INVALID, error.message, "Change the arguments."
            ) from None
        except (ProviderError, ConfigError) as error:
            _log.debug("%s: no answer", name, exc_info=error)
            hint = "Go on without it." if effect == "read" else _MAY_HAVE_ACTED
            message = f"The server of {name} does not answer."
            raise ToolFailed(Code.TOOL_SERVER_LOST, message, hint) from None


def _parse_kind(text: str) -> tuple[str, str]:
    """Return the type of a body and its charset."""
    message = Message()
    message["content-type"] = text
    return message.get_content_type() if text else "", message.get_content_charset() or "utf-8"


def _advise(status: int, effect: Effect) -> str:
    if 300 <= status < 400:
        return "Redirects are not followed. Go on without it, or change the arguments."
    if status in (401, 403):
        return "The server does not allow it, whatever the arguments are. Go on without it."
    advice = "Change the arguments if they were the reason."
    return advice if effect == "read" or status < 500 else f"{advice} {_MAY_HAVE_ACTED}"


def _read_body(kind: tuple[str, str], body: bytes) -> Any:
    mime_type, charset = kind
    if not body:
        return None
    if mime_type == "application/json" or mime_type.endswith("+json"):
        try:
            return decode(body)
        except JSONTextError:
            pass
    try:
        return body.decode(charset)
    except (UnicodeDecodeError, LookupError):
        return {"mime_type": mime_type, "bytes_left_out": len(body)}
