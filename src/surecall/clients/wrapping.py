"""`wrap`: one line around a client of the official SDKs."""

from collections.abc import Mapping
from typing import Any, TypeVar

from surecall.errors import Code, ConfigError
from surecall.exchange import Policy

from .library import Library, find_library
from .mediator import Mediator

_Client = TypeVar("_Client")


def wrap(
    client: _Client,
    *,
    policy: Policy | None = None,
    capabilities: Mapping[str, Any] | None = None,
) -> _Client:
    """Return a client like the given one, whose tool calls are reliable.

    Calls are read wherever the model wrote them, repaired, checked against the tools of the
    request, and asked for again within the budget of the policy; what stays unusable is an error
    of the SDK that says why. What was done is in `surecall` of the response object.

    Args:
        client: `OpenAI`, `AsyncOpenAI`, `Anthropic`, `AsyncAnthropic` or one derived from these.
        policy: What may be done for one request, and at what cost.
        capabilities: What the models can do, where the catalog does not know it.

    Raises:
        ConfigError: `INVALID_OPTION`: it is not such a client.
    """
    inner: Any = getattr(client, "_client", None)
    copy: Any = getattr(client, "with_options", None)
    send: Any = getattr(inner, "send", None)
    if copy is None or send is None or not hasattr(inner, "build_request"):
        raise ConfigError(
            Code.INVALID_OPTION,
            f"wrap() takes a client of the openai or anthropic SDK, not {type(client).__name__}.",
            hint="For anything else, hand surecall.http_client() to it as its HTTP client.",
        )
    module = find_library(inner)
    blocks = isinstance(inner, module.Client)

    def pass_on(request: Any) -> Any:
        return send(request, stream=True)

    library = Library(module, pass_on, blocks=blocks)
    # They share connections, as copies of an SDK's client do: closing one closes both.
    close = inner.close if blocks else inner.aclose
    transport = library.transport(Mediator(library, policy, capabilities).answer, close)
    kind = module.Client if blocks else module.AsyncClient
    made = kind(transport=transport, timeout=inner.timeout, follow_redirects=True)
    return copy(http_client=made)
