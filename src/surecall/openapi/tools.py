"""Tools out of an OpenAPI document: calls go to the one host that the caller names."""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from surecall.errors import (
    Code,
    ConfigError,
    JSONTextError,
    did_you_mean,
    invalid_config,
)
from surecall.jsontext import decode
from surecall.limits import MAX_BODY_BYTES, MAX_OUTPUT_BYTES, TOOL_SERVER_TIMEOUT_S
from surecall.narrow import as_fields
from surecall.records import Effect, Envelope
from surecall.redaction import Secret, open_log
from surecall.tools import ApprovalRule, Tool, ToolFailed

from .operations import Operation, Request, read_operations

_log = open_log("surecall.openapi")
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_-]+")
_MAX_NAME_CHARACTERS: Final = 64
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

    Args:
        document: The document, or the path of one in JSON.
        base_url: Where the API is. What the document says about servers is not used, redirects
            are not followed, and no argument can lead to another host.
        auth: A token for `Authorization: Bearer`, or headers to send; no model sees them.
        allow: Ids of the operations to take; all of them by default.
        prefix: What comes before the name of each tool.
        approval: Which calls of operations with effects need an approval, as in `@tool`.
        timeout_s: Seconds that one call may take.
        max_bytes: The largest answer; one that is larger is refused.

    Raises:
        ConfigError: The document or `base_url` cannot be used, or `allow` names what is not there.
        ToolDefinitionError: An operation that `allow` names cannot be a tool.
    """
    base = _check_base(base_url)
    found = _choose(_load(document), None if allow is None else tuple(allow))
    caller = _Caller(base, _auth_headers(auth), max_bytes)
    tools: list[Tool[..., Any]] = []
    for operation in found:
        spec = operation.describe(_name_tool(prefix, operation.id), timeout_s)
        send = partial(caller.call, spec.name, spec.effect, operation)
        rule = None if spec.effect == "read" else approval
        made: Tool[..., Any] = Tool(spec, caller.call, binder=_bind(send), approval=rule)
        made.checker.compile()
        tools.append(made)
    return tools


def _bind(send: Callable[..., Any]) -> Callable[[dict[str, Any], Any], Callable[[], Any]]:
    return lambda arguments, _context: partial(send, arguments)


def _load(document: Mapping[str, Any] | str | Path) -> dict[str, Any]:
    if isinstance(document, Mapping):
        found = dict(document)
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


def _choose(document: dict[str, Any], allow: tuple[str, ...] | None) -> list[Operation]:
    found: dict[str, Operation] = {}
    for item in read_operations(document):
        if isinstance(item, Operation):
            found[item.id] = item
        elif allow is None:
            _log.warning("left out: %s", item)
    if allow is None:
        return list(found.values())
    for name in allow:
        if name not in found:
            raise ConfigError(
                Code.INVALID_OPTION,
                f"allow names {name!r}, which is not an operation that can be used.",
                hint=did_you_mean(name, found),
            )
    return [found[name] for name in allow]


def _name_tool(prefix: str, operation: str) -> str:
    clean = _NOT_IN_NAMES.sub("_", operation).strip("_") or "operation"
    whole = f"{prefix}{clean}"
    if len(whole) <= _MAX_NAME_CHARACTERS and clean == operation:
        return whole
    mark = sha256(operation.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{whole[: _MAX_NAME_CHARACTERS - 9]}_{mark}"


def _check_base(base_url: str) -> str:
    try:
        parts = urlsplit(base_url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        is_usable, parts = False, None
    if not is_usable or parts is None or parts.query or parts.fragment or parts.username:
        raise invalid_config(
            "base_url must be an address such as https://api.example.com/v1.",
            "Leave out user, query and fragment.",
        )
    return base_url.rstrip("/")


def _auth_headers(auth: str | Secret | Mapping[str, str] | None) -> dict[str, str]:
    if auth is None:
        return {}
    if isinstance(auth, Mapping):
        return dict(auth)
    token = auth.reveal() if isinstance(auth, Secret) else auth
    return {"Authorization": f"Bearer {token}"}


class _Caller:
    """Sends calls to one host, and reads what it answers within a limit."""

    def __init__(self, base: str, headers: dict[str, str], max_bytes: int) -> None:
        self._base = base
        self._headers = headers
        self._max_bytes = max_bytes

    async def call(
        self, name: str, effect: Effect, operation: Operation, arguments: dict[str, Any]
    ) -> Envelope:
        request = operation.make_request(arguments)
        status, kind, body = await self._send(name, effect, request)
        if len(body) > self._max_bytes:
            raise ToolFailed(
                Code.TOOL_OUTPUT_TOO_LARGE,
                f"{name} ran, but its answer is over the limit of {self._max_bytes} bytes.",
                "Ask for less: a narrower query, fewer fields, or one page at a time."
                if effect == "read"
                else "It has run: do not repeat the call only to see its answer.",
                {"status": status, "max_bytes": self._max_bytes},
            )
        said = _read_body(kind, body)
        if not 200 <= status < 300:
            raise ToolFailed(
                Code.TOOL_SERVER_ERROR,
                f"The server answered with status {status}; what it said is in data.",
                "Change the arguments if they were the reason."
                + ("" if effect == "read" or 400 <= status < 500 else f" {_MAY_HAVE_ACTED}"),
                {"status": status, "server_said": said},
            )
        # An envelope of our own: an answer that looks like one is not taken for one.
        return Envelope(ok=True, tool_name=name, data={"status": status, "body": said})

    async def _send(self, name: str, effect: Effect, request: Request) -> tuple[int, str, bytes]:
        import aiohttp
        from yarl import URL

        # Encoded already: nothing in an argument is read as a part of the address again.
        url = URL(f"{self._base}{request.path}", encoded=True).update_query(request.query)
        headers = {**request.headers, "Accept": "application/json", **self._headers}
        if request.body is not None:
            headers["Content-Type"] = "application/json"
        try:
            async with (
                aiohttp.ClientSession(trust_env=False) as session,
                session.request(
                    request.method, url, data=request.body, headers=headers, allow_redirects=False
                ) as response,
            ):
                body = bytearray()
                async for piece in response.content.iter_chunked(64 * 1024):
                    body += piece
                    if len(body) > self._max_bytes:
                        break
                return response.status, response.content_type, bytes(body)
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            _log.debug("%s: no answer", name, exc_info=error)
            hint = "Go on without it." if effect == "read" else _MAY_HAVE_ACTED
            message = f"The server of {name} does not answer."
            raise ToolFailed(Code.TOOL_SERVER_LOST, message, hint) from None


def _read_body(kind: str, body: bytes) -> Any:
    if not body:
        return None
    if kind == "application/json" or kind.endswith("+json"):
        try:
            return decode(body)
        except JSONTextError:
            pass
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return {"mime_type": kind, "bytes_left_out": len(body)}
