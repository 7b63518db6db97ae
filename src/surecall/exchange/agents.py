"""Headers that say who asks and what for, and those that tell clients what was done."""

from collections.abc import Iterable
from typing import Final, get_args

from surecall.base.errors import Code, RequestError
from surecall.base.redaction import excerpt

from .policy import RefusedCalls

REFUSED_CALLS_HEADER: Final = "x-surecall-refused-calls"
"""The header by which one request says what becomes of wrong calls."""
OUTCOME_HEADER: Final = "x-surecall-outcome"
RECEIPTS_HEADER: Final = "x-surecall-receipts"
"""How many receipts a reply has."""
_AGENTS: Final[dict[str, tuple[str, ...]]] = {
    "user-agent": (
        *("aider", "claude-cli", "cline", "codex", "crush", "geminicli", "goose", "kilo"),
        *("mini-swe-agent", "opencode", "openhands", "qwencode", "roo", "zed"),
    ),
    "x-title": ("aider", "cline", "crush", "goose", "kilo", "opencode", "openhands", "roo"),
}
"""How the values of their headers begin."""


def is_agent(headers: Iterable[tuple[str, str]]) -> bool:
    """Tell whether a request comes from a known agent program, which runs a loop.

    >>> from surecall.exchange.agents import is_agent
    >>> is_agent([("user-agent", "codex_cli_rs/0.47.0 (Debian 13.0.0; x86_64)")])
    True
    """
    return any(
        value.lower().startswith(_AGENTS[name]) for name, value in headers if name in _AGENTS
    )


def read_refused_calls(value: str) -> RefusedCalls:
    """Return what the header of a request says.

    Raises:
        RequestError: `INVALID_REQUEST`: a word that is not known.
    """
    words: tuple[RefusedCalls, ...] = get_args(RefusedCalls)
    word = value.strip().lower()
    for known in words:
        if word == known:
            return known
    raise RequestError(
        Code.INVALID_REQUEST,
        f"The header {REFUSED_CALLS_HEADER} is {excerpt(value, 40)!r}.",
        hint=f"It may be: {', '.join(words)}.",
    )
