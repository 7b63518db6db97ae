"""Who asks: virtual keys, what each may do, and how much of it.

A key is known by its digest. It is looked up under a digest with a secret of this process, so
that how long that takes says nothing about any key.
"""

import asyncio
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from hashlib import blake2b, sha256
from hmac import compare_digest
from pathlib import Path
from typing import Final

from surecall.errors import Code, ProviderStatusError
from surecall.files import make_private
from surecall.profiles import matches_glob
from surecall.redaction import open_log

from .settings import KeySettings, Role, VirtualKey

MINUTE_S: Final = 60
DAY_S: Final = 86_400
_SYNC_S: Final = 0.25
_MAX_KEY_CHARS: Final = 512
_KEPT_DAYS: Final = 3

_log = open_log("surecall.gateway")

Window = tuple[str, int, int]
"""A key, the length of a window in seconds, and its number since 1970."""

_MAY: Final[Mapping[Role, frozenset[Role]]] = {
    "call": frozenset({"call"}),
    "read-only": frozenset({"read-only"}),
    "admin": frozenset({"call", "read-only", "admin"}),
}


class Counts:
    """Requests and tokens by key and window; those of other processes come in with `merge`."""

    def __init__(self) -> None:
        self._own: dict[Window, list[int]] = {}
        """Not yet shared."""
        self._shared: dict[Window, tuple[int, int]] = {}

    def add(self, window: Window, requests: int, tokens: int) -> None:
        """Count something."""
        own = self._own.get(window)
        if own is None:
            own = self._own[window] = [0, 0]
        own[0] += requests
        own[1] += tokens

    def read(self, window: Window) -> tuple[int, int]:
        """Return requests and tokens of a window."""
        own = self._own.get(window, (0, 0))
        shared = self._shared.get(window, (0, 0))
        return own[0] + shared[0], own[1] + shared[1]

    def take(self) -> dict[Window, tuple[int, int]]:
        """Return what was not shared yet, and count it as shared."""
        taken = {window: (item[0], item[1]) for window, item in self._own.items()}
        self._own = {}
        for window, (requests, tokens) in taken.items():
            had = self._shared.get(window, (0, 0))
            self._shared[window] = (had[0] + requests, had[1] + tokens)
        return taken

    def put_back(self, taken: Mapping[Window, tuple[int, int]]) -> None:
        """Count something as not shared again."""
        for window, (requests, tokens) in taken.items():
            had = self._shared.get(window, (0, 0))
            self._shared[window] = (had[0] - requests, had[1] - tokens)
            self.add(window, requests, tokens)

    def merge(self, shared: Mapping[Window, tuple[int, int]]) -> None:
        """Take what all processes together have counted."""
        self._shared = dict(shared)

    def forget(self, now: float) -> None:
        """Forget windows that are over."""
        for kept in (self._own, self._shared):
            for window in [item for item in kept if (item[2] + 1) * item[1] <= now]:
                del kept[window]


class SharedCounts:
    """Counts that several workers share, and that outlive a restart, in one SQLite file.

    Each worker adds what is new several times a second and reads what the others added; a limit
    can be passed by what comes in between.
    """

    def __init__(self, path: Path, counts: Counts) -> None:
        self._path = path
        self._counts = counts
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Read what was counted before, and begin to share."""
        self._counts.merge(await asyncio.to_thread(self._exchange, {}))
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Share what is left."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await self._share()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(_SYNC_S)
            await self._share()

    async def _share(self) -> None:
        taken = self._counts.take()
        try:
            totals = await asyncio.to_thread(self._exchange, taken)
        except sqlite3.Error as error:
            self._counts.put_back(taken)
            _log.warning("budgets cannot be shared through %s: %s", self._path, error)
        else:
            self._counts.merge(totals)
            self._counts.forget(time.time())

    def _exchange(self, taken: Mapping[Window, tuple[int, int]]) -> dict[Window, tuple[int, int]]:
        now = int(time.time())
        self._path.parent.mkdir(parents=True, exist_ok=True)
        make_private(self._path)
        with closing(sqlite3.connect(self._path, timeout=2.0, isolation_level=None)) as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
            database.execute(
                "CREATE TABLE IF NOT EXISTS counts (key TEXT, length INTEGER, number INTEGER, "
                "requests INTEGER, tokens INTEGER, PRIMARY KEY (key, length, number)) "
                "WITHOUT ROWID"
            )
            database.execute("BEGIN IMMEDIATE")
            database.executemany(
                "INSERT INTO counts VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                "requests = requests + excluded.requests, tokens = tokens + excluded.tokens",
                [(*window, *item) for window, item in taken.items()],
            )
            database.execute(
                "DELETE FROM counts WHERE (number + ?) * length < ?", (_KEPT_DAYS, now)
            )
            rows = database.execute(
                "SELECT * FROM counts WHERE (number + 1) * length > ?", (now,)
            ).fetchall()
            database.execute("COMMIT")
        return {(key, length, number): (asked, used) for key, length, number, asked, used in rows}


class Caller:
    """One virtual key at work."""

    __slots__ = ("_counts", "_limits", "id", "roles", "settings")

    def __init__(self, settings: KeySettings, counts: Counts) -> None:
        self.settings = settings
        self.id = settings.id
        self.roles = _MAY[settings.role]
        self._counts = counts
        limits = (
            (MINUTE_S, settings.requests_per_minute, settings.tokens_per_minute),
            (DAY_S, settings.requests_per_day, settings.tokens_per_day),
        )
        self._limits = tuple(item for item in limits if item[1] is not None or item[2] is not None)

    def may(self, role: Role) -> bool:
        """Tell whether the key may do what a role allows."""
        return role in self.roles

    def may_ask(self, model: str) -> bool:
        """Tell whether the key may ask for a model."""
        globs = self.settings.models
        return not globs or any(matches_glob(glob, model) for glob in globs)

    def begin(self, now: float) -> ProviderStatusError | None:
        """Count a request, or return why it must not be made."""
        for length, max_requests, max_tokens in self._limits:
            requests, tokens = self._counts.read((self.id, length, int(now // length)))
            what = None
            if max_requests is not None and requests >= max_requests:
                what = f"{max_requests} requests"
            elif max_tokens is not None and tokens >= max_tokens:
                what = f"{max_tokens} tokens"
            if what is not None:
                return _spent(self.id, what, length, length - now % length)
        for length, _, _ in self._limits:
            self._counts.add((self.id, length, int(now // length)), 1, 0)
        return None

    def charge(self, now: float, tokens: int) -> None:
        """Count the tokens of a request that is over."""
        if tokens:
            for length, _, _ in self._limits:
                self._counts.add((self.id, length, int(now // length)), 0, tokens)


class Keyring:
    """The virtual keys in force.

    Args:
        keys: The keys.
        counts: What they have used, which outlives a change of the keys.
        clock: Seconds since 1970.
    """

    def __init__(
        self,
        keys: Iterable[VirtualKey],
        counts: Counts,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._pepper = secrets.token_bytes(32)
        self._clock = clock
        self._callers: dict[bytes, tuple[bytes, Caller]] = {}
        self._held: list[VirtualKey] = []
        for key in keys:
            self._held.append(key)
            self._callers[self._place(key.digest)] = (key.digest, Caller(key.settings, counts))

    def __bool__(self) -> bool:
        return bool(self._callers)

    @property
    def has_limits(self) -> bool:
        """Whether anything has to be counted."""
        return any(
            limit is not None
            for key in self._held
            for limit in (
                key.settings.requests_per_minute,
                key.settings.tokens_per_minute,
                key.settings.requests_per_day,
                key.settings.tokens_per_day,
            )
        )

    def find(self, presented: str) -> Caller | None:
        """Return who presents a key, or `None` for one that is not known."""
        if not presented or len(presented) > _MAX_KEY_CHARS:
            return None
        digest = sha256(presented.encode("utf-8", "surrogateescape")).digest()
        known, caller = self._callers.get(self._place(digest), (bytes(32), None))
        return caller if compare_digest(known, digest) else None

    def find_named(self, key_id: str) -> tuple[Caller, bytes] | None:
        """Return the key of an id and its digest, for a session that began with it."""
        found = (item for item in self._callers.values() if item[1].id == key_id)
        return next(((caller, digest) for digest, caller in found), None)

    def _place(self, digest: bytes) -> bytes:
        return blake2b(digest, key=self._pepper, digest_size=16).digest()


def _spent(key: str, what: str, length: int, left_s: float) -> ProviderStatusError:
    unit = "minute" if length == MINUTE_S else "day"
    return ProviderStatusError(
        Code.RATE_LIMIT if length == MINUTE_S else Code.QUOTA_EXCEEDED,
        f"The key {key!r} may use {what} a {unit}, and has.",
        hint=f"Try again in {int(left_s) + 1} s.",
        status=429,
        retry_after_s=float(int(left_s) + 1),
    )


def unauthorized(message: str) -> ProviderStatusError:
    """Return the refusal of a request without a key that is known."""
    return ProviderStatusError(
        Code.AUTH, message, hint="Use a key that this gateway has given out.", status=401
    )


def forbidden(message: str) -> ProviderStatusError:
    """Return the refusal of something that a key may not do."""
    return ProviderStatusError(Code.FORBIDDEN, message, hint="Use another key.", status=403)
