"""The provider's own list of models, and the context window it may name."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from surecall.base.errors import (
    Code,
    JSONTextError,
    ProviderConnectionError,
    ProviderError,
    ProviderTimeoutError,
)
from surecall.base.json_values import as_fields, as_list
from surecall.base.limits import MIB
from surecall.base.records import ModelRequest
from surecall.base.redaction import Secret, mask_known, secrets_in_headers
from surecall.models.client.bodies import ACCEPT_ENCODING, decode_body
from surecall.models.transport import WireLimits, join_url
from surecall.text import decode
from surecall.wire import WireProtocol

from .asker import Asker, question, user
from .findings import Finding, unclear, yes

_DEADLINE_S: Final = 10.0
_MAX_BODY_BYTES: Final = 16 * MIB
_CHUNK_BYTES: Final = 64 * 1024

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
) -> Any:
    """Ask a provider for its list of models.

    Args:
        base_url: Where the provider is.
        protocol: The wire format it speaks.
        api_prefix: Path below the base URL.
        api_key: The key, sent as the wire format has it.
        headers: What to send along.

    Raises:
        ProviderError: There is no list.
    """
    import aiohttp

    url = join_url(base_url, api_prefix, "/models", default_prefix=protocol.default_prefix)
    sent = {**_own_headers(protocol), **(headers or {})}
    if api_key:
        sent |= protocol.render_auth(api_key.reveal())
    secrets = secrets_in_headers(sent)
    try:
        async with asyncio.timeout(_DEADLINE_S):
            return mask_known(await _fetch(url, sent, protocol))
    except TimeoutError:
        raise ProviderTimeoutError(
            Code.TOTAL_TIMEOUT, f"The list of models did not come within {_DEADLINE_S:.0f} s."
        ) from None
    except (aiohttp.ClientError, OSError) as error:
        raise ProviderConnectionError(
            Code.CONNECTION_FAILED,
            f"The list of models could not be fetched: {type(error).__name__}.",
        ) from None
    finally:
        secrets.clear()


def _own_headers(protocol: WireProtocol) -> dict[str, str]:
    """Return what the wire format sends with every request, such as the version of its API."""
    return protocol.render_request(ModelRequest(model="m", messages=user("m"))).headers


async def _fetch(url: str, headers: dict[str, str], protocol: WireProtocol) -> Any:
    import aiohttp

    async with (
        aiohttp.ClientSession(
            headers={**headers, "Accept-Encoding": ACCEPT_ENCODING},
            auto_decompress=False,
            trust_env=False,
        ) as session,
        session.get(url, allow_redirects=False) as response,
    ):
        body = await decode_body(
            response.content.iter_chunked(_CHUNK_BYTES),
            response.headers.get("Content-Encoding", ""),
            WireLimits(),
            max_bytes=_MAX_BODY_BYTES,
            code=Code.UPSTREAM_TOO_LARGE,
        )
    if not 200 <= response.status < 300:
        lowered = {name.lower(): value for name, value in response.headers.items()}
        raise protocol.parse_error(response.status, lowered, body)
    try:
        return decode(body, surrogates="replace")
    except JSONTextError:
        return {}
