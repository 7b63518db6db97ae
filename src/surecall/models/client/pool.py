"""One upstream and the connections to it: clean ones are used again, the latest first."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Final

from surecall.base.errors import Code, ProviderConnectionError, ProviderError, invalid_config

from .answers import Answer
from .connections import PROXY_AUTH_STATUS, Connection, Tunnel, connect_socket
from .failures import blame_proxy, deadline_passed, map_failure, proxy_auth
from .framing import RequestHead, render_head
from .network import ClientLimits, Deadlines, Network, ascii_host, split_base_url, split_url

_STALE_S: Final = 1.0
"""A used connection that ends this soon after a request was sent had been given up before it."""
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class Origin:
    """One `scheme://host:port` with the connections to it, in one event loop.

    Redirects are never followed, cookies never kept, requests never pipelined. A request is sent
    a second time in one case only: on a connection that was used before, the upstream ended the
    connection within a second and before any byte of an answer. It had then most likely closed an
    idle connection while the request was on its way; that it did work in that second cannot be
    excluded, so `Answer.attempts` says it. Everything else is for the caller to decide.

    Args:
        url: Where the upstream is, without a path, such as `https://api.example.com`.
        limits: How many connections there are, and how large an answer may be.
        network: Proxies and certificates; by default the upstream is reached directly.

    Raises:
        ConfigError: The address or the proxy cannot be used.
    """

    def __init__(
        self,
        url: str,
        *,
        limits: ClientLimits = ClientLimits(),  # noqa: B008 - frozen
        network: Network = Network(),  # noqa: B008 - frozen
    ) -> None:
        parts = split_base_url(url)
        if parts.path not in {"", "/"}:
            raise invalid_config(
                "The address of an origin has a path.", "Give the path with each request."
            )
        self._host = ascii_host(parts)
        self._port = parts.port or _DEFAULT_PORTS[parts.scheme]
        self._is_secure = parts.scheme == "https"
        self._network = network
        self._proxy = network.proxy_for(parts.scheme, self._host, self._port)
        self._is_forwarded = self._proxy is not None and not self._is_secure
        self._host_header = _render_host(self._host, parts.port, _DEFAULT_PORTS[parts.scheme])
        self._loop: asyncio.AbstractEventLoop | None = None
        self._idle: list[Connection] = []
        self._waiters: deque[asyncio.Future[Connection | None]] = deque()
        self._open_count = 0
        self._is_closed = False
        self.limits = limits

    def __repr__(self) -> str:
        return f"Origin({'https' if self._is_secure else 'http'}://{self._host_header})"

    @property
    def address(self) -> str:
        """Host and port, for messages."""
        return f"{self._host_for_url}:{self._port}"

    @property
    def _host_for_url(self) -> str:
        return f"[{self._host}]" if ":" in self._host else self._host

    @property
    def open_count(self) -> int:
        """How many connections there are, those that are being made included."""
        return self._open_count

    @property
    def idle_count(self) -> int:
        """How many connections wait for a request."""
        return len(self._idle)

    @property
    def waiting_count(self) -> int:
        """How many requests wait for a connection."""
        return len(self._waiters)

    def prepare(self, method: str, path: str, headers: Iterable[tuple[str, str]]) -> RequestHead:
        """Return the head of a request, for `send_with`.

        Raises:
            RequestError: The request would not be sent as it was meant.
        """
        proxy = self._proxy
        if proxy is not None and self._is_forwarded:
            before = f"http://{self._host_header}"
            headers = (*headers, *proxy.headers)
            return render_head(method, path, self._host_header, headers, before=before)
        return render_head(method, path, self._host_header, headers)

    async def send(
        self,
        method: str,
        path: str,
        headers: Iterable[tuple[str, str]],
        body: bytes = b"",
        *,
        deadlines: Deadlines = Deadlines(),  # noqa: B008 - frozen
    ) -> Answer:
        """Send a request and return its answer once the head is there, whatever its status.

        Raises:
            ProviderError: No answer came; its code says why.
            RequestError: The request would not be sent as it was meant.
        """
        return await self.send_with(self.prepare(method, path, headers), body, deadlines)

    async def send_with(self, head: RequestHead, body: bytes, deadlines: Deadlines) -> Answer:
        """Do what `send` does, with a head that was prepared.

        Raises:
            ProviderError: No answer came; its code says why.
        """
        loop = self._loop
        if self._is_closed or loop is None or asyncio.get_running_loop() is not loop:
            loop = self._enter_loop()
        rendered = head.end(len(body))
        total_due = loop.time() + deadlines.total_s
        connection = self._pop_idle() or await self._acquire(deadlines)
        attempts = 1
        while True:
            was_used = connection.uses > 0
            answer = Answer(loop, connection, self.limits, head.method == "HEAD", attempts)
            connection.send(answer, rendered, body, deadlines, total_due)
            error = await answer.wait_for_head()
            if error is None:
                if answer.status == PROXY_AUTH_STATUS and self._is_forwarded:
                    raise self._refused_by_proxy(answer)
                return answer
            if not (was_used and attempts == 1 and _was_stale(answer, connection, error, loop)):
                try:
                    raise error
                finally:
                    del error  # or it would hold this frame, which holds it
            attempts = 2
            connection = await self._acquire(deadlines)

    async def close(self) -> None:
        """Close idle connections now and the others after their answer; refuse new requests."""
        self._is_closed = True
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        waiters, self._waiters = self._waiters, deque()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_exception(_closed())
        await asyncio.sleep(0)  # the sockets close in the loop's next turn

    # what connections do

    def take_back(self, connection: Connection) -> None:
        """Keep a clean connection for the next request."""
        if self._is_closed or not connection.is_usable:
            connection.close()
            return
        waiter = self._next_waiter()
        if waiter is not None:
            waiter.set_result(connection)
        else:
            self._idle.append(connection)

    def drop(self, connection: Connection) -> None:
        """Do not use a connection again that is about to be closed."""
        if connection in self._idle:
            self._idle.remove(connection)

    def forget(self, connection: Connection) -> None:
        """Take note that a connection is no more."""
        self.drop(connection)
        self._free_slot()

    # getting a connection

    def _enter_loop(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        if self._is_closed:
            raise _closed()
        if self._loop is not None and not self._loop.is_closed():
            raise invalid_config(
                "This Origin is in use in another event loop.", "Use one for each loop."
            )
        self._loop = loop
        self._idle.clear()
        self._waiters.clear()
        self._open_count = 0
        return loop

    def _pop_idle(self) -> Connection | None:
        idle = self._idle
        while idle:
            connection = idle.pop()
            if connection.is_clean:
                return connection
            connection.close()
        return None

    async def _acquire(self, deadlines: Deadlines) -> Connection:
        """Return a new connection, or the next one that becomes free if all are in use."""
        if self._open_count >= self.limits.max_connections:
            if self._idle:
                self._idle.pop(0).close()  # a retry wants a new one
            connection = await self._wait_for_turn()
            if connection is not None and connection.is_clean:
                return connection
            if connection is not None:
                connection.close()
                return await self._acquire(deadlines)
        else:
            self._open_count += 1
        return await self._connect(deadlines)

    async def _wait_for_turn(self) -> Connection | None:
        """Return a connection that became free, or nothing if one may be opened instead."""
        limits = self.limits
        if len(self._waiters) >= limits.max_waiting:
            raise _all_in_use(limits, f"{limits.max_waiting} requests wait for one")
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[Connection | None] = loop.create_future()
        self._waiters.append(waiter)
        try:
            async with asyncio.timeout(limits.max_wait_s):
                return await waiter
        except BaseException as failure:
            self._return_turn(waiter)
            if isinstance(failure, TimeoutError):
                raise _all_in_use(limits, f"none became free in {limits.max_wait_s:g} s") from None
            raise

    def _return_turn(self, waiter: "asyncio.Future[Connection | None]") -> None:
        """Pass on what a request was given that no longer wants it."""
        if waiter in self._waiters:
            self._waiters.remove(waiter)
        if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
            connection = waiter.result()
            if connection is not None:
                self.take_back(connection)
            else:
                self._free_slot()

    def _next_waiter(self) -> "asyncio.Future[Connection | None] | None":
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                return waiter
        return None

    def _free_slot(self) -> None:
        waiter = self._next_waiter()
        if waiter is not None:
            waiter.set_result(None)
        else:
            self._open_count -= 1

    async def _connect(self, deadlines: Deadlines) -> Connection:
        """Return a new connection in a slot that the caller has taken."""
        loop = asyncio.get_running_loop()
        connection = Connection(self, loop)
        try:
            async with asyncio.timeout(deadlines.connect_s):
                await self._open_socket(connection, loop)
            if not connection.is_usable:
                raise map_failure(None)
        except BaseException as failure:
            connection.close()
            self._free_slot()
            if isinstance(failure, ProviderError):
                raise
            if isinstance(failure, TimeoutError):
                late = deadline_passed(Code.CONNECT_TIMEOUT, deadlines.connect_s)
                if self._proxy is not None:
                    late.message = (
                        f"{late.message.removesuffix('.')} through the proxy {self._proxy.address}."
                    )
                raise late from None
            if isinstance(failure, OSError):
                raise map_failure(failure) from None
            raise
        connection.is_counted = True
        return connection

    async def _open_socket(self, connection: Connection, loop: asyncio.AbstractEventLoop) -> None:
        """Connect to the upstream or to the proxy before it, with TLS where it belongs."""
        proxy, network = self._proxy, self._network
        context = network.tls_context() if self._is_secure else None
        if proxy is None:
            sock = await connect_socket(self._host, self._port)
            name = self._host if context is not None else None
            await loop.create_connection(
                lambda: connection, sock=sock, ssl=context, server_hostname=name
            )
            return
        outer = network.tls_context() if proxy.is_secure else None
        name = proxy.host if outer is not None else None
        tunnel = Tunnel(loop) if context is not None else None
        try:
            sock = await connect_socket(proxy.host, proxy.port)
            transport, _ = await loop.create_connection(
                lambda: tunnel or connection, sock=sock, ssl=outer, server_hostname=name
            )
        except ProviderError as error:
            raise blame_proxy(error, proxy.address) from None
        except OSError as failure:
            raise blame_proxy(map_failure(failure), proxy.address) from None
        if tunnel is None or context is None:
            return
        try:
            await tunnel.open(transport, f"{self._host_for_url}:{self._port}", proxy)
            secured = await loop.start_tls(
                transport, connection, context, server_hostname=self._host
            )
        except BaseException:
            transport.abort()
            raise
        if secured is None:
            raise map_failure(None)
        connection.connection_made(secured)

    def _refused_by_proxy(self, answer: Answer) -> ProviderError:
        assert self._proxy is not None
        schemes = answer.header_map.get("proxy-authenticate", "")
        answer.abort()
        return proxy_auth(self._proxy.address, sent=self._proxy.auth is not None, schemes=schemes)


@asynccontextmanager
async def open_once(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes = b"",
    *,
    deadlines: Deadlines,
    limits: ClientLimits,
    network: Network,
) -> AsyncGenerator[Answer]:
    """Send one request on a connection of its own, and close that at the end.

    Raises:
        ConfigError: The address or the proxy cannot be used.
        ProviderError: No answer came; its code says why.
        RequestError: The request would not be sent as it was meant.
    """
    base, target = split_url(url)
    origin = Origin(base, limits=limits, network=network)
    try:
        answer = await origin.send(method, target, headers.items(), body, deadlines=deadlines)
        try:
            yield answer
        finally:
            answer.abort()
    finally:
        await origin.close()


def _was_stale(
    answer: Answer, connection: Connection, error: ProviderError, loop: asyncio.AbstractEventLoop
) -> bool:
    """Return whether the upstream had given up an idle connection before it saw the request."""
    return (
        error.code == Code.CONNECTION_RESET
        and not answer.has_started
        and loop.time() - connection.sent_at <= _STALE_S
    )


def _render_host(host: str, port: int | None, default_port: int) -> str:
    shown = f"[{host}]" if ":" in host else host
    return shown if port in {None, default_port} else f"{shown}:{port}"


def _all_in_use(limits: ClientLimits, problem: str) -> ProviderConnectionError:
    return ProviderConnectionError(
        Code.CONNECTION_LIMIT,
        f"All {limits.max_connections} connections to the provider are in use, and {problem}.",
        hint="Raise the limit of connections, or send fewer requests at the same time.",
        retryable=True,
    )


def _closed() -> ProviderConnectionError:
    return ProviderConnectionError(
        Code.CONNECTION_FAILED, "The connections to this provider have been closed."
    )
