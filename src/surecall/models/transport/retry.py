"""When a failed attempt is made again, how long to wait before it, and without which field.

Only failures before the first byte of an answer come here. All waits of one request share
one budget; a provider that asks for a longer wait gets none, and the caller learns of it at once.
"""

import asyncio
import random as random_module
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any, Final, TypeVar

from msgspec import Struct

from surecall.base.errors import (
    Code,
    JSONTextError,
    ProviderError,
    ProviderTimeoutError,
    invalid_config,
)
from surecall.base.json_values import as_fields, as_list
from surecall.text import decode
from surecall.wire.errors import WAIT_MS_HEADERS

T = TypeVar("T")

# Fractions are common in practice; signs, exponents and "inf" are not waits.
_SECONDS: Final = re.compile(r"[0-9]{1,15}(?:\.[0-9]{0,15})?")


class RetryPolicy(Struct, frozen=True, kw_only=True):
    """How often to try again, and how long to wait in all."""

    max_retries: int = 1
    max_wait_s: float = 20.0
    """All waits of one request together."""
    base_delay_s: float = 0.5
    """The first wait when the provider names none; it doubles each time."""
    max_delay_s: float = 8.0
    jitter: float = 0.25
    """Share by which a wait of our own choosing is randomly shortened or lengthened."""

    def __post_init__(self) -> None:
        numbers = (self.max_retries, self.max_wait_s, self.base_delay_s, self.max_delay_s)
        if not all(isfinite(number) and number >= 0 for number in (*numbers, self.jitter)):
            raise invalid_config(
                "A RetryPolicy has a negative or infinite number.",
                "Give finite numbers, zero or more.",
            )


def parse_retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds a provider asks to wait, or `None` when it names no usable time.

    Args:
        headers: Response headers, names in lower case.
        now: Seconds since the epoch, against which an HTTP date is read.
    """
    for name in WAIT_MS_HEADERS:
        milliseconds = _parse_number(headers.get(name))
        if milliseconds is not None:
            return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _parse_number(value)
    if seconds is not None or value is None or len(value) > 64:
        return seconds
    try:
        moment = parsedate_to_datetime(value.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, moment.timestamp() - now)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def plan_wait(
    policy: RetryPolicy,
    error: ProviderError,
    *,
    retries: int,
    waited_s: float,
    random: Callable[[], float],
) -> float | None:
    """Return how long to wait before trying again, or `None` when the error is final.

    A deadline that passed is final: its time was the most the caller wanted to spend.
    """
    if not error.retryable or isinstance(error, ProviderTimeoutError):
        return None
    if retries >= policy.max_retries:
        return None
    wait_s = error.retry_after_s
    if not wait_s:
        delay_s = min(policy.max_delay_s, policy.base_delay_s * 2.0 ** min(retries, 60))
        wait_s = delay_s * (1 + policy.jitter * (2 * random() - 1))
    return wait_s if waited_s + wait_s <= policy.max_wait_s else None


async def run_attempts(
    policy: RetryPolicy,
    attempt: Callable[[int], Awaitable[T]],
    *,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    random: Callable[[], float] = random_module.random,
) -> T:
    """Make attempts until one succeeds or fails for good; `attempt` gets its number, from 1."""
    waited_s = 0.0
    number = 1
    while True:
        try:
            return await attempt(number)
        except ProviderError as error:
            error.attempts = max(error.attempts, number)
            wait_s = plan_wait(policy, error, retries=number - 1, waited_s=waited_s, random=random)
            if wait_s is None:
                _explain_refused_wait(policy, error, waited_s)
                raise
        await sleep(wait_s)
        waited_s += wait_s
        number += 1


def _explain_refused_wait(policy: RetryPolicy, error: ProviderError, waited_s: float) -> None:
    asked_s = error.retry_after_s
    left_s = max(0.0, policy.max_wait_s - waited_s)
    if error.retryable and asked_s and asked_s > left_s:
        refusal = (
            f"The provider asks to wait {asked_s:g} s, but only {left_s:g} s of the waiting "
            "budget are left; try again later, or raise max_wait_s."
        )
        error.hint = f"{error.hint} {refusal}" if error.hint else refusal


def _parse_number(text: str | None) -> float | None:
    if text is None or not _SECONDS.fullmatch(text := text.strip()):
        return None
    return float(text)


_REFUSALS: Final = frozenset({Code.BAD_REQUEST, Code.UNPROCESSABLE})
_PLACES: Final = frozenset({"field", "loc", "param", "parameter"})
"""Keys of an error under which providers say what part of the request is meant."""
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_PATH: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z0-9_]+)*")
_QUOTES: Final = frozenset("\"'`")
_REFUSES: Final = re.compile(
    r"unsupported|not[ _]support|not (?:permitted|allowed|accepted)|only allowed|unrecogni[sz]ed"
    r"|unknown|unexpected|extra|deprecated|cannot|additional propert"
    r"|not be (?:given|sent|set|specified|used)\b|(?:does not|doesn't) (?:accept|support|take)\b"
    r"|isn't (?:allowed|supported)",
    re.IGNORECASE,
)
"""How providers say that they do not take a field, whatever its value."""
_NOUN_BEFORE: Final = re.compile(
    r"\b(?:argument|field|option|parameter|property|propertie)s?(?:(?: \w{1,20}){0,5}:)? $",
    re.IGNORECASE,
)
_MAX_NOUN_CHARS: Final = 80
_SAID_OF_NAME: Final = (":", " is not ", " is un", " is deprecated")
_NEVER_LEFT_OUT: Final = frozenset({"contents", "input", "messages", "model", "system", "tools"})
_QUOTED_BACK: Final = "input"
"""The key under which validators repeat what was sent, which names nothing."""
_MAX_READ_CHARS: Final = 20_000
_MAX_LEVELS: Final = 8
_OTHER_SPELLINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "max_tokens": ("max_completion_tokens", "max_output_tokens"),
    "parallel_tool_calls": ("disable_parallel_tool_use",),
    "tool_choice": ("tool_config",),
}
"""What fields are called on the wire where that is not only a matter of capital letters."""


def find_refused_field(error: ProviderError, sent: Iterable[str]) -> str | None:
    """Return the field of a request that a provider refuses by name, among those that were sent.

    A field is named by the structure of the error (`param`, `loc`, `field`), by quotation marks
    around it, by what is said of it at the beginning, by a word such as `parameter` before it, or
    by an underscore in it, which no word has. An error that refuses only a value, or something in
    the messages or tools, names none.
    """
    if error.code not in _REFUSALS:
        return None
    fields: dict[str, str] = {}
    for field in sent:
        fields.update((_fold(name), field) for name in (field, *_OTHER_SPELLINGS.get(field, ())))
    text = (error.body or error.provider_message or "")[:_MAX_READ_CHARS]
    if not fields or not _REFUSES.search(text):
        return None
    try:
        document = decode(text)
    except JSONTextError:
        document = text
    places = tuple(_names_of_places(document))
    if not _NEVER_LEFT_OUT.isdisjoint(places):
        return None
    names = (*places, *_names_in_texts(document))
    return next((fields[name] for name in map(_fold, names) if name in fields), None)


def _fold(name: str) -> str:
    return name.replace("_", "").lower()


def _names_of_places(value: Any, levels: int = _MAX_LEVELS) -> Iterator[str]:
    """Yield the names under keys that say what part of a request is meant, innermost first."""
    if not levels:
        return
    for key, item in as_fields(value).items():
        if key in _PLACES:
            path = " ".join(part for part in as_list(item) if isinstance(part, str)) or item
            yield from reversed(_NAME.findall(path) if isinstance(path, str) else [])
        else:
            yield from _names_of_places(item, levels - 1)
    for item in as_list(value):
        yield from _names_of_places(item, levels - 1)


def _names_in_texts(value: Any, levels: int = _MAX_LEVELS) -> Iterator[str]:
    """Yield what can only be the name of a field in the sentences of an error."""
    if isinstance(value, str):
        value = value.partition(f"'{_QUOTED_BACK}':")[0]
        for found in _PATH.finditer(value):
            if _stands_as_name(value, found.start(), found.end()):
                yield from reversed(_NAME.findall(found[0]))
    if levels:
        fields = as_fields(value).items()
        inside = (item for key, item in fields if key != _QUOTED_BACK)
        for item in (*inside, *as_list(value)):
            yield from _names_in_texts(item, levels - 1)


def _stands_as_name(text: str, start: int, end: int) -> bool:
    """Tell whether a word of a sentence is surely the name of a field."""
    before, behind = text[max(start - 1, 0) : start], text[end : end + 1]
    return (
        (before in _QUOTES and before == behind)
        or "_" in text[start:end]
        or (not before and text.startswith(_SAID_OF_NAME, end))
        or _NOUN_BEFORE.search(text, max(start - _MAX_NOUN_CHARS, 0), start) is not None
    )
