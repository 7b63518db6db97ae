"""`wrap`: one line around a client of the official SDKs."""

from collections.abc import Mapping
from copy import copy
from functools import cache, cached_property, partial
from typing import Any, TypeVar

from surecall.base.errors import Code, ConfigError, SurecallError
from surecall.base.json_values import as_fields, as_list
from surecall.exchange import Policy

from .library import Library, find_library
from .mediator import Mediator

_Client = TypeVar("_Client")


class CallsRefusedError(SurecallError):
    """A wrapped client raises this when nothing made the calls of a reply right.

    It also is the error of the SDK for a request that cannot be processed (status 422).

        try:
            client.chat.completions.create(**request)
        except CallsRefusedError as error:
            print([reason["message"] for reason in error.reasons])
    """

    reasons: tuple[dict[str, Any], ...] = ()
    """Code, path, message and hint of everything that is wrong with the calls."""


def wrap(
    client: _Client,
    *,
    policy: Policy | None = None,
    capabilities: Mapping[str, Any] | None = None,
) -> _Client:
    """Return a client like the given one, whose tool calls are reliable.

    Calls are read wherever the model wrote them, repaired, checked against the tools of the
    request, and asked for again within the budget of the policy; what stays unusable is delivered,
    told or raised as `CallsRefusedError`, as `refused_calls` of the policy says. `surecall` of the
    response object lists every change.

        import openai

        client = surecall.wrap(openai.OpenAI(base_url="http://localhost:8000/v1", api_key="none"))

    Args:
        client: `OpenAI`, `AsyncOpenAI`, `Anthropic`, `AsyncAnthropic` or one derived from these.
        policy: The steps that one request may take, and their cost.
        capabilities: Abilities of the models that the catalog does not know.

    Raises:
        ConfigError: `INVALID_OPTION`: it is not such a client.
    """
    name, inner = _find_http_client(client)
    if not hasattr(client, "with_options") or not name:
        raise ConfigError(
            Code.INVALID_OPTION,
            f"wrap() takes a client of the openai or anthropic SDK, not {type(client).__name__}.",
            hint="For anything else, hand surecall.http_client() to it as its HTTP client.",
        )
    module = find_library(inner)
    blocks = isinstance(inner, module.Client)

    library = Library(module, partial(inner.send, stream=True), blocks=blocks)
    # They share connections, as copies of an SDK's client do: closing one closes both.
    close = inner.close if blocks else inner.aclose
    transport = library.transport(Mediator(library, policy, capabilities).answer, close)
    kind = module.Client if blocks else module.AsyncClient
    made = kind(
        transport=transport,
        base_url=inner.base_url,
        headers=inner.headers,
        params=inner.params,
        cookies=inner.cookies,
        timeout=inner.timeout,
        trust_env=inner.trust_env,
    )
    copied = _copy_with(client, made)
    _raise_own(copied)
    return copied


def _copy_with(client: Any, http_client: Any) -> Any:
    """Return a copy of a client with another HTTP client.

    The SDK's own way makes it anew, which fails if its class has a constructor of its own.
    """
    try:
        return client.with_options(http_client=http_client)
    except TypeError:
        made: Any = copy(client)
    kind: Any = made.__class__
    own: dict[str, Any] = made.__dict__
    for name in [*own]:
        if isinstance(getattr(kind, name, None), cached_property):
            del own[name]  # it would go on with the other client
    own[_find_http_client(client)[0]] = http_client
    return made


def _raise_own(client: Any) -> None:
    """Have a client raise refused calls as what they are, where it makes errors of statuses."""
    make: Any = getattr(client, "_make_status_error", None)
    if make is None:
        return

    def make_own(message: str, **given: Any) -> Exception:
        error = make(message, **given)
        body = as_fields(given.get("body"))
        told = as_fields(as_fields(body.get("error") or body).get("surecall"))
        if told.get("code") == Code.CALLS_REFUSED:
            kind: type[Exception] = error.__class__
            error.__class__ = _refused_of(kind)
            error.reasons = tuple(map(as_fields, as_list(told.get("errors"))))
            error.code, error.hint = str(Code.CALLS_REFUSED), told.get("hint")
        return error

    client._make_status_error = make_own


@cache
def _refused_of(kind: type[Exception]) -> type[Exception]:
    """Return the class of refused calls that also is the SDK's own for their status."""
    return type(CallsRefusedError.__name__, (CallsRefusedError, kind), {"__str__": kind.__str__})


def _find_http_client(client: Any) -> tuple[str, Any]:
    """Return the HTTP client that a client holds, after its name there; nothing without one."""
    held: dict[str, Any] = getattr(client, "__dict__", {})
    for name, value in held.items():
        if hasattr(value, "send") and hasattr(value, "build_request"):
            return name, value
    return "", None
