"""The provider's own list of models, and the context window it may name."""

from collections.abc import Mapping
from typing import Any, Final

from surecall.base.errors import JSONTextError, ProviderError
from surecall.base.json_values import as_fields, as_list
from surecall.base.limits import MIB
from surecall.base.records import ModelRequest
from surecall.base.redaction import Secret, mask_known, secrets_in_headers
from surecall.models.client import ClientLimits, Network, open_once
from surecall.models.client.limits import Deadlines
from surecall.models.client.network import join_url
from surecall.models.config import read_network
from surecall.text import decode
from surecall.wire import WireProtocol

from .asker import Asker, question, user
from .findings import Finding, unclear, yes

_DEADLINES: Final = Deadlines(connect_s=10.0, first_byte_s=10.0, idle_s=10.0, total_s=10.0)
_LIMITS: Final = ClientLimits(max_body_bytes=16 * MIB)

_WINDOW_FIELDS: Final = (
    "context_length",
    "context_window",
    "inputTokenLimit",
    "max_context_length",
    "max_input_tokens",
    "max_model_len",
    "n_ctx",
)
_INNER_FIELDS: Final = ("meta", "top_provider")


@question(
    "Does the provider's list name the size of the context window?",
    "context_window_tokens",
    max_requests=1,
    tokens=0,
)
async def ask_context_window(asker: Asker) -> Finding:
    """Look the context window up in the provider's list; it is never found out by filling it."""
    try:
        document = await asker.fetch_listing()
    except ProviderError as error:  # a provider may well have no list
        return unclear(f"there is no list of models: {error.message}", error.code)
    if document is None:
        return unclear("there is no list of models to look it up in")
    row = _row_of(document, asker.model)
    if row is None:
        return unclear("the provider's list does not have this model")
    sizes = dict(_window_sizes(row))
    if not sizes:
        return unclear("the provider's list does not name the size")
    found = ", ".join(f"{name} {size}" for name, size in sizes.items())
    return yes(f"its list says {found}", context_window_tokens=min(sizes.values()))


def _row_of(document: Any, model: str) -> dict[str, Any] | None:
    fields = as_fields(document)
    for row in as_list(fields.get("data") or fields.get("models")):
        names = (as_fields(row).get("id"), as_fields(row).get("name"))
        if model in names or f"models/{model}" in names:
            return as_fields(row)
    return None


def _window_sizes(row: dict[str, Any]) -> list[tuple[str, int]]:
    places = [("", row), *((f"{name}.", as_fields(row.get(name))) for name in _INNER_FIELDS)]
    return [
        (prefix + name, fields[name])
        for prefix, fields in places
        for name in _WINDOW_FIELDS
        if type(fields.get(name)) is int and fields[name] > 0
    ]


async def fetch_listing(
    base_url: str,
    protocol: WireProtocol,
    *,
    api_prefix: str | None = None,
    api_key: Secret | None = None,
    headers: Mapping[str, str] | None = None,
    network: Network | None = None,
) -> Any:
    """Ask a provider for its list of models.

    Args:
        base_url: Where the provider is.
        protocol: The wire format it speaks.
        api_prefix: Path below the base URL.
        api_key: The key, sent as the wire format has it.
        headers: What to send along.
        network: Proxies and certificates; by default those that the environment names.

    Raises:
        ProviderError: There is no list.
    """
    url = join_url(base_url, api_prefix, "/models", default_prefix=protocol.default_prefix)
    sent = {**_own_headers(protocol), **(headers or {})}
    if api_key:
        sent |= protocol.render_auth(api_key.reveal())
    secrets = secrets_in_headers(sent)
    try:
        return mask_known(await _fetch(url, sent, protocol, network))
    finally:
        secrets.clear()


def _own_headers(protocol: WireProtocol) -> dict[str, str]:
    """Return what the wire format sends with every request, such as the version of its API."""
    return protocol.render_request(ModelRequest(model="m", messages=user("m"))).headers


async def _fetch(
    url: str, headers: dict[str, str], protocol: WireProtocol, network: Network | None
) -> Any:
    async with open_once(
        "GET",
        url,
        headers,
        deadlines=_DEADLINES,
        limits=_LIMITS,
        network=read_network() if network is None else network,
    ) as answer:
        body = await answer.read()
    if not 200 <= answer.status < 300:
        raise protocol.parse_error(answer.status, dict(answer.headers), body)
    try:
        return decode(body, surrogates="replace")
    except JSONTextError:
        return {}
