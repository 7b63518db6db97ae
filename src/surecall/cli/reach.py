"""What the settings lead to: the options of a run, and whether the provider answers."""

import asyncio
import errno
import ssl
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from msgspec import Struct

from surecall.base.errors import Code, JSONTextError, ProviderReplyError, SurecallError
from surecall.base.json_values import as_fields, as_list
from surecall.base.redaction import mask_known, redact
from surecall.loop.options import ResolvedOptions
from surecall.loop.resolve import (
    AUTO_PRESET,
    choose_protocol,
    find_capabilities,
    find_provider,
    merge_options,
)
from surecall.models.client.bodies import ACCEPT_ENCODING, decode_body
from surecall.models.config import Config
from surecall.models.profiles import Catalog
from surecall.models.transport import WireLimits, join_url
from surecall.text import decode
from surecall.wire import WireProtocol

from .progress import count_of

_DEADLINE_S: Final = 5.0
_MAX_BODY_BYTES: Final = 2 * 1024 * 1024
_REFUSALS: Final = {401: Code.AUTH, 402: Code.PAYMENT_REQUIRED, 403: Code.FORBIDDEN}


def resolve_configured(config: Config, catalog: Catalog) -> ResolvedOptions:
    """Return the options of a run with these settings and nothing else; capabilities are checked.

    Raises:
        ConfigError: A run with these settings would be refused.
    """
    provider = find_provider(config, catalog)
    find_capabilities(provider, config.model or "", config.capabilities, {}, {}, catalog)
    return merge_options(
        provider=provider,
        model=config.model or "",
        presets=config.preset or (AUTO_PRESET,),
        profile=config.profile,
        config=config,
        overrides={},
        catalog=catalog,
    )


class Reached(Struct, frozen=True):
    """What came of asking the provider."""

    message: str
    code: str = ""
    """Empty when it can be used."""
    fix: str = ""
    models: tuple[str, ...] = ()
    """The models it lists, when it lists any."""
    clock_skew_s: float | None = None
    """How far its clock is ahead of ours."""


async def reach_provider(config: Config) -> Reached:
    """Ask for the list of models; nothing is raised."""
    try:
        protocol = choose_protocol(None, config, Catalog.builtin())
        url = join_url(
            config.base_url or "",
            config.api_prefix,
            "/models",
            default_prefix=protocol.default_prefix,
        )
        async with asyncio.timeout(_DEADLINE_S):
            status, headers, body = await _fetch(url, config, protocol)
    except SurecallError as error:
        return Reached(error.message, error.code, error.hint or "")
    except TimeoutError:
        fix = "Check the address, the network and whether the server is overloaded."
        return Reached(f"no answer within {_DEADLINE_S:.0f} s", Code.CONNECT_TIMEOUT, fix)
    except Exception as error:
        return _explain_failure(error)
    skew = _clock_skew(headers.get("Date"))
    if status in _REFUSALS:
        message, code = f"answers, but refuses with status {status}", _REFUSALS[status]
        return Reached(message, code, f"Check the key: surecall explain {code}", clock_skew_s=skew)
    if status >= 500:
        message, fix = f"answers with status {status}", "Wait, or ask the provider."
        return Reached(message, Code.UPSTREAM_5XX, fix, clock_skew_s=skew)
    models = _listed_models(body) if status == 200 else ()
    what = f"lists {count_of(len(models), 'model')}" if models else f"status {status} for /models"
    return Reached(f"answers, {what}", models=models, clock_skew_s=skew)


async def _fetch(url: str, config: Config, protocol: WireProtocol) -> tuple[int, Any, bytes]:
    import aiohttp

    headers = dict(config.headers)
    if config.api_key:
        headers |= protocol.render_auth(config.api_key.reveal())
    async with (
        aiohttp.ClientSession(
            headers={**headers, "Accept-Encoding": ACCEPT_ENCODING},
            auto_decompress=False,
            trust_env=False,
        ) as session,
        session.get(url, allow_redirects=False) as response,
    ):
        try:
            body = await decode_body(
                response.content.iter_chunked(64 * 1024),
                response.headers.get("Content-Encoding", ""),
                WireLimits(),
                max_bytes=_MAX_BODY_BYTES,
                code=Code.UPSTREAM_TOO_LARGE,
            )
        except ProviderReplyError:
            body = b""  # it answers, which is what matters here
        return response.status, response.headers, body


def _explain_failure(error: Exception) -> Reached:
    import aiohttp

    number = getattr(error, "errno", None)
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        code, message = Code.DNS_FAILURE, "the host name has no address"
        fix = "Check the spelling of base_url."
    elif isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        code, message = Code.TLS_FAILURE, "no secure connection"
        fix = "Check that base_url uses https and that its certificate is valid."
    elif number == errno.ECONNREFUSED:
        code, message = Code.CONNECTION_REFUSED, "refuses connections"
        fix = "Check that the server runs and that the port is right."
    elif isinstance(error, aiohttp.ServerDisconnectedError) or number == errno.ECONNRESET:
        code, message = Code.CONNECTION_RESET, "closes the connection without answering"
        fix = "Check that base_url is the address of an HTTP server."
    else:
        code, message = Code.CONNECTION_FAILED, redact(f"{type(error).__name__}: {error}")
        fix = "Check the network and base_url."
    return Reached(message, code, fix)


def _listed_models(body: bytes) -> tuple[str, ...]:
    try:
        document = mask_known(decode(body))
    except JSONTextError:
        return ()
    ids = (as_fields(row).get("id") for row in as_list(as_fields(document).get("data")))
    return tuple(name for name in ids if isinstance(name, str))


def _clock_skew(date: str | None) -> float | None:
    try:
        theirs = parsedate_to_datetime(date or "")
    except ValueError:
        return None
    return (theirs - datetime.now(UTC)).total_seconds() if theirs.tzinfo else None
