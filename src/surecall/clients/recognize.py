"""Which requests of an HTTP client are for a model, in which format, and where they go."""

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

from surecall.base.errors import RequestError
from surecall.exchange import ClientRequest, Route
from surecall.models.profiles import Catalog, resolve_capabilities
from surecall.wire import WireProtocol, find_protocol

_ENDINGS: Final[Mapping[str, str]] = {
    "/chat/completions": "chat_completions",
    "/messages": "messages",
    "/responses": "responses",
}
_GEMINI: Final = re.compile(
    r"/(?:models|tunedModels)/([^/]+):(generateContent|streamGenerateContent)$"
)
_VERTEX: Final = re.compile(
    r"/publishers/anthropic/models/(?!count-tokens:)([^/]+):(?:rawPredict|streamRawPredict)$"
)
"""Messages of a platform that names the model in the path."""
_MAX_ROUTES: Final = 256


class Recognizer:
    """Tells requests for a model from all others.

    Args:
        capabilities: What the caller says about the models; it wins over the catalog.
    """

    def __init__(self, capabilities: Mapping[str, Any] | None = None) -> None:
        self._capabilities = dict(capabilities or {})
        self._protocols: dict[str, WireProtocol] = {}
        self._routes: dict[tuple[str, str, str], Route] = {}

    def may_be_for_model(self, method: str, path: str) -> bool:
        """Tell whether a request goes where models are asked."""
        return method == "POST" and (
            path.endswith(tuple(_ENDINGS))
            or _GEMINI.search(path) is not None
            or _VERTEX.search(path) is not None
        )

    def recognize(self, host: str, path: str, body: bytes) -> tuple[ClientRequest, Route] | None:
        """Return what a request asks of a model, and of which; `None` when it asks nothing."""
        name = next((found for end, found in _ENDINGS.items() if path.endswith(end)), None)
        model = stream = None
        if found := _GEMINI.search(path):
            name, model, stream = "gemini", unquote(found[1]), found[2] == "streamGenerateContent"
        elif found := _VERTEX.search(path):
            name, model = "messages", unquote(found[1])
        if name is None:
            return None
        protocol = self._protocols.get(name)
        if protocol is None:
            protocol = self._protocols[name] = find_protocol(name)
        try:
            request = ClientRequest.parse(protocol, body, model=model, stream=stream)
        except RequestError:
            return None  # the endpoint says what is wrong with it
        return request, self._route(protocol, host, request.model)

    def _route(self, protocol: WireProtocol, host: str, model: str) -> Route:
        key = (protocol.name, host, model)
        route = self._routes.get(key)
        if route is None:
            provider = Catalog.builtin().provider_at(host)
            # The program wrote the request for an endpoint that it knows better than anybody.
            taken = {"request_fields": ("*",)} if provider is None else {}
            found = resolve_capabilities(provider, model, overrides={**taken, **self._capabilities})
            route = Route.of(protocol, model, found)
            if len(self._routes) >= _MAX_ROUTES:
                self._routes.pop(next(iter(self._routes)))
            self._routes[key] = route
        return route
