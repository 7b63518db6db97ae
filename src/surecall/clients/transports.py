"""HTTP clients and transports for SDKs and frameworks that take one."""

from collections.abc import Mapping
from types import ModuleType
from typing import Any

from surecall.exchange import Policy

from .library import Library, find_library
from .mediator import Mediator


def http_client(
    *,
    library: ModuleType | None = None,
    policy: Policy | None = None,
    capabilities: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Any:
    """Return a blocking HTTP client through which the replies of models become reliable.

    Args:
        library: `httpx2` or `httpx`; by default the one that is installed, the newer one first.
        policy: What may be done for one request, and at what cost.
        capabilities: What the models can do, where the catalog does not know it.
        **settings: Anything that `Client` of the library takes; `transport` is what sends.
    """
    module = library or find_library()
    inner = settings.pop("transport", None) or module.HTTPTransport()
    wrapped = Library(module, inner.handle_request, blocks=True)
    answer = Mediator(wrapped, policy, capabilities).answer
    return module.Client(transport=wrapped.transport(answer, inner.close), **settings)


def async_http_client(
    *,
    library: ModuleType | None = None,
    policy: Policy | None = None,
    capabilities: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Any:
    """Return an asynchronous HTTP client; see `http_client`."""
    module = library or find_library()
    inner = settings.pop("transport", None) or module.AsyncHTTPTransport()
    wrapped = Library(module, inner.handle_async_request, blocks=False)
    answer = Mediator(wrapped, policy, capabilities).answer
    return module.AsyncClient(transport=wrapped.transport(answer, inner.aclose), **settings)
