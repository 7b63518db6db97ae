"""What knowing other capabilities changes in a run."""

from typing import NamedTuple

from surecall.config import Config
from surecall.loop.options import Options
from surecall.loop.prompting import choose_mode
from surecall.loop.resolve import AUTO_PRESET, find_provider, merge_options
from surecall.profiles import Catalog, ResolvedCapabilities

__all__ = ["Change", "list_changes"]


class Change(NamedTuple):
    """One thing that a run does differently."""

    what: str
    before: str
    after: str


def list_changes(
    config: Config, catalog: Catalog, before: ResolvedCapabilities, after: ResolvedCapabilities
) -> tuple[Change, ...]:
    """Return what a run with these settings does differently for what is known afterwards."""
    options = merge_options(
        provider=find_provider(config, catalog),
        model=config.model or "",
        presets=config.preset or (AUTO_PRESET,),
        profile=config.profile,
        config=config,
        overrides={},
        catalog=catalog,
    ).options
    rows = zip(_behaviour(options, before), _behaviour(options, after), strict=True)
    return tuple(Change(what, old, new) for (what, old), (_, new) in rows if old != new)


def _behaviour(options: Options, known: ResolvedCapabilities) -> list[tuple[str, str]]:
    can = known.capabilities
    text = can.text_formats if options.text_formats is None else options.text_formats
    several = can.supports_parallel_tools or known.origins["supports_parallel_tools"] == "default"
    midturn = can.allows_midturn_system or known.origins["allows_midturn_system"] == "default"
    window = can.context_window_tokens
    room = "any size" if window is None else f"{window - can.reserved_response_tokens} tokens"
    return [
        ("tools are put to the model", choose_mode(options, can, known.origins).mode),
        ("calls written as text are looked for", _word(text)),
        ("parallel_tool_calls may be sent", _word(several)),
        ("calls of one reply may run together", _word(several)),
        ("call ids are made to match", can.tool_id_pattern or "nothing"),
        ("system messages stay where they are", _word(midturn)),
        ("empty reasoning is added to calls", _word(can.needs_reasoning_echo)),
        ("replies may be streamed", _word(can.streaming)),
        ("turns with tools may be streamed", _word(can.stream_equals_whole is not False)),
        ("prompts may have", room),
        ("response_format json_object may be sent", _word(can.json_object)),
        ("response_format json_schema may be sent", _word(can.json_schema)),
    ]


def _word(is_so: object) -> str:
    return "yes" if is_so else "no"
