"""Who asks: virtual keys, what each may do, and how much of it.

A key is known by its digest. It is looked up under a digest with a secret of this process, so
that how long that takes says nothing about any key.
"""

import math
import secrets
from collections.abc import Iterable, Mapping
from hashlib import blake2b, sha256
from hmac import compare_digest
from typing import Any, Final, cast

from surecall.base.errors import Code, JSONTextError, ProviderStatusError
from surecall.base.json_values import as_list
from surecall.base.redaction import excerpt
from surecall.models.profiles import matches_glob
from surecall.store.records.ledger import DAY_S, MINUTE_S, MONTH_S, Resource, Window
from surecall.text import decode_noting

from .budgets import Budgets, overloaded
from .settings.load import VirtualKey
from .settings.tables import KeySettings, Role

_MAX_KEY_CHARS: Final = 512
_MAX_REFILLS: Final = 100
_NAMING: Final = frozenset({"deployment", "deployment_id", "engine", "fallback", "fallbacks"})
"""Members of a body that name models without the word, in lower case."""
_READ_BY_MODELS: Final = frozenset(
    {
        *("contents", "documents", "input", "input_schema", "instructions", "json_schema"),
        *("messages", "metadata", "parameters", "parametersjsonschema", "prediction", "prompt"),
        *("responsejsonschema", "responseschema", "schema", "system", "systeminstruction"),
    }
)
"""Members of a body that hold prompts and schemas, in lower case."""

_MAY: Final[Mapping[Role, frozenset[Role]]] = {
    "call": frozenset({"call"}),
    "read-only": frozenset({"read-only"}),
    "admin": frozenset({"call", "read-only", "admin"}),
}


class Caller:
    """One virtual key at work."""

    __slots__ = ("_budgets", "_limits", "id", "roles", "settings")

    def __init__(self, settings: KeySettings, budgets: Budgets) -> None:
        self.settings = settings
        self.id = settings.id
        self.roles = _MAY[settings.role]
        self._budgets = budgets
        most = settings.cost_per_month
        limits: tuple[tuple[Resource, int, int | None], ...] = (
            ("requests", MINUTE_S, settings.requests_per_minute),
            ("tokens", MINUTE_S, settings.tokens_per_minute),
            ("requests", DAY_S, settings.requests_per_day),
            ("tokens", DAY_S, settings.tokens_per_day),
            ("cost", MONTH_S, None if most is None else to_millionths(most)),
        )
        self._limits: list[tuple[Resource, int, int]] = [
            (resource, length, limit) for resource, length, limit in limits if limit is not None
        ]

    @property
    def counts_tokens(self) -> bool:
        """Whether the key may use so many tokens, or so much money, only."""
        return any(resource != "requests" for resource, _, _ in self._limits)

    @property
    def counts_cost(self) -> bool:
        """Whether the key may spend so much money only."""
        return self.settings.cost_per_month is not None

    def may(self, role: Role) -> bool:
        """Tell whether the key may do what a role allows."""
        return role in self.roles

    def may_ask(self, model: str) -> bool:
        """Tell whether the key may ask for a model."""
        globs = self.settings.models
        return not globs or any(matches_glob(glob, model) for glob in globs)

    def check_models(self, named: Iterable[str], body: bytes = b"") -> None:
        """Refuse a request for a model that the key may not ask for, however it is named.

        Args:
            named: The models that the path or the query names, or the request as it was read.
            body: What is sent. If it cannot be read, or has a key twice, an endpoint may see
                another model in it.

        Raises:
            ProviderStatusError: `FORBIDDEN`: a model may not be asked, or none is named.
        """
        if not self.settings.models:
            return
        names = list(named)
        try:
            if body:
                found = decode_noting(body, surrogates="replace")
                if found.duplicates:
                    raise forbidden(
                        "The body has a key twice. With this key for some models it may not."
                    )
                names += models_in(found.value)
        except JSONTextError as error:
            raise forbidden("The body must be JSON that can be read, with this key.") from error
        if not names:
            raise forbidden("The request names no model, and the key is for some models only.")
        for name in names:
            if not self.may_ask(name):
                raise forbidden(f"The key may not ask for {excerpt(name, 80)!r}.")

    def now(self) -> float:
        """Return the time for `begin` and `charge`."""
        return self._budgets.clock.now()

    async def begin(self, now: float) -> ProviderStatusError | None:
        """Count a request, or return why it must not be made.

        Raises:
            ProviderStatusError: `OVERLOADED`: nobody knows at the moment whether it may.
        """
        budgets = self._budgets
        limits = [
            (Window.at(self.id, resource, length, now), limit)
            for resource, length, limit in self._limits
        ]
        for _ in range(_MAX_REFILLS):
            lacking = [item for item in limits if not budgets.has(item[0])]
            if not lacking:
                for window, _ in limits:
                    if window.resource == "requests":
                        budgets.spend(window, 1)
                return None
            for window, limit in lacking:
                if not await budgets.refill(window, limit):
                    return _spent(window, limit, window.end - now)
        return overloaded(f"The key {self.id!r} is used by too many at once.")

    def charge(self, now: float, tokens: int, cost: float = 0.0) -> None:
        """Count the tokens of a request that is over, and its cost; never less than none."""
        used = {"requests": 0, "tokens": tokens, "cost": to_millionths(cost)}
        for resource, length, _ in self._limits:
            if used[resource] > 0:
                self._budgets.spend(Window.at(self.id, resource, length, now), used[resource])


class Keyring:
    """The virtual keys in force.

    Args:
        keys: The keys.
        budgets: What they may still use, which outlives a change of the keys.
    """

    def __init__(self, keys: Iterable[VirtualKey], budgets: Budgets) -> None:
        self._pepper = secrets.token_bytes(32)
        self._callers: dict[bytes, tuple[bytes, Caller]] = {}
        self._held = tuple(keys)
        """So that their secrets stay known."""
        for key in self._held:
            self._callers[self._place(key.digest)] = (key.digest, Caller(key.settings, budgets))

    def __bool__(self) -> bool:
        return bool(self._callers)

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


def models_in(body: Any) -> list[str]:
    """Return every model that a body names, in whatever place and case an endpoint may read it.

    Only what the model itself reads is left out: there, `model` is a word like any other.
    """
    found: list[str] = []
    waiting = [body]
    for value in waiting:  # grows while it is walked through
        if isinstance(value, list):
            waiting += cast("list[Any]", value)
        elif isinstance(value, dict):
            for key, item in cast("dict[str, Any]", value).items():
                name = key.casefold()
                if "model" in name or name in _NAMING:
                    texts = [item] if isinstance(item, str) else as_list(item)
                    found += [text for text in texts if isinstance(text, str)]
                if name not in _READ_BY_MODELS:
                    waiting.append(item)
    return [name.removeprefix("models/") for name in found]


def to_millionths(cost: float) -> int:
    """Return an amount of money as budgets count it, rounded up so that nothing is free."""
    return math.ceil(cost * 1e6)


def _spent(window: Window, limit: int, left_s: float) -> ProviderStatusError:
    unit = {MINUTE_S: "minute", DAY_S: "day", MONTH_S: "month"}[window.length]
    what = f"use {limit} {window.resource}"
    if window.resource == "cost":
        what = f"spend {limit / 1e6:g}"
    return ProviderStatusError(
        Code.RATE_LIMIT if window.length == MINUTE_S else Code.QUOTA_EXCEEDED,
        f"The key {window.key!r} may {what} a {unit}, and has.",
        hint=f"Try again in {int(left_s) + 1} s.",
        status=429,
        retryable=window.length == MINUTE_S,
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
