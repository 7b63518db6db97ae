"""A connection to an MCP server, over the official SDK.

The SDK ties a connection to the task that opened it. Here it lives in its own task, so that it
can be opened, used and closed from whichever tasks a run happens to have.
"""

import asyncio
import logging
import math
import os
import shlex
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from itertools import groupby
from typing import IO, Any, Final, Self, cast
from urllib.parse import parse_qsl, urlsplit

from msgspec import Struct

from surecall.base.errors import Code, ConfigError, ToolServerError, invalid_config
from surecall.base.json_values import as_fields
from surecall.base.limits import MAX_BODY_BYTES
from surecall.base.redaction import MASK, Secret, excerpt, open_log, redact, secrets_in_headers
from surecall.models.transport import check_headers

_log = open_log("surecall.mcp")
_SDK_LOGS: Final = ("mcp", "client")
_MAX_PAGES: Final = 100
_MANY_PARTS: Final = 100
"""With more parts of content than this, texts that follow each other become one."""
_MAX_PARTS: Final = 1000
_MAX_LOG_CHARACTERS: Final = 400
_MAX_ADDRESS_CHARACTERS: Final = 200
_CLOSE_S: Final = 10.0
_HTTP_CONNECT_S: Final = 30.0
_LISTEN_S: Final = 5.0
_LISTEN_AGAIN_S: Final = 1.0
_MAX_UTF8_BYTES: Final = 4
_SESSION_ENDED: Final = "Session terminated"  # what the SDK makes of a session that is not known


class Address(Struct, frozen=True):
    """How a server is reached: a command to start, or a URL."""

    url: str = ""
    command: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    headers: dict[str, str] = {}

    def __str__(self) -> str:
        text = _mask_user(self.url) if self.url else shlex.join(_mask_values(self.command))
        return excerpt(redact(text), _MAX_ADDRESS_CHARACTERS)

    def find_secrets(self) -> list[Secret]:
        """Return what is secret in headers, variables and URL; hold it while they are used."""
        words = {name: value for name, value in self.env.items() if not value.isdecimal()}
        query = dict(parse_qsl(urlsplit(self.url).query))
        return [*secrets_in_headers(words | self.headers), *secrets_in_headers(query)]


def _mask_user(url: str) -> str:
    """Return a URL without the name and the password in it."""
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    user, at, host = host.rpartition("@")
    return f"{scheme}://{MASK if user else ''}{at}{host}{slash}{path}"


def _mask_values(words: Sequence[str]) -> list[str]:
    """Return a command without what follows `--token`, `API_KEY=` and the like."""
    shown: list[str] = []
    flag = ""
    for word in words:
        name, joined, value = word.lstrip("-").partition("=")
        if joined and secrets_in_headers({name: value}):
            shown.append(word.removesuffix(value) + MASK)
        else:
            shown.append(MASK if flag and secrets_in_headers({flag: word}) else word)
        flag = name if word.startswith("-") and not joined else ""
    return shown


def parse_address(
    target: str | Sequence[str],
    env: Mapping[str, str],
    cwd: str | os.PathLike[str] | None,
    headers: Mapping[str, str],
) -> Address:
    """Return the address that a command line, a list of words or a URL is."""
    if isinstance(target, str) and target.lower().startswith(("http://", "https://")):
        if env or cwd:
            raise invalid_config("env and cwd are for a server that is started, not for a URL.")
        _check_url(target)
        return Address(url=target, headers=check_headers(headers))
    if headers:
        raise invalid_config("headers are for a URL, not for a server that is started.")
    try:
        words = tuple(shlex.split(target) if isinstance(target, str) else target)
    except ValueError as error:
        raise invalid_config(f"the command of the MCP server cannot be read: {error}.") from error
    if not words or not all(isinstance(word, str) and word for word in words):
        raise invalid_config(
            "no MCP server was named.", "Give a command such as 'python server.py', or a URL."
        )
    return Address(command=words, env=dict(env), cwd=None if cwd is None else os.fspath(cwd))


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        usable = bool(parts.hostname) and parts.port != 0 and url.isprintable() and " " not in url
    except ValueError:
        usable = False
    if not usable:
        raise invalid_config(
            "the URL of the MCP server has no usable host or port.",
            "Write it like https://host.example/mcp.",
        )


def silence_sdk() -> None:
    """Keep what the SDK logs from standard error, where no program listens to its log."""
    for name in _SDK_LOGS:
        logging.getLogger(name).addHandler(logging.NullHandler())


class ServerRefusal(Exception):  # noqa: N818 - what the server did
    """The server answered a request with an error of the protocol."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class ServerLost(Exception):  # noqa: N818 - what happened
    """The connection has ended, or was never there."""


class Connection:
    """One connection; `open`, then `list_tools` and `call_tool`, then `aclose`."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._secrets = address.find_secrets()
        self._task: asyncio.Task[None] | None = None
        self._closing: asyncio.Event | None = None
        self._client: Any = None
        self._status = 0
        self._changes = 0
        self._listed_changes = 0
        self._was_lost = False
        self.invalid: dict[str, str] = {}
        """Tools of the last list that do not follow the protocol, and why."""

    @property
    def is_stale(self) -> bool:
        """Whether the server has said that its tools are no longer those that it listed."""
        return self._changes != self._listed_changes

    @property
    def is_lost(self) -> bool:
        """Whether a connection that was made has ended, as far as anybody noticed."""
        return self._was_lost or self._client is None

    @property
    def features(self) -> frozenset[str]:
        """The abilities of the connected server, such as `tools` and `resources`."""
        found = None if self._client is None else self._client.server_capabilities
        return frozenset(_as_json(found)) if found else frozenset()

    async def open(self, timeout_s: float) -> None:
        """Connect, or raise `TOOL_SERVER_UNREACHABLE` with what the server wrote last."""
        load_sdk()
        self._was_lost = False
        self._closing = asyncio.Event()
        ready = asyncio.Event()
        with tempfile.TemporaryFile() as log:
            self._task = asyncio.create_task(self._live(ready, self._closing, log))
            waiting = asyncio.create_task(ready.wait())
            try:
                await asyncio.wait(
                    (self._task, waiting),
                    timeout=timeout_s,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if not ready.is_set():
                    in_time = self._task.done()
                    raise await self._explain(log, timeout_s, in_time=in_time)
            finally:
                waiting.cancel()
                if not ready.is_set():
                    await self.aclose()

    async def list_tools(self) -> list[dict[str, Any]]:
        """Return every definition the server has, as plain JSON."""
        changes = self._changes
        self.invalid = {}
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await self.ask("list_tools", cursor=cursor, cache_mode="bypass")
            found += [_as_json(item) for item in page.tools]
            cursor = page.next_cursor
            if not cursor:
                break
        else:
            raise ServerRefusal(0, f"its list has more than {_MAX_PAGES} pages")
        self._listed_changes = changes
        return found

    async def call_tool(
        self, name: str, arguments: dict[str, Any], **options: Any
    ) -> dict[str, Any]:
        """Return the server's answer as plain JSON, or raise `ServerRefusal` or `ServerLost`."""
        model = await self.ask("call_tool", name=name, arguments=arguments, **options)
        return _as_json(model) | ({"hasNan": True} if _has_nan(model.structured_content) else {})

    async def aclose(self) -> None:
        """End the connection, and the server if it was started for it."""
        task, self._task = self._task, None
        if task is None or task.done():
            return
        if self._closing is not None:
            self._closing.set()
        if self._client is None:
            task.cancel()
        _, pending = await asyncio.wait((task,), timeout=_CLOSE_S)
        if pending:
            task.cancel()
            await asyncio.wait((task,), timeout=_CLOSE_S)

    async def _live(self, ready: asyncio.Event, closing: asyncio.Event, log: IO[bytes]) -> None:
        try:
            async with AsyncExitStack() as stack:
                client = await stack.enter_async_context(self._make_client(stack, log))
                await stack.enter_async_context(self._hear_of_changes(client))
                self._client = client
                ready.set()
                try:
                    await closing.wait()
                finally:
                    self._client = None
        except Exception as error:
            _log.debug("the connection to %s ended", self._address, exc_info=error)
            if not ready.is_set():
                raise

    def _make_client(self, stack: AsyncExitStack, log: IO[bytes]) -> Any:
        from httpx2 import AsyncClient, Timeout
        from mcp import Client, StdioServerParameters, stdio_client
        from mcp.client.streamable_http import streamable_http_client

        address = self._address
        if address.url:
            # How long an answer may take is said for each call, by `timeout_s`.
            http = AsyncClient(
                headers=address.headers,
                timeout=Timeout(_HTTP_CONNECT_S, read=None),
                event_hooks={"response": [self._note_status]},
            )
            stack.push_async_callback(http.aclose)
            transport = streamable_http_client(
                address.url, http_client=http, max_sse_event_size=MAX_BODY_BYTES
            )
        else:
            program, *words = address.command
            parameters = StdioServerParameters(
                command=program,
                args=words,
                env=address.env or None,
                cwd=address.cwd,
                encoding_error_handler="replace",
            )
            transport = stdio_client(parameters, errlog=log)  # pyright: ignore[reportArgumentType] - a file
        screened = _screen(transport, self._screen)
        return Client(screened, message_handler=self._note_message, cache=None)

    def _screen(self, result: dict[str, Any]) -> None:
        """Make an answer of a server such that one part of it does not spoil the others."""
        tools, parts = result.get("tools"), result.get("content")
        if isinstance(tools, list) and self._client is not None:
            result["tools"] = list(filter(self._follows_protocol, cast("list[Any]", tools)))
        if isinstance(parts, list) and len(cast("list[Any]", parts)) > _MANY_PARTS:
            result["content"] = _join_texts(cast("list[Any]", parts))

    def _follows_protocol(self, tool: Any) -> bool:
        from mcp_types.methods import validate_server_result
        from pydantic import ValidationError

        listed = {"tools": [tool], "ttlMs": 0, "cacheScope": "private", "resultType": "complete"}
        try:
            validate_server_result("tools/list", self._client.protocol_version, listed)
        except ValidationError as error:
            self.invalid[str(as_fields(tool).get("name", ""))] = _explain_invalid(error)
            return False
        return True

    async def _note_status(self, response: Any) -> None:
        self._status = response.status_code

    async def _note_message(self, message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            self._changes += 1

    @asynccontextmanager
    async def _hear_of_changes(self, client: Any) -> AsyncGenerator[None]:
        """Subscribe to changes of the tools, where the protocol announces none unasked."""
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        tools = client.server_capabilities.tools
        if client.protocol_version not in MODERN_PROTOCOL_VERSIONS or not (
            tools and tools.list_changed
        ):
            yield
            return
        heard = asyncio.Event()
        listening = asyncio.create_task(self._listen(client, heard))
        try:
            waiting = asyncio.create_task(heard.wait())
            await asyncio.wait(
                (listening, waiting), timeout=_LISTEN_S, return_when=asyncio.FIRST_COMPLETED
            )
            waiting.cancel()
            yield
        finally:
            listening.cancel()
            await asyncio.wait((listening,), timeout=_CLOSE_S)

    async def _listen(self, client: Any, heard: asyncio.Event) -> None:
        from mcp import MCPError
        from mcp.client.subscriptions import SubscriptionLost

        while True:
            try:
                async with client.listen(tools_list_changed=True) as events:
                    # Nobody knows what was announced before.
                    self._changes += 1
                    heard.set()
                    async for _ in events:
                        self._changes += 1
            except SubscriptionLost:
                pass
            except MCPError as error:
                _log.debug("%s announces no changes: %s", self._address, error.message)
                return
            await asyncio.sleep(_LISTEN_AGAIN_S)

    async def ask(self, method: str, **arguments: Any) -> Any:
        """Call a method of the SDK's client, or raise `ServerRefusal` or `ServerLost`."""
        try:
            return await self._ask_client(self._client, method, arguments)
        except ServerLost:
            self._was_lost = True
            raise

    async def _ask_client(self, client: Any, method: str, arguments: dict[str, Any]) -> Any:
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED
        from pydantic import ValidationError

        if client is None:
            raise ServerLost
        try:
            return await getattr(client, method)(**arguments)
        except MCPError as error:
            if error.code == CONNECTION_CLOSED or error.message == _SESSION_ENDED:
                raise ServerLost from error
            raise ServerRefusal(error.code, self._add_status(error.message)) from error
        except ValidationError as error:
            raise ServerRefusal(0, _explain_invalid(error)) from error
        except RuntimeError as error:  # of the SDK: about an answer, or because it has ended
            if self._client is None:
                raise ServerLost from error
            raise ServerRefusal(0, str(error)) from error
        except OSError as error:
            raise ServerLost from error
        except Exception as error:  # whatever else the SDK's streams raise when they are gone
            if type(error).__module__.split(".")[0] in {"anyio", "httpx2", "httpcore2"}:
                raise ServerLost from error
            raise

    def _add_status(self, message: str) -> str:
        is_shown = self._status < 400 or str(self._status) in message
        return message if is_shown else f"{message} (status {self._status})"

    async def _explain(self, log: IO[bytes], timeout_s: float, *, in_time: bool) -> ToolServerError:
        task = self._task
        error = task.exception() if task and task.done() and not task.cancelled() else None
        await self.aclose()
        log.seek(0, os.SEEK_END)
        log.seek(max(log.tell() - _MAX_LOG_CHARACTERS * _MAX_UTF8_BYTES, 0))
        written = log.read().decode("utf-8", "replace").rstrip()
        said = excerpt(written, 2 * _MAX_LOG_CHARACTERS, at=len(written)).strip()
        reason = _describe(error) if in_time else f"no answer within {timeout_s:g} s"
        message = f"The MCP server {self._address} cannot be used: {self._add_status(reason)}."
        if said:
            message += f" It wrote: {said}"
        return ToolServerError(Code.TOOL_SERVER_UNREACHABLE, message, hint=self._advise())

    def _advise(self) -> str:
        if self._address.command:
            return "Start it by hand to see what is wrong."
        if self._status in (401, 403):
            return "Give the headers that it asks for, such as Authorization."
        if self._status in (404, 405):
            return "Check the path; a server that has only the older HTTP with SSE cannot be used."
        return "Check the address, and that the server is running."


@asynccontextmanager
async def _screen(transport: Any, screen: Callable[[dict[str, Any]], None]) -> AsyncGenerator[Any]:
    """Have a transport whose answers are looked at before the SDK reads them."""
    async with transport as (incoming, outgoing):
        yield _Screened(incoming, screen), outgoing


class _Screened:
    """A stream of messages, in the form that the SDK asks of transports."""

    def __init__(self, stream: Any, screen: Callable[[dict[str, Any]], None]) -> None:
        self._stream = stream
        self._screen = screen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        return self._look_at(await anext(self._stream))

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *ending: object) -> bool | None:
        return await self._stream.__aexit__(*ending)

    async def receive(self) -> Any:
        return self._look_at(await self._stream.receive())

    def _look_at(self, message: Any) -> Any:
        result = getattr(getattr(message, "message", None), "result", None)
        if isinstance(result, dict):
            self._screen(cast("dict[str, Any]", result))
        return message


def _join_texts(parts: list[Any]) -> list[Any]:
    """Put texts that follow each other on lines of one part, which is how they are read anyway."""
    joined: list[Any] = []
    for is_text, run in groupby(parts, lambda part: as_fields(part).keys() == {"type", "text"}):
        found = list(run)
        if is_text and all(isinstance(part["text"], str) for part in found):
            found = [{"type": "text", "text": "\n".join(part["text"] for part in found)}]
        joined += found
    if len(joined) > _MAX_PARTS:
        kept = joined[:_MAX_PARTS]
        note = f"{len(joined) - _MAX_PARTS} more parts were left out."
        return [*kept, {"type": "text", "text": note}]
    return joined


def _has_nan(value: Any) -> bool:
    """Tell whether a value holds a number that JSON does not have."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, float) and not math.isfinite(item):
            return True
        if isinstance(item, dict):
            waiting += cast("dict[str, Any]", item).values()
        elif isinstance(item, list):
            waiting += cast("list[Any]", item)
    return False


def _explain_invalid(error: Any) -> str:
    """Say where an answer does not follow the protocol, without what is there."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"]))
    return f"The answer does not follow the protocol: {place}: {first['msg']}"


def _as_json(model: Any) -> dict[str, Any]:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _describe(error: BaseException | None) -> str:
    """Return the first real reason of an error, which the SDK may have put into groups."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    if error is None:
        return "it ended at once"
    return excerpt(str(error) or type(error).__name__, _MAX_LOG_CHARACTERS).rstrip(".")


def load_sdk() -> None:
    """Raise `EXTRA_MISSING` unless the SDK is installed."""
    try:
        import_module("mcp")
    except ImportError as error:
        raise ConfigError(
            Code.EXTRA_MISSING,
            "MCP needs the package mcp, which is not installed.",
            hint="Run: pip install 'surecall[mcp]'",
        ) from error
