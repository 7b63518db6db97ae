"""What `surecall doctor` looks at; each finding says what to do about it."""

import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, cast

from msgspec import Struct
from msgspec.structs import asdict

from surecall.config import Config
from surecall.errors import SurecallError, did_you_mean
from surecall.loop import Options, resolve_options
from surecall.loop.resolve import AUTO_PRESET, find_provider, merge_options
from surecall.profiles import Catalog, embedded_name
from surecall.transport import Deadlines, RetryPolicy

from .reach import reach_provider
from .terminal import shown_value

Status = Literal["ok", "warn", "fail"]

_PACKAGES: Final = ("surecall", "aiohttp", "click", "jsonschema-rs", "msgspec", "rich")
_LIMITS: Final = (
    "max_turns",
    "max_tool_calls",
    "max_run_tokens",
    "deadline_s",
    "tool_timeout_s",
    "max_tool_args_bytes",
    "max_tool_output_bytes",
)
_MIN_FREE_BYTES: Final = 100 * 1024 * 1024
_FIRST_RELEASE_S: Final = 1_735_689_600  # 2025-01-01; a clock before it is wrong
_MAX_SKEW_S: Final = 300


class Check(Struct, frozen=True, kw_only=True):
    """One thing that was looked at."""

    group: str
    name: str
    value: str
    status: Status = "ok"
    origin: str = ""
    """Where the value came from, for settings."""
    code: str = ""
    fix: str = ""


def check_settings(config: Config) -> Iterator[Check]:
    """Check what is set, and where it came from."""
    file = str(config.path) if config.path else "none found"
    yield Check(group="settings", name="file", value=file)
    missing = {
        "model": "Pass --model, set SURECALL_MODEL, or put `model` into surecall.toml.",
        "base_url": "Pass --base-url, set SURECALL_BASE_URL, or put `base_url` into surecall.toml.",
        "api_key": "Set SURECALL_API_KEY, or name a variable with api_key_env, if one is needed.",
    }
    if embedded_name(config.model or "") is not None:
        missing = {}  # a model inside the process has no address and needs no key
    for row in config.render():
        if row.key in missing and row.value == "-":
            origin = "" if row.origin == "default" else row.origin
            yield Check(
                group="settings",
                name=row.key,
                value="not set",
                status="warn",
                origin=origin,
                fix=missing[row.key],
            )
        elif row.origin != "default":
            yield Check(group="settings", name=row.key, value=row.value, origin=row.origin)


def check_options(config: Config) -> Iterator[Check]:
    """Check the options in force, and the limits that follow from them."""
    catalog = Catalog.builtin()
    try:
        resolved = merge_options(
            provider=find_provider(config, catalog),
            model=config.model or "",
            presets=config.preset or (AUTO_PRESET,),
            profile=config.profile,
            config=config,
            overrides={},
            catalog=catalog,
        )
    except SurecallError as error:
        yield Check(
            group="options",
            name="options",
            value=error.message,
            status="fail",
            code=error.code,
            fix=error.hint or "",
        )
        resolved = resolve_options({})
    default = Options()
    for name, value in asdict(resolved.options).items():
        if value != getattr(default, name):
            origin = _origins_of(name, resolved.origins)
            names = cast("tuple[str, ...]", value) if isinstance(value, tuple) else ()
            shown = ", ".join(names) or shown_value(value)
            yield Check(group="options", name=name, value=shown, origin=origin)
    for name in _LIMITS:
        value = getattr(resolved.options, name)
        yield Check(group="limits", name=name, value="no limit" if value is None else str(value))
    deadlines = asdict(Deadlines(**_given(config.deadlines)))
    yield Check(group="limits", name="deadlines", value=_pairs(deadlines))
    yield Check(
        group="limits", name="retry", value=_pairs(asdict(RetryPolicy(**_given(config.retry))))
    )


def check_provider(config: Config) -> Iterator[Check]:
    """Check whether the provider answers; nothing is sent when none is set."""
    if not config.base_url or embedded_name(config.model or "") is not None:
        return
    reached = asyncio.run(reach_provider(config))
    yield Check(
        group="provider",
        name=config.base_url,
        value=reached.message,
        status="fail" if reached.code else "ok",
        code=reached.code,
        fix=reached.fix,
    )
    if config.model and reached.models:
        listed = config.model in reached.models
        yield Check(
            group="provider",
            name="model",
            value=f"{config.model} is {'' if listed else 'not '}in its list",
            status="ok" if listed else "warn",
            fix="" if listed else did_you_mean(config.model, reached.models),
        )
    if reached.clock_skew_s is not None and abs(reached.clock_skew_s) > _MAX_SKEW_S:
        yield Check(
            group="provider",
            name="clock",
            value=f"differs from the provider's by {reached.clock_skew_s:.0f} s",
            status="warn",
            fix="Set the clock of this machine.",
        )


def check_disk(config: Config | None) -> Iterator[Check]:
    """Check that files can be written where runs leave them."""
    places = [("current folder", Path.cwd())]
    if config is not None:
        named = (("journal_dir", config.journal_dir), ("trace_dir", config.trace_dir))
        places += [(name, place) for name, place in named if place is not None]
    for name, place in places:
        yield _check_folder(name, place)


def _check_folder(name: str, place: Path) -> Check:
    existing = next(folder for folder in (place, *place.absolute().parents) if folder.exists())
    try:
        with tempfile.NamedTemporaryFile(dir=existing, prefix=".surecall-") as file:
            file.write(b"surecall")
            file.flush()
            os.fsync(file.fileno())
        free = shutil.disk_usage(existing).free
    except OSError as error:
        return Check(
            group="disk",
            name=name,
            value=f"{place}: {error.strerror or error}",
            status="fail",
            code="JOURNAL_WRITE_FAILED",
            fix="Choose a folder that can be written.",
        )
    low = free < _MIN_FREE_BYTES
    return Check(
        group="disk",
        name=name,
        value=f"{place}: can be written, {free / 1e9:.1f} GB free",
        status="warn" if low else "ok",
        fix="Free some space." if low else "",
    )


def check_system() -> Iterator[Check]:
    """Check Python, the packages and the clock."""
    from importlib.metadata import PackageNotFoundError, version

    yield Check(group="system", name="python", value=sys.version.split()[0])
    for package in _PACKAGES:
        try:
            yield Check(group="system", name=package, value=version(package))
        except PackageNotFoundError:
            yield Check(
                group="system",
                name=package,
                value="not installed",
                status="fail",
                fix="Install surecall again.",
            )
    sane = time.time() > _FIRST_RELEASE_S
    now = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    yield Check(
        group="system",
        name="clock",
        value=now,
        status="ok" if sane else "fail",
        fix="" if sane else "Set the clock; certificates cannot be checked with a wrong one.",
    )


def _given(settings: Struct) -> dict[str, Any]:
    return {name: value for name, value in asdict(settings).items() if value is not None}


def _pairs(values: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in values.items())


def _origins_of(name: str, origins: dict[str, str]) -> str:
    below = [origin for key, origin in origins.items() if key.startswith(f"{name}.")]
    found = dict.fromkeys(below or [origins[name]])
    return ", ".join(origin for origin in found if origin not in {"default", "caller"})
