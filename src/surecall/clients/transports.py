"""HTTP clients and transports for SDKs and frameworks that take one."""

from collections.abc import Mapping
from functools import partial
from types import ModuleType
from typing import Any, Final

from surecall.exchange import Policy

from .library import Library, find_library
from .mediator import Mediator

_CONNECTION: Final = (
    "cert",
    "http1",
    "http2",
    "limits",
    "mounts",
    "proxy",
    "transport",
    "trust_env",
    "verify",
)
"""Settings of a client that are about how requests are sent."""


def http_client(
    *,
    library: ModuleType | None = None,
    policy: Policy | None = None,
    capabilities: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Any:
    """Return a blocking HTTP client through which the replies of models become reliable.

        import httpx
        import openai

        http = surecall.http_client(library=httpx)
        client = openai.OpenAI(http_client=http, api_key="none")

    Args:
        library: `httpx2` or `httpx`, whichever the framework takes clients of; may be left out
            where only one of them is installed.
        policy: The steps that one request may take, and their cost.
        capabilities: Abilities of the models that the catalog does not know.
        **settings: Anything that `Client` of the library takes; `transport`, `mounts` and `proxy`
            are what sends.

    Raises:
        ConfigError: `EXTRA_MISSING` or `INVALID_OPTION`: none of the libraries is installed, or
            both are and none is named.
    """
    module = library or find_library()
    inner = module.Client(**_take_connection(settings))
    wrapped = Library(module, partial(inner.send, stream=True), blocks=True)
    answer = Mediator(wrapped, policy, capabilities).answer
    return module.Client(transport=wrapped.transport(answer, inner.close), **settings)


def async_http_client(
    *,
    library: ModuleType | None = None,
    policy: Policy | None = None,
    capabilities: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Any:
    """Return an asynchronous HTTP client; see `http_client`.

    For example:

        import httpx
        import openai

        http = surecall.async_http_client(library=httpx)
        client = openai.AsyncOpenAI(http_client=http, api_key="none")
    """
    module = library or find_library()
    inner = module.AsyncClient(**_take_connection(settings))
    wrapped = Library(module, partial(inner.send, stream=True), blocks=False)
    answer = Mediator(wrapped, policy, capabilities).answer
    return module.AsyncClient(transport=wrapped.transport(answer, inner.aclose), **settings)


def _take_connection(settings: dict[str, Any]) -> dict[str, Any]:
    """Take the settings of the connection out of those of a client."""
    return {name: settings.pop(name) for name in _CONNECTION if name in settings}
