"""A connection to an MCP server, over the official SDK.

The SDK ties a connection to the task that opened it. Here it lives in its own task, so that it
can be opened, used and closed from whichever tasks a run happens to have.
"""

import asyncio
import logging
import os
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from importlib import import_module
from typing import IO, Any, Final, cast

from msgspec import Struct

from surecall.errors import Code, ConfigError, ToolServerError, invalid_config
from surecall.limits import MAX_SERVER_TOOLS
from surecall.records import clip
from surecall.redaction import open_log, redact

_log = open_log("surecall.mcp")
_SDK_LOGS: Final = ("mcp", "client")
_MAX_PAGES: Final = 100
_MAX_LOG_CHARACTERS: Final = 400
_CLOSE_S: Final = 10.0


class Address(Struct, frozen=True):
    """How a server is reached: a command to start, or a URL."""

    url: str = ""
    command: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    headers: dict[str, str] = {}

    def __str__(self) -> str:
        return redact(self.url or shlex.join(self.command))


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
        return Address(url=target, headers=dict(headers))
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
        self._task: asyncio.Task[None] | None = None
        self._closing: asyncio.Event | None = None
        self._client: Any = None
        self.is_stale = False
        """Whether the server has said that its tools are no longer the same."""

    async def open(self, timeout_s: float) -> None:
        """Connect, or raise `TOOL_SERVER_UNREACHABLE` with what the server wrote last."""
        load_sdk()
        self._closing = asyncio.Event()
        ready = asyncio.Event()
        with tempfile.TemporaryFile("w+", errors="replace") as log:
            self._task = asyncio.create_task(self._live(ready, self._closing, log))
            waiting = asyncio.create_task(ready.wait())
            try:
                await asyncio.wait(
                    (self._task, waiting),
                    timeout=timeout_s,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if self._client is None:
                    in_time = self._task.done()
                    raise await self._explain(log, timeout_s, in_time=in_time)
            finally:
                waiting.cancel()
                if self._client is None:
                    await self.aclose()

    async def list_tools(self) -> list[dict[str, Any]]:
        """Return every definition the server has, as plain JSON."""
        self.is_stale = False
        found: list[dict[str, Any]] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            page = await self._ask("list_tools", cursor=cursor, cache_mode="bypass")
            found += [_as_json(item) for item in page.tools]
            cursor = page.next_cursor
            if not cursor or len(found) > MAX_SERVER_TOOLS:
                break
        if len(found) > MAX_SERVER_TOOLS:
            raise ToolServerError(
                Code.TOOL_SERVER_UNREACHABLE,
                f"{self._address} offers more than {MAX_SERVER_TOOLS} tools.",
                hint="Name those you need with allow=[...] at a server that filters its list.",
            )
        return found

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the server's answer as plain JSON, or raise `ServerRefusal` or `ServerLost`."""
        return _as_json(await self._ask("call_tool", name=name, arguments=arguments))

    async def aclose(self) -> None:
        """End the connection, and the server if it was started for it."""
        task, self._task = self._task, None
        if task is None:
            return
        if self._closing is not None:
            self._closing.set()
        if self._client is None:
            task.cancel()
        _, pending = await asyncio.wait((task,), timeout=_CLOSE_S)
        if pending:
            task.cancel()
            await asyncio.wait((task,), timeout=_CLOSE_S)
        self._client = None

    async def _live(self, ready: asyncio.Event, closing: asyncio.Event, log: IO[str]) -> None:
        try:
            async with AsyncExitStack() as stack:
                self._client = await stack.enter_async_context(self._make_client(stack, log))
                ready.set()
                await closing.wait()
        except Exception as error:
            _log.debug("the connection to %s ended", self._address, exc_info=error)
            if not ready.is_set():
                raise
        finally:
            self._client = None

    def _make_client(self, stack: AsyncExitStack, log: IO[str]) -> Any:
        from mcp import Client, StdioServerParameters, stdio_client
        from mcp.client.streamable_http import streamable_http_client
        from mcp.shared._httpx_utils import create_mcp_http_client

        address = self._address
        if address.url:
            http = create_mcp_http_client(headers=address.headers)
            stack.push_async_callback(http.aclose)
            transport = streamable_http_client(address.url, http_client=http)
        else:
            program, *words = address.command
            parameters = StdioServerParameters(
                command=program, args=words, env=address.env or None, cwd=address.cwd
            )
            transport = stdio_client(parameters, errlog=log)  # pyright: ignore[reportArgumentType] - a text file
        return Client(transport, message_handler=self._note_message)

    async def _note_message(self, message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            self.is_stale = True

    async def _ask(self, method: str, **arguments: Any) -> Any:
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED
        from pydantic import ValidationError

        client = self._client
        if client is None:
            raise ServerLost
        try:
            return await getattr(client, method)(**arguments)
        except MCPError as error:
            if error.code == CONNECTION_CLOSED:
                raise ServerLost from error
            raise ServerRefusal(error.code, error.message) from error
        except ValidationError as error:
            raise ServerRefusal(0, "The answer does not follow the protocol.") from error
        except (OSError, RuntimeError) as error:
            raise ServerLost from error
        except Exception as error:  # whatever else the SDK's streams raise when they are gone
            if type(error).__module__.split(".")[0] in {"anyio", "httpx2", "httpcore2"}:
                raise ServerLost from error
            raise

    async def _explain(self, log: IO[str], timeout_s: float, *, in_time: bool) -> ToolServerError:
        task = self._task
        error = task.exception() if task and task.done() and not task.cancelled() else None
        await self.aclose()
        log.seek(0)
        said = log.read()[-_MAX_LOG_CHARACTERS:].strip()
        reason = _describe(error) if in_time else f"no answer within {timeout_s:g} s"
        message = f"The MCP server {self._address} cannot be used: {reason}."
        if said:
            message += f" It wrote: {redact(said)}"
        return ToolServerError(
            Code.TOOL_SERVER_UNREACHABLE,
            message,
            hint="Start it by hand to see what is wrong."
            if self._address.command
            else "Check the address, and that the server is running.",
        )


def _as_json(model: Any) -> dict[str, Any]:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _describe(error: BaseException | None) -> str:
    """Return the first real reason of an error, which the SDK may have put into groups."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    if error is None:
        return "it ended at once"
    return clip(str(error) or type(error).__name__, _MAX_LOG_CHARACTERS).rstrip(".")


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
