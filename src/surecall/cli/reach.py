"""The effect of the settings: the options of a run, and whether the provider answers."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple

from msgspec import Struct

from surecall.base.errors import Code, JSONTextError, ProviderReplyError, SurecallError
from surecall.base.json_values import as_fields, as_list
from surecall.base.limits import MIB
from surecall.base.redaction import mask_known
from surecall.exchange.prompting import choose_mode
from surecall.loop.options import Options, ResolvedOptions
from surecall.loop.resolve import (
    AUTO_PRESET,
    choose_protocol,
    find_capabilities,
    find_provider,
    merge_options,
)
from surecall.models.client import ClientLimits, open_once
from surecall.models.client.network import Deadlines, join_url
from surecall.models.config import Config
from surecall.models.profiles import Catalog, ResolvedCapabilities
from surecall.text import decode
from surecall.wire import WireProtocol

from .event_lines import count_of

_DEADLINES: Final = Deadlines(connect_s=5.0, first_byte_s=5.0, idle_s=5.0, total_s=5.0)
_LIMITS: Final = ClientLimits(max_body_bytes=2 * MIB)
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


class Change(NamedTuple):
    """One thing that a run does differently."""

    what: str
    before: str
    after: str


def list_changes(
    config: Config, catalog: Catalog, before: ResolvedCapabilities, after: ResolvedCapabilities
) -> tuple[Change, ...]:
    """Return what a run with these settings does differently because of a probe."""
    options = resolve_configured(config, catalog).options
    old, new = _behaviour(options, before), _behaviour(options, after)
    return tuple(Change(what, old[what], new[what]) for what in old if old[what] != new[what])


def _behaviour(options: Options, known: ResolvedCapabilities) -> dict[str, str]:
    can = known.capabilities
    text = "no" if options.text_formats == "off" else "where tools are offered"
    if options.text_formats == "all" or (can.text_formats and options.text_formats == "auto"):
        text = "in every turn"
    several = can.supports_parallel_tools or known.origins["supports_parallel_tools"] == "default"
    midturn = can.allows_midturn_system or known.origins["allows_midturn_system"] == "default"
    window, has_required = can.context_window_tokens, bool(options.required_tools)
    mode = choose_mode(
        can, known.origins, wanted=options.tool_prompting, has_required=has_required
    ).mode
    room = "any size" if window is None else f"{window - can.reserved_response_tokens} tokens"
    found = {
        "tools are given to the model": mode,
        "calls written as text are looked for": text,
        "parallel_tool_calls may be sent": several,
        "calls of one reply may run together": several,
        "call ids are made to match": can.tool_id_pattern or "nothing",
        "system messages stay where they are": midturn,
        "empty reasoning is added to calls": can.needs_reasoning_echo,
        "replies may be streamed": can.streaming,
        "turns with tools may be streamed": can.stream_equals_whole is not False,
        "prompts may have": room,
        "response_format json_object may be sent": can.json_object,
        "response_format json_schema may be sent": can.json_schema,
    }
    words = {True: "yes", False: "no", None: "no"}
    return {
        what: value if isinstance(value, str) else words[value] for what, value in found.items()
    }


class Reached(Struct, frozen=True):
    """The answer of the provider."""

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
        status, headers, body = await _fetch(url, config, protocol)
    except SurecallError as error:
        return Reached(error.message, error.code, error.hint or "")
    skew = _clock_skew(headers.get("date"))
    if status in _REFUSALS:
        message, code = f"answers, but refuses with status {status}", _REFUSALS[status]
        return Reached(message, code, f"Check the key. {config.describe_key()}", clock_skew_s=skew)
    if status >= 500:
        message, fix = f"answers with status {status}", "Wait, or ask the provider."
        return Reached(message, Code.UPSTREAM_5XX, fix, clock_skew_s=skew)
    models = _listed_models(body) if status == 200 else ()
    what = f"lists {count_of(len(models), 'model')}" if models else f"status {status} for /models"
    return Reached(f"answers, {what}", models=models, clock_skew_s=skew)


async def _fetch(
    url: str, config: Config, protocol: WireProtocol
) -> tuple[int, dict[str, str], bytes]:
    headers = dict(config.headers)
    if config.api_key:
        headers |= protocol.render_auth(config.api_key.reveal())
    async with open_once(
        "GET", url, headers, deadlines=_DEADLINES, limits=_LIMITS, network=config.network
    ) as answer:
        try:
            body = await answer.read()
        except ProviderReplyError:
            body = b""  # it answers, which is what matters here
        return answer.status, dict(answer.headers), body


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
